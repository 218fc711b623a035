//! The token bucket that bans, by its definition.

use super::*;
use std::cmp::max;

/// A token bucket of which so many refusals ban until a time. From then on it fills from a single
/// permit.
pub struct Ban {
    interval: Q,
    burst: u64,
    time: u64,
    after: u32,
    full_at: Q,
    refusals: u32,
}

impl Ban {
    pub fn new(policy: &Policy) -> Ban {
        let interval = Q::new(policy.period.into(), policy.limit.into());
        Ban {
            interval,
            burst: policy.burst,
            time: policy.ban,
            after: policy.ban_after,
            full_at: q(0),
            refusals: 0,
        }
    }

    fn permits(&self, n: u64) -> Q {
        q(n) * &self.interval
    }

    /// The time at which the bucket is full, seen at `now`.
    fn full_at(&self, now: u64) -> Q {
        max(self.full_at.clone(), q(now))
    }

    fn is_banned(&self, now: u64) -> bool {
        self.refusals == self.after && !self.fits(now, 1, Side::Exact)
    }
}

impl Model for Ban {
    fn reset(&mut self) {
        self.full_at = q(0);
        self.refusals = 0;
    }
    fn most(&self) -> u64 {
        self.burst
    }
    fn fits(&self, now: u64, cost: u64, _: Side) -> bool {
        self.full_at(now) + self.permits(cost) <= q(now) + self.permits(self.burst)
    }
    fn settle(&mut self, now: u64, cost: u64, passed: bool) {
        if self.is_banned(now) {
            return;
        }
        if self.full_at <= q(now) || self.refusals == self.after {
            // The bucket is full, or the ban is over.
            self.refusals = 0;
        }
        if passed {
            self.full_at = self.full_at(now) + self.permits(cost);
            return;
        }
        self.refusals += 1;
        if self.refusals == self.after {
            let end = q(now) + q(self.time);
            self.full_at = max(self.full_at(now), end + self.permits(self.burst - 1));
        }
    }
    fn remaining(&self, now: u64, _: Side) -> u64 {
        floor(&((q(now) - self.full_at(now)) / &self.interval + q(self.burst))).min(self.burst)
    }
    fn admits_at(&self, now: u64, cost: u64, _: Side) -> u64 {
        ceil(&(self.full_at(now) + self.permits(cost) - self.permits(self.burst))).max(now)
    }
}
