//! Windows under times in any order, and the weighted window where its counter is coarse: bounds
//! that need a model of the admissions.

use crate::common::{policy, state, Rng, MS, SEC};
use std::collections::HashMap;
use tollbar::algorithm::weighted_window::WeightedWindow;
use tollbar::limiter::Cell;
use tollbar::{Shared, Verdict};

/// Times that jump over some periods, back as often as forward.
fn about(rng: &mut Rng, period: u64, at: u64) -> u64 {
    match rng.below(4) {
        0 => at,
        1 => at.saturating_sub(rng.below(3 * period)),
        2 => at + rng.below(period),
        _ => at + rng.below(3 * period) / 2,
    }
}

/// A request whose clock went back is decided in the window of the newest admission. So each window
/// of the clock holds at most the limit, in whatever order the times come.
#[test]
fn invariant_6_windows_hold_the_limit_in_any_order() {
    for (text, most) in
        [("5/s algo fixed-window", 5), ("5/s algo interval", 5), ("5/s algo weighted-window", 5)]
    {
        let mut rng = Rng(6);
        let mut reached = 0;
        for _ in 0..2_000 {
            let state = state(text);
            let (mut now, mut newest) = (10 * SEC, 0);
            let mut admitted: HashMap<u64, u64> = HashMap::new();
            for _ in 0..60 {
                now = about(&mut rng, SEC, now);
                let cost = rng.within(1, 3);
                if state.admit_at(now, cost) == Verdict::Allowed {
                    newest = now.max(newest);
                    *admitted.entry(newest / SEC).or_default() += cost;
                }
            }
            assert!(admitted.values().all(|sum| *sum <= most), "{text}: {admitted:?}");
            reached = reached.max(admitted.values().copied().max().unwrap_or(0));
        }
        assert_eq!(reached, most, "{text}: the search never filled a window");
    }
}

/// Above 65,535 per second the previous window's count is rounded up. The limiter may refuse a
/// request that the exact count would admit, if that rounding is the cause, and never admits a
/// request that the exact count would refuse.
#[test]
fn s04_a_coarse_weighted_window_errs_by_its_rounding_and_to_the_safe_side() {
    let policy = policy("1000000/s algo weighted-window");
    let (limit, period) = (u128::from(policy.limit), u128::from(policy.period));
    // 20 bits of count and 32 of window number leave 12 bits: multiples of 2^8.
    let grain = 1 << 8;
    let mut rng = Rng(4);
    let mut differing = 0;
    for _ in 0..500 {
        let cell = Cell::new(WeightedWindow::new(&policy).unwrap());
        let mut now = rng.below(100 * SEC);
        let mut counts: HashMap<u64, u128> = HashMap::new();
        for _ in 0..200 {
            now += rng.below(20 * MS);
            let cost = rng.within(1, 60_000);
            let (window, elapsed) = (now / SEC, u128::from(now % SEC));
            let count = |window: u64| counts.get(&window).copied().unwrap_or(0);
            let previous = window.checked_sub(1).map_or(0, count);
            let weight = |previous: u128| {
                previous * (period - elapsed) + (count(window) + u128::from(cost)) * period
            };
            let allowed = cell.admit_at(now, cost) == Verdict::Allowed;
            if allowed {
                assert!(
                    weight(previous) <= limit * period,
                    "more than the exact count allows, at {now}"
                );
                *counts.entry(window).or_default() += u128::from(cost);
            } else {
                assert!(
                    weight(previous + grain) > limit * period,
                    "less than the rounding explains, at {now}"
                );
                differing += u32::from(weight(previous) <= limit * period);
            }
        }
    }
    assert!(differing > 0, "the counter was never coarse");
}
