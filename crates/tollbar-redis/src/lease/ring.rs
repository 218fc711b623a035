//! Messages from callers to the client that asks the store. A message has a key, the permits that
//! the key owes, and the cost of a lease that it wants.
//!
//! A bounded ring in the node's shared memory with many writers and one reader. A writer claims a
//! place by advancing the head, writes the message, and publishes it through the place's turn. No
//! side waits for the other:
//!
//! - If the ring is full, the writer's call returns false at once, and its message is lost.
//! - If a writer is killed between claim and publication, its message is lost. The reader skips a
//!   place that stays unpublished for a second.
//! - If the reader has skipped a writer that still runs, that writer cannot publish, and its call
//!   returns false. It may have overwritten the next message at that place. Then the reader finds a
//!   wrong checksum and drops that message.
//! - Any word may be damaged. Then writers find no room, and the reader finds a claimed place and
//!   skips it after a second.

use core::num::NonZeroU64;
use tollbar::internal::sync::{AtomicU64, Ordering};

/// The longest key that a message holds, in bytes. A longer key is replaced by a hash
/// (`store_key`).
pub(super) const KEY_MOST: usize = if cfg!(loom) { 8 } else { 96 };
const WORDS: usize = KEY_MOST / 8;

/// A message about one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeyMessage {
    /// The key's hash in this node, by which its lines are found.
    pub(super) hash: u64,
    /// What `debt` counts.
    pub(super) kind: MessageKind,
    /// Permits that the store has to charge ([`MessageKind`]).
    pub(super) debt: u64,
    /// The cost of the request that wants a lease. 0: the caller wants no lease.
    pub(super) want: u64,
    /// The key's bytes; the first `length` count.
    pub(super) bytes: [u8; KEY_MOST],
    /// The key's length in bytes.
    pub(super) length: usize,
}

/// How the driver books the permits of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MessageKind {
    /// Used of the key's right, and admitted.
    Right = 0,
    /// Admitted while the circuit was not closed.
    Fallback = 1,
    /// Not admitted: a request waits for them.
    Waiting = 2,
}

/// A place in the ring.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Place {
    /// For message number `n` of a round that begins with message number `r`: `r` if it may be
    /// written here, `r + 1` if it may be read here. So zeroed memory is an empty ring.
    turn: AtomicU64,
    /// The checksum of the message and its number.
    check: AtomicU64,
    hash: AtomicU64,
    /// From the highest bit: length 7, kind 2, debt 27, want 28.
    numbers: AtomicU64,
    key: [AtomicU64; WORDS],
}

/// The ring's ends, as message numbers.
#[repr(C, align(64))]
#[derive(Debug)]
pub(super) struct Ends {
    /// The next message to be written. Writers advance it.
    head: AtomicU64,
    /// The next message to be read. Only the reader writes it; one process at a time is the reader.
    tail: AtomicU64,
}

/// A ring in memory shared with other processes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ring<'a> {
    ends: &'a Ends,
    places: &'a [Place],
}

const WANT_BITS: u32 = 28;
const DEBT_BITS: u32 = 27;
const KIND_AT: u32 = WANT_BITS + DEBT_BITS;
const LENGTH_AT: u32 = KIND_AT + 2;
/// The largest debt and want of a message, in permits. A cost is at most 2^24 - 1 (`PERMITS_MOST`),
/// so every one fits.
pub(super) const NUMBER_MOST: u64 = (1 << DEBT_BITS) - 1;

/// The most tries of a writer to claim a place.
const TRIES: u32 = 1 << 10;

/// What the reader found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Message(KeyMessage),
    /// A damaged message, which was dropped. The next place may have a message.
    Lost,
    /// The message of this number is claimed and not published.
    Claimed(u64),
    Empty,
}

impl<'a> Ring<'a> {
    pub(super) fn new(ends: &'a Ends, places: &'a [Place]) -> Ring<'a> {
        Ring { ends, places }
    }

    /// Writes a message. `false`: the message is lost, because the ring is full or damaged or the
    /// reader has skipped this writer.
    pub(super) fn push(&self, message: &KeyMessage) -> bool {
        // Relaxed: this is only a guess. The exchange of the head checks it.
        let mut number = self.ends.head.load(Ordering::Relaxed);
        let mut tries = 0_u32;
        let (place, round) = loop {
            let Some((place, round)) = self.place(number) else { return false };
            // A try fails if another writer has claimed the place. The bound ends the loop if
            // something keeps changing a damaged head.
            if tries == TRIES {
                return false;
            }
            tries += 1;
            // Acquire pairs with the Release in `free`: the reader has copied the last message
            // before this writer overwrites it.
            let turn = place.turn.load(Ordering::Acquire);
            let late = round.wrapping_sub(turn);
            if late != 0 && late < u64::MAX / 2 {
                // The ring is full: the reader has not freed this place since the round before.
                return false;
            }
            let next = number.wrapping_add(1);
            let moved = match late {
                0 => self.ends.head.compare_exchange(
                    number,
                    next,
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                ),
                _ => Err(self.ends.head.load(Ordering::Relaxed)),
            };
            match moved {
                Ok(_) => break (place, round),
                // The turn is ahead of the head: damage. A writer moves the head before it
                // publishes a turn, and the Acquire above would have made that move visible.
                Err(seen) if seen == number => return false,
                Err(seen) => number = seen,
            }
        };
        // Relaxed: the exchange of the turn below publishes these words.
        let numbers = (message.length as u64) << LENGTH_AT
            | (message.kind as u64) << KIND_AT
            | message.debt << WANT_BITS
            | message.want;
        place.hash.store(message.hash, Ordering::Relaxed);
        place.numbers.store(numbers, Ordering::Relaxed);
        let mut check = fold(fold(number, message.hash), numbers);
        for (to, word) in place.key.iter().zip(words(&message.bytes)) {
            to.store(word, Ordering::Relaxed);
            check = fold(check, word);
        }
        place.check.store(check, Ordering::Relaxed);
        // Release publishes the words above to the Acquire in `pop`. The exchange fails if the
        // reader has skipped this writer.
        place
            .turn
            .compare_exchange(round, round.wrapping_add(1), Ordering::Release, Ordering::Relaxed)
            .is_ok()
    }

    /// Takes the oldest message. Only the one reader may call it.
    pub(super) fn pop(&self) -> Found {
        let number = self.ends.tail.load(Ordering::Relaxed);
        let Some((place, round)) = self.place(number) else { return Found::Empty };
        // Acquire pairs with the Release in `push`: a published turn makes the message's words
        // visible.
        let turn = place.turn.load(Ordering::Acquire);
        if turn != round.wrapping_add(1) {
            // Relaxed: a head that is not seen now is seen at the next call. An empty place with
            // another turn than its round is damaged: no writer could claim it, so it counts as
            // claimed and is skipped.
            return match self.ends.head.load(Ordering::Relaxed) == number && turn == round {
                true => Found::Empty,
                false => Found::Claimed(number),
            };
        }
        let hash = place.hash.load(Ordering::Relaxed);
        let numbers = place.numbers.load(Ordering::Relaxed);
        let mut check = fold(fold(number, hash), numbers);
        let mut bytes = [0; KEY_MOST];
        let mut rest = bytes.as_mut_slice();
        for word in &place.key {
            let word = word.load(Ordering::Relaxed);
            check = fold(check, word);
            // As long as the key has words, the bytes have room for one.
            let Some((to, after)) = rest.split_first_chunk_mut() else { break };
            *to = word.to_ne_bytes();
            rest = after;
        }
        let whole = place.check.load(Ordering::Relaxed) == check;
        self.free(place, round, number);
        let length = (numbers >> LENGTH_AT) as usize;
        if !whole || length > KEY_MOST {
            return Found::Lost;
        }
        let kind = match numbers >> KIND_AT & 3 {
            0 => MessageKind::Right,
            1 => MessageKind::Fallback,
            _ => MessageKind::Waiting,
        };
        let (debt, want) = (numbers >> WANT_BITS & NUMBER_MOST, numbers & NUMBER_MOST);
        Found::Message(KeyMessage { hash, kind, debt, want, bytes, length })
    }

    /// Skips message `number`, whose writer is dead or whose place is damaged. If it is not the
    /// oldest message, the call does nothing. Only the one reader may call it.
    pub(super) fn skip(&self, number: u64) {
        let (len, head) = (self.places.len() as u64, self.ends.head.load(Ordering::Relaxed));
        let (Some((place, round)), true) =
            (self.place(number), self.ends.tail.load(Ordering::Relaxed) == number)
        else {
            return;
        };
        let claimed = head.wrapping_sub(number);
        if claimed > len {
            // An end is damaged, so the reader cannot know which places hold messages. The ring
            // starts again, empty, at `number`.
            for n in (0..len).map(|n| number.wrapping_add(n)) {
                if let Some((place, round)) = self.place(n) {
                    place.turn.store(round, Ordering::Relaxed);
                }
            }
            // Release orders the turns before the head. Writers load the head Relaxed, so one may
            // still see an old turn: it then finds no room, or fails to publish.
            self.ends.head.store(number, Ordering::Release);
            return;
        }
        let turn = place.turn.load(Ordering::Relaxed);
        if turn == round.wrapping_add(1) {
            return;
        }
        let next = if claimed == 0 { round } else { round.wrapping_add(len) };
        if place.turn.compare_exchange(turn, next, Ordering::AcqRel, Ordering::Relaxed).is_ok()
            && claimed != 0
        {
            self.ends.tail.store(number.wrapping_add(1), Ordering::Relaxed);
        }
    }

    /// How many messages the ring can hold.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    fn free(&self, place: &Place, round: u64, number: u64) {
        // Release pairs with the Acquire in `push`: the reader's copy is done before a writer
        // overwrites the words.
        place.turn.store(round.wrapping_add(self.places.len() as u64), Ordering::Release);
        self.ends.tail.store(number.wrapping_add(1), Ordering::Relaxed);
    }

    /// The place of a message, and the number of the first message of its round.
    fn place(&self, number: u64) -> Option<(&'a Place, u64)> {
        let len = NonZeroU64::new(self.places.len() as u64)?;
        let at = number % len;
        Some((self.places.get(at as usize)?, number.wrapping_sub(at)))
    }
}

/// The words of a key. `chunks_exact` would do the same. Compiled for size, it divides by a length
/// that the compiler does not know, and such a division has a panic in it.
fn words(bytes: &[u8; KEY_MOST]) -> impl Iterator<Item = u64> + '_ {
    let mut rest = bytes.as_slice();
    core::iter::from_fn(move || {
        let (word, after) = rest.split_first_chunk()?;
        rest = after;
        Some(u64::from_ne_bytes(*word))
    })
}

/// Adds a word to a checksum, which detects torn messages. Anyone can forge it.
fn fold(sum: u64, word: u64) -> u64 {
    (sum ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn message(hash: u64) -> KeyMessage {
        KeyMessage {
            hash,
            kind: MessageKind::Right,
            debt: 1,
            want: 2,
            bytes: [7; KEY_MOST],
            length: 3,
        }
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
        // Claimed, not published.
        ends.head.store(1, Ordering::Relaxed);
        assert!(ring.push(&message(2)));
        assert_eq!(ring.pop(), Found::Claimed(0));
        ring.skip(0);
        assert_eq!(ring.pop(), Found::Message(message(2)));
        assert_eq!(ring.pop(), Found::Empty);
        // The skipped place is used again.
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

    /// Two writers and the reader: each message whose push returned true arrives once and whole.
    #[test]
    fn what_is_pushed_arrives() {
        model(|| {
            let memory = Arc::new(memory(2));
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
            let pushed =
                [a.join().expect("a"), b.join().expect("b")].iter().filter(|ok| **ok).count();
            let mut seen =
                reader.join().expect("the reader").into_iter().collect::<alloc::vec::Vec<_>>();
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

    /// The reader skips a writer that still runs: either its message arrives or its push returns
    /// false.
    #[test]
    fn a_writer_that_was_skipped_returns_false() {
        model(|| {
            let memory = Arc::new(memory(2));
            let writer = {
                let memory = memory.clone();
                thread::spawn(move || Ring::new(&memory.0, &memory.1).push(&message(1)))
            };
            // The reader has a thread of its own, because loom tries fewer orders of the main
            // thread's steps.
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
