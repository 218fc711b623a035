//! Why a limit cannot be made, and why there is no decision.

use crate::policy::{Kind, PolicyError};
use crate::redis::{Fault, LinkError, Text, Why};
use crate::table::TableError;
use core::fmt;

/// What a server said, or a key's name: printable, and cut at its length.
pub type Message = Text<96>;

/// Why a policy is refused when a limit is made of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LimitError {
    /// The name is empty, longer than [`super::NAME_MOST`], or has bytes other than letters, digits and `_ - . : /`.
    Name,
    /// The policy is refused everywhere.
    Policy(PolicyError),
    /// This store does not have the algorithm.
    Unsupported(Kind),
    /// This store does not have `borrow`.
    Borrow,
    /// The period is not a whole number of microseconds, which is what the server's clock counts.
    Fraction,
    /// The policy's numbers are beyond 2^53, up to which the server's are exact: a smaller burst or limit, or a period with
    /// which the rate has a common divisor, will do.
    TooLarge,
    /// The memory for it.
    Table(TableError),
}

/// Why there is no decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreError {
    /// A key of no bytes, or of more than [`super::KEY_MOST`].
    Key,
    /// There is no connection, or it broke.
    Unreachable(LinkError),
    /// No answer within the time allowed.
    TimedOut,
    /// The server is there and cannot serve now.
    Unavailable(Why),
    /// The server does not let this user in, or do this.
    Refused(Message),
    /// The server is part of a cluster and the key elsewhere: at the node in the message. Not supported.
    Moved(Message),
    /// At the key, which is named, is something that this store did not put there. Nothing is admitted.
    Foreign(Message),
    /// The server's script failed.
    Script(Message),
    /// What came is not a server's answer.
    Protocol,
    /// The command does not fit the connection's memory.
    NoRoom,
    /// The table that keeps the keys.
    Table(TableError),
}

impl StoreError {
    /// Whether the request may have been charged: it was sent, and its answer did not come. It is then charged once at most.
    pub const fn may_have_charged(&self) -> bool {
        matches!(self, StoreError::Unreachable(_) | StoreError::TimedOut | StoreError::Protocol)
    }

    pub(super) fn of(fault: Fault, text: &str) -> StoreError {
        let message = Message::printable(text.as_bytes());
        match fault {
            Fault::Unavailable(why) => StoreError::Unavailable(why),
            Fault::Refused => StoreError::Refused(message),
            Fault::Moved => StoreError::Moved(message),
            Fault::Script | Fault::NoScript => StoreError::Script(message),
            Fault::Protocol => StoreError::Protocol,
        }
    }
}

impl From<LinkError> for StoreError {
    fn from(why: LinkError) -> StoreError {
        StoreError::Unreachable(why)
    }
}

impl fmt::Display for LimitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LimitError::Name => f.write_str("a limit's name is 1 to 64 letters, digits and _ - . : /"),
            LimitError::Policy(why) => f.write_str(why.message()),
            LimitError::Unsupported(kind) => write!(f, "this store does not have {}", kind.name()),
            LimitError::Borrow => f.write_str("this store does not have borrow"),
            LimitError::Fraction => f.write_str("the period is not a whole number of microseconds"),
            LimitError::TooLarge => {
                f.write_str("the policy's numbers are larger than the server counts exactly (2^53)")
            }
            LimitError::Table(why) => write!(f, "{why}"),
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::Key => f.write_str("a key has 1 to 512 bytes"),
            StoreError::Unreachable(why) => write!(f, "{why}"),
            StoreError::TimedOut => f.write_str("no answer in time"),
            StoreError::Unavailable(why) => f.write_str(why.message()),
            StoreError::Refused(said) => write!(f, "{}: {said}", Fault::Refused),
            StoreError::Moved(said) => write!(f, "{}: {said}", Fault::Moved),
            StoreError::Foreign(key) => write!(f, "the key {key} holds something else"),
            StoreError::Script(said) => write!(f, "{}: {said}", Fault::Script),
            StoreError::Protocol => write!(f, "{}", Fault::Protocol),
            StoreError::NoRoom => f.write_str("the command does not fit the connection's memory"),
            StoreError::Table(why) => write!(f, "{why}"),
        }
    }
}

impl core::error::Error for LimitError {}
impl core::error::Error for StoreError {}
