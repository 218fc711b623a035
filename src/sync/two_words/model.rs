//! The two words of loom's models.

use crate::sync::{AtomicU64, Ordering, Word};
use alloc::vec::Vec;
use std::sync::Mutex;

/// Two words of loom's models. loom has no 16-byte atomics, and the words need all their bits. So
/// one atomic holds the number of a pair in a list that only grows, and equal pairs have one
/// number. The list's mutex is std's, so that loom does not count a look at it as a step.
#[derive(Debug)]
pub(crate) struct TwoWords {
    number: AtomicU64,
    pairs: Mutex<Vec<(u64, u64)>>,
}

impl Default for TwoWords {
    fn default() -> TwoWords {
        TwoWords { number: AtomicU64::new(0), pairs: Mutex::new(alloc::vec![(0, 0)]) }
    }
}

impl TwoWords {
    /// The first word, which callers may swap by itself.
    pub(crate) fn first(&self) -> &TwoWords {
        self
    }

    /// Loads the second word.
    pub(crate) fn load_second(&self, order: Ordering) -> u64 {
        self.pair(self.number.load(order)).1
    }

    /// Both words at one instant.
    pub(crate) fn both(&self) -> (u64, u64) {
        self.pair(self.number.load(Ordering::Acquire))
    }

    /// Stores `new` if the words are `old`; otherwise returns what they are.
    pub(crate) fn swap(&self, old: (u64, u64), new: (u64, u64)) -> Result<(), (u64, u64)> {
        let (from, to) = (self.number_of(old), self.number_of(new));
        let swapped = self.number.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst);
        swapped.map(drop).map_err(|seen| self.pair(seen))
    }

    /// Every model's processor has the swap.
    pub(crate) fn swaps() -> bool {
        true
    }

    fn pair(&self, number: u64) -> (u64, u64) {
        self.list()[number as usize]
    }

    fn number_of(&self, pair: (u64, u64)) -> u64 {
        let mut pairs = self.list();
        let known = pairs.iter().position(|known| *known == pair);
        known.unwrap_or_else(|| {
            pairs.push(pair);
            pairs.len() - 1
        }) as u64
    }

    fn list(&self) -> std::sync::MutexGuard<'_, Vec<(u64, u64)>> {
        self.pairs.lock().expect("no thread panics while it holds the list")
    }
}

impl Word for TwoWords {
    fn load(&self, order: Ordering) -> u64 {
        self.pair(self.number.load(order)).0
    }

    fn exchange(
        &self,
        old: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        let mut seen = self.number.load(failure);
        loop {
            let (first, second) = self.pair(seen);
            if first != old {
                return Err(first);
            }
            match self.number.compare_exchange(
                seen,
                self.number_of((new, second)),
                success,
                failure,
            ) {
                Ok(_) => return Ok(old),
                // The second word may be another, and the first the same.
                Err(other) => seen = other,
            }
        }
    }
}
