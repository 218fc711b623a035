//! What the one who asks the store knows of each key. Fixed memory: eight places a set, and a key without a place waits.

use super::ring::{Message, KEY_MOST};
use alloc::boxed::Box;

/// A key that has been asked about, or is to be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) hash: u64,
    pub(super) state: Phase,
    /// Permits admitted without a lease, of which the store has not been told;
    pub(super) debt: u64,
    /// and those of the question that is on its way.
    pub(super) told: u64,
    /// Since when there have been debts of which the store has not been told.
    pub(super) owed_since: u64,
    /// The cost that a lease is waited for with; 0: no lease is wanted.
    pub(super) want: u64,
    /// What was wanted when the question on its way was put: what was said later is not answered by it.
    pub(super) asked: u64,
    /// Whether it is asked for so often as to live on leases.
    pub(super) hot: bool,
    /// How many permits to ask for: as many as are used up in a lease's life.
    pub(super) chunk: u64,
    /// The TAT that the store last told.
    pub(super) hint: u64,
    /// When the last lease came; 0: never.
    pub(super) granted_at: u64,
    /// Permits that were overdrawn since a time.
    pub(super) counted: u64,
    pub(super) counted_since: u64,
    touched: u64,
    length: u32,
    bytes: [u8; KEY_MOST],
}

/// Where a key is on its way to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Vacant,
    Idle,
    Queued,
    Asked,
}

const WAYS: usize = 8;

/// All of them.
#[derive(Debug)]
pub(super) struct Keys(Box<[Entry]>);

impl Entry {
    const VACANT: Entry = Entry {
        hash: 0,
        state: Phase::Vacant,
        debt: 0,
        told: 0,
        owed_since: 0,
        want: 0,
        asked: 0,
        hot: false,
        chunk: 1,
        hint: 0,
        granted_at: 0,
        counted: 0,
        counted_since: 0,
        touched: 0,
        length: 0,
        bytes: [0; KEY_MOST],
    };

    /// The key's bytes as the store has them.
    pub(super) fn key(&self) -> &[u8] {
        self.bytes.get(..self.length as usize).unwrap_or_default()
    }

    /// Whether nothing would be lost with it but its history.
    fn is_done(&self) -> bool {
        match self.state {
            Phase::Vacant => true,
            Phase::Idle => self.debt == 0 && self.want == 0,
            Phase::Queued | Phase::Asked => false,
        }
    }
}

impl Keys {
    /// With room for at least `keys`; `None` if there is no memory.
    pub(super) fn new(keys: usize) -> Option<Keys> {
        let len = keys.max(WAYS).checked_next_power_of_two()?;
        crate::sync::filled(len, Entry::VACANT).map(Keys)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn get(&self, n: usize) -> Option<&Entry> {
        self.0.get(n)
    }

    pub(super) fn get_mut(&mut self, n: usize) -> Option<&mut Entry> {
        self.0.get_mut(n)
    }

    /// The number of the message's key, which is given the place of one that is done if it has none.
    pub(super) fn place(&mut self, message: &Message, now: u64) -> Option<usize> {
        let first = (message.hash as usize & self.0.len().wrapping_sub(1)) & !(WAYS - 1);
        let set = self.0.get(first..first.checked_add(WAYS)?)?;
        let known = set.iter().position(|entry| entry.state != Phase::Vacant && entry.hash == message.hash);
        let way = match known {
            Some(way) => way,
            None => {
                let done = set.iter().enumerate().filter(|(_, entry)| entry.is_done());
                let (way, _) = done.min_by_key(|(_, entry)| entry.touched)?;
                let entry = self.0.get_mut(first + way)?;
                *entry = Entry {
                    hash: message.hash,
                    state: Phase::Idle,
                    length: message.length as u32,
                    bytes: message.bytes,
                    ..Entry::VACANT
                };
                way
            }
        };
        let number = first + way;
        self.0.get_mut(number)?.touched = now;
        Some(number)
    }

    /// Permits of which the store has not been told.
    #[cfg(test)]
    pub(super) fn owed(&self) -> u64 {
        self.0.iter().fold(0, |sum: u64, entry| sum.saturating_add(entry.debt).saturating_add(entry.told))
    }
}

/// Numbers of keys, first in first out. It has room for all of them.
#[derive(Debug)]
pub(super) struct Fifo {
    numbers: Box<[(u32, u64)]>,
    head: usize,
    len: usize,
}

impl Fifo {
    pub(super) fn new(room: usize) -> Option<Fifo> {
        let numbers = crate::sync::filled(room.checked_next_power_of_two()?, (0, 0))?;
        Some(Fifo { numbers, head: 0, len: 0 })
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_full(&self) -> bool {
        self.len == self.numbers.len()
    }

    /// Puts a number and a time at the end; not if it is full.
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
        match self.len {
            0 => None,
            _ => self.numbers.get(self.head).copied(),
        }
    }

    pub(super) fn pop(&mut self) -> Option<(u32, u64)> {
        let front = self.front()?;
        self.head = self.head.wrapping_add(1) & self.numbers.len().wrapping_sub(1);
        self.len -= 1;
        Some(front)
    }
}
