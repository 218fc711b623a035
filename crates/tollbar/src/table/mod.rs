//! Millions of keys in one fixed block of memory that threads and processes share.
//!
//! ```
//! use tollbar::table::{Options, PolicyId, Table};
//!
//! let table = Table::private(&Options::new(10_000), &["5/min".parse()?, "100/s".parse()?])?;
//! let (logins, pages) = (PolicyId::new(0), PolicyId::new(1));
//! for _ in 0..5 {
//!     assert!(table.check(logins, b"192.0.2.1", 1).is_allowed());
//! }
//! assert!(!table.check(logins, b"192.0.2.1", 1).is_allowed());
//! assert!(table.check(logins, b"192.0.2.2", 1).is_allowed()); // another key
//! assert!(table.check(pages, b"192.0.2.1", 1).is_allowed()); // the same key under another policy
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A table allocates once, when it is made. A key takes a slot with its first charge and keeps it until its state
//! has expired; then the slot may go to another key. Nothing has to be swept. The layout, the protocol and its
//! proof are in docs/table.md and in the modules here: where a key may be (`home`), how slots change hands
//! (`protocol`), what is where (`layout`).

// Without tests loom has only the modules that its models are of, and nobody to call them.
#![cfg_attr(loom, allow(dead_code))]

mod error;
mod home;
mod lines;
#[cfg(all(loom, test))]
mod models;
mod protocol;
pub(crate) mod slot;

#[cfg(not(loom))]
mod answer;
#[cfg(not(loom))]
mod arrival;
#[cfg(not(loom))]
mod ask;
#[cfg(not(loom))]
mod batch;
#[cfg(not(loom))]
mod compiled;
#[cfg(not(loom))]
mod counts;
#[cfg(not(loom))]
mod decisions;
#[cfg(not(loom))]
mod encoding;
#[cfg(not(loom))]
mod exempt;
#[cfg(not(loom))]
mod files;
#[cfg(not(loom))]
mod health;
#[cfg(not(loom))]
mod hot_keys;
#[cfg(not(loom))]
mod layout;
#[cfg(not(loom))]
mod local;
#[cfg(not(loom))]
mod mine;
#[cfg(not(loom))]
mod open;
#[cfg(not(loom))]
mod quick;
#[cfg(not(loom))]
pub(crate) mod region;
#[cfg(not(loom))]
mod request;
#[cfg(not(loom))]
mod survey;
#[cfg(not(loom))]
mod terms;
#[cfg(not(loom))]
mod transfer;
#[cfg(not(loom))]
mod twelve;
#[cfg(not(loom))]
mod versions;
#[cfg(not(loom))]
mod wide;

#[cfg(not(loom))]
#[doc(hidden)]
pub use answer::Answer;
#[cfg(not(loom))]
pub use batch::Request;
pub use error::{Call, TableError};
#[cfg(not(loom))]
pub use health::Health;
#[cfg(not(loom))]
pub use hot_keys::HotKeys;
#[cfg(not(loom))]
pub use open::{Missing, Options};
pub use protocol::OnFull;
#[cfg(not(loom))]
pub use region::Trust;
#[cfg(not(loom))]
pub use survey::{Entries, Entry, Stats, Sweep};
#[cfg(not(loom))]
pub use transfer::Copied;

/// The policies that a table may have.
pub const POLICIES_MOST: usize = 128;

/// What a key keeps when its policy is changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Keep {
    /// The permits that it has left, cut to the new burst: no wait is longer than the new policy takes to refill.
    #[default]
    Count = 0,
    /// The time until its debt is paid.
    Time = 1,
}

/// One of a table's policies, by its number: the first is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PolicyId(u32);

impl PolicyId {
    /// The first policy of a table.
    pub const FIRST: PolicyId = PolicyId(0);

    /// Number `n`. Whether a table has it is told when it is used.
    pub const fn new(n: u32) -> PolicyId {
        PolicyId(n)
    }

    /// Its number.
    pub const fn number(self) -> u32 {
        self.0
    }
}

/// Keyed limits in shared memory. Every call may be made by any number of threads and processes at once, and none of
/// them waits for another or allocates, unless it says so.
#[cfg(not(loom))]
#[derive(Debug)]
pub struct Table {
    memory: region::Region,
    buckets: open::Buckets,
    fixed: layout::Fixed,
    homes: home::Homes,
    on_full: OnFull,
    missing: Missing,
    clock: crate::clock::Source,
    /// What is added to the clock.
    offset: u64,
    secrets: rapidhash::v3::RapidSecrets,
    versions: compiled::Versions,
    locals: local::Locals,
    /// Where this process's threads find the counters that they own.
    mine: mine::Mine,
}
