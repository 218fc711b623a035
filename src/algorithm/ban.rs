//! The token bucket that bans: GCRA, and a count of refusals beside it in the same word.
//!
//! ```text
//! word = TAT << bits | mark        mark 0..after: refusals so far; mark = after: banned
//! ```
//!
//! The TAT and the decision are those of [`super::gcra`]. A refusal writes: it raises the mark by
//! one. The refusal that makes the mark `after` bans the key until `U = now + ban`. The ban is a
//! debt: it raises the TAT to `U + (burst − 1)` permits, so a cost of 1 first passes at `U`, and
//! the bucket then refills from empty. A refusal during a ban writes nothing, so it does not
//! prolong the ban.
//!
//! Refusals are forgotten when the bucket is full again (the TAT is not after the clock), and when
//! a ban ends. A full bucket admits every cost up to the burst, so a refusal always finds a TAT
//! after the clock, and its word expires after `now`. No step lowers the TAT, so the time of expiry
//! never falls: it depends on the TAT only.
//!
//! A charge ([`Algorithm::charge`]) that leaves no permit counts as a refusal. So after 5 failures
//! that are charged afterwards, `5/min ban 1h` bans at once, and not at the sixth request. A ban
//! takes no charges and no reservations.
//!
//! Most admitted in any interval of length t: that of gcra, `burst + limit/period · t`.

use super::facts::{bucket, Charging, Facts};
use super::{after, describe, until, Algorithm, Charged, Reservation, Step};
use crate::algorithm::gcra::grid;
use crate::decision::{Decision, Reason, Verdict};
use crate::policy::{Kind, Policy, PolicyError};
use crate::units::{bits, mul_div_ceil, Grid, LAST, NEVER};
use core::num::{NonZeroU128, NonZeroU64};

/// A compiled token bucket with `ban`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ban {
    grid: Grid,
    burst: u64,
    /// `burst` permits in units.
    tolerance: u64,
    /// How long a ban lasts, in nanoseconds.
    time: u64,
    /// The mark of a ban: the refusals that lead to it.
    after: u64,
    /// Bits of the mark.
    mark_bits: u32,
    /// The policy's last time. Up to it `tolerance` can be added to the clock twice without
    /// overflow of the TAT's bits.
    last: u64,
}

impl Ban {
    /// Compiles a policy of kind [`Kind::Gcra`] with `ban`, whose limit is not 0.
    ///
    /// # Errors
    /// [`PolicyError::OptionMismatch`] for any other policy, [`PolicyError::Ban`] if the word
    /// cannot hold so long a ban beside the clock, and those of [`super::gcra::Gcra::new`].
    pub fn new(policy: &Policy) -> Result<Ban, PolicyError> {
        policy.validate()?;
        if policy.kind != Kind::Gcra || policy.ban == 0 {
            return Err(PolicyError::OptionMismatch);
        }
        let limit = NonZeroU64::new(policy.limit).ok_or(PolicyError::OptionMismatch)?;
        let period = NonZeroU64::new(policy.period).ok_or(PolicyError::PeriodZero)?;
        let after = u64::from(policy.ban_after);
        let mark_bits = bits(after);
        let tat_bits = 64 - mark_bits;
        // The grid has room for twice its span beyond the clock: for a debt of two bursts, or for a
        // ban and a burst.
        let banned = mul_div_ceil(u128::from(policy.ban), limit.into(), NonZeroU128::from(period));
        let banned =
            banned.and_then(|permits| u64::try_from(permits).ok()).ok_or(PolicyError::Ban)?;
        // A policy that would not fit without its ban either gets the error of a bucket without a
        // ban, such as a burst that is too large.
        grid(policy, policy.burst, tat_bits)?;
        let grid = match policy.burst.checked_add(banned / 2 + 1) {
            Some(span) => grid(policy, span, tat_bits).map_err(|_| PolicyError::Ban)?,
            None => return Err(PolicyError::Ban),
        };
        let tolerance =
            policy.burst.checked_mul(grid.per_permit().get()).ok_or(PolicyError::BurstTooLarge)?;
        let end = (u64::MAX >> mark_bits)
            .checked_sub(tolerance)
            .and_then(|end| end.checked_sub(tolerance));
        let last = grid
            .nanos(end.ok_or(PolicyError::BurstTooLarge)?)
            .min(grid.max_now())
            .saturating_sub(1);
        Ok(Ban {
            grid,
            burst: policy.burst,
            tolerance,
            time: policy.ban,
            after,
            mark_bits,
            last: last.min(LAST),
        })
    }

    /// The units of the word's TAT.
    pub const fn grid(&self) -> &Grid {
        &self.grid
    }

    /// The time at which the ban of `state` ends, in nanoseconds. `None` if it is not banned at
    /// `now`, and [`NEVER`] if the ban ends after the last time.
    pub fn banned_until(&self, state: u64, now: u64) -> Option<u64> {
        let (tat, mark) = self.unpack(state);
        self.is_banned(tat, mark, self.grid.units(now)).then(|| self.end(tat))
    }

    /// The word of a key that is banned until that time.
    pub(super) fn banned(&self, until: u64) -> u64 {
        self.pack(self.ban(until), self.after)
    }

    fn unpack(&self, state: u64) -> (u64, u64) {
        (state >> self.mark_bits, state & ((1 << self.mark_bits) - 1))
    }

    /// A TAT above the highest that the word can hold becomes the highest, which expires at
    /// [`NEVER`].
    fn pack(&self, tat: u64, mark: u64) -> u64 {
        (tat.min(u64::MAX >> self.mark_bits) << self.mark_bits) | mark
    }

    /// Whether the ban still refuses a request of cost 1.
    fn is_banned(&self, tat: u64, mark: u64, clock: u64) -> bool {
        mark >= self.after && self.due(tat, self.grid.per_permit().get()) > clock
    }

    /// The TAT at which a cost of 1 first passes at `until`.
    fn ban(&self, until: u64) -> u64 {
        let units = self.grid.units(until);
        let up = u64::from(self.grid.nanos(units) < until);
        units
            .saturating_add(up)
            .saturating_add(self.tolerance.saturating_sub(self.grid.per_permit().get()))
    }

    /// When a ban with this TAT ends.
    fn end(&self, tat: u64) -> u64 {
        until(self.last, self.grid.nanos(self.due(tat, self.grid.per_permit().get())))
    }

    /// The clock, in units, at which a bucket with this TAT admits `charge` units more.
    fn due(&self, tat: u64, charge: u64) -> u64 {
        tat.saturating_add(charge).saturating_sub(self.tolerance)
    }

    /// The TAT and the mark at `clock`, if the key is not banned.
    fn here(&self, state: u64, clock: u64) -> Option<(u64, u64)> {
        let (tat, mark) = self.unpack(state);
        if tat <= clock {
            return Some((clock, 0));
        }
        match mark >= self.after {
            true if self.is_banned(tat, mark, clock) => None,
            true => Some((tat, 0)),
            false => Some((tat, mark)),
        }
    }

    /// The word after one more refusal.
    fn refused(&self, tat: u64, mark: u64, now: u64) -> u64 {
        match mark + 1 >= self.after {
            true => self.pack(tat.max(self.ban(now.saturating_add(self.time))), self.after),
            false => self.pack(tat, mark + 1),
        }
    }
}

impl Algorithm for Ban {
    fn bans(&self, state: u64, now: u64) -> bool {
        self.banned_until(state, now).is_some()
    }

    fn described(&self, step: Step, state: u64) -> u64 {
        match step.verdict {
            Verdict::Denied => step.next.unwrap_or(state),
            Verdict::Allowed | Verdict::Never => state,
        }
    }

    fn last_time(&self) -> u64 {
        self.last
    }

    fn books_ahead(&self) -> bool {
        true
    }

    fn counts_refusals(&self) -> bool {
        true
    }

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
        let Some((tat, mark)) = self.here(state, clock) else { return Step::deny() };
        // cost <= burst, so charge <= tolerance, and up to `last` the clock leaves room for two of
        // them.
        let next = tat.saturating_add(cost.wrapping_mul(self.grid.per_permit().get()));
        match next <= clock.saturating_add(self.tolerance) {
            true => Step::allow(self.pack(next, mark)),
            false => Step::deny_and(self.refused(tat, mark, now)),
        }
    }

    fn available(&self, state: u64, now: u64) -> u64 {
        if now > self.last {
            return 0;
        }
        let clock = self.grid.units_in_time(now);
        let tat = self.unpack(state).0.max(clock);
        clock.saturating_add(self.tolerance).saturating_sub(tat) / self.grid.per_permit()
    }

    fn admits_at(&self, state: u64, now: u64, cost: u64) -> u64 {
        if cost == 0 {
            return now;
        }
        if cost > self.burst {
            return NEVER;
        }
        let tat = self.unpack(state).0.max(self.grid.units(now));
        let due = self.due(tat, cost.wrapping_mul(self.grid.per_permit().get()));
        until(self.last, self.grid.nanos(due).max(now))
    }

    fn fresh_at(&self, state: u64, now: u64) -> u64 {
        if state == 0 {
            return now;
        }
        until(self.last, self.grid.nanos(self.unpack(state).0).max(now))
    }

    fn expires_at(&self, state: u64) -> u64 {
        match state {
            0 => 0,
            _ => self.grid.over(self.unpack(state).0, self.last),
        }
    }

    /// The word of a bucket that is full at `until`, without a ban.
    fn owing(&self, until: u64) -> u64 {
        let word = self.pack(self.grid.units_up(until).max(1), 0);
        match self.expires_at(word) {
            NEVER => u64::MAX,
            _ => word,
        }
    }

    fn describe(&self, verdict: Verdict, state: u64, now: u64, cost: u64) -> Decision {
        self.explained(describe(self, verdict, state, now, cost), state, now, cost)
    }

    fn reserve(&self, state: u64, now: u64, cost: u64) -> Option<Reservation> {
        if cost > self.burst {
            return None;
        }
        let (tat, mark) = self.here(state, self.grid.units(now))?;
        let charge = cost.wrapping_mul(self.grid.per_permit().get());
        let next = tat.checked_add(charge).filter(|next| *next <= u64::MAX >> self.mark_bits)?;
        match until(self.last, self.grid.nanos(self.due(tat, charge)).max(now)) {
            NEVER => None,
            at => Some(Reservation { next: self.pack(next, mark), at }),
        }
    }

    fn charge(&self, state: u64, now: u64, cost: u64) -> Charged {
        if cost == 0 || now > self.last {
            return Charged::none(cost);
        }
        let clock = self.grid.units_in_time(now);
        let Some((tat, mark)) = self.here(state, clock) else { return Charged::none(cost) };
        let permit = self.grid.per_permit();
        let line = clock.saturating_add(self.tolerance);
        let permits = cost.min(line.saturating_add(self.tolerance).saturating_sub(tat) / permit);
        let next = tat.saturating_add(permits.wrapping_mul(permit.get()));
        let next = match next.saturating_add(permit.get()) > line {
            true => self.refused(next, mark, now),
            false => self.pack(next, mark),
        };
        Charged { next: Some(next), rest: cost - permits }
    }
}

impl Facts for Ban {
    fn keeps_reserves(&self) -> bool {
        true
    }

    fn words_are_times(&self) -> bool {
        true
    }

    /// The permits, rounded up, that the limit must refill before the first one can be taken; 0 for
    /// a banned key, because a ban is no number.
    fn debt(&self, state: u64, now: u64) -> u64 {
        let clock = self.grid.units(now);
        let Some((tat, _)) = self.here(state, clock) else { return 0 };
        let (units, permit) =
            (tat.saturating_sub(clock.saturating_add(self.tolerance)), self.grid.per_permit());
        units / permit + u64::from(units % permit != 0)
    }

    /// The word of a key without refusals that lacks `permits` of its burst, or owes up to another
    /// burst; 0 for no permits.
    fn charging(&self, permits: u64, now: u64) -> Charging {
        if permits == 0 || now > self.last {
            return Charging::To(0);
        }
        let most = self.tolerance.saturating_mul(2);
        let units = permits.saturating_mul(self.grid.per_permit().get()).min(most);
        Charging::To(self.pack(self.grid.units_in_time(now).saturating_add(units), 0))
    }

    /// Moves a key's word from the policy `old` to this one. A key that `old` banned stays banned
    /// until the same time, or longer if its debt lasts longer. `None` for a key that is not
    /// banned.
    fn adopt(&self, old: &Ban, state: u64) -> Option<u64> {
        let (tat, mark) = old.unpack(state);
        if mark < old.after {
            return None;
        }
        let (owed, _) = self.unpack(self.owing(old.expires_at(state)));
        Some(self.pack(self.ban(old.end(tat)).max(owed), self.after))
    }

    /// A ban ends at the same time.
    fn convert(&self, old: &Ban, state: u64, now: u64) -> Option<u64> {
        match old.banned_until(state, now)? {
            NEVER => None,
            until => Some(self.banned(until)),
        }
    }

    /// A ban ends after the same time.
    fn carry(&self, old: &Ban, state: u64, there: u64, here: u64) -> Option<u64> {
        let until = old.banned_until(state, there)?;
        Some(self.banned(here.saturating_add(after(until, there))))
    }

    fn explained(&self, decision: Decision, state: u64, now: u64, _cost: u64) -> Decision {
        match decision.verdict {
            Verdict::Denied if self.bans(state, now) => decision.because(Reason::Banned),
            Verdict::Allowed | Verdict::Denied | Verdict::Never => decision,
        }
    }

    /// As of a token bucket: a client that knows the policy is never refused, and so never banned.
    fn most_in(&self, policy: &Policy, window: u64) -> u64 {
        bucket(Some(&self.grid), policy.rate(), window)
    }
}
