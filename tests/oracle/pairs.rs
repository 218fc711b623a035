//! Two token buckets of one key, by their definition.

use super::*;
use std::cmp::{max, Ordering};
use tollbar::algorithm::pair::Pair;
use tollbar::policy::Rate;

/// Two token buckets that a request charges together: exact ones, or those of a word, which start
/// to be charged at whole steps.
pub struct Two {
    rates: [Rate; 2],
    /// The index of the slow bucket.
    slow: usize,
    /// 0: exact buckets.
    step: Q,
    /// The steps of whose multiples the slow bucket starts at one.
    slow_steps: u64,
    full_at: [Q; 2],
    /// The end of the step in which the fast bucket started and got all its charges, if the word
    /// counts these.
    started: Option<Q>,
}

impl Two {
    /// Two exact buckets.
    pub fn exact(policy: &Policy) -> Two {
        let first = Rate { limit: policy.limit, period: policy.period, burst: policy.burst };
        let rates = [first, policy.second.expect("a list")];
        let length = |rate: &Rate| Q::new(rate.period.into(), rate.limit.into());
        let slow = match length(&rates[0]).cmp(&length(&rates[1])) {
            Ordering::Less => 1,
            Ordering::Greater => 0,
            Ordering::Equal => usize::from(rates[0].burst <= rates[1].burst),
        };
        Two { rates, slow, step: q(0), slow_steps: 1, full_at: [q(0), q(0)], started: None }
    }

    /// The buckets of a list's word.
    pub fn new(policy: &Policy, pair: &Pair) -> Two {
        let (nanos, per) = pair.step_length();
        let step = Q::new(nanos.into(), per.into());
        Two { step, slow_steps: pair.slow_steps(), ..Two::exact(policy) }
    }

    /// When each bucket is full.
    pub fn full(&self) -> &[Q; 2] {
        &self.full_at
    }

    /// The index of the bucket that takes longer to refill a permit.
    pub fn slow(&self) -> usize {
        self.slow
    }

    fn permits(&self, bucket: usize, n: u64) -> Q {
        q(n) * Q::new(self.rates[bucket].period.into(), self.rates[bucket].limit.into())
    }

    /// When each bucket is full, as a request at `now` sees it. A bucket that started in the
    /// running step has been full at an instant of it.
    fn seen(&self, bucket: usize, now: &Q) -> Q {
        let started = match self.slow_steps > 1 {
            true if bucket == self.slow => None,
            true => self.started.clone(),
            false => {
                self.started_together().and_then(|(at, permits)| (permits > q(0)).then_some(at))
            }
        };
        match started {
            Some(end) if end == self.start(now) && end != *now => {
                &self.full_at[bucket] - &self.step
            }
            _ => self.full_at[bucket].clone(),
        }
    }

    /// The instant at which both buckets had started if both have been charged with the same number
    /// of permits since, and that number.
    fn started_together(&self) -> Option<(Q, Q)> {
        let (fast, slow) = (1 - self.slow, self.slow);
        let longer = self.permits(slow, 1) - self.permits(fast, 1);
        if longer == q(0) || self.step == q(0) {
            return None;
        }
        let permits = (&self.full_at[slow] - &self.full_at[fast]) / longer;
        let at = &self.full_at[fast] - &permits * self.permits(fast, 1);
        (permits.is_integer() && permits >= q(0)).then_some((at, permits))
    }

    /// When each bucket could be full if it were charged at `now`.
    fn base(&self, bucket: usize, now: &Q) -> Q {
        max(self.seen(bucket, now), now.clone())
    }

    /// When a bucket has the permits for sure.
    fn due(&self, bucket: usize, cost: u64) -> u64 {
        ceil(
            &(&self.full_at[bucket] + self.permits(bucket, cost)
                - self.permits(bucket, self.rates[bucket].burst)),
        )
    }

    /// The first nanosecond of the step in which the buckets started.
    fn begins_again(&self) -> Option<u64> {
        let end = if self.slow_steps > 1 {
            self.started.clone()
        } else {
            self.started_together().map(|(at, _)| at)
        }?;
        let before = end - &self.step;
        (before >= q(0)).then(|| floor(&before) + 1)
    }

    /// The permits that a bucket has left.
    pub fn left(&self, bucket: usize, now: u64) -> u64 {
        let ahead =
            q(now) + self.permits(bucket, self.rates[bucket].burst) - self.base(bucket, &q(now));
        floor(&(ahead / self.permits(bucket, 1)))
    }

    /// The end of the running step.
    fn start(&self, now: &Q) -> Q {
        if self.step == q(0) {
            now.clone()
        } else {
            (now / &self.step).ceil() * &self.step
        }
    }

    /// Charges each bucket with so many permits at `now`, in the step that ends at `end`.
    fn add(&mut self, now: u64, end: Q, permits: [u64; 2]) {
        let now = q(now);
        let counts = self.slow_steps > 1;
        for (n, permits) in permits.into_iter().enumerate() {
            let full = self.full_at[n] <= now;
            let grid = &self.step * q(if n == self.slow { self.slow_steps } else { 1 });
            let from = match full {
                true if self.step == q(0) => now.clone(),
                true => (&end / &grid).ceil() * &grid,
                // The slow bucket may be full only at the end of the step.
                false if n == self.slow && !counts && self.full_at[n] == end => &end + &self.step,
                false => self.full_at[n].clone(),
            };
            self.full_at[n] = from + self.permits(n, permits);
            if counts && n != self.slow {
                let started = if full { Some(end.clone()) } else { self.started.take() };
                self.started = started.filter(|started| *started == end);
            }
        }
    }

    /// Charges each bucket as far as two bursts beyond the present, and returns the permits that
    /// one of them could not take.
    pub fn charge(&mut self, now: u64, cost: u64) -> u64 {
        let start = self.start(&q(now));
        let taken = [0, 1].map(|n| {
            let from = max(self.full_at[n].clone(), start.clone());
            let room = &start + self.permits(n, self.rates[n].burst) * q(2) - from;
            cost.min(floor(&(max(room, q(0)) / self.permits(n, 1))))
        });
        if taken != [0, 0] {
            self.add(now, start.clone(), taken);
            // A word holds no time of the fast bucket after that of the slow one.
            let latest = self.full_at[self.slow].clone();
            let fast = &mut self.full_at[1 - self.slow];
            *fast = latest.min(fast.clone());
            if taken[0] != taken[1]
                && self.slow_steps == 1
                && self.started_together().is_some_and(|(at, _)| at >= start)
            {
                self.full_at[self.slow] += &self.step;
            }
        }
        cost - taken[0].min(taken[1])
    }

    /// Makes the slow bucket full one step later if both buckets seem to have been full in the step
    /// that ends at `since`, or in a later one. The library's word would otherwise look like one
    /// that was.
    fn start_no_earlier(&mut self, since: &Q) {
        if self.slow_steps == 1 && self.started_together().is_some_and(|(at, _)| at >= *since) {
            self.full_at[self.slow] += &self.step;
        }
    }

    /// Takes permits for the first instant at which both buckets have them.
    pub fn book(&mut self, now: u64, cost: u64) -> u64 {
        let at = self.admits_at(now, cost, Side::Exact);
        self.add(at, self.start(&q(at)), [cost; 2]);
        if at > now && self.step != q(0) {
            // A request that departs later cannot show that the buckets are full in the running
            // step.
            self.started = None;
            self.start_no_earlier(&self.start(&q(now)));
        }
        at
    }

    /// Which of the two binds.
    pub fn bound(&self, verdict: Verdict, now: u64, cost: u64) -> u32 {
        let second = match verdict {
            Verdict::Allowed => self.left(1, now) < self.left(0, now),
            Verdict::Denied => {
                // Before it is rounded to a nanosecond.
                let due = |n: usize| {
                    self.full_at[n].clone() + self.permits(n, cost)
                        - self.permits(n, self.rates[n].burst)
                };
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
        self.started = None;
    }
    fn most(&self) -> u64 {
        self.rates[0].burst.min(self.rates[1].burst)
    }
    fn fits(&self, now: u64, cost: u64, _: Side) -> bool {
        (0..2).all(|n| {
            self.base(n, &q(now)) + self.permits(n, cost)
                <= q(now) + self.permits(n, self.rates[n].burst)
        })
    }
    fn settle(&mut self, now: u64, cost: u64, passed: bool) {
        if passed {
            self.add(now, self.start(&q(now)), [cost; 2]);
        }
    }
    fn remaining(&self, now: u64, _: Side) -> u64 {
        self.left(0, now).min(self.left(1, now))
    }
    fn admits_at(&self, now: u64, cost: u64, _: Side) -> u64 {
        if self.fits(now, cost, Side::Exact) {
            return now;
        }
        let due = self.due(0, cost).max(self.due(1, cost)).max(now);
        // After a step back of the clock the step in which the buckets started is still to come.
        match self.begins_again() {
            Some(at) if at > now && at < due && self.fits(at, cost, Side::Exact) => at,
            _ => due,
        }
    }
}
