//! One interface to keyed limits in this process's memory and in a Redis server.
//!
//! ```
//! use tollbar_redis::store::{MemoryStore, Store};
//!
//! let mut store = MemoryStore::new(10_000);
//! let logins = store.limit("logins", &"5/min".parse()?)?;
//! for _ in 0..5 {
//!     assert!(store.check(&logins, b"192.0.2.1", 1)?.is_allowed());
//! }
//! assert!(!store.check(&logins, b"192.0.2.1", 1)?.is_allowed());
//! assert!(store.check(&logins, b"192.0.2.2", 1)?.is_allowed()); // another key
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`RedisStore`] asks the server for each decision. The server's clock and state are the only
//! ones, so any number of machines share a limit exactly, at the price of a round trip for each
//! decision. [`crate::lease`] decides without waiting for the network.
//!
//! [`StoreLimit`] has no connection: it writes the question, and reads the answer, of a call that
//! the program makes by the Redis client that it has.

mod connection;
mod error;
mod kinds;
mod memory;
mod plan;
mod question;
mod redis;

pub(crate) use connection::Connection;
pub use error::{LimitError, Message, StoreError};
pub use memory::{MemoryLimit, MemoryStore};
pub use plan::StoreAsk;
pub use question::{StoreAnswer, StoreLimit, StoreQuestion};
pub use redis::RedisStore;

use tollbar::decision::Decision;
use tollbar::policy::Policy;

/// The longest name of a limit, in bytes.
pub const NAME_MOST: usize = 64;
/// The longest key, in bytes.
pub const KEY_MOST: usize = 512;

/// A store of keyed limits. A key has 1 to [`KEY_MOST`] bytes; any other is [`StoreError::Key`].
///
/// A call that fails has charged nothing, unless [`StoreError::may_have_charged`] says that it may
/// have. An error never admits the request.
pub trait Store {
    /// A policy as this store applies it, with the limit's name.
    type Limit;

    /// Compiles `policy` for this store. `name` tells limits apart: 1 to [`NAME_MOST`] visible
    /// ASCII characters without braces.
    fn limit(&self, name: &str, policy: &Policy) -> Result<Self::Limit, LimitError>;

    /// Takes `cost` permits of `key` now, or says when they could be taken. A cost of 0 charges
    /// nothing.
    fn check(&mut self, limit: &Self::Limit, key: &[u8], cost: u64)
        -> Result<Decision, StoreError>;

    /// The decision that [`Store::check`] would make now. It takes nothing.
    fn peek(&mut self, limit: &Self::Limit, key: &[u8], cost: u64) -> Result<Decision, StoreError>;

    /// Takes as many permits of `key` as are left, up to `most`, and returns how many it took.
    fn take_up_to(&mut self, limit: &Self::Limit, key: &[u8], most: u64)
        -> Result<u64, StoreError>;

    /// Forgets `key`. Its next request is decided as that of a new key.
    fn reset(&mut self, limit: &Self::Limit, key: &[u8]) -> Result<(), StoreError>;
}

/// Refuses a name that cannot be a limit's.
fn check_name(name: &str) -> Result<(), LimitError> {
    crate::lease::is_name(name).then_some(()).ok_or(LimitError::Name)
}

/// Refuses an empty key, and one of more than [`KEY_MOST`] bytes.
fn check_key(key: &[u8]) -> Result<(), StoreError> {
    if key.is_empty() || key.len() > KEY_MOST {
        return Err(StoreError::Key);
    }
    Ok(())
}
