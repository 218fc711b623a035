//! Counters in a table's memory: of decisions, on lines that one thread owns, and of rare events, in shards.

pub(crate) mod lines;
#[cfg(all(loom, test))]
mod models;

#[cfg(not(loom))]
mod decisions;
#[cfg(not(loom))]
pub(crate) mod shards;
#[cfg(not(loom))]
pub(crate) mod thread_lines;
