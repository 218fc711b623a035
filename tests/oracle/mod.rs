//! The oracle: each algorithm a second time, written from its definition in exact rational
//! arithmetic, without regard to speed or size; and the comparison of the two on random traces.
#![allow(dead_code)] // each test program uses a part of it

pub mod bans;
pub mod buckets;
pub mod calendars;
pub mod curves;
pub mod pairs;
pub mod quotas;
pub mod reserves;
pub mod windows;

use super::common::*;
use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{Signed, ToPrimitive};
use tollbar::{Policy, Shared, State, Verdict, NEVER};

pub type Q = BigRational;

pub fn q(n: impl Into<BigInt>) -> Q {
    Q::from_integer(n.into())
}

/// Rounds up to a clock reading; times before the clock's zero become 0.
pub fn ceil(x: &Q) -> u64 {
    if x.is_negative() {
        return 0;
    }
    x.ceil().to_integer().to_u64().expect("a time in range")
}

/// Rounds down; 0 if negative.
pub fn floor(x: &Q) -> u64 {
    if x.is_negative() {
        return 0;
    }
    x.floor().to_integer().to_u64().expect("a number in range")
}

/// Which of two answers the oracle gives, where the clock's conversion is documented to be rounded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The exact answer.
    Exact,
    /// The answer with one unit less of debt: the most that a limiter may admit.
    Lenient,
}

/// An algorithm by its definition.
pub trait Model {
    /// Whether both sides are the same.
    fn exact(&self) -> bool {
        true
    }
    /// Forgets everything.
    fn reset(&mut self);
    /// Whether a cost of at least 1, which can pass at some time, passes now.
    fn fits(&self, now: u64, cost: u64, side: Side) -> bool;
    /// The largest cost that is not "never".
    fn most(&self) -> u64;
    /// Records a request and its verdict.
    fn settle(&mut self, now: u64, cost: u64, passed: bool);
    /// Permits left.
    fn remaining(&self, now: u64, side: Side) -> u64;
    /// The first time from `now` on at which `cost` fits.
    fn admits_at(&self, now: u64, cost: u64, side: Side) -> u64;

    fn verdict(&self, now: u64, cost: u64, side: Side) -> Verdict {
        match cost {
            0 => Verdict::Allowed,
            _ if cost > self.most() => Verdict::Never,
            _ if self.fits(now, cost, side) => Verdict::Allowed,
            _ => Verdict::Denied,
        }
    }
}

/// The nanoseconds of which a trace's clock readings are multiples.
#[derive(Clone, Copy)]
pub struct Step(pub u64);

/// Runs `traces` random traces of `text` through the limiter and the model, or as many as
/// `TOLLBAR_TRACES` says if that is less.
pub fn compare(text: &str, traces: u64, step: Step, make: impl Fn(&Policy) -> Box<dyn Model>) {
    let most = std::env::var("TOLLBAR_TRACES")
        .map_or(u64::MAX, |n| n.parse().expect("TOLLBAR_TRACES is a number"));
    let traces = traces.min(most);
    let policy = policy(text);
    let mut rng = Rng(text.bytes().fold(7, |seed, byte| seed * 31 % 1_000_003 + u64::from(byte)));
    let mut model = make(&policy);
    let lenient = if model.exact() { Side::Exact } else { Side::Lenient };
    for trace in 0..rounds(traces) {
        let state = State::new(&policy).unwrap_or_else(|why| panic!("{text}: {why}"));
        model.reset();
        let mut said = Vec::new();
        let mut shape = Shape::new(&policy, &mut rng);
        for _ in 0..shape.length {
            let now = shape.now / step.0 * step.0;
            let cost = shape.cost(&mut rng);
            let exact = model.verdict(now, cost, Side::Exact);
            let verdicts =
                [exact, if model.exact() { exact } else { model.verdict(now, cost, lenient) }];
            let peeked = state.peek_at(now, cost).verdict;
            let got = state.check_at(now, cost);
            if cost != 0 && got.verdict != Verdict::Never {
                model.settle(now, cost, got.is_allowed());
            }
            let range =
                |from: u64, to: &dyn Fn() -> u64| from..=if model.exact() { from } else { to() };
            let remaining =
                range(model.remaining(now, Side::Exact), &|| model.remaining(now, lenient));
            let wait = |side| match model.admits_at(now, cost, side) {
                NEVER => NEVER,
                at => at.saturating_sub(now),
            };
            let retry = match got.verdict {
                Verdict::Allowed => 0..=0,
                Verdict::Never => NEVER..=NEVER,
                Verdict::Denied => range(wait(lenient), &|| wait(Side::Exact)),
            };
            let right = verdicts.contains(&got.verdict)
                && peeked == got.verdict
                && remaining.contains(&got.remaining)
                && retry.contains(&got.retry_after);
            said.push((now, cost, got));
            assert!(
                right,
                "{text}, trace {trace}: {said:#?}\nbut the last should be {verdicts:?} (peeked {peeked:?}), \
                 remaining {remaining:?}, retry_after {retry:?}"
            );
            shape.advance(&mut rng, got.retry_after);
        }
    }
}
