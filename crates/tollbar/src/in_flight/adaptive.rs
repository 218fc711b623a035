//! Limits that follow the measured latency: how many may be in flight is learned from how long they take.
//!
//! Both are pure values in integers. The caller keeps one beside its window, feeds it each released permit, and sets the window's limit to what
//! it returns:
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
    /// The long-term latency in picoseconds, and how many samples of the warm-up are in it, with their sum.
    long: u64,
    samples: u64,
    sum: u64,
}

const UNIT: u64 = 1_000_000_000;
const WARM_UP: u64 = 10;
/// Latencies above a day are taken for a day, so that no product overflows.
const LATENCY_MOST: u64 = 86_400 * UNIT;

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
        let limit = u64::from(self.limit);
        let next = if dropped || latency_ns > self.timeout {
            limit * 9 / 10
        } else if u64::from(in_flight) * 2 >= limit {
            limit + 1
        } else {
            limit
        };
        self.limit = within(next.min(u32::MAX.into()) as u32, self.least, self.most);
        self.limit
    }
}

impl Gradient2 {
    /// Begins at `initial`, and stays from `least` to `most`.
    pub const fn new(initial: u32, least: u32, most: u32) -> Gradient2 {
        let estimate = within(initial, least, most) as u64 * UNIT;
        Gradient2 { estimate, least, most, long: 0, samples: 0, sum: 0 }
    }

    /// The present limit.
    pub const fn limit(&self) -> u32 {
        (self.estimate / UNIT) as u32
    }

    /// A permit was released after `latency_ns`, when `in_flight` were, this one included. The new limit.
    pub fn sample(&mut self, in_flight: u32, latency_ns: u64) -> u32 {
        let now = latency_ns.clamp(1, LATENCY_MOST) * 1000;
        if self.samples < WARM_UP {
            self.samples += 1;
            self.sum += now;
            self.long = self.sum / self.samples;
        } else {
            // An exponential mean with the weight 2 / (600 + 1).
            let step = (i128::from(now) - i128::from(self.long)) * 2 / 601;
            self.long = (i128::from(self.long) + step) as u64;
        }
        let long = self.long;
        // After an overload the long-term latency comes down faster than by its mean.
        if long > 2 * now {
            self.long = (u128::from(long) * 95 / 100) as u64;
        }
        // A limit that is not used says nothing.
        if u128::from(in_flight) * 2 * u128::from(UNIT) < u128::from(self.estimate) {
            return self.limit();
        }
        let estimate = u128::from(self.estimate);
        let gradient = (estimate * 3 * u128::from(long) / (2 * u128::from(now))).clamp(estimate / 2, estimate);
        let next = (800 * estimate + 200 * (gradient + 4 * u128::from(UNIT))) / 1000;
        let (least, most) = (u64::from(self.least) * UNIT, u64::from(self.most) * UNIT);
        self.estimate = (next as u64).min(most).max(least);
        self.limit()
    }
}

const fn within(limit: u32, least: u32, most: u32) -> u32 {
    let limit = if limit > most { most } else { limit };
    if limit < least {
        least
    } else {
        limit
    }
}
