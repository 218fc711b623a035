//! Limits that follow the measured latency: how many may be in flight is learned from how long they take.
//!
//! Both are pure values in integers, for callers that keep their own state. [`Adaptive`](super::Adaptive) joins them with a count that threads share.
//!
//! ```
//! use tollbar::in_flight::{Gradient2, SendWindow};
//!
//! let mut limit = Gradient2::new(20, 20, 200);
//! let window = SendWindow::new(limit.limit());
//! // 10 ms with all permits in flight: the limit grows.
//! for _ in 0..20 {
//!     window.resize(limit.sample(limit.limit(), 10_000_000));
//! }
//! assert_eq!(window.read().limit, 36);
//! ```

/// Additive increase, multiplicative decrease: a drop, or a latency above the timeout, takes a tenth of the limit away; any other release adds one
/// while at least half the limit is in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aimd {
    limit: u32,
    least: u32,
    most: u32,
    timeout: u64,
}

/// Netflix's `Gradient2Limit` with its defaults (tolerance 1.5, window 600, warm-up 10, smoothing 0.2, a queue of 4): the limit shrinks by the ratio
/// of the long-term latency to the present one, by half at most in a sample, and else grows by the queue. It looks at latencies
/// only: feed it those of the requests that were answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gradient2 {
    /// The limit in units of 10^-9.
    estimate: u64,
    least: u32,
    most: u32,
    long: LongTerm,
}

/// The long-term latency in one word: the samples of the warm-up so far (4 bits), and below them the sum of their latencies, or, when the warm-up is
/// over, the mean. Times are in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LongTerm(pub(super) u64);

pub(super) const UNIT: u64 = 1_000_000_000;
const WARM_UP: u64 = 10;
/// Latencies above a day are taken for a day, so that no product overflows and the sum of a warm-up fits [`LongTerm`].
const LATENCY_MOST: u64 = 86_400 * UNIT;
const LONG_BITS: u32 = 60;
const LONG_MASK: u64 = (1 << LONG_BITS) - 1;
const _: () = assert!(WARM_UP * LATENCY_MOST * 1000 <= LONG_MASK);

impl Aimd {
    /// Begins at `initial`, and stays from `least` to `most`. A latency above `timeout_ns` counts as a drop.
    pub const fn new(initial: u32, least: u32, most: u32, timeout_ns: u64) -> Aimd {
        Aimd { limit: within(initial, least, most), least, most, timeout: timeout_ns }
    }

    /// The present limit.
    pub const fn limit(&self) -> u32 {
        self.limit
    }

    /// A permit was released after `latency_ns`, when `in_flight` were, this one included. The new limit.
    pub fn sample(&mut self, in_flight: u32, latency_ns: u64, dropped: bool) -> u32 {
        let next = aimd_step(self.limit, in_flight, dropped || latency_ns > self.timeout);
        self.limit = within(next, self.least, self.most);
        self.limit
    }
}

/// The limit after one more sample, without bounds.
pub(super) fn aimd_step(limit: u32, in_flight: u32, dropped: bool) -> u32 {
    match dropped {
        true => (u64::from(limit) * 9 / 10) as u32,
        false if u64::from(in_flight) * 2 >= u64::from(limit) => limit.saturating_add(1),
        false => limit,
    }
}

impl Gradient2 {
    /// Begins at `initial`, and stays from `least` to `most`.
    pub const fn new(initial: u32, least: u32, most: u32) -> Gradient2 {
        let estimate = within(initial, least, most) as u64 * UNIT;
        Gradient2 { estimate, least, most, long: LongTerm(0) }
    }

    /// The present limit.
    pub const fn limit(&self) -> u32 {
        (self.estimate / UNIT) as u32
    }

    /// A permit was released after `latency_ns`, when `in_flight` were, this one included. The new limit.
    pub fn sample(&mut self, in_flight: u32, latency_ns: u64) -> u32 {
        let now = picoseconds(latency_ns);
        let (next, long) = self.long.after(now);
        self.long = next;
        self.estimate = gradient2_step(self.estimate, (self.least, self.most), long, now, in_flight);
        self.limit()
    }
}

/// A latency in the unit of [`LongTerm`], above 0.
pub(super) const fn picoseconds(latency_ns: u64) -> u64 {
    let most = if latency_ns > LATENCY_MOST { LATENCY_MOST } else { latency_ns };
    (if most == 0 { 1 } else { most }) * 1000
}

impl LongTerm {
    /// The mean so far, in picoseconds; 0 without a sample.
    pub(super) fn mean(self) -> u64 {
        let value = self.0 & LONG_MASK;
        match self.0 >> LONG_BITS {
            0 => 0,
            samples @ 1..WARM_UP => value / samples,
            _ => value,
        }
    }

    /// The word after one more latency, and the mean that the sample is compared with.
    pub(super) fn after(self, now: u64) -> (LongTerm, u64) {
        let (samples, value) = (self.0 >> LONG_BITS, self.0 & LONG_MASK);
        let warm = samples >= WARM_UP;
        let next = LongTerm(match warm {
            false => (samples + 1) << LONG_BITS | (value + now) & LONG_MASK,
            // An exponential mean with the weight 2 / (600 + 1).
            true => {
                WARM_UP << LONG_BITS | value.saturating_add_signed((now as i64 - value as i64) * 2 / 601) & LONG_MASK
            }
        });
        // The last sample of the warm-up turns the sum into the mean.
        let mean = if !warm && samples + 1 == WARM_UP { (next.0 & LONG_MASK) / WARM_UP } else { next.mean() };
        // After an overload the mean comes down faster than by its weight. A warm-up's mean is made anew from its sum.
        let kept = if mean > 2 * now { (u128::from(mean) * 95 / 100) as u64 } else { mean };
        match samples + 1 < WARM_UP {
            true => (next, mean),
            false => (LongTerm(WARM_UP << LONG_BITS | kept), mean),
        }
    }
}

/// The limit in 10^-9 after one more sample, whose latency and long-term mean are given.
pub(super) fn gradient2_step(estimate: u64, (least, most): (u32, u32), long: u64, now: u64, in_flight: u32) -> u64 {
    // A limit that is not used says nothing.
    if u128::from(in_flight) * 2 * u128::from(UNIT) < u128::from(estimate) {
        return estimate;
    }
    let (estimate, now) = (u128::from(estimate), u128::from(now.max(1)));
    let gradient = (estimate * 3 * u128::from(long) / (2 * now)).clamp(estimate / 2, estimate);
    let next = (800 * estimate + 200 * (gradient + 4 * u128::from(UNIT))) / 1000;
    let (least, most) = (u64::from(least) * UNIT, u64::from(most) * UNIT);
    (next as u64).min(most).max(least)
}

pub(super) const fn within(limit: u32, least: u32, most: u32) -> u32 {
    let limit = if limit > most { most } else { limit };
    if limit < least {
        least
    } else {
        limit
    }
}
