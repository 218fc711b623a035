//! Code that the integration tests share: names for times, the golden traces, and a generator of
//! pseudo-random numbers that are the same in every run.
#![allow(dead_code)] // each test program uses a part of it

mod bound;
mod random;
pub mod scribble;
mod search;

#[allow(unused_imports)] // likewise
pub use bound::{assert_near, excess};
pub use random::Rng;
#[allow(unused_imports)] // likewise
pub use search::{is_short, rounds, seed};

use std::ops::Range;
use tollbar::policy::{Opt, Words};
use tollbar::{Kind, Policy, Shared, State, NEVER};

pub const US: u64 = 1_000;
pub const MS: u64 = 1_000_000;
pub const SEC: u64 = 1_000_000_000;
pub const MIN: u64 = 60 * SEC;
pub const HOUR: u64 = 60 * MIN;
pub const DAY: u64 = 24 * HOUR;
pub const YEAR: u64 = 365 * DAY;
/// A reading of the Unix clock in nanoseconds: late 2026.
pub const UNIX_NOW: u64 = 1_795_000_000_000_000_000;

/// Waits until no window or interval of that many nanoseconds ends within ten seconds, if it is
/// aligned to a clock of UTC: for a test that takes permits of an aligned policy by a real clock
/// and must not see them come back. The zero of tables' times is a full day of UTC.
pub fn away_from_edges(period: u64) {
    let left = || {
        let now = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .expect("a time after 1970");
        period - (now.as_nanos() % u128::from(period)) as u64
    };
    while left() < 10 * SEC {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

/// A policy from its text.
pub fn policy(text: &str) -> Policy {
    text.parse().unwrap_or_else(|why| panic!("{text:?}: {why}"))
}

/// Fails unless each of the algorithms has a policy among these texts, so that no test passes a new
/// one over.
pub fn has_each(algorithms: impl IntoIterator<Item = Kind>, texts: &[&str]) {
    for kind in algorithms {
        let name = kind.name();
        assert!(
            texts.iter().any(|text| policy(text).kind == kind),
            "{name} has no policy in this test: add one or two"
        );
    }
}

/// The texts, and a short one for each of the algorithms that they do not have. For tests in which
/// every policy gets the same requests.
pub fn with_each(algorithms: impl IntoIterator<Item = Kind>, texts: &[&str]) -> Vec<String> {
    let mut all: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
    for kind in algorithms {
        if !texts.iter().any(|text| policy(text).kind == kind) {
            all.push(short(kind));
        }
    }
    all
}

/// A short text of the algorithm.
pub fn short(kind: Kind) -> String {
    let warm = if kind.takes(Opt::Warm) { " warm 1s" } else { "" };
    format!("9/{} algo {}{warm}", period(kind), kind.name())
}

/// The period of an algorithm's texts.
pub fn period(kind: Kind) -> &'static str {
    match kind {
        Kind::Calendar => "month",
        _ if kind.is_forever() => "forever",
        _ => "s",
    }
}

/// The algorithms whose state is one word.
pub fn one_word() -> impl Iterator<Item = Kind> {
    Kind::ALL.into_iter().filter(|kind| kind.words() == Words::One)
}

/// A fresh state for a policy given as text.
pub fn state(text: &str) -> State {
    State::new(&policy(text)).unwrap_or_else(|why| panic!("{text:?}: {why}"))
}

/// `n` times evenly spaced in `[from, to)`.
pub fn evenly(n: u64, from: u64, to: u64) -> impl Iterator<Item = u64> {
    (0..n).map(move |i| from + i * (to - from) / n)
}

/// T1, for 120/min: 20 / 100 / 100 / 20 requests per 30 s.
pub fn t1() -> Vec<u64> {
    steps(30 * SEC, &[20, 100, 100, 20])
}

/// T1b, for 120/min: 2 / 2 / 116 / 116 requests per 20 s.
pub fn t1b() -> Vec<u64> {
    steps(20 * SEC, &[2, 2, 116, 116])
}

/// T2, for 10/min: 10 in the second half of a minute, 10 in the first half of the next.
pub fn t2() -> Vec<u64> {
    evenly(10, 30 * SEC, MIN).chain(evenly(10, MIN, 90 * SEC)).collect()
}

fn steps(length: u64, counts: &[u64]) -> Vec<u64> {
    let parts = counts.iter().zip(0u64..);
    parts.flat_map(|(n, i)| evenly(*n, i * length, (i + 1) * length)).collect()
}

/// Admissions of requests for one permit each at `times`.
pub fn admitted(state: &impl Shared, times: &[u64]) -> Vec<u64> {
    times.iter().copied().filter(|now| state.check_at(*now, 1).is_allowed()).collect()
}

/// Admissions of requests for one permit each, as `T` and `F`.
pub fn answers(state: &impl Shared, times: &[u64]) -> String {
    times.iter().map(|now| if state.check_at(*now, 1).is_allowed() { 'T' } else { 'F' }).collect()
}

/// How many of `times` (in order) fall into `range`.
pub fn within(times: &[u64], range: Range<u64>) -> usize {
    times.iter().filter(|t| range.contains(t)).count()
}

/// The most of `times` (in order) in any window `(t − length, t]`.
pub fn most_in_window(times: &[u64], length: u64) -> usize {
    let mut first = 0;
    let mut most = 0;
    for (i, t) in times.iter().enumerate() {
        while times[first] + length <= *t {
            first += 1;
        }
        most = most.max(i + 1 - first);
    }
    most
}

/// The period in which a random trace moves: that of the policy, or an hour for a quota.
pub fn scale(policy: &Policy) -> u64 {
    match policy.kind {
        Kind::Quota => HOUR,
        _ => policy.period,
    }
}

/// How a random trace moves: its own mixture of gaps and costs.
pub struct Shape {
    pub now: u64,
    pub length: u64,
    interval: u64,
    period: u64,
    burst: u64,
    last_cost: u64,
}

impl Shape {
    pub fn new(policy: &Policy, rng: &mut Rng) -> Shape {
        let period = scale(policy);
        let starts = [
            0,
            1,
            period - 1,
            period,
            rng.below(100 * DAY),
            rng.below(100 * DAY) * 10,
            UNIX_NOW + rng.below(10 * period),
        ];
        Shape {
            now: rng.pick(&starts),
            length: rng.within(8, 16),
            interval: (period / policy.limit).max(1),
            period,
            burst: policy.burst,
            last_cost: 1,
        }
    }

    /// The next request's cost.
    pub fn cost(&mut self, rng: &mut Rng) -> u64 {
        self.last_cost = match rng.below(12) {
            0 => 0,
            1 => self.burst,
            2 => self.burst + 1,
            3 | 4 => rng.within(0, self.burst + 1),
            5 => self.last_cost,
            _ => 1,
        };
        self.last_cost
    }

    /// Moves to the next request's time, given the last one's `retry_after`.
    pub fn advance(&mut self, rng: &mut Rng, retry_after: u64) {
        let around = |at: u64, rng: &mut Rng| (at + rng.below(3)).saturating_sub(1);
        self.now = match rng.below(16) {
            0..=3 => self.now,
            4..=6 if retry_after != NEVER && retry_after != 0 => {
                around(self.now + retry_after, rng)
            }
            4 => around(self.now + rng.within(1, 3) * self.interval, rng),
            5 | 6 => self.now + rng.within(1, self.burst + 1) * self.interval,
            7 => around((self.now / self.period + rng.within(1, 2)) * self.period, rng),
            8 => self.now + rng.below(3 * self.interval),
            9 => self.now + rng.below(3 * self.period),
            10 => self.now + rng.within(1, 3) * self.period,
            11 => self.now + self.period + rng.below(self.period),
            12 => self.now.saturating_sub(1 + rng.below(2 * self.interval)),
            13 => self.now.saturating_sub(rng.below(2 * self.period)),
            _ => self.now + rng.below(self.interval),
        };
    }
}
