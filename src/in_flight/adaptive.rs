//! The two algorithms that learn a limit of permits in flight from the latency of requests.
//!
//! Both are plain values of one thread and calculate with integers. [`Adaptive`](super::Adaptive)
//! runs them on words that threads share, and counts the permits.
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

/// Additive increase, multiplicative decrease. A dropped request or a latency above the timeout
/// lowers the limit by a tenth. Any other release raises it by 1, if at least half of the limit is
/// in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aimd {
    limit: u32,
    least: u32,
    most: u32,
    timeout: u64,
}

/// Netflix's `Gradient2Limit` with its defaults: tolerance 1.5, window 600, warm-up 10, smoothing
/// 0.2, a queue of 4.
///
/// A sample's gradient is 1.5 times the long-term latency divided by the sample's latency, but at
/// least 0.5 and at most 1. The new limit is 0.8 times the old one plus 0.2 times (gradient times
/// the old one, plus 4). So a sample raises the limit by at most 0.8, and lowers it by less than a
/// tenth. A sample with less than half of the limit in flight changes nothing. Give it the
/// latencies of answered requests only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gradient2 {
    /// The limit in units of 10^-9.
    estimate: u64,
    least: u32,
    most: u32,
    long: LongTerm,
}

/// The long-term latency in one word. The highest 4 bits count the samples, up to the 10 of the
/// warm-up. The other bits hold the sum of the latencies during the warm-up and their mean after
/// it, in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LongTerm(pub(super) u64);

pub(super) const UNIT: u64 = 1_000_000_000;
const WARM_UP: u64 = 10;
/// A latency above a day counts as a day, so that no product overflows and the sum of a warm-up
/// fits into [`LongTerm`].
const LATENCY_MOST: u64 = 86_400 * UNIT;
const LONG_BITS: u32 = 60;
const LONG_MASK: u64 = (1 << LONG_BITS) - 1;
const _: () = assert!(WARM_UP * LATENCY_MOST * 1000 <= LONG_MASK);

impl Aimd {
    /// A limit that begins at `initial` and stays between `least` and `most`. A latency above
    /// `timeout_ns` counts as a dropped request.
    pub const fn new(initial: u32, least: u32, most: u32, timeout_ns: u64) -> Aimd {
        Aimd { limit: within(initial, least, most), least, most, timeout: timeout_ns }
    }

    /// The present limit.
    pub const fn limit(&self) -> u32 {
        self.limit
    }

    /// Takes a sample and returns the new limit: a permit was released after `latency_ns`, and
    /// `in_flight` permits were in flight, this one included.
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
    /// A limit that begins at `initial` and stays between `least` and `most`.
    pub const fn new(initial: u32, least: u32, most: u32) -> Gradient2 {
        let estimate = within(initial, least, most) as u64 * UNIT;
        Gradient2 { estimate, least, most, long: LongTerm(0) }
    }

    /// The present limit.
    pub const fn limit(&self) -> u32 {
        (self.estimate / UNIT) as u32
    }

    /// Takes a sample and returns the new limit: a permit was released after `latency_ns`, and
    /// `in_flight` permits were in flight, this one included.
    pub fn sample(&mut self, in_flight: u32, latency_ns: u64) -> u32 {
        let now = picoseconds(latency_ns);
        let (next, long) = self.long.after(now);
        self.long = next;
        self.estimate =
            gradient2_step(self.estimate, (self.least, self.most), long, now, in_flight);
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

    pub(super) fn is_warming_up(self) -> bool {
        self.0 >> LONG_BITS < WARM_UP
    }

    /// Whether a server does enough more work with `in_flight` permits, each of which took `now`,
    /// than with the fewer `known` ones, each of which took the mean.
    ///
    /// The work in a time is permits by latency. It is enough if it grows by at least half of the
    /// share by which the permits grow: up to there work by latency grows, too (Kleinrock's power).
    /// `in_flight / now * mean / known - 1 >= (in_flight / known - 1) / 2`, without quotients:
    pub(super) fn is_worth(self, now: u64, known: u64, in_flight: u64) -> bool {
        let both = u128::from(known) + u128::from(in_flight);
        u128::from(now) * both <= 2 * u128::from(self.mean()) * u128::from(in_flight)
    }

    /// The word after a sample with the latency `now`, and the mean with which the sample is
    /// compared.
    pub(super) fn after(self, now: u64) -> (LongTerm, u64) {
        let (samples, value) = (self.0 >> LONG_BITS, self.0 & LONG_MASK);
        let warm = samples >= WARM_UP;
        let next = LongTerm(match warm {
            false => (samples + 1) << LONG_BITS | (value + now) & LONG_MASK,
            // An exponential mean with the weight 2 / (600 + 1).
            true => {
                WARM_UP << LONG_BITS
                    | value.saturating_add_signed((now as i64 - value as i64) * 2 / 601) & LONG_MASK
            }
        });
        // The last sample of the warm-up turns the sum into the mean.
        let mean = if !warm && samples + 1 == WARM_UP {
            (next.0 & LONG_MASK) / WARM_UP
        } else {
            next.mean()
        };
        // If the mean is above twice the sample, it loses another 5 %, so that it leaves an
        // overload sooner. During the warm-up the word holds the sum and not the mean, so this
        // begins with the warm-up's last sample.
        let kept = if mean > 2 * now { (u128::from(mean) * 95 / 100) as u64 } else { mean };
        match samples + 1 < WARM_UP {
            true => (next, mean),
            false => (LongTerm(WARM_UP << LONG_BITS | kept), mean),
        }
    }
}

/// The limit in units of 10^-9 after a sample with the latency `now` and the long-term mean `long`,
/// both in picoseconds.
pub(super) fn gradient2_step(
    estimate: u64,
    (least, most): (u32, u32),
    long: u64,
    now: u64,
    in_flight: u32,
) -> u64 {
    // With less than half of the limit in flight, the latency does not depend on the limit.
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
