//! Two token buckets in one word: "10 a second and 1000 a day" of one key.
//!
//! Each bucket is a [`super::gcra`]: a theoretical arrival time (TAT), at which it is full again.
//! Both TATs are whole numbers of *steps*. A step is a length of time that divides each bucket's
//! time per permit, so charges are exact. The word is
//!
//! ```text
//! TAT of the slow bucket   | that TAT minus the TAT of the fast one
//! ```
//!
//! The slow bucket is the one that takes longer to refill a permit. Its TAT is never before the
//! fast one's, because both start from the same clock and each charge moves the slow one further.
//! So the difference is never negative, and the word expires when the slow bucket is full.
//!
//! A request of cost `n` is admitted if neither TAT, moved `n` permits ahead, is more than its
//! burst after the clock. TATs are whole steps, so the clock rounded down decides this exactly as
//! the exact clock does. A TAT that lies in the past moves ahead from the clock rounded up. So the
//! pair never admits what two exact buckets refuse, and each TAT is later than the exact one by
//! less than a step.
//!
//! Permits can be given back to both buckets (`pair/give_back.rs`).
//!
//! Most admitted in any interval of length t: for each of the two, `burst + limit/period · t`.

mod bucket;
mod fit;
mod give_back;
mod one;
mod start;
mod steps;

pub(crate) use one::OneStep;
pub use start::Pair;

use super::facts::{bucket, Charging, Facts};
use super::{until, Algorithm, Charge, Charged, GiveBack, Reservation, Returned, Step};
use crate::decision::{Decision, Reason, Verdict};
use crate::policy::{Kind, Policy, PolicyError};
use crate::units::{LAST, NEVER};
use bucket::TokenBucket;
use start::{Tats, WordAt};
use steps::StepReading;

impl Pair {
    /// Compiles a policy with a second rate ([`Policy::second`]).
    ///
    /// # Errors
    /// [`PolicyError::OptionMismatch`] for any other policy, [`PolicyError::List`] if one word
    /// cannot hold both, and those of [`Policy::validate`].
    pub fn new(policy: &Policy) -> Result<Pair, PolicyError> {
        policy.validate()?;
        let Some(second) = policy.second.filter(|_| policy.kind == Kind::Gcra && policy.limit != 0)
        else {
            return Err(PolicyError::OptionMismatch);
        };
        Pair::of(policy.rate(), second).ok_or(PolicyError::List)
    }

    /// [`Pair::step_one`] decides at clock readings below this one. 0: at none.
    #[inline(always)]
    pub(crate) fn one_end(&self) -> u64 {
        self.one.end
    }

    /// [`Algorithm::step`] of one permit at a clock reading below [`Pair::one_end`], if both
    /// buckets owe.
    #[inline(always)]
    pub(crate) fn step_one(&self, state: u64, now: u64) -> OneStep {
        self.one.step(state, now)
    }

    /// [`Algorithm::step`] of one permit at such a clock reading, where [`Pair::step_one`] does not
    /// decide.
    #[inline(always)]
    pub(crate) fn start_one(&self, state: u64, now: u64) -> OneStep {
        self.one.start(state, now)
    }

    /// [`Algorithm::step`] in every case, that of [`Pair::step_one`] included.
    #[inline(always)]
    fn step_any(&self, state: u64, now: u64, cost: u64) -> Step {
        // A cost of 0 wraps to u64::MAX, so one comparison finds both a cost of 0 and a cost above
        // the burst.
        if cost.wrapping_sub(1) >= self.burst {
            return if cost == 0 { Step::ask() } else { Step::never() };
        }
        if now > LAST {
            return Step::deny();
        }
        let clock = self.steps.clock(now);
        let word = self.word_at(state, clock);
        let tats = self.seen(word, clock);
        // TATs and the clock are below 2^63, and tolerances below 2^61: no sum wraps.
        if tats.fast.wrapping_add(self.fast.charge(cost))
            > clock.down.wrapping_add(self.fast.tolerance)
            || tats.slow.wrapping_add(self.slow.charge(cost))
                > clock.down.wrapping_add(self.slow.tolerance)
        {
            return Step::deny();
        }
        let (tats, count) = self.charge_both(word, clock, cost, cost);
        Step::allow(self.pack_counted(tats, count))
    }

    /// The TATs that a request at this clock reading sees.
    fn seen_at(&self, state: u64, clock: StepReading) -> Tats {
        self.seen(self.word_at(state, clock), clock)
    }

    /// Nanoseconds of a step, as a fraction in lowest terms.
    pub const fn step_length(&self) -> (u64, u64) {
        (self.steps.nanos, self.steps.per.get())
    }

    /// The slow bucket starts to be charged at a multiple of this many steps: 1, or a power of two
    /// of at least the fast bucket's burst. In the second case the word tells when the fast bucket
    /// started, whether the slow one owes or not.
    pub const fn slow_steps(&self) -> u64 {
        self.start.grid()
    }

    /// The word of a key that moves from `old` and the first of `times` to this pair and the
    /// second. `lacks` says how many permits a new bucket lacks where the old one, which is not
    /// full, lacks the given number.
    #[inline(never)]
    fn moved(
        &self,
        old: &Pair,
        state: u64,
        times: (u64, u64),
        lacks: fn(&TokenBucket, &TokenBucket, u64) -> u64,
    ) -> u64 {
        let (there, here) = times;
        if here > LAST || there > LAST {
            return state;
        }
        let (clock, start) = (old.steps.clock(there), self.steps.clock(here));
        let tats = old.seen_at(state, clock);
        let lacking = |new: &TokenBucket, old: &TokenBucket, tat: u64| match old.lacking(tat, clock)
        {
            0 => 0,
            permits => lacks(new, old, permits),
        };
        let lacks = |new: &TokenBucket, old: &TokenBucket, tat: u64| {
            lacking(new, old, tat).min(new.burst.saturating_mul(2))
        };
        let (fast, slow) =
            (lacks(&self.fast, &old.fast, tats.fast), lacks(&self.slow, &old.slow, tats.slow));
        if state == 0 || (fast, slow) == (0, 0) {
            return 0;
        }
        let fresh = WordAt { tats: Tats { fast: 0, slow: 0 }, here: None };
        let (mut tats, count) = self.charge_both(fresh, start, fast, slow);
        if fast == 0 {
            tats.fast = start.down;
        }
        self.pack_charged(tats, count, (fast, slow), start)
    }

    /// Which policy of the list bound a decision, 0 or 1. For a refusal it is the one with the
    /// longer wait, and for an admission the one with fewer permits left. If both are equal, it is
    /// the first.
    pub(super) fn bound(&self, verdict: Verdict, state: u64, now: u64, cost: u64) -> u32 {
        let clock = self.steps.clock(now.min(LAST));
        let tats = self.unpack(state);
        let order = match verdict {
            Verdict::Allowed => {
                let tats = self.seen_at(state, clock);
                self.fast
                    .available(tats.fast, clock)
                    .cmp(&self.slow.available(tats.slow, clock))
                    .reverse()
            }
            Verdict::Denied => self.fast.due(tats.fast, cost).cmp(&self.slow.due(tats.slow, cost)),
            Verdict::Never => (cost > self.fast.burst).cmp(&(cost > self.slow.burst)),
        };
        match order {
            core::cmp::Ordering::Less => u32::from(!self.slow_first),
            core::cmp::Ordering::Greater => u32::from(self.slow_first),
            core::cmp::Ordering::Equal => 0,
        }
    }
}

impl Algorithm for Pair {
    fn last_time(&self) -> u64 {
        LAST
    }

    fn books_ahead(&self) -> bool {
        true
    }

    #[inline(always)]
    fn step(&self, state: u64, now: u64, cost: u64) -> Step {
        if cost == 1 && now < self.one.end {
            match self.one.step(state, now) {
                OneStep::Admitted(next) => return Step::allow(next),
                OneStep::Refused => return Step::deny(),
                OneStep::Other => {}
            }
            if let OneStep::Admitted(next) = self.one.start(state, now) {
                return Step::allow(next);
            }
        }
        self.step_any(state, now, cost)
    }

    fn available(&self, state: u64, now: u64) -> u64 {
        if now > LAST {
            return 0;
        }
        let clock = self.steps.clock(now);
        let tats = self.seen_at(state, clock);
        self.fast.available(tats.fast, clock).min(self.slow.available(tats.slow, clock))
    }

    fn admits_at(&self, state: u64, now: u64, cost: u64) -> u64 {
        match cost {
            0 => now,
            _ if cost > self.burst => NEVER,
            _ if self.step_any(state, now, cost).verdict == Verdict::Allowed => now,
            _ => {
                let due = self.steps.nanos(self.due(self.unpack(state), cost)).max(now);
                // After a step back of the clock the step in which the buckets started is still to
                // come.
                let again = self.begins_again(state).filter(|at| (now..due).contains(at));
                let again =
                    again.filter(|at| self.step_any(state, *at, cost).verdict == Verdict::Allowed);
                until(LAST, again.unwrap_or(due))
            }
        }
    }

    fn fresh_at(&self, state: u64, now: u64) -> u64 {
        match state {
            0 => now,
            _ => until(LAST, self.steps.nanos(self.unpack(state).slow).max(now)),
        }
    }

    fn expires_at(&self, state: u64) -> u64 {
        match state {
            0 => 0,
            _ => self.length.over(self.unpack(state).slow, LAST),
        }
    }

    /// The word of a key that takes all permits at once, and whose slow bucket is full again at
    /// `until`. The fast bucket is full as much earlier as its whole burst refills faster.
    fn owing(&self, until: u64) -> u64 {
        let slow = if until > LAST { u64::MAX } else { self.steps.clock(until).up };
        let sooner = self.slow.tolerance.saturating_sub(self.fast.tolerance);
        let word = self.pack_later(slow.saturating_sub(sooner), slow, 0);
        match self.expires_at(word) {
            NEVER => self.pack_later(u64::MAX, u64::MAX, u64::MAX),
            _ => word,
        }
    }

    /// The instant at which both buckets have the permits. Both are charged from that instant on,
    /// because the request goes ahead then.
    fn reserve(&self, state: u64, now: u64, cost: u64) -> Option<Reservation> {
        if cost > self.burst || now > LAST {
            return None;
        }
        let at = self.admits_at(state, now, cost);
        if at == NEVER {
            return None;
        }
        let clock = self.steps.clock(at);
        let (next, count) = self.charge_both(self.word_at(state, clock), clock, cost, cost);
        let fits = next.slow <= self.most && next.slow.wrapping_sub(next.fast) >> self.low == 0;
        // A word has a mark for "both buckets were full when the running step began". The word of a
        // booking must not have it: a booking writes the step of its departure into the word, and
        // the mark would speak of that step.
        let next = match at > now {
            true => self.pack_later(next.fast, next.slow, self.steps.clock(now).up),
            false => self.pack_counted(next, count),
        };
        fits.then_some(Reservation { next, at })
    }

    fn last_booking(&self, state: u64, charge: Charge) -> Option<Reservation> {
        self.booked_last(state, charge)
    }

    fn give_back(&self, state: u64, now: u64, back: &GiveBack) -> Option<Returned> {
        self.lower(state, now, back)
    }

    /// The refill time of the slow bucket, because its permits come back last.
    fn refill(&self) -> Option<u64> {
        Some(self.steps.nanos(self.slow.permit.get()))
    }

    /// The slow bucket takes nothing back in a slot, so the list is charged last.
    fn refill_in_slots(&self) -> Option<u64> {
        None
    }

    /// Charges each bucket up to a debt of one burst. The rest is what one of them has no room for:
    /// bookings may have filled one, and not the other.
    fn charge(&self, state: u64, now: u64, cost: u64) -> Charged {
        if cost == 0 || now > LAST {
            return Charged::none(cost);
        }
        let clock = self.steps.clock(now);
        let word = self.word_at(state, clock);
        let fast = cost.min(self.fast.chargeable(word.tats.fast, clock));
        let slow = cost.min(self.slow.chargeable(word.tats.slow, clock));
        if fast == 0 && slow == 0 {
            return Charged::none(cost);
        }
        let (tats, count) = self.charge_both(word, clock, fast, slow);
        // If the slow bucket has no room for the cost, the word may have none for all that the fast
        // one could take.
        let tats = Tats { fast: tats.fast.min(tats.slow), ..tats };
        Charged {
            next: Some(self.pack_charged(tats, count, (fast, slow), clock)),
            rest: cost - fast.min(slow),
        }
    }

    fn describe(&self, verdict: Verdict, state: u64, now: u64, cost: u64) -> Decision {
        let bound = self.bound(verdict, state, now, cost);
        Decision {
            reason: Reason::of(verdict),
            bound,
            ..super::describe(self, verdict, state, now, cost)
        }
    }
}

impl Facts for Pair {
    fn keeps_reserves(&self) -> bool {
        true
    }

    fn words_are_times(&self) -> bool {
        true
    }

    /// The permits, rounded up, that the limit must refill before the first one can be taken.
    fn debt(&self, state: u64, now: u64) -> u64 {
        let clock = self.steps.clock(now.min(LAST));
        let tats = self.seen_at(state, clock);
        self.fast.debt(tats.fast, clock).max(self.slow.debt(tats.slow, clock))
    }

    fn charging(&self, _permits: u64, now: u64) -> Charging {
        Charging::Step(self.available(0, now))
    }

    /// Moves a word to this pair from `old`: each bucket keeps the time at which it is full.
    fn adopt(&self, old: &Pair, state: u64) -> Option<u64> {
        let slow = old.expires_at(state);
        if slow > LAST {
            return None;
        }
        let fast = old.steps.nanos(old.unpack(state).fast);
        Some(self.pack_later(self.steps.clock(fast.min(slow)).up, self.steps.clock(slow).up, 0))
    }

    /// Each bucket has as many permits left as before, rounded down, up to its new burst. A full
    /// bucket with a smaller new burst is full, and a debt stays as many permits, up to one burst.
    fn convert(&self, old: &Pair, state: u64, now: u64) -> Option<u64> {
        Some(self.moved(old, state, (now, now), |new, old, lacking| {
            let left = old.burst.saturating_sub(lacking);
            let debt = lacking.saturating_sub(old.burst);
            new.burst.saturating_sub(left).saturating_add(debt)
        }))
    }

    /// Each bucket lacks as many permits as before, but at most two of its bursts.
    fn carry(&self, old: &Pair, state: u64, there: u64, here: u64) -> Option<u64> {
        Some(self.moved(old, state, (there, here), |_, _, lacking| lacking))
    }

    fn explained(&self, decision: Decision, state: u64, now: u64, cost: u64) -> Decision {
        Decision { bound: self.bound(decision.verdict, state, now, cost), ..decision }
    }

    /// Both buckets begin full, so the one that admits less decides.
    fn most_in(&self, policy: &Policy, window: u64) -> u64 {
        let second = policy.second.map_or(u64::MAX, |second| bucket(None, second, window));
        bucket(None, policy.rate(), window).min(second)
    }
}
