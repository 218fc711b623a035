//! The behaviour that users of governor know, by our calls. The cases are those of governor's own
//! tests for direct, keyed and asynchronous limiters, and of its snapshots; docs/from-governor.md
//! lists where the answers differ, and why.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;
use tollbar::clock::Manual;
use tollbar::table::{Options, PolicyId, Table};
use tollbar::{Limiter, Policy, State, Verdict};

const MS: u64 = 1_000_000;
const KEYS: [&[u8]; 2] = [b"ann", b"bob"];

fn direct(policy: &Policy) -> Limiter<State, Manual> {
    Limiter::with(State::new(policy).unwrap(), Manual::new(0))
}

/// A limit that a test asks at its own times: a limiter, or a key of a table.
fn each_kind(policy: Policy, case: impl Fn(&dyn Fn(u64, u64) -> tollbar::Decision)) {
    let limiter = direct(&policy);
    case(&|now, cost| limiter.check_at(now, cost));
    let table = Table::private(&Options::new(100), &[policy]).unwrap();
    for key in KEYS {
        case(&|now, cost| table.check_at(PolicyId::FIRST, key, now, cost));
    }
}

#[test]
fn the_first_request_passes() {
    each_kind(Policy::per_second(5), |check| assert!(check(0, 1).is_allowed()));
}

#[test]
fn a_burst_passes_and_comes_back_within_its_period() {
    each_kind(Policy::per_second(2), |check| {
        let passes = |at| check(at * MS, 1).is_allowed();
        assert_eq!([0, 1, 2].map(passes), [true, true, false]);
        assert_eq!([1002, 1003, 1004].map(passes), [true, true, false]);
    });
}

#[test]
fn a_long_pause_gives_no_request_above_the_burst() {
    each_kind(Policy::per_second(5), |check| {
        for begin in [0, 2_000 * MS, 1_000_000 * MS] {
            let passed = (0..6).filter(|_| check(begin, 1).is_allowed()).count();
            assert_eq!(passed, 5, "at {begin}");
        }
    });
}

#[test]
fn several_permits_pass_together_or_not_at_all() {
    each_kind(Policy::per_second(4), |check| {
        let passes = |at| check(at * MS, 2).is_allowed();
        assert_eq!([0, 0, 1].map(passes), [true, true, false]);
        assert_eq!([1001, 1002, 1003].map(passes), [true, true, false]);
    });
}

#[test]
fn a_cost_above_the_burst_never_passes_and_charges_nothing() {
    each_kind(Policy::per_second(5), |check| {
        for (at, cost) in [(0, 15), (0, 7), (0, 6), (3_000, 15), (20_000, 15)] {
            let decision = check(at * MS, cost);
            assert_eq!((decision.verdict, decision.retry_after()), (Verdict::Never, None));
        }
        assert!(check(20_000 * MS, 5).is_allowed());
    });
}

#[test]
fn the_wait_of_a_refusal_is_exact() {
    each_kind(Policy::per_second(5), |check| {
        let mut now = 0;
        for _ in 0..20 {
            now += MS;
            if let Some(wait) = check(now, 1).retry_ns() {
                assert!(!check(now + wait - 1, 1).is_allowed());
                now += wait;
                assert!(check(now, 1).is_allowed());
            }
        }
        // 5 at once, and 15 at 200 ms each.
        assert_eq!(now, MS + 15 * 200 * MS);
    });
}

#[test]
fn threads_share_a_burst() {
    let policy = Policy::per_second(20);
    let limiter = direct(&policy);
    let table = Table::private(&Options::new(100), &[policy]).unwrap();
    let check = |now, kind: usize| match kind {
        0 => limiter.check_at(now, 1).is_allowed(),
        key => table.check_at(PolicyId::FIRST, KEYS[key - 1], now, 1).is_allowed(),
    };
    for kind in 0..3 {
        std::thread::scope(|scope| {
            for _ in 0..20 {
                scope.spawn(|| assert!(check(0, kind)));
            }
        });
        assert!(!check(2 * MS, kind));
        assert!(check(1000 * MS, kind));
    }
}

/// governor's period of a permit is whole nanoseconds, so its rate here is 10⁹.
#[test]
fn a_billion_and_one_a_second_is_no_billion() {
    each_kind(Policy::per_second(1_000_000_001).with_burst(1), |check| {
        let passed = (0..1_000).filter(|n| check(n * 1_000_000, 1).is_allowed()).count();
        assert_eq!(passed, 1_000);
    });
    let limiter = direct(&Policy::per_second(1_000_000_001));
    assert!(limiter.check_at(0, 1_000_000_001).is_allowed());
    assert_eq!(limiter.check_at(500_000_000, 0).remaining, 500_000_000);
    assert_eq!(limiter.check_at(1_000_000_000, 0).remaining, 1_000_000_001);
}

#[test]
fn a_decision_tells_the_permits_that_are_left() {
    each_kind(Policy::per_second(4), |check| {
        assert_eq!([0; 4].map(|now| check(now, 1).remaining), [3, 2, 1, 0]);
        assert!(!check(0, 1).is_allowed());
    });
    // One permit in 90 ms, two at once.
    each_kind(Policy::per(1, Duration::from_millis(90)).with_burst(2), |check| {
        assert_eq!([0, 0].map(|now| check(now, 1).remaining), [1, 0]);
        assert_eq!(check(89 * MS, 1).retry_after(), Some(Duration::from_millis(1)));
        assert_eq!(check(90 * MS, 1).remaining, 0);
        assert_eq!(check(270 * MS, 1).remaining, 1);
    });
}

/// A key with a fresh state gives its slot to another: no call as governor's `retain_recent` is
/// needed. A sweep removes what is left of such keys, and counts the others.
#[test]
fn a_key_is_gone_when_its_debt_is_paid() {
    let table = Table::private(&Options::new(100), &[Policy::per_second(1)]).unwrap();
    let keys = |now| table.sweep(0, table.slots(), now * MS).live;
    assert_eq!(keys(1), 0);
    for (at, key) in [(1, b"foo"), (201, b"bar"), (801, b"baz")] {
        assert!(table.check_at(PolicyId::FIRST, key, at * MS, 1).is_allowed());
    }
    assert_eq!([801, 1000, 1002, 1200, 1202, 1800, 1802].map(keys), [3, 3, 2, 2, 1, 1, 0]);
    // The memory neither grows nor shrinks.
    assert_eq!(
        table.bytes(),
        Table::bytes_for(&Options::new(100), &[Policy::per_second(1)]).unwrap()
    );
}

/// Polls a future, whose sleeps block, until it is ready.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: std::sync::Arc<Unpark>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(std::sync::Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park(),
        }
    }
}

fn sleep(time: Duration) -> std::future::Ready<()> {
    std::thread::sleep(time);
    std::future::ready(())
}

#[test]
fn a_future_waits_for_its_permits_and_no_longer() {
    let limiter = direct(&Policy::per_second(10));
    let sleep = |time: Duration| {
        limiter.clock().advance(time.as_nanos() as u64);
        std::future::ready(())
    };
    let until = |cost| {
        block_on(limiter.until_n_ready(cost, sleep)).unwrap();
        limiter.now() / MS
    };
    assert_eq!(until(6), 0);
    // Four permits are left.
    assert_eq!(until(5), 100);
    assert_eq!(until(1), 200);
    assert!(block_on(limiter.until_n_ready(11, sleep)).is_err());
    assert_eq!(limiter.now() / MS, 200);
}

#[test]
fn twenty_threads_wait_for_one_limit() {
    let limiter: Limiter = "200/s burst 10".parse().unwrap();
    let policy = "200/s burst 10".parse().unwrap();
    let table = Table::private(&Options::new(10), &[policy]).unwrap();
    for keyed in [false, true] {
        let begin = std::time::Instant::now();
        let passed = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..20 {
                scope.spawn(|| {
                    match keyed {
                        false => block_on(limiter.until_ready(sleep)).unwrap(),
                        true => block_on(table.until_key_ready("ann", sleep)).unwrap(),
                    }
                    passed.fetch_add(1, Ordering::Relaxed);
                });
            }
        });
        assert_eq!(passed.load(Ordering::Relaxed), 20);
        // Ten more than the burst, at 5 ms each.
        assert!(begin.elapsed() >= Duration::from_millis(50), "keyed {keyed}");
    }
}
