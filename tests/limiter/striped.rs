//! Limiters with credit, and real threads. Schedules of their steps are beside the code
//! (src/limiter/striped/tests.rs, models.rs).

use crate::common::*;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Barrier;
use std::thread;
use tollbar::clock::{Clock, Manual};
use tollbar::limiter::{Shared, State};
use tollbar::{Limiter, Verdict};

const THREADS: u64 = 16;
const TEXT: &str = "1000/s burst 1000";

fn striped(text: &str) -> Limiter {
    Limiter::with_credit(&policy(text)).unwrap()
}

/// The permits that a fresh limiter of the policy admits at one instant.
fn burst<C: Clock>(limiter: &Limiter<State, C>, text: &str) -> u64 {
    policy(text).burst - limiter.shared().credit()
}

/// The permits that the calling thread could take, one by one.
fn available<C: Clock>(limiter: &Limiter<State, C>, now: u64) -> u64 {
    limiter.shared().peek_at(now, 0).remaining
}

fn credit_each<C: Clock>(limiter: &Limiter<State, C>) -> u64 {
    match limiter.shared() {
        State::Striped(striped) => striped.credit_each(),
        _ => 0,
    }
}

/// Takes single permits at `now` until it is refused, `most` at most.
fn drain(limiter: &Limiter, now: u64, most: u64) -> u64 {
    let mut taken = 0;
    while taken < most && limiter.admit_at(now, 1) == Verdict::Allowed {
        taken += 1;
    }
    taken
}

fn together(f: impl Fn(u64) -> u64 + Sync) -> u64 {
    let start = Barrier::new(THREADS as usize);
    thread::scope(|scope| {
        let run = |n| {
            start.wait();
            f(n)
        };
        let threads: Vec<_> = (0..THREADS).map(|n| scope.spawn(move || run(n))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    })
}

/// Sixteen threads ask until they are refused: together they get the shared burst, to the permit.
#[test]
fn invariant_1_a_frozen_clock_admits_exactly_the_shared_burst() {
    for (text, rounds) in
        [("1000/s burst 1000000", 3), ("1000/s burst 1000", 100), ("1000/s burst 40", 100)]
    {
        for _ in 0..rounds {
            let limiter = striped(text);
            let at_once = available(&limiter, HOUR);
            assert_eq!(at_once, burst(&limiter, text));
            assert!(
                at_once + limiter.shared().credit() == policy(text).burst
                    && limiter.shared().credit() * 8 <= policy(text).burst
            );
            assert_eq!(together(|_| drain(&limiter, HOUR, u64::MAX)), at_once, "{text}");
            assert_eq!(drain(&limiter, HOUR, 1), 0, "{text}");
        }
    }
}

/// Threads that stop early leave their credit unused, and it is at most C.
#[test]
fn threads_that_end_leave_no_more_than_the_credit() {
    let mut least = u64::MAX;
    for most in [1, 2, 10, 100] {
        let limiter = striped(TEXT);
        let mut taken = together(|_| drain(&limiter, HOUR, most));
        taken += drain(&limiter, HOUR, u64::MAX);
        assert!(
            taken <= burst(&limiter, TEXT)
                && taken + limiter.shared().credit() >= burst(&limiter, TEXT),
            "{most}: {taken}"
        );
        least = least.min(taken);
    }
    // The case does happen.
    assert!(least < burst(&striped(TEXT), TEXT), "{least}");
}

/// Threads stay within the bound of the whole time while time goes on, each thread's clock is off
/// by up to 10 ms, and slices end.
#[test]
fn invariant_1_threads_stay_within_the_bound_while_time_goes_on() {
    const STEPS: u64 = 150_000;
    for (text, step) in [
        ("100000/s burst 1000", 100 * US),
        ("10000/s burst 20000", 500 * US),
        ("50/s burst 64", MS),
    ] {
        let (limiter, policy) = (striped(text), policy(text));
        let clock = AtomicU64::new(0);
        let taken = together(|thread| {
            let mut rng = Rng(thread);
            let mut taken = 0;
            loop {
                let at = clock.fetch_add(1, Ordering::Relaxed);
                if at >= STEPS {
                    return taken;
                }
                let now = HOUR + at * step - rng.below(10 * MS);
                for _ in 0..rng.below(30) {
                    taken += u64::from(limiter.admit_at(now, 1) == Verdict::Allowed);
                }
            }
        });
        let length = STEPS * step + 10 * MS;
        let rate =
            (u128::from(length) * u128::from(policy.limit) / u128::from(policy.period)) as u64;
        assert!(taken <= policy.burst + rate + 1, "{text}: {taken} > {rate}");
        // Credit that expires is less than a hundredth of the permits that the rate brings.
        let asked = STEPS * 29 / 2;
        assert!(taken >= asked.min(rate) / 100 * 95, "{text}: {taken} of {rate}, {asked} asked");
    }
}

/// A reset refills the shared burst, and threads keep their credit: each reset adds a burst at
/// most.
#[test]
fn resets_beside_threads_give_at_most_a_burst_each() {
    const RESETS: u64 = 200;
    const TEXT: &str = "1000/day burst 1000";
    let limiter = striped(TEXT);
    let over = AtomicBool::new(false);
    let taken = together(|n| {
        if n == 0 {
            for _ in 0..RESETS {
                limiter.reset();
                thread::yield_now();
            }
            over.store(true, Ordering::Release);
            return 0;
        }
        let mut taken = 0;
        while !over.load(Ordering::Acquire) {
            taken += drain(&limiter, HOUR, 50);
        }
        taken + drain(&limiter, HOUR, u64::MAX)
    });
    assert!(taken <= burst(&limiter, TEXT) * (RESETS + 1), "{taken}");
    assert!(taken >= burst(&limiter, TEXT), "{taken}");
    assert_eq!(drain(&limiter, HOUR, 1), 0);
}

/// A thread's credit belongs to one limiter. Each of thousands of limiters gives its whole burst,
/// also one that lies where another has been.
#[test]
fn limiters_come_and_go() {
    for _ in 0..5 {
        let mut many: Vec<Limiter> = (0..1_000).map(|_| striped(TEXT)).collect();
        for limiter in &many {
            assert_eq!(limiter.admit_at(HOUR, 1), Verdict::Allowed);
        }
        for limiter in &many {
            assert_eq!(available(limiter, HOUR), burst(limiter, TEXT) - 1);
        }
        many.retain(|limiter| limiter.shared().credit() == 0);
        assert!(many.is_empty());
    }
}

/// The clock is read only if the thread's credit does not pay for the request.
#[test]
fn credit_is_spent_without_the_clock() {
    let clock = Manual::new(HOUR);
    let limiter = Limiter::with(State::with_credit(&policy(TEXT)).unwrap(), &clock);
    assert_eq!(limiter.admit(1), Verdict::Allowed);
    // After this time the shared word admits nothing any more; credit is still spent.
    clock.set(u64::MAX);
    let mut without = 0;
    while limiter.admit(1) == Verdict::Allowed {
        without += 1;
    }
    assert_eq!(without, credit_each(&limiter));
    clock.set(HOUR);
    let decision = limiter.check(1);
    assert!(decision.is_allowed());
    assert_eq!(decision.remaining, burst(&limiter, TEXT) - 2 - without);
    assert_eq!(limiter.peek(0).remaining, decision.remaining);
    limiter.reset();
    assert!(limiter.peek(0).remaining >= burst(&limiter, TEXT));
    assert_eq!(limiter.snapshot().backward_steps, 0);
    assert_eq!(limiter.clock().now(), HOUR);
}
