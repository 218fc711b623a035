//! States that move to another rule.

use super::*;

#[test]
fn a_state_moves_to_another_rule() {
    let mut rng = Rng(9);
    let all: Vec<_> = each().collect();
    for (old, from) in &all {
        for (new, to) in &all {
            for _ in 0..12 {
                adopts((new, to), (old, from), &mut rng);
            }
        }
    }
}

/// Between windows of one length only the limit changes, and the permits used stay used.
#[test]
fn what_has_been_used_stays_used() {
    let limits = [1, 2, 3, 10, 11, 100, 70_000, 1_000_000];
    let kinds = [
        "algo fixed-window",
        "curve 0:100%",
        "algo fixed-window anchor first",
        "algo weighted-window",
        "algo interval anchor first",
    ];
    let mut rng = Rng(10);
    for kind in kinds {
        for a in limits {
            for b in limits {
                let (old, new) =
                    (policy(&format!("{a}/10s {kind}")), policy(&format!("{b}/10s {kind}")));
                let (from, to) = (rule(&old), rule(&new));
                for _ in 0..20 {
                    let start = rng.below(DAY);
                    let taken = rng.within(1, a);
                    let word = from.step(0, start, taken).next.unwrap();
                    let moved = to.adopt(&from, word);
                    assert_eq!(
                        to.available(moved, start),
                        b.saturating_sub(taken),
                        "{kind}, {a} to {b}: {taken}"
                    );
                    let (was, is) = (from.expires_at(word), to.expires_at(moved));
                    // An anchored start on a coarser grain is rounded up.
                    let grain = if anchored(&old) { MS } else { 0 };
                    assert!((was..=was + grain).contains(&is), "{kind}, {a} to {b}: {was} to {is}");
                    if b >= a {
                        let back = from.adopt(&to, moved);
                        let same = back == word
                            || anchored(&old) && from.available(back, start) == a - taken;
                        assert!(same, "{kind}, {a} to {b} and back");
                    }
                }
            }
        }
    }
    // Both counts of a weighted window.
    let (from, to) =
        (rule(&policy("10/s algo weighted-window")), rule(&policy("20/s algo weighted-window")));
    let mut state = from.step(0, 0, 8).next.unwrap();
    state = from.step(state, SEC + SEC / 2, 3).next.unwrap();
    assert_eq!(from.available(state, SEC + SEC / 2), 3);
    assert_eq!(to.available(to.adopt(&from, state), SEC + SEC / 2), 13);
}

/// `adopt` carries a bucket's debt over as a time: a second's debt of 10 permits becomes one of
/// 100.
#[test]
fn a_buckets_debt_is_a_time() {
    let (from, to) = (rule(&policy("10/s")), rule(&policy("100/s burst 150")));
    let state = from.step(0, DAY, 10).next.unwrap();
    let word = to.adopt(&from, state);
    assert_eq!(to.available(word, DAY), 49);
    assert_eq!(to.available(word, DAY + SEC / 2), 99);
    assert_eq!(to.available(word, DAY + SEC + MS), 150);
}

/// Through any sequence of rules, a limit of 0 among them, no debt is forgotten.
#[test]
fn through_many_changes_nothing_is_forgotten() {
    let mut rng = Rng(11);
    let all: Vec<_> = each().collect();
    for _ in 0..3_000 {
        let (policy, mut rule) = all[rng.below(all.len() as u64) as usize];
        let (mut state, now) = used(&policy, &rule, 8, &mut rng);
        for _ in 0..8 {
            let before = rule.expires_at(state);
            let (policy, next) =
                all[if rng.one_in(3) { 0 } else { rng.below(all.len() as u64) as usize }];
            state = next.adopt(&rule, state);
            assert!(next.expires_at(state) >= before, "to {policy}: {before}");
            assert!(state != 0 || before == 0, "to {policy}: {before}");
            rule = next;
            if let Some(word) = rule.step(state, now, 1).next {
                state = word;
            }
        }
    }
    // 10, 0, 10.
    let (open, closed) = (rule(&policy("10/s")), rule(&policy("0/s")));
    let state = open.step(0, DAY, 10).next.unwrap();
    let between = closed.adopt(&open, state);
    assert_eq!(closed.step(between, DAY, 1).verdict, Verdict::Denied);
    let back = open.adopt(&closed, between);
    assert_eq!(open.available(back, DAY), 0);
    assert!(open.available(back, DAY + SEC / 2) <= 5);
}
