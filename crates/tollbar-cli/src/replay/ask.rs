//! What an engine is asked: a request of the log, with its key as a number.

use crate::problem::Problem;

/// A request as the engine decides it.
#[derive(Clone, Copy)]
pub struct Ask<'a> {
    /// The key's number.
    pub number: u32,
    /// The key's bytes.
    pub key: &'a [u8],
    /// Nanoseconds.
    pub now: u64,
    /// Permits.
    pub cost: u64,
    /// The name or number of its class in the policy; empty for none.
    pub class: &'a [u8],
}

/// The message for a class that the policy does not have.
#[cold]
pub fn unknown_class(class: &[u8]) -> Problem {
    Problem::io(format!("the policy has no class \"{}\"", crate::text::plain(class)))
}
