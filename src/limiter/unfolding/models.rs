//! A slot that holds one window or log after another, under every interleaving that loom finds
//! within a bound of preemptions.
//!
//! `RUSTFLAGS="--cfg loom" cargo test --profile models --target-dir target/loom --lib unfolding::models`

use super::{Unfolded, UNFOLDED};
use crate::algorithm::sliding_log::{KeyedLog, Packing};
use crate::algorithm::sliding_window::{Mark, SlidingWindow};
use crate::limiter::log::LogView;
use crate::limiter::ring::RingView;
use crate::limiter::state_word::SlotWords;
use crate::limiter::words::Protocol;
use crate::policy::{Policy, Words};
use crate::sync::{Ordering, TwoWords, Word};
use alloc::vec::Vec;
use loom::sync::Arc;
use loom::thread;
use std::format;
use std::println;

/// The key under its first version and under the second one.
const FIRST: u64 = 1;
const SECOND: u64 = 2;
const NOW: u64 = 65;
const CELLS: usize = 5;

const POLICIES: [&str; 3] = [
    "2/20ns algo sliding-window segments 2",
    "2/20ns algo sliding-window segments 2 mode interpolated",
    "2/20ns algo sliding-log",
];

impl SlotWords for TwoWords {
    fn key(&self, order: Ordering) -> u64 {
        self.first().load(order)
    }

    fn state(&self, order: Ordering) -> u64 {
        self.load_second(order)
    }

    fn both(&self) -> (u64, u64) {
        self.both()
    }

    fn swap(&self, from: (u64, u64), to: (u64, u64)) -> Result<(), (u64, u64)> {
        self.swap(from, to)
    }
}

enum Rule {
    Window(SlidingWindow),
    Log(KeyedLog),
}

impl Rule {
    fn new(text: &str) -> Rule {
        let policy: Policy = text.parse().unwrap();
        match policy.kind.words() {
            Words::Ring => Rule::Window(SlidingWindow::keyed_beside_a_bit(&policy).unwrap()),
            Words::Log => Rule::Log(KeyedLog::in_bits(&policy, 63).unwrap()),
            Words::One => unreachable!("its state is one word"),
        }
    }

    fn folded(&self, used: u64, now: u64) -> u64 {
        let word = match self {
            Rule::Window(window) => {
                window.pack(Mark { segment: window.segment_in_time(now).0, count: used })
            }
            Rule::Log(log) => log.next(0, used, now),
        };
        word << 1
    }

    fn limit(&self) -> u64 {
        match self {
            Rule::Window(window) => window.limit(),
            Rule::Log(log) => log.log().limit(),
        }
    }
}

/// A slot with its cells, and the rules of the key's two versions.
struct Place {
    slot: TwoWords,
    first: TwoWords,
    cells: Vec<TwoWords>,
    rules: [Rule; 2],
}

fn mark((key, state): (u64, u64)) -> u64 {
    key << 48 | state
}

impl Place {
    /// A slot with `key` in a folded state, and cells that a former stay has left full of words.
    fn new(rules: [&str; 2], key: u64, used: u64) -> Place {
        let rules = rules.map(Rule::new);
        let state = rules[key as usize - 1].folded(used, NOW);
        let cell = |pair| {
            let cell = TwoWords::default();
            cell.swap((0, 0), pair).unwrap();
            cell
        };
        Place {
            slot: cell((key, state)),
            first: cell((7, 99)),
            cells: (0..CELLS as u64).map(|n| cell((7, 8 * (NOW + 3 * n) + 1))).collect(),
            rules,
        }
    }

    fn ask<T>(&self, key: u64, now: u64, ask: impl Fn(&dyn Protocol) -> Option<T>) -> Option<T> {
        let (head, folded) = Unfolded::open(&self.slot, key, &self.first, mark)?;
        let answer = match &self.rules[key as usize - 1] {
            Rule::Window(window) => {
                let cells = &self.cells[..window.places() as usize];
                ask(&RingView::new(&head, head.places(cells), window))
            }
            Rule::Log(log) => {
                let cells = &self.cells[..log.side_words() as usize];
                let view = LogView::new(&head, head.places(cells), log)?;
                if let Some(word) = folded {
                    view.enter_first(word, now);
                }
                ask(&view)
            }
        };
        answer.filter(|_| head.is_current())
    }

    /// Takes up to `most` permits. `None`: the key is under another version.
    fn take(&self, key: u64, now: u64, most: u64) -> Option<u64> {
        let (head, folded) = Unfolded::open(&self.slot, key, &self.first, mark)?;
        match &self.rules[key as usize - 1] {
            Rule::Window(window) => {
                let cells = &self.cells[..window.places() as usize];
                RingView::new(&head, head.places(cells), window).take_up_to(now, most)
            }
            Rule::Log(log) => {
                let cells = &self.cells[..log.side_words() as usize];
                let view = LogView::new(&head, head.places(cells), log)?;
                if let Some(word) = folded {
                    view.enter_first(word, now);
                }
                view.take_up_to(now, most)
            }
        }
    }

    fn left(&self, key: u64, now: u64) -> Option<u64> {
        self.ask(key, now, |view| view.peek(now, 0)).map(|decision| decision.remaining)
    }

    /// Converts the key to its second version, with the permits that it has left.
    fn convert(&self) {
        for _ in 0..8 {
            let (key, state) = self.slot.both();
            if key == SECOND {
                return;
            }
            let left = match (state & UNFOLDED, self.left(FIRST, NOW)) {
                (_, Some(left)) => left,
                _ => continue,
            };
            // `left` may have unfolded the state.
            let pair = self.slot.both();
            if self.left(FIRST, NOW) != Some(left) || self.slot.both() != pair {
                continue;
            }
            let used = self.rules[1].limit() - left;
            // A nanosecond later, so that the slot expires later than before.
            if self.slot.swap(pair, (SECOND, self.rules[1].folded(used, NOW + 10))).is_ok() {
                return;
            }
        }
        panic!("no other call changes the slot so often");
    }
}

fn explore(name: &str, f: impl Fn() + Sync + Send + 'static) {
    println!("{name}: {} executions", crate::sync::explore(2, f));
}

/// Two calls unfold one state: the cells of the former stay count for neither.
#[test]
fn two_calls_unfold_one_state() {
    for policy in POLICIES {
        explore(&format!("unfold, {policy}"), move || {
            let place = Arc::new(Place::new([policy, policy], FIRST, 0));
            let other = place.clone();
            let thread = thread::spawn(move || other.take(FIRST, NOW, 1));
            let taken = [place.take(FIRST, NOW, 1), thread.join().unwrap()];
            assert_eq!(taken, [Some(1), Some(1)]);
            assert_eq!(place.first.both().0, 8);
            assert_eq!(place.left(FIRST, NOW), Some(0));
            assert_eq!(place.left(FIRST, NOW + 60), Some(2));
        });
    }
}

/// A call takes the last permit while another converts the key: it takes the permit under one of
/// the two versions, and the other call finds none.
#[test]
fn a_key_is_converted_while_a_call_takes_its_last_permit() {
    for (from, to) in POLICIES.iter().flat_map(|from| POLICIES.iter().map(move |to| (*from, *to))) {
        explore(&format!("convert, {from} to {to}"), move || {
            let place = Arc::new(Place::new([from, to], FIRST, 1));
            let other = place.clone();
            let thread = thread::spawn(move || other.take(FIRST, NOW, 1));
            place.convert();
            let second = place.take(SECOND, NOW + 10, 9).unwrap();
            let first = thread.join().unwrap();
            assert_eq!(first.unwrap_or(0) + second, 1, "{first:?}, then {second}");
            assert_eq!(place.left(SECOND, NOW + 10), Some(0));
            assert_eq!(place.left(SECOND, NOW + 80), Some(2));
        });
    }
}

/// A straggler of the former stay begins a segment, or enters a permit, while the next stay counts.
#[test]
fn a_straggler_changes_no_later_stay() {
    for (from, to) in POLICIES.iter().flat_map(|from| POLICIES.iter().map(move |to| (*from, *to))) {
        explore(&format!("straggler, {from} to {to}"), move || {
            let place = Arc::new(Place::new([from, to], FIRST, 1));
            assert_eq!(place.left(FIRST, NOW), Some(1));
            let other = place.clone();
            // In a later segment, so that the call writes starts.
            let thread = thread::spawn(move || other.take(FIRST, NOW + 10, 1));
            place.convert();
            let second = place.take(SECOND, NOW + 10, 9).unwrap();
            let later = place.take(SECOND, NOW + 20, 9).unwrap();
            let first = thread.join().unwrap().unwrap_or(0);
            assert!(first + second <= 2 && second + later <= 2, "{first}, {second}, {later}");
            assert_eq!(place.left(SECOND, NOW + 100), Some(2));
        });
    }
}
