//! Exact arithmetic between time (nanoseconds) and permits, in 64-bit words.
//!
//! # The grid
//!
//! At a rate of `limit / period`, one permit takes `T = period / limit` nanoseconds, which is
//! rarely whole. A rounded `T` makes the rate wrong for ever (by 43 % at 7·10⁸ per second). A
//! floating-point `T` makes it wrong once the clock is large. So states are kept in *units* of
//! `1/S` permit, where `S` is a whole number chosen for the policy:
//!
//! ```text
//! a permit          = S units                            exactly
//! the clock         = floor(now · S · limit / period)    units, computed exactly
//! ```
//!
//! Rounding errors do not add up: charges are whole units, and the clock is converted from its
//! absolute value each time. So the long-run rate is exactly `limit / period`.
//!
//! If `S · limit / period` is whole, the clock conversion is not rounded, and every decision equals
//! that of exact rational arithmetic. That is so for every rate where `limit / gcd(limit, period)`
//! is at most 7: for 3, 7, 3·10⁸ or 7·10⁸ per second, and for all intervals of whole nanoseconds.
//!
//! For other rates `S` is chosen so that the conversion is exact at multiples of the smallest
//! possible power of ten nanoseconds ([`Grid::exact_step`]). Between these a decision can be early
//! by less than one unit. A permit is [`Grid::per_permit`] units. There a unit is less than two
//! thirds of a nanosecond, for every burst that refills within a year and a state that has 63 bits
//! of the word for it.

use core::num::{NonZeroU128, NonZeroU64};
use core::time::Duration;

/// The value of a time in nanoseconds that means "never": no later time changes the answer.
pub const NEVER: u64 = u64::MAX;

/// The span of times that state words can hold: 2⁶¹ ns, 73 years from the clock's zero.
pub const HORIZON: u64 = 1 << 61;

/// The last time at which any policy admits a request: 2⁶¹ − 2 ns, because an entry of a sliding
/// log holds its time plus 1 in 61 bits. The fastest policies end earlier: see
/// [`crate::Policy::last_time`].
pub const LAST: u64 = HORIZON - 2;

/// The nanoseconds of a duration. [`NEVER`] for durations of 584 years and more.
pub(crate) const fn nanos(duration: Duration) -> u64 {
    let nanos = duration.as_nanos();
    if nanos > NEVER as u128 {
        return NEVER;
    }
    nanos as u64
}

/// Maps nanoseconds to units of `1/per_permit` permit and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Grid {
    /// Units per nanosecond: `(hi + lo / 2^64) / 2^shift`, rounded up in the last bit of `lo`. If
    /// they are whole, `lo` and `shift` are 0.
    hi: u64,
    lo: u64,
    shift: u32,
    per_permit: NonZeroU64,
    /// The last clock reading, in nanoseconds, whose units a word can hold.
    max_now: u64,
    exact_step: u64,
    unit: UnitLength,
}

impl Grid {
    /// The grid of `limit` permits per `period` nanoseconds for a word of `bits` bits, with room
    /// for `2 · span` permits beyond the clock. `None` if there is no such grid: the rate is 16
    /// permits per nanosecond or more (for 64 bits), or `2 · span` permits do not fit.
    pub fn new(limit: NonZeroU64, period: NonZeroU64, span: u64, bits: u32) -> Option<Grid> {
        let (l, p) = (wide(limit), wide(period));
        let room = 1u128.checked_shl(bits)?.checked_sub(1)?;
        // The largest S with  S·limit/period·HORIZON + S·2·span <= room.
        let horizon_permits = mul_div_ceil(u128::from(HORIZON), l, p)?;
        let permits = horizon_permits.checked_add(2 * u128::from(span))?;
        let mut most = room / NonZeroU128::new(permits.max(1))?;
        if most == 0 {
            // The fastest rates get half of the horizon.
            let permits = (horizon_permits / 2).checked_add(2 * u128::from(span))?;
            most = room / NonZeroU128::new(permits)?;
        }
        let most = most.min(u128::from(u64::MAX >> 1));
        if most == 0 {
            return None;
        }
        let (per_permit, exact_step) = finest(l, p, most)?;
        let per_permit = NonZeroU64::new(u64::try_from(per_permit).ok()?)?;
        Grid::with_units(limit, period, per_permit, bits, exact_step)
    }

    fn with_units(
        limit: NonZeroU64,
        period: NonZeroU64,
        per_permit: NonZeroU64,
        bits: u32,
        exact_step: u64,
    ) -> Option<Grid> {
        // units/ns = num/den in lowest terms
        let num = wide(limit).get().checked_mul(u128::from(per_permit.get()))?;
        let g = gcd(num, wide(period).get());
        let num = num / g;
        let den = NonZeroU128::new(wide(period).get() / g)?;
        let room = if bits >= 64 { u64::MAX } else { (1 << bits) - 1 };
        let (hi, lo, shift) =
            if den.get() == 1 { (u64::try_from(num).ok()?, 0, 0) } else { fixed_point(num, den)? };
        let unit = UnitLength::new(limit, period, per_permit);
        let mut grid = Grid { hi, lo, shift, per_permit, max_now: u64::MAX, exact_step, unit };
        // One less than the first reading whose units exceed the word.
        let limit_now = mul_div_ceil(u128::from(room) + 1, den, NonZeroU128::new(num)?)?;
        grid.max_now = u64::try_from(limit_now).map_or(u64::MAX, |n| n.saturating_sub(1));
        Some(grid)
    }

    /// The units of one permit.
    #[inline(always)]
    pub const fn per_permit(&self) -> NonZeroU64 {
        self.per_permit
    }

    /// Units per nanosecond; `None` if that is not a whole number.
    pub const fn whole(&self) -> Option<u64> {
        match self.shift {
            0 => Some(self.hi),
            _ => None,
        }
    }

    /// The grid converts clock readings that are multiples of this many nanoseconds without
    /// rounding. 1: all readings.
    pub const fn exact_step(&self) -> u64 {
        self.exact_step
    }

    /// The last clock reading, in nanoseconds, that this grid represents. [`Grid::units`] saturates
    /// after it.
    pub const fn max_now(&self) -> u64 {
        self.max_now
    }

    /// `floor(now · units per nanosecond)`; `u64::MAX` after [`Grid::max_now`].
    #[inline]
    pub fn units(&self, now: u64) -> u64 {
        if now > self.max_now {
            return u64::MAX;
        }
        self.units_in_time(now)
    }

    /// [`Grid::units`] for a `now` that is at most [`Grid::max_now`].
    #[inline(always)]
    pub(crate) fn units_in_time(&self, now: u64) -> u64 {
        if self.shift == 0 {
            return now.wrapping_mul(self.hi);
        }
        unlikely();
        // The multiplier is less than 2^-126 of itself too large, and now·den stays below 2^126 for
        // every period up to 2^62 ns (146 years): the floor is exact.
        let low = (u128::from(now) * u128::from(self.lo)) >> 64;
        ((u128::from(now) * u128::from(self.hi) + low) >> self.shift) as u64
    }

    /// An upper bound of `now · units per nanosecond`, at most one unit above it; `u64::MAX` after
    /// [`Grid::max_now`].
    pub fn units_up(&self, now: u64) -> u64 {
        // Whole units per nanosecond need no rounding.
        self.units(now).saturating_add(u64::from(self.shift != 0))
    }

    /// The smallest `now`, in nanoseconds, whose [`Grid::units`] is at least `target`; [`NEVER`] if
    /// there is none.
    #[inline]
    pub fn nanos(&self, target: u64) -> u64 {
        match NonZeroU64::new(self.hi) {
            // Whole units per nanosecond.
            Some(hi) if self.shift == 0 => {
                let at = target / hi + u64::from(target % hi != 0);
                if at > self.max_now {
                    NEVER
                } else {
                    at
                }
            }
            _ => self.nanos_between(target),
        }
    }

    /// [`UnitLength::over`] on this grid.
    #[inline(always)]
    pub fn over(&self, units: u64, end: u64) -> u64 {
        self.unit.over(units, end)
    }

    #[inline(never)]
    fn nanos_between(&self, target: u64) -> u64 {
        // Before it is rounded down, the estimate is less than a nanosecond above the exact time.
        // So it is the answer or one nanosecond less.
        let now = self.unit.about(target).min(self.max_now);
        if self.units(now) >= target {
            now
        } else if now < self.max_now {
            now + 1
        } else {
            NEVER
        }
    }
}

/// The length of a unit. It converts units to nanoseconds without a division and a little late;
/// [`Grid::nanos`] converts exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UnitLength {
    /// The whole nanoseconds of a unit's length, which is rounded up to a multiple of 2^-64 ns.
    whole: u64,
    /// The rest of that length, in 2^-64 ns.
    part: u64,
}

impl UnitLength {
    /// The length of a unit of `1/per_permit` permit at `limit` permits per `period` nanoseconds.
    pub fn new(limit: NonZeroU64, period: NonZeroU64, per_permit: NonZeroU64) -> UnitLength {
        // The product of two numbers of 64 bits fits 128, so nothing saturates.
        let permits = wide(limit).saturating_mul(wide(per_permit));
        let length = div_up(u128::from(period.get()) << 64, permits);
        UnitLength { whole: (length >> 64) as u64, part: length as u64 }
    }

    /// The time, in nanoseconds, at which `units` have passed since time 0, rounded down or up;
    /// [`NEVER`] if it does not fit 64 bits.
    #[inline(always)]
    fn about(&self, units: u64) -> u64 {
        let part = (u128::from(units) * u128::from(self.part)) >> 64;
        u64::try_from(u128::from(units) * u128::from(self.whole) + part).unwrap_or(NEVER)
    }

    /// A time, in nanoseconds, at which `units` have passed since time 0; [`NEVER`] if it is not
    /// before `end`. It never decreases as `units` grows. It is late by less than 4 ns, plus one
    /// unit where a unit is a nanosecond or longer, and never early. It is at or after every time
    /// whose [`Grid::units`] is `units`.
    #[inline(always)]
    pub fn over(&self, units: u64, end: u64) -> u64 {
        // The length is less than 2^-64 ns too large, so the product is less than 1 ns too late.
        // One nanosecond more makes a ceiling of the floor, and covers a unit that is shorter than
        // a nanosecond.
        let units = units.saturating_add(u64::from(self.whole != 0));
        let part = (u128::from(units) * u128::from(self.part)) >> 64;
        let at = u128::from(units) * u128::from(self.whole) + part + 1;
        if at >= u128::from(end) {
            NEVER
        } else {
            at as u64
        }
    }
}

/// Division by a fixed number: a multiplication and a correction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Divisor {
    by: NonZeroU64,
    /// `floor((2^64 - 1) / by)`, at least `(2^64 - by) / by`. For `n < 2^64` that makes
    /// `n · reciprocal / 2^64` less than 1 below `n / by`, so the quotient is at most 1 too small.
    reciprocal: u64,
}

impl Divisor {
    /// Prepares divisions by `by`.
    pub const fn new(by: NonZeroU64) -> Divisor {
        Divisor { by, reciprocal: u64::MAX / by.get() }
    }

    /// The divisor.
    #[inline(always)]
    pub const fn get(&self) -> u64 {
        self.by.get()
    }

    /// The divisor, in a type that is never 0.
    pub(crate) const fn by(&self) -> NonZeroU64 {
        self.by
    }

    /// Quotient and remainder.
    #[inline]
    pub const fn div_rem(&self, n: u64) -> (u64, u64) {
        let q = ((n as u128 * self.reciprocal as u128) >> 64) as u64;
        let r = n.wrapping_sub(q.wrapping_mul(self.by.get()));
        if r >= self.by.get() {
            (q + 1, r - self.by.get())
        } else {
            (q, r)
        }
    }
}

/// Tells the compiler that a branch is rarely taken.
#[cold]
#[inline(always)]
fn unlikely() {}

/// The least number of bits that hold `n`.
pub(crate) const fn bits(n: u64) -> u32 {
    64 - n.leading_zeros()
}

/// `ceil(a · b / c)`, or `None` if `a · b` does not fit 128 bits.
pub(crate) fn mul_div_ceil(a: u128, b: NonZeroU128, c: NonZeroU128) -> Option<u128> {
    Some(div_up(a.checked_mul(b.get())?, c))
}

/// `ceil(n / d)`. Unlike `u128::div_ceil` it cannot panic, in any build.
#[inline]
pub(crate) fn div_up(n: u128, d: NonZeroU128) -> u128 {
    n / d + u128::from(n % d != 0)
}

/// The largest `S <= most` for which `S · limit · step / period` is whole, with the smallest
/// power of ten `step` that allows one.
fn finest(limit: NonZeroU128, period: NonZeroU128, most: u128) -> Option<(u128, u64)> {
    let mut step: u64 = 1;
    loop {
        let g = gcd(period.get(), limit.get().checked_mul(u128::from(step))?);
        let base = NonZeroU128::new(period.get() / g)?;
        if base.get() <= most {
            let times = most / base;
            // At step 1 units per nanosecond are whole already, so a multiple of `base` would gain
            // nothing.
            let times = if step == 1 { NonZeroU128::new(1)?.get() } else { times };
            return Some((base.get() * times, step));
        }
        step = match step.checked_mul(10) {
            Some(step) => step,
            // No power of ten below 2^64 makes it whole. The clock is then exact at multiples of
            // the period.
            None => return Some((most, u64::try_from(period.get()).ok()?)),
        };
    }
}

/// `num/den` as `(hi·2^64 + lo) / 2^(shift + 64)`, rounded up, with the top bit of `hi` set.
fn fixed_point(num: u128, den: NonZeroU128) -> Option<(u64, u64, u32)> {
    let mut whole = num / den;
    let mut rest = num % den;
    let mut shift = 0u32;
    // Long division, a bit at a time, until the quotient has 128 bits. den < 2^64.
    while whole >> 127 == 0 {
        rest <<= 1;
        whole = (whole << 1) | u128::from(rest >= den.get());
        if rest >= den.get() {
            rest -= den.get();
        }
        shift += 1;
    }
    let rounded = whole.checked_add(u128::from(rest != 0))?;
    // The quotient is whole/2^shift; the upper word alone carries 2^(shift-64).
    Some(((rounded >> 64) as u64, rounded as u64, shift.checked_sub(64)?))
}

/// The greatest common divisor.
pub const fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

fn wide(n: NonZeroU64) -> NonZeroU128 {
    NonZeroU128::from(n)
}

#[cfg(test)]
mod tests;
