//! One hot key: limiters with credit, refusals, and how both scale from one thread to two.

use crate::cases::{case, OPEN, SHUT};
use crate::library::{Library, LimiterCheck};
use crate::{Case, Goal, Most};
use std::cell::Cell as Local;
use std::ffi::OsStr;
use std::hint::black_box;
use tollbar::algorithm::gcra::Gcra;
use tollbar::clock::{Clock, Tsc};
use tollbar::limiter::Cell;
use tollbar::{Limiter, Policy, Verdict};

/// Each started thread runs this many times the counted operations, because its start costs as much
/// as thousands of requests.
const MANY: u64 = 50;

pub fn goals() -> Vec<Goal> {
    let goal = |what, of, to, most| Goal { what, of, to, most: Most::Ratio(most) };
    vec![
        goal(
            "credit allowed : thread-local increment",
            "credit allowed",
            "floor: thread-local increment",
            2.0,
        ),
        goal("gcra denied, TSC : TSC read", "gcra denied, TSC", "floor: TSC", 1.05),
        goal("credit denied, TSC : TSC read", "credit denied, TSC", "floor: TSC", 1.05),
        // These mean a throughput of 1.8 and 1.95 times one thread's.
        goal(
            "credit allowed, 2 threads : 1 (time a thread)",
            "credit allowed, 2",
            "credit allowed, 1",
            2.0 / 1.8,
        ),
        goal(
            "gcra denied, 2 threads : 1 (time a thread)",
            "gcra denied, 2",
            "gcra denied, 1",
            2.0 / 1.95,
        ),
        goal(
            "credit denied, 2 threads : 1 (time a thread)",
            "credit denied, 2",
            "credit denied, 1",
            2.0 / 1.95,
        ),
        goal("TSC read, 2 threads : 1 (time a thread)", "TSC read, 2", "TSC read, 1", 2.0 / 1.95),
        Goal {
            what: "C credit over Rust",
            of: "C credit allowed",
            to: "credit allowed",
            most: Most::Above(2.5),
        },
    ]
}

thread_local! {
    static COUNT: Local<u64> = const { Local::new(0) };
}

pub fn all() -> Vec<Case> {
    let policy = |text: &str| text.parse::<Policy>().expect("a policy");
    let with_credit = |text: &str| Limiter::with_credit(&policy(text)).expect("compiles");
    let spent = |text: &str| {
        let limiter = with_credit(text);
        while limiter.admit(1) == Verdict::Allowed {}
        limiter
    };
    let closed = || {
        let limiter = Limiter::with(Cell::new(Gcra::new(&policy(SHUT)).expect("compiles")), Tsc);
        let _ = limiter.admit(1);
        assert_eq!(limiter.admit(1), Verdict::Denied);
        limiter
    };
    const SPENT: &str = "1/day burst 1000";
    let mut cases = vec![case("floor: thread-local increment", || {
        COUNT.with(|count| {
            count.set(count.get() + 1);
            // The compiler must store each increment.
            black_box(count);
        });
    })];
    for (name, text) in
        [("credit allowed", OPEN), ("credit allowed, burst 1000", "1000000000/s burst 1000")]
    {
        let limiter = with_credit(text);
        cases.push(case(name, move || {
            let _ = black_box(black_box(&limiter).admit(black_box(1)));
        }));
    }
    let limiter = spent(SPENT);
    cases.push(case("credit denied, TSC", move || {
        let _ = black_box(black_box(&limiter).admit(black_box(1)));
    }));
    cases.extend(both(["credit allowed, 1", "credit allowed, 2"], || {
        let limiter = with_credit(OPEN);
        move || {
            let _ = black_box(black_box(&limiter).admit(black_box(1)));
        }
    }));
    cases.extend(both(["credit denied, 1", "credit denied, 2"], || {
        let limiter = spent(SPENT);
        move || {
            let _ = black_box(black_box(&limiter).admit(black_box(1)));
        }
    }));
    cases.extend(both(["gcra denied, 1", "gcra denied, 2"], || {
        let limiter = closed();
        move || {
            let _ = black_box(black_box(&limiter).admit(black_box(1)));
        }
    }));
    cases.extend(both(["TSC read, 1", "TSC read, 2"], || {
        || {
            black_box(Tsc.now());
        }
    }));
    cases
}

/// The same by one started thread, and by it and the thread that started it. Figures are of `MANY`
/// requests of each thread.
fn both<F: Fn() + Sync + 'static>(names: [&'static str; 2], make: impl Fn() -> F) -> [Case; 2] {
    [(names[0], false), (names[1], true)].map(|(name, two)| {
        let once = make();
        let run = move |operations: u64| {
            let work = || (0..operations * MANY).for_each(|_| once());
            std::thread::scope(|scope| {
                scope.spawn(work);
                if two {
                    work();
                }
            });
        };
        Case { name, run: Box::new(run), rounds: Vec::new() }
    })
}

/// The cases through the C library.
pub fn c(path: &OsStr) -> Case {
    let library = Library::open(path);
    // SAFETY: the symbol has this signature in tollbar.h.
    let check = unsafe {
        std::mem::transmute::<*mut std::ffi::c_void, LimiterCheck>(
            library.symbol("tollbar_limiter_check"),
        )
    };
    let limiter = crate::credit::limiter(&library, OPEN);
    case("C credit allowed", move || {
        // SAFETY: a live limiter.
        black_box(unsafe { check(black_box(limiter), 1, std::ptr::null_mut()) });
    })
}
