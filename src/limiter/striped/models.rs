//! Credit under every interleaving that loom finds within a bound of preemptions.
//!
//! `RUSTFLAGS="--cfg loom" cargo test --profile models --target-dir target/loom --lib striped::models`
//!
//! The limiter has 20 permits and a day to refill, so the permits charged are the permits taken. It
//! mostly has one stripe, so that all threads want the same one. What each model proves is in
//! docs/internals/verification.md.

use super::counted::Counted;
use super::stripe::Stripes;
use super::{StripePlan, Striped};
use crate::decision::Verdict;
use crate::limiter::Shared;
use crate::policy::Policy;
use loom::sync::Arc;
use loom::thread;
use std::println;
use std::vec::Vec;

const DAY: u64 = 86_400_000_000_000;
const BURST: u64 = 20;
/// The most credit.
const EACH: u64 = 2;
const SHIFT: u32 = 30;
/// Times in the first slice and in the second.
const EARLY: u64 = 5;
const LATE: u64 = (1 << SHIFT) + 5;

type Limiter = Arc<Counted>;

fn explore(name: &str, preemptions: usize, f: impl Fn() + Sync + Send + 'static) {
    println!("{name}: {} executions", crate::sync::explore(preemptions, f));
}

/// A limiter that has `left` of its 20 permits, and no credit.
fn limiter(stripes: u64, left: u64) -> Limiter {
    let policy = Policy::new(BURST, DAY).with_burst(BURST + stripes * EACH);
    let plan = StripePlan { stripes, each: EACH, shift: SHIFT };
    let limiter = Counted::new(Striped::with_plan(&policy, plan).unwrap());
    // Thread 0 keeps no credit. A cost of 0 is allowed too.
    assert_eq!(limiter.admit_as(0, BURST - left, || EARLY), Verdict::Allowed);
    Arc::new(limiter)
}

/// One thread's requests, one after the other: the thread's number and the time of each.
type Requests = &'static [(u64, u64)];

fn ask(limiter: &Counted, requests: Requests) -> u64 {
    let admitted =
        |&&(who, now): &&(u64, u64)| limiter.admit_as(who, 1, || now) == Verdict::Allowed;
    requests.iter().filter(admitted).count() as u64
}

/// All permits that these threads may still take at `now`.
fn drain(limiter: &Counted, whos: &[u64], now: u64) -> u64 {
    let mut taken = 0;
    for &who in whos {
        while limiter.admit_as(who, 1, || now) == Verdict::Allowed {
            taken += 1;
            assert!(taken <= 100);
        }
    }
    taken
}

/// Runs the threads, each once as the first that runs, and returns the permits that they took.
fn race(
    name: &str,
    preemptions: usize,
    stripes: u64,
    left: u64,
    threads: &'static [Requests],
    check: fn(&Limiter, u64),
) {
    for first in 0..threads.len() {
        explore(&std::format!("{name} ({first})"), preemptions, move || {
            let limiter = limiter(stripes, left);
            let others: Vec<_> = (0..threads.len())
                .filter(|&n| n != first)
                .map(|n| {
                    let limiter = limiter.clone();
                    thread::spawn(move || ask(&limiter, threads[n]))
                })
                .collect();
            let mut given = ask(&limiter, threads[first]);
            for other in others {
                given += other.join().unwrap();
            }
            // The first request counted is this function's own, which charged the permits that are
            // not left.
            let counts = limiter.counts();
            let asked = threads.iter().map(|requests| requests.len() as u64).sum::<u64>();
            assert_eq!(
                (counts.allowed, counts.denied, counts.never),
                (given + 1, asked - given, 0)
            );
            check(&limiter, given);
        });
    }
}

/// Two threads take permits in advance, and only the first may keep one as credit: together they
/// never get more than are left.
#[test]
fn the_last_permits_are_leased_once() {
    let threads: &[Requests] = &[&[(1, EARLY), (1, EARLY), (1, EARLY)], &[(2, EARLY), (2, EARLY)]];
    race("striped last permits", 2, 2, 18, threads, |limiter, given| {
        assert_eq!(given + drain(limiter, &[1, 2], EARLY), 18);
    });
    let threads: &[Requests] = &[&[(1, EARLY)], &[(2, EARLY)], &[(3, EARLY)]];
    race("striped last permits 3×1", 1, 2, 17, threads, |limiter, given| {
        assert_eq!(given + drain(limiter, &[1, 2, 3], EARLY), 17);
    });
}

/// Two threads want the one stripe in one slice: one gets it, and no other thread spends its
/// credit.
#[test]
fn a_stripe_is_taken_once() {
    let threads: &[Requests] = &[&[(1, EARLY), (1, EARLY)], &[(2, EARLY), (2, EARLY)]];
    race("striped stripe", 2, 1, BURST, threads, |limiter, given| {
        assert!(limiter.stripes.credit(1) + limiter.stripes.credit(2) <= EACH);
        assert_eq!(given + drain(limiter, &[1, 2], EARLY), BURST);
    });
}

/// One thread spends while its credit expires and another takes its stripe: void credit is lost,
/// and no permit is spent twice.
#[test]
fn credit_is_spent_or_expires() {
    let check = |limiter: &Limiter, given: u64| {
        let all = given + drain(limiter, &[1, 2, 3], LATE);
        // The limiter loses at most the credit of two threads in the older slice, and credit that a
        // late store has overwritten.
        assert!(all <= BURST && all + 3 * EACH >= BURST, "{all}");
    };
    let threads: &[Requests] = &[&[(1, EARLY), (1, EARLY)], &[(2, LATE), (2, LATE)]];
    race("striped expiry", crate::sync::deep(2), 1, BURST, threads, check);
}

/// Several turns, in each of which the thread spends a permit, or takes the stripe and puts a
/// permit in if it is empty. In the first slice it only takes the stripe, so that no permit
/// expires. Returns the permits spent, and the permits put in.
fn sit_and_spend(stripes: &Stripes, requests: Requests) -> (u64, u64) {
    let (mut spent, mut filled) = (0, 0);
    for &(who, now) in requests {
        if stripes.spend_first(who, 1) || stripes.spend_second(who, 1) {
            spent += 1;
        } else if let Some(held) = stripes.take(who, now) {
            let more = if now == EARLY { 0 } else { 1 - held.credit() };
            held.fill(held.credit() + more);
            filled += more;
        }
    }
    (spent, filled)
}

/// The stripes alone: a thread that has read an older slice beside one that takes the stripe and
/// spends in a later one.
#[test]
fn what_is_spent_was_filled() {
    const THREADS: [Requests; 2] =
        [&[(1, EARLY), (1, LATE), (1, LATE)], &[(2, LATE), (2, LATE), (2, LATE)]];
    for first in [0, 1] {
        explore(&std::format!("striped credit ({first})"), 3, move || {
            let stripes = Arc::new(Stripes::new(1, 1, SHIFT).unwrap());
            let other = stripes.clone();
            let thread = thread::spawn(move || sit_and_spend(&other, THREADS[1 - first]));
            let (mut spent, mut filled) = sit_and_spend(&stripes, THREADS[first]);
            let (theirs, more) = thread.join().unwrap();
            (spent, filled) = (spent + theirs, filled + more);
            assert!(stripes.credit(1) + stripes.credit(2) <= 1);
            for who in [1, 2] {
                while stripes.spend_first(who, 1) || stripes.spend_second(who, 1) {
                    spent += 1;
                }
            }
            assert!(spent <= filled, "{spent} of {filled}");
        });
    }
}

/// A reset returns all permits charged before it, once, and a concurrent request does not charge
/// them again: the threads take 20 to 22 permits in all.
#[test]
fn a_reset_forgives_the_past() {
    for first in [true, false] {
        explore(&std::format!("striped reset ({first})"), 9, move || {
            let limiter = limiter(1, 2);
            let other = limiter.clone();
            let given = if first {
                let thread = thread::spawn(move || other.reset());
                let given = ask(&limiter, &[(1, EARLY), (1, EARLY)]);
                thread.join().unwrap();
                given
            } else {
                let thread = thread::spawn(move || ask(&other, &[(1, EARLY), (1, EARLY)]));
                limiter.reset();
                thread.join().unwrap()
            };
            let all = given + drain(&limiter, &[1], EARLY);
            assert!((BURST..=BURST + 2).contains(&all), "{all}");
        });
    }
}
