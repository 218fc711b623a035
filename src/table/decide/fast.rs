//! The fast cases of [`Table::slow`]: each decides as that function would, by fewer instructions,
//! or leaves the request to the next one.
//!
//! The functions stand in the order of their calls. [`Table::decide`] is inlined into its caller
//! and decides the common case completely: a key of up to 16 bytes in one of its first two buckets,
//! under a token bucket, in a slot that no other call changes meanwhile. Rare cases are tail calls
//! out of line, so no register is spilled.
//!
//! | function | the case of [`Table::slow`] | who decides the others |
//! |---|---|---|
//! | [`Table::decide_hot`] | the thread took permits of the key in advance | [`Table::decide_hashed`] |
//! | [`Table::decide_counted`] | the policy is compiled, the key short, none is exempt, the thread owns counters | [`Table::decide_rare`] |
//! | [`Table::step`] | the key's slot is in its first two buckets | [`Table::miss`] |
//! | [`Table::step`] | the algorithm is a plain token bucket, and one swap of the slot succeeds | [`Table::step_slow`] |
//! | [`Table::step_pair`], [`Table::start_pair`] | a list of two token buckets, one permit, one swap | [`Table::step_slow`] |
//! | [`Table::step_slow`] | any one-word algorithm, a known key, one swap | [`Table::slow`] |
//! | [`Table::miss`] | the key is new, and one swap of a vacant slot among its own succeeds | [`Table::slow`] |

use super::super::memory::counters::lines::{LineCounter, OwnerLine};
use super::super::memory::error::RequestError;
use super::super::memory::slot::{find_in, find_in_two, Bucket, Slot};
use super::super::policies::compiled::Version;
use super::super::policies::local::Scratch;
use super::super::policies::PolicyId;
use super::super::slots::candidates::tag;
use super::super::slots::protocol;
use super::super::slots::states::Event;
use super::answer::{of_slow_step, Answer};
use super::prefetch::prefetch;
use super::Table;
use crate::algorithm::pair::OneStep;
use crate::algorithm::{Algorithm, Step};
use crate::clock::Clock;
use crate::decision::{Reason, Verdict};
use rapidhash::v3::{rapidhash_v3_inline, RapidSecrets};

/// The time of a request: the caller's, or the table's.
pub(super) trait When: Copy {
    /// The caller's time, or `None` for the table's.
    fn given(self) -> Option<u64>;
}

/// The table's time. The request reads the clock after it has prefetched the key's cache lines.
#[derive(Clone, Copy)]
pub(super) struct OnClock;

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
pub(super) struct Lookup<'a> {
    pub(super) version: &'a Version,
    /// The key's first two buckets.
    pub(super) first: &'a Bucket,
    pub(super) second: &'a Bucket,
    /// The key word of the key's slot.
    pub(super) key: u64,
}

/// The most bytes of a key that is hashed inline.
pub(super) const SHORT: usize = 16;

impl Table {
    /// Decides on one request at `now`, or at the table's time, and gives an answer of the caller's
    /// type.
    #[doc(hidden)]
    #[inline(always)]
    pub fn decide<A: Answer>(
        &self,
        policy: PolicyId,
        key: &[u8],
        now: Option<u64>,
        cost: u64,
    ) -> A {
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
    fn decide_when<A: Answer, W: When>(
        &self,
        policy: PolicyId,
        key: &[u8],
        when: W,
        cost: u64,
    ) -> A {
        // Combinators would be calls when the compiler optimizes for size, with their arguments in
        // memory.
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
    pub(super) fn decide_counted<A: Answer, W: When>(
        &self,
        version: &Version,
        hash: u64,
        line: &OwnerLine,
        when: W,
        cost: u64,
    ) -> A {
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

    /// Finds a key in its first two buckets, steps its state, and calls `count` with the verdict.
    /// In a rare case another function decides, and that function counts the decision, on the
    /// thread's own `line` if the caller has it.
    #[inline(always)]
    pub(super) fn step<A: Answer>(
        &self,
        lookup: &Lookup<'_>,
        now: u64,
        cost: u64,
        line: Option<&OwnerLine>,
        count: impl FnOnce(Verdict),
    ) -> A {
        let Lookup { version, first, second, key } = *lookup;
        let Some(slot) = find_in_two(first, second, key) else {
            return self.miss(version, key, second, now, cost);
        };
        // If another key takes the slot meanwhile, [`Slot::commit`] fails.
        let state = slot.state();
        if !self.policies.is_numbered(version) {
            return self.step_slow(version, key, slot, now, cost);
        }
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

    /// A request whose key needs more than a short hash before the probe. The arguments fit the
    /// registers, so the common case spills none.
    #[inline(never)]
    pub(super) fn decide_rare<A: Answer, W: When>(
        &self,
        policy: PolicyId,
        key: &[u8],
        when: W,
        cost: u64,
    ) -> A {
        self.decide_rare_at(policy, key, when.given(), cost)
    }

    /// [`Table::decide_rare`], compiled once for all kinds of time.
    #[inline(never)]
    pub(super) fn decide_rare_at<A: Answer>(
        &self,
        policy: PolicyId,
        key: &[u8],
        now: Option<u64>,
        cost: u64,
    ) -> A {
        if let (Some((version, _)), false) =
            (self.policies.current_compiled(policy), key.is_empty())
        {
            return self.decide_hashed(
                version,
                self.hash_out_of_line(key) ^ version.salt,
                now,
                cost,
            );
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

    /// [`Table::decide_counted`], out of line, for all rare callers. The thread claims counters if
    /// it has none.
    #[inline(never)]
    pub(super) fn decide_hashed<A: Answer>(
        &self,
        version: &Version,
        hash: u64,
        now: Option<u64>,
        cost: u64,
    ) -> A {
        match self.policies.memory.line_or_claim(version.number) {
            Some(line) => self.decide_counted(version, hash, line, now, cost),
            None => {
                let now = now.unwrap_or_else(|| self.now());
                self.policies.memory.note_time(now);
                A::of(self.slow(version, hash, now, cost))
            }
        }
    }

    /// A request that must call a function to read the clock. Its arguments are the key word and
    /// the second bucket instead of the hash, because the caller has those in registers.
    #[inline(never)]
    fn decide_late<A: Answer>(&self, version: &Version, key: u64, second: &Bucket, cost: u64) -> A {
        self.decide_hashed(version, self.slots.hash_of_key(key, second), Some(self.now()), cost)
    }

    /// A request whose key is not in its first two buckets: the key is new, or in its spare bucket.
    #[inline(never)]
    pub(super) fn miss<A: Answer>(
        &self,
        version: &Version,
        key: u64,
        second: &Bucket,
        now: u64,
        cost: u64,
    ) -> A {
        let candidates = self.slots.candidates_of_key(key, second);
        // The insertion probes the spare bucket, too, so it comes before the probe for a known key.
        // In a flood of new keys this order lets the processor load the next key's cache lines
        // while it waits for this key's.
        let fresh = version.plain.step(0, now, cost).filter(|_| self.policies.is_numbered(version));
        if let Some(Some(fresh)) = fresh {
            let expired = |state| version.plain.expired_before(state, now);
            if let Some(event) =
                protocol::insert_among_own(&candidates, key, fresh, version.plain.gap(), expired)
            {
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

    /// One try to take one permit under a list of two policies. Its arguments fit the registers, so
    /// it has the thread's `line` instead of the cost.
    #[inline(never)]
    fn step_pair<A: Answer>(
        &self,
        version: &Version,
        key: u64,
        slot: &Slot,
        now: u64,
        line: Option<&OwnerLine>,
    ) -> A {
        let state = slot.state();
        let is_numbered = self.policies.is_numbered(version);
        let (Some(pair), Some(line), true) = (version.rule.pair(), line, is_numbered) else {
            return self.step_slow(version, key, slot, now, 1);
        };
        if now >= pair.one_end() {
            return self.step_slow(version, key, slot, now, 1);
        }
        match pair.step_one(state, now) {
            OneStep::Admitted(next) if slot.commit(key, state, Some(next)) => {
                line.count(Verdict::Allowed);
                A::of_step(&version.rule, Verdict::Allowed, next, now, 1)
            }
            OneStep::Refused if slot.commit(key, state, None) => {
                line.count(Verdict::Denied);
                A::of_step(&version.rule, Verdict::Denied, state, now, 1)
            }
            OneStep::Other => self.start_pair(version, key, slot, now, line),
            _ => self.step_slow(version, key, slot, now, 1),
        }
    }

    /// [`Table::step_pair`] of a key whose fast bucket may be full.
    #[inline(never)]
    fn start_pair<A: Answer>(
        &self,
        version: &Version,
        key: u64,
        slot: &Slot,
        now: u64,
        line: &OwnerLine,
    ) -> A {
        let state = slot.state();
        let is_numbered = self.policies.is_numbered(version);
        let pair = version.rule.pair().filter(|_| is_numbered);
        match pair.map(|pair| pair.start_one(state, now)) {
            Some(OneStep::Admitted(next)) if slot.commit(key, state, Some(next)) => {
                line.count(Verdict::Allowed);
                A::of_step(&version.rule, Verdict::Allowed, next, now, 1)
            }
            _ => self.step_slow(version, key, slot, now, 1),
        }
    }

    /// One try of a step under any one-word algorithm, for a key that the caller has found in
    /// `slot`.
    #[inline(never)]
    fn step_slow<A: Answer>(
        &self,
        version: &Version,
        key: u64,
        slot: &Slot,
        now: u64,
        cost: u64,
    ) -> A {
        let state = slot.state();
        if version.multi_word.is_none() && self.policies.is_numbered(version) {
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
            None => A::of_error(RequestError::Corrupt),
        }
    }

    /// Finds the first two buckets of a key's hash under its policy, without touching them.
    #[inline(always)]
    pub(super) fn lookup<'a>(&'a self, version: &'a Version, hash: u64) -> Lookup<'a> {
        let (first, second) = self.slots.first_two(hash);
        Lookup { version, first, second, key: version.key | tag(hash) }
    }

    /// The hash of a key under the table's seed. It uses rapidhash's second mixing step, because
    /// without it some bits are visibly uneven for sequences of addresses.
    #[inline(always)]
    pub(in crate::table) fn hash_bytes(&self, key: &[u8]) -> u64 {
        if key.len() > SHORT {
            return self.hash_out_of_line(key);
        }
        rapidhash_v3_inline::<true, true, false>(key, &self.secrets)
    }

    /// [`Table::hash_bytes`] by a call of [`hash_long`], for long keys and for rare callers.
    #[inline(always)]
    pub(in crate::table) fn hash_out_of_line(&self, key: &[u8]) -> u64 {
        hash_long(key, &self.secrets)
    }
}

/// The hash of a key of any length, compiled for long ones.
#[inline(never)]
pub(crate) fn hash_long(key: &[u8], secrets: &RapidSecrets) -> u64 {
    rapidhash_v3_inline::<true, true, false>(key, secrets)
}
