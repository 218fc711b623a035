//! The queue under every interleaving that loom finds within a bound of preemptions.
//!
//! `RUSTFLAGS="--cfg loom" cargo test --profile models --target-dir target/loom --lib queue::models`

use super::event::QueueEvent;
use super::ring::{ItemRing, Offered, QueueRoom, TakeAnswer};
use super::Words;
use crate::algorithm::Rule;
use crate::clock::Manual;
use crate::policy::Policy;
use crate::units::NEVER;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::sync::Arc;
use loom::thread;
use std::println;
use std::vec::Vec;

const MANY: QueueRoom = QueueRoom { first: 9, spare: 0 };
const ONE: QueueRoom = QueueRoom { first: 1, spare: 0 };

fn explore(name: &str, f: impl Fn() + Sync + Send + 'static) {
    println!("{name}: {} executions", crate::sync::explore(3, f));
}

fn rule(policy: &str) -> Rule {
    Rule::new(&policy.parse::<Policy>().unwrap()).unwrap()
}

/// A queue of two cells; one item may wait, and any number may leave.
fn wide() -> (Arc<ItemRing>, Rule) {
    (Arc::new(ItemRing::new(2).unwrap()), rule("9/9ns burst 9"))
}

fn queued(offered: Offered) -> Option<u64> {
    match offered {
        Offered::Queued { number, .. } => Some(number),
        Offered::Full => None,
    }
}

fn item(taken: TakeAnswer) -> Option<u64> {
    match taken {
        TakeAnswer::Item(item) => Some(item),
        TakeAnswer::Empty | TakeAnswer::At(_) => None,
    }
}

/// All items, with permits of a later time.
fn rest(ring: &ItemRing, rule: &Rule) -> Vec<u64> {
    core::iter::from_fn(|| item(ring.take(rule, 1000))).collect()
}

/// Two offers beside two takes: no item is lost or doubled, and one thread's items leave in its
/// order.
#[test]
fn offers_beside_takes() {
    explore("offers beside takes", || {
        let (ring, rule) = wide();
        let offering = {
            let ring = ring.clone();
            thread::spawn(move || {
                [10, 11].map(|n| queued(ring.offer(&rule, 1, MANY, n)).map(|_| n))
            })
        };
        let taken = [item(ring.take(&rule, 1)), item(ring.take(&rule, 1))];
        let offered: Vec<u64> = offering.join().unwrap().into_iter().flatten().collect();
        let mut got: Vec<u64> = taken.into_iter().flatten().collect();
        got.extend(rest(&ring, &rule));
        assert_eq!(got, offered);
    });
}

/// Two threads offer, the second lap of a short ring among it: each item that was taken in leaves
/// once, and a full queue refuses.
#[test]
fn two_producers_and_a_full_ring() {
    explore("two producers and a full ring", || {
        let (ring, rule) = wide();
        assert!(queued(ring.offer(&rule, 1, MANY, 1)).is_some());
        let other = {
            let ring = ring.clone();
            thread::spawn(move || queued(ring.offer(&rule, 1, MANY, 2)).map(|_| 2))
        };
        let mine = queued(ring.offer(&rule, 1, MANY, 3)).map(|_| 3);
        let first = item(ring.take(&rule, 1));
        assert_eq!(first, Some(1));
        let again = queued(ring.offer(&rule, 1, MANY, 4)).map(|_| 4);
        let theirs = other.join().unwrap();
        let mut offered: Vec<u64> = [theirs, mine, again].into_iter().flatten().collect();
        let mut got = rest(&ring, &rule);
        // There is room for two, so one of the two early offers, at least, was taken in.
        assert!(mine.is_some() || theirs.is_some());
        if let (Some(mine), Some(again)) = (mine, again) {
            let place = |n| got.iter().position(|&item| item == n);
            assert!(place(mine) < place(again), "{got:?}");
        }
        offered.sort_unstable();
        got.sort_unstable();
        assert_eq!(got, offered);
    });
}

/// The bound of waiting items holds for offers that race.
#[test]
fn two_offers_for_one_place() {
    explore("two offers for one place", || {
        let ring = Arc::new(ItemRing::new(4).unwrap());
        let rule = rule("1/9ns algo pacer");
        // One may leave and one may wait.
        assert!(queued(ring.offer(&rule, 1, ONE, 1)).is_some());
        let other = {
            let ring = ring.clone();
            thread::spawn(move || queued(ring.offer(&rule, 1, ONE, 2)).is_some())
        };
        let mine = queued(ring.offer(&rule, 1, ONE, 3)).is_some();
        assert!(mine ^ other.join().unwrap(), "exactly one place");
        assert_eq!(ring.len(), 2);
    });
}

/// The end of the first queue, and of the spare, for offers that race with each other and a take:
/// the earlier of two items is in the first queue, the later one in the spare, and both leave in
/// that order. A third one finds room only if an item has left.
#[test]
fn two_offers_overflow_into_the_spare() {
    explore("two offers overflow into the spare", || {
        let ring = Arc::new(ItemRing::new(4).unwrap());
        let rule = rule("1/9ns algo pacer");
        let room = QueueRoom { first: 1, spare: 1 };
        let offer = move |ring: &ItemRing, n| match ring.offer(&rule, 1, room, n) {
            Offered::Queued { number, spare, .. } => Some((number, spare, n)),
            Offered::Full => None,
        };
        // One may leave and one may wait.
        assert_eq!(offer(&ring, 1), Some((0, 0, 1)));
        let other = {
            let ring = ring.clone();
            thread::spawn(move || offer(&ring, 2))
        };
        let mine = offer(&ring, 3);
        // Whatever the other thread does, this one is the first or the second that waits.
        assert!(mine.is_some(), "there is room");
        let taken = item(ring.take(&rule, 1));
        let third = offer(&ring, 4);
        assert_eq!(taken, Some(1));
        let mut queued: Vec<_> =
            [other.join().unwrap(), mine, third].into_iter().flatten().collect();
        queued.sort_unstable();
        // The permit of this interval is spent, so that after the take two wait and no more.
        assert_eq!(queued.len(), 2, "{queued:?}");
        assert_eq!((queued[0].1, queued[1].1), (0, 1), "{queued:?}");
        let expected: Vec<u64> = queued.iter().map(|&(_, _, n)| n).collect();
        let left: Vec<u64> = [10, 19].iter().filter_map(|&at| item(ring.take(&rule, at))).collect();
        assert_eq!(left, expected);
    });
}

/// Two takers and one permit: one item leaves, and the permit of the other item is not spent.
#[test]
fn two_takes_for_one_permit() {
    explore("two takes for one permit", || {
        let ring = Arc::new(ItemRing::new(4).unwrap());
        let rule = rule("1/9ns algo pacer");
        for n in [1, 2, 3] {
            assert!(queued(ring.offer(&rule, 1, MANY, n)).is_some());
        }
        let other = {
            let ring = ring.clone();
            thread::spawn(move || item(ring.take(&rule, 1)))
        };
        let mine = item(ring.take(&rule, 1));
        let got: Vec<u64> = [mine, other.join().unwrap()].into_iter().flatten().collect();
        assert_eq!(got, [1]);
        assert_eq!(ring.take(&rule, 9), TakeAnswer::At(10));
        assert_eq!(ring.take(&rule, 10), TakeAnswer::Item(2));
    });
}

/// A cancellation beside a take of the same item: one of the two gets it. The next item gets the
/// taker's permit if the taker lost.
#[test]
fn a_cancellation_beside_a_take() {
    explore("a cancellation beside a take", || {
        let ring = Arc::new(ItemRing::new(4).unwrap());
        let rule = rule("1/9ns algo pacer");
        for n in [1, 2] {
            assert!(queued(ring.offer(&rule, 1, MANY, n)).is_some());
        }
        let cancelling = {
            let ring = ring.clone();
            thread::spawn(move || ring.cancel(0))
        };
        let taken = item(ring.take(&rule, 1));
        let cancelled = cancelling.join().unwrap();
        match cancelled {
            Some(1) => assert_eq!(taken, Some(2)),
            None => assert_eq!(taken, Some(1)),
            other => panic!("{other:?}"),
        }
        assert_eq!(item(ring.take(&rule, 9)), None, "one permit has been spent");
        assert_eq!(
            rest(&ring, &rule),
            if cancelled.is_some() { Vec::new() } else { Vec::from([2]) }
        );
    });
}

/// Cancellations of the oldest items make room, for offers that race with them and with each other.
#[test]
fn a_cancellation_beside_offers() {
    explore("a cancellation beside offers", || {
        let (ring, rule) = wide();
        for n in [1, 2] {
            assert!(queued(ring.offer(&rule, 1, MANY, n)).is_some());
        }
        let cancelling = {
            let ring = ring.clone();
            thread::spawn(move || {
                assert_eq!(ring.cancel(0), Some(1));
                queued(ring.offer(&rule, 1, MANY, 3)).map(|_| 3)
            })
        };
        let mine = queued(ring.offer(&rule, 1, MANY, 4)).map(|_| 4);
        let theirs = cancelling.join().unwrap();
        assert!(mine.is_some() ^ theirs.is_some(), "one place was free: {mine:?} {theirs:?}");
        let mut expected = Vec::from([2]);
        expected.extend(mine.or(theirs));
        assert_eq!(rest(&ring, &rule), expected);
    });
}

/// A taker that stands still between its claim and the freeing of the cell holds up no offer: the
/// item of the next lap finds its cell.
#[test]
fn an_offer_beside_a_taker_that_stands_still() {
    explore("an offer beside a taker that stands still", || {
        let (ring, rule) = wide();
        for n in [1, 2] {
            assert!(queued(ring.offer(&rule, 1, MANY, n)).is_some());
        }
        let other = {
            let ring = ring.clone();
            thread::spawn(move || item(ring.take(&rule, 1)))
        };
        let mine = item(ring.take(&rule, 1));
        assert!(queued(ring.offer(&rule, 1, MANY, 3)).is_some(), "there is room");
        let mut got: Vec<u64> = [mine, other.join().unwrap()].into_iter().flatten().collect();
        got.extend(rest(&ring, &rule));
        got.sort_unstable();
        assert_eq!(got, [1, 2, 3]);
    });
}

/// The same beside a cancellation of the claimed item: one of the two gets it.
#[test]
fn an_offer_beside_a_take_and_a_cancellation() {
    explore("an offer beside a take and a cancellation", || {
        let (ring, rule) = wide();
        for n in [1, 2] {
            assert!(queued(ring.offer(&rule, 1, MANY, n)).is_some());
        }
        let taking = {
            let ring = ring.clone();
            thread::spawn(move || item(ring.take(&rule, 1)))
        };
        let cancelling = {
            let ring = ring.clone();
            thread::spawn(move || ring.cancel(0))
        };
        let mine = ring.drain();
        let third = queued(ring.offer(&rule, 1, MANY, 3)).map(|_| 3);
        let others = [taking.join().unwrap(), cancelling.join().unwrap()];
        let mut got: Vec<u64> = others.into_iter().chain([mine]).flatten().collect();
        got.extend(rest(&ring, &rule));
        got.sort_unstable();
        assert_eq!(got, [1, 2].into_iter().chain(third).collect::<Vec<_>>());
    });
}

/// Fills one of the two cells at a time.
fn takes_turns(ring: &ItemRing) {
    let rule = rule("9/9ns burst 9");
    for n in [1, 2] {
        assert!(queued(ring.offer(&rule, 1, MANY, n)).is_some());
        assert!(item(ring.take(&rule, 1)).is_some());
    }
}

/// One thread offers and takes in turn, on a processor that shows its changes late. An offer of
/// another thread finds room, and the queue looks no longer than it ever was. Loom does not try
/// every order with a thread that only reads, so that thread is not the first.
#[test]
fn a_tail_beside_a_late_head() {
    let other: [fn(&ItemRing); 2] = [
        |ring| {
            let offered = ring.offer(&rule("9/9ns burst 9"), 1, MANY, 3);
            assert!(queued(offered).is_some(), "there is room");
        },
        |ring| assert!(ring.len() <= 1),
    ];
    for (number, act) in other.into_iter().enumerate() {
        explore("a tail beside a late head", move || {
            let ring = Arc::new(ItemRing::weak(2).unwrap());
            let acting = {
                let ring = ring.clone();
                thread::spawn(move || act(&ring))
            };
            takes_turns(&ring);
            acting.join().unwrap();
            // The offer of the other thread, unless this one has taken that item for its own.
            assert_eq!(rest(&ring, &rule("9/9ns burst 9")).len(), 1 - number);
        });
    }
}

/// No notification is lost: a thread that sleeps until a word changes wakes. (A lost one is a
/// deadlock, which loom reports.)
#[test]
fn a_notification_beside_a_sleeper() {
    explore("a notification beside a sleeper", || {
        let shared = Arc::new((QueueEvent::new(), AtomicU32::new(0)));
        let notifying = {
            let shared = shared.clone();
            thread::spawn(move || {
                shared.1.store(1, Ordering::Relaxed);
                shared.0.notify();
            })
        };
        loop {
            let listener = shared.0.listen();
            if shared.1.load(Ordering::Relaxed) == 1 {
                break;
            }
            listener.sleep(1);
        }
        notifying.join().unwrap();
    });
}

/// A queue whose clock stands still at 1, on a processor that shows a thread's changes late.
fn words(policy: &str) -> Arc<Words<Manual>> {
    let policy: Policy = policy.parse().unwrap();
    let mut words = Words::with(&policy, 2, Manual::new(1)).unwrap();
    words.ring = ItemRing::weak(2).unwrap();
    Arc::new(words)
}

/// Sleeps until there is an item. `None`: the queue is closed and empty.
fn wait_for_item(words: &Words<Manual>) -> Option<u64> {
    words.take_before(NEVER, &|| false)
}

/// A producer offers an item and closes the queue. A receiver that hears of the close has got the
/// item before. Each is the first thread once, because loom does not try every order with a thread
/// that only reads.
#[test]
fn a_close_after_an_offer() {
    fn produce(words: &Arc<Words<Manual>>) {
        // Another thread than the one that closes the queue.
        let offers = words.clone();
        assert!(thread::spawn(move || offers.offer(7)).join().unwrap().is_ok());
        words.close();
    }
    fn receive(words: &Arc<Words<Manual>>) {
        assert_eq!(wait_for_item(words), Some(7));
        assert_eq!(wait_for_item(words), None);
    }
    for [here, there] in [[produce, receive], [receive as fn(&Arc<Words<Manual>>), produce]] {
        explore("a close after an offer", move || {
            let words = words("9/9ns burst 9");
            let other = {
                let words = words.clone();
                thread::spawn(move || there(&words))
            };
            here(&words);
            other.join().unwrap();
        });
    }
}

/// A receiver sleeps until the only item may leave. Another thread cancels that item while a third
/// one closes the queue: the receiver learns that the queue is closed and empty.
#[test]
fn a_close_beside_a_cancellation_of_the_last_item() {
    explore("a close beside a cancellation of the last item", || {
        let words = words("1/9ns algo pacer");
        assert!(words.offer(7).is_ok());
        assert_eq!(words.take(), Some(7));
        let ticket = words.offer(8).unwrap();
        let receiving = {
            let words = words.clone();
            thread::spawn(move || assert_eq!(wait_for_item(&words), None))
        };
        let closing = {
            let words = words.clone();
            thread::spawn(move || words.close())
        };
        assert_eq!(words.cancel(ticket), Some(8));
        closing.join().unwrap();
        receiving.join().unwrap();
    });
}
