//! How one request is decided.
//!
//! [`Table::slow`] is the specification: it decides any request by the protocol of
//! [`super::slots::protocol`], under any algorithm, for a key in any state. [`fast`] has the cases
//! that most requests are, each as the specification decides it. The other files have the other
//! calls: batches, several limits, bookings, receipts.

pub(super) mod answer;
pub(super) mod batch;
pub(super) mod booking;
mod calls;
mod charge;
pub(super) mod fast;
mod give_back;
pub(super) mod hot_keys;
mod leaving;
mod multi_word;
pub(super) mod nodes;
mod peek;
mod prefetch;
pub(super) mod receipts;
mod refusals;
mod room;
pub(super) mod several;
#[cfg(test)]
mod tests;
#[cfg(feature = "std")]
mod until;

use super::memory::error::RequestError;
use super::policies::compiled::{salt, Version};
use super::policies::conversion::UnderVersion;
use super::policies::local::Scratch;
use super::policies::multi_word::{Decided, Op};
use super::policies::{Policies, PolicyId, ROUNDS};
use super::slots::protocol;
use super::slots::states::{Event, OnFull, RequestOutcome};
use super::slots::Slots;
use crate::algorithm::{Rule, Step};
use crate::clock::Source;
use crate::decision::{Decision, Reason};
use crate::limiter::waiting::WaiterQueues;
use alloc::boxed::Box;
use answer::{closed, describe, full, uncharged, Answer};
use hot_keys::HotKeys;
use rapidhash::v3::RapidSecrets;

/// Keyed limits in shared memory. Any number of threads and processes may make calls at once. No
/// call waits for another or allocates, unless its documentation says so.
pub struct Table {
    pub(super) policies: Policies,
    pub(super) slots: Slots,
    pub(super) on_full: OnFull,
    pub(super) missing: Missing,
    pub(super) clock: Source,
    /// Nanoseconds that are added to the clock, modulo 2^64.
    pub(super) offset: u64,
    pub(super) secrets: RapidSecrets,
    /// The callers of this object that are asleep in [`Table::wait_until`]. On the heap, because a
    /// table is moved while it is made.
    pub(super) waiting: Box<WaiterQueues<LISTS>>,
    /// The credit of this process's threads, if the table has hot keys.
    pub(super) hot: Option<HotKeys>,
}

/// The answer to a request without a key (with an empty one).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Missing {
    /// The table refuses the request.
    #[default]
    Deny = 0,
    /// The table admits the request and charges no key.
    Allow = 1,
    /// The call returns [`RequestError::MissingKey`]. A call that returns no errors refuses the
    /// request.
    Report = 2,
}

/// The lists of waiting callers of a table object. Each key's callers are in one of them.
const LISTS: usize = 64;

impl Table {
    /// Any request, by the protocol. It counts the decision.
    #[inline(never)]
    fn slow(
        &self,
        version: &Version,
        hash: u64,
        now: u64,
        cost: u64,
    ) -> Result<Decision, RequestError> {
        let decision = self.slow_uncounted(version, hash, now, cost)?;
        self.policies.memory.count_with_reason(version.number, decision.verdict, decision.reason);
        Ok(decision)
    }

    /// Any request, by the protocol. The caller counts the decision.
    #[inline]
    fn slow_uncounted(
        &self,
        version: &Version,
        hash: u64,
        now: u64,
        cost: u64,
    ) -> Result<Decision, RequestError> {
        self.decide_any(
            version,
            hash,
            now,
            Op::Check(cost),
            &mut || {
                self.decide_by(version, hash, now, cost, &mut |rule, state| {
                    rule.step_out_of_line(state, now, cost)
                })
            },
            &|decided| decided.decision,
        )
    }

    /// Decides by `one_word` if the state of the key is one word, and otherwise by `op`. Either
    /// returns `None` if the key's policy has become one of the other kind meanwhile.
    #[inline]
    fn decide_any<T>(
        &self,
        version: &Version,
        hash: u64,
        now: u64,
        op: Op,
        one_word: &mut dyn FnMut() -> Result<Option<T>, RequestError>,
        several_words: &dyn Fn(Decided) -> T,
    ) -> Result<T, RequestError> {
        if let Some(decided) = self.decide_several_words(version, hash, now, op)? {
            return Ok(several_words(decided));
        }
        for _ in 0..ROUNDS {
            if let Some(decided) = one_word()? {
                return Ok(decided);
            }
            if let Some(decided) = self.decide_in_room(version.number, hash, now, op)? {
                return Ok(several_words(decided));
            }
        }
        Err(RequestError::Corrupt)
    }

    /// A request under a policy whose state is more than one word; `None` under any other.
    #[inline]
    fn decide_several_words(
        &self,
        version: &Version,
        hash: u64,
        now: u64,
        op: Op,
    ) -> Result<Option<Decided>, RequestError> {
        match (self.policies.memory.fixed.is_multi_word(), &version.multi_word) {
            (true, _) => self.decide_multi_word(version, hash, now, op).map(Some),
            (false, Some(_)) => self.decide_in_room(version.number, hash, now, op),
            (false, None) => Ok(None),
        }
    }

    /// A request by the protocol that `step` decides. A refusal's wait is that of `cost`. `None`:
    /// the key's policy is a window or log.
    #[inline]
    fn decide_by(
        &self,
        version: &Version,
        hash: u64,
        now: u64,
        cost: u64,
        step: &mut dyn FnMut(&Rule, u64) -> Step,
    ) -> Result<Option<Decision>, RequestError> {
        let mut decision = closed(Reason::Fault);
        let done = self.request(version, hash, now, step, &mut |rule, outcome| {
            let described = describe(rule, outcome.verdict, outcome.state, now, cost);
            decision = match outcome.event {
                Event::Refused => full(outcome.until, now),
                Event::Unremembered => described.because(Reason::TableFull),
                Event::RefusedByDebt => described.because(Reason::InheritedDebt),
                _ => described,
            };
        })?;
        Ok(done.then_some(decision))
    }

    /// Makes a request by the protocol, and calls `finish` with the rule that decided and the
    /// outcome. If another call changes the policy meanwhile, it makes the request under the new
    /// one. It returns false and charges nothing if the policy is a window or log of a table with
    /// room: [`Table::decide_in_room`] decides there.
    #[inline(never)]
    #[must_use = "a request that was not made"]
    fn request(
        &self,
        version: &Version,
        hash: u64,
        now: u64,
        step: &mut dyn FnMut(&Rule, u64) -> Step,
        finish: &mut dyn FnMut(&Rule, RequestOutcome),
    ) -> Result<bool, RequestError> {
        let policy = PolicyId::new(version.number);
        let candidates = self.slots.candidates(hash);
        for round in 0..ROUNDS {
            let mut scratch = Scratch::new();
            let version = if round == 0 && !version.is_in_room() {
                version
            } else {
                self.policies.current(policy, hash, &mut scratch)?
            };
            if version.is_in_room() {
                return Ok(false);
            }
            let states = UnderVersion { policies: &self.policies, version };
            let step = |state| step(&version.rule, state);
            let key = version.key | candidates.tag;
            if let Ok(outcome) =
                protocol::request(&states, &candidates, key, now, self.on_full, step)
            {
                if outcome.event != Event::Known || outcome.retries != 0 {
                    self.policies.count_event(outcome.event, outcome.retries);
                }
                finish(&version.rule, outcome);
                return Ok(true);
            }
        }
        Err(RequestError::Corrupt)
    }

    /// The current version of a key's policy and the key's hash. For an empty or an exempt key: the
    /// decision, which needs no probe.
    #[inline(never)]
    fn prepare<'s, 't: 's>(
        &'t self,
        policy: PolicyId,
        key: &[u8],
        scratch: &'s mut Scratch<'t>,
    ) -> Result<(&'s Version, u64), Result<Decision, RequestError>> {
        if key.is_empty() {
            return Err(match self.missing {
                Missing::Deny => Ok(closed(Reason::MissingKey)),
                Missing::Allow => Ok(uncharged(Reason::MissingKey)),
                Missing::Report => Err(RequestError::MissingKey),
            });
        }
        let hash = self.hash_out_of_line(key) ^ salt(policy.number());
        let version = self.policies.current_inlined(policy, hash, scratch).map_err(Err)?;
        match self.policies.is_exempt(hash) {
            true => Err(Ok(uncharged(Reason::Exempt))),
            false => Ok((version, hash)),
        }
    }

    /// Counts a decision that no other call has counted, such as that on an empty or an exempt key.
    fn counted(
        &self,
        policy: PolicyId,
        decided: Result<Decision, RequestError>,
    ) -> Result<Decision, RequestError> {
        if let Ok(decision) = &decided {
            self.policies.memory.count_with_reason(
                policy.number(),
                decision.verdict,
                decision.reason,
            );
        }
        decided
    }
}
