//! Level-dependent refill: a token bucket whose permits come back at a rate that depends on how
//! full it is.
//!
//! The levels are divided into up to four bands ([`Knots`]). In a band that starts at level `L` and
//! has the rate `r` a permit takes `T = period / (limit · r)`. With
//!
//! ```text
//! time(L) = the time in which an empty bucket fills to the level L
//! ```
//!
//! a bucket that is full in `w` is at the level `L` with `time(L) = time(burst) − w`. The word is
//! the time at which the bucket is full, in units of which each `T` is a whole number. A request of
//! cost `n` passes if the level is at least `n`, that is if `clock ≥ word − time(burst) + time(n)`,
//! so the wait of a refusal is exact.
//!
//! A level is `m` permits and a part of the next one. A request moves it down to `m − n` and the
//! same part, which is another time in another band. That time is rounded down to a unit, and where
//! a nanosecond is not a whole number of units ([`Grid`]) the clock is rounded up. So the first
//! request of a full bucket and one that crosses bands may lose up to two units, and no request
//! gains any: an exact bucket would admit whatever this one admits.
//!
//! Most admitted in any window of one period: `burst + limit`, because no band is faster than the
//! policy's rate.

use super::facts::{bucket, Charging, Facts};
use super::gcra::grid;
use super::{until, Algorithm, Charged, Step};
use crate::policy::{Kind, Knots, Policy, PolicyError, Rate};
use crate::units::{gcd, Grid, LAST, NEVER};
use core::num::{NonZeroU128, NonZeroU64};

/// A compiled token bucket with level-dependent refill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LevelRefill {
    grid: Grid,
    bands: [Band; Knots::BANDS_MOST],
    burst: u64,
    /// The units in which an empty bucket fills.
    full: u64,
    /// The last clock reading that admits anything. Up to it `full` can be added to the clock twice
    /// without overflow.
    last: u64,
}

/// A band of levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Band {
    /// The level in permits from which on the band is.
    from: u64,
    /// The units in which an empty bucket fills to `from`.
    time: u64,
    /// The units in which a permit comes back.
    permit: NonZeroU64,
}

/// How full a bucket is.
#[derive(Clone, Copy)]
struct Level {
    permits: u64,
    /// The units of the next permit that have passed.
    part: u64,
}

const PERCENT: u64 = 100;
/// The default: the policy's rate at all levels.
const EVEN: Knots = Knots::of(&[[0, 100]]);

impl LevelRefill {
    /// Compiles a policy of kind [`Kind::LevelRefill`] whose limit is not 0.
    ///
    /// # Errors
    /// [`PolicyError::OptionMismatch`] for any other policy, [`PolicyError::RateTooHigh`] or
    /// [`PolicyError::BurstTooLarge`] if the word cannot count the units of the bands, and those of
    /// [`Policy::validate`].
    #[inline(never)]
    pub fn new(policy: &Policy) -> Result<LevelRefill, PolicyError> {
        policy.validate()?;
        if policy.kind != Kind::LevelRefill {
            return Err(PolicyError::OptionMismatch);
        }
        let bands = if policy.knots.is_none() { EVEN } else { policy.knots };
        // A permit at r % takes 100 / r permits' time. It is a whole number of parts if a permit's
        // time at 100 % has `parts` parts.
        let mut parts: u64 = 1;
        for [_, rate] in percents(&bands) {
            let steps = whole(rate, common(rate, PERCENT))?;
            parts = whole(parts, common(parts, steps))?
                .checked_mul(steps)
                .ok_or(PolicyError::RateTooHigh)?;
        }
        let limit = policy.limit.checked_mul(parts).ok_or(PolicyError::RateTooHigh)?;
        // The bands in parts of a permit's time. `full` is then the greatest number of parts that
        // the word must hold, which the grid needs.
        let counted = Bands::new(policy.burst, &bands, parts).ok_or(PolicyError::BurstTooLarge)?;
        let grid = grid(&Policy { limit, ..*policy }, counted.full, 64)?;
        let units = parts.checked_mul(grid.per_permit().get()).ok_or(PolicyError::BurstTooLarge)?;
        let Bands { bands, full } =
            Bands::new(policy.burst, &bands, units).ok_or(PolicyError::BurstTooLarge)?;
        // One unit more, because a charge may round the clock up.
        let most = full
            .checked_mul(2)
            .and_then(|units| units.checked_add(1))
            .ok_or(PolicyError::BurstTooLarge)?;
        let end = u64::MAX.checked_sub(most).ok_or(PolicyError::BurstTooLarge)?;
        let last = grid.nanos(end).min(grid.max_now()).saturating_sub(1).min(LAST);
        Ok(LevelRefill { grid, bands, burst: policy.burst, full, last })
    }

    /// The units of the state word.
    pub const fn grid(&self) -> &Grid {
        &self.grid
    }

    /// The band of the lowest levels.
    const fn lowest(&self) -> &Band {
        let [lowest, ..] = &self.bands;
        lowest
    }

    /// The band in which the bucket is at `permits`, and at the fractions of the next permit.
    fn band(&self, permits: u64) -> &Band {
        self.bands.iter().rev().find(|band| band.from <= permits).unwrap_or(self.lowest())
    }

    /// The units in which an empty bucket fills to `permits`, the burst at most.
    fn time(&self, permits: u64) -> u64 {
        let band = self.band(permits);
        band.time
            .saturating_add(permits.saturating_sub(band.from).saturating_mul(band.permit.get()))
    }

    /// The level of a bucket that is full in `ahead` units; `None` if it is in debt.
    fn level(&self, ahead: u64) -> Option<Level> {
        let time = self.full.checked_sub(ahead)?;
        let band = self.bands.iter().rev().find(|band| band.time <= time).unwrap_or(self.lowest());
        let units = time.saturating_sub(band.time);
        Some(Level {
            permits: band.from.saturating_add(units / band.permit),
            part: units % band.permit,
        })
    }

    /// The word of a bucket that gave `cost` of the permits that it has at `now`.
    fn after(&self, state: u64, now: u64, level: Level, cost: u64) -> u64 {
        let permits = level.permits.saturating_sub(cost);
        let (old, new) = (self.band(level.permits), self.band(permits));
        if old.from == new.from && state > self.grid.units_in_time(now) {
            return state.saturating_add(cost.saturating_mul(new.permit.get()));
        }
        // The part of the next permit in units of the new band. It is less than a permit there,
        // because `level.part` is less than one of the old band.
        let part = (u128::from(level.part) * u128::from(new.permit.get())
            / NonZeroU128::from(old.permit)) as u64;
        let time = self.time(permits).saturating_add(part);
        // The level was computed from the clock rounded down. The new word starts from the clock
        // rounded up, because one that started from the clock rounded down would be full too early.
        self.grid.units_up(now).saturating_add(self.full.saturating_sub(time))
    }
}

/// The bands in percents, of which they are whole ones.
fn percents(knots: &Knots) -> impl Iterator<Item = [u64; 2]> + Clone + '_ {
    knots.pairs().map(|pair| pair.map(|hundredths| u64::from(hundredths / 100)))
}

/// The bands of a bucket.
struct Bands {
    bands: [Band; Knots::BANDS_MOST],
    full: u64,
}

impl Bands {
    /// The bands of a bucket of `burst` permits, of which one takes `units` at the policy's rate.
    /// `None` if 64 bits do not hold them.
    #[inline(never)]
    fn new(burst: u64, knots: &Knots, units: u64) -> Option<Bands> {
        // The bands that a list does not have begin at a level that no bucket reaches.
        let none = Band { from: u64::MAX, time: u64::MAX, permit: NonZeroU64::MIN };
        let mut bands = [none; Knots::BANDS_MOST];
        let mut last = Band { from: 0, time: 0, permit: NonZeroU64::MIN };
        for (band, [level, rate]) in bands.iter_mut().zip(percents(knots)) {
            let from = (u128::from(burst) * u128::from(level) / u128::from(PERCENT)) as u64;
            let time = (from - last.from).checked_mul(last.permit.get())?.checked_add(last.time)?;
            let permit = NonZeroU64::new(units.checked_mul(PERCENT)? / NonZeroU64::new(rate)?)?;
            *band = Band { from, time, permit };
            last = *band;
        }
        let full = (burst - last.from).checked_mul(last.permit.get())?.checked_add(last.time)?;
        Some(Bands { bands, full })
    }
}

/// The greatest common divisor.
fn common(a: u64, b: u64) -> u64 {
    gcd(u128::from(a), u128::from(b)) as u64
}

/// `a / b` of a divisor that is not 0.
fn whole(a: u64, b: u64) -> Result<u64, PolicyError> {
    a.checked_div(b).ok_or(PolicyError::Knots)
}

impl Algorithm for LevelRefill {
    fn last_time(&self) -> u64 {
        self.last
    }

    fn books_ahead(&self) -> bool {
        false
    }

    #[inline(never)]
    fn step(&self, state: u64, now: u64, cost: u64) -> Step {
        if cost == 0 {
            return Step::ask();
        }
        if cost > self.burst {
            return Step::never();
        }
        if now > self.last {
            return Step::deny();
        }
        let clock = self.grid.units_in_time(now);
        match self.level(state.saturating_sub(clock)) {
            Some(level) if level.permits >= cost => {
                Step::allow(self.after(state, now, level, cost))
            }
            _ => Step::deny(),
        }
    }

    #[inline(never)]
    fn available(&self, state: u64, now: u64) -> u64 {
        if now > self.last {
            return 0;
        }
        let ahead = state.saturating_sub(self.grid.units_in_time(now));
        self.level(ahead).map_or(0, |level| level.permits)
    }

    #[inline(never)]
    fn admits_at(&self, state: u64, now: u64, cost: u64) -> u64 {
        if cost == 0 {
            return now;
        }
        if cost > self.burst {
            return NEVER;
        }
        let due = state.saturating_sub(self.full.saturating_sub(self.time(cost)));
        until(self.last, self.grid.nanos(due).max(now))
    }

    #[inline(never)]
    fn fresh_at(&self, state: u64, now: u64) -> u64 {
        match state {
            0 => now,
            _ => until(self.last, self.grid.nanos(state).max(now)),
        }
    }

    #[inline(never)]
    fn expires_at(&self, state: u64) -> u64 {
        match state {
            0 => 0,
            _ => self.grid.over(state, self.last),
        }
    }

    /// The word of a bucket that is full at `until`.
    #[inline(never)]
    fn owing(&self, until: u64) -> u64 {
        let word = self.grid.units_up(until).max(1);
        match self.expires_at(word) {
            NEVER => u64::MAX,
            _ => word,
        }
    }

    /// A debt is paid at the rate of the lowest band, and is at most what that band pays in the
    /// time in which the bucket fills.
    #[inline(never)]
    fn charge(&self, state: u64, now: u64, cost: u64) -> Charged {
        if cost == 0 || now > self.last {
            return Charged::none(cost);
        }
        let clock = self.grid.units_in_time(now);
        let (taken, word) = match self.level(state.saturating_sub(clock)) {
            None => (0, state),
            Some(level) => {
                let taken = cost.min(level.permits);
                (taken, self.after(state, now, level, taken))
            }
        };
        let permit = self.lowest().permit;
        let latest = clock.saturating_add(self.full).saturating_add(self.full);
        let owed = (cost - taken).min(latest.saturating_sub(word) / permit);
        if taken == 0 && owed == 0 {
            return Charged::none(cost);
        }
        Charged {
            next: Some(word.saturating_add(owed.saturating_mul(permit.get()))),
            rest: cost - taken - owed,
        }
    }
}

impl Facts for LevelRefill {
    fn keeps_reserves(&self) -> bool {
        true
    }

    fn words_are_times(&self) -> bool {
        true
    }

    /// The permits, rounded up, that the bucket must get back before it is above empty.
    fn debt(&self, state: u64, now: u64) -> u64 {
        let line = self.grid.units(now).saturating_add(self.full);
        let units = state.saturating_sub(line);
        let permit = self.lowest().permit;
        units / permit + u64::from(units % permit != 0)
    }

    fn charging(&self, permits: u64, now: u64) -> Charging {
        Charging::unchecked(self, permits, now)
    }

    /// The callers have handled equal policies before.
    fn adopt(&self, _old: &LevelRefill, _state: u64) -> Option<u64> {
        None
    }

    /// The fastest band all the time, and then the whole bucket. Bands that begin at one permit are
    /// the last of them.
    fn most_in(&self, policy: &Policy, window: u64) -> u64 {
        let from = |level: u64| u128::from(policy.burst) * u128::from(level) / u128::from(PERCENT);
        let bands = percents(&policy.knots).map(|[level, rate]| (from(level), rate));
        let ends = bands.clone().skip(1).map(|(from, _)| from);
        let ends = ends.chain(core::iter::once(u128::from(policy.burst)));
        let fastest = bands.zip(ends).filter(|((from, _), end)| from < end);
        let rate = fastest.map(|((_, rate), _)| rate).max().unwrap_or(PERCENT);
        // Over so many years the whole rate is near enough.
        let scaled = policy.limit.checked_mul(rate).zip(policy.period.checked_mul(PERCENT));
        let (limit, period) = scaled.unwrap_or((policy.limit, policy.period));
        bucket(None, Rate { limit, period, burst: policy.burst }, window)
    }
}
