//! Tests of tables that several processes share. They fork, and a fork copies the memory of all
//! tests in the program, so they have a program of their own.

mod children;
#[path = "../common/mod.rs"]
mod common;
mod hierarchy_processes;
mod table_changes;
mod table_counts;
