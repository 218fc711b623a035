//! Criterion's trends: each algorithm, allowed and denied, at the caller's time and on the TSC clock.
//! The figures that are promised are ratios of one run: `benches/ratios`.

// For the group that criterion's macro makes.
#![allow(missing_docs)]

use criterion::{criterion_group, criterion_main, Criterion};
use std::cell::Cell;
use std::hint::black_box;
use tollbar::clock::Tsc;
use tollbar::{Limiter, Policy, Shared, State};

const OPEN: [(&str, &str); 8] = [
    ("gcra", "1000000000/s burst 1000000000000"),
    ("interval", "1000000000/s burst 1000000000000 algo interval"),
    ("fixed-window", "4000000000/s algo fixed-window"),
    ("weighted-window", "2000000/100ms algo weighted-window"),
    ("sliding-window", "100000000/s algo sliding-window"),
    ("sliding-log", "1000/us algo sliding-log"),
    ("pacer", "1000000000/s algo pacer slack 1000000000"),
    ("warm-up", "20000000/s algo warm-up warm 1us"),
];

/// Policies that admit one request a day.
fn shut(name: &str) -> String {
    let warm = if name == "warm-up" { " warm 1h" } else { "" };
    format!("1/day algo {name}{warm}")
}

fn state(text: &str) -> State {
    let policy: Policy = text.parse().unwrap_or_else(|wrong| panic!("{text}: {wrong}"));
    State::new(&policy).unwrap_or_else(|wrong| panic!("{text}: {wrong}"))
}

fn algorithms(c: &mut Criterion) {
    for (name, open) in OPEN {
        for (verdict, text) in [("allowed", open.to_owned()), ("denied", shut(name))] {
            let shared = state(&text);
            let now = Cell::new(1_000_000_000_000);
            shared.admit_at(now.get(), 1);
            c.bench_function(&format!("{name}/{verdict}/caller's time"), |b| {
                b.iter(|| {
                    now.set(now.get() + 100);
                    shared.admit_at(black_box(now.get()), 1)
                });
            });
            let limiter = Limiter::with(state(&text), Tsc);
            limiter.admit(1);
            c.bench_function(&format!("{name}/{verdict}/tsc"), |b| b.iter(|| limiter.admit(black_box(1))));
        }
    }
}

criterion_group!(trends, algorithms);
criterion_main!(trends);
