//! Why a node cannot be made.

use super::terms::TermsError;
use crate::table::TableError;
use core::fmt;

/// Why a node cannot be made or found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NodeError {
    /// The limit cannot be leased, or not so.
    Terms(TermsError),
    /// Its memory.
    Table(TableError),
    /// What is in the memory is no node, or one of another version.
    NotANode,
    /// Out of memory.
    NoMemory,
}

impl fmt::Display for NodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NodeError::Terms(error) => error.fmt(f),
            NodeError::Table(error) => error.fmt(f),
            NodeError::NotANode => f.write_str("the memory holds no node of this version"),
            NodeError::NoMemory => f.write_str("out of memory"),
        }
    }
}

impl core::error::Error for NodeError {}

impl From<TermsError> for NodeError {
    fn from(error: TermsError) -> NodeError {
        NodeError::Terms(error)
    }
}

impl From<TableError> for NodeError {
    fn from(error: TableError) -> NodeError {
        NodeError::Table(error)
    }
}
