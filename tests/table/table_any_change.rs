//! In a table with room, a policy changes from each algorithm to each other one while keys are in
//! use. The requests are random, and an oracle of limiters decides each of them as well.
//!
//! The oracle has a limiter of the old policy that knows every permit taken, and one of the new
//! policy. At the key's first request after the change the new one is charged so that it has as
//! many permits left as the old one, up to its own limit.

use crate::common::{policy, rounds, with_each, Rng, DAY, SEC};
use tollbar::algorithm::worst_case;
use tollbar::clock::Source;
use tollbar::policy::Words;
use tollbar::table::{Entry, Keep, OnFull, Options, PolicyId, Table, TableError};
use tollbar::{Kind, Policy, Shared, State};

#[path = "../../examples/core/flash_sale.rs"]
#[allow(dead_code)]
mod flash_sale;

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
    // A key that has all permits under the old policy has all under the new one.
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
                                let _ = state.take_up_to_at(run.now, cost);
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

#[test]
fn the_flash_sale_is_that_of_the_document() {
    let document = include_str!("../../docs/table.md");
    let expected: Vec<&str> = document.lines().filter(|line| line.starts_with("second ")).collect();
    let mut said = Vec::new();
    flash_sale::sale(&mut |line| said.push(line)).expect("a table");
    assert_eq!(said, expected);
}

/// A full table refuses no key that has permits left after a change of the policy, because the key
/// keeps its slot. That holds also if the new policy would free the slot earlier.
#[test]
fn a_full_table_refuses_no_key_that_has_permits_left() {
    let policies = [
        "100/h burst 100",
        "100/h algo sliding-window segments 20",
        "90/min algo sliding-window segments 6 mode strict",
        "60/h algo sliding-log",
        "50/min algo sliding-log",
        "200/h burst 200",
    ];
    for (from, to) in policies.iter().flat_map(|from| policies.iter().map(move |to| (from, to))) {
        // Into a window or log, and from one into a token bucket.
        if from == to || !is_several(&policy(from)) && !is_several(&policy(to)) {
            continue;
        }
        for on_full in [OnFull::Deny, OnFull::EvictNearest, OnFull::Inherit] {
            let keys = 4_096u64;
            let table =
                Table::private(&options().with_on_full(on_full), &[policy(from)]).expect("memory");
            let left = 20;
            let used = policy(from).limit - left;
            for key in 0..keys {
                let _ = table.take_up_to_at(FIRST, &key.to_le_bytes(), NOW, used);
            }
            let has = |key: u64| table.peek_at(FIRST, &key.to_le_bytes(), NOW, 1).remaining;
            let known: Vec<u64> = (0..keys).filter(|key| has(*key) == left).collect();
            assert!(known.len() > 3_000);
            table.set_policy(FIRST, &policy(to)).expect("room");
            for key in &known {
                let got = table.take_up_to_at(FIRST, &key.to_le_bytes(), NOW, u64::MAX);
                assert_eq!(got, left, "{from} to {to}, {on_full:?}, key {key}");
            }
            // No slot's time has become earlier, and no key has two slots.
            assert!(table.validate(NOW).is_sound());
        }
    }
}

/// The table refuses a policy that needs more room. The error has both numbers, and the old policy
/// stays.
#[test]
fn a_policy_that_needs_more_room_is_refused() {
    let table = Table::private(&options(), &[policy("10/s")]).expect("memory");
    let error = table.set_policy(FIRST, &policy("65/s algo sliding-log")).unwrap_err();
    assert_eq!(error, TableError::SlotRoom { needs: 65, has: 64 });
    assert_eq!(error.to_string(), "the table's slots have too little room for this window or log: it needs room for 65 segments or permits, and they have room for 64");
    assert_eq!(table.policy(FIRST), Ok(policy("10/s")));
    assert!(table.set_policy(FIRST, &policy("64/s algo sliding-log")).is_ok());
    assert!(table.add_policy(&policy("640/s algo sliding-window segments 64")).is_ok());
    assert_eq!(
        table.add_policy(&policy("650/s algo sliding-window segments 100")),
        Err(TableError::SlotRoom { needs: 100, has: 64 })
    );
    let none = Table::private(&Options::new(100), &[policy("10/s")]).expect("memory");
    assert_eq!(none.set_policy(FIRST, &policy("1/s algo sliding-log")), Err(TableError::Mixed));
}

/// A key of its own policy may come under a window or log, too, and goes back to the bucket.
#[test]
fn an_override_may_be_a_window_or_log() {
    for own in ["20/s algo sliding-window segments 10", "25/s algo sliding-log"] {
        let table = Table::private(&options(), &[policy("30/s")]).expect("memory");
        let left = |key: &[u8]| table.peek_at(FIRST, key, NOW, 1).remaining;
        assert_eq!(table.take_up_to_at(FIRST, b"acme", NOW, 18), 18);
        table.set_override(FIRST, b"acme", &policy(own), Keep::Count).expect("room");
        assert_eq!((left(b"acme"), left(b"umbrella")), (12, 30), "{own}");
        assert_eq!(table.take_up_to_at(FIRST, b"acme", NOW, 5), 5);
        assert!(table.clear_override(FIRST, b"acme").expect("a policy"));
        assert_eq!((left(b"acme"), left(b"umbrella")), (7, 30), "{own}");
    }
}

/// Calls of every kind, of a key under a window in a table with room: as in a table of one window.
#[test]
fn every_call_decides_as_in_a_table_of_one_window() {
    for text in ["20/s algo sliding-window segments 10", "25/s algo sliding-log"] {
        let with = Table::private(&options(), &[policy(text), policy("1/s")]).expect("memory");
        let alone =
            Table::private(&Options { room: 0, ..options() }, &[policy(text)]).expect("memory");
        let mut random = Rng(5);
        let mut now = NOW;
        for n in 0..4_000u32 {
            let key = (random.below(20) as u32).to_le_bytes();
            let (cost, is_reset) = (random.below(6), random.one_in(9));
            let answer = |table: &Table| match n % 7 {
                0 => format!("{:?}", table.peek_at(FIRST, &key, now, cost)),
                1 => format!("{}", table.take_up_to_at(FIRST, &key, now, cost)),
                2 => format!("{}", table.charge_at(FIRST, &key, now, cost)),
                3 => format!("{:?}", table.reserve_at(FIRST, &key, now, cost, now + SEC)),
                4 if is_reset => format!("{:?}", table.reset_at(FIRST, &key, now)),
                5 => {
                    let lacks = |entry: Entry| policy(text).limit - entry.remaining;
                    format!("{}", table.entries(now).map(lacks).sum::<u64>())
                }
                _ => format!("{:?}", table.check_at(FIRST, &key, now, cost)),
            };
            let (one, other) = (answer(&with), answer(&alone));
            assert_eq!(one, other, "{text}, call {n}");
            now += random.below(SEC / 40);
        }
    }
}

/// A copy from a table with room, and into one: a key lacks as many permits as before.
#[test]
fn a_copy_carries_windows_and_logs() {
    let texts = ["30/s", "20/s algo sliding-window segments 10", "25/s algo sliding-log"];
    for (from, to) in texts.iter().flat_map(|from| texts.iter().map(move |to| (from, to))) {
        let old = Table::private(&options(), &[policy(from)]).expect("memory");
        let larger = Options { capacity: 9_000, ..options() };
        let new = Table::private(&larger, &[policy(to)]).expect("memory");
        assert_eq!(old.take_up_to_at(FIRST, b"a", NOW, 12), 12);
        assert_eq!(old.take_up_to_at(FIRST, b"b", NOW, 3), 3);
        // The second key has used more in the new table already.
        assert_eq!(new.take_up_to_at(FIRST, b"b", NOW, 5), 5);
        let copied = new.copy_from(&old, NOW).expect("equal options");
        assert_eq!((copied.copied, copied.lost), (2, 0), "{from} to {to}");
        let lacks = |key: &[u8]| policy(to).limit - new.peek_at(FIRST, key, NOW, 1).remaining;
        assert_eq!((lacks(b"a"), lacks(b"b"), lacks(b"c")), (12, 5, 0), "{from} to {to}");
        // A second copy charges nobody twice.
        new.copy_from(&old, NOW).expect("equal options");
        assert_eq!((lacks(b"a"), lacks(b"b")), (12, 5), "{from} to {to}");
    }
}

/// A reset in a full table: with room the key begins anew in its slot, and a table of one window
/// changes nothing.
#[test]
fn a_reset_in_a_full_table() {
    for room in [0, ROOM] {
        let full = Options { room, ..options() }.with_on_full(OnFull::Deny);
        let table =
            Table::private(&full, &[policy("5/h algo sliding-window segments 4")]).expect("memory");
        let mut last = 0u64;
        for key in 0..20 * table.slots() {
            if table.take_up_to_at(FIRST, &key.to_le_bytes(), NOW, 3) == 3 {
                last = key;
            }
        }
        let key = last.to_le_bytes();
        let left = || table.peek_at(FIRST, &key, NOW, 1).remaining;
        assert_eq!(left(), 2);
        assert_eq!(table.reset_at(FIRST, &key, NOW), Ok(room != 0));
        assert_eq!(left(), if room == 0 { 2 } else { 5 });
        assert_eq!(
            table.take_up_to_at(FIRST, &key, NOW, 9),
            left() + if room == 0 { 2 } else { 5 }
        );
    }
}
