//! How one request is decided.
//!
//! The functions stand in the order in which a request meets them. [`Table::decide`] is the whole of the usual case: a key of up to 16
//! bytes that is in one of its first two buckets, under a token bucket, in a slot that no other call changes at that moment. It is inlined into its
//! caller. Every rare case is a tail call of a function that is not inlined, with all that it needs in registers, so the usual case keeps
//! nothing in memory across a call.
//!
//! | the request is passed on to | because |
//! |---|---|
//! | [`Table::decide_hot`] | the table has hot keys: the thread may have taken permits in advance |
//! | [`Table::decide_rare`] | the key is long or empty, keys are exempt, or this process has not compiled the policy |
//! | [`Table::decide_hashed`] | its hash is known; the thread may own no counters yet |
//! | [`Table::miss`] | the key is not in its first two buckets |
//! | [`Table::step_slow`] | the algorithm is not a plain token bucket, or another call has changed the slot |
//! | [`Table::slow`] | anything else: the protocol decides ([`super::slots::protocol`]) |

pub(super) mod answer;
pub(super) mod batch;
pub(super) mod booking;
mod calls;
mod charge;
mod give_back;
pub(super) mod hot_keys;
mod multi_word;
mod prefetch;
pub(super) mod receipts;
pub(super) mod several;
#[cfg(test)]
mod tests;

use super::memory::counters::lines::{Line, LineCounter};
use super::memory::error::TableError;
use super::memory::slot::{Bucket, Slot};
use super::policies::compiled::Version;
use super::policies::conversion::UnderVersion;
use super::policies::local::Scratch;
use super::policies::{Policies, PolicyId, ROUNDS};
use super::slots::probe::{find_in, find_in_two};
use super::slots::protocol::{self, Event, OnFull, Outcome};
use super::slots::Slots;
use crate::algorithm::{Algorithm, Rule, Step};
use crate::clock::{Clock, Source};
use crate::decision::{Decision, Reason, Verdict};
use crate::limiter::waiting::Waiters;
use answer::{closed, describe, full, uncharged, Answer};
use hot_keys::HotKeys;
use prefetch::prefetch;
use rapidhash::v3::{rapidhash_v3_inline, RapidSecrets};

/// Keyed limits in shared memory. Every call may be made by any number of threads and processes at once, and none of
/// them waits for another or allocates, unless it says so.
#[derive(Debug)]
pub struct Table {
    pub(super) policies: Policies,
    pub(super) slots: Slots,
    pub(super) on_full: OnFull,
    pub(super) missing: Missing,
    pub(super) clock: Source,
    /// What is added to the clock.
    pub(super) offset: u64,
    pub(super) secrets: RapidSecrets,
    /// This object's callers that are asleep in [`Table::wait_until`].
    pub(super) waiters: Waiters,
    /// The credit of this process's threads, if the table takes any.
    pub(super) hot: Option<HotKeys>,
}

/// What a request without a key (of no bytes) is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Missing {
    /// It is refused.
    #[default]
    Deny = 0,
    /// It is admitted, and no key is charged.
    Allow = 1,
    /// It is an error, [`TableError::MissingKey`], where a call can say so; else it is refused.
    Report = 2,
}

/// When a request is made: at the caller's time, or when the table's clock is read.
trait When: Copy {
    /// The caller's time.
    fn given(self) -> Option<u64>;
}

/// The table's clock is read as late as possible, when the key's cache lines are on their way.
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

/// Either, in code that the library has once for both.
impl When for Option<u64> {
    #[inline(always)]
    fn given(self) -> Option<u64> {
        self
    }
}

/// A key under a version of its policy, hashed. Its buckets have not been touched.
#[derive(Clone, Copy)]
struct Lookup<'a> {
    version: &'a Version,
    /// The key's first two buckets.
    first: &'a Bucket,
    second: &'a Bucket,
    /// The key word that the key's slot has.
    key: u64,
}

/// Keys of up to so many bytes are hashed in line.
const SHORT: usize = 16;

impl Table {
    /// One request, at the caller's time or, without one, by the table's clock, with an answer of the caller's type.
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
        // Without combinators: in code that is compiled for size they would be calls, with all this in memory.
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

    /// The usual case, of a key's hash under its policy, for a thread that counts on its own `line`.
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
        self.step(&lookup, now, cost, |verdict| line.count(verdict))
    }

    /// Finds a key in its first two buckets and steps its state. `count` is given the verdict, unless the request is passed on: then that
    /// function has counted it.
    #[inline(always)]
    fn step<A: Answer>(&self, lookup: &Lookup<'_>, now: u64, cost: u64, count: impl FnOnce(Verdict)) -> A {
        let Lookup { version, first, second, key } = *lookup;
        let Some(slot) = find_in_two(first, second, key) else {
            return self.miss(version, key, second, now, cost);
        };
        // The slot may have been given to another key meanwhile: then `step_once` fails.
        let state = slot.state();
        let Some(Step { verdict, next }) = version.step_plain(state, now, cost) else {
            return self.step_slow(version, key, slot, now, cost);
        };
        if !protocol::step_once(slot, key, state, next) {
            return self.step_slow(version, key, slot, now, cost);
        }
        count(verdict);
        A::known(&version.rule, verdict, next.unwrap_or(state), now, cost)
    }

    /// A request that needs more than a hash before its key is looked up. Its arguments fit the registers, so that the usual case saves
    /// none.
    #[inline(never)]
    fn decide_rare<A: Answer, W: When>(&self, policy: PolicyId, key: &[u8], when: W, cost: u64) -> A {
        self.decide_rare_at(policy, key, when.given(), cost)
    }

    /// [`Table::decide_rare`], once for all kinds of time.
    #[inline(never)]
    fn decide_rare_at<A: Answer>(&self, policy: PolicyId, key: &[u8], now: Option<u64>, cost: u64) -> A {
        if let (Some((version, _)), false) = (self.policies.current_compiled(policy), key.is_empty()) {
            return self.decide_hashed(version, self.hash_bytes(key) ^ version.salt, now, cost);
        }
        let mut scratch = Scratch::new();
        match self.prepare(policy, key, &mut scratch) {
            Ok((version, hash)) => self.decide_hashed(version, hash, now, cost),
            Err(decided) => {
                self.policies.memory.note_time(now.unwrap_or_else(|| self.now()));
                if let Ok(decision) = &decided {
                    self.policies.memory.count_unasked(policy.number(), decision.verdict);
                }
                A::of(decided)
            }
        }
    }

    /// [`Table::decide_counted`], once for all callers that need not have it inlined. The thread claims counters if it has none.
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

    /// A request whose clock must be read by a call. The key is known by its key word and its second bucket.
    #[inline(never)]
    fn decide_late<A: Answer>(&self, version: &Version, key: u64, second: &Bucket, cost: u64) -> A {
        self.decide_hashed(version, self.slots.hash_of_key(key, second), Some(self.now()), cost)
    }

    /// A key that is not in its first two buckets: a new one or, of 40 keys of a new table, one that is in its spare bucket.
    #[inline(never)]
    fn miss<A: Answer>(&self, version: &Version, key: u64, second: &Bucket, now: u64, cost: u64) -> A {
        let candidates = self.slots.candidates_of_key(key, second);
        // The insertion comes before the look into the spare bucket, which it makes itself: a flood of new keys is only kept up with if the
        // processor asks for the next one's lines while this one waits for its own.
        if let Some(Some(fresh)) = version.plain.step(0, now, cost) {
            let expired = |state| version.plain.expired_before(state, now);
            if let Some(event) = protocol::insert_among_own(&candidates, key, fresh, version.plain.apart(), expired) {
                let counter = match event {
                    Event::Inserted => LineCounter::Inserted,
                    _ => LineCounter::Reclaimed,
                };
                self.policies.memory.count_newcomer(version.number, counter);
                return A::known(&version.rule, Verdict::Allowed, fresh, now, cost);
            }
        }
        match find_in(candidates.spare, key) {
            Some(slot) => self.step_slow(version, key, slot, now, cost),
            None => A::of(self.slow(version, self.slots.hash_of_key(key, second), now, cost)),
        }
    }

    /// One step of any one-word algorithm, of a key that was in `slot` just now.
    #[inline(never)]
    fn step_slow<A: Answer>(&self, version: &Version, key: u64, slot: &Slot, now: u64, cost: u64) -> A {
        if version.multi_word.is_none() {
            let state = slot.state();
            let Step { verdict, next } = version.rule.step(state, now, cost);
            if protocol::step_once(slot, key, state, next) {
                self.policies.memory.count_decision(version.number, verdict);
                return A::known(&version.rule, verdict, next.unwrap_or(state), now, cost);
            }
        }
        match self.slots.hash_in_slot(key, slot) {
            Some(hash) => A::of(self.slow(version, hash, now, cost)),
            None => A::failed(TableError::Corrupt),
        }
    }

    /// Any request, by the protocol; it is counted.
    #[inline(never)]
    fn slow(&self, version: &Version, hash: u64, now: u64, cost: u64) -> Result<Decision, TableError> {
        let decision = self.ask(version, hash, now, cost)?;
        self.policies.memory.count_decision(version.number, decision.verdict);
        Ok(decision)
    }

    /// Any request, by the protocol; it is not counted.
    #[inline]
    fn ask(&self, version: &Version, hash: u64, now: u64, cost: u64) -> Result<Decision, TableError> {
        if self.policies.memory.fixed.side != 0 {
            return Ok(self.decide_multi_word(version, hash, now, multi_word::Op::Check(cost))?.decision);
        }
        let mut decision = closed(Reason::Fault);
        self.request(version, hash, now, &mut |rule, state| rule.step(state, now, cost), &mut |rule, outcome| {
            let told = describe(rule, outcome.verdict, outcome.state, now, cost);
            decision = match outcome.event {
                Event::Refused => full(outcome.until, now),
                Event::Unremembered => told.because(Reason::TableFull),
                Event::RefusedByDebt => told.because(Reason::InheritedDebt),
                _ => told,
            };
        })?;
        Ok(decision)
    }

    /// Makes a request by the protocol, and gives its outcome to `finish`, with the rule that decided. If the policy changes meanwhile, the
    /// request is made under the new one.
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
            let version = if round == 0 { version } else { self.policies.current(policy, &mut scratch)? };
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

    /// What a key needs before it is looked up: its policy's current version and its hash. Or the decision, where none is needed: for an
    /// empty key and an exempt one.
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
        let version = self.policies.current(policy, scratch).map_err(Err)?;
        let hash = self.hash_bytes(key) ^ version.salt;
        match self.policies.is_exempt(hash) {
            true => Err(Ok(uncharged(Reason::Exempt))),
            false => Ok((version, hash)),
        }
    }

    /// Finds the first two buckets of a key's hash under its policy, without touching them.
    #[inline(always)]
    fn lookup<'a>(&'a self, version: &'a Version, hash: u64) -> Lookup<'a> {
        let (first, second) = self.slots.first_two(hash);
        Lookup { version, first, second, key: version.key | super::slots::placement::tag(hash) }
    }

    /// The hash of a key, keyed with the table's seed. It has rapidhash's second mixing step: without that, sequences of addresses are visibly
    /// uneven in some of the bits.
    #[inline(always)]
    pub(super) fn hash_bytes(&self, key: &[u8]) -> u64 {
        if key.len() > SHORT {
            return self.hash_long(key);
        }
        rapidhash_v3_inline::<true, true, false>(key, &self.secrets)
    }

    /// [`Table::hash_bytes`] of a key of more than [`SHORT`] bytes.
    #[inline(never)]
    fn hash_long(&self, key: &[u8]) -> u64 {
        rapidhash_v3_inline::<true, true, false>(key, &self.secrets)
    }

    /// The table's time in nanoseconds, which calls without a `now` argument read. It counts UTC since [`TIME_ZERO`](crate::clock::TIME_ZERO),
    /// as the maker's system clock said when the table was made; with [`Source::Wall`] it is Unix time.
    #[inline(always)]
    pub fn now(&self) -> u64 {
        self.clock.now().wrapping_add(self.offset)
    }
}
