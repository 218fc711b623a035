//! Errors of making a node and of attaching to one.

use super::terms::TermsError;
use core::fmt;
use tollbar::table::TableError;

/// Why a node cannot be made or attached to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeError {
    /// The policy, the options or the name cannot be leased.
    Terms(TermsError),
    /// The node's memory or its reserve table cannot be made or attached to.
    Table(TableError),
    /// The memory holds no node, a damaged one, or one of another version.
    NotANode,
    /// The allocator has no memory for a client.
    NoMemory,
    /// A client has as many limits as it may have, or has this one already.
    TooMany,
}

impl fmt::Display for NodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NodeError::Terms(error) => error.fmt(f),
            NodeError::Table(error) => error.fmt(f),
            NodeError::NotANode => f.write_str("the memory holds no node of this version"),
            NodeError::NoMemory => f.write_str("out of memory"),
            NodeError::TooMany => f.write_str("the client has 128 limits, or this one already"),
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
