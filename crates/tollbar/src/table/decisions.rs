//! Decisions, counted by policy and verdict.
//!
//! Each call that decides counts once, when it knows its answer: on the calling thread's own line ([`super::lines`]), or without one
//! on a counter that others share, by a locked addition. Every way to an answer ends in one of the functions here, or in
//! [`Line::count`] on the short way.
//!
//! A peek decides nothing and is not counted. Neither is a request that ends in an error.

use super::counts::{number, Count};
use super::layout::PARTS;
use super::lines::{self, Line, Of};
use super::{PolicyId, Table, TableError, POLICIES_MOST};
use crate::decision::{Counts, Verdict};
use crate::sync::Ordering;

/// A thread without a line looks for one again after so many decisions under its policy, of all threads without one.
const LOOKS_AGAIN: u64 = 1 << 16;

impl Table {
    /// Decisions under a policy since the table was made, of all threads and processes. A process that was killed may miss those of
    /// the call that it was in.
    ///
    /// A call counts once, under the policy and the verdict that it is told: for a missing key and an exempt one, too, and for a
    /// newcomer that is refused because the table is full. Each request of a batch is one; [`Table::take_up_to`] counts as allowed if it
    /// took any, and as denied if not. [`Table::peek`] and errors do not count. A change of the policy leaves its counts.
    ///
    /// # Errors
    /// [`TableError::NoSuchPolicy`].
    pub fn counts(&self, policy: PolicyId) -> Result<Counts, TableError> {
        match self.has_policy(policy) {
            true => Ok(self.counts_where(|of| of == policy.number())),
            false => Err(TableError::NoSuchPolicy),
        }
    }

    pub(super) fn has_policy(&self, policy: PolicyId) -> bool {
        let current = self.header().current.get(policy.0 as usize);
        current.is_some_and(|stamp| stamp.load(Ordering::Relaxed) != 0)
    }

    pub(super) fn counts_of_all(&self) -> Counts {
        self.counts_where(|_| true)
    }

    fn counts_where(&self, is_it: impl Fn(u32) -> bool) -> Counts {
        let owned = || self.lines().iter().filter(|line| line.policy().is_some_and(&is_it));
        let unowned = |verdict: usize| {
            let policies = self.unowned_decisions().iter().flat_map(|part| part.iter().zip(0..));
            let counts = policies.filter(|(_, policy)| is_it(*policy)).filter_map(|(counts, _)| counts.get(verdict));
            counts.map(|count| count.load(Ordering::Relaxed)).fold(0, u64::wrapping_add)
        };
        // Wrapping: in damaged memory they may be anything.
        let of = |verdict| lines::sum(owned(), Of::verdict(verdict)).wrapping_add(unowned(verdict as usize));
        Counts { allowed: of(Verdict::Allowed), denied: of(Verdict::Denied), never: of(Verdict::Never) }
    }

    /// The calling thread's line under `policy`, if it is where most are.
    #[inline(always)]
    pub(super) fn line(&self, policy: u32) -> Option<&Line> {
        self.mine.near(policy)
    }

    /// The calling thread's line under `policy`; one is claimed if it has none. `None`: there is none to be had.
    #[inline(always)]
    pub(super) fn line_or_claim(&self, policy: u32) -> Option<&Line> {
        match self.line(policy) {
            Some(line) => Some(line),
            None => self.mine.find(policy, self.lines()),
        }
    }

    /// Counts a decision.
    #[inline(always)]
    pub(super) fn count_decision(&self, policy: u32, verdict: Verdict) {
        match self.line(policy) {
            Some(line) => line.count(verdict),
            None => self.count_apart(policy, verdict),
        }
    }

    /// Counts a key that was put into a slot and allowed.
    #[inline(always)]
    pub(super) fn count_newcomer(&self, policy: u32, of: Of) {
        match self.line(policy) {
            Some(line) => {
                line.add(of);
                line.count(Verdict::Allowed);
            }
            None => self.count_newcomer_apart(policy, of),
        }
    }

    #[inline(never)]
    fn count_newcomer_apart(&self, policy: u32, of: Of) {
        let count = if of == Of::Inserted { Count::Inserted } else { Count::Reclaimed };
        self.shard().add(count, 1);
        self.count_apart(policy, Verdict::Allowed);
    }

    /// Counts a decision under a policy that the caller made itself: one that refuses a request because of a peek, so that no call has
    /// counted it.
    ///
    /// # Errors
    /// [`TableError::NoSuchPolicy`].
    pub fn count_decided(&self, policy: PolicyId, verdict: Verdict) -> Result<(), TableError> {
        match self.has_policy(policy) {
            true => {
                self.count_decision(policy.0, verdict);
                Ok(())
            }
            false => Err(TableError::NoSuchPolicy),
        }
    }

    /// Counts a decision for which the table was not asked, if there is such a policy.
    #[cold]
    pub(super) fn count_unasked(&self, policy: PolicyId, verdict: Verdict) {
        if self.has_policy(policy) {
            self.count_decision(policy.0, verdict);
        }
    }

    /// Counts decisions of one call.
    #[inline(never)]
    pub(super) fn count_many(&self, policy: u32, allowed: u64, denied: u64) {
        match self.line_or_claim(policy) {
            Some(line) => {
                line.add_many(Of::Allowed, allowed);
                line.add_many(Of::Denied, denied);
            }
            None => {
                self.count_unowned(policy, Verdict::Allowed, allowed);
                self.count_unowned(policy, Verdict::Denied, denied);
            }
        }
    }

    /// Where the thread's line must be looked for.
    #[inline(never)]
    fn count_apart(&self, policy: u32, verdict: Verdict) {
        match self.line_or_claim(policy) {
            Some(line) => line.count(verdict),
            None => self.count_unowned(policy, verdict, 1),
        }
    }

    /// For a thread that has no line.
    #[cold]
    fn count_unowned(&self, policy: u32, verdict: Verdict, n: u64) {
        let part = self.unowned_decisions().get(number() % PARTS);
        let counts = part.and_then(|part| part.get(policy as usize % POLICIES_MOST));
        let Some(count) = counts.and_then(|counts| counts.get(verdict as usize)) else { return };
        // Lines become free when processes end.
        let before = count.fetch_add(n, Ordering::Relaxed);
        if before / LOOKS_AGAIN != before.wrapping_add(n) / LOOKS_AGAIN {
            self.mine.look_again(policy);
        }
    }

    /// Looks at the callers' clock, by the thread's own line.
    #[inline(always)]
    pub(super) fn look_by(&self, line: &Line, now: u64) {
        let seen = line.get(Of::Newest);
        // One comparison for both sides: up to a grain after the newest time there is nothing to do.
        if now.wrapping_sub(seen) > super::counts::GRAIN {
            self.moved(line, now, seen);
        }
    }

    #[cold]
    fn moved(&self, line: &Line, now: u64, seen: u64) {
        if now > seen {
            line.set(Of::Newest, now);
        } else if seen - now > super::counts::GRAIN {
            self.count(Count::BackwardSteps);
        }
    }

    /// Looks at the callers' clock, of a thread that has no line, or of a call that is not under one policy.
    #[inline]
    pub(super) fn look(&self, now: u64) {
        self.shard().look(now);
    }
}
