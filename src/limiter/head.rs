//! The word that decides, wherever it is kept.
//!
//! The ring and the log are protocols around one word: an admission is a swap of it, and whatever they
//! keep beside it (starts, entries) is written in its name. In a limiter that word is an atomic of its own.
//! In a table it is half of a slot, whose other half is the key, and both change by one compare-and-swap of
//! 16 bytes.
//!
//! # A slot outlives its key
//!
//! What a key leaves behind is never cleared. **The ring, or the log, lives on, and the key is a label on
//! it**: the newcomer that takes an expired slot makes an ordinary admission in the ring or log that it
//! finds, by the swap (old key, word) → (own key, next word), and the running count goes on. So nothing has
//! to be proved again: to the protocol there is one history of admissions, under changing labels, and a
//! thread of the old key is one of the threads that sleep while others are admitted. Only three things have
//! to be added.
//!
//! - *Nobody is charged for another.* A swap fails if the label has changed, whatever the word was, even for
//!   a caller that has read its key before the change and the word after it. Whose swap fails for that reason
//!   is told so, and has taken nothing.
//! - *A newcomer finds nothing in its way.* The word alone says when its state has expired (`expires_at` of
//!   [`crate::algorithm::sliding_window::SlidingWindow`] and of
//!   [`crate::algorithm::sliding_log::KeyedLog`]), with the times of all permits in it, those of a killed
//!   thread too. From then on the answers are those of a fresh state.
//! - *A word never comes back.* It holds a segment, or the time, which never fall, and within one of them
//!   fewer permits than its count can tell apart. (Logs that count rejected requests: see
//!   [`super::log`].)

use crate::decision::{Decision, Reason, Verdict};
use crate::sync::{AtomicU64, Ordering};

/// How often a loop over shared words goes round. It goes round again only because another caller has changed what it read,
/// which does not happen many times in a row; damaged memory, or a process that writes there without end, could keep it going
/// for ever. After so many rounds the answer is `None`, and nothing has been taken.
pub(crate) const TRIES: u32 = 16;

/// The answer of a state whose memory is its owner's alone: there, `None` means that others were faster [`TRIES`] times.
#[inline(always)]
pub(crate) fn insist<T>(ask: impl Fn() -> Option<T>) -> T {
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
    }
}

/// The word that decides, for one caller.
pub(crate) trait Head {
    /// The word, read with Acquire. `None`: it is not this caller's any more.
    fn load(&self) -> Option<u64>;

    /// The same read with Relaxed, for a second look: ordered after whatever was read with Acquire before it.
    fn glance(&self) -> Option<u64>;

    /// Swaps the word if it is still `from` and still this caller's. Release: whoever reads `to` sees what
    /// was written before. Acquire: what `from` stood for is seen. `Err` with the word seen, or with `None`
    /// if it is not this caller's any more.
    fn swap(&self, from: u64, to: u64) -> Result<(), Option<u64>>;

    /// Whether a swap from this word would take it from another key.
    #[inline(always)]
    fn takes_over(&self, word: u64) -> bool {
        let _ = word;
        false
    }
}

/// A word of its own is nobody else's.
impl Head for AtomicU64 {
    #[inline(always)]
    fn load(&self) -> Option<u64> {
        Some(AtomicU64::load(self, Ordering::Acquire))
    }

    #[inline(always)]
    fn glance(&self) -> Option<u64> {
        Some(AtomicU64::load(self, Ordering::Relaxed))
    }

    // Failure Relaxed: whoever tries again loads it again.
    #[inline(always)]
    fn swap(&self, from: u64, to: u64) -> Result<(), Option<u64>> {
        self.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).map(drop).map_err(Some)
    }
}

/// A key word and a state word that change together.
#[allow(dead_code)] // until a table has such slots
pub(crate) trait Slot {
    /// The key word.
    fn key(&self, order: Ordering) -> u64;

    /// The state word.
    fn state(&self, order: Ordering) -> u64;

    /// Swaps both if both are as in `from` (key, state), with AcqRel; otherwise says what they are.
    fn swap(&self, from: (u64, u64), to: (u64, u64)) -> Result<(), (u64, u64)>;
}

/// A slot as its key's callers have it: found with `key` in it.
#[allow(dead_code)] // until a table has slots
pub(crate) struct Owner<'a, S> {
    pub(crate) slot: &'a S,
    pub(crate) key: u64,
}

impl<S: Slot> Head for Owner<'_, S> {
    /// The key is looked at after the word, and it was the caller's before: so the word is, too, unless the
    /// slot has gone to another key and come back in between. Then the word has moved on, and the swap fails.
    #[inline(always)]
    fn load(&self) -> Option<u64> {
        let state = self.slot.state(Ordering::Acquire);
        // Relaxed: ordered after the state by its Acquire.
        (self.slot.key(Ordering::Relaxed) == self.key).then_some(state)
    }

    /// The two halves may be of two moments. That is enough: a word that has not moved has not changed
    /// hands, since to change hands is an admission.
    #[inline(always)]
    fn glance(&self) -> Option<u64> {
        let state = self.slot.state(Ordering::Relaxed);
        (self.slot.key(Ordering::Relaxed) == self.key).then_some(state)
    }

    #[inline(always)]
    fn swap(&self, from: u64, to: u64) -> Result<(), Option<u64>> {
        let swapped = self.slot.swap((self.key, from), (self.key, to));
        swapped.map_err(|(key, state)| (key == self.key).then_some(state))
    }
}

/// A slot as a newcomer has it that has chosen it with `found` (key, state) in it: its first swap puts its
/// own key there, and from then on it is the slot's owner. So it is if another caller of its key has been
/// faster. Any other change takes the slot from it, an admission of the key that it would have replaced too:
/// the state that was to be replaced is not there any more.
#[allow(dead_code)] // until a table has slots
pub(crate) struct Newcomer<'a, S> {
    pub(crate) slot: &'a S,
    pub(crate) found: (u64, u64),
    pub(crate) key: u64,
}

#[allow(dead_code)] // until a table has slots
impl<S: Slot> Newcomer<'_, S> {
    #[inline(always)]
    fn mine(&self, (key, state): (u64, u64)) -> Option<u64> {
        (key == self.key || (key, state) == self.found).then_some(state)
    }
}

impl<S: Slot> Head for Newcomer<'_, S> {
    #[inline(always)]
    fn load(&self) -> Option<u64> {
        let state = self.slot.state(Ordering::Acquire);
        self.mine((self.slot.key(Ordering::Relaxed), state))
    }

    #[inline(always)]
    fn glance(&self) -> Option<u64> {
        let state = self.slot.state(Ordering::Relaxed);
        self.mine((self.slot.key(Ordering::Relaxed), state))
    }

    #[inline(always)]
    fn swap(&self, from: u64, to: u64) -> Result<(), Option<u64>> {
        // The word that was found is never there again once it has moved.
        let key = if from == self.found.1 { self.found.0 } else { self.key };
        self.slot.swap((key, from), (self.key, to)).map_err(|seen| self.mine(seen))
    }

    #[inline(always)]
    fn takes_over(&self, word: u64) -> bool {
        word == self.found.1
    }
}

/// What to tell a caller whose slot has gone to another key: it had expired, so the state is as good as fresh.
pub(crate) const fn given_up(verdict: Verdict, limit: u64) -> Decision {
    Decision { verdict, reason: Reason::of(verdict), remaining: limit, retry_after: 0, reset_after: 0 }
}

#[cfg(test)]
mod fake;
#[cfg(all(test, loom))]
mod models;
#[cfg(all(test, not(loom)))]
mod tests;
