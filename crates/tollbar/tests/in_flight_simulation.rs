//! Compares adaptive limits with static ones, on a virtual clock, for a server whose capacity halves for 20 seconds.

mod common;

use common::{Rng, MS};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use tollbar::in_flight::{Adaptive, AdaptiveOptions, AdaptiveTicket, InFlight, Options, Outcome, Ticket};

const SECOND: u64 = 1000 * MS;
const PHASE: u64 = 20 * SECOND;
/// The server works on 40 requests at one time, and during the second phase on 20. Each takes from 5 to 15 ms.
const WORKERS: usize = 40;
/// A request is answered in time if its waiting and its work take at most this long.
const DEADLINE: u64 = 50 * MS;
/// Requests come at 5,000/s, a quarter above the server's capacity of 4,000/s.
const BETWEEN: u64 = SECOND / 5_000;

/// A limit on the requests that wait at the server or are worked on.
trait Limiter {
    type Permit: Copy;
    fn acquire(&mut self) -> Option<Self::Permit>;
    fn release(&mut self, permit: Self::Permit, latency: u64, now: u64);
}

/// A limit that never changes, and the number of its permits in flight.
struct Static(u64, u64);

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

/// A key of a table, with an adaptive limit.
struct Key(Adaptive, InFlight);

impl Limiter for Key {
    type Permit = Ticket;
    fn acquire(&mut self) -> Option<Ticket> {
        self.0.acquire_key(&self.1, b"the server").ok()
    }
    fn release(&mut self, permit: Ticket, latency: u64, now: u64) {
        assert!(self.0.release_key_at(&self.1, b"the server", permit, (Outcome::Answered, latency), now));
    }
}

/// The number of requests that are answered in time in each of the three phases.
fn goodput<L: Limiter>(limiter: &mut L) -> [u64; 3] {
    let mut random = Rng(22);
    let mut waiting: VecDeque<(u64, usize)> = VecDeque::new();
    let mut working: BinaryHeap<Reverse<(u64, u64, usize)>> = BinaryHeap::new();
    let (mut next, mut good) = (0, [0; 3]);
    let mut permits: Vec<Option<L::Permit>> = Vec::new();
    loop {
        let done = working.peek().map_or(u64::MAX, |&Reverse((at, _, _))| at);
        let now = done.min(next);
        if now >= 3 * PHASE {
            return good;
        }
        if done == now {
            let Some(Reverse((_, came, permit))) = working.pop() else { unreachable!() };
            limiter.release(permits[permit].take().unwrap(), now - came, now);
            good[(now / PHASE) as usize] += u64::from(now - came <= DEADLINE);
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
const WINDOW: u64 = 100 * MS;

fn gradient2(window_ns: u64) -> AdaptiveOptions {
    AdaptiveOptions { window_ns, ..AdaptiveOptions::gradient2(20, 5, 1000) }
}

fn aimd(window_ns: u64) -> AdaptiveOptions {
    AdaptiveOptions { window_ns, ..AdaptiveOptions::aimd(20, 5, 1000, 30 * MS) }
}

/// In each phase the adaptive limits answer at least 90 % as many requests in time as that phase's best static limit. The static limits 30 and 150
/// do not do so in all phases, and the static limit 60 does.
#[test]
fn adaptive_limits_are_near_the_best_static_one_while_the_capacity_halves() {
    let fixed: Vec<[u64; 3]> = (1..=40).map(|n| goodput(&mut Static(n * 5, 0))).collect();
    let best: [u64; 3] = std::array::from_fn(|phase| fixed.iter().map(|one| one[phase]).max().unwrap());
    let near = |one: [u64; 3]| one.iter().zip(best).all(|(&one, best)| one * 10 >= best * 9);
    assert!(!near(fixed[5]) && near(fixed[11]) && !near(fixed[29]), "{fixed:?}");
    let flights = || InFlight::private(&Options::new(10)).unwrap();
    for (name, options) in [("gradient2", gradient2(WINDOW)), ("aimd", aimd(WINDOW))] {
        let alone = goodput(&mut Adaptive::new(&options));
        let key = goodput(&mut Key(Adaptive::new(&options), flights()));
        println!("{name}: {alone:?}, of a key {key:?}, of the best {best:?}");
        assert!(near(alone) && near(key), "{name}: {alone:?} {key:?}, {best:?}");
    }
}

/// Gradient2 needs windows here. Without them each of 4,000 releases a second is a sample. Then its long-term latency, a mean over about 600 samples,
/// follows the overload within a second, and the limit rises until no answer is in time.
#[test]
fn without_windows_gradient2_takes_an_overload_for_the_rule() {
    let [before, during, after] = goodput(&mut Adaptive::new(&gradient2(0)));
    let [windows, ..] = goodput(&mut Adaptive::new(&gradient2(WINDOW)));
    assert!(before * 10 < windows && during == 0 && after == 0, "{before} {during} {after}, {windows}");
}
