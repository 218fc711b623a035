//! Sixteen real threads on the shared states, for millions of steps. Loom proves the same
//! properties for two or three threads and a few steps.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Barrier;
use std::thread;
use tollbar::{Policy, Shared, State, Verdict};

const THREADS: u64 = 16;
const MS: u64 = 1_000_000;

fn state(policy: &str) -> State {
    State::new(&policy.parse::<Policy>().unwrap()).unwrap()
}

/// Runs `f(thread number)` on all threads at once and adds up what they return.
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

fn admit(state: &State, now: u64) -> u64 {
    u64::from(state.admit_at(now, 1) == Verdict::Allowed)
}

fn frozen(policy: &str, tries: u64, given: u64) {
    let state = state(policy);
    let now = 1_000_000 * MS;
    assert_eq!(together(|_| (0..tries).map(|_| admit(&state, now)).sum()), given, "{policy}");
    assert_eq!(state.take_up_to_at(now, u64::MAX), 0, "{policy}");
}

#[test]
fn a_frozen_clock_gives_exactly_the_burst() {
    frozen("1000/s burst 100000", 1_000_000, 100_000);
    for (policy, given) in [
        ("1000/s burst 5000 borrow", 1),
        ("5000/s algo interval", 5_000),
        ("5000/s algo fixed-window", 5_000),
        ("5000/s algo fixed-window anchor first", 5_000),
        ("5000/s algo fixed-window count rejected", 5_000),
        ("5000/s algo weighted-window", 5_000),
        ("5000/s algo sliding-window", 5_000),
        ("5000/s algo sliding-window segments 4 mode strict anchor first", 5_000),
        ("5000/s algo sliding-window segments 4 mode interpolated", 5_000),
        ("5000/s algo sliding-log", 5_000),
        ("5/s algo sliding-log", 5),
        ("50/s algo sliding-log count rejected", 50),
        ("1000/s algo pacer slack 50", 1),
    ] {
        frozen(policy, 20_000, given);
    }
}

/// Sixteen clocks, each wrong by up to 10 ms of its own, over a second of time.
#[test]
fn stale_clocks_gain_nothing() {
    const FROM: u64 = 10_000 * MS;
    const LENGTH: u64 = 1_000 * MS;
    // The most permits over the whole time, counted from the stalest clock on: 1,010 ms.
    for (policy, most) in [
        ("10000/s burst 50", 50 + 10_100),
        ("100/10ms algo interval", 100 * 101 + 100),
        ("100/10ms algo fixed-window", 100 * 101),
        ("100/10ms algo sliding-window segments 10", 100 * 102),
        ("100/10ms algo sliding-window segments 10 mode strict", 100 * 101),
        ("10/100us algo sliding-window segments 2", 10 * 10_102),
        ("100/10ms algo sliding-log", 100 * 101),
        ("3/100us algo sliding-log", 3 * 10_101),
    ] {
        let state = state(policy);
        let clock = AtomicU64::new(FROM);
        let given = together(|thread| {
            let mut random = thread + 1;
            let mut given = 0;
            loop {
                let now = clock.fetch_add(LENGTH / 200_000, Ordering::Relaxed);
                if now >= FROM + LENGTH {
                    return given;
                }
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                given += admit(&state, now - random % (10 * MS));
            }
        });
        assert!(given <= most, "{policy}: {given} > {most}");
        // Without policies whose windows end while a clock is stale, and without a strict window,
        // which counts a segment too much.
        if !policy.contains("us ") && !policy.contains("strict") {
            assert!(given * 100 >= most * 95, "{policy}: only {given} of {most}");
        }
    }
}

/// All threads cross each edge together: each step gives as many permits as it gives to one thread
/// alone.
#[test]
fn edges_are_crossed_exactly() {
    const STEPS: u64 = 400;
    const EACH: u64 = 4;
    for (policy, step) in [
        ("20/ms algo fixed-window", MS),
        ("20/ms algo sliding-window segments 4", MS / 4),
        ("20/ms algo sliding-window segments 4", 7 * MS),
        ("20/ms algo sliding-window segments 4 mode strict", MS / 4),
        ("20/ms algo sliding-window segments 5 mode interpolated", MS / 3),
        ("20/ms algo sliding-window segments 2 anchor first", MS / 3),
        ("20/ms algo sliding-log", MS),
        ("20/ms algo sliding-log", MS / 5),
        ("3/ms algo sliding-log", MS),
    ] {
        let (shared, alone) = (state(policy), state(policy));
        let edge = Barrier::new(THREADS as usize);
        let counts: Vec<AtomicU64> = (0..STEPS).map(|_| AtomicU64::new(0)).collect();
        together(|_| {
            for (n, count) in counts.iter().enumerate() {
                let now = 5 * MS + n as u64 * step;
                let given: u64 = (0..EACH).map(|_| admit(&shared, now)).sum();
                count.fetch_add(given, Ordering::Relaxed);
                // No thread is still in this step when the next one begins.
                edge.wait();
            }
            0
        });
        for (n, count) in counts.iter().enumerate() {
            let now = 5 * MS + n as u64 * step;
            let given: u64 = (0..THREADS * EACH).map(|_| admit(&alone, now)).sum();
            assert_eq!(count.load(Ordering::Relaxed), given, "{policy}, step {n}");
        }
        let last = 5 * MS + (STEPS - 1) * step;
        for ahead in [0, step, 2 * step, 50 * MS] {
            let (a, b) = (shared.peek_at(last + ahead, 1), alone.peek_at(last + ahead, 1));
            assert_eq!(a.remaining, b.remaining, "{policy}, {ahead} later");
        }
    }
}

#[test]
fn an_instant_is_reserved_once() {
    const EACH: u64 = 5_000;
    for policy in ["1000/s burst 1", "1000/s algo pacer"] {
        let state = state(policy);
        let all = std::sync::Mutex::new(Vec::new());
        together(|_| {
            let mine: Vec<u64> =
                (0..EACH).map(|_| state.reserve_at(MS, 1, u64::MAX).unwrap()).collect();
            assert!(mine.windows(2).all(|pair| pair[0] < pair[1]));
            all.lock().unwrap().extend(mine);
            0
        });
        let all = all.into_inner().unwrap();
        let distinct: HashSet<u64> = all.iter().copied().collect();
        assert_eq!(distinct.len() as u64, THREADS * EACH);
        let (first, last) = (all.iter().min().unwrap(), all.iter().max().unwrap());
        assert_eq!(last - first, (THREADS * EACH - 1) * MS);
    }
}
