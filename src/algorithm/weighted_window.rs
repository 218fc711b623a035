//! Weighted window: the previous window's count fades out linearly while the current one's grows.
//!
//! ```text
//! estimate = previous · (period − elapsed) / period + current        admitted: estimate + cost <= limit
//! ```
//!
//! The comparison is made in whole numbers (both sides times `period`), without rounding. The word
//! is `window : previous : current` in bit fields. `current` is exact. `previous` is exact while
//! both counters fit beside the window's number: for limits up to 65,535 at a period of 1 s, and
//! larger ones at longer periods. Beyond that it is rounded up to a multiple of a power of two,
//! which can only refuse more.
//!
//! A word whose window is later than `now` shows that the clock went back. The request is then
//! decided at the start of the word's window.
//!
//! Permits can be given back in the window in which they were charged and in the next one
//! ([`Algorithm::give_back`]).
//!
//! Most admitted in any window of one period: below `2 · limit`. (The word does not hold when in
//! the previous window its permits were taken.)

use super::facts::{Charging, Facts};
use super::{until, Algorithm, Charged, GiveBack, Returned, Step};
use crate::policy::{Kind, Policy, PolicyError};
use crate::units::{bits, div_up, Divisor, HORIZON, LAST, NEVER};
use core::num::{NonZeroU128, NonZeroU64};

/// A compiled weighted window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WeightedWindow {
    limit: u64,
    period: Divisor,
    current_bits: u32,
    previous_bits: u32,
    /// `previous` is kept in multiples of `2^coarse`.
    coarse: u32,
    /// The largest window that admits. A word can hold larger ones: `owing` uses `windows + 1`.
    windows: u64,
    /// The last clock reading that admits anything.
    last: u64,
}

/// The window in which a request is decided, the nanoseconds since it began, and both counts.
struct WindowCounts {
    window: u64,
    elapsed: u64,
    previous: u64,
    current: u64,
}

impl WeightedWindow {
    /// `previous` gets at least this many bits, or as many as the limit has. A policy that leaves
    /// fewer bits is refused.
    const LEAST_BITS: u32 = 8;

    /// Compiles a policy of kind [`Kind::WeightedWindow`] whose limit is not 0.
    ///
    /// # Errors
    /// [`PolicyError::OptionMismatch`] for any other policy, [`PolicyError::RateTooHigh`] if the
    /// word cannot hold both counts beside the window, and those of [`Policy::validate`].
    pub fn new(policy: &Policy) -> Result<WeightedWindow, PolicyError> {
        policy.validate()?;
        if policy.kind != Kind::WeightedWindow || policy.limit == 0 {
            return Err(PolicyError::OptionMismatch);
        }
        let period = NonZeroU64::new(policy.period).ok_or(PolicyError::PeriodZero)?;
        let current_bits = bits(policy.limit);
        let window_bits = bits(HORIZON / period);
        let room = 64u32.checked_sub(current_bits + window_bits).ok_or(PolicyError::RateTooHigh)?;
        let previous_bits = current_bits.min(room);
        if previous_bits < current_bits.min(Self::LEAST_BITS) {
            return Err(PolicyError::RateTooHigh);
        }
        // The limit, rounded up, must itself fit.
        let mut coarse = current_bits - previous_bits;
        if bits(round_up(policy.limit, coarse) >> coarse) > previous_bits {
            coarse += 1;
        }
        let windows =
            u64::MAX.checked_shr(current_bits + previous_bits).unwrap_or(0).saturating_sub(2);
        let last =
            windows.saturating_add(1).saturating_mul(period.get()).saturating_sub(1).min(LAST);
        Ok(WeightedWindow {
            limit: policy.limit,
            period: Divisor::new(period),
            current_bits,
            previous_bits,
            coarse,
            windows,
            last,
        })
    }

    /// The estimate at `now` times the period; `u128::MAX` after the last time.
    pub fn estimate(&self, state: u64, now: u64) -> u128 {
        self.counts(state, now).map_or(u128::MAX, |counts| self.weight(&counts))
    }

    fn unpack(&self, state: u64) -> (u64, u64, u64) {
        let mask = |bits: u32| (1u64 << bits).wrapping_sub(1);
        let current = state & mask(self.current_bits);
        let previous = (state >> self.current_bits) & mask(self.previous_bits);
        let window = state.checked_shr(self.current_bits + self.previous_bits).unwrap_or(0);
        (window, previous << self.coarse, current)
    }

    /// The window of a word, and the permits of the window before and of it.
    #[cfg(test)]
    pub(super) fn parts(&self, word: u64) -> (u64, u64, u64) {
        self.unpack(word)
    }

    fn pack(&self, counts: &WindowCounts) -> u64 {
        let previous = round_up(counts.previous, self.coarse) >> self.coarse;
        let high = counts.window.checked_shl(self.current_bits + self.previous_bits).unwrap_or(0);
        high | (previous << self.current_bits) | counts.current
    }

    /// The counts at `now`; `None` after `last`.
    fn counts(&self, state: u64, now: u64) -> Option<WindowCounts> {
        if now > self.last {
            return None;
        }
        let (window, elapsed) = self.period.div_rem(now);
        let (stored, previous, current) = self.unpack(state);
        Some(if stored > window {
            WindowCounts { window: stored, elapsed: 0, previous, current }
        } else if stored == window {
            WindowCounts { window, elapsed, previous, current }
        } else if stored + 1 == window {
            WindowCounts { window, elapsed, previous: current, current: 0 }
        } else {
            WindowCounts { window, elapsed, previous: 0, current: 0 }
        })
    }

    /// The start of window number `window + more`, in nanoseconds; [`NEVER`] if nothing is admitted
    /// then.
    fn start(&self, window: u64, more: u64) -> u64 {
        until(self.last, window.saturating_add(more).saturating_mul(self.period.get()))
    }

    fn weight(&self, counts: &WindowCounts) -> u128 {
        let period = self.period.get();
        u128::from(counts.previous) * u128::from(period - counts.elapsed)
            + u128::from(counts.current) * u128::from(period)
    }

    fn line(&self) -> u128 {
        u128::from(self.limit) * u128::from(self.period.get())
    }

    /// The first instant from that of `counts` on, within its window, at which `taken` permits fit
    /// beside the weight of `previous`. `None` if there is none.
    fn fits_in(&self, counts: &WindowCounts, taken: u64) -> Option<u64> {
        let room = self.limit.checked_sub(taken)?;
        let period = self.period.get();
        let elapsed = match NonZeroU128::new(u128::from(counts.previous)) {
            None => 0,
            // previous · (period − elapsed) <= room · period
            Some(previous) => {
                let remaining = u128::from(room) * u128::from(period) / previous;
                u128::from(period).saturating_sub(remaining) as u64
            }
        };
        let elapsed = elapsed.max(counts.elapsed);
        if elapsed >= period {
            return None;
        }
        counts.window.checked_mul(period)?.checked_add(elapsed)
    }

    /// Whether these are the counts of [`Algorithm::owing`], whose word expires at the end of its
    /// window. All other words last for one window more, also those that have given back all
    /// permits of their own window.
    fn is_owing(&self, previous: u64, current: u64) -> bool {
        current == 0 && previous >= self.limit
    }

    fn next(&self, counts: &WindowCounts) -> Option<WindowCounts> {
        let window = counts.window + 1;
        let previous = counts.current;
        (window <= self.windows).then_some(WindowCounts {
            window,
            elapsed: 0,
            previous,
            current: 0,
        })
    }
}

impl Algorithm for WeightedWindow {
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
        let Some(mut counts) = self.counts(state, now) else { return Step::deny() };
        let charge = u128::from(cost) * u128::from(self.period.get());
        if self.weight(&counts) + charge > self.line() {
            return Step::deny();
        }
        counts.current += cost;
        Step::allow(self.pack(&counts))
    }

    fn available(&self, state: u64, now: u64) -> u64 {
        let Some(counts) = self.counts(state, now) else { return 0 };
        let room = self.line().saturating_sub(self.weight(&counts));
        match NonZeroU128::new(u128::from(self.period.get())) {
            Some(period) => (room / period) as u64,
            None => 0,
        }
    }

    fn admits_at(&self, state: u64, now: u64, cost: u64) -> u64 {
        if cost == 0 {
            return now;
        }
        if cost > self.limit {
            return NEVER;
        }
        let mut counts = self.counts(state, now);
        // Three windows are enough: in the third, no permit of the first counts any more.
        for _ in 0..3 {
            let Some(h) = counts else { break };
            if let Some(at) = self.fits_in(&h, h.current.saturating_add(cost)) {
                return until(self.last, at.max(now));
            }
            counts = self.next(&h);
        }
        NEVER
    }

    fn fresh_at(&self, state: u64, now: u64) -> u64 {
        let Some(counts) = self.counts(state, now) else { return NEVER };
        let windows = match (counts.previous, counts.current) {
            (0, 0) => return now,
            (_, 0) => 1,
            _ => 2,
        };
        self.start(counts.window, windows)
    }

    fn expires_at(&self, state: u64) -> u64 {
        if state == 0 {
            return 0;
        }
        let (window, previous, current) = self.unpack(state);
        self.start(window, 2 - u64::from(self.is_owing(previous, current)))
    }

    /// The window that `until` ends or falls into, with a previous count of the whole limit. It
    /// expires at the end of that window. After the last window that admits it is the window
    /// `windows + 1`, which expires at [`NEVER`].
    fn owing(&self, until: u64) -> u64 {
        let (window, _) = self.period.div_rem(until.saturating_sub(1));
        let counts = match self.start(window, 1) {
            // With both counts at the limit it never admits a request.
            NEVER => WindowCounts {
                window: self.windows + 1,
                elapsed: 0,
                previous: self.limit,
                current: self.limit,
            },
            _ => WindowCounts { window, elapsed: 0, previous: self.limit, current: 0 },
        };
        self.pack(&counts)
    }

    /// The current count goes up to the limit, even if the previous count leaves less than that.
    fn charge(&self, state: u64, now: u64, cost: u64) -> Charged {
        let Some(mut counts) = self.counts(state, now) else { return Charged::none(cost) };
        match cost.min(self.limit.saturating_sub(counts.current)) {
            0 => Charged::none(cost),
            permits => {
                counts.current += permits;
                Charged { next: Some(self.pack(&counts)), rest: cost - permits }
            }
        }
    }

    /// A permit fades until the end of the next window.
    fn refill(&self) -> Option<u64> {
        Some(self.period.get().saturating_mul(2))
    }

    /// Lowers the count of the charge's window: see [`GiveBack`] for why that is safe.
    ///
    /// A charge in the word's window is in the current count, because the word's window never
    /// falls. A charge in the window before is in the previous count. If the clock went back it is
    /// in the current one, but then lowering the previous count frees fewer permits.
    #[inline(never)]
    fn give_back(&self, state: u64, now: u64, back: &GiveBack) -> Option<Returned> {
        let (window, mut previous, mut current) = self.unpack(state);
        let (charged, _) = self.period.div_rem(back.charge.at);
        let permits = back.permits.min(back.charge.cost);
        if charged == window {
            // The count keeps at least one permit where the word would otherwise become 0, or would
            // expire earlier.
            let least = u64::from(window == 0 && previous == 0 || self.is_owing(previous, 0));
            current = current.saturating_sub(permits).max(least.min(current));
        } else if charged.saturating_add(1) == window {
            previous = previous.saturating_sub(permits);
        }
        let next = self.pack(&WindowCounts { window, elapsed: 0, previous, current });
        // Permits of the previous window have faded in part.
        let weight = |word| self.counts(word, now).map_or(0, |counts| self.weight(&counts));
        let freed = weight(state).saturating_sub(weight(next));
        let permits = NonZeroU128::new(u128::from(self.period.get()))
            .map_or(0, |period| (freed / period) as u64);
        (next != state).then_some(Returned { next, permits })
    }
}

/// A limit that covers the permits of `parts` parts of `part` ns each, and those of the part before
/// as far as they have not faded.
pub(super) struct Fading {
    pub(super) limit: u64,
    pub(super) part: NonZeroU64,
    pub(super) parts: NonZeroU64,
}

impl Fading {
    /// The most permits in some half-open window of `window` ns.
    ///
    /// The worst key takes the whole limit in the last nanosecond of a part. `parts` parts later it
    /// takes what has faded, at the end of that part, and so on. One part later still nothing of
    /// the count is left, and the key takes the whole limit: that pays where the window has parts
    /// to spare. It is exact to a permit if a part has as many nanoseconds as the limit has
    /// permits.
    pub(super) fn most_in(&self, window: u64) -> u64 {
        // The nanoseconds from the part after the first to the window's last instant.
        let Some(time) = window.checked_sub(2) else { return self.limit };
        let number = time / self.part + 1;
        let left = self.part.get() - time % self.part;
        let (parts, longer) = (self.parts, self.parts.saturating_add(1));
        // The best number of takes is the most that fit, or so few that each has a part to spare.
        let spared = number / longer;
        [spared, spared + 1, (number - 1) / parts, number / parts]
            .into_iter()
            .filter_map(|takes| self.in_takes(takes, number, left))
            .max()
            .map_or(self.limit, |most| u64::try_from(most).unwrap_or(u64::MAX))
    }

    /// The most in so many takes after the first. The last is at most `number` parts after it, and
    /// `left` ns before that part's end. `None` if they do not fit.
    fn in_takes(&self, takes: u64, number: u64, left: u64) -> Option<u128> {
        let spare = number.checked_sub(takes.checked_mul(self.parts.get())?)?.min(takes);
        if spare != 0 || takes == 0 {
            let (sum, _) = self.faded_in(takes - spare);
            return Some(sum + u128::from(self.limit) * u128::from(spare));
        }
        // The last take is in a part of which the window has not all.
        let (sum, taken) = self.faded_in(takes - 1);
        let most = sum + u128::from(self.faded(taken, left));
        // Or the key moves a permit to the next part in each of the takes before it: that permit
        // replaces the one that has not faded.
        let moved = (takes - 1).min(self.parts.get() - 1).min(self.limit - 1);
        let (sum, _) = self.faded_in(takes - 1 - moved);
        let last = self.faded(self.limit - moved, left).saturating_sub(moved);
        let most_moved = sum + u128::from(self.limit) * u128::from(moved) + u128::from(last);
        Some(if moved == 0 { most } else { most.max(most_moved) })
    }

    /// What of the limit is free beside `taken`, `left` ns before its part has faded.
    fn faded(&self, taken: u64, left: u64) -> u64 {
        let counted = div_up(u128::from(taken) * u128::from(left), NonZeroU128::from(self.part));
        self.limit - u64::try_from(counted).unwrap_or(self.limit).min(self.limit)
    }

    /// The sum of the limit and of what `steps` takes one after the other find faded, and the last.
    fn faded_in(&self, steps: u64) -> (u128, u64) {
        let (mut before, mut taken, mut sum) = (self.limit, self.limit, u128::from(self.limit));
        // What is taken repeats after some steps, or every second step: the difference of two
        // steps is divided by `part` each time.
        for _ in 0..steps.min(REPEATS) {
            (before, taken) = (taken, self.faded(taken, 1));
            sum += u128::from(taken);
        }
        let rest = steps.saturating_sub(REPEATS);
        sum += u128::from(rest / 2) * (u128::from(before) + u128::from(taken));
        match rest % 2 {
            0 => (sum, taken),
            _ => (sum + u128::from(before), before),
        }
    }
}

/// More steps than any difference of two steps has, divided by 2 each time.
const REPEATS: u64 = 66;

impl Facts for WeightedWindow {
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

    /// Moves a key's word from the policy `old` to this one: both counts stay, up to this limit.
    /// `None` if the policies differ in period.
    fn adopt(&self, old: &WeightedWindow, state: u64) -> Option<u64> {
        let (window, previous, current) = old.unpack(state);
        if self.period != old.period || window > self.windows.min(old.windows) {
            return None;
        }
        let lasting = !old.is_owing(previous, current);
        let (previous, current) = (previous.min(self.limit), current.min(self.limit));
        // A permit keeps the time of expiry.
        let current = current.max(u64::from(lasting && self.is_owing(previous, current)));
        Some(self.pack(&WindowCounts { window, elapsed: 0, previous, current }))
    }

    fn most_in(&self, policy: &Policy, window: u64) -> u64 {
        let (part, parts) = (self.period.by(), NonZeroU64::MIN);
        // One take in a window finds the exact count of the window before.
        Fading { limit: policy.limit, part, parts }.most_in(window)
    }
}

/// `n` rounded up to a multiple of `2^by`.
fn round_up(n: u64, by: u32) -> u64 {
    let low = (1u64 << by) - 1;
    n.saturating_add(low) & !low
}
