//! What users of Rust expect of each call: durations, texts, and short debug texts.

use std::time::Duration;
use tollbar::clock::Manual;
use tollbar::policy::{Fault, FOREVER};
use tollbar::table::{Options, PolicyId, Table};
use tollbar::{Limiter, Policy, PolicyError, Reason, State};

fn manual(policy: &str) -> Limiter<State, Manual> {
    Limiter::with(State::new(&policy.parse().unwrap()).unwrap(), Manual::new(0))
}

#[test]
fn a_policy_by_its_unit_is_the_policy_of_the_text() {
    for (policy, text) in [
        (Policy::per_second(10), "10/s"),
        (Policy::per_second(10).with_burst(5), "10/s burst 5"),
        (Policy::per_minute(10), "10/min"),
        (Policy::per_hour(10), "10/h"),
        (Policy::per_day(10), "10/day"),
        (Policy::per(3, Duration::from_millis(250)), "3/250ms"),
    ] {
        assert_eq!(policy, text.parse().unwrap());
    }
    assert_eq!(Policy::per(3, Duration::MAX).period, FOREVER);
    assert_eq!(Policy::per(3, Duration::ZERO).validate(), Err(PolicyError::PeriodZero));
}

#[test]
fn a_decision_has_durations() {
    let limiter = manual("4/s");
    let decision = limiter.check(4);
    assert_eq!(decision.retry_after(), None);
    assert_eq!(decision.reset_after(), Some(Duration::from_secs(1)));
    let refused = limiter.check(3);
    assert_eq!(refused.retry_after(), Some(Duration::from_millis(750)));
    assert_eq!(refused.retry_ns(), Some(750_000_000));
    assert_eq!(limiter.check(5).retry_after(), None);
    let spent = manual("1/forever algo quota");
    assert!(spent.check(1).is_allowed());
    let refused = spent.check(1);
    assert_eq!((refused.retry_after(), refused.reset_after()), (None, None));
}

#[test]
fn a_wait_takes_a_duration() {
    let limiter = manual("4/s burst 1");
    assert!(limiter.wait(1, Duration::ZERO).is_allowed());
    assert!(!limiter.wait(1, Duration::from_nanos(249_999_999)).is_allowed());
    assert!(limiter.wait(1, Duration::from_millis(250)).is_allowed());
    assert_eq!(limiter.now(), 250_000_000);
    assert!(limiter.wait(1, Duration::MAX).is_allowed());
    let table = Table::private(&Options::new(10), &[Policy::per_hour(1)]).unwrap();
    assert!(table.wait(PolicyId::FIRST, b"ann", 1, Duration::MAX).is_allowed());
    let refused = table.wait(PolicyId::FIRST, b"ann", 1, Duration::from_millis(1));
    assert_eq!(refused.reason, Reason::Rate);
}

#[test]
fn a_text_makes_a_limiter() {
    let limiter: Limiter = "2/h".parse().unwrap();
    assert!(limiter.check(2).is_allowed());
    assert!(!limiter.check(1).is_allowed());
    let wrong = |text: &str| text.parse::<Limiter>().map(|_| ()).unwrap_err();
    assert_eq!(wrong("2/y").fault, Fault::Syntax);
    // A policy that can be read, and that no limiter on this clock can have.
    let calendar = wrong("1000/month");
    assert_eq!(calendar.fault, Fault::Policy(PolicyError::WallClock));
    assert!(calendar.to_string().contains("wall clock"), "{calendar}");
    let fast = wrong("9 999 999 999 999/s".replace(' ', "").as_str());
    assert_eq!(fast.fault, Fault::Policy(PolicyError::RateTooHigh));
}

#[test]
fn a_debug_text_is_one_short_line() {
    let limiter = manual("2/s");
    for _ in 0..3 {
        let _ = limiter.check(1);
    }
    let _ = limiter.check(3);
    assert_eq!(
        format!("{limiter:?}"),
        "Limiter { remaining: 0, retry_after: Some(500ms), waiting: 0, allowed: 2, denied: 1, never: 1, .. }"
    );
    let table = Table::private(
        &Options::new(10),
        &["5/min burst 3".parse().unwrap(), Policy::per_second(1)],
    )
    .unwrap();
    assert_eq!(
        format!("{table:?}"),
        format!(
            "Table {{ policies: [\"5/min burst 3\", \"1/s\"], capacity: 10, bytes: {}, .. }}",
            table.bytes()
        )
    );
}

#[test]
fn a_key_is_checked_under_the_first_policy() {
    let table =
        Table::private(&Options::new(10), &[Policy::per_hour(1), Policy::per_hour(9)]).unwrap();
    assert!(table.check_key("ann").is_allowed());
    assert!(!table.check_key(String::from("ann")).is_allowed());
    assert!(table.check_key(b"bob").is_allowed());
    assert_eq!(table.peek(PolicyId::new(1), b"ann", 1).remaining, 9);
    assert_eq!(table.check_key("").reason, Reason::MissingKey);
}
