//! Windows and logs by their definitions.

use super::*;
use std::cmp::max;
use std::collections::{BTreeMap, VecDeque};
use tollbar::{Anchor, Mode};

/// A counter for each window.
pub struct Counter {
    limit: u64,
    period: u64,
    /// Anchored starts are rounded up to a multiple of this.
    grain: u64,
    anchored: bool,
    count_rejected: bool,
    /// Start and count of the latest window.
    window: Option<(u64, u64)>,
}

impl Counter {
    /// A fixed window, or an interval refill anchored to the first request.
    pub fn new(policy: &Policy) -> Counter {
        let mut grains = (0..).flat_map(|e| [1, 2, 5].map(|m| m * 10u64.pow(e)));
        let room =
            |grain: u64| (u128::from(policy.burst) + 1) * ((1u128 << 61) / u128::from(grain) + 4);
        Counter {
            limit: policy.burst,
            period: policy.period,
            grain: grains.find(|grain| room(*grain) <= 1 << 64).unwrap(),
            anchored: policy.anchor == Anchor::First,
            count_rejected: policy.count_rejected,
            window: None,
        }
    }

    /// Start and count of the window in which a request is decided.
    fn at(&self, now: u64) -> (u64, u64) {
        match self.window {
            Some((start, used)) if now < start + self.period => (start, used),
            _ if self.anchored => (now.div_ceil(self.grain) * self.grain, 0),
            _ => (now - now % self.period, 0),
        }
    }
}

impl Model for Counter {
    fn reset(&mut self) {
        self.window = None;
    }
    fn most(&self) -> u64 {
        self.limit
    }
    fn fits(&self, now: u64, cost: u64, side: Side) -> bool {
        cost <= self.remaining(now, side)
    }
    fn settle(&mut self, now: u64, cost: u64, passed: bool) {
        let (start, used) = self.at(now);
        if passed || self.count_rejected {
            self.window = Some((start, used + cost));
        }
    }
    fn remaining(&self, now: u64, _: Side) -> u64 {
        self.limit.saturating_sub(self.at(now).1)
    }
    fn admits_at(&self, now: u64, cost: u64, side: Side) -> u64 {
        if self.fits(now, cost, side) {
            return now;
        }
        self.at(now).0 + self.period
    }
}

/// Two windows, weighted.
pub struct Weighted {
    limit: u64,
    period: u64,
    latest: u64,
    counts: BTreeMap<u64, u64>,
}

impl Weighted {
    pub fn new(policy: &Policy) -> Weighted {
        Weighted { limit: policy.limit, period: policy.period, latest: 0, counts: BTreeMap::new() }
    }

    fn count(&self, window: u64) -> u64 {
        self.counts.get(&window).copied().unwrap_or(0)
    }

    /// The window in which a request is decided, and the time since its start. If the clock is
    /// before the latest known window, it is the start of that window.
    fn at(&self, now: u64) -> (u64, u64) {
        if now / self.period < self.latest {
            (self.latest, 0)
        } else {
            (now / self.period, now % self.period)
        }
    }

    fn estimate(&self, now: u64) -> Q {
        let (window, elapsed) = self.at(now);
        let previous = window.checked_sub(1).map_or(0, |before| self.count(before));
        Q::new(
            ((u128::from(previous)) * u128::from(self.period - elapsed)).into(),
            self.period.into(),
        ) + q(self.count(window))
    }
}

impl Model for Weighted {
    fn reset(&mut self) {
        self.latest = 0;
        self.counts.clear();
    }
    fn most(&self) -> u64 {
        self.limit
    }
    fn fits(&self, now: u64, cost: u64, _: Side) -> bool {
        self.estimate(now) + q(cost) <= q(self.limit)
    }
    fn settle(&mut self, now: u64, cost: u64, passed: bool) {
        if passed {
            self.latest = self.at(now).0;
            *self.counts.entry(self.latest).or_default() += cost;
        }
    }
    fn remaining(&self, now: u64, _: Side) -> u64 {
        floor(&(q(self.limit) - self.estimate(now)))
    }
    /// The estimate never rises while no request is admitted: halve the time until the first that
    /// fits.
    fn admits_at(&self, now: u64, cost: u64, side: Side) -> u64 {
        let (mut fails, mut fits) = (now, (self.at(now).0 + 2) * self.period);
        if self.fits(now, cost, side) {
            return now;
        }
        while fits - fails > 1 {
            let middle = fails + (fits - fails) / 2;
            if self.fits(middle, cost, side) {
                fits = middle;
            } else {
                fails = middle;
            }
        }
        fits
    }
}

/// A count for each segment.
pub struct Segments {
    limit: u64,
    length: u64,
    segments: u64,
    mode: Mode,
    anchor: Anchor,
    origin: Option<u64>,
    latest: u64,
    counts: BTreeMap<u64, u64>,
}

impl Segments {
    pub fn new(policy: &Policy) -> Segments {
        Segments {
            limit: policy.limit,
            length: policy.period / u64::from(policy.segments),
            segments: policy.segments.into(),
            mode: policy.mode,
            anchor: policy.anchor,
            origin: None,
            latest: 0,
            counts: BTreeMap::new(),
        }
    }

    fn origin(&self, now: u64) -> u64 {
        match self.anchor {
            Anchor::Epoch => 0,
            Anchor::First => self.origin.unwrap_or(now),
        }
    }

    fn at(&self, since: u64) -> (u64, u64) {
        if since / self.length < self.latest {
            (self.latest, 0)
        } else {
            (since / self.length, since % self.length)
        }
    }

    /// The permits that count at a time since the origin.
    fn used(&self, since: u64) -> Q {
        let (segment, elapsed) = self.at(since);
        let whole = if self.mode == Mode::Strict { self.segments } else { self.segments - 1 };
        let sum: u64 =
            self.counts.range(segment.saturating_sub(whole)..=segment).map(|(_, n)| n).sum();
        let oldest = segment.checked_sub(self.segments).and_then(|s| self.counts.get(&s));
        match (self.mode, oldest) {
            (Mode::Interpolated, Some(n)) => {
                q(sum) + q(*n) * Q::new((self.length - elapsed).into(), self.length.into())
            }
            _ => q(sum),
        }
    }

    fn fits_since(&self, since: u64, cost: u64) -> bool {
        self.used(since) + q(cost) <= q(self.limit)
    }
}

impl Model for Segments {
    fn reset(&mut self) {
        self.origin = None;
        self.latest = 0;
        self.counts.clear();
    }
    fn most(&self) -> u64 {
        self.limit
    }
    fn fits(&self, now: u64, cost: u64, _: Side) -> bool {
        self.fits_since(now.saturating_sub(self.origin(now)), cost)
    }
    fn settle(&mut self, now: u64, cost: u64, passed: bool) {
        if passed {
            let origin = *self.origin.get_or_insert(now);
            let since = if self.anchor == Anchor::First { now.saturating_sub(origin) } else { now };
            self.latest = self.at(since).0;
            *self.counts.entry(self.latest).or_default() += cost;
        }
    }
    fn remaining(&self, now: u64, _: Side) -> u64 {
        floor(&(q(self.limit) - self.used(now.saturating_sub(self.origin(now)))))
    }
    fn admits_at(&self, now: u64, cost: u64, side: Side) -> u64 {
        if self.fits(now, cost, side) {
            return now;
        }
        let origin = self.origin(now);
        let since = now.saturating_sub(origin);
        // The first segment at whose end the cost fits, then the first instant of that segment.
        let (first, _) = self.at(since);
        let segment = (first..).find(|s| self.fits_since((s + 1) * self.length - 1, cost)).unwrap();
        let (mut low, mut high) =
            (max(since, segment * self.length), (segment + 1) * self.length - 1);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.fits_since(middle, cost) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        max(origin + low, now)
    }
}

/// The time of each permit.
pub struct Times {
    limit: u64,
    period: u64,
    count_rejected: bool,
    entries: VecDeque<u64>,
}

impl Times {
    pub fn new(policy: &Policy) -> Times {
        Times {
            limit: policy.limit,
            period: policy.period,
            count_rejected: policy.count_rejected,
            entries: VecDeque::new(),
        }
    }

    /// A request whose clock went back is decided at the newest entry's time.
    fn judged(&self, now: u64) -> u64 {
        max(now, self.entries.back().copied().unwrap_or(0))
    }

    /// Entries in `(now − period, now]`.
    fn used(&self, now: u64) -> u64 {
        let judged = self.judged(now);
        self.entries.iter().filter(|t| **t + self.period > judged).count() as u64
    }
}

impl Model for Times {
    fn reset(&mut self) {
        self.entries.clear();
    }
    fn most(&self) -> u64 {
        self.limit
    }
    fn fits(&self, now: u64, cost: u64, _: Side) -> bool {
        self.used(now) + cost <= self.limit
    }
    fn settle(&mut self, now: u64, cost: u64, passed: bool) {
        if passed || self.count_rejected {
            let judged = self.judged(now);
            self.entries.extend((0..cost).map(|_| judged));
        }
    }
    fn remaining(&self, now: u64, _: Side) -> u64 {
        self.limit.saturating_sub(self.used(now))
    }
    fn admits_at(&self, now: u64, cost: u64, side: Side) -> u64 {
        if self.fits(now, cost, side) {
            return now;
        }
        // The answer can only change when an entry leaves.
        let mut leave: Vec<u64> =
            self.entries.iter().map(|t| t + self.period).filter(|t| *t > now).collect();
        leave.dedup();
        leave.into_iter().find(|t| self.fits(*t, cost, side)).unwrap()
    }
}
