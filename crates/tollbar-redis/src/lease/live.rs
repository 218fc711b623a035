//! The terms in force, in memory that a node's processes share.

use super::terms::Terms;
use tollbar::internal::sync::{fence, AtomicU64, Ordering};

#[cfg(all(test, loom))]
mod models;

/// The terms in force, and a node's right now. Only the client that asks writes them.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Live {
    terms: Copies<WORDS>,
    /// A node's right now: [`Terms::overdraft`], or what it was before [`Terms::since`].
    right: AtomicU64,
}

/// The words of [`Terms`].
const WORDS: usize = 15;
/// The places of the terms that callers read alone.
const MOST: usize = 6;
const LIFE: usize = 7;
/// The most tries of a reader. A try fails if the writer has stored twice during it.
const TRIES: u32 = 4;

/// Words that change together, in two copies.
///
/// The writer fills the copy that is not in force, and then puts it in force. A writer that is
/// killed on its way leaves the other copy as it was. No reader waits for the writer.
#[repr(C)]
#[derive(Debug)]
struct Copies<const N: usize> {
    /// How often the words were stored. The last bit is the copy in force.
    stored: AtomicU64,
    words: [[AtomicU64; N]; 2],
}

impl<const N: usize> Copies<N> {
    /// Puts the words in force. One writer at a time.
    fn store(&self, words: [u64; N]) {
        let stored = self.stored.load(Ordering::Relaxed).wrapping_add(1);
        // Release fence: a reader that loads one of the new words below also sees the count of the
        // store before, by which the copy that it reads was no longer in force.
        fence(Ordering::Release);
        for (place, word) in self.copy(stored).iter().zip(words) {
            place.store(word, Ordering::Relaxed);
        }
        // Release: a reader of this count reads the words of this copy.
        self.stored.store(stored, Ordering::Release);
    }

    /// The words in force, all of one store. `None`: the writer was faster in [`TRIES`] tries.
    fn load(&self) -> Option<[u64; N]> {
        (0..TRIES).find_map(|_| {
            // Acquire: see `store`.
            let stored = self.stored.load(Ordering::Acquire);
            let mut words = [0; N];
            for (word, place) in words.iter_mut().zip(self.copy(stored)) {
                *word = place.load(Ordering::Relaxed);
            }
            // Acquire fence: see the fence of `store`.
            fence(Ordering::Acquire);
            match self.stored.load(Ordering::Relaxed) == stored {
                true => Some(words),
                false => None,
            }
        })
    }

    /// One of the words in force, or of the next store.
    fn word(&self, n: usize) -> u64 {
        // Acquire: the count comes before its words.
        let stored = self.stored.load(Ordering::Acquire);
        self.copy(stored).get(n).map_or(0, |word| word.load(Ordering::Relaxed))
    }

    fn copy(&self, stored: u64) -> &[AtomicU64; N] {
        let [even, odd] = &self.words;
        if stored & 1 == 0 {
            even
        } else {
            odd
        }
    }
}

impl Live {
    pub(super) fn store(&self, terms: &Terms) {
        // Relaxed, here and below: the right is one number, which publishes no other memory. It
        // comes first, because the former right holds until `since`.
        self.right.store(terms.overdraft_before, Ordering::Relaxed);
        self.terms.store([
            terms.version,
            terms.num,
            terms.den,
            terms.burst,
            terms.cap,
            terms.debt_cap,
            terms.most,
            terms.life,
            terms.overdraft,
            terms.nodes,
            terms.on_loss,
            terms.flags,
            terms.overdraft_before,
            terms.since,
            terms.fallback,
        ]);
    }

    /// The terms in force; `None` if the writer did not let this call read them.
    pub(super) fn load(&self) -> Option<Terms> {
        let mut words = self.terms.load()?.into_iter();
        let mut next = || words.next().unwrap_or(0);
        Some(Terms {
            version: next(),
            num: next(),
            den: next(),
            burst: next(),
            cap: next(),
            debt_cap: next(),
            most: next(),
            life: next(),
            overdraft: next(),
            nodes: next(),
            on_loss: next(),
            flags: next(),
            overdraft_before: next(),
            since: next(),
            fallback: next(),
        })
    }

    /// The data's time has come to `now`: from [`Terms::since`] on the whole right holds.
    pub(super) fn advance(&self, now: u64) {
        if let Some(terms) = self.load().filter(|terms| now >= terms.since) {
            self.right.store(terms.overdraft, Ordering::Relaxed);
        }
    }

    pub(super) fn right(&self) -> u64 {
        self.right.load(Ordering::Relaxed)
    }

    pub(super) fn most(&self) -> u64 {
        self.terms.word(MOST)
    }

    pub(super) fn life(&self) -> u64 {
        self.terms.word(LIFE)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::lease::Options;

    #[test]
    fn terms_and_back() {
        // SAFETY: the words are atomic numbers, for which all zeroes are valid; a node's memory
        // begins so.
        let live: Live = unsafe { core::mem::zeroed() };
        let terms = |text: &str| {
            let policy = text.parse().expect("a policy");
            Terms::new(&policy, &Options::new(2)).expect("terms")
        };
        for (version, text) in [(0, "100/s burst 50"), (1, "7/min burst 30"), (2, "1000/day")] {
            let terms = Terms { version, since: 9, overdraft_before: 3, ..terms(text) };
            live.store(&terms);
            assert_eq!(live.load(), Some(terms));
            assert_eq!((live.most(), live.life(), live.right()), (terms.most, terms.life, 3));
            live.advance(8);
            assert_eq!(live.right(), 3);
            live.advance(9);
            assert_eq!(live.right(), terms.overdraft);
        }
    }

    /// A writer that was killed in the middle of a store leaves the terms in force whole.
    #[test]
    fn a_killed_writer_leaves_the_former_terms() {
        let copies: Copies<2> = Copies {
            stored: AtomicU64::new(4),
            words: [[7, 7], [5, 5]].map(|words| words.map(AtomicU64::new)),
        };
        copies.copy(5)[0].store(9, Ordering::Relaxed);
        assert_eq!((copies.load(), copies.word(1)), (Some([7, 7]), 7));
        copies.store([9, 9]);
        assert_eq!(copies.load(), Some([9, 9]));
    }
}
