//! `worst_case` for random policies of each algorithm and random windows is within a permit of what
//! an adversary gets from the library. This one has a plan, where the search of `worst_case.rs`
//! tries everything, so its policies and windows may be long.
//!
//! Windows that fade have a search of their own: it finds the best count of each part from the
//! definition, and the library then admits these counts one after the other.

use crate::common::*;
use std::collections::HashMap;
use tollbar::algorithm::calendar::Calendar;
use tollbar::algorithm::worst_case;
use tollbar::policy::Anchor;
use tollbar::{Kind, Policy, Shared, State};

/// Permits in the longest windows, so that a search takes no longer than this.
const PERMITS: u64 = 60;

/// Texts of random policies: `L` is the limit, `P` the period, `B` a burst, `N` a small number, `D`
/// a number that divides the period, `W` a time to warm up and `Q` a longer period.
const TEXTS: [&str; 31] = [
    "L/Pns burst B",
    "L/Pus burst B",
    "L/Pns burst B init 1",
    "L/Pns burst B borrow init 1",
    "L/Pns burst 1 borrow",
    "L/Pns burst 1 ban 5us after 3",
    "L/Pms burst B ban 5us after 3",
    "L/Pus burst B; 9/Q burst 7",
    "L/Pms; 30/Q",
    "L/Pms burst B reserve low 1 high 0",
    "L/Pns burst B algo interval",
    "L/Pns burst B algo interval anchor first",
    "L/Pns algo fixed-window",
    "L/Pns algo fixed-window anchor first",
    "L/Pms algo fixed-window count rejected",
    "L/Pms algo fixed-window reserve low 1 high 0",
    "L/Pus algo sliding-window segments D",
    "L/Pms algo sliding-window segments D mode strict",
    "L/Pns algo sliding-log",
    "L/Pus algo sliding-log count rejected",
    "L/Pns algo pacer",
    "L/Pus algo pacer slack N",
    "L/Pus algo warm-up warm Wus",
    "L/Pms algo warm-up warm Wms cold N",
    "L/forever",
    "L/Pns curve front",
    "L/Pms curve 0:50% 30%:60% 30%:70% 90%:100%",
    "L/Pus burst B refill 0:50% 50%:100%",
    "L/Pus burst B refill 0:100% 30%:50% 60%:75%",
    "L/month zone CET-1CEST,M3.5.0,M10.5.0/3",
    "L/day",
];

/// A policy of the text that can be made, of at most a permit a nanosecond. Rates with a rounded
/// clock are among them.
fn random(text: &str, rng: &mut Rng) -> Policy {
    for _ in 0..10_000 {
        let limit = rng.within(1, 12);
        let divisor = rng.within(1, 6);
        let period = divisor * rng.pick(&[7u64, 12, 60, 97, 1_000, 7_919]);
        let numbers = [
            ('L', limit.to_string()),
            ('P', period.to_string()),
            ('B', rng.within(1, 15).to_string()),
            ('N', rng.within(2, 5).to_string()),
            ('D', divisor.to_string()),
            ('W', (period * rng.within(1, 3)).to_string()),
            ('Q', format!("{}{}", 3 * period, if text.contains("Pms") { "ms" } else { "us" })),
        ];
        let text = numbers.iter().fold(text.to_owned(), |text, (name, n)| text.replace(*name, n));
        let can_be = |p: &Policy| State::new(p).is_ok() && p.limit <= p.period;
        if let Some(policy) = text.parse::<Policy>().ok().filter(can_be) {
            return policy;
        }
    }
    panic!("{text}: no policy of it can be made");
}

/// What a key gets in the window of `length` ns from `from` on: whatever there is as soon as it is
/// there, but for `reserve` permits until the window's last instant.
fn greedy(state: &State, from: u64, length: u64, reserve: u64) -> u64 {
    let last = from + length - 1;
    let (mut now, mut got) = (from, 0);
    loop {
        let left = if now == last { 0 } else { reserve };
        // Some algorithms admit one request at a time, and say nothing of the next one.
        while let taken @ 1.. = match left {
            0 => state.take_up_to_at(now, u64::MAX),
            _ => {
                let spare = state.peek_at(now, 0).remaining.saturating_sub(left);
                state.take_up_to_at(now, spare)
            }
        } {
            got += taken;
        }
        // A level below the reserve comes back before a permit is free.
        let next = match state.peek_at(now, left + 1).retry_after {
            0 => now + 1,
            wait => now.saturating_add(wait),
        };
        if now == last {
            return got;
        }
        now = next.min(last);
    }
}

/// Instants at which an adversary may begin: random ones, and a nanosecond before and at each edge.
fn begins(policy: &Policy, rng: &mut Rng) -> Vec<u64> {
    if let Ok(calendar) = Calendar::new(policy) {
        // Sixty windows from 2026 on: all lengths of months, and the days of two summer times.
        let first = calendar.window(1_767_225_600);
        let edge = |window| calendar.start(window) as u64 * SEC;
        let near = |window| [edge(window) - 1, edge(window)];
        let months = policy.period > 25 * DAY;
        let at = |n| if months { first + n } else { first + 80 + 5 * n };
        return (0..60).flat_map(|n| near(at(n))).collect();
    }
    let period = if policy.kind.is_forever() { 1_000 } else { policy.period };
    let edge = period * 1_000;
    let part = period / u64::from(policy.segments.max(1));
    let late = edge + rng.below(period);
    [edge - 1, edge, edge + part - 1, late, late + 1, edge + rng.below(period)].to_vec()
}

/// The most that the adversary gets in some window.
fn searched(policy: &Policy, length: u64, rng: &mut Rng) -> u64 {
    let reserves = match policy.kind {
        Kind::LevelRefill => policy.burst,
        _ => 1,
    };
    let mut most = 0;
    for begin in begins(policy, rng) {
        for reserve in 0..reserves {
            let state = State::new(policy).expect("memory");
            let mut from = begin;
            match policy.kind {
                // A bucket that was not full at first, and a pacer that has its slack after a rest.
                _ if policy.kind == Kind::Pacer || policy.init < policy.burst => {
                    let _ = state.admit_at(begin - policy.period * 400, 1);
                }
                // A warm key: it has taken all it could before the window.
                Kind::WarmUp => {
                    greedy(&state, begin, policy.warm_up * 3, 0);
                    from = begin + policy.warm_up * 3 - 1;
                    from += state.peek_at(from, 1).retry_after;
                }
                _ => {}
            }
            most = most.max(greedy(&state, from, length, reserve));
            // The request that begins windows or intervals may be before this window.
            if policy.anchor == Anchor::First {
                let state = State::new(policy).expect("memory");
                let _ = state.admit_at(begin, 1);
                most = most.max(greedy(&state, begin + policy.period - 1, length, 0));
            }
        }
    }
    most
}

#[test]
fn random_windows_of_each_algorithm() {
    let mut rng = Rng(seed(0x6d36));
    for (index, text) in TEXTS.iter().enumerate() {
        let (mut said_more, mut found_more) = (0, 0);
        // A calendar looks through all windows of two hundred years.
        let slow = text.ends_with("/day") || text.contains("month");
        for _ in 0..if slow { 12 } else { rounds(10_000) / 10 } {
            let policy = random(text, &mut rng);
            let longest = match policy.kind {
                Kind::Quota => 10_000,
                _ => policy.period.saturating_mul(PERMITS) / policy.limit,
            };
            let length = rng.within(1, longest.min(policy.period.saturating_mul(5)).max(2));
            // A bucket that lends gives its largest request besides, which costs 1 here.
            let most = worst_case(&policy, length).expect("a policy");
            let said = most + u64::from(policy.borrow);
            let found = searched(&policy, length, &mut rng);
            assert!(said.abs_diff(found) <= 1, "{policy}, {length} ns: {said}, found {found}");
            said_more += u64::from(said > found);
            found_more += u64::from(found > said);
        }
        println!("{index}: {text}: a permit less was found {said_more} times, more {found_more}");
    }
}

/// A limit over parts of which the last fades: a weighted window has one part.
#[derive(Clone, Copy)]
struct Parts {
    limit: u64,
    part: u64,
    parts: usize,
}

/// The sum and the best counts from a part on, after these counts of the parts before it.
type Known = HashMap<(u64, Vec<u64>), (u64, Vec<u64>)>;

impl Parts {
    fn policy(&self) -> Policy {
        let (limit, period) = (self.limit, self.part * self.parts as u64);
        let text = match self.parts {
            1 => format!("{limit}/{period}ns algo weighted-window"),
            parts => {
                format!("{limit}/{period}ns algo sliding-window segments {parts} mode interpolated")
            }
        };
        policy(&text)
    }

    /// The best counts of part `from` and those after it, the last of which ends `end` ns after its
    /// beginning. `before` are the counts of the parts before `from`, the oldest first.
    fn best(
        &self,
        from: u64,
        last: u64,
        end: u64,
        before: &[u64],
        known: &mut Known,
    ) -> (u64, Vec<u64>) {
        if from > last {
            return (0, Vec::new());
        }
        if let Some(best) = known.get(&(from, before.to_vec())) {
            return best.clone();
        }
        let left = if from < last { 1 } else { self.part - end };
        let used = (before[0] * left).div_ceil(self.part) + before[1..].iter().sum::<u64>();
        let mut best = (0, Vec::new());
        for count in (0..=self.limit.saturating_sub(used)).rev() {
            let mut next = before[1..].to_vec();
            next.push(count);
            let (sum, mut counts) = self.best(from + 1, last, end, &next, known);
            if sum + count >= best.0 {
                counts.insert(0, count);
                best = (sum + count, counts);
            }
        }
        known.insert((from, before.to_vec()), best.clone());
        best
    }

    /// The most in some window of `length` ns. The library admits it, too.
    fn searched(&self, length: u64) -> u64 {
        let policy = self.policy();
        let mut most = 0;
        for begin in 0..self.part {
            let end = begin + length - 1;
            let (last, end) = (end / self.part, end % self.part);
            let none = vec![0; self.parts];
            let (sum, counts) = self.best(0, last, end, &none, &mut HashMap::new());
            if sum <= most {
                continue;
            }
            most = sum;
            let state = State::new(&policy).expect("memory");
            let zero = 100 * policy.period;
            let admitted: u64 = (0u64..)
                .zip(&counts)
                .map(|(number, &count)| {
                    let at = if number < last { self.part - 1 } else { end };
                    state.take_up_to_at(zero + number * self.part + at, count)
                })
                .sum();
            assert_eq!(admitted, sum, "{policy}, {length} ns from {begin}: {counts:?}");
        }
        most
    }
}

#[test]
fn random_windows_that_fade() {
    let mut rng = Rng(seed(0x6661));
    let mut beside = [0u64; 2];
    while beside[0] + beside[1] < rounds(10_000) {
        let parts = rng.pick(&[1, 1, 2, 2, 3, 4]);
        let limit = rng.within(1, [0, 14, 9, 5, 3][parts]);
        let parts = Parts { limit, part: rng.within(limit.max(6), 16), parts };
        let length = rng.within(1, parts.part * parts.parts as u64 * 5 + 2);
        let policy = parts.policy();
        // Some rates are higher than a weighted window can count.
        let Ok(said) = worst_case(&policy, length) else { continue };
        let found = parts.searched(length);
        assert!(said.abs_diff(found) <= 1, "{policy}, {length} ns: {said}, found {found}");
        beside[usize::from(said != found)] += 1;
    }
    println!("the same {}, beside by a permit {}", beside[0], beside[1]);
    assert!(beside[1] * 20 < beside[0], "{beside:?}");
}

/// Above 65,535 permits a second a weighted window rounds the count of the window before up, and a
/// key that leaves what would be rounded gets no more.
#[test]
fn weighted_windows_whose_counts_are_rounded() {
    let mut rng = Rng(seed(0x636f));
    for limit in [1_000_000, 300_007, 9_999_999] {
        let policy = policy(&format!("{limit}/s algo weighted-window"));
        for _ in 0..rounds(1_000) {
            let length = rng.within(2, 4 * SEC);
            let end = 100 * SEC + length - 2;
            // The key leaves what would be rounded up at the end of some window.
            let mut most = 0;
            for leaves in (0..24).map(|bits| (1 << bits) - 1) {
                let state = State::new(&policy).expect("memory");
                let (mut got, mut at) = (0, 100 * SEC - 1);
                while at < end {
                    let there = state.peek_at(at, 0).remaining;
                    let few = if at + SEC > end { there & !leaves } else { there };
                    got += state.take_up_to_at(at, few);
                    at = (at + SEC).min(end);
                }
                got += state.take_up_to_at(end, u64::MAX);
                most = most.max(got);
            }
            let said = worst_case(&policy, length).expect("a policy");
            assert!(said.abs_diff(most) <= 1, "{policy}, {length} ns: {said}, found {most}");
        }
    }
}
