//! Interval refill: `limit` permits come back at the end of each period, up to `burst`, and none in
//! between.
//!
//! Aligned to time 0, the word counts permits: those refilled since time 0 plus those missing from
//! a full bucket. So it is a token bucket on a clock that moves in steps. Aligned to the first
//! request (`anchor first`, for `burst <= limit`), each period refills the whole bucket, and the
//! word is that of [`super::fixed_window`].
//!
//! Most admitted in any window of one period: `burst + limit` aligned to time 0 (a full bucket,
//! then a refill); `2 · burst` aligned to the first request.

use super::facts::{edges, Charging, Facts};
use super::fixed_window::FixedWindow;
use super::{until, Algorithm, Charge, Charged, GiveBack, Reservation, Returned, Step};
use crate::policy::{Anchor, Kind, Policy, PolicyError};
use crate::units::{Divisor, HORIZON, LAST, NEVER};
use core::num::NonZeroU64;

/// A compiled interval refill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Interval(IntervalForm);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum IntervalForm {
    Stepped(Stepped),
    Anchored(FixedWindow),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Stepped {
    period: Divisor,
    limit: NonZeroU64,
    burst: u64,
    /// The last clock reading that admits anything. Up to it fewer than 2^63 permits have been
    /// refilled.
    last: u64,
}

impl Interval {
    /// Compiles a policy of kind [`Kind::Interval`] whose limit is not 0.
    ///
    /// # Errors
    /// [`PolicyError::OptionMismatch`] for any other policy, [`PolicyError::RateTooHigh`] if the
    /// word cannot count the refills, [`PolicyError::BurstTooLarge`] for a burst of 2^63 or more,
    /// or above the limit with `anchor first`, and those of [`Policy::validate`].
    pub fn new(policy: &Policy) -> Result<Interval, PolicyError> {
        policy.validate()?;
        if policy.kind != Kind::Interval {
            return Err(PolicyError::OptionMismatch);
        }
        let limit = NonZeroU64::new(policy.limit).ok_or(PolicyError::OptionMismatch)?;
        let period = NonZeroU64::new(policy.period).ok_or(PolicyError::PeriodZero)?;
        if policy.anchor == Anchor::First {
            if policy.burst > policy.limit {
                return Err(PolicyError::BurstTooLarge);
            }
            return Ok(Interval(IntervalForm::Anchored(FixedWindow::anchored(
                policy.burst,
                period,
            )?)));
        }
        let intervals = (u64::MAX / 2) / limit;
        if intervals < HORIZON / period / 8 {
            return Err(PolicyError::RateTooHigh);
        }
        if policy.burst > u64::MAX / 2 {
            return Err(PolicyError::BurstTooLarge);
        }
        let last =
            intervals.saturating_add(1).saturating_mul(period.get()).saturating_sub(1).min(LAST);
        Ok(Interval(IntervalForm::Stepped(Stepped {
            period: Divisor::new(period),
            limit,
            burst: policy.burst,
            last,
        })))
    }
}

impl Stepped {
    /// Permits refilled since time 0; `u64::MAX` after `last`.
    #[inline]
    fn clock(&self, now: u64) -> u64 {
        if now > self.last {
            return u64::MAX;
        }
        let (interval, _) = self.period.div_rem(now);
        interval.wrapping_mul(self.limit.get())
    }

    /// The time at which `permits` have been refilled, in nanoseconds; [`NEVER`] if that is after
    /// `last`.
    fn nanos(&self, permits: u64) -> u64 {
        let interval = permits / self.limit + u64::from(permits % self.limit != 0);
        until(self.last, interval.saturating_mul(self.period.get()))
    }

    #[inline]
    fn step(&self, state: u64, now: u64, cost: u64) -> Step {
        if cost == 0 {
            return Step::ask();
        }
        if cost > self.burst {
            return Step::never();
        }
        // After `last` the clock is `u64::MAX`: the addition overflows, and the request is refused.
        let clock = self.clock(now);
        match state.max(clock).checked_add(cost) {
            Some(next) if next <= clock.saturating_add(self.burst) => Step::allow(next),
            _ => Step::deny(),
        }
    }

    fn available(&self, state: u64, now: u64) -> u64 {
        let clock = self.clock(now);
        clock.saturating_add(self.burst).saturating_sub(state.max(clock))
    }

    /// The permits refilled by the first interval boundary that is at or after `until`.
    fn owing(&self, until: u64) -> u64 {
        // One interval at least: words other than 0 expire at its end or later.
        let (before, _) = self.period.div_rem(until.saturating_sub(1));
        let word = before.saturating_add(1).saturating_mul(self.limit.get());
        match self.nanos(word) {
            // The word expires after the last time. With a large burst it could still admit before
            // that, and this word cannot.
            NEVER => u64::MAX,
            _ => word,
        }
    }

    /// Charges the permits when they depart, not before. A bucket with one permit left may be full
    /// at the departure, and a full bucket keeps no permit beyond its burst. So the one that was
    /// left is lost, not added.
    fn reserve(&self, state: u64, now: u64, cost: u64) -> Option<Reservation> {
        if cost > self.burst {
            return None;
        }
        let base = state.max(self.clock(now));
        match self.nanos(base.checked_add(cost)?.saturating_sub(self.burst)) {
            // The permits come back after `last`, or `now` is after it.
            NEVER => None,
            at => {
                let at = at.max(now);
                Some(Reservation { next: base.max(self.clock(at)).checked_add(cost)?, at })
            }
        }
    }

    /// All permits of one interval are alike: of the bookings that depart at the last boundary,
    /// each may stand for the last one.
    fn last_booking(&self, state: u64, charge: Charge) -> Option<Reservation> {
        let next = state.checked_sub(charge.cost)?.max(1);
        Some(Reservation { at: self.nanos(state.saturating_sub(self.burst)), next })
    }

    fn charge(&self, state: u64, now: u64, cost: u64) -> Charged {
        if now > self.last {
            return Charged::none(cost);
        }
        let clock = self.clock(now);
        let base = state.max(clock);
        let most = clock.saturating_add(self.burst).saturating_add(self.burst);
        match cost.min(most.saturating_sub(base)) {
            0 => Charged::none(cost),
            permits => Charged { next: Some(base.saturating_add(permits)), rest: cost - permits },
        }
    }
}

impl Algorithm for Interval {
    fn last_time(&self) -> u64 {
        match &self.0 {
            IntervalForm::Stepped(s) => s.last,
            IntervalForm::Anchored(w) => w.last_time(),
        }
    }

    fn books_ahead(&self) -> bool {
        matches!(self.0, IntervalForm::Stepped(_))
    }

    #[inline]
    fn step(&self, state: u64, now: u64, cost: u64) -> Step {
        match &self.0 {
            IntervalForm::Stepped(s) => s.step(state, now, cost),
            IntervalForm::Anchored(w) => w.step(state, now, cost),
        }
    }

    fn available(&self, state: u64, now: u64) -> u64 {
        match &self.0 {
            IntervalForm::Stepped(s) => s.available(state, now),
            IntervalForm::Anchored(w) => w.available(state, now),
        }
    }

    fn admits_at(&self, state: u64, now: u64, cost: u64) -> u64 {
        match &self.0 {
            IntervalForm::Stepped(_) if cost == 0 => now,
            IntervalForm::Stepped(s) => s.reserve(state, now, cost).map_or(NEVER, |r| r.at),
            IntervalForm::Anchored(w) => w.admits_at(state, now, cost),
        }
    }

    fn fresh_at(&self, state: u64, now: u64) -> u64 {
        match &self.0 {
            IntervalForm::Stepped(s) => match s.nanos(state) {
                NEVER => NEVER,
                at => until(s.last, at.max(now)),
            },
            IntervalForm::Anchored(w) => w.fresh_at(state, now),
        }
    }

    fn expires_at(&self, state: u64) -> u64 {
        match &self.0 {
            IntervalForm::Stepped(s) => s.nanos(state),
            IntervalForm::Anchored(w) => w.expires_at(state),
        }
    }

    fn owing(&self, until: u64) -> u64 {
        match &self.0 {
            IntervalForm::Stepped(s) => s.owing(until),
            IntervalForm::Anchored(w) => w.owing(until),
        }
    }

    fn reserve(&self, state: u64, now: u64, cost: u64) -> Option<Reservation> {
        match &self.0 {
            IntervalForm::Stepped(s) => s.reserve(state, now, cost),
            IntervalForm::Anchored(_) => None,
        }
    }

    fn charge(&self, state: u64, now: u64, cost: u64) -> Charged {
        match &self.0 {
            IntervalForm::Stepped(s) => s.charge(state, now, cost),
            IntervalForm::Anchored(w) => w.charge(state, now, cost),
        }
    }

    fn refill(&self) -> Option<u64> {
        match &self.0 {
            IntervalForm::Stepped(_) => None,
            IntervalForm::Anchored(w) => w.refill(),
        }
    }

    fn last_booking(&self, state: u64, charge: Charge) -> Option<Reservation> {
        match &self.0 {
            IntervalForm::Stepped(s) => s.last_booking(state, charge),
            IntervalForm::Anchored(_) => None,
        }
    }

    fn give_back(&self, state: u64, now: u64, back: &GiveBack) -> Option<Returned> {
        match &self.0 {
            IntervalForm::Stepped(_) => None,
            IntervalForm::Anchored(w) => w.give_back(state, now, back),
        }
    }
}

impl Facts for Interval {
    fn keeps_reserves(&self) -> bool {
        true
    }

    fn words_are_times(&self) -> bool {
        false
    }

    /// The permits that must be refilled before the first one can be taken.
    fn debt(&self, state: u64, now: u64) -> u64 {
        match &self.0 {
            IntervalForm::Stepped(s) => state.saturating_sub(s.clock(now).saturating_add(s.burst)),
            IntervalForm::Anchored(_) => 0,
        }
    }

    fn charging(&self, permits: u64, now: u64) -> Charging {
        Charging::unchecked(self, permits, now)
    }

    /// Moves a key's word from the policy `old` to this one. `None` unless both refill as many
    /// permits at the same times, or have windows of the same length from the first request on.
    fn adopt(&self, old: &Interval, state: u64) -> Option<u64> {
        match (&self.0, &old.0) {
            (IntervalForm::Stepped(new), IntervalForm::Stepped(old)) => {
                (new.period == old.period && new.limit == old.limit).then_some(state)
            }
            (IntervalForm::Anchored(new), IntervalForm::Anchored(old)) => new.adopt(old, state),
            _ => None,
        }
    }

    /// The key takes the whole bucket just before a refill, and then what each refill brings.
    fn most_in(&self, policy: &Policy, window: u64) -> u64 {
        match &self.0 {
            IntervalForm::Stepped(s) => {
                let refills = edges(policy.period, window - 1);
                s.burst.saturating_add(refills.saturating_mul(policy.limit.min(s.burst)))
            }
            IntervalForm::Anchored(w) => w.most_anchored(window),
        }
    }
}
