//! Words that hold a slot's time beside the bucket's.

use super::tests::in_slots;
use super::*;
use crate::algorithm::facts::Facts;
use crate::algorithm::Rule;
use crate::search::rounds;
use crate::units::HORIZON;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use std::string::ToString;
use std::vec::Vec;

/// Buckets of whole units in a nanosecond and of rounded ones, with steps shorter and longer than a
/// burst.
fn policies() -> impl Strategy<Value = Policy> {
    const SECOND: u64 = 1_000_000_000;
    let periods = prop_oneof![
        Just(SECOND),
        Just(60 * SECOND),
        Just(3_600 * SECOND),
        Just(86_400 * SECOND),
        1..HORIZON >> 16
    ];
    let numbers = || prop_oneof![1..20u64, 1..2_000u64, (0..20u32).prop_map(|n| 1 << n)];
    (numbers(), periods, numbers(), any::<bool>()).prop_map(
        |(limit, period, burst, starts_full)| Policy {
            init: if starts_full { burst } else { burst / 2 },
            ..Policy::new(limit, period).with_burst(burst)
        },
    )
}

fn buckets() -> impl Strategy<Value = Gcra> {
    let lowers = |bucket: &Gcra| bucket.floors.exist();
    policies()
        .prop_filter_map("a bucket", |policy| Gcra::new(&policy).ok())
        .prop_filter("words with room", lowers)
        .prop_map(in_slots)
}

/// The wide form rounds a TAT up by less than this.
const SLACK: u64 = 1 << 12;

proptest! {
    #![proptest_config(ProptestConfig { cases: rounds(20_000) as u32, failure_persistence: None, ..ProptestConfig::default() })]

    /// Each change of any word, also of a damaged one, leaves a word whose TAT is not before the
    /// wanted one and whose slot stays taken at least as long as before.
    #[test]
    fn a_floor_never_falls(
        bucket in buckets(),
        word in prop_oneof![any::<u64>(), any::<u64>().prop_map(|n| n >> 1)],
        tats in proptest::collection::vec((any::<bool>(), (0..64u32, any::<u64>()).prop_map(|(n, tat)| tat >> n)), 1..6),
    ) {
        let most = bucket.grid.units(bucket.last);
        let mut word = if bucket.floors.is_lowered(word) { word } else { word.clamp(1, most) };
        for (charge, tat) in tats {
            let (before, expires) = (bucket.floors.tat(word), bucket.expires_at(word));
            if charge {
                let tat = before.saturating_add(tat >> 20).min(most);
                // No request charges a damaged word that is later than all times.
                if tat < before || expires == NEVER { continue; }
                word = bucket.raise(word, tat);
                prop_assert!(bucket.floors.tat(word) >= tat && bucket.floors.tat(word) < tat + SLACK, "{word:x}");
            } else {
                let tat = tat.min(before.saturating_sub(1));
                word = bucket.lower(word, tat);
                prop_assert!(bucket.floors.tat(word) >= tat && bucket.floors.tat(word) <= before, "{word:x}");
            }
            prop_assert!(bucket.expires_at(word) >= expires, "{word:x}: {} after {expires}", bucket.expires_at(word));
            prop_assert!(bucket.floor(word) >= bucket.floors.tat(word), "{word:x}");
            prop_assert!(bucket.expires_at(word) >= bucket.expires_plain(bucket.floors.tat(word)), "{word:x}");
        }
    }

    /// A word keeps two times: its TAT, at most four microseconds (or four units) later than
    /// wanted, and its slot's time, at most a fifteenth of the time until then (or two quanta)
    /// later.
    #[test]
    fn a_held_word_keeps_both_times(
        bucket in buckets(),
        now in (0..60u32, any::<u64>()).prop_map(|(n, now)| now >> 4 >> n),
        debt in 0..1_000u64,
        gap in (0..60u32, any::<u64>()).prop_map(|(n, more)| more >> 4 >> n),
        exact in any::<bool>(),
    ) {
        let state = bucket.charge(0, now, debt).next.unwrap_or(0);
        let until = now.saturating_add(gap).max(1);
        if let Some(word) = bucket.hold(state, until, now, exact) {
            let tat = bucket.base(state, bucket.grid.units(now));
            let (held, expires) = (bucket.floors.tat(word), bucket.expires_at(word));
            let slack = if exact { 4 } else { SLACK };
            // A full bucket's TAT may be any time that has passed.
            let is_full = tat == bucket.grid.units(now) && held <= tat;
            prop_assert!(is_full || (held >= tat && held < tat + slack), "{word:x}: {held} for {tat}");
            // The shortest step is 34 ms.
            let alone = bucket.expires_plain(held);
            let late = if exact { bucket.grid.nanos(bucket.tolerance.saturating_mul(4)).saturating_add(100) } else { until.saturating_sub(alone) / 15 + (1 << 25) };
            let least = until.max(alone);
            prop_assert!((least..=least.saturating_add(late)).contains(&expires), "{word:x}: {expires} for {until}, after {alone}");
        }
    }
}

/// Converts a key's word from the policy `old` to `new`, as `migrate` does for a key that stays in
/// its slot: the new word expires no earlier than the old one. `None` if the new policy has no such
/// word.
fn changed(new: &Rule, old: &Rule, word: u64, now: u64) -> Option<u64> {
    let until = old.expires_at(word);
    let is_full = old.full_before_floor(word).is_some_and(|full| full <= now);
    let converted = if is_full { 0 } else { new.convert(old, word, now) };
    if converted != 0 && new.expires_at(converted) >= until {
        return Some(converted);
    }
    [true, false].into_iter().find_map(|exact| new.hold(converted, until, now, exact))
}

/// A key's policy changes 600 times, at one instant or as time passes. The key's slot comes free as
/// late as the longest debt of the key ends. It may be later by a fifteenth of that time, or by two
/// quanta.
#[test]
fn changes_of_policy_do_not_move_a_slots_time_away() {
    let mut runner = proptest::test_runner::TestRunner::new_with_rng(
        ProptestConfig { failure_persistence: None, ..ProptestConfig::default() },
        proptest::test_runner::TestRng::deterministic_rng(
            proptest::test_runner::RngAlgorithm::ChaCha,
        ),
    );
    let (mut longest, mut changes, mut none) = (0.0f64, 0, 0);
    for round in 0..rounds(2_000) as usize {
        let drawn = proptest::collection::vec(policies(), 2..4)
            .new_tree(&mut runner)
            .expect("policies")
            .current();
        let compiled: Vec<Rule> =
            drawn.iter().filter_map(|policy| Rule::new(policy).ok().map(Rule::in_slots)).collect();
        let burst = |n: usize| drawn[n].burst;
        if compiled.len() < drawn.len()
            || !compiled.iter().all(|rule| matches!(rule, Rule::Gcra(gcra) if gcra.floors.exist()))
        {
            continue;
        }
        let quantum = |rule: &Rule| {
            if let Rule::Gcra(gcra) = rule {
                gcra.grid.nanos(2 << gcra.floors.quantum())
            } else {
                0
            }
        };
        let quantum = compiled.iter().map(quantum);
        let quanta = quantum.max().unwrap_or(0).saturating_mul(2);
        let mut now = 1_u64 << 59;
        let mut word = compiled[0].charged(1 + burst(0) / 2, now);
        let mut latest = compiled[0].expires_at(word);
        let begun = now;
        for n in 1..600 {
            now += [0, 10_000_000_000, 61_000_000_000][round % 3];
            let (old, new) = (&compiled[(n - 1) % compiled.len()], &compiled[n % compiled.len()]);
            if word == 0 || old.expires_at(word) <= now {
                break;
            }
            let before = old.expires_at(word);
            let Some(next) = changed(new, old, word, now) else {
                none += 1;
                break;
            };
            let expires = new.expires_at(next);
            assert!(expires >= before, "{}: {expires} after {before}", drawn[0]);
            // Debts that round up to a permit may end later than all before.
            if let Rule::Gcra(gcra) = new {
                latest = latest.max(gcra.expires_plain(gcra.floors.tat(next)));
            }
            let far = |at: u64| at.saturating_sub(begun) as f64;
            let most = far(latest) * 1.15 + quanta as f64 + 1e8;
            longest = longest.max(far(expires) / most);
            assert!(
                far(expires) <= most,
                "{}: after {n} changes the slot is taken for {} ns, and no debt was longer than {}",
                drawn.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
                far(expires),
                far(latest)
            );
            word = next;
            changes += 1;
        }
    }
    std::println!("{changes} changes, {none} without a word; the latest time is {longest:.2} of what is allowed");
    assert!(changes > rounds(2_000) * 50 && longest > 0.8, "{changes} {longest}");
}
