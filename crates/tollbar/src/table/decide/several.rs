//! A key as one limit of several: a look that writes nothing, and the charge that the look prepares. What several limits decide together is
//! in [`crate::take_many`], which counts the decision too.

use super::answer::describe;
use super::Table;
use crate::algorithm::{Charge, Step};
use crate::decision::{Decision, Verdict};
use crate::table::memory::error::TableError;
use crate::table::memory::slot::Slot;
use crate::table::policies::compiled::Version;
use crate::table::policies::local::Scratch;
use crate::table::policies::PolicyId;
use crate::table::slots::probe::find_in_two;
use crate::table::slots::protocol;

/// A key of a table, and what a request asks of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyLimit<'a> {
    pub(crate) table: &'a Table,
    pub(crate) policy: PolicyId,
    pub(crate) key: &'a [u8],
}

/// What a look at a key saw.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look<'a> {
    pub(crate) verdict: Verdict,
    /// The nanoseconds in which one permit that was given back would have come back by itself; `u64::MAX` if none can be given back.
    pub(crate) refill: u64,
    /// The usual case: a known key of a plain token bucket that admits the request.
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
    /// As in [`Look`].
    refill: u64,
    /// Of the key's bytes.
    hash: u64,
}

/// A request for a key of a table: its policy, the key and the cost.
pub type KeyCost<'a> = (PolicyId, &'a [u8], u64);

impl Table {
    /// [`crate::take_many::take_many`] for its usual case, in as few instructions as there can be: two keys of one table that are known,
    /// both under plain token buckets that admit their costs, and no other call that interferes. False: nothing has been charged, and the
    /// general call must decide.
    #[doc(hidden)]
    #[inline(always)]
    pub fn take_both(&self, one: KeyCost<'_>, other: KeyCost<'_>, now: Option<u64>) -> bool {
        let time = self.time(now);
        let Some(one) = (KeyLimit { table: self, policy: one.0, key: one.1 }).look_known(time, one.2) else {
            return false;
        };
        let other_key = KeyLimit { table: self, policy: other.0, key: other.1 };
        let Some(other) = other_key.look_known(time, other.2) else { return false };
        // One slot is one key, whose costs the general call merges.
        if core::ptr::eq(one.slot, other.slot) {
            return false;
        }
        // The order of `take_many`.
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

    /// Gives back a charge that was made at `at`; false.
    #[inline(never)]
    fn undo_known(&self, known: &Known<'_>, at: u64, now: Option<u64>) -> bool {
        let (charge, hash) = (Charge { at, cost: known.cost }, known.hash ^ known.version.salt);
        // An error says that the table is damaged, and the general call says so again.
        let _ = self.give_back_of(known.version, hash, charge, known.cost, &|| self.time(now));
        false
    }
}

impl Known<'_> {
    /// Charges the key, if nothing has changed since the look.
    #[inline(always)]
    fn charge(&self) -> bool {
        protocol::step_once(self.slot, self.key, self.state, Some(self.next))
    }
}

impl<'a> KeyLimit<'a> {
    /// The usual case of a look.
    #[inline(always)]
    fn look_known(&self, now: u64, cost: u64) -> Option<Known<'a>> {
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

    /// What a request for `cost` would be told at `now`. It changes nothing.
    #[inline]
    pub(crate) fn look(&self, now: u64, cost: u64) -> Result<Look<'a>, TableError> {
        if let Some(known) = self.look_known(now, cost) {
            return Ok(Look { verdict: Verdict::Allowed, refill: known.refill, known: Some(known) });
        }
        self.look_slow(now, cost)
    }

    #[inline(never)]
    fn look_slow(&self, now: u64, cost: u64) -> Result<Look<'a>, TableError> {
        let mut scratch = Scratch::new();
        let refill =
            self.table.policies.current(self.policy, &mut scratch).map_or(u64::MAX, |version| self.refill(version));
        Ok(Look { verdict: self.peek(now, cost)?.verdict, refill, known: None })
    }

    /// [`Table::peek_at`].
    pub(crate) fn peek(&self, now: u64, cost: u64) -> Result<Decision, TableError> {
        self.table.peek_for(self.policy, self.key, Some(now), cost)
    }

    /// Charges what was looked at, if nothing has changed since: one swap. `None`: it has not been charged, and [`KeyLimit::charge`] must be
    /// called.
    #[inline]
    pub(crate) fn charge_looked(&self, look: &Look<'a>, now: u64) -> Option<()> {
        look.known?.charge().then(|| self.table.policies.memory.note_time(now))
    }

    /// A full decision on a request that [`KeyLimit::charge_looked`] has charged.
    pub(crate) fn describe_looked(&self, look: &Look<'a>, now: u64, cost: u64) -> Option<Decision> {
        let known = look.known?;
        Some(describe(&known.version.rule, Verdict::Allowed, known.next, now, cost))
    }

    /// [`Table::check_at`], uncounted.
    #[inline(never)]
    pub(crate) fn charge(&self, now: u64, cost: u64) -> Result<Decision, TableError> {
        let mut scratch = Scratch::new();
        match self.table.prepare(self.policy, self.key, &mut scratch) {
            Ok((version, hash)) => {
                self.table.policies.memory.note_time(now);
                // As the look counts it: what the calling thread has in advance pays first.
                match self.table.decide_by_credit(version, hash, now, cost) {
                    Some(decision) => Ok(decision),
                    None => self.table.ask(version, hash, now, cost),
                }
            }
            Err(decided) => decided,
        }
    }

    /// Gives a charge back that was made at `at`.
    pub(crate) fn undo(&self, charge: Charge, now: &dyn Fn() -> u64) {
        let mut scratch = Scratch::new();
        if let Ok((version, hash)) = self.table.prepare(self.policy, self.key, &mut scratch) {
            // An error says that the table is damaged, and the next call to it says so again.
            let _ = self.table.give_back_of(version, hash, charge, charge.cost, now);
        }
    }

    /// What orders the keys of several limits.
    pub(crate) fn hash(&self) -> u64 {
        self.table.hash_bytes(self.key)
    }

    /// Counts the decision of a call that concerned several limits.
    #[inline]
    pub(crate) fn count(&self, verdict: Verdict) {
        self.table.policies.memory.count_unasked(self.policy.number(), verdict);
    }

    /// Whether this is the same key under the same policy of the same table.
    #[inline]
    pub(crate) fn is(&self, other: &KeyLimit<'_>) -> bool {
        core::ptr::eq(self.table, other.table) && self.policy == other.policy && self.key == other.key
    }

    #[inline]
    fn refill(&self, version: &Version) -> u64 {
        match self.table.policies.memory.has_credit(version.number) {
            true => u64::MAX,
            false => version.refill,
        }
    }
}
