//! Buckets, pacers and the warm-up curve by their definitions.

use super::*;
use num_bigint::BigInt;
use num_traits::Zero;
use std::cmp::max;

/// Nanoseconds a permit takes.
fn interval(policy: &Policy) -> Q {
    Q::new(policy.period.into(), policy.limit.into())
}

/// A token bucket: full at `full_at`, and `burst` permits at the most.
pub struct Bucket {
    interval: Q,
    burst: u64,
    init: u64,
    /// One unit in nanoseconds where the clock's conversion is rounded, 0 where it is exact.
    unit: Q,
    full_at: Option<Q>,
}

impl Bucket {
    pub fn new(policy: &Policy, unit: Q) -> Bucket {
        Bucket {
            interval: interval(policy),
            burst: policy.burst,
            init: policy.init,
            unit,
            full_at: None,
        }
    }

    fn permits(&self, n: u64) -> Q {
        q(n) * &self.interval
    }

    fn full_at(&self, now: u64, side: Side) -> Q {
        match &self.full_at {
            None => q(now) + self.permits(self.burst - self.init),
            Some(at) if side == Side::Lenient => max(at - &self.unit, q(now) - &self.unit),
            Some(at) => max(at.clone(), q(now)),
        }
    }
}

impl Model for Bucket {
    fn exact(&self) -> bool {
        self.unit.is_zero()
    }
    fn reset(&mut self) {
        self.full_at = None;
    }
    fn most(&self) -> u64 {
        self.burst
    }
    fn fits(&self, now: u64, cost: u64, side: Side) -> bool {
        self.full_at(now, side) + self.permits(cost) <= q(now) + self.permits(self.burst)
    }
    fn settle(&mut self, now: u64, cost: u64, passed: bool) {
        let at = self.full_at(now, Side::Exact);
        if passed {
            self.full_at = Some(at + self.permits(cost));
        } else if self.init < self.burst {
            // A bucket that starts short fills from its first request on.
            self.full_at = Some(at);
        }
    }
    fn remaining(&self, now: u64, side: Side) -> u64 {
        floor(&((q(now) - self.full_at(now, side)) / &self.interval + q(self.burst)))
            .min(self.burst)
    }
    fn admits_at(&self, now: u64, cost: u64, side: Side) -> u64 {
        ceil(&(self.full_at(now, side) + self.permits(cost) - self.permits(self.burst))).max(now)
    }
}

/// Departures: a take goes once all takes before it are paid for.
pub struct Departures {
    interval: Q,
    slack: Q,
    initial: Q,
    most: u64,
    unit: Q,
    next: Option<Q>,
}

impl Departures {
    /// A pacer, or a bucket with `borrow`.
    pub fn new(policy: &Policy, unit: Q) -> Departures {
        let interval = interval(policy);
        let (slack, initial, most) = if policy.borrow {
            (policy.burst, policy.init, u64::MAX)
        } else {
            (policy.slack, 0, policy.burst)
        };
        let permits = |n: u64| q(n) * &interval;
        Departures {
            slack: permits(slack),
            initial: permits(initial),
            most,
            unit,
            next: None,
            interval,
        }
    }

    fn next(&self, now: u64, side: Side) -> Q {
        let next = match &self.next {
            None => q(now) - &self.initial,
            Some(at) => max(at.clone(), q(now) - &self.slack),
        };
        if side == Side::Lenient {
            next - &self.unit
        } else {
            next
        }
    }
}

impl Model for Departures {
    fn exact(&self) -> bool {
        self.unit.is_zero()
    }
    fn reset(&mut self) {
        self.next = None;
    }
    fn most(&self) -> u64 {
        self.most
    }
    fn fits(&self, now: u64, _cost: u64, side: Side) -> bool {
        self.next(now, side) <= q(now)
    }
    fn settle(&mut self, now: u64, cost: u64, passed: bool) {
        if passed {
            self.next = Some(self.next(now, Side::Exact) + q(cost) * &self.interval);
        }
    }
    fn remaining(&self, now: u64, side: Side) -> u64 {
        let ahead = q(now) - self.next(now, side);
        if ahead.is_negative() {
            return 0;
        }
        floor(&(ahead / &self.interval)) + 1
    }
    fn admits_at(&self, now: u64, _cost: u64, side: Side) -> u64 {
        ceil(&self.next(now, side)).max(now)
    }
}

/// Interval refill aligned to time 0: `level` permits in interval number `at`.
pub struct Refill {
    limit: i128,
    period: u64,
    burst: u64,
    at: i128,
    level: i128,
}

impl Refill {
    pub fn new(policy: &Policy) -> Refill {
        let mut refill = Refill {
            limit: policy.limit.into(),
            period: policy.period,
            burst: policy.burst,
            at: 0,
            level: 0,
        };
        refill.reset();
        refill
    }

    /// The level in an interval. For an interval before `at`, the refills between the two are taken
    /// off.
    fn level(&self, interval: i128) -> i128 {
        (self.level + (interval - self.at) * self.limit).min(self.burst.into())
    }
}

impl Model for Refill {
    fn reset(&mut self) {
        (self.at, self.level) = (0, self.burst.into());
    }
    fn most(&self) -> u64 {
        self.burst
    }
    fn fits(&self, now: u64, cost: u64, _: Side) -> bool {
        i128::from(cost) <= self.level((now / self.period).into())
    }
    fn settle(&mut self, now: u64, cost: u64, passed: bool) {
        if passed {
            let interval = max(self.at, (now / self.period).into());
            self.level = self.level(interval) - i128::from(cost);
            self.at = interval;
        }
    }
    fn remaining(&self, now: u64, _: Side) -> u64 {
        self.level((now / self.period).into()).max(0) as u64
    }
    fn admits_at(&self, now: u64, cost: u64, side: Side) -> u64 {
        if self.fits(now, cost, side) {
            return now;
        }
        let later = (now / self.period + 1..).find(|k| i128::from(cost) <= self.level((*k).into()));
        later.map_or(NEVER, |k| k * self.period)
    }
}

/// Guava's `SmoothWarmingUp` with our documented differences: times in units of `1/unit` permit,
/// the store in `2^fine` levels per permit, integrals as differences of rounded curves, and
/// idleness from one interval after the last take was paid.
pub struct Trapezoid {
    policy: Policy,
    /// Units per permit, and per nanosecond.
    unit: u64,
    rate: Q,
    fine: u32,
    full: u64,
    /// The price of emptying a store of `level` levels.
    prices: Vec<u64>,
    next_and_level: Option<(u64, u64)>,
}

impl Trapezoid {
    pub fn new(policy: &Policy, unit: u64) -> Trapezoid {
        let stable = interval(policy);
        let warm_up = q(policy.warm_up);
        let cold = q(policy.cold);
        let threshold = &warm_up / (q(2) * &stable);
        let most = &threshold + q(2) * &warm_up / (&stable * (q(1) + &cold));
        let slope = (&cold - q(1)) * &stable / (&most - &threshold);
        let levels = |fine: u32| floor(&(&most * q(1u64 << fine)));
        let fine = (0..10).find(|fine| levels(*fine) >= 256).unwrap_or(10);
        let full = levels(fine);
        let rate = q(unit) / &stable;
        let prices = (0..=full)
            .map(|level| {
                let stored = Q::new(level.into(), BigInt::from(1u64 << fine));
                let above = max(&stored - &threshold, q(0));
                let (flat, steep) = (&stored * &stable, &slope * &above * &above / q(2));
                floor(&(flat * &rate)) + floor(&(steep * &rate))
            })
            .collect();
        Trapezoid { policy: *policy, unit, rate, fine, full, prices, next_and_level: None }
    }

    fn clock(&self, now: u64) -> u64 {
        floor(&(q(now) * &self.rate))
    }

    fn nanos(&self, units: u64) -> u64 {
        ceil(&(q(units) / &self.rate))
    }

    fn found(&self, now: u64) -> (u64, u64) {
        let clock = self.clock(now);
        match self.next_and_level {
            None => (clock, self.full),
            Some((next, level)) if next >= clock => (next, level),
            Some((next, level)) => {
                let grace = ceil(&interval(&self.policy));
                let idle = now.saturating_sub(self.nanos(next) + grace);
                let gained = floor(&(q(idle) * q(self.full) / q(self.policy.warm_up)));
                (clock, self.full.min(level + gained))
            }
        }
    }
}

impl Model for Trapezoid {
    fn reset(&mut self) {
        self.next_and_level = None;
    }
    fn most(&self) -> u64 {
        self.policy.burst
    }
    fn fits(&self, now: u64, _cost: u64, _: Side) -> bool {
        self.found(now).0 <= self.clock(now)
    }
    fn settle(&mut self, now: u64, cost: u64, passed: bool) {
        if !passed {
            return;
        }
        let (next, level) = self.found(now);
        let drawn = level.min(cost << self.fine);
        let beyond = Q::new(((cost << self.fine) - drawn).into(), BigInt::from(1u64 << self.fine))
            * q(self.unit);
        let wait =
            self.prices[level as usize] - self.prices[(level - drawn) as usize] + ceil(&beyond);
        self.next_and_level = Some((next + wait.max(1), level - drawn));
    }
    fn remaining(&self, now: u64, side: Side) -> u64 {
        u64::from(self.fits(now, 1, side))
    }
    fn admits_at(&self, now: u64, _cost: u64, _: Side) -> u64 {
        self.nanos(self.found(now).0).max(now)
    }
}
