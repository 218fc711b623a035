//! Millions of keys in one fixed block of memory that threads and processes share.

mod error;
#[allow(dead_code)] // until the table stands on it
mod region;

pub use error::{Call, TableError};

/// The policies that a table may have.
pub const POLICIES_MOST: usize = 128;
