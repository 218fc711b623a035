//! Decisions of a limiter are counted: by verdict, each call once, exactly.

use std::sync::Barrier;
use std::thread;
use tollbar::clock::Manual;
use tollbar::take_many::{take_many, Limit};
use tollbar::{Counts, Limiter, Policy, Reason, Reasons, State, Verdict};

const SEC: u64 = 1_000_000_000;
/// Each kind of state, and the usual case of a token bucket beside its rare ones.
const POLICIES: [&str; 9] = [
    "5/s burst 3",
    "5/s burst 3 borrow",
    "0/s",
    "5/s algo pacer",
    "5/s algo interval",
    "5/s algo fixed-window",
    "5/s algo sliding-window segments 4",
    "5/s algo sliding-log",
    "5/s algo sliding-log count rejected",
];

fn limiter(text: &str) -> Limiter<State, Manual> {
    let policy: Policy = text.parse().expect("a policy");
    Limiter::with(State::new(&policy).expect("compiles"), Manual::new(SEC))
}

fn plus(counts: Counts, verdict: Verdict) -> Counts {
    let one = |of| u64::from(verdict == of);
    Counts {
        allowed: counts.allowed + one(Verdict::Allowed),
        denied: counts.denied + one(Verdict::Denied),
        never: counts.never + one(Verdict::Never),
    }
}

#[test]
fn each_call_counts_once_by_its_answer() {
    for text in POLICIES {
        let limiter = limiter(text);
        assert_eq!(limiter.counts(), Counts::default(), "{text}");
        let mut expected = Counts::default();
        let taken = |permits: u64| if permits == 0 { Verdict::Denied } else { Verdict::Allowed };
        for round in 0..400u64 {
            // Times that go back, too.
            let now = SEC + round * SEC / 20 - (round % 3) * SEC / 100;
            let cost = [1, 1, 0, 2, 1_000_000][round as usize % 5];
            let verdict = match round % 9 {
                0 => limiter.check(cost).verdict,
                1 => limiter.admit(cost),
                2 => limiter.check_at(now, cost).verdict,
                3 => taken(limiter.take_up_to(2)),
                4 => taken(limiter.take_up_to_at(now, 2)),
                5 => limiter.wait_ns(cost, 0).verdict,
                6 => limiter.reserve_at(now, cost, now + SEC).err().unwrap_or(Verdict::Allowed),
                _ => limiter.admit_at(now, cost),
            };
            expected = plus(expected, verdict);
            let _ = limiter.peek(cost);
            assert_eq!(limiter.counts(), expected, "{text}, round {round}");
            limiter.clock().advance(SEC / 20);
        }
        limiter.reset();
        assert_eq!(
            (limiter.counts(), limiter.snapshot().decisions),
            (expected, expected),
            "{text}"
        );
        assert!(
            expected.denied > 0 && (expected.allowed > 0 || text == "0/s"),
            "{text}: {expected:?}"
        );
        // An algorithm that lends admits any cost, and a limit of 0 has no burst, so neither
        // returns `Never`.
        assert!(
            expected.never > 0 || text == "0/s" || text.ends_with("borrow"),
            "{text}: {expected:?}"
        );
    }
}

/// More threads than there are lines make `calls` each, all at once: the counts equal the returned
/// verdicts.
fn together(call: impl Fn(u64) -> Verdict + Sync) -> Counts {
    const THREADS: usize = 40;
    let barrier = Barrier::new(THREADS);
    let each = || {
        barrier.wait();
        (0..10_000).fold(Counts::default(), |expected, n| plus(expected, call(n)))
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(each)).collect();
        threads.into_iter().map(|thread| thread.join().expect("ends")).fold(
            Counts::default(),
            |all, expected| Counts {
                allowed: all.allowed + expected.allowed,
                denied: all.denied + expected.denied,
                never: all.never + expected.never,
            },
        )
    })
}

#[test]
fn counts_of_all_threads_are_exact() {
    for text in POLICIES {
        let limiter = limiter(text);
        // Exactly the burst: time stands still.
        let first = together(|n| limiter.admit_at(SEC, if n % 100 == 99 { 1_000_000 } else { 1 }));
        let second = together(|_| limiter.check_at(SEC, 1).verdict);
        let all = limiter.counts();
        assert_eq!(all.allowed, first.allowed + second.allowed, "{text}");
        assert_eq!(all.denied, first.denied + second.denied, "{text}");
        assert_eq!(all.never, first.never + second.never, "{text}");
        assert_eq!(all.allowed + all.denied + all.never, 800_000, "{text}");
    }
}

#[test]
fn a_limiter_with_credit_counts_exactly() {
    for text in ["1000000/s burst 200000", "1000/s burst 1000", "5/s burst 5"] {
        let policy: Policy = text.parse().expect("a policy");
        let limiter =
            Limiter::with(State::with_credit(&policy).expect("compiles"), Manual::new(SEC));
        let never = policy.burst + 1;
        let expected = together(|n| match n % 100 {
            99 => limiter.admit(never),
            98 => limiter.check(1).verdict,
            // Slices of time end in between, so that stripes change hands.
            97 => limiter.admit_at(SEC + n * SEC, 1),
            _ => limiter.admit(1),
        });
        assert_eq!(limiter.counts(), expected, "{text}");
        limiter.reset();
        assert_eq!(limiter.counts(), expected, "{text}");
        assert!(expected.allowed > 0 && expected.never == 4_000, "{text}: {expected:?}");
    }
}

/// A call that refuses because of a ban, a class's reserve or a full queue counts the verdict and
/// the reason.
#[test]
fn c11_reasons() {
    let banning = || {
        let limiter = limiter("1/min ban 1h after 2");
        assert!(limiter.check(1).is_allowed() && limiter.check(1).reason == Reason::Rate);
        assert_eq!(limiter.check(1).reason, Reason::Banned);
        assert_eq!(limiter.snapshot().reasons, Reasons { banned: 1, ..Reasons::default() });
        limiter
    };
    type Ask = fn(&Limiter<State, Manual>) -> bool;
    let ways: [Ask; 6] = [
        |limiter| limiter.admit(1) == Verdict::Allowed,
        |limiter| limiter.check(1).is_allowed(),
        |limiter| limiter.take_up_to(1) != 0,
        |limiter| limiter.reserve(1, limiter.now() + SEC).is_some(),
        |limiter| limiter.wait_ns(1, SEC).is_allowed(),
        |limiter| {
            take_many(&[Limit::Limiter(limiter, 1)]).expect("a limiter").decision.is_allowed()
        },
    ];
    for (n, ask) in ways.into_iter().enumerate() {
        let limiter = banning();
        assert!(!ask(&limiter), "way {n}");
        assert_eq!(
            limiter.snapshot().reasons,
            Reasons { banned: 2, ..Reasons::default() },
            "way {n}"
        );
    }
    let classes = limiter("10/min reserve low 8 high 0");
    for _ in 0..3 {
        let _ = classes.check_class(1, "low").expect("a class");
    }
    assert!(!take_many(&[Limit::Class("low", &Limit::Limiter(&classes, 1))])
        .expect("a class")
        .decision
        .is_allowed());
    assert_eq!(classes.snapshot().reasons, Reasons { reserve: 2, ..Reasons::default() });
    let full = limiter("1/min").with_waiters(0);
    assert!(full.wait_ns(1, 0).is_allowed());
    assert_eq!(full.wait_ns(1, 3600 * SEC).reason, Reason::QueueFull);
    assert_eq!(full.snapshot().reasons, Reasons { queue_full: 1, ..Reasons::default() });
}
