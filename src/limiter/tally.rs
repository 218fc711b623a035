//! Decisions of one limiter, counted by verdict.
//!
//! ```text
//! ┌─────────────────────────────────────┐
//! │ owner of line 0, 1, 2 …             │   four cache lines, which threads mostly read
//! └─────────────────────────────────────┘
//!  32 lines, a cache line each             8 shared lines, a cache line each
//! ┌─────────┬────────┬───────┬───┐        ┌─────────┬────────┬───────┬───┐
//! │ allowed │ denied │ never │ 0 │        │ allowed │ denied │ never │ 0 │
//! └─────────┴────────┴───────┴───┘        └─────────┴────────┴───────┴───┘
//!   the owner's decisions                   of threads that own no line
//!
//!   owner = a thread pointer; 0: free
//! ```
//!
//! A thread claims a free line by one compare-and-swap and keeps it as long as the limiter lives.
//! Only the owner adds to a line's words, so a plain instruction is exact. A thread that finds no
//! free line adds to the words of others by a locked instruction.
//!
//! The owners have cache lines of their own. A thread whose first place belongs to another thread
//! finds its line without a look at that thread's counts, which change with each decision.
//!
//! A thread that ends leaves its line to the next thread with its thread pointer. The C library
//! gives the memory at that address to a new thread only after the old one has ended, so a line
//! still has one writer.
//!
//! A child of a fork continues in its own copy of the limiter. Two processes must not count in the
//! same memory: a child's thread has the thread pointer of the parent's thread that forked, and one
//! of two plain additions could be lost.

use super::thread::{find_or_claim, place, pointer, FREE, NOBODY};
use crate::decision::{Counts, Decision, Reason, Reasons, Verdict};
use crate::sync::{bump, rarely, AtomicU64, CachePadded, Ordering};
use core::marker::PhantomData;

/// The number of lines, each of which one thread owns. A power of two.
pub(super) const LINES: usize = if cfg!(loom) { 2 } else { 32 };
/// The number of lines that all further threads share. A power of two.
const SHARED: usize = if cfg!(loom) { 1 } else { 8 };
/// Verdicts.
const WORDS: usize = 3;

#[derive(Debug, Default)]
#[repr(C, align(64))]
struct TallyLine {
    words: [AtomicU64; WORDS],
}

/// The line of the thread that found it. It is no `Send`, because only that thread may add to it.
pub(super) struct OwnLine<'a>(&'a TallyLine, PhantomData<*const ()>);

/// Decisions by verdict.
#[derive(Debug)]
pub(super) struct Tally {
    owners: CachePadded<[AtomicU64; LINES]>,
    lines: [TallyLine; LINES],
    others: [TallyLine; SHARED],
    /// Counts of decisions by [`Reason::counter`]. All threads share them, because these reasons
    /// are rare.
    reasons: [AtomicU64; Reasons::FIELDS],
}

impl Default for Tally {
    fn default() -> Tally {
        // The derived code would be a third of a kilobyte, because it would make each line
        // separately.
        Tally {
            owners: CachePadded::new(core::array::from_fn(|_| AtomicU64::new(FREE))),
            lines: core::array::from_fn(|_| TallyLine::default()),
            others: core::array::from_fn(|_| TallyLine::default()),
            reasons: core::array::from_fn(|_| AtomicU64::new(0)),
        }
    }
}

#[cfg(not(loom))]
const _: () =
    assert!(LINES.is_power_of_two() && SHARED.is_power_of_two() && size_of::<TallyLine>() == 64);

// Relaxed throughout: a count publishes no other data.
impl Tally {
    /// Counts a decision of the calling thread, and returns it.
    #[inline(always)]
    pub(super) fn count(&self, verdict: Verdict) -> Verdict {
        self.count_as(pointer(), verdict)
    }

    /// The calling thread's line. `None`: the thread does not own its first place, or not yet. The
    /// caller then counts by [`Tally::count`].
    #[inline(always)]
    pub(super) fn own_line(&self) -> Option<OwnLine<'_>> {
        let who = pointer();
        let place = place(who, LINES);
        if self.owner(place).load(Ordering::Relaxed) != who {
            rarely();
            return None;
        }
        Some(OwnLine(self.line(place), PhantomData))
    }

    /// Counts a call that took `permits`: as allowed if it took any, otherwise as denied.
    pub(super) fn count_taken(&self, permits: u64) {
        let _ = self.count(if permits == 0 { Verdict::Denied } else { Verdict::Allowed });
    }

    /// Counts a decision by its verdict and its reason.
    #[inline]
    pub(super) fn count_with_reason(&self, decision: &Decision) {
        let _ = self.count(decision.verdict);
        if decision.reason != Reason::of(decision.verdict) {
            self.count_reason(decision.reason);
        }
    }

    /// Counts the reason of a decision that another call has counted by its verdict.
    #[inline(never)]
    pub(super) fn count_reason(&self, reason: Reason) {
        if let Some(count) = reason.counter().and_then(|counter| self.reasons.get(counter)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The decisions by reason.
    pub(super) fn reasons(&self) -> Reasons {
        Reasons::by_counter(|counter| {
            self.reasons.get(counter).map_or(0, |count| count.load(Ordering::Relaxed))
        })
    }

    /// The sums.
    pub(super) fn counts(&self) -> Counts {
        let of = |verdict: Verdict| {
            let words = self
                .lines
                .iter()
                .chain(&self.others)
                .filter_map(|line| line.words.get(verdict as usize));
            words.map(|word| word.load(Ordering::Relaxed)).fold(0, u64::wrapping_add)
        };
        Counts {
            allowed: of(Verdict::Allowed),
            denied: of(Verdict::Denied),
            never: of(Verdict::Never),
        }
    }

    #[inline(always)]
    fn count_as(&self, who: u64, verdict: Verdict) -> Verdict {
        let place = place(who, LINES);
        if self.owner(place).load(Ordering::Relaxed) != who {
            rarely();
            // Called last, with the verdict for its answer: the caller saves no register for this.
            return self.count_slow(who, verdict);
        }
        self.line(place).add(verdict);
        verdict
    }

    /// [`Tally::count`] for a thread that does not own its first place, or not yet.
    #[inline(never)]
    fn count_slow(&self, who: u64, verdict: Verdict) -> Verdict {
        let first = place(who, LINES);
        let own = match who {
            NOBODY => None,
            _ => find_or_claim(who, first..first.wrapping_add(LINES), |at| self.owner(at)),
        };
        match own {
            Some(place) => self.line(place).add(verdict),
            None => {
                let others = self.others.get(first & (SHARED - 1));
                if let Some(word) = others.and_then(|line| line.words.get(verdict as usize)) {
                    word.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        // The compiler does not see that this is the argument. If it did, each caller would save
        // its copy of the verdict across this call.
        core::hint::black_box(verdict)
    }

    /// The owner of the line of this number, modulo their number.
    #[inline(always)]
    fn owner(&self, number: usize) -> &AtomicU64 {
        // SAFETY: below their number, which is a power of two.
        unsafe { self.owners.get_unchecked(number & (LINES - 1)) }
    }

    /// The line of this number, modulo their number.
    #[inline(always)]
    fn line(&self, number: usize) -> &TallyLine {
        // SAFETY: below their number, which is a power of two.
        unsafe { self.lines.get_unchecked(number & (LINES - 1)) }
    }
}

impl OwnLine<'_> {
    /// Counts a decision of a fast path, which allows or denies, and returns it.
    #[inline(always)]
    pub(super) fn counted(self, verdict: Verdict) -> Verdict {
        match verdict {
            // A known verdict's count has a fixed place in its line, which takes fewer
            // instructions.
            Verdict::Allowed => self.0.add(Verdict::Allowed),
            _ => self.0.add(Verdict::Denied),
        }
        verdict
    }
}

impl TallyLine {
    /// Adds one. Only the owner may.
    #[inline(always)]
    fn add(&self, verdict: Verdict) {
        // SAFETY: there is a word for each of the three verdicts, 0 to 2.
        bump(unsafe { self.words.get_unchecked(verdict as usize) });
    }
}

const _: () = assert!(
    Verdict::Allowed as usize == 0
        && Verdict::Denied as usize == 1
        && Verdict::Never as usize == WORDS - 1
);

#[cfg(all(test, not(loom)))]
mod tests;

#[cfg(all(test, loom))]
mod models;
