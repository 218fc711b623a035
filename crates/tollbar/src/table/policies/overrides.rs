//! Keys with a policy of their own: a map from hashes to versions, shared with the table.
//!
//! A place is a slot of 16 bytes: a key's hash, and the stamp of the version that the key is under in place of its policy's current
//! one. Both words change together, so a call that is killed leaves each place as it was or as it should be. A hash has two groups of eight
//! places, and may be in any of the sixteen. The map knows a key by the tag of its hash, which is all that a slot's word has of it.
//!
//! # Two calls for one key
//!
//! Two calls that find no place of a key may each take one. Then the first in the key's order counts. A call that has taken a place looks at
//! all others again: if one before it has the key, it gives up its own and changes that one; if one after it has the key, it empties that
//! one. A lookup that runs beside this could see the first place before it was taken and the other one after it was emptied. So a change is
//! counted before a place after the first is emptied, and a lookup that has found nothing looks again if a change was counted meanwhile.

use super::encoding::Terms;
use super::records::{policy_of, version_of};
use super::{references, Keep, Policies, ROUNDS};
use crate::policy::Policy;
use crate::table::memory::error::TableError;
use crate::table::memory::sizes::{override_groups, GROUP};
use crate::table::memory::slot::{Pair, Slot};
use crate::table::memory::special::OVERRIDE;
use crate::table::slots::candidates::{hash_of_tag, tag};
use core::num::NonZeroU64;

/// Places that share two cache lines.
type Group = [Slot; GROUP as usize];

/// Places of a hash.
const PLACES: usize = 2 * GROUP as usize;

impl Policies {
    /// The stamp of the version that the key with `hash` is under. 0: there is no such policy.
    #[inline(always)]
    pub(crate) fn stamp_for(&self, policy: u32, hash: u64) -> u64 {
        // Most tables have no override. Then this load decides.
        if self.memory.header().special().has_overrides() {
            if let Some(stamp) = self.override_of(policy, hash) {
                return stamp;
            }
        }
        self.memory.current_stamp(policy)
    }

    /// The stamp of the key's override.
    #[inline(never)]
    pub(crate) fn override_of(&self, policy: u32, hash: u64) -> Option<u64> {
        let hash = known_hash(hash);
        for _ in 0..ROUNDS {
            let before = self.memory.header().special();
            if let Some((_, pair)) = self.find_override(hash) {
                // In damaged memory it may be another policy's.
                return (policy_of(pair.state) == policy).then_some(pair.state);
            }
            if self.memory.header().special() == before {
                return None;
            }
        }
        None
    }

    /// Gives the key with `hash` a policy of its own.
    pub(crate) fn set_override(&self, number: u32, hash: u64, policy: &Policy, keep: Keep) -> Result<(), TableError> {
        let header = self.memory.header();
        let stamp = references::acquire(header, self.memory.records(), number, policy, keep)?;
        let left = self.put_override(known_hash(hash), stamp);
        match left {
            Ok(Some(replaced)) => references::release(header, version_of(replaced)),
            Ok(None) => {}
            Err(_) => references::release(header, version_of(stamp)),
        }
        left.map(|_| ())
    }

    /// Ends the override of the key with `hash`. Returns whether it had one.
    pub(crate) fn clear_override(&self, hash: u64) -> bool {
        let hash = known_hash(hash);
        let mut found = false;
        for _ in 0..ROUNDS {
            let Some((slot, pair)) = self.find_override(hash) else { return found };
            found |= self.empty_override(slot, pair);
        }
        found
    }

    /// Each key with an override, by its hash, and the stamp of its version.
    pub(crate) fn overrides(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.memory.overrides().iter().map(Slot::pair).filter(|pair| pair.key != 0).map(|pair| (pair.key, pair.state))
    }

    /// The number of the policy that the version of `stamp` is of, with the policy that it is.
    pub(crate) fn read_version(&self, stamp: u64) -> Option<(u32, Policy, Terms)> {
        let (policy, terms) = self.memory.records().get(version_of(stamp))?.read_kept(stamp)?;
        Some((policy_of(stamp), policy, terms))
    }

    /// The override in place number `from` or after it: the number of its policy, the hash of its key and the policy that it is; and the place
    /// after it.
    pub(crate) fn next_override(&self, from: u64) -> Option<(u32, u64, Policy, u64)> {
        let places = self.memory.overrides();
        let mut n = usize::try_from(from).ok()?;
        loop {
            let pair = places.get(n)?.pair();
            n += 1;
            if let (1.., Some((number, policy, _))) = (pair.key, self.read_version(pair.state)) {
                return Some((number, pair.key, policy, n as u64));
            }
        }
    }

    /// Empties places of unknown versions, and counts overrides and exempt keys anew. Only while no other call uses the table.
    pub(crate) fn repair_special(&self) {
        let (header, records) = (self.memory.header(), self.memory.records());
        let mut count = 0;
        for slot in self.memory.overrides() {
            let pair = slot.pair();
            match self.read_version(pair.state) {
                Some((_, _, terms)) if terms.is_override && pair.key != 0 => count += 1,
                _ => {
                    let _ = slot.swap(pair, Pair::EMPTY);
                }
            }
        }
        header.set_special(self.exempt_hashes().count() as u64, count);
        references::recount(header, records, |stamp| {
            self.overrides().filter(|(_, other)| *other == stamp).count() as u64
        });
    }

    /// Stores `stamp` for the key, and returns a stamp that has lost its place: that of the key's former override, or `stamp` if the key
    /// had it already.
    fn put_override(&self, hash: u64, stamp: u64) -> Result<Option<u64>, TableError> {
        let header = self.memory.header();
        let new = Pair { key: hash, state: stamp };
        for _ in 0..ROUNDS {
            if let Some((slot, pair)) = self.find_override(hash) {
                // Before the change: see `credit_mark`.
                header.count_change();
                if slot.swap(pair, new).is_ok() {
                    return Ok(Some(pair.state));
                }
                continue;
            }
            header.count_override(self.memory.fixed.overrides)?;
            let Some(taken) = self.take_place(new) else {
                header.count_less(OVERRIDE);
                return Err(TableError::Overrides);
            };
            let mut is_first = true;
            let mut is_after = false;
            for n in 0..PLACES {
                let Some(slot) = self.place(hash, n) else { break };
                if core::ptr::eq(slot, taken) {
                    is_after = true;
                    continue;
                }
                let pair = slot.pair();
                if is_same(pair.key, hash) {
                    is_first &= is_after;
                    if is_after {
                        header.count_change();
                        self.empty_override(slot, pair);
                    }
                }
            }
            if is_first {
                return Ok(None);
            }
            header.count_change();
            if taken.swap(new, Pair::EMPTY).is_err() {
                // Another call for this key has emptied or changed it, which came after this one.
                return Ok(None);
            }
            header.count_less(OVERRIDE);
        }
        Err(TableError::Corrupt)
    }

    /// Puts `new` into an empty place of its key, in the emptier group.
    fn take_place(&self, new: Pair) -> Option<&Slot> {
        let mut more = 0;
        for n in 0..PLACES {
            let is_taken = i32::from(self.place(new.key, n)?.key() != 0);
            more += if n < GROUP as usize { is_taken } else { -is_taken };
        }
        let from = if more > 0 { GROUP as usize } else { 0 };
        for n in 0..PLACES {
            let slot = self.place(new.key, (from + n) % PLACES)?;
            if slot.swap(Pair::EMPTY, new).is_ok() {
                return Some(slot);
            }
        }
        None
    }

    /// Empties a place, unless it has changed. Returns whether it did.
    fn empty_override(&self, slot: &Slot, pair: Pair) -> bool {
        let emptied = slot.swap(pair, Pair::EMPTY).is_ok();
        if emptied {
            self.memory.header().count_less(OVERRIDE);
            references::release(self.memory.header(), version_of(pair.state));
        }
        emptied
    }

    fn find_override(&self, hash: u64) -> Option<(&Slot, Pair)> {
        let [first, second] = self.groups(hash)?;
        match find_in_group(first, hash) {
            None => find_in_group(second, hash),
            found => found,
        }
    }

    /// Place number `n` of a hash.
    fn place(&self, hash: u64, n: usize) -> Option<&Slot> {
        let [first, second] = self.groups(hash)?;
        if n < GROUP as usize {
            first.get(n)
        } else {
            second.get(n - GROUP as usize)
        }
    }

    /// The two different groups of a hash, by its tag.
    #[inline]
    fn groups(&self, hash: u64) -> Option<[&Group; 2]> {
        let groups = NonZeroU64::new(override_groups(self.memory.fixed.overrides))?;
        let others = NonZeroU64::new(groups.get() - 1)?;
        let first = tag(hash) % groups;
        let second = (first + 1 + (tag(hash) >> 28) % others) % groups;
        let places = self.memory.overrides();
        let group = |number: u64| {
            let from = (number * GROUP) as usize;
            places.get(from..from + GROUP as usize)?.try_into().ok()
        };
        Some([group(first)?, group(second)?])
    }
}

fn find_in_group(group: &Group, hash: u64) -> Option<(&Slot, Pair)> {
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

/// The hash under which the map knows a key: a hash without a tag is taken for its neighbour, because 0 is an empty place.
fn known_hash(hash: u64) -> u64 {
    if tag(hash) == 0 {
        hash | hash_of_tag(1)
    } else {
        hash
    }
}
