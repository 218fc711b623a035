//! Two token buckets in one word, "10/s; 1000/day", against two exact buckets in rational
//! arithmetic.

use crate::common::*;
use crate::oracle::pairs::Two;
use crate::oracle::{compare, floor, q, Model, Side, Step, Q};
use std::collections::BTreeMap;
use tollbar::algorithm::pair::Pair;
use tollbar::algorithm::{Algorithm, Rule};
use tollbar::policy::{text, Fault, PolicyError};
use tollbar::{Policy, Shared, State, Verdict, NEVER};

const LISTS: [&str; 14] = [
    "10/s; 1000/day",
    "1000/day; 10/s",
    "5/min; 100/h",
    "50/s burst 10; 3000/h",
    "3/s burst 5; 100/min",
    "7/s; 100/min burst 10",
    "30/s burst 1; 1000/h burst 2",
    "2/s burst 100; 5/min burst 3",
    "10/s; 10/s burst 3",
    "1/s; 1/365d",
    "3/7s burst 2; 7/333s",
    "13/17s burst 9; 129/1548s",
    "1000/s; 10000/min",
    "60/min burst 1; 1000/h",
];

fn lists() -> impl Iterator<Item = (&'static str, Policy, Pair)> {
    LISTS.into_iter().map(|list| {
        let policy = policy(list);
        (list, policy, Pair::new(&policy).expect(list))
    })
}

/// A trace on the scale of the faster of the two, with costs that both can admit.
fn shape(policy: &Policy, rng: &mut Rng) -> Shape {
    let second = policy.second.expect("a list");
    let (first, second) =
        (Policy::new(policy.limit, policy.period), Policy::new(second.limit, second.period));
    let fast =
        if first.period / first.limit <= second.period / second.limit { first } else { second };
    Shape::new(&fast.with_burst(policy.burst.min(policy.second.expect("a list").burst)), rng)
}

fn step(pair: &Pair) -> Q {
    let (nanos, per) = pair.step_length();
    Q::new(nanos.into(), per.into())
}

#[test]
fn each_decision_is_that_of_two_buckets_that_start_in_whole_steps() {
    for (list, _, pair) in lists() {
        compare(list, 1_000, Step(1), |policy| Box::new(Two::new(policy, &pair)));
    }
}

/// The pair refuses every request that two exact buckets refuse. The fast bucket is full less than
/// a step later than the exact one, and the slow bucket less than two steps or than the steps at
/// whose multiples it starts. At whole ones of these all decisions are exact.
#[test]
fn a_pair_admits_no_more_than_two_exact_buckets_and_lags_by_less_than_a_step() {
    for (list, policy, pair) in lists() {
        let mut rng = Rng(list.len() as u64);
        let (mut refused, mut early) = (0, 0);
        let (fast, slow) = (step(&pair), step(&pair) * q(pair.slow_steps()));
        for trace in 0..rounds(700) {
            let nanos = if slow.is_integer() && trace % 4 == 0 { floor(&slow) } else { 1 };
            let (mut exact, mut rounded) = (Two::exact(&policy), Two::new(&policy, &pair));
            let mut shape = shape(&policy, &mut rng);
            let (mut state, mut newest) = (0, BTreeMap::new());
            for _ in 0..shape.length * 2 {
                let (now, cost) = (shape.now / nanos * nanos, shape.cost(&mut rng).max(1));
                let done = pair.step(state, now, cost);
                let passed = done.verdict == Verdict::Allowed;
                // If the clock goes back to an earlier time of an admission's step, the word cannot
                // tell. Then the request counts at that admission's time.
                let newest: &mut u64 = newest.entry((q(now) / &fast).ceil()).or_default();
                let at = now.max(*newest);
                *newest = if passed { at } else { *newest };
                if cost <= exact.most() {
                    let fits = exact.fits(at, cost, Side::Exact);
                    assert!(fits || !passed, "{list}: {cost} at {now}");
                    assert!(nanos == 1 || fits == passed, "{list}: {cost} at {now}, a whole step");
                    refused += u32::from(!fits);
                    early += u32::from(fits && !passed);
                }
                exact.settle(at, cost, passed);
                rounded.settle(now, cost, passed);
                state = done.next.unwrap_or(state);
                for (n, (at, late)) in exact.full().iter().zip(rounded.full()).enumerate() {
                    let most = if n == rounded.slow() {
                        slow.clone().max(&fast * q(2))
                    } else {
                        fast.clone()
                    };
                    assert!(at <= late && late - at < most, "{list}: full at {at}, and {late}");
                }
                shape.advance(
                    &mut rng,
                    match pair.admits_at(state, now, cost) {
                        NEVER => 0,
                        at => at - now,
                    },
                );
            }
        }
        assert!(refused > 100, "{list}: {refused} refused");
        assert!(early > 0 || slow <= q(50), "{list}: never late");
    }
}

/// Each answer names the policy that bound.
#[test]
fn the_answer_says_which_of_the_two_bound() {
    for (list, policy, pair) in lists() {
        let mut rng = Rng(list.len() as u64 + 7);
        let mut seen = [[0; 2]; 3];
        for _ in 0..rounds(2_000) {
            let state = State::new(&policy).expect(list);
            let mut model = Two::new(&policy, &pair);
            let mut shape = shape(&policy, &mut rng);
            for _ in 0..shape.length {
                let (now, cost) = (shape.now, shape.cost(&mut rng).max(1));
                let decision = state.check_at(now, cost);
                model.settle(now, cost, decision.is_allowed());
                assert_eq!(
                    decision.bound,
                    model.bound(decision.verdict, now, cost),
                    "{list}: {cost} at {now}, {decision:?}"
                );
                seen[decision.verdict as usize][decision.bound as usize] += 1;
                shape.advance(&mut rng, decision.retry_after);
            }
        }
        assert!(seen[0] != [0, 0] && seen[1] != [0, 0] && seen[2] != [0, 0], "{list}: {seen:?}");
    }
}

/// A booking departs when both buckets have its permits, and then no interval has more than either
/// bucket's bound.
#[test]
fn bookings_keep_both_bounds() {
    for (list, policy, pair) in lists() {
        let mut rng = Rng(list.len() as u64 + 3);
        let mut booked = 0_u64;
        for _ in 0..rounds(1_000) {
            let mut shape = shape(&policy, &mut rng);
            let (mut state, mut exact) = (0, Two::exact(&policy));
            let mut departed = 0;
            for _ in 0..shape.length {
                let (now, cost) = (shape.now.max(departed), shape.cost(&mut rng).max(1));
                let next = if rng.one_in(2) {
                    pair.reserve(state, now, cost).map(|booked| (booked.next, booked.at))
                } else {
                    let booked = pair.step(state, now, cost);
                    booked.next.map(|next| (next, now))
                };
                if let Some((next, at)) = next {
                    assert!(exact.fits(at, cost, Side::Exact), "{list}: {cost} departs at {at}");
                    exact.settle(at, cost, true);
                    booked += u64::from(at > now);
                    // Every request between now and then departs later, so the trace stays in the
                    // order of departures.
                    departed = at;
                    assert!(pair.expires_at(next) >= pair.expires_at(state), "{list}");
                    state = next;
                }
                shape.advance(&mut rng, 0);
            }
        }
        assert!(booked > rounds(100), "{list}: {booked}");
    }
}

/// At the edges of the clock and of costs nothing wraps.
#[test]
fn the_edges_of_the_clock_and_of_costs() {
    for (list, policy, pair) in lists() {
        let most = policy.burst.min(policy.second.expect("a list").burst);
        let edges = (0..64).flat_map(|n| [(1_u64 << n) - 1, 1 << n, (1 << n) + 1]).chain([
            0,
            u64::MAX - 1,
            u64::MAX,
        ]);
        for now in edges.clone() {
            for cost in edges.clone() {
                let step = pair.step(0, now, cost);
                let want = match cost {
                    0 => Verdict::Allowed,
                    _ if cost > most => Verdict::Never,
                    _ if now > pair.last_time() => Verdict::Denied,
                    _ => Verdict::Allowed,
                };
                assert_eq!(step.verdict, want, "{list}: {cost} at {now}");
                let Some(next) = step.next else { continue };
                // Between two steps the TAT is up to a step late.
                let left = pair.available(next, now);
                assert!(left == most - cost || left + 1 == most - cost, "{list}: {cost} at {now}");
                assert!(pair.fresh_at(next, now) > now, "{list}: {cost} at {now}");
                let charged = pair.charge(next, now, u64::MAX);
                assert!(charged.next.is_some(), "{list}: {cost} at {now}");
                let debt = charged.next.unwrap_or(next);
                assert_eq!(
                    pair.step(debt, now, 1).verdict,
                    Verdict::Denied,
                    "{list}: {cost} at {now}"
                );
            }
        }
        // No word, not even a damaged one, makes a call fail or admits a cost above the burst.
        let mut rng = Rng(9);
        for _ in 0..rounds(20_000) {
            let (word, now, cost) = (
                rng.next() >> rng.below(64),
                rng.next() >> rng.below(64),
                rng.next() >> rng.below(64),
            );
            let step = pair.step(word, now, cost);
            assert!(
                step.verdict != Verdict::Allowed || cost <= most,
                "{list}: {cost} of {word:#x} at {now}"
            );
            let _ = (
                pair.describe(step.verdict, word, now, cost),
                pair.charge(word, now, cost),
                pair.expires_at(word),
            );
            let _ = (pair.reserve(word, now, cost), pair.owing(now), pair.available(word, now));
        }
    }
}

/// After a change of policy each bucket has as many permits left as before.
#[test]
fn a_change_keeps_what_each_bucket_has_left() {
    let rule = |text: &str| Rule::new(&policy(text)).expect(text);
    let (old, new) = (rule("10/s; 1000/day"), rule("20/s; 2000/day"));
    let mut state = 0;
    for n in 0..50 {
        state = old.step(state, DAY + n * SEC, 10).next.expect("room");
    }
    // 500 permits of the day are left, and half a permit has come back. The second's bucket is full
    // again.
    let now = DAY + 50 * SEC;
    assert_eq!(old.available(state, now), 10);
    let kept = new.convert(&old, state, now);
    assert_eq!(new.available(kept, now), 20);
    let mut state = kept;
    let taken = (0..200).filter(|n| {
        let step = new.step(state, now + n * SEC, 10);
        state = step.next.unwrap_or(state);
        step.verdict == Verdict::Allowed
    });
    // 500, and 4.6 permits that come back in 200 s.
    assert_eq!(taken.count(), 50);
    // In a copy each bucket lacks as many permits as before.
    let state = old.step(0, now, 10).next.expect("room");
    assert_eq!(new.available(new.carry(&old, state, now, DAY), DAY), 10);
    // With `Keep::Time` the day's bucket is full at the same time as before, and the second's is
    // full at once.
    let timed = new.adopt(&old, kept);
    assert!(new.expires_at(timed) >= old.expires_at(kept));
    assert_eq!(new.step(timed, now, 20).verdict, Verdict::Allowed);
    assert_eq!(new.convert(&old, old.step(0, DAY, 1).next.expect("room"), 3 * DAY), 0);
}

/// A list that changes to and fro admits no request that was refused, and a debt stays.
#[test]
fn changes_to_and_fro_give_nothing_out() {
    let rule = |text: &str| Rule::new(&policy(text)).expect(text);
    let (small, large) = (rule("5/s; 1000/day"), rule("10/s burst 50; 1000/day"));
    let (mut state, mut admitted) = (0, 0);
    for _ in 0..10 {
        for (rule, next) in [(&large, &small), (&small, &large)] {
            while let Some(next) = rule.step(state, DAY, 1).next {
                (state, admitted) = (next, admitted + 1);
            }
            state = next.convert(rule, state, DAY);
            assert_eq!(next.step(state, DAY, 1).verdict, Verdict::Denied);
        }
    }
    assert_eq!(admitted, 50);
    let owing = small.charge(0, DAY, 8).next.expect("a debt of 3");
    assert_eq!(large.admits_at(large.convert(&small, owing, DAY), DAY, 1), DAY + 4 * SEC / 10);
}

#[test]
fn texts_of_lists() {
    for (list, read, _) in lists() {
        assert_eq!(read.to_string(), list.replace("365d", "365day"));
        assert_eq!(policy(&read.to_string()), read);
    }
    let list = policy("1mb/s unit bytes ;10mb per 2 minutes burst 3mb unit bytes");
    assert_eq!(list.to_string(), "1000000/s unit bytes; 10000000/2min burst 3000000 unit bytes");
    assert_eq!(list, policy(&list.to_string()));
    let refused = |text: &str| {
        let why = text::parse(text.as_bytes()).expect_err(text);
        (why.fault, why.column)
    };
    let list = Fault::Policy(PolicyError::List);
    assert_eq!(refused("10/s; 1000/day burst 5 init 1"), (list, 7));
    assert_eq!(refused("10/s ban 1h; 1000/day"), (list, 14));
    assert_eq!(refused("10/s borrow; 1000/day"), (list, 14));
    assert_eq!(refused("10/s; 1000/day borrow"), (list, 7));
    assert_eq!(refused("10/s; 1000/day algo interval"), (list, 7));
    assert_eq!(refused("10/s algo interval; 1000/day algo interval"), (list, 21));
    assert_eq!(refused("0/s; 1000/day"), (list, 6));
    assert_eq!(refused("10/s; 0/day"), (list, 7));
    assert_eq!(refused("10/s; 1000/day unit bytes"), (list, 7));
    assert_eq!(refused("10/s; 1000/"), (Fault::Syntax, 12));
    assert_eq!(refused("10/s; 1000/day burst"), (Fault::Syntax, 21));
    assert_eq!(refused("10/s;"), (Fault::Syntax, 6));
    assert_eq!(refused("10/s; 1000/day; 5000/week"), (Fault::Syntax, 15));
    assert_eq!(refused("10/s; 1000/day burst 0"), (Fault::Policy(PolicyError::BurstZero), 16));
    // Steps that divide both times are too fine for the word.
    let text = b"100/s; 1000000/day";
    assert_eq!(
        text::parse_checked(text, &State::validate).map_err(|why| (why.fault, why.column)),
        Err((list, 8)),
    );
    assert_eq!(policy("10/s; 1000/day").last_time(), Ok(tollbar::units::LAST));
    let state = State::new(&policy("10/s; 1000/day")).expect("a pair");
    assert!((0..100).all(|n| state.check_at(DAY + n * SEC, 10).is_allowed()));
    let decision = state.check_at(DAY + 100 * SEC, 10);
    assert_eq!((decision.verdict, decision.bound), (Verdict::Denied, 1));
    assert!(decision.retry_after < DAY && decision.retry_after != NEVER);
}

/// The steps that docs/algorithms.md names.
#[test]
fn the_steps_of_the_documents() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/algorithms.md"))
        .expect("the page");
    for list in ["10/s; 1000/day", "5/min; 100/h", "50/s; 3000/h", "1000/s; 10000/min"] {
        let pair = Pair::new(&policy(list)).expect(list);
        let (nanos, per) = pair.step_length();
        let step = nanos as f64 / per as f64 / 1e6;
        let row = format!("| `{list}` | {step} ms | {} ms |", step * pair.slow_steps() as f64);
        assert!(page.contains(&row), "{row}");
    }
    assert!(page.contains("| `100/s; 1000000/day` | no room"));
    assert_eq!(Pair::new(&policy("100/s; 1000000/day")), Err(PolicyError::List));
}
