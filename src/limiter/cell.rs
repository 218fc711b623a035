//! One word, one compare-and-swap.
//!
//! The functions here step a bare [`AtomicU64`] of any owner. [`Cell`] is such a word on its own
//! cache line, with its algorithm.
//!
//! Decisions use Relaxed orderings: the word is the whole state of a decision, and its modification
//! order orders any two admissions. Exactness needs no more. Bookings and give-backs use Release,
//! and a give-back reads with Acquire: it must see the flag of bookings and the highest word that
//! were written before the word that it reads.

mod returns;

pub use super::fast::Quick;

use super::fast::{CellLine, Fast, Tried};
use super::gaps::Gaps;
use super::waiting::{after_first, last_by_steps};
use super::{Shared, Watch};
use crate::algorithm::gcra::Plain;
use crate::algorithm::pair::{OneStep, Pair};
use crate::algorithm::{
    begun, describe_leaving, describe_small, step_leaving, Algorithm, Charge, Charged, Rule, Step,
};
use crate::decision::{Decision, Verdict};
use crate::policy::{Classes, PolicyError};
use crate::sync::{AtomicU64, CachePadded, Ordering, Word};

/// Decides on a request and stores the next state. Returns the verdict and the state after it. A
/// refusal that keeps the state only loads it.
#[inline(always)]
pub fn step<A: Algorithm>(word: &AtomicU64, algorithm: &A, now: u64, cost: u64) -> (Verdict, u64) {
    apply(word, |state| algorithm.step(state, now, cost), |_| ())
}

/// [`step`] of a rule chosen at run time. The usual case, a token bucket whose word no other call
/// changes meanwhile, is inlined and saves no registers.
#[doc(hidden)]
#[inline(always)]
pub fn admit(word: &AtomicU64, rule: &Rule, now: u64, cost: u64) -> Verdict {
    if let Some(plain) = rule.plain() {
        let state = word.load(Ordering::Relaxed);
        match plain.step(state, now, cost) {
            Some(None) => return Verdict::Denied,
            Some(Some(next))
                if word.exchange(state, next, Ordering::Relaxed, Ordering::Relaxed).is_ok() =>
            {
                return Verdict::Allowed
            }
            Some(Some(_)) | None => {}
        }
    }
    step_out_of_line(word, rule, now, cost).0
}

/// [`step`] out of line, for callers that would otherwise each have a copy of its code.
#[doc(hidden)]
#[inline(never)]
pub fn step_out_of_line<A: Algorithm>(
    word: &AtomicU64,
    algorithm: &A,
    now: u64,
    cost: u64,
) -> (Verdict, u64) {
    apply(word, |state| step_small(algorithm, state, now, cost), |_| ())
}

/// Applies `step` to the word. Calls `changed` with the verdict if that changed the word.
#[inline(always)]
fn apply(
    word: &impl Word,
    step: impl Fn(u64) -> Step,
    changed: impl FnOnce(Verdict),
) -> (Verdict, u64) {
    let mut state = word.load(Ordering::Relaxed);
    loop {
        let Step { verdict, next } = step(state);
        let Some(next) = next else { return (verdict, state) };
        match word.exchange_weak(state, next, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => {
                changed(verdict);
                return (verdict, next);
            }
            Err(seen) => state = seen,
        }
    }
}

/// A step. It is out of line in the freestanding artefacts, to keep them small.
#[cfg_attr(feature = "small", inline(never))]
#[cfg_attr(not(feature = "small"), inline(always))]
fn step_small<A: Algorithm>(algorithm: &A, state: u64, now: u64, cost: u64) -> Step {
    algorithm.step(state, now, cost)
}

/// [`Shared::check_at`] on a bare word.
#[inline(never)]
pub fn check<A: Algorithm>(word: &AtomicU64, algorithm: &A, now: u64, cost: u64) -> Decision {
    let (verdict, state) = step_out_of_line(word, algorithm, now, cost);
    describe_small(algorithm, verdict, state, now, cost)
}

/// [`Shared::peek_at`] on a bare word.
#[inline]
pub fn peek<A: Algorithm>(word: &impl Word, algorithm: &A, now: u64, cost: u64) -> Decision {
    let state = word.load(Ordering::Relaxed);
    let step = step_small(algorithm, state, now, cost);
    describe_small(algorithm, step.verdict, algorithm.described(step, state), now, cost)
}

/// [`Shared::take_up_to_at`] on a bare word.
#[inline]
pub fn take_up_to<A: Algorithm>(word: &impl Word, algorithm: &A, now: u64, most: u64) -> u64 {
    let mut state = word.load(Ordering::Relaxed);
    loop {
        let take = match algorithm.available(state, now).min(most).min(algorithm.largest()) {
            // A bucket that starts empty begins to fill at its first request. A request of cost 1
            // begins it here.
            0 if state == 0 => most.min(1),
            // A cost of 0 changes nothing: the call returns 0 below.
            take => take,
        };
        let Step { verdict, next: Some(next) } = step_small(algorithm, state, now, take) else {
            return 0;
        };
        match word.exchange_weak(state, next, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) if verdict == Verdict::Allowed => return take,
            Ok(_) => return 0,
            Err(seen) => state = seen,
        }
    }
}

/// [`Shared::reserve_at`] on a bare word. Calls `ahead` before it books permits for a later time
/// than `now`.
#[inline]
pub(super) fn reserve<A: Algorithm>(
    word: &impl Word,
    algorithm: &A,
    now: u64,
    cost: u64,
    until: u64,
    ahead: impl Fn(),
) -> Option<u64> {
    let mut state = word.load(Ordering::Relaxed);
    loop {
        let Some(booked) = algorithm.reserve(state, now, cost).filter(|booked| booked.at <= until)
        else {
            if let Some(next) = begun(algorithm, state, now, cost) {
                // If the swap fails, another call has begun the bucket.
                let _ = word.exchange(state, next, Ordering::Relaxed, Ordering::Relaxed);
            }
            return None;
        };
        if cost == 0 {
            return Some(now);
        }
        if booked.at > now {
            ahead();
        }
        // Release: a thread that reads this word, or a word that later swaps made of it, with
        // Acquire also sees what `ahead` wrote.
        match word.exchange_weak(state, booked.next, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => return Some(booked.at),
            Err(seen) => state = seen,
        }
    }
}

/// [`Shared::charge_at`] on a bare word.
#[inline]
pub(crate) fn charge<A: Algorithm>(word: &impl Word, algorithm: &A, now: u64, cost: u64) -> u64 {
    let mut state = word.load(Ordering::Relaxed);
    loop {
        let Charged { next, rest } = algorithm.charge(state, now, cost);
        let Some(next) = next else { return rest };
        match word.exchange_weak(state, next, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return rest,
            Err(seen) => state = seen,
        }
    }
}

/// A one-word state on its own cache line, with its algorithm. Any number of threads may call at
/// once.
#[derive(Debug)]
pub struct Cell<A> {
    line: CachePadded<CellLine>,
    algorithm: A,
    /// The classes of a limiter's policy.
    classes: Classes,
    gaps: Gaps,
}

impl<A: Algorithm> Cell<A> {
    /// A fresh state.
    pub fn new(algorithm: A) -> Cell<A> {
        Cell {
            line: CachePadded::new(CellLine::default()),
            algorithm,
            classes: Classes::NONE,
            gaps: Gaps::default(),
        }
    }

    /// The algorithm.
    pub fn algorithm(&self) -> &A {
        &self.algorithm
    }

    /// The state word, for export; [`Cell::set_word`] puts it back.
    pub fn word(&self) -> u64 {
        // Acquire: for `has_booked`.
        self.line.words.first().load(Ordering::Acquire)
    }

    /// Sets the state word to one that [`Cell::word`] returned for the same policy and clock.
    pub fn set_word(&self, word: u64) {
        self.gaps.forget();
        if self.lower(|_| Some((word, ()))).is_none() {
            // Without the swap no permits go back, so no call depends on the number.
            let _ = apply(self.line.words.first(), |_| Step::allow(word), |_| ());
        }
    }

    /// Whether permits have ever been booked for a later time than that of their call. A caller
    /// that has called [`Cell::word`] before sees every booking that is in that word.
    pub fn has_booked(&self) -> bool {
        // Relaxed: a booking sets the flag before it swaps the word, with Release. The Relaxed
        // swaps of other calls in between are read-modify-writes, so they hand that Release on.
        self.line.booked.load(Ordering::Relaxed) != 0
    }

    /// [`Fast::quick`] of a token bucket.
    #[cfg(not(loom))]
    #[inline(always)]
    pub(super) fn quick<'a>(&'a self, plain: &'a Plain) -> Quick<'a> {
        Quick { line: &self.line, plain }
    }

    #[inline(always)]
    fn watched(&self, now: u64, step: impl Fn(u64) -> Step) -> (Verdict, u64) {
        self.line.watch.note(now);
        apply(self.line.words.first(), step, |verdict| {
            if verdict == Verdict::Allowed {
                self.line.watch.admitted(now);
            }
        })
    }
}

impl Cell<Rule> {
    /// A fresh state of a limiter, with a fast path if the rule is a token bucket.
    pub(super) fn of_limiter(rule: Rule, classes: Classes) -> Cell<Rule> {
        let cell = Cell { classes, ..Cell::new(rule) };
        let end = match rule.pair() {
            Some(pair) => pair.one_end(),
            None => rule.plain().map_or(0, Plain::end),
        };
        cell.line.quick_end.store(end, Ordering::Relaxed);
        cell
    }

    /// [`Fast::admit_pair_at`].
    #[inline(always)]
    pub(super) fn admit_pair_at(&self, pair: &Pair, now: u64) -> Tried {
        let CellLine { words, watch, quick_end, .. } = &*self.line;
        let word = words.first();
        // Relaxed: as in `Quick::admit_at`.
        if watch.is_newer_than(now) || now >= quick_end.load(Ordering::Relaxed) {
            return Tried::Other;
        }
        let state = word.load(Ordering::Relaxed);
        match pair.step_one(state, now) {
            OneStep::Admitted(next) => {
                self.commit_pair(state, next, now).map_or(Tried::Other, Tried::Decided)
            }
            OneStep::Refused => Tried::Decided(Verdict::Denied),
            OneStep::Other => Tried::Full,
        }
    }

    /// [`Fast::start_pair_at`], after [`Cell::admit_pair_at`] has checked the time.
    #[inline(always)]
    pub(super) fn start_pair_at(&self, pair: &Pair, now: u64) -> Option<Verdict> {
        // Relaxed: as in `Quick::admit_at`.
        let state = self.line.words.first().load(Ordering::Relaxed);
        match pair.start_one(state, now) {
            OneStep::Admitted(next) => self.commit_pair(state, next, now),
            OneStep::Refused | OneStep::Other => None,
        }
    }

    #[inline(always)]
    fn commit_pair(&self, state: u64, next: u64, now: u64) -> Option<Verdict> {
        self.line.words.first().exchange(state, next, Ordering::Relaxed, Ordering::Relaxed).ok()?;
        self.line.watch.admitted_newest(now);
        Some(Verdict::Allowed)
    }

    /// [`Limiter::check_leaving_at`](super::Limiter::check_leaving_at).
    pub(super) fn check_leaving_at(&self, now: u64, cost: u64, reserve: u64) -> Decision {
        let (verdict, state) =
            self.watched(now, |state| step_leaving(&self.algorithm, state, now, cost, reserve));
        describe_leaving(&self.algorithm, verdict, state, now, cost, reserve)
    }

    /// [`Shared::reserve_of`].
    pub(super) fn reserve_of(&self, class: &[u8]) -> Result<u64, PolicyError> {
        self.classes.reserve(class).ok_or(PolicyError::NoSuchClass)
    }

    /// [`Shared::peek_leaving_at`].
    pub(super) fn peek_leaving_at(&self, now: u64, cost: u64, reserve: u64) -> Decision {
        let state = self.line.words.first().load(Ordering::Relaxed);
        let step = step_leaving(&self.algorithm, state, now, cost, reserve);
        let described = self.algorithm.described(step, state);
        describe_leaving(&self.algorithm, step.verdict, described, now, cost, reserve)
    }

    /// Closes the fast path.
    pub(super) fn retire(&self) {
        self.line.quick_end.store(0, Ordering::Relaxed);
    }
}

impl<A: Algorithm> Fast for Cell<A> {
    #[inline(always)]
    fn admit_without_credit_at(&self, now: u64, cost: u64) -> Verdict {
        self.admit_at(now, cost)
    }
}

impl<A: Algorithm> Shared for Cell<A> {
    #[inline]
    fn admit_at(&self, now: u64, cost: u64) -> Verdict {
        self.watched(now, |state| self.algorithm.step(state, now, cost)).0
    }

    #[inline]
    fn check_at(&self, now: u64, cost: u64) -> Decision {
        let (verdict, state) =
            self.watched(now, |state| step_small(&self.algorithm, state, now, cost));
        describe_small(&self.algorithm, verdict, state, now, cost)
    }

    #[inline]
    fn peek_at(&self, now: u64, cost: u64) -> Decision {
        peek(self.line.words.first(), &self.algorithm, now, cost)
    }

    fn peek_uncounted_at(&self, now: u64, cost: u64) -> Decision {
        let state = self.word();
        let step = step_small(&self.algorithm, state, now, cost);
        describe_small(&self.algorithm, step.verdict, state, now, cost)
    }

    #[inline]
    fn take_up_to_at(&self, now: u64, most: u64) -> u64 {
        self.line.watch.note(now);
        let taken = take_up_to(self.line.words.first(), &self.algorithm, now, most);
        if taken != 0 {
            self.line.watch.admitted(now);
        }
        taken
    }

    fn reserve_at(&self, now: u64, cost: u64, until: u64) -> Option<u64> {
        let word = self.line.words.first();
        if self.gaps.exist() {
            // The instant that the state would give.
            let other =
                self.algorithm.reserve(self.word(), now, cost).map_or(u64::MAX, |booked| booked.at);
            if let Some(at) = self.gaps.take_earliest(now, cost, other.min(until.saturating_add(1)))
            {
                return Some(at);
            }
        }
        reserve(word, &self.algorithm, now, cost, until, || {
            self.line.booked.store(1, Ordering::Relaxed)
        })
    }

    fn charge_at(&self, now: u64, cost: u64) -> u64 {
        self.line.watch.note(now);
        charge(self.line.words.first(), &self.algorithm, now, cost)
    }

    fn books_ahead(&self) -> bool {
        self.algorithm.books_ahead()
    }

    fn refill(&self) -> Option<u64> {
        self.algorithm.refill()
    }

    fn give_back(&self, charge: Charge, permits: u64, now: impl Fn() -> u64) -> u64 {
        self.return_permits(charge, permits, &now)
    }

    fn last_of(&self, now: u64, costs: &mut dyn Iterator<Item = u64>, until: u64) -> u64 {
        // A first request may take a gap.
        let gaps = if self.gaps.exist() { self.gaps.permits(now) } else { 0 };
        last_by_steps(&self.algorithm, self.word(), now, &mut after_first(gaps, costs), until)
    }

    fn bans(&self, now: u64) -> bool {
        self.algorithm.bans(self.word(), now)
    }

    fn counts_refusals(&self) -> bool {
        self.algorithm.counts_refusals()
    }

    fn reset(&self) {
        self.set_word(0);
    }

    fn watch(&self) -> &Watch {
        &self.line.watch
    }
}
