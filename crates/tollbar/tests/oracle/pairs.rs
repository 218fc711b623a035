//! Two token buckets of one key, by their definition.

use super::*;
use std::cmp::max;
use tollbar::policy::Rate;

/// Two token buckets that a request charges together. Times at which a bucket starts to be charged are rounded up to whole `steps`; with
/// a step of 0 they are exact.
pub struct Two {
    rates: [Rate; 2],
    step: Q,
    full_at: [Q; 2],
}

impl Two {
    pub fn new(policy: &Policy, step: Q) -> Two {
        let first = Rate { limit: policy.limit, period: policy.period, burst: policy.burst };
        Two { rates: [first, policy.second.expect("a list")], step, full_at: [q(0), q(0)] }
    }

    /// When each bucket is full.
    pub fn full(&self) -> &[Q; 2] {
        &self.full_at
    }

    fn permits(&self, bucket: usize, n: u64) -> Q {
        q(n) * Q::new(self.rates[bucket].period.into(), self.rates[bucket].limit.into())
    }

    /// When each bucket could be full if it were charged at `now`.
    fn base(&self, bucket: usize, now: &Q) -> Q {
        max(self.full_at[bucket].clone(), now.clone())
    }

    fn due(&self, bucket: usize, now: u64, cost: u64) -> u64 {
        ceil(
            &(self.base(bucket, &q(now)) + self.permits(bucket, cost) - self.permits(bucket, self.rates[bucket].burst)),
        )
        .max(now)
    }

    fn left(&self, bucket: usize, now: u64) -> u64 {
        let ahead = q(now) + self.permits(bucket, self.rates[bucket].burst) - self.base(bucket, &q(now));
        floor(&(ahead / self.permits(bucket, 1)))
    }

    fn start(&self, now: u64) -> Q {
        if self.step == q(0) {
            q(now)
        } else {
            (q(now) / &self.step).ceil() * &self.step
        }
    }

    /// Charges each bucket as far as two bursts beyond the present, and returns the permits that one of them could not take.
    pub fn charge(&mut self, now: u64, cost: u64) -> u64 {
        let start = self.start(now);
        let taken = [0, 1].map(|n| {
            let room = &start + self.permits(n, self.rates[n].burst) * q(2) - self.base(n, &start);
            cost.min(floor(&(max(room, q(0)) / self.permits(n, 1))))
        });
        if taken != [0, 0] {
            for (n, taken) in taken.into_iter().enumerate() {
                self.full_at[n] = self.base(n, &start) + self.permits(n, taken);
            }
            // A word holds no time of the fast bucket after that of the slow one.
            let slow = usize::from(self.permits(1, 1) >= self.permits(0, 1));
            let latest = self.full_at[slow].clone();
            self.full_at[1 - slow] = latest.min(self.full_at[1 - slow].clone());
        }
        cost - taken[0].min(taken[1])
    }

    /// Takes permits for the first instant at which both buckets have them.
    pub fn book(&mut self, now: u64, cost: u64) -> u64 {
        let at = self.admits_at(now, cost, Side::Exact);
        self.settle(at, cost, true);
        at
    }

    /// Which of the two binds.
    pub fn bound(&self, verdict: Verdict, now: u64, cost: u64) -> u32 {
        let second = match verdict {
            Verdict::Allowed => self.left(1, now) < self.left(0, now),
            Verdict::Denied => {
                // Before it is rounded to a nanosecond.
                let due =
                    |n: usize| self.full_at[n].clone() + self.permits(n, cost) - self.permits(n, self.rates[n].burst);
                max(due(1), q(0)) > max(due(0), q(0))
            }
            Verdict::Never => cost <= self.rates[0].burst,
        };
        u32::from(second)
    }
}

impl Model for Two {
    fn reset(&mut self) {
        self.full_at = [q(0), q(0)];
    }
    fn most(&self) -> u64 {
        self.rates[0].burst.min(self.rates[1].burst)
    }
    fn fits(&self, now: u64, cost: u64, _: Side) -> bool {
        (0..2).all(|n| self.base(n, &q(now)) + self.permits(n, cost) <= q(now) + self.permits(n, self.rates[n].burst))
    }
    fn settle(&mut self, now: u64, cost: u64, passed: bool) {
        if !passed {
            return;
        }
        let start = self.start(now);
        for n in 0..2 {
            self.full_at[n] = self.base(n, &start) + self.permits(n, cost);
        }
    }
    fn remaining(&self, now: u64, _: Side) -> u64 {
        self.left(0, now).min(self.left(1, now))
    }
    fn admits_at(&self, now: u64, cost: u64, _: Side) -> u64 {
        self.due(0, now, cost).max(self.due(1, now, cost))
    }
}
