//! The peers that are crates, and one whose formula is published. Each file uses its peer as the
//! peer's own documentation does.

pub mod folly;
pub mod governor;
pub mod leaky;
pub mod pingora;
pub mod ratelimit;

/// One limit without keys.
pub trait One: Sync {
    /// Decides at the caller's time, if the peer takes one.
    fn admit(&self, now: u64) -> bool;
}

/// The verdict of a limit for all requests.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Says {
    /// Allowed: the limit is far above what can be asked for, so this is the path of an admission.
    Yes,
    /// Denied: one permit a day, which has been taken.
    No,
}

/// A value on cache lines of its own.
#[repr(align(128))]
pub struct Padded<T>(pub T);
