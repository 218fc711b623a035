//! The clock of a pair in steps, and back.

use crate::units::{bits, div_up, LAST, NEVER};
use core::num::{NonZeroU128, NonZeroU64};

/// Converts nanoseconds to steps of `nanos / per` nanoseconds, a fraction in lowest terms that is
/// at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Steps {
    pub(super) nanos: u64,
    pub(super) per: NonZeroU64,
    /// `floor(2^(64 + shift) · per / nanos)`, or 2^64 - 1 if that is 2^64.
    reciprocal: u64,
    pub(super) shift: u32,
}

/// A clock reading in steps, rounded down and up.
#[derive(Clone, Copy)]
pub(super) struct StepReading {
    pub(super) down: u64,
    pub(super) up: u64,
}

impl Steps {
    /// `None` unless `1 <= nanos / per` and `nanos < 2^63`.
    pub(super) fn new(nanos: u128, per: u128) -> Option<Steps> {
        let per = NonZeroU64::new(u64::try_from(per).ok()?)?;
        let nanos =
            u64::try_from(nanos).ok().filter(|nanos| *nanos >= per.get() && *nanos >> 63 == 0)?;
        // floor(log2(nanos / per)), so that the reciprocal has 64 bits.
        let shift = bits(nanos / per).saturating_sub(1);
        let divisor = NonZeroU128::new(u128::from(nanos))?;
        // `per · 2^shift` is at most `nanos`, which is below 2^63: the numerator has 127 bits at
        // most.
        let reciprocal = (u128::from(per.get()) << shift.saturating_add(64).min(127)) / divisor;
        Some(Steps { nanos, per, reciprocal: u64::try_from(reciprocal).unwrap_or(u64::MAX), shift })
    }

    /// A reciprocal by which the clock is exact without a correction, for all times up to [`LAST`];
    /// `None` if 64 bits are too few for one.
    pub(super) fn exact_reciprocal(&self) -> Option<u64> {
        let scale = 1_u128.checked_shl(self.shift.saturating_add(64))?;
        let divisor = NonZeroU128::new(u128::from(self.nanos))?;
        // `per · 2^shift <= nanos < 2^63`, so the product has 127 bits at most.
        let product = scale.checked_mul(u128::from(self.per.get()))?;
        let (floor, rest) = (product / divisor, product % divisor);
        if rest == 0 {
            return u64::try_from(floor).ok();
        }
        // The rounded reciprocal is too high by `(nanos - rest) / nanos`. So the product is too
        // high by `now` times that, divided by `scale`. A clock between two steps is at least
        // `1 / nanos` below the next step, so a smaller error does not change its whole part.
        let excess = divisor.get().saturating_sub(rest).saturating_mul(u128::from(LAST));
        u64::try_from(floor.saturating_add(1)).ok().filter(|_| excess < scale)
    }

    #[inline(always)]
    pub(super) fn clock(&self, now: u64) -> StepReading {
        // The reciprocal is less than 1 too small, so the estimate is the quotient or 1 below it,
        // and the remainder is below twice the divisor. Modulo 2^64 that remainder is exact.
        let estimate = ((u128::from(now) * u128::from(self.reciprocal)) >> 64) as u64 >> self.shift;
        let rest = now.wrapping_mul(self.per.get()).wrapping_sub(estimate.wrapping_mul(self.nanos));
        let (down, rest) = match rest >= self.nanos {
            true => (estimate.wrapping_add(1), rest.wrapping_sub(self.nanos)),
            false => (estimate, rest),
        };
        StepReading { down, up: down.wrapping_add(u64::from(rest != 0)) }
    }

    /// The first nanosecond at or after a number of steps; [`NEVER`] if 64 bits do not hold it.
    pub(super) fn nanos(&self, steps: u64) -> u64 {
        let nanos = u128::from(steps) * u128::from(self.nanos);
        let nanos =
            if self.per.get() == 1 { nanos } else { div_up(nanos, NonZeroU128::from(self.per)) };
        u64::try_from(nanos).unwrap_or(NEVER)
    }
}
