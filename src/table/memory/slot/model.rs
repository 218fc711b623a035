//! The slot of loom's models.

use super::{Slot, SlotPair};
use crate::sync::{AtomicU64, Ordering};

/// The slot of loom's models. loom has no 16-byte atomics, so a small key and a small state share
/// one of 8 bytes.
impl Slot {
    /// Slot `number` of a model. It writes its changes to `journal`.
    pub fn new(number: usize, pair: SlotPair, journal: &alloc::sync::Arc<Journal>) -> Slot {
        Slot { both: AtomicU64::new(pair.packed()), number, journal: journal.clone() }
    }

    /// The key word.
    pub fn key(&self) -> u64 {
        self.pair().key
    }

    /// The state word.
    pub fn state(&self) -> u64 {
        self.pair().state
    }

    /// Both words at one instant.
    pub fn pair(&self) -> SlotPair {
        SlotPair::unpacked(match self.journal.weak {
            // A load may return a value that has been replaced.
            true => self.both.load(Ordering::Acquire),
            false => self.both.fetch_add(0, Ordering::AcqRel),
        })
    }

    /// Stores `new` if the slot holds `old`; otherwise returns what it holds.
    pub fn swap(&self, old: SlotPair, new: SlotPair) -> Result<(), SlotPair> {
        // A call whose key's version was freed while it slept makes a state that never expires. It
        // does not fit, and its swap must fail.
        let (old_word, fits) = (old.packed(), new.fits());
        let new_word = if fits { new.packed() } else { old_word };
        self.both
            .compare_exchange(old_word, new_word, Ordering::SeqCst, Ordering::SeqCst)
            .map_err(SlotPair::unpacked)?;
        assert!(fits, "too large for a model: {new:?}");
        self.journal.write(Change {
            slot: self.number,
            thread: loom::thread::current().id(),
            old,
            new,
        });
        Ok(())
    }
}

/// The packed word: version 8 bits, tag 8, state 48.
impl SlotPair {
    fn packed(self) -> u64 {
        let (version, tag) = (self.key >> 56, self.key << 8 >> 8);
        assert!(self.fits(), "too large for a model: {self:?}");
        version << 56 | tag << 48 | self.state
    }

    fn fits(self) -> bool {
        self.key << 8 >> 16 == 0 && self.state >> 48 == 0
    }

    fn unpacked(both: u64) -> SlotPair {
        SlotPair { key: both >> 56 << 56 | (both >> 48 & 0xff), state: both & ((1 << 48) - 1) }
    }
}

/// The changes of a model's slots, in their order. The mutex is std's and not loom's, so that loom
/// does not count a write to the journal as a step.
#[derive(Debug, Default)]
pub struct Journal {
    changes: std::sync::Mutex<alloc::vec::Vec<Change>>,
    /// True: a read is a load, as on a weakly ordered processor. False: a read is a
    /// read-modify-write, which has one order with all swaps. loom tries every order of
    /// read-modify-writes, but not every order of loads.
    weak: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    pub(crate) slot: usize,
    pub(crate) thread: loom::thread::ThreadId,
    pub(crate) old: SlotPair,
    pub(crate) new: SlotPair,
}

impl Journal {
    /// An empty journal; `weak`: its slots are read by loads.
    pub fn new(weak: bool) -> Journal {
        Journal { weak, ..Journal::default() }
    }

    fn write(&self, change: Change) {
        if let Ok(mut changes) = self.changes.lock() {
            changes.push(change);
        }
    }

    pub(crate) fn changes(&self) -> alloc::vec::Vec<Change> {
        self.changes.lock().map_or_else(|_| alloc::vec::Vec::new(), |changes| changes.clone())
    }

    pub(crate) fn len(&self) -> usize {
        self.changes.lock().map_or(0, |changes| changes.len())
    }
}
