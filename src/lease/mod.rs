//! One limit over many machines, without waiting for the network.
//!
//! A machine's [`Node`] takes permits from a store (Redis, Valkey) some at a time and spends them by itself: a *lease* may be spent for
//! a short life, and what is granted has been charged before. What the bound is, and why, is in docs/distributed.md.
//!
//! Data flows one way round: callers spend and say what they lack ([`Node`]); one process collects that and puts questions
//! ([`Driver`]), which the store answers ([`bucket`], in the store's own language `lease.lua`); the answers become leases.

// Without tests loom has only the modules that its models are of, and nobody to call them.
#![cfg_attr(loom, allow(dead_code))]

pub mod bucket;
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
#[cfg(not(loom))]
mod making;
#[cfg(not(loom))]
mod node;
pub mod record;
mod ring;
#[cfg(not(loom))]
mod stats;
mod terms;
#[cfg(not(loom))]
mod watchdog;
#[cfg(not(loom))]
mod wire;
pub mod word;

#[cfg(not(loom))]
pub use client::Client;
#[cfg(not(loom))]
pub use driver::{Driver, Question};
#[cfg(not(loom))]
pub use error::NodeError;
#[cfg(not(loom))]
pub use node::Node;
#[cfg(not(loom))]
pub use stats::{Circuit, Stats};
pub use terms::{Options, Rescue, Terms, TermsError};

/// Explores `f`, with at most three preemptions unless the environment says another number.
#[cfg(all(test, loom))]
fn model(f: impl Fn() + Sync + Send + 'static) {
    crate::sync::explore(3, f);
}
