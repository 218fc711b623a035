//! A server whose capacity halves for 20 seconds, on a virtual clock, behind a limit on the
//! requests in flight.
#![allow(dead_code)] // each test program uses a part of it

use crate::common::{Rng, MS, SEC};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use tollbar::in_flight::{Adaptive, AdaptiveOptions, AdaptiveTicket, Outcome};

/// The length of each of the three phases.
pub const PHASE: u64 = 20 * SEC;
/// The server works on 40 requests at one time, and during the second phase on 20. Each takes from
/// 5 to 15 ms.
const WORKERS: usize = 40;
/// A request is answered in time if its waiting and its work take at most this long.
const DEADLINE: u64 = 50 * MS;
/// Requests come at 5,000/s, a quarter above the server's capacity of 4,000/s.
const BETWEEN: u64 = SEC / 5_000;

/// A limit on the requests that wait at the server or are worked on.
pub trait Limiter {
    type Permit: Copy;
    fn acquire(&mut self) -> Option<Self::Permit>;
    fn release(&mut self, permit: Self::Permit, latency: u64, now: u64);
}

/// A limit that never changes, and the number of its permits in flight.
pub struct Static(pub u64, pub u64);

impl Limiter for Static {
    type Permit = ();
    fn acquire(&mut self) -> Option<()> {
        let admitted = self.1 < self.0;
        self.1 += u64::from(admitted);
        admitted.then_some(())
    }
    fn release(&mut self, _: (), _: u64, _: u64) {
        self.1 -= 1;
    }
}

impl Limiter for Adaptive {
    type Permit = AdaptiveTicket;
    fn acquire(&mut self) -> Option<AdaptiveTicket> {
        Adaptive::acquire(self)
    }
    fn release(&mut self, permit: AdaptiveTicket, latency: u64, now: u64) {
        assert!(self.release_at(permit, Outcome::Answered, latency, now));
    }
}

/// Runs the three phases. Calls `answered` after each answer with the limiter, the time, and
/// whether the answer is in time.
pub fn run<L: Limiter>(limiter: &mut L, mut answered: impl FnMut(&L, u64, bool)) {
    let mut random = Rng(22);
    let mut waiting: VecDeque<(u64, usize)> = VecDeque::new();
    let mut working: BinaryHeap<Reverse<(u64, u64, usize)>> = BinaryHeap::new();
    let mut next = 0;
    let mut permits: Vec<Option<L::Permit>> = Vec::new();
    loop {
        let done = working.peek().map_or(u64::MAX, |&Reverse((at, _, _))| at);
        let now = done.min(next);
        if now >= 3 * PHASE {
            return;
        }
        if done == now {
            let Some(Reverse((_, came, permit))) = working.pop() else { unreachable!() };
            limiter.release(permits[permit].take().unwrap(), now - came, now);
            answered(limiter, now, now - came <= DEADLINE);
        } else {
            if let Some(permit) = limiter.acquire() {
                waiting.push_back((now, permits.len()));
                permits.push(Some(permit));
            }
            next += random.within(BETWEEN / 2, BETWEEN * 3 / 2);
        }
        let workers = if now / PHASE == 1 { WORKERS / 2 } else { WORKERS };
        while working.len() < workers {
            let Some((came, permit)) = waiting.pop_front() else { break };
            working.push(Reverse((now + random.within(5 * MS, 15 * MS), came, permit)));
        }
    }
}

/// The length of a window: ten times a request's work, and a 200th of the overload.
pub const WINDOW: u64 = 100 * MS;

pub fn gradient2(window_ns: u64) -> AdaptiveOptions {
    AdaptiveOptions { window_ns, ..AdaptiveOptions::gradient2(20, 5, 1000) }
}
