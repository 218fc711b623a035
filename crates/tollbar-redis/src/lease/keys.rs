//! The driver's record of each key, in memory of a fixed size: sets of eight entries. If all
//! entries of its set are busy, a new key waits.

use super::ring::{KeyMessage, KEY_MOST};
use alloc::boxed::Box;
use tollbar::internal::sync::zeroed_values;

/// A key about which the driver has asked or will ask. Times are nanoseconds of the node's clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) hash: u64,
    pub(super) state: Phase,
    /// Permits that the node admitted without a lease and that no question has reported to the
    /// store yet.
    pub(super) debt: u64,
    /// Permits of debt in the question that is in flight.
    pub(super) sent_debt: u64,
    /// Of `debt`, the permits of the key's right.
    pub(super) right: u64,
    /// Of `sent_debt`, the permits of the key's right.
    pub(super) sent_right: u64,
    /// Requests that wait, each for at most `cost` permits, and are in no question yet.
    pub(super) waiting: u64,
    /// Requests that wait for the answer of the question in flight.
    pub(super) sent_waiting: u64,
    /// The largest cost of the requests that wait. 0: none waits.
    pub(super) cost: u64,
    /// The `cost` of the question in flight.
    pub(super) sent_cost: u64,
    /// Since when the key has had a debt that the store has not confirmed.
    pub(super) owed_since: u64,
    /// The largest cost that waits for a lease; 0: no lease is wanted.
    pub(super) want: u64,
    /// The `want` of the question in flight. If it is 0, the question asked for no lease, and its
    /// answer says nothing about `want`.
    pub(super) asked: u64,
    /// The permits to ask for: about as many as the key spends in half a lease's life
    /// (`Entry::adapt`).
    pub(super) chunk: u64,
    /// The life of the last lease in nanoseconds.
    pub(super) life: u64,
    /// The TAT of the store's last answer, in microseconds of the store's time.
    pub(super) hint: u64,
    /// The version of the terms by which `hint` counts.
    pub(super) hint_version: u64,
    /// When the last lease came. 0: none has come, or `chunk` has been adapted to it.
    pub(super) granted_at: u64,
    /// Debts, and questions for requests that waited, since `counted_since`.
    pub(super) counted: u64,
    /// When the current count began.
    pub(super) counted_since: u64,
    /// When the driver last read a message about the key. A new key replaces the entry whose time
    /// is earliest.
    touched: u64,
    /// The next key that waits for its question, if one follows.
    next: u32,
    length: u32,
    bytes: [u8; KEY_MOST],
}

/// What the driver does with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Phase {
    /// The entry has no key.
    Vacant = 0,
    /// The driver has nothing to ask about the key.
    Idle,
    /// The key waits for its question.
    Queued,
    /// The key's question is in flight.
    Asked,
}

const WAYS: usize = 8;

/// All entries, in sets of [`WAYS`].
#[derive(Debug)]
pub(super) struct Keys {
    entries: Box<[Entry]>,
    /// The keys that wait for their questions are a list: the first, the last, and their number.
    first: u32,
    last: u32,
    waiting: usize,
}

impl Entry {
    /// All bytes are zero.
    const VACANT: Entry = Entry {
        hash: 0,
        state: Phase::Vacant,
        debt: 0,
        sent_debt: 0,
        right: 0,
        sent_right: 0,
        waiting: 0,
        sent_waiting: 0,
        cost: 0,
        sent_cost: 0,
        owed_since: 0,
        want: 0,
        asked: 0,
        chunk: 0,
        life: 0,
        hint: 0,
        hint_version: 0,
        granted_at: 0,
        counted: 0,
        counted_since: 0,
        touched: 0,
        next: 0,
        length: 0,
        bytes: [0; KEY_MOST],
    };

    /// The key's name in the store.
    pub(super) fn key(&self) -> &[u8] {
        self.bytes.get(..self.length as usize).unwrap_or_default()
    }

    /// Whether there is something to ask the store.
    pub(super) fn has_more(&self) -> bool {
        self.debt != 0 || self.want != 0 || self.cost != 0
    }

    /// Whether a new key may replace the entry. Then only its chunk, hint and counts are lost.
    fn is_done(&self) -> bool {
        match self.state {
            Phase::Vacant => true,
            Phase::Idle => !self.has_more(),
            Phase::Queued | Phase::Asked => false,
        }
    }
}

impl Keys {
    /// Room for at least `keys` keys; `None` if there is no memory.
    pub(super) fn new(keys: usize) -> Option<Keys> {
        let len = keys.max(WAYS).checked_next_power_of_two()?;
        // SAFETY: an Entry of zero bytes is VACANT.
        let entries = unsafe { zeroed_values(len) }?;
        Some(Keys { entries, first: 0, last: 0, waiting: 0 })
    }

    /// How many keys wait for their questions.
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Makes a key wait that does not.
    pub(super) fn enqueue(&mut self, number: u32) {
        let Some(entry) = self.entries.get_mut(number as usize) else { return };
        entry.state = Phase::Queued;
        match self.entries.get_mut(self.last as usize) {
            Some(last) if self.waiting != 0 => last.next = number,
            _ => self.first = number,
        }
        self.last = number;
        self.waiting += 1;
    }

    /// The key that has waited longest. It waits no more.
    pub(super) fn dequeue(&mut self) -> Option<u32> {
        self.waiting = self.waiting.checked_sub(1)?;
        let number = self.first;
        self.first = self.entries.get(number as usize)?.next;
        Some(number)
    }

    pub(super) fn get(&self, n: usize) -> Option<&Entry> {
        self.entries.get(n)
    }

    pub(super) fn get_mut(&mut self, n: usize) -> Option<&mut Entry> {
        self.entries.get_mut(n)
    }

    /// Whether the store has not confirmed a debt of the key.
    pub(super) fn is_owed(&self, hash: u64) -> bool {
        self.set(hash).and_then(|first| self.entries.get(first..first + WAYS)).is_some_and(|set| {
            set.iter().any(|entry| entry.hash == hash && entry.debt.max(entry.sent_debt) != 0)
        })
    }

    /// The index of the message's key. A new key replaces the entry of its set that is done and was
    /// touched longest ago. `None`: no entry of the set is done.
    pub(super) fn place(&mut self, message: &KeyMessage, now: u64) -> Option<usize> {
        let first = self.set(message.hash)?;
        let set = self.entries.get(first..first + WAYS)?;
        let known =
            set.iter().position(|entry| entry.state != Phase::Vacant && entry.hash == message.hash);
        let way = match known {
            Some(way) => way,
            None => {
                let done = set.iter().enumerate().filter(|(_, entry)| entry.is_done());
                let (way, _) = done.min_by_key(|(_, entry)| entry.touched)?;
                let entry = self.entries.get_mut(first + way)?;
                *entry = Entry {
                    hash: message.hash,
                    state: Phase::Idle,
                    length: message.length as u32,
                    bytes: message.bytes,
                    chunk: 1,
                    ..Entry::VACANT
                };
                way
            }
        };
        let number = first + way;
        self.entries.get_mut(number)?.touched = now;
        Some(number)
    }

    /// The index of the first entry of the key's set.
    fn set(&self, hash: u64) -> Option<usize> {
        let first = (hash as usize & self.entries.len().wrapping_sub(1)) & !(WAYS - 1);
        first.checked_add(WAYS).map(|_| first)
    }

    /// Permits of debt that the store has not confirmed.
    #[cfg(test)]
    pub(super) fn owed(&self) -> u64 {
        self.entries.iter().fold(0, |sum: u64, entry| {
            sum.saturating_add(entry.debt).saturating_add(entry.sent_debt)
        })
    }
}

/// A queue of key indices, each with a time in nanoseconds.
#[derive(Debug)]
pub(super) struct Fifo {
    numbers: Box<[(u32, u64)]>,
    head: usize,
    len: usize,
}

impl Fifo {
    pub(super) fn new(room: usize) -> Option<Fifo> {
        // SAFETY: two integers of zero bytes are 0.
        let numbers = unsafe { zeroed_values(room.checked_next_power_of_two()?) }?;
        Some(Fifo { numbers, head: 0, len: 0 })
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_full(&self) -> bool {
        self.len == self.numbers.len()
    }

    /// Appends a number and a time. A full queue drops them.
    pub(super) fn push(&mut self, number: u32, time: u64) {
        let at = self.head.wrapping_add(self.len) & self.numbers.len().wrapping_sub(1);
        if self.is_full() {
            return;
        }
        if let Some(place) = self.numbers.get_mut(at) {
            *place = (number, time);
            self.len += 1;
        }
    }

    pub(super) fn front(&self) -> Option<(u32, u64)> {
        self.get(0)
    }

    /// The nth from the front.
    pub(super) fn get(&self, n: usize) -> Option<(u32, u64)> {
        let at = self.head.wrapping_add(n) & self.numbers.len().wrapping_sub(1);
        if n < self.len {
            self.numbers.get(at).copied()
        } else {
            None
        }
    }

    /// Sets bits in the time of the number that was pushed last.
    pub(super) fn mark_last(&mut self, bits: u64) {
        let at = self.head.wrapping_add(self.len.wrapping_sub(1));
        if let Some(last) = self.numbers.get_mut(at & self.numbers.len().wrapping_sub(1)) {
            last.1 |= bits;
        }
    }

    /// Puts one number in place of another.
    pub(super) fn rename(&mut self, from: u32, to: u32) {
        for number in self.numbers.iter_mut().map(|(number, _)| number) {
            *number = if *number == from { to } else { *number };
        }
    }

    pub(super) fn clear(&mut self) {
        self.len = 0;
    }

    pub(super) fn pop(&mut self) -> Option<(u32, u64)> {
        let front = self.front()?;
        self.head = self.head.wrapping_add(1) & self.numbers.len().wrapping_sub(1);
        self.len -= 1;
        Some(front)
    }
}
