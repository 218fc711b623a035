//! How close to its bound a bucket has come.

use super::Policy;

/// A search that stays far below its bound would not see the bound broken: it must come to 95 % of it.
#[track_caller]
pub fn assert_near(what: &str, reached: u64, bound: u64) {
    assert!(reached * 100 >= bound * 95, "{what}: the search came to {reached} of {bound}");
}

/// By how many permits, times the period, the worst interval of `got` (time, permits; in order) passes `burst + rate · t`;
/// negative if none does.
pub fn excess(policy: &Policy, got: &[(u64, u64)]) -> i128 {
    let (period, limit) = (i128::from(policy.period), i128::from(policy.limit));
    let (mut before, mut least, mut worst) = (0i128, i128::MAX, i128::MIN);
    for &(now, permits) in got {
        let line = before * period - limit * i128::from(now);
        least = least.min(line);
        before += i128::from(permits);
        worst = worst.max(before * period - limit * i128::from(now) - least);
    }
    worst - i128::from(policy.burst) * period
}
