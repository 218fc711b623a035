//! Schedules of simulated threads in virtual time: the test chooses which thread asks, and when.

#[path = "../../../tests/common/bound.rs"]
mod bound;
#[allow(dead_code)] // these tests use a part of it
#[path = "../../../tests/common/random.rs"]
pub(in crate::limiter) mod random;

use super::counted::Counted;
use super::{StripePlan, Striped};
use crate::algorithm::gcra::Gcra;
use crate::decision::Verdict;
use crate::limiter::{Cell, Shared};
use crate::policy::Policy;
use crate::search::rounds;
use bound::{assert_near, excess};
use random::Rng;
use std::format;
use std::vec::Vec;

const SEC: u64 = 1_000_000_000;
const DAY: u64 = 86_400 * SEC;

fn policy(text: &str) -> Policy {
    text.parse().unwrap()
}

fn striped(policy: &Policy) -> Counted {
    Counted::new(Striped::new(policy).unwrap())
}

fn admit(limiter: &Counted, who: u64, now: u64, cost: u64) -> bool {
    limiter.admit_as(who, cost, || now) == Verdict::Allowed
}

/// The credit of all threads together.
fn outstanding(limiter: &Counted, threads: u64) -> u64 {
    (1..=threads).map(|who| limiter.stripes.credit(who)).sum()
}

/// `threads` threads that hoard, rest and burst at random, and one schedule that is meant to hurt:
/// all hoard, rest until the bucket is full, and spend everything at one instant.
fn adversary(limiter: &Counted, policy: &Policy, rng: &mut Rng) -> Vec<(u64, u64)> {
    let threads = rng.pick(&[1, 2, 3, 8, 40, 300]);
    let refill =
        (u128::from(policy.burst) * u128::from(policy.period) / u128::from(policy.limit)) as u64;
    let mut now = rng.below(40 * refill.max(SEC));
    let mut got = Vec::new();
    let take = |who: u64, now: u64, cost: u64, got: &mut Vec<(u64, u64)>| {
        let given = admit(limiter, who, now, cost);
        if given && cost != 0 {
            got.push((now, cost));
        }
        assert!(outstanding(limiter, threads) <= limiter.credit());
        given
    };
    for _ in 0..rng.below(5) + 2 {
        match rng.below(6) {
            // Each thread asks once, so that it has credit.
            0 => (1..=threads).for_each(|who| {
                take(who, now, 1, &mut got);
            }),
            // All threads ask until they are refused.
            1 => {
                for who in 1..=threads {
                    while take(who, now, rng.pick(&[1, 1, 1, 2, 5]), &mut got) {}
                }
            }
            // Some threads ask at random, and time goes on.
            2 => {
                for _ in 0..200 {
                    now += rng.below(2 + refill / 100);
                    take(1 + rng.below(threads), now, rng.below(4), &mut got);
                }
            }
            // Threads take all permits that are left, credit first, or book for this instant.
            3 => {
                for who in 1..=threads {
                    let most = rng.pick(&[1, 7, u64::MAX]);
                    got.push((now, limiter.take_up_to_as(who, now, most)));
                }
            }
            4 => {
                for who in 1..=threads {
                    let cost = 1 + rng.below(9);
                    if limiter.reserve_as(who, now, cost, now).is_some() {
                        got.push((now, cost));
                    }
                }
            }
            _ => {
                limiter.available_as(1, now);
            }
        }
        now += rng.pick(&[0, 1, refill / 3, refill, 2 * refill, 20 * refill, SEC, 3 * SEC]);
    }
    for who in 1..=threads {
        take(who, now, 1, &mut got);
    }
    now += 2 * refill;
    for who in 1..=threads {
        while take(who, now, 1, &mut got) {}
    }
    got
}

const EACH: [&str; 9] = [
    "1000/s burst 31",
    "1000/s burst 32",
    "1000/s burst 100",
    "1000/s burst 100 init 3",
    "1000000/s burst 1000",
    "3/s burst 333",
    "700000000/s burst 700",
    "5/day burst 2000",
    "10000000000/s burst 3000",
];

/// Invariant 1, in every interval. The search reaches the bound, so no lower one holds.
#[test]
fn invariant_1_no_interval_admits_more_than_the_burst_and_the_rate() {
    let mut nearest = 0;
    for text in EACH {
        let policy = policy(text);
        let mut worst = i128::MIN;
        for seed in 0..300 {
            let limiter = striped(&policy);
            let got = adversary(&limiter, &policy, &mut Rng(seed));
            let excess = excess(&policy, &got);
            assert!(excess <= 0, "{text}, seed {seed}: {excess} / period too many");
            worst = worst.max(excess);
        }
        // The search comes within C + 1 permits of the bound.
        let limiter = striped(&policy);
        assert!(
            -worst <= i128::from(limiter.credit() + 1) * i128::from(policy.period),
            "{text}: {worst}"
        );
        let missing = -worst * 100 / (i128::from(policy.burst) * i128::from(policy.period));
        nearest = nearest.max(100 - missing as u64);
    }
    assert_near("striped", nearest, 100);
}

/// All of the burst passes in one instant if every stripe and the bucket are full.
#[test]
fn the_bound_is_reached() {
    for text in ["1000/s burst 100", "1000000/s burst 1000", "1000000/s burst 100000"] {
        let policy = policy(text);
        let limiter = striped(&policy);
        let threads = 3_000;
        let refill = policy.burst * policy.period / policy.limit;
        for who in 1..=threads {
            admit(&limiter, who, 0, 1);
        }
        assert_eq!(outstanding(&limiter, threads), limiter.credit(), "{text}");
        let now = 2 * refill;
        let mut taken = 0;
        for who in 1..=threads {
            while limiter.stripes.spend_uncounted(who, 1) {
                taken += 1;
            }
        }
        assert_eq!(taken, limiter.credit(), "{text}");
        while admit(&limiter, 1, now, 1) {
            taken += 1;
        }
        assert_eq!(taken, policy.burst, "{text}");
    }
}

#[test]
fn credit_is_at_most_an_eighth_of_the_burst() {
    for burst in (1..5_000).chain([65_535, 524_288, 600_000, 1 << 40]) {
        let policy = Policy::new(1000, SEC).with_burst(burst);
        let limiter = striped(&policy);
        let (all, each) = (limiter.credit(), limiter.credit_each());
        assert_eq!(limiter.burst() + all, burst);
        assert!(all <= burst / 8 && all <= 65_536 && each <= 1024, "{burst}: {all}");
        assert_eq!(all == 0, burst < 32, "{burst}");
        // Nearly the most credit that is possible, so that a fault would show.
        assert!(burst < 32 || all * 2 >= (burst / 8).min(65_536), "{burst}: {all}");
    }
    assert_eq!(StripePlan::of(&Policy::new(1000, SEC).with_burst(1000)).stripes, 8);
}

/// At one instant all threads together get the shared bucket's burst, to the permit, less the
/// credit of threads that leave before they have spent it.
#[test]
fn a_frozen_clock_admits_the_burst_without_what_is_left_behind() {
    for text in EACH.into_iter().filter(|text| !text.contains("init")) {
        let policy = policy(text);
        for leavers in [0, 1, 5, 100] {
            let limiter = striped(&policy);
            let mut taken = 0;
            for who in 1..=leavers {
                taken += u64::from(admit(&limiter, who, DAY, 1));
            }
            let left = outstanding(&limiter, leavers);
            assert!(left <= limiter.credit());
            // Threads that did not leave take the rest.
            for who in (1..=16).map(|n| leavers + n) {
                while admit(&limiter, who, DAY, 1) {
                    taken += 1;
                }
            }
            assert_eq!(taken, limiter.burst() - left, "{text}");
        }
    }
}

/// If no credit is kept, every answer is the plain limiter's, all fields of it.
#[test]
fn without_credit_it_is_the_plain_limiter() {
    for (n, text) in
        ["10/s burst 31", "1000/s burst 7", "3/s burst 20 init 5", "999999937/s burst 30"]
            .iter()
            .enumerate()
    {
        let policy = policy(text);
        let (limiter, plain) = (striped(&policy), Cell::new(Gcra::new(&policy).unwrap()));
        assert_eq!((limiter.credit(), limiter.burst()), (0, policy.burst));
        let mut rng = Rng(n as u64);
        let mut now = rng.below(DAY);
        for _ in 0..20_000 {
            let gap = policy.period / policy.limit;
            now = match rng.below(20) {
                0 => now.saturating_sub(rng.below(5 * gap)),
                1 => now + rng.below(60 * gap + 2),
                _ => now + rng.below(gap + 2),
            };
            let cost = rng.pick(&[0, 1, 1, 1, 2, 31, 32]);
            let who = rng.below(5);
            if rng.below(2) == 0 {
                assert_eq!(limiter.check_as(who, now, cost), plain.check_at(now, cost), "{text}");
            } else {
                assert_eq!(
                    limiter.admit_as(who, cost, || now),
                    plain.admit_at(now, cost),
                    "{text}"
                );
            }
            assert_eq!(limiter.available_as(who, now), plain.peek_at(now, 0).remaining);
        }
        assert_eq!(limiter.watch().backward_steps(), plain.watch().backward_steps());
    }
}

/// No thread keeps credit of the last sixteen permits: each answer is that of a plain limiter of
/// `burst − C`.
#[test]
fn near_the_limit_it_is_the_plain_limiter_of_its_own_burst() {
    let policy = policy("1000/s burst 1000");
    let limiter = striped(&policy);
    let own = Policy { burst: limiter.burst(), init: limiter.burst(), ..policy };
    let plain = Cell::new(Gcra::new(&own).unwrap());
    let mut rng = Rng(1);
    let mut now = DAY;
    // One request takes all but fifteen, and keeps nothing.
    assert_eq!(limiter.check_as(1, now, own.burst - 15), plain.check_at(now, own.burst - 15));
    let (mut allowed, mut denied) = (0, 0);
    for _ in 0..100_000 {
        now += rng.below(900_000);
        let (who, cost) = (1 + rng.below(5), 1 + rng.below(3));
        if plain.peek_at(now, 1).remaining > 15 {
            let rest = plain.peek_at(now, 1).remaining - 10;
            assert_eq!(limiter.check_as(who, now, rest), plain.check_at(now, rest));
        }
        let decision = limiter.check_as(who, now, cost);
        assert_eq!(decision, plain.check_at(now, cost));
        if decision.is_allowed() {
            allowed += 1;
        } else {
            denied += 1;
        }
    }
    assert!(allowed > 10_000 && denied > 10_000, "{allowed} {denied}");
}

#[test]
fn credit_expires_with_its_slice() {
    let policy = policy("1000/s burst 1000");
    let limiter = striped(&policy);
    // The two threads need two different stripes, or the rest of this test says little.
    assert!(admit(&limiter, 1, 0, 1) && admit(&limiter, 2, 0, 1));
    let each = limiter.credit_each();
    assert_eq!((limiter.stripes.credit(1), limiter.stripes.credit(2)), (each, each));
    // 16 refills are 16 s; slices are powers of two.
    let slice = (16 * SEC).next_power_of_two();
    // Credit is valid until a thread takes credit in a later slice. A refusal or a peek takes none.
    assert!(admit(&limiter, 1, 5 * slice, 1));
    assert_eq!(limiter.stripes.credit(1), each - 1);
    assert!(
        !admit(&limiter, 3, 5 * slice, 1000)
            && limiter.available_as(3, 5 * slice) == limiter.burst()
    );
    assert_eq!(limiter.stripes.credit(1), each - 1);
    assert!(admit(&limiter, 3, 5 * slice, 1));
    assert_eq!(
        (limiter.stripes.credit(1), limiter.stripes.credit(2), limiter.stripes.credit(3)),
        (0, 0, each)
    );
    // Then the word decides.
    let before = limiter.available_as(9, 5 * slice);
    assert!(admit(&limiter, 1, 5 * slice, 1));
    assert_eq!(limiter.available_as(9, 5 * slice), before - 1 - each);
}

/// With more threads than stripes, some threads have no credit until the next slice, when all
/// compete again.
#[test]
fn stripes_are_for_any_number_of_threads() {
    let policy = policy("1000000/s burst 100000");
    let limiter = striped(&policy);
    for n in 0..20 {
        let now = n * 64 * SEC;
        let whos = n * 1_000 + 1..n * 1_000 + 1_000;
        for who in whos.clone() {
            assert!(admit(&limiter, who, now, 1));
        }
        let with = whos.filter(|&who| limiter.stripes.credit(who) != 0).count() as u64;
        assert!(with > limiter.stripes.places() / 2 && with <= limiter.stripes.places(), "{with}");
    }
}

/// A clock that goes back, in any thread, gains nothing.
#[test]
fn invariant_6_going_back_grants_nothing() {
    let policy = policy("1000/s burst 1000");
    for seed in 0..rounds(50) {
        let (mut rng, limiter) = (Rng(seed), striped(&policy));
        let (from, length) = (DAY, 100 * SEC);
        let mut taken = 0;
        for n in 0..150_000 {
            let now = (from + n * length / 150_000).saturating_sub(rng.pick(&[
                0,
                0,
                1,
                SEC,
                40 * SEC,
                DAY,
            ]));
            taken += u64::from(admit(&limiter, 1 + rng.below(20), now, 1));
        }
        assert!(taken <= policy.burst + 100 * 1_000, "{taken}");
    }
}

#[test]
fn costs_and_times_at_the_edge() {
    let policy = policy("1000/s burst 1000");
    let limiter = striped(&policy);
    let most = limiter.burst();
    assert_eq!(limiter.admit_as(1, most + 1, || DAY), Verdict::Never);
    assert_eq!(limiter.admit_as(1, u64::MAX, || DAY), Verdict::Never);
    assert_eq!(limiter.check_as(1, DAY, most + 1).retry_after, crate::NEVER);
    assert_eq!(limiter.admit_as(1, 0, || DAY), Verdict::Allowed);
    assert_eq!(limiter.available_as(1, DAY), most);
    assert_eq!(limiter.admit_as(1, 1, || u64::MAX), Verdict::Denied);
    assert_eq!(limiter.admit_as(1, most, || DAY), Verdict::Allowed);
    assert_eq!(limiter.admit_as(1, 0, || DAY), Verdict::Allowed);
    // One nanosecond before `retry_after` the request is refused, and then admitted.
    let decision = limiter.check_as(1, DAY, 20);
    assert_eq!(decision.verdict, Verdict::Denied);
    assert!(
        !admit(&limiter, 1, DAY + decision.retry_after - 1, 20)
            && admit(&limiter, 1, DAY + decision.retry_after, 20)
    );
    for text in ["10/s algo pacer", "10/s burst 7 borrow", "0/s", "10/s algo sliding-log"] {
        assert!(Striped::new(&text.parse().unwrap()).is_err(), "{text}");
    }
    assert!(format!("{:#?}", *limiter).contains("stripes"));
}

#[test]
fn a_reset_leaves_credit_within_the_bound() {
    let policy = policy("1000/day burst 1000");
    let limiter = striped(&policy);
    assert!(admit(&limiter, 1, DAY, 1));
    let credit = limiter.stripes.credit(1);
    limiter.reset();
    assert_eq!(limiter.available_as(1, DAY), limiter.burst() + credit);
    let mut taken = 0;
    while admit(&limiter, 1, DAY, 1) {
        taken += 1;
    }
    assert_eq!(taken, limiter.burst() + credit);
    assert!(taken <= policy.burst);
}

/// Each call is counted once: paid with credit, decided by the word, or paid by a stripe's second
/// owner.
#[test]
fn each_decision_is_counted_once() {
    for policy in [policy("1000/s burst 1000"), policy("5/s burst 5")] {
        let (mut rng, limiter) = (Rng(7), striped(&policy));
        let mut expected = crate::decision::Counts::default();
        for n in 0..100_000u64 {
            let (who, now, cost) =
                (rng.below(20), n * SEC / 3_000, rng.pick(&[1, 1, 1, 1, 1, 1, 2, 0, 5_000]));
            let verdict = match rng.below(8) {
                0 => limiter.check_as(who, now, cost).verdict,
                _ => limiter.admit_as(who, cost, || now),
            };
            match verdict {
                Verdict::Allowed => expected.allowed += 1,
                Verdict::Denied => expected.denied += 1,
                Verdict::Never => expected.never += 1,
            }
            if n == 50_000 {
                limiter.reset();
            }
        }
        assert_eq!(limiter.counts(), expected);
        assert!(
            expected.allowed > 100 && expected.denied > 100 && expected.never > 100,
            "{expected:?}"
        );
        assert!(limiter.credit() == 0 || limiter.stripes.paid() > 100);
    }
}

/// Calls that take no new credit spend the thread's credit first, and give each permit once.
#[test]
fn credit_is_spent_by_every_call() {
    let policy = policy("1000/s burst 1000");
    let limiter = striped(&policy);
    let (burst, each) = (limiter.burst(), limiter.credit_each());
    assert!(admit(&limiter, 1, DAY, 1));
    assert_eq!(limiter.stripes.credit(1), each);
    // A peek counts the thread's own credit and no other thread's.
    assert_eq!(limiter.peek_as(1, DAY, 1).remaining, burst - 1);
    assert_eq!(limiter.peek_as(2, DAY, 1).remaining, burst - 1 - each);
    // Credit pays as far as it goes.
    assert_eq!(limiter.reserve_as(1, DAY, 2, DAY), Some(DAY));
    assert_eq!(limiter.take_up_to_as(1, DAY, 3), 3);
    assert_eq!(
        (limiter.stripes.credit(1), limiter.peek_as(2, DAY, 1).remaining),
        (each - 5, burst - 1 - each)
    );
    // The rest comes from the word: all of it, to the permit.
    assert_eq!(limiter.take_up_to_as(1, DAY, u64::MAX), burst - 6);
    assert_eq!(
        (limiter.stripes.credit(1), limiter.peek_as(1, DAY, 1).verdict),
        (0, Verdict::Denied)
    );
    // A booking is charged to the word.
    assert_eq!(limiter.reserve_as(1, DAY, 3, DAY + SEC), Some(DAY + SEC * 3 / 1000));
    assert_eq!(limiter.reserve_as(1, DAY, burst + 1, DAY + 100 * SEC), None);
    assert_eq!(limiter.check_as(1, DAY, 1).retry_after, SEC * 4 / 1000);
    // A peek allows what only credit can pay.
    let full = striped(&policy);
    assert!(admit(&full, 1, DAY, 1));
    assert_eq!(full.take_up_to_as(2, DAY, u64::MAX), burst - 1 - each);
    let peeked =
        [(1, each), (1, each + 1), (2, 1)].map(|(who, cost)| full.peek_as(who, DAY, cost).verdict);
    assert_eq!(peeked, [Verdict::Allowed, Verdict::Denied, Verdict::Denied]);
    assert_eq!(full.check_as(1, DAY, each).verdict, Verdict::Allowed);
}
