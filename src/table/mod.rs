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
//! A table allocates its memory once, when it is made. A key takes a slot with its first charge and
//! keeps it until its state has expired; then another key may take the slot. Nothing has to sweep
//! the table. docs/internals/table-inside.md has the layout and the protocol with its proof.
//!
//! The folders. Each imports only from those above it:
//!
//! | folder | content |
//! |---|---|
//! | `memory` | memory regions and files, the layout, 16-byte slots, counters |
//! | `slots` | a key's candidate slots, the probe, insertion and eviction |
//! | `policies` | the policies and their versions, how a state is read under each of them |
//! | `decide` | one request, from the key to the answer |
//! | `admin` | making and opening tables, statistics, changes of policies, sweeping, repair, copies |

// A loom build has only the modules with models, so without its tests nothing calls their
// functions.
#![cfg_attr(loom, allow(dead_code))]

pub(crate) mod memory;
mod slots;

#[cfg(not(loom))]
mod admin;
#[cfg(not(loom))]
mod decide;
mod policies;

#[cfg(not(loom))]
#[doc(hidden)]
pub use decide::several::{Asked, Found, Time, Under};
pub use memory::error::{Call, RequestError, TableError};
#[cfg(not(loom))]
pub(crate) use memory::mix::mix;
pub use slots::states::OnFull;

#[cfg(not(loom))]
pub use self::{
    admin::copy::Copied,
    admin::health::Health,
    admin::open::Options,
    admin::overrides::{Override, Overrides},
    admin::refusals::{Refused, TEXT_MOST},
    admin::statistics::{Entries, Entry, Stats},
    admin::sweep::Sweep,
    decide::answer::Answer,
    decide::batch::{AsRequest, Request},
    decide::receipts::{Receipt, Refund, Settled},
    decide::{Missing, Table},
    memory::layout::POLICIES_MOST,
    memory::region::Trust,
    policies::{Keep, PolicyId},
};
#[cfg(not(loom))]
pub(crate) use decide::{
    fast::hash_long,
    nodes::{SeenNode, TableNodes},
    several::{KeyLimit, Prepared},
};
