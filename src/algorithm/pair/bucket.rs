//! One bucket of a pair, in steps.

use super::steps::StepReading;
use core::num::NonZeroU64;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct TokenBucket {
    /// The steps in which the bucket refills a permit.
    pub(super) permit: NonZeroU64,
    pub(super) burst: u64,
    /// `burst` permits in steps.
    pub(super) tolerance: u64,
}

impl TokenBucket {
    pub(super) fn new(permit: u128, burst: u64) -> Option<TokenBucket> {
        let permit = NonZeroU64::new(u64::try_from(permit).ok()?)?;
        let tolerance = permit.get().checked_mul(burst).filter(|tolerance| tolerance >> 61 == 0)?;
        Some(TokenBucket { permit, burst, tolerance })
    }

    /// A cost in steps. The cost is at most the burst, so the product does not wrap.
    #[inline(always)]
    pub(super) fn charge(&self, cost: u64) -> u64 {
        cost.wrapping_mul(self.permit.get())
    }

    /// The earliest clock, rounded down, at which the bucket admits `cost` more permits.
    pub(super) fn due(&self, tat: u64, cost: u64) -> u64 {
        tat.saturating_add(cost.saturating_mul(self.permit.get())).saturating_sub(self.tolerance)
    }

    pub(super) fn available(&self, tat: u64, clock: StepReading) -> u64 {
        match tat <= clock.down {
            true => self.burst,
            false => clock.down.saturating_add(self.tolerance).saturating_sub(tat) / self.permit,
        }
    }

    /// The permits by which the bucket falls short of a full one, rounded up. A debt is included.
    pub(super) fn lacking(&self, tat: u64, clock: StepReading) -> u64 {
        self.permits_up(tat.saturating_sub(clock.down))
    }

    /// The permits, rounded up, that the bucket must refill before the first one can be taken.
    pub(super) fn debt(&self, tat: u64, clock: StepReading) -> u64 {
        self.permits_up(tat.saturating_sub(clock.down.saturating_add(self.tolerance)))
    }

    pub(super) fn permits_up(&self, steps: u64) -> u64 {
        steps / self.permit + u64::from(steps % self.permit != 0)
    }

    /// The permits that can be charged until the debt is one burst.
    pub(super) fn chargeable(&self, tat: u64, clock: StepReading) -> u64 {
        let most = clock.up.saturating_add(self.tolerance).saturating_add(self.tolerance);
        most.saturating_sub(tat.max(clock.up)) / self.permit
    }
}
