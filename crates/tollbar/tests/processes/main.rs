//! Shared memory of several processes. These tests fork, so they run apart from those that hold much memory.

#[path = "../common/mod.rs"]
mod common;
mod hierarchy_processes;
mod table_counts;
