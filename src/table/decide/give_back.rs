//! Gives unused permits of a charge back to the key.

use super::Table;
use crate::algorithm::{Algorithm, Charge, GiveBack, Returned};
use crate::table::memory::error::RequestError;
use crate::table::policies::compiled::Version;
use crate::table::policies::conversion::UnderVersion;
use crate::table::policies::local::Scratch;
use crate::table::policies::{PolicyId, ROUNDS};
use crate::table::slots::give_back::{give_back, give_back_under};

impl Table {
    /// Gives up to `permits` unused permits of an earlier charge back to `key`, without those that
    /// the key has regained by refill since the charge ([`GiveBack`] says why no more is safe).
    /// Returns the number that went back.
    ///
    /// The caller must give back a charge only once. These algorithms give permits back, and the
    /// others give none:
    ///
    /// - Gcra without `borrow` and `ban`, except at the few rates whose nanosecond is more than 3
    ///   units of the state, such as 7 a second.
    /// - Lifetime quotas.
    /// - Fixed windows, interval with `anchor first`, curves and calendars, in the charge's window
    ///   or slice. Weighted windows, in that window and the next.
    /// - Of a list only the policy that refills faster, because the slot's time may not become
    ///   earlier. The return value is of that policy.
    ///
    /// Once a thread has had credit under a policy ([`Options::hot_keys`](crate::table::Options)),
    /// that policy gives nothing back. A key that is not in the table gets nothing back. If a key
    /// is reset or evicted between the charge and this call, the call may lower a debt that the key
    /// has made since. If the key has come under a policy that refills more slowly since the
    /// charge, the call may return permits that the former policy has refilled. It is then admitted
    /// that many permits more than the slower policy's bound, and never more than the bounds of
    /// both policies together. A receipt ([`Table::take`]) has its policy and returns none then.
    ///
    /// A key that got permits back may keep its slot for up to one more refill of the burst.
    ///
    /// # Errors
    /// Those of [`Table::check`]. Nothing has been given back.
    pub fn give_back(
        &self,
        policy: PolicyId,
        key: &[u8],
        charge: Charge,
        permits: u64,
    ) -> Result<u64, RequestError> {
        self.give_back_when(policy, key, charge, permits, || self.now())
    }

    /// [`Table::give_back`] at the caller's time. No call for this key with a later time may have
    /// returned before.
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
    ) -> Result<u64, RequestError> {
        self.give_back_when(policy, key, charge, permits, || now)
    }

    pub(super) fn give_back_when(
        &self,
        policy: PolicyId,
        key: &[u8],
        charge: Charge,
        permits: u64,
        now: impl Fn() -> u64,
    ) -> Result<u64, RequestError> {
        let mut scratch = Scratch::new();
        match self.prepare(policy, key, &mut scratch) {
            Ok((version, hash)) => self.give_back_of(version, hash, charge, permits, &now),
            // An empty or exempt key was not charged.
            Err(decided) => decided.map(|_| 0),
        }
    }

    /// [`Table::give_back`] for a key's hash under its policy.
    pub(super) fn give_back_of(
        &self,
        version: &Version,
        hash: u64,
        charge: Charge,
        permits: u64,
        now: &dyn Fn() -> u64,
    ) -> Result<u64, RequestError> {
        let (policy, candidates) = (PolicyId::new(version.number), self.slots.candidates(hash));
        for round in 0..ROUNDS {
            let mut scratch = Scratch::new();
            let version = if round == 0 {
                version
            } else {
                self.policies.current(policy, hash, &mut scratch)?
            };
            let (states, key) =
                (UnderVersion { policies: &self.policies, version }, version.key | candidates.tag);
            let mut lower = |state| self.lowered(version, state, charge, permits, now);
            if let Ok(permits) = give_back(&states, &candidates, key, now, &mut lower) {
                return Ok(permits);
            }
        }
        Err(RequestError::Corrupt)
    }

    /// [`Table::give_back_of`] for a charge under `version` when it had `stamp`. A key that has
    /// come under another version gets nothing back.
    pub(super) fn give_back_under(
        &self,
        version: &Version,
        stamp: u64,
        hash: u64,
        charge: Charge,
        permits: u64,
        now: &dyn Fn() -> u64,
    ) -> Result<u64, RequestError> {
        let (states, candidates) =
            (UnderVersion { policies: &self.policies, version }, self.slots.candidates(hash));
        let is_current = || self.policies.stamp_for(version.number, hash) == stamp;
        let mut lower = |state| self.lowered(version, state, charge, permits, now);
        give_back_under(
            &states,
            &candidates,
            version.key | candidates.tag,
            is_current,
            now,
            &mut lower,
        )
        .map_err(|_| RequestError::Corrupt)
    }

    /// The state of a key under `version` after up to `permits` of `charge` went back.
    fn lowered(
        &self,
        version: &Version,
        state: u64,
        charge: Charge,
        permits: u64,
        now: &dyn Fn() -> u64,
    ) -> Option<Returned> {
        // The flags and the time must be read after the state: see `GiveBack`.
        if self.policies.memory.has_credit(version.number) {
            return None;
        }
        let booked = self.policies.memory.has_bookings(version.number);
        let back = GiveBack { charge, permits, booked, highest: 0, keeps_slot: true };
        version.rule.give_back(state, now(), &back)
    }
}
