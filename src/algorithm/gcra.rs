//! GCRA, the generic cell rate algorithm (ITU-T I.371): a token bucket, and a leaky bucket used as a
//! meter, in one word.
//!
//! The word is the theoretical arrival time (TAT) in [`Grid`] units: the instant at which a bucket
//! that is used no more is full again. A request of cost `n` moves it `n` permits ahead, and may do
//! so if it stays within `burst` permits of the clock.
//!
//! Most admitted in any interval of length t: `burst + limit/period · t`, and so up to
//! `burst + limit` in one period.

use super::{Algorithm, Reservation, Step};
use crate::policy::{Kind, Policy, PolicyError};
use crate::units::{Grid, NEVER};
use core::num::NonZeroU64;

/// A compiled token bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Gcra {
    grid: Grid,
    burst: u64,
    /// `burst` permits in units.
    tolerance: u64,
    /// What a fresh state lacks to a full bucket, in units.
    lacking: u64,
}

impl Gcra {
    /// Compiles a policy of kind [`Kind::Gcra`] without `borrow`, whose limit is not 0.
    pub fn new(policy: &Policy) -> Result<Gcra, PolicyError> {
        policy.validate()?;
        if policy.kind != Kind::Gcra || policy.borrow {
            return Err(PolicyError::OptionMismatch);
        }
        let grid = grid(policy, policy.burst, 64)?;
        let unit = grid.per_permit().get();
        let tolerance = policy.burst.checked_mul(unit).ok_or(PolicyError::BurstTooLarge)?;
        let lacking = (policy.burst - policy.init).checked_mul(unit).ok_or(PolicyError::BurstTooLarge)?;
        Ok(Gcra { grid, burst: policy.burst, tolerance, lacking })
    }

    /// The units that its state is counted in.
    pub const fn grid(&self) -> &Grid {
        &self.grid
    }

    /// The TAT that a request at `clock` units starts from.
    #[inline(always)]
    fn base(&self, state: u64, clock: u64) -> u64 {
        if state == 0 {
            clock.saturating_add(self.lacking)
        } else if state > clock {
            state
        } else {
            clock
        }
    }

    /// The clock units at which a bucket at `base` admits `charge` more.
    fn due(&self, base: u64, charge: u64) -> Option<u64> {
        Some(base.checked_add(charge)?.saturating_sub(self.tolerance))
    }
}

impl Algorithm for Gcra {
    const BOOKS_AHEAD: bool = true;

    #[inline(always)]
    fn step(&self, state: u64, now: u64, cost: u64) -> Step {
        let clock = self.grid.units(now);
        let base = self.base(state, clock);
        if cost == 0 {
            return Step::allow(state);
        }
        if cost > self.burst {
            return Step::never(state);
        }
        // cost <= burst, and burst in units fits a word.
        let charge = cost.wrapping_mul(self.grid.per_permit().get());
        match base.checked_add(charge) {
            Some(next) if next <= clock.saturating_add(self.tolerance) => Step::allow(next),
            // A bucket that starts without its burst must remember since when.
            _ if state == 0 && self.lacking != 0 => Step::deny(base),
            _ => Step::deny(state),
        }
    }

    fn available(&self, state: u64, now: u64) -> u64 {
        let clock = self.grid.units(now);
        let line = clock.saturating_add(self.tolerance);
        let room = line.saturating_sub(self.base(state, clock));
        room / self.grid.per_permit()
    }

    fn admits_at(&self, state: u64, now: u64, cost: u64) -> u64 {
        if cost == 0 {
            return now;
        }
        let charge = match cost.checked_mul(self.grid.per_permit().get()) {
            Some(charge) if cost <= self.burst => charge,
            _ => return NEVER,
        };
        let base = self.base(state, self.grid.units(now));
        match self.due(base, charge) {
            // The last representable units admit nothing: the sum above them does not fit.
            Some(due) => self.grid.nanos(due).max(now),
            None => NEVER,
        }
    }

    fn fresh_at(&self, state: u64, now: u64) -> u64 {
        if state == 0 {
            return now;
        }
        self.grid.nanos(state.saturating_sub(self.lacking)).max(now)
    }

    fn reserve(&self, state: u64, now: u64, cost: u64) -> Option<Reservation> {
        if cost > self.burst {
            return None;
        }
        let charge = cost.checked_mul(self.grid.per_permit().get())?;
        let base = self.base(state, self.grid.units(now));
        let next = base.checked_add(charge)?;
        let at = self.grid.nanos(self.due(base, charge)?);
        if at == NEVER {
            return None;
        }
        Some(Reservation { next, at: at.max(now) })
    }
}

/// The grid of a policy whose word must hold `span` permits beyond the clock in `bits` bits.
pub(super) fn grid(policy: &Policy, span: u64, bits: u32) -> Result<Grid, PolicyError> {
    let limit = NonZeroU64::new(policy.limit).ok_or(PolicyError::OptionMismatch)?;
    let period = NonZeroU64::new(policy.period).ok_or(PolicyError::PeriodZero)?;
    Grid::new(limit, period, span, bits).ok_or_else(|| {
        // Whether it is the rate or the burst: would one permit's burst have fitted?
        match Grid::new(limit, period, 1, bits) {
            Some(_) => PolicyError::BurstTooLarge,
            None => PolicyError::RateTooHigh,
        }
    })
}
