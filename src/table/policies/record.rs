//! The record of one version in a table's memory, and its stamp ([`super::records`]).

use super::encoding::{decode, encode};
use super::terms::Terms;
use crate::policy::Policy;
use crate::sync::{fence, AtomicU64, Ordering};
use crate::table::memory::error::TableError;
use crate::table::memory::layout::{Header, Record, RECORD_WORDS, VERSIONS};
use crate::table::memory::mix::fold;

/// The stamp of a record that a writer has claimed and not published.
pub(super) const CLAIMED: u64 = 1;

pub(crate) const fn version_of(stamp: u64) -> usize {
    (stamp & 0xff) as usize
}

pub(crate) const fn policy_of(stamp: u64) -> u32 {
    ((stamp >> 8) & 0xff) as u32
}

impl Record {
    /// The policy, if this is the record of the version with `stamp`, and is complete.
    pub(crate) fn read(&self, stamp: u64) -> Option<Policy> {
        self.read_kept(stamp).map(|(policy, _)| policy)
    }

    /// The policy, and how debts are converted to this version; see [`Record::read`].
    pub(crate) fn read_kept(&self, stamp: u64) -> Option<(Policy, Terms)> {
        // Acquire: the writer stores the words before the stamp.
        if stamp <= CLAIMED || self.stamp.load(Ordering::Acquire) != stamp {
            return None;
        }
        let mut words = [0; RECORD_WORDS];
        for (word, from) in words.iter_mut().zip(&self.words) {
            // Acquire: the stamp is read again below, after the words, and the caller reads the
            // policy's current stamp after them.
            *word = from.load(Ordering::Acquire);
        }
        let check = self.check.load(Ordering::Acquire);
        // Acquire: if the record has another stamp by now, the caller sees that the version is not
        // current any more, and so does not take the record for damaged.
        if check != fold(&words) || self.stamp.load(Ordering::Acquire) != stamp {
            return None;
        }
        decode(&words)
    }

    /// Claims the record if it is free. Acquire: the words are written after it. No model notices a
    /// weaker ordering, because loom takes no store before an earlier step.
    fn claim(&self) -> bool {
        self.stamp.load(Ordering::Relaxed) == 0
            && self.stamp.compare_exchange(0, CLAIMED, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Writes a claimed record and publishes it.
    pub(super) fn publish(&self, policy: &Policy, terms: Terms, stamp: u64) {
        let words = encode(policy, terms);
        // Release fence: a reader under a former stamp that sees one of these words also sees that
        // the former version is not current any more.
        fence(Ordering::Release);
        for (to, word) in self.words.iter().zip(words) {
            to.store(word, Ordering::Relaxed);
        }
        self.check.store(fold(&words), Ordering::Relaxed);
        // Release: a reader of the stamp sees the words. No model notices a weaker ordering: the
        // check tells a reader whether the words belong together.
        self.stamp.store(stamp, Ordering::Release);
    }

    /// Frees the record if it still has `stamp`.
    pub(super) fn free(&self, stamp: u64) {
        let _ = self.stamp.compare_exchange(stamp, 0, Ordering::AcqRel, Ordering::Relaxed);
    }
}

/// Claims a free record. It prefers the one that has been free for the longest time, so that a slow
/// request under a freed version has time to notice the change before another policy gets the
/// record.
pub(super) fn claim<'a>(
    header: &Header,
    records: &'a [Record; VERSIONS],
) -> Result<(usize, &'a Record), TableError> {
    // Each generation starts the search at the next version. Version 0 is none.
    let start = header.generation.load(Ordering::Relaxed) as usize;
    for n in 0..VERSIONS {
        let version = start.wrapping_add(n) & (VERSIONS - 1);
        if let (1.., Some(record)) = (version, records.get(version)) {
            if record.claim() {
                return Ok((version, record));
            }
        }
    }
    Err(TableError::Versions)
}

pub(super) fn stamp(header: &Header, number: u32, version: usize) -> u64 {
    let generation = header.generation.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
    generation << 16 | u64::from(number & 0xff) << 8 | version as u64
}

const _: () = assert!(core::mem::size_of::<AtomicU64>() == 8);
