//! How one request is decided.
//!
//! The functions stand in the order of their calls. [`Table::decide`] is inlined into its caller and decides the
//! common case completely: a key of up to 16 bytes in one of its first two buckets, under a token bucket, in a slot
//! that no other call changes meanwhile. Rare cases are tail calls out of line, so no register is spilled.
//!
//! | the request goes on to | because |
//! |---|---|
//! | [`Table::decide_hot`] | the table has hot keys: the thread may have taken permits in advance |
//! | [`Table::decide_rare`] | the key is long or empty, some key is exempt, or the policy is not compiled yet |
//! | [`Table::decide_hashed`] | the thread may own no counters yet |
//! | [`Table::miss`] | the key is not in its first two buckets |
//! | [`Table::step_slow`] | the algorithm is not a plain token bucket, or another call has changed the slot |
//! | [`Table::slow`] | none of these can decide, so the protocol does ([`super::slots::protocol`]) |

pub(super) mod answer;
pub(super) mod batch;
pub(super) mod booking;
mod calls;
mod charge;
mod give_back;
pub(super) mod hot_keys;
mod leaving;
mod multi_word;
pub(super) mod nodes;
mod prefetch;
pub(super) mod receipts;
mod refusals;
pub(super) mod several;
#[cfg(test)]
mod tests;

use super::memory::counters::lines::{Line, LineCounter};
use super::memory::error::TableError;
use super::memory::slot::{find_in, find_in_two, Bucket, Slot};
use super::policies::compiled::{salt, Version};
use super::policies::conversion::UnderVersion;
use super::policies::local::Scratch;
use super::policies::{Policies, PolicyId, ROUNDS};
use super::slots::candidates::tag;
use super::slots::protocol;
use super::slots::states::{Event, OnFull, Outcome};
use super::slots::Slots;
use crate::algorithm::pair::Usual;
use crate::algorithm::{Algorithm, Rule, Step};
use crate::clock::{Clock, Source};
use crate::decision::{Decision, Reason, Verdict};
use crate::limiter::waiting::Lines;
use alloc::boxed::Box;
use answer::{closed, describe, full, of_slow_step, uncharged, Answer};
use hot_keys::HotKeys;
use prefetch::prefetch;
use rapidhash::v3::{rapidhash_v3_inline, RapidSecrets};

/// Keyed limits in shared memory. Any number of threads and processes may make calls at once. No call waits for
/// another or allocates, unless its documentation says so.
#[derive(Debug)]
pub struct Table {
    pub(super) policies: Policies,
    pub(super) slots: Slots,
    pub(super) on_full: OnFull,
    pub(super) missing: Missing,
    pub(super) clock: Source,
    /// Nanoseconds that are added to the clock, modulo 2^64.
    pub(super) offset: u64,
    pub(super) secrets: RapidSecrets,
    /// The callers of this object that are asleep in [`Table::wait_until`]. On the heap, because a table is moved
    /// while it is made.
    pub(super) waiting: Box<Lines<LISTS>>,
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
    /// The call returns [`TableError::MissingKey`]. A call that returns no errors refuses the request.
    Report = 2,
}

/// The time of a request: the caller's, or the table's.
trait When: Copy {
    /// The caller's time, or `None` for the table's.
    fn given(self) -> Option<u64>;
}

/// The table's time. The request reads the clock after it has prefetched the key's cache lines.
#[derive(Clone, Copy)]
struct OnClock;

impl When for OnClock {
    #[inline(always)]
    fn given(self) -> Option<u64> {
        None
    }
}

impl When for u64 {
    #[inline(always)]
    fn given(self) -> Option<u64> {
        Some(self)
    }
}

/// Either time, for functions that are compiled once for both.
impl When for Option<u64> {
    #[inline(always)]
    fn given(self) -> Option<u64> {
        self
    }
}

/// A hashed key under a version of its policy. No access has touched its buckets yet.
#[derive(Clone, Copy)]
struct Lookup<'a> {
    version: &'a Version,
    /// The key's first two buckets.
    first: &'a Bucket,
    second: &'a Bucket,
    /// The key word of the key's slot.
    key: u64,
}

/// The lists of waiting callers of a table object. Each key's callers are in one of them.
const LISTS: usize = 64;

/// The most bytes of a key that is hashed inline.
const SHORT: usize = 16;

impl Table {
    /// Decides on one request at `now`, or at the table's time, and gives an answer of the caller's type.
    #[doc(hidden)]
    #[inline(always)]
    pub fn decide<A: Answer>(&self, policy: PolicyId, key: &[u8], now: Option<u64>, cost: u64) -> A {
        if self.hot.is_some() {
            return match now {
                _ if A::IS_FULL => A::of(self.decide_hot_in_full(policy, key, now, cost)),
                Some(now) => self.decide_hot(policy, key, now, cost),
                None => self.decide_hot(policy, key, OnClock, cost),
            };
        }
        match now {
            _ if A::IS_FULL => self.decide_when(policy, key, now, cost),
            Some(now) => self.decide_when(policy, key, now, cost),
            None => self.decide_when(policy, key, OnClock, cost),
        }
    }

    #[inline(always)]
    fn decide_when<A: Answer, W: When>(&self, policy: PolicyId, key: &[u8], when: W, cost: u64) -> A {
        // Combinators would be calls when the compiler optimizes for size, with their arguments in memory.
        let Some((version, _)) = self.policies.current_compiled(policy) else {
            return self.decide_rare(policy, key, when, cost);
        };
        if key.len().wrapping_sub(1) >= SHORT {
            return self.decide_rare(policy, key, when, cost);
        }
        let hash = self.hash_bytes(key) ^ version.salt;
        let Some(line) = self.policies.memory.line(policy.number()) else {
            return self.decide_hashed(version, hash, when.given(), cost);
        };
        self.decide_counted(version, hash, line, when, cost)
    }

    /// The common case for a key's hash under its policy. The thread counts on its own `line`.
    #[inline(always)]
    fn decide_counted<A: Answer, W: When>(&self, version: &Version, hash: u64, line: &Line, when: W, cost: u64) -> A {
        let lookup = self.lookup(version, hash);
        let now = match when.given() {
            Some(now) => now,
            None => {
                prefetch(lookup.first);
                prefetch(lookup.second);
                match self.clock.at_once() {
                    Some(now) => now.wrapping_add(self.offset),
                    None => return self.decide_late(version, lookup.key, lookup.second, cost),
                }
            }
        };
        self.policies.memory.note_time_on(line, now);
        self.step(&lookup, now, cost, Some(line), |verdict| line.count(verdict))
    }

    /// Finds a key in its first two buckets, steps its state, and calls `count` with the verdict. In a rare case
    /// another function decides, and that function counts the decision, on the thread's own `line` if the caller has
    /// it.
    #[inline(always)]
    fn step<A: Answer>(
        &self,
        lookup: &Lookup<'_>,
        now: u64,
        cost: u64,
        line: Option<&Line>,
        count: impl FnOnce(Verdict),
    ) -> A {
        let Lookup { version, first, second, key } = *lookup;
        let Some(slot) = find_in_two(first, second, key) else {
            return self.miss(version, key, second, now, cost);
        };
        // If another key takes the slot meanwhile, [`Slot::commit`] fails.
        let state = slot.state();
        let Some(Step { verdict, next }) = version.step_plain(state, now, cost) else {
            if cost == 1 && version.rule.pair().is_some() {
                return self.step_pair(version, key, slot, now, line);
            }
            return self.step_slow(version, key, slot, now, cost);
        };
        if !slot.commit(key, state, next) {
            return self.step_slow(version, key, slot, now, cost);
        }
        count(verdict);
        A::of_step(&version.rule, verdict, next.unwrap_or(state), now, cost)
    }

    /// A request whose key needs more than a short hash before the probe. The arguments fit the registers, so the
    /// common case spills none.
    #[inline(never)]
    fn decide_rare<A: Answer, W: When>(&self, policy: PolicyId, key: &[u8], when: W, cost: u64) -> A {
        self.decide_rare_at(policy, key, when.given(), cost)
    }

    /// [`Table::decide_rare`], compiled once for all kinds of time.
    #[inline(never)]
    fn decide_rare_at<A: Answer>(&self, policy: PolicyId, key: &[u8], now: Option<u64>, cost: u64) -> A {
        if let (Some((version, _)), false) = (self.policies.current_compiled(policy), key.is_empty()) {
            return self.decide_hashed(version, self.hash_out_of_line(key) ^ version.salt, now, cost);
        }
        let mut scratch = Scratch::new();
        match self.prepare(policy, key, &mut scratch) {
            Ok((version, hash)) => {
                let answer: A = self.decide_hashed(version, hash, now, cost);
                self.note_refusal(answer.verdict(), policy, key, now);
                answer
            }
            Err(decided) => {
                self.policies.memory.note_time(now.unwrap_or_else(|| self.now()));
                A::of(self.counted(policy, decided))
            }
        }
    }

    /// [`Table::decide_counted`], out of line, for all rare callers. The thread claims counters if it has none.
    #[inline(never)]
    fn decide_hashed<A: Answer>(&self, version: &Version, hash: u64, now: Option<u64>, cost: u64) -> A {
        match self.policies.memory.line_or_claim(version.number) {
            Some(line) => self.decide_counted(version, hash, line, now, cost),
            None => {
                let now = now.unwrap_or_else(|| self.now());
                self.policies.memory.note_time(now);
                A::of(self.slow(version, hash, now, cost))
            }
        }
    }

    /// A request that must call a function to read the clock. Its arguments are the key word and the second bucket
    /// instead of the hash, because the caller has those in registers.
    #[inline(never)]
    fn decide_late<A: Answer>(&self, version: &Version, key: u64, second: &Bucket, cost: u64) -> A {
        self.decide_hashed(version, self.slots.hash_of_key(key, second), Some(self.now()), cost)
    }

    /// A request whose key is not in its first two buckets: the key is new, or in its spare bucket.
    #[inline(never)]
    fn miss<A: Answer>(&self, version: &Version, key: u64, second: &Bucket, now: u64, cost: u64) -> A {
        let candidates = self.slots.candidates_of_key(key, second);
        // The insertion probes the spare bucket, too, so it comes before the probe for a known key. In a flood of new
        // keys this order lets the processor load the next key's cache lines while it waits for this key's.
        if let Some(Some(fresh)) = version.plain.step(0, now, cost) {
            let expired = |state| version.plain.expired_before(state, now);
            if let Some(event) = protocol::insert_among_own(&candidates, key, fresh, version.plain.gap(), expired) {
                let counter = match event {
                    Event::Inserted => LineCounter::Inserted,
                    _ => LineCounter::Reclaimed,
                };
                self.policies.memory.count_insertion(version.number, counter);
                return of_slow_step(&version.rule, Verdict::Allowed, fresh, now, cost);
            }
        }
        match find_in(candidates.spare, key) {
            Some(slot) => self.step_slow(version, key, slot, now, cost),
            None => A::of(self.slow(version, self.slots.hash_of_key(key, second), now, cost)),
        }
    }

    /// One try to take one permit under a list of two policies. Its arguments fit the registers, so it has the
    /// thread's `line` instead of the cost.
    #[inline(never)]
    fn step_pair<A: Answer>(&self, version: &Version, key: u64, slot: &Slot, now: u64, line: Option<&Line>) -> A {
        let state = slot.state();
        let (Some(pair), Some(line)) = (version.rule.pair(), line) else {
            return self.step_slow(version, key, slot, now, 1);
        };
        if now >= pair.one_end() {
            return self.step_slow(version, key, slot, now, 1);
        }
        match pair.step_one(state, now) {
            Usual::Admitted(next) if slot.commit(key, state, Some(next)) => {
                line.count(Verdict::Allowed);
                A::of_step(&version.rule, Verdict::Allowed, next, now, 1)
            }
            Usual::Refused if slot.commit(key, state, None) => {
                line.count(Verdict::Denied);
                A::of_step(&version.rule, Verdict::Denied, state, now, 1)
            }
            Usual::Other => self.start_pair(version, key, slot, now, line),
            _ => self.step_slow(version, key, slot, now, 1),
        }
    }

    /// [`Table::step_pair`] of a key whose fast bucket may be full.
    #[inline(never)]
    fn start_pair<A: Answer>(&self, version: &Version, key: u64, slot: &Slot, now: u64, line: &Line) -> A {
        let state = slot.state();
        match version.rule.pair().map(|pair| pair.start_one(state, now)) {
            Some(Usual::Admitted(next)) if slot.commit(key, state, Some(next)) => {
                line.count(Verdict::Allowed);
                A::of_step(&version.rule, Verdict::Allowed, next, now, 1)
            }
            _ => self.step_slow(version, key, slot, now, 1),
        }
    }

    /// One try of a step under any one-word algorithm, for a key that the caller has found in `slot`.
    #[inline(never)]
    fn step_slow<A: Answer>(&self, version: &Version, key: u64, slot: &Slot, now: u64, cost: u64) -> A {
        if version.multi_word.is_none() {
            let state = slot.state();
            let Step { verdict, next } = version.rule.step(state, now, cost);
            if slot.commit(key, state, next) {
                let state = next.unwrap_or(state);
                self.policies.memory.count_decision(version.number, verdict);
                if verdict == Verdict::Denied && version.rule.bans(state, now) {
                    self.policies.memory.count_reason(Reason::Banned);
                }
                return of_slow_step(&version.rule, verdict, state, now, cost);
            }
        }
        match self.slots.hash_in_slot(key, slot) {
            Some(hash) => A::of(self.slow(version, hash, now, cost)),
            None => A::of_error(TableError::Corrupt),
        }
    }

    /// Any request, by the protocol. It counts the decision.
    #[inline(never)]
    fn slow(&self, version: &Version, hash: u64, now: u64, cost: u64) -> Result<Decision, TableError> {
        let decision = self.slow_uncounted(version, hash, now, cost)?;
        self.policies.memory.count_with_reason(version.number, decision.verdict, decision.reason);
        Ok(decision)
    }

    /// Any request, by the protocol. The caller counts the decision.
    #[inline]
    fn slow_uncounted(&self, version: &Version, hash: u64, now: u64, cost: u64) -> Result<Decision, TableError> {
        if self.policies.memory.fixed.side != 0 {
            return Ok(self.decide_multi_word(version, hash, now, multi_word::Op::Check(cost))?.decision);
        }
        self.decide_by(version, hash, now, cost, &mut |rule, state| rule.step_out_of_line(state, now, cost))
    }

    /// A request by the protocol that `step` decides. A refusal's wait is that of `cost`.
    #[inline]
    fn decide_by(
        &self,
        version: &Version,
        hash: u64,
        now: u64,
        cost: u64,
        step: &mut dyn FnMut(&Rule, u64) -> Step,
    ) -> Result<Decision, TableError> {
        let mut decision = closed(Reason::Fault);
        self.request(version, hash, now, step, &mut |rule, outcome| {
            let described = describe(rule, outcome.verdict, outcome.state, now, cost);
            decision = match outcome.event {
                Event::Refused => full(outcome.until, now),
                Event::Unremembered => described.because(Reason::TableFull),
                Event::RefusedByDebt => described.because(Reason::InheritedDebt),
                _ => described,
            };
        })?;
        Ok(decision)
    }

    /// Makes a request by the protocol, and calls `finish` with the rule that decided and the outcome. If another
    /// call changes the policy meanwhile, it makes the request under the new one.
    #[inline(never)]
    fn request(
        &self,
        version: &Version,
        hash: u64,
        now: u64,
        step: &mut dyn FnMut(&Rule, u64) -> Step,
        finish: &mut dyn FnMut(&Rule, Outcome),
    ) -> Result<(), TableError> {
        let policy = PolicyId::new(version.number);
        let candidates = self.slots.candidates(hash);
        for round in 0..ROUNDS {
            let mut scratch = Scratch::new();
            let version = if round == 0 { version } else { self.policies.current(policy, hash, &mut scratch)? };
            let states = UnderVersion { policies: &self.policies, version };
            let step = |state| step(&version.rule, state);
            let key = version.key | candidates.tag;
            if let Ok(outcome) = protocol::request(&states, &candidates, key, now, self.on_full, step) {
                if outcome.event != Event::Known || outcome.retries != 0 {
                    self.policies.count_event(outcome.event, outcome.retries);
                }
                finish(&version.rule, outcome);
                return Ok(());
            }
        }
        Err(TableError::Corrupt)
    }

    /// The current version of a key's policy and the key's hash. For an empty or an exempt key: the decision, which
    /// needs no probe.
    #[inline(never)]
    fn prepare<'s, 't: 's>(
        &'t self,
        policy: PolicyId,
        key: &[u8],
        scratch: &'s mut Scratch<'t>,
    ) -> Result<(&'s Version, u64), Result<Decision, TableError>> {
        if key.is_empty() {
            return Err(match self.missing {
                Missing::Deny => Ok(closed(Reason::MissingKey)),
                Missing::Allow => Ok(uncharged(Reason::MissingKey)),
                Missing::Report => Err(TableError::MissingKey),
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
    fn counted(&self, policy: PolicyId, decided: Result<Decision, TableError>) -> Result<Decision, TableError> {
        if let Ok(decision) = &decided {
            self.policies.memory.count_with_reason(policy.number(), decision.verdict, decision.reason);
        }
        decided
    }

    /// Finds the first two buckets of a key's hash under its policy, without touching them.
    #[inline(always)]
    fn lookup<'a>(&'a self, version: &'a Version, hash: u64) -> Lookup<'a> {
        let (first, second) = self.slots.first_two(hash);
        Lookup { version, first, second, key: version.key | tag(hash) }
    }

    /// The hash of a key under the table's seed. It uses rapidhash's second mixing step, because without it some bits
    /// are visibly uneven for sequences of addresses.
    #[inline(always)]
    pub(super) fn hash_bytes(&self, key: &[u8]) -> u64 {
        if key.len() > SHORT {
            return self.hash_out_of_line(key);
        }
        rapidhash_v3_inline::<true, true, false>(key, &self.secrets)
    }

    /// [`Table::hash_bytes`] by a call of [`hash_long`], for long keys and for rare callers.
    #[inline(always)]
    pub(super) fn hash_out_of_line(&self, key: &[u8]) -> u64 {
        hash_long(key, &self.secrets)
    }
}

/// The hash of a key of any length, compiled for long ones.
#[inline(never)]
pub(crate) fn hash_long(key: &[u8], secrets: &RapidSecrets) -> u64 {
    rapidhash_v3_inline::<true, true, false>(key, secrets)
}
