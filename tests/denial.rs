//! Invariant 4: a denial writes nothing, not even the same value, and it tries no compare-and-swap.
//! The states here lie in memory that is read-only during the calls. Any store or locked
//! instruction would end the program.
#![cfg(unix)]

mod common;

use common::*;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell as ThreadCell;
use std::ptr;
use tollbar::algorithm::Rule;
use tollbar::limiter::Cell;
use tollbar::{Kind, Limiter, Shared, Verdict};

/// Memory for this thread's allocations while its `ARENA` is set: whole pages that can be
/// protected.
struct Switch;

thread_local! {
    /// Next free byte and end of the arena; null when off.
    static ARENA: ThreadCell<(usize, usize)> = const { ThreadCell::new((0, 0)) };
}

// SAFETY: each call gets its own aligned bytes from the arena, or a block from the system's
// allocator.
unsafe impl GlobalAlloc for Switch {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let (next, end) = ARENA.try_with(ThreadCell::get).unwrap_or((0, 0));
        if next == 0 {
            // SAFETY: as our caller promises.
            return unsafe { System.alloc(layout) };
        }
        let from = next.next_multiple_of(layout.align());
        if from + layout.size() > end {
            return ptr::null_mut();
        }
        ARENA.with(|arena| arena.set((from + layout.size(), end)));
        from as *mut u8
    }
    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: states in an arena are never dropped, so this came from the system.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Switch = Switch;

const ARENA_BYTES: usize = 1 << 16;

/// A value of which every byte, its allocations included, can be made read-only.
struct Guarded<T: 'static> {
    value: &'static T,
    pages: *mut libc::c_void,
}

impl<T> Guarded<T> {
    fn new(make: impl FnOnce() -> T) -> Guarded<T> {
        let (access, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a fresh mapping, at an address of the system's choice.
        let pages = unsafe { libc::mmap(ptr::null_mut(), ARENA_BYTES, access, flags, -1, 0) };
        assert_ne!(pages, libc::MAP_FAILED);
        ARENA.with(|arena| arena.set((pages as usize, pages as usize + ARENA_BYTES)));
        let value: &'static T = Box::leak(Box::new(make()));
        ARENA.with(|arena| arena.set((0, 0)));
        Guarded { value, pages }
    }

    fn read_only<R>(&self, run: impl FnOnce(&T) -> R) -> R {
        self.protect(libc::PROT_READ);
        let result = run(self.value);
        self.protect(libc::PROT_READ | libc::PROT_WRITE);
        result
    }

    fn protect(&self, access: i32) {
        // SAFETY: the mapping is ours, and never unmapped.
        assert_eq!(unsafe { libc::mprotect(self.pages, ARENA_BYTES, access) }, 0);
    }
}

/// Every algorithm, but for policies that count rejected requests, which write on a denial.
const EACH: [&str; 18] = [
    "10/s burst 7",
    "10/s burst 7 init 2",
    "10/s burst 7 borrow",
    "11/s burst 7",
    "10/s burst 15 algo interval",
    "10/s burst 7 algo interval anchor first",
    "10/s algo fixed-window",
    "10/s algo fixed-window anchor first",
    "10/s algo weighted-window",
    "10/s algo sliding-window segments 5",
    "10/s algo sliding-window anchor first segments 4 mode strict",
    "10/s algo sliding-log",
    "10/s burst 4 algo pacer slack 6",
    "10/s burst 4 algo warm-up warm 2s",
    "10/forever",
    "10/s curve ln",
    "10/s burst 7 refill 0:50% 50%:100%",
    "10/day zone CET-1CEST,M3.5.0,M10.5.0/3",
];

#[test]
fn invariant_4_denial_writes_nothing() {
    let mut rng = Rng(4);
    for text in with_each(Kind::ALL, &EACH) {
        let text = text.as_str();
        let guarded = Guarded::new(|| state(text));
        let mut now = 1 + rng.below(DAY);
        let mut refused = 0;
        // A bucket that starts short notes its first request even if that is refused, and only it.
        let _ = guarded.value.admit_at(now, 1);
        for _ in 0..2_000 {
            now += rng.below(SEC / 8);
            let cost = rng.within(1, 4);
            // A request that a peek refuses is refused without a store. A cost that can never pass
            // and a cost of 0 store nothing either.
            let seen = guarded.read_only(|limiter| {
                let seen = limiter.peek_at(now, cost);
                if seen.verdict == Verdict::Denied {
                    refused += 1;
                    assert_eq!(limiter.admit_at(now, cost), Verdict::Denied, "{text}");
                    assert_eq!(limiter.check_at(now, cost), seen, "{text}");
                    assert_eq!(
                        limiter.reserve_at(now, cost, now.saturating_add(seen.retry_after) - 1),
                        None,
                        "{text}"
                    );
                }
                if seen.remaining == 0 {
                    assert_eq!(limiter.take_up_to_at(now, 5), 0, "{text}");
                }
                assert_eq!(limiter.admit_at(now, u64::MAX), Verdict::Never, "{text}");
                assert_eq!(limiter.admit_at(now, 0), Verdict::Allowed, "{text}");
                seen.verdict
            });
            if seen == Verdict::Allowed {
                assert_eq!(guarded.value.admit_at(now, cost), Verdict::Allowed, "{text}");
            }
        }
        assert!(refused > 200, "{text}: {refused}");
    }
}

/// A limiter with credit denies without a store to shared memory, on a thread that has spent its
/// credit and on a thread that never had any. Each thread counts the denial, on a line of its own.
#[test]
fn invariant_4_a_limiter_with_credit_stores_nothing_but_the_count_of_a_denial() {
    for text in ["1000/s burst 1000", "10/s burst 7", "1000/s burst 100 init 1"] {
        let limiter = Limiter::with_credit(&policy(text)).unwrap();
        // All fields but the last, the counts.
        let shared = || {
            format!("{limiter:#?}")
                .split_once(" tally:")
                .expect("counts are the last field")
                .0
                .to_string()
        };
        let mut allowed = 0;
        while limiter.admit_at(SEC, 1) == Verdict::Allowed {
            allowed += 1;
        }
        assert!(allowed > 0, "{text}");
        let (before, counted) = (shared(), limiter.counts());
        assert_eq!(limiter.admit_at(SEC, 1), Verdict::Denied, "{text}");
        assert_eq!(limiter.admit_at(SEC + 1, 1), Verdict::Denied, "{text}");
        let decision = limiter.check_at(SEC, 1);
        assert_eq!((decision.verdict, decision.remaining), (Verdict::Denied, 0), "{text}");
        assert_eq!(limiter.admit_at(SEC, u64::MAX), Verdict::Never, "{text}");
        assert_eq!(limiter.shared().peek_at(SEC, 0).remaining, 0, "{text}");
        std::thread::scope(|scope| {
            scope.spawn(|| assert_eq!(limiter.admit_at(SEC, 1), Verdict::Denied, "{text}"));
        });
        assert_eq!(shared(), before, "{text}");
        assert_eq!(
            (limiter.counts().denied, limiter.counts().never),
            (counted.denied + 4, counted.never + 1),
            "{text}"
        );
    }
}

/// A denial changes neither the word nor any field of the state's snapshot.
#[test]
fn invariant_4_denial_changes_nothing() {
    let mut rng = Rng(44);
    for text in with_each(Kind::ALL, &EACH) {
        let text = text.as_str();
        let limiter = state(text);
        let cell = Rule::new(&policy(text)).map(Cell::new);
        let mut now = 1 + rng.below(DAY);
        let _ = limiter.check_at(now, 1);
        if let Ok(cell) = &cell {
            let _ = cell.check_at(now, 1);
        }
        for _ in 0..2_000 {
            now += rng.below(SEC / 8);
            let cost = rng.within(1, 4);
            let before = format!("{limiter:#?}");
            if limiter.check_at(now, cost).verdict == Verdict::Denied {
                assert_eq!(format!("{limiter:#?}"), before, "{text}");
            }
            if let Ok(cell) = &cell {
                let word = cell.word();
                if cell.check_at(now, cost).verdict == Verdict::Denied {
                    assert_eq!(cell.word(), word, "{text}");
                }
            }
        }
    }
}
