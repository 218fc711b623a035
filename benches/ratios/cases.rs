//! The cases in Rust, and the floors beside which they are measured.

use crate::{Case, Goal, Most};
use std::cell::Cell as Local;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use tollbar::algorithm::gcra::Gcra;
use tollbar::clock::{Clock, Tsc};
use tollbar::limiter::{Cell, Log, Ring};
use tollbar::{Limiter, Policy, Shared, State};

/// A policy so fast, and with so large a burst, that a loop is never refused.
pub const OPEN: &str = "1000000000/s burst 1000000000000";
/// A policy that refuses all requests but the first.
pub const SHUT: &str = "1/day burst 1";

/// The caller's first time, in nanoseconds, and its step.
pub const START: u64 = 1_000_000_000_000;
pub const STEP: u64 = 100;

pub fn goals() -> Vec<Goal> {
    let goal = |what, of, to, most| Goal { what, of, to, most };
    vec![
        goal(
            "gcra allowed, caller's time : bare CAS loop",
            "gcra allowed",
            "floor: CAS loop",
            Most::Ratio(1.4),
        ),
        goal(
            "gcra denied, caller's time : relaxed load + compare",
            "gcra denied",
            "floor: load, compare",
            Most::Ratio(3.0),
        ),
        goal(
            "gcra allowed, TSC : TSC read + bare CAS",
            "gcra allowed, TSC",
            "floor: TSC, CAS",
            Most::Ratio(1.15),
        ),
        goal(
            "ring of 10 allowed : gcra allowed",
            "ring of 10 allowed",
            "gcra allowed",
            Most::Ratio(4.0),
        ),
        goal("C cell over Rust", "C cell allowed", "rule allowed", Most::Above(2.5)),
        goal("C cell over Rust, denied", "C cell denied", "rule denied", Most::Above(2.5)),
        goal("C limiter over Rust", "C limiter allowed", "state allowed", Most::Above(2.5)),
        goal(
            "C limiter over Rust, TSC",
            "C limiter allowed, TSC",
            "state allowed, TSC",
            Most::Above(2.5),
        ),
    ]
}

pub fn all() -> Vec<Case> {
    let mut cases = floors();
    let gcra = |text: &str| Cell::new(Gcra::new(&policy(text)).expect("compiles"));
    cases.push(at("gcra allowed", gcra(OPEN), true));
    cases.push(at("gcra denied", gcra(SHUT), false));
    let limiter = Limiter::with(gcra(OPEN), Tsc);
    cases.push(case("gcra allowed, TSC", move || {
        let _ = black_box(limiter.admit(black_box(1)));
    }));
    let limiter = Limiter::with(gcra(SHUT), Tsc);
    cases.push(case("gcra denied, TSC", move || {
        let _ = black_box(limiter.admit(black_box(1)));
    }));
    let full = gcra(OPEN);
    cases.push(timeline("gcra allowed, full decision", move |now| {
        let _ = black_box(black_box(&full).check_at(now, 1));
    }));
    let rule = |text: &str| Cell::new(tollbar::algorithm::Rule::new(&policy(text)).expect(text));
    cases.push(at("rule allowed", rule(OPEN), true));
    cases.push(at("rule denied", rule(SHUT), false));
    cases.push(at("state allowed", State::new(&policy(OPEN)).expect("compiles"), true));
    let limiter = Limiter::with(State::new(&policy(OPEN)).expect("compiles"), Tsc);
    cases.push(case("state allowed, TSC", move || {
        let _ = black_box(limiter.admit(black_box(1)));
    }));
    let others = [
        ("inexact gcra allowed", "999999937/s burst 1000000000000"),
        ("interval allowed", "1000000000/s burst 1000000000000 algo interval"),
        ("fixed-window allowed", "4000000000/s algo fixed-window"),
        ("weighted-window allowed", "2000000/100ms algo weighted-window"),
        ("pacer allowed", "1000000000/s algo pacer slack 1000000000"),
        ("warm-up denied", "1/day algo warm-up warm 1h"),
    ];
    for (name, text) in others {
        cases.push(at(name, rule(text), !name.ends_with("denied")));
    }
    let ring = |text: &str| Ring::new(&policy(text)).expect("compiles");
    cases.push(at("ring of 10 allowed", ring("100000000/s algo sliding-window segments 10"), true));
    cases.push(at("ring of 10 denied", ring("1/day algo sliding-window segments 10"), false));
    let log = |text: &str| Log::new(&policy(text)).expect("compiles");
    cases.push(at("log of 1000 allowed", log("1000/us algo sliding-log"), true));
    cases.push(at("log of 1000 denied", log("1/day algo sliding-log"), false));
    for (name, shared) in [("gcra allowed, 2 threads", OPEN), ("gcra denied, 2 threads", SHUT)] {
        let cell = gcra(shared);
        cases.push(two_threads(name, move |now| {
            let _ = black_box(cell.admit_at(now, 1));
        }));
    }
    let word = AtomicU64::new(0);
    cases.push(two_threads("floor: CAS loop, 2 threads", move |_| swap(&word)));
    cases
}

fn floors() -> Vec<Case> {
    let word = AtomicU64::new(0);
    let swapping = case("floor: CAS loop", move || swap(&word));
    let word = AtomicU64::new(START);
    let comparing = timeline("floor: load, compare", move |now| {
        black_box(black_box(&word).load(Ordering::Relaxed) > now);
    });
    let word = AtomicU64::new(0);
    let timed = case("floor: TSC, CAS", move || {
        let now = Tsc.now();
        let mut seen = word.load(Ordering::Relaxed);
        while let Err(other) =
            word.compare_exchange_weak(seen, black_box(now), Ordering::Relaxed, Ordering::Relaxed)
        {
            seen = other;
        }
    });
    let reading = case("floor: TSC", || {
        black_box(Tsc.now());
    });
    vec![swapping, comparing, timed, reading]
}

fn swap(word: &AtomicU64) {
    let mut seen = word.load(Ordering::Relaxed);
    while let Err(other) = word.compare_exchange_weak(
        seen,
        black_box(seen.wrapping_add(1)),
        Ordering::Relaxed,
        Ordering::Relaxed,
    ) {
        seen = other;
    }
}

/// A shared state at the caller's time. It asserts that requests are allowed, or denied, as the
/// case says.
fn at(name: &'static str, shared: impl Shared + 'static, allowed: bool) -> Case {
    if !allowed {
        let _ = shared.admit_at(START, 1);
    }
    let verdict = shared.admit_at(START + 1, 1);
    assert_eq!(verdict == tollbar::Verdict::Allowed, allowed, "{name}");
    timeline(name, move |now| {
        let _ = black_box(black_box(&shared).admit_at(now, 1));
    })
}

/// Operations at a caller's time that grows from round to round and is kept in a register.
pub fn timeline(name: &'static str, once: impl Fn(u64) + 'static) -> Case {
    let last = Local::new(START);
    let run = move |operations| {
        let mut now = last.get();
        for _ in 0..operations {
            now += STEP;
            once(now);
        }
        last.set(now);
    };
    Case { name, run: Box::new(run), rounds: Vec::new() }
}

pub fn case(name: &'static str, once: impl Fn() + 'static) -> Case {
    Case {
        name,
        run: Box::new(move |operations| (0..operations).for_each(|_| once())),
        rounds: Vec::new(),
    }
}

/// Each of two threads does all the operations. The figure is the time per operation of one thread.
fn two_threads(name: &'static str, once: impl Fn(u64) + Sync + 'static) -> Case {
    let run = move |operations: u64| {
        let work = || (0..operations).for_each(|i| once(START + i * STEP));
        std::thread::scope(|scope| {
            scope.spawn(work);
            work();
        });
    };
    Case { name, run: Box::new(run), rounds: Vec::new() }
}

fn policy(text: &str) -> Policy {
    text.parse().unwrap_or_else(|wrong| panic!("{text}: {wrong}"))
}
