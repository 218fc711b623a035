//! A key as one limit of several: a preparation, which writes nothing, and the charge that it prepares. [`crate::take_many`] decides over
//! several limits and counts the decision.

use super::answer::describe;
use super::Table;
use crate::algorithm::{Charge, Step};
use crate::decision::{Decision, Verdict};
use crate::table::memory::error::TableError;
use crate::table::memory::slot::find_in_two;
use crate::table::memory::slot::Slot;
use crate::table::policies::compiled::{salt, Version};
use crate::table::policies::local::Scratch;
use crate::table::policies::PolicyId;

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
    known: Option<Known<'a>>,
}

#[derive(Clone, Copy, Debug)]
struct Known<'a> {
    version: &'a Version,
    slot: &'a Slot,
    key: u64,
    state: u64,
    next: u64,
    cost: u64,
    /// As in [`Prepared`].
    refill: u64,
    /// The hash of the key's bytes, without the policy's salt.
    hash: u64,
}

/// A request for a key of a table: its policy, the key and the cost.
pub type KeyCost<'a> = (PolicyId, &'a [u8], u64);

impl Table {
    /// [`crate::take_many::take_many`] for its common case, in few instructions: two known keys of one table, both under plain token buckets that
    /// admit their costs, and no other call changes their slots. False: nothing has been charged, and the general call must decide.
    #[doc(hidden)]
    #[inline(always)]
    pub fn take_both(&self, one: KeyCost<'_>, other: KeyCost<'_>, now: Option<u64>) -> bool {
        let time = self.time(now);
        let Some(one) = (KeyLimit { table: self, policy: one.0, key: one.1 }).prepare_known(time, one.2) else {
            return false;
        };
        let other_key = KeyLimit { table: self, policy: other.0, key: other.1 };
        let Some(other) = other_key.prepare_known(time, other.2) else { return false };
        // Both requests are for one key. The general call adds their costs.
        if core::ptr::eq(one.slot, other.slot) {
            return false;
        }
        // `take_many` charges in the same order.
        let one_first = (one.refill, one.hash) <= (other.refill, other.hash);
        let (first, second) = if one_first { (&one, &other) } else { (&other, &one) };
        if !first.charge() {
            return false;
        }
        if !second.charge() {
            return self.undo_known(first, time, now);
        }
        self.policies.memory.note_time(time);
        self.policies.memory.count_decision(one.version.number, Verdict::Allowed);
        self.policies.memory.count_decision(other.version.number, Verdict::Allowed);
        true
    }

    /// Gives back a charge that was made at `at`. Always false, which the caller returns.
    #[inline(never)]
    fn undo_known(&self, known: &Known<'_>, at: u64, now: Option<u64>) -> bool {
        let (charge, hash) = (Charge { at, cost: known.cost }, known.hash ^ known.version.salt);
        // An error means that the table is damaged, and the general call returns it again.
        let _ = self.give_back_of(known.version, hash, charge, known.cost, &|| self.time(now));
        false
    }
}

impl Known<'_> {
    /// Charges the key if its slot has not changed since the preparation.
    #[inline(always)]
    fn charge(&self) -> bool {
        self.slot.commit(self.key, self.state, Some(self.next))
    }
}

impl<'a> KeyLimit<'a> {
    /// A preparation in the common case; `None` in all others.
    #[inline(always)]
    fn prepare_known(&self, now: u64, cost: u64) -> Option<Known<'a>> {
        let KeyLimit { table, policy, key } = *self;
        let (version, _) = table.policies.current_compiled(policy)?;
        if key.is_empty() {
            return None;
        }
        let hash = table.hash_bytes(key);
        let lookup = table.lookup(version, hash ^ version.salt);
        let slot = find_in_two(lookup.first, lookup.second, lookup.key)?;
        let state = slot.state();
        match version.step_plain(state, now, cost)? {
            Step { verdict: Verdict::Allowed, next: Some(next) } => {
                let refill = self.refill(version);
                Some(Known { version, slot, key: lookup.key, state, next, cost, refill, hash })
            }
            _ => None,
        }
    }

    /// The verdict that a request for `cost` would get at `now`. It changes nothing.
    #[inline]
    pub(crate) fn prepare(&self, now: u64, cost: u64) -> Result<Prepared<'a>, TableError> {
        if let Some(known) = self.prepare_known(now, cost) {
            return Ok(Prepared { verdict: Verdict::Allowed, refill: known.refill, known: Some(known) });
        }
        self.prepare_slow(now, cost)
    }

    #[inline(never)]
    fn prepare_slow(&self, now: u64, cost: u64) -> Result<Prepared<'a>, TableError> {
        let mut scratch = Scratch::new();
        let hash = self.table.hash_bytes(self.key) ^ salt(self.policy.number());
        let version = self.table.policies.current(self.policy, hash, &mut scratch);
        let refill = version.map_or(u64::MAX, |version| self.refill(version));
        Ok(Prepared { verdict: self.peek(now, cost)?.verdict, refill, known: None })
    }

    /// [`Table::peek_at`].
    pub(crate) fn peek(&self, now: u64, cost: u64) -> Result<Decision, TableError> {
        self.table.peek_for(self.policy, self.key, Some(now), cost)
    }

    /// Charges by one swap the request of `prepare`, if the slot has not changed since. `None`: nothing has been charged, and the caller must call
    /// [`KeyLimit::charge`].
    #[inline]
    pub(crate) fn charge_prepared(&self, prepared: &Prepared<'a>, now: u64) -> Option<()> {
        prepared.known?.charge().then(|| self.table.policies.memory.note_time(now))
    }

    /// The full decision on a request that [`KeyLimit::charge_prepared`] has charged.
    pub(crate) fn describe_prepared(&self, prepared: &Prepared<'a>, now: u64, cost: u64) -> Option<Decision> {
        let known = prepared.known?;
        Some(describe(&known.version.rule, Verdict::Allowed, known.next, now, cost))
    }

    /// [`Table::check_at`] without counting the decision.
    #[inline(never)]
    pub(crate) fn charge(&self, now: u64, cost: u64) -> Result<Decision, TableError> {
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

    /// Gives `charge` back.
    pub(crate) fn undo(&self, charge: Charge, now: &dyn Fn() -> u64) {
        let mut scratch = Scratch::new();
        if let Ok((version, hash)) = self.table.prepare(self.policy, self.key, &mut scratch) {
            // An error means that the table is damaged, and the next call to it returns it again.
            let _ = self.table.give_back_of(version, hash, charge, charge.cost, now);
        }
    }

    /// The hash of the key's bytes, by which the keys of several limits are ordered.
    pub(crate) fn hash(&self) -> u64 {
        self.table.hash_bytes(self.key)
    }

    /// Counts the decision of a call over several limits.
    #[inline]
    pub(crate) fn count(&self, verdict: Verdict) {
        self.table.policies.memory.count_decision_checked(self.policy.number(), verdict);
    }

    /// Whether this is the same key under the same policy of the same table.
    #[inline]
    pub(crate) fn is(&self, other: &KeyLimit<'_>) -> bool {
        core::ptr::eq(self.table, other.table) && self.policy == other.policy && self.key == other.key
    }

    #[inline(always)]
    fn refill(&self, version: &Version) -> u64 {
        match self.table.policies.memory.has_credit(version.number) {
            true => u64::MAX,
            false => version.refill,
        }
    }
}
