//! The shared states and the clock under the thread sanitizer: see tests/tsan.sh.
//!
//! The standard library is not built with the sanitizer, so its own synchronisation would be
//! reported as races. So this file uses no test harness, leaks its states, and has its own barrier.

use std::cell::UnsafeCell;
use std::hint::black_box;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use tollbar::in_flight::{self, InFlight, SendWindow};
use tollbar::policy::Keep;
use tollbar::table::{Options, PolicyId, Table};
use tollbar::{Counts, Limiter, Policy, Shared, State, Verdict};

const THREADS: u32 = 3;
const ROUNDS: u64 = 20_000;

/// All threads start at once.
struct Gate(AtomicU32);

impl Gate {
    fn pass(&self) {
        self.0.fetch_add(1, Ordering::AcqRel);
        while self.0.load(Ordering::Acquire) < THREADS {
            std::hint::spin_loop();
        }
    }
}

fn leak<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

/// The sum of the results of `f(thread)`.
fn together(f: impl Fn(u32) -> u64 + Copy + Send + 'static) -> u64 {
    let gate = leak(Gate(AtomicU32::new(0)));
    let run = move |n| {
        gate.pass();
        f(n)
    };
    let threads: Vec<_> = (0..THREADS).map(|n| thread::spawn(move || run(n))).collect();
    threads.into_iter().map(|thread| thread.join().unwrap()).sum()
}

/// Each decision is counted once, by threads that own a line and by threads that share one.
fn counting() {
    let policy: Policy = "100/us burst 5".parse().unwrap();
    let limiter = leak(Limiter::new(&policy).unwrap());
    let with_credit =
        leak(Limiter::with_credit(&"1000000/s burst 10000".parse().unwrap()).unwrap());
    let table = leak(Table::private(&Options::new(1000), &[policy, policy]).unwrap());
    // New threads each time, which take over the lines of ended threads.
    for round in 1..=8 {
        let allowed = together(move |thread| {
            let mut allowed = 0;
            for n in 0..ROUNDS / 4 {
                // Later in each round, so that the bucket has filled again.
                let now = round * 1_000_000 + n * 50;
                allowed += u64::from(limiter.admit_at(now, 1) == Verdict::Allowed);
                let _ = with_credit.admit_at(now, 1);
                let key = (n % 10 + u64::from(thread)).to_le_bytes();
                let _ = table.admit_at(PolicyId::new(thread % 2), &key, now, 1);
                if n % 512 == 0 {
                    black_box((
                        limiter.counts(),
                        with_credit.counts(),
                        table.counts(PolicyId::FIRST).unwrap(),
                    ));
                }
            }
            allowed
        });
        assert!(allowed > 0);
        let asked = round * u64::from(THREADS) * (ROUNDS / 4);
        let sum = |counts: Counts| counts.allowed + counts.denied + counts.never;
        assert_eq!((sum(limiter.counts()), sum(with_credit.counts())), (asked, asked));
        let of = |policy| sum(table.counts(PolicyId::new(policy)).unwrap());
        // Threads 0 and 2 are under the first policy.
        assert_eq!((of(0), of(1)), (asked / 3 * 2, asked / 3));
    }
}

/// What a holder of the only permit writes, the next holder reads, though it is a plain word.
fn in_flight() {
    let table = leak(InFlight::shared(&in_flight::Options::new(100)).unwrap());
    let window = leak(SendWindow::new(1));
    let (by_table, by_window) = (leak(Word(UnsafeCell::new(0))), leak(Word(UnsafeCell::new(0))));
    let held = together(move |_| {
        let mut held = 0;
        for _ in 0..ROUNDS {
            if let Ok(_permit) = table.enter(b"k", 1) {
                // SAFETY: the permit is the only one.
                unsafe { *by_table.0.get() += 1 };
                held += 1;
            }
            if window.acquire(1).is_some() {
                // SAFETY: as above.
                unsafe { *by_window.0.get() += 1 };
                held += 1;
                assert!(window.release(1));
            }
        }
        held
    });
    // SAFETY: all threads have ended.
    assert_eq!(held, unsafe { *by_table.0.get() + *by_window.0.get() });
}

/// A word that only the holder of a permit uses.
struct Word(UnsafeCell<u64>);

// SAFETY: by what it is for.
unsafe impl Sync for Word {}

fn main() {
    for policy in [
        "100/us burst 5",
        "5/us algo fixed-window",
        "5/us algo sliding-window segments 2",
        "5/us algo sliding-window segments 4 mode interpolated anchor first",
        "5/us algo sliding-log",
        "2/us algo sliding-log count rejected",
    ] {
        let policy: Policy = policy.parse().unwrap();
        let state = leak(State::new(&policy).unwrap());
        let given = together(move |thread| {
            let mut given = 0;
            for round in 0..ROUNDS {
                // Time goes on, and each thread's clock is a little off.
                let now = 1_000_000 + round * 50 + u64::from(thread) * 20;
                given += u64::from(state.admit_at(now, 1) == Verdict::Allowed);
                given += match round % 64 {
                    0 => state.take_up_to_at(now, 2),
                    1 => u64::from(state.check_at(now, 2).is_allowed()),
                    2 => {
                        let _ = black_box(state.peek_at(now, 1));
                        0
                    }
                    3 => state.reserve_at(now, 1, now + 1_000).map_or(0, |_| 1),
                    _ => 0,
                };
            }
            if thread == 0 {
                state.reset();
            }
            given
        });
        assert!(given > 0);

        let limiter = leak(Limiter::new(&policy).unwrap().with_waiters(1));
        let others: [Policy; 3] =
            ["90/us burst 5", "7/us algo sliding-log", "6/us"].map(|text| text.parse().unwrap());
        let given = together(move |thread| {
            let mut given = 0;
            for round in 0..ROUNDS / 4 {
                if thread != 0 && round % 128 == 5 {
                    // To and fro, so that a state becomes the current one again while threads may
                    // be using it.
                    let to = &others[(round / 128) as usize % others.len()];
                    limiter.set_policy(to, Keep::Count).unwrap();
                }
                given += u64::from(limiter.check(1).is_allowed());
                given += u64::from(limiter.admit(1) == Verdict::Allowed);
                if round % 256 == 0 {
                    given += u64::from(limiter.wait_ns(1, 100_000).is_allowed());
                    black_box(limiter.snapshot());
                }
            }
            given
        });
        assert!(given > 0);
    }
    for policy in ["1000000/s burst 100", "100000000/s burst 100000"] {
        let policy: Policy = policy.parse().unwrap();
        let limiter = leak(Limiter::with_credit(&policy).unwrap());
        let given = together(move |thread| {
            let mut given = 0;
            for round in 0..ROUNDS {
                // Slices of a second end meanwhile, so that stripes change hands.
                let now = 1_000_000 + round * 1_000_000 + u64::from(thread) * 20;
                given += u64::from(limiter.admit_at(now, 1) == Verdict::Allowed);
                given += match round % 64 {
                    0 => u64::from(limiter.check_at(now, 2).is_allowed()),
                    1 => limiter.peek(0).remaining / u64::MAX,
                    2 => u64::from(limiter.admit(1) == Verdict::Allowed),
                    _ => 0,
                };
            }
            if thread == 0 {
                limiter.reset();
            }
            given
        });
        assert!(given > 0);
    }
    counting();
    in_flight();
    // `make test` counts this line.
    println!("1 passed, 0 failed");
}
