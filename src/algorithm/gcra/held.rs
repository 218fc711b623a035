//! Words that hold a slot's time beside the bucket's, and the last booking of a word.

use super::floor::Floors;
use super::Gcra;
use crate::algorithm::facts::{bucket, Charging, Facts};
use crate::algorithm::{Algorithm, Charge, GiveBack, Reservation};
use crate::policy::Policy;
use crate::units::{div_up, NEVER};
use core::num::NonZeroU128;

impl Facts for Gcra {
    fn keeps_reserves(&self) -> bool {
        true
    }

    fn words_are_times(&self) -> bool {
        true
    }

    /// The permits, rounded up, that the limit must refill before the first one can be taken.
    fn debt(&self, state: u64, now: u64) -> u64 {
        let line = self.grid.units(now).saturating_add(self.tolerance);
        let units = self.floors.tat(state).saturating_sub(line);
        let permit = self.grid.per_permit();
        units / permit + u64::from(units % permit != 0)
    }

    fn charging(&self, permits: u64, now: u64) -> Charging {
        Charging::unchecked(self, permits, now)
    }

    /// The callers have handled equal policies before.
    fn adopt(&self, _old: &Gcra, _state: u64) -> Option<u64> {
        None
    }

    /// Converts a key's word from the policy `old` to this one at the time `now`. The key keeps the
    /// permits that it has left, and the fraction of the next permit that has come back, but never
    /// more than a fresh bucket has. A key in debt keeps its debt, but never more than one burst.
    /// The result is 0 if the key is as good as fresh.
    fn convert(&self, old: &Gcra, state: u64, now: u64) -> Option<u64> {
        if now > self.last {
            return Some(0);
        }
        let clock = self.grid.units_in_time(now);
        let before = old.grid.units(now);
        let (line, base) = (before.saturating_add(old.tolerance), old.base(state, before));
        let scaled = |units: u64| u128::from(units) * u128::from(self.grid.per_permit().get());
        let permit = NonZeroU128::from(old.grid.per_permit());
        let line_here = clock.saturating_add(self.tolerance);
        let word = match line.checked_sub(base) {
            Some(left) => {
                let left = scaled(left) / permit;
                if left >= u128::from(self.tolerance - self.lacking) {
                    return Some(0);
                }
                line_here - left as u64
            }
            None => {
                let debt = div_up(scaled(base - line), permit).min(u128::from(self.tolerance));
                line_here.saturating_add(debt as u64)
            }
        };
        Some(word.max(1))
    }

    /// [`Algorithm::step`] then checks whether the TAT of a word was lowered.
    fn enter_slots(&mut self) {
        self.plain.end = 0;
    }

    fn hold(&self, state: u64, until: u64, now: u64, exact: bool) -> Option<u64> {
        if !self.floors.exist() || until > self.last || now > self.last {
            return None;
        }
        let clock = self.grid.units_in_time(now);
        let tat = match self.base(state, clock) {
            // The bucket is full, and so it is with any earlier TAT. Rounded up, its last permit
            // would come late.
            tat if tat == clock => self.floors.rounded_down(tat),
            tat => tat,
        };
        let held = |word: &u64| (until..NEVER).contains(&self.expires_at(*word));
        if !exact {
            return self.wide(tat, until).filter(held);
        }
        // `until` was computed by `expires_at`, which is up to 8 ns late. If a floor is at that
        // time already, a word for 8 ns earlier finds that floor again. A word for `until` would
        // take the next one.
        let near =
            |from: u64| self.floors.near(tat, self.grid.units_up(from).checked_add(self.lacking)?);
        [until.saturating_sub(8), until].into_iter().filter_map(near).find(held)
    }

    fn full_before_floor(&self, state: u64) -> Option<u64> {
        self.floors.is_lowered(state).then(|| self.fresh_at(state, 0)).filter(|full| *full != NEVER)
    }

    /// A whole bucket at the window's first instant, and what comes after it.
    fn most_in(&self, policy: &Policy, window: u64) -> u64 {
        bucket(Some(&self.grid), policy.rate(), window)
    }
}

impl Gcra {
    /// The word that follows `word`, which was lowered, when charges raise its TAT to `tat`.
    #[cold]
    #[inline(never)]
    pub(super) fn raise_lowered(&self, word: u64, tat: u64) -> u64 {
        if self.floors.is_wide(word) {
            let floor = self.expires_at(word);
            return self.wide(tat, floor).unwrap_or_else(|| tat.max(self.owing(floor)));
        }
        let floor = self.floors.near_floor(word);
        self.floors.near(tat, floor).unwrap_or(tat.max(floor))
    }

    /// Lowers the TAT (theoretical arrival time) of `word` to `tat` and keeps its floor, the time
    /// until which the slot stays taken. A word cannot hold every pair of the two. Then it gets the
    /// earliest TAT after `tat` that it can hold beside the floor. Returns `word` itself if its TAT
    /// would not become lower.
    pub(super) fn lower(&self, word: u64, tat: u64) -> u64 {
        let lowered = if self.floors.is_wide(word) {
            self.wide(tat, self.expires_at(word))
        } else {
            let floor = self.floor(word);
            self.floors.near(tat.max(self.floors.nearest(floor)), floor)
        };
        lowered.filter(|lowered| self.floors.tat(*lowered) < self.floors.tat(word)).unwrap_or(word)
    }

    /// The TAT, or the floor if that is later, in units.
    pub(super) fn floor(&self, word: u64) -> u64 {
        match self.floors.is_lowered(word) {
            true if self.floors.is_wide(word) => self.owing(self.expires_at(word)),
            true => self.floors.near_floor(word),
            false => word,
        }
    }

    /// [`Algorithm::expires_at`] of a word that was lowered.
    #[cold]
    #[inline(never)]
    pub(super) fn expires_lowered(&self, word: u64) -> u64 {
        if !self.floors.is_wide(word) {
            return self.expires_plain(self.floors.near_floor(word));
        }
        match Floors::wide_floor(word, self.expires_plain(self.floors.tat(word))) {
            floor if floor < self.last => floor,
            _ => NEVER,
        }
    }

    /// Makes a word for the TAT `tat` and a floor in nanoseconds. It is a plain word if that
    /// expires no earlier.
    fn wide(&self, tat: u64, floor: u64) -> Option<u64> {
        if self.expires_plain(tat) >= floor {
            return Some(tat);
        }
        let rounded = self.floors.wide_tat(tat);
        match self.expires_plain(rounded) {
            expires if expires >= floor && floor != NEVER => Some(rounded),
            expires => self.floors.wide(rounded, expires, floor),
        }
    }

    /// [`Algorithm::last_booking`].
    pub(super) fn booked_last(&self, state: u64, charge: Charge) -> Option<Reservation> {
        let tat = self.floors.tat(state);
        let due = tat.checked_sub(self.tolerance)?;
        let units = charge.cost.checked_mul(self.grid.per_permit().get())?;
        if !self.is_distinct(due) {
            return None;
        }
        Some(Reservation { at: self.grid.nanos(due), next: tat.checked_sub(units)?.max(1) })
    }

    /// Whether no other booking departs in the nanosecond in which a booking for `due` does: it
    /// would depart a permit later or earlier, and that is a nanosecond or more, or `due` is the
    /// nanosecond's last unit.
    pub(super) fn is_distinct(&self, due: u64) -> bool {
        self.grid.nanos(self.grid.per_permit().get()) > 1
            || self.grid.whole().is_some_and(|units| due.checked_rem(units) == Some(0))
    }

    /// The units that the limit has refilled from the charge to `newest`, the latest instant for
    /// which a request has been admitted.
    pub(super) fn passed(&self, back: &GiveBack, clock: u64, newest: u64) -> u64 {
        let at = back.charge.at;
        // The last booking departs at `newest` itself.
        if back.booked
            && newest > clock
            && self.is_distinct(newest)
            && self.grid.nanos(newest) == at
        {
            return 0;
        }
        match newest.saturating_sub(self.grid.units(at)) {
            // A booking's instant was rounded up to a nanosecond, unless a nanosecond is a unit.
            1.. if back.booked && self.grid.whole() != Some(1) => {
                newest.saturating_sub(self.grid.units(at.saturating_sub(1)))
            }
            passed => passed,
        }
    }
}
