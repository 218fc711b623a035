//! Lifetime quotas by their definition.

use super::*;

/// A number of permits, of which none comes back.
pub struct Quota {
    limit: u64,
    taken: Vec<u64>,
}

impl Quota {
    pub fn new(policy: &Policy) -> Quota {
        Quota { limit: policy.limit, taken: Vec::new() }
    }
}

impl Model for Quota {
    fn reset(&mut self) {
        self.taken.clear();
    }
    fn most(&self) -> u64 {
        self.limit
    }
    fn fits(&self, now: u64, cost: u64, side: Side) -> bool {
        cost <= self.remaining(now, side)
    }
    fn settle(&mut self, _now: u64, cost: u64, passed: bool) {
        if passed {
            self.taken.push(cost);
        }
    }
    fn remaining(&self, _now: u64, _: Side) -> u64 {
        self.limit - self.taken.iter().sum::<u64>()
    }
    fn admits_at(&self, now: u64, cost: u64, side: Side) -> u64 {
        match self.fits(now, cost, side) {
            true => now,
            false => NEVER,
        }
    }
}
