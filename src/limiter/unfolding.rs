//! Rings and logs of many policies, one after another, in the words beside one slot.
//!
//! In a table whose slots have room, a key may come under a ring or a log from any other policy,
//! and its slot may have held keys of other policies. So the words beside a slot are used by many
//! rings and logs in turn, each with its own meaning of a word. A *stay* is the time from the swap
//! that brings a key under its version into the slot until the next swap that changes the key word
//! or folds the state.
//!
//! A state word has one bit more than the ring's or log's word:
//!
//! - **Folded** (0): the word alone is the state. It says how many permits are used, and when they
//!   were. A stay begins so. One swap of the slot inserts a key, converts it, or resets it, as in
//!   any other slot.
//! - **Unfolded** (1): the words beside the slot count, too.
//!
//! The first cell beside a slot has the number of the present stay, its *epoch*, and the mark of
//! the folded state with which that stay began. All other cells have the epoch in which they were
//! written, and a word. **A word of another epoch reads as 0.** So all words of a ring or log are 0
//! when a stay begins, and no call clears them. A call that needs the words first does this:
//!
//! 1. The slot is folded, and the first cell has another mark. Swap the next epoch and this state's
//!    mark in.
//! 2. The slot is folded, and the first cell has its mark. Swap the unfolded word in.
//! 3. The slot is unfolded: the first cell has its epoch.
//!
//! Any caller may take any step, so a killed caller leaves no work that others wait for.
//!
//! **No folded pair comes back.** Each swap that begins a stay makes the slot expire later than any
//! pair before it did. (A new key that takes an expired slot expires after now. All others are
//! made so, by `States::outlasts`.) The same key word and state word expire at the same time, as
//! long as the version's number names one policy. Three facts follow:
//!
//! - *The epoch changes only while the slot is folded.* Step 1 swaps the first cell from what the
//!   caller read before it saw the slot folded. If the slot has been unfolded since, a caller took
//!   step 2 after the first cell had this state's mark, so it has changed, and the swap fails.
//! - *A stay has an epoch of its own.* Its mark differs from that of every earlier stay, so step 2
//!   comes after a step 1 of the same stay. (Marks are hashes: two are equal once in 2^64.)
//! - *No unfolded pair comes back either*, because admissions make a slot expire no earlier. So a
//!   swap of the slot succeeds only in the stay in which its caller read the word.
//!
//! [`Unfolded::load`] reads the slot's word first and the epoch second. If the epoch is still the
//! caller's, the slot held that word in the caller's stay.
//!
//! A *late* caller is one whose stay has ended. It cannot change a cell of a later stay: a cell is
//! swapped together with its epoch, and the late caller expects an older one. It reads the cells of
//! a later stay as 0, so it may decide wrongly. If it admits, its swap of the slot fails. If it
//! refuses or peeks, it calls [`Unfolded::is_current`] before it answers, and tries again.

use super::side_words::SideWords;
use super::state_word::{SlotWords, StateWord, TRIES};
use crate::sync::{Ordering, TwoWords, Word};

/// The bit of a state word that says that the words beside the slot count, too.
pub(crate) const UNFOLDED: u64 = 1;

/// The cells of one stay.
#[derive(Clone, Copy)]
pub(crate) struct EpochCells<'a> {
    cells: &'a [TwoWords],
    epoch: u64,
}

/// One of them.
pub(crate) struct EpochCell<'a> {
    words: &'a TwoWords,
    epoch: u64,
}

impl<'a> SideWords for EpochCells<'a> {
    type Place = EpochCell<'a>;

    #[inline]
    fn place(self, n: usize) -> Option<EpochCell<'a>> {
        self.cells.get(n).map(|words| EpochCell { words, epoch: self.epoch })
    }

    #[inline]
    fn count(self) -> usize {
        self.cells.len()
    }

    #[inline]
    fn split_first(self) -> Option<(EpochCell<'a>, Self)> {
        let (first, cells) = self.cells.split_first()?;
        Some((EpochCell { words: first, epoch: self.epoch }, EpochCells { cells, ..self }))
    }
}

impl EpochCell<'_> {
    fn word_of(&self, (epoch, word): (u64, u64)) -> u64 {
        match epoch == self.epoch {
            true => word,
            false => 0,
        }
    }
}

/// Both words are loaded and swapped at one instant, with the strongest order that a caller asks
/// for.
impl Word for EpochCell<'_> {
    #[inline]
    fn load(&self, _: Ordering) -> u64 {
        self.word_of(self.words.both())
    }

    fn exchange(&self, old: u64, new: u64, _: Ordering, _: Ordering) -> Result<u64, u64> {
        let found = self.words.both();
        let seen = self.word_of(found);
        // A cell of a later epoch belongs to a later stay.
        if seen != old || found.0 > self.epoch {
            return Err(seen);
        }
        match self.words.swap(found, (self.epoch, new)) {
            Ok(()) => Ok(old),
            Err(other) => Err(self.word_of(other)),
        }
    }
}

/// An unfolded slot, as one caller of its key sees it.
pub(crate) struct Unfolded<'a, S> {
    slot: &'a S,
    key: u64,
    first: &'a TwoWords,
    epoch: u64,
}

impl<'a, S: SlotWords> Unfolded<'a, S> {
    /// Unfolds the slot that holds `key`, if it is folded. `mark` makes the mark of a folded pair.
    /// Also returns the folded word if this call has unfolded it. `None` if the slot no longer
    /// holds the key.
    pub(crate) fn open(
        slot: &'a S,
        key: u64,
        first: &'a TwoWords,
        mark: impl Fn((u64, u64)) -> u64,
    ) -> Option<(Unfolded<'a, S>, Option<u64>)> {
        for _ in 0..TRIES {
            let found = first.both();
            let (owner, state) = slot.both();
            if owner != key {
                return None;
            }
            let opened = Unfolded { slot, key, first, epoch: found.0 };
            if state & UNFOLDED != 0 {
                // The epoch was read before the slot, and may be that of an earlier stay.
                if opened.is_current() {
                    return Some((opened, None));
                }
                continue;
            }
            let own = mark((key, state));
            if found.1 != own {
                // A caller that fails has read an old epoch, and reads the new one next.
                let _ = first.swap(found, (found.0.wrapping_add(1), own));
            } else if slot.swap((key, state), (key, state | UNFOLDED)).is_ok() {
                return Some((opened, Some(state >> 1)));
            }
        }
        None
    }

    /// The words of this stay, in `cells`.
    pub(crate) fn places(&self, cells: &'a [TwoWords]) -> EpochCells<'a> {
        EpochCells { cells, epoch: self.epoch }
    }

    /// Whether the stay had not ended when this call began.
    pub(crate) fn is_current(&self) -> bool {
        self.first.both().0 == self.epoch
    }

    fn mine(&self, (key, state): (u64, u64)) -> Option<u64> {
        (key == self.key && state & UNFOLDED != 0).then_some(state >> 1)
    }
}

impl<S: SlotWords> StateWord for Unfolded<'_, S> {
    fn load(&self) -> Option<u64> {
        let word = self.mine(self.slot.both())?;
        // After the word, so that a word of a later stay comes with a later epoch.
        self.is_current().then_some(word)
    }

    fn load_relaxed(&self) -> Option<u64> {
        self.mine(self.slot.both())
    }

    fn swap(&self, from: u64, to: u64) -> Result<(), Option<u64>> {
        let unfolded = |word: u64| (self.key, word << 1 | UNFOLDED);
        self.slot.swap(unfolded(from), unfolded(to)).map_err(|seen| self.mine(seen))
    }
}

#[cfg(all(test, loom))]
mod models;
