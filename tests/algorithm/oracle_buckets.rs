//! Token bucket, lending bucket, pacer, interval refill and warm-up against exact rational
//! arithmetic, decision by decision, on 10⁵ random traces each.

use crate::common::policy;
use crate::oracle::bans::Ban;
use crate::oracle::buckets::{Bucket, Departures, Refill, Trapezoid};
use crate::oracle::windows::Counter;
use crate::oracle::{compare, q, Step, Q};
use tollbar::algorithm::gcra::Gcra;
use tollbar::algorithm::pacer::Pacer;
use tollbar::algorithm::warm_up::WarmUp;
use tollbar::units::Grid;
use tollbar::{Kind, Policy};

fn grid(policy: &Policy) -> Grid {
    match policy.kind {
        Kind::Gcra if !policy.borrow => *Gcra::new(policy).unwrap().grid(),
        Kind::WarmUp => *WarmUp::new(policy).unwrap().grid(),
        _ => *Pacer::new(policy).unwrap().grid(),
    }
}

/// One unit in nanoseconds.
fn unit(policy: &Policy) -> Q {
    Q::new(policy.period.into(), policy.limit.into()) / q(grid(policy).per_permit().get())
}

/// Policies whose clock is not rounded are compared exactly at any time. The others are compared
/// exactly at multiples of the grid's exact step, and elsewhere up to one unit.
fn compare_rates(
    traces: u64,
    texts: &[&str],
    make: impl Fn(&Policy, Q) -> Box<dyn crate::oracle::Model>,
) {
    let each = traces / texts.len() as u64 + 1;
    for text in texts {
        let step = grid(&policy(text)).exact_step();
        if step == 1 {
            compare(text, each, Step(1), |policy| make(policy, q(0)));
        } else {
            compare(text, each / 2, Step(step), |policy| make(policy, q(0)));
            compare(text, each / 2, Step(1), |policy| make(policy, unit(policy)));
        }
    }
}

#[test]
fn gcra() {
    let exact = [
        "10/s",
        "3/s burst 5",
        "7/s burst 1",
        "3/min",
        "1/5s burst 4",
        "5/7ns burst 9",
        "700000000/s burst 12",
    ];
    for text in exact {
        assert_eq!(grid(&policy(text)).exact_step(), 1, "{text}");
    }
    compare_rates(40_000, &exact, |policy, unit| Box::new(Bucket::new(policy, unit)));
}

#[test]
fn gcra_that_starts_short() {
    let texts = [
        "10/s burst 6 init 0",
        "3/s burst 5 init 2",
        "11/s burst 3 init 1",
        "1000000/s burst 4 init 3",
    ];
    compare_rates(30_000, &texts, |policy, unit| Box::new(Bucket::new(policy, unit)));
}

#[test]
fn gcra_at_rates_whose_clock_is_rounded() {
    let texts = [
        "11/s",
        "999983/s burst 6",
        "44100/s burst 7",
        "44100/s burst 7 init 0",
        "13/999999937ns burst 3",
    ];
    for text in texts {
        assert_ne!(grid(&policy(text)).exact_step(), 1, "{text}");
    }
    compare_rates(30_000, &texts, |policy, unit| Box::new(Bucket::new(policy, unit)));
}

/// Rates whose units are whole beside the mark, so that a ban ends to the nanosecond.
#[test]
fn gcra_that_bans() {
    for text in [
        "5/s burst 4 ban 2s",
        "3/min ban 1min after 3",
        "10/s burst 3 ban 150ms after 2",
        "1/5s burst 6 ban 1s after 3",
        "7/s burst 2 ban 1d",
    ] {
        compare(text, 6_000, Step(1), |policy| Box::new(Ban::new(policy)));
    }
}

#[test]
fn gcra_that_lends() {
    let texts = [
        "5/s borrow",
        "7/s burst 3 borrow init 3",
        "3/min burst 2 borrow init 1",
        "44100/s burst 4 borrow",
    ];
    compare_rates(40_000, &texts, |policy, unit| Box::new(Departures::new(policy, unit)));
}

#[test]
fn pacer() {
    let texts = [
        "100/s burst 4 algo pacer",
        "3/s algo pacer slack 2",
        "7/s burst 2 algo pacer slack 5",
        "1/5s algo pacer slack 10",
        "44100/s burst 3 algo pacer slack 3",
        "999983/s burst 2 algo pacer",
    ];
    compare_rates(100_000, &texts, |policy, unit| Box::new(Departures::new(policy, unit)));
}

#[test]
fn interval() {
    let texts = [
        "3/min algo interval",
        "2/s burst 5 algo interval",
        "5/7ns burst 3 algo interval",
        "1/s burst 9 algo interval",
    ];
    for text in texts {
        compare(text, 15_000, Step(1), |policy| Box::new(Refill::new(policy)));
    }
    for text in ["3/min algo interval anchor first", "9/s burst 7 algo interval anchor first"] {
        compare(text, 20_000, Step(1), |policy| Box::new(Counter::new(policy)));
    }
}

#[test]
fn warm_up() {
    let texts = [
        "100/s burst 20 algo warm-up warm 2s",
        "10/s burst 5 algo warm-up warm 500ms",
        "3/s burst 12 algo warm-up warm 4s cold 5",
        "1/5s burst 3 algo warm-up warm 10s cold 2",
        "2/s burst 4 algo warm-up warm 10s cold 1",
        "1000/s burst 40 algo warm-up warm 100ms cold 7",
        "44100/s burst 9 algo warm-up warm 1ms",
        // A nanosecond is several levels of the store.
        "2/601ns burst 4 algo warm-up warm 450ns",
    ];
    for text in texts {
        let unit = grid(&policy(text)).per_permit().get();
        compare(text, 100_000 / 8, Step(1), |policy| Box::new(Trapezoid::new(policy, unit)));
    }
}
