//! Waiting for permits: a request that cannot pass in time is refused at once, and the number of
//! sleepers is bounded.

mod common;

use common::*;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell as ThreadCell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};
use tollbar::algorithm::gcra::Gcra;
use tollbar::clock::{Clock, Manual};
use tollbar::limiter::Cell;
use tollbar::{Limiter, Reason, Verdict};

/// Counts the allocations of each thread, so that a test can assert that a call allocates nothing.
struct Counting;

thread_local! {
    static ALLOCATED: ThreadCell<u64> = const { ThreadCell::new(0) };
}

// SAFETY: every call goes to the system's allocator unchanged; the counter allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATED.try_with(|n| n.set(n.get() + 1));
        // SAFETY: as our caller promises.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: as our caller promises; it came from `alloc` above.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn s17_a_wait_that_cannot_fit_is_refused_at_once() {
    let cell = Cell::new(Gcra::new(&policy("5/s burst 1")).unwrap());
    let limiter = Limiter::with(cell, Manual::new(SEC));
    assert!(limiter.check(1).is_allowed());
    let word = limiter.shared().word();

    // The shortest of many calls: the longer ones measure the machine's load.
    let mut least = Duration::MAX;
    for _ in 0..100 {
        let begun = Instant::now();
        let answer = limiter.wait_ns(1, 100 * MS);
        least = least.min(begun.elapsed());
        assert_eq!((answer.verdict, answer.retry_after), (Verdict::Denied, 200 * MS));
    }
    assert!(least < Duration::from_millis(1), "{least:?}");
    assert_eq!(limiter.clock().now(), SEC, "nobody slept");
    assert_eq!(limiter.shared().word(), word, "nothing was taken");
    assert_eq!(limiter.snapshot().waiting, 0);
}

#[test]
fn s17_a_wait_that_fits_sleeps_just_as_long_as_it_must() {
    // The last wait fits exactly; with a nanosecond less it does not.
    for (patience, passes) in [(200 * MS, true), (200 * MS - 1, false)] {
        for algorithm in ["gcra", "interval", "fixed-window", "sliding-log", "pacer"] {
            let limiter =
                Limiter::with(state(&format!("1/200ms algo {algorithm}")), Manual::new(SEC));
            assert!(limiter.wait_ns(1, 0).is_allowed());
            assert_eq!(limiter.wait_ns(1, patience).is_allowed(), passes, "{algorithm}");
            assert_eq!(
                limiter.clock().now(),
                if passes { SEC + 200 * MS } else { SEC },
                "{algorithm}"
            );
        }
    }
}

#[test]
fn s17_sleepers_wake_one_after_the_other() {
    let limiter = Limiter::with(state("10/s burst 1"), Manual::new(0));
    let woken: Vec<u64> = (0..5)
        .map(|_| {
            assert!(limiter.wait_ns(1, SEC).is_allowed());
            limiter.clock().now()
        })
        .collect();
    assert_eq!(woken, [0, 100 * MS, 200 * MS, 300 * MS, 400 * MS]);
}

/// A clock that stands still until the test opens the gate. Then each sleep moves it.
struct Gate {
    now: AtomicU64,
    open: Mutex<bool>,
    bell: Condvar,
    asleep: AtomicU64,
}

impl Clock for &Gate {
    fn now(&self) -> u64 {
        self.now.load(Relaxed)
    }
    fn sleep_until(&self, at: u64) {
        let mut open = self.open.lock().unwrap();
        self.asleep.fetch_add(1, Relaxed);
        while !*open {
            open = self.bell.wait(open).unwrap();
        }
        self.asleep.fetch_sub(1, Relaxed);
        self.now.fetch_max(at, Relaxed);
    }
}

/// 10⁵ callers with a cap of 100. A hundred of them are threads that sleep until the end of the
/// test. Eight more threads make the other 99,900 calls, which find all places of sleepers taken.
#[test]
fn s21_callers_cannot_pile_up() {
    const CAP: u32 = 100;
    const CALLERS: u64 = 100_000;
    const THREADS: u64 = 8;
    let gate = Gate {
        now: AtomicU64::new(SEC),
        open: Mutex::new(false),
        bell: Condvar::new(),
        asleep: AtomicU64::new(0),
    };
    let limiter = Limiter::with(state("1000/s burst 1"), &gate).with_waiters(CAP);
    assert!(limiter.check(1).is_allowed());

    let (passed, refused) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let limiter = &limiter;
        for _ in 0..CAP {
            scope.spawn(|| {
                assert!(limiter.wait_ns(1, HOUR).is_allowed());
                passed.fetch_add(1, Relaxed);
            });
        }
        while gate.asleep.load(Relaxed) < u64::from(CAP) {
            std::thread::yield_now();
        }
        assert_eq!(limiter.snapshot().waiting, CAP);

        let rest = CALLERS - u64::from(CAP);
        let crowd: Vec<_> = (0..THREADS)
            .map(|i| {
                let refused = &refused;
                scope.spawn(move || {
                    let calls = rest / THREADS + u64::from(i < rest % THREADS);
                    let before = ALLOCATED.with(ThreadCell::get);
                    let begun = Instant::now();
                    for _ in 0..calls {
                        // The request could pass in time, but there is no place in the queue. Only
                        // the first sleeper has a booking.
                        let answer = limiter.wait_ns(1, HOUR);
                        assert_eq!(
                            (answer.verdict, answer.reason),
                            (Verdict::Denied, Reason::QueueFull)
                        );
                        assert_eq!(answer.retry_after, 2 * MS);
                        refused.fetch_add(1, Relaxed);
                    }
                    let each = begun.elapsed() / calls as u32;
                    assert!(each < Duration::from_millis(1), "{each:?} a refusal");
                    assert_eq!(
                        ALLOCATED.with(ThreadCell::get),
                        before,
                        "a refusal allocates nothing"
                    );
                })
            })
            .collect();
        crowd.into_iter().for_each(|thread| thread.join().unwrap());

        *gate.open.lock().unwrap() = true;
        gate.bell.notify_all();
    });
    assert_eq!(
        (passed.into_inner(), refused.into_inner()),
        (u64::from(CAP), CALLERS - u64::from(CAP))
    );
    // One permit a millisecond, and not one earlier. A sleeper that wakes before the one at the
    // head moves the clock on to its own time, so some permits may come late. If each caller lost
    // one, the last would pass after 200 ms.
    let took = (gate.now.load(Relaxed) - SEC) / MS;
    assert!((u64::from(CAP)..150).contains(&took), "{took} ms");
    assert_eq!(limiter.snapshot().waiting, 0);
}

#[test]
fn s21_no_sleepers_at_all() {
    let limiter = Limiter::with(state("10/s burst 1"), Manual::new(0)).with_waiters(0);
    assert!(limiter.wait_ns(1, SEC).is_allowed());
    assert_eq!(limiter.wait_ns(1, SEC).verdict, Verdict::Denied);
    assert_eq!(limiter.clock().now(), 0);
}
