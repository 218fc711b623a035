//! A rate, what is open and a limit that follows the latency, in one decision: a gateway before a
//! backend that takes twice as long for 24 seconds. The clock is virtual.
//!
//! `cargo run --release --example latency_step`
//!
//! The backend works on 40 requests at one time. Each takes 10 ms, and from the second 24 to the
//! second 48 it takes 20 ms. Ann asks 1,600 times a second and Eve 4,000 times. Each may ask 1,900
//! times a second, so the rates keep the backend from an overload until it slows down. Then only
//! the limit on what is open does.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use tollbar::in_flight::{Adaptive, AdaptiveOptions, InFlight, Options, Outcome, Ticket};
use tollbar::take_many::{take_many_at, AnyLimiter, Limit};
use tollbar::Limiter;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1000 * MS;
/// The length of the simulation.
pub const SECONDS: usize = 72;
const WORKERS: usize = 40;
/// The times between two requests of Ann, and of Eve.
const BETWEEN: [u64; 2] = [SECOND / 1_600, SECOND / 4_000];
/// An answer is in time within 50 ms.
const DEADLINE: u64 = 50 * MS;
/// The key of the backend's open requests.
const BACKEND: &[u8] = b"backend";

/// The answers and refusals of one second.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// The limit at the end of the second.
    pub limit: u32,
    /// Answers of Ann's requests in time, and of Eve's.
    pub in_time: [u64; 2],
    /// Late answers: too much was admitted.
    pub late: u64,
    /// Refusals by a limit on what is open although a worker was idle: an exact oracle would have
    /// admitted these requests.
    pub needless: u64,
}

/// The limits of the backend's open requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Open {
    /// As many as the rates admit.
    Any,
    /// At most so many.
    Fixed(u32),
    /// As many as the learned limit.
    Learned,
}

struct Gateway {
    rates: [Limiter; 2],
    open: InFlight,
    limit: Adaptive,
    kind: Open,
}

impl Gateway {
    /// Takes from the client's rate and opens a request at the backend, or does neither.
    fn enter(&self, client: usize, now: u64) -> Option<Ticket> {
        let ticket = Cell::default();
        let open = match self.kind {
            Open::Learned => Limit::adaptive(&self.limit, &self.open, BACKEND, &ticket),
            Open::Fixed(most) => Limit::InFlight(&self.open, BACKEND, most, &ticket),
            Open::Any => Limit::InFlight(&self.open, BACKEND, u32::MAX, &ticket),
        };
        let taken = take_many_at(&[Limit::Limiter(&self.rates[client], 1), open], now);
        taken.expect("room in the table").decision.is_allowed().then(|| ticket.get())
    }

    /// Ends a request, and tells the limit how long it took.
    fn leave(&self, ticket: Ticket, latency: u64, now: u64) {
        let outcome = (Outcome::Answered, latency);
        self.limit.release_key_at(&self.open, BACKEND, ticket, outcome, now);
    }
}

/// All seconds, and how many requests each client's rate was charged for and how many of its
/// requests were admitted.
pub fn run(kind: Open) -> ([Counts; SECONDS], [(u64, u64); 2]) {
    let rate = || Limiter::new(&"1900/s burst 20".parse().expect("a policy")).expect("a limiter");
    let gateway = Gateway {
        rates: [rate(), rate()],
        open: InFlight::private(&Options::new(10)).expect("a table"),
        limit: Adaptive::new(&AdaptiveOptions {
            window_ns: 100 * MS,
            ..AdaptiveOptions::gradient2(50, 5, 1000)
        }),
        kind,
    };
    let (mut seconds, mut totals) = ([Counts::default(); SECONDS], [(0, 0); 2]);
    let mut waiting: VecDeque<(u64, usize, Ticket)> = VecDeque::new();
    let mut working: BinaryHeap<Reverse<(u64, u64, usize, u64)>> = BinaryHeap::new();
    // Ann and Eve begin at different times, so that no two requests come at one instant.
    let mut next = [SECOND, SECOND + 7];
    let end = (SECONDS as u64 + 1) * SECOND;
    loop {
        let client = usize::from(next[1] < next[0]);
        let done = working.peek().map_or(u64::MAX, |&Reverse((at, ..))| at);
        let now = done.min(next[client]);
        if now >= end {
            break;
        }
        let second = &mut seconds[(now / SECOND) as usize - 1];
        if done == now {
            let Some(Reverse((_, came, who, ticket))) = working.pop() else { break };
            gateway.leave(Ticket::from_bits(ticket), now - came, now);
            match now - came <= DEADLINE {
                true => second.in_time[who] += 1,
                false => second.late += 1,
            }
            second.limit = gateway.limit.limit();
        } else {
            next[client] += BETWEEN[client];
            let idle = waiting.is_empty() && working.len() < WORKERS;
            let by_rate = gateway.rates[client].peek_at(now, 1).is_allowed();
            match gateway.enter(client, now) {
                Some(ticket) => waiting.push_back((now, client, ticket)),
                None => second.needless += u64::from(idle && by_rate),
            }
        }
        while working.len() < WORKERS {
            let Some((came, who, ticket)) = waiting.pop_front() else { break };
            totals[who].1 += 1;
            let work = if (25 * SECOND..49 * SECOND).contains(&now) { 20 * MS } else { 10 * MS };
            working.push(Reverse((now + work, came, who, ticket.to_bits())));
        }
    }
    for (_, who, _) in waiting {
        totals[who].1 += 1;
    }
    for (total, rate) in totals.iter_mut().zip(&gateway.rates) {
        total.0 = rate.counts().allowed;
    }
    (seconds, totals)
}

#[allow(dead_code)] // a test and a picture use `run` alone
fn main() {
    println!(
        "{:20} {:>4} {:>6} {:>6} {:>6} {:>9}",
        "", "s", "limit", "in time", "late", "needless"
    );
    for (name, kind) in [
        ("rates alone", Open::Any),
        ("and at most 150 open", Open::Fixed(150)),
        ("and a learned limit", Open::Learned),
    ] {
        let (seconds, _) = run(kind);
        for (n, of) in seconds.chunks(6).enumerate() {
            let sum = |get: &dyn Fn(&Counts) -> u64| of.iter().map(get).sum::<u64>();
            let limit = of.last().map_or(0, |second| second.limit);
            println!(
                "{name:20} {:4} {limit:6} {:7} {:6} {:9}",
                n * 6,
                sum(&|second| second.in_time.iter().sum()),
                sum(&|second| second.late),
                sum(&|second| second.needless)
            );
        }
    }
}
