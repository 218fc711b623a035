//! Keys that are never charged: a small set of hashes, shared with the table.
//!
//! Open addressing: a key's hash says where to begin, and an empty place ends the search. A place is filled by one
//! swap. A removed hash leaves a tombstone, which the next key that passes may take; so a key may for a moment be
//! in two places, and removing takes it out of all.

use super::error::TableError;
use super::layout::EXEMPT;
use super::{PolicyId, Table};
use crate::sync::{AtomicU64, Ordering};

const EMPTY: u64 = 0;
const REMOVED: u64 = 1;

impl Table {
    /// Lets `key` pass under `policy` always, and charges it nothing. Up to 1,536 keys of a table may be exempt.
    pub fn exempt(&self, policy: PolicyId, key: &[u8]) -> Result<(), TableError> {
        let hash = self.exempt_hash(policy, key)?;
        let mut taken = 0;
        for place in self.places(hash) {
            let mut seen = place.load(Ordering::Relaxed);
            while seen == EMPTY || seen == REMOVED {
                match place.compare_exchange(seen, hash, Ordering::Relaxed, Ordering::Relaxed) {
                    // It tells requests to look; a request that comes too early is as one that came before the call.
                    Ok(EMPTY) => {
                        self.header().exempt.fetch_add(1, Ordering::Release);
                        return Ok(());
                    }
                    Ok(_) => return Ok(()),
                    Err(other) => seen = other,
                }
            }
            if seen == hash {
                return Ok(());
            }
            taken += 1;
            // Long runs would make every request of an exempt key slow.
            if taken > EXEMPT / 4 || self.header().exempt.load(Ordering::Relaxed) as usize >= EXEMPT / 4 * 3 {
                return Err(TableError::Exempt);
            }
        }
        Err(TableError::Exempt)
    }

    /// Takes that back; whether `key` was exempt.
    pub fn unexempt(&self, policy: PolicyId, key: &[u8]) -> Result<bool, TableError> {
        let hash = self.exempt_hash(policy, key)?;
        let mut found = false;
        for place in self.places(hash) {
            match place.compare_exchange(hash, REMOVED, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => found = true,
                Err(EMPTY) => break,
                Err(_) => {}
            }
        }
        Ok(found)
    }

    /// Whether the key with this hash is exempt.
    #[inline(always)]
    pub(super) fn is_exempt(&self, hash: u64) -> bool {
        // Nobody is, mostly: one load.
        self.header().exempt.load(Ordering::Acquire) != 0 && self.look_exempt(hash)
    }

    #[cold]
    fn look_exempt(&self, hash: u64) -> bool {
        let hash = not_special(hash);
        for place in self.places(hash) {
            match place.load(Ordering::Relaxed) {
                EMPTY => return false,
                seen if seen == hash => return true,
                _ => {}
            }
        }
        false
    }

    fn exempt_hash(&self, policy: PolicyId, key: &[u8]) -> Result<u64, TableError> {
        self.hash(policy, key).map(not_special)
    }

    /// All places, from the hash's own on.
    fn places(&self, hash: u64) -> impl Iterator<Item = &AtomicU64> {
        let places = self.exempt_places();
        let start = hash as usize & (EXEMPT - 1);
        (0..EXEMPT).filter_map(move |n| places.get(start.wrapping_add(n) & (EXEMPT - 1)))
    }
}

/// A hash that means no hash is taken for its neighbour.
const fn not_special(hash: u64) -> u64 {
    if hash <= REMOVED {
        hash + 2
    } else {
        hash
    }
}
