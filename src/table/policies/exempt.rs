//! Keys that are never charged: a small set of hashes, shared with the table.
//!
//! A hash has two groups of eight places, each a cache line, and may be in any of the sixteen. So a
//! lookup always costs the same, and a call that removes a hash just empties its place. Two calls
//! that exempt one key at once may put its hash into two places. The call that ends the exemption
//! empties both.

use super::Policies;
use crate::sync::{AtomicU64, Ordering};
use crate::table::memory::error::TableError;
use crate::table::memory::layout::EXEMPT;
use crate::table::memory::special::EXEMPT_KEY;

const EMPTY: u64 = 0;
/// Places in a group. One in loom's models.
const GROUP: usize = if cfg!(loom) { 1 } else { 8 };
const GROUPS: usize = EXEMPT / GROUP;

impl Policies {
    /// The hashes in the set.
    pub(crate) fn exempt_hashes(&self) -> impl Iterator<Item = u64> + '_ {
        self.memory
            .exempt_hashes()
            .iter()
            .map(|place| place.load(Ordering::Relaxed))
            .filter(|hash| *hash != EMPTY)
    }

    /// Puts the hash of a key under its policy into the set.
    pub(crate) fn exempt(&self, hash: u64) -> Result<(), TableError> {
        let hash = not_empty(hash);
        if self.is_in_set(hash) {
            return Ok(());
        }
        // The call raises the count before it takes a place, so no request misses an exempt key. If
        // the process is killed in between, the count is too high, and requests search the set
        // without need.
        self.memory.header().special.count_exempt()?;
        // The emptier group first, so that both groups fill evenly.
        let [first, second] = groups(hash);
        let taken = |group: usize| {
            self.group(group).filter(|place| place.load(Ordering::Relaxed) != EMPTY).count()
        };
        let order = if taken(second) < taken(first) { [second, first] } else { [first, second] };
        for place in order.into_iter().flat_map(|group| self.group(group)) {
            // Release: a call that finds the hash sees the count.
            if place.compare_exchange(EMPTY, hash, Ordering::Release, Ordering::Relaxed).is_ok() {
                return Ok(());
            }
        }
        self.memory.header().special.count_less(EXEMPT_KEY);
        Err(TableError::Exempt)
    }

    /// Takes the hash out of the set. Returns whether it was there.
    pub(crate) fn unexempt(&self, hash: u64) -> bool {
        let hash = not_empty(hash);
        let mut found = false;
        for place in groups(hash).into_iter().flat_map(|group| self.group(group)) {
            if place.compare_exchange(hash, EMPTY, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                self.memory.header().special.count_less(EXEMPT_KEY);
                found = true;
            }
        }
        found
    }

    /// Whether the key with this hash is exempt.
    #[inline(always)]
    pub(crate) fn is_exempt(&self, hash: u64) -> bool {
        // In most tables no key is exempt, and this load decides.
        self.memory.header().special.read().has_exempt() && self.is_in_set(not_empty(hash))
    }

    #[cold]
    fn is_in_set(&self, hash: u64) -> bool {
        groups(hash)
            .into_iter()
            .flat_map(|group| self.group(group))
            .any(|place| place.load(Ordering::Acquire) == hash)
    }

    fn group(&self, group: usize) -> impl Iterator<Item = &AtomicU64> {
        self.memory.exempt_hashes().iter().skip(group * GROUP).take(GROUP)
    }
}

/// The two different groups of a hash.
#[cfg_attr(loom, allow(clippy::modulo_one))] // a model has two groups
fn groups(hash: u64) -> [usize; 2] {
    let first = hash as usize % GROUPS;
    let other = 1 + (hash >> 32) as usize % (GROUPS - 1);
    [first, (first + other) % GROUPS]
}

/// Replaces the hash that means an empty place by 1. The table confuses the two keys.
const fn not_empty(hash: u64) -> u64 {
    if hash == EMPTY {
        1
    } else {
        hash
    }
}
