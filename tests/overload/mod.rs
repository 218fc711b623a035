//! A server behind a limit on the requests in flight, on a virtual clock. [`run`] is one whose
//! capacity halves for 20 seconds.
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
pub const DEADLINE: u64 = 50 * MS;
/// Requests come at 5,000/s, a quarter above the server's capacity of 4,000/s.
pub const BETWEEN: u64 = SEC / 5_000;

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

/// The clients of a simulation.
pub enum Callers {
    /// One request in this mean time, whatever becomes of the others.
    Open(u64),
    /// So many clients. Each asks again when it is answered, and a millisecond after a refusal.
    Closed(usize),
}

/// A server and its callers.
pub struct Site {
    pub callers: Callers,
    /// The requests on which the server works at one time, by the time.
    pub workers: fn(u64) -> usize,
    /// The shortest and the longest work, by the time.
    pub work: fn(u64) -> (u64, u64),
    /// The end of the simulation.
    pub until: u64,
}

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The limit refused it. `idle`: the server would have begun to work on it at once, so an exact
    /// oracle would have admitted it.
    Refused { idle: bool },
    /// It was answered after this time, of which it waited a part at the server.
    Answered(u64),
}

/// Work of 10 ms on average.
pub const WORK: fn(u64) -> (u64, u64) = |_| (5 * MS, 15 * MS);

/// Runs the three phases. Calls `answered` after each answer with the limiter, the time, and
/// whether the answer is in time.
pub fn run<L: Limiter>(limiter: &mut L, mut answered: impl FnMut(&L, u64, bool)) {
    let site = Site {
        callers: Callers::Open(BETWEEN),
        workers: |now| if now / PHASE == 1 { WORKERS / 2 } else { WORKERS },
        work: WORK,
        until: 3 * PHASE,
    };
    serve(limiter, &site, |limiter, now, event| {
        if let Event::Answered(latency) = event {
            answered(limiter, now, latency <= DEADLINE);
        }
    });
}

/// Runs a site, and calls `event` with the limiter and the time.
pub fn serve<L: Limiter>(limiter: &mut L, site: &Site, mut event: impl FnMut(&L, u64, Event)) {
    let mut random = Rng(22);
    let mut waiting: VecDeque<(u64, usize)> = VecDeque::new();
    let mut working: BinaryHeap<Reverse<(u64, u64, usize)>> = BinaryHeap::new();
    let clients = if let Callers::Closed(clients) = site.callers { clients } else { 1 };
    let mut asks: BinaryHeap<Reverse<u64>> = (0..clients as u64).map(Reverse).collect();
    let mut permits: Vec<Option<L::Permit>> = Vec::new();
    loop {
        let done = working.peek().map_or(u64::MAX, |&Reverse((at, _, _))| at);
        let next = asks.peek().map_or(u64::MAX, |&Reverse(at)| at);
        let now = done.min(next);
        if now >= site.until {
            return;
        }
        if done == now {
            let Some(Reverse((_, came, permit))) = working.pop() else { unreachable!() };
            limiter.release(permits[permit].take().unwrap(), now - came, now);
            event(limiter, now, Event::Answered(now - came));
            if let Callers::Closed(_) = site.callers {
                asks.push(Reverse(now));
            }
        } else {
            asks.pop();
            let permit = limiter.acquire();
            if let Callers::Open(between) = site.callers {
                asks.push(Reverse(now + random.within(between / 2, between * 3 / 2)));
            }
            match permit {
                Some(permit) => {
                    waiting.push_back((now, permits.len()));
                    permits.push(Some(permit));
                }
                None => {
                    let idle = waiting.is_empty() && working.len() < (site.workers)(now);
                    event(limiter, now, Event::Refused { idle });
                    if let Callers::Closed(_) = site.callers {
                        asks.push(Reverse(now + random.within(MS / 2, MS * 3 / 2)));
                    }
                }
            }
        }
        while working.len() < (site.workers)(now) {
            let Some((came, permit)) = waiting.pop_front() else { break };
            let (least, most) = (site.work)(now);
            working.push(Reverse((now + random.within(least, most), came, permit)));
        }
    }
}

/// The length of a window: ten times a request's work, and a 200th of the overload.
pub const WINDOW: u64 = 100 * MS;

pub fn gradient2(window_ns: u64) -> AdaptiveOptions {
    AdaptiveOptions { window_ns, ..AdaptiveOptions::gradient2(20, 5, 1000) }
}
