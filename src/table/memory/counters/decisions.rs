//! Counts of decisions by policy and verdict.
//!
//! Each call that decides counts once, when it knows its answer. It counts on the calling thread's
//! own line ([`super::lines`]). A thread without a line counts by a locked addition on a counter
//! that threads share. Peeks and errors are not counted.

use super::lines::{self, LineCounter, OwnerLine};
use super::shards::{self, ShardCounter, GRAIN};
use crate::decision::{Counts, Reason, Verdict};
use crate::sync::Ordering;
use crate::table::memory::layout::{Shard, PARTS, POLICIES_MOST};
use crate::table::memory::Memory;

/// A thread without a line tries again to claim one after this many decisions under its policy of
/// all threads without a line.
const CLAIM_INTERVAL: u64 = 1 << 16;

impl Memory {
    /// The decisions of all threads and processes under the policies that `includes` chooses.
    pub(crate) fn decisions(&self, includes: impl Fn(u32) -> bool) -> Counts {
        let owned = || self.lines().iter().filter(|line| line.policy().is_some_and(&includes));
        let unowned = |verdict: usize| {
            let policies = self.unowned_decisions().iter().flat_map(|part| part.iter().zip(0..));
            let counts = policies
                .filter(|(_, policy)| includes(*policy))
                .filter_map(|(counts, _)| counts.get(verdict));
            counts.map(|count| count.load(Ordering::Relaxed)).fold(0, u64::wrapping_add)
        };
        // Wrapping, because damaged memory may hold any numbers.
        let of = |verdict| {
            lines::sum(owned(), LineCounter::verdict(verdict))
                .wrapping_add(unowned(verdict as usize))
        };
        Counts {
            allowed: of(Verdict::Allowed),
            denied: of(Verdict::Denied),
            never: of(Verdict::Never),
        }
    }

    /// The calling thread's line under `policy`, if the first probe finds it.
    #[inline(always)]
    pub(crate) fn line(&self, policy: u32) -> Option<&OwnerLine> {
        self.thread_lines.first_probe(policy)
    }

    /// The calling thread's line under `policy`; the thread claims one if it has none. `None`: no
    /// line is free.
    #[inline(always)]
    pub(crate) fn line_or_claim(&self, policy: u32) -> Option<&OwnerLine> {
        match self.line(policy) {
            Some(line) => Some(line),
            None => self.thread_lines.find_or_claim(policy, self.lines()),
        }
    }

    /// The calling thread's shard.
    #[inline(always)]
    pub(crate) fn shard(&self) -> &Shard {
        shards::shard(self.shards())
    }

    /// Counts one rare event.
    #[cold]
    pub(crate) fn count(&self, what: ShardCounter) {
        self.shard().add(what, 1);
    }

    /// Counts a decision.
    #[inline(always)]
    pub(crate) fn count_decision(&self, policy: u32, verdict: Verdict) {
        match self.line(policy) {
            Some(line) => line.count(verdict),
            None => self.count_slow(policy, verdict),
        }
    }

    /// [`Memory::count_decision`], compiled once for all slow paths.
    #[inline(never)]
    pub(crate) fn count_decision_out_of_line(&self, policy: u32, verdict: Verdict) {
        self.count_decision(policy, verdict);
    }

    /// Counts a key that was put into a slot and allowed.
    #[inline(always)]
    pub(crate) fn count_insertion(&self, policy: u32, counter: LineCounter) {
        match self.line(policy) {
            Some(line) => {
                line.add(counter);
                line.count(Verdict::Allowed);
            }
            None => self.count_insertion_slow(policy, counter),
        }
    }

    #[inline(never)]
    fn count_insertion_slow(&self, policy: u32, counter: LineCounter) {
        self.count(if counter == LineCounter::Inserted {
            ShardCounter::Inserted
        } else {
            ShardCounter::Reclaimed
        });
        self.count_slow(policy, Verdict::Allowed);
    }

    /// Counts a decision by its verdict and its reason. The caller need not know whether the table
    /// has the policy: if not, the call counts nothing.
    #[inline]
    pub(crate) fn count_with_reason(&self, policy: u32, verdict: Verdict, reason: Reason) {
        if self.has_policy(policy) {
            self.count_decision_out_of_line(policy, verdict);
            if reason != Reason::of(verdict) {
                self.count_reason(reason);
            }
        }
    }

    /// Counts the reason of a decision that another call has counted by its verdict.
    #[inline(never)]
    pub(crate) fn count_reason(&self, reason: Reason) {
        self.shard().add_reason(reason);
    }

    /// Counts several decisions of one call.
    #[inline(never)]
    pub(crate) fn count_many(&self, policy: u32, allowed: u64, denied: u64) {
        match self.line_or_claim(policy) {
            Some(line) => {
                line.add_many(LineCounter::Allowed, allowed);
                line.add_many(LineCounter::Denied, denied);
            }
            None => {
                self.count_unowned(policy, Verdict::Allowed, allowed);
                self.count_unowned(policy, Verdict::Denied, denied);
            }
        }
    }

    /// Counts a decision of a thread whose line the first probe has not found.
    #[inline(never)]
    fn count_slow(&self, policy: u32, verdict: Verdict) {
        match self.line_or_claim(policy) {
            Some(line) => line.count(verdict),
            None => self.count_unowned(policy, verdict, 1),
        }
    }

    /// Counts decisions of a thread that has no line.
    #[cold]
    fn count_unowned(&self, policy: u32, verdict: Verdict, n: u64) {
        let part = self.unowned_decisions().get(shards::number() % PARTS);
        let counts = part.and_then(|part| part.get(policy as usize % POLICIES_MOST));
        let Some(count) = counts.and_then(|counts| counts.get(verdict as usize)) else { return };
        // A process may have ended meanwhile, whose lines this thread can claim.
        let before = count.fetch_add(n, Ordering::Relaxed);
        if before / CLAIM_INTERVAL != before.wrapping_add(n) / CLAIM_INTERVAL {
            self.thread_lines.retry_claim(policy);
        }
    }

    /// Compares a caller's time with the newest one of the thread's own `line`: counts a step back,
    /// or keeps `now` as the newest.
    #[inline(always)]
    pub(crate) fn note_time_on(&self, line: &OwnerLine, now: u64) {
        let newest = line.get(LineCounter::Newest);
        // One comparison finds both earlier times and times more than a grain later, because the
        // difference wraps.
        if now.wrapping_sub(newest) > GRAIN {
            self.clock_moved(line, now, newest);
        }
    }

    // This is inlined, because a call would make every request save its registers.
    #[inline(always)]
    fn clock_moved(&self, line: &OwnerLine, now: u64, newest: u64) {
        if now > newest {
            line.set(LineCounter::Newest, now);
        } else if newest - now > GRAIN {
            self.count(ShardCounter::BackwardSteps);
        }
    }

    /// [`Memory::note_time_on`] for a thread without a line, or for a call that is not under one
    /// policy.
    #[inline]
    pub(crate) fn note_time(&self, now: u64) {
        self.shard().note_time(now);
    }

    /// The newest time of all callers' requests, to within [`GRAIN`].
    pub(crate) fn newest_time(&self) -> u64 {
        let shared =
            self.shards().iter().map(|shard| shard.get(ShardCounter::Newest)).max().unwrap_or(0);
        self.lines().iter().map(|line| line.get(LineCounter::Newest)).fold(shared, u64::max)
    }
}
