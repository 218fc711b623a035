//! Loom models of a request with a rate and a permit in flight. Loom tries every interleaving
//! within a bound of preemptions.
//!
//! `RUSTFLAGS="--cfg loom" cargo test --profile models --target-dir target/loom --lib take_many::models`

use super::{take_all, AnyInFlight, Limit};
use crate::clock::Manual;
use crate::in_flight::models::{Me, World, HASH};
use crate::in_flight::{Refusal, Ticket};
use crate::limiter::{Limiter, Shared, State};
use crate::sync::explore;
use core::cell::Cell;
use loom::thread;
use std::println;
use std::sync::Arc;

/// A process's view of the world's one key.
struct Flights(Arc<Me>);

impl AnyInFlight for Flights {
    fn acquire(&self, _: &[u8], limit: u32) -> Result<Ticket, Refusal> {
        self.0.try_acquire(limit)
    }

    fn release(&self, ticket: Ticket) -> bool {
        self.0.give_back(ticket)
    }

    fn in_flight(&self, _: &[u8], limit: u32) -> u64 {
        self.0.count(limit)
    }

    fn rank(&self, _: &[u8]) -> u64 {
        HASH
    }
}

type Rate = Limiter<State, Manual>;

fn rate(text: &str) -> Arc<Rate> {
    Arc::new(Limiter::with(
        State::new(&text.parse().expect("a policy")).expect("a state"),
        Manual::new(5),
    ))
}

/// Takes a permit of the rate and a permit in flight, and returns whether the request was admitted.
/// With `released` it releases the permit in flight.
fn pass(rate: &Rate, flights: &Flights, limit: u32, released: bool) -> bool {
    let ticket = Cell::default();
    let limits = [Limit::Limiter(rate, 1), Limit::InFlight(flights, b"", limit, &ticket)];
    let taken = take_all(&limits, Some(5), None).expect("no error");
    if !taken.decision.is_allowed() {
        assert_eq!(ticket.get(), Ticket::default());
        return false;
    }
    flights.0.enter(limit);
    thread::yield_now();
    if released {
        flights.0.release(ticket.get());
    }
    true
}

/// Two processes each want one permit of the rate and one permit in flight. The admitted requests
/// and the permits left add up to all permits of the rate. A permit is in flight for each admitted
/// request that did not release its permit, and for no other.
fn both(name: &str, policy: &'static str, limit: u32, released: bool) {
    let executions = explore(5, move || {
        let world = World::new();
        let rate = rate(policy);
        let processes = [world.process(1), world.process(2)];
        processes.iter().for_each(|me| me.join());
        let threads = processes.clone().map(|me| {
            let rate = rate.clone();
            thread::spawn(move || pass(&rate, &Flights(me), limit, released))
        });
        let passed = threads
            .map(|thread| thread.join().expect("a thread"))
            .into_iter()
            .filter(|passed| *passed)
            .count();
        let left = rate.shared().take_up_to_at(5, 9);
        assert_eq!(passed as u64 + left, policy.as_bytes()[0] as u64 - u64::from(b'0'));
        assert_eq!(processes[0].count(9), if released { 0 } else { passed as u64 });
        assert!(released || passed == 1, "a permit of both was free for one of them");
    });
    println!("{name}: {executions} executions");
}

#[test]
fn the_last_permit_in_flight_beside_a_rate() {
    both("the last permit in flight, with permits of the rate", "2/10ns", 1, false);
}

#[test]
fn the_last_permit_of_a_rate_beside_permits_in_flight() {
    both("the last permit of the rate, with permits in flight", "1/10ns", 2, false);
}

#[test]
fn permits_in_flight_that_come_back() {
    both("permits that are released", "2/10ns", 1, true);
}
