//! Invariant 2: the rate is exact in the long run, wherever the clock starts. Virtual time.

use crate::common::*;
use tollbar::{Kind, Policy, Shared, State, NEVER};

/// limit and period of: 1 per year, 3, 7, 3·10⁶, 3·10⁸, 7·10⁸ and 10¹⁰ per second.
const RATES: [(u64, u64); 7] = [
    (1, YEAR),
    (3, SEC),
    (7, SEC),
    (3_000_000, SEC),
    (300_000_000, SEC),
    (700_000_000, SEC),
    (10_000_000_000, SEC),
];

const LONG: u64 = 1_000_000_000 * SEC;

fn earned(limit: u64, period: u64, time: u64) -> u128 {
    u128::from(time) * u128::from(limit) / u128::from(period)
}

/// A bucket that is emptied again and again for 10⁹ s gives its burst and the rate's refill, to the
/// permit.
#[test]
fn invariant_2_a_bucket_is_exact_over_a_billion_seconds() {
    for (limit, period) in RATES {
        // More than refills in two hours, so that the bucket is never full between two visits.
        let burst = earned(limit, period, 2 * HOUR) as u64 + 1;
        let policy = Policy::new(limit, period).with_burst(burst);
        let bucket = State::new(&policy).unwrap();
        let (mut rng, mut now, mut taken) = (Rng(limit), 0, 0u128);
        let mut visits = 0;
        while now <= LONG {
            taken += u128::from(bucket.take_up_to_at(now, NEVER));
            visits += 1;
            now =
                if now == LONG { LONG + 1 } else { (now + rng.within(1, 2 * HOUR - 1)).min(LONG) };
        }
        assert!(visits > 100_000);
        assert_eq!(taken, u128::from(burst) + earned(limit, period, LONG), "{policy}");
    }
}

/// 10⁵ takes that are booked ahead depart at exact times. Together they cost all permits that the
/// rate gives in 10⁹ s.
#[test]
fn invariant_2_departures_are_exact_over_a_billion_seconds() {
    for (limit, period) in RATES {
        for kind in [Kind::Gcra, Kind::Pacer, Kind::WarmUp] {
            let all = earned(limit, period, LONG);
            let takes = all.min(100_000) as u64;
            let mut cost = (all / u128::from(takes)) as u64;
            if kind == Kind::WarmUp {
                // The store and the clock of a warm-up share a word, which leaves no room for such
                // takes.
                if limit > 7 {
                    continue;
                }
                cost = cost.min(1_000);
            }
            let mut policy = Policy::new(limit, period).with_kind(kind).with_burst(cost);
            policy.warm_up = if kind == Kind::WarmUp { 10 * period.min(MS) } else { 0 };
            let state = State::new(&policy).unwrap_or_else(|why| panic!("{policy}: {why}"));
            // After these a warm-up is warm, and departs at its limit from then on.
            let warm = if kind == Kind::WarmUp { takes.min(20) } else { 0 };
            let mut first = 0;
            for k in 0..=takes {
                let at = state.reserve_at(0, cost, NEVER).unwrap();
                if k == warm {
                    first = at;
                }
                if k >= warm {
                    let want = (u128::from((k - warm) * cost) * u128::from(period))
                        .div_ceil(u128::from(limit)) as u64;
                    // The warm-up's own first departure lies between two nanoseconds.
                    let off = (at - first).abs_diff(want);
                    assert!(off <= u64::from(kind == Kind::WarmUp), "{policy}: take {k} at {at}");
                }
            }
        }
    }
}

/// Fixed windows, interval refill and sliding windows give `limit` a period without end.
#[test]
fn invariant_2_windows_are_exact_over_a_billion_seconds() {
    let day = 86_400;
    for algorithm in
        ["interval", "fixed-window", "weighted-window", "sliding-window mode n", "sliding-log"]
    {
        let window = state(&format!("{day}/day algo {algorithm}"));
        let days = LONG / DAY;
        let taken: u64 = (0..days).map(|d| window.take_up_to_at(d * DAY, NEVER)).sum();
        let want = match algorithm {
            // The previous window's count still weighs in full at the start of the next.
            "weighted-window" => days.div_ceil(2) * day,
            _ => days * day,
        };
        assert_eq!(taken, want, "{algorithm}");
    }
}

/// The same requests after the same times, from the clock's zero, after 100 days, after a year, and
/// on Unix time: the same decisions.
#[test]
fn invariant_2_the_start_of_the_clock_does_not_matter() {
    let texts = [
        "3/s",
        "7/s burst 4",
        "44100/s burst 9",
        "999983/s burst 9 init 0",
        "10000000/s",
        "100000000/s burst 50",
        "700000000/s burst 50",
        "1000000000/s burst 3",
        "10000000000/s burst 30",
        "5/s borrow init 3",
        "7/s algo pacer slack 3",
        "10/s burst 3 algo warm-up warm 2s",
        "5/s algo interval",
        "5/s burst 3 algo interval anchor first",
        "200/s algo interval anchor first",
        "5/s algo fixed-window",
        "5/s algo fixed-window anchor first",
        "200/s algo fixed-window anchor first",
        "5/s algo weighted-window",
        "5/s algo sliding-window segments 4 mode interpolated",
        "5/s algo sliding-window anchor first segments 4 mode strict",
        "5/s algo sliding-log",
    ];
    for text in texts {
        let policy = policy(text);
        let mut rng = Rng(2);
        for _ in 0..300 {
            let starts = [0, 100 * DAY, YEAR, UNIX_NOW];
            let states = starts.map(|_| State::new(&policy).unwrap());
            let mut since = if rng.one_in(2) { 0 } else { rng.below(2 * SEC) };
            for _ in 0..40 {
                let cost = rng.within(0, policy.burst.min(4));
                let answers = [0, 1, 2, 3].map(|i| states[i].check_at(starts[i] + since, cost));
                assert!(
                    answers.iter().all(|answer| *answer == answers[0]),
                    "{text} after {since}: {answers:#?}"
                );
                since += match rng.below(4) {
                    0 => 0,
                    1 if answers[0].retry_after != NEVER => answers[0].retry_after,
                    2 => rng.below(3 * policy.period / policy.limit + 1),
                    _ => rng.below(policy.period),
                };
            }
        }
    }
}

/// The clock conversion is exact where it is documented to be, and cannot be elsewhere.
#[test]
fn invariant_2_the_grid_is_exact_where_it_says() {
    let step = |limit, period| {
        let policy = Policy::new(limit, period);
        tollbar::algorithm::gcra::Gcra::new(&policy).unwrap().grid().exact_step()
    };
    for period in [15, 121, 999_999_937, SEC + 7, DAY + 1] {
        for limit in [1, 2, 3, 4, 5, 6, 7] {
            assert_eq!(step(limit, period), 1, "{limit}/{period}ns");
        }
    }
    for limit in [9, 10, 11, 13] {
        assert_ne!(step(limit, 999_999_937), 1, "{limit}");
    }
}
