//! Criterion's trends: each algorithm, allowed and denied, at the caller's time and on the TSC
//! clock, by one thread and by two on one limiter. In Rust and, if TOLLBAR_LIBRARY names the C
//! library, through C. The promised figures are ratios of one run: `benches/ratios`.

// For the group that criterion's macro makes.
#![allow(missing_docs)]

#[path = "../../common/library.rs"]
mod library;

use criterion::{criterion_group, criterion_main, Criterion};
use library::{Library, LimiterCheck, LimiterCheckAt};
use std::ffi::c_void;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
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

/// Policies that admit one request per day.
fn shut(name: &str) -> String {
    let warm = if name == "warm-up" { " warm 1h" } else { "" };
    format!("1/day algo {name}{warm}")
}

fn state(text: &str) -> State {
    let policy: Policy = text.parse().unwrap_or_else(|wrong| panic!("{text}: {wrong}"));
    State::new(&policy).unwrap_or_else(|wrong| panic!("{text}: {wrong}"))
}

/// One call at a caller's time, which callers that read a clock ignore.
type Call = Box<dyn Fn(u64) + Sync>;

fn rust(text: &str) -> [(&'static str, Call); 2] {
    let shared = state(text);
    let limiter = Limiter::with(state(text), Tsc);
    let _ = limiter.admit(1);
    let _ = shared.admit_at(START, 1);
    [
        (
            "rust/caller's time",
            Box::new(move |now| _ = black_box(shared.admit_at(now, black_box(1)))),
        ),
        ("rust/tsc", Box::new(move |_| _ = black_box(limiter.admit(black_box(1))))),
    ]
}

/// A limiter of the C library, which any number of threads may call.
#[derive(Clone, Copy)]
struct Handle(*const c_void);
// SAFETY: tollbar.h [C5].
unsafe impl Send for Handle {}
// SAFETY: tollbar.h [C5].
unsafe impl Sync for Handle {}

impl Handle {
    fn get(&self) -> *const c_void {
        self.0
    }
}

fn c(library: &Library, text: &str) -> [(&'static str, Call); 2] {
    // SAFETY: the symbols have these signatures in tollbar.h.
    let (check_at, check) = unsafe {
        (
            std::mem::transmute::<*mut c_void, LimiterCheckAt>(
                library.symbol("tollbar_limiter_check_at"),
            ),
            std::mem::transmute::<*mut c_void, LimiterCheck>(
                library.symbol("tollbar_limiter_check"),
            ),
        )
    };
    let [timed, clocked] = [0, 1].map(|_| Handle(library.made("tollbar_limiter_from_text", text)));
    // SAFETY: live limiters, here and below.
    unsafe {
        check_at(timed.get(), 1, START, std::ptr::null_mut());
        check(clocked.get(), 1, std::ptr::null_mut());
    }
    let at = move |now| {
        // SAFETY: a live limiter.
        black_box(unsafe { check_at(timed.get(), black_box(1), now, std::ptr::null_mut()) });
    };
    let now = move |_| {
        // SAFETY: a live limiter.
        black_box(unsafe { check(clocked.get(), black_box(1), std::ptr::null_mut()) });
    };
    [("c/caller's time", Box::new(at)), ("c/tsc", Box::new(now))]
}

const START: u64 = 1_000_000_000_000;

/// Each of `threads` makes `operations` calls at growing times. Returns the time of the slowest.
fn run(call: &Call, threads: u64, operations: u64, from: &AtomicU64) -> Duration {
    let start = from.fetch_add(operations * 100, Ordering::Relaxed);
    let work = || (0..operations).for_each(|i| call(start + i * 100));
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(work);
        }
        work();
    });
    begun.elapsed()
}

fn algorithms(criterion: &mut Criterion) {
    let library = std::env::var_os("TOLLBAR_LIBRARY").map(|path| Library::open(&path));
    for (name, open) in OPEN {
        for (verdict, text) in [("allowed", open.to_owned()), ("denied", shut(name))] {
            let mut calls: Vec<_> = rust(&text).into_iter().collect();
            calls.extend(library.iter().flat_map(|library| c(library, &text)));
            for (face, call) in &calls {
                for threads in [1, 2] {
                    let from = AtomicU64::new(START + 100);
                    criterion.bench_function(&format!("{name}/{verdict}/{face}/{threads}"), |b| {
                        b.iter_custom(|operations| run(call, threads, operations, &from));
                    });
                }
            }
        }
    }
}

criterion_group! {
    name = trends;
    // Short measurements, because there are 128 rows.
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_secs(1))
        .sample_size(20);
    targets = algorithms
}
criterion_main!(trends);
