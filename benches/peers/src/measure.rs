//! Contenders in turn, round after round, so that what the machine does besides falls on all of them.

use crate::keys::{Key, Order, BATCH};
use crate::ours::Ours;
use std::hint::black_box;
use std::sync::Barrier;
use std::time::Instant;

/// The caller's time goes on once a batch, by less than a batch can take: it never runs ahead of the clock,
/// which the same table may read in the next turn.
const STEP: u64 = 32;

/// Batches of an order, from one number to another.
type Run<'a> = Box<dyn Fn(usize, usize) + Sync + 'a>;

/// One way to decide about a sequence of keys.
pub struct Contender<'a> {
    run: Run<'a>,
    /// Nanoseconds a request, one figure a round.
    pub rounds: Vec<f64>,
}

impl<'a> Contender<'a> {
    /// `batch` gets the keys and the caller's time.
    pub fn batches<const N: usize, T>(
        order: &'a Order<N>,
        batch: impl Fn(&[Key<N>; BATCH], u64) -> T + Sync + 'a,
    ) -> Contender<'a> {
        let run = move |from: usize, to: usize| {
            let mut now = Ours::now();
            for number in from..to {
                black_box(batch(order.batch(number), now));
                now += STEP;
            }
        };
        Contender { run: Box::new(run), rounds: Vec::new() }
    }

    /// `once` gets each key and the caller's time.
    pub fn singles<const N: usize>(
        order: &'a Order<N>,
        once: impl Fn(&Key<N>, u64) -> bool + Sync + 'a,
    ) -> Contender<'a> {
        Contender::batches(order, move |keys, now| keys.iter().filter(|key| once(key, now)).count())
    }
}

/// How much is measured.
#[derive(Clone, Copy)]
pub struct Amount {
    pub rounds: usize,
    /// Requests of each contender in a round, by each thread.
    pub requests: usize,
    /// Requests before those, to have again in the caches what the other contenders have driven out.
    pub warm: usize,
}

/// Runs all of them; a thread has a part of the order for itself.
pub fn measure(contenders: &mut [Contender], order_length: usize, threads: usize, amount: Amount) {
    let (warm, batches) = (amount.warm / BATCH, amount.requests.div_ceil(BATCH));
    let mut at = 0;
    for _ in 0..amount.rounds {
        for contender in contenders.iter_mut() {
            let run = &contender.run;
            let ready = Barrier::new(threads);
            let work = &|thread: usize| {
                let from = at + thread * order_length / BATCH / threads;
                run(from, from + warm);
                ready.wait();
                let start = Instant::now();
                run(from + warm, from + warm + batches);
                start.elapsed().as_nanos() as f64 / (batches * BATCH) as f64
            };
            let figure = std::thread::scope(|scope| {
                let others: Vec<_> = (1..threads).map(|thread| scope.spawn(move || work(thread))).collect();
                let own = work(0);
                let sum = others.into_iter().fold(own, |sum, other| sum + other.join().expect("no panic"));
                sum / threads as f64
            });
            contender.rounds.push(figure);
        }
        at += warm + batches;
    }
}

/// Every key once, so that no measurement inserts. The share that was admitted.
pub fn fill<const N: usize>(keys: usize, admit: impl Fn(&Key<N>) -> bool) -> f64 {
    (0..keys).filter(|&index| admit(&crate::keys::key(index))).count() as f64 / keys as f64
}

pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
