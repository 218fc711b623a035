//! Nodes of a hierarchy as keys of a table. A permit of their policy is a nanosecond, so a charge
//! of any length is a number of permits. [`crate::hierarchy`] decides which nodes a request
//! charges, and how much.

use super::Table;
use crate::algorithm::{needed, step_leaving, Algorithm, Charge};
use crate::decision::{Decision, Reason, Verdict};
use crate::policy::PolicyError;
use crate::table::memory::error::RequestError;
use crate::table::memory::slot::{find_in_two, Slot};
use crate::table::policies::compiled::Version;
use crate::table::policies::local::Scratch;
use crate::table::policies::PolicyId;

/// A node's key as a call has read it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SeenNode<'a> {
    hash: u64,
    state: u64,
    /// The node's slot, if it is in one of the key's first two buckets.
    slot: Option<(&'a Slot, u64)>,
}

/// The nodes of a table, under the current version of their policy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableNodes<'a> {
    table: &'a Table,
    version: &'a Version,
}

impl Table {
    /// Calls `decide` with the nodes under a policy. `None`: the policy is not `nodes`.
    #[inline]
    pub(crate) fn with_nodes<T>(
        &self,
        policy: PolicyId,
        burst: u64,
        decide: impl FnOnce(TableNodes<'_>) -> T,
    ) -> Result<Option<T>, RequestError> {
        let mut scratch = Scratch::new();
        let version = match self.policies.current_compiled(policy) {
            Some((version, _)) => version,
            None => self.policies.current(policy, 0, &mut scratch)?,
        };
        let is_nodes = version.plain.is_of_nanoseconds(burst);
        Ok(is_nodes.then(|| decide(TableNodes { table: self, version })))
    }

    /// The hash of a leaf's key, without its policy's salt.
    #[inline]
    pub(crate) fn hash_of_leaf(&self, key: &[u8]) -> u64 {
        self.hash_bytes(key)
    }

    /// Counts the decision on a request for a leaf, and records the leaf's key if the request was
    /// refused.
    #[inline]
    pub(crate) fn count_of_leaf(
        &self,
        policy: PolicyId,
        key: &[u8],
        now: u64,
        verdict: Verdict,
        reason: Reason,
    ) {
        self.policies.memory.note_time(now);
        self.policies.memory.count_with_reason(policy.number(), verdict, reason);
        if !key.is_empty() {
            self.note_refusal(verdict, policy, key, Some(now));
        }
    }
}

impl<'a> TableNodes<'a> {
    #[inline]
    pub(crate) fn see(&self, hash: u64) -> SeenNode<'a> {
        let hash = hash ^ self.version.salt;
        let lookup = self.table.lookup(self.version, hash);
        if let Some(slot) = find_in_two(lookup.first, lookup.second, lookup.key) {
            // Another key may have taken the slot since the probe.
            let pair = slot.pair();
            if pair.key == lookup.key && self.table.policies.is_numbered(self.version) {
                return SeenNode { hash, state: pair.state, slot: Some((slot, lookup.key)) };
            }
        }
        SeenNode { hash, state: self.state_of_other(hash), slot: None }
    }

    /// The state of a node that is not in its first two buckets: it is new, or in its spare bucket.
    #[inline(never)]
    fn state_of_other(&self, hash: u64) -> u64 {
        self.table.state_of(self.version, hash).unwrap_or(0)
    }

    #[inline]
    pub(crate) fn debt(&self, seen: &SeenNode<'_>, now: u64) -> u64 {
        self.version.rule.fresh_at(seen.state, now).saturating_sub(now)
    }

    /// Charges a node by one swap if its slot has not changed, otherwise by the protocol.
    #[inline]
    pub(crate) fn charge(
        &self,
        seen: &SeenNode<'_>,
        now: u64,
        charge: u64,
        most: u64,
        burst: u64,
    ) -> Result<Option<Decision>, RequestError> {
        if let Some((slot, key)) = seen.slot {
            // The caller has compared the debt of this state with `most`.
            if let Some(Some(next)) = self.version.plain.step(seen.state, now, charge) {
                if slot.commit(key, seen.state, Some(next)) {
                    return Ok(None);
                }
            }
        }
        self.charge_slow(seen.hash, now, charge, burst.saturating_sub(most).saturating_sub(charge))
    }

    #[inline(never)]
    fn charge_slow(
        &self,
        hash: u64,
        now: u64,
        charge: u64,
        reserve: u64,
    ) -> Result<Option<Decision>, RequestError> {
        let decision = self.table.decide_by(
            self.version,
            hash,
            now,
            needed(charge, reserve),
            &mut |rule, state| step_leaving(rule, state, now, charge, reserve),
        )?;
        // Another call has changed the policy to a window or log.
        let decision = decision.ok_or(RequestError::Policy(PolicyError::OptionMismatch))?;
        Ok((!decision.is_allowed()).then_some(decision))
    }

    pub(crate) fn undo(&self, seen: &SeenNode<'_>, charge: Charge, now: &dyn Fn() -> u64) {
        // An error means that the table is damaged, and the next call to it returns it again.
        let _ = self.table.give_back_of(self.version, seen.hash, charge, charge.cost, now);
    }
}
