//! The worst case that `worst_case` computes equals the one that a search finds. The search plays
//! an adversary who may send any number of requests at any nanosecond.
//!
//! The policies have periods of some nanoseconds, so the adversary can try everything: for
//! algorithms of one state word all states that some history reaches, and from each of them every
//! number of requests at each instant of the window. For sliding windows and logs, whose states do
//! not copy, it tries all histories of three bursts and then takes all it can.

use std::collections::{HashMap, HashSet};
use tollbar::algorithm::{Algorithm, Rule};
use tollbar::{Kind, Policy, Shared, State, Verdict};
use tollbar_rules::worst_case;

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

/// The most from `state` in the instants from `now` until `end`.
fn most(
    rule: &Rule,
    state: u64,
    now: u64,
    end: u64,
    step: u64,
    known: &mut HashMap<(u64, u64), u64>,
) -> u64 {
    if now >= end {
        return 0;
    }
    if let Some(&most) = known.get(&(state, now)) {
        return most;
    }
    let best = after(rule, state, now)
        .into_iter()
        .map(|(next, admitted)| admitted + most(rule, next, now + step, end, step, known))
        .max()
        .unwrap_or(0);
    known.insert((state, now), best);
    best
}

fn search_one_word(policy: &Policy, history: u64) -> u64 {
    let rule = Rule::new(policy).unwrap_or_else(|error| panic!("{policy}: {error}"));
    // A quota's window has no end; what comes in a few instants never comes back.
    let period = if policy.kind.is_forever() { 4 } else { policy.period };
    let begin = 100 * period;
    let mut states = HashSet::from([0]);
    // These do not fit a state with periods of nanoseconds. Their permits come back at whole steps,
    // or between two of them.
    let step = match policy.kind {
        _ if policy.second.is_some() => 1_000_000,
        Kind::WarmUp => 1_000,
        _ => 1,
    };
    let mut best = 0;
    for now in (0..history).map(|n| begin + n * step) {
        let mut known = HashMap::new();
        for &state in &states {
            best = best.max(most(&rule, state, now, now + period, step, &mut known));
        }
        states = states
            .iter()
            .flat_map(|&state| after(&rule, state, now))
            .map(|(state, _)| state)
            .collect();
    }
    best
}

fn search_several_words(policy: &Policy) -> u64 {
    let (period, limit) = (policy.period, policy.limit);
    let begin = 100 * period;
    let mut best = 0;
    for first in 0..period {
        for taken in 0..=limit {
            for second in first..first + period + 2 {
                for more in 0..=limit {
                    let state = State::new(policy).expect("memory");
                    let mut admitted = vec![0; 4 * period as usize];
                    admitted[first as usize] += state.take_up_to_at(begin + first, taken);
                    admitted[second as usize] += state.take_up_to_at(begin + second, more);
                    for now in second + 1..second + period + 2 {
                        admitted[now as usize] += state.take_up_to_at(begin + now, u64::MAX);
                    }
                    let windows = admitted.windows(period as usize);
                    best = best.max(windows.map(|window| window.iter().sum()).max().unwrap_or(0));
                }
            }
        }
    }
    best
}

fn policy(text: &str) -> Policy {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn one_word() {
    for (text, history) in [
        ("3/12ns", 24),
        ("3/12ns burst 5", 30),
        ("4/12ns burst 1", 24),
        ("1/7ns", 16),
        ("5/11ns burst 2", 24),
        ("3/12ns init 0", 30),
        ("4/8ms; 6/20ms", 30),
        ("4/8ms; 6/20ms burst 3", 30),
        ("2/8ms burst 6; 9/16ms", 40),
        ("3/10ns ban 4ns after 2", 24),
        ("3/10ns algo interval", 24),
        ("3/10ns algo interval burst 5", 36),
        ("3/10ns algo interval burst 2", 24),
        ("3/10ns algo interval anchor first", 24),
        ("3/10ns algo interval anchor first burst 2", 24),
        ("3/10ns algo fixed-window", 24),
        ("1/10ns algo fixed-window anchor first", 24),
        ("3/10ns algo fixed-window anchor first", 24),
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
    ] {
        let policy = policy(text);
        let found = search_one_word(&policy, history);
        assert_eq!(worst_case(&policy), found, "{text}: the search finds {found}");
    }
}

#[test]
fn several_words() {
    for text in [
        "3/12ns algo sliding-window segments 4",
        "2/12ns algo sliding-window segments 1",
        "3/12ns algo sliding-window segments 4 mode strict",
        "3/12ns algo sliding-window segments 4 mode interpolated",
        "1/12ns algo sliding-window segments 3 mode interpolated",
        "2/9ns algo sliding-window segments 3 mode strict",
        "3/12ns algo sliding-log",
        "3/12ns algo sliding-log count rejected",
    ] {
        let policy = policy(text);
        let found = search_several_words(&policy);
        assert_eq!(worst_case(&policy), found, "{text}: the search finds {found}");
    }
}
