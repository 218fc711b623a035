//! The queue: which items may wait, in which order and at which pace they leave, and which callers
//! sleep.

use crate::common::*;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use tollbar::algorithm::{Algorithm, Rule};
use tollbar::clock::{Bell, Clock, Manual};
use tollbar::queue::{Queue, QueueError, Refusal, Ticket, Words};
use tollbar::{Limiter, PolicyError, Verdict, NEVER};

fn on_manual<T: Send>(text: &str, capacity: u64) -> Queue<T, Manual> {
    Queue::with(&policy(text), capacity, Manual::new(0)).unwrap()
}

/// The usual example of a leaky bucket: 15 items are offered at once to a bucket of 10, and one
/// leaves every 100 ms.
#[test]
fn s07_eleven_of_fifteen_leave_in_order() {
    let queue = on_manual("10/s algo pacer", 10);
    let offered: Vec<_> = (0..15).map(|n| queue.offer_at(0, n)).collect();
    assert_eq!(offered.iter().filter(|answer| answer.is_ok()).count(), 11);
    for (n, answer) in offered.iter().enumerate().skip(11) {
        let refused = answer.as_ref().unwrap_err();
        assert_eq!((refused.item, refused.reason), (n, Refusal::Full));
    }
    // The caller's own loop: it sleeps until the next departure, and takes what is due.
    let mut now = 0;
    let mut departures = Vec::new();
    while let Some(at) = queue.next_departure_at(now) {
        assert!(at == now || queue.take_at(at - 1).is_none());
        now = at;
        departures.push((now, queue.take_at(now).unwrap()));
    }
    assert_eq!(departures, (0..11).map(|n| (n as u64 * 100 * MS, n)).collect::<Vec<_>>());
}

/// The same on the real clock: a caller with 10 ms of patience is refused after 10 ms.
#[test]
fn s07_patience_ends_in_a_refusal() {
    let queue = Queue::new(&policy("10/s algo pacer"), 10).unwrap();
    for n in 0..11 {
        queue.offer(n).unwrap();
    }
    let begun = Instant::now();
    let refused = queue.offer_within(99, 10 * MS).unwrap_err();
    assert_eq!((refused.item, refused.reason), (99, Refusal::Full));
    let waited = begun.elapsed();
    // It is never refused earlier. How much later depends on the machine's load.
    assert!(waited >= Duration::from_millis(10) && waited < Duration::from_secs(5), "{waited:?}");
}

/// Random offers, takes and cancellations on a virtual clock, beside a plain queue.
#[test]
fn random_operations_are_those_of_a_plain_queue() {
    for text in [
        "10/s algo pacer",
        "10/s algo pacer slack 3",
        "7/s burst 4",
        "3/s burst 2 init 0",
        "5/s algo fixed-window",
    ] {
        for capacity in [1, 2, 7] {
            let queue = on_manual(text, capacity);
            let rule = Rule::new(&policy(text)).unwrap();
            let mut random = Rng(capacity);
            let (mut now, mut state, mut next) = (0, 0, 0_u64);
            // The items in the queue with their tickets. A cancelled one stays as `None` until it
            // is the oldest.
            let mut model: VecDeque<(Ticket, Option<u64>)> = VecDeque::new();
            let (mut refused, mut left, mut cancelled) = (0_u64, 0_u64, 0_u64);
            for _ in 0..rounds(30_000) {
                match random.below(8) {
                    0..=3 => {
                        while model.front().is_some_and(|front| front.1.is_none())
                            && is_full(&rule, state, now, capacity, &model)
                        {
                            model.pop_front();
                        }
                        let answer = queue.offer_at(now, next);
                        if is_full(&rule, state, now, capacity, &model) {
                            assert_eq!(answer.unwrap_err().item, next);
                            refused += 1;
                        } else {
                            let ticket = answer.unwrap();
                            assert_eq!(ticket.ahead, model.len() as u64, "{text}");
                            model.push_back((ticket, Some(next)));
                        }
                        next += 1;
                    }
                    4..=5 => {
                        while model.front().is_some_and(|front| front.1.is_none()) {
                            model.pop_front();
                        }
                        let expected = model.front().and_then(|front| {
                            let step = rule.step(state, now, 1);
                            state = step.next.unwrap_or(state);
                            (step.verdict == Verdict::Allowed).then_some(front.1).flatten()
                        });
                        if expected.is_some() {
                            model.pop_front();
                            left += 1;
                        }
                        assert_eq!(queue.take_at(now), expected, "{text} at {now}");
                    }
                    6 if !model.is_empty() => {
                        let place = random.below(model.len() as u64) as usize;
                        assert_eq!(queue.cancel(model[place].0), model[place].1);
                        cancelled += u64::from(model[place].1.take().is_some());
                        // A second cancellation finds nothing.
                        assert_eq!(queue.cancel(model[place].0), None);
                    }
                    _ => {
                        now += random.below(150 * MS);
                        while model.front().is_some_and(|front| front.1.is_none()) {
                            model.pop_front();
                        }
                        let expected = model.front().map(|_| rule.admits_at(state, now, 1));
                        assert_eq!(queue.next_departure_at(now), expected, "{text} at {now}");
                    }
                }
            }
            let least = rounds(30_000) / 400;
            assert!(
                refused > least && left > least && cancelled > least,
                "{text}: {refused} {left} {cancelled}"
            );
        }
    }
}

fn is_full(
    rule: &Rule,
    state: u64,
    now: u64,
    capacity: u64,
    model: &VecDeque<(Ticket, Option<u64>)>,
) -> bool {
    let held = model.len() as u64;
    held - held.min(rule.available(state, now)) >= capacity
}

/// Eight producers and two takers on a virtual clock that another thread moves. No item is lost or
/// doubled, each producer's items leave in its order, and the pace holds.
#[test]
fn many_producers_lose_nothing() {
    const PRODUCERS: u64 = 8;
    let each = rounds(1_000_000) / PRODUCERS;
    let queue = Queue::with(&policy("1000/s burst 16"), 64, Manual::new(0)).unwrap();
    let done = AtomicU64::new(0);
    let mut taken: Vec<Vec<(u64, u64)>> = thread::scope(|scope| {
        let (queue, done) = (&queue, &done);
        for producer in 0..PRODUCERS {
            scope.spawn(move || {
                for n in 0..each {
                    while queue.offer(producer << 32 | n).is_err() {
                        thread::yield_now();
                    }
                }
                done.fetch_add(1, Relaxed);
            });
        }
        let takers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(move || {
                    let mut got = Vec::new();
                    loop {
                        let finished = done.load(Relaxed) == PRODUCERS;
                        let now = queue.now();
                        match queue.take_at(now) {
                            Some(item) => got.push((now, item)),
                            None => match queue.next_departure() {
                                Some(at) => queue.clock().sleep_until(at),
                                None if finished => return got,
                                None => thread::yield_now(),
                            },
                        }
                    }
                })
            })
            .collect();
        takers.into_iter().map(|taker| taker.join().unwrap()).collect()
    });
    for got in &taken {
        for producer in 0..PRODUCERS {
            let order: Vec<u64> =
                got.iter().map(|(_, item)| *item).filter(|item| item >> 32 == producer).collect();
            assert!(
                order.windows(2).all(|pair| pair[0] < pair[1]),
                "one taker gets a producer's items in their order"
            );
        }
    }
    let mut all: Vec<(u64, u64)> = taken.drain(..).flatten().collect();
    assert_eq!(all.len() as u64, PRODUCERS * each);
    // A taker reads the clock before it takes, so that the times of two takers may be in another
    // order than their takes. Over the whole run the bound is exact.
    let last = all.iter().map(|(at, _)| *at).max().unwrap();
    assert!(all.len() as u64 <= 16 + last / MS, "{} items in {last} ns", all.len());
    assert!(all.len() as u64 + 64 >= last / MS, "the queue was slower than its policy");
    all.sort_by_key(|(_, item)| *item);
    assert!(all
        .iter()
        .enumerate()
        .all(|(n, (_, item))| *item == ((n as u64 / each) << 32 | (n as u64 % each))));
}

#[test]
fn a_taker_sleeps_until_an_item_comes() {
    let queue = Queue::new(&policy("1000000/s burst 100"), 10).unwrap();
    let begun = Instant::now();
    let got = thread::scope(|scope| {
        let taker = scope.spawn(|| queue.take_within(60 * SEC));
        thread::sleep(Duration::from_millis(20));
        queue.offer("item").unwrap();
        taker.join().unwrap()
    });
    assert_eq!(got, Some("item"));
    assert!(begun.elapsed() < Duration::from_secs(30), "the offer has not woken the taker");
    assert_eq!(queue.take_within(MS), None);
}

#[test]
fn a_producer_sleeps_until_there_is_room() {
    let queue = Queue::new(&policy("1000000/s burst 1"), 1).unwrap();
    queue.offer(1).unwrap();
    queue.offer(2).unwrap();
    let begun = Instant::now();
    thread::scope(|scope| {
        let producer = scope.spawn(|| queue.offer_within(3, 60 * SEC));
        thread::sleep(Duration::from_millis(20));
        assert_eq!(queue.take(), Some(1));
        producer.join().unwrap().unwrap();
    });
    assert!(begun.elapsed() < Duration::from_secs(30), "the take has not woken the producer");
    assert_eq!([queue.take_within(SEC), queue.take_within(SEC)], [Some(2), Some(3)]);
}

/// Of 50 producers that want to sleep, only as many as the queue allows do.
#[test]
fn s21_sleeping_producers_are_bounded() {
    let queue = Queue::new(&policy("1/h algo pacer"), 1).unwrap().with_waiters(5);
    queue.offer(0).unwrap();
    queue.offer(0).unwrap();
    let reasons = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..50 {
            scope.spawn(|| {
                let reason = queue.offer_within(1, 3600 * SEC).unwrap_err().reason;
                reasons.lock().unwrap().push(reason);
            });
        }
        // 45 are refused at once. The others sleep until the queue is closed.
        while reasons.lock().unwrap().len() < 45 {
            thread::yield_now();
        }
        thread::sleep(Duration::from_millis(20));
        assert_eq!(reasons.lock().unwrap().len(), 45);
        queue.close();
    });
    let reasons = reasons.into_inner().unwrap();
    assert_eq!(reasons.iter().filter(|&&reason| reason == Refusal::Waiters).count(), 45);
    assert_eq!(reasons.iter().filter(|&&reason| reason == Refusal::Closed).count(), 5);
}

#[test]
fn a_closed_queue_gives_what_it_has() {
    let queue = Queue::new(&policy("1000000/s burst 100"), 10).unwrap();
    queue.offer(1).unwrap();
    queue.close();
    assert!(queue.is_closed());
    assert_eq!(queue.offer(2).unwrap_err().reason, Refusal::Closed);
    assert_eq!(queue.take_within(60 * SEC), Some(1));
    let begun = Instant::now();
    assert_eq!(queue.take_within(60 * SEC), None);
    assert!(
        begun.elapsed() < Duration::from_secs(30),
        "a take from a closed, empty queue must not sleep"
    );
}

/// A taker sleeps on a closed queue until a later departure. The thread that removes the last item
/// wakes it.
#[test]
fn a_sleeping_taker_sees_that_a_closed_queue_became_empty() {
    for text in ["1/h algo pacer", "0/s"] {
        for way in 0..3 {
            let queue = Queue::new(&policy(text), 5).unwrap();
            let ticket = queue.offer(1).unwrap();
            let ticket = if text == "0/s" {
                ticket
            } else {
                queue.take().map(|_| queue.offer(2).unwrap()).unwrap()
            };
            queue.close();
            let begun = Instant::now();
            thread::scope(|scope| {
                let taker = scope.spawn(|| queue.take_within(u64::MAX));
                thread::sleep(Duration::from_millis(20));
                let removed = match way {
                    0 => queue.drain(),
                    1 => queue.cancel(ticket),
                    // Another taker, whose time is late enough, takes the item.
                    _ => queue.take_at(queue.now() + 2 * HOUR).or_else(|| queue.drain()),
                };
                assert!(removed.is_some());
                assert_eq!(taker.join().unwrap(), None);
            });
            assert!(begun.elapsed() < Duration::from_secs(30), "{text}, way {way}");
        }
    }
}

#[test]
fn cancelled_items_at_the_head_do_not_count() {
    let queue = on_manual("10/s algo pacer", 5);
    let tickets = [1, 2, 3].map(|n| queue.offer(n).unwrap());
    assert_eq!((queue.cancel(tickets[1]), queue.len()), (Some(2), 3));
    assert_eq!((queue.cancel(tickets[0]), queue.len()), (Some(1), 1));
    assert_eq!((queue.cancel(tickets[2]), queue.is_empty()), (Some(3), true));
}

#[test]
fn items_that_nobody_takes_are_dropped_with_the_queue() {
    let item = Arc::new(());
    let queue = on_manual("10/s algo pacer", 10);
    let tickets: Vec<_> = (0..5).map(|_| queue.offer(item.clone()).unwrap()).collect();
    assert!(queue.cancel(tickets[1]).is_some());
    assert!(queue.take().is_some());
    assert_eq!((Arc::strong_count(&item), queue.len()), (4, 3));
    drop(queue);
    assert_eq!(Arc::strong_count(&item), 1);
}

#[test]
fn what_cannot_be_a_queue() {
    let make = |text: &str, capacity| Words::with(&policy(text), capacity, Manual::new(0)).err();
    assert_eq!(make("10/s", 0), Some(QueueError::Capacity));
    assert_eq!(make("10/s", 1 << 28), Some(QueueError::Capacity));
    assert_eq!(make("10/s", u64::MAX), Some(QueueError::Capacity));
    assert_eq!(make("10/s algo sliding-log", 5), Some(QueueError::Policy(PolicyError::NotOneWord)));
    for text in ["10/s burst 1 ban 1h after 2", "10/s algo fixed-window count rejected"] {
        assert_eq!(make(text, 5), Some(QueueError::Policy(PolicyError::OptionMismatch)), "{text}");
    }
    // Under a limit of 0 no item leaves.
    let closed = on_manual("0/s", 2);
    assert!(closed.offer(1).is_ok() && closed.offer(2).is_ok() && closed.offer(3).is_err());
    assert_eq!((closed.take_at(YEAR), closed.next_departure_at(YEAR)), (None, Some(NEVER)));
}

/// A clock that is at the end of a sleep at once, and records that time.
struct Sleepless {
    now: AtomicU64,
    slept: AtomicU64,
}

impl Clock for &Sleepless {
    fn now(&self) -> u64 {
        self.now.load(Relaxed)
    }
    fn sleep_until(&self, at: u64) {
        self.now.store(at, Relaxed);
        self.slept.store(at, Relaxed);
    }
    fn sleep_until_rung(&self, at: u64, _bell: &Bell) {
        self.sleep_until(at);
    }
}

/// One trace and four ways to treat a request that comes too early: refuse it, reserve a later
/// time, sleep, or keep it in a queue. With the same patience the last three admit the same
/// requests at the same times. Without patience they admit the same requests as the first one.
#[test]
fn s20_four_drivers_admit_the_same() {
    let text = "10/s algo pacer";
    let interval = 100 * MS;
    let mut random = Rng(7);
    let mut now = 0;
    let trace: Vec<u64> = (0..rounds(20_000))
        .map(|n| {
            // Busy and quiet seconds.
            now += random.below(if n / 50 % 2 == 0 { 120 * MS } else { 150 * MS });
            now
        })
        .collect();
    let mut admitted = Vec::new();
    for waiting in [0_u64, 1, 3, 20] {
        let patience = waiting * interval;
        let limiter = || Limiter::with(tollbar::State::new(&policy(text)).unwrap(), Manual::new(0));
        let delayed: Vec<u64> = {
            let limiter = limiter();
            trace.iter().filter_map(|&at| limiter.reserve_at(at, 1, at + patience).ok()).collect()
        };
        let blocking: Vec<u64> = {
            let clock = Sleepless { now: AtomicU64::new(0), slept: AtomicU64::new(0) };
            let limiter = Limiter::with(tollbar::State::new(&policy(text)).unwrap(), &clock);
            let wait = |&at: &u64| {
                clock.now.store(at, Relaxed);
                clock.slept.store(at, Relaxed);
                limiter.wait_ns(1, patience).is_allowed().then(|| clock.slept.load(Relaxed))
            };
            trace.iter().filter_map(wait).collect()
        };
        assert!(delayed == blocking);
        if waiting == 0 {
            let limiter = limiter();
            let dropping: Vec<u64> =
                trace.iter().copied().filter(|&at| limiter.check_at(at, 1).is_allowed()).collect();
            assert!(delayed == dropping);
        } else {
            let queue = on_manual(text, waiting);
            let mut departures = Vec::new();
            let mut clock = 0;
            let mut take_until = |until: u64| {
                while let Some(at) = queue.next_departure_at(clock).filter(|&at| at <= until) {
                    clock = at;
                    assert!(queue.take_at(clock).is_some());
                    departures.push(clock);
                }
                clock = until;
            };
            for &at in &trace {
                take_until(at);
                let _ = queue.offer_at(at, at);
                take_until(at);
            }
            take_until(NEVER - 1);
            assert!(delayed == departures, "{waiting} may wait");
        }
        admitted.push(delayed.len());
    }
    assert!(
        admitted.windows(2).all(|pair| pair[0] < pair[1]),
        "more patience admits more: {admitted:?}"
    );
    println!(
        "{text}, {} requests, admitted with room for 0, 1, 3 and 20 that wait: {admitted:?}",
        trace.len()
    );
}

#[test]
fn threads_may_share_a_queue_of_what_they_can_send() {
    fn shared<T: Sync + Send>(_: &T) {}
    // A Cell can be sent and not shared.
    shared(&Queue::<std::cell::Cell<u64>>::new(&policy("1/s"), 1).unwrap());
}
