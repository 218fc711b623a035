//! Reasons of decisions: one request for each reason that a limiter or a table can give.

use tollbar::clock::Tsc;
use tollbar::table::{Missing, OnFull, Options, PolicyId, Table};
use tollbar::{Limiter, Policy, Reason, State, Verdict};

const NOW: u64 = 1_000_000_000;

fn policy(text: &str) -> Policy {
    text.parse().expect("a policy")
}

/// A table under `text` without a free slot: every key in it has a debt for an hour.
fn full(text: &str, on_full: OnFull) -> Table {
    let table =
        Table::private(&Options { on_full, ..Options::new(1) }, &[policy(text)]).expect("a table");
    for key in 0u64..40_000 {
        let _ = table.admit_at(PolicyId::FIRST, &key.to_le_bytes(), NOW, 2);
    }
    table
}

/// Keys that have no slot in a full table: the reasons that a peek and then a check give for each.
fn new_keys(table: &Table) -> Vec<(Verdict, Reason)> {
    let mut decisions = Vec::new();
    for key in 100_000u64..100_050 {
        let key = key.to_le_bytes();
        let peeked = table.peek_at(PolicyId::FIRST, &key, NOW, 1);
        let checked = table.check_at(PolicyId::FIRST, &key, NOW, 1);
        assert_eq!((peeked.verdict, peeked.reason), (checked.verdict, checked.reason));
        decisions.push((checked.verdict, checked.reason));
    }
    decisions
}

#[test]
fn the_limit_itself() {
    for text in [
        "3/h",
        "3/h algo interval",
        "3/h algo fixed-window",
        "3/h algo weighted-window",
        "3/h algo sliding-window",
        "3/h algo sliding-log",
        "3/h borrow",
    ] {
        let limiter = Limiter::with(State::new(&policy(text)).expect("a state"), Tsc);
        let peeked = Limiter::peek(&limiter, 1);
        assert_eq!((peeked.verdict, peeked.reason), (Verdict::Allowed, Reason::Admitted), "{text}");
        assert_eq!(limiter.check_at(NOW, 3).reason, Reason::Admitted, "{text}");
        let refused = limiter.check_at(NOW, 1);
        assert_eq!((refused.verdict, refused.reason), (Verdict::Denied, Reason::Rate), "{text}");
        if text != "3/h borrow" {
            let never = limiter.check_at(NOW, 4);
            assert_eq!((never.verdict, never.reason), (Verdict::Never, Reason::Burst), "{text}");
        }
    }
    let closed = Limiter::new(&policy("0/s")).expect("a limiter").check(1);
    assert_eq!((closed.verdict, closed.reason), (Verdict::Denied, Reason::Rate));
}

#[test]
fn too_many_asleep() {
    let limiter = Limiter::new(&policy("1/h")).expect("a limiter").with_waiters(0);
    assert!(limiter.check(1).is_allowed());
    assert_eq!(limiter.wait_ns(1, 7_200_000_000_000).reason, Reason::QueueFull);
    assert_eq!(limiter.wait_ns(1, 1).reason, Reason::Rate);
}

#[test]
fn a_full_table() {
    for text in ["2/h", "2/h algo fixed-window", "2/h algo sliding-window", "2/h algo sliding-log"]
    {
        let all = |on_full| new_keys(&full(text, on_full));
        assert!(
            all(OnFull::Deny)
                .iter()
                .all(|decision| *decision == (Verdict::Denied, Reason::TableFull)),
            "{text}"
        );
        assert!(
            all(OnFull::Allow)
                .iter()
                .all(|decision| *decision == (Verdict::Allowed, Reason::TableFull)),
            "{text}"
        );
        assert!(
            all(OnFull::Inherit)
                .iter()
                .all(|decision| *decision == (Verdict::Denied, Reason::InheritedDebt)),
            "{text}"
        );
        assert!(
            all(OnFull::EvictNearest)
                .iter()
                .all(|decision| *decision == (Verdict::Allowed, Reason::Admitted)),
            "{text}"
        );
    }
}

#[test]
fn keys_that_are_not_charged() {
    let table = |missing| {
        Table::private(&Options { missing, ..Options::new(100) }, &[policy("1/h")])
            .expect("a table")
    };
    let decision = table(Missing::Deny).check_at(PolicyId::FIRST, b"", NOW, 1);
    assert_eq!((decision.verdict, decision.reason), (Verdict::Denied, Reason::MissingKey));
    let decision = table(Missing::Allow).check_at(PolicyId::FIRST, b"", NOW, 1);
    assert_eq!((decision.verdict, decision.reason), (Verdict::Allowed, Reason::MissingKey));

    let table = table(Missing::Deny);
    table.exempt(PolicyId::FIRST, b"us").expect("room");
    for _ in 0..3 {
        let decision = table.check_at(PolicyId::FIRST, b"us", NOW, 1);
        assert_eq!((decision.verdict, decision.reason), (Verdict::Allowed, Reason::Exempt));
    }
    let decision = table.check_at(PolicyId::new(7), b"them", NOW, 1);
    assert_eq!((decision.verdict, decision.reason), (Verdict::Denied, Reason::Fault));
}
