//! The fast paths of states. A limiter tries those that its state has before it asks the state in
//! general.

use super::Watch;
use crate::algorithm::gcra::Plain;
use crate::decision::Verdict;
use crate::sync::{rarely, AtomicU32, AtomicU64, Ordering, TwoWords, Word};

/// What [`Fast::admit_pair_at`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tried {
    /// It decided.
    Decided(Verdict),
    /// A bucket may be full: the caller must call [`Fast::start_pair_at`].
    Full,
    /// The caller must call [`Shared::admit_at`](super::Shared::admit_at).
    Other,
}

/// The fast paths of a state. A state without one keeps the body of the trait.
pub trait Fast: Sync {
    /// The state as a token bucket whose threads take no permits in advance, if it is one.
    #[inline(always)]
    fn quick(&self) -> Option<Quick<'_>> {
        None
    }

    /// Whether the state is one word without credit.
    #[inline(always)]
    fn is_cell(&self) -> bool {
        false
    }

    /// Takes `cost` permits of the calling thread's credit from the one place that it reads,
    /// without reading the clock. The state counts the request ([`Fast::spent`]). `false`: the call
    /// has taken nothing, and the caller must call [`Fast::spend_in_other_places`].
    #[inline(always)]
    fn spend_quickly(&self, cost: u64) -> bool {
        let _ = cost;
        false
    }

    /// [`Fast::spend_quickly`] at the caller's time.
    #[inline(always)]
    fn spend_quickly_at(&self, now: u64, cost: u64) -> bool {
        let _ = (now, cost);
        false
    }

    /// [`Fast::spend_quickly`] from the other places of credit, which that call does not read.
    #[inline(always)]
    fn spend_in_other_places(&self, cost: u64) -> bool {
        let _ = cost;
        false
    }

    /// [`Shared::admit_at`](super::Shared::admit_at) for a thread whose credit has been found to be
    /// less than the cost.
    fn admit_without_credit_at(&self, now: u64, cost: u64) -> Verdict;

    /// Requests that [`Fast::spend_quickly`] and [`Fast::spend_in_other_places`] have admitted.
    fn spent(&self) -> u64 {
        0
    }

    /// One attempt to take one permit from a state of two token buckets that owe.
    #[inline(always)]
    fn admit_pair_at(&self, now: u64) -> Tried {
        let _ = now;
        Tried::Other
    }

    /// One attempt to take one permit from a state of two token buckets that may be full. `None`:
    /// nothing was decided, and the caller must call [`Shared::admit_at`](super::Shared::admit_at).
    #[inline(always)]
    fn start_pair_at(&self, now: u64) -> Option<Verdict> {
        let _ = now;
        None
    }
}

/// The words of a cell, on one cache line.
#[derive(Debug, Default)]
pub(super) struct CellLine {
    /// The state word, and the number of times that it was lowered (`cell/returns.rs`).
    pub(super) words: TwoWords,
    pub(super) watch: Watch,
    /// 1 once permits were booked for a later time than that of their call. It never becomes 0
    /// again.
    pub(super) booked: AtomicU32,
    /// The highest word that a give-back has lowered.
    pub(super) highest: AtomicU64,
    /// From this clock reading on the fast path does not decide. A limiter sets it to 0 when it
    /// puts another state in place of this one.
    pub(super) quick_end: AtomicU64,
}

/// A token bucket that decides the usual request in a few instructions.
#[derive(Debug)]
pub struct Quick<'a> {
    pub(super) line: &'a CellLine,
    pub(super) plain: &'a Plain,
}

impl Quick<'_> {
    /// [`Shared::admit_at`](super::Shared::admit_at) in the usual case, by one attempt to swap.
    /// `None`: nothing has been decided, and the caller calls that.
    #[inline(always)]
    pub(super) fn admit_at(&self, now: u64, cost: u64) -> Option<Verdict> {
        let CellLine { words, watch, quick_end, .. } = self.line;
        let word = words.first();
        if watch.is_newer_than(now) {
            rarely();
            return None;
        }
        let state = word.load(Ordering::Relaxed);
        // Relaxed: a call that reads the old value decides on this state, as a call does that began
        // before the change.
        let end = quick_end.load(Ordering::Relaxed);
        let Some(next) = self.plain.step_before(end, state, now, cost)? else {
            return Some(Verdict::Denied);
        };
        word.exchange(state, next, Ordering::Relaxed, Ordering::Relaxed).ok()?;
        watch.admitted(now);
        Some(Verdict::Allowed)
    }
}
