//! A slot that changes hands, under every interleaving that loom finds within a bound of
//! preemptions.
//!
//! `RUSTFLAGS="--cfg loom" cargo test --profile models --target-dir target/loom --lib state_word::models`

use super::fake::{FakeSlot, Place};
use super::{Owner, SlotWords, StateWord};
use crate::decision::Verdict;
use crate::sync::Ordering;
use loom::sync::Arc;
use loom::thread;
use std::format;
use std::println;

const POLICIES: [&str; 4] = [
    "2/20ns algo sliding-window segments 2",
    "2/20ns algo sliding-window segments 2 mode interpolated",
    "2/20ns algo sliding-log",
    "2/20ns algo sliding-log count rejected",
];
const LIMIT: u64 = 2;
/// The keys.
const OLD: u64 = 1;
const NEW: u64 = 2;
const THIRD: u64 = 3;
/// By this time all permits that were taken before 20 have left the window.
const LATER: u64 = 65;

/// An owner that reads the key before the word and not again after it: the weakest order that a
/// table may use.
struct Torn<'a>(Owner<'a, FakeSlot>);

impl StateWord for Torn<'_> {
    fn load(&self) -> Option<u64> {
        let mine = self.0.slot.key(Ordering::Acquire) == self.0.key;
        mine.then(|| self.0.slot.state(Ordering::Acquire))
    }

    fn load_relaxed(&self) -> Option<u64> {
        let mine = self.0.slot.key(Ordering::Relaxed) == self.0.key;
        mine.then(|| self.0.slot.state(Ordering::Relaxed))
    }

    fn swap(&self, from: u64, to: u64) -> Result<(), Option<u64>> {
        self.0.swap(from, to)
    }
}

fn explore(name: &str, preemptions: usize, f: impl Fn() + Sync + Send + 'static) {
    println!("{name}: {} executions", crate::sync::explore(preemptions, f));
}

fn taken(verdict: Option<Verdict>) -> bool {
    verdict == Some(Verdict::Allowed)
}

/// Asserts that `key` has the permits of a state that gave one permit at `LATER` and none before,
/// at that time and later.
fn as_if_fresh(place: &Place, key: u64) {
    let head = place.owner(key);
    assert_eq!(place.take_up_to(&head, LATER, 9), Some(LIMIT - 1));
    assert_eq!(place.peek(&head, LATER + 9, 1).unwrap().remaining, 0);
    assert_eq!(place.take_up_to(&head, LATER + 40, 9), Some(LIMIT));
}

/// Runs `one` and `two` on two threads, each once as the thread that runs first. The slot holds one
/// permit of the old key, taken long before. `check` gets what the two returned.
fn race<T>(name: &str, one: fn(&Place) -> T, two: fn(&Place) -> T, check: fn(&Place, T, T))
where
    T: Send + 'static,
{
    for policy in POLICIES {
        for first in [false, true] {
            explore(&format!("{name}, {policy} ({first})"), 3, move || {
                let place = Arc::new(Place::new(policy, OLD));
                assert!(taken(place.admit(&place.owner(OLD), 5, 1)));
                let other = place.clone();
                let (first, second) = if first {
                    let thread = thread::spawn(move || two(&other));
                    (one(&place), thread.join().unwrap())
                } else {
                    let thread = thread::spawn(move || one(&other));
                    let second = two(&place);
                    (thread.join().unwrap(), second)
                };
                check(&place, first, second);
            });
        }
    }
}

/// Takes the slot for a new key. `None`: another key has taken it.
fn move_in(place: &Place, key: u64) -> Option<()> {
    let new_key = place.new_owner(key, LATER)?;
    let verdict = place.admit(&new_key, LATER, 1)?;
    // The old key's permits do not count for a new key.
    assert_eq!(verdict, Verdict::Allowed);
    assert_eq!(place.slot.both().0, key);
    Some(())
}

/// The old key's caller asks again when the new key asks: one of the two is admitted, and the other
/// has no slot.
#[test]
fn revival() {
    race(
        "revival",
        |place| {
            let old = place.admit(&Torn(place.owner(OLD)), LATER, 1);
            assert_ne!(old, Some(Verdict::Denied));
            old.map(|_| ())
        },
        |place| move_in(place, NEW),
        |place, old, new| {
            assert_ne!(old, new);
            as_if_fresh(place, if old.is_some() { OLD } else { NEW });
        },
    );
}

/// The old key's caller decides by an old time, and may be at any step of its admission when
/// another key takes the slot.
#[test]
fn straggler() {
    race(
        "straggler",
        |place| {
            let old = place.admit(&Torn(place.owner(OLD)), 15, 1);
            old.map(|_| ())
        },
        // The new key tries again if the old key's admission came between: by 65 a permit of 15 has
        // left, too.
        |place| move_in(place, NEW).or_else(|| move_in(place, NEW)),
        |place, old, new| match new {
            Some(()) => as_if_fresh(place, NEW),
            // What the new key had written by then made the straggler's request one of a later
            // segment.
            None => {
                assert!(old.is_some());
                assert_eq!(place.take_up_to(&place.owner(OLD), LATER, 9), Some(LIMIT - 1));
            }
        },
    );
}

/// Of two new keys one gets the slot, and the other is not charged to it.
#[test]
fn rivals() {
    race(
        "rivals",
        |place| move_in(place, NEW),
        |place| move_in(place, THIRD),
        |place, new, third| {
            assert_ne!(new, third);
            as_if_fresh(place, if new.is_some() { NEW } else { THIRD });
        },
    );
}

/// Two callers of one new key share one slot and get no more than the limit.
#[test]
fn twins() {
    race(
        "twins",
        |place| place.take_up_to(&place.new_owner(NEW, LATER)?, LATER, 1),
        |place| place.take_up_to(&place.new_owner(NEW, LATER)?, LATER, 1),
        |place, one, two| {
            // A caller that chooses too late finds the slot in use. In a table it would find its
            // own key there.
            let given = one.unwrap_or(0) + two.unwrap_or(0);
            assert!(given >= 1);
            assert_eq!(place.take_up_to(&place.owner(NEW), LATER, 9), Some(LIMIT - given));
        },
    );
}
