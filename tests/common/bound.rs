//! How close a search has come to a bucket's bound.

use super::Policy;

/// A search that stays far below its bound would miss a broken bound, so it must come to 95 % of
/// it.
#[track_caller]
pub fn assert_near(what: &str, reached: u64, bound: u64) {
    assert!(reached * 100 >= bound * 95, "{what}: the search came to {reached} of {bound}");
}

/// The permits, times the period, by which the worst interval of `got` (time, permits; in order)
/// exceeds `burst + rate · t`; negative if none does.
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
