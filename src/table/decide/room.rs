//! Requests under windows and logs in a table with room, where a key may come under them from any
//! policy ([`super::super::policies::folded`]).

use super::answer::full;
use super::Table;
use crate::algorithm::Step;
use crate::decision::{Reason, Verdict};
use crate::limiter::state_word::TRIES;
use crate::limiter::unfolding::UNFOLDED;
use crate::table::memory::error::RequestError;
use crate::table::policies::compiled::Version;
use crate::table::policies::conversion::UnderVersion;
use crate::table::policies::local::Scratch;
use crate::table::policies::multi_word::{Decided, MultiWord, Op};
use crate::table::policies::{PolicyId, ROUNDS};
use crate::table::slots::candidates::Candidates;
use crate::table::slots::protocol::{self, first_to_expire};
use crate::table::slots::states::{Event, OnFull};

impl Table {
    /// Decides on a request of a key whose policy is a window or log. `None`: its state is one
    /// word.
    #[cold]
    #[inline(never)]
    pub(super) fn decide_in_room(
        &self,
        policy: u32,
        hash: u64,
        now: u64,
        op: Op,
    ) -> Result<Option<Decided>, RequestError> {
        self.decide_in_room_or(policy, hash, now, op, self.on_full)
    }

    /// Charges a key until it has used `permits` at least, without evicting another key. Whether
    /// the key has a slot or needs none. `None`: its state is one word.
    pub(in crate::table) fn owe_in_room(
        &self,
        policy: u32,
        hash: u64,
        now: u64,
        permits: u64,
    ) -> Result<Option<bool>, RequestError> {
        let ask = |op| self.decide_in_room_or(policy, hash, now, op, OnFull::Deny);
        for _ in 0..ROUNDS {
            let mut scratch = Scratch::new();
            let version = self.policies.current(PolicyId::new(policy), hash, &mut scratch)?;
            let Some(limit) = version.multi_word.as_ref().map(MultiWord::limit) else { break };
            let Some(has) = ask(Op::Peek(0))? else { break };
            let used = limit.saturating_sub(has.decision.remaining);
            let lacking = permits.min(limit).saturating_sub(used);
            if lacking == 0 {
                return Ok(Some(true));
            }
            match ask(Op::TakeUpTo(lacking))? {
                Some(taken) if taken.decision.reason == Reason::TableFull => {
                    return Ok(Some(false))
                }
                // Other calls may have taken permits meanwhile, or given the slot away.
                Some(_) => {}
                None => break,
            }
        }
        Ok(None)
    }

    fn decide_in_room_or(
        &self,
        policy: u32,
        hash: u64,
        now: u64,
        op: Op,
        on_full: OnFull,
    ) -> Result<Option<Decided>, RequestError> {
        let candidates = self.slots.candidates(hash);
        // Each round makes up to TRIES tries in the ring or log.
        for _ in 0..ROUNDS / TRIES {
            let mut scratch = Scratch::new();
            let version = self.policies.current(PolicyId::new(policy), hash, &mut scratch)?;
            let Some(multi_word) = &version.multi_word else { return Ok(None) };
            let key = version.key | candidates.tag;
            let decided = match candidates.find(key) {
                Some(slot) => self.policies.apply(version, slot, key, now, op),
                None => {
                    self.decide_without_slot(version, multi_word, &candidates, (now, on_full), op)
                }
            };
            if decided.is_some() {
                return Ok(decided);
            }
        }
        Err(RequestError::Corrupt)
    }

    /// Inserts a new key into a slot and returns `None`. The caller then finds the slot and decides
    /// there. The key begins with all permits, or with the debt of the slot's former key. If the
    /// request takes no permit, or if the table has no slot for the key, this call returns the
    /// decision.
    fn decide_without_slot(
        &self,
        version: &Version,
        policy: &MultiWord,
        candidates: &Candidates<'_>,
        (now, on_full): (u64, OnFull),
        op: Op,
    ) -> Option<Decided> {
        let fresh = policy.fresh(now, op);
        let least = match op {
            Op::Check(cost) => cost,
            Op::TakeUpTo(most) => most.min(1),
            Op::Peek(_) => 0,
        };
        if least == 0 || !fresh.decision.is_allowed() {
            return self.peek_without_slot(version, policy, candidates, (now, on_full), op);
        }
        let states = UnderVersion { policies: &self.policies, version };
        let step = |state| match state {
            0 => Step::allow(policy.used_at(0, now)),
            // Another call has inserted the key.
            _ if state & UNFOLDED != 0 => Step::ask(),
            _ if policy.left_folded(state, now) >= least => Step::allow(state),
            _ => Step::deny(),
        };
        let key = version.key | candidates.tag;
        let outcome = protocol::request(&states, candidates, key, now, on_full, step).ok()?;
        if outcome.event != Event::Known || outcome.retries != 0 {
            self.policies.count_event(outcome.event, outcome.retries);
        }
        match outcome.event {
            Event::Refused => Some(Decided { decision: full(outcome.until, now), taken: 0 }),
            Event::Unremembered => Some(fresh.because(Reason::TableFull)),
            Event::RefusedByDebt => {
                Some(policy.decide_folded(outcome.state, now, op).because(Reason::InheritedDebt))
            }
            // The debt of a key that is between two slots refuses it.
            Event::Known if outcome.verdict == Verdict::Denied => {
                Some(policy.decide_folded(outcome.state, now, op))
            }
            _ => None,
        }
    }

    /// The decision that a key without a slot would get. It inserts no key.
    fn peek_without_slot(
        &self,
        version: &Version,
        policy: &MultiWord,
        candidates: &Candidates<'_>,
        (now, on_full): (u64, OnFull),
        op: Op,
    ) -> Option<Decided> {
        let key = version.key | candidates.tag;
        let states = UnderVersion { policies: &self.policies, version };
        let room = first_to_expire(&states, candidates, key, now).ok()??;
        let about = |state| match state {
            0 => Decided { taken: 0, ..policy.fresh(now, op) },
            state => policy.decide_folded(state, now, op),
        };
        let decided = about(room.state(&states, key));
        if room.first.expires <= now || !matches!(op, Op::Peek(1..)) {
            return Some(decided);
        }
        Some(match on_full {
            OnFull::Inherit => {
                let decided = about(self.policies.adopt(key, room.first.pair));
                match decided.decision.verdict {
                    Verdict::Denied => decided.because(Reason::InheritedDebt),
                    _ => decided,
                }
            }
            OnFull::Deny if decided.decision.is_allowed() => {
                Decided { decision: full(room.first.expires, now), taken: 0 }
            }
            OnFull::Allow if decided.decision.is_allowed() => decided.because(Reason::TableFull),
            _ => decided,
        })
    }
}
