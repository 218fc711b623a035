//! Errors of making a limit, and of deciding.

use super::kinds::means;
use crate::redis::{Fault, LinkError, Text, Why};
use core::fmt;
use tollbar::policy::{Kind, PolicyError};
use tollbar::table::{RequestError, TableError};

/// A server's text or a key's name: at most 96 printable ASCII bytes.
pub type Message = Text<96>;

/// Why a policy is refused when a limit is made of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LimitError {
    /// The name is not 1 to [`super::NAME_MOST`] visible ASCII characters without braces.
    Name,
    /// The policy is invalid.
    Policy(PolicyError),
    /// This store does not have the algorithm.
    Unsupported(Kind),
    /// This store does not have `borrow`.
    Borrow,
    /// This store does not have `init`: it forgets a key whose bucket is full, which would begin
    /// again with fewer permits.
    Init,
    /// This store does not have `ban`.
    Ban,
    /// This store does not have lists of policies.
    List,
    /// This store does not have classes of requests.
    Classes,
    /// This store does not have sliding windows that begin with a key's first request.
    Anchor,
    /// The period, or a segment of it, is not a whole number of microseconds, which is what the
    /// server's clock counts.
    Fraction,
    /// The policy's numbers exceed 2^53, up to which the server's numbers are exact. A smaller
    /// burst or limit makes them smaller, and so does a limit that has a larger common divisor with
    /// the period.
    TooLarge,
    /// The limit's table cannot be made.
    Table(TableError),
}

/// Why there is no decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreError {
    /// The key is empty or longer than [`super::KEY_MOST`].
    Key,
    /// There is no connection, or it broke.
    Unreachable(LinkError),
    /// The server did not answer within the store's timeout.
    TimedOut,
    /// The server answered that it cannot serve now.
    Unavailable(Why),
    /// The server refused this user, or a command of this user. The message is the server's.
    Refused(Message),
    /// The file that has the password cannot be read. The message has the errno.
    Credentials(Message),
    /// The server is part of a cluster, and another node holds the key. The server's message names
    /// the node. Clusters are not supported.
    Moved(Message),
    /// The named key holds a value that this store did not write. Nothing is admitted or
    /// overwritten.
    Foreign(Message),
    /// The script failed; the message is the server's.
    Script(Message),
    /// The server's reply is not one of this store's scripts.
    Protocol,
    /// The command does not fit into the connection's buffer.
    NoRoom,
    /// The table refused the call.
    Table(RequestError),
}

impl StoreError {
    /// Whether the server may have charged the request, once at most: the connection broke, or no
    /// valid answer came. `false`: it has charged nothing.
    pub const fn may_have_charged(&self) -> bool {
        matches!(self, StoreError::Unreachable(_) | StoreError::TimedOut | StoreError::Protocol)
    }

    pub(crate) fn of(fault: Fault, text: &str) -> StoreError {
        let message = Message::printable(text.as_bytes());
        match fault {
            Fault::Unavailable(why) => StoreError::Unavailable(why),
            Fault::Refused => StoreError::Refused(message),
            Fault::Credentials => StoreError::Credentials(message),
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
            LimitError::Name => {
                f.write_str("a limit's name is 1 to 64 visible ASCII characters without braces")
            }
            LimitError::Policy(why) => f.write_str(why.message()),
            LimitError::Unsupported(kind) => {
                write!(f, "the Redis store does not have algo {}; expected one of", kind.name())?;
                let mut supported = Kind::ALL.into_iter().filter(|kind| means(*kind).is_some());
                supported.try_for_each(|kind| write!(f, " {}", kind.name()))
            }
            LimitError::Init => f.write_str("the Redis store does not have init"),
            LimitError::Ban => f.write_str("the Redis store does not have ban"),
            LimitError::List => {
                f.write_str("the Redis store does not have lists; make a limit of each policy")
            }
            LimitError::Classes => f.write_str("the Redis store does not have classes (reserve)"),
            LimitError::Borrow => f.write_str("the Redis store does not have borrow"),
            LimitError::Anchor => f.write_str(
                "the Redis store does not have sliding windows that begin with a key's first request",
            ),
            LimitError::Fraction => f.write_str(
                "the period, or a segment of it, is not a whole number of microseconds, which the server's clock counts",
            ),
            LimitError::TooLarge => f.write_str(
                "the policy's numbers exceed 2^53, up to which the server counts exactly",
            ),
            LimitError::Table(why) => write!(f, "{why}"),
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::Key => f.write_str("a key has 1 to 512 bytes"),
            StoreError::Unreachable(why) => write!(f, "{why}"),
            StoreError::TimedOut => f.write_str("the server did not answer in time"),
            StoreError::Unavailable(why) => f.write_str(why.message()),
            StoreError::Refused(said) => write!(f, "{}: {said}", Fault::Refused),
            StoreError::Credentials(why) => write!(f, "{}: {why}", Fault::Credentials),
            StoreError::Moved(said) => write!(f, "{}: {said}", Fault::Moved),
            StoreError::Foreign(key) => {
                write!(f, "the key {key} holds a value that tollbar did not write")
            }
            StoreError::Script(said) => write!(f, "{}: {said}", Fault::Script),
            StoreError::Protocol => write!(f, "{}", Fault::Protocol),
            StoreError::NoRoom => {
                f.write_str("the command does not fit into the connection's buffer")
            }
            StoreError::Table(why) => write!(f, "{why}"),
        }
    }
}

impl core::error::Error for LimitError {}
impl core::error::Error for StoreError {}
