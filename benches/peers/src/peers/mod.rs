//! The peers that are crates, and one whose formula is published: each in a file, as its own documentation uses it.

pub mod folly;
pub mod governor;
pub mod leaky;
pub mod pingora;
pub mod ratelimit;

/// One limit without keys.
pub trait One: Sync {
    /// At the caller's time, by those that take it.
    fn admit(&self, now: u64) -> bool;
}

/// What its limit says to all requests.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Says {
    /// Far above what can be asked for: the path of an admission.
    Yes,
    /// One permit a day, which has been taken.
    No,
}

/// On cache lines of its own.
#[repr(align(128))]
pub struct Apart<T>(pub T);
