//! Charges without asking: how far each algorithm goes into debt, when the debt is paid, and how
//! many permits it returns as the rest.

use crate::common::*;
use crate::oracle::pairs::Two;
use crate::oracle::{Model, Side};
use tollbar::algorithm::pair::Pair;
use tollbar::algorithm::{Algorithm, Rule};
use tollbar::table::{Missing, OnFull, Options, PolicyId, Refund, RequestError, Table};
use tollbar::{Kind, Limiter, Shared, Verdict, NEVER};

const NOW: u64 = 1_000 * SEC;

fn rule(text: &str) -> Rule {
    Rule::new(&policy(text)).unwrap_or_else(|why| panic!("{text}: {why}"))
}

fn limiter(text: &str) -> Limiter<tollbar::State, tollbar::clock::Manual> {
    Limiter::with(state(text), tollbar::clock::Manual::new(NOW))
}

/// What each algorithm of "10/s" takes of a charge of 1000, and when a cost of 1 passes after it.
#[test]
fn each_algorithm_charges_as_far_as_it_can() {
    let each = [
        ("10/s", 20, 1100 * MS),
        ("10/s burst 5", 10, 600 * MS),
        ("10/s burst 5 init 2", 7, 600 * MS),
        ("10/s borrow", 1000, 100 * SEC),
        ("10/s burst 5 algo pacer", 10, SEC),
        ("10/s burst 5 algo interval", 10, SEC),
        ("10/s algo interval", 20, 2 * SEC),
        ("10/s algo interval anchor first", 10, SEC),
        ("10/s algo fixed-window", 10, SEC),
        ("10/s algo weighted-window", 10, 1100 * MS),
        ("10/s algo sliding-window", 10, SEC),
        ("10/s algo sliding-log", 10, SEC),
        ("10/s burst 5 algo warm-up warm 2s cold 1", 5, 500 * MS),
        ("10/forever", 10, NEVER),
        ("10/s algo curve", 10, 1100 * MS),
        ("10/s burst 5 refill 0:50% 50%:100%", 8, 800 * MS),
        ("10/month algo calendar", 10, 31 * DAY - NOW),
    ];
    has_each(Kind::ALL, &each.map(|(text, ..)| text));
    for (text, charged, passes) in each {
        let limiter = limiter(text);
        assert_eq!(limiter.charge_at(NOW, 1000), 1000 - charged, "{text}");
        let decision = limiter.shared().peek_at(NOW, 1);
        assert_eq!(decision.verdict, Verdict::Denied, "{text}");
        let late = decision.retry_after.abs_diff(passes);
        // A unit of the warm-up's clock is longer than a nanosecond.
        assert!(late < MS / 10, "{text}: {} ns", decision.retry_after);
        assert_eq!(
            limiter.counts().allowed + limiter.counts().denied,
            0,
            "{text}: a charge is no decision"
        );
    }
    assert_eq!(limiter("0/s").charge(3), 3);
}

/// A charge of permits that are left is the same as an admission, and a charge in two parts is the
/// same as in one.
#[test]
fn a_charge_is_an_admission_without_the_question() {
    let mut rng = Rng(1);
    for text in [
        "10/s burst 7",
        "10/s burst 7 init 2",
        "999983/s burst 9",
        "10/s borrow",
        "10/s burst 4 algo pacer slack 6",
        "10/s burst 7 algo interval",
        "10/s burst 7 algo interval anchor first",
        "10/s algo fixed-window",
        "10/s algo weighted-window",
        "3/s burst 9 algo warm-up warm 1min cold 10",
        "10/s burst 7 ban 1h after 1000",
    ] {
        let (policy, rule) = (policy(text), rule(text));
        for _ in 0..500 {
            let mut state = 0;
            let mut now = DAY + rng.below(YEAR);
            for _ in 0..12 {
                let cost = rng.within(1, policy.burst);
                let step = rule.step(state, now, cost);
                let charged = rule.charge(state, now, cost);
                // The last permit of a ban's bucket counts as a refusal.
                if step.verdict == Verdict::Allowed && policy.ban == 0 {
                    assert_eq!(
                        (charged.next, charged.rest),
                        (step.next, 0),
                        "{text}: {cost} at {now}"
                    );
                }
                assert_eq!(rule.charge(state, now, 0).next, None, "{text}");
                if cost > 1 && charged.rest == 0 && policy.ban == 0 && text.find("warm").is_none() {
                    let first = rule.charge(state, now, 1).next.expect("room");
                    assert_eq!(
                        rule.charge(first, now, cost - 1),
                        charged,
                        "{text}: {cost} at {now}"
                    );
                }
                state = charged.next.unwrap_or(state);
                now = now
                    .saturating_add(rng.below(policy.period))
                    .saturating_sub(rng.below(policy.period / 4));
            }
        }
    }
}

/// In any interval the admitted and charged permits are at most the burst, the refill, and a debt
/// of one burst.
#[test]
fn a_debt_is_at_most_one_burst() {
    let mut rng = Rng(2);
    let rule = rule("10/s burst 7");
    for _ in 0..2_000 {
        let (mut state, start) = (0, DAY + rng.below(DAY));
        let (mut now, mut taken) = (start, 0);
        for _ in 0..30 {
            let cost = rng.within(1, 20);
            let charged = rule.charge(state, now, cost);
            taken += cost - charged.rest;
            state = charged.next.unwrap_or(state);
            assert!(taken <= 14 + (now - start) / (100 * MS), "{taken} after {} ns", now - start);
            // The rest is returned only when the debt is a whole burst: one permit more would be
            // above it.
            if charged.rest != 0 {
                assert_eq!(rule.charge(state, now, 1).rest, 1);
                assert!(rule.admits_at(state, now, 1) > now + 7 * 100 * MS);
            }
            now += rng.below(SEC);
        }
    }
}

#[test]
fn after_the_last_time_nothing_is_charged() {
    for text in with_each(one_word(), &["10/s", "10/s borrow", "10/s ban 1h"]) {
        let rule = rule(&text);
        let last = rule.last_time();
        assert_eq!(rule.charge(0, last, 1).rest, 0, "{text}");
        for now in [last + 1, NEVER] {
            assert_eq!(
                (rule.charge(0, now, 5).rest, rule.charge(0, now, 5).next),
                (5, None),
                "{text}"
            );
        }
    }
}

/// A list charges each of its policies as far as that has room, also beside bookings. The rest is
/// what one of them could not take.
#[test]
fn a_list_charges_each_of_its_policies() {
    let later = NOW + HOUR;
    // 15 permits of the second are booked, three bursts. The day has 85 left, and the charge takes
    // them all.
    let limiter = limiter("5/s; 100/day");
    let table = Table::private(&Options::new(1), &[policy("5/s; 100/day")]).expect("a table");
    for _ in 0..3 {
        assert!(limiter.reserve_at(NOW, 5, NEVER).is_ok());
        assert!(table.try_reserve(PolicyId::FIRST, b"k", NOW, 5, NEVER).expect("a table").is_ok());
    }
    assert_eq!(limiter.charge_at(NOW, 85), 85, "the second took none");
    assert_eq!(table.charge_at(PolicyId::FIRST, b"k", NOW, 85), 85);
    // In an hour the day refills four.
    assert_eq!(limiter.shared().peek_at(later, 1).remaining, 4);
    assert_eq!(table.peek_at(PolicyId::FIRST, b"k", later, 1).remaining, 4);
    // A receipt that is settled above its estimate charges in the same way.
    let receipt =
        table.take_at(PolicyId::FIRST, b"r", NOW, 1).expect("a table").1.expect("a receipt");
    assert_eq!(
        table.settle_at(&receipt, NOW, 100, Refund::Safe).expect("a table").rest,
        90,
        "the second has room for 9 more"
    );
    assert_eq!(table.peek_at(PolicyId::FIRST, b"r", later, 1).remaining, 4);
}

/// Random requests, bookings and charges of lists against two exact buckets, of which each is
/// charged by itself.
#[test]
fn the_charges_of_a_list_are_those_of_two_buckets() {
    let mut beside = 0;
    for list in [
        "10/s; 1000/day",
        "5/min; 100/h",
        "2/s burst 100; 5/min burst 3",
        "3/7s burst 2; 7/333s",
        "30/s burst 1; 1000/h burst 2",
        "10/s burst 2; 50/s burst 100",
    ] {
        let (policy, mut rng) = (policy(list), Rng(list.len() as u64));
        let pair = Pair::new(&policy).expect(list);
        for _ in 0..rounds(300) {
            let (mut state, mut now) = (0, DAY + rng.below(DAY));
            let mut model = Two::new(&policy, &pair);
            for _ in 0..20 {
                let cost = rng.within(1, model.most());
                match rng.below(3) {
                    0 => {
                        let step = pair.step(state, now, cost);
                        model.settle(now, cost, step.verdict == Verdict::Allowed);
                        state = step.next.unwrap_or(state);
                    }
                    1 => {
                        if let Some(booked) = pair.reserve(state, now, cost) {
                            assert_eq!(model.book(now, cost), booked.at, "{list}");
                            state = booked.next;
                        }
                    }
                    _ => {
                        let cost = rng.within(1, 4 * cost) * [1, 40][rng.below(2) as usize];
                        let charged = pair.charge(state, now, cost);
                        assert_eq!(
                            charged.rest,
                            model.charge(now, cost),
                            "{list}: {cost} at {now}"
                        );
                        assert!(
                            pair.expires_at(charged.next.unwrap_or(state))
                                >= pair.expires_at(state),
                            "{list}"
                        );
                        beside += u32::from(charged.rest == cost && charged.next.is_some());
                        state = charged.next.unwrap_or(state);
                    }
                }
                assert_eq!(
                    pair.available(state, now),
                    model.remaining(now, Side::Exact),
                    "{list} at {now}"
                );
                assert_eq!(
                    pair.admits_at(state, now, 1),
                    model.admits_at(now, 1, Side::Exact),
                    "{list} at {now}"
                );
                now += rng.below(pair.admits_at(state, now, 1) - now + SEC);
            }
        }
    }
    assert!(beside > 100, "{beside} charges found room in one of two policies");
}

#[test]
fn keys_of_a_table() {
    let options = Options { missing: Missing::Report, ..Options::new(1000) };
    let table = Table::private(&options, &[policy("10/s"), policy("3/s algo fixed-window")])
        .expect("a table");
    let (bucket, window) = (PolicyId::new(0), PolicyId::new(1));
    assert_eq!(table.charge_at(bucket, b"a", NOW, 13), 0);
    assert_eq!(table.peek_at(bucket, b"a", NOW, 1).retry_after, 400 * MS);
    assert_eq!(table.charge_at(bucket, b"a", NOW, 13), 6);
    assert_eq!(table.check_at(bucket, b"a", NOW, 1).retry_after, 1100 * MS);
    assert_eq!(table.charge_at(window, b"a", NOW, 5), 2);
    assert!(table.check_at(bucket, b"b", NOW, 10).is_allowed());
    assert_eq!(table.charge_at(bucket, b"c", NOW, 0), 0);

    table.exempt(bucket, b"us").expect("room");
    assert_eq!(table.charge_at(bucket, b"us", NOW, 5), 0);
    assert_eq!(table.try_charge(bucket, b"", Some(NOW), 5), Err(RequestError::MissingKey));
    assert_eq!(table.try_charge(PolicyId::new(9), b"a", None, 5), Err(RequestError::NoSuchPolicy));
    assert_eq!(table.charge(PolicyId::new(9), b"a", 5), 5);

    for text in ["3/s algo sliding-window", "3/s algo sliding-log"] {
        let table = Table::private(&Options::new(1000), &[policy(text)]).expect("a table");
        assert_eq!(
            (table.charge_at(bucket, b"a", NOW, 5), table.charge_at(bucket, b"a", NOW, 1)),
            (2, 1),
            "{text}"
        );
    }
}

/// In a full table a new key's charge is stored where an admission would be.
#[test]
fn new_keys_of_a_full_table() {
    for text in ["2/h", "2/h algo sliding-log"] {
        for (on_full, rest) in
            [(OnFull::Deny, 2), (OnFull::Allow, 2), (OnFull::EvictNearest, 0), (OnFull::Inherit, 0)]
        {
            let table = Table::private(&Options { on_full, ..Options::new(1) }, &[policy(text)])
                .expect("a table");
            for key in 0u64..40_000 {
                let _ = table.admit_at(PolicyId::FIRST, &key.to_le_bytes(), NOW, 2);
            }
            let left = table.charge_at(PolicyId::FIRST, b"new", NOW, 2);
            // A log that inherits a debt has no permits left.
            let rest = if on_full == OnFull::Inherit && text.contains("log") { 2 } else { rest };
            assert_eq!(left, rest, "{text}, {on_full:?}");
        }
    }
}
