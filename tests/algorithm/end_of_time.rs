//! Every policy has one last time. After it no algorithm admits a request, in any kind of state.

use crate::common::{policy, state, with_each, DAY, SEC};
use tollbar::clock::Source;
use tollbar::table::{OnFull, Options, PolicyId, Request, Table};
use tollbar::units::{HORIZON, LAST};
use tollbar::{Kind, Limiter, Policy, Shared, State, Verdict, NEVER};

/// Every algorithm and option, from one permit a month to the highest rates that the algorithms can
/// count. All of them admit a first request for one permit.
const TEXTS: [&str; 52] = [
    "100/s burst 20",
    "3/min",
    "7/s burst 3",
    "1000000/s burst 100000",
    "1/s burst 100000000",
    "4000000000/s burst 1000",
    "15000000000/s burst 1000",
    "5/min burst 5 init 3",
    "7/s burst 100 init 1",
    "100/s burst 20 ban 1s",
    "10/s; 1000/day",
    "3/s burst 5; 100/min",
    "100/s burst 20 borrow",
    "7/min burst 3 borrow init 2",
    "5/min algo interval",
    "3/min burst 3 algo interval anchor first",
    "7/s burst 100 algo interval",
    "31000000000/s burst 5 algo interval",
    "6/s algo fixed-window anchor first",
    "5/min algo fixed-window anchor first",
    "7/s algo fixed-window anchor first",
    "5000/s algo fixed-window anchor first",
    "5/min algo fixed-window",
    "1000/day algo fixed-window",
    "5/min algo fixed-window count rejected",
    "15000000000/s algo fixed-window",
    "5/min algo weighted-window",
    "16777215/s algo weighted-window",
    "1000000/s algo weighted-window",
    "5/min algo sliding-window segments 6",
    "5/min algo sliding-window segments 6 mode strict",
    "5/min algo sliding-window segments 6 mode interpolated",
    "268435455/s algo sliding-window segments 10",
    "5/min algo sliding-window segments 6 anchor first",
    "5/min algo sliding-window segments 6 mode interpolated anchor first",
    "5/min algo sliding-log",
    "5/min algo sliding-log count rejected",
    "100/s algo sliding-log",
    "5/min algo pacer",
    "7/s algo pacer slack 3",
    "7900000000/s algo pacer",
    "5/min algo warm-up warm 10s cold 3",
    "122070/s algo warm-up warm 1s",
    "3/day algo warm-up warm 1day cold 1000",
    "5/forever",
    "5/min curve 0:20% 100%:100%",
    "100/s curve step",
    "15000000000/s curve front",
    "5/min burst 9 refill 0:50% 50%:100%",
    "7/s burst 3 refill 0:100% 34%:33%",
    "5/month algo calendar",
    "5/day zone CET-1CEST,M3.5.0,M10.5.0/3",
];

/// Every power of two and its neighbours, the ends of the type, and those of the range.
fn times(last: u64) -> Vec<u64> {
    let powers = (0..64).flat_map(|n| [(1u64 << n) - 1, 1 << n, (1 << n) + 1]);
    let mut times: Vec<u64> =
        powers.chain([last - 1, last, last + 1, last + SEC, u64::MAX - 1, u64::MAX]).collect();
    times.sort_unstable();
    times.dedup();
    times
}

/// The policy of a text, and its last time.
fn range(text: &str) -> (Policy, u64) {
    let policy = policy(text);
    (policy, policy.last_time().unwrap_or_else(|why| panic!("{text}: {why}")))
}

/// No call of a limiter's state admits at `now`, and every answer says that waiting does not help.
fn refuses(text: &str, state: &State, now: u64) {
    for cost in [1, 2, 3] {
        assert_eq!(state.admit_at(now, cost), Verdict::Denied, "{text}: {cost} at {now}");
        for answer in [state.check_at(now, cost), state.peek_at(now, cost)] {
            let fields = (answer.verdict, answer.remaining, answer.retry_after);
            assert_eq!(fields, (Verdict::Denied, 0, NEVER), "{text}: {cost} at {now}");
            // A fresh state is as good as fresh.
            assert!([0, NEVER].contains(&answer.reset_after), "{text}: {answer:?} at {now}");
        }
        assert_eq!(state.take_up_to_at(now, cost), 0, "{text}: {cost} at {now}");
        assert_eq!(state.reserve_at(now, cost, NEVER), None, "{text}: {cost} at {now}");
    }
    assert_eq!(state.check_at(now, 0).verdict, Verdict::Allowed, "{text}: a question at {now}");
}

#[test]
fn the_last_time_is_one_for_all_but_the_fastest() {
    let mut shorter = 0;
    for text in with_each(Kind::ALL, &TEXTS) {
        let text = text.as_str();
        let (policy, last) = range(text);
        let per_second = u128::from(policy.limit) * u128::from(SEC) / u128::from(policy.period);
        assert!((HORIZON / 8..=LAST).contains(&last), "{text}: {last}");
        let slow = per_second <= 4_000_000_000 && !text.contains("122070");
        assert!(last == LAST || !slow, "{text}: {last}");
        shorter += usize::from(last < LAST);
    }
    assert_eq!(shorter, 5);
    assert_eq!(policy("0/s").last_time(), Ok(LAST));
    assert_eq!(policy("0/s algo sliding-window").last_time(), Ok(LAST));
    // A word can count only few of these windows.
    let long = Policy::new((1 << 31) - 1, HORIZON / 3).with_kind(Kind::WeightedWindow);
    assert_eq!(long.last_time(), Ok(HORIZON / 3 * 2 - 1));
    assert!(Policy { burst: 0, ..policy("5/s") }.last_time().is_err());
    assert!(policy_of(u64::MAX, 1).last_time().is_err());
}

fn policy_of(limit: u64, period: u64) -> Policy {
    Policy::new(limit, period)
}

#[test]
fn a_fresh_limiter_admits_until_the_last_time_and_not_after() {
    for text in with_each(Kind::ALL, &TEXTS) {
        let text = text.as_str();
        let (policy, last) = range(text);
        for now in times(last) {
            let state = State::new(&policy).expect("a state");
            if now <= last {
                let fresh = state.peek_at(now, 1);
                assert!(
                    fresh.is_allowed() && fresh.remaining >= 1,
                    "{text} at {now} of {last}: {fresh:?}"
                );
                assert_eq!(state.admit_at(now, 1), Verdict::Allowed, "{text} at {now} of {last}");
            } else {
                refuses(text, &state, now);
            }
        }
    }
}

/// Requests after the end give nothing more to earlier times, and requests before it nothing to
/// later ones.
#[test]
fn a_used_limiter_admits_nothing_after_the_last_time() {
    for text in with_each(Kind::ALL, &TEXTS) {
        let text = text.as_str();
        let (policy, last) = range(text);
        for start in [0, 1, DAY, last / 2, last - 1, last] {
            let state = State::new(&policy).expect("a state");
            assert_eq!(state.admit_at(start, 1), Verdict::Allowed, "{text} at {start}");
            for now in times(last).into_iter().filter(|now| *now > last) {
                refuses(text, &state, now);
            }
            // Then it takes all remaining permits at once.
            let mut rest = 0;
            while state.admit_at(start, 1) == Verdict::Allowed {
                rest += 1;
                assert!(rest <= policy.burst.max(policy.slack + 1), "{text} at {start}");
                if rest == 1000 {
                    state.take_up_to_at(start, u64::MAX);
                }
            }
            // A window that is shorter than a grain of time may be over as soon as it has begun.
            refuses(text, &state, last + 1);
            assert_eq!(state.admit_at(start, 1), Verdict::Denied, "{text} at {start}");
        }
    }
}

/// `reserve` promises permits only for times at which they can be used.
#[test]
fn no_wait_ends_after_the_last_time() {
    for text in with_each(Kind::ALL, &TEXTS) {
        let text = text.as_str();
        let (policy, last) = range(text);
        for before in [0, 1, SEC, DAY, 40 * DAY] {
            let (state, now) = (State::new(&policy).expect("a state"), last - before);
            for _ in 0..40 {
                let answer = state.check_at(now, 1);
                if let Some(wait) = answer.retry_ns() {
                    assert!(wait <= before, "{text}: {wait} ns at {before} before the end");
                    assert_eq!(
                        state.peek_at(now + wait, 1).verdict,
                        Verdict::Allowed,
                        "{text}: {before} before"
                    );
                }
                if answer.reset_after != NEVER {
                    assert!(
                        answer.reset_after <= before,
                        "{text}: {answer:?} at {before} before the end"
                    );
                }
                if let Some(at) = state.reserve_at(now, 1, NEVER) {
                    assert!((now..=last).contains(&at), "{text}: {at} of {last}");
                }
            }
        }
    }
}

/// `retry_after` tells a wait that ends at the last time, and not one that ends a nanosecond later.
#[test]
fn a_wait_may_end_at_the_last_time() {
    let waits = [
        ("10/s burst 1", SEC / 10),
        ("3/s burst 1 init 1", SEC / 3 + 1),
        ("10/s burst 1 algo pacer", SEC / 10),
        ("1/s algo fixed-window anchor first", SEC),
        ("1/s algo interval anchor first", SEC),
        ("1/s algo sliding-window segments 10 anchor first", SEC),
        ("1/s algo sliding-log", SEC),
    ];
    for (text, wait) in waits {
        for late in [0, 1] {
            let (state, now) = (state(text), LAST - wait + late);
            assert_eq!(state.admit_at(now, 1), Verdict::Allowed, "{text}");
            let decision = state.check_at(now, 1).retry_after;
            assert_eq!(decision, if late == 0 { wait } else { NEVER }, "{text}");
            if state.books_ahead() {
                assert_eq!(state.reserve_at(now, 1, NEVER), (late == 0).then_some(LAST), "{text}");
            }
            assert_eq!(
                state.peek_at(LAST, 1).is_allowed(),
                late == 0 && !state.books_ahead(),
                "{text}"
            );
        }
    }
}

#[test]
fn a_bucket_with_credit_admits_nothing_after_the_last_time() {
    let plain = TEXTS.into_iter().filter(|text| {
        !["algo", "borrow", "ban", ";", "forever", "curve", "refill", "zone"]
            .iter()
            .any(|word| text.contains(word))
    });
    for text in plain.chain(["1000000000/s burst 1000000", "15900000000/s burst 400000000"]) {
        let (policy, last) = range(text);
        let limiter = Limiter::with_credit(&policy).expect("a bucket with credit");
        // With credit, if the limiter keeps any.
        assert_eq!(limiter.admit_at(last - SEC, 1), Verdict::Allowed, "{text}");
        assert!(
            limiter.shared().credit() == 0 || limiter.shared().peek_at(last, 0).remaining > 0,
            "{text}"
        );
        for now in times(last).into_iter().filter(|now| *now > last) {
            assert_eq!(limiter.admit_at(now, 1), Verdict::Denied, "{text} at {now}");
            let answer = limiter.check_at(now, 1);
            let fields = (answer.verdict, answer.remaining, answer.retry_after, answer.reset_after);
            assert_eq!(fields, (Verdict::Denied, 0, NEVER, NEVER), "{text} at {now}");
            assert_eq!(limiter.shared().peek_at(now, 0).remaining, 0, "{text} at {now}");
        }
        assert_eq!(limiter.admit_at(last, 1), Verdict::Allowed, "{text}");
    }
}

/// The extremes of policies, whose slices do not fit 128 bits.
#[test]
fn a_bucket_with_credit_of_any_policy_is_made_or_refused() {
    for limit in [1, u64::MAX] {
        for period in [1, SEC, u64::MAX] {
            for burst in [1, u64::MAX / 2, u64::MAX] {
                let _ = State::with_credit(&Policy::new(limit, period).with_burst(burst));
            }
        }
    }
}

const ON_FULL: [OnFull; 4] = [OnFull::Deny, OnFull::Inherit, OnFull::Allow, OnFull::EvictNearest];

/// Every call of a table for `key` at `now` refuses.
fn table_refuses(text: &str, table: &Table, hot: &Table, key: &[u8], now: u64) {
    let id = PolicyId::FIRST;
    let context = || format!("{text}: {:?} at {now}", String::from_utf8_lossy(key));
    assert_eq!(table.admit_at(id, key, now, 1), Verdict::Denied, "{}", context());
    assert_eq!(hot.admit_at(id, key, now, 1), Verdict::Denied, "hot, {}", context());
    assert_eq!(table.check_at(id, key, now, 1).verdict, Verdict::Denied, "{}", context());
    assert_eq!(table.peek_at(id, key, now, 1).verdict, Verdict::Denied, "peek, {}", context());
    assert_eq!(table.take_up_to_at(id, key, now, 5), 0, "{}", context());
    let request = Request { policy: id, key, cost: 1 };
    let mut verdicts = [Verdict::Allowed; 3];
    table.admit_many_at(now, &[request; 3], &mut verdicts);
    assert_eq!(verdicts, [Verdict::Denied; 3], "{}", context());
}

/// In a table with room and in a full one, for known keys and for new keys.
#[test]
fn a_table_admits_nothing_after_the_last_time() {
    for text in with_each(Kind::ALL, &TEXTS) {
        let text = text.as_str();
        let (policy, last) = range(text);
        let ends = times(last).into_iter().filter(|now| *now > last);
        for on_full in ON_FULL {
            let clock = if policy.kind == Kind::Calendar { Source::Wall } else { Source::Tsc };
            let options = Options { on_full, clock, seed: Some(7), ..Options::new(1000) };
            let Ok((table, descriptor)) = Table::sealed(&options, &[policy]) else {
                // Windows whose start no word can hold.
                assert!(text.contains("sliding-window") && text.contains("anchor first"), "{text}");
                continue;
            };
            // Another view of the table, whose threads may have credit.
            let hot = Table::open_descriptor(descriptor)
                .and_then(|view| view.with_hot_keys(64))
                .expect("memory");
            // SAFETY: the descriptor is this test's own.
            unsafe { libc::close(descriptor) };
            // A known key, with credit if the policy gives credit. At the end of the clock no key
            // expires any more.
            assert_eq!(
                hot.admit_at(PolicyId::FIRST, b"known", last - 1, 1),
                Verdict::Allowed,
                "{text}"
            );
            let _ = hot.admit_at(PolicyId::FIRST, b"known", last, 1);
            for now in ends.clone() {
                table_refuses(text, &table, &hot, b"known", now);
                table_refuses(text, &table, &hot, b"new", now);
            }
            // The table is full.
            for n in 0u32..12_000 {
                let _ = table.admit_at(PolicyId::FIRST, &n.to_ne_bytes(), last, 1);
            }
            for now in ends.clone() {
                table_refuses(text, &table, &hot, b"known", now);
                for n in 0u32..8 {
                    table_refuses(text, &table, &hot, &[b'n', b'e', b'w', n as u8], now);
                }
            }
        }
    }
}

/// The profile of these tests checks overflow, so an addition that wraps by mistake fails a test.
#[test]
#[should_panic(expected = "overflow")]
fn overflow_is_checked() {
    let one = std::hint::black_box(1u64);
    std::hint::black_box(u64::MAX - 1 + one + one);
}
