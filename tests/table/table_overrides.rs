//! Keys with a policy of their own.

use crate::common::{policy, DAY, HOUR, MIN, SEC};
use tollbar::algorithm::Charge;
use tollbar::table::{
    Keep, OnFull, Options, PolicyId, Refund, Request, RequestError, Table, TableError,
};
use tollbar::take_many::{take_many_at, Limit};
use tollbar::{Policy, Verdict};

const FIRST: PolicyId = PolicyId::FIRST;
const SECOND: PolicyId = PolicyId::new(1);
const NOW: u64 = 40 * DAY;

fn options() -> Options {
    Options::new(1000).with_seed(3)
}

fn table(texts: &[&str]) -> Table {
    let policies: Vec<Policy> = texts.iter().map(|text| policy(text)).collect();
    Table::private(&options(), &policies).expect("memory")
}

fn set(table: &Table, key: &[u8], text: &str) {
    table.set_override(FIRST, key, &policy(text), Keep::Count).expect("an override");
}

/// How many requests for one permit pass at `now`, 10,000 at most.
fn passed(table: &Table, policy: PolicyId, key: &[u8], now: u64) -> u64 {
    (0..10_000).take_while(|_| table.admit_at(policy, key, now, 1) == Verdict::Allowed).count()
        as u64
}

#[test]
fn a_key_has_a_policy_of_its_own() {
    let table = table(&["3/min", "4/min"]);
    set(&table, b"acme", "1000/s burst 50");
    assert_eq!(passed(&table, FIRST, b"acme", NOW), 50);
    assert_eq!(passed(&table, FIRST, b"other", NOW), 3);
    // The same key under another policy has no override.
    assert_eq!(passed(&table, SECOND, b"acme", NOW), 4);
    assert_eq!(passed(&table, FIRST, b"acme", NOW + SEC / 100), 10);
    assert_eq!(table.override_of(FIRST, b"acme"), Ok(Some(policy("1000/s burst 50"))));
    assert_eq!(
        (table.override_of(FIRST, b"other"), table.override_of(SECOND, b"acme")),
        (Ok(None), Ok(None))
    );
    // The decisions count under the policy that calls name.
    assert_eq!(table.counts(FIRST).map(|counts| counts.allowed), Ok(63));
    assert_eq!(
        (table.clear_override(FIRST, b"acme"), table.clear_override(FIRST, b"acme")),
        (Ok(true), Ok(false))
    );
    assert_eq!(passed(&table, FIRST, b"acme", NOW + SEC / 100), 0);
    assert_eq!(passed(&table, FIRST, b"acme", NOW + 2 * MIN), 3);
    assert_eq!((table.stats().overrides, table.overrides().count()), (0, 0));
}

/// [`Keep`] decides what a key keeps of its debt, both when an override begins and when it ends.
#[test]
fn debts_are_kept_as_the_override_says() {
    let fast = policy("10/s burst 100");
    for (keep, begins, ends) in [(Keep::Count, 6, 6), (Keep::Time, 0, 5), (Keep::Reset, 100, 10)] {
        let table = table(&["10/min"]);
        assert_eq!(table.admit_at(FIRST, b"k", NOW, 4), Verdict::Allowed);
        table.set_override(FIRST, b"k", &fast, keep).unwrap();
        assert_eq!(table.peek_at(FIRST, b"k", NOW, 1).remaining, begins, "{keep:?}");
        let at_once = table.check_at(FIRST, b"k", NOW, 1);
        assert_eq!(at_once.is_allowed(), begins != 0, "{keep:?}");
        table.clear_override(FIRST, b"k").unwrap();
        let left = ends - u64::from(at_once.is_allowed() && keep == Keep::Count);
        assert_eq!(table.peek_at(FIRST, b"k", NOW, 1).remaining, left, "{keep:?}");
    }
}

/// Every call that decides, peeks or charges, under an override and after it.
#[test]
fn every_call_uses_the_override() {
    for on_full in [OnFull::EvictNearest, OnFull::Inherit, OnFull::Deny] {
        let options = options().with_on_full(on_full);
        let table = Table::private(&options, &[policy("2/h")]).expect("memory");
        set(&table, b"k", "10/s burst 100");
        let left = |now| table.peek_at(FIRST, b"k", now, 1).remaining;
        assert_eq!(table.check_at(FIRST, b"k", NOW, 10).remaining, 90);
        assert_eq!(table.admit_at(FIRST, b"k", NOW, 10), Verdict::Allowed);
        assert_eq!(table.take_up_to_at(FIRST, b"k", NOW, 10), 10);
        let mut decisions = [table.peek_at(SECOND, b"k", NOW, 1); 2];
        let request = Request { policy: FIRST, key: b"k", cost: 5 };
        table.check_many_at(NOW, &[request, request], &mut decisions);
        assert_eq!((decisions[0].remaining, decisions[1].remaining, left(NOW)), (65, 60, 60));
        set(&table, b"booker", "10/s burst 100");
        let booked = table.reserve_at(FIRST, b"booker", NOW, 100, NOW).and_then(|_| {
            table.reserve_at(FIRST, b"booker", NOW, 10, NOW + SEC) // a second of the override's rate
        });
        assert_eq!(booked, Ok(Charge { at: NOW + SEC, cost: 10 }));
        assert_eq!(table.give_back_at(FIRST, b"booker", NOW, booked.unwrap(), 10), Ok(10));
        let (decision, receipt) = table.take_at(FIRST, b"k", NOW, 20).unwrap();
        assert_eq!(decision.remaining, 40);
        let settled = table.settle_at(&receipt.unwrap(), NOW, 5, Refund::Safe).unwrap();
        assert_eq!((settled.first, settled.given_back, left(NOW)), (true, 15, 55));
        assert_eq!(table.charge_at(FIRST, b"k", NOW, 5), 0);
        let limits = [Limit::Key(&table, FIRST, b"k", 40), Limit::Key(&table, FIRST, b"other", 2)];
        assert!(take_many_at(&limits, NOW).is_ok_and(|taken| taken.decision.is_allowed()));
        assert_eq!((left(NOW), table.peek_at(FIRST, b"other", NOW, 1).remaining), (10, 0));
        let entry = table
            .entries(NOW)
            .find(|entry| entry.hash == table.hash(FIRST, b"k").unwrap())
            .expect("the key");
        assert_eq!((entry.policy, entry.remaining), (FIRST, 10));
        assert_eq!(table.reset_at(FIRST, b"k", NOW), Ok(true));
        assert_eq!(left(NOW), 100);
        table.exempt(FIRST, b"k").unwrap();
        assert_eq!(table.check_at(FIRST, b"k", NOW, 1000).verdict, Verdict::Allowed);
        table.unexempt(FIRST, b"k").unwrap();
        assert_eq!(table.clear_override(FIRST, b"k"), Ok(true));
        assert_eq!(table.check_at(FIRST, b"k", NOW, 1).remaining, 1);
    }
}

#[test]
fn a_full_map_says_so() {
    let few = Options { overrides: 5, ..options() };
    let table = Table::private(&few, &[policy("2/h")]).expect("memory");
    for n in 0u32..5 {
        set(&table, &n.to_le_bytes(), "3/h");
    }
    let (another, spec) = (b"another", policy("3/h"));
    assert_eq!(table.set_override(FIRST, another, &spec, Keep::Count), Err(TableError::Overrides));
    // An existing override may be changed, and a cleared one makes room for another.
    set(&table, &0u32.to_le_bytes(), "4/h");
    assert_eq!(table.clear_override(FIRST, &0u32.to_le_bytes()), Ok(true));
    set(&table, another, "3/h");
    assert_eq!((table.stats().overrides, table.overrides().count()), (5, 5));
    let none =
        Table::private(&Options { overrides: 0, ..options() }, &[policy("2/h")]).expect("memory");
    assert_eq!(none.set_override(FIRST, another, &spec, Keep::Count), Err(TableError::Overrides));
    let most = Options { overrides: (1 << 19) + 1, ..options() };
    assert_eq!(Table::bytes_for(&most, &[spec]), Err(TableError::Overrides));
    assert_eq!(
        table.set_override(SECOND, another, &spec, Keep::Count),
        Err(RequestError::NoSuchPolicy.into())
    );
    assert_eq!(
        table.set_override(FIRST, b"", &spec, Keep::Count),
        Err(RequestError::MissingKey.into())
    );
    assert_eq!(
        table.set_override(FIRST, another, &policy("3/h algo sliding-log"), Keep::Count),
        Err(TableError::Mixed)
    );
}

/// A table has room for as many overrides as the option says, whatever the keys' hashes are.
#[test]
fn so_many_keys_have_overrides() {
    for most in [1, 2, 100, 1024, 20_000] {
        let table = Table::private(&Options { overrides: most, ..options() }, &[policy("2/h")])
            .expect("memory");
        for n in 0..most {
            set(&table, &n.to_le_bytes(), "3/h");
        }
        assert_eq!(table.overrides().count(), most as usize);
        assert_eq!(
            table.bytes()
                - Table::bytes_for(&Options { overrides: 0, ..options() }, &[policy("2/h")])
                    .unwrap(),
            { u64::from(most).div_ceil(4).max(2) * 128 }
        );
        assert!((0..most).all(|n| table.peek_at(FIRST, &n.to_le_bytes(), NOW, 1).remaining == 3));
        assert_eq!(table.peek_at(FIRST, b"another", NOW, 1).remaining, 2);
    }
}

/// Overrides come and go thousands of times: their versions are used again.
#[test]
fn versions_are_used_again() {
    let table = table(&["2/h"]);
    for n in 0..3000u64 {
        let key = [n as u8 % 16];
        let of = Policy::new(100 + n, HOUR);
        table.set_override(FIRST, &key, &of, Keep::Count).expect("a version");
        let decision = table.check_at(FIRST, &key, NOW + n * MIN, 1);
        assert!(decision.is_allowed(), "override {n}: {decision:?}");
        if n % 3 == 0 {
            assert_eq!(table.clear_override(FIRST, &key), Ok(true));
        }
        // Policies change in between.
        if n % 7 == 0 {
            table.set_policy(FIRST, &Policy::new(2 + n, HOUR)).expect("a version");
        }
    }
    assert!(table.validate(NOW + 3000 * MIN).is_sound());
    // There can be as many different overrides at one time as versions, and a policy can still
    // change.
    let mut different = 0u64;
    while table
        .set_override(
            FIRST,
            &different.to_le_bytes(),
            &Policy::new(9000 + different, HOUR),
            Keep::Count,
        )
        .is_ok()
    {
        different += 1;
    }
    assert!((225..=254).contains(&different), "{different}");
    assert_eq!(
        table.set_override(FIRST, b"k", &Policy::new(1, HOUR), Keep::Count),
        Err(TableError::Versions)
    );
    set(&table, b"k", &Policy::new(9000, HOUR).to_string());
    table.set_policy(FIRST, &policy("5/s")).expect("a version");
    table.set_policy(FIRST, &policy("6/s")).expect("a version");
}

/// A copy takes the overrides with it, and the states under them.
#[test]
fn a_copy_has_the_overrides() {
    let from = table(&["2/h"]);
    set(&from, b"acme", "10/s burst 100");
    from.set_override(FIRST, b"umbrella", &policy("5/s"), Keep::Reset).unwrap();
    assert_eq!(from.admit_at(FIRST, b"acme", NOW, 60), Verdict::Allowed);
    let to = Table::private(&Options::new(100_000).with_seed(3), &[policy("2/h")]).expect("memory");
    to.set_override(FIRST, b"umbrella", &policy("7/s"), Keep::Count).unwrap();
    let copied = to.copy_from(&from, NOW).unwrap();
    assert_eq!((copied.copied, copied.lost), (1, 0));
    assert_eq!(to.peek_at(FIRST, b"acme", NOW, 1).remaining, 40);
    assert_eq!(to.override_of(FIRST, b"umbrella"), Ok(Some(policy("7/s"))));
    assert_eq!(to.overrides().count(), 2);
}

/// A thread spends a hot key's credit only under the override under which it took the credit, also
/// when an earlier override comes back.
#[test]
fn credit_is_void_when_an_override_changes() {
    let table = Table::private(&options().with_hot_keys(64), &[policy("100/s burst 6400")])
        .expect("memory");
    set(&table, b"another", "1/s");
    for _ in 0..20 {
        assert!(table.check_at(FIRST, b"k", NOW, 1).is_allowed());
    }
    let in_table = |table: &Table| {
        let mut decision = [table.peek_at(SECOND, b"k", NOW, 1)];
        table.check_many_at(NOW, &[Request { policy: FIRST, key: b"k", cost: 0 }], &mut decision);
        decision[0].remaining
    };
    let credit = table.peek_at(FIRST, b"k", NOW, 1).remaining - in_table(&table);
    assert!(credit > 0, "a hot key of a table with overrides has credit");
    set(&table, b"k", "1000000/s burst 6400");
    assert_eq!(
        table.peek_at(FIRST, b"k", NOW, 1).remaining,
        in_table(&table),
        "under the override"
    );
    // The fast override fills the bucket.
    assert!(table.check_at(FIRST, b"k", NOW + SEC, 1).is_allowed());
    table.clear_override(FIRST, b"k").unwrap();
    let remaining = table.peek_at(FIRST, b"k", NOW + SEC, 1).remaining;
    assert!(remaining <= 6400, "{remaining} of 6400");
}

/// An override that equals the policy, or the key's override, still forgives the key's debt if it
/// is set with `Keep::Reset`.
#[test]
fn an_equal_override_resets() {
    let table = Table::private(&Options::new(100).with_seed(5), &[policy("2/h")]).expect("memory");
    let drain = |now| while table.check_at(FIRST, b"k", now, 1).is_allowed() {};
    for round in 0..3 {
        let now = 1_000 * SEC + round;
        drain(now);
        table.set_override(FIRST, b"k", &policy("2/h"), Keep::Reset).expect("an override");
        assert_eq!(table.peek_at(FIRST, b"k", now, 1).remaining, 2, "round {round}");
    }
}

/// A reset of the policy is for a key, too, whose override has ended before it and begins again
/// without a request in between. A key whose override stays keeps its debt.
#[test]
fn a_reset_policy_forgives_the_debt_of_a_former_override() {
    let table = table(&["10/h"]);
    for key in [b"former", b"stays!"] {
        table.set_override(FIRST, key, &policy("4/h"), Keep::Count).expect("an override");
        assert_eq!(passed(&table, FIRST, key, NOW), 4);
    }
    table.clear_override(FIRST, b"former").unwrap();
    table.set_policy_keeping(FIRST, &policy("10/h"), Keep::Reset).expect("a version");
    table.set_override(FIRST, b"former", &policy("4/h"), Keep::Count).expect("an override");
    assert_eq!(
        (passed(&table, FIRST, b"former", NOW), passed(&table, FIRST, b"stays!", NOW)),
        (4, 0)
    );
}

/// An override that keeps nothing resets its key when it begins and when it ends, whether the key
/// makes a request in between or not.
#[test]
fn an_override_resets_at_once() {
    for between in [policy("10/h"), policy("4/h")] {
        let table = table(&["10/h"]);
        assert_eq!(passed(&table, FIRST, b"k", NOW), 10);
        table.set_override(FIRST, b"k", &between, Keep::Reset).expect("an override");
        table.clear_override(FIRST, b"k").unwrap();
        assert_eq!(passed(&table, FIRST, b"k", NOW), 10, "after {between}");
        table.set_override(FIRST, b"k", &between, Keep::Reset).expect("an override");
        assert_eq!(passed(&table, FIRST, b"k", NOW), between.burst);
        table.clear_override(FIRST, b"k").unwrap();
        table.set_override(FIRST, b"k", &between, Keep::Count).expect("an override");
        assert_eq!(passed(&table, FIRST, b"k", NOW), between.burst, "again after {between}");
    }
}
