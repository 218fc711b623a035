//! Keys that are never charged: a small set of hashes, shared with the table.
//!
//! A hash has two groups of eight places, each a cache line, and may be in any of the sixteen. So a look costs the same
//! whatever has been there before, and a place that is given up is simply empty. Two calls that exempt one key at once may put
//! it into two places; taking it back empties all.

use super::error::TableError;
use super::layout::EXEMPT;
use super::request::ROUNDS;
use super::{PolicyId, Table};
use crate::sync::{AtomicU64, Ordering};

const EMPTY: u64 = 0;
/// Places in a group.
const GROUP: usize = 8;
const GROUPS: usize = EXEMPT / GROUP;

impl Table {
    /// Lets `key` pass under `policy` always, and charges it nothing. Some 1,600 keys of a table may be exempt at one time.
    pub fn exempt(&self, policy: PolicyId, key: &[u8]) -> Result<(), TableError> {
        self.exempt_hash(not_empty(self.hash(policy, key)?))
    }

    /// The hashes that are in the set.
    pub(super) fn exempt_hashes(&self) -> impl Iterator<Item = u64> + '_ {
        self.exempt_places().iter().map(|place| place.load(Ordering::Relaxed)).filter(|hash| *hash != EMPTY)
    }

    /// [`Table::exempt`] for a hash as the set has it.
    pub(super) fn exempt_hash(&self, hash: u64) -> Result<(), TableError> {
        if self.is_in_set(hash) {
            return Ok(());
        }
        // Before the place is taken: who is killed in between leaves a count that makes requests look, not one that does not. A request
        // that comes too early is as one that came before the call.
        self.header().exempt.fetch_add(1, Ordering::Release);
        // The emptier group first, so that both fill up together.
        let [first, second] = groups(hash);
        let taken = |group: usize| self.group(group).filter(|place| place.load(Ordering::Relaxed) != EMPTY).count();
        let order = if taken(second) < taken(first) { [second, first] } else { [first, second] };
        for place in order.into_iter().flat_map(|group| self.group(group)) {
            if place.compare_exchange(EMPTY, hash, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                return Ok(());
            }
        }
        self.one_less();
        Err(TableError::Exempt)
    }

    /// Takes that back; whether `key` was exempt.
    pub fn unexempt(&self, policy: PolicyId, key: &[u8]) -> Result<bool, TableError> {
        let hash = not_empty(self.hash(policy, key)?);
        let mut found = false;
        for place in groups(hash).into_iter().flat_map(|group| self.group(group)) {
            if place.compare_exchange(hash, EMPTY, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                self.one_less();
                found = true;
            }
        }
        Ok(found)
    }

    /// Whether the key with this hash is exempt.
    #[inline(always)]
    pub(super) fn is_exempt(&self, hash: u64) -> bool {
        // Nobody is, mostly: one load.
        self.header().exempt.load(Ordering::Acquire) != 0 && self.is_in_set(not_empty(hash))
    }

    #[cold]
    fn is_in_set(&self, hash: u64) -> bool {
        groups(hash).into_iter().flat_map(|group| self.group(group)).any(|place| place.load(Ordering::Relaxed) == hash)
    }

    /// The count never says fewer than there are; of damaged memory it may not become endless.
    fn one_less(&self) {
        let count = &self.header().exempt;
        let mut seen = count.load(Ordering::Relaxed);
        // Given up, the count says too many, which makes requests look in vain.
        for _ in 0..ROUNDS {
            if seen == 0 {
                return;
            }
            match count.compare_exchange(seen, seen - 1, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return,
                Err(other) => seen = other,
            }
        }
    }

    fn group(&self, group: usize) -> impl Iterator<Item = &AtomicU64> {
        self.exempt_places().iter().skip(group * GROUP).take(GROUP)
    }
}

/// The groups of a hash: two different ones.
fn groups(hash: u64) -> [usize; 2] {
    let first = hash as usize % GROUPS;
    let other = 1 + (hash >> 32) as usize % (GROUPS - 1);
    [first, (first + other) % GROUPS]
}

/// The hash that means no hash is taken for its neighbour.
const fn not_empty(hash: u64) -> u64 {
    if hash == EMPTY {
        1
    } else {
        hash
    }
}
