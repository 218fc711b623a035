//! Keys with a policy of their own: finds the version that a key is under, and gives a key its own
//! version. [`OverridePlaces`] maps keys to versions.

use super::record::{policy_of, version_of};
use super::terms::Terms;
use super::{references, Keep, Policies};
use crate::policy::Policy;
use crate::table::memory::error::TableError;
use crate::table::memory::slot::{Slot, SlotPair};
use crate::table::slots::overrides::OverridePlaces;

impl Policies {
    /// The stamp of the version that the key with `hash` is under. 0: there is no such policy.
    #[inline(always)]
    pub(crate) fn stamp_for(&self, policy: u32, hash: u64) -> u64 {
        // Most tables have no override, so this load is all that most requests do here.
        if self.memory.header().special.read().has_overrides() {
            if let Some(stamp) = self.override_of(policy, hash) {
                return stamp;
            }
        }
        self.memory.current_stamp(policy)
    }

    /// The stamp of the key's override.
    #[inline(never)]
    pub(crate) fn override_of(&self, policy: u32, hash: u64) -> Option<u64> {
        let stamp = self.places(hash)?.lookup()?;
        // In damaged memory the stamp may belong to another policy.
        (policy_of(stamp) == policy).then_some(stamp)
    }

    /// Gives the key with `hash` a policy of its own.
    pub(crate) fn set_override(
        &self,
        number: u32,
        hash: u64,
        policy: &Policy,
        keep: Keep,
    ) -> Result<(), TableError> {
        let header = self.memory.header();
        let stamp = references::acquire(header, self.memory.records(), number, policy, keep)?;
        let places = self.places(hash).ok_or(TableError::Overrides);
        let left = places.and_then(|places| {
            places.put(stamp, self.memory.fixed.overrides, &|old| self.release(old))
        });
        if left.is_err() {
            self.release(stamp);
        }
        left
    }

    /// Ends the override of the key with `hash`. Returns whether it had one.
    pub(crate) fn clear_override(&self, hash: u64) -> bool {
        self.places(hash).is_some_and(|places| places.clear(&|old| self.release(old)))
    }

    /// Each key with an override, by its hash, and the stamp of its version.
    pub(crate) fn overrides(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.memory
            .overrides()
            .iter()
            .map(Slot::pair)
            .filter(|pair| pair.key != 0)
            .map(|pair| (pair.key, pair.state))
    }

    /// The version of `stamp`: the number of its policy, its text as a policy, and its terms.
    pub(crate) fn read_version(&self, stamp: u64) -> Option<(u32, Policy, Terms)> {
        let (policy, terms) = self.memory.records().get(version_of(stamp))?.read_kept(stamp)?;
        Some((policy_of(stamp), policy, terms))
    }

    /// The override in place number `from` or after it: the number of its policy, the hash of its
    /// key and the policy that it is; and the place after it.
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

    /// Empties places of unknown versions, and counts overrides and exempt keys anew. Only while no
    /// other call uses the table.
    pub(crate) fn repair_special(&self) {
        let (header, records) = (self.memory.header(), self.memory.records());
        let mut count = 0;
        for slot in self.memory.overrides() {
            let pair = slot.pair();
            match self.read_version(pair.state) {
                Some((_, _, terms)) if terms.is_override && pair.key != 0 => count += 1,
                _ => {
                    let _ = slot.swap(pair, SlotPair::EMPTY);
                }
            }
        }
        header.special.set(self.exempt_hashes().count() as u64, count);
        references::recount(header, records, |stamp| {
            self.overrides().filter(|(_, other)| *other == stamp).count() as u64
        });
    }

    /// The places of the key with `hash`. `None`: the table has none for overrides.
    #[inline]
    fn places(&self, hash: u64) -> Option<OverridePlaces<'_>> {
        OverridePlaces::of(self.memory.overrides(), &self.memory.header().special, hash)
    }

    fn release(&self, stamp: u64) {
        references::release(self.memory.header(), version_of(stamp));
    }
}
