//! S54: a refill function of one's own becomes the knots of a curve.
//!
//! The oracle asks the function itself: `come` says how many permits a slice should have given at a
//! time, and the limiter's own count must be within a permille of the limit.

use crate::common::*;
use std::f64::consts::{E, PI};
use tollbar::policy::fit::{Fit, FitFault, TIMES};
use tollbar::policy::Knots;
use tollbar::{Policy, Shared, State, Verdict};

type Function = fn(f64) -> f64;

/// Smooth functions, and the most knots that they may need.
const SMOOTH: [(&str, Function, usize); 14] = [
    ("t", |t| t, 1),
    ("t²", |t| t * t, 25),
    ("t³", |t| t * t * t, 25),
    ("t¹⁰", |t| t.powi(10), 25),
    ("1 − (1 − t)²", |t| 1.0 - (1.0 - t) * (1.0 - t), 25),
    ("1 − (1 − t)⁸", |t| 1.0 - (1.0 - t).powi(8), 25),
    ("ln", |t| (t * (E - 1.0)).ln_1p(), 20),
    ("log2", |t| (1.0 + t).log2(), 20),
    ("exp", |t| (5.0 * t).exp_m1() / 5f64.exp_m1(), 25),
    ("smoothstep", |t| t * t * (3.0 - 2.0 * t), 35),
    ("half a cosine", |t| (1.0 - (PI * t).cos()) / 2.0, 35),
    ("logistic", |t| sigmoid(t, 20.0), 35),
    ("steep logistic", |t| sigmoid(t, 200.0), 40),
    ("three waves", |t| t + (6.0 * PI * t).sin() / (6.0 * PI), 40),
];

fn sigmoid(t: f64, steepness: f64) -> f64 {
    let s = |x: f64| 1.0 / (1.0 + (-steepness * (x - 0.5)).exp());
    (s(t) - s(0.0)) / (s(1.0) - s(0.0))
}

fn fit(function: impl Fn(f64) -> f64) -> Fit {
    let mut function = function;
    Knots::fit(&mut function).unwrap_or_else(|why| panic!("{why:?}"))
}

/// The largest difference between the permits of a slice and the function, as a share of the limit.
fn difference(knots: Knots, function: &dyn Fn(f64) -> f64) -> f64 {
    const LIMIT: u64 = 1_000_000;
    // A prime, so the times are none of those at which the function was read.
    const PERIOD: u64 = 1_000_000_007;
    let limiter = State::new(&Policy::new(LIMIT, PERIOD).with_curve(knots)).expect("a curve");
    let mut worst = 0.0f64;
    for offset in (0..PERIOD).step_by(9_973).chain([PERIOD - 1]) {
        let has = limiter.peek_at(3 * PERIOD + offset, 0).remaining as f64 / LIMIT as f64;
        worst = worst.max((has - function(offset as f64 / (PERIOD - 1) as f64)).abs());
    }
    worst
}

/// Takes each permit of three slices as soon as it comes, and counts them.
fn admitted(policy: &Policy) -> Vec<u64> {
    let limiter = State::new(policy).unwrap_or_else(|why| panic!("{policy}: {why}"));
    let mut now = 5 * policy.period;
    (6..9)
        .map(|end| {
            let mut taken = 0;
            loop {
                let wait = limiter.peek_at(now, 1).retry_after;
                if now + wait >= end * policy.period {
                    break;
                }
                now += wait;
                assert_eq!(limiter.admit_at(now, 1), Verdict::Allowed, "{policy} at {now}");
                taken += 1;
            }
            now = end * policy.period;
            taken
        })
        .collect()
}

#[test]
fn s54_a_smooth_function_is_followed_within_a_permille() {
    for (name, function, most) in SMOOTH {
        let fit = fit(function);
        let knots = fit.knots.pairs().count();
        assert!(knots <= most, "{name} has {knots} knots");
        let found = difference(fit.knots, &function);
        assert!(found < 0.001, "{name} is {found} off");
        // The reported error is the one that is there, but for a rounded permit and the slice's
        // last nanosecond.
        assert!(found <= fit.error + 2e-5, "{name} is {found} off, and {} was said", fit.error);
        let there = (fit.value - function(fit.time)).abs();
        assert!(there < 1e-6, "{name}: {} at {}", fit.value, fit.time);
    }
}

#[test]
fn s54_a_slice_admits_exactly_its_limit() {
    for (name, function, _) in SMOOTH {
        for (limit, period) in [(1, 1), (7, 3), (97, 1_000), (100, MIN), (1_000, 365 * DAY)] {
            let policy = Policy::new(limit, period).with_curve(fit(function).knots);
            assert_eq!(admitted(&policy), [limit; 3], "{name}: {policy}");
        }
    }
}

/// Arcs of t², one after the other, which need knots most.
#[test]
fn s54_arcs_are_within_half_a_permille_up_to_12_and_within_one_up_to_20() {
    for (pieces, most) in [(2, 0.00051), (6, 0.00051), (12, 0.00051), (16, 0.0007), (20, 0.001)] {
        let arcs = |t: f64| {
            let piece = (t * f64::from(pieces)).floor().min(f64::from(pieces - 1));
            let part = t * f64::from(pieces) - piece;
            (piece + part * part) / f64::from(pieces)
        };
        let fit = fit(arcs);
        let found = difference(fit.knots, &arcs);
        assert!(fit.error <= most && found <= most + 2e-5, "{pieces}: {found}, {}", fit.error);
    }
}

/// A random mixture of monotone functions: each is within the error that the fit says.
#[test]
fn s54_random_functions_are_followed_as_near_as_is_said() {
    let mut rng = Rng(54);
    let mut near = 0;
    for _ in 0..rounds(60) {
        let parts: Vec<(usize, f64)> = (0..rng.within(1, 4))
            .map(|_| (rng.below(SMOOTH.len() as u64) as usize, rng.within(1, 10) as f64))
            .collect();
        let sum: f64 = parts.iter().map(|(_, weight)| weight).sum();
        let function =
            |t: f64| parts.iter().map(|(n, weight)| SMOOTH[*n].1(t) * weight).sum::<f64>() / sum;
        let fit = fit(function);
        let found = difference(fit.knots, &function);
        assert!(found <= fit.error + 2e-5, "{parts:?} is {found} off, not {}", fit.error);
        near += u64::from(fit.error <= 0.0005);
        let policy = Policy::new(rng.within(1, 500), rng.within(1, HOUR)).with_curve(fit.knots);
        assert_eq!(admitted(&policy), [policy.limit; 3], "{policy}");
        assert_eq!(policy.to_string().parse(), Ok(policy));
    }
    assert!(near > rounds(60) * 9 / 10, "{near} are within half a permille");
}

/// A function that is a curve of knots becomes these knots.
#[test]
fn a_line_through_knots_is_itself() {
    for knots in [
        Knots::of(&[[100, 100]]),
        Knots::FRONT,
        Knots::STEP,
        Knots::of(&[[50, 80], [100, 100]]),
        Knots::of_hundredths(&[[1, 1], [3333, 1], [3333, 9000], [9999, 9001], [10_000, 10_000]]),
    ] {
        let share = |t: f64| {
            let mut from = [0.0, 0.0];
            for pair in knots.pairs().map(|pair| pair.map(|n| f64::from(n) / 10_000.0)) {
                // The line goes on from a knot at its time, so a jump is there at its time.
                if t < pair[0] {
                    return from[1] + (pair[1] - from[1]) * (t - from[0]) / (pair[0] - from[0]);
                }
                from = pair;
            }
            1.0
        };
        let fit = fit(share);
        assert_eq!((fit.knots, fit.error < 1e-7), (knots, true), "{fit:?}");
    }
}

/// More than a permille is left where the documentation says, and the fit names the place.
#[test]
fn s54_jumps_between_knots_and_steep_beginnings_are_reported() {
    // A third of a slice is not a whole hundredth of a percent. The curve jumps after it.
    let late = fit(|t| if t < 1.0 / 3.0 { 0.0 } else { 1.0 });
    assert!(late.error == 1.0 && (late.time - 0.33335).abs() < 1e-9, "{late:?}");
    assert_eq!(late.knots, Knots::of_hundredths(&[[3334, 0], [3334, 10_000]]));
    let root = fit(f64::sqrt);
    assert!(root.error > 0.001 && root.error < 0.003 && root.time < 0.0001, "{root:?}");
    // 64 jumps need more knots than there are.
    let stairs = fit(|t| (t * 64.0).floor() / 64.0);
    assert!(stairs.error > 0.005 && stairs.error < 0.03, "{stairs:?}");
    assert!(stairs.knots.pairs().count() <= Knots::MOST);
}

#[test]
fn s54_a_function_that_is_no_refill_is_refused_at_its_place() {
    let cases: [(Function, FitFault, f64, f64); 9] = [
        (|_| f64::NAN, FitFault::Range, 0.0, f64::NAN),
        (|t| if t < 0.5 { t } else { f64::INFINITY }, FitFault::Range, 0.5, f64::INFINITY),
        (|t| t * 2.0, FitFault::Range, 0.500025, 1.00005),
        (|t| t - 0.01, FitFault::Range, 0.0, -0.01),
        (|t| -1e-6 + t, FitFault::Range, 0.0, -1e-6),
        (|t| if t < 0.75 { t } else { 1.5 - t }, FitFault::Falls, 0.750025, 0.749975),
        (|t| if t < 1.0 { 1.0 } else { 0.0 }, FitFault::Falls, 1.0, 0.0),
        (|t| t / 2.0, FitFault::End, 1.0, 0.5),
        (|_| 0.0, FitFault::End, 1.0, 0.0),
    ];
    for (n, (function, fault, time, value)) in cases.into_iter().enumerate() {
        let mut calls = 0;
        let why = Knots::fit(&mut |t| {
            calls += 1;
            function(t)
        })
        .expect_err("no refill");
        assert_eq!(why.fault, fault, "{n}: {why:?}");
        assert!((why.time - time).abs() < 1e-9, "{n}: {why:?}");
        let same = why.value.is_nan() && value.is_nan() || why.value == value;
        assert!(same || (why.value - value).abs() < 1e-9, "{n}: {why:?}");
        // No call comes after the refused value.
        assert_eq!(calls, (why.time * (TIMES - 1) as f64).round() as usize + 1, "{n}");
    }
    // Rounding is no fault.
    let shaky = fit(|t| if t > 0.999 { 1.0 + 1e-9 * (t * 1e6).sin() } else { t });
    assert!(shaky.error < 0.0011, "{shaky:?}");
}
