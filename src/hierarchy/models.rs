//! Loom models of requests that race for the nodes of a hierarchy. Loom tries every interleaving
//! within a bound of preemptions.
//!
//! `RUSTFLAGS="--cfg loom" cargo test --profile models --target-dir target/loom --lib hierarchy::models`

use super::share::{Intervals, DEBT_MOST};
use super::take::{take, Link, Nodes};
use crate::algorithm::Charge;
use crate::clock::Manual;
use crate::decision::Decision;
use crate::limiter::{Limiter, Shared, State};
use crate::policy::{Policy, PolicyError};
use crate::sync::explore;
use loom::thread;
use std::println;
use std::sync::Arc;
use std::vec::Vec;

const BURST: u64 = 1_000_000;
const NOW: u64 = 1_000_000_000;
/// The nanoseconds of a permit, and the debt up to which a node admits one.
const INTERVAL: u64 = 1_000;
const MOST: u64 = 10 * INTERVAL;

/// Nodes as limiters, by their number in place of a hash.
#[derive(Clone)]
struct Words(Arc<Vec<Limiter<State, Manual>>>);

impl Words {
    fn new(count: usize) -> Words {
        let policy = Policy::new(1_000_000_000, 1_000_000_000).with_burst(DEBT_MOST);
        let node = || Limiter::with(State::new(&policy).expect("a state"), Manual::new(NOW));
        Words(Arc::new((0..count).map(|_| node()).collect()))
    }

    /// Lets a node owe as much as leaves room for `requests`.
    fn leave(self, node: u64, requests: u64) -> Words {
        let debt = MOST + INTERVAL - requests * INTERVAL;
        assert!(self.0[node as usize].check_at(NOW, debt).is_allowed());
        self
    }

    fn owed(&self, node: u64) -> u64 {
        self.debt(&(node, self.0[node as usize].shared().peek_at(NOW, 0).reset_after), NOW)
    }

    /// A request for the leaf of this number below the root, which is number 0.
    fn ask(&self, leaf: u64) -> bool {
        let fixed = Intervals { guaranteed: INTERVAL, ceiling: INTERVAL };
        let way = [0, leaf].map(|hash| Link { hash, intervals: fixed, most: MOST });
        take(self, &way, BURST, (NOW, 1), &|| NOW).expect("no error").decision.is_allowed()
    }
}

impl Nodes for Words {
    /// The node and its debt.
    type Seen = (u64, u64);
    type Error = PolicyError;

    fn see(&self, hash: u64, now: u64) -> (u64, u64) {
        (hash, self.0[hash as usize].shared().peek_at(now, 0).reset_after)
    }

    fn debt(&self, seen: &(u64, u64), _: u64) -> u64 {
        seen.1
    }

    fn charge(
        &self,
        seen: &(u64, u64),
        now: u64,
        charge: u64,
        most: u64,
    ) -> Result<Option<Decision>, PolicyError> {
        let decision =
            self.0[seen.0 as usize].check_leaving_at(now, charge, DEBT_MOST - most - charge)?;
        Ok((!decision.is_allowed()).then_some(decision))
    }

    fn undo(&self, seen: &(u64, u64), charge: Charge, now: &dyn Fn() -> u64) {
        self.0[seen.0 as usize].shared().give_back(charge, charge.cost, now);
    }
}

/// The numbers of admitted requests for these leaves, one thread for each.
fn admitted(words: &Words, leaves: &[u64]) -> Vec<bool> {
    let ask = |&leaf: &u64| {
        let words = words.clone();
        thread::spawn(move || words.ask(leaf))
    };
    let threads: Vec<_> = leaves.iter().map(ask).collect();
    threads.into_iter().map(|thread| thread.join().expect("a thread")).collect()
}

/// Two leaves want the last room of the root: one request passes, and the other one's leaf owes
/// nothing.
#[test]
fn the_last_room_of_a_parent() {
    let executions = explore(5, || {
        let words = Words::new(3).leave(0, 1);
        let passed = admitted(&words, &[1, 2]);
        assert_eq!(passed.iter().filter(|passed| **passed).count(), 1);
        assert_eq!(words.owed(0), MOST + INTERVAL);
        for (leaf, passed) in (1..).zip(passed) {
            assert_eq!(words.owed(leaf) != 0, passed, "a refused request charged its leaf");
        }
    });
    println!("the last room of a parent: {executions} executions");
}

/// Two requests want the last room of one leaf, and a third one wants another leaf, where the root
/// has room for two. The loser takes no room of the root, so two requests pass.
#[test]
fn a_loser_below_takes_no_room_above() {
    let executions = explore(2, || {
        let words = Words::new(3).leave(0, 2).leave(1, 1);
        let passed = admitted(&words, &[1, 1, 2]);
        assert!(passed[0] != passed[1], "one of two passes: {passed:?}");
        assert!(passed[2], "a request for another leaf was refused");
        assert_eq!((words.owed(0), words.owed(1)), (MOST + INTERVAL, MOST + INTERVAL));
    });
    println!("a loser below: {executions} executions");
}
