//! The word that decides, and its owner.
//!
//! The ring and the log are protocols around one word. An admission is a swap of that word, and the
//! words beside it (starts, entries) belong to admissions that the word holds. In a limiter the
//! word is an atomic. In a table it is half of a slot. The other half is the key, and one
//! compare-and-swap of 16 bytes changes both.
//!
//! # A slot outlives its key
//!
//! No code clears the words of a former key. **The ring, or the log, lives on, and the key is a
//! label on it.** A new key that takes an expired slot makes an ordinary admission in the ring or
//! log that it finds, by the swap (old key, word) → (own key, next word), and the running count
//! goes on. So the proof of a limiter's ring or log holds here, too: the words have one history of
//! admissions under changing labels, and a thread of the old key is like a thread that sleeps while
//! others are admitted. Three properties have to be shown.
//!
//! - *No key is charged for another.* A swap fails if the key has changed, whatever the word was.
//!   That holds for a caller, too, that read its key before the change and the word after it. Such
//!   a caller's swap returns that the slot is another key's, and has taken nothing.
//! - *A new key finds a fresh state.* The word alone says when its state has expired (`expires_at`
//!   of [`crate::algorithm::sliding_window::SlidingWindow`] and of
//!   [`crate::algorithm::sliding_log::KeyedLog`]). That time covers all permits in the word, those
//!   of a killed thread included. From then on the answers are those of a fresh state.
//! - *A word never comes back.* It holds a segment, or a time, and those never decrease. Within one
//!   of them there are fewer permits than its count can tell apart. (Logs that count rejected
//!   requests: see [`super::log`].)

use crate::decision::{Decision, Reason, Verdict};
use crate::sync::{AtomicU64, Ordering};
use core::cell::Cell;

/// The rounds of a loop over shared words. A loop repeats only because another caller has changed
/// what it read, which does not happen many times in a row. Damaged memory, or a process that
/// writes there without end, could keep it going for ever. So after this many rounds the answer is
/// `None`, and nothing has been taken.
pub(crate) const TRIES: u32 = 16;

/// Repeats `ask` until it answers. For states in memory that no other process writes: there `None`
/// only means that other threads were faster [`TRIES`] times.
#[inline(always)]
pub(crate) fn retry_until<T>(ask: impl Fn() -> Option<T>) -> T {
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
    }
}

/// The word that decides, as one caller sees it.
pub(crate) trait StateWord {
    /// Reads the word with Acquire. `None`: it is no longer this caller's.
    fn load(&self) -> Option<u64>;

    /// Reads the word again, with Relaxed. The read is ordered after all reads that the caller made
    /// with Acquire before.
    fn load_relaxed(&self) -> Option<u64>;

    /// Swaps the word if it is still `from` and still this caller's. Release: a thread that reads
    /// `to` sees what was written before the swap. Acquire: the caller sees what was written before
    /// `from`. `Err` has the word that was there, or `None` if it is no longer this caller's.
    fn swap(&self, from: u64, to: u64) -> Result<(), Option<u64>>;

    /// Whether a swap from this word would take the slot from another key.
    #[inline(always)]
    fn takes_over(&self, word: u64) -> bool {
        let _ = word;
        false
    }
}

/// A limiter's word has no key, so it is always the caller's.
impl StateWord for AtomicU64 {
    #[inline(always)]
    fn load(&self) -> Option<u64> {
        Some(AtomicU64::load(self, Ordering::Acquire))
    }

    #[inline(always)]
    fn load_relaxed(&self) -> Option<u64> {
        Some(AtomicU64::load(self, Ordering::Relaxed))
    }

    // Relaxed on failure, because a caller that tries again loads the word again.
    #[inline(always)]
    fn swap(&self, from: u64, to: u64) -> Result<(), Option<u64>> {
        self.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).map(drop).map_err(Some)
    }
}

/// A key word and a state word that change together.
pub(crate) trait SlotWords {
    /// The key word.
    fn key(&self, order: Ordering) -> u64;

    /// The state word.
    fn state(&self, order: Ordering) -> u64;

    /// Both words at one instant, with Acquire.
    fn both(&self) -> (u64, u64);

    /// Swaps both with AcqRel if both are as in `from` (key, state). `Err` has the pair that was
    /// there.
    fn swap(&self, from: (u64, u64), to: (u64, u64)) -> Result<(), (u64, u64)>;
}

/// A slot as the caller of one key sees it.
///
/// A caller that found its own `key` in the slot owns the slot until another key's first swap. A
/// new key found another key there: its first swap puts its own key in the slot, and from then on
/// it owns the slot. It also owns the slot if another caller of its key has been faster. Any other
/// change takes the slot from a new key, even an admission of the key that it would have replaced,
/// because the state to be replaced is gone.
pub(crate) struct Owner<'a, S> {
    pub(crate) slot: &'a S,
    pub(crate) key: u64,
    /// The (key, state) that a new key found. `None` for a caller that found its own key.
    found: Option<(u64, u64)>,
    /// Whether a new key has put its key in the slot.
    labelled: Cell<bool>,
}

impl<'a, S: SlotWords> Owner<'a, S> {
    /// A slot with `key` in it.
    #[inline(always)]
    pub(crate) fn new(slot: &'a S, key: u64) -> Self {
        Owner { slot, key, found: None, labelled: Cell::new(false) }
    }

    /// A slot with `found` (key, state) in it, for `key`.
    #[inline(always)]
    pub(crate) fn of_new_key(slot: &'a S, found: (u64, u64), key: u64) -> Self {
        Owner { slot, key, found: Some(found), labelled: Cell::new(false) }
    }

    /// Whether a new key has put its key in the slot.
    pub(crate) fn labelled(&self) -> bool {
        self.labelled.get()
    }

    /// Puts the caller's new key in the slot and leaves the state. `None` if the slot no longer
    /// holds the pair that the caller found.
    pub(crate) fn relabel(&self) -> Option<()> {
        let (_, state) = self.found?;
        self.swap(state, state).ok()
    }

    #[inline(always)]
    fn mine(&self, pair: (u64, u64)) -> Option<u64> {
        (pair.0 == self.key || Some(pair) == self.found).then_some(pair.1)
    }
}

impl<S: SlotWords> StateWord for Owner<'_, S> {
    /// Reads the key after the word. If the key is the caller's, the word is the caller's, too. The
    /// exception is a slot that has gone to another key and come back in between. Then the word has
    /// moved on, and the swap fails. No model notices a weaker ordering: both words are one atomic
    /// in loom, and what the Acquire shows of the side words, models of a limiter's word notice.
    #[inline(always)]
    fn load(&self) -> Option<u64> {
        let state = self.slot.state(Ordering::Acquire);
        // Relaxed: ordered after the state by its Acquire.
        self.mine((self.slot.key(Ordering::Relaxed), state))
    }

    /// The two halves may be read at different moments. That is enough: a slot changes hands by an
    /// admission only, and an admission moves the word.
    #[inline(always)]
    fn load_relaxed(&self) -> Option<u64> {
        let state = self.slot.state(Ordering::Relaxed);
        self.mine((self.slot.key(Ordering::Relaxed), state))
    }

    #[inline(always)]
    fn swap(&self, from: u64, to: u64) -> Result<(), Option<u64>> {
        // A word never comes back, so the word found is still beside the key found.
        let found = self.found.filter(|&(_, state)| state == from);
        let key = found.map_or(self.key, |(key, _)| key);
        self.slot.swap((key, from), (self.key, to)).map_err(|seen| self.mine(seen))?;
        if found.is_some() {
            self.labelled.set(true);
        }
        Ok(())
    }

    #[inline(always)]
    fn takes_over(&self, word: u64) -> bool {
        self.found.is_some_and(|(_, state)| state == word)
    }
}

/// The answer for an admitted caller whose slot another key has taken since. The slot had expired
/// by then, so the state is as good as fresh.
pub(crate) const fn given_up(verdict: Verdict, limit: u64) -> Decision {
    Decision {
        verdict,
        reason: Reason::of(verdict),
        remaining: limit,
        retry_after: 0,
        reset_after: 0,
        bound: 0,
    }
}

#[cfg(test)]
mod fake;
#[cfg(all(test, loom))]
mod models;
#[cfg(all(test, not(loom)))]
mod tests;
