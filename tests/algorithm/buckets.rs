//! Leaky and token buckets, interval refill and borrowing. Virtual time throughout.

use crate::common::*;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tollbar::clock::{Clock, Manual};
use tollbar::table::{Options, PolicyId, Table};
use tollbar::{Kind, Limiter, Policy, Shared, State, Verdict, NEVER};

#[test]
fn s06_leaky_bucket_as_a_meter() {
    let meter = state("2/s burst 5 algo leaky-bucket");
    assert_eq!(answers(&meter, &[0; 7]), "TTTTTFF");
    assert_eq!(answers(&meter, &[SEC; 4]), "TTFF");
}

/// After a rest a pacer gives the permits of its slack, at most its burst in one call: it gave none
/// where the slack was larger.
#[test]
fn a_pacer_gives_its_slack_to_callers_who_take_what_there_is() {
    let policy = policy("2/5ms algo pacer slack 4");
    let single = State::new(&policy).unwrap();
    let table = Table::private(&Options::new(100), &[policy]).unwrap();
    let key = |now| table.take_up_to_at(PolicyId::FIRST, b"a key", now, u64::MAX);
    assert_eq!((single.take_up_to_at(SEC, u64::MAX), key(SEC)), (1, 1));
    for taken in [2, 2, 1, 0] {
        assert_eq!((single.take_up_to_at(2 * SEC, u64::MAX), key(2 * SEC)), (taken, taken));
    }
}

/// A bucket that starts empty begins to fill even if its first call is `take_up_to`: as a limiter
/// and as a key.
#[test]
fn a_bucket_that_starts_empty_fills_whoever_asks_first() {
    let single = state("10/s burst 10 init 0");
    let table =
        Table::private(&Options::new(10), &["10/s burst 10 init 0".parse().expect("a policy")])
            .expect("memory");
    for (now, taken) in [(SEC, 0), (SEC + SEC / 2, 5), (2 * SEC, 5), (9 * SEC, 10)] {
        assert_eq!(single.take_up_to_at(now, 100), taken, "at {now}");
        assert_eq!(
            table.take_up_to_at(PolicyId::FIRST, b"a key", now, 100),
            taken,
            "a key at {now}"
        );
    }
}

#[test]
fn s06_leaky_bucket_with_sleeps_on_refusal() {
    let limiter = Limiter::with(state("100/s algo leaky-bucket"), Manual::new(0));
    let mut refused = Vec::new();
    for call in 0..120 {
        if !limiter.check(1).is_allowed() {
            refused.push(call);
            limiter.clock().advance(50 * MS);
        }
    }
    assert_eq!(refused, [100, 106, 112, 118]);
}

#[test]
fn s09_token_bucket() {
    assert_eq!(answers(&state("3/s"), &[0; 4]), "TTTF");

    // 15 waiters at one instant, each with 1 s of patience; the bucket starts empty.
    let limiter = Limiter::with(state("1/100ms burst 10 init 0"), Manual::new(0));
    let departures: Vec<Option<u64>> = (0..15).map(|_| limiter.reserve(1, SEC)).collect();
    let want: Vec<Option<u64>> = (0..15).map(|i| (i < 10).then_some((i + 1) * 100 * MS)).collect();
    assert_eq!(departures, want);
}

#[test]
fn s09_token_bucket_with_waiters_on_threads() {
    // Sleeping moves this clock, so the order of the threads varies; the count does not.
    let limiter = Limiter::with(state("1/100ms burst 10 init 0"), Manual::new(0));
    let passed = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..15 {
            scope.spawn(|| {
                passed.fetch_add(u64::from(limiter.wait_until(1, SEC).is_allowed()), Relaxed)
            });
        }
    });
    assert_eq!(passed.into_inner(), 10);
    assert_eq!(limiter.clock().now(), SEC);
}

#[test]
fn s10_interval_refill() {
    let times = [0, 10 * SEC, 30 * SEC, 55 * SEC, 60 * SEC];
    assert_eq!(answers(&state("3/min algo interval anchor first"), &times), "TTTFT");
    assert_eq!(answers(&state("3/min"), &times), "TTTTT");

    // Anchored to the first request, the answers are the same wherever on the clock it starts.
    let times = times.map(|t| t + 12_345_678_901);
    assert_eq!(answers(&state("3/min algo interval anchor first"), &times), "TTTFT");
}

/// A producer that ticks: at each multiple of `period` it adds `limit` permits, up to `burst`.
struct Producer {
    policy: Policy,
    next_tick: u64,
    permits: u64,
}

impl Producer {
    fn new(policy: Policy, start: u64) -> Producer {
        Producer {
            policy,
            next_tick: (start / policy.period + 1) * policy.period,
            permits: policy.init,
        }
    }

    fn take(&mut self, now: u64, cost: u64) -> (bool, u64) {
        while self.next_tick <= now {
            self.permits = (self.permits + self.policy.limit).min(self.policy.burst);
            self.next_tick += self.policy.period;
        }
        let fits = cost <= self.permits;
        if fits {
            self.permits -= cost;
        }
        (fits, self.permits)
    }
}

#[test]
fn s11_equals_a_ticking_producer() {
    let mut rng = Rng(11);
    for trace in 0..100_000 {
        // Interval refill at any limit; the token bucket at one permit a tick, where the two must
        // meet at every boundary.
        let kind = if trace % 2 == 0 { Kind::Interval } else { Kind::Gcra };
        let limit = if kind == Kind::Interval { rng.within(1, 5) } else { 1 };
        let period = rng.pick(&[7, 1_000, 333_333_333, SEC]);
        let mut policy = Policy::new(limit, period).with_kind(kind).with_burst(rng.within(1, 8));
        if kind == Kind::Gcra {
            policy.init = rng.within(0, policy.burst);
        }
        let mut tick = rng.below(1_000);
        let (limiter, mut producer) =
            (State::new(&policy).unwrap(), Producer::new(policy, tick * period));
        // The bucket that starts short counts from its first request, as the producer here does.
        for _ in 0..12 {
            let (now, cost) = (tick * period, rng.within(1, policy.burst));
            let (fits, left) = producer.take(now, cost);
            let got = limiter.check_at(now, cost);
            assert_eq!(
                (got.is_allowed(), got.remaining),
                (fits, left),
                "trace {trace}: {policy} at {now}, cost {cost}"
            );
            tick += rng.below(3) * rng.within(1, 4);
        }
    }
}

#[test]
fn s13_borrow() {
    // The first take passes at once, whatever its cost, and the next one waits until that is
    // refilled.
    let lender = Limiter::with(state("1/s borrow"), Manual::new(0));
    assert_eq!(lender.reserve(1000, NEVER), Some(0));
    assert_eq!(lender.reserve(1, NEVER), Some(1000 * SEC));

    assert_eq!(state("5/s borrow").admit_at(0, 5000), Verdict::Allowed);
    assert_eq!(state("5/s").admit_at(0, 5000), Verdict::Never);
}

#[test]
fn s13_borrow_stores_one_second_at_most_and_starts_with_nothing() {
    // Idle for an hour at 5/s: the stored permits pass, and one that the next caller pays for.
    let lender = state("5/s borrow");
    assert_eq!(answers(&lender, &[0, 0]), "TF");
    assert_eq!(answers(&lender, &[HOUR; 7]), "TTTTTTF");
}

#[test]
fn s13_borrow_with_permits_to_start_with_has_them_at_any_time() {
    for start in [0, 1, SEC, UNIX_NOW] {
        assert_eq!(answers(&state("5/s borrow init 3"), &[start; 6]), "TTTTFF", "clock at {start}");
    }
}
