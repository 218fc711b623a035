//! A table's memory: where it comes from, what lies where in it, and the counters in it. Nothing here knows what a key is.

pub mod error;
pub(crate) mod slot;

pub(super) mod counters;
#[cfg(not(loom))]
pub(super) mod layout;
#[cfg(not(loom))]
pub(crate) mod region;
#[cfg(not(loom))]
pub(crate) mod sizes;

#[cfg(not(loom))]
pub(super) use block::Memory;
#[cfg(not(loom))]
pub(super) use sizes::{Parts, Sizes};

#[cfg(not(loom))]
mod block;
