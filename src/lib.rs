//! Rate limiting in nanoseconds: exact, lock-free, in process.
//!
//! A limiter is a pure function on a small state word, applied by one atomic compare-and-swap:
//!
//! ```text
//! Clock ──now──▶ Algorithm::step(state, now, cost) ──▶ one CAS ──▶ Limiter ──▶ C ABI
//! ```
//!
//! | you want | take |
//! |---|---|
//! | one limit, with a clock | [`Limiter`] of a [`Policy`], which is data or one line of text (`"100/s burst 20"`) |
//! | a limit for each of many keys | [`table`], in memory that processes share |
//! | several limits for one request | [`take_many`]: all are charged, or none |
//! | to limit how many are open at one time | [`in_flight`] |
//! | to queue what comes too early | [`queue`], whose items leave at a policy's pace |
//! | to share a rate among tenants and users | [`hierarchy`], with guaranteed rates and ceilings |
//! | to mark packets | [`meter`] |
//! | to tell clients about their limits | [`http`] |
//! | to send as fast as a server allows | [`pacing`] |
//! | counts and sizes for Prometheus | [`metrics`] |
//! | keys made of network addresses | [`prefix`], of what [`address`] reads |
//! | to know which of several nodes a key belongs to | [`route`] |
//!
//! Below these are the parts that they are made of: [`algorithm`] has a pure function for each
//! algorithm, [`limiter`] the states that threads share, and [`clock`] the sources of time.
//!
//! Limits that machines share through Redis are in the crate `tollbar-redis`, which uses this one.
//!
//! ```
//! use tollbar::{Limiter, Policy};
//!
//! let policy: Policy = "100/s burst 20".parse()?;
//! let limiter = Limiter::new(&policy)?;
//! if limiter.check(1).is_allowed() {
//!     // serve
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A [`table::Table`] has a state for each of millions of keys, in one block of memory that never
//! grows. Processes share it through a fork or a file, and one that is killed leaves nothing that
//! others wait for:
//!
//! ```
//! # #[cfg(unix)] {
//! use tollbar::table::{Options, PolicyId, Table};
//!
//! let table = Table::private(&Options::new(100_000), &["5/min burst 3".parse()?])?;
//! for _ in 0..3 {
//!     assert!(table.check(PolicyId::FIRST, b"192.0.2.1", 1).is_allowed());
//! }
//! assert!(!table.check(PolicyId::FIRST, b"192.0.2.1", 1).is_allowed());
//! assert!(table.check(PolicyId::FIRST, b"192.0.2.2", 1).is_allowed()); // another key
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A program that knows its algorithm at compile time can name the type. The compiler then inlines
//! that algorithm, and no call dispatches over all of them:
//!
//! ```
//! use tollbar::algorithm::gcra::Gcra;
//! use tollbar::clock::Manual;
//! use tollbar::limiter::Cell;
//! use tollbar::{Limiter, Policy};
//!
//! let gcra = Gcra::new(&Policy::new(10, 1_000_000_000).with_burst(2))?;
//! let limiter = Limiter::with(Cell::new(gcra), Manual::new(0));
//! assert!(limiter.check(2).is_allowed());
//! assert_eq!(limiter.check(1).retry_after, 100_000_000);
//! # Ok::<(), tollbar::PolicyError>(())
//! ```
//!
//! # Features
//!
//! * `std` (default): std's errors and threads.
//! * `small`: rare paths out of line, for small binaries.
//!
//! Targets without a Unix, such as `x86_64-unknown-none` and `aarch64-unknown-none`, have the
//! algorithms, policies and states, on the caller's own [`clock::Clock`]. Tables,
//! [`State::with_credit`](limiter::State::with_credit) and the system's clocks need a Unix. All
//! targets need atomics of 64 bits, which `thumbv7em-none-eabihf`, for example, does not have.

#![no_std]
// Without a Unix the parts of the pure layer that serve tables and leases are unused.
#![cfg_attr(not(unix), allow(dead_code, unused_imports))]
// Loom compiles no tables, so under loom their parts of the layers below are unused.
#![cfg_attr(loom, allow(dead_code))]

#[cfg(not(target_has_atomic = "64"))]
compile_error!("tollbar needs atomics of 64 bits: this target has none");

extern crate alloc;
#[cfg(any(feature = "std", test, loom))]
extern crate std;

pub mod address;
pub mod algorithm;
pub mod clock;
pub mod decision;
#[cfg(unix)]
pub mod hierarchy;
pub mod http;
#[cfg(unix)]
pub mod in_flight;
#[cfg(unix)]
#[doc(hidden)]
pub mod internal;
pub mod limiter;
#[cfg(unix)]
pub mod meter;
#[cfg(all(unix, not(loom)))]
pub mod metrics;
#[cfg(unix)]
#[cfg_attr(loom, allow(dead_code))]
mod namespace;
pub mod pacing;
pub mod policy;
pub mod prefix;
#[cfg(unix)]
pub mod queue;
pub mod route;
#[cfg(test)]
#[allow(dead_code)] // under loom no test searches
#[path = "../tests/common/search.rs"]
mod search;
mod sync;
#[cfg(unix)]
pub mod table;
#[cfg(unix)]
pub mod take_many;
pub mod units;
mod writer;

pub use decision::{Counts, Decision, NotAdmitted, Reason, Reasons, Verdict};
pub use limiter::{Limiter, Shared, Snapshot, State};
pub use policy::{Anchor, Kind, Mode, Policy, PolicyError, SyntaxError, Unit};
pub use units::NEVER;

/// The programs of the README, run as tests.
#[cfg(doctest)]
#[doc = include_str!("README.md")]
mod readme {}
