//! A copy of a table's keys and their debts into a table of another size.

use crate::common::{policy, DAY, HOUR, SEC};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use tollbar::clock::Source;
use tollbar::table::{OnFull, Options, PolicyId, Table, TableError};
use tollbar::{Policy, Verdict};

const FIRST: PolicyId = PolicyId::FIRST;
const SECOND: PolicyId = PolicyId::new(1);
const NOW: u64 = 50 * DAY;

/// One of each algorithm whose state is one word.
const ONE_WORD: [&str; 6] = [
    "7/h burst 5",
    "7/h algo interval burst 5",
    "5/h algo fixed-window",
    "5/h algo weighted-window",
    "7/h algo pacer slack 4",
    "7/h algo warm-up warm 10min cold 3",
];

fn table(options: &Options, policies: &[&str]) -> Table {
    let policies: Vec<Policy> = policies.iter().map(|text| policy(text)).collect();
    let seed = options.seed.unwrap_or(11);
    Table::private(&options.with_seed(seed), &policies).unwrap()
}

fn charge(table: &Table, policy: PolicyId, key: u64, now: u64, times: u64) -> u64 {
    (0..times)
        .filter(|_| table.admit_at(policy, &key.to_le_bytes(), now, 1) == Verdict::Allowed)
        .count() as u64
}

/// For every algorithm, and for a larger and a smaller table: each key gets the same answers as in
/// the old table.
#[test]
fn every_key_is_answered_as_before() {
    for text in ONE_WORD {
        for (old, new) in [(2_000, 50_000), (50_000, 2_000), (5_000, 5_000)] {
            let (from, to) = (
                table(&Options::new(old), &["1/s", text]),
                table(&Options::new(new), &["1/s", text]),
            );
            for key in 0..2_000 {
                charge(&from, SECOND, key, NOW + key * SEC, key % 6);
            }
            let later = NOW + HOUR / 2;
            let copied = to.copy_from(&from, later).unwrap();
            assert_eq!(copied.lost, 0, "{text}");
            let live = from.entries(later).filter(|entry| entry.reset_after(later) != 0).count();
            assert_eq!(copied.copied, live as u64, "{text}");
            assert!(live > 500, "{text}: {live}");
            for key in 0..2_000u64 {
                let bytes = key.to_le_bytes();
                let owes = from.peek_at(SECOND, &bytes, later, 1).reset_after != 0;
                for now in [later, later + HOUR / 7] {
                    let (got, want) =
                        (to.peek_at(SECOND, &bytes, now, 1), from.peek_at(SECOND, &bytes, now, 1));
                    match owes {
                        true => assert_eq!(got, want, "{text}: key {key}"),
                        // A key that was not copied is fresh. If an idle state gains slack, that is
                        // less than it had.
                        false => assert!(got.remaining <= want.remaining, "{text}: key {key}"),
                    }
                }
            }
            assert!(to.validate(later).is_sound());
        }
    }
}

/// A second copy brings over only the charges since the first, and charges no permit twice.
#[test]
fn to_copy_again_brings_over_what_came_since() {
    for text in ONE_WORD {
        let (from, to) =
            (table(&Options::new(1_000), &[text]), table(&Options::new(9_000), &[text]));
        charge(&from, FIRST, 1, NOW, 2);
        charge(&from, FIRST, 2, NOW, 2);
        to.copy_from(&from, NOW).unwrap();
        // One key is charged in the old table and one in the new table.
        charge(&from, FIRST, 1, NOW, 2);
        charge(&to, FIRST, 2, NOW, 2);
        let before = to.peek_at(FIRST, &2u64.to_le_bytes(), NOW, 1);
        let copied = to.copy_from(&from, NOW).unwrap();
        assert_eq!((copied.copied, copied.lost), (2, 0));
        let (one, two) = (1u64.to_le_bytes(), 2u64.to_le_bytes());
        assert_eq!(to.peek_at(FIRST, &one, NOW, 1), from.peek_at(FIRST, &one, NOW, 1), "{text}");
        assert_eq!(to.peek_at(FIRST, &two, NOW, 1), before, "{text}");
        assert_eq!(to.stats().keys, 2);
    }
}

/// Keys without a debt are not copied, nor are keys that were reset.
#[test]
fn only_debts_are_copied() {
    let (from, to) = (table(&Options::new(1_000), &["1/s"]), table(&Options::new(1_000), &["1/s"]));
    charge(&from, FIRST, 1, NOW, 1);
    charge(&from, FIRST, 2, NOW + SEC / 2, 1);
    charge(&from, FIRST, 3, NOW + SEC / 2, 1);
    from.reset_at(FIRST, &3u64.to_le_bytes(), NOW + SEC / 2).unwrap();
    // Some nanoseconds later, because a slot may stay taken for so long.
    let later = NOW + SEC + 10;
    let copied = to.copy_from(&from, later).unwrap();
    assert_eq!((copied.copied, copied.lost), (1, 0));
    assert_eq!(charge(&to, FIRST, 2, later, 1), 0);
    assert_eq!(charge(&to, FIRST, 3, later, 1), 1);
}

/// If the new table is too small, the copy counts the keys without a slot, and evicts no key.
#[test]
fn who_finds_no_place_is_counted() {
    const KEYS: u64 = 20_000;
    for on_full in [OnFull::Deny, OnFull::Inherit, OnFull::Allow, OnFull::EvictNearest] {
        let from = table(&Options::new(KEYS).with_on_full(on_full), &["1/day"]);
        let to = table(&Options::new(1_000).with_on_full(on_full), &["1/day"]);
        for key in 0..KEYS {
            charge(&from, FIRST, key, NOW, 1);
        }
        charge(&to, FIRST, KEYS, NOW, 1);
        let live = from.entries(NOW).count() as u64;
        let copied = to.copy_from(&from, NOW).unwrap();
        assert_eq!(copied.copied + copied.lost, live);
        assert!(copied.copied > to.slots() * 9 / 10, "{copied:?} of {}", to.slots());
        assert_eq!(to.stats().keys, copied.copied + 1);
        assert_eq!(to.peek_at(FIRST, &KEYS.to_le_bytes(), NOW, 1).verdict, Verdict::Denied);
    }
}

/// Keys without a request since their policy changed are converted to the present version.
#[test]
fn a_former_version_of_a_policy_is_adopted() {
    let (from, to) =
        (table(&Options::new(1_000), &["1/h"]), table(&Options::new(3_000), &["2/h burst 4"]));
    charge(&from, FIRST, 1, NOW, 1);
    from.set_policy(FIRST, &policy("2/h burst 4")).unwrap();
    assert_eq!(to.copy_from(&from, NOW).unwrap().copied, 1);
    let key = 1u64.to_le_bytes();
    let (got, want) = (to.peek_at(FIRST, &key, NOW, 1), from.check_at(FIRST, &key, NOW, 0));
    assert_eq!((got.remaining, got.reset_after), (want.remaining, want.reset_after));
}

/// Under another policy a key keeps its permits, not the time of its debt.
#[test]
fn another_rate_counts_what_has_been_taken() {
    for (old, new, left) in [
        ("6/h burst 6", "6/s burst 6", [6, 5, 4, 3, 2, 1, 0]),
        ("6/s burst 6", "6/h burst 6", [6, 5, 4, 3, 2, 1, 0]),
        ("6/h burst 6", "6/s burst 4", [4, 3, 2, 1, 0, 0, 0]),
        ("6/h burst 6", "6/s burst 9", [9, 8, 7, 6, 5, 4, 3]),
        ("6/h burst 6", "6/h algo fixed-window", [6, 5, 4, 3, 2, 1, 0]),
        ("6/h algo weighted-window", "6/h burst 6", [6, 5, 4, 3, 2, 1, 0]),
        ("6/h burst 6", "0/h", [0; 7]),
    ] {
        let (from, to) = (table(&Options::new(1_000), &[old]), table(&Options::new(1_000), &[new]));
        for key in 0..7 {
            assert_eq!(charge(&from, FIRST, key, NOW, key), key);
        }
        assert_eq!(to.copy_from(&from, NOW).unwrap().lost, 0);
        let got = [0, 1, 2, 3, 4, 5, 6]
            .map(|key: u64| to.peek_at(FIRST, &key.to_le_bytes(), NOW, 0).remaining);
        assert_eq!(got, left, "{old} to {new}");
    }
}

#[test]
fn exempt_keys_stay_exempt() {
    let (from, to) = (table(&Options::new(1_000), &["1/h"]), table(&Options::new(3_000), &["1/h"]));
    from.exempt(FIRST, b"free").unwrap();
    to.copy_from(&from, NOW).unwrap();
    to.copy_from(&from, NOW).unwrap();
    assert!((0..9).all(|_| to.admit_at(FIRST, b"free", NOW, 1) == Verdict::Allowed));
    assert_eq!(to.unexempt(FIRST, b"free"), Ok(true));
    assert!(to.admit_at(FIRST, b"free", NOW, 1) == Verdict::Allowed);
    assert!(to.admit_at(FIRST, b"free", NOW, 1) == Verdict::Denied);
}

#[test]
fn tables_that_do_not_fit_are_refused() {
    let options = Options::new(1_000);
    let from = table(&options, &["1/h", "2/h"]);
    let to = |options: &Options, policies: &[&str]| {
        table(options, policies).copy_from(&from, NOW).map(|_| ())
    };
    assert_eq!(to(&options, &["1/h", "2/h"]), Ok(()));
    assert_eq!(to(&options, &["1/h", "2/h", "3/h"]), Ok(()));
    assert_eq!(to(&options.with_seed(12), &["1/h", "2/h"]), Err(TableError::OtherOptions));
    assert_eq!(
        to(&Options { clock: Source::Coarse, ..options }, &["1/h", "2/h"]),
        Err(TableError::OtherOptions)
    );
    assert_eq!(to(&options, &["1/h"]), Err(TableError::OtherPolicies));
    assert_eq!(to(&options, &["3/s algo sliding-log"]), Err(TableError::Mixed));
}

/// A copy while threads use both tables: no key has two slots, and no key gets more than its bound
/// in the new table.
#[test]
fn both_may_be_in_use() {
    const KEYS: u64 = 3_000;
    let (from, to) =
        (table(&Options::new(KEYS), &["3/day"]), table(&Options::new(2 * KEYS), &["3/day"]));
    for key in 0..KEYS {
        charge(&from, FIRST, key, NOW, 2);
    }
    let (done, asked) = (AtomicBool::new(false), AtomicU64::new(0));
    let admitted: u64 = thread::scope(|scope| {
        // The new table is asked for the even keys only, so an odd one owes there what has been
        // copied.
        let user = scope.spawn(|| {
            let mut admitted = 0;
            while !done.load(Ordering::Relaxed) {
                let key = asked.fetch_add(1, Ordering::Relaxed);
                admitted += charge(&to, FIRST, 2 * key % KEYS, NOW, 1);
                charge(&from, FIRST, (key + 7) % KEYS, NOW, 1);
            }
            admitted
        });
        let mut copies = 0;
        while copies < 20 || asked.load(Ordering::Relaxed) < KEYS {
            to.copy_from(&from, NOW).unwrap();
            copies += 1;
        }
        done.store(true, Ordering::Relaxed);
        user.join().unwrap()
    });
    assert!(admitted <= 3 * KEYS / 2);
    assert!(to.validate(NOW).is_sound());
    let remaining =
        |table: &Table, key: u64| table.peek_at(FIRST, &key.to_le_bytes(), NOW, 1).remaining;
    // Charges in the old table before the copies count in the new one. Charges during the copies
    // may not ...
    assert!((0..KEYS).all(|key| remaining(&to, key) <= 1));
    // ... until the next copy.
    to.copy_from(&from, NOW).unwrap();
    assert!((0..KEYS).all(|key| remaining(&to, key) <= remaining(&from, key)));
    assert!((1..KEYS).step_by(2).all(|key| remaining(&to, key) == remaining(&from, key)));
}
