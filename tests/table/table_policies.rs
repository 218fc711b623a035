//! Many keys, many policies, exempt and missing keys, and how full a table can be.

use crate::common::{policy, Rng, DAY, HOUR, MIN, SEC};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::Barrier;
use std::thread;
use tollbar::table::{
    Missing, OnFull, Options, PolicyId, Request, RequestError, Table, TableError, POLICIES_MOST,
};
use tollbar::{Decision, Policy, Reason, Verdict, NEVER};

const FIRST: PolicyId = PolicyId::FIRST;
const NOW: u64 = 50 * DAY;

fn table(options: &Options, policies: &[&str]) -> Table {
    let policies: Vec<Policy> = policies.iter().map(|text| policy(text)).collect();
    Table::private(&options.with_seed(11), &policies).unwrap()
}

fn admits(table: &Table, policy: PolicyId, key: &[u8], now: u64) -> bool {
    table.admit_at(policy, key, now, 1) == Verdict::Allowed
}

/// A million keys in five rounds, each round in another order: each key gets exactly its three
/// permits, whatever the other keys do.
#[test]
fn s24_a_million_keys_do_not_meet() {
    const KEYS: u64 = 1_000_000;
    let table = table(&Options::new(1_250_000), &["3/h"]);
    let mut got = vec![0u8; KEYS as usize];
    for round in 0..5u64 {
        for n in 0..KEYS {
            // A step that has no factor in common with a million passes through all of it.
            let key = (n * (700_001 + 2 * (round * 50 + 6)) + round) % KEYS;
            got[key as usize] += u8::from(admits(&table, FIRST, &key.to_le_bytes(), NOW));
            assert!(round != 0 || got[key as usize] == 1, "key {key} had been charged for another");
        }
    }
    assert!(got.iter().all(|got| *got == 3));
    let stats = table.stats();
    assert_eq!((stats.keys, stats.inserted, stats.refused, stats.reclaimed), (KEYS, KEYS, 0, 0));
    assert_eq!(table.entries(NOW).filter(|entry| entry.remaining == 0).count() as u64, KEYS);
}

/// Keys of all lengths, and similar keys: one more byte, another byte, a zero at the end.
#[test]
fn s24_keys_are_bytes() {
    let table = table(&Options::new(100_000), &["1/h"]);
    let mut keys: Vec<Vec<u8>> = Vec::new();
    for length in 1..200usize {
        keys.push(vec![0; length]);
        keys.push(vec![0xff; length]);
        for place in 0..length {
            let mut key = vec![b'a'; length];
            key[place] = b'b';
            keys.push(key);
        }
    }
    keys.push(vec![0; 1 << 20]);
    for key in &keys {
        assert!(admits(&table, FIRST, key, NOW), "{} bytes: {key:?}", key.len());
    }
    assert!(keys.iter().all(|key| !admits(&table, FIRST, key, NOW)));
}

/// Makes each kind of call for `key` once. Returns whether each was admitted.
fn ways(table: &Table, id: PolicyId, key: &[u8]) -> [bool; 7] {
    let none = Decision {
        verdict: Verdict::Never,
        reason: Reason::Burst,
        remaining: 7,
        retry_after: 7,
        reset_after: 7,
        bound: 0,
    };
    let (mut verdicts, mut decisions) = ([Verdict::Never], [none]);
    let request = [Request { policy: id, key, cost: 1 }];
    table.admit_many_at(NOW, &request, &mut verdicts);
    table.check_many_at(NOW, &request, &mut decisions);
    let check = table.check_at(id, key, NOW, 1);
    assert_eq!(decisions[0], check);
    if key.is_empty() {
        let wait = if check.is_allowed() { 0 } else { NEVER };
        assert_eq!((check.retry_after, check.reset_after), (wait, wait));
    }
    [
        check.is_allowed(),
        decisions[0].is_allowed(),
        verdicts[0] == Verdict::Allowed,
        admits(table, id, key, NOW),
        table.peek_at(id, key, NOW, 1).is_allowed(),
        table.take_up_to_at(id, key, NOW, 9) == 9,
        table.admit_at(id, key, NOW, u64::MAX) == Verdict::Allowed,
    ]
}

#[test]
fn s25_a_missing_key_is_answered_as_the_options_say() {
    for (missing, admitted) in
        [(Missing::Deny, false), (Missing::Allow, true), (Missing::Report, false)]
    {
        let table = table(&Options { missing, ..Options::new(10) }, &["1/h", "0/s"]);
        for id in [FIRST, PolicyId::new(1)] {
            for _ in 0..3 {
                assert_eq!(ways(&table, id, b""), [admitted; 7], "{missing:?}");
            }
        }
        assert_eq!((table.stats().keys, table.entries(NOW).count()), (0, 0), "nobody was charged");
        // A zero byte is a key.
        assert!(admits(&table, FIRST, b"\0", NOW) && !admits(&table, FIRST, b"\0", NOW));
    }
}

#[test]
fn s25_an_exempt_key_is_never_charged() {
    let table = table(&Options::new(1000), &["1/h", "1/h", "0/s"]);
    let second = PolicyId::new(1);
    assert!(admits(&table, FIRST, b"monitor", NOW) && !admits(&table, FIRST, b"monitor", NOW));
    for id in [FIRST, PolicyId::new(2)] {
        table.exempt(id, b"monitor").unwrap();
        assert_eq!(table.exempt(id, b"monitor"), Ok(()), "twice is once");
        assert_eq!(ways(&table, id, b"monitor"), [true; 7]);
    }
    // Under another policy it is charged like any key, and so are other keys.
    assert!(admits(&table, second, b"monitor", NOW) && !admits(&table, second, b"monitor", NOW));
    assert!(admits(&table, FIRST, b"monitors", NOW) && !admits(&table, FIRST, b"monitors", NOW));
    assert_eq!(table.stats().keys, 3);
    // It has the same debt as before.
    assert_eq!(table.unexempt(FIRST, b"monitor"), Ok(true));
    assert_eq!(table.unexempt(FIRST, b"monitor"), Ok(false));
    assert_eq!(ways(&table, FIRST, b"monitor"), [false; 7]);
    assert!(admits(&table, FIRST, b"monitor", NOW + HOUR));
    assert_eq!(table.exempt(PolicyId::new(3), b"x"), Err(RequestError::NoSuchPolicy.into()));
}

#[test]
fn s25_as_many_exempt_keys_as_there_is_room_for() {
    let table = table(&Options::new(1000), &["0/s"]);
    let mut exempt = 0u32;
    let full = loop {
        match table.exempt(FIRST, &exempt.to_le_bytes()) {
            Ok(()) => exempt += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(full, TableError::Exempt);
    assert!(exempt >= 1_536, "{exempt}");
    for key in 0..2 * exempt {
        assert_eq!(
            admits(&table, FIRST, &key.to_le_bytes(), NOW),
            key < exempt,
            "key {key} of {exempt}"
        );
    }
    for key in 0..exempt {
        assert_eq!(table.unexempt(FIRST, &key.to_le_bytes()), Ok(true));
        assert!(!admits(&table, FIRST, &key.to_le_bytes(), NOW));
    }
    // One after the other without end: the set reuses its places.
    for key in 0..20_000u32 {
        table.exempt(FIRST, &key.to_le_bytes()).unwrap();
        assert!(admits(&table, FIRST, &key.to_le_bytes(), NOW));
        assert_eq!(table.unexempt(FIRST, &key.to_le_bytes()), Ok(true));
        assert!(!admits(&table, FIRST, &key.to_le_bytes(), NOW));
    }
}

/// One key under a hundred policies is a hundred keys.
#[test]
fn a_key_under_each_policy_is_another() {
    let texts: Vec<String> = (1..=100).map(|n| format!("{n}/h burst {n}")).collect();
    let table = table(&Options::new(10_000), &texts.iter().map(String::as_str).collect::<Vec<_>>());
    let mut got = [0u32; 100];
    let mut rng = Rng(24);
    for _ in 0..60_000 {
        let n = rng.below(100) as usize;
        got[n] += u32::from(admits(&table, PolicyId::new(n as u32), b"the key", NOW));
    }
    assert!(got.iter().zip(1..).all(|(got, n)| *got == n), "{got:?}");
    let hashes: std::collections::HashSet<u64> =
        (0..100).map(|n| table.hash(PolicyId::new(n), b"the key").unwrap()).collect();
    assert_eq!(hashes.len(), 100);
    assert_eq!(table.policies(), 100);
    assert_eq!(table.hash(PolicyId::new(100), b"the key"), Err(RequestError::NoSuchPolicy));
    assert_eq!(ways(&table, PolicyId::new(100), b"the key"), [false; 7]);
    assert_eq!(ways(&table, PolicyId::new(u32::MAX), b"the key"), [false; 7]);
}

/// Policies are added while threads make requests: a caller can use a new number at once, and a
/// table takes at most 128.
#[test]
fn policies_are_added_while_the_table_is_used() {
    // A fresh key is always admitted, and the test has more keys than slots.
    let table = table(&Options::new(1).with_on_full(OnFull::Allow), &["1/h"]);
    let (known, done) = (AtomicU32::new(1), AtomicBool::new(false));
    thread::scope(|scope| {
        for thread in 0..2u64 {
            let (table, known, done) = (&table, &known, &done);
            scope.spawn(move || {
                let mut rng = Rng(thread);
                let mut fresh = thread << 32;
                while !done.load(Ordering::Relaxed) {
                    fresh += 1;
                    let id = PolicyId::new(rng.below(known.load(Ordering::Acquire).into()) as u32);
                    let decision = table.check_at(id, &fresh.to_le_bytes(), NOW, 1);
                    assert_eq!(
                        (decision.verdict, decision.remaining),
                        (Verdict::Allowed, id.number().into())
                    );
                    table.reset_at(id, &fresh.to_le_bytes(), NOW).unwrap();
                }
            });
        }
        for n in 1..POLICIES_MOST as u32 {
            let added = table.add_policy(&policy(&format!("1/h burst {}", n + 1))).unwrap();
            assert_eq!(added.number(), n);
            known.store(n + 1, Ordering::Release);
            thread::yield_now();
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(table.add_policy(&policy("1/h")), Err(TableError::Policies));
    assert_eq!(table.policies(), 128);
    let most = PolicyId::new(127);
    assert_eq!(table.policy(most), Ok(policy("1/h burst 128")));
    // Of 255 versions 128 are in use; the others go round.
    for n in 0..2_000u64 {
        let id = PolicyId::new((n % 128) as u32);
        let terms = policy(&format!("1/h burst {}", n + 2));
        table.set_policy(id, &terms).unwrap_or_else(|why| panic!("change {n}: {why}"));
        assert_eq!(table.policy(id), Ok(terms));
    }
    assert_eq!(table.policies(), 128);
    assert_eq!(table.add_policy(&policy("1/h")), Err(TableError::Policies));
    assert!((0..128).all(|n| admits(&table, PolicyId::new(n), b"after", NOW)));
}

/// Threads that meet the same new policies at once give each one number, and no place is wasted.
#[test]
fn all_lookups_of_a_policy_get_the_same_number() {
    const THREADS: usize = 4;
    for round in 0..20u64 {
        let table = table(&Options::new(20), &["1/h"]);
        let start = Barrier::new(THREADS);
        let numbers: Vec<Vec<u32>> = thread::scope(|scope| {
            let ask = |thread: u64| {
                let (table, start) = (&table, &start);
                scope.spawn(move || {
                    let mut rng = Rng(round * THREADS as u64 + thread);
                    let mut order: Vec<u64> = (1..POLICIES_MOST as u64).collect();
                    // Half of them go the same way, so that they meet at every policy.
                    if thread % 2 == 1 {
                        (1..order.len())
                            .for_each(|n| order.swap(n, rng.below(n as u64 + 1) as usize));
                    }
                    let mut found = vec![0; POLICIES_MOST];
                    start.wait();
                    for n in order {
                        let id = table
                            .find_or_add_policy(&policy(&format!("1/h burst {}", n + 1)))
                            .unwrap();
                        assert_eq!(table.policy(id), Ok(policy(&format!("1/h burst {}", n + 1))));
                        found[n as usize] = id.number();
                    }
                    found
                })
            };
            let asking: Vec<_> = (0..THREADS as u64).map(ask).collect();
            asking.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(numbers.iter().all(|found| *found == numbers[0]), "{numbers:?}");
        assert_eq!(table.policies(), POLICIES_MOST as u32);
        assert_eq!(table.find_or_add_policy(&policy("7/h")), Err(TableError::Policies));
        // A record that a slower thread had claimed is free again: of 255 versions 128 are in use.
        for n in 0..300 {
            table
                .set_policy(PolicyId::new(1), &policy(&format!("1/h burst {}", n + 1000)))
                .unwrap();
        }
    }
}

/// Ten thousand changes of three policies: a key without permits gets none, and the table never
/// lacks a record.
#[test]
fn changes_without_number_forgive_nothing() {
    let table = table(&Options::new(1000), &["5/h", "5/h algo fixed-window", "5/h algo interval"]);
    let used_up = |n: u32| {
        (0..50u32).all(|key| table.take_up_to_at(PolicyId::new(n), &key.to_le_bytes(), NOW, 9) == 0)
    };
    for n in 0..3 {
        for key in 0..50u32 {
            assert_eq!(table.take_up_to_at(PolicyId::new(n), &key.to_le_bytes(), NOW, 9), 5);
        }
    }
    let mut rng = Rng(255);
    for change in 0..10_000u64 {
        let n = rng.below(3) as u32;
        // Where counts carry over, limits only fall: a higher limit would rightly give the
        // difference.
        let text = match n {
            0 => format!("{}/h", 5 + change % 5),
            1 => "5/h algo fixed-window".into(),
            _ => format!("5/h burst {} algo interval", 5 - change % 2),
        };
        table
            .set_policy(PolicyId::new(n), &policy(&text))
            .unwrap_or_else(|why| panic!("change {change}: {why}"));
        if rng.one_in(100) {
            assert!((0..3).all(used_up), "change {change}");
        }
    }
    assert!((0..3).all(used_up));
    assert_eq!((table.stats().keys, table.entries(NOW).count()), (150, 150));
    for error in [
        table.set_policy(PolicyId::new(3), &policy("1/h")),
        table.set_policy(PolicyId::new(128), &policy("1/h")),
        table.set_policy(PolicyId::new(u32::MAX), &policy("1/h")),
    ] {
        assert_eq!(error, Err(RequestError::NoSuchPolicy.into()));
    }
}

/// Refused new keys per thousand, as text.
fn share(refused: u64, of: u64) -> String {
    format!("{:.4} %", refused as f64 * 100.0 / of as f64)
}

/// As many keys as the capacity, all at one time: they fill four fifths of the slots, and one in
/// some thousands finds no slot.
#[test]
fn few_new_keys_find_no_slot_at_the_capacity() {
    for capacity in [10_000u64, 100_000, 1_000_000] {
        let (mut refused, mut keys) = (0, 0);
        for seed in 0..(1_000_000 / capacity).min(20) {
            let options = Options::new(capacity).with_seed(seed).with_on_full(OnFull::Deny);
            let table = Table::private(&options, &[policy("1/h")]).unwrap();
            refused += (0..capacity)
                .filter(|key| !admits(&table, FIRST, &key.to_le_bytes(), NOW))
                .count() as u64;
            keys += capacity;
            assert_eq!(table.stats().keys + table.stats().refused, capacity);
        }
        println!("{capacity}: {} of all new keys up to the capacity", share(refused, keys));
        assert!(refused * 2_000 <= keys, "{capacity}: {refused} of {keys}");
    }
}

/// If keys come and go for long, every slot holds a former key, and a new key takes the slot of its
/// twelve that expires first, which need not be in the emptier bucket. So more new keys find no
/// slot than while a table fills up. The bounds are about twice the measured numbers.
#[test]
fn how_many_new_keys_find_no_slot_where_keys_come_and_go() {
    for (live, per_million) in
        [(30u64, 50), (40, 200), (50, 2_000), (60, 15_000), (70, 60_000), (80, 160_000)]
    {
        let table = table(&Options::new(100_000).with_on_full(OnFull::Deny), &["1/min burst 1"]);
        // As many in a minute as that part of the slots.
        let step = MIN * 100 / (table.slots() * live);
        let (mut now, mut sent) = (NOW, 0u64);
        let mut send = |n: u64, now: &mut u64| {
            for _ in 0..n {
                *now += step;
                sent += 1;
                admits(&table, FIRST, &sent.to_le_bytes(), *now);
            }
        };
        send(4 * table.slots(), &mut now);
        let before = table.stats().refused;
        send(4 * table.slots(), &mut now);
        let (refused, of) = (table.stats().refused - before, 4 * table.slots());
        println!("{live} % of the slots owed in: {} of new keys find no place", share(refused, of));
        assert!(refused * 1_000_000 <= of * per_million, "{live} %: {refused} of {of}");
    }
}

/// Options with which no table can be made, and unknown policies.
#[test]
fn tables_that_cannot_be() {
    let one = [policy("1/s")];
    let made =
        |capacity, policies: &[Policy]| Table::private(&Options::new(capacity), policies).err();
    assert_eq!(made(0, &one), Some(TableError::Capacity));
    assert_eq!(made(u64::MAX, &one), Some(TableError::Capacity));
    assert_eq!(made(1 << 40, &one), Some(TableError::Capacity));
    assert_eq!(made(10, &[]), Some(TableError::Policies));
    assert_eq!(made(10, &[one[0]; POLICIES_MOST + 1]), Some(TableError::Policies));
    assert_eq!(made(10, &[one[0]; POLICIES_MOST]), None);
    let mut bad = one[0];
    bad.period = 0;
    assert!(matches!(made(10, &[one[0], bad]), Some(TableError::Policy(_))));
    let table = Table::private(&Options::new(10).with_on_full(OnFull::Deny), &one).unwrap();
    assert!(matches!(table.set_policy(FIRST, &bad), Err(TableError::Policy(_))));
    assert!(matches!(table.add_policy(&bad), Err(TableError::Policy(_))));
    assert_eq!((table.policies(), table.policy(FIRST)), (1, Ok(one[0])));
    assert_eq!(table.sweep(u64::MAX, u64::MAX, SEC).next, None);
    assert_eq!(table.next_entry(u64::MAX, SEC), None);
}
