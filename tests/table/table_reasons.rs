//! Tables count their decisions by reason: each decision raises the count of its reason by one,
//! whichever call makes it.

use crate::common::{policy, Rng, DAY, SEC};
use tollbar::table::{Missing, Options, PolicyId, Request, Table};
use tollbar::take_many::{take_many_at, Limit};
use tollbar::{Decision, Reason, Reasons, Verdict};

const FIRST: PolicyId = PolicyId::FIRST;
const CLASSES: PolicyId = PolicyId::new(1);

fn table(missing: Missing) -> Table {
    let options = Options { missing, ..Options::new(10_000).with_seed(3) };
    let policies = ["3/min burst 3 ban 90s after 2", "1/min burst 20 reserve low 8 high 0"];
    let table = Table::private(&options, &policies.map(policy)).unwrap();
    table.exempt(FIRST, b"exempt").unwrap();
    table
}

fn add(sum: &mut Reasons, reason: Reason) {
    match reason {
        Reason::Banned => sum.banned += 1,
        Reason::Reserve => sum.reserve += 1,
        Reason::QueueFull => sum.queue_full += 1,
        Reason::MissingKey => sum.missing_key += 1,
        Reason::Exempt => sum.exempt += 1,
        Reason::Admitted | Reason::Rate | Reason::Burst => {}
        other => panic!("{other:?}"),
    }
}

/// Makes a request by one of the calls that return a decision.
fn decide(table: &Table, way: u64, key: &[u8], now: u64) -> Decision {
    let mut out = [Decision::admitted(0)];
    match way {
        0 => table.check_at(FIRST, key, now, 1),
        1 => table.take_at(FIRST, key, now, 1).unwrap().0,
        2 => {
            table.check_many_at(now, &[Request { policy: FIRST, key, cost: 1 }], &mut out);
            out[0]
        }
        3 => take_many_at(&[Limit::Key(table, FIRST, key, 1)], now).unwrap().decision,
        4 => table.check_class_at(CLASSES, key, now, 1, b"low").unwrap(),
        5 => table.check_class_at(CLASSES, key, now, 1, b"high").unwrap(),
        _ => table.check_leaving_at(CLASSES, key, now, 1, 12).unwrap(),
    }
}

const KEYS: [&[u8]; 5] =
    [b"ann", b"a key that is longer than sixteen bytes", b"bob", b"exempt", b""];

#[test]
fn c11_each_decision_counts_for_its_reason() {
    for missing in [Missing::Deny, Missing::Allow] {
        let table = table(missing);
        let (mut rng, mut sum, mut now) = (Rng(5), Reasons::default(), DAY);
        for n in 0..20_000 {
            now += rng.below(4 * SEC);
            let decision = decide(&table, rng.below(7), KEYS[rng.below(5) as usize], now);
            add(&mut sum, decision.reason);
            assert_eq!(table.stats().reasons, sum, "request {n}: {decision:?}");
        }
        let Reasons { banned, reserve, queue_full: 0, missing_key, exempt } = sum else {
            panic!("{sum:?}")
        };
        assert!(
            [banned, reserve, missing_key, exempt].into_iter().all(|count| count > 500),
            "{sum:?}"
        );
    }
}

/// Calls that return no reason count it all the same. A second table gets the same requests by
/// `check_at`, which returns the reason; both tables must have the same counts.
#[test]
fn c11_calls_that_do_not_say_the_reason_count_it() {
    let (table, other) = (table(Missing::Deny), table(Missing::Deny));
    let (mut rng, mut now) = (Rng(6), DAY);
    for n in 0..20_000 {
        now += rng.below(4 * SEC);
        let (way, key) = (rng.below(3), KEYS[rng.below(5) as usize]);
        let decision = other.check_at(FIRST, key, now, 1);
        let allowed = match way {
            0 => table.admit_at(FIRST, key, now, 1) == Verdict::Allowed,
            1 => {
                let mut out = [Verdict::Never];
                table.admit_many_at(now, &[Request { policy: FIRST, key, cost: 1 }], &mut out);
                out[0] == Verdict::Allowed
            }
            // `take_up_to_at` and `reserve_at` make only the requests that pass: their refusals
            // count toward no ban, and those of `check_at` do.
            _ if decision.is_allowed() => match rng.below(2) {
                0 => table.take_up_to_at(FIRST, key, now, 1) == 1,
                _ => table.reserve_at(FIRST, key, now, 1, now).is_ok(),
            },
            _ => table.admit_at(FIRST, key, now, 1) == Verdict::Allowed,
        };
        assert_eq!(allowed, decision.is_allowed(), "request {n}");
        assert_eq!(
            table.stats().reasons,
            other.stats().reasons,
            "request {n}, way {way}: {decision:?}"
        );
    }
    assert!(table.stats().reasons.banned > 500);
    let banned = |table: &Table| table.stats().reasons.banned;
    while other.check_at(FIRST, b"ann", now, 1).reason != Reason::Banned {}
    let before = banned(&other);
    assert_eq!(other.take_up_to_at(FIRST, b"ann", now, 1), 0);
    assert_eq!(other.reserve_at(FIRST, b"ann", now, 1, now + SEC).err(), Some(Verdict::Denied));
    assert_eq!(banned(&other), before + 2);
}

/// A caller that refuses a request because of a peek passes the peek's reason to the table.
#[test]
fn c11_a_callers_own_decision_counts_for_its_reason() {
    let table = table(Missing::Deny);
    let mut sum = Reasons::default();
    for reason in [
        Reason::Banned,
        Reason::Reserve,
        Reason::QueueFull,
        Reason::MissingKey,
        Reason::Exempt,
        Reason::Rate,
    ] {
        table.count_decided(FIRST, Verdict::Denied, reason).unwrap();
        add(&mut sum, reason);
        assert_eq!(table.stats().reasons, sum);
    }
    assert_eq!(table.counts(FIRST).unwrap().denied, 6);
}

/// The table counts a caller whom it refuses because its queue of waiting callers is full.
#[test]
fn c11_a_full_queue_counts() {
    let options = Options { waiters: 0, ..Options::new(100) };
    let table = Table::private(&options, &[policy("1/h")]).unwrap();
    assert!(table.wait_ns(FIRST, b"ann", 1, 2 * 3600 * SEC).is_allowed());
    assert_eq!(table.wait_ns(FIRST, b"ann", 1, 2 * 3600 * SEC).reason, Reason::QueueFull);
    assert_eq!(table.stats().reasons, Reasons { queue_full: 1, ..Reasons::default() });
}
