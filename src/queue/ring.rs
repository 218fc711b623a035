//! A bounded queue of words that any number of threads fill and empty without locks, and whose
//! outflow a policy paces.
//!
//! ```text
//!  tail: the number of the next item ─────────────┐   (a hint: it may be too low, and the next offer then raises it)
//!  head: { number of the oldest item, state of the outflow's policy }, 16 bytes that change together
//!                  │                              ▼
//!        ┌─────┬───┴─┬───────────┬─────┬─────┐
//!        │free │full │ cancelled │full │free │   item n is in cell n mod length
//!        └─────┴─────┴───────────┴─────┴─────┘
//!        a cell: { lap << 2 | state, item }, 16 bytes that change together
//! ```
//!
//! One swap of a cell claims it and stores the item, so no cell is ever claimed and empty. One swap
//! of `head` charges the policy and claims the oldest item, so no permit is spent on an item that
//! another thread took, with one exception: a cancellation that comes between that swap and the
//! taker's swap of the cell. The taker then uses its permit for the next item. If there is none,
//! the permit is lost, which is an error on the side of the limit.
//!
//! A taker frees the cell after it has claimed the item. An offer that comes to that cell
//! meanwhile, one lap later, frees it instead.
//!
//! Numbers and laps only grow. So a swap that was computed from an outdated cell fails.

use crate::algorithm::{Algorithm, Rule};
use crate::decision::Verdict;
use crate::sync::{AtomicU64, CachePadded, Ordering};
use crate::table::memory::slot::{Slot, SlotPair};
use alloc::boxed::Box;

/// The most cells of a ring.
pub(super) const CELLS_MOST: u64 = 1 << 28;

const FREE: u64 = 0;
const FULL: u64 = 1;
const CANCELLED: u64 = 2;

/// The queue. See the module.
#[derive(Debug)]
pub(super) struct ItemRing {
    cells: Box<[Slot]>,
    /// The low `bits` of an item's number choose its cell. The others are the lap.
    bits: u32,
    head: CachePadded<Slot>,
    tail: CachePadded<AtomicU64>,
}

/// How many items may wait. The spare is the end of the same ring: the items behind the `first`
/// oldest ones. So an item goes from the spare into the first queue when the head moves, and no
/// step between two queues can lose it, double it or let a later item overtake it.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueueRoom {
    /// In the first queue.
    pub(super) first: u64,
    /// In the spare.
    pub(super) spare: u64,
}

/// An answer to [`ItemRing::offer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Offered {
    /// The item is in the queue.
    Queued {
        /// Its number.
        number: u64,
        /// The items before it, those that have been cancelled included.
        ahead: u64,
        /// Its place in the spare, from 1. 0: it is in the first queue.
        spare: u64,
    },
    /// The queue is full.
    Full,
}

/// An answer to [`ItemRing::take`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TakeAnswer {
    /// The oldest item.
    Item(u64),
    /// There is none.
    Empty,
    /// The oldest item may leave at this time, or never ([`crate::NEVER`]).
    At(u64),
}

impl ItemRing {
    /// A ring of at least `length` cells, which is at most [`CELLS_MOST`]; `None` if there is no
    /// memory.
    pub(super) fn new(length: u64) -> Option<ItemRing> {
        let bits = length.max(2).next_power_of_two().trailing_zeros();
        let cells = cells(1 << bits)?;
        let (head, tail) = (CachePadded::new(slot(1 << bits)), CachePadded::new(AtomicU64::new(0)));
        Some(ItemRing { cells, bits, head, tail })
    }

    /// Puts `item` behind all others, unless more items would then wait for a permit than `room`
    /// has. Items that may leave at `now` do not wait.
    pub(super) fn offer(&self, rule: &Rule, now: u64, room: QueueRoom, item: u64) -> Offered {
        loop {
            // Acquire: the head is read after the tail, so that it is not behind it by items that
            // came later.
            let number = self.tail.load(Ordering::Acquire);
            let cell = self.cell(number);
            let seen = cell.pair();
            if seen.key < self.key(number, FREE) {
                // The item of the lap before is still here.
                if self.free_claimed(number, seen) || self.drop_cancelled() {
                    continue;
                }
                return Offered::Full;
            }
            if seen.key > self.key(number, FREE) {
                self.move_tail(number);
                continue;
            }
            let head = self.head.pair();
            let ahead = number.saturating_sub(head.key);
            let mut spare = 0;
            if ahead >= room.first {
                // The items before this one that wait.
                let waiting = ahead - ahead.min(rule.available(head.state, now));
                if waiting >= room.first {
                    if self.drop_cancelled() {
                        continue;
                    }
                    spare = waiting - room.first + 1;
                    if spare > room.spare {
                        return Offered::Full;
                    }
                }
            }
            if cell.swap(seen, SlotPair { key: self.key(number, FULL), state: item }).is_ok() {
                self.move_tail(number);
                return Offered::Queued { number, ahead, spare };
            }
        }
    }

    /// Takes the oldest item if the policy admits it at `now`.
    pub(super) fn take(&self, rule: &Rule, now: u64) -> TakeAnswer {
        // Whether a permit has been charged for an item that was then cancelled.
        let mut paid = false;
        loop {
            let head = self.head.pair();
            let number = head.key;
            let cell = self.cell(number);
            let seen = cell.pair();
            // An earlier lap: this cell's last taker has claimed its item and has not freed the
            // cell yet.
            if seen.key <= self.key(number, FREE) {
                return TakeAnswer::Empty;
            }
            if seen.key == self.key(number, CANCELLED) {
                self.skip(head, seen);
                continue;
            }
            if seen.key != self.key(number, FULL) {
                // Another thread has taken this item meanwhile.
                continue;
            }
            let mut state = head.state;
            if !paid {
                let step = rule.step(state, now, 1);
                if step.verdict != Verdict::Allowed {
                    if let Some(next) = step.next {
                        // A bucket with `init` begins to fill. If the swap fails, another thread's
                        // call has begun it.
                        let _ = self.head.swap(head, SlotPair { key: number, state: next });
                    }
                    return TakeAnswer::At(rule.admits_at(step.next.unwrap_or(state), now, 1));
                }
                state = step.next.unwrap_or(state);
            }
            if self.head.swap(head, SlotPair { key: number + 1, state }).is_err() {
                continue;
            }
            match cell.swap(seen, self.next_lap(number)) {
                Ok(()) => return TakeAnswer::Item(seen.state),
                Err(now) if now.key == self.key(number, CANCELLED) => {
                    let _ = cell.swap(now, self.next_lap(number));
                    paid = true;
                }
                // An offer has freed the cell for this thread.
                Err(_) => return TakeAnswer::Item(seen.state),
            }
        }
    }

    /// The time at which [`ItemRing::take`] would take an item, not before `now`; `None` if the
    /// queue is empty.
    pub(super) fn next_departure(&self, rule: &Rule, now: u64) -> Option<u64> {
        loop {
            let head = self.head.pair();
            let seen = self.cell(head.key).pair();
            if seen.key == self.key(head.key, FULL) {
                return Some(rule.admits_at(head.state, now, 1));
            }
            if seen.key <= self.key(head.key, FREE) {
                return None;
            }
            if seen.key == self.key(head.key, CANCELLED) {
                self.skip(head, seen);
            }
        }
    }

    /// Takes item number `number` out of the queue; `None` if it has left.
    pub(super) fn cancel(&self, number: u64) -> Option<u64> {
        let cell = self.cell(number);
        let seen = cell.pair();
        if seen.key != self.key(number, FULL) {
            return None;
        }
        cell.swap(seen, SlotPair { key: self.key(number, CANCELLED), state: 0 }).ok()?;
        Some(seen.state)
    }

    /// Takes any item, without the policy.
    pub(super) fn drain(&self) -> Option<u64> {
        loop {
            let head = self.head.pair();
            let (cell, number) = (self.cell(head.key), head.key);
            let seen = cell.pair();
            if seen.key <= self.key(number, FREE) {
                return None;
            }
            if self.head.swap(head, SlotPair { key: number + 1, ..head }).is_ok() {
                match cell.swap(seen, self.next_lap(number)) {
                    // The item is cancelled after the swap of `head`, and belongs to the canceller.
                    Err(now) if now.key == self.key(number, CANCELLED) => {
                        let _ = cell.swap(now, self.next_lap(number));
                    }
                    // If the swap failed, an offer has freed the cell for this thread.
                    _ if seen.key == self.key(number, FULL) => return Some(seen.state),
                    _ => {}
                }
            }
        }
    }

    /// Frees the cell of the item one lap before `number` if a thread has claimed that item and has
    /// not freed its cell yet, so that a taker that does not run holds up no offer. Returns whether
    /// it was so. A cancelled item's cell stays, because it tells the taker that it lost.
    fn free_claimed(&self, number: u64, seen: SlotPair) -> bool {
        // `seen` is of an earlier lap, so the number is not of the first.
        let before = number - self.cells.len() as u64;
        let claimed = seen.key == self.key(before, FULL) && self.head.pair().key > before;
        if claimed {
            let _ = self.cell(number).swap(seen, self.next_lap(before));
        }
        claimed
    }

    /// The number of items in the queue. A cancelled item counts as long as an older item is in the
    /// queue. Other threads may change the number at once.
    pub(super) fn len(&self) -> u64 {
        while self.drop_cancelled() {}
        let tail = self.tail.load(Ordering::Acquire);
        tail.saturating_sub(self.head.pair().key)
    }

    /// Removes the oldest item if it was cancelled. Returns whether this thread or another one has
    /// removed it.
    fn drop_cancelled(&self) -> bool {
        let head = self.head.pair();
        let seen = self.cell(head.key).pair();
        let cancelled = seen.key == self.key(head.key, CANCELLED);
        if cancelled {
            self.skip(head, seen);
        }
        cancelled
    }

    /// Moves `head` past a cancelled item, and frees its cell. The policy's state stays, because a
    /// cancelled item costs no permit.
    fn skip(&self, head: SlotPair, seen: SlotPair) {
        if self.head.swap(head, SlotPair { key: head.key + 1, ..head }).is_ok() {
            // Nobody else changes a cancelled cell that is before the head.
            let _ = self.cell(head.key).swap(seen, self.next_lap(head.key));
        }
    }

    /// Moves the tail past an item. If the swap fails, another thread has moved it.
    fn move_tail(&self, number: u64) {
        // Release: a thread that reads the new tail sees the item before it.
        let _ =
            self.tail.compare_exchange(number, number + 1, Ordering::Release, Ordering::Relaxed);
    }

    fn cell(&self, number: u64) -> &Slot {
        let index = number as usize & (self.cells.len() - 1);
        // SAFETY: the number of cells is a power of two, so the mask keeps the index below it.
        unsafe { self.cells.get_unchecked(index) }
    }

    /// The first word of item `number`'s cell in a state.
    fn key(&self, number: u64, state: u64) -> u64 {
        number >> self.bits << 2 | state
    }

    /// The cell of item `number` once that has left: free for the item of the next lap.
    fn next_lap(&self, number: u64) -> SlotPair {
        SlotPair { key: ((number >> self.bits) + 1) << 2 | FREE, state: 0 }
    }
}

#[cfg(not(loom))]
fn cells(length: usize) -> Option<Box<[Slot]>> {
    // SAFETY: zero bytes are a Slot, and are a free cell of lap 0.
    unsafe { crate::sync::zeroed_values(length) }
}

#[cfg(not(loom))]
fn slot(_number: usize) -> Slot {
    Slot::default()
}

#[cfg(loom)]
impl ItemRing {
    /// A ring whose cells and head are read by loads, which may return a value that another thread
    /// has replaced.
    pub(super) fn weak(length: u64) -> Option<ItemRing> {
        let ring = ItemRing::new(length)?;
        let cells = (0..ring.cells.len()).map(|number| slot_read(number, true)).collect();
        let head = CachePadded::new(slot_read(ring.cells.len(), true));
        Some(ItemRing { cells, head, ..ring })
    }
}

#[cfg(loom)]
fn cells(length: usize) -> Option<Box<[Slot]>> {
    Some((0..length).map(slot).collect())
}

#[cfg(loom)]
fn slot(number: usize) -> Slot {
    slot_read(number, false)
}

#[cfg(loom)]
fn slot_read(number: usize, weak: bool) -> Slot {
    use crate::table::memory::slot::Journal;
    Slot::new(number, SlotPair { key: 0, state: 0 }, &alloc::sync::Arc::new(Journal::new(weak)))
}
