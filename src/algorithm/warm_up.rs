//! Warm-up: a rate that grows from cold to its limit while it is used, and cools while it is idle.
//!
//! The curve is that of Guava's `SmoothWarmingUp`: permits are stored while the limiter is idle,
//! and the more are stored, the more one of them costs. With the interval `T = period / limit`,
//! warm-up time `P` and cold factor `c`,
//!
//! ```text
//! threshold = P / 2T      most = threshold + 2P / (T · (1 + c))      one permit is stored in P / most
//!
//! price of one permit at x stored:  T                                     for x <= threshold
//!                                   T + (c − 1) · T · (x − threshold) / (most − threshold)   above
//! ```
//!
//! A take pays the integral over the permits that it draws from the store, then `T` for each
//! further permit. It is admitted once all takes before it are paid for. Its own price delays the
//! next take.
//!
//! One thing differs from Guava: idleness begins one interval after the last take was paid, not at
//! that instant. Otherwise a caller that polls a little slower than the limit would cool the
//! limiter as fast as it warms it, and find it cold for ever.
//!
//! The word is `next free time : stored`, both in units chosen for the policy. Each integral is the
//! difference of two rounded values of one curve, so rounding errors do not add up.
//!
//! Most admitted in any interval of length t, with unit costs: `1 + limit/period · (t + u)`, where
//! u is one unit of the clock ([`WarmUp::grid`]). The store takes its bits from the clock, so a
//! unit is longer here than elsewhere: 100 ns at 100 per second and a warm-up of 2 s.

use super::facts::{one_at_a_time, Charging, Facts};
use super::gcra::grid;
use super::{until, Algorithm, Charge, Charged, Reservation, Step};
use crate::policy::{Kind, Policy, PolicyError};
use crate::units::{bits, div_up, gcd, Grid, LAST, NEVER};
use core::num::{NonZeroU128, NonZeroU64};

/// A compiled warm-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WarmUp {
    grid: Grid,
    /// The largest cost.
    most: u64,
    /// Levels of the store per permit, as a binary logarithm.
    fine: u32,
    /// Levels of a full (cold) store.
    full: u64,
    /// The threshold in levels is `half / (2 · den)`, in lowest terms.
    half: u128,
    den: u128,
    /// The slope's part of a price is `(2 · den · level − half)² · steep / flatten`.
    steep: u128,
    flatten: NonZeroU128,
    level_bits: u32,
    warm_up: NonZeroU64,
    /// Nanoseconds from the time at which the last take is paid for until idleness begins.
    grace: u64,
    /// The last clock reading that admits anything.
    last: u64,
}

impl WarmUp {
    /// A store of fewer permits than this is divided into at least this many levels, as far as
    /// `FINEST` allows.
    const LEVELS: u64 = 1 << 8;
    /// The binary logarithm of the finest levels per permit: 1/1024 permit each.
    const FINEST: u32 = 10;

    /// Compiles a policy of kind [`Kind::WarmUp`] whose limit is not 0.
    ///
    /// # Errors
    /// [`PolicyError::OptionMismatch`] for any other policy, [`PolicyError::RateTooHigh`] or
    /// [`PolicyError::BurstTooLarge`] if the word cannot hold the store beside the clock, and those
    /// of [`Policy::validate`].
    pub fn new(policy: &Policy) -> Result<WarmUp, PolicyError> {
        policy.validate()?;
        if policy.kind != Kind::WarmUp {
            return Err(PolicyError::OptionMismatch);
        }
        let limit = NonZeroU64::new(policy.limit).ok_or(PolicyError::OptionMismatch)?;
        let period = NonZeroU64::new(policy.period).ok_or(PolicyError::PeriodZero)?;
        let warm_up = NonZeroU64::new(policy.warm_up).ok_or(PolicyError::WarmUp)?;
        let cold = u128::from(policy.cold);
        // P/T permits = warm_up · limit / period;  most = P/T · (5 + c) / (2 · (1 + c))
        let over = u128::from(warm_up.get())
            .checked_mul(u128::from(limit.get()))
            .ok_or(PolicyError::RateTooHigh)?;
        let top = over.checked_mul(5 + cold).ok_or(PolicyError::RateTooHigh)?;
        let den = NonZeroU128::new(u128::from(period.get()) * (2 * (1 + cold)))
            .ok_or(PolicyError::PeriodZero)?;
        let mut fine = 0;
        while fine < Self::FINEST && (top << fine) / den < u128::from(Self::LEVELS) {
            fine += 1;
        }
        let full = u64::try_from((top << fine) / den).map_err(|_| PolicyError::RateTooHigh)?;
        let level_bits = bits(full).max(1);
        let grid = grid(policy, policy.burst, 64u32.saturating_sub(level_bits))?;
        let shared = gcd(over << fine, u128::from(period.get())).max(1);
        let (half, den) = ((over << fine) / shared, u128::from(period.get()) / shared);
        // In permits x and intervals T the slope's part of the integral from the threshold to x is
        // (c−1)/(2·(most−threshold)) · (x−threshold)², with most − threshold = 2·P/T/(1+c). With x
        // and the threshold as fractions over 2·den·2^fine, and P/T = half/(den·2^fine), that is
        // (c−1)·(c+1) · (2·den·level − half)² / (16 · den · half · 2^fine).
        let unit = u128::from(grid.per_permit().get());
        let steep = unit.checked_mul((cold - 1) * (cold + 1)).ok_or(PolicyError::RateTooHigh)?;
        let flatten = half
            .checked_mul(den << (4 + fine))
            .and_then(NonZeroU128::new)
            .ok_or(PolicyError::RateTooHigh)?;
        let mut warm = WarmUp {
            grid,
            last: LAST,
            most: policy.burst,
            fine,
            full,
            half,
            den,
            steep,
            flatten,
            level_bits,
            warm_up,
            grace: (period.get() / limit).saturating_add(u64::from(period.get() % limit != 0)),
        };
        // The integral's terms must fit 128 bits for a full store.
        warm.price(full).ok_or(PolicyError::RateTooHigh)?;
        // The last time at which the largest cost, taken from a full store, is paid for at a time
        // that the word can hold.
        let largest = warm.wait(full, policy.burst).ok_or(PolicyError::BurstTooLarge)?;
        let last = warm.grid.nanos((u64::MAX >> level_bits).saturating_sub(largest));
        warm.last = last.min(warm.grid.max_now()).saturating_sub(1).min(LAST);
        Ok(warm)
    }

    /// The units of the word's next free time.
    pub const fn grid(&self) -> &Grid {
        &self.grid
    }

    /// Permits stored at `now`, times `2^10`: 0 is warm.
    pub fn stored(&self, state: u64, now: u64) -> u64 {
        let (_, level) = self.here(state, now, self.grid.units(now));
        level << (Self::FINEST - self.fine)
    }

    /// The wait until a state is free, in permits at the full rate, rounded up; at least 1.
    fn permits_until_free(&self, state: u64, now: u64) -> u64 {
        let (next, _) = self.unpack(state);
        let units = next.saturating_sub(self.grid.units(now));
        let permit = self.grid.per_permit();
        (units / permit + u64::from(units % permit != 0)).max(1)
    }

    fn unpack(&self, state: u64) -> (u64, u64) {
        (state >> self.level_bits, state & ((1 << self.level_bits) - 1))
    }

    /// The next free time and the stored levels at `now`.
    fn here(&self, state: u64, now: u64, clock: u64) -> (u64, u64) {
        if state == 0 {
            return (clock, self.full);
        }
        let (next, level) = self.unpack(state);
        if next >= clock {
            return (next, level);
        }
        let idle = now.saturating_sub(self.grid.nanos(next)).saturating_sub(self.grace);
        // The warm-up time fills the store from empty to full.
        let gained = u128::from(idle.min(self.warm_up.get())) * u128::from(self.full)
            / NonZeroU128::from(self.warm_up);
        (clock, (level + gained as u64).min(self.full))
    }

    /// The time, in nanoseconds, at which a state that is free at `next` with `level` stored is
    /// cold again.
    fn cold_at(&self, next: u64, level: u64) -> u64 {
        if next >= u64::MAX >> self.level_bits {
            // The largest time that a word can hold. Such a state admits no request.
            return NEVER;
        }
        let paid = self.grid.nanos(next);
        match NonZeroU128::new(u128::from(self.full)) {
            Some(full) if level < self.full => {
                let cooling =
                    div_up(u128::from(self.full - level) * u128::from(self.warm_up.get()), full)
                        as u64;
                until(self.last, paid.saturating_add(self.grace).saturating_add(cooling))
            }
            _ => until(self.last, paid),
        }
    }

    /// The price in units of emptying a store of `level` levels, rounded down.
    fn price(&self, level: u64) -> Option<u128> {
        let flat =
            u128::from(level).checked_mul(u128::from(self.grid.per_permit().get()))? >> self.fine;
        let above = (u128::from(level) * 2).checked_mul(self.den)?.saturating_sub(self.half);
        let slope = above.checked_mul(above)?.checked_mul(self.steep)? / self.flatten;
        flat.checked_add(slope)
    }

    /// The price, in units, of a take of `cost` from a store of `level` levels; at least 1.
    fn wait(&self, level: u64, cost: u64) -> Option<u64> {
        let wanted = cost.checked_mul(1 << self.fine)?;
        let drawn = wanted.min(level);
        let wait = self.price(level)?.checked_sub(self.price(level - drawn)?)?;
        // Permits beyond the store cost `T` each, rounded up.
        let unit = u128::from(self.grid.per_permit().get());
        let beyond = (u128::from(wanted - drawn) * unit + (1 << self.fine) - 1) >> self.fine;
        Some(u64::try_from(wait + beyond).ok()?.max(1))
    }

    /// The word after a take of `cost` that found `next` and `level`.
    fn paid(&self, next: u64, level: u64, cost: u64) -> Option<u64> {
        let drawn = cost.checked_mul(1 << self.fine)?.min(level);
        let next = next.checked_add(self.wait(level, cost)?)?;
        let word = next.checked_shl(self.level_bits)? | (level - drawn);
        (word >> self.level_bits == next).then_some(word)
    }
}

impl Algorithm for WarmUp {
    fn last_time(&self) -> u64 {
        self.last
    }

    fn books_ahead(&self) -> bool {
        true
    }

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
        let clock = self.grid.units_in_time(now);
        let (next, level) = self.here(state, now, clock);
        if next > clock {
            return Step::deny();
        }
        match self.paid(next, level, cost) {
            Some(word) => Step::allow(word),
            None => Step::deny(),
        }
    }

    fn available(&self, state: u64, now: u64) -> u64 {
        if now > self.last {
            return 0;
        }
        let clock = self.grid.units_in_time(now);
        let (next, level) = self.here(state, now, clock);
        u64::from(next <= clock && self.paid(next, level, 1).is_some())
    }

    fn admits_at(&self, state: u64, now: u64, cost: u64) -> u64 {
        if cost == 0 {
            return now;
        }
        self.reserve(state, now, cost).map_or(NEVER, |r| r.at)
    }

    fn fresh_at(&self, state: u64, now: u64) -> u64 {
        let clock = self.grid.units(now);
        let (next, level) = self.here(state, now, clock);
        if level >= self.full && next <= clock {
            return now;
        }
        let (next, level) = self.unpack(state);
        until(self.last, self.cold_at(next, level).max(now))
    }

    fn expires_at(&self, state: u64) -> u64 {
        if state == 0 {
            return 0;
        }
        let (next, level) = self.unpack(state);
        self.cold_at(next, level)
    }

    /// The word of a cold state that is free at `until`.
    fn owing(&self, until: u64) -> u64 {
        let mut next = self.grid.units(until);
        if self.grid.nanos(next) < until {
            next = next.saturating_add(1);
        }
        let next = next.clamp(1, u64::MAX >> self.level_bits);
        (next << self.level_bits) | self.full
    }

    fn reserve(&self, state: u64, now: u64, cost: u64) -> Option<Reservation> {
        if cost > self.most {
            return None;
        }
        let (next, level) = self.here(state, now, self.grid.units(now));
        let word = self.paid(next, level, cost)?;
        match until(self.last, self.grid.nanos(next).max(now)) {
            NEVER => None,
            at => Some(Reservation { next: word, at }),
        }
    }

    /// A booking ahead departs at the free time of the word before it. If it has emptied the store,
    /// it is not known how much was stored. The more was stored, the more the booking cost, and the
    /// earlier it departed: so the state before it is the coldest whose booking departed no earlier
    /// than `charge`.
    fn last_booking(&self, state: u64, charge: Charge) -> Option<Reservation> {
        let (next, level) = self.unpack(state);
        let before = |drawn: u64| {
            let free = next.checked_sub(self.wait(level + drawn, charge.cost)?)?;
            Some(Reservation {
                at: self.grid.nanos(free),
                next: (free << self.level_bits) | (level + drawn),
            })
        };
        let mut most =
            charge.cost.checked_mul(1 << self.fine)?.min(self.full.saturating_sub(level));
        let mut least = if level == 0 { 0 } else { most };
        while least < most {
            let middle = least + (most - least).div_ceil(2);
            match before(middle).is_some_and(|last| last.at >= charge.at) {
                true => least = middle,
                false => most = middle - 1,
            }
        }
        before(least)
            .filter(|last| last.next != 0 && self.grid.nanos(self.grid.per_permit().get()) > 1)
    }

    fn charge(&self, state: u64, now: u64, cost: u64) -> Charged {
        let take = cost.min(self.most);
        if take == 0 || now > self.last {
            return Charged::none(cost);
        }
        let clock = self.grid.units_in_time(now);
        let (next, level) = self.here(state, now, clock);
        let owes = next.saturating_sub(clock);
        match self
            .wait(self.full, self.most)
            .filter(|largest| owes <= *largest)
            .and_then(|_| self.paid(next, level, take))
        {
            Some(word) => Charged { next: Some(word), rest: cost - take },
            None => Charged::none(cost),
        }
    }
}

impl Facts for WarmUp {
    fn keeps_reserves(&self) -> bool {
        false
    }

    fn words_are_times(&self) -> bool {
        false
    }

    /// [`WarmUp::permits_until_free`] less 1: that permit is the one that [`Algorithm::available`]
    /// shows as missing.
    fn debt(&self, state: u64, now: u64) -> u64 {
        self.permits_until_free(state, now) - 1
    }

    fn charging(&self, _permits: u64, _now: u64) -> Charging {
        Charging::Step(self.most)
    }

    /// The callers have handled equal policies before.
    fn adopt(&self, _old: &WarmUp, _state: u64) -> Option<u64> {
        None
    }

    fn owed(&self, state: u64, now: u64) -> Option<u64> {
        Some(self.permits_until_free(state, now))
    }

    /// A warm key has the whole rate, by a clock that counts whole units.
    fn most_in(&self, policy: &Policy, window: u64) -> u64 {
        one_at_a_time(Some(&self.grid), policy.rate(), window)
    }
}
