//! Messages from those who take to the one who asks the store: which key, how much it owes, how much it wants.
//!
//! A bounded ring in the node's shared memory, many writers, one reader. A writer claims a place by moving the head, writes
//! it, and publishes it by the place's turn. Nobody waits: a full ring is said so, and a writer that was killed
//! between claim and publication costs its message, once the reader has seen the place unpublished for a second. Should such a
//! writer only have slept, its publication fails and it knows; what it wrote into somebody else's message the
//! checksum finds.
//!
//! Any word may be damaged. Then a writer finds no room, and the reader finds the place claimed and gives up on it after the same second.

use crate::sync::{AtomicU64, Ordering};
use core::num::NonZeroU64;

/// Bytes of a key that fit. Longer keys go by their hash.
pub(super) const KEY_MOST: usize = if cfg!(loom) { 8 } else { 96 };
const WORDS: usize = KEY_MOST / 8;

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Message {
    /// The key's hash, as its lines know it.
    pub(super) hash: u64,
    /// Permits that were admitted without a lease.
    pub(super) debt: u64,
    /// Permits that were asked for and not there; 0: nothing is wanted.
    pub(super) want: u64,
    /// The key's bytes, as many as `length`.
    pub(super) bytes: [u8; KEY_MOST],
    pub(super) length: usize,
}

/// A place in the ring.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Place {
    /// The number of the message that may be written here; one more: of the one that may be read.
    turn: AtomicU64,
    check: AtomicU64,
    hash: AtomicU64,
    /// length 8, debt 28, want 28
    numbers: AtomicU64,
    key: [AtomicU64; WORDS],
}

/// The ring's ends.
#[repr(C, align(64))]
#[derive(Debug)]
pub(super) struct Ends {
    head: AtomicU64,
    /// The reader's, which only one process is at a time.
    tail: AtomicU64,
}

/// A ring in memory that others hold too.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ring<'a> {
    ends: &'a Ends,
    places: &'a [Place],
}

const NUMBER_BITS: u32 = 28;
/// Larger debts are several messages.
pub(super) const NUMBER_MOST: u64 = (1 << NUMBER_BITS) - 1;

/// So often a writer tries to claim a place.
const TRIES: u32 = 1 << 10;

/// What the reader found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Message(Message),
    /// It was damaged: another place may have a message.
    Lost,
    /// A place has been claimed and not published; its number.
    Claimed(u64),
    Empty,
}

impl<'a> Ring<'a> {
    pub(super) fn new(ends: &'a Ends, places: &'a [Place]) -> Ring<'a> {
        Ring { ends, places }
    }

    /// Makes fresh, zeroed memory a ring: every place waits for its first message.
    pub(super) fn begin(&self) {
        for (n, place) in self.places.iter().enumerate() {
            place.turn.store(n as u64, Ordering::Relaxed);
        }
    }

    /// Says it; whether there was room, and nobody took this writer for dead.
    pub(super) fn push(&self, message: &Message) -> bool {
        // Relaxed: only a guess to begin with.
        let mut number = self.ends.head.load(Ordering::Relaxed);
        let mut tries = 0_u32;
        let place = loop {
            let Some(place) = self.place(number) else { return false };
            // Each try that fails is another writer's success, unless somebody damages the head all the time.
            if tries == TRIES {
                return false;
            }
            tries += 1;
            // Acquire: the reader's copy of what was here before is done.
            let turn = place.turn.load(Ordering::Acquire);
            let late = number.wrapping_sub(turn);
            if late != 0 && late < u64::MAX / 2 {
                // The message of a round before is still there.
                return false;
            }
            let next = number.wrapping_add(1);
            let moved = match late {
                0 => self.ends.head.compare_exchange(number, next, Ordering::Relaxed, Ordering::Relaxed),
                _ => Err(self.ends.head.load(Ordering::Relaxed)),
            };
            match moved {
                Ok(_) => break place,
                // A turn that is ahead was published after the head had moved on, and the Acquire above has seen both.
                Err(seen) if seen == number => return false,
                Err(seen) => number = seen,
            }
        };
        // Relaxed: published by the turn.
        let numbers = (message.length as u64) << (2 * NUMBER_BITS) | message.debt << NUMBER_BITS | message.want;
        place.hash.store(message.hash, Ordering::Relaxed);
        place.numbers.store(numbers, Ordering::Relaxed);
        let mut check = fold(fold(number, message.hash), numbers);
        for (to, word) in place.key.iter().zip(words(&message.bytes)) {
            to.store(word, Ordering::Relaxed);
            check = fold(check, word);
        }
        place.check.store(check, Ordering::Relaxed);
        // Release: with the words. It fails if the reader has given up on this writer.
        place.turn.compare_exchange(number, number.wrapping_add(1), Ordering::Release, Ordering::Relaxed).is_ok()
    }

    /// The oldest message. Only for the one reader.
    pub(super) fn pop(&self) -> Found {
        let number = self.ends.tail.load(Ordering::Relaxed);
        let Some(place) = self.place(number) else { return Found::Empty };
        // Acquire: with the words.
        let turn = place.turn.load(Ordering::Acquire);
        if turn != number.wrapping_add(1) {
            // Relaxed: if it is not seen now it is the next time. No writer could claim an empty place with another turn.
            return match self.ends.head.load(Ordering::Relaxed) == number && turn == number {
                true => Found::Empty,
                false => Found::Claimed(number),
            };
        }
        let hash = place.hash.load(Ordering::Relaxed);
        let numbers = place.numbers.load(Ordering::Relaxed);
        let mut check = fold(fold(number, hash), numbers);
        let mut bytes = [0; KEY_MOST];
        for (to, word) in bytes.chunks_exact_mut(8).zip(&place.key) {
            let word = word.load(Ordering::Relaxed);
            check = fold(check, word);
            to.copy_from_slice(&word.to_ne_bytes());
        }
        let whole = place.check.load(Ordering::Relaxed) == check;
        self.free(place, number);
        let length = (numbers >> (2 * NUMBER_BITS)) as usize;
        if !whole || length > KEY_MOST {
            return Found::Lost;
        }
        let (debt, want) = (numbers >> NUMBER_BITS & NUMBER_MOST, numbers & NUMBER_MOST);
        Found::Message(Message { hash, debt, want, bytes, length })
    }

    /// Gives up on message `number`, which is the oldest: its writer is dead, or the place is damaged.
    pub(super) fn skip(&self, number: u64) {
        let (len, head) = (self.places.len() as u64, self.ends.head.load(Ordering::Relaxed));
        let (Some(place), true) = (self.place(number), self.ends.tail.load(Ordering::Relaxed) == number) else {
            return;
        };
        let claimed = head.wrapping_sub(number);
        if claimed > len {
            // An end is damaged, so nobody knows which places have messages: the ring begins anew, here.
            for n in (0..len).map(|n| number.wrapping_add(n)) {
                if let Some(place) = self.place(n) {
                    place.turn.store(n, Ordering::Relaxed);
                }
            }
            // Release: a writer that sees this head sees the turns, too.
            self.ends.head.store(number, Ordering::Release);
            return;
        }
        let turn = place.turn.load(Ordering::Relaxed);
        if turn == number.wrapping_add(1) {
            return;
        }
        let next = if claimed == 0 { number } else { number.wrapping_add(len) };
        if place.turn.compare_exchange(turn, next, Ordering::AcqRel, Ordering::Relaxed).is_ok() && claimed != 0 {
            self.ends.tail.store(number.wrapping_add(1), Ordering::Relaxed);
        }
    }

    /// How many messages it holds.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    fn free(&self, place: &Place, number: u64) {
        // Release: the words have been read before another writes them.
        place.turn.store(number.wrapping_add(self.places.len() as u64), Ordering::Release);
        self.ends.tail.store(number.wrapping_add(1), Ordering::Relaxed);
    }

    fn place(&self, number: u64) -> Option<&'a Place> {
        let len = NonZeroU64::new(self.places.len() as u64)?;
        self.places.get((number % len) as usize)
    }
}

fn words(bytes: &[u8; KEY_MOST]) -> impl Iterator<Item = u64> + '_ {
    bytes.chunks_exact(8).map(|chunk| {
        let mut word = [0; 8];
        word.copy_from_slice(chunk);
        u64::from_ne_bytes(word)
    })
}

/// Of what was so far and a word more: it is to find torn messages, not forged ones.
fn fold(sum: u64, word: u64) -> u64 {
    (sum ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn message(hash: u64) -> Message {
        Message { hash, debt: 1, want: 2, bytes: [7; KEY_MOST], length: 3 }
    }

    pub(crate) fn memory(places: usize) -> (Ends, alloc::vec::Vec<Place>) {
        let zero = || AtomicU64::new(0);
        let place = |_| Place {
            turn: zero(),
            check: zero(),
            hash: zero(),
            numbers: zero(),
            key: core::array::from_fn(|_| zero()),
        };
        (Ends { head: zero(), tail: zero() }, (0..places).map(place).collect())
    }

    #[cfg(not(loom))]
    #[test]
    fn in_order_and_full() {
        let (ends, places) = memory(4);
        let ring = Ring::new(&ends, &places);
        ring.begin();
        for round in 0..10 {
            assert_eq!(ring.pop(), Found::Empty);
            assert!((0..4).all(|n| ring.push(&message(round * 4 + n))));
            assert!(!ring.push(&message(99)), "full");
            for n in 0..4 {
                assert_eq!(ring.pop(), Found::Message(message(round * 4 + n)));
            }
        }
    }

    #[cfg(not(loom))]
    #[test]
    fn a_writer_that_died_costs_its_message() {
        let (ends, places) = memory(4);
        let ring = Ring::new(&ends, &places);
        ring.begin();
        // Claimed, not published.
        ends.head.store(1, Ordering::Relaxed);
        assert!(ring.push(&message(2)));
        assert_eq!(ring.pop(), Found::Claimed(0));
        ring.skip(0);
        assert_eq!(ring.pop(), Found::Message(message(2)));
        assert_eq!(ring.pop(), Found::Empty);
        // Its place is used again.
        assert!((0..4).all(|n| ring.push(&message(n))));
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::tests::{memory, message};
    use super::*;
    use crate::lease::model;
    use alloc::sync::Arc;
    use loom::thread;

    /// Two writers and the reader: what was said to be pushed arrives, once and whole.
    #[test]
    fn what_is_pushed_arrives() {
        model(|| {
            let memory = Arc::new(memory(2));
            Ring::new(&memory.0, &memory.1).begin();
            let writer = |n: u64| {
                let memory = memory.clone();
                thread::spawn(move || Ring::new(&memory.0, &memory.1).push(&message(n)))
            };
            let (a, b) = (writer(1), writer(2));
            let reader = {
                let memory = memory.clone();
                thread::spawn(move || match Ring::new(&memory.0, &memory.1).pop() {
                    Found::Message(found) => Some(found.hash),
                    Found::Lost => panic!("torn"),
                    _ => None,
                })
            };
            let pushed = [a.join().expect("a"), b.join().expect("b")].iter().filter(|ok| **ok).count();
            let mut seen = reader.join().expect("the reader").into_iter().collect::<alloc::vec::Vec<_>>();
            let ring = Ring::new(&memory.0, &memory.1);
            while let Found::Message(found) = ring.pop() {
                seen.push(found.hash);
            }
            let all = seen.len();
            seen.sort_unstable();
            seen.dedup();
            assert_eq!((seen.len(), all), (pushed, pushed), "{seen:?}");
        });
    }

    /// A writer that the reader takes for dead: either its message arrives or it is told that it did not.
    #[test]
    fn a_writer_taken_for_dead_is_told() {
        model(|| {
            let memory = Arc::new(memory(2));
            Ring::new(&memory.0, &memory.1).begin();
            let writer = {
                let memory = memory.clone();
                thread::spawn(move || Ring::new(&memory.0, &memory.1).push(&message(1)))
            };
            // Not this thread, whose steps loom tries in fewer orders.
            let reader = {
                let memory = memory.clone();
                thread::spawn(move || {
                    let ring = Ring::new(&memory.0, &memory.1);
                    match ring.pop() {
                        Found::Claimed(number) => ring.skip(number),
                        Found::Message(_) => return 1,
                        Found::Lost => panic!("torn"),
                        Found::Empty => {}
                    }
                    0
                })
            };
            let mut seen = reader.join().expect("the reader");
            let ring = Ring::new(&memory.0, &memory.1);
            let pushed = writer.join().expect("the writer");
            if let Found::Message(_) = ring.pop() {
                seen += 1;
            }
            assert_eq!(seen, usize::from(pushed));
        });
    }
}
