//! Calendar quotas: a counter for each day, week, month or year of a time zone.
//!
//! The word is `window · (limit + 1) + used`. `window` is the number of the local day, week, month
//! or year, counted from 1970, plus 3. (A word of 0 is the fresh state, and a zone's first local
//! window of 1970 may have begun in 1969.)
//!
//! Times are Unix nanoseconds. A window begins when local clocks first show midnight of its first
//! day, or at the jump if they jump over it. So days have the hours that their zone gives them: 23,
//! 24 or 25, and 0 for a day that a zone leaves out. A window ends where the next begins.
//!
//! Months that begin on day 29, 30 or 31 begin on the last day of a shorter month. Each start is
//! counted from the anchor and not from the start before it, so after 28 February comes 31 March.
//! Years from 29 February begin on the 28th in common years.
//!
//! As in a fixed window, a word whose window is later than `now` shows that the clock went back,
//! and the request is decided in the word's window.
//!
//! Most admitted in any window of one period, which is the mean length: `3 · limit`, at the end of
//! one window, in a short one and at the start of a third. `2 · limit` in any time that is shorter
//! than the shortest window.

use super::facts::{Charging, Facts};
use super::{until, Algorithm, Charged, GiveBack, Returned, Step};
use crate::policy::zone::civil::{date, day, length};
use crate::policy::zone::{Zone, DAY};
use crate::policy::{Kind, Policy, PolicyError, Span};
use crate::units::{Divisor, LAST, NEVER};
use core::num::NonZeroU64;

/// A compiled calendar quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Calendar {
    limit: u64,
    /// The number of values of `used`: `limit + 1`.
    radix: Divisor,
    span: Span,
    /// [`Policy::from`].
    from: u32,
    zone: Zone,
}

/// The number that a word has for the local window 0.
const FIRST: i64 = 3;
/// The greatest window of a word: a day of the year 2243. Only damaged words have later ones.
const WINDOWS: u64 = 100_000;
const SECOND: u64 = 1_000_000_000;

/// The window in which a request is decided, and the permits used in it.
struct CalendarUsage {
    window: u64,
    used: u64,
}

impl Calendar {
    /// Compiles a policy of kind [`Kind::Calendar`] whose limit is not 0.
    ///
    /// # Errors
    /// [`PolicyError::OptionMismatch`] for any other policy, [`PolicyError::RateTooHigh`] if the
    /// word cannot hold the counter beside the window, and those of [`Policy::validate`].
    pub fn new(policy: &Policy) -> Result<Calendar, PolicyError> {
        policy.validate()?;
        if policy.kind != Kind::Calendar || policy.limit == 0 {
            return Err(PolicyError::OptionMismatch);
        }
        let span = policy.span().ok_or(PolicyError::Calendar)?;
        let radix = policy
            .limit
            .checked_add(1)
            .and_then(NonZeroU64::new)
            .ok_or(PolicyError::RateTooHigh)?;
        if u64::MAX / radix <= WINDOWS {
            return Err(PolicyError::RateTooHigh);
        }
        let (limit, from, zone) = (policy.limit, policy.from, policy.zone);
        Ok(Calendar { limit, radix: Divisor::new(radix), span, from, zone })
    }

    /// The first instant of a window, in Unix seconds. Window 0 has 1970-01-01, or begins on the
    /// anchor's day in 1970 or before it.
    ///
    /// ```
    /// use tollbar::algorithm::calendar::Calendar;
    /// let days = Calendar::new(&"10/day zone CET-1CEST,M3.5.0,M10.5.0/3".parse()?)?;
    /// let march_30 = days.window(1_774_828_800); // 2026-03-30 00:00 UTC
    /// assert_eq!(days.start(march_30) - days.start(march_30 - 1), 23 * 3600);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn start(&self, window: i64) -> i64 {
        let from = i64::from(self.from);
        let first_day = match self.span {
            Span::Day => window,
            // 1970-01-01 was a Thursday, in the week from Monday -3.
            Span::Week => 7 * window + from - 3,
            Span::Month => self.day_of_month(1970, window + 1, from + 1),
            Span::Year => self.day_of_month(1970 + window, from / 32 + 1, from % 32 + 1),
        };
        self.zone.reaches(first_day * DAY)
    }

    fn day_of_month(&self, year: i64, month: i64, of_month: i64) -> i64 {
        day(year, month, of_month.min(length(year, month)))
    }

    /// The window of an instant in Unix seconds.
    pub fn window(&self, instant: i64) -> i64 {
        let local = instant.saturating_add(i64::from(self.zone.offset_at(instant)));
        let today = local.div_euclid(DAY);
        let (year, month, _) = date(today);
        let from = i64::from(self.from);
        let mut window = match self.span {
            Span::Day => today,
            Span::Week => (today + 3 - from).div_euclid(7),
            Span::Month => {
                let months = (year - 1970) * 12 + month - 1;
                months - i64::from(self.day_of_month(1970, months + 1, from + 1) > today)
            }
            Span::Year => {
                let years = year - 1970;
                years - i64::from(self.day_of_month(year, from / 32 + 1, from % 32 + 1) > today)
            }
        };
        // Clocks that were set back over midnight show yesterday, in a window that has begun. A
        // zone that leaves out a day has begun the next.
        for _ in 0..3 {
            if self.start(window + 1) > instant {
                break;
            }
            window += 1;
        }
        window
    }

    /// The window in which a request at `now` is decided; `None` after the last time.
    fn usage(&self, state: u64, now: u64) -> Option<CalendarUsage> {
        if now > LAST {
            return None;
        }
        let window = self.window_at(now);
        let (stored, used) = self.radix.div_rem(state);
        match stored < window {
            true => Some(CalendarUsage { window, used: 0 }),
            false => Some(CalendarUsage { window: stored, used }),
        }
    }

    /// The window at that time, as words count it.
    fn window_at(&self, now: u64) -> u64 {
        (self.window((now / SECOND) as i64) + FIRST) as u64
    }

    /// The start of a word's window, in nanoseconds.
    fn from(&self, window: u64) -> u64 {
        match window {
            0..=WINDOWS => (self.start(window as i64 - FIRST).max(0) as u64).saturating_mul(SECOND),
            _ => NEVER,
        }
    }

    /// The end of a word's window; [`NEVER`] if nothing is admitted after it.
    fn over(&self, window: u64) -> u64 {
        until(LAST, self.from(window.saturating_add(1)))
    }

    fn word(&self, window: u64, used: u64) -> u64 {
        window.wrapping_mul(self.radix.get()).wrapping_add(used)
    }
}

impl Algorithm for Calendar {
    fn last_time(&self) -> u64 {
        LAST
    }

    fn books_ahead(&self) -> bool {
        false
    }

    fn step(&self, state: u64, now: u64, cost: u64) -> Step {
        if cost == 0 {
            return Step::ask();
        }
        if cost > self.limit {
            return Step::never();
        }
        match self.usage(state, now) {
            Some(usage) if cost <= self.limit.saturating_sub(usage.used) => {
                Step::allow(self.word(usage.window, usage.used + cost))
            }
            _ => Step::deny(),
        }
    }

    fn available(&self, state: u64, now: u64) -> u64 {
        self.usage(state, now).map_or(0, |usage| self.limit.saturating_sub(usage.used))
    }

    fn admits_at(&self, state: u64, now: u64, cost: u64) -> u64 {
        match self.usage(state, now) {
            _ if cost == 0 => now,
            Some(_) if cost > self.limit => NEVER,
            Some(usage) if cost <= self.limit.saturating_sub(usage.used) => now,
            Some(usage) => self.over(usage.window),
            None => NEVER,
        }
    }

    fn fresh_at(&self, state: u64, now: u64) -> u64 {
        match self.usage(state, now) {
            Some(usage) if usage.used == 0 => now,
            Some(usage) => self.over(usage.window),
            None => NEVER,
        }
    }

    /// The end of the word's window, however many permits are used in it.
    fn expires_at(&self, state: u64) -> u64 {
        match state {
            0 => 0,
            _ => self.over(self.radix.div_rem(state).0),
        }
    }

    /// The first window that ends at or after `until`, with all permits used.
    fn owing(&self, until: u64) -> u64 {
        self.word(self.window_at(until.saturating_sub(1).min(LAST + 1)), self.limit)
    }

    fn charge(&self, state: u64, now: u64, cost: u64) -> Charged {
        let Some(usage) = self.usage(state, now) else { return Charged::none(cost) };
        match cost.min(self.limit.saturating_sub(usage.used)) {
            0 => Charged::none(cost),
            permits => Charged {
                next: Some(self.word(usage.window, usage.used + permits)),
                rest: cost - permits,
            },
        }
    }

    /// The rest of the window at most. No window is twice as long as its kind is on average.
    fn refill(&self) -> Option<u64> {
        Some(self.span.nanos() * 2)
    }

    /// Lowers the count of a window that holds the charge, as a fixed window does.
    fn give_back(&self, state: u64, now: u64, back: &GiveBack) -> Option<Returned> {
        let (window, used) = self.radix.div_rem(state);
        let end = self.from(window.saturating_add(1));
        if !(self.from(window)..end).contains(&back.charge.at) || now > LAST || now >= end {
            return None;
        }
        match back.permits.min(back.charge.cost).min(used) {
            0 => None,
            permits => Some(Returned { next: state.saturating_sub(permits), permits }),
        }
    }
}

impl Facts for Calendar {
    fn keeps_reserves(&self) -> bool {
        true
    }

    fn words_are_times(&self) -> bool {
        false
    }

    fn debt(&self, _state: u64, _now: u64) -> u64 {
        0
    }

    fn charging(&self, _permits: u64, now: u64) -> Charging {
        Charging::Step(self.available(0, now))
    }

    /// Moves a key's word from the policy `old` to this one: the permits used stay used, up to this
    /// limit. `None` if the policies differ in their windows.
    fn adopt(&self, old: &Calendar, state: u64) -> Option<u64> {
        if (self.span, self.from, self.zone) != (old.span, old.from, old.zone) {
            return None;
        }
        let (window, used) = old.radix.div_rem(state);
        (window < WINDOWS).then(|| self.word(window, used.min(self.limit)))
    }

    /// The limit at the end of a window, and in each that begins in the nanosecond after or later:
    /// as many as begin in so short a time anywhere from 1970 on.
    fn most_in(&self, policy: &Policy, window: u64) -> u64 {
        // The starts of windows that fit between the window's first two instants and its last.
        let Some(time) = window.checked_sub(2) else { return policy.limit };
        // The window of 1970's first instant may have begun before.
        let first = FIRST as u64 + 1;
        let (mut starts, mut from) = (0, first);
        for to in first..WINDOWS {
            let at = self.from(to);
            if at >= LAST {
                break;
            }
            while at - self.from(from) > time {
                from += 1;
            }
            starts = starts.max(to - from + 1);
        }
        policy.limit.saturating_mul(starts.saturating_add(1))
    }
}
