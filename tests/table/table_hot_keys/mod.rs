//! Hot keys: permits taken in advance never admit more than the policy, and starve no thread.
//!
//! No other thread sees a thread's credit, so the tests play several threads in one and need no
//! interleavings.

mod calls;

use crate::common::{excess, policy, Rng, DAY, SEC};
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use tollbar::algorithm::Charge;
use tollbar::table::{Options, PolicyId, Request, Table};
use tollbar::take_many::{take_many, Limit};
use tollbar::{Policy, Verdict};

const FIRST: PolicyId = PolicyId::FIRST;
const KEY: &[u8] = b"everybody's";

/// A table without hot keys, and views of it with hot keys. Each view has its own credit, so one
/// thread of a test can play several.
struct Viewed {
    table: Table,
    descriptor: i32,
}

impl Viewed {
    fn new(capacity: u64, policies: &[Policy]) -> Viewed {
        let (table, descriptor) =
            Table::sealed(&Options::new(capacity).with_seed(7), policies).unwrap();
        Viewed { table, descriptor }
    }

    fn view(&self, keys: u32) -> Table {
        Table::open_descriptor(self.descriptor).unwrap().with_hot_keys(keys).unwrap()
    }
}

impl Deref for Viewed {
    type Target = Table;

    fn deref(&self) -> &Table {
        &self.table
    }
}

impl Drop for Viewed {
    fn drop(&mut self) {
        // SAFETY: the descriptor is this table's own.
        unsafe { libc::close(self.descriptor) };
    }
}

fn table(text: &str) -> Viewed {
    Viewed::new(1000, &[policy(text)])
}

fn admits(keys: &Table, now: u64, cost: u64) -> bool {
    keys.admit_at(FIRST, KEY, now, cost) == Verdict::Allowed
}

/// A view that has seen the key often enough to take permits of it in advance.
fn warm(table: &Viewed, now: u64) -> Table {
    let keys = table.view(64);
    (0..64).for_each(|_| {
        let _ = keys.admit_at(FIRST, KEY, now, 1);
    });
    keys
}

/// The permits that the table itself has left for the key.
fn left(table: &Table, now: u64) -> u64 {
    table.peek_at(FIRST, KEY, now, 1).remaining
}

/// Rates whose decisions are exact at every nanosecond.
const POLICIES: [&str; 10] = [
    "10/s burst 31",
    "10/s burst 32",
    "1000/s burst 100",
    "1000/s burst 1000",
    "100/min burst 5000",
    "7/s burst 640",
    "1000000/s burst 200000",
    "3000000/s burst 100000",
    "1/h burst 1000",
    "400000/s burst 40000 init 100",
];

/// While the thread has room for hot keys, a key becomes one with its first request, and its credit
/// grows.
#[test]
fn where_there_is_room_a_new_key_enters() {
    let table = table("1000000/s burst 10000000");
    let keys = table.view(64);
    let mut charged = Vec::new();
    let mut before = left(&table, SEC);
    for _ in 0..1500 {
        assert!(admits(&keys, SEC, 1));
        let now = left(&table, SEC);
        if now != before {
            charged.push(before - now);
        }
        before = now;
    }
    // With the first credit some of the full bucket is burnt.
    assert_eq!(
        (charged[0], &charged[2..]),
        (1, &[1 + 16, 1 + 64, 1 + 256, 1 + 1024, 1 + 1024][..])
    );
}

/// Views and callers without credit hoard, rest and spend, at random and in the worst order: all
/// take what they can, rest until the bucket is full, and then spend everything at one instant.
#[test]
fn no_more_passes_than_the_policy_lets() {
    let mut rng = Rng(1);
    let (mut hoarded, mut closest) = (0, i128::MIN);
    for round in 0..600u64 {
        let text = POLICIES[round as usize % POLICIES.len()];
        let terms = policy(text);
        let table = table(text);
        let refill =
            (u128::from(terms.burst) * u128::from(terms.period) / u128::from(terms.limit)) as u64;
        let mut now = rng.within(SEC, 3 * DAY);
        let views: Vec<_> = (0..rng.pick(&[1, 2, 3, 8, 20])).map(|_| table.view(64)).collect();
        let mut got: Vec<(u64, u64)> = Vec::new();
        for _ in 0..rng.within(4, 12) {
            let which = rng.below(5);
            let cost = rng.pick(&[1, 1, 1, 2, 7]);
            match which {
                // All ask until they have credit, or until the key has no permits left.
                0 => {
                    for keys in &views {
                        for _ in 0..rng.pick(&[9, 20, 70]) {
                            if admits(keys, now, 1) {
                                got.push((now, 1));
                            }
                        }
                        hoarded += u64::from(keys.admit_at(FIRST, KEY, now, 0) == Verdict::Allowed);
                    }
                }
                // They spend everything: first the bucket and then the credit, or in the other
                // order.
                1 | 2 => {
                    let drain = |got: &mut Vec<(u64, u64)>| {
                        while table.admit_at(FIRST, KEY, now, cost) == Verdict::Allowed {
                            got.push((now, cost));
                        }
                    };
                    if which == 1 {
                        drain(&mut got);
                    }
                    for keys in &views {
                        while admits(keys, now, cost) {
                            got.push((now, cost));
                        }
                    }
                    drain(&mut got);
                }
                // At random, and time goes on.
                _ => {
                    for _ in 0..300 {
                        now += rng.below(2 + refill / 200);
                        let n = rng.below(views.len() as u64 + 1) as usize;
                        let admitted = match views.get(n) {
                            Some(keys) if rng.one_in(8) => {
                                let peeked = keys.peek_at(FIRST, KEY, now, cost);
                                let decision = keys.check_at(FIRST, KEY, now, cost);
                                assert_eq!(peeked.verdict, decision.verdict, "{text}");
                                decision.is_allowed()
                            }
                            Some(keys) if rng.one_in(8) => {
                                got.push((now, keys.take_up_to_at(FIRST, KEY, now, cost)));
                                false
                            }
                            Some(keys) => admits(keys, now, cost),
                            None => table.admit_at(FIRST, KEY, now, cost) == Verdict::Allowed,
                        };
                        if admitted {
                            got.push((now, cost));
                        }
                    }
                }
            }
            now += rng.pick(&[
                0,
                1,
                5000,
                refill / 100,
                refill / 9,
                refill / 7,
                refill / 3,
                refill,
                3 * refill,
            ]);
        }
        let over = excess(&terms, &got);
        assert!(
            over <= 0,
            "round {round}, {text}: {} permits too many",
            over / i128::from(terms.period) + 1
        );
        closest = closest.max(over / i128::from(terms.period));
    }
    assert!(hoarded > 1000 && closest > -5, "the search is harmless: {hoarded}, {closest}");
}

/// Opens a view of the table whose thread has just taken credit for the key and spent none of it.
/// Half of the bucket is charged first, so that a bucket that refills never becomes full and loses
/// permits while the credit is unspent.
fn hoarder(table: &Viewed, burst: u64) -> Table {
    assert_eq!(table.admit_at(FIRST, KEY, SEC, burst / 2), Verdict::Allowed);
    let keys = warm(table, SEC);
    let before = left(table, SEC);
    while left(table, SEC) == before {
        assert!(admits(&keys, SEC, 1));
    }
    keys
}

/// Credit ends before the tick of 4,096 ns in which the bucket would be full without it. The test
/// tries instants from a tick before that to two ticks after it, each on a new table: all permits
/// are spent at once, at most the burst and at least the burst less a tick's refill.
#[test]
fn credit_ends_before_its_tick() {
    const TICK: u64 = 4096;
    for text in ["1000000/s burst 200000", "3000000/s burst 100000", "1000000000/s burst 100000000"]
    {
        let terms = policy(text);
        let twin = table(text);
        let keys = hoarder(&twin, terms.burst);
        let (charged, mut credit) = (left(&twin, SEC), 0);
        let full = SEC + twin.peek_at(FIRST, KEY, SEC, 0).reset_after;
        while admits(&keys, SEC, 1) && left(&twin, SEC) == charged {
            credit += 1;
        }
        assert!(credit >= 255, "{text}: {credit}");
        let end = full - credit * terms.period / terms.limit;
        let mut most = 0;
        for n in 0..3 * 64 {
            let table = table(text);
            let keys = hoarder(&table, terms.burst);
            let now = end - TICK + n * (TICK / 64);
            let mut got = (0..credit).filter(|_| admits(&keys, now, 1)).count() as u64;
            for cost in [terms.burst / 10, terms.burst / 1000, 1] {
                while table.admit_at(FIRST, KEY, now, cost) == Verdict::Allowed {
                    got += cost;
                }
            }
            while admits(&keys, now, 1) {
                got += 1;
            }
            assert!(
                got <= terms.burst,
                "{text}: {got} permits {} ns after the end",
                i128::from(now) - i128::from(end)
            );
            most = most.max(got);
        }
        assert!(
            terms.burst - most <= 1 + terms.limit * TICK / terms.period,
            "{text}: at most {most}"
        );
    }
}

/// Below 32 permits of burst, and whatever the burst where sixteen are left, a view decides as the
/// table does.
#[test]
fn near_the_limit_decisions_are_the_tables() {
    for text in ["10/s burst 31", "5/min", "100/s burst 16"] {
        let (plain, other) = (table(text), table(text));
        let keys = warm(&other, 0);
        (0..64).for_each(|_| {
            let _ = plain.admit_at(FIRST, KEY, 0, 1);
        });
        let (mut rng, mut now) = (Rng(3), 0);
        for _ in 0..20_000 {
            now += rng.below(SEC / 5);
            let cost = rng.below(4);
            assert_eq!(
                keys.admit_at(FIRST, KEY, now, cost),
                plain.admit_at(FIRST, KEY, now, cost),
                "{text} at {now}"
            );
        }
    }
    let table = table("1/day burst 1000");
    let keys = warm(&table, 0);
    while left(&table, 0) > 15 {
        assert!(admits(&keys, 0, 1));
    }
    // The view may spend its credit. After that each decision is the table's.
    while left(&table, 0) == 15 {
        assert!(admits(&keys, 0, 1));
    }
    for rest in (0..14).rev() {
        assert!(admits(&keys, 0, 1));
        assert_eq!(left(&table, 0), rest);
    }
    assert!(!admits(&keys, 0, 1));
}

/// A key with three times as many requests as its rate, from three views and a caller without
/// credit, passes at its rate. No caller is left out for long, and most requests of the views do
/// not reach the table.
#[test]
fn a_busy_key_has_its_rate() {
    for (text, rate) in [("1000/s burst 1000", 1000), ("100000/s burst 5000", 100_000)] {
        let table = table(text);
        let views: Vec<_> = (0..3).map(|_| table.view(64)).collect();
        let mut admitted = [0u64; 4];
        let step = SEC / (3 * rate);
        let mut now = SEC;
        let end = now + 30 * SEC;
        while now < end {
            for (n, count) in admitted.iter_mut().enumerate() {
                *count += u64::from(match views.get(n) {
                    Some(keys) => admits(keys, now, 1),
                    None => table.admit_at(FIRST, KEY, now, 1) == Verdict::Allowed,
                });
                now += step;
            }
        }
        let all: u64 = admitted.iter().sum();
        assert!(all >= 30 * rate * 99 / 100, "{text}: {admitted:?}");
    }
}

/// If the key has permits to spare, few of a view's requests reach the table.
#[test]
fn a_hot_key_is_seldom_asked_for() {
    let table = table("1000000/s burst 10000000");
    let keys = table.view(64);
    let (mut asked, mut before) = (0, left(&table, SEC));
    for _ in 0..100_000 {
        assert!(admits(&keys, SEC, 1));
        let now = left(&table, SEC);
        asked += u64::from(now != before);
        before = now;
    }
    assert!(asked < 250, "{asked} of 100000");
    // 8 to 1,024 permits at a time: at most so many are lost when the thread stops asking.
    assert!(before >= 10_000_000 - 10_000_000 / 8 - 100_000 - 2048, "{before}");
}

/// The same with a bucket that is always full: some permits of it are lost, so that credit is valid
/// for a while.
#[test]
fn a_hot_key_with_a_full_bucket_is_seldom_asked_for() {
    let table = table("1000000/s burst 1000000");
    let keys = table.view(64);
    let (mut asked, mut now) = (0, SEC);
    for _ in 0..100_000 {
        now += 10_000;
        let before = left(&table, now);
        assert!(admits(&keys, now, 1));
        asked += u64::from(left(&table, now) != before);
        assert!(before >= 1_000_000 * 7 / 8 - 2048, "{before}");
    }
    assert!(asked < 250, "{asked} of 100000");
}

/// No view spends the credit of another, and credit is lost once the bucket would be full.
#[test]
fn credit_expires_and_is_nobody_elses() {
    let table = table("100/s burst 1000");
    let keys = warm(&table, SEC);
    let had = 1000 - left(&table, SEC);
    assert!(had > 64, "{had} have been charged");
    // The bucket is full after ten seconds at most; the credit is gone, and nothing more passes
    // than the burst.
    let later = SEC + 10 * SEC;
    let mut passed = 0;
    while admits(&keys, later, 1) {
        passed += 1;
    }
    assert!((800..=1000).contains(&passed), "{passed}");
}

#[test]
fn a_change_of_policy_voids_credit() {
    let table = table("1000/s burst 1000");
    let keys = warm(&table, SEC);
    table.set_policy(FIRST, &policy("1/day burst 1")).unwrap();
    // The key keeps the permits that it has left in the table, up to the new burst, without the
    // credit.
    assert_eq!(keys.admit_at(FIRST, KEY, SEC, 1), Verdict::Allowed);
    assert_eq!(keys.admit_at(FIRST, KEY, SEC, 1), Verdict::Denied);
    assert_eq!(keys.admit_at(FIRST, KEY, SEC, 2), Verdict::Never);
}

#[test]
fn what_has_no_credit_is_the_tables() {
    let policies = ["3/min algo fixed-window", "0/s", "5/min", "1000/s burst 1000"].map(policy);
    let table = Viewed::new(1000, &policies);
    let keys = table.view(64);
    let count = |n: u32, key: &[u8], times: usize| {
        (0..times)
            .filter(|_| keys.admit_at(PolicyId::new(n), key, DAY, 1) == Verdict::Allowed)
            .count()
    };
    assert_eq!(count(0, KEY, 100), 3);
    assert_eq!(count(1, KEY, 100), 0);
    assert_eq!(count(2, KEY, 100), 5);
    assert_eq!(count(3, b"", 9), 0);
    assert_eq!(count(4, KEY, 9), 0);
    assert_eq!(count(3, KEY, 500), 500);
    // Exempt keys, and all other keys while the table has exempt ones.
    assert!(table.exempt(PolicyId::new(2), KEY).is_ok());
    assert_eq!(count(2, KEY, 100), 100);
    assert_eq!(count(2, b"another", 100), 5);
    assert_eq!(keys.admit(PolicyId::new(2), KEY, 1), Verdict::Allowed);
    drop(keys);
    for keys in [0, 1, 63, 65, 1000, u32::MAX] {
        let keys = table.view(keys);
        assert_eq!(keys.admit_at(PolicyId::new(2), b"one more", DAY, 9), Verdict::Never);
    }
}

/// A cost of 0 takes nothing, and costs above the credit reach the table.
#[test]
fn costs() {
    let table = table("1/day burst 100000");
    let keys = table.view(64);
    assert!(admits(&keys, SEC, 1));
    for _ in 0..100 {
        assert!(admits(&keys, SEC, 0));
    }
    assert_eq!(left(&table, SEC), 99_999);
    let mut taken = 0;
    for cost in (1..400).cycle().take(1000).chain([5000, 20_000]) {
        taken += if admits(&keys, SEC, cost) { cost } else { 0 };
    }
    let rest = left(&table, SEC);
    assert!(taken + rest <= 100_000);
    assert_eq!(keys.admit_at(FIRST, KEY, SEC, 100_001), Verdict::Never);
}

/// More keys than places, and half of all requests for keys that come once: the keys that come
/// again and again stay, until other keys do so.
#[test]
fn the_hot_ones_stay() {
    let table = Viewed::new(1_000_000, &[policy("1000000/s burst 10000000")]);
    let keys = table.view(64);
    let mut rng = Rng(9);
    for first in [0, 1000] {
        let (mut hot, mut asked) = (0, 0);
        for n in 0..400_000u64 {
            let is_hot = n % 2 == 0;
            let key = (if is_hot { first + rng.below(40) } else { first << 32 | n }).to_le_bytes();
            let before = table.peek_at(FIRST, &key, SEC, 1).remaining;
            assert_eq!(keys.admit_at(FIRST, &key, SEC, 1), Verdict::Allowed);
            if is_hot && n >= 200_000 {
                hot += 1;
                asked += u64::from(table.peek_at(FIRST, &key, SEC, 1).remaining != before);
            }
        }
        // By chance some sets of four places have five hot keys or more.
        assert!(asked < hot / 20, "{asked} of {hot}");
    }
}

/// Real threads on one key: together they get at most the bound of the elapsed time, and the table
/// was charged for all of it.
#[test]
fn threads_share_a_key() {
    let terms = policy("1000000/s burst 50000");
    let table = Viewed::new(1000, &[terms]);
    let keys = table.view(64);
    let admitted = AtomicU64::new(0);
    let start = table.now();
    thread::scope(|scope| {
        for n in 0..4u64 {
            let (table, keys, admitted) = (&table, &keys, &admitted);
            scope.spawn(move || {
                let mut given = 0;
                for _ in 0..400_000 {
                    given += u64::from(match n {
                        3 => table.admit(FIRST, KEY, 1) == Verdict::Allowed,
                        _ => keys.admit(FIRST, KEY, 1) == Verdict::Allowed,
                    });
                }
                admitted.fetch_add(given, Ordering::Relaxed);
            });
        }
    });
    let gone = table.now() - start;
    let admitted = admitted.into_inner();
    assert!(admitted <= 50_000 + gone / 1000 + 1, "{admitted} in {gone} ns");
    assert!(admitted >= 40_000, "{admitted}");
}
