//! Queues of waiting callers under every interleaving that loom finds within a bound of
//! preemptions: joining, leaving, handing a booking on, and waking.
//!
//! `RUSTFLAGS="--cfg loom" cargo test --profile models --target-dir target/loom --lib waiting::models`

use super::line::{Seat, Waiter, WaiterAction};
use super::WaiterQueues;
use crate::clock::{Bell, Clock};
use crate::sync::{AtomicU64, Ordering};
use crate::{Limiter, Policy, State, Verdict, NEVER};
use loom::sync::Arc;
use loom::thread;
use std::println;

/// A clock that a sleep moves, up to its end. A sleep beyond the end lasts until the bell rings. So
/// a lost bell is a deadlock, which loom reports.
struct Ends {
    now: AtomicU64,
    end: u64,
}

impl Clock for Ends {
    fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }
    fn sleep_until(&self, _: u64) {
        unreachable!()
    }
    fn sleep_until_rung(&self, at: u64, bell: &Bell) {
        match at <= self.end {
            true => drop(self.now.fetch_max(at, Ordering::Relaxed)),
            false => bell.sleep(1),
        }
    }
}

struct Model {
    limiter: Limiter<State, Ends>,
    queues: WaiterQueues<1>,
}

impl Model {
    /// A limiter of one permit in 10 ns, whose permit has just been taken at 5 ns. Callers depart
    /// at 15, 25, 35.
    fn new(algorithm: &str, end: u64) -> Arc<Model> {
        let policy: Policy = std::format!("1/10ns algo {algorithm}").parse().unwrap();
        let limiter =
            Limiter::with(State::new(&policy).unwrap(), Ends { now: AtomicU64::new(5), end });
        assert_eq!(limiter.check(1).verdict, Verdict::Allowed);
        Arc::new(Model { limiter, queues: WaiterQueues::new(9) })
    }

    /// Waits, and returns the time after it.
    fn wait(&self) -> u64 {
        let decision =
            super::wait(&self.limiter, self.limiter.clock(), &self.queues, 0, 1, NEVER - 1)
                .unwrap();
        assert!(decision.is_allowed());
        self.limiter.now()
    }

    /// Joins the queue and leaves it without waiting. Returns what the caller would have done.
    fn join_and_leave(&self) -> WaiterAction {
        let waiter = Waiter::new(0, 1, NEVER - 1);
        let seat = Seat::new(self.queues.list(0), &waiter, &self.limiter);
        let place = self.queues.waiters.enter();
        let action = seat.join(self.limiter.now(), None).unwrap();
        drop(seat);
        drop(place);
        action
    }
}

fn explore(name: &str, f: impl Fn() + Sync + Send + 'static) {
    println!("{name}: {} executions", crate::sync::explore(2, f));
}

/// The first caller leaves. The second one gets its booking or books anew, and wakes for it: the
/// clock never reaches its former turn.
#[test]
fn the_first_caller_leaves() {
    for algorithm in ["gcra", "fixed-window anchor first"] {
        explore(&std::format!("the first caller leaves, {algorithm}"), move || {
            let model = Model::new(algorithm, 15);
            let leaves = {
                let model = model.clone();
                thread::spawn(move || model.join_and_leave())
            };
            let stays = {
                let model = model.clone();
                thread::spawn(move || model.wait())
            };
            leaves.join().unwrap();
            assert_eq!(stays.join().unwrap(), 15);
            assert_eq!(model.queues.asleep(), 0);
            // Nothing of the caller that left is charged.
            assert_eq!(model.limiter.peek(1).retry_after, 10);
        });
    }
}

/// The last caller leaves, beside a caller that is served: its booking goes back, whichever comes
/// first.
#[test]
fn the_last_caller_leaves() {
    explore("the last caller leaves", || {
        let model = Model::new("gcra", 25);
        let leaves = {
            let model = model.clone();
            thread::spawn(move || model.join_and_leave())
        };
        let at = model.wait();
        let action = leaves.join().unwrap();
        assert!(at == 15 || at == 25, "{at}");
        // When the next permit comes. A caller that the other one found to be served before it left
        // has used its permit.
        let next = model.limiter.peek(1).retry_after + model.limiter.now();
        match (at, action) {
            (15, WaiterAction::Admitted) => assert_eq!(next, 35),
            (15, _) => assert_eq!(next, 25),
            (25, WaiterAction::Admitted) => assert_eq!(next, 35),
            _ => assert!(at == 25 && (next == 25 || next == 35), "{at}, {next}, {action:?}"),
        }
    });
}

/// Both callers stay. Each has its own permit, and the clock goes no further than to the last one.
#[test]
fn both_callers_are_served() {
    explore("both callers are served", || {
        let model = Model::new("gcra", 25);
        let other = {
            let model = model.clone();
            thread::spawn(move || model.wait())
        };
        let mut at = [model.wait(), other.join().unwrap()];
        at.sort_unstable();
        // A caller may read the clock after the other one has moved it.
        assert!(at[0] >= 15 && at[1] == 25, "{at:?}");
        assert_eq!(model.limiter.peek(1).retry_after, 10);
        assert_eq!(model.queues.asleep(), 0);
    });
}
