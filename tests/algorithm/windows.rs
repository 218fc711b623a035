//! Fixed windows, sliding logs, sliding windows and weighted windows on the golden traces.
//! Virtual time throughout.

use crate::common::*;
use tollbar::algorithm::weighted_window::WeightedWindow;
use tollbar::algorithm::Algorithm;
use tollbar::{Kind, Mode, Policy, PolicyError, Shared, State, Verdict};

#[test]
fn s01_fixed_window() {
    let all = admitted(&state("120/min algo fixed-window"), &t1());
    assert_eq!(all.len(), 240);
    assert_eq!(within(&all, 30 * SEC..90 * SEC), 200);

    let all = admitted(&state("120/min algo fixed-window"), &t1b());
    assert_eq!(all.len(), 236);
    assert_eq!(most_in_window(&all, MIN), 234);

    assert_eq!(admitted(&state("10/min algo fixed-window"), &t2()).len(), 20);
    assert_eq!(admitted(&state("10/min algo fixed-window anchor first"), &t2()).len(), 10);
}

#[test]
fn s01_fixed_window_admits_twice_the_limit_around_an_edge() {
    let window = state("100/s algo fixed-window");
    let times: Vec<u64> = evenly(150, SEC - MS, SEC).chain(evenly(150, SEC, SEC + MS)).collect();
    assert_eq!(admitted(&window, &times).len(), 200);
}

#[test]
fn s01_fixed_window_counts_rejected_requests_if_the_policy_says_so() {
    // A refused request for 3 leaves 2 permits; when it counts, it leaves none.
    for (text, left) in
        [("10/s algo fixed-window", 2), ("10/s algo fixed-window count rejected", 0)]
    {
        let window = state(text);
        assert_eq!(window.admit_at(0, 8), Verdict::Allowed);
        assert_eq!(window.admit_at(1, 3), Verdict::Denied);
        assert_eq!(window.peek_at(2, 1).remaining, left, "{text}");
        assert_eq!(window.check_at(SEC, 10).verdict, Verdict::Allowed, "{text}");
    }
}

#[test]
fn s02_sliding_log() {
    let times = [HOUR + SEC, HOUR + 30 * SEC, HOUR + 50 * SEC, HOUR + 100 * SEC, HOUR + 105 * SEC];
    assert_eq!(answers(&state("2/min algo sliding-log"), &times), "TTFTT");
    assert_eq!(answers(&state("2/min algo sliding-log count rejected"), &times), "TTFTF");

    let all = admitted(&state("120/min algo sliding-log"), &t1());
    let per_half: Vec<usize> =
        (0..4).map(|i| within(&all, i * 30 * SEC..(i + 1) * 30 * SEC)).collect();
    assert_eq!(per_half, [20, 100, 20, 20]);
    assert_eq!(admitted(&state("120/min algo sliding-log count rejected"), &t1()).len(), 121);
}

#[test]
fn s02_sliding_log_counts_two_hits_at_one_instant() {
    let log = state("2/s algo sliding-log");
    assert_eq!(answers(&log, &[5 * US, 5 * US, 5 * US]), "TTF");
    // The window is (t − W, t]: a whole second later both have left.
    assert_eq!(
        answers(&log, &[SEC + 5 * US - 1, SEC + 5 * US, SEC + 5 * US, SEC + 5 * US]),
        "FTTF"
    );
}

#[test]
fn s02_sliding_log_refuses_to_be_too_large() {
    let policy = Policy::new((1 << 24) + 1, SEC).with_kind(Kind::SlidingLog);
    let why = State::new(&policy).expect_err("larger than the bound");
    assert_eq!(why, PolicyError::LogTooLarge);
    assert_eq!(
        why.to_string(),
        "a sliding log may have 16777216 entries at most, fewer in a table if its period is short"
    );
}

#[test]
fn s03_sliding_window() {
    let modes = ["n", "strict", "interpolated"];
    let rows = [
        (t1(), 3, [187, 147, 173]),
        (t1(), 6, [160, 153, 159]),
        (t1(), 60, [160, 159, 159]),
        (t1b(), 3, [122, 120, 121]),
    ];
    for (trace, segments, want) in rows {
        let got = modes.map(|mode| {
            let window =
                state(&format!("120/min algo sliding-window segments {segments} mode {mode}"));
            admitted(&window, &trace).len()
        });
        assert_eq!(got, want, "{segments} segments");
    }
}

#[test]
fn s03_sliding_window_lets_go_after_a_window() {
    let window = state("10/min algo sliding-window segments 60");
    let mut times: Vec<u64> = evenly(11, 5 * SEC, 6 * SEC).collect();
    times.push(65 * SEC);
    assert_eq!(answers(&window, &times), "TTTTTTTTTTFT");
}

#[test]
fn s03_sliding_window_strict_keeps_its_promise() {
    let mut nearest = 0;
    for segments in [1, 3, 6, 60] {
        let mut policy = Policy::new(120, MIN).with_kind(Kind::SlidingWindow);
        (policy.segments, policy.mode) = (segments, Mode::Strict);
        for trace in [t1(), t1b()] {
            let all = admitted(&State::new(&policy).unwrap(), &trace);
            assert!(most_in_window(&all, MIN) <= 120, "{segments} segments");
            nearest = nearest.max(most_in_window(&all, MIN) as u64);
        }
    }
    assert_near("strict", nearest, 120);
}

#[test]
fn s04_weighted_window() {
    assert_eq!(admitted(&state("120/min algo weighted-window"), &t1()).len(), 199);
    assert_eq!(admitted(&state("120/min algo weighted-window"), &t1b()).len(), 159);
}

#[test]
fn s04_weighted_window_estimates_without_rounding() {
    let window = WeightedWindow::new(&policy("100/min algo weighted-window")).unwrap();
    let mut word = 0;
    for (now, cost) in [(10 * SEC, 5), (MIN + SEC, 3)] {
        word = window.step(word, now, cost).next.unwrap();
    }
    // 5 · 42/60 + 3 = 13/2, as a numerator over the period.
    assert_eq!(window.estimate(word, MIN + 18 * SEC) * 2, 13 * u128::from(MIN));
}
