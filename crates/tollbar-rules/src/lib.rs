//! Rate limits from a file.
//!
//! A rules file says which requests are limited, by which key, with which policies, and what a
//! refused request is answered. [`Rules`] puts a file in force, decides on requests, and reloads
//! the file while requests are decided. docs/rules.md describes the format.
//!
//! ```text
//! file (TOML or YAML) ──▶ read (all problems with their places) ──▶ RuleFile ──▶ Set ──▶ ArcSwap ──▶ check
//!                                                                      │
//!                                                                      └──▶ store: one table, a policy for each limit
//! ```
//!
//! The core, `tollbar`, knows nothing of rules: all limits of a request are charged by its
//! `take_many`, together or not at all.

mod charge;
mod cost;
mod engine;
mod explain;
mod file;
mod host;
mod key;
mod lint;
mod load;
mod metrics;
mod path;
mod read;
mod request;
mod reset;
mod rule;
mod set;
mod settle;
mod store;
mod taken;
mod tally;
mod times;

/// What the command's importers share with the reader. It has no stable interface.
#[doc(hidden)]
pub mod internal {
    pub use crate::file::{parse, quoted, Entry, Node, Text, Value};
    pub use crate::read::fields::{shown, Fields, Problems, BODY_MOST};
    pub use crate::read::limits::policy_for_table;
}

pub use cost::{Amount, Cost};
pub use engine::{Answer, Options, RuleCounts, Rules};
pub use explain::explain;
pub use file::{Format, Place, Problem};
pub use host::Host;
pub use key::{Key, Source};
pub use lint::{lint, surprise, Finding, Level};
pub use load::{read_file, LoadError};
pub use metrics::metrics;
pub use path::Pattern;
pub use read::{read, LIMITS_OF_FILE_MOST, RULES_MOST};
pub use request::Field;
pub use reset::ResetError;
pub use rule::{Class, Limit, Missing, OwnPolicies, Refusal, Role, Rule, RuleFile};
pub use set::Set;
pub use store::Reloaded;
pub use taken::Taken;
pub use times::Times;
pub use tollbar::address::Network;

// The README's program, run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
