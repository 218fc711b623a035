//! Changing a limiter's policy while it is in use: the state that it keeps, the policy that each
//! call decides by, and how much it admits.

use crate::common::*;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tollbar::clock::Manual;
use tollbar::policy::Keep;
use tollbar::table::{Options, PolicyId, Table};
use tollbar::{Limiter, PolicyError, Shared, State, Verdict};

const FIRST: PolicyId = PolicyId::FIRST;

fn limiter(text: &str) -> Limiter<State, Manual> {
    Limiter::with(state(text), Manual::new(HOUR))
}

#[test]
fn what_is_kept() {
    for (keep, remaining, retry) in [
        (Keep::Count, 6, 0),
        // Four permits of 6 s each: 24 s of debt. Those are 40 permits of 100 a minute, and some
        // nanoseconds.
        (Keep::Time, 59, 0),
        (Keep::Reset, 100, 0),
    ] {
        let limiter = limiter("10/min");
        assert!(limiter.check(4).is_allowed());
        limiter.set_policy(&policy("100/min"), keep).unwrap();
        assert_eq!(limiter.changed_policy(), Some(&policy("100/min")));
        let decision = limiter.peek(1);
        assert_eq!((decision.remaining, decision.retry_after), (remaining, retry), "{keep:?}");
        // The fast path, the slow way and `take_up_to` all decide by the new policy.
        assert_eq!(limiter.admit(1), Verdict::Allowed);
        assert_eq!(limiter.admit_at(HOUR, 2), Verdict::Allowed);
        assert_eq!(limiter.take_up_to(1000), remaining - 3, "{keep:?}");
        assert_eq!(limiter.admit(1), Verdict::Denied);
        assert_eq!(limiter.admit_at(HOUR, 101), Verdict::Never);
        // A new permit comes each 600 ms, and not each 6 s.
        assert!(limiter.reserve(1, HOUR + 600 * MS).is_some_and(|at| at > HOUR), "{keep:?}");
        assert!(
            limiter.wait_ns(1, 1200 * MS).is_allowed() && limiter.now() >= HOUR + 600 * MS,
            "{keep:?}"
        );
    }
}

#[test]
fn a_lower_rate_refuses_at_once() {
    let limiter = limiter("1000000/s burst 1000");
    for _ in 0..10 {
        assert_eq!(limiter.admit(1), Verdict::Allowed);
    }
    limiter.set_policy(&policy("0/s"), Keep::Count).unwrap();
    assert_eq!((limiter.admit(1), limiter.check(1).verdict), (Verdict::Denied, Verdict::Denied));
    limiter.set_policy(&policy("5/s"), Keep::Reset).unwrap();
    assert_eq!(limiter.take_up_to(9), 5);
}

/// One word to one word, a limiter keeps what a key of a table keeps.
#[test]
fn a_limiter_keeps_what_a_key_keeps() {
    let texts = [
        "10/s burst 3",
        "7/min burst 5 init 2",
        "10/s burst 4 borrow",
        "10/s algo pacer slack 2",
        "10/s algo warm-up warm 10s",
        "10/s algo interval",
        "10/s algo fixed-window",
        "20/s algo weighted-window",
        "8/forever",
        "10/s curve front",
        "10/s burst 4 refill 0:50% 50%:100%",
        "0/s",
    ];
    // `calendar` needs the wall clock (tests/algorithm/calendar.rs).
    let texts = with_each(one_word().filter(|kind| *kind != tollbar::Kind::Calendar), &texts);
    let mut rng = Rng(34);
    for keep in [Keep::Count, Keep::Time, Keep::Reset] {
        for (old, new) in texts.iter().flat_map(|old| texts.iter().map(move |new| (old, new))) {
            for _ in 0..rounds(10) {
                let limiter = limiter(old);
                let table =
                    Table::private(&Options::new(100).with_seed(1), &[policy(old)]).unwrap();
                let mut now = HOUR;
                for _ in 0..rng.below(6) {
                    let cost = 1 + rng.below(3);
                    assert_eq!(
                        limiter.admit_at(now, cost),
                        table.admit_at(FIRST, b"key", now, cost),
                        "{old}"
                    );
                    now += rng.below(200 * MS);
                }
                limiter.set_policy_at(now, &policy(new), keep).unwrap();
                table.set_policy_keeping(FIRST, &policy(new), keep).unwrap();
                for _ in 0..3 {
                    let decision =
                        (limiter.check_at(now, 1), table.check_at(FIRST, b"key", now, 1));
                    assert_eq!(decision.0, decision.1, "{old} to {new}, {keep:?}");
                    now += rng.below(200 * MS);
                }
            }
        }
    }
}

/// From and to windows and logs of many words.
#[test]
fn windows_and_logs_keep_permits_too() {
    let texts =
        ["10/s", "20/s algo sliding-window", "15/s algo sliding-log", "12/s algo fixed-window"];
    for (old, new) in texts.iter().flat_map(|old| texts.iter().map(move |new| (old, new))) {
        if policy(old) == policy(new) {
            continue;
        }
        for (keep, least, most) in [(Keep::Count, 6, 6), (Keep::Reset, 10, 20), (Keep::Time, 0, 20)]
        {
            let limiter = limiter(old);
            let had = limiter.take_up_to(100) - 6;
            limiter.shared().reset();
            assert_eq!(limiter.take_up_to(had), had);
            limiter.set_policy(&policy(new), keep).unwrap();
            let left = limiter.take_up_to(100);
            assert!((least..=most).contains(&left), "{old} to {new}, {keep:?}: {left}");
            assert_eq!(limiter.admit(1), Verdict::Denied, "{old} to {new}, {keep:?}");
        }
    }
}

#[test]
fn counts_and_the_clocks_steps_go_on() {
    let limiter = limiter("3/s");
    limiter.take_up_to(3);
    let _ = limiter.admit_at(HOUR - 1, 1);
    limiter.set_policy(&policy("5/s"), Keep::Count).unwrap();
    let _ = limiter.admit_at(HOUR, 1);
    let _ = limiter.admit_at(HOUR + SEC, 1);
    let _ = limiter.admit_at(HOUR, 1);
    let view = limiter.snapshot();
    assert_eq!((view.decisions.allowed, view.decisions.denied, view.backward_steps), (2, 3, 2));
}

#[test]
fn refused_changes_change_nothing() {
    let limiter = limiter("3/s");
    assert_eq!(
        limiter.set_policy(&policy("3/s algo fixed-window").tap(|p| p.period = 0), Keep::Count),
        Err(PolicyError::PeriodZero)
    );
    assert_eq!((limiter.changed_policy(), limiter.take_up_to(9)), (None, 3));
    let credited = Limiter::with(State::with_credit(&policy("1000000/s")).unwrap(), Manual::new(0));
    assert_eq!(credited.set_policy(&policy("3/s"), Keep::Count), Err(PolicyError::OptionMismatch));
    assert!(credited.check(1000).is_allowed());
}

trait Tap: Sized {
    fn tap(mut self, f: impl FnOnce(&mut Self)) -> Self {
        f(&mut self);
        self
    }
}
impl<T> Tap for T {}

/// A policy that comes back needs no new state, so a limiter may change to and fro without end, and
/// to 4,096 policies in its life.
#[test]
fn states_are_kept_to_a_bound() {
    let limiter = limiter("3/s");
    let (day, night) = (policy("100/s"), policy("20/s"));
    for _ in 0..10_000 {
        limiter.set_policy(&day, Keep::Count).unwrap();
        limiter.set_policy(&night, Keep::Count).unwrap();
    }
    for n in 2..4096 {
        limiter.set_policy(&policy(&format!("{}/s", 1000 + n)), Keep::Count).unwrap();
    }
    assert_eq!(limiter.set_policy(&policy("7/s"), Keep::Count), Err(PolicyError::Changes));
    assert_eq!(limiter.changed_policy(), Some(&policy("5095/s")));
    limiter.set_policy(&day, Keep::Reset).unwrap();
    assert_eq!(limiter.take_up_to(1000), 100);
}

/// Threads take all permits while another thread changes the policy to and fro on a clock that
/// stands still. Each policy gives its burst at most, and only permits that were taken during a
/// change are given twice.
#[test]
fn threads_take_while_the_policy_changes() {
    let mut stopped = 0;
    for round in 0..rounds(100) {
        let limiter = Limiter::with(state("1000/h"), Manual::new(HOUR + round));
        // A fresh state would become a fresh state of the new policy, with its whole burst.
        let taken = AtomicU64::new(limiter.take_up_to(1));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for n in 0..1000 {
                        let now = limiter.now();
                        let got = if n % 3 == 0 {
                            limiter.take_up_to(2)
                        } else {
                            u64::from(limiter.admit_at(now, 1) == Verdict::Allowed)
                        };
                        taken.fetch_add(got, Relaxed);
                    }
                });
            }
            scope.spawn(|| limiter.set_policy(&policy("1500/h"), Keep::Count).unwrap());
        });
        // A change keeps the permits left of the first policy's 1000. So without a call that
        // overlaps a change the threads get 1000 in all.
        let all = taken.into_inner() + limiter.take_up_to(u64::MAX);
        // If the changing thread is stopped in the middle, more calls overlap the change. Then the
        // threads get at most both bursts.
        assert!((1000..=2500).contains(&all), "{all}");
        stopped += u64::from(all > 1000 + 6);
    }
    assert!(
        stopped <= rounds(100) / 4,
        "{stopped} of {} changes were given more than once",
        rounds(100)
    );
}

/// A change to the same policy with `Keep::Reset` forgives the debt.
#[test]
fn a_change_to_the_same_policy_can_reset() {
    for keep in [Keep::Count, Keep::Time, Keep::Reset] {
        let limiter = limiter("10/min");
        assert!(limiter.check(10).is_allowed());
        limiter.set_policy(&policy("10/min"), keep).expect("a change");
        assert_eq!(limiter.peek(1).remaining, if keep == Keep::Reset { 10 } else { 0 }, "{keep:?}");
    }
}
