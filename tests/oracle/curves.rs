//! Refill curves and level-dependent refill by their definitions.

use super::*;

/// The permits of each slice come along a line through knots.
pub struct Curve {
    limit: u64,
    period: u64,
    /// Time and share of each knot, from 0 to 1.
    points: Vec<(Q, Q)>,
    /// The slice and the cost of each admission.
    taken: Vec<(u64, u64)>,
}

impl Curve {
    pub fn new(policy: &Policy) -> Curve {
        let share = |hundredths: u16| Q::new(hundredths.into(), 10_000.into());
        let mut points: Vec<(Q, Q)> =
            policy.knots.pairs().map(|[at, share_of]| (share(at), share(share_of))).collect();
        if points.is_empty() {
            points.push((q(1), q(1)));
        }
        points.insert(0, (q(0), q(0)));
        Curve { limit: policy.limit, period: policy.period, points, taken: Vec::new() }
    }

    /// The permits that have come so many nanoseconds after a slice's beginning.
    pub fn come(&self, offset: u64) -> u64 {
        // The last nanosecond of a slice is the end of the curve.
        let end = self.period - 1;
        let time = if end == 0 { q(1) } else { Q::new(offset.into(), end.into()) };
        let passed = self.points.iter().filter(|(at, _)| *at <= time).count();
        let (from, low) = &self.points[passed - 1];
        let share = match self.points.get(passed) {
            None => low.clone(),
            Some((to, high)) => low + (high - low) * (&time - from) / (to - from),
        };
        floor(&(share * q(self.limit)))
    }

    fn used(&self, slice: u64) -> u64 {
        self.taken.iter().filter(|(of, _)| *of == slice).map(|(_, cost)| cost).sum()
    }

    fn latest(&self) -> u64 {
        self.taken.iter().map(|(slice, _)| *slice).max().unwrap_or(0)
    }
}

impl Model for Curve {
    fn reset(&mut self) {
        self.taken.clear();
    }
    fn most(&self) -> u64 {
        self.limit
    }
    fn fits(&self, now: u64, cost: u64, side: Side) -> bool {
        cost <= self.remaining(now, side)
    }
    fn settle(&mut self, now: u64, cost: u64, passed: bool) {
        if passed {
            self.taken.push((now / self.period, cost));
        }
    }
    fn remaining(&self, now: u64, _: Side) -> u64 {
        let slice = now / self.period;
        match slice < self.latest() {
            true => 0,
            false => self.come(now % self.period).saturating_sub(self.used(slice)),
        }
    }
    /// By halving the times of each slice, where the permits only grow.
    fn admits_at(&self, now: u64, cost: u64, side: Side) -> u64 {
        for slice in (now / self.period).max(self.latest()).. {
            let (mut low, mut high) = (slice * self.period, slice * self.period + self.period - 1);
            low = low.max(now);
            if !self.fits(high, cost, side) {
                continue;
            }
            while low < high {
                let half = low + (high - low) / 2;
                match self.fits(half, cost, side) {
                    true => high = half,
                    false => low = half + 1,
                }
            }
            return low;
        }
        unreachable!("a new slice has the whole limit")
    }
}

/// A bucket that fills at another rate at each level.
pub struct Levels {
    burst: u64,
    /// The level at which each band begins, and the nanoseconds of a permit there.
    bands: Vec<(Q, Q)>,
    /// When the bucket is full, unless it was never used.
    full_at: Option<Q>,
}

impl Levels {
    pub fn new(policy: &Policy) -> Levels {
        let even = Q::new(policy.period.into(), policy.limit.into());
        let mut bands: Vec<(Q, Q)> = policy
            .knots
            .pairs()
            // A band begins at a whole permit.
            .map(|[level, rate]| {
                let from = u128::from(policy.burst) * u128::from(level) / 10_000;
                (q(from), &even * Q::new(10_000.into(), rate.into()))
            })
            .collect();
        if bands.is_empty() {
            bands.push((q(0), even));
        }
        Levels { burst: policy.burst, bands, full_at: None }
    }

    /// The nanoseconds in which an empty bucket fills to this level.
    fn time_to(&self, level: &Q) -> Q {
        let mut time = q(0);
        for (n, (from, permit)) in self.bands.iter().enumerate() {
            let to = self.bands.get(n + 1).map_or(level, |(next, _)| next.min(level));
            if to > from {
                time += (to - from) * permit;
            }
        }
        time
    }

    /// The level after so many nanoseconds from empty on.
    fn level_after(&self, mut time: Q) -> Q {
        for (n, (from, permit)) in self.bands.iter().enumerate() {
            match self.bands.get(n + 1) {
                Some((to, _)) if (to - from) * permit <= time => time -= (to - from) * permit,
                _ => return from + time / permit,
            }
        }
        unreachable!("the last band has no end")
    }

    /// The level at `now`; negative for a bucket in debt.
    pub fn level(&self, now: u64) -> Q {
        let missing = self.full_at.as_ref().map_or(q(0), |at| (at - q(now)).max(q(0)));
        let time = self.time_to(&q(self.burst)) - missing;
        match time.is_negative() {
            true => time / &self.bands[0].1,
            false => self.level_after(time),
        }
    }
}

impl Model for Levels {
    fn reset(&mut self) {
        self.full_at = None;
    }
    fn most(&self) -> u64 {
        self.burst
    }
    fn fits(&self, now: u64, cost: u64, _: Side) -> bool {
        self.level(now) >= q(cost)
    }
    fn settle(&mut self, now: u64, cost: u64, passed: bool) {
        if passed {
            let left = self.level(now) - q(cost);
            self.full_at = Some(q(now) + self.time_to(&q(self.burst)) - self.time_to(&left));
        }
    }
    fn remaining(&self, now: u64, _: Side) -> u64 {
        floor(&self.level(now))
    }
    fn admits_at(&self, now: u64, cost: u64, _: Side) -> u64 {
        let Some(full_at) = &self.full_at else { return now };
        let missing = self.time_to(&q(self.burst)) - self.time_to(&q(cost));
        ceil(&(full_at - missing)).max(now)
    }
}
