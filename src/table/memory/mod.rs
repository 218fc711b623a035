//! A table's memory: how it is mapped, its layout, and its counters. Nothing here knows what a key
//! is.

pub mod error;
pub(crate) mod mix;
pub(crate) mod receipts;
pub(crate) mod refusals;
pub(crate) mod returns;
pub(crate) mod slot;
pub(crate) mod special;

pub(super) mod counters;
#[cfg(not(loom))]
pub(crate) mod layout;
#[cfg(loom)]
#[path = "layout/model.rs"]
pub(crate) mod layout;
#[cfg(not(loom))]
pub(crate) mod region;
#[cfg(not(loom))]
pub(crate) mod sizes;

pub(super) use block::Memory;
#[cfg(not(loom))]
pub(super) use sizes::{BucketParts, Sizes};

#[cfg(not(loom))]
mod block;
#[cfg(loom)]
#[path = "block/model.rs"]
mod block;
