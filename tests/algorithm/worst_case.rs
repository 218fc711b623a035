//! The worst case that `worst_case` computes equals the one that a search finds. The search plays
//! an adversary who may send any number of requests at any nanosecond.
//!
//! The policies have periods of some nanoseconds, and the windows up to some periods, so the
//! adversary can try everything: for algorithms of one state word all states that some history
//! reaches, and from each of them every number of requests at each instant of the window. For
//! sliding windows and logs, whose states do not copy, it tries all histories of three bursts and
//! then takes all it can.

use crate::common::*;
use std::collections::{HashMap, HashSet};
use tollbar::algorithm::{worst_case, Algorithm, Rule};
use tollbar::{Kind, Policy, Shared, State, Verdict};

/// Policies, and the number of instants in which their histories are made.
const ONE_WORD: [(&str, u64); 39] = [
    ("3/12ns", 24),
    ("3/12ns burst 5", 30),
    ("4/12ns burst 1", 24),
    ("1/7ns", 16),
    ("5/11ns burst 2", 24),
    ("3/12ns init 0", 30),
    ("4/8ms; 6/20ms", 30),
    ("4/8ms; 6/20ms burst 3", 30),
    ("2/8ms burst 6; 9/16ms", 40),
    ("3/12ns ban 5ns after 2", 24),
    ("3/10ns algo interval", 24),
    ("3/10ns algo interval burst 5", 36),
    ("3/10ns algo interval burst 2", 24),
    ("3/10ns algo interval anchor first", 24),
    ("3/10ns algo interval anchor first burst 2", 24),
    ("3/10ns algo fixed-window", 24),
    ("1/10ns algo fixed-window anchor first", 24),
    ("3/10ns algo fixed-window anchor first", 24),
    ("7/9ns algo fixed-window anchor first", 24),
    ("7/9ns algo interval anchor first", 24),
    ("3/10ns algo fixed-window count rejected", 24),
    ("3/10ns algo weighted-window", 36),
    ("1/10ns algo weighted-window", 36),
    ("5/16ns algo weighted-window", 50),
    ("3/12ns algo pacer", 24),
    ("3/12ns algo pacer slack 2", 36),
    ("3/12us algo warm-up warm 24us", 60),
    ("4/12us algo warm-up warm 12us cold 2", 60),
    ("3/12ns curve linear", 36),
    ("5/12ns curve front", 36),
    ("4/10ns curve 0:100%", 30),
    ("3/1ns curve ln", 4),
    ("3/12ns burst 4 refill 0:50% 50%:100%", 40),
    ("3/12ns burst 4 refill 0:100% 50%:50%", 40),
    ("4/12ns burst 3 refill 0:25% 34%:50%", 40),
    ("5/forever", 8),
    ("2/day algo calendar", 60),
    ("3/week algo calendar", 60),
    ("1/month algo calendar", 90),
];

const SEVERAL_WORDS: [&str; 8] = [
    "3/12ns algo sliding-window segments 4",
    "2/12ns algo sliding-window segments 1",
    "3/12ns algo sliding-window segments 4 mode strict",
    "3/12ns algo sliding-window segments 4 mode interpolated",
    "1/12ns algo sliding-window segments 3 mode interpolated",
    "2/9ns algo sliding-window segments 3 mode strict",
    "3/12ns algo sliding-log",
    "3/12ns algo sliding-log count rejected",
];

/// The states after 0, 1, … requests at `now`, with how many of them were admitted. A refusal may
/// change a state, too.
fn after(rule: &Rule, state: u64, now: u64) -> Vec<(u64, u64)> {
    let (mut all, mut state, mut admitted) = (vec![(state, 0)], state, 0);
    loop {
        let step = rule.step(state, now, 1);
        state = step.next.unwrap_or(state);
        if step.verdict != Verdict::Allowed {
            all.push((state, admitted));
            return all;
        }
        admitted += 1;
        all.push((state, admitted));
    }
}

/// For each number of instants, `step` ns apart, the most that comes from `state` at `now` in so
/// many.
fn most(
    rule: &Rule,
    state: u64,
    now: u64,
    instants: usize,
    step: u64,
    known: &mut HashMap<(u64, u64), Vec<u64>>,
) -> Vec<u64> {
    if instants == 0 {
        return vec![0];
    }
    if let Some(most) = known.get(&(state, now)) {
        return most.clone();
    }
    let mut best = vec![0; instants + 1];
    for (next, admitted) in after(rule, state, now) {
        let later = most(rule, next, now + step, instants - 1, step, known);
        for (best, later) in best[1..].iter_mut().zip(later) {
            *best = (*best).max(admitted + later);
        }
    }
    known.insert((state, now), best.clone());
    best
}

/// For each number of instants the most that any history of `history` instants leads to.
fn search_one_word(policy: &Policy, history: u64, instants: usize, step: u64) -> Vec<u64> {
    let rule = Rule::new(policy).unwrap_or_else(|error| panic!("{policy}: {error}"));
    let begin = 100 * policy.period.min(1 << 32);
    let mut states = HashSet::from([0]);
    let mut best = vec![0; instants + 1];
    for now in (0..history).map(|n| begin + n * step) {
        let mut known = HashMap::new();
        for &state in &states {
            let found = most(&rule, state, now, instants, step, &mut known);
            best.iter_mut().zip(found).for_each(|(best, found)| *best = (*best).max(found));
        }
        let next = |&state: &u64| after(&rule, state, now).into_iter().map(|(state, _)| state);
        states = states.iter().flat_map(next).collect();
    }
    best
}

/// As [`search_one_word`], with instants one nanosecond apart.
fn search_several_words(policy: &Policy, instants: usize) -> Vec<u64> {
    let (period, limit) = (policy.period, policy.limit);
    let begin = 100 * period;
    let mut best = vec![0; instants + 1];
    for first in 0..period {
        for taken in 0..=limit {
            for second in first..first + period + 2 {
                for more in 0..=limit {
                    let state = State::new(policy).expect("memory");
                    let mut admitted = vec![0; period as usize * 2 + instants];
                    admitted[first as usize] += state.take_up_to_at(begin + first, taken);
                    admitted[second as usize] += state.take_up_to_at(begin + second, more);
                    for now in second + 1..2 * period + instants as u64 {
                        admitted[now as usize] += state.take_up_to_at(begin + now, u64::MAX);
                    }
                    for (length, best) in best.iter_mut().enumerate().skip(1) {
                        let most = admitted.windows(length).map(|window| window.iter().sum()).max();
                        *best = (*best).max(most.unwrap_or(0));
                    }
                }
            }
        }
    }
    best
}

/// The longest window, in periods.
fn periods() -> u64 {
    if is_short() {
        2
    } else {
        4
    }
}

/// The windows that end at the instants of the search, `step` ns apart.
fn compare(policy: &Policy, found: &[u64], step: u64) {
    for (instants, &found) in found.iter().enumerate().skip(1) {
        let window = (instants as u64 - 1) * step + 1;
        let said = worst_case(policy, window).expect("a policy");
        assert_eq!(said, found, "{policy}, {window} ns: the search finds {found}");
    }
}

#[test]
fn one_word() {
    for (text, history) in ONE_WORD {
        let policy = policy(text);
        // These do not fit a state with periods of nanoseconds. Their permits come back at whole
        // steps, or between two of them.
        let step = match policy.kind {
            _ if policy.second.is_some() => 1_000_000,
            Kind::WarmUp => 1_000,
            Kind::Calendar => 12 * HOUR,
            _ => 1,
        };
        let period = match policy.kind {
            Kind::Calendar => policy.period,
            _ => policy.period.min(12 * step),
        };
        let instants = periods() * period / step;
        compare(&policy, &search_one_word(&policy, history, instants as usize, step), step);
    }
}

#[test]
fn several_words() {
    for text in SEVERAL_WORDS {
        let policy = policy(text);
        let instants = periods() * policy.period;
        compare(&policy, &search_several_words(&policy, instants as usize), 1);
    }
}

#[test]
fn each_algorithm_is_searched() {
    let texts = ONE_WORD.map(|(text, _)| text).into_iter().chain(SEVERAL_WORDS);
    let searched: HashSet<Kind> = texts.map(|text| policy(text).kind).collect();
    for kind in Kind::ALL {
        assert!(searched.contains(&kind), "{}: add policies to this file's lists", kind.name());
    }
}
