//! One limit over many machines. No request waits for the network, unless it wants to
//! ([`Node::wait`]).
//!
//! A machine's [`Node`] takes permits from a store (Redis, Valkey) in batches and spends them by
//! itself. Such a batch is a *lease*: the store charges its permits before it grants them, and the
//! node may spend them for a short life. The bound and its proof are in docs/distributed.md.
//!
//! Data flows in a circle:
//!
//! 1. Callers spend leases. A caller that needs a lease, or has admitted without one, writes a
//!    message into the node's ring ([`Node`]).
//! 2. One process reads the ring and asks the store ([`Driver`], driven by [`Client`]).
//! 3. The store answers by `lease.lua`; [`bucket`] and [`record`] are the same arithmetic in Rust.
//! 4. The driver installs the answers as leases.

// Under loom only the modules that have models are compiled, and nothing calls most of their
// functions.
#![cfg_attr(loom, allow(dead_code))]

pub mod ask;
#[cfg(not(loom))]
mod bell;
pub mod bucket;
pub mod change;
#[cfg(not(loom))]
mod client;
#[cfg(not(loom))]
mod driver;
#[cfg(not(loom))]
mod error;
#[cfg(not(loom))]
mod horizon;
#[cfg(not(loom))]
mod keys;
#[cfg(not(loom))]
mod layout;
mod line;
mod live;
#[cfg(not(loom))]
mod making;
#[cfg(not(loom))]
mod node;
pub mod record;
mod ring;
mod said;
#[cfg(not(loom))]
mod set;
mod state;
#[cfg(not(loom))]
mod stats;
mod terms;
#[cfg(not(loom))]
mod watchdog;
#[cfg(not(loom))]
mod wire;
pub mod word;

#[cfg(not(loom))]
pub use client::calls::{Call, Calls, Turn};
#[cfg(not(loom))]
pub use client::Client;
#[cfg(not(loom))]
pub use driver::{Driver, Question};
#[cfg(not(loom))]
pub use error::NodeError;
#[cfg(not(loom))]
pub(crate) use layout::is_name;
#[cfg(not(loom))]
pub use node::{Node, Wait};
#[cfg(not(loom))]
pub use set::{set, SetError};
#[cfg(not(loom))]
pub use stats::{Circuit, Stats};
pub use terms::{Fallback, OnLoss, Options, Terms, TermsError};
#[cfg(not(loom))]
pub use wire::{CALL_SCRIPT, CALL_SCRIPT_C};

/// What crates/tollbar-redis/model uses beyond the public interface, so that it explores the
/// shipped arithmetic. It promises nothing to others: any version may change it.
#[cfg(not(loom))]
#[doc(hidden)]
pub mod internal {
    pub use super::line::Line;
    pub use super::said::Said;
    pub use super::state::{KeyPhase, KeyState};
}

/// Explores `f`, with at most three preemptions unless the environment says another number.
#[cfg(all(test, loom))]
fn model(f: impl Fn() + Sync + Send + 'static) {
    tollbar::internal::sync::explore(3, f);
}
