//! The table from Rust: keys, policies, full tables, and changes.

use tollbar::clock::Source;
use tollbar::table::{OnFull, Options, PolicyId, Request, RequestError, Table, TableError};
use tollbar::{Policy, Verdict};

const FIRST: PolicyId = PolicyId::FIRST;
const S: u64 = 1_000_000_000;

fn policy(text: &str) -> Policy {
    text.parse().unwrap()
}

fn table(capacity: u64, policies: &[&str]) -> Table {
    let policies: Vec<Policy> = policies.iter().map(|text| policy(text)).collect();
    Table::private(&Options::new(capacity).with_seed(1), &policies).unwrap()
}

#[test]
fn keys_are_independent() {
    let table = table(1000, &["2/s"]);
    for key in 0..1000u64 {
        let key = key.to_le_bytes();
        assert_eq!(table.admit_at(FIRST, &key, S, 1), Verdict::Allowed);
        assert_eq!(table.admit_at(FIRST, &key, S, 1), Verdict::Allowed);
        let third = table.check_at(FIRST, &key, S, 1);
        assert_eq!((third.verdict, third.retry_after), (Verdict::Denied, S / 2));
        assert_eq!(table.admit_at(FIRST, &key, S + S / 2, 1), Verdict::Allowed);
    }
    let stats = table.stats();
    assert_eq!((stats.keys, stats.inserted, stats.reclaimed, stats.refused), (1000, 1000, 0, 0));
}

/// Different code hashes long and short keys, reads the different clocks, and decides the different
/// algorithms. In every call the same bytes name the same key.
#[test]
fn every_call_means_the_same_key() {
    for clock in [Source::Tsc, Source::Monotonic, Source::Coarse] {
        for text in
            ["5/9999d", "5/9999d init 4", "5/9999d algo fixed-window", "5/9999d algo sliding-log"]
        {
            let options = Options { clock, ..Options::new(2000).with_seed(1) };
            let table = Table::private(&options, &[policy(text)]).unwrap();
            for length in 1..70 {
                let key = &[7; 70][..length];
                let request = Request { policy: FIRST, key, cost: 1 };
                let (mut verdicts, mut decision) = ([Verdict::Never], [table.peek(FIRST, key, 0)]);
                let most = if text.contains("init") { 4 } else { 5 };
                assert_eq!(table.admit(FIRST, key, 1), Verdict::Allowed);
                assert_eq!(table.admit_at(FIRST, key, table.now(), 1), Verdict::Allowed);
                assert_eq!(table.peek(FIRST, key, 1).remaining, most - 2, "{text}, {length} bytes");
                table.admit_many(&[request], &mut verdicts);
                table.check_many_at(table.now(), &[request], &mut decision);
                assert_eq!(
                    (verdicts[0], decision[0].remaining),
                    (Verdict::Allowed, most - 4),
                    "{text}, {length} bytes"
                );
                assert_eq!(table.take_up_to(FIRST, key, 9), most - 4);
                let (last, at) =
                    (table.check(FIRST, key, 1), table.check_at(FIRST, key, table.now(), 1));
                assert_eq!(
                    (last.verdict, at.verdict),
                    (Verdict::Denied, Verdict::Denied),
                    "{text}, {length} bytes"
                );
                assert!(last.retry_after > S && at.retry_after > S);
            }
            assert_eq!(table.stats().keys, 69, "{text}");
        }
    }
}

#[test]
fn a_batch_is_its_requests_in_turn() {
    let (one, many) = (table(1000, &["3/s", "1/min"]), table(1000, &["3/s", "1/min"]));
    let keys: Vec<Vec<u8>> =
        (0..500u32).map(|n| (n * n % 97).to_le_bytes()[..1 + (n % 3) as usize].to_vec()).collect();
    let requests: Vec<Request> = keys
        .iter()
        .enumerate()
        .map(|(n, key)| Request { policy: PolicyId::new(n as u32 % 2), key, cost: n as u64 % 3 })
        .collect();
    let mut verdicts = vec![Verdict::Never; requests.len()];
    many.admit_many_at(S, &requests, &mut verdicts);
    let each: Vec<Verdict> =
        requests.iter().map(|r| one.admit_at(r.policy, r.key, S, r.cost)).collect();
    assert_eq!(verdicts, each);
}

#[test]
fn a_full_table_that_denies_refuses_new_keys_and_evicts_none() {
    let options = Options::new(1).with_seed(1).with_on_full(OnFull::Deny);
    let table = Table::private(&options, &[policy("1/min")]).unwrap();
    let mut refused = 0;
    for key in 0..8000u32 {
        match table.check_at(FIRST, &key.to_le_bytes(), S, 1) {
            d if d.is_allowed() => {}
            d => {
                refused += 1;
                assert!(d.retry_after > 0 && d.retry_after <= 60 * S + 8);
            }
        }
    }
    assert!(refused > 2800, "{refused}");
    assert_eq!(table.stats().refused, refused);
    for key in 0..8000u32 {
        assert_eq!(table.admit_at(FIRST, &key.to_le_bytes(), S, 1), Verdict::Denied);
    }
    assert_eq!(table.entries(S).count() as u64, table.stats().keys);
    // All keys have expired: every new key finds a slot again.
    assert!((0..2000u32)
        .all(|key| table.admit_at(FIRST, &key.to_le_bytes(), 62 * S, 1) == Verdict::Allowed));
}

#[test]
fn what_full_tables_do_otherwise() {
    for (on_full, remembered) in
        [(OnFull::Inherit, true), (OnFull::Allow, false), (OnFull::EvictNearest, true)]
    {
        let table = Table::private(
            &Options::new(1).with_seed(1).with_on_full(on_full),
            &[policy("10/min burst 3")],
        )
        .unwrap();
        let allowed = (0..16000u32)
            .filter(|key| table.admit_at(FIRST, &key.to_le_bytes(), S, 1) == Verdict::Allowed)
            .count();
        let stats = table.stats();
        let found = [stats.inherited, stats.untracked, stats.evicted];
        assert_eq!(found.iter().filter(|&&n| n != 0).count(), 1, "{on_full:?} {found:?}");
        assert_eq!(stats.keys as usize, table.entries(S).count());
        if on_full != OnFull::Inherit {
            assert_eq!(allowed, 16000);
        } else {
            // Three permits for each slot: no more than if each slot were a key.
            assert_eq!(stats.refused + stats.inherited + stats.inserted, 16000);
            assert!(allowed as u64 <= 3 * table.slots(), "{allowed}");
        }
        assert_eq!(remembered, stats.untracked == 0);
    }
}

/// Under gcra the key begins again in its slot if no other slot is free. Words of other algorithms
/// have no room for the slot's time.
#[test]
fn a_reset_key_begins_again_and_its_slot_waits() {
    let table = table(1000, &["2/min", "2/min algo interval"]);
    let interval = table.find_or_add_policy(&policy("2/min algo interval")).unwrap();
    for round in 0..40 {
        let now = S + 2 * round;
        assert_eq!(table.take_up_to_at(FIRST, b"k", now, 10), 2, "round {round}");
        assert_eq!(table.admit_at(FIRST, b"k", now, 1), Verdict::Denied);
        assert!(table.reset_at(FIRST, b"k", now).unwrap());
    }
    for round in 0..11 {
        assert_eq!(table.take_up_to_at(interval, b"k", S, 10), 2, "round {round}");
        assert!(table.reset_at(interval, b"k", S).unwrap());
    }
    assert_eq!(table.take_up_to_at(interval, b"k", S, 10), 2);
    assert!(!table.reset_at(interval, b"k", S).unwrap(), "twelve slots have its debts");
    assert_eq!(table.admit_at(interval, b"k", S, 1), Verdict::Denied);
    assert!(table.reset_at(interval, b"k", 62 * S).unwrap());
}

#[test]
fn policies_change_while_keys_keep_their_debt() {
    let table = table(1000, &["10/min", "5/min"]);
    for _ in 0..10 {
        assert!(table.check_at(FIRST, b"k", S, 1).is_allowed());
    }
    table.set_policy(FIRST, &policy("20/min")).unwrap();
    // The bucket was empty for another minute, and still is.
    assert_eq!(table.peek_at(FIRST, b"k", S, 1).verdict, Verdict::Denied);
    assert_eq!(table.peek_at(FIRST, b"k", 31 * S + 16, 1).remaining, 10);
    for n in 0..1000u64 {
        table.set_policy(FIRST, &policy(&format!("{}/min", 20 + n % 7))).unwrap();
    }
    assert_eq!(table.peek_at(FIRST, b"k", S, 1).verdict, Verdict::Denied);
    let added = table.add_policy(&policy("1/h")).unwrap();
    assert_eq!(added.number(), 2);
    assert!(table.check_at(added, b"k", S, 1).is_allowed());
    assert_eq!(
        table.set_policy(PolicyId::new(3), &policy("1/h")),
        Err(RequestError::NoSuchPolicy.into())
    );
}

#[test]
fn exempt_keys_are_never_charged() {
    let table = table(1000, &["1/min"]);
    table.exempt(FIRST, b"monitor").unwrap();
    assert!((0..100).all(|_| table.check_at(FIRST, b"monitor", S, 1).is_allowed()));
    assert_eq!(table.stats().keys, 0);
    assert!(table.unexempt(FIRST, b"monitor").unwrap());
    assert!(table.check_at(FIRST, b"monitor", S, 1).is_allowed());
    assert!(!table.check_at(FIRST, b"monitor", S, 1).is_allowed());
}

#[test]
fn sweeping_leaves_those_with_a_debt() {
    let table = table(1000, &["1/s", "1/min"]);
    for key in 0..100u32 {
        assert!(table.check_at(PolicyId::new(key % 2), &key.to_le_bytes(), S, 1).is_allowed());
    }
    let swept = table.sweep(0, u64::MAX, 3 * S);
    assert_eq!((swept.next, swept.live, swept.vacated), (None, 50, 50));
    assert_eq!((table.stats().keys, table.entries(3 * S).count()), (50, 50));
}

#[test]
fn windows_and_logs_have_keys_too() {
    for text in ["3/s algo sliding-window segments 10 mode strict", "3/s algo sliding-log"] {
        for on_full in [OnFull::Deny, OnFull::Inherit, OnFull::Allow, OnFull::EvictNearest] {
            let options = Options::new(1000).with_seed(1).with_on_full(on_full);
            let table = Table::private(&options, &[policy(text)]).unwrap();
            for now in [S, 5 * S, 9 * S] {
                // Other keys each time, in the slots of the former keys.
                for key in 0..2000u64 {
                    let key = (key + now).to_le_bytes();
                    assert_eq!(table.peek_at(FIRST, &key, now, 1).remaining, 3);
                    assert_eq!(table.take_up_to_at(FIRST, &key, now, 2), 2);
                    assert!(table.check_at(FIRST, &key, now, 1).is_allowed());
                    assert_eq!(table.admit_at(FIRST, &key, now + S / 2, 1), Verdict::Denied);
                }
            }
            let stats = table.stats();
            assert_eq!(stats.keys, table.entries(9 * S).count() as u64);
            assert!(stats.reclaimed > 30, "{stats:?}");
        }
        let mixed = Table::private(&Options::new(1), &[policy(text), policy("1/s")]);
        assert_eq!(mixed.err(), Some(TableError::Mixed));
    }
}

#[test]
fn full_tables_of_windows_and_logs() {
    for text in ["3/s algo sliding-window segments 10 mode strict", "3/s algo sliding-log"] {
        for on_full in [OnFull::Deny, OnFull::Inherit, OnFull::Allow, OnFull::EvictNearest] {
            let options = Options::new(1).with_seed(1).with_on_full(on_full);
            let table = Table::private(&options, &[policy(text)]).unwrap();
            let asked = 10_000u64;
            let allowed = (0..asked)
                .filter(|key| table.check_at(FIRST, &key.to_le_bytes(), S, 2).is_allowed())
                .count() as u64;
            let stats = table.stats();
            assert_eq!(stats.keys, table.entries(S).count() as u64);
            match on_full {
                OnFull::Deny => {
                    assert_eq!((allowed, stats.refused), (stats.inserted, asked - allowed))
                }
                // Three a slot, in twos.
                OnFull::Inherit => assert_eq!(allowed, stats.inserted),
                OnFull::Allow => {
                    assert_eq!((allowed, stats.untracked), (asked, asked - stats.inserted))
                }
                OnFull::EvictNearest => {
                    assert_eq!((allowed, stats.evicted), (asked, asked - stats.inserted))
                }
            }
        }
    }
}

#[test]
fn every_slot_is_accounted_for() {
    let table = table(1000, &["1/s", "1/min"]);
    for key in 0..100u32 {
        assert!(table.check_at(PolicyId::new(key % 2), &key.to_le_bytes(), S, 1).is_allowed());
    }
    assert!(table.reset_at(PolicyId::new(1), &1u32.to_le_bytes(), S).unwrap());
    let health = table.validate(3 * S);
    assert!(health.is_sound());
    assert_eq!((health.expired, health.live, health.waiting), (50, 49, 1));
    assert_eq!(health.vacant, table.slots() - 100);
    assert_eq!(table.repair(3 * S), health);
    assert_eq!(table.validate(3 * S), health);
}

#[test]
fn a_limit_of_nothing_is_closed_whatever_the_algorithm() {
    // `calendar` has a period of its own (tests/algorithm/calendar.rs).
    for kind in tollbar::Kind::ALL.into_iter().filter(|kind| *kind != tollbar::Kind::Calendar) {
        let closed = Policy {
            warm_up: if kind == tollbar::Kind::WarmUp { S } else { 0 },
            ..Policy::new(0, S).with_kind(kind)
        };
        let table = Table::private(&Options::new(10), &[closed]).unwrap();
        assert_eq!(table.admit_at(FIRST, b"k", S, 1), Verdict::Denied, "{kind:?}");
    }
}
