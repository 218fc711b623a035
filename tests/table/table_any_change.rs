//! Any algorithm becomes any other while a table with room runs: each pair of algorithms, with
//! random histories, beside an oracle of limiters.
//!
//! The oracle has a limiter of the old policy that knows every permit taken, and one of the new
//! policy. At the key's first request after the change the new one is charged so that it has as
//! many permits left as the old one, up to its own limit.

use crate::common::{policy, rounds, with_each, Rng, DAY, SEC};
use tollbar::algorithm::worst_case;
use tollbar::clock::Source;
use tollbar::policy::Words;
use tollbar::table::{Options, PolicyId, Table};
use tollbar::{Kind, Policy, Shared, State};

const FIRST: PolicyId = PolicyId::FIRST;
/// Calendars need Unix time.
const NOW: u64 = 20_000 * DAY;
const ROOM: u32 = 64;

/// Several policies of each algorithm, so that it also becomes another policy of its own kind.
fn texts() -> Vec<String> {
    let texts = [
        "20/s burst 8",
        "7/s burst 12 ban 1s after 4",
        "30/s burst 9; 20/s burst 15",
        "9/s burst 6 borrow",
        "12/2s algo interval",
        "10/s algo fixed-window",
        "14/1500ms algo fixed-window anchor first",
        "16/s algo weighted-window",
        "12/s algo sliding-window segments 10",
        "25/2s algo sliding-window segments 4 mode strict",
        "18/1200ms algo sliding-window segments 6 mode interpolated",
        "11/s algo sliding-log",
        "23/1700ms algo sliding-log",
        "10/s algo pacer slack 4",
        "10/s algo warm-up warm 2s",
        "40/forever",
        "10/s curve front",
        "12/s burst 9 refill 0:50% 50%:100%",
        "30/month",
    ];
    with_each(Kind::ALL, &texts)
}

fn options() -> Options {
    let mut options = Options::new(1_000).with_room(ROOM).with_seed(3);
    options.clock = Source::Wall;
    options
}

fn is_several(policy: &Policy) -> bool {
    policy.kind.words() != Words::One
}

/// Permits left of a limiter.
fn left(state: &State, now: u64) -> u64 {
    state.peek_at(now, 1).remaining
}

/// The new policy's limiter, with as many permits left as the old one has.
fn carried(old: &State, new: &Policy, now: u64) -> State {
    let state = State::new(new).expect("a policy");
    let decision = old.peek_at(now, 1);
    // What is as good as fresh is fresh.
    if decision.reset_after != 0 {
        state.take_up_to_at(now, left(&state, now).saturating_sub(decision.remaining));
    }
    state
}

struct Run {
    now: u64,
    /// Time, permits, and the number of the policy in force.
    taken: Vec<(u64, u64, usize)>,
}

impl Run {
    /// The most by which permits of a window exceed the bounds of the policies in force.
    fn excess(&self, policies: &[Policy]) -> Option<String> {
        for (n, (begin, ..)) in self.taken.iter().enumerate() {
            let (mut sum, mut first, mut last) = (0, usize::MAX, 0);
            for (end, permits, by) in &self.taken[n..] {
                (sum, first, last) = (sum + permits, first.min(*by), last.max(*by));
                let bound: u64 = policies[first..=last]
                    .iter()
                    .map(|policy| worst_case(policy, end - begin + 1).expect("a policy"))
                    .sum();
                if sum > bound {
                    return Some(format!("{sum} of {bound} in {} ns", end - begin + 1));
                }
            }
        }
        None
    }
}

/// Each pair, to and back, in a table with free slots.
#[test]
fn any_algorithm_becomes_any_other() {
    let texts = texts();
    let mut random = Rng(36);
    let (mut pairs, mut asked, mut admitted, mut compared) = (0u64, 0u64, 0u64, 0u64);
    for (from, to) in texts.iter().flat_map(|from| texts.iter().map(move |to| (from, to))) {
        let policies = [policy(from), policy(to), policy(from)];
        if policies[0] == policies[1] {
            continue;
        }
        pairs += 1;
        // Between algorithms of one word a part of a permit may be kept, and windows of one length
        // keep the permits used. `table_change` has these. Here the first request is compared.
        let is_exact = is_several(&policies[0]) || is_several(&policies[1]);
        let keeps_use = policies[0].kind == policies[1].kind;
        for round in 0..rounds(20) {
            let table = Table::private(&options(), &policies[..1]).expect("memory");
            let key = round.to_le_bytes();
            let mut run = Run { now: NOW + random.below(10 * SEC), taken: Vec::new() };
            let mut old: Option<State> = None;
            let mut state = State::new(&policies[0]).expect("a policy");
            for (n, by) in policies.iter().enumerate() {
                if n != 0 {
                    run.now += random.below(SEC / 2);
                    table.set_policy(FIRST, by).expect("a change");
                    // A sweep may keep a one-word state in its slot a microsecond late.
                    if is_several(by) && random.one_in(4) {
                        table.sweep(0, u64::MAX, run.now);
                    }
                    let new = carried(&state, by, run.now);
                    old = Some(std::mem::replace(&mut state, new));
                }
                for request in 0..random.within(1, 25) {
                    // The bound of an algorithm that lends is for costs of 1.
                    let lends = by.borrow || matches!(by.kind, Kind::Pacer | Kind::WarmUp);
                    let most = if lends { 1 } else { 1 + by.limit.min(by.burst) / 3 };
                    let cost = random.within(1, most);
                    let may = [Some(&state), old.as_ref()]
                        .map(|state| state.map_or(true, |s| s.peek_at(run.now, cost).is_allowed()));
                    let said = table.check_at(FIRST, &key, run.now, cost);
                    let what = || {
                        let of = state.peek_at(run.now, cost);
                        format!("{from} to {to}, change {n}, request {request}, cost {cost} at {}: {said:?}, {of:?}", run.now)
                    };
                    let is_first = n == 1 && request == 0 && !keeps_use;
                    if n == 0 || is_exact || is_first {
                        assert!(said.is_allowed() || may != [true, true], "refused: {}", what());
                        compared += 1;
                    }
                    if is_exact {
                        assert!(!said.is_allowed() || may[0], "admitted: {}", what());
                    }
                    asked += 1;
                    if said.is_allowed() {
                        admitted += 1;
                        run.taken.push((run.now, cost, n));
                    }
                    for (state, may) in [Some(&state), old.as_ref()].into_iter().zip(may) {
                        match state {
                            Some(state) if said.is_allowed() => {
                                drop(state.take_up_to_at(run.now, cost))
                            }
                            // A refusal may count toward a ban.
                            Some(state) if !may => {
                                let _ = state.check_at(run.now, cost);
                            }
                            _ => {}
                        }
                    }
                    if is_exact {
                        let (said, of) =
                            (table.peek_at(FIRST, &key, run.now, 1), state.peek_at(run.now, 1));
                        assert_eq!(said, of, "{}", what());
                    }
                    run.now += [0, random.below(SEC / 50), random.below(SEC / 4)]
                        [random.below(3) as usize];
                }
            }
            assert_eq!(run.excess(&policies), None, "{from} to {to}");
        }
    }
    println!(
        "S36: {pairs} pairs of {}, {asked} requests, {admitted} admitted, {compared} compared",
        texts.len()
    );
    assert!(admitted > asked / 4 && admitted < asked * 9 / 10);
}
