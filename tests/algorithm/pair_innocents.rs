//! E7: what a list refuses though two exact buckets would admit it, and what it admits though they
//! would not.

use crate::common::*;
use crate::oracle::pairs::Two;
use crate::oracle::{Model, Side};
use tollbar::algorithm::pair::Pair;
use tollbar::algorithm::Algorithm;
use tollbar::{Policy, Shared, State, Verdict};

/// Lists whose words tell each start of the fast bucket.
const KNOWN: [&str; 12] = [
    "10/s; 1000/day",
    "1000/day; 10/s",
    "5/min; 100/h",
    "50/s; 3000/h",
    "100/min burst 20; 1000/h burst 500",
    "5/h burst 5; 6/day burst 6",
    "7/s; 100/min burst 10",
    "100/s; 1000/min",
    "10/s; 10/s burst 3",
    "10/s; 10/s",
    "3/7s burst 2; 7/333s",
    "13/17s burst 9; 129/1548s",
];
/// Lists whose words tell only that both buckets started in one step.
const KNOWN_TOGETHER: [&str; 7] = [
    "1000/s; 10000/min",
    "100/s; 10000/h",
    "200/s; 5000/min",
    "2/s burst 100; 5/min burst 3",
    "11/s burst 11; 10/s burst 11",
    "100/s burst 2000; 1000/min burst 2000",
    "5/min burst 8; 6/min burst 8",
];

fn lists() -> impl Iterator<Item = (&'static str, Policy, Pair)> {
    KNOWN.into_iter().chain(KNOWN_TOGETHER).map(|list| {
        let policy = policy(list);
        (list, policy, Pair::new(&policy).expect(list))
    })
}

/// An instant of the years after 1970, at any distance from the edges of steps.
fn instant(rng: &mut Rng) -> u64 {
    53_800_000_000_000_000 + rng.next() % 1_000_000_000_000_000
}

/// A fresh list gives its burst one by one, and in any other parts, at every instant. Each answer
/// counts what is left.
#[test]
fn e7_a_fresh_list_gives_its_burst_one_by_one() {
    let (mut refused, mut too_much, mut of) = (0, 0, 0);
    for (list, policy, _) in lists() {
        let burst = policy.burst.min(policy.second.expect("a list").burst);
        let mut rng = Rng(7 + list.len() as u64);
        for round in 0..rounds(2_000) {
            let (state, now) = (State::new(&policy).expect(list), instant(&mut rng));
            let mut left = burst;
            assert_eq!(state.peek_at(now, 1).remaining, burst, "{list} at {now}");
            while left != 0 {
                let cost = if round % 2 == 0 && burst <= 100 { 1 } else { 1 + rng.below(left) };
                let decision = state.check_at(now, cost);
                left -= cost;
                refused += u32::from(!decision.is_allowed());
                of += 1;
                assert_eq!(decision.remaining, left, "{list}: {cost} at {now}");
            }
            too_much += u32::from(state.check_at(now, 1).is_allowed());
        }
    }
    println!("lists, fresh: {refused} of {of} refused, {too_much} admitted above the burst");
    assert_eq!((refused, too_much), (0, 0));
}

/// A client that comes again and again: a burst in parts within one step, then a rest. The fast
/// bucket is full at each burst, and the slow one mostly owes. No permit that is there waits,
/// except the last permit of the burst in the lists that tell both starts only. The last permit of
/// the slow bucket, which has come back, may wait for the end of a step of the slow bucket.
#[test]
fn e7_an_idle_list_gives_its_burst_one_by_one() {
    let (mut back, mut last, mut too_much, mut of) = (0, 0, 0, 0);
    for (list, policy, pair) in lists() {
        let known = KNOWN.contains(&list);
        assert_eq!(pair.slow_steps() > 1, known, "{list}");
        let (nanos, per) = pair.step_length();
        let (fast, burst) =
            (fast_refill(&policy), policy.burst.min(policy.second.expect("a list").burst));
        let mut rng = Rng(70 + list.len() as u64);
        for _ in 0..rounds(300) {
            let (mut state, mut exact) = (0, Two::exact(&policy));
            let mut now = instant(&mut rng);
            for _ in 0..8 {
                let (mut left, mut at) = (burst, now);
                while left != 0 {
                    let cost = 1 + rng.below(left);
                    let done = pair.step(state, at, cost);
                    let (fits, passed) =
                        (exact.fits(at, cost, Side::Exact), done.verdict == Verdict::Allowed);
                    of += 1;
                    too_much += u32::from(passed && !fits);
                    if fits && !passed {
                        let waits = pair.admits_at(state, at, cost) - at;
                        let of_slow = exact.left(exact.slow(), at) == cost;
                        let most = if of_slow { pair.slow_steps().max(2) } else { 1 };
                        assert!(
                            waits <= most * (nanos / per + 1),
                            "{list}: {cost} at {at} waits {waits} ns"
                        );
                        assert!(
                            of_slow || (!known && cost == left),
                            "{list}: {cost} at {at} of {left}"
                        );
                        *(if of_slow { &mut back } else { &mut last }) += 1;
                    }
                    exact.settle(at, cost, passed);
                    state = done.next.unwrap_or(state);
                    left -= cost;
                    // In the same step or just after it.
                    at += rng.next() % (nanos / per + 1) * rng.below(2);
                }
                // The fast bucket is full again, with a step to spare.
                now = at
                    + (burst + rng.below(3)) * fast
                    + (2 + rng.below(9)) * (nanos / per + 1)
                    + rng.below(100);
            }
        }
    }
    println!(
        "lists, idle: of {of} requests {back} waited for a permit that had just come back, {last} for the last of a burst, and {too_much} were above a bound"
    );
    assert_eq!(too_much, 0);
    assert!(last > 0, "the lists that tell both starts only");
}

fn fast_refill(policy: &Policy) -> u64 {
    let second = policy.second.expect("a list");
    (policy.period / policy.limit).min(second.period / second.limit) + 1
}
