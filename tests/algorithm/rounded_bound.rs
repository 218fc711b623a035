//! E9: the bounds that the documents promise, at rates whose clock is rounded and after a step
//! back.

use crate::common::*;
use tollbar::algorithm::gcra::Gcra;
use tollbar::algorithm::Algorithm;
use tollbar::Shared;

/// The most by which an interval exceeds `burst + rate · t`, in permits times the period: a bucket
/// that is asked at every nanosecond, and each interval of the first ones.
fn excess(text: &str, from: u64) -> i128 {
    let (gcra, of) = (Gcra::new(&policy(text)).expect(text), policy(text));
    let (limit, period) = (i128::from(of.limit), i128::from(of.period));
    let (mut state, mut before, mut total) = (0, Vec::new(), 0_i128);
    let mut most = i128::MIN;
    for n in 0..400 {
        before.push((n, total));
        while let Some(next) = gcra.step(state, from + n, 1).next {
            (state, total) = (next, total + 1);
        }
        for (since, already) in &before {
            let over =
                (total - already - i128::from(of.burst)) * period - limit * i128::from(n - since);
            most = most.max(over);
        }
    }
    most
}

#[test]
fn e9_a_rounded_clock_admits_less_than_a_permit_above_the_bound() {
    let mut rng = Rng(9);
    let mut worst = 0.0_f64;
    for text in [
        "2030631473/s burst 3",
        "1999999973/s burst 2",
        "1500000001/s burst 2",
        "1500007/s burst 2",
        "44100/s burst 2",
    ] {
        for _ in 0..rounds(60).max(15) {
            let over = excess(text, rng.below(1 << 59));
            let permits = over as f64 / policy(text).period as f64;
            assert!(permits < 1.0, "{text}: {permits}");
            worst = worst.max(permits);
        }
    }
    println!("gcra: at most {worst:.2} permits above burst + rate * t");
    assert!(worst > 0.9, "{worst}");
    // Rates whose units are whole are exact.
    for text in ["10/s burst 3", "700000000/s burst 3", "2000000000/s burst 2"] {
        assert!(excess(text, rng.below(1 << 59)) <= 0, "{text}");
    }
}

/// After a step back a strict window and a log count at their newest admission, and a bucket at the
/// time of the call.
#[test]
fn e9_after_a_step_back_windows_and_logs_count_at_their_newest_admission() {
    for (text, early) in [
        ("2/min algo sliding-log", true),
        ("2/min algo sliding-window segments 60 mode strict", true),
        ("2/min burst 2", false),
    ] {
        let limiter = state(text);
        assert!(limiter.check_at(6_000 * SEC, 2).is_allowed(), "{text}");
        assert!(limiter.check_at(6_062 * SEC, 1).is_allowed(), "{text}");
        // At 6,059 s three would be in the minute by the calls' times. By the newest admission, at
        // 6,062 s, two are.
        assert_eq!(limiter.check_at(6_059 * SEC, 1).is_allowed(), early, "{text}");
        assert!(!limiter.check_at(6_059 * SEC, 1).is_allowed(), "{text}");
    }
}
