//! A key as one limit of several: a preparation, which writes nothing, and the charge that it
//! prepares. [`crate::take_many`] decides over several limits and counts the decision.

use super::answer::describe;
use super::fast::SHORT;
use super::Table;
use crate::algorithm::{Charge, Step};
use crate::decision::{Decision, Reason, Verdict};
use crate::table::memory::error::RequestError;
use crate::table::memory::slot::{find_in_two, Slot, TAG_BITS};
use crate::table::policies::compiled::{salt, Version};
use crate::table::policies::local::Scratch;
use crate::table::policies::PolicyId;
use crate::table::slots::candidates::tag;

/// A key under a policy of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyLimit<'a> {
    pub(crate) table: &'a Table,
    pub(crate) policy: PolicyId,
    pub(crate) key: &'a [u8],
}

/// A prepared charge of a key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prepared<'a> {
    pub(crate) verdict: Verdict,
    /// The nanoseconds of one permit's refill, or `u64::MAX` if the key takes no permits back.
    pub(crate) refill: u64,
    /// Set in the common case: a known key of a plain token bucket that admits the request.
    known: Option<(&'a Version, Found<'a>)>,
}

/// The policy of a request, for the calls of [`crate::take_many::take_many`]'s common case: two
/// known keys of one table.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Under<'a>(&'a Version);

impl Table {
    /// The current version of a policy. `None`: the general call must decide.
    #[doc(hidden)]
    #[inline(always)]
    pub fn under(&self, policy: PolicyId) -> Option<Under<'_>> {
        let (version, _) = self.policies.current_compiled(policy)?;
        Some(Under(version))
    }

    /// Looks for a short key, and returns it if the policy admits its request. `None`: the general
    /// call must decide. The caller calls it in a loop over its keys, because two copies in one
    /// function need more registers than there are.
    #[doc(hidden)]
    #[inline(always)]
    pub fn find<'a>(
        &'a self,
        under: Under<'a>,
        key: &[u8],
        now: u64,
        cost: u64,
    ) -> Option<Found<'a>> {
        if key.len().wrapping_sub(1) >= SHORT {
            return None;
        }
        let lookup = self.lookup(under.0, self.hash_bytes(key) ^ under.0.salt);
        let slot = find_in_two(lookup.first, lookup.second, lookup.key)?;
        let state = slot.state();
        if !self.policies.is_numbered(under.0) {
            return None;
        }
        let next = under.0.plain.step(state, now, cost)??;
        Some(Found { slot, key: lookup.key, state, next })
    }

    /// Charges two keys under one policy, if no other call has changed their slots. False: nothing
    /// has been charged, and the general call must decide.
    #[doc(hidden)]
    #[inline(always)]
    pub fn take_both(&self, one: &Asked<'_>, other: &Asked<'_>, when: Time) -> bool {
        let Some(line) = self.policies.memory.line(one.under.0.number) else { return false };
        // The order of charges is that of `take_many`. Under one version the tags decide.
        let charged = match one.found.key <= other.found.key {
            true => one.charge_beside(other) && (other.found.charge() || self.undo(one, when)),
            false => other.charge_beside(one) && (one.found.charge() || self.undo(other, when)),
        };
        if !charged {
            return false;
        }
        self.policies.memory.note_time_on(line, when.now);
        line.count(Verdict::Allowed);
        line.count(Verdict::Allowed);
        true
    }

    /// [`Table::take_both`] of keys under two policies.
    #[doc(hidden)]
    #[inline(never)]
    pub fn take_under_two(&self, one: &Asked<'_>, other: &Asked<'_>, when: Time) -> bool {
        let rank =
            |asked: &Asked<'_>| (self.refill(asked.under.0), asked.found.key << VERSION_BITS);
        let (first, last) = if rank(one) <= rank(other) { (one, other) } else { (other, one) };
        if !first.charge_beside(last) || !(last.found.charge() || self.undo(first, when)) {
            return false;
        }
        self.policies.memory.note_time(when.now);
        self.policies.memory.count_decision(one.under.0.number, Verdict::Allowed);
        self.policies.memory.count_decision(other.under.0.number, Verdict::Allowed);
        true
    }

    /// Gives back the charge of one key, because the other key's failed. The result is always
    /// false, and the caller returns it.
    #[inline(always)]
    fn undo(&self, asked: &Asked<'_>, when: Time) -> bool {
        self.undo_found(asked.under, asked.found, when, *asked.cost)
    }

    #[inline(never)]
    fn undo_found(&self, under: Under<'_>, found: &Found<'_>, when: Time, cost: u64) -> bool {
        if let Some(hash) = self.slots.hash_in_slot(found.key, found.slot) {
            let now = || if when.given { when.now } else { self.now() };
            // An error means that the table is damaged, and the general call returns it again.
            let _ = self.give_back_of(under.0, hash, Charge { at: when.now, cost }, cost, &now);
        }
        false
    }

    /// The nanoseconds of one permit's refill, or `u64::MAX` if keys under the version take no
    /// permits back.
    #[inline]
    fn refill(&self, version: &Version) -> u64 {
        match self.policies.memory.has_credit(version.number) {
            true => u64::MAX,
            false => version.refill,
        }
    }
}

/// The bits of a key word that are its version.
const VERSION_BITS: u32 = u64::BITS - TAG_BITS;

/// A known key and its request. The cost is read when it is needed.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    pub under: Under<'a>,
    pub found: &'a Found<'a>,
    pub cost: &'a u64,
}

/// The time of a request.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Time {
    pub now: u64,
    /// Whether the caller gave the time. Otherwise it is the table's clock, which a give-back reads
    /// again.
    pub given: bool,
}

/// A known key under a plain token bucket that admits a request: a slot that held `key` and
/// `state`, and the state after the charge.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    slot: &'a Slot,
    key: u64,
    state: u64,
    next: u64,
}

impl Asked<'_> {
    /// Charges the key. False also if both requests are for one key: then the general call adds
    /// their costs.
    #[inline(always)]
    fn charge_beside(&self, other: &Asked<'_>) -> bool {
        !core::ptr::eq(self.found.slot, other.found.slot) && self.found.charge()
    }
}

impl Found<'_> {
    /// Charges the key if its slot has not changed since the preparation.
    #[inline(always)]
    fn charge(&self) -> bool {
        self.slot.commit(self.key, self.state, Some(self.next))
    }
}

impl<'a> KeyLimit<'a> {
    /// The verdict that a request for `cost` would get at `now`. It changes nothing.
    #[inline(never)]
    pub(crate) fn prepare(&self, now: u64, cost: u64) -> Result<Prepared<'a>, RequestError> {
        if let (Some((version, _)), false) =
            (self.table.policies.current_compiled(self.policy), self.key.is_empty())
        {
            let lookup = self.table.lookup(version, self.table.hash_bytes(self.key) ^ version.salt);
            if let Some(slot) = find_in_two(lookup.first, lookup.second, lookup.key) {
                let state = slot.state();
                let is_numbered = self.table.policies.is_numbered(version);
                if let (true, Some(Step { verdict: Verdict::Allowed, next: Some(next) })) =
                    (is_numbered, version.step_plain(state, now, cost))
                {
                    let found = Found { slot, key: lookup.key, state, next };
                    let (verdict, refill) = (Verdict::Allowed, self.table.refill(version));
                    return Ok(Prepared { verdict, refill, known: Some((version, found)) });
                }
            }
        }
        self.prepare_slow(now, cost)
    }

    #[inline(never)]
    fn prepare_slow(&self, now: u64, cost: u64) -> Result<Prepared<'a>, RequestError> {
        let refill = self.refill();
        Ok(Prepared { verdict: self.peek(now, cost)?.verdict, refill, known: None })
    }

    /// [`Table::peek_at`].
    pub(crate) fn peek(&self, now: u64, cost: u64) -> Result<Decision, RequestError> {
        self.table.try_peek(self.policy, self.key, Some(now), cost)
    }

    /// Charges by one swap the request of `prepare`, if the slot has not changed since. `None`:
    /// nothing has been charged, and the caller must call [`KeyLimit::charge`].
    #[inline]
    pub(crate) fn charge_prepared(&self, prepared: &Prepared<'a>, now: u64) -> Option<()> {
        prepared.known?.1.charge().then(|| self.table.policies.memory.note_time(now))
    }

    /// The full decision on a request that [`KeyLimit::charge_prepared`] has charged.
    pub(crate) fn describe_prepared(
        &self,
        prepared: &Prepared<'a>,
        now: u64,
        cost: u64,
    ) -> Option<Decision> {
        let (version, found) = prepared.known?;
        Some(describe(&version.rule, Verdict::Allowed, found.next, now, cost))
    }

    /// [`Table::check_at`] without counting the decision.
    #[inline(never)]
    pub(crate) fn charge(&self, now: u64, cost: u64) -> Result<Decision, RequestError> {
        let mut scratch = Scratch::new();
        match self.table.prepare(self.policy, self.key, &mut scratch) {
            Ok((version, hash)) => {
                self.table.policies.memory.note_time(now);
                // The calling thread's credit pays first; the preparation has included it.
                match self.table.decide_by_credit(version, hash, now, cost) {
                    Some(decision) => Ok(decision),
                    None => self.table.slow_uncounted(version, hash, now, cost),
                }
            }
            Err(decided) => decided,
        }
    }

    /// The permits that a request of a class leaves.
    pub(crate) fn reserve_of(&self, class: &[u8]) -> Result<u64, RequestError> {
        self.table.reserve_of(self.policy, self.key, class)
    }

    /// [`KeyLimit::charge`] of a request that leaves permits.
    pub(crate) fn charge_leaving(
        &self,
        now: u64,
        cost: u64,
        reserve: u64,
    ) -> Result<Decision, RequestError> {
        self.table.charge_leaving(self.policy, self.key, now, cost, reserve)
    }

    /// [`KeyLimit::peek`] of a request that leaves permits.
    pub(crate) fn peek_leaving(
        &self,
        now: u64,
        cost: u64,
        reserve: u64,
    ) -> Result<Decision, RequestError> {
        self.table.peek_leaving(self.policy, self.key, now, cost, reserve)
    }

    /// The nanoseconds of one permit's refill, or `u64::MAX` if the key takes no permits back.
    pub(crate) fn refill(&self) -> u64 {
        let mut scratch = Scratch::new();
        let hash = self.table.hash_out_of_line(self.key) ^ salt(self.policy.number());
        let version = self.table.policies.current(self.policy, hash, &mut scratch);
        version.map_or(u64::MAX, |version| self.table.refill(version))
    }

    /// Gives `charge` back.
    pub(crate) fn undo(&self, charge: Charge, now: &dyn Fn() -> u64) {
        let mut scratch = Scratch::new();
        if let Ok((version, hash)) = self.table.prepare(self.policy, self.key, &mut scratch) {
            // An error means that the table is damaged, and the next call to it returns it again.
            let _ = self.table.give_back_of(version, hash, charge, charge.cost, now);
        }
    }

    /// The part of the key's hash by which the keys of several limits are ordered.
    pub(crate) fn rank(&self) -> u64 {
        tag(self.table.hash_out_of_line(self.key) ^ salt(self.policy.number()))
    }

    /// Counts the decision of a call over several limits.
    #[inline]
    pub(crate) fn count(&self, verdict: Verdict, reason: Reason) {
        self.table.policies.memory.count_with_reason(self.policy.number(), verdict, reason);
    }

    /// Records the key of a request that it has refused at `now`, if its table records refusals.
    pub(crate) fn note_refusal(&self, verdict: Verdict, now: u64) {
        self.table.note_refusal(verdict, self.policy, self.key, Some(now));
    }

    /// Whether this is the same key under the same policy of the same table, maybe through another
    /// view of its file.
    #[inline]
    pub(crate) fn is(&self, other: &KeyLimit<'_>) -> bool {
        let same_table = || {
            core::ptr::eq(self.table, other.table)
                || self.table.policies.memory.region().is(other.table.policies.memory.region())
        };
        self.policy == other.policy && self.key == other.key && same_table()
    }
}
