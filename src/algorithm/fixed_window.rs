//! Fixed windows: a counter that starts again with each window.
//!
//! The word is `start · (limit + 1) + used`. `start` has two meanings:
//!
//! - Aligned to time 0, it is the number of the window.
//! - Aligned to the first request, it is that request's time in grains, rounded up, plus 1. (A word
//!   of 0 is the fresh state.) The grain is 1 ns for limits up to 6. Above that it is the smallest
//!   of 2, 5, 10, 20, 50 … ns that leaves room for the counter. A window is therefore up to a grain
//!   longer than the period, and never shorter.
//!
//! A word whose window is later than `now` shows that the clock went back. The request is then
//! decided in the word's window.
//!
//! Permits can be given back in the window in which they were charged ([`Algorithm::give_back`]).
//! The count falls, and the word's window stays.
//!
//! Most admitted in any window of one period: `2 · limit`, at the end of one window and the start
//! of the next.

use super::facts::{edges, Charging, Facts};
use super::{until, Algorithm, Charged, GiveBack, Returned, Step};
use crate::policy::{Anchor, Kind, Policy, PolicyError};
use crate::units::{Divisor, HORIZON, LAST, NEVER};
use core::num::NonZeroU64;

/// A compiled fixed window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FixedWindow {
    limit: u64,
    /// The number of values of `used`: `limit + 1`.
    radix: Divisor,
    /// Nanoseconds per step of `start`: the period, or the grain of an anchored start.
    grain: Divisor,
    /// The length of a window in nanoseconds.
    period: u64,
    /// The largest `start` of a window that admits. A word can hold larger ones: `owing` uses
    /// `starts + 1`.
    starts: u64,
    /// The last clock reading that admits anything.
    last: u64,
    anchored: bool,
    count_rejected: bool,
}

/// The window in which a request is decided, and the permits used in it.
struct WindowUsage {
    start: u64,
    used: u64,
}

impl FixedWindow {
    /// Compiles a policy of kind [`Kind::FixedWindow`] whose limit is not 0.
    ///
    /// # Errors
    /// [`PolicyError::OptionMismatch`] for any other policy, [`PolicyError::RateTooHigh`] if the
    /// word cannot hold the counter beside the window, and those of [`Policy::validate`].
    pub fn new(policy: &Policy) -> Result<FixedWindow, PolicyError> {
        policy.validate()?;
        if policy.kind != Kind::FixedWindow || policy.limit == 0 {
            return Err(PolicyError::OptionMismatch);
        }
        let period = NonZeroU64::new(policy.period).ok_or(PolicyError::PeriodZero)?;
        let window = match policy.anchor {
            Anchor::First => FixedWindow::anchored(policy.limit, period)?,
            Anchor::Epoch => FixedWindow::with(policy.limit, period.get(), period, false)?,
        };
        Ok(FixedWindow { count_rejected: policy.count_rejected, ..window })
    }

    /// Compiles windows of `period` nanoseconds that start with the first request.
    pub(super) fn anchored(limit: u64, period: NonZeroU64) -> Result<FixedWindow, PolicyError> {
        let mut decade: u64 = 1;
        loop {
            for times in [1, 2, 5] {
                let grain = decade
                    .checked_mul(times)
                    .and_then(NonZeroU64::new)
                    .ok_or(PolicyError::RateTooHigh)?;
                // Rounding a start up to the next grain must add less than a period.
                if grain > period {
                    return Err(PolicyError::RateTooHigh);
                }
                if let Ok(window) = FixedWindow::with(limit, period.get(), grain, true) {
                    return Ok(window);
                }
            }
            decade = decade.checked_mul(10).ok_or(PolicyError::RateTooHigh)?;
        }
    }

    pub(super) fn with(
        limit: u64,
        period: u64,
        grain: NonZeroU64,
        anchored: bool,
    ) -> Result<FixedWindow, PolicyError> {
        let radix =
            limit.checked_add(1).and_then(NonZeroU64::new).ok_or(PolicyError::RateTooHigh)?;
        let starts = (u64::MAX / radix).saturating_sub(2);
        // A policy with epoch-aligned windows that are too fast for the whole range of the clock
        // gets half of the range instead of an error.
        let needed = if anchored { HORIZON / grain + 2 } else { HORIZON / grain / 2 };
        if starts < needed.max(1) {
            return Err(PolicyError::RateTooHigh);
        }
        // Aligned to time 0, the last window ends before `starts + 1` grains. Anchored, a request
        // after `starts - 1` grains would round up to a start above `starts`.
        let ahead = if anchored { starts - 1 } else { starts.saturating_add(1) };
        let last = ahead.saturating_mul(grain.get()).saturating_sub(u64::from(!anchored));
        Ok(FixedWindow {
            limit,
            radix: Divisor::new(radix),
            grain: Divisor::new(grain),
            period,
            starts,
            last: last.min(LAST),
            anchored,
            count_rejected: false,
        })
    }

    /// The window in which a request at `now` is decided; `None` after `last`.
    #[inline]
    fn usage(&self, state: u64, now: u64) -> Option<WindowUsage> {
        if now > self.last {
            return None;
        }
        let (grain, rest) = self.grain.div_rem(now);
        if !self.anchored {
            let from = grain.wrapping_mul(self.radix.get());
            let Some(used) = state.checked_sub(from) else {
                return Some(WindowUsage { start: grain, used: 0 });
            };
            if used <= self.limit {
                return Some(WindowUsage { start: grain, used });
            }
            let (start, used) = self.radix.div_rem(state);
            return Some(WindowUsage { start, used });
        }
        let (start, used) = self.radix.div_rem(state);
        if state != 0 && now < self.end(start) {
            return Some(WindowUsage { start, used });
        }
        // `now` is at most `last`, so this is at most `starts`.
        let start = grain + u64::from(rest != 0) + 1;
        Some(WindowUsage { start, used: 0 })
    }

    /// The number of the window in which a request at `now` is decided, aligned to time 0, and the
    /// permits used in it. `None` after the last time.
    pub(super) fn used_at(&self, state: u64, now: u64) -> Option<(u64, u64)> {
        self.usage(state, now).map(|usage| (usage.start, usage.used))
    }

    /// The number of the window at `now`, aligned to time 0, and the nanoseconds since it began.
    pub(super) fn slice_of(&self, now: u64) -> (u64, u64) {
        self.grain.div_rem(now)
    }

    /// The start of the window `start`, in nanoseconds. Anchored, it is up to a grain later than
    /// the first request.
    #[inline(always)]
    pub(super) fn from(&self, start: u64) -> u64 {
        start.saturating_sub(u64::from(self.anchored)).saturating_mul(self.grain.get())
    }

    /// The end of the window `start`, in nanoseconds.
    #[inline(always)]
    fn end(&self, start: u64) -> u64 {
        self.from(start).saturating_add(self.period)
    }

    /// The window of a word, where it began, and the permits used in it.
    #[cfg(test)]
    pub(super) fn parts(&self, word: u64) -> (u64, u64, u64) {
        let (start, used) = self.radix.div_rem(word);
        (start, self.from(start), used)
    }

    /// The end of the window `start`; [`NEVER`] if nothing is admitted after it.
    #[inline(always)]
    fn over(&self, start: u64) -> u64 {
        until(self.last, self.end(start))
    }

    /// The first start at or after the time `from`, as an anchored word counts it.
    #[inline(always)]
    fn anchor(&self, from: u64) -> u64 {
        let (grain, rest) = self.grain.div_rem(from);
        // Saturating, because `from / 1 + 2` may exceed 64 bits. Callers compare the result with
        // `starts`.
        grain.saturating_add(u64::from(rest != 0)).saturating_add(1)
    }

    /// The most in a half-open window of `window` ns, above 0, if windows are anchored.
    pub(super) fn most_anchored(&self, window: u64) -> u64 {
        let (last, limit) = (window - 1, self.limit);
        // The request that begins the first window comes at a multiple of the grain. Each later
        // window begins when the one before it ends, and that start is rounded up.
        let (grains, rest) = self.grain.div_rem(self.period);
        let spacing = grains.saturating_add(u64::from(rest != 0)).saturating_mul(self.grain.get());
        // The first request is in this window, or has one permit before it.
        let later = last.checked_sub(self.period).map_or(0, |time| edges(spacing, time + 1));
        let begun = limit.saturating_mul(later.saturating_add(1));
        begun.max((limit - 1).saturating_add(limit.saturating_mul(edges(spacing, last))))
    }

    #[inline(always)]
    pub(super) fn word(&self, start: u64, used: u64) -> u64 {
        start.wrapping_mul(self.radix.get()).wrapping_add(used)
    }
}

impl Algorithm for FixedWindow {
    fn last_time(&self) -> u64 {
        self.last
    }

    fn books_ahead(&self) -> bool {
        false
    }

    #[inline]
    fn step(&self, state: u64, now: u64, cost: u64) -> Step {
        if cost == 0 {
            return Step::ask();
        }
        if cost > self.limit {
            return Step::never();
        }
        let Some(usage) = self.usage(state, now) else { return Step::deny() };
        let left = self.limit.saturating_sub(usage.used);
        if cost <= left {
            return Step::allow(self.word(usage.start, usage.used + cost));
        }
        let full = self.word(usage.start, self.limit);
        if self.count_rejected && full != state {
            return Step::deny_and(full);
        }
        Step::deny()
    }

    fn available(&self, state: u64, now: u64) -> u64 {
        self.usage(state, now).map_or(0, |usage| self.limit.saturating_sub(usage.used))
    }

    fn admits_at(&self, state: u64, now: u64, cost: u64) -> u64 {
        if cost == 0 {
            return now;
        }
        if cost > self.limit {
            return NEVER;
        }
        let Some(usage) = self.usage(state, now) else { return NEVER };
        if cost <= self.limit.saturating_sub(usage.used) {
            return now;
        }
        self.over(usage.start)
    }

    fn fresh_at(&self, state: u64, now: u64) -> u64 {
        match self.usage(state, now) {
            Some(usage) if usage.used == 0 => now,
            Some(usage) => self.over(usage.start),
            None => NEVER,
        }
    }

    /// The end of the word's window, however many permits are used in it.
    #[inline]
    fn expires_at(&self, state: u64) -> u64 {
        if state == 0 {
            return 0;
        }
        self.over(self.radix.div_rem(state).0)
    }

    /// The first window that ends at or after `until`, with all permits used. After the last window
    /// that admits it is the window `starts + 1`, which expires at [`NEVER`].
    fn owing(&self, until: u64) -> u64 {
        let start = if self.anchored {
            self.anchor(until.saturating_sub(self.period))
        } else {
            self.grain.div_rem(until.saturating_sub(1)).0
        };
        let start = if self.end(start) == NEVER { u64::MAX } else { start };
        self.word(start.min(self.starts + 1), self.limit)
    }

    fn charge(&self, state: u64, now: u64, cost: u64) -> Charged {
        let Some(usage) = self.usage(state, now) else { return Charged::none(cost) };
        match cost.min(self.limit.saturating_sub(usage.used)) {
            0 => Charged::none(cost),
            permits => Charged {
                next: Some(self.word(usage.start, usage.used + permits)),
                rest: cost - permits,
            },
        }
    }

    /// The rest of the window at most.
    fn refill(&self) -> Option<u64> {
        Some(self.period)
    }

    /// Lowers the count of a window that holds the charge: see [`GiveBack`] for why that is safe.
    ///
    /// - A charge in the word's window is in its count, because the word's window never falls. A
    ///   charge before it may have been judged in an earlier window, so it gives nothing back.
    ///   Anchored with a grain above 1 ns that concerns the request that began the window, unless
    ///   its time is a multiple of the grain.
    /// - With `count_rejected` a full count may hold refusals, so it gives nothing back.
    #[inline(never)]
    fn give_back(&self, state: u64, now: u64, back: &GiveBack) -> Option<Returned> {
        let (start, used) = self.radix.div_rem(state);
        let (from, end) = (self.from(start), self.end(start));
        let holds = (from..end).contains(&back.charge.at);
        if !holds || now > self.last || now >= end || (self.count_rejected && used >= self.limit) {
            return None;
        }
        let permits = back.permits.min(back.charge.cost).min(used);
        // The word 0 would expire at time 0.
        let next = state.saturating_sub(permits).max(1);
        (next < state).then_some(Returned { next, permits: state.wrapping_sub(next) })
    }
}

impl Facts for FixedWindow {
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
    /// limit. An anchored start is rounded up to this policy's grain. `None` if the policies differ
    /// in period or alignment.
    fn adopt(&self, old: &FixedWindow, state: u64) -> Option<u64> {
        if (self.period, self.anchored) != (old.period, old.anchored) {
            return None;
        }
        let (mut start, used) = old.radix.div_rem(state);
        if start > old.starts {
            return None;
        }
        if self.grain != old.grain {
            let from = start.saturating_sub(1).checked_mul(old.grain.get())?;
            start = self.anchor(from);
        }
        (start <= self.starts).then(|| self.word(start, used.min(self.limit)))
    }

    /// The key takes the whole limit just before the end of a window, and in each that follows.
    fn most_in(&self, policy: &Policy, window: u64) -> u64 {
        if policy.anchor == Anchor::First {
            return self.most_anchored(window);
        }
        let edges = edges(policy.period, window - 1);
        policy.limit.saturating_mul(edges.saturating_add(1))
    }
}
