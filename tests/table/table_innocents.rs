//! Keys that have permits left, and are not refused: after a change of policy in a full table (A1),
//! and beside a flood of invented keys (B8). Each test counts both sides: what was admitted above
//! the bound, and what was refused though an exact oracle admits.

use crate::common::{has_each, policy, with_each, DAY, SEC, US};
use tollbar::clock::Manual;
use tollbar::policy::Words;
use tollbar::table::{Keep, OnFull, Options, PolicyId, Table};
use tollbar::{Kind, Limiter, Policy, State};

const FIRST: PolicyId = PolicyId::FIRST;
const NOW: u64 = 1_000 * DAY;
/// A table for 5,000 keys has 6,250 slots or a few more. Smaller ones have more room than they were
/// asked for.
const CAPACITY: u64 = 5_000;

/// A table of keys that have taken `cost` permits each.
fn table(policy: &Policy, on_full: OnFull, keys: u64, cost: u64, now: u64) -> Table {
    let table =
        Table::private(&Options::new(CAPACITY).with_on_full(on_full).with_seed(keys), &[*policy])
            .expect("memory");
    for key in 0..keys {
        let _ = table.admit_at(FIRST, &key.to_le_bytes(), now, cost);
    }
    table
}

/// The permits that each key has left, of the keys that the table holds.
fn left(table: &Table, keys: u64, now: u64) -> Vec<(u64, u64)> {
    let all = (0..keys).map(|key| (key, table.peek_at(FIRST, &key.to_le_bytes(), now, 1)));
    all.filter(|(_, peek)| peek.reset_after > 0).map(|(key, peek)| (key, peek.remaining)).collect()
}

/// A1: the rate, the burst, or both change, up and down, in tables that are half full to full,
/// under each `on_full`. Each key takes all that it gets: as many permits as it had left, up to the
/// new burst.
#[test]
fn a_changed_policy_refuses_no_key_that_has_permits_left() {
    let changes = [
        ("100/h burst 100", "200/h burst 100", 60),
        ("100/h burst 100", "50/h burst 60", 30),
        ("100/h burst 100", "50/h burst 200", 99),
        ("1000/day", "100/s", 990),
        ("3/min", "1000/s burst 1000", 2),
        ("1000/s burst 1000", "3/min", 998),
        ("5/min algo fixed-window", "100/h burst 5", 3),
        ("20/h algo weighted-window", "20/min", 17),
        ("5/min ban 1h", "50/min burst 5", 3),
        ("10/min algo interval", "20/min", 6),
    ];
    let (mut refused, mut above, mut asked, mut late) = (0, 0, 0, 0);
    for (from, to, cost) in changes {
        let so_far = (refused, above, asked);
        let (old, new) = (policy(from), policy(to));
        for on_full in [OnFull::Deny, OnFull::Allow, OnFull::Inherit, OnFull::EvictNearest] {
            for percent in [50, 70, 80, 100] {
                let keys = CAPACITY * percent / 100;
                for by_override in [false, true] {
                    let table = table(&old, on_full, keys, cost, NOW);
                    let before = left(&table, keys, NOW);
                    assert!(
                        before.len() as u64 > keys * 9 / 10,
                        "{from}: the table has room for most keys"
                    );
                    if !by_override {
                        table.set_policy(FIRST, &new).unwrap();
                    }
                    let most = if by_override { Options::OVERRIDES as usize } else { before.len() };
                    for (key, left) in before.into_iter().take(most) {
                        let name = key.to_le_bytes();
                        if by_override {
                            table.set_override(FIRST, &name, &new, Keep::Count).unwrap();
                        }
                        let oracle = left.min(new.burst);
                        let mut got = table.take_up_to_at(FIRST, &name, NOW, new.burst);
                        if got < oracle {
                            // A word that keeps its slot's time may be late by a microsecond.
                            late += 1;
                            got += table.take_up_to_at(FIRST, &name, NOW + 2 * US, oracle - got);
                        }
                        (asked, refused, above) = (
                            asked + 1,
                            refused + u64::from(got < oracle),
                            above + u64::from(got > oracle),
                        );
                    }
                }
            }
        }
        let (refused, above, asked) = (refused - so_far.0, above - so_far.1, asked - so_far.2);
        println!("{from} to {to}: of {asked} keys {refused} got less than they had left, {above} got more");
    }
    println!("A1: {refused} of {asked} keys got less than they had left, {late} the last permit a microsecond late, {above} got more");
    assert_eq!((refused, above), (0, 0));
    assert!(asked > 500_000, "{asked}");
}

/// E4: a change to and fro at one instant hands out nothing, also through a limit of 0, and a way
/// through 0 leaves as much as the straight one. For every two policies, in a table with room, in a
/// full one, and in a limiter. A key that has as many permits left as the policy on the way holds
/// is full there, and so it is fresh after the way back: those pairs are left out.
#[test]
fn a_change_to_and_fro_hands_out_nothing() {
    let texts = with_each(
        Kind::ALL.into_iter().filter(|kind| kind.words() == Words::One && *kind != Kind::Calendar),
        &[
            "1000/h",
            "300/h burst 1000",
            "10/s; 1000/day",
            "5/min ban 1h",
            "100/s burst 20 borrow",
            "7/s burst 3",
            "9/h reserve low 2 high 0",
        ],
    );
    let (mut more, mut less, mut ways) = (0, 0, 0);
    let zero = policy("0/s");
    for (from, to) in texts.iter().flat_map(|from| texts.iter().map(move |to| (from, to))) {
        let (from, to) = (policy(from), policy(to));
        for place in [Place::Room, Place::Full, Place::Limiter] {
            for cost in [1, from.burst / 2 + 1, from.burst] {
                let left =
                    |changes: &[Policy]| place.left_after(&from, cost.min(from.burst), changes);
                let before = left(&[]);
                if before >= place.left_after(&to, 0, &[]) {
                    continue;
                }
                for changes in [
                    &[to, from][..],
                    &[zero, from],
                    &[to, zero, from],
                    &[zero, to, from],
                    &[zero, zero, to, zero, from],
                ] {
                    let after = left(changes);
                    (ways, more) = (ways + 1, more + u64::from(after > before));
                    assert!(
                        after <= before,
                        "{from} with {before} left, by {}, {place:?}: {after} left",
                        changes.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ")
                    );
                }
                let (straight, through) = (left(&[to]), left(&[zero, to]));
                less += u64::from(through < straight);
                assert_eq!(
                    through, straight,
                    "{from} with {before} left to {to}, {place:?}: through 0/s {through}, straight {straight}"
                );
            }
        }
    }
    assert!(ways > 5_000, "{ways}");
    println!("E4: {ways} ways to and fro, {more} hand out more than was left; {less} leave less through 0/s than the straight way");
}

#[derive(Clone, Copy, Debug)]
enum Place {
    Room,
    Full,
    Limiter,
}

impl Place {
    /// The permits left after the changes, at one instant, of a key that has taken `cost`.
    fn left_after(self, from: &Policy, cost: u64, changes: &[Policy]) -> u64 {
        const KEY: &[u8] = b"key";
        if let Place::Limiter = self {
            let limiter = Limiter::with(State::new(from).unwrap(), Manual::new(NOW));
            let _ = limiter.check(cost);
            changes.iter().for_each(|to| limiter.set_policy(to, Keep::Count).unwrap());
            return limiter.peek(1).remaining;
        }
        let table =
            Table::private(&Options::new(12).with_seed(5).with_on_full(OnFull::Deny), &[*from])
                .unwrap();
        let _ = table.check_at(FIRST, KEY, NOW, cost);
        // Keys of a policy that stays, and that owe for long.
        let other = table.add_policy(&policy("1/day burst 1000")).unwrap();
        for key in 0..if let Place::Full = self { 100u64 } else { 0 } {
            let _ = table.admit_at(other, &key.to_le_bytes(), NOW, 1_000);
        }
        changes.iter().for_each(|to| table.set_policy(FIRST, to).unwrap());
        table.peek_at(FIRST, KEY, NOW, 1).remaining
    }
}

/// A policy that changes to and fro, a thousand times while its key owes, leaves the slot's time
/// where it was: the key gets what it regains.
#[test]
fn a_thousand_changes_to_and_fro_refuse_nobody() {
    let policies = ["100/h burst 100", "200/h burst 100"].map(policy);
    let table = table(&policies[0], OnFull::Deny, CAPACITY, 60, NOW);
    let held = left(&table, CAPACITY, NOW);
    let (mut now, mut refused) = (NOW, 0);
    for n in 1..=1_000 {
        now += 40 * SEC;
        table.set_policy(FIRST, &policies[n % 2]).unwrap();
        // In 40 s the key regains a permit or two, and asks for one.
        let key = held[n % 3].0.to_le_bytes();
        refused += u64::from(!table.check_at(FIRST, &key, now, 1).is_allowed());
    }
    println!("A1: of 1000 requests, each after a change to and fro, {refused} are refused");
    assert_eq!(refused, 0);
}

/// A reset under a limit of 0 reaches the state that will go on.
#[test]
fn a_reset_under_a_limit_of_0_is_kept() {
    let limiter = Limiter::with(State::new(&policy("10/h")).unwrap(), Manual::new(NOW));
    let table = table(&policy("10/h"), OnFull::Deny, 1, 10, NOW);
    let key = 0u64.to_le_bytes();
    let _ = limiter.check(10);
    for to in ["0/s", "20/h"] {
        limiter.set_policy(&policy(to), Keep::Count).unwrap();
        table.set_policy(FIRST, &policy(to)).unwrap();
        if to == "0/s" {
            limiter.reset();
            assert_eq!(table.reset_at(FIRST, &key, NOW), Ok(true));
        }
    }
    assert_eq!((limiter.peek(1).remaining, table.peek_at(FIRST, &key, NOW, 1).remaining), (20, 20));
}

/// A reset in a full table: the key begins again in its slot, however often.
#[test]
fn a_reset_succeeds_in_a_full_table() {
    let table = table(&policy("10/h"), OnFull::Deny, CAPACITY, 10, NOW);
    for (key, left) in left(&table, CAPACITY, NOW) {
        let name = key.to_le_bytes();
        assert_eq!(left, 0);
        for round in 0..20 {
            assert_eq!(table.reset_at(FIRST, &name, NOW), Ok(true), "key {key}, reset {round}");
            assert_eq!(
                table.take_up_to_at(FIRST, &name, NOW + 2 * US, 99),
                10,
                "key {key}, reset {round}"
            );
        }
    }
}

/// B8, the price of [`OnFull::EvictNearest`]. A client invents keys, and each of them uses up its
/// burst. Some of them take the slot of a limited key, which then has its burst again. On average
/// that happens about once for as many invented keys as the table has slots. Honest new keys that
/// come meanwhile are refused nothing. In the smallest table a fifth of the slots are in spare
/// buckets, in which fewer keys are evicted.
#[test]
fn a_flood_of_invented_keys_frees_a_limited_key_seldom_and_refuses_no_new_one() {
    for (text, spread, capacity, seeds) in [
        ("1/h burst 3", 1, 12_000, 20),
        ("1/h burst 3", 1, 500, 40),
        ("5/min burst 3", 33_333, 500, 40),
        ("1/h burst 1", 1, 500, 40),
        ("100/h burst 20", 1, 500, 40),
    ] {
        let policy = policy(text);
        let (mut most, mut sum, mut above, mut promise) = (0, 0, 0, 0.0f64);
        let (mut asked, mut refused) = ([0u64; 2], [0u64; 2]);
        for seed in 1..=seeds {
            let table =
                Table::private(&Options::new(capacity).with_seed(seed), &[policy]).expect("memory");
            let keys = 8 * table.slots();
            let mut now = NOW;
            table.take_up_to_at(FIRST, b"limited", now, policy.burst);
            let mut gained = 0;
            for key in 1..=keys {
                for n in 0..policy.burst {
                    now += spread;
                    let _ = table.admit_at(FIRST, &key.to_le_bytes(), now, 1);
                    if n % 10 == 0 {
                        gained += u64::from(
                            table.admit_at(FIRST, b"limited", now, 1) == tollbar::Verdict::Allowed,
                        );
                    }
                }
                if key % 100 == 0 && key > keys / 8 {
                    // An honest new key: a request, and another a little later.
                    for n in 0..policy.burst.min(2) {
                        let verdict =
                            table.admit_at(FIRST, &(!key).to_le_bytes(), now + n * 2 * US, 1);
                        asked[n as usize] += 1;
                        refused[n as usize] += u64::from(verdict != tollbar::Verdict::Allowed);
                    }
                }
            }
            let refill = (now - NOW) as f64 * policy.limit as f64 / policy.period as f64;
            promise = policy.burst as f64 * (keys as f64 / table.slots() as f64) + refill;
            (most, sum, above) =
                (most.max(gained), sum + gained, above + u64::from(gained as f64 > promise));
        }
        let mean = sum as f64 / f64::from(seeds as u32);
        println!(
            "B8, {text}, for {capacity} keys: the limited key gains {mean:.1} on average, {most} at most, where a burst for as many keys as slots is {promise:.1}: above it \
             in {above} of {seeds} seeds; new keys refused: {} of {} first requests, {} of {} second ones",
            refused[0], asked[0], refused[1], asked[1]
        );
        let fewer = if capacity == 500 { 1.25 } else { 15.0 / 14.0 };
        assert!(
            (0.7 * promise..=1.15 * fewer * promise).contains(&mean),
            "{text}: {mean} of {promise}"
        );
        assert!(most as f64 <= 3.0 * promise, "{text}: {most} of {promise}");
        assert_eq!(refused, [0, 0], "{text}");
    }
}

/// A doubled rate, algorithm by algorithm, in a table that is 80 % and 100 % full: how many keys
/// with 40 of 100 permits left are refused. Under `ban` and `borrow` a word has no room for the
/// slot's time beside a smaller debt. There a key needs another slot, and keeps its debt as a time
/// if none is free: docs/table.md has these figures. (A pacer and a warm-up have one permit or
/// none, and no count to keep.)
#[test]
fn a_doubled_rate_refuses_what_the_documents_say() {
    let doubled = [
        ("100/h", "200/h burst 100", [0, 0]),
        ("100/h algo fixed-window", "200/h algo fixed-window", [0, 0]),
        ("100/h algo weighted-window", "200/h algo weighted-window", [0, 0]),
        ("100/h curve ln", "200/h curve ln", [0, 0]),
        ("100/forever", "200/forever", [0, 0]),
        ("100/h algo interval", "200/h algo interval", [0, 0]),
        ("100/h; 1000/day", "200/h burst 100; 2000/day", [0, 0]),
        ("100/h burst 100 refill 0:50% 50%:100%", "200/h burst 100 refill 0:50% 50%:100%", [0, 0]),
        ("100/h burst 100 ban 1h", "200/h burst 100 ban 1h", [26, 58]),
        ("100/h burst 100 init 100 borrow", "200/h burst 100 init 100 borrow", [26, 58]),
    ];
    let no_count = [Kind::Pacer, Kind::WarmUp, Kind::Calendar];
    let kinds =
        Kind::ALL.into_iter().filter(|kind| kind.words() == Words::One && !no_count.contains(kind));
    has_each(kinds, &doubled.map(|(from, ..)| from));
    for (from, to, documented) in doubled {
        let refused = [80, 100].map(|percent| {
            let keys = CAPACITY * percent / 100;
            let now = NOW + 30 * 60 * SEC;
            let table = table(&policy(from), OnFull::Deny, keys, 1, now);
            (0..keys).for_each(|key| _ = table.take_up_to_at(FIRST, &key.to_le_bytes(), now, 59));
            let before = left(&table, keys, now);
            table.set_policy(FIRST, &policy(to)).unwrap();
            let had_some = before.iter().filter(|(_, left)| *left > 0);
            let is_refused =
                |key: u64| !table.check_at(FIRST, &key.to_le_bytes(), now + 2 * US, 1).is_allowed();
            let (all, lost) =
                (had_some.clone().count(), had_some.filter(|(key, _)| is_refused(*key)).count());
            (lost, all)
        });
        println!("A1, {from} to {to}: of the keys with permits left are refused {refused:?}");
        let percent = refused.map(|(lost, all)| (100 * lost + all / 2) / all);
        assert_eq!(percent, documented, "{from} to {to}: {refused:?}");
    }
}
