//! A table's statistics, compared with the counts of a model.

use crate::common::{policy, Rng, DAY, MS, SEC, US};
use tollbar::table::{Keep, Options, PolicyId, Request, Table};
use tollbar::{Policy, Verdict};

const FIRST: PolicyId = PolicyId::FIRST;

fn table(policies: &[Policy]) -> Table {
    Table::private(&Options::new(10_000).with_seed(3), policies).unwrap()
}

/// Keys of a former version of their policy that come back: A key without a debt leaves its slot,
/// which `vacated` counts, and is inserted again. A key with a debt keeps its slot, and no counter
/// changes. `keys` is the number of slots that hold a key.
#[test]
fn a_change_of_policy_counts_what_it_vacates() {
    let table = table(&[policy("1/s burst 2")]);
    let mut rng = Rng(1);
    let (mut inserted, mut vacated, mut now) = (0, 0, DAY);
    for round in 0..20u64 {
        let keys: Vec<[u8; 8]> =
            (0..100 + rng.below(100)).map(|n| (round << 32 | n).to_le_bytes()).collect();
        for key in &keys {
            assert_eq!(table.admit_at(FIRST, key, now, 2), Verdict::Allowed);
        }
        inserted += keys.len() as u64;
        // The time is kept, so no debt becomes shorter and no key moves to another slot.
        let next = policy(["3/s burst 4", "1/s burst 2"][round as usize % 2]);
        table.set_policy_keeping(FIRST, &next, Keep::Time).unwrap();
        // After 1 ms all keys have a debt. After a minute none has.
        let owing = rng.below(keys.len() as u64) as usize;
        for key in &keys[..owing] {
            let _ = table.admit_at(FIRST, key, now + MS, 1);
        }
        now += 60 * SEC;
        for key in &keys[owing..] {
            assert_eq!(table.admit_at(FIRST, key, now, 1), Verdict::Allowed);
        }
        (inserted, vacated) =
            (inserted + (keys.len() - owing) as u64, vacated + (keys.len() - owing) as u64);
        let stats = table.stats();
        assert_eq!((stats.inserted, stats.vacated), (inserted, vacated), "round {round}");
        assert_eq!(stats.keys, table.entries(now).count() as u64, "round {round}");
        assert_eq!(
            (stats.refused, stats.evicted, stats.inherited, stats.untracked, stats.retries),
            (0, 0, 0, 0, 0)
        );
        // All leave, so that no slot is needed for two keys.
        vacated += table.sweep(0, u64::MAX, now + DAY).vacated;
        now += 2 * DAY;
    }
}

/// Every call at the caller's time compares that time with those before: each request whose time is
/// older than that of an earlier request is counted, for known and for new keys.
#[test]
fn older_times_are_counted_whatever_the_call() {
    type Ask = fn(&Table, &[u8], u64);
    let ways: [(&str, Ask); 5] = [
        ("admit_at", |table, key, now| {
            let _ = table.admit_at(FIRST, key, now, 1);
        }),
        ("admit_at, cost 2", |table, key, now| {
            let _ = table.admit_at(FIRST, key, now, 2);
        }),
        ("check_at", |table, key, now| {
            let _ = table.check_at(FIRST, key, now, 1);
        }),
        ("take_up_to_at", |table, key, now| {
            table.take_up_to_at(FIRST, key, now, 3);
        }),
        ("admit_many_at", |table, key, now| {
            let requests = [
                Request { policy: FIRST, key, cost: 1 },
                Request { policy: FIRST, key: b"another", cost: 1 },
            ];
            table.admit_many_at(now, &requests, &mut [Verdict::Denied; 2]);
        }),
    ];
    for text in ["1000/s burst 1000", "1000/s algo fixed-window"] {
        for (way, ask) in ways {
            let table = table(&[policy(text)]);
            let mut rng = Rng(2);
            let (mut newest, mut steps) = (0, 0);
            for _ in 0..300 {
                // In steps of 10 us: the table overlooks those of up to 1 us.
                let now = DAY + rng.below(SEC / (10 * US)) * 10 * US;
                ask(&table, if rng.below(9) == 0 { b"seldom" } else { b"often" }, now);
                steps += u64::from(now < newest);
                newest = newest.max(now);
                assert_eq!(table.stats().backward_steps, steps, "{text}, {way}");
            }
            assert!(steps > 200, "{steps}");
        }
    }
}
