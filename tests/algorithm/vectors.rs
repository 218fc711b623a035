//! The golden vectors: decisions of the oracle that every face of the library must repeat.
//!
//! `ffi-tests/vectors/decisions.json` is an array with an object a line: `policy` is the policy's
//! text, and `steps` are requests to one fresh limiter on the wall clock in their order,
//! `[now, cost, verdict, remaining, retry_after]`. Times are nanoseconds. `verdict` is the C face's
//! number: 0 allowed, 1 denied, 2 never. `retry_after` is 2^64 - 1 where no wait helps.
//! `VECTORS=write cargo test --test algorithm vectors` writes the file again.

use crate::common::{has_each, policy, Rng, Shape};
use crate::oracle::bans::Ban;
use crate::oracle::buckets::{Bucket, Departures, Refill, Trapezoid};
use crate::oracle::calendars::Windows;
use crate::oracle::curves::{Curve, Levels};
use crate::oracle::pairs::Two;
use crate::oracle::quotas::Quota;
use crate::oracle::windows::{Counter, Segments, Times, Weighted};
use crate::oracle::{compare, q, Model, Side};
use std::fmt::Write;
use tollbar::algorithm::pair::Pair;
use tollbar::algorithm::warm_up::WarmUp;
use tollbar::clock::{Source, Wall};
use tollbar::table::{Options, PolicyId, Table};
use tollbar::{Kind, Limiter, Policy, Shared, State, Verdict, NEVER};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/ffi-tests/vectors/decisions.json");

/// Policies that limiters and tables take and whose decisions have one right answer to the
/// nanosecond, two or more for each algorithm.
const POLICIES: [&str; 51] = [
    "10/s",
    "3/s burst 5",
    "7/s burst 1",
    "3/min",
    "1/5s burst 4",
    "5/7ns burst 9",
    "700000000/s burst 12",
    "10/s burst 6 init 0",
    "1000000/s burst 4 init 3",
    "5/s burst 4 ban 2s",
    "3/min ban 1min after 3",
    "5/s borrow",
    "7/s burst 3 borrow init 3",
    "10/s; 1000/day",
    "3/s burst 5; 100/min burst 20",
    "100/s burst 4 algo pacer",
    "1/5s algo pacer slack 10",
    "3/min algo interval",
    "2/s burst 5 algo interval",
    "3/min algo interval anchor first",
    "100/s burst 20 algo warm-up warm 2s",
    "1/5s burst 3 algo warm-up warm 10s cold 2",
    "10/s algo fixed-window",
    "3/min algo fixed-window count rejected",
    "3/min algo fixed-window anchor first",
    "10/s algo weighted-window",
    "7/333333333ns algo weighted-window",
    "6/s algo sliding-window segments 5 mode n",
    "10/min algo sliding-window segments 3 mode strict",
    "3/6us algo sliding-window segments 1 mode interpolated",
    "10/s algo sliding-log",
    "1/s algo sliding-log",
    "3/min algo sliding-log count rejected",
    "10/forever",
    "1/forever",
    "100/min curve linear",
    "100/min curve ln",
    "12/min curve step",
    "7/10s curve 0:0 50%:80% 100%:100%",
    "10/s burst 8 refill 0:50% 50%:100%",
    "3/min burst 9 refill 0:25% 33%:50% 66%:100%",
    "3/day algo calendar",
    "5/day zone STD-1DST,M3.5.0,M10.5.0/3",
    "10/month from 31",
    // Policies as people write them.
    "5/minute",
    "10 per hour",
    "10/2 minutes",
    "1/week",
    "5 per 1 hour burst 2",
    "4 per 30 seconds algo fixed-window",
    "7 per 1 month",
];

/// A request and the oracle's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    now: u64,
    cost: u64,
    verdict: Verdict,
    remaining: u64,
    retry_after: u64,
}

fn model(policy: &Policy) -> Box<dyn Model> {
    match policy.kind {
        Kind::Gcra if policy.borrow => Box::new(Departures::new(policy, q(0))),
        Kind::Gcra if policy.ban != 0 => Box::new(Ban::new(policy)),
        Kind::Gcra if policy.second.is_some() => {
            Box::new(Two::new(policy, &Pair::new(policy).expect("a policy of the list")))
        }
        Kind::Gcra => Box::new(Bucket::new(policy, q(0))),
        Kind::Pacer => Box::new(Departures::new(policy, q(0))),
        Kind::Interval if policy.anchor == tollbar::Anchor::First => Box::new(Counter::new(policy)),
        Kind::Interval => Box::new(Refill::new(policy)),
        Kind::WarmUp => {
            let grid = *WarmUp::new(policy).expect("a policy of the list").grid();
            Box::new(Trapezoid::new(policy, grid.per_permit().get()))
        }
        Kind::FixedWindow => Box::new(Counter::new(policy)),
        Kind::WeightedWindow => Box::new(Weighted::new(policy)),
        Kind::SlidingWindow => Box::new(Segments::new(policy)),
        Kind::SlidingLog => Box::new(Times::new(policy)),
        Kind::Quota => Box::new(Quota::new(policy)),
        Kind::Curve => Box::new(Curve::new(policy)),
        Kind::LevelRefill => Box::new(Levels::new(policy)),
        Kind::Calendar => Box::new(Windows::new(policy)),
    }
}

/// The wait from `now` to `at`.
fn wait(at: u64, now: u64) -> u64 {
    match at {
        NEVER => NEVER,
        at => at - now,
    }
}

/// 64 random requests: with costs near the permits left, at the edges of windows, and with clocks
/// that go back.
fn steps(text: &str) -> Vec<Step> {
    let policy = policy(text);
    let mut rng = Rng(text.bytes().fold(11, |seed, byte| seed * 31 % 1_000_003 + u64::from(byte)));
    let mut model = model(&policy);
    assert!(model.exact(), "{text}: the vectors need one right answer");
    model.reset();
    let mut steps = Vec::new();
    let mut shape = Shape::new(&policy, &mut rng);
    for _ in 0..64 {
        let (now, cost) = (shape.now, shape.cost(&mut rng));
        let verdict = model.verdict(now, cost, Side::Exact);
        if cost != 0 && verdict != Verdict::Never {
            model.settle(now, cost, verdict == Verdict::Allowed);
        }
        let retry_after = match verdict {
            Verdict::Allowed => 0,
            Verdict::Never => NEVER,
            Verdict::Denied => wait(model.admits_at(now, cost, Side::Exact), now),
        };
        steps.push(Step {
            now,
            cost,
            verdict,
            remaining: model.remaining(now, Side::Exact),
            retry_after,
        });
        shape.advance(&mut rng, retry_after);
    }
    steps
}

fn all() -> String {
    let mut text = String::from("[\n");
    for (n, policy) in POLICIES.iter().enumerate() {
        let steps: Vec<String> = steps(policy)
            .iter()
            .map(|s| {
                format!(
                    "[{},{},{},{},{}]",
                    s.now, s.cost, s.verdict as u32, s.remaining, s.retry_after
                )
            })
            .collect();
        let end = if n + 1 == POLICIES.len() { "" } else { "," };
        writeln!(text, "{{\"policy\": \"{policy}\", \"steps\": [{}]}}{end}", steps.join(","))
            .expect("a string grows");
    }
    text.push_str("]\n");
    text
}

#[test]
fn the_file_is_what_the_oracle_says() {
    if std::env::var("VECTORS").as_deref() == Ok("write") {
        std::fs::write(FILE, all()).expect("ffi-tests/vectors can be written");
    }
    let committed =
        std::fs::read_to_string(FILE).expect("ffi-tests/vectors/decisions.json is there");
    assert!(
        committed == all(),
        "the oracle says something else: VECTORS=write cargo test --test algorithm vectors"
    );
}

/// An algorithm with a model and policies has random traces, too. `oracle_buckets.rs`,
/// `oracle_windows.rs` and `curves.rs` have more of them, also at rates whose clock is rounded.
#[test]
fn each_algorithm_decides_on_random_traces_as_the_oracle() {
    for text in POLICIES {
        compare(text, 1_000, crate::oracle::Step(1), model);
    }
}

#[test]
fn the_vectors_have_every_verdict_of_every_policy() {
    has_each(Kind::ALL, &POLICIES);
    for text in POLICIES {
        let steps = steps(text);
        // A lending policy admits any cost and makes later requests wait, so it never says `Never`.
        let lends = model(&policy(text)).most() > 1_000_000;
        for verdict in [Verdict::Allowed, Verdict::Denied, Verdict::Never] {
            if verdict == Verdict::Never && lends {
                continue;
            }
            assert!(
                steps.iter().any(|step| step.verdict == verdict),
                "{text}: no step is {verdict:?}"
            );
        }
        assert!(
            steps.windows(2).any(|pair| pair[1].now < pair[0].now),
            "{text}: the clock never goes back"
        );
    }
}

#[test]
fn rust_repeats_them() {
    for text in POLICIES {
        let policy = policy(text);
        let limiter = Limiter::with(State::new(&policy).expect(text), Wall);
        let state = State::new(&policy).expect(text);
        let table =
            Table::private(&Options { clock: Source::Wall, ..Options::new(100) }, &[policy])
                .expect(text);
        for (n, step) in steps(text).into_iter().enumerate() {
            let answers = [
                ("limiter", limiter.check_at(step.now, step.cost)),
                ("state", state.check_at(step.now, step.cost)),
                ("table", table.check_at(PolicyId::FIRST, b"key", step.now, step.cost)),
            ];
            for (face, got) in answers {
                let got = Step {
                    verdict: got.verdict,
                    remaining: got.remaining,
                    retry_after: got.retry_after,
                    ..step
                };
                assert_eq!(got, step, "{text}: the {face} at step {n}");
            }
        }
    }
}
