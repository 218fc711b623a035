//! Bans: which refusal bans, when the ban ends, which calls end it early, and what it survives.

use crate::common::*;
use std::sync::atomic::{AtomicU64, Ordering};
use tollbar::algorithm::{Algorithm, Rule};
use tollbar::clock::Manual;
use tollbar::limiter::cell;
use tollbar::table::{Keep, Options, PolicyId, Table};
use tollbar::take_many::{take_many_at, Limit};
use tollbar::{Limiter, Policy, PolicyError, Reason, Shared, Verdict, NEVER};

const NOW: u64 = 1_000 * SEC;
const HOUR: u64 = 60 * MIN;

fn rule(text: &str) -> Rule {
    Rule::new(&policy(text)).unwrap_or_else(|why| panic!("{text}: {why}"))
}

/// The state after `n` admissions of cost 1 at `now`.
fn emptied(rule: &Rule, n: u64, now: u64) -> AtomicU64 {
    let word = AtomicU64::new(0);
    for _ in 0..n {
        assert_eq!(cell::check(&word, rule, now, 1).verdict, Verdict::Allowed);
    }
    word
}

/// `after 3`: the third refusal bans. Until then `retry_after` is the refill of a permit, from then
/// on the rest of the ban.
#[test]
fn the_nth_refusal_bans() {
    for (text, after) in
        [("5/min ban 1h", 1), ("5/min ban 1h after 1", 1), ("5/min ban 1h after 3", 3)]
    {
        let rule = rule(text);
        let word = emptied(&rule, 5, NOW);
        for n in 1..after {
            let decision = cell::check(&word, &rule, NOW + n, 1);
            let wanted = (Verdict::Denied, Reason::Rate, 12 * SEC - n);
            assert_eq!(
                (decision.verdict, decision.reason, decision.retry_after),
                wanted,
                "{text}: refusal {n}"
            );
        }
        let peeked = cell::peek(&word, &rule, NOW + after, 1);
        let decision = cell::check(&word, &rule, NOW + after, 1);
        assert_eq!(peeked, decision, "{text}: a peek answers as the check");
        let wanted = (Verdict::Denied, Reason::Banned, 0, HOUR);
        assert_eq!(
            (decision.verdict, decision.reason, decision.remaining, decision.retry_after),
            wanted,
            "{text}"
        );
        // Refusals during the ban do not prolong it.
        for later in [1, SEC, HOUR - 1] {
            let decision = cell::check(&word, &rule, NOW + after + later, 1);
            assert_eq!(
                (decision.reason, decision.retry_after),
                (Reason::Banned, HOUR - later),
                "{text} after {later} ns"
            );
        }
        // One permit at the end, and one more every 12 s.
        let end = NOW + after + HOUR;
        assert_eq!(cell::check(&word, &rule, end, 1).verdict, Verdict::Allowed, "{text}");
        assert_eq!(cell::peek(&word, &rule, end + 12 * SEC, 1).verdict, Verdict::Allowed, "{text}");
        assert_eq!(
            cell::peek(&word, &rule, end + 12 * SEC - 1, 1).verdict,
            Verdict::Denied,
            "{text}"
        );
    }
}

/// For any rate: the ban ends at the first nanosecond whose clock, in units, is not before
/// `now + ban`.
#[test]
fn a_ban_ends_on_time() {
    let mut rng = Rng(1);
    for text in [
        "5/min ban 1h",
        "7/s burst 3 ban 1s",
        "999983/s burst 9 ban 1min after 3",
        "1/day burst 4 ban 30d after 1000",
    ] {
        let (policy, rule) = (policy(text), rule(text));
        let unit = tollbar::algorithm::ban::Ban::new(&policy).expect("a ban").grid().per_permit();
        let unit = policy.period / (policy.limit.saturating_mul(unit.get())) + 1;
        for _ in 0..300 {
            let now = rng.below(50 * YEAR);
            let word = emptied(&rule, policy.burst, now);
            for _ in 0..policy.ban_after {
                assert_eq!(
                    cell::check(&word, &rule, now, 1).verdict,
                    Verdict::Denied,
                    "{text} at {now}"
                );
            }
            let decision = cell::peek(&word, &rule, now, 1);
            let late = decision.retry_after - policy.ban;
            assert!(
                decision.reason == Reason::Banned && late <= unit,
                "{text} at {now}: {late} ns late"
            );
            assert_eq!(
                cell::peek(&word, &rule, now + decision.retry_after - 1, 1).reason,
                Reason::Banned,
                "{text}"
            );
            assert!(
                cell::peek(&word, &rule, now + decision.retry_after, 1).is_allowed(),
                "{text} at {now}"
            );
        }
    }
}

/// Refusals are forgotten once the bucket is full, and not before; an admission keeps them.
#[test]
fn refusals_are_forgotten_when_the_bucket_is_full() {
    let rule = rule("5/min ban 1h after 3");
    for (pause, banned) in [(12 * SEC, true), (59 * SEC, true), (MIN, false), (HOUR, false)] {
        let word = emptied(&rule, 5, NOW);
        for _ in 0..2 {
            assert_eq!(cell::check(&word, &rule, NOW, 1).reason, Reason::Rate);
        }
        while cell::check(&word, &rule, NOW + pause, 1).is_allowed() {}
        assert_eq!(cell::peek(&word, &rule, NOW + pause, 0).retry_after, 0);
        let decision = cell::check(&word, &rule, NOW + pause, 1);
        assert_eq!(decision.reason == Reason::Banned, banned, "{pause}");
    }
    // After a ban they are counted from the first again.
    let word = emptied(&rule, 5, NOW);
    for _ in 0..3 {
        let _ = cell::check(&word, &rule, NOW, 1);
    }
    assert!(cell::check(&word, &rule, NOW + HOUR, 1).is_allowed());
    for wanted in [Reason::Rate, Reason::Rate, Reason::Banned] {
        assert_eq!(cell::check(&word, &rule, NOW + HOUR, 1).reason, wanted);
    }
}

/// A peek, a cost of 0, a cost above the burst, and a `take_up_to` that takes nothing are no
/// refusals and do not lead to a ban.
#[test]
fn what_is_no_refusal_does_not_ban() {
    let rule = rule("5/min ban 1h after 2");
    let word = emptied(&rule, 5, NOW);
    for _ in 0..10 {
        assert_eq!(cell::peek(&word, &rule, NOW, 1).verdict, Verdict::Denied);
        assert_eq!(cell::check(&word, &rule, NOW, 0).verdict, Verdict::Allowed);
        assert_eq!(cell::check(&word, &rule, NOW, 6).verdict, Verdict::Never);
        assert_eq!(cell::take_up_to(&word, &rule, NOW, 3), 0);
    }
    assert_eq!(cell::check(&word, &rule, NOW, 1).reason, Reason::Rate);
    assert_eq!(cell::check(&word, &rule, NOW, 1).reason, Reason::Banned);
}

/// A wait that gets its permits in time is no refusal, and a wait that cannot get them is one.
#[test]
fn a_wait_that_ends_in_time_is_no_refusal() {
    let limiter =
        Limiter::with(state("1/s burst 1 ban 1h after 2"), tollbar::clock::Manual::new(NOW));
    for n in 0..10 {
        assert!(limiter.wait_ns(1, SEC).is_allowed(), "{n}");
    }
    assert_eq!(limiter.wait_ns(1, SEC / 2).reason, Reason::Rate);
    assert_eq!(limiter.wait_ns(1, SEC / 2).reason, Reason::Banned);
    // No booking during a ban, however patient the caller is.
    assert_eq!(limiter.reserve(1, NEVER), None);
}

/// A2: the next refusal would ban the key, and the permits come in time. And a caller that is more
/// patient than a ban in force is refused, too.
#[test]
fn a2_a_wait_does_not_take_the_next_ban_for_its_own() {
    let limiter = Limiter::with(state("1/s burst 1 ban 1h"), tollbar::clock::Manual::new(NOW));
    for n in 0..10 {
        assert!(limiter.wait_ns(1, SEC).is_allowed(), "{n}");
    }
    assert_eq!(limiter.now(), NOW + 9 * SEC);
    assert_eq!(limiter.check(1).reason, Reason::Banned);
    let refused = limiter.wait_ns(1, 2 * HOUR);
    assert_eq!((refused.reason, limiter.now()), (Reason::Banned, NOW + 9 * SEC));
    assert_eq!(limiter.wait_ns(1, 0).retry_after, HOUR);
}

#[test]
fn a_charge_that_leaves_no_permit_counts_as_a_refusal() {
    for (text, bans_at) in [("5/min ban 1h", 5), ("5/min ban 1h after 3", 7)] {
        let rule = rule(text);
        let mut state = 0;
        for n in 1..=bans_at {
            assert_eq!(
                rule.describe(Verdict::Denied, state, NOW, 1).reason,
                Reason::Rate,
                "{text}: before {n}"
            );
            let charged = rule.charge(state, NOW, 1);
            state = charged.next.expect("a state");
            assert_eq!(charged.rest, 0, "{text}");
        }
        assert_eq!(rule.describe(Verdict::Denied, state, NOW, 1).reason, Reason::Banned, "{text}");
        assert_eq!(rule.admits_at(state, NOW, 1), NOW + HOUR, "{text}");
        // A ban takes no charge.
        let charged = rule.charge(state, NOW + 1, 3);
        assert_eq!((charged.next, charged.rest), (None, 3), "{text}");
    }
}

#[test]
fn a_reset_ends_a_ban() {
    let limiter = Limiter::with(state("2/min ban 1h"), tollbar::clock::Manual::new(NOW));
    for wanted in [Reason::Admitted, Reason::Admitted, Reason::Banned, Reason::Banned] {
        assert_eq!(limiter.check(1).reason, wanted);
    }
    limiter.reset();
    assert_eq!(limiter.check(1).reason, Reason::Admitted);

    let table = Table::private(&Options::new(1000), &[policy("2/min ban 1h")]).expect("a table");
    let check = |key: &[u8]| table.check_at(PolicyId::FIRST, key, NOW, 1).reason;
    for wanted in [Reason::Admitted, Reason::Admitted, Reason::Banned, Reason::Banned] {
        assert_eq!((check(b"a"), check(b"b")), (wanted, wanted));
    }
    assert_eq!(table.reset_at(PolicyId::FIRST, b"a", NOW), Ok(true));
    assert_eq!((check(b"a"), check(b"b")), (Reason::Admitted, Reason::Banned));
}

/// The table's file keeps a ban after the process has ended.
#[test]
fn a_ban_survives_a_restart() {
    let path = std::env::temp_dir().join(format!("tollbar-ban-{}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let open = || {
        Table::file(&path, &Options::new(1000), &[policy("2/min ban 1h after 2")]).expect("a table")
    };
    let table = open();
    let start = table.now();
    let asked = |table: &Table| table.check_at(PolicyId::FIRST, b"192.0.2.1", start, 1);
    let reasons: Vec<_> = (0..4).map(|_| asked(&table).reason).collect();
    assert_eq!(reasons, [Reason::Admitted, Reason::Admitted, Reason::Rate, Reason::Banned]);
    drop(table);
    let reasons = asked(&open());
    assert_eq!((reasons.reason, reasons.retry_after), (Reason::Banned, HOUR));
    std::fs::remove_file(&path).expect("the file");
}

/// A key that is banned under one policy stays banned until the same time under the next one that
/// bans.
#[test]
fn a_ban_survives_a_change_of_the_policy() {
    let table =
        Table::private(&Options::new(1000), &[policy("2/min ban 1h after 2")]).expect("a table");
    let check = |now| table.check_at(PolicyId::FIRST, b"192.0.2.1", now, 1);
    let decision: Vec<_> = (0..4).map(|_| check(NOW).reason).collect();
    assert_eq!(decision, [Reason::Admitted, Reason::Admitted, Reason::Rate, Reason::Banned]);
    table.set_policy(PolicyId::FIRST, &policy("3/min ban 2h after 7")).expect("a policy");
    for later in [0, SEC, HOUR - 1] {
        let decision = check(NOW + later);
        // A change of the grid rounds up, by some nanoseconds.
        let late = decision.retry_after - (HOUR - later);
        assert!(decision.reason == Reason::Banned && late <= 8, "{decision:?}");
    }
    assert!(check(NOW + HOUR + 8).is_allowed());
}

#[test]
fn policies_that_ban() {
    let read = policy("5/min ban 90s after 7");
    assert_eq!((read.ban, read.ban_after), (90 * SEC, 7));
    assert_eq!(policy("5/min ban 1h"), Policy::new(5, MIN).with_ban(HOUR, 1));
    for text in ["5/min ban 1h", "5/min ban 90s after 7", "5/min burst 9 ban 1day after 1000"] {
        assert_eq!(policy(text).to_string(), text);
    }
    let refused = |text: &str| {
        let why = tollbar::policy::text::parse(text.as_bytes()).expect_err(text);
        (why.fault, why.column)
    };
    let of = tollbar::policy::Fault::Policy;
    assert_eq!(refused("5/min ban 0s"), (of(PolicyError::Ban), 7));
    assert_eq!(refused("5/min after 3"), (of(PolicyError::Ban), 7));
    assert_eq!(refused("5/min ban 1h after 0"), (of(PolicyError::Ban), 14));
    assert_eq!(refused("5/min ban 1h after 1001"), (of(PolicyError::Ban), 14));
    assert_eq!(refused("5/min borrow ban 1h"), (of(PolicyError::OptionMismatch), 14));
    assert_eq!(refused("5/min init 2 ban 1h"), (of(PolicyError::OptionMismatch), 14));
    assert_eq!(refused("5/min ban 1h algo pacer"), (of(PolicyError::OptionMismatch), 7));
    // A ban of 290 years beside 73 of the clock, at a permit a nanosecond.
    assert_eq!(Rule::new(&policy("1000000000/s ban 105850day")).err(), Some(PolicyError::Ban));
    assert!(Rule::new(&policy("1/s ban 105850day")).is_ok());
    assert!(Rule::new(&policy("1/s ban 3650day after 1000")).is_ok());
}

/// 8 threads are refused at the same time under a bucket of 5. Each refusal up to the one that bans
/// counts once.
#[test]
fn each_refusal_is_counted_once() {
    const THREADS: u64 = 8;
    for round in 0..50 {
        let rule = rule("5/min ban 1h after 1000");
        let word = emptied(&rule, 5, NOW);
        let start = std::sync::Barrier::new(THREADS as usize);
        let banned = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    start.wait();
                    for _ in 0..124 {
                        let decision = cell::check(&word, &rule, NOW, 1);
                        banned.fetch_add(
                            u64::from(decision.reason == Reason::Banned),
                            Ordering::Relaxed,
                        );
                    }
                });
            }
        });
        // 992 refusals; 8 more, of which the last bans.
        assert_eq!(banned.load(Ordering::Relaxed), 0, "round {round}");
        for n in 993..=1000 {
            let decision = cell::check(&word, &rule, NOW, 1);
            assert_eq!(decision.reason == Reason::Banned, n == 1000, "round {round}: refusal {n}");
        }
    }
}

/// In one call with several limits, only the limit that refuses counts the refusal, and no limit is
/// charged.
#[test]
fn several_limits_in_one_call_ban_too() {
    let all = Limiter::with(state("100/min"), tollbar::clock::Manual::new(NOW));
    let one = Limiter::with(state("2/min ban 1h after 3"), tollbar::clock::Manual::new(NOW));
    let keys =
        Table::private(&Options::new(1000), &[policy("2/min ban 1h after 3")]).expect("a table");
    let by_limiter = [Limit::Limiter(&all, 1), Limit::Limiter(&one, 1)];
    let by_key = [Limit::Key(&keys, PolicyId::FIRST, b"192.0.2.1", 1), Limit::Limiter(&all, 1)];
    let wanted = [
        Reason::Admitted,
        Reason::Admitted,
        Reason::Rate,
        Reason::Rate,
        Reason::Banned,
        Reason::Banned,
        Reason::Banned,
    ];
    for (limits, bound) in [(&by_limiter, 1), (&by_key, 0)] {
        let before = all.shared().peek_at(NOW, 1).remaining;
        for reason in wanted {
            let taken = take_many_at(limits, NOW).expect("two limits");
            assert_eq!(taken.decision.reason, reason, "limit {bound}");
            assert!(reason == Reason::Admitted || taken.bound == bound);
        }
        assert_eq!(
            take_many_at(limits, NOW + 1).expect("two limits").decision.retry_after,
            HOUR - 1
        );
        assert_eq!(all.shared().peek_at(NOW, 1).remaining, before - 2);
    }
    assert_eq!(
        (one.counts().denied, keys.counts(PolicyId::FIRST).expect("a policy").denied),
        (6, 6)
    );
}

/// A ban ends at its time, whatever burst and rate the policy changes to, in tables and limiters.
#[test]
fn a_ban_ends_on_time_after_a_change() {
    const START: u64 = 1_000 * SEC;
    // A change of the grid rounds up, by some nanoseconds.
    const ROUNDING: u64 = 8;
    let policies = [
        "5/min ban 1h",
        "100000/s burst 100 ban 1h",
        "1/h burst 3 ban 1min",
        "7/min burst 2 ban 2h after 4",
    ];
    for (old, new) in policies
        .iter()
        .flat_map(|old| policies.map(|new| (*old, new)))
        .filter(|(old, new)| old != new)
    {
        for keep in [Keep::Count, Keep::Time] {
            let table = Table::private(&Options::new(100), &[policy(old)]).expect("memory");
            let limiter = Limiter::with(state(old), Manual::new(START));
            for _ in 0..120 {
                let _ = table.check_at(PolicyId::FIRST, b"a", START, 1);
                let _ = limiter.check(1);
            }
            // A wait is the ban, or an hour under `1/h` with its ban of a minute, because the next
            // permit comes only after an hour.
            let lasts = table.check_at(PolicyId::FIRST, b"a", START, 1).retry_after;
            assert_eq!(lasts, policy(old).ban.max(HOUR));
            table.set_policy_keeping(PolicyId::FIRST, &policy(new), keep).expect("a change");
            limiter.set_policy(&policy(new), keep).expect("a change");
            for (now, left) in [(START, lasts), (START + lasts - 1, 1)] {
                limiter.clock().set(now);
                for decision in [table.check_at(PolicyId::FIRST, b"a", now, 1), limiter.check(1)] {
                    let said = format!("{old} to {new}, {keep:?}: {decision:?}");
                    assert_eq!(
                        (decision.verdict, decision.reason),
                        (Verdict::Denied, Reason::Banned),
                        "{said}"
                    );
                    assert!((left..=left + ROUNDING).contains(&decision.retry_after), "{said}");
                }
            }
            limiter.clock().set(START + lasts + ROUNDING);
            assert!(
                table.check_at(PolicyId::FIRST, b"a", START + lasts + ROUNDING, 1).is_allowed(),
                "{old} to {new}, {keep:?}"
            );
            assert!(limiter.check(1).is_allowed(), "{old} to {new}, {keep:?}");
        }
    }
}
