//! Returns unused permits of a charge to a key.

use super::Table;
use crate::algorithm::{Algorithm, Charge, GiveBack};
use crate::table::memory::error::TableError;
use crate::table::memory::slot::Pair;
use crate::table::policies::compiled::Version;
use crate::table::policies::conversion::UnderVersion;
use crate::table::policies::local::Scratch;
use crate::table::policies::{PolicyId, ROUNDS};
use crate::table::slots::protocol::{first_to_expire, Changed};

impl Table {
    /// Returns up to `permits` unused permits of an earlier charge to `key`, without those that the key has regained by refill since the
    /// charge ([`GiveBack`] says why no more is safe). The result is how many went back.
    ///
    /// The caller must give back a charge only once. Only gcra without `borrow` gives back, and not at the few rates of which a nanosecond is more
    /// than 3 units, such as 7 a second. A policy under which a thread has had credit in advance
    /// ([`Options::hot_keys`](crate::table::Options)) gives nothing back any more. A key that is not in the table gets nothing back.
    /// If a key is reset or evicted between the charge and this call, the call may lower a debt that the key has made since.
    ///
    /// A key that got permits back may keep its slot for up to one more refill of the burst.
    ///
    /// # Errors
    /// Those of [`Table::check`]. Nothing has been given back.
    pub fn give_back(&self, policy: PolicyId, key: &[u8], charge: Charge, permits: u64) -> Result<u64, TableError> {
        self.give_back_when(policy, key, charge, permits, || self.now())
    }

    /// [`Table::give_back`] at the caller's time. No call for this key with a later time may have returned before.
    ///
    /// # Errors
    /// Those of [`Table::give_back`].
    pub fn give_back_at(
        &self,
        policy: PolicyId,
        key: &[u8],
        now: u64,
        charge: Charge,
        permits: u64,
    ) -> Result<u64, TableError> {
        self.give_back_when(policy, key, charge, permits, || now)
    }

    fn give_back_when(
        &self,
        policy: PolicyId,
        key: &[u8],
        charge: Charge,
        permits: u64,
        now: impl Fn() -> u64,
    ) -> Result<u64, TableError> {
        let mut scratch = Scratch::new();
        match self.prepare(policy, key, &mut scratch) {
            Ok((version, hash)) => self.give_back_of(version, hash, charge, permits, &now),
            // Such a request was not charged.
            Err(decided) => decided.map(|_| 0),
        }
    }

    /// [`Table::give_back`] of a key's hash under its policy.
    pub(super) fn give_back_of(
        &self,
        version: &Version,
        hash: u64,
        charge: Charge,
        permits: u64,
        now: &dyn Fn() -> u64,
    ) -> Result<u64, TableError> {
        let (policy, candidates) = (PolicyId::new(version.number), self.slots.candidates(hash));
        for round in 0..ROUNDS {
            let mut scratch = Scratch::new();
            let version = if round == 0 { version } else { self.policies.current(policy, &mut scratch)? };
            let key = version.key | candidates.tag;
            let Some(slot) = candidates.find(key) else {
                let states = UnderVersion { policies: &self.policies, version };
                match first_to_expire(&states, &candidates, key, now()) {
                    // It was under a former version of its policy, and another call may have moved it.
                    Err(Changed) => continue,
                    Ok(_) => return Ok(0),
                }
            };
            let found = slot.pair();
            if found.key != key {
                continue;
            }
            // The flags and the time are read after the word: see `GiveBack`.
            if self.policies.memory.has_credit(version.number) {
                return Ok(0);
            }
            let booked = self.policies.memory.has_bookings(version.number);
            let back = GiveBack { charge, permits, booked, highest: 0, keeps_slot: true };
            let Some(returned) = version.rule.give_back(found.state, now(), &back) else { return Ok(0) };
            if slot.swap(found, Pair { key, state: returned.next }).is_ok() {
                return Ok(returned.permits);
            }
        }
        Err(TableError::Corrupt)
    }
}
