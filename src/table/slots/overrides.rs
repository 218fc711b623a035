//! A map from the hashes of keys that have a policy of their own to the stamps of these policies'
//! versions, shared with the table.
//!
//! A place is a slot of 16 bytes: a key's hash, and the stamp of the version that the key is under
//! in place of its policy's current one. Both words change together, so a killed call leaves each
//! place either unchanged or complete. A hash has two groups of eight places, and may be in any of
//! the sixteen. The map compares only the tags of hashes, because a slot of the table has no more
//! than a key's tag.
//!
//! # Two calls for one key
//!
//! Two calls that find no place of a key may each take one. Then the place that is first in the
//! key's order counts. A call that has taken a place reads all others again. If a place before its
//! own has the key, the call empties its own and changes that one. If a place after its own has the
//! key, the call empties that one. A concurrent lookup could read the first place before it was
//! taken, and the other place after it was emptied. So a call counts a change before it empties a
//! place, and a lookup that has found nothing repeats if a change was counted meanwhile.

use super::candidates::{hash_of_tag, tag};
use super::ROUNDS;
use crate::sync::{fence, Ordering};
use crate::table::memory::error::TableError;
use crate::table::memory::slot::{Slot, SlotPair};
use crate::table::memory::special::{SpecialCounts, GROUP, OVERRIDE};
use core::num::NonZeroU64;

/// Places that share two cache lines.
type Group = [Slot; GROUP];

/// Places of a hash.
const PLACES: usize = 2 * GROUP;

/// The places that may have one key.
pub(crate) struct OverridePlaces<'a> {
    counts: &'a SpecialCounts,
    first: &'a Group,
    second: &'a Group,
    /// The key's hash, which is not 0 ([`known_hash`]).
    hash: u64,
}

impl<'a> OverridePlaces<'a> {
    /// The two different groups of a hash among all `places`, by its tag. `None` if there are none.
    #[inline]
    pub(crate) fn of(
        places: &'a [Slot],
        counts: &'a SpecialCounts,
        hash: u64,
    ) -> Option<OverridePlaces<'a>> {
        let hash = known_hash(hash);
        let groups = NonZeroU64::new((places.len() / GROUP) as u64)?;
        let others = NonZeroU64::new(groups.get() - 1)?;
        let first = tag(hash) % groups;
        let second = (first + 1 + (tag(hash) >> 28) % others) % groups;
        let group = |number: u64| {
            let from = number as usize * GROUP;
            places.get(from..from + GROUP)?.try_into().ok()
        };
        Some(OverridePlaces { counts, first: group(first)?, second: group(second)?, hash })
    }

    /// The stamp of the key's version.
    #[inline]
    pub(crate) fn lookup(&self) -> Option<u64> {
        for _ in 0..ROUNDS {
            let before = self.counts.read();
            if let Some((_, pair)) = self.find() {
                return Some(pair.state);
            }
            if self.counts.read() == before {
                return None;
            }
        }
        None
    }

    /// Stores `stamp` for the key, unless there are `most` keys in the map. It calls `release` with
    /// each stamp that has lost its place: that of the key's former version, or `stamp` if another
    /// call has replaced it already.
    pub(crate) fn put(
        &self,
        stamp: u64,
        most: u64,
        release: &dyn Fn(u64),
    ) -> Result<(), TableError> {
        let new = SlotPair { key: self.hash, state: stamp };
        for _ in 0..ROUNDS {
            if let Some((slot, pair)) = self.find() {
                // The count comes before the change, because threads compare it to find out that
                // their credit for a key is void.
                self.counts.count_change();
                if slot.swap(pair, new).is_ok() {
                    release(pair.state);
                    return Ok(());
                }
                continue;
            }
            self.counts.count_override(most)?;
            let Some(taken) = self.take(new) else {
                self.counts.count_less(OVERRIDE);
                return Err(TableError::Overrides);
            };
            if self.is_first(taken, release) {
                return Ok(());
            }
            self.counts.count_change();
            if taken.swap(new, SlotPair::EMPTY).is_err() {
                // Another call for this key, which came later, has emptied or changed the place.
                return Ok(());
            }
            self.counts.count_less(OVERRIDE);
        }
        Err(TableError::Corrupt)
    }

    /// Empties all places of the key. Returns whether there was one.
    pub(crate) fn clear(&self, release: &dyn Fn(u64)) -> bool {
        let mut found = false;
        for _ in 0..ROUNDS {
            let Some((slot, pair)) = self.find() else { return found };
            found |= self.empty(slot, pair, release);
        }
        found
    }

    /// Whether `taken`, the place that this call has taken, is the first place with the key. The
    /// call empties all later places with the key.
    fn is_first(&self, taken: &Slot, release: &dyn Fn(u64)) -> bool {
        // Two calls that have each taken a place must not both miss the other's. A swap orders only
        // its own place, so a processor with weak order could load the other place before its swap
        // is seen. With a fence between swap and loads on both sides one call sees the other.
        fence(Ordering::SeqCst);
        let (mut is_first, mut is_after) = (true, false);
        for slot in self.all(0) {
            if core::ptr::eq(slot, taken) {
                is_after = true;
                continue;
            }
            let pair = slot.pair();
            if is_same(pair.key, self.hash) {
                is_first &= is_after;
                if is_after {
                    self.counts.count_change();
                    self.empty(slot, pair, release);
                }
            }
        }
        is_first
    }

    /// Puts `new` into an empty place of the key, in the emptier group.
    fn take(&self, new: SlotPair) -> Option<&'a Slot> {
        let taken = |group: &Group| group.iter().filter(|slot| slot.key() != 0).count();
        let from = if taken(self.first) > taken(self.second) { GROUP } else { 0 };
        self.all(from).find(|slot| slot.swap(SlotPair::EMPTY, new).is_ok())
    }

    /// Empties a place, unless it has changed. Returns whether it has emptied it.
    fn empty(&self, slot: &Slot, pair: SlotPair, release: &dyn Fn(u64)) -> bool {
        let emptied = slot.swap(pair, SlotPair::EMPTY).is_ok();
        if emptied {
            self.counts.count_less(OVERRIDE);
            release(pair.state);
        }
        emptied
    }

    fn find(&self) -> Option<(&'a Slot, SlotPair)> {
        match find_in(self.first, self.hash) {
            None => find_in(self.second, self.hash),
            found => found,
        }
    }

    /// All places in the key's order, from number `from` on and then from 0.
    fn all(&self, from: usize) -> impl Iterator<Item = &'a Slot> {
        let (first, second) = (self.first, self.second);
        (from..from + PLACES).filter_map(move |n| match n % PLACES {
            n @ 0..GROUP => first.get(n),
            n => second.get(n - GROUP),
        })
    }
}

#[inline]
fn find_in(group: &Group, hash: u64) -> Option<(&Slot, SlotPair)> {
    for slot in group {
        if is_same(slot.key(), hash) {
            let pair = slot.pair();
            if is_same(pair.key, hash) {
                return Some((slot, pair));
            }
        }
    }
    None
}

/// Whether these are hashes of one key.
#[inline(always)]
fn is_same(hash: u64, other: u64) -> bool {
    // A hash in the map has a tag ([`known_hash`]), and an empty place has none.
    tag(hash ^ other) == 0
}

/// The hash under which the map stores a key. A tag of 0 would be an empty place, so it becomes 1.
fn known_hash(hash: u64) -> u64 {
    if tag(hash) == 0 {
        hash | hash_of_tag(1)
    } else {
        hash
    }
}
