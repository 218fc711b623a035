//! The one place that chooses between real atomics and loom's model of them.

#[cfg(not(loom))]
pub(crate) use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};

pub(crate) use crossbeam_utils::CachePadded;
