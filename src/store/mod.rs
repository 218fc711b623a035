//! Where limits are kept: one interface over this process's memory and a Redis server.
//!
//! ```
//! use tollbar::store::{MemoryStore, Store};
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
//! [`RedisStore`] asks the server for each decision, and the server's clock and state are the only ones: so any number of machines share
//! a limit exactly, at the price of a round trip a decision. What does not wait for the network is [`crate::lease`].

mod error;
mod memory;
mod plan;
mod redis;

pub use error::{LimitError, Message, StoreError};
pub use memory::{MemoryLimit, MemoryStore};
pub use redis::{RedisLimit, RedisStore};

use crate::decision::Decision;
use crate::policy::Policy;

/// The longest name of a limit, in bytes.
pub const NAME_MOST: usize = 64;
/// The longest key, in bytes.
pub const KEY_MOST: usize = 512;

/// Keyed limits, wherever they are kept. An error has charged nothing, unless it is one after which nobody knows
/// ([`StoreError::may_have_charged`]); it never means that the request may pass.
pub trait Store {
    /// A policy as this store applies it, with the limit's name.
    type Limit;

    /// Compiles `policy` for this store. `name` tells limits apart: 1 to [`NAME_MOST`] of the letters, digits and `_ - . : /`.
    fn limit(&self, name: &str, policy: &Policy) -> Result<Self::Limit, LimitError>;

    /// Takes `cost` permits of `key` now, or says when. A key has 1 to [`KEY_MOST`] bytes. A cost of 0 asks without charging.
    fn check(&mut self, limit: &Self::Limit, key: &[u8], cost: u64) -> Result<Decision, StoreError>;

    /// What [`Store::check`] would answer. Takes nothing.
    fn peek(&mut self, limit: &Self::Limit, key: &[u8], cost: u64) -> Result<Decision, StoreError>;

    /// Takes as many permits as there are, up to `most`, and returns how many: exactly those are charged.
    fn take_up_to(&mut self, limit: &Self::Limit, key: &[u8], most: u64) -> Result<u64, StoreError>;

    /// Forgets `key`: it is as a new one.
    fn reset(&mut self, limit: &Self::Limit, key: &[u8]) -> Result<(), StoreError>;
}

/// Whether `name` can be a limit's.
fn check_name(name: &str) -> Result<(), LimitError> {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b':' | b'/');
    if name.is_empty() || name.len() > NAME_MOST || !name.bytes().all(good) {
        return Err(LimitError::Name);
    }
    Ok(())
}

/// Whether `key` can be a key.
fn check_key(key: &[u8]) -> Result<(), StoreError> {
    if key.is_empty() || key.len() > KEY_MOST {
        return Err(StoreError::Key);
    }
    Ok(())
}
