//! Hot keys: what threads take in advance never lets more pass than the policy does, and starves nobody.

mod common;

use common::{excess, policy, Rng, DAY, SEC};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use tollbar::table::{HotKeys, Options, PolicyId, Table};
use tollbar::Verdict;

const FIRST: PolicyId = PolicyId::FIRST;
const KEY: &[u8] = b"everybody's";

fn table(text: &str) -> Table {
    Table::private(&Options::new(1000).with_seed(7), &[policy(text)]).unwrap()
}

fn admits(keys: &mut HotKeys, now: u64, cost: u64) -> bool {
    keys.admit_at(FIRST, KEY, now, cost) == Verdict::Allowed
}

/// A handle that has seen the key often enough to take permits of it in advance.
fn warm<'a>(table: &'a Table, now: u64) -> HotKeys<'a> {
    let mut keys = HotKeys::new(table, 64).unwrap();
    (0..64).for_each(|_| {
        keys.admit_at(FIRST, KEY, now, 1);
    });
    keys
}

/// What the table itself has left for the key.
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

/// A key is one of the hot ones from its first request on while there is room, and its credit grows.
#[test]
fn where_there_is_room_a_newcomer_enters() {
    let table = table("1000000/s burst 10000000");
    let mut keys = HotKeys::new(&table, 64).unwrap();
    let mut charged = Vec::new();
    let mut before = left(&table, SEC);
    for _ in 0..1500 {
        assert!(admits(&mut keys, SEC, 1));
        let now = left(&table, SEC);
        if now != before {
            charged.push(before - now);
        }
        before = now;
    }
    // With the first credit some of the full bucket is burnt.
    assert_eq!((charged[0], &charged[2..]), (1, &[1 + 16, 1 + 64, 1 + 256, 1 + 1024, 1 + 1024][..]));
}

/// Handles hoard, rest and spend, with others that have no handle, at random and as it would hurt most: all take what they can, rest
/// until the bucket is full, and then everything is spent at one instant.
#[test]
fn no_more_passes_than_the_policy_lets() {
    let mut rng = Rng(1);
    let (mut hoarded, mut closest) = (0, i128::MIN);
    for round in 0..600u64 {
        let text = POLICIES[round as usize % POLICIES.len()];
        let terms = policy(text);
        let table = table(text);
        let refill = (u128::from(terms.burst) * u128::from(terms.period) / u128::from(terms.limit)) as u64;
        let mut now = rng.within(SEC, 3 * DAY);
        let mut handles: Vec<_> = (0..rng.pick(&[1, 2, 3, 8, 20])).map(|_| HotKeys::new(&table, 64).unwrap()).collect();
        let mut got: Vec<(u64, u64)> = Vec::new();
        for _ in 0..rng.within(4, 12) {
            let which = rng.below(5);
            let cost = rng.pick(&[1, 1, 1, 2, 7]);
            match which {
                // All ask until they have taken something in advance, or there is nothing more to be had.
                0 => {
                    for keys in &mut handles {
                        for _ in 0..rng.pick(&[9, 20, 70]) {
                            if admits(keys, now, 1) {
                                got.push((now, 1));
                            }
                        }
                        hoarded += u64::from(keys.admit_at(FIRST, KEY, now, 0) == Verdict::Allowed);
                    }
                }
                // Everything is spent: what is in the bucket first, then what is in the purses; or the other way round.
                1 | 2 => {
                    let drain = |got: &mut Vec<(u64, u64)>| {
                        while table.admit_at(FIRST, KEY, now, cost) == Verdict::Allowed {
                            got.push((now, cost));
                        }
                    };
                    if which == 1 {
                        drain(&mut got);
                    }
                    for keys in &mut handles {
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
                        let n = rng.below(handles.len() as u64 + 1) as usize;
                        let admitted = match handles.get_mut(n) {
                            Some(keys) => admits(keys, now, cost),
                            None => table.admit_at(FIRST, KEY, now, cost) == Verdict::Allowed,
                        };
                        if admitted {
                            got.push((now, cost));
                        }
                    }
                }
            }
            now += rng.pick(&[0, 1, 5000, refill / 100, refill / 9, refill / 7, refill / 3, refill, 3 * refill]);
        }
        let over = excess(&terms, &got);
        assert!(over <= 0, "round {round}, {text}: {} permits too many", over / i128::from(terms.period) + 1);
        closest = closest.max(over / i128::from(terms.period));
    }
    assert!(hoarded > 1000 && closest > -5, "the search is harmless: {hoarded}, {closest}");
}

/// A handle that has just taken credit for the key, all of which is left. Half of the bucket is taken before, so that nothing of it is burnt for the credit.
fn hoarder<'a>(table: &'a Table, burst: u64) -> HotKeys<'a> {
    assert_eq!(table.admit_at(FIRST, KEY, SEC, burst / 2), Verdict::Allowed);
    let mut keys = warm(table, SEC);
    let before = left(table, SEC);
    while left(table, SEC) == before {
        assert!(admits(&mut keys, SEC, 1));
    }
    keys
}

/// Credit ends before the tick of 4,096 ns in which the bucket would be full without it. Instants from a tick before to two ticks after that are
/// tried, each on a table of its own: everything is spent at once, which is the burst at most, and within a tick's refill of it.
#[test]
fn credit_ends_before_its_tick() {
    const TICK: u64 = 4096;
    for text in ["1000000/s burst 200000", "3000000/s burst 100000", "1000000000/s burst 100000000"] {
        let terms = policy(text);
        let twin = table(text);
        let mut keys = hoarder(&twin, terms.burst);
        let (charged, mut credit) = (left(&twin, SEC), 0);
        let full = SEC + twin.peek_at(FIRST, KEY, SEC, 0).reset_after;
        while admits(&mut keys, SEC, 1) && left(&twin, SEC) == charged {
            credit += 1;
        }
        assert!(credit >= 255, "{text}: {credit}");
        let end = full - credit * terms.period / terms.limit;
        let mut most = 0;
        for n in 0..3 * 64 {
            let table = table(text);
            let mut keys = hoarder(&table, terms.burst);
            let now = end - TICK + n * (TICK / 64);
            let mut got = (0..credit).filter(|_| admits(&mut keys, now, 1)).count() as u64;
            for cost in [terms.burst / 10, terms.burst / 1000, 1] {
                while table.admit_at(FIRST, KEY, now, cost) == Verdict::Allowed {
                    got += cost;
                }
            }
            while admits(&mut keys, now, 1) {
                got += 1;
            }
            assert!(got <= terms.burst, "{text}: {got} permits {} ns after the end", i128::from(now) - i128::from(end));
            most = most.max(got);
        }
        assert!(terms.burst - most <= 1 + terms.limit * TICK / terms.period, "{text}: at most {most}");
    }
}

/// Below 32 permits of burst, and whatever the burst where sixteen are left, a handle decides as the table does.
#[test]
fn near_the_limit_decisions_are_the_tables() {
    for text in ["10/s burst 31", "5/min", "100/s burst 16"] {
        let (plain, other) = (table(text), table(text));
        let mut keys = warm(&other, 0);
        (0..64).for_each(|_| {
            plain.admit_at(FIRST, KEY, 0, 1);
        });
        let (mut rng, mut now) = (Rng(3), 0);
        for _ in 0..20_000 {
            now += rng.below(SEC / 5);
            let cost = rng.below(4);
            assert_eq!(keys.admit_at(FIRST, KEY, now, cost), plain.admit_at(FIRST, KEY, now, cost), "{text} at {now}");
        }
    }
    let table = table("1/day burst 1000");
    let mut keys = warm(&table, 0);
    while left(&table, 0) > 15 {
        assert!(admits(&mut keys, 0, 1));
    }
    // What it had in advance it may spend; then each is the table's own.
    while left(&table, 0) == 15 {
        assert!(admits(&mut keys, 0, 1));
    }
    for rest in (0..14).rev() {
        assert!(admits(&mut keys, 0, 1));
        assert_eq!(left(&table, 0), rest);
    }
    assert!(!admits(&mut keys, 0, 1));
}

/// A key that is asked for three times as often as it may, by three handles and one without, passes at its rate; nobody is left out for
/// long; and most requests of the handles do not come to the table.
#[test]
fn a_busy_key_has_its_rate() {
    for (text, rate) in [("1000/s burst 1000", 1000), ("100000/s burst 5000", 100_000)] {
        let table = table(text);
        let mut handles: Vec<_> = (0..3).map(|_| HotKeys::new(&table, 64).unwrap()).collect();
        let mut admitted = [0u64; 4];
        let step = SEC / (3 * rate);
        let mut now = SEC;
        let end = now + 30 * SEC;
        while now < end {
            for (n, count) in admitted.iter_mut().enumerate() {
                *count += u64::from(match handles.get_mut(n) {
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

/// Where there is plenty, a request in many comes to the table.
#[test]
fn a_hot_key_is_seldom_asked_for() {
    let table = table("1000000/s burst 10000000");
    let mut keys = HotKeys::new(&table, 64).unwrap();
    let (mut asked, mut before) = (0, left(&table, SEC));
    for _ in 0..100_000 {
        assert!(admits(&mut keys, SEC, 1));
        let now = left(&table, SEC);
        asked += u64::from(now != before);
        before = now;
    }
    assert!(asked < 250, "{asked} of 100000");
    // 8 to 1,024 at a time: no more than that is lost when nobody asks any more.
    assert!(before >= 10_000_000 - 10_000_000 / 8 - 100_000 - 2048, "{before}");
}

/// Neither where the bucket is always full: some of it is burnt, so that credit is good for a while.
#[test]
fn a_hot_key_with_a_full_bucket_is_seldom_asked_for() {
    let table = table("1000000/s burst 1000000");
    let mut keys = HotKeys::new(&table, 64).unwrap();
    let (mut asked, mut now) = (0, SEC);
    for _ in 0..100_000 {
        now += 10_000;
        let before = left(&table, now);
        assert!(admits(&mut keys, now, 1));
        asked += u64::from(left(&table, now) != before);
        assert!(before >= 1_000_000 * 7 / 8 - 2048, "{before}");
    }
    assert!(asked < 250, "{asked} of 100000");
}

/// What is in one handle cannot be had by another, and is lost once the bucket would be full.
#[test]
fn credit_expires_and_is_nobody_elses() {
    let table = table("100/s burst 1000");
    let mut keys = warm(&table, SEC);
    let had = 1000 - left(&table, SEC);
    assert!(had > 64, "{had} have been charged");
    // The bucket is full after ten seconds at most; what was in the purse is gone, and nothing more passes than the burst.
    let later = SEC + 10 * SEC;
    let mut passed = 0;
    while admits(&mut keys, later, 1) {
        passed += 1;
    }
    assert!((800..=1000).contains(&passed), "{passed}");
}

#[test]
fn a_change_of_policy_voids_credit() {
    let table = table("1000/s burst 1000");
    let mut keys = warm(&table, SEC);
    table.set_policy(FIRST, &policy("1/day burst 1")).unwrap();
    // The key keeps as many permits as it has left in the table, cut to the new burst; the credit is not among them.
    assert_eq!(keys.admit_at(FIRST, KEY, SEC, 1), Verdict::Allowed);
    assert_eq!(keys.admit_at(FIRST, KEY, SEC, 1), Verdict::Denied);
    assert_eq!(keys.admit_at(FIRST, KEY, SEC, 2), Verdict::Never);
}

#[test]
fn what_has_no_credit_is_the_tables() {
    let policies = ["3/min algo fixed-window", "0/s", "5/min", "1000/s burst 1000"].map(policy);
    let table = Table::private(&Options::new(1000), &policies).unwrap();
    let mut keys = HotKeys::new(&table, 64).unwrap();
    let mut count = |n: u32, key: &[u8], times: usize| {
        (0..times).filter(|_| keys.admit_at(PolicyId::new(n), key, DAY, 1) == Verdict::Allowed).count()
    };
    assert_eq!(count(0, KEY, 100), 3);
    assert_eq!(count(1, KEY, 100), 0);
    assert_eq!(count(2, KEY, 100), 5);
    assert_eq!(count(3, b"", 9), 0);
    assert_eq!(count(4, KEY, 9), 0);
    assert_eq!(count(3, KEY, 500), 500);
    // Exempt keys, and all others while there are some.
    assert!(table.exempt(PolicyId::new(2), KEY).is_ok());
    assert_eq!(count(2, KEY, 100), 100);
    assert_eq!(count(2, b"another", 100), 5);
    assert_eq!(keys.admit(PolicyId::new(2), KEY, 1), Verdict::Allowed);
    assert!(core::ptr::eq(keys.table(), &table));
    drop(keys);
    for keys in [0, 1, 63, 65, 1000, u32::MAX] {
        let mut keys = HotKeys::new(&table, keys).unwrap();
        assert_eq!(keys.admit_at(PolicyId::new(2), b"one more", DAY, 9), Verdict::Never);
    }
}

/// A cost of 0 takes nothing, and costs above the credit come to the table.
#[test]
fn costs() {
    let table = table("1/day burst 100000");
    let mut keys = HotKeys::new(&table, 64).unwrap();
    assert!(admits(&mut keys, SEC, 1));
    for _ in 0..100 {
        assert!(admits(&mut keys, SEC, 0));
    }
    assert_eq!(left(&table, SEC), 99_999);
    let mut taken = 0;
    for cost in (1..400).cycle().take(1000).chain([5000, 20_000]) {
        taken += if admits(&mut keys, SEC, cost) { cost } else { 0 };
    }
    let rest = left(&table, SEC);
    assert!(taken + rest <= 100_000);
    assert_eq!(keys.admit_at(FIRST, KEY, SEC, 100_001), Verdict::Never);
}

/// More keys than places, half of all requests for keys that come once: those that come again and again stay, until
/// it is others that do.
#[test]
fn the_hot_ones_stay() {
    let table = Table::private(&Options::new(1_000_000).with_seed(7), &[policy("1000000/s burst 10000000")]).unwrap();
    let mut keys = HotKeys::new(&table, 64).unwrap();
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
        // By chance some sets of four have five of them or more.
        assert!(asked < hot / 20, "{asked} of {hot}");
    }
}

/// Real threads on one key: what all of them are given is within the bound of the time that has gone by, and what was
/// charged covers it.
#[test]
fn threads_share_a_key() {
    let terms = policy("1000000/s burst 50000");
    let table = Table::private(&Options::new(1000), &[terms]).unwrap();
    let admitted = AtomicU64::new(0);
    let start = table.now();
    thread::scope(|scope| {
        for n in 0..4u64 {
            let (table, admitted) = (&table, &admitted);
            scope.spawn(move || {
                let mut keys = HotKeys::new(table, 64).unwrap();
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
