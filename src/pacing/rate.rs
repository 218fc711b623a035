//! The rate that a client learns from the answers of one host.

use super::{Algorithm, Options, PER_SECOND};

/// A sending rate in millionths of a request per second. An answered request raises it, a throttled
/// one cuts it. A plain value of one thread.
///
/// With [`Algorithm::Cubic`] it is the client rate of the AWS SDKs' adaptive retry mode (botocore's
/// `retries/throttling.py` and `retries/adaptive.py`, the test table of aws-sdk-go-v2's
/// `aws/retry/adaptive_ratelimit_test.go`): scale constant 0.4, beta 0.7, smoothing 0.8 over half
/// seconds, at most twice the measured rate.
///
/// It differs in two cases. If the first throttled answer comes before the first half second is
/// over, the SDKs measure a rate of 0 and fall to the floor. This type takes the answers so far for
/// those of half a second. And a server that says nothing but `Retry-After` has its own curve
/// ([`SendingRate::paused`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct SendingRate {
    /// The present rate.
    rate: u64,
    /// The rate at the last cut.
    top: u64,
    /// The time from the last cut until the cubic curve is back at `top`, in nanoseconds.
    rise: u64,
    /// The time of the last cut, or the end of the pause that followed it.
    cut_at: u64,
    /// The smoothed rate of answers.
    measured: u64,
    /// The answers since the last change of `measured`.
    answers: u64,
    /// The half second of the last change of `measured`.
    bucket: u64,
    /// Whether any answer was throttled.
    throttled: bool,
    /// Whether the last cut was a small one ([`SendingRate::paused`]).
    small: bool,
    /// How many small cuts followed the last rate that was kept.
    unkept: u8,
}

const SECOND: u64 = 1_000_000_000;
/// `measured` changes once in this time.
const BUCKET: u64 = SECOND / 2;
/// [`SendingRate::paused`]: a rate is kept if it was not cut for so many pauses, and after a small
/// cut it is back after so many.
const KEPT_PAUSES: u64 = 2;
const RISE_PAUSES: u64 = 50;
/// The curve counts at most this time on each side of its level part, so that no cube overflows:
/// 2^40 ns are 18 minutes.
const SIDE_MOST: u64 = 1 << 40;

impl SendingRate {
    /// A rate before the first answer. It begins at the ceiling.
    pub const fn new(options: &Options, now: u64) -> SendingRate {
        SendingRate {
            rate: options.most,
            top: 0,
            rise: 0,
            cut_at: now,
            measured: 0,
            answers: 0,
            bucket: now / BUCKET,
            throttled: false,
            small: false,
            unkept: 0,
        }
    }

    /// The present rate. Before the first throttled answer it is the ceiling.
    pub const fn rate(&self, options: &Options) -> u64 {
        if self.throttled {
            self.rate
        } else {
            options.most
        }
    }

    /// The rate that the last answer computed, even before the first throttled answer.
    pub const fn computed(&self) -> u64 {
        self.rate
    }

    /// The smoothed rate of answers.
    pub const fn measured(&self) -> u64 {
        self.measured
    }

    /// Whether any answer was throttled.
    pub const fn is_throttled(&self) -> bool {
        self.throttled
    }

    /// Takes an answer that was not throttled.
    pub fn answered(&mut self, options: &Options, now: u64) {
        self.count(now);
        let since = now.saturating_sub(self.cut_at);
        let next = match options.algorithm {
            Algorithm::Cubic if self.small => shallow(self.top, self.rise, since),
            Algorithm::Cubic => cubic(self.top, self.rise, since),
            Algorithm::Aimd { increase } => {
                let raised = u128::from(increase) * u128::from(since) / u128::from(SECOND);
                u128::from(nine_tenths(self.top)).saturating_add(raised).min(u64::MAX.into()) as u64
            }
        };
        self.set(options, next);
    }

    /// Takes a throttled answer: the rate falls to 0.7 (cubic) or 0.9 (AIMD) of the measured rate,
    /// or of the present rate if that is less.
    pub fn throttled(&mut self, options: &Options, now: u64) {
        self.count(now);
        if self.measured == 0 {
            self.measured = self.answers.saturating_mul(PER_SECOND * (SECOND / BUCKET));
        }
        self.top = if self.throttled { self.measured.min(self.rate) } else { self.measured };
        self.rise = rise(self.top);
        self.cut_at = now;
        (self.throttled, self.small) = (true, false);
        let next = match options.algorithm {
            Algorithm::Cubic => (u128::from(self.top) * 7 / 10) as u64,
            Algorithm::Aimd { .. } => nine_tenths(self.top),
        };
        self.set(options, next);
    }

    /// [`SendingRate::throttled`] by an answer that asks for a pause of so many nanoseconds and
    /// says nothing else.
    ///
    /// A pause loses what the server's bucket cannot hold of it, so refusals must be rare. If the
    /// rate was in use and has not been cut for two pauses, it is near the server's. From then on a
    /// cut is to 0.97. The rate is back after fifty pauses, stays near as long, and then rises
    /// faster and faster. If the server refuses at once, its bucket hides nothing and its rate is
    /// lower: each such cut is another one to 0.95, and from the fifth on to 0.8. `waits`: callers
    /// wait for their turns, so the rate is in use.
    ///
    /// [`Algorithm::Aimd`] has no such curve, because its caller has chosen the rise.
    pub fn paused(&mut self, options: &Options, now: u64, pause: u64, waits: bool) {
        let kept = now.saturating_sub(self.cut_at) / KEPT_PAUSES >= pause;
        let (rate, known, small) = (self.rate, self.throttled, self.small);
        self.throttled(options, now);
        let in_use = waits || u128::from(self.measured) * 10 >= u128::from(rate) * 9;
        let near = known && in_use && (kept || small);
        if options.algorithm != Algorithm::Cubic || !near || pause == 0 {
            return;
        }
        self.unkept = if kept { 0 } else { self.unkept.saturating_add(1) };
        let percent = match self.unkept {
            0 => 100,
            1..=4 => 95,
            _ => 80,
        };
        self.top = (u128::from(rate) * percent / 100) as u64;
        (self.rise, self.small) = (pause.saturating_mul(RISE_PAUSES), true);
        self.set(options, shallow(self.top, self.rise, 0));
    }

    /// Takes an answer that changes the measured rate only.
    pub fn count(&mut self, now: u64) {
        self.answers = self.answers.saturating_add(1);
        let bucket = now / BUCKET;
        let Some(passed @ 1..) = bucket.checked_sub(self.bucket) else { return };
        let per_bucket = u128::from(self.answers) * u128::from(PER_SECOND * (SECOND / BUCKET));
        let current = per_bucket / u128::from(passed);
        let smoothed = (current * 8 + u128::from(self.measured) * 2) / 10;
        self.measured = smoothed.min(u64::MAX.into()) as u64;
        (self.answers, self.bucket) = (0, bucket);
    }

    /// Leaves the time until `at` out of the account, because the host has asked for a pause: the
    /// rate does not rise, and the measured rate does not fall.
    pub fn hold_until(&mut self, at: u64) {
        self.cut_at = self.cut_at.max(at);
        self.bucket = self.bucket.max(at / BUCKET);
    }

    fn set(&mut self, options: &Options, next: u64) {
        self.rate = next.min(self.measured.saturating_mul(2)).min(options.most).max(options.least);
    }
}

fn nine_tenths(rate: u64) -> u64 {
    (u128::from(rate) * 9 / 10) as u64
}

/// The curve 0.4 (t - K)^3 + top at `since` nanoseconds after the cut, where t - K is in seconds.
fn cubic(top: u64, rise: u64, since: u64) -> u64 {
    let side = u128::from(since.abs_diff(rise).min(SIDE_MOST));
    // A cube of nanoseconds is 10^27 cubes of a second, and a rate of 1/s has 10^6 units. 0.4 of
    // the quotient is 1 / (2.5 * 10^21).
    let height = (side * side * side / 2_500_000_000_000_000_000_000).min(u64::MAX.into()) as u64;
    match since < rise {
        true => top.saturating_sub(height),
        false => top.saturating_add(height),
    }
}

/// The curve top * (1 + 0.03 (t / K - 1)^5) at `since` nanoseconds after the cut; K is `rise`.
fn shallow(top: u64, rise: u64, since: u64) -> u64 {
    // In 1,024ths, at most 8 * 1,024 of them. So the product is below 2^120.
    let side = u128::from(since.abs_diff(rise)) * 1024 / u128::from(rise.max(1));
    let height = u128::from(top.min(super::MOST)) * 3 * side.min(8 * 1024).pow(5) / (100 << 50);
    let height = height.min(u64::MAX.into()) as u64;
    match since < rise {
        true => top.saturating_sub(height),
        false => top.saturating_add(height),
    }
}

/// K: the nanoseconds in which the curve rises from 0.7 of `top` to `top`, the cube root of 0.3 top
/// / 0.4 in seconds.
fn rise(top: u64) -> u64 {
    // `top` has 10^6 units for 1/s, and a second's cube has 10^27 cubes of a nanosecond. `MOST`
    // bounds the product.
    cube_root(u128::from(top.min(super::MOST)) * 750_000_000_000_000_000_000)
}

/// The largest integer whose cube is at most `n`, bit by bit; below 2^42.
fn cube_root(n: u128) -> u64 {
    let fits = |root: u64| u128::from(root).pow(3) <= n;
    (0..42).rev().fold(0, |root, bit| if fits(root | 1 << bit) { root | 1 << bit } else { root })
}
