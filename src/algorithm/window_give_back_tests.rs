//! Give-backs of windows, compared with an exact count of the permits that each window kept.

use super::{Algorithm, Charge, GiveBack, Rule, Step};
use crate::decision::Verdict;
use crate::search::rounds;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use std::format;
use std::string::String;
use std::vec::Vec;

/// The windows' period in all policies of this file, in nanoseconds.
const PERIOD: u64 = 1_000_000_000;

/// A charge.
#[derive(Clone, Copy, Debug)]
struct Taken {
    /// The caller's time, which may lag behind the clock.
    at: u64,
    /// The window in which the rule counted the charge.
    window: u64,
    /// Nanoseconds from the start of that window to the charge; 0 for a charge before it.
    elapsed: u64,
    /// The instant for which the rule admitted it: `at`, or the start of that window if `at` is
    /// earlier.
    judged: u64,
    cost: u64,
    /// The permits that were not given back.
    net: u64,
    /// Whether a give-back of this charge returned permits.
    given: bool,
}

#[derive(Clone, Copy, Debug)]
enum Call {
    /// A request: its cost, and by how many nanoseconds its time lags behind the clock.
    Take(u64, u64),
    /// A give-back: how many charges have come since the charge, and how many permits to give back.
    Back(usize, u64),
    /// The clock advances by this many nanoseconds.
    Pass(u64),
}

fn calls(limit: u64) -> impl Strategy<Value = Vec<Call>> {
    // Some of the times are the ends of windows, or shorter than a grain.
    let time = || {
        prop_oneof![
            Just(0),
            Just(PERIOD),
            Just(PERIOD / 2),
            Just(1),
            Just(20),
            0..60u64,
            0..PERIOD * 2
        ]
    };
    let lag = prop_oneof![6 => Just(0), 1 => 1..60u64, 1 => 0..PERIOD];
    let call = prop_oneof![
        4 => ((1..=limit), lag).prop_map(|(cost, lag)| Call::Take(cost, lag)),
        4 => ((0..6usize), (1..=limit)).prop_map(|(n, cost)| Call::Back(n, cost)),
        3 => time().prop_map(Call::Pass),
    ];
    proptest::collection::vec(call, 1..40)
}

/// A compiled policy, and what the exact count needs of it.
struct Subject {
    rule: Rule,
    limit: u64,
    counts_refusals: bool,
}

fn compiled(text: &str) -> Subject {
    let policy: crate::policy::Policy = text.parse().expect("a policy");
    Subject {
        rule: Rule::new(&policy).expect("a rule"),
        limit: policy.limit,
        counts_refusals: policy.count_rejected,
    }
}

impl Subject {
    /// The number of a word's window, its start in nanoseconds, and the permits that the word
    /// counts in the window before it and in it.
    fn read(&self, word: u64) -> (u64, u64, u64, u64) {
        if let Rule::WeightedWindow(window) = &self.rule {
            let (window, previous, current) = window.parts(word);
            return (window, window * PERIOD, previous, current);
        }
        let (start, from, used) = if let Rule::FixedWindow(window) = &self.rule {
            window.parts(word)
        } else if let Rule::Curve(curve) = &self.rule {
            curve.window().parts(word)
        } else {
            panic!("{:?} has no window", self.rule)
        };
        (start, from, 0, used)
    }
}

#[derive(Default)]
struct Run {
    /// Permits that came back.
    given: u64,
    /// The last violation that the exact count found.
    over: Option<String>,
    /// Whether some window kept exactly its limit.
    full: bool,
}

/// Makes the calls. `back` gives permits back: it gets the word, the time and the give-back, and
/// returns the next word.
fn run(
    subject: &Subject,
    calls: &[Call],
    back: impl Fn(u64, u64, &GiveBack) -> Option<u64>,
) -> Run {
    // Neither a grain nor the period divides the first time.
    let (mut state, mut clock) = (0, 1_000_000_000_000_000_007);
    let mut charges: Vec<Taken> = Vec::new();
    // The windows of refused requests, each with the number of charges before it.
    let mut refused: Vec<(u64, usize)> = Vec::new();
    let mut run = Run::default();
    let mut expiry = 0;
    for call in calls {
        match *call {
            Call::Take(cost, lag) => {
                let at = clock - lag;
                let Step { verdict, next } = subject.rule.step(state, at, cost);
                state = next.unwrap_or(state);
                let (window, from, ..) = subject.read(state);
                match verdict {
                    Verdict::Allowed => charges.push(Taken {
                        at,
                        window,
                        elapsed: at.saturating_sub(from),
                        judged: at.max(from),
                        cost,
                        net: cost,
                        given: false,
                    }),
                    _ => refused.push((window, charges.len())),
                }
            }
            Call::Back(age, permits) => {
                let Some(n) = charges.len().checked_sub(age + 1) else { continue };
                let charge = &mut charges[n];
                if charge.given {
                    continue;
                }
                let how = GiveBack {
                    charge: Charge { at: charge.at, cost: charge.cost },
                    permits: permits.min(charge.cost),
                    booked: false,
                    highest: 0,
                    keeps_slot: true,
                };
                let Some(next) = back(state, clock, &how) else { continue };
                let ((_, _, p, c), (_, _, p_next, c_next)) =
                    (subject.read(state), subject.read(next));
                let permits = (p + c) - (p_next + c_next);
                assert!(permits <= how.permits, "{permits} of {how:?}");
                charge.net -= permits;
                charge.given = true;
                run.given += permits;
                state = next;
            }
            Call::Pass(time) => clock += time,
        }
        let expires = subject.rule.expires_at(state);
        assert!(expires >= expiry, "the expiry fell from {expiry} to {expires}: {calls:?}");
        assert!(expires >= subject.rule.fresh_at(state, 0), "{state:x} expires at {expires}");
        expiry = expires;
    }
    for (n, charge) in charges.iter().enumerate() {
        // The weight that the rule would have seen if only the kept permits had been charged, times
        // the period: the permits of its window, and those of the window before, weighted by the
        // part of it that still counts.
        let kept = |window: u64| {
            charges[..n].iter().filter(|c| c.window == window).map(|c| c.net).sum::<u64>()
        };
        let mut weight = u128::from(kept(charge.window) + charge.net) * u128::from(PERIOD);
        if let Rule::WeightedWindow(_) = subject.rule {
            weight += u128::from(kept(charge.window - 1)) * u128::from(PERIOD - charge.elapsed);
        }
        let bound = u128::from(subject.limit) * u128::from(PERIOD);
        run.full |= weight == bound;
        let context = || format!("{weight} of {bound} at {charge:?}: {calls:?}");
        if charge.net != 0 && weight > bound {
            run.over = Some(context());
        }
        if subject.counts_refusals
            && refused.iter().any(|&(window, before)| window == charge.window && before <= n)
        {
            run.over = Some(context());
        }
        // An interval of this length touches at most (to - from) / PERIOD + 2 windows.
        let from = charge.judged;
        for to in charges.iter().map(|last| last.judged).filter(|&to| to >= from) {
            let sum: u64 =
                charges.iter().filter(|c| (from..=to).contains(&c.judged)).map(|c| c.net).sum();
            if sum > subject.limit * ((to - from) / PERIOD + 2) {
                run.over = Some(format!("{sum} from {from} to {to}: {calls:?}"));
            }
        }
    }
    run
}

const POLICIES: [&str; 9] = [
    "5/s algo fixed-window",
    "1/s algo fixed-window",
    "5/s algo fixed-window anchor first",
    // Its grain is longer than 1 ns.
    "40/s algo fixed-window anchor first",
    "5/s algo fixed-window count rejected",
    // A curve that gives all permits at the start of a slice, as a fixed window does.
    "5/s curve 0:100%",
    "5/s algo weighted-window",
    "40/s algo weighted-window",
    "1/s algo weighted-window",
];

fn by_rule(subject: &Subject) -> impl Fn(u64, u64, &GiveBack) -> Option<u64> + '_ {
    |state, now, back| subject.rule.give_back(state, now, back).map(|returned| returned.next)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: rounds(40_000) as u32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_window_keeps_more_than_its_limit((text, calls) in (0..POLICIES.len()).prop_flat_map(|n| {
        (Just(POLICIES[n]), calls(compiled(POLICIES[n]).limit))
    })) {
        let subject = compiled(text);
        let run = run(&subject, &calls, by_rule(&subject));
        prop_assert!(run.over.is_none(), "{text}: {:?}", run.over);
    }
}

/// The number of traces in which a window kept more than its limit, the permits given back, and
/// whether some window kept exactly its limit.
fn searched(
    text: &str,
    traces: u64,
    back: impl Fn(&Subject, u64, u64, &GiveBack) -> Option<u64>,
) -> (u32, u64, bool) {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let subject = compiled(text);
    let (mut over, mut given, mut full) = (0, 0, false);
    for _ in 0..traces {
        let calls = calls(subject.limit).new_tree(&mut runner).expect("calls").current();
        let run = run(&subject, &calls, |state, now, how| back(&subject, state, now, how));
        over += u32::from(run.over.is_some());
        given += run.given;
        full |= run.full;
    }
    (over, given, full)
}

/// The word of a faulty rule: it lowers the count of the word's window, whichever window counted
/// the charge.
fn lower(subject: &Subject, state: u64, how: &GiveBack) -> Option<u64> {
    let used = subject.read(state).3;
    // One permit stays, so that the word keeps its time of expiry.
    let permits = how.permits.min(used.saturating_sub(1));
    (permits != 0).then(|| state - permits)
}

/// The search finds the faults of simpler rules, and the rule gives back more than a tenth of what
/// the faulty ones give.
#[test]
fn the_search_finds_what_is_wrong_with_simpler_rules() {
    for text in POLICIES {
        let (over, given, full) = searched(text, rounds(20_000), |subject, state, now, how| {
            by_rule(subject)(state, now, how)
        });
        assert_eq!((over, full), (0, true), "{text}");
        let limit = compiled(text).limit;
        if limit == 1 {
            assert!(given > 0, "{text}");
            continue;
        }
        let (over, most, _) =
            searched(text, rounds(20_000), |subject, state, _, how| lower(subject, state, how));
        assert!(
            u64::from(over) > rounds(20_000) / 200,
            "{text}: a give-back in any window broke the limit in {over} traces only"
        );
        assert!(given > most / 10, "{text}: {given} of {most}");
    }
    // Faulty: a charge up to a grain before the window's start counts as one of this window, though
    // the window before may have counted it. A few traces of all meet it.
    let (over, ..) =
        searched("40/s algo fixed-window anchor first", 20_000, |subject, state, now, how| {
            let Rule::FixedWindow(window) = &subject.rule else { return None };
            let (_, from, _) = window.parts(state);
            let at = how.charge.at.max(if how.charge.at + 10 > from { from } else { 0 });
            by_rule(subject)(state, now, &GiveBack { charge: Charge { at, ..how.charge }, ..*how })
        });
    assert!(over > 0, "an uncertain window broke the limit in no trace");
    // Faulty: permits of the window before are taken off the count of the current window.
    let (over, ..) =
        searched("40/s algo weighted-window", rounds(20_000), |subject, state, now, how| {
            let next = by_rule(subject)(state, now, how);
            let (window, ..) = subject.read(state);
            if how.charge.at / PERIOD + 1 == window {
                lower(subject, state, how)
            } else {
                next
            }
        });
    assert!(
        u64::from(over) > rounds(20_000) / 200,
        "the wrong count broke the limit in {over} traces only"
    );
    // Faulty: a full window that counts refusals gives permits back.
    let (over, ..) = searched(
        "5/s algo fixed-window count rejected",
        rounds(20_000),
        |subject, state, now, how| {
            let held = by_rule(&compiled("5/s algo fixed-window"))(state, now, how);
            held.filter(|_| subject.counts_refusals)
        },
    );
    assert!(
        u64::from(over) > rounds(20_000) / 200,
        "a refusal was forgotten in {over} traces only"
    );
}

/// With a grain above 1 ns the request that begins an anchored window gives nothing back, and later
/// requests do. With a grain of 1 ns the first one does, too.
#[test]
fn the_first_request_of_a_coarse_window_gives_nothing_back() {
    let give = |text: &str, at: u64| {
        let subject = compiled(text);
        let word = subject
            .rule
            .step(subject.rule.step(0, 1_000_003, 1).next.expect("one"), at, 1)
            .next
            .expect("two");
        let charge = Charge { at, cost: 1 };
        let how = GiveBack { charge, permits: 1, booked: false, highest: 0, keeps_slot: true };
        subject.rule.give_back(word, at + 1, &how).is_some()
    };
    assert!(!give("40/s algo fixed-window anchor first", 1_000_003));
    assert!(give("40/s algo fixed-window anchor first", 1_000_013));
    assert!(give("6/s algo fixed-window anchor first", 1_000_003));
}

/// Permits of the window before come back as far as they have not faded.
#[test]
fn a_weighted_window_gives_back_what_has_not_faded() {
    let subject = compiled("40/s algo weighted-window");
    let word = subject.rule.step(0, 7 * PERIOD, 40).next.expect("all");
    let later = subject.rule.step(word, 8 * PERIOD + PERIOD / 2, 10).next.expect("ten");
    let how = |at, permits| GiveBack {
        charge: Charge { at, cost: 40 },
        permits,
        booked: false,
        highest: 0,
        keeps_slot: true,
    };
    let back =
        |word, now, how| subject.rule.give_back(word, now, &how).map(|returned| returned.permits);
    assert_eq!(back(word, 7 * PERIOD + 1, how(7 * PERIOD, 40)), Some(40));
    // First for a word that is still in the window of the charge, then for one in the next window.
    assert_eq!(back(word, 8 * PERIOD + PERIOD / 2, how(7 * PERIOD, 40)), Some(20));
    assert_eq!(back(later, 8 * PERIOD + PERIOD / 2, how(7 * PERIOD, 30)), Some(15));
    assert_eq!(back(later, 9 * PERIOD, how(7 * PERIOD, 30)), Some(0));
    assert_eq!(back(later, 8 * PERIOD + PERIOD / 2, how(6 * PERIOD, 30)), None);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// A word that has given permits back keeps its time of expiry when its policy changes.
    #[test]
    fn a_change_of_the_limit_keeps_the_expiry(
        (old, new) in ((1..100u64), (1..100u64)),
        (before, taken, back) in ((0..100u64), (1..100u64), (1..100u64)),
    ) {
        let of = |limit| compiled(&format!("{limit}/s algo weighted-window")).rule;
        let (old, new) = (of(old), of(new));
        let mut word = old.step(0, 7 * PERIOD, before).next.unwrap_or(0);
        let at = 9 * PERIOD - 1;
        word = old.step(word, at, taken).next.unwrap_or(word);
        let charge = Charge { at, cost: taken };
        let how = GiveBack { charge, permits: back, booked: false, highest: 0, keeps_slot: true };
        word = old.give_back(word, at, &how).map_or(word, |returned| returned.next);
        prop_assert!(new.expires_at(new.adopt(&old, word)) >= old.expires_at(word), "{word:x}");
    }
}
