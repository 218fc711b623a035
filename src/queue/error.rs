//! Why a queue refuses an item, and why it cannot be made.

#[cfg(doc)]
use super::Queue;
use crate::policy::PolicyError;
use core::fmt;

/// An item that the queue refused, and the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused<T> {
    /// The item.
    pub item: T,
    /// Why.
    pub reason: Refusal,
}

/// Why a queue refused an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The number of waiting items has reached the capacity and the spare.
    Full,
    /// The queue is full, and the number of callers that sleep for room has reached its limit
    /// ([`Queue::with_waiters`]).
    Waiters,
    /// The queue was closed.
    Closed,
}

/// Why a queue cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueError {
    /// The policy is not valid, its state is not one word ([`PolicyError::NotOneWord`]: sliding
    /// windows and logs), or it counts refusals ([`PolicyError::OptionMismatch`]: `ban`,
    /// `count rejected`).
    Policy(PolicyError),
    /// The capacity is 0, or it is too large: the capacity, the spare, the larger of `burst` and
    /// `slack`, and 1 may add up to 2^28 items.
    Capacity,
    /// Out of memory.
    NoMemory,
    /// This processor has no 16-byte compare-and-swap.
    Unsupported,
}

impl fmt::Display for QueueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueueError::Policy(error) => fmt::Display::fmt(error, f),
            QueueError::Capacity => {
                f.write_str("the capacity is 0, or capacity, spare, burst or slack, and 1 add up to more than 268435456 items")
            }
            QueueError::NoMemory => f.write_str("out of memory"),
            QueueError::Unsupported => f.write_str("the processor has no 16-byte compare-and-swap"),
        }
    }
}

#[cfg(feature = "std")]
impl std::error::Error for QueueError {}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::Full => "the queue is full",
            Refusal::Waiters => "the queue is full, and too many callers wait for room",
            Refusal::Closed => "the queue is closed",
        })
    }
}

impl<T> fmt::Display for Refused<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.reason, f)
    }
}

#[cfg(feature = "std")]
impl<T: fmt::Debug> std::error::Error for Refused<T> {}
