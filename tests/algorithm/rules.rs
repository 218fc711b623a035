//! Rules: bookings up to the largest cost, the permits that a state lacks, and states that a
//! changed policy keeps.

use crate::common::*;
use tollbar::algorithm::{Algorithm, Rule};
use tollbar::{Verdict, NEVER};

const NOW: u64 = 1_000 * SEC;

fn rule(text: &str) -> Rule {
    Rule::new(&policy(text)).unwrap_or_else(|why| panic!("{text}: {why}"))
}

/// The word after `cost` permits at [`NOW`].
fn used(rule: &Rule, cost: u64) -> u64 {
    let step = rule.step(0, NOW, cost);
    assert_eq!(step.verdict, Verdict::Allowed);
    step.next.expect("a word")
}

#[test]
fn the_largest_cost_can_be_booked() {
    for text in [
        "10/s burst 4",
        "10/s burst 4 algo pacer",
        "2/s burst 4 algo interval",
        "10/s burst 4 algo warm-up warm 2s",
    ] {
        let rule = rule(text);
        assert!(rule.books_ahead());
        let first = rule.reserve(0, NOW, 4).unwrap_or_else(|| panic!("{text}"));
        assert_eq!((first.at, Some(first.next)), (NOW, rule.step(0, NOW, 4).next), "{text}");
        let second = rule.reserve(first.next, NOW, 4).unwrap_or_else(|| panic!("{text}"));
        assert_eq!(second.at, rule.admits_at(first.next, NOW, 4), "{text}");
        assert!(second.at > NOW && second.at != NEVER, "{text}");
        assert_eq!((rule.reserve(0, NOW, 5), rule.admits_at(0, NOW, 5)), (None, NEVER), "{text}");
        assert_eq!(rule.admits_at(first.next, NOW, 0), NOW, "{text}");
    }
    for text in [
        "10/s algo fixed-window",
        "10/s algo weighted-window",
        "10/s algo interval anchor first",
        "0/s",
    ] {
        let rule = rule(text);
        assert!(!rule.books_ahead() && rule.reserve(0, NOW, 1).is_none(), "{text}");
    }
}

/// A permit takes 100 ms under each of these policies, and the permits that a state lacks are
/// rounded up.
#[test]
fn permits_that_a_state_lacks() {
    for text in [
        "10/s burst 5",
        "10/s burst 5 init 5 borrow",
        "10/s burst 5 borrow",
        "10/s burst 5 algo pacer",
    ] {
        let rule = rule(text);
        assert_eq!((rule.owed(0, NOW), rule.charged(0, NOW)), (0, 0), "{text}");
        for permits in 1..=5 {
            let state = rule.charged(permits, NOW);
            assert_eq!(rule.owed(state, NOW), permits, "{text}");
            assert_eq!(rule.owed(state, NOW + 1), permits, "{text}");
            assert_eq!(rule.owed(state, NOW + 100 * MS - 1), permits, "{text}");
            assert_eq!(rule.owed(state, NOW + 100 * MS), permits - 1, "{text}");
            assert_eq!(rule.owed(state, NOW + 100 * MS + 1), permits - 1, "{text}");
            assert_eq!(rule.owed(state, NOW + permits * 100 * MS), 0, "{text}");
        }
        // A token bucket may have a debt of one burst below empty, as after a charge without
        // asking.
        let most = if text == "10/s burst 5" { 10 } else { 5 };
        for more in [most + 1, 1000, NEVER] {
            assert_eq!(rule.charged(more, NOW), rule.charged(most, NOW), "{text}: {more}");
        }
    }
    for text in [
        "10/s algo fixed-window",
        "10/s algo fixed-window anchor first",
        "10/s algo weighted-window",
        "10/s algo interval",
    ] {
        let rule = rule(text);
        assert_eq!((rule.owed(0, NOW), rule.charged(0, NOW)), (0, 0), "{text}");
        for permits in 1..=10 {
            let state = rule.charged(permits, NOW);
            assert_eq!((state, rule.owed(state, NOW)), (used(&rule, permits), permits), "{text}");
        }
        // An interval holds a debt of another burst.
        let most = if text.ends_with("interval") { 20 } else { 10 };
        assert_eq!(rule.charged(most + 1, NOW), rule.charged(most, NOW), "{text}");
        assert_eq!(rule.owed(rule.charged(most, NOW), NOW), most, "{text}");
    }
}

/// A warm-up lacks a take's permits until the take is paid for, and one permit from then until it
/// is cold again.
#[test]
fn permits_that_a_warm_up_lacks() {
    let rule = rule("10/s burst 5 algo warm-up warm 2s cold 1");
    assert_eq!((rule.owed(0, NOW), rule.charged(0, NOW)), (0, 0));
    // With a cold factor of 1 a permit costs 100 ms, cold or not.
    for permits in 1..=5 {
        let state = rule.charged(permits, NOW);
        assert_eq!(state, used(&rule, permits));
        assert_eq!(rule.owed(state, NOW), permits);
        for passed in 1..permits {
            assert_eq!(rule.owed(state, NOW + passed * 100 * MS - 200_000), permits - passed + 1);
            assert_eq!(rule.owed(state, NOW + passed * 100 * MS + 200_000), permits - passed);
        }
        assert_eq!(rule.owed(state, NOW + SEC), 1);
    }
    assert_eq!(rule.charged(6, NOW), rule.charged(5, NOW));
}

/// If the old and the new policy count in the same units and windows, a change keeps the number of
/// used permits, also when their limits or bursts differ.
#[test]
fn permits_used_stay_used_where_both_count_alike() {
    for (old, new) in [
        ("3/min burst 9 algo interval", "3/min burst 7 algo interval"),
        ("9/min algo interval anchor first", "7/min algo interval anchor first"),
        ("9/min algo fixed-window", "7/min algo fixed-window"),
        ("9/min algo fixed-window anchor first", "7/min algo fixed-window anchor first"),
        ("9/min algo weighted-window", "7/min algo weighted-window"),
    ] {
        let (old, new) = (rule(old), rule(new));
        for cost in [1, 2, 5] {
            let state = used(&old, cost);
            for kept in [new.adopt(&old, state), new.convert(&old, state, NOW)] {
                assert_eq!(
                    (new.available(kept, NOW), new.owed(kept, NOW)),
                    (7 - cost, cost),
                    "{new:?}"
                );
            }
        }
        assert_eq!((new.adopt(&old, 0), new.convert(&old, 0, NOW)), (0, 0));
        let state = used(&old, 4);
        assert_eq!((old.adopt(&old, state), old.convert(&old, state, NOW)), (state, state));
    }
}

/// Other pairs keep the permits that are left, or the time at which the state was as good as fresh.
#[test]
fn other_pairs_keep_permits_or_time() {
    let (old, new) = (rule("10/s burst 9"), rule("2/s burst 7"));
    for cost in 1..=9u64 {
        let state = used(&old, cost);
        let kept = new.convert(&old, state, NOW);
        assert_eq!(new.available(kept, NOW), (9 - cost).min(7), "{cost}");
        let adopted = new.adopt(&old, state);
        let late = new.fresh_at(adopted, NOW) - old.fresh_at(state, NOW);
        assert!(late <= 8, "{cost}: {late} ns");
    }
    // A debt stays as many permits, up to the burst.
    let (old, new) = (rule("10/s burst 5 algo pacer"), rule("2/s burst 8 algo pacer"));
    for owed in 1..=5 {
        let kept = new.convert(&old, old.charged(owed, NOW), NOW);
        assert_eq!(new.owed(kept, NOW), owed);
    }
    let (old, new) =
        (rule("10/s burst 5 algo warm-up warm 2s cold 1"), rule("2/s burst 8 algo pacer"));
    for owed in 1..=5 {
        let kept = new.convert(&old, old.charged(owed, NOW), NOW);
        assert_eq!(new.owed(kept, NOW), owed);
    }
    // So does the debt of a token bucket, up to the burst.
    let (old, new) = (rule("10/s burst 5"), rule("2/s burst 8"));
    for owed in 6..=10 {
        let state = old.charge(0, NOW, owed).next.expect("room");
        assert_eq!((old.owed(state, NOW), old.owed(state, NOW + 1)), (owed, owed));
        let kept = new.convert(&old, state, NOW);
        // The whole burst of 8, and the debt.
        assert_eq!((new.available(kept, NOW), new.owed(kept, NOW)), (0, 8 + owed - 5));
        assert_eq!(new.owed(new.carry(&old, state, NOW, 7 * NOW), 7 * NOW), owed);
    }
    let (old, new) = (rule("2/min burst 3 ban 1h"), rule("5/min ban 2h after 3"));
    let banned = old.step(used(&old, 3), NOW, 1).next.expect("a ban");
    for later in [0, 1, 59 * 60 * SEC] {
        let state = new.carry(&old, banned, NOW + later, 9 * NOW);
        let left = new.admits_at(state, 9 * NOW, 1) - 9 * NOW;
        assert!(left.abs_diff(3600 * SEC - later) <= 8, "{left} ns of the ban after {later}");
    }
    assert_eq!(new.carry(&old, banned, NOW + 2 * 3600 * SEC, 9 * NOW), 0);
    let closed = rule("0/s");
    let state = used(&new, 3);
    for word in [closed.adopt(&new, state), closed.convert(&new, state, NOW)] {
        assert_eq!(closed.expires_at(word), new.expires_at(state));
        assert_eq!(closed.step(word, NOW, 1).verdict, Verdict::Denied);
    }
}

/// A weighted window counts a permit in its own window and in the next one.
#[test]
fn a_weighted_window_is_fresh_after_the_next_window() {
    let rule = rule("10/s algo weighted-window");
    let state = used(&rule, 3);
    for at in [NOW, NOW + SEC - 1, NOW + SEC, NOW + 2 * SEC - 1] {
        assert_eq!(rule.fresh_at(state, at), NOW + 2 * SEC, "{at}");
    }
    assert_eq!(rule.fresh_at(state, NOW + 2 * SEC), NOW + 2 * SEC);
}
