//! loom models of the claims of counter lines ([`super::lines`]).
//!
//! Each model has up to three processes. One may die, and another may get its number. A process
//! counts by a load and a store, so two that own a line at one time would lose a count.

use super::lines::{sum, take, Claimant, LineCounter, OwnerLine, WORDS};
use crate::decision::Verdict;
use crate::sync::explore;
use crate::table::memory::slot::{Journal, Slot, SlotPair};
use alloc::vec::Vec;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::sync::Arc;
use loom::thread;
use std::println;

/// A process's name: its namespace in the highest byte, where a model's slot has room for it, and
/// its number.
const fn process(number: u64) -> u64 {
    1 << 56 | number
}

const ME: Claimant = Claimant { pointer: 8, policy: 1 };
const OTHER: Claimant = Claimant { pointer: 16, policy: 1 };

struct World {
    lines: Vec<OwnerLine>,
    /// A bit for each process that lives.
    alive: AtomicU64,
    /// The decisions of processes that found no line.
    unowned: AtomicU64,
}

impl World {
    fn new(lines: usize, alive: &[u64]) -> Arc<World> {
        let journal = std::sync::Arc::new(Journal::new(false));
        let line = |number| OwnerLine {
            owner: Slot::new(number, SlotPair { key: 0, state: 0 }, &journal),
            words: core::array::from_fn::<_, WORDS, _>(|_| crate::sync::AtomicU64::new(0)),
        };
        let alive = alive.iter().fold(0, |all, number| all | 1 << number);
        let lines = (0..lines).map(line).collect();
        Arc::new(World { lines, alive: AtomicU64::new(alive), unowned: AtomicU64::new(0) })
    }

    /// A thread of process `number` claims a line and counts `n` decisions.
    fn count(&self, number: u64, claimant: Claimant, n: u64) {
        let is_dead = |other: u64| self.alive.load(Ordering::Acquire) >> (other & 0xff) & 1 == 0;
        match take(&self.lines, process(number), claimant, |other| {
            other != process(number) && is_dead(other)
        }) {
            Some(line) => (0..n).for_each(|_| line.count(Verdict::Allowed)),
            None => drop(self.unowned.fetch_add(n, Ordering::Relaxed)),
        }
    }

    fn die(&self, number: u64) {
        // Release: the system says that a process is dead only after the process's last write.
        self.alive.fetch_and(!(1 << number), Ordering::Release);
    }

    fn born(&self, number: u64) {
        self.alive.fetch_or(1 << number, Ordering::Release);
    }

    fn total(&self) -> u64 {
        sum(self.lines.iter(), LineCounter::Allowed) + self.unowned.load(Ordering::Relaxed)
    }
}

fn model(name: &str, f: impl Fn() + Sync + Send + 'static) {
    println!("{name}: {} executions", explore(3, f));
}

/// Two processes try to claim a line that no thread has owned: one succeeds.
#[test]
fn a_free_line_goes_to_one() {
    model("a free line", || {
        let world = World::new(1, &[1, 2]);
        let other = world.clone();
        let thread = thread::spawn(move || other.count(2, OTHER, 2));
        world.count(1, ME, 2);
        thread.join().unwrap();
        assert_eq!(world.total(), 4);
    });
}

/// A process counts and dies, while two others try to claim a line.
#[test]
fn a_dead_process_s_line_goes_to_one_and_keeps_its_counts() {
    model("a dead process", || {
        let world = World::new(1, &[1, 2, 3]);
        let (first, second) = (world.clone(), world.clone());
        let dying = thread::spawn(move || {
            first.count(1, ME, 2);
            first.die(1);
        });
        let heir = thread::spawn(move || second.count(2, OTHER, 2));
        world.count(3, Claimant { pointer: 24, policy: 1 }, 1);
        dying.join().unwrap();
        heir.join().unwrap();
        assert_eq!(world.total(), 5);
    });
}

/// A process has the number of a dead one and a thread with the same pointer, while a third one has
/// seen the number dead.
#[test]
fn a_reused_process_number_s_line_has_one_owner() {
    model("a reused process number", || {
        let world = World::new(1, &[1, 2]);
        world.count(1, ME, 1);
        world.die(1);
        let other = world.clone();
        let thread = thread::spawn(move || other.count(2, OTHER, 2));
        world.born(1);
        world.count(1, ME, 2);
        thread.join().unwrap();
        assert_eq!(world.total(), 5);
    });
}
