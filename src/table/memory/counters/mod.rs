//! Counters in a table's memory: decisions on lines that one thread owns, rare events in shards
//! that threads share.

pub(crate) mod lines;
#[cfg(all(loom, test))]
mod models;

#[cfg(not(loom))]
mod decisions;
#[cfg(not(loom))]
pub(crate) mod shards;
#[cfg(not(loom))]
pub(crate) mod thread_lines;
