//! Peeks: the decision that a request would get, which charges and stores nothing.

use super::answer::{describe, full};
use super::fast::Lookup;
use super::multi_word::Op;
use super::{Answer, Table};
use crate::algorithm::{Algorithm, Rule, Step};
use crate::decision::{Decision, Reason, Verdict};
use crate::table::memory::error::RequestError;
use crate::table::memory::slot::{find_in, find_in_two};
use crate::table::policies::compiled::Version;
use crate::table::policies::conversion::UnderVersion;
use crate::table::policies::local::Scratch;
use crate::table::policies::{PolicyId, ROUNDS};
use crate::table::slots::candidates::Candidates;
use crate::table::slots::protocol::{first_to_expire, is_new};
use crate::table::slots::states::{KeyChanged, OnFull};

/// Whether a peek shows the ban to which its refusal would lead.
#[derive(Clone, Copy)]
enum PeekedRefusal {
    Counted,
    Uncounted,
}

impl PeekedRefusal {
    fn described(self, rule: &Rule, step: Step, state: u64) -> u64 {
        match self {
            PeekedRefusal::Counted => rule.described(step, state),
            PeekedRefusal::Uncounted => state,
        }
    }
}

impl Table {
    /// A peek with an answer of the caller's type.
    #[doc(hidden)]
    #[inline(always)]
    pub fn peek_for<A: Answer>(
        &self,
        policy: PolicyId,
        key: &[u8],
        now: Option<u64>,
        cost: u64,
    ) -> A {
        let now = self.time(now);
        if self.hot.is_some() {
            return A::of(self.try_peek(policy, key, Some(now), cost));
        }
        if let (Some((version, _)), false) =
            (self.policies.current_compiled(policy), key.is_empty())
        {
            if let Some(state) =
                self.read_state(&self.lookup(version, self.hash_bytes(key) ^ version.salt))
            {
                let (verdict, state) = match version.step_plain(state, now, cost) {
                    Some(step) => (step.verdict, state),
                    None => {
                        let step = version.rule.step(state, now, cost);
                        (step.verdict, version.rule.described(step, state))
                    }
                };
                return A::of_step(&version.rule, verdict, state, now, cost);
            }
        }
        A::of(self.peek_slow(policy, key, now, cost, PeekedRefusal::Counted))
    }

    /// [`Table::peek_for`] with a full decision, out of line. In a table with hot keys it includes
    /// the calling thread's credit.
    ///
    /// # Errors
    /// Those of [`Table::try_check`].
    #[inline(never)]
    pub fn try_peek(
        &self,
        policy: PolicyId,
        key: &[u8],
        now: Option<u64>,
        cost: u64,
    ) -> Result<Decision, RequestError> {
        self.peek_as(policy, key, now, cost, PeekedRefusal::Counted)
    }

    /// [`Table::peek`] or, with a time, [`Table::peek_at`], of a request whose refusal would not
    /// count toward a ban. It tells when permits come to a client that waits for them.
    pub fn peek_uncounted(
        &self,
        policy: PolicyId,
        key: &[u8],
        now: Option<u64>,
        cost: u64,
    ) -> Decision {
        Decision::of(self.peek_as(policy, key, now, cost, PeekedRefusal::Uncounted))
    }

    #[inline(never)]
    fn peek_as(
        &self,
        policy: PolicyId,
        key: &[u8],
        now: Option<u64>,
        cost: u64,
        refusal: PeekedRefusal,
    ) -> Result<Decision, RequestError> {
        let now = self.time(now);
        let mut scratch = Scratch::new();
        let (version, hash) = match self.prepare(policy, key, &mut scratch) {
            Ok(prepared) => prepared,
            Err(decided) => return decided,
        };
        let credit = self.credit_of(version, hash, now);
        let pays = cost != 0 && credit >= cost;
        let decision = match self.state_of(version, hash) {
            Some(state) if pays => describe(&version.rule, Verdict::Allowed, state, now, cost),
            Some(state) => {
                let step = version.rule.step_out_of_line(state, now, cost);
                describe(
                    &version.rule,
                    step.verdict,
                    refusal.described(&version.rule, step, state),
                    now,
                    cost,
                )
            }
            None => self.peek_slow(policy, key, now, cost, refusal)?,
        };
        let verdict = if pays { Verdict::Allowed } else { decision.verdict };
        Ok(Decision { verdict, ..decision }.with_credit(credit))
    }

    /// [`Table::read_state`] for a hash, out of line.
    #[inline(never)]
    pub(super) fn state_of(&self, version: &Version, hash: u64) -> Option<u64> {
        self.read_state(&self.lookup(version, hash))
    }

    /// The state of a key at one instant: that of its slot, or a fresh one (0) if the key is new
    /// and would get a slot that no key has ever had. `None`: the caller must take the slow path.
    #[inline(always)]
    fn read_state(&self, lookup: &Lookup<'_>) -> Option<u64> {
        let Lookup { version, first, second, key } = *lookup;
        if version.multi_word.is_some() {
            return None;
        }
        let slot = match find_in_two(first, second, key) {
            Some(slot) => slot,
            None => {
                let candidates = self.slots.candidates_of_key(key, second);
                if is_new(&candidates, key) {
                    return Some(0);
                }
                find_in(candidates.spare, key)?
            }
        };
        let pair = slot.pair();
        (pair.key == key && self.policies.is_numbered(version)).then_some(pair.state)
    }

    #[inline(never)]
    fn peek_slow(
        &self,
        policy: PolicyId,
        key: &[u8],
        now: u64,
        cost: u64,
        refusal: PeekedRefusal,
    ) -> Result<Decision, RequestError> {
        let mut scratch = Scratch::new();
        let (version, hash) = match self.prepare(policy, key, &mut scratch) {
            Ok(prepared) => prepared,
            Err(decided) => return decided,
        };
        if let Some(decided) = self.decide_several_words(version, hash, now, Op::Peek(cost))? {
            return Ok(decided.decision);
        }
        let candidates = self.slots.candidates(hash);
        for round in 0..ROUNDS {
            let mut scratch = Scratch::new();
            // A second round means that another call has changed the policy or a slot.
            let version = if round == 0 && !version.is_in_room() {
                version
            } else {
                self.policies.current(policy, hash, &mut scratch)?
            };
            if version.is_in_room() {
                match self.decide_in_room(version.number, hash, now, Op::Peek(cost))? {
                    Some(decided) => return Ok(decided.decision),
                    None => continue,
                }
            }
            if let Ok(decision) = self.peek_under(version, &candidates, (now, cost), refusal) {
                return Ok(decision);
            }
        }
        Err(RequestError::Corrupt)
    }

    /// A peek under one version of the policy.
    fn peek_under(
        &self,
        version: &Version,
        candidates: &Candidates<'_>,
        (now, cost): (u64, u64),
        refusal: PeekedRefusal,
    ) -> Result<Decision, KeyChanged> {
        let key = version.key | candidates.tag;
        let about = |state| {
            let step = version.rule.step_out_of_line(state, now, cost);
            describe(
                &version.rule,
                step.verdict,
                refusal.described(&version.rule, step, state),
                now,
                cost,
            )
        };
        if let Some(slot) = candidates.find(key) {
            let pair = slot.pair();
            let is_its = pair.key == key && self.policies.is_numbered(version);
            return if is_its { Ok(about(pair.state)) } else { Err(KeyChanged) };
        }
        let states = UnderVersion { policies: &self.policies, version };
        let room = first_to_expire(&states, candidates, key, now)?;
        let Some(room) = room.filter(|_| self.policies.is_numbered(version)) else {
            return Err(KeyChanged);
        };
        let fresh = about(room.state(&states, key));
        let first = room.first;
        if cost == 0 || first.expires <= now {
            return Ok(fresh);
        }
        Ok(match self.on_full {
            OnFull::Deny if fresh.is_allowed() => full(first.expires, now),
            OnFull::Inherit => {
                let decision = about(self.policies.adopt(key, first.pair));
                match decision.verdict {
                    Verdict::Denied => decision.because(Reason::InheritedDebt),
                    _ => decision,
                }
            }
            OnFull::Allow if fresh.is_allowed() => fresh.because(Reason::TableFull),
            _ => fresh,
        })
    }
}
