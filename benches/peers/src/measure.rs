//! Contenders run in turn, round after round, so that the machine's other work slows all of them
//! alike.

use crate::keys::{Key, Order, BATCH};
use crate::ours::Ours;
use crate::who::Who;
use std::hint::black_box;
use std::sync::Barrier;
use std::time::{Duration, Instant};

/// Nanoseconds by which the caller's time grows with each batch, which is less than a batch can
/// take. So it never runs ahead of the clock, which the same table may read in the next turn.
const STEP: u64 = 32;

/// The requests of one turn. Numbers of requests are each thread's, and multiples of a batch.
#[derive(Clone, Copy)]
pub struct Part {
    pub threads: usize,
    /// Where in the order the turn begins.
    pub at: usize,
    /// Requests before those that count, which bring back into the caches what the other contenders
    /// drove out.
    pub warm: usize,
    pub count: usize,
}

/// Does a part. Returns nanoseconds per request of one thread.
type Turn<'a> = Box<dyn FnMut(Part) -> f64 + 'a>;

/// One way to decide about a sequence of requests.
pub struct Contender<'a> {
    pub who: Who,
    turn: Turn<'a>,
    /// This contender does a turn with this many times fewer requests, because each takes that much
    /// longer.
    slower: usize,
    /// Nanoseconds per request, one figure for each round.
    pub rounds: Vec<f64>,
}

impl<'a> Contender<'a> {
    /// `batch` gets keys and the caller's time.
    pub fn batches<const N: usize, T>(
        who: Who,
        order: &'a Order<N>,
        batch: impl Fn(&[Key<N>; BATCH], u64) -> T + Sync + 'a,
    ) -> Contender<'a> {
        let run = move |(): &mut (), from: usize, to: usize| {
            let mut now = Ours::now();
            for number in from / BATCH..to / BATCH {
                black_box(batch(order.batch(number), now));
                now += STEP;
            }
        };
        Contender::here(who, order.len(), || (), run)
    }

    /// `once` gets each key and the caller's time.
    pub fn singles<const N: usize>(
        who: Who,
        order: &'a Order<N>,
        once: impl Fn(&Key<N>, u64) -> bool + Sync + 'a,
    ) -> Contender<'a> {
        Contender::batches(who, order, move |keys, now| {
            keys.iter().filter(|key| once(key, now)).count()
        })
    }

    /// `once` gets the request's number and the caller's time: there are no keys.
    pub fn numbered(who: Who, once: impl Fn(usize, u64) -> bool + Sync + 'a) -> Contender<'a> {
        let run = move |(): &mut (), from: usize, to: usize| {
            let mut now = Ours::now();
            for number in from..to {
                now += 1;
                black_box(once(number, now));
            }
        };
        Contender::here(who, 0, || (), run)
    }

    /// A contender in this process: `run` does the requests from one number to another. Each thread
    /// has a part of the `length` of an order for itself.
    fn here<S>(
        who: Who,
        length: usize,
        own: impl Fn() -> S + Sync + 'a,
        run: impl Fn(&mut S, usize, usize) + Sync + 'a,
    ) -> Contender<'a> {
        let turn = move |part: Part| {
            let ready = Barrier::new(part.threads);
            let work = &|thread: usize| {
                let from = part.at + thread * (length / part.threads).next_multiple_of(BATCH);
                let mut own = own();
                run(&mut own, from, from + part.warm);
                ready.wait();
                let start = Instant::now();
                run(&mut own, from + part.warm, from + part.warm + part.count);
                start.elapsed().as_nanos() as f64 / part.count as f64
            };
            std::thread::scope(|scope| {
                let others: Vec<_> =
                    (1..part.threads).map(|thread| scope.spawn(move || work(thread))).collect();
                let own = work(0);
                let sum = others
                    .into_iter()
                    .fold(own, |sum, other| sum + other.join().expect("no panic"));
                sum / part.threads as f64
            })
        };
        Contender::by(who, 1, turn)
    }

    /// A contender whose `turn` does a part in any way.
    pub fn by(who: Who, slower: usize, turn: impl FnMut(Part) -> f64 + 'a) -> Contender<'a> {
        Contender { who, turn: Box::new(turn), slower, rounds: Vec::new() }
    }

    fn part(&mut self, part: Part) -> f64 {
        let share = |requests: usize| (requests / self.slower).next_multiple_of(BATCH);
        (self.turn)(Part { warm: share(part.warm), count: share(part.count).max(BATCH), ..part })
    }
}

/// The amount of work of a measurement.
#[derive(Clone, Copy)]
pub struct Amount {
    pub rounds: usize,
    /// Requests of each contender in a round, by each thread.
    pub requests: usize,
    /// Requests before those that count.
    pub warm: usize,
}

/// Runs all contenders on `amount`.
pub fn measure(contenders: &mut [Contender], threads: usize, amount: Amount) {
    let Amount { rounds, requests: count, warm } = amount;
    for round in 0..rounds {
        for contender in contenders.iter_mut() {
            let figure = contender.part(Part { threads, at: round * (warm + count), warm, count });
            contender.rounds.push(figure);
        }
    }
}

/// Runs all contenders, each on as many requests as take it about `turn`. For work where the number
/// of requests does not matter, and contenders of which one is a thousand times slower than
/// another.
pub fn measure_for(contenders: &mut [Contender], threads: usize, rounds: usize, turn: Duration) {
    let counts: Vec<_> =
        contenders.iter_mut().map(|contender| calibrated(contender, threads, turn)).collect();
    for round in 0..rounds {
        for (contender, &count) in contenders.iter_mut().zip(&counts) {
            // Each round goes on in the order where the one before ended.
            let (at, warm) = (round * count, (count / 8).next_multiple_of(BATCH));
            let figure = (contender.turn)(Part { threads, at, warm, count });
            contender.rounds.push(figure);
        }
    }
}

/// The number of requests that take about `turn`. It is found by asking for more and more, which
/// also warms up peers that compile while they run.
fn calibrated(contender: &mut Contender, threads: usize, turn: Duration) -> usize {
    let mut count = BATCH;
    loop {
        let figure = (contender.turn)(Part { threads, at: 0, warm: BATCH, count });
        if figure * count as f64 >= turn.as_nanos() as f64 / 2.0 {
            return ((turn.as_nanos() as f64 / figure) as usize).next_multiple_of(BATCH).max(BATCH);
        }
        count *= 2;
    }
}

/// Asks for every key once, so that no measurement inserts. Returns the share that was admitted.
pub fn fill<const N: usize>(keys: usize, admit: impl Fn(&Key<N>) -> bool) -> f64 {
    (0..keys).filter(|&index| admit(&crate::keys::key(index))).count() as f64 / keys as f64
}

pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
