//! A queue with a spare: items above the capacity wait in the spare and move up in the order of
//! their offers. The queue refuses an item only if the spare is full, and loses none.

use crate::common::*;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;
use tollbar::clock::{Manual, Tsc, Utc};
use tollbar::queue::{Queue, QueueError, Ticket};

/// Two plain queues, one behind the other, and a pace of one item in 100 ms.
struct Plain {
    capacity: usize,
    spare_most: usize,
    /// The items with their numbers. A cancelled one stays as `None` until it is the oldest.
    first: VecDeque<(u64, Option<u64>)>,
    spare: VecDeque<(u64, Option<u64>)>,
    next_number: u64,
    free_at: u64,
}

impl Plain {
    /// Drops cancelled items at the head, and moves items from the spare while there is room.
    fn settle(&mut self, now: u64) {
        loop {
            if self.first.front().is_some_and(|(_, item)| item.is_none()) {
                self.first.pop_front();
                continue;
            }
            let may_leave = usize::from(now >= self.free_at).min(self.first.len());
            if self.first.len() - may_leave == self.capacity {
                return;
            }
            let Some(fed) = self.spare.pop_front() else { return };
            self.first.push_back(fed);
        }
    }

    /// The number of the item and its place in the spare; `None` if it is refused.
    fn offer(&mut self, now: u64, item: u64) -> Option<(u64, u64)> {
        self.settle(now);
        let may_leave = usize::from(now >= self.free_at).min(self.first.len());
        let number = self.next_number;
        if self.first.len() - may_leave < self.capacity {
            self.first.push_back((number, Some(item)));
        } else if self.spare.len() < self.spare_most {
            self.spare.push_back((number, Some(item)));
        } else {
            return None;
        }
        self.next_number += 1;
        Some((number, self.spare.len() as u64))
    }

    fn take(&mut self, now: u64) -> Option<u64> {
        self.settle(now);
        if now < self.free_at {
            return None;
        }
        let (_, item) = self.first.pop_front()?;
        self.free_at = now + 100 * MS;
        self.settle(now);
        item
    }

    fn cancel(&mut self, number: u64) -> Option<u64> {
        let mut both = self.first.iter_mut().chain(&mut self.spare);
        both.find(|(of, _)| *of == number)?.1.take()
    }
}

/// Random offers, takes and cancellations on a virtual clock, beside the two plain queues.
#[test]
fn a_spare_acts_as_a_second_queue_behind_the_first() {
    for (capacity, spare) in [(1, 1), (1, 5), (2, 1), (7, 3), (10, 10)] {
        let queue =
            Queue::with_spare(&policy("10/s algo pacer"), capacity, spare, Manual::new(0)).unwrap();
        assert_eq!((queue.capacity(), queue.spare()), (capacity, spare));
        let mut plain = Plain {
            capacity: capacity as usize,
            spare_most: spare as usize,
            first: VecDeque::new(),
            spare: VecDeque::new(),
            next_number: 0,
            free_at: 0,
        };
        let mut random = Rng(capacity << 8 | spare);
        let mut tickets: VecDeque<Ticket> = VecDeque::new();
        let (mut now, mut next) = (0, 0);
        let (mut overflowed, mut left, mut cancelled) = (0, 0, 0_u64);
        let (mut refused, mut refused_with_room, mut taken_in_without) = (0, 0, 0);
        for _ in 0..rounds(30_000) {
            match random.below(8) {
                0..=3 => {
                    let (got, expected) = (queue.offer_at(now, next).ok(), plain.offer(now, next));
                    refused += u64::from(got.is_none());
                    refused_with_room += u64::from(got.is_none() && expected.is_some());
                    taken_in_without += u64::from(got.is_some() && expected.is_none());
                    if let Some(ticket) = got {
                        assert_eq!(Some((ticket.number, ticket.spare)), expected, "at {now}");
                        overflowed += u64::from(ticket.spare != 0);
                        tickets.push_back(ticket);
                        tickets.truncate(64);
                    }
                    next += 1;
                }
                4..=5 => {
                    let expected = plain.take(now);
                    assert_eq!(queue.take_at(now), expected, "at {now}");
                    left += u64::from(expected.is_some());
                }
                6 => {
                    if let Some(ticket) = tickets.pop_back() {
                        let expected = plain.cancel(ticket.number);
                        assert_eq!(queue.cancel(ticket), expected, "at {now}");
                        cancelled += u64::from(expected.is_some());
                    }
                }
                _ => now += random.below(150 * MS),
            }
        }
        assert_eq!((refused_with_room, taken_in_without), (0, 0), "{capacity} and {spare}");
        let least = rounds(30_000) / 400;
        assert!(
            [overflowed, left, cancelled, refused].iter().all(|&seen| seen > least),
            "{capacity} and {spare}: {overflowed} {left} {cancelled} {refused}"
        );
    }
}

/// The usual example with a spare of 2: of 15 items 11 go into the queue, 2 into the spare, and 13
/// leave in the order of the offers, one every 100 ms.
#[test]
fn two_of_four_that_overflow_come_back() {
    let queue = Queue::with_spare(&policy("10/s algo pacer"), 10, 2, Manual::new(0)).unwrap();
    let places: Vec<Option<u64>> =
        (0..15).map(|n| queue.offer_at(0, n).ok().map(|ticket| ticket.spare)).collect();
    assert_eq!(places[..11], [Some(0); 11]);
    assert_eq!(places[11..], [Some(1), Some(2), None, None]);
    for n in 0..13 {
        assert_eq!(queue.next_departure_at(n * 100 * MS), Some(n * 100 * MS));
        assert_eq!(queue.take_at(n * 100 * MS), Some(n));
        // Two of the first queue have left, so both items of the spare are in it, and the next
        // offer is the first to overflow.
        if n == 2 {
            let next = queue.offer_at(n * 100 * MS, 99).unwrap();
            assert_eq!((next.spare, queue.cancel(next)), (1, Some(99)));
        }
    }
    assert_eq!(queue.take_at(2 * SEC), None);
}

#[test]
fn a_spare_counts_as_capacity_for_the_bound() {
    let make = |spare| Queue::<u64, _>::with_spare(&policy("10/s"), 5, spare, Manual::new(0)).err();
    assert_eq!(make(1 << 28), Some(QueueError::Capacity));
    assert_eq!(make(u64::MAX), Some(QueueError::Capacity));
    assert_eq!(make(1 << 10), None);
}

/// The steps of a common counter before and after a call.
#[derive(Clone, Copy)]
struct Span {
    begun: u64,
    ended: u64,
}

/// The counts and records of all threads.
#[derive(Default)]
struct Seen {
    /// The tickets and items of accepted offers.
    offered: Vec<(Span, Ticket, u64)>,
    refused: Vec<Span>,
    taken: Vec<(Span, u64)>,
    cancelled: Vec<(Span, u64)>,
}

const PRODUCERS: u64 = 8;
const CAPACITY: u64 = 4;
const SPARE: u64 = 4;

/// Eight producers, whose patience is 0 to 200 us, and eight takers. Each producer cancels one item
/// in 16.
fn run_threads(each: u64) -> Seen {
    let policy = policy("1000000/s burst 1");
    let clock = Utc::<Tsc>::default();
    let queue: Queue<u64> = Queue::with_spare(&policy, CAPACITY, SPARE, clock).unwrap();
    let (steps, working) = (AtomicU64::new(0), AtomicU64::new(PRODUCERS));
    // Sequentially consistent: a call that begins after another one has ended gets a later step.
    let step = || steps.fetch_add(1, SeqCst);
    let span = |begun| Span { begun, ended: step() };
    let produce = |producer: u64| {
        let (mut random, mut seen) = (Rng(producer), Seen::default());
        for n in 0..each {
            let item = producer << 32 | n;
            let patience = [0, 0, 20 * US, 200 * US][random.below(4) as usize];
            let begun = step();
            let Ok(ticket) = queue.offer_within(item, patience) else {
                seen.refused.push(span(begun));
                continue;
            };
            seen.offered.push((span(begun), ticket, item));
            let begun = step();
            if n % 16 == 0 && queue.cancel(ticket).is_some() {
                seen.cancelled.push((span(begun), item));
            }
        }
        if working.fetch_sub(1, SeqCst) == 1 {
            queue.close();
        }
        seen
    };
    let take = || {
        let mut seen = Seen::default();
        loop {
            let begun = step();
            match queue.take_within(SEC) {
                Some(item) => seen.taken.push((span(begun), item)),
                None if queue.is_closed() && queue.is_empty() => return seen,
                None => {}
            }
        }
    };
    let (produce, take) = (&produce, &take);
    let mut all = Seen::default();
    thread::scope(|scope| {
        let producers = (0..PRODUCERS).map(|n| scope.spawn(move || produce(n)));
        let mut threads: Vec<_> = producers.collect();
        threads.extend((0..PRODUCERS).map(|_| scope.spawn(take)));
        for thread in threads {
            let seen = thread.join().unwrap();
            all.offered.extend(seen.offered);
            all.refused.extend(seen.refused);
            all.cancelled.extend(seen.cancelled);
            // One taker gets the items in the order of their numbers, which the caller checks for
            // all takers.
            all.taken.extend(seen.taken);
        }
    });
    all
}

/// The pairs of calls of which one ended before the other began, and whose numbers are in the other
/// order.
fn overtaken(calls: &[(Span, u64)]) -> usize {
    let mut by_begin = calls.to_vec();
    by_begin.sort_by_key(|(span, _)| span.begun);
    let mut by_end = calls.to_vec();
    by_end.sort_by_key(|(span, _)| span.ended);
    let mut ended = by_end.iter().peekable();
    let mut last = None;
    let mut wrong = 0;
    for (span, number) in by_begin {
        while let Some((_, before)) = ended.next_if(|(other, _)| other.ended < span.begun) {
            last = last.max(Some(*before));
        }
        wrong += usize::from(last > Some(number));
    }
    wrong
}

/// How many of these sorted steps are before `step`.
fn before(steps: &[u64], step: u64) -> u64 {
    steps.partition_point(|&at| at < step) as u64
}

fn sorted(steps: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut steps: Vec<u64> = steps.collect();
    steps.sort_unstable();
    steps
}

/// Each item that was accepted is taken or cancelled once. Items leave in the order in which they
/// were accepted, those of the spare too. No offer is refused while there is room, and none is
/// accepted beyond the bound.
#[test]
fn threads_lose_nothing_from_a_spare() {
    let seen = run_threads(rounds(160_000) / PRODUCERS);
    let number_of: HashMap<u64, u64> =
        seen.offered.iter().map(|(_, ticket, item)| (*item, ticket.number)).collect();
    let overflowed = seen.offered.iter().filter(|(_, ticket, _)| ticket.spare != 0).count();
    let accepted = seen.offered.len();
    assert_eq!(number_of.len(), accepted);
    assert!(seen.offered.iter().all(|(_, ticket, _)| ticket.spare <= SPARE));

    // Once each.
    let removed = seen.taken.iter().chain(&seen.cancelled);
    let mut numbers: Vec<u64> = removed.clone().map(|(_, item)| number_of[item]).collect();
    numbers.sort_unstable();
    assert!(numbers.iter().copied().eq(0..accepted as u64), "each item leaves once");

    // In order.
    let offers: Vec<(Span, u64)> =
        seen.offered.iter().map(|(span, ticket, _)| (*span, ticket.number)).collect();
    let takes: Vec<(Span, u64)> =
        seen.taken.iter().map(|(span, item)| (*span, number_of[item])).collect();
    assert_eq!((overtaken(&offers), overtaken(&takes)), (0, 0));

    // Within the bound, from both sides. A cancelled item counts until the older ones have left.
    let mut ends: Vec<(u64, u64)> =
        removed.clone().map(|(span, item)| (number_of[item], span.ended)).collect();
    ends.sort_unstable();
    let mut last = 0;
    let ends = sorted(ends.iter().map(|(_, ended)| {
        last = last.max(*ended);
        last
    }));
    let begins = sorted(removed.map(|(span, _)| span.begun));
    let accepted_begins = sorted(seen.offered.iter().map(|(span, _, _)| span.begun));
    let accepted_ends = sorted(seen.offered.iter().map(|(span, _, _)| span.ended));
    let refused_with_room = seen.refused.iter().filter(|span| {
        before(&accepted_begins, span.ended) - before(&ends, span.begun) < CAPACITY + SPARE
    });
    let refused_with_room = refused_with_room.count();
    let beyond = seen.offered.iter().filter(|(span, _, _)| {
        // One more may leave at once.
        let held = before(&accepted_ends, span.begun) as i64 - before(&begins, span.ended) as i64;
        held > (CAPACITY + SPARE) as i64
    });
    let beyond = beyond.count();
    println!(
        "{accepted} accepted, {overflowed} of them into the spare, {} cancelled, {} refused; {refused_with_room} \
         refused with room, {beyond} accepted beyond the bound",
        seen.cancelled.len(),
        seen.refused.len()
    );
    assert_eq!((refused_with_room, beyond), (0, 0));
    assert!(overflowed > 0 && !seen.cancelled.is_empty() && !seen.refused.is_empty());
}
