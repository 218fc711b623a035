//! The keys that a table has refused most.

use crate::common::{Rng, DAY, SEC};
use std::collections::HashMap;
use tollbar::decision::Reason;
use tollbar::table::{Options, PolicyId, Refused, RequestError, Table, TEXT_MOST};
use tollbar::take_many::{take_many_at, Limit};
use tollbar::{Policy, Verdict};

const FIRST: PolicyId = PolicyId::FIRST;
const NOW: u64 = 100 * DAY;

fn table(policies: &[&str]) -> Table {
    let policies: Vec<Policy> = policies.iter().map(|text| text.parse().unwrap()).collect();
    Table::private(&Options::new(1).with_seed(3), &policies).unwrap()
}

fn top(table: &Table, now: u64) -> Vec<(u32, String, u64)> {
    let mut top = [Refused::NONE; 300];
    let length = table.top_refused_at(now, &mut top);
    let entry = |refused: &Refused| {
        (
            refused.policy.number(),
            String::from_utf8_lossy(refused.key()).into_owned(),
            refused.count,
        )
    };
    top[..length].iter().map(entry).collect()
}

/// Refuses `key` so many times.
fn refuse(table: &Table, policy: PolicyId, key: &[u8], times: u64) {
    while table.admit_at(policy, key, NOW, 1) == Verdict::Allowed {}
    for _ in 1..times {
        assert_eq!(table.admit_at(policy, key, NOW, 1), Verdict::Denied);
    }
}

#[test]
fn a_table_records_refusals_after_a_call_has_begun_it() {
    let table = table(&["2/day", "5/day algo fixed-window"]);
    refuse(&table, FIRST, b"before", 10);
    assert!(!table.records_refusals() && top(&table, NOW).is_empty());
    table.record_refusals(true);
    assert!(table.records_refusals());
    refuse(&table, FIRST, b"alice", 3);
    refuse(&table, FIRST, b"bob", 7);
    refuse(&table, PolicyId::new(1), b"alice", 5);
    let entry = |policy, key: &str, count| (policy, key.to_owned(), count);
    let expected = [entry(0, "bob", 7), entry(1, "alice", 5), entry(0, "alice", 3)];
    assert_eq!(top(&table, NOW), expected);
    // The first of them, if there is room for two.
    let mut two = [Refused::NONE; 2];
    assert_eq!(
        (table.top_refused_at(NOW, &mut two), two[0].key(), two[1].count),
        (2, &b"bob"[..], 5)
    );
    assert_eq!(table.top_refused_at(NOW, &mut []), 0);
    table.record_refusals(false);
    refuse(&table, FIRST, b"bob", 100);
    assert_eq!(top(&table, NOW), expected);
}

/// Each kind of call records its refusals: a key once for each refused request.
#[test]
fn every_call_records() {
    let on_the_clock = table(&["2/day"]);
    on_the_clock.record_refusals(true);
    assert_eq!(on_the_clock.take_up_to(FIRST, b"wait", 2), 2);
    assert!(!on_the_clock.wait_ns(FIRST, b"wait", 1, 0).is_allowed());
    assert_eq!(top(&on_the_clock, on_the_clock.now()), [(0, "wait".to_owned(), 1)]);
    let table = table(&["2/day"]).with_hot_keys(64).unwrap();
    table.record_refusals(true);
    let first = |key: &[u8]| assert_eq!(table.take_up_to_at(FIRST, key, NOW, 2), 2);
    first(b"check");
    assert!(!table.check_at(FIRST, b"check", NOW, 1).is_allowed());
    first(b"take_up_to");
    assert_eq!(table.take_up_to_at(FIRST, b"take_up_to", NOW, 1), 0);
    first(b"reserve");
    assert!(table.reserve_at(FIRST, b"reserve", NOW, 1, NOW).is_err());
    first(b"leaving");
    assert!(!table.check_leaving_at(FIRST, b"leaving", NOW, 1, 1).unwrap().is_allowed());
    first(b"receipt");
    assert!(!table.take_at(FIRST, b"receipt", NOW, 1).unwrap().0.is_allowed());
    first(b"batch");
    let requests = [tollbar::table::Request { policy: FIRST, key: &b"batch"[..], cost: 1 }];
    table.admit_many_at(NOW, &requests, &mut [Verdict::Never]);
    first(b"take_many");
    let limits = [
        Limit::Key(&table, FIRST, b"never refused", 1),
        Limit::Key(&table, FIRST, b"take_many", 1),
    ];
    assert!(!take_many_at(&limits, NOW).unwrap().decision.is_allowed());
    let mut keys: Vec<_> =
        top(&table, NOW).into_iter().map(|(_, key, count)| (key, count)).collect();
    keys.sort();
    let expected = ["batch", "check", "leaving", "receipt", "reserve", "take_many", "take_up_to"];
    assert_eq!(keys, expected.map(|key| (key.to_owned(), 1)));
}

/// A caller that refuses by itself reports the key: the refusal is counted, and recorded if the
/// table records refusals.
#[test]
fn a_refusal_of_the_callers() {
    let table = table(&["2/day", "3/day"]);
    let second = PolicyId::new(1);
    let refuse =
        |policy, key: &[u8]| table.count_refused(policy, key, Verdict::Denied, Reason::Rate);
    assert_eq!(refuse(second, b"before"), Ok(()));
    table.record_refusals(true);
    // Both reports in one of the times after which counts are halved.
    let period = 1 << 36;
    while period - table.now() % period < 10 * SEC {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert_eq!(
        (refuse(second, b"ann"), refuse(second, b"ann"), refuse(second, b"")),
        (Ok(()), Ok(()), Ok(()))
    );
    assert_eq!(refuse(PolicyId::new(2), b"ann"), Err(RequestError::NoSuchPolicy));
    assert_eq!(top(&table, table.now()), [(1, "ann".to_owned(), 2)]);
    let counts = table.counts(second).unwrap();
    assert_eq!((counts.allowed, counts.denied, counts.never), (0, 4, 0));
}

/// A long key is cut, and bytes of any value are kept.
#[test]
fn keys_are_bytes() {
    let table = table(&["1/day"]);
    table.record_refusals(true);
    for length in [1, TEXT_MOST - 1, TEXT_MOST, TEXT_MOST + 1, 1_000] {
        let key: Vec<u8> = (0..length).map(|n| (n * 7 + length) as u8).collect();
        refuse(&table, FIRST, &key, 2);
        let mut top = [Refused::NONE; 300];
        let length = table.top_refused_at(NOW, &mut top);
        let found = top[..length].iter().find(|refused| key.starts_with(refused.key()));
        let found = found.unwrap_or_else(|| panic!("a key of {} bytes", key.len()));
        assert_eq!(found.is_cut, key.len() > TEXT_MOST);
        assert_eq!(found.key().len(), key.len().min(TEXT_MOST));
    }
}

/// A count is halved in each period of 2^36 ns, whether the key is refused again or not.
#[test]
fn counts_fade() {
    const PERIOD: u64 = 1 << 36;
    let table = table(&["1/day"]);
    table.record_refusals(true);
    refuse(&table, FIRST, b"key", 1_000);
    let began = NOW / PERIOD * PERIOD;
    let count = |now| top(&table, now).first().map_or(0, |refused| refused.2);
    assert_eq!(
        [0, 1, 2, 9, 10, 100].map(|periods| count(began + periods * PERIOD)),
        [1_000, 500, 250, 1, 0, 0]
    );
    let _ = table.admit_at(FIRST, b"key", began + 3 * PERIOD, 1);
    assert_eq!(count(began + 3 * PERIOD), 126);
    // Of a clock that goes back nothing is counted twice.
    assert_eq!(count(began), 126);
}

/// Of a million keys whose frequencies follow Zipf's law, nineteen of the twenty that were refused
/// most are found, while each of a flood of other keys is refused once.
#[test]
fn the_most_refused_of_a_million_keys_are_found() {
    const KEYS: usize = 1_000_000;
    const REQUESTS: usize = 1_000_000;
    for exponent in [1.0, 0.8] {
        let mut sum = 0.0;
        let reached: Vec<f64> = (1..=KEYS)
            .map(|rank| {
                sum += (rank as f64).powf(-exponent);
                sum
            })
            .collect();
        // A policy that admits nobody: each request is a refusal.
        let table = table(&["1/1000s burst 1"]);
        table.record_refusals(true);
        let (rng, mut exact) = (&mut Rng(11), HashMap::new());
        for n in 0..REQUESTS as u64 {
            let at = (rng.below(1 << 53) as f64 / (1u64 << 53) as f64) * sum;
            let key = (reached.partition_point(|reached| *reached < at) as u64).to_le_bytes();
            // The cost is above the burst, so the table stores no key.
            assert_eq!(table.admit_at(FIRST, &key, NOW + n * 1_000, 2), Verdict::Never);
            *exact.entry(key).or_insert(0u64) += 1;
            let _ = table.admit_at(FIRST, &(n + (1 << 40)).to_le_bytes(), NOW + n * 1_000, 2);
        }
        let mut most: Vec<_> = exact.into_iter().map(|(key, count)| (count, key)).collect();
        most.sort_unstable();
        let mut top = [Refused::NONE; 20];
        assert_eq!(table.top_refused_at(NOW + SEC, &mut top), 20);
        let found = most
            .iter()
            .rev()
            .take(20)
            .filter(|(_, key)| top.iter().any(|refused| refused.key() == key))
            .count();
        println!("zipf {exponent}: {found} of 20");
        assert!(found >= 19, "zipf {exponent}: {found} of 20");
    }
}
