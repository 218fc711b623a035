//! Lifetime quotas: limiters, and keys of a table, whose slots no time frees.

use crate::common::*;
use tollbar::algorithm::Charge;
use tollbar::clock::Manual;
use tollbar::policy::Keep;
use tollbar::table::{OnFull, Options, PolicyId, Refund, Table};
use tollbar::units::LAST;
use tollbar::{Limiter, Verdict, NEVER};

const FIRST: PolicyId = PolicyId::FIRST;

fn table(text: &str, on_full: OnFull) -> Table {
    Table::private(&Options::new(1).with_seed(5).with_on_full(on_full), &[policy(text)]).unwrap()
}

/// Uses a permit of new keys until the table refuses one or evicts another for it. Returns all
/// keys, that one last.
fn filled(table: &Table) -> Vec<String> {
    let mut keys = Vec::new();
    for n in 0.. {
        keys.push(format!("key {n}"));
        let before = table.stats();
        let _ = table.admit_at(FIRST, keys[n].as_bytes(), HOUR, 1);
        let after = table.stats();
        let full = |s: &tollbar::table::Stats| s.evicted + s.inherited + s.refused;
        if full(&after) > full(&before) {
            return keys;
        }
    }
    unreachable!()
}

#[test]
fn a_lifetime_quota_never_comes_back() {
    let limiter = Limiter::with(tollbar::State::new(&policy("3/forever")).unwrap(), Manual::new(0));
    for left in [2, 1, 0] {
        let passed = limiter.check_at(7, 1);
        assert_eq!(
            (passed.verdict, passed.remaining, passed.reset_after),
            (Verdict::Allowed, left, NEVER)
        );
    }
    for now in [7, HOUR, 70 * YEAR, LAST, LAST + 1, u64::MAX] {
        let refused = limiter.check_at(now, 1);
        assert_eq!(
            (refused.verdict, refused.remaining, refused.retry_after),
            (Verdict::Denied, 0, NEVER),
            "{now}"
        );
    }
    assert_eq!(limiter.wait_ns(1, NEVER).verdict, Verdict::Denied, "no wait helps");
    limiter.reset();
    assert_eq!(limiter.take_up_to_at(LAST, 9), 3);
}

#[test]
fn a_changed_quota_keeps_its_count() {
    let limiter =
        Limiter::with(tollbar::State::new(&policy("10/forever")).unwrap(), Manual::new(HOUR));
    assert!(limiter.check(6).is_allowed());
    for (text, left) in [("20/forever", 14), ("4/forever", 0), ("10/forever", 6)] {
        limiter.set_policy(&policy(text), Keep::Count).unwrap();
        assert_eq!(limiter.peek(1).remaining, left, "{text}");
    }
    limiter.set_policy(&policy("8/s"), Keep::Count).unwrap();
    assert_eq!(limiter.peek(1).remaining, 6, "as many as were left");
}

/// Takes `cost` permits under `first`, from a limiter and from a table's key, and changes the
/// policy to each text in turn. Returns the permits left after that.
fn changed(first: &str, cost: u64, texts: &[&str], keep: Keep) -> Vec<[u64; 2]> {
    let limiter = Limiter::with(tollbar::State::new(&policy(first)).unwrap(), Manual::new(HOUR));
    let table = table(first, OnFull::EvictNearest);
    assert!(
        limiter.check(cost).is_allowed() && table.check_at(FIRST, b"key", HOUR, cost).is_allowed()
    );
    let change = |text: &&str| {
        limiter.set_policy(&policy(text), keep).unwrap();
        table.set_policy_keeping(FIRST, &policy(text), keep).unwrap();
        // The first request brings the key to the new policy.
        let _ = table.admit_at(FIRST, b"key", HOUR, 0);
        [limiter.peek(1).remaining, table.peek_at(FIRST, b"key", HOUR, 1).remaining]
    };
    texts.iter().map(change).collect()
}

/// A quota has no time at which a debt ends. So with `Keep::Time` the permits used carry over as a
/// number, too.
#[test]
fn a_count_carries_over_to_and_from_a_quota() {
    assert_eq!(changed("100/forever", 6, &["10/s"], Keep::Time), [[4; 2]]);
    assert_eq!(changed("100/forever", 60, &["10/s"], Keep::Time), [[0; 2]]);
    assert_eq!(changed("10/s", 6, &["100/forever"], Keep::Time), [[94; 2]]);
    assert_eq!(changed("10/s; 100/h", 6, &["100/forever"], Keep::Time), [[94; 2]]);
    assert_eq!(changed("10/min algo fixed-window", 6, &["100/forever"], Keep::Time), [[94; 2]]);
    assert_eq!(
        changed("10/s ban 1h after 3", 6, &["100/forever", "10/s"], Keep::Time),
        [[94; 2], [4; 2]]
    );
}

/// From a quota to a sliding window or a log, and back.
#[test]
fn a_limiter_of_several_words_keeps_a_quotas_count() {
    for text in ["10/min algo sliding-log", "10/min algo sliding-window"] {
        let limiter =
            Limiter::with(tollbar::State::new(&policy("100/forever")).unwrap(), Manual::new(HOUR));
        assert!(limiter.check(6).is_allowed());
        limiter.set_policy(&policy(text), Keep::Time).unwrap();
        assert_eq!(limiter.peek(1).remaining, 4, "{text}");
        limiter.set_policy(&policy("100/forever"), Keep::Time).unwrap();
        assert_eq!(limiter.peek(1).remaining, 94, "{text}");
    }
}

/// A limit of 0 stops a key. When it is lifted, the quota goes on with the same count.
#[test]
fn a_quota_goes_on_after_a_stop() {
    for keep in [Keep::Time, Keep::Count] {
        assert_eq!(
            changed("100/forever", 6, &["0/s", "100/forever"], keep),
            [[0; 2], [94; 2]],
            "{keep:?}"
        );
        // As without the stop: the permits left, up to the burst, or the permits used.
        let left = if keep == Keep::Count { 10 } else { 4 };
        assert_eq!(
            changed("100/forever", 6, &["0/s", "10/s"], keep),
            [[0; 2], [left; 2]],
            "{keep:?}"
        );
        let left = if keep == Keep::Count { 4 } else { 94 };
        assert_eq!(
            changed("10/s", 6, &["0/s", "100/forever"], keep),
            [[0; 2], [left; 2]],
            "{keep:?}"
        );
    }
}

/// An override of `0/s` stops a key. When it is cleared, the quota goes on with the same count.
#[test]
fn a_quota_goes_on_after_an_override_of_0() {
    let table = table("100/forever", OnFull::EvictNearest);
    assert!(table.check_at(FIRST, b"key", HOUR, 6).is_allowed());
    table.set_override(FIRST, b"key", &policy("0/s"), Keep::Time).unwrap();
    assert_eq!(table.admit_at(FIRST, b"key", HOUR, 1), Verdict::Denied);
    table.clear_override(FIRST, b"key").unwrap();
    assert_eq!(table.check_at(FIRST, b"key", HOUR, 0).remaining, 94);
}

/// Neither time nor a sweep frees the slot of a key that has used a permit, and a reset does not
/// leave an unusable slot behind.
#[test]
fn a_key_stays_in_its_slot_and_may_begin_again() {
    let table = table("2/forever", OnFull::Deny);
    for lap in 0..100 {
        assert_eq!(table.take_up_to_at(FIRST, b"key", HOUR, 9), 2, "{lap}");
        assert_eq!(table.admit_at(FIRST, b"key", 70 * YEAR, 1), Verdict::Denied, "{lap}");
        assert_eq!(table.reset_at(FIRST, b"key", HOUR), Ok(true), "{lap}");
        assert_eq!(table.check_at(FIRST, b"key", HOUR, 0).remaining, 2, "{lap}");
    }
    table.take_up_to_at(FIRST, b"key", HOUR, 9);
    table.sweep(0, u64::MAX, LAST);
    assert_eq!(table.admit_at(FIRST, b"key", LAST, 1), Verdict::Denied, "a sweep forgets no quota");
    assert_eq!(table.stats().keys, 1);
}

/// In a full table `deny` refuses new keys at any later time, and forgets no key. `evict-nearest`
/// forgets one key for each new key. Under `inherit` the new key gets the permits that the former
/// key had left. A reset of the policy, or an override that keeps nothing, leaves the key in its
/// slot, too. In a vacant slot no other key would ever have room.
#[test]
fn a_reset_policy_leaves_a_quotas_key_in_its_slot() {
    let table = table("3/forever", OnFull::Deny);
    for round in 0..40 {
        assert_eq!(table.take_up_to_at(FIRST, b"key", HOUR, 9), 3, "round {round}");
        match round % 3 {
            0 => table.set_policy_keeping(FIRST, &policy("3/forever"), Keep::Reset).unwrap(),
            1 => table.set_override(FIRST, b"key", &policy("3/forever"), Keep::Reset).unwrap(),
            _ => assert_eq!(table.clear_override(FIRST, b"key"), Ok(true)),
        }
    }
    assert_eq!((table.stats().keys, table.stats().vacated), (1, 0));
}

#[test]
fn a_full_table_forgets_a_quota_unless_it_denies() {
    let denying = table("2/forever", OnFull::Deny);
    let keys = filled(&denying);
    let (new_key, old) = keys.split_last().unwrap();
    assert_eq!(denying.admit_at(FIRST, new_key.as_bytes(), LAST, 1), Verdict::Denied);
    for key in old {
        let rest = [0, 1].map(|_| denying.admit_at(FIRST, key.as_bytes(), LAST, 1));
        assert_eq!(rest, [Verdict::Allowed, Verdict::Denied], "{key}");
    }

    let evicting = table("2/forever", OnFull::EvictNearest);
    let new_key = filled(&evicting).pop().unwrap();
    let rest = [0, 1].map(|_| evicting.admit_at(FIRST, new_key.as_bytes(), LAST, 1));
    assert_eq!(rest, [Verdict::Allowed, Verdict::Denied], "it has a quota of its own");
    assert_eq!(evicting.stats().evicted, 1);

    let inheriting = table("2/forever", OnFull::Inherit);
    let keys = filled(&inheriting);
    // The former key had one permit left, and the new key's first request took it.
    assert_eq!(
        inheriting.admit_at(FIRST, keys.last().unwrap().as_bytes(), LAST, 1),
        Verdict::Denied
    );
}

#[test]
fn unused_permits_come_back() {
    let table = table("10/forever", OnFull::Deny);
    let receipt = table.take_at(FIRST, b"key", HOUR, 8).unwrap().1.unwrap();
    let settled = table.settle_at(&receipt, 70 * YEAR, 3, Refund::Safe).unwrap();
    assert_eq!(settled.given_back, 5);
    assert_eq!(table.check_at(FIRST, b"key", 70 * YEAR, 0).remaining, 7);
    let charge = Charge { at: HOUR, cost: 3 };
    assert_eq!(table.give_back_at(FIRST, b"key", 70 * YEAR, charge, 3), Ok(3));
    assert_eq!(table.check_at(FIRST, b"key", 70 * YEAR, 0).remaining, 10);
}
