//! Rates of classes.

use super::share::INTERVAL_MOST;
use crate::policy::Policy;

/// A rate in permits per 10^9 s, in units of 2^-20 and rounded down: the sum of rates that are
/// together at most another one is at most that one, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClassRate {
    limit: u64,
    period: u64,
    scaled: u128,
}

/// The shortest time between two permits, in nanoseconds. Intervals are rounded to whole
/// nanoseconds, which at a shorter interval would change the rate by more than 0.1 %.
const INTERVAL_LEAST: u64 = 1_000;
const SCALE: u128 = 1_000_000_000_000_000_000 << 20;

impl ClassRate {
    /// No rate, of a class without a guarantee.
    pub(super) const NONE: ClassRate = ClassRate { limit: 0, period: 1, scaled: 0 };

    /// Reads `LIMIT/PERIOD`; `None` if the text says anything else, too.
    #[inline(never)]
    pub(super) fn parse(text: &str) -> Option<ClassRate> {
        let policy: Policy = text.parse().ok()?;
        if policy != Policy::new(policy.limit, policy.period)
            || policy.limit == 0
            || policy.period == 0
        {
            return None;
        }
        let scaled =
            SCALE.checked_mul(u128::from(policy.limit))?.checked_div(u128::from(policy.period))?;
        let rate = ClassRate { limit: policy.limit, period: policy.period, scaled };
        let range = INTERVAL_LEAST..=INTERVAL_MOST;
        (range.contains(&rate.rounded_down()?) && range.contains(&rate.rounded_up()?))
            .then_some(rate)
    }

    /// The nanoseconds of a permit.
    pub(super) fn rounded_down(&self) -> Option<u64> {
        self.period.checked_div(self.limit)
    }

    pub(super) fn rounded_up(&self) -> Option<u64> {
        let down = self.rounded_down()?;
        Some(down + u64::from(down.wrapping_mul(self.limit) != self.period))
    }

    /// What is left of this rate without `keys` times `rate`.
    pub(super) fn without(mut self, rate: ClassRate, keys: u32) -> Option<ClassRate> {
        self.scaled = self.scaled.checked_sub(rate.scaled.checked_mul(u128::from(keys))?)?;
        Some(self)
    }
}
