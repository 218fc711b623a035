//! The behaviour of every store, tested on each: this process's memory, and a real server by TCP
//! and by unix socket.

#[path = "../../../tests/common/mod.rs"]
mod common;
#[path = "common/redis.rs"]
mod server;

use common::{away_from_edges, policy, DAY};
use server::Server;
use tollbar::{PolicyError, Verdict, NEVER};
use tollbar_redis::redis::Url;
use tollbar_redis::store::{
    LimitError, MemoryStore, RedisStore, Store, StoreError, KEY_MOST, NAME_MOST,
};

/// All these policies refill so slowly that no permit comes back during a test.
const POLICIES: [&str; 7] = [
    "5/day burst 5",
    "5/day burst 5 algo interval",
    "5/day algo interval anchor first",
    "5/day algo fixed-window",
    "5/day algo weighted-window",
    "5/day algo sliding-window segments 24",
    "5/day algo sliding-log",
];

macro_rules! suite {
    ($($test:ident),* $(,)?) => {
        mod memory {
            use super::*;
            $(#[test] fn $test() { calm(); super::$test(MemoryStore::new(100)); })*
        }
        mod redis_tcp {
            use super::*;
            $(#[test] fn $test() { let server = Server::start(); calm(); super::$test(redis(&server.tcp())); })*
        }
        mod redis_unix {
            use super::*;
            $(#[test] fn $test() { let server = Server::start(); calm(); super::$test(redis(&server.unix())); })*
        }
    };
}

suite!(
    the_burst_and_no_more,
    more_than_the_burst_is_never,
    a_cost_of_nothing_asks,
    a_peek_takes_nothing,
    up_to_takes_what_there_is,
    keys_and_limits_are_separate,
    a_reset_key_is_new,
    a_limit_of_nothing_refuses,
    what_is_used_comes_back,
    refused_requests_may_count,
    names_and_keys_are_checked,
    policies_are_checked,
);

/// A permit of `5/day algo interval` comes back, and a window of a day begins, at a multiple of
/// this.
fn calm() {
    away_from_edges(DAY / 5);
}

fn redis(url: &str) -> RedisStore {
    // A busy machine may keep the server from answering within the default deadline.
    RedisStore::new(&Url::parse(url).unwrap()).unwrap().with_timeout(30_000_000_000)
}

fn the_burst_and_no_more(mut store: impl Store) {
    for text in POLICIES {
        let limit = store.limit("test", &policy(text)).unwrap();
        let key = text.as_bytes();
        for left in [3, 1] {
            let decision = store.check(&limit, key, 2).unwrap();
            assert_eq!(
                (decision.verdict, decision.remaining, decision.retry_after),
                (Verdict::Allowed, left, 0),
                "{text}"
            );
            assert!(
                decision.reset_after > 0 && decision.reset_after <= 2 * DAY,
                "{text}: {decision:?}"
            );
        }
        let decision = store.check(&limit, key, 2).unwrap();
        assert_eq!((decision.verdict, decision.remaining), (Verdict::Denied, 1), "{text}");
        // A weighted window's count weighs on the next window, too, so early in the day the wait is
        // longer than a day.
        let most = if text.contains("weighted") { 2 * DAY } else { DAY };
        assert!(decision.retry_after > 0 && decision.retry_after <= most, "{text}: {decision:?}");
        assert!(store.check(&limit, key, 1).unwrap().is_allowed(), "{text}");
        let decision = store.check(&limit, key, 1).unwrap();
        assert_eq!((decision.verdict, decision.remaining), (Verdict::Denied, 0), "{text}");
    }
}

fn more_than_the_burst_is_never(mut store: impl Store) {
    for text in POLICIES {
        let limit = store.limit("test", &policy(text)).unwrap();
        for cost in [6, 1 << 40, 1 << 53, u64::MAX] {
            let decision = store.check(&limit, text.as_bytes(), cost).unwrap();
            assert_eq!(
                (decision.verdict, decision.remaining, decision.retry_after),
                (Verdict::Never, 5, NEVER),
                "{text} {cost}"
            );
        }
        assert!(store.check(&limit, text.as_bytes(), 5).unwrap().is_allowed(), "{text}");
    }
}

fn a_cost_of_nothing_asks(mut store: impl Store) {
    for text in POLICIES {
        let limit = store.limit("test", &policy(text)).unwrap();
        for _ in 0..10 {
            let decision = store.check(&limit, text.as_bytes(), 0).unwrap();
            assert_eq!(
                (decision.verdict, decision.remaining, decision.reset_after),
                (Verdict::Allowed, 5, 0),
                "{text}"
            );
        }
        assert!(store.check(&limit, text.as_bytes(), 5).unwrap().is_allowed());
        let decision = store.check(&limit, text.as_bytes(), 0).unwrap();
        assert_eq!((decision.verdict, decision.remaining), (Verdict::Allowed, 0), "{text}");
    }
}

fn a_peek_takes_nothing(mut store: impl Store) {
    for text in POLICIES {
        let limit = store.limit("test", &policy(text)).unwrap();
        let key = text.as_bytes();
        for _ in 0..10 {
            let decision = store.peek(&limit, key, 5).unwrap();
            assert_eq!(
                (decision.verdict, decision.remaining, decision.reset_after),
                (Verdict::Allowed, 5, 0),
                "{text}"
            );
        }
        assert_eq!(store.peek(&limit, key, 6).unwrap().verdict, Verdict::Never);
        assert!(store.check(&limit, key, 4).unwrap().is_allowed());
        for _ in 0..10 {
            let decision = store.peek(&limit, key, 2).unwrap();
            assert_eq!((decision.verdict, decision.remaining), (Verdict::Denied, 1), "{text}");
            assert!(decision.retry_after > 0, "{text}");
        }
        assert!(store.check(&limit, key, 1).unwrap().is_allowed(), "{text}");
    }
}

fn up_to_takes_what_there_is(mut store: impl Store) {
    for text in POLICIES {
        let limit = store.limit("test", &policy(text)).unwrap();
        let key = text.as_bytes();
        for (most, taken) in [(0, 0), (3, 3), (u64::MAX, 2), (5, 0), (1, 0)] {
            assert_eq!(store.take_up_to(&limit, key, most), Ok(taken), "{text} {most}");
        }
        store.reset(&limit, key).unwrap();
        assert_eq!(store.take_up_to(&limit, key, 9), Ok(5), "{text}");
    }
}

fn keys_and_limits_are_separate(mut store: impl Store) {
    for text in POLICIES {
        let (one, other) = (
            store.limit("one", &policy(text)).unwrap(),
            store.limit("other", &policy(text)).unwrap(),
        );
        let most = [b'k'; KEY_MOST];
        let (full, nearly) = (&most[..], &most[1..]);
        for key in [b"a".as_slice(), b"b", b"a b\r\n\0{}", b"\xff", full, nearly] {
            for limit in [&one, &other] {
                assert_eq!(store.check(limit, key, 5).unwrap().remaining, 0, "{text}");
                assert_eq!(store.check(limit, key, 1).unwrap().verdict, Verdict::Denied, "{text}");
            }
        }
        for key in [b"a".as_slice(), b"b", b"a b\r\n\0{}", b"\xff", full, nearly] {
            store.reset(&one, key).unwrap();
            store.reset(&other, key).unwrap();
        }
    }
}

fn a_reset_key_is_new(mut store: impl Store) {
    for text in POLICIES {
        let limit = store.limit("test", &policy(text)).unwrap();
        let key = text.as_bytes();
        store.reset(&limit, key).unwrap();
        for _ in 0..3 {
            assert!(store.check(&limit, key, 5).unwrap().is_allowed(), "{text}");
            assert!(!store.check(&limit, key, 1).unwrap().is_allowed(), "{text}");
            store.reset(&limit, key).unwrap();
            let decision = store.peek(&limit, key, 1).unwrap();
            assert_eq!((decision.remaining, decision.reset_after), (5, 0), "{text}");
        }
    }
}

fn a_limit_of_nothing_refuses(mut store: impl Store) {
    for kind in
        ["gcra", "interval", "fixed-window", "weighted-window", "sliding-window", "sliding-log"]
    {
        let limit = store.limit("test", &policy(&format!("0/s algo {kind}"))).unwrap();
        let decision = store.check(&limit, b"key", 1).unwrap();
        assert_eq!(
            (decision.verdict, decision.remaining, decision.retry_after),
            (Verdict::Never, 0, NEVER),
            "{kind}"
        );
        assert_eq!(store.peek(&limit, b"key", 0).unwrap().verdict, Verdict::Allowed);
        assert_eq!(store.take_up_to(&limit, b"key", 7), Ok(0));
        store.reset(&limit, b"key").unwrap();
    }
}

/// A denial's `retry_after` is long enough, and not much longer.
fn what_is_used_comes_back(mut store: impl Store) {
    for text in [
        "5/100ms burst 5",
        "5/100ms burst 5 algo interval",
        "5/100ms algo interval anchor first",
        "5/100ms algo fixed-window",
        "5/100ms algo fixed-window anchor first",
        "5/100ms algo weighted-window",
        "5/100ms algo sliding-window segments 10",
        "5/100ms algo sliding-log",
    ] {
        let limit = store.limit("test", &policy(text)).unwrap();
        let key = text.as_bytes();
        // Repeats until the five are taken within one window, because the machine may be slow.
        let refused = loop {
            assert!(store.check(&limit, key, 5).is_ok());
            let decision = store.check(&limit, key, 5).unwrap();
            if !decision.is_allowed() {
                break decision;
            }
        };
        assert!(
            refused.retry_after > 0 && refused.retry_after <= 200_000_000,
            "{text}: {refused:?}"
        );
        // A sleep has another clock than the server. In such a time they differ by far less than a
        // millisecond.
        std::thread::sleep(std::time::Duration::from_nanos(refused.retry_after + 1_000_000));
        assert!(store.check(&limit, key, 5).unwrap().is_allowed(), "{text}: {refused:?}");
    }
}

fn refused_requests_may_count(mut store: impl Store) {
    for text in ["5/day algo fixed-window count rejected", "5/day algo sliding-log count rejected"]
    {
        let limit = store.limit("test", &policy(text)).unwrap();
        let key = text.as_bytes();
        assert!(store.check(&limit, key, 3).unwrap().is_allowed());
        assert_eq!(store.peek(&limit, key, 3).unwrap().remaining, 2, "{text}");
        let decision = store.check(&limit, key, 3).unwrap();
        assert_eq!((decision.verdict, decision.remaining), (Verdict::Denied, 0), "{text}");
        assert_eq!(store.check(&limit, key, 1).unwrap().verdict, Verdict::Denied, "{text}");
    }
}

fn names_and_keys_are_checked(mut store: impl Store) {
    let five = policy("5/day");
    for name in ["", "a b", "a{b", "a}", "é", "a\n", &"n".repeat(NAME_MOST + 1)] {
        assert_eq!(store.limit(name, &five).map(drop), Err(LimitError::Name), "{name:?}");
    }
    for name in ["a", "A-z_0.9:/x", &"n".repeat(NAME_MOST)] {
        let limit = store.limit(name, &five).unwrap();
        assert!(store.check(&limit, b"key", 1).unwrap().is_allowed());
        for key in [&b""[..], &[b'k'; KEY_MOST + 1]] {
            assert_eq!(store.check(&limit, key, 1), Err(StoreError::Key));
            assert_eq!(store.peek(&limit, key, 1), Err(StoreError::Key));
            assert_eq!(store.take_up_to(&limit, key, 1), Err(StoreError::Key));
            assert_eq!(store.reset(&limit, key), Err(StoreError::Key));
        }
    }
    let closed = store.limit("closed", &policy("0/s")).unwrap();
    assert_eq!(store.check(&closed, b"", 1), Err(StoreError::Key));
}

fn policies_are_checked(store: impl Store) {
    let mut wrong = policy("5/day");
    wrong.period = 0;
    assert_eq!(
        store.limit("a", &wrong).map(drop),
        Err(LimitError::Policy(PolicyError::PeriodZero))
    );
    let mut wrong = policy("5/day algo fixed-window");
    wrong.burst = 7;
    assert_eq!(
        store.limit("a", &wrong).map(drop),
        Err(LimitError::Policy(PolicyError::OptionMismatch))
    );
    assert!(store.limit("a", &policy("1/day")).is_ok());
}
