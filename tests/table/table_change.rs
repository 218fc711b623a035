//! A policy that changes while its keys have debts: a key keeps its permits as a number, or by
//! choice its debt as a time.

use crate::common::{policy, Rng, DAY, MIN, SEC, US};
use tollbar::table::{Keep, OnFull, Options, PolicyId, Table};
use tollbar::{Policy, Verdict};

const FIRST: PolicyId = PolicyId::FIRST;
const NOW: u64 = 40 * DAY;

fn table(text: &str) -> Table {
    Table::private(&Options::new(1000).with_seed(3), &[policy(text)]).expect("memory")
}

/// The time in which a policy gives its whole burst.
fn refill(policy: &Policy) -> u64 {
    let nanos = u128::from(policy.burst) * u128::from(policy.period) / u128::from(policy.limit);
    nanos as u64 + policy.period / policy.limit + 2
}

/// Takes all permits of the key.
fn drain(table: &Table, key: &[u8], now: u64) {
    while table.admit_at(FIRST, key, now, 1) == Verdict::Allowed {}
}

#[test]
fn a_raised_rate_shortens_the_wait() {
    let table = table("3/min");
    drain(&table, b"k", NOW);
    assert_eq!(table.peek_at(FIRST, b"k", NOW, 1).retry_after, 20 * SEC);
    table.set_policy(FIRST, &policy("1000/s burst 1000")).unwrap();
    let decision = table.check_at(FIRST, b"k", NOW, 1);
    assert_eq!(
        (decision.verdict, decision.remaining, decision.retry_after),
        (Verdict::Denied, 0, SEC / 1000)
    );
    assert_eq!(decision.reset_after, SEC);
    assert_eq!(table.peek_at(FIRST, b"k", NOW + SEC / 10, 1).remaining, 100);
    // One key in the statistics, though its former slot stays taken until its debt would have been
    // paid.
    assert_eq!((table.stats().keys, table.entries(NOW).count()), (1, 1));
}

#[test]
fn a_lowered_rate_admits_nobody_who_was_refused() {
    let table = table("100/s burst 100");
    drain(&table, b"k", NOW);
    for text in [
        "3/min",
        "1/h burst 50",
        "1/day burst 1000",
        "5/min algo fixed-window",
        "2/h algo pacer",
        "3/h burst 3 borrow",
    ] {
        table.set_policy(FIRST, &policy(text)).unwrap();
        assert_eq!(table.check_at(FIRST, b"k", NOW, 1).verdict, Verdict::Denied, "{text}");
    }
}

#[test]
fn the_time_is_kept_by_choice() {
    let table = table("3/min");
    drain(&table, b"k", NOW);
    let raised = policy("1000/s burst 1000");
    table.set_policy_keeping(FIRST, &raised, Keep::Time).unwrap();
    // The bucket would have been full in a minute, and it is full then.
    let decision = table.check_at(FIRST, b"k", NOW, 1);
    assert!(
        decision.retry_after > 59 * SEC - SEC / 500 && decision.retry_after <= 59 * SEC + SEC / 500,
        "{decision:?}"
    );
    assert_eq!(table.policy(FIRST), Ok(raised));
}

/// Permits that are left stay, and the burst is not exceeded.
#[test]
fn permits_left_are_kept_as_a_number() {
    for (from, taken, to, left) in [
        ("10/min", 4, "1000/s burst 1000", 6),
        ("10/min", 4, "10/h burst 5", 5),
        ("100/s burst 100", 90, "1/h burst 50", 10),
        ("10/min algo fixed-window", 4, "1/s burst 100", 6),
        ("10/min", 4, "20/h algo fixed-window", 6),
        ("10/min algo interval", 4, "1000/s burst 1000", 6),
        ("10/min algo weighted-window", 4, "100/s", 6),
    ] {
        let table = table(from);
        assert_eq!(table.admit_at(FIRST, b"k", NOW, taken), Verdict::Allowed, "{from}");
        table.set_policy(FIRST, &policy(to)).unwrap();
        assert_eq!(
            table.peek_at(FIRST, b"k", NOW, 1).remaining,
            left,
            "{from}, {taken} taken, to {to}"
        );
    }
}

/// A debt stays as many permits, and a key that owes is not banned for it.
#[test]
fn a_debt_stays_as_many_permits() {
    for (from, to, wait) in [
        ("60/min burst 10", "30/min burst 10", 22 * SEC),
        ("60/min burst 10 algo interval", "30/min burst 10", 22 * SEC),
        ("60/min burst 10 algo interval", "30/min burst 5", 12 * SEC),
        ("60/min burst 10", "1/s burst 10 algo interval", 11 * SEC),
        ("60/min burst 10 algo interval", "1/s burst 10 algo interval", 11 * SEC),
        ("60/min burst 10 ban 1h after 3", "30/min burst 10", 22 * SEC),
        ("60/min burst 10 ban 1h after 3", "30/min burst 10 ban 1h after 3", 22 * SEC),
        ("60/min burst 10", "30/min burst 10 ban 1h after 3", 22 * SEC),
    ] {
        let table = table(from);
        assert_eq!(table.charge_at(FIRST, b"k", MIN, 20), 0, "{from}");
        table.set_policy(FIRST, &policy(to)).unwrap();
        assert_eq!(table.peek_at(FIRST, b"k", MIN, 1).retry_after, wait, "{from} to {to}");
    }
}

/// For any two policies: a change admits no key that was refused, and no wait is longer than the
/// new policy's refill.
#[test]
fn no_wait_is_longer_than_the_new_policy_refills() {
    let texts = [
        "3/min",
        "1000/s burst 1000",
        "1/h burst 50",
        "7/s burst 3",
        "100/day burst 10",
        "5/min algo interval",
        "20/h algo interval",
        "5/min algo fixed-window",
        "9/s algo fixed-window anchor first",
        "8/min algo weighted-window",
        "5/min algo pacer slack 2",
        "30/s algo pacer",
        "10/min burst 4 borrow",
        "5/s algo warm-up warm 2s cold 3",
    ];
    for from in texts {
        for to in texts.into_iter().filter(|to| *to != from) {
            let (table, new) = (table(from), policy(to));
            drain(&table, b"k", NOW);
            table.set_policy(FIRST, &new).unwrap();
            let decision = table.check_at(FIRST, b"k", NOW, 1);
            // A window that ends at this instant, or counts of one kind.
            let alike = from.split_once("algo").map(|(_, algo)| algo)
                == to.split_once("algo").map(|(_, algo)| algo);
            assert!(alike || decision.verdict == Verdict::Denied, "{from} to {to}: {decision:?}");
            let most =
                if to.contains("weighted") { 2 * new.period } else { refill(&new).max(new.period) };
            let cold = if to.contains("warm") { 10 * SEC } else { 0 };
            assert!(decision.retry_after <= most + cold, "{from} to {to}: {decision:?}");
        }
    }
}

/// A loan stays a debt of as many permits.
#[test]
fn a_loan_is_kept_as_a_number() {
    let table = table("10/min burst 10 borrow");
    assert_eq!(table.admit_at(FIRST, b"k", NOW, 8), Verdict::Allowed);
    assert_eq!(table.peek_at(FIRST, b"k", NOW, 1).retry_after, 48 * SEC);
    table.set_policy(FIRST, &policy("10/s burst 10 borrow")).unwrap();
    assert_eq!(table.check_at(FIRST, b"k", NOW, 1).retry_after, 8 * SEC / 10);
}

/// If no other slot is free, the key keeps its slot. Its word holds the slot's time beside the
/// smaller debt, so no slot's time falls.
#[test]
fn a_full_table_keeps_the_slots_time() {
    let options = Options::new(1000).with_seed(3).with_on_full(OnFull::Deny);
    let table = Table::private(&options, &[policy("1/h")]).expect("memory");
    let mut kept = Vec::new();
    for n in 0u32..30_000 {
        if table.admit_at(FIRST, &n.to_le_bytes(), NOW, 1) == Verdict::Allowed {
            kept.push(n);
        }
    }
    table.set_policy(FIRST, &policy("1000/s burst 1000")).unwrap();
    let waits: Vec<_> =
        kept.iter().map(|n| table.check_at(FIRST, &n.to_le_bytes(), NOW, 1).retry_after).collect();
    // A permit comes back in a millisecond, at most a microsecond late.
    assert!(
        waits.iter().all(|wait| (SEC / 1000..=SEC / 1000 + 2 * US).contains(wait)),
        "{:?}",
        waits.iter().max()
    );
    // A new key finds no slot as long as the keys owed under the former policy.
    assert_eq!(table.admit_at(FIRST, b"a new key", NOW + SEC, 1), Verdict::Denied);
    // No key has two slots.
    assert_eq!((table.stats().keys, table.entries(NOW).count()), (kept.len() as u64, kept.len()));
}

/// With one change at any moment, and with or without a sweep after it, no window of time has more
/// than both bounds together.
#[test]
fn one_change_never_gives_more_than_both_bounds() {
    let texts = [
        "3/min",
        "40/min burst 9",
        "2/s burst 30",
        "1/h burst 20",
        "5/min burst 12",
        "7/s burst 2",
    ];
    let mut rng = Rng(14);
    let mut closest = 0.0f64;
    for round in 0..600 {
        let (from, to) = (policy(rng.pick(&texts)), policy(rng.pick(&texts)));
        let keep = if round % 4 == 0 { Keep::Time } else { Keep::Count };
        let table = Table::private(&Options::new(100).with_seed(round), &[from]).expect("memory");
        let (mut now, change) = (NOW, rng.below(80));
        let mut taken: Vec<(u64, u64)> = Vec::new();
        for n in 0..120 {
            if n == change {
                table.set_policy_keeping(FIRST, &to, keep).unwrap();
                if rng.one_in(3) {
                    table.sweep(0, u64::MAX, now);
                }
            }
            let got = table.take_up_to_at(FIRST, b"k", now, rng.within(1, 40));
            if got != 0 {
                taken.push((now, got));
            }
            let most = rng.pick(&[2, SEC, 30 * SEC, 10 * MIN]);
            now += rng.below(most);
        }
        for (i, (start, _)) in taken.iter().enumerate() {
            let mut sum = 0;
            for (end, got) in &taken[i..] {
                sum += got;
                let bound = |p: &Policy| {
                    p.burst as f64 + (end - start) as f64 * p.limit as f64 / p.period as f64
                };
                let most = bound(&from) + bound(&to);
                assert!(
                    sum as f64 <= most + 1e-6,
                    "{from} to {to}: {sum} of {most} in {} ns",
                    end - start
                );
                closest = closest.max(sum as f64 / most);
            }
        }
    }
    // A fresh state after the change would give both bursts: the search comes near that.
    assert!(closest > 0.5, "{closest}");
}

/// Any number of changes to and fro at one instant gives nothing.
#[test]
fn changes_to_and_fro_give_nothing() {
    for (a, b) in
        [("1/s burst 20", "10/s burst 7"), ("3/min", "1000/s burst 1000"), ("5/h", "9/h burst 50")]
    {
        let table = table(a);
        drain(&table, b"k", NOW);
        for n in 0..700 {
            table.set_policy(FIRST, &policy(if n % 2 == 0 { b } else { a })).unwrap();
            assert_eq!(
                table.admit_at(FIRST, b"k", NOW, 1),
                Verdict::Denied,
                "{a} and {b}, change {n}"
            );
        }
        assert_eq!(table.entries(NOW).count(), 1);
    }
}

/// A key that makes no request while its policy changes hundreds of times is not charged for the
/// changes: it lacks as many permits as before, and waits no longer than one refill of the burst.
/// About every 250th change reads all slots and converts the keys that it finds.
#[test]
fn a_key_that_sleeps_through_changes_owes_no_more() {
    for count in [1, 254, 256, 508, 512, 765, 1_300] {
        let table = table("100/s burst 20");
        drain(&table, b"k", NOW);
        let policies = [policy("1/day burst 20"), policy("1/h burst 20")];
        for n in 0..count {
            table.set_policy(FIRST, &policies[(count - n - 1) % 2]).expect("a change");
        }
        let decision = table.peek_at(FIRST, b"k", NOW, 1);
        assert_eq!((decision.remaining, decision.retry_after), (0, DAY), "after {count} changes");
        assert_eq!(decision.reset_after, 20 * DAY, "after {count} changes");
    }
}

/// A change to the same policy with `Keep::Reset` forgives the debts of all keys, and otherwise
/// nothing.
#[test]
fn a_change_to_the_same_policy_can_reset() {
    let table = table("3/h");
    for (keep, remaining) in [(Keep::Count, 0), (Keep::Time, 0), (Keep::Reset, 3)] {
        drain(&table, b"k", NOW);
        table.set_policy_keeping(FIRST, &policy("3/h"), keep).expect("a change");
        assert_eq!(table.peek_at(FIRST, b"k", NOW, 1).remaining, remaining, "{keep:?}");
    }
}

/// A reset is for keys, too, that make no request before the next change.
#[test]
fn a_reset_before_another_change_forgives() {
    let table = table("3/h");
    for next in ["3/h", "5/h"] {
        drain(&table, b"k", NOW);
        table.set_policy_keeping(FIRST, &policy("4/h"), Keep::Reset).expect("a change");
        table.set_policy(FIRST, &policy(next)).expect("a change");
        // The key has left its slot, which stays taken until the debt would have been paid.
        assert_eq!(table.stats().keys, 0, "{next}");
        let fresh = policy(next).burst;
        assert_eq!(table.peek_at(FIRST, b"k", NOW, 1).remaining, fresh, "{next}");
    }
}
