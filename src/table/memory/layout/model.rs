//! The words of loom's models: those by which a table knows its policies. There are few of each, so
//! that records soon serve other versions.

use crate::sync::AtomicU64;
use crate::table::memory::special::SpecialCounts;
use core::array::from_fn;

/// The policies of a model.
pub(crate) const POLICIES_MOST: usize = 2;
/// Versions. Number 0 is none, so there are three records.
pub(crate) const VERSIONS: usize = 4;
/// Words of a policy: its limit and its period ([`crate::table::policies`]).
pub(crate) const RECORD_WORDS: usize = 2;
/// The places of exempt keys.
pub(crate) const EXEMPT: usize = 2;

/// The words of a header that the policies need.
pub(crate) struct Header {
    pub(crate) generation: AtomicU64,
    pub(crate) special: SpecialCounts,
    pub(crate) current: [AtomicU64; POLICIES_MOST],
    pub(crate) references: [AtomicU64; VERSIONS],
}

/// A version of a policy.
pub(crate) struct Record {
    pub(crate) stamp: AtomicU64,
    pub(crate) check: AtomicU64,
    pub(crate) words: [AtomicU64; RECORD_WORDS],
}

impl Header {
    pub(crate) fn new() -> Header {
        Header {
            generation: AtomicU64::new(0),
            special: SpecialCounts::new(),
            current: from_fn(|_| AtomicU64::new(0)),
            references: from_fn(|_| AtomicU64::new(0)),
        }
    }
}

impl Record {
    pub(crate) fn new() -> Record {
        let (stamp, check) = (AtomicU64::new(0), AtomicU64::new(0));
        Record { stamp, check, words: from_fn(|_| AtomicU64::new(0)) }
    }
}
