//! GCRA, the generic cell rate algorithm (ITU-T I.371): a token bucket, and a leaky bucket used as
//! a meter, in one word.
//!
//! The word is the theoretical arrival time (TAT) in [`Grid`] units: the instant at which the
//! bucket is full again if nobody takes from it. A request of cost `n` moves the TAT `n` permits
//! ahead. It is admitted if the new TAT is at most `burst` permits after the clock. That is the
//! specification. The forms in this file are faster, and decide as it does:
//!
//! ```
//! use tollbar::{Shared, State};
//!
//! /// One permit comes back in `permit` nanoseconds. `None`: the request is refused, and the TAT stays.
//! fn step(tat: u64, now: u64, cost: u64, permit: u64, burst: u64) -> Option<u64> {
//!     let after = tat.max(now) + cost * permit;
//!     (after <= now + burst * permit).then_some(after)
//! }
//!
//! let bucket = State::new(&"1/s burst 3".parse()?)?;
//! let mut tat = 0;
//! for now in (0..100).map(|n| 700_000_000 * (n / 2)) {
//!     let next = step(tat, now, 1, 1_000_000_000, 3);
//!     assert_eq!(bucket.check_at(now, 1).is_allowed(), next.is_some());
//!     tat = next.unwrap_or(tat);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Permits can be given back ([`Algorithm::give_back`]). A word whose TAT fell holds a second time
//! as well (`floor`).
//!
//! Most admitted in any interval of length t: `burst + limit/period · t`, and so up to
//! `burst + limit` in one period.

mod floor;
mod held;
mod lease;

use super::{describe, until, Algorithm, Charge, Charged, GiveBack, Reservation, Returned, Step};
use crate::decision::{Decision, Reason, Verdict};
use crate::policy::{Kind, Policy, PolicyError};
use crate::sync::rarely;
use crate::units::{Grid, LAST, NEVER};
use core::num::NonZeroU64;
pub(crate) use floor::TAT_MOST;
use floor::{Floors, TAT_BITS};

/// A compiled token bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Gcra {
    grid: Grid,
    /// The fields that the common case needs.
    plain: Plain,
    burst: u64,
    /// `burst` permits in units.
    tolerance: u64,
    /// Units missing from a fresh bucket: `burst - init` permits.
    lacking: u64,
    /// The last clock reading that admits anything. Up to it `tolerance` can be added to the clock
    /// twice without overflow.
    last: u64,
    floors: Floors,
}

/// The common case: whole units per nanosecond, a bucket that starts full, a time that is not after
/// the last, and a cost from 1 to the burst. It holds only the fields that this case needs, and
/// `end` stands for most of the conditions, so one comparison tests them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Plain {
    /// The case holds for clock readings below this; 0 if it holds for none.
    end: u64,
    burst: u64,
    /// Units per nanosecond.
    units: u64,
    /// Units per permit.
    permit: u64,
    /// `burst` permits in units.
    tolerance: u64,
}

impl Gcra {
    /// Compiles a policy of kind [`Kind::Gcra`] without `borrow`, `ban` and a second rate, whose
    /// limit is not 0.
    ///
    /// # Errors
    /// [`PolicyError::OptionMismatch`] for any other policy, [`PolicyError::RateTooHigh`] from 16
    /// permits per nanosecond on, [`PolicyError::BurstTooLarge`] if the word cannot hold twice the
    /// burst beside the clock, and those of [`Policy::validate`].
    pub fn new(policy: &Policy) -> Result<Gcra, PolicyError> {
        policy.validate()?;
        if policy.kind != Kind::Gcra || policy.borrow || policy.ban != 0 || policy.second.is_some()
        {
            return Err(PolicyError::OptionMismatch);
        }
        let wide = Gcra::compile(policy, 64)?;
        if wide.grid.whole().is_some() {
            return Ok(wide);
        }
        // One bit less halves the precision of a rounded clock, and leaves room for floors.
        match Gcra::compile(policy, TAT_BITS) {
            Ok(narrow) if narrow.last == LAST => Ok(narrow),
            _ => Ok(wide),
        }
    }

    /// Compiles a policy for TATs of so many bits.
    fn compile(policy: &Policy, bits: u32) -> Result<Gcra, PolicyError> {
        let grid = grid(policy, policy.burst, bits)?;
        let permit = grid.per_permit().get();
        let tolerance = policy.burst.checked_mul(permit).ok_or(PolicyError::BurstTooLarge)?;
        let lacking =
            (policy.burst - policy.init).checked_mul(permit).ok_or(PolicyError::BurstTooLarge)?;
        let most = u64::MAX >> 64_u32.saturating_sub(bits);
        let end = most.checked_sub(tolerance).and_then(|end| end.checked_sub(tolerance));
        let last = grid
            .nanos(end.ok_or(PolicyError::BurstTooLarge)?)
            .min(grid.max_now())
            .saturating_sub(1)
            .min(LAST);
        let units = match grid.whole() {
            Some(units) if lacking == 0 => units,
            _ => 0,
        };
        let plain = Plain { end: 0, burst: policy.burst, units, permit, tolerance };
        let floors = match grid.units(last).saturating_add(tolerance.saturating_mul(2)) {
            0..=TAT_MOST => Floors::new(tolerance, grid.units(last)),
            _ => Floors::NONE,
        };
        Ok(Gcra { grid, plain, burst: policy.burst, tolerance, lacking, last, floors }
            .ending_at(last))
    }

    /// Lowers the last time to `last`, if it is later.
    pub(crate) fn ending_at(mut self, last: u64) -> Gcra {
        self.last = self.last.min(last);
        self.plain.end = if self.plain.units == 0 { 0 } else { self.last + 1 };
        self
    }

    /// The units of the state word.
    pub const fn grid(&self) -> &Grid {
        &self.grid
    }

    /// The TAT that a request at `clock` units starts from.
    #[inline(always)]
    fn base(&self, state: u64, clock: u64) -> u64 {
        let tat = self.floors.tat(state);
        if state == 0 {
            clock.saturating_add(self.lacking)
        } else if tat > clock {
            tat
        } else {
            clock
        }
    }

    /// The common case, for callers that keep its fields in registers and use [`Algorithm::step`]
    /// for all other requests.
    pub(crate) const fn plain(&self) -> &Plain {
        &self.plain
    }

    /// [`Algorithm::step`] in every case, the common one included.
    #[inline(never)]
    fn step_of_all(&self, state: u64, now: u64, cost: u64) -> Step {
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
        let base = self.base(state, clock);
        // cost <= burst, so charge <= tolerance, and no sum here wraps up to `last`.
        let charge = cost.wrapping_mul(self.grid.per_permit().get());
        match base.checked_add(charge) {
            Some(next) if next <= clock.wrapping_add(self.tolerance) => {
                Step::allow(self.raise(state, next))
            }
            // A refusal of a fresh bucket that is not full stores the time at which the bucket
            // began to fill.
            _ if state == 0 && self.lacking != 0 => Step::deny_and(base),
            _ => Step::deny(),
        }
    }

    #[inline(never)]
    fn describe_rest(&self, verdict: Verdict, state: u64, now: u64, cost: u64) -> Decision {
        describe(self, verdict, state, now, cost)
    }

    /// When a word that is the TAT `tat` expires.
    #[inline(always)]
    fn expires_plain(&self, tat: u64) -> u64 {
        self.grid.over(tat.saturating_sub(self.lacking), self.last)
    }

    /// The word that follows `word` when charges raise its TAT to `tat`.
    #[inline(always)]
    fn raise(&self, word: u64, tat: u64) -> u64 {
        match self.floors.is_lowered(word) {
            true => self.raise_lowered(word, tat),
            false => tat,
        }
    }

    /// The clock, in units, at which a bucket with the TAT `base` admits `charge` more.
    fn due(&self, base: u64, charge: u64) -> Option<u64> {
        Some(base.checked_add(charge)?.saturating_sub(self.tolerance))
    }
}

impl Plain {
    /// The value for other algorithms than the token bucket: the case never holds.
    pub(crate) const NONE: Plain = Plain { end: 0, burst: 0, units: 0, permit: 0, tolerance: 0 };

    /// Whether this is a bucket of `burst` permits that refills a permit in each nanosecond.
    #[cfg(not(loom))]
    pub(crate) fn is_of_nanoseconds(&self, burst: u64) -> bool {
        self.end != 0 && self.burst == burst && self.permit == self.units
    }

    /// Two words that differ by at least this many units expire at different times, the greater one
    /// later: the units that the clock moves in a nanosecond.
    #[inline(always)]
    pub(crate) fn gap(&self) -> u64 {
        self.units
    }

    /// Whether `state` expired at least 8 ns before `now`. [`Algorithm::expires_at`], which is a
    /// few nanoseconds late, is then at most `now` as well. `state` must be below 2^63, and `now`
    /// below `end`.
    #[inline(always)]
    pub(crate) fn expired_before(&self, state: u64, now: u64) -> bool {
        // The caller has checked that `state` is below 2^63, so the sum cannot wrap.
        state.wrapping_add(self.units.wrapping_mul(8)) <= now.wrapping_mul(self.units)
    }

    /// `Some(Some(next))` for an admission, `Some(None)` for a refusal, and `None` if this is not
    /// the common case. A word whose TAT was lowered (only slots of a table hold such words) is
    /// above every TAT. So a caller that may have read one must not take a refusal of a word above
    /// [`TAT_MOST`] for the common case.
    #[inline(always)]
    pub(crate) fn step(&self, state: u64, now: u64, cost: u64) -> Option<Option<u64>> {
        self.step_before(self.end, state, now, cost)
    }

    /// From this clock reading on [`Plain::step`] does not decide.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// [`Plain::step`] for clock readings below `end`, which is at most [`Plain::end`].
    #[inline(always)]
    pub(crate) fn step_before(
        &self,
        end: u64,
        state: u64,
        now: u64,
        cost: u64,
    ) -> Option<Option<u64>> {
        // A request of cost 1 before `end` is the usual one. It takes neither of the two branches,
        // which `rarely` moves out of its way.
        if now >= end {
            rarely();
            return None;
        }
        let mut charge = self.permit;
        if cost != 1 {
            rarely();
            // A cost of 0 wraps to u64::MAX, so one comparison finds both a cost of 0 and a cost
            // above the burst.
            if cost.wrapping_sub(1) >= self.burst {
                return None;
            }
            charge = charge.wrapping_mul(cost);
        }
        let clock = now.wrapping_mul(self.units);
        // cost <= burst, so charge <= tolerance, and no sum here wraps before `end`.
        let latest = clock.wrapping_add(self.tolerance).wrapping_sub(charge);
        if state > latest {
            return Some(None);
        }
        Some(Some(state.max(clock).wrapping_add(charge)))
    }
}

impl Algorithm for Gcra {
    fn last_time(&self) -> u64 {
        self.last
    }

    fn books_ahead(&self) -> bool {
        true
    }

    #[inline(always)]
    fn step(&self, state: u64, now: u64, cost: u64) -> Step {
        match self.plain.step(state, now, cost) {
            Some(Some(next)) => Step::allow(next),
            Some(None) => Step::deny(),
            None => self.step_of_all(state, now, cost),
        }
    }

    fn available(&self, state: u64, now: u64) -> u64 {
        if now > self.last {
            return 0;
        }
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
            Some(due) => until(self.last, self.grid.nanos(due).max(now)),
            None => NEVER,
        }
    }

    fn fresh_at(&self, state: u64, now: u64) -> u64 {
        if state == 0 {
            return now;
        }
        until(
            self.last,
            self.grid.nanos(self.floors.tat(state).saturating_sub(self.lacking)).max(now),
        )
    }

    /// [`NEVER`] from the last clock reading that admits anything on.
    #[inline]
    fn expires_at(&self, state: u64) -> u64 {
        if self.floors.is_lowered(state) {
            return self.expires_lowered(state);
        }
        let at = self.expires_plain(state);
        if state == 0 {
            0
        } else {
            at
        }
    }

    /// The TAT of a bucket that is as full as a fresh one at `until`.
    fn owing(&self, until: u64) -> u64 {
        let most = if self.floors.exist() { TAT_MOST } else { u64::MAX };
        let word = self.grid.units_up(until).saturating_add(self.lacking).clamp(1, most);
        match self.expires_at(word) {
            // The word expires after the last time. With a large burst it could still admit before
            // that, and this word cannot.
            NEVER => most,
            _ => word,
        }
    }

    /// Computes all fields together, because they share most of their arithmetic.
    #[inline(always)]
    fn describe(&self, verdict: Verdict, state: u64, now: u64, cost: u64) -> Decision {
        if verdict != Verdict::Allowed || now > self.last {
            return self.describe_rest(verdict, state, now, cost);
        }
        let clock = self.grid.units_in_time(now);
        let room = clock.wrapping_add(self.tolerance).saturating_sub(self.base(state, clock));
        let fresh = if state == 0 {
            0
        } else {
            self.grid.nanos(self.floors.tat(state).saturating_sub(self.lacking))
        };
        let reset_after = if fresh > self.last { NEVER } else { fresh.saturating_sub(now) };
        Decision {
            verdict: Verdict::Allowed,
            reason: Reason::Admitted,
            remaining: room / self.grid.per_permit(),
            retry_after: 0,
            reset_after,
            bound: 0,
        }
    }

    fn reserve(&self, state: u64, now: u64, cost: u64) -> Option<Reservation> {
        if cost > self.burst {
            return None;
        }
        let charge = cost.checked_mul(self.grid.per_permit().get())?;
        let base = self.base(state, self.grid.units(now));
        let next = self.raise(state, base.checked_add(charge)?);
        match until(self.last, self.grid.nanos(self.due(base, charge)?).max(now)) {
            NEVER => None,
            at => Some(Reservation { next, at }),
        }
    }

    fn refill(&self) -> Option<u64> {
        Some(self.grid.nanos(self.grid.per_permit().get()))
    }

    /// `None` at the few rates at which words have no room for floors.
    fn refill_in_slots(&self) -> Option<u64> {
        match self.floors.exist() {
            true => self.refill(),
            false => None,
        }
    }

    /// Gives back what the limit has not refilled since the charge: [`GiveBack`].
    fn give_back(&self, state: u64, now: u64, back: &GiveBack) -> Option<Returned> {
        if state == 0 || now > self.last || (back.keeps_slot && !self.floors.exist()) {
            return None;
        }
        let permit = self.grid.per_permit();
        let clock = self.grid.units_in_time(now);
        let tat = self.floors.tat(state);
        let ahead = tat.checked_sub(clock)?;
        // The latest instant for which any request has been admitted.
        let newest = match back.booked {
            true => clock.max(self.floor(state).max(back.highest).saturating_sub(self.tolerance)),
            false => clock,
        };
        let passed = self.passed(back, clock, newest);
        let kept = back.charge.cost.saturating_mul(permit.get()).saturating_sub(passed);
        let units = back.permits.saturating_mul(permit.get()).min(kept).min(ahead);
        let next = match back.keeps_slot {
            true => self.lower(state, tat.wrapping_sub(units)),
            // At least 1, since 0 is the fresh word.
            false => tat.wrapping_sub(units).max(1),
        };
        let lowered = tat.wrapping_sub(self.floors.tat(next));
        (next != state).then(|| Returned { next, permits: lowered / permit })
    }

    fn last_booking(&self, state: u64, charge: Charge) -> Option<Reservation> {
        self.booked_last(state, charge)
    }

    /// Up to two bursts beyond the clock, for which [`Gcra::new`] has seen that the word has room.
    #[inline(never)]
    fn charge(&self, state: u64, now: u64, cost: u64) -> Charged {
        if cost == 0 || now > self.last {
            return Charged::none(cost);
        }
        let permit = self.grid.per_permit();
        let clock = self.grid.units_in_time(now);
        let base = self.base(state, clock);
        let most = clock.saturating_add(self.tolerance).saturating_add(self.tolerance);
        match cost.min(most.saturating_sub(base) / permit) {
            0 => Charged::none(cost),
            permits => Charged {
                next: Some(
                    self.raise(state, base.saturating_add(permits.wrapping_mul(permit.get()))),
                ),
                rest: cost - permits,
            },
        }
    }
}

/// The grid of a policy whose word must hold `span` permits beyond the clock in `bits` bits.
pub(super) fn grid(policy: &Policy, span: u64, bits: u32) -> Result<Grid, PolicyError> {
    let limit = NonZeroU64::new(policy.limit).ok_or(PolicyError::OptionMismatch)?;
    let period = NonZeroU64::new(policy.period).ok_or(PolicyError::PeriodZero)?;
    Grid::new(limit, period, span, bits).ok_or_else(|| {
        // If a burst of 1 fits, the burst is too large; otherwise the rate is too high.
        match Grid::new(limit, period, 1, bits) {
            Some(_) => PolicyError::BurstTooLarge,
            None => PolicyError::RateTooHigh,
        }
    })
}

#[cfg(all(test, not(loom)))]
mod floor_tests;
#[cfg(all(test, not(loom)))]
mod give_back_tests;
#[cfg(all(test, not(loom)))]
mod tests;
