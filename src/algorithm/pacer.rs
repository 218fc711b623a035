//! Pacing: evenly spaced departures, and the token bucket that lends (`borrow`).
//!
//! The word is the next departure time in [`Grid`] units, plus the units that a fresh state has in
//! store. The addition lets a word hold a departure that is due before the clock's zero. A request
//! of any cost is admitted once the departure time has come. Its cost decides when the next one may
//! depart. After an idle time the departure lags behind the clock by at most `slack` permits, which
//! may then depart at once.
//!
//! A fresh state departs now and has no slack. With `borrow` it has `init` permits of slack.
//!
//! Most admitted in any interval of length t, with unit costs: `slack + 1 + limit/period · t`; in
//! general `slack + (largest cost) + limit/period · t`.

use super::facts::{bucket, refilled, Charging, Facts};
use super::gcra::grid;
use super::{until, Algorithm, Charge, Charged, Reservation, Step};
use crate::policy::{Kind, Policy, PolicyError, Rate};
use crate::units::{Grid, LAST, NEVER};

/// A compiled pacer, or a token bucket with `borrow`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pacer {
    grid: Grid,
    /// The largest cost.
    most: u64,
    /// How far a departure may lag behind the clock, in units.
    slack: u64,
    /// How far the departure of a fresh state lags behind the clock, in units.
    initial: u64,
    /// The burst in units.
    burst: u64,
    /// The last clock reading that admits anything.
    last: u64,
}

impl Pacer {
    /// Compiles a policy of kind [`Kind::Pacer`], or of [`Kind::Gcra`] with `borrow`, whose limit
    /// is not 0.
    ///
    /// # Errors
    /// As [`super::gcra::Gcra::new`]; for the pacer the larger of burst and slack takes the burst's
    /// place.
    pub fn new(policy: &Policy) -> Result<Pacer, PolicyError> {
        policy.validate()?;
        let (slack, initial, span) = if policy.kind == Kind::Pacer {
            (policy.slack, 0, policy.burst.max(policy.slack))
        } else if policy.kind == Kind::Gcra && policy.borrow {
            (policy.burst, policy.init, policy.burst)
        } else {
            return Err(PolicyError::OptionMismatch);
        };
        let grid = grid(policy, span, 64)?;
        let permit = grid.per_permit();
        let units =
            |permits: u64| permits.checked_mul(permit.get()).ok_or(PolicyError::BurstTooLarge);
        let most = if policy.borrow { u64::MAX / permit } else { policy.burst };
        let last = grid.max_now().min(LAST);
        Ok(Pacer {
            grid,
            most,
            slack: units(slack)?,
            initial: units(initial)?,
            burst: units(policy.burst)?,
            last,
        })
    }

    /// The units of the state word.
    pub const fn grid(&self) -> &Grid {
        &self.grid
    }

    /// The clock in units, on the word's scale: `initial` more than [`Grid::units`].
    #[inline(always)]
    fn clock(&self, now: u64) -> u64 {
        self.grid.units(now).saturating_add(self.initial)
    }

    /// The departure time of a request at `clock`, both on the word's scale.
    #[inline]
    fn departure(&self, state: u64, clock: u64) -> u64 {
        if state == 0 {
            // The scale makes `clock` at least `initial`.
            clock.saturating_sub(self.initial)
        } else {
            state.max(clock.saturating_sub(self.slack))
        }
    }
}

impl Algorithm for Pacer {
    fn last_time(&self) -> u64 {
        self.last
    }

    fn books_ahead(&self) -> bool {
        true
    }

    #[inline]
    fn step(&self, state: u64, now: u64, cost: u64) -> Step {
        if cost == 0 {
            return Step::ask();
        }
        if cost > self.most {
            return Step::never();
        }
        if now > self.last {
            return Step::deny();
        }
        let clock = self.clock(now);
        let departure = self.departure(state, clock);
        let charge = cost.wrapping_mul(self.grid.per_permit().get());
        match departure.checked_add(charge) {
            Some(next) if departure <= clock => Step::allow(next),
            _ => Step::deny(),
        }
    }

    /// After a rest more requests pass than one may cost.
    fn largest(&self) -> u64 {
        self.most
    }

    fn available(&self, state: u64, now: u64) -> u64 {
        let clock = self.clock(now);
        let departure = self.departure(state, clock);
        if now > self.last
            || departure > clock
            || departure.checked_add(self.grid.per_permit().get()).is_none()
        {
            return 0;
        }
        (clock - departure) / self.grid.per_permit() + 1
    }

    fn admits_at(&self, state: u64, now: u64, cost: u64) -> u64 {
        if cost == 0 {
            return now;
        }
        self.reserve(state, now, cost).map_or(NEVER, |r| r.at)
    }

    fn fresh_at(&self, state: u64, now: u64) -> u64 {
        if state == 0 {
            return now;
        }
        until(self.last, self.grid.nanos(state).max(now))
    }

    #[inline]
    fn expires_at(&self, state: u64) -> u64 {
        let at = self.grid.over(state, self.last);
        if state == 0 {
            0
        } else {
            at
        }
    }

    /// The word of a fresh state at `until`.
    fn owing(&self, until: u64) -> u64 {
        let word = self.grid.units_up(until).max(1);
        match self.expires_at(word) {
            NEVER => u64::MAX,
            _ => word,
        }
    }

    fn reserve(&self, state: u64, now: u64, cost: u64) -> Option<Reservation> {
        if cost > self.most || now > self.last {
            return None;
        }
        let departure = self.departure(state, self.clock(now));
        let charge = cost.checked_mul(self.grid.per_permit().get())?;
        let next = departure.checked_add(charge)?;
        match until(self.last, self.grid.nanos(departure.saturating_sub(self.initial)).max(now)) {
            NEVER => None,
            at => Some(Reservation { next, at }),
        }
    }

    /// A booking ahead departs at the time of the word before it.
    fn last_booking(&self, state: u64, charge: Charge) -> Option<Reservation> {
        let permit = self.grid.per_permit().get();
        let departure = state.checked_sub(charge.cost.checked_mul(permit)?)?;
        // A later booking departs a permit later. If that takes less than a nanosecond, both may
        // depart in the same one.
        if departure == 0 || self.grid.nanos(permit) <= 1 {
            return None;
        }
        Some(Reservation {
            at: self.grid.nanos(departure.saturating_sub(self.initial)),
            next: departure,
        })
    }

    fn charge(&self, state: u64, now: u64, cost: u64) -> Charged {
        if cost == 0 || now > self.last {
            return Charged::none(cost);
        }
        let permit = self.grid.per_permit();
        let clock = self.clock(now);
        let departure = self.departure(state, clock);
        // With `borrow`, `most` is all that a word holds.
        let largest = self.most.saturating_mul(permit.get());
        let latest = clock.saturating_add(largest).saturating_add(largest);
        match cost.min(latest.saturating_sub(departure) / permit) {
            0 => Charged::none(cost),
            permits => Charged {
                next: Some(departure.saturating_add(permits.wrapping_mul(permit.get()))),
                rest: cost - permits,
            },
        }
    }
}

impl Facts for Pacer {
    fn keeps_reserves(&self) -> bool {
        false
    }

    fn words_are_times(&self) -> bool {
        true
    }

    /// The wait for the next departure in permits, rounded up, less 1. The 1 is the permit that
    /// [`Algorithm::available`] already shows as missing.
    fn debt(&self, state: u64, now: u64) -> u64 {
        state.saturating_sub(self.clock(now)).saturating_sub(1) / self.grid.per_permit()
    }

    /// The word of a fresh state at `now` from which `permits` have been taken, the burst at most;
    /// 0 for no permits.
    fn charging(&self, permits: u64, now: u64) -> Charging {
        let charge = permits.saturating_mul(self.grid.per_permit().get()).min(self.burst);
        match permits {
            0 => Charging::To(0),
            _ => Charging::To(self.grid.units(now).saturating_add(charge)),
        }
    }

    /// The callers have handled equal policies before.
    fn adopt(&self, _old: &Pacer, _state: u64) -> Option<u64> {
        None
    }

    /// Permits by which a state falls short of a fresh one at `now`, rounded up.
    fn owed(&self, state: u64, now: u64) -> Option<u64> {
        let units = state.saturating_sub(self.grid.units(now));
        let permit = self.grid.per_permit();
        Some(units / permit + u64::from(units % permit != 0))
    }

    fn most_in(&self, policy: &Policy, window: u64) -> u64 {
        // A bucket that lends counts from the time at which it is paid, not from the request's.
        if policy.borrow {
            let come = refilled(policy.limit, policy.period, window - 1);
            return policy.burst.saturating_add(come);
        }
        let burst = policy.slack.saturating_add(1);
        bucket(Some(&self.grid), Rate { burst, ..policy.rate() }, window)
    }
}
