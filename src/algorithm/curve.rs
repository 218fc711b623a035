//! Refill curves: within each slice of one period the permits come along a curve, and all of them
//! have come at its end.
//!
//! The slices are aligned to time 0. The curve is a line through up to 64 knots ([`Knots`]), which
//! are shares of the limit at shares of the slice. With the shares as exact fractions,
//!
//! ```text
//! come(t) = floor(limit · curve(t / (period − 1)))        t nanoseconds after the slice began, 0 ≤ t < period
//! ```
//!
//! and a request passes if `used + cost <= come(t)`. The curve is stretched over `period − 1` ns,
//! because its end must be in the slice: at `period` the next slice begins, so the last permit
//! would never come. Unused permits are lost at the end of a slice.
//!
//! The word is that of [`super::fixed_window`] aligned to time 0: the number of the slice, and the
//! permits used in it. If the word's slice is later than `now`, the clock went back, and the
//! request is refused.
//!
//! Most admitted in a slice: `limit`. In any window of one period: `2 · limit`, at the end of one
//! slice and the start of the next.

use super::facts::{Charging, Facts};
use super::fixed_window::FixedWindow;
use super::{until, Algorithm, Charged, GiveBack, Returned, Step};
use crate::policy::{Kind, Knots, Policy, PolicyError};
use crate::units::NEVER;
use core::num::NonZeroU64;

/// A compiled refill curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Curve {
    /// Counts the permits used in each slice.
    window: FixedWindow,
    limit: u64,
    /// The nanoseconds from the beginning of a slice to the end of its curve.
    length: u64,
    knots: Knots,
}

impl Curve {
    /// Compiles a policy of kind [`Kind::Curve`] whose limit is not 0.
    ///
    /// # Errors
    /// [`PolicyError::OptionMismatch`] for any other policy, [`PolicyError::RateTooHigh`] if the
    /// word cannot hold the counter beside the slice or 128 bits the product of limit and period,
    /// and those of [`Policy::validate`].
    #[inline(never)]
    pub fn new(policy: &Policy) -> Result<Curve, PolicyError> {
        policy.validate()?;
        if policy.kind != Kind::Curve || policy.limit == 0 {
            return Err(PolicyError::OptionMismatch);
        }
        let period = NonZeroU64::new(policy.period).ok_or(PolicyError::PeriodZero)?;
        let window = FixedWindow::with(policy.limit, period.get(), period, false)?;
        // `come` and its inverse multiply two shares, the limit and the period. No product of
        // theirs is larger, so none overflows 128 bits.
        let product = u128::from(policy.limit).checked_mul(u128::from(period.get()));
        product.and_then(|n| n.checked_mul(WHOLE * WHOLE)).ok_or(PolicyError::RateTooHigh)?;
        let knots = if policy.knots.is_none() { LINEAR } else { policy.knots };
        Ok(Curve { window, limit: policy.limit, length: period.get() - 1, knots })
    }

    /// The permits that have come `offset` nanoseconds after the beginning of a slice.
    #[inline(never)]
    fn come(&self, offset: u64) -> u64 {
        let (length, offset) = (u128::from(self.length), u128::from(offset) * WHOLE);
        let mut last = Knot::BEGIN;
        for knot in self.knots.pairs().map(Knot::from) {
            let begin = last.at * length;
            if knot.at * length > offset {
                // `width` is not 0, because this knot is later than the offset, and the last knot
                // is not.
                let width = (knot.at - last.at) * length;
                let shares = last.share * width + (knot.share - last.share) * (offset - begin);
                let permits = (u128::from(self.limit) * shares).checked_div(WHOLE * width);
                return permits.map_or(0, |permits| permits as u64);
            }
            last = knot;
        }
        self.limit
    }

    /// The nanoseconds from the beginning of a slice until so many permits have come, which are at
    /// most the limit.
    #[inline(never)]
    fn offset_of(&self, permits: u64) -> u64 {
        let (length, limit) = (u128::from(self.length), u128::from(self.limit));
        let wanted = u128::from(permits) * WHOLE;
        let mut last = Knot::BEGIN;
        for knot in self.knots.pairs().map(Knot::from) {
            if limit * knot.share >= wanted {
                // The time at which the line from the last knot reaches `wanted`, rounded up to a
                // nanosecond. If both knots have the same time, that is their time.
                let lacking = wanted.saturating_sub(limit * last.share);
                let rise = limit * (knot.share - last.share);
                let time = last.at * length * rise + lacking * (knot.at - last.at) * length;
                let per = rise * WHOLE;
                let offset = time.checked_div(per).unwrap_or(0);
                return offset as u64 + u64::from(offset * per != time);
            }
            last = knot;
        }
        self.length
    }

    /// The number of the slice at `now` and the permits used in it by this state, or the later
    /// slice of the state. `None` after the last time.
    fn usage(&self, state: u64, now: u64) -> Option<SliceUsage> {
        let (slice, used) = self.window.used_at(state, now)?;
        let (number, offset) = self.window.slice_of(now);
        Some(SliceUsage { slice, used, offset, is_later: slice > number })
    }

    /// The fixed window that counts the permits used in each slice.
    #[cfg(all(test, not(loom)))]
    pub(super) fn window(&self) -> &FixedWindow {
        &self.window
    }
}

/// The slice in which a request is decided.
struct SliceUsage {
    slice: u64,
    used: u64,
    /// The nanoseconds since the slice of `now` began.
    offset: u64,
    /// Whether the state's slice is later than that of `now`.
    is_later: bool,
}

const WHOLE: u128 = Knots::WHOLE as u128;
/// The default curve.
const LINEAR: Knots = Knots::of(&[[100, 100]]);

/// A knot in hundredths of a percent.
#[derive(Clone, Copy)]
struct Knot {
    at: u128,
    share: u128,
}

impl Knot {
    const BEGIN: Knot = Knot { at: 0, share: 0 };

    fn from([at, share]: [u16; 2]) -> Knot {
        Knot { at: at.into(), share: share.into() }
    }
}

impl Algorithm for Curve {
    fn last_time(&self) -> u64 {
        self.window.last_time()
    }

    fn books_ahead(&self) -> bool {
        false
    }

    #[inline(never)]
    fn step(&self, state: u64, now: u64, cost: u64) -> Step {
        if cost == 0 {
            return Step::ask();
        }
        if cost > self.limit {
            return Step::never();
        }
        match self.usage(state, now) {
            Some(usage)
                if !usage.is_later
                    && cost <= self.come(usage.offset).saturating_sub(usage.used) =>
            {
                Step::allow(self.window.word(usage.slice, usage.used + cost))
            }
            _ => Step::deny(),
        }
    }

    #[inline(never)]
    fn available(&self, state: u64, now: u64) -> u64 {
        match self.usage(state, now) {
            Some(usage) if !usage.is_later => self.come(usage.offset).saturating_sub(usage.used),
            _ => 0,
        }
    }

    /// The request passes in the state's slice or, if too few permits are left in that slice, in
    /// the next one.
    #[inline(never)]
    fn admits_at(&self, state: u64, now: u64, cost: u64) -> u64 {
        if cost == 0 {
            return now;
        }
        if cost > self.limit {
            return NEVER;
        }
        let Some(usage) = self.usage(state, now) else { return NEVER };
        let (slice, permits) = match usage.used.saturating_add(cost) {
            permits if permits <= self.limit => (usage.slice, permits),
            _ => (usage.slice.saturating_add(1), cost),
        };
        let at = self.window.from(slice).saturating_add(self.offset_of(permits));
        until(self.last_time(), at.max(now))
    }

    #[inline(never)]
    fn fresh_at(&self, state: u64, now: u64) -> u64 {
        self.window.fresh_at(state, now)
    }

    #[inline(never)]
    fn expires_at(&self, state: u64) -> u64 {
        self.window.expires_at(state)
    }

    #[inline(never)]
    fn owing(&self, until: u64) -> u64 {
        self.window.owing(until)
    }

    /// Up to the limit, whether the permits have come or not.
    #[inline(never)]
    fn charge(&self, state: u64, now: u64, cost: u64) -> Charged {
        self.window.charge(state, now, cost)
    }

    fn refill(&self) -> Option<u64> {
        self.window.refill()
    }

    /// In the slice of the charge, as a fixed window does. An admission compares the count with the
    /// permits that have come, so the kept charges would have passed by themselves ([`GiveBack`]).
    #[inline(never)]
    fn give_back(&self, state: u64, now: u64, back: &GiveBack) -> Option<Returned> {
        self.window.give_back(state, now, back)
    }
}

impl Facts for Curve {
    fn keeps_reserves(&self) -> bool {
        true
    }

    fn words_are_times(&self) -> bool {
        false
    }

    /// The permits charged beyond those that have come.
    fn debt(&self, state: u64, now: u64) -> u64 {
        match self.usage(state, now) {
            None => 0,
            Some(usage) if usage.is_later => usage.used,
            Some(usage) => usage.used.saturating_sub(self.come(usage.offset)),
        }
    }

    /// A key may lack more permits than the curve has given so far.
    fn charging(&self, permits: u64, now: u64) -> Charging {
        Charging::unchecked(self, permits, now)
    }

    /// [`FixedWindow::adopt`] from the word of another curve.
    fn adopt(&self, old: &Curve, state: u64) -> Option<u64> {
        self.window.adopt(&old.window, state)
    }

    /// The whole limit in the last nanosecond of a slice, and all that comes in those that follow.
    fn most_in(&self, policy: &Policy, window: u64) -> u64 {
        let Some(time) = window.checked_sub(2) else { return policy.limit };
        let period = NonZeroU64::MIN.saturating_add(self.length);
        let (slices, offset) = (time / period, time % period);
        policy.limit.saturating_mul(slices.saturating_add(1)).saturating_add(self.come(offset))
    }
}
