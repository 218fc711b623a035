//! The words beside the word that decides: the places of a ring or a log.

use crate::sync::{AtomicU64, Word};

/// Words that belong to one ring or log.
pub(crate) trait SideWords: Copy {
    /// One of them.
    type Place: Word;

    /// Word number `n`.
    fn place(self, n: usize) -> Option<Self::Place>;

    /// How many they are.
    fn count(self) -> usize;

    /// The first word, and the others.
    fn split_first(self) -> Option<(Self::Place, Self)>;
}

/// The words of a limiter, and of a slot whose table has one policy.
impl<'a> SideWords for &'a [AtomicU64] {
    type Place = &'a AtomicU64;

    #[inline(always)]
    fn place(self, n: usize) -> Option<&'a AtomicU64> {
        self.get(n)
    }

    #[inline(always)]
    fn count(self) -> usize {
        self.len()
    }

    #[inline(always)]
    fn split_first(self) -> Option<(&'a AtomicU64, Self)> {
        <[AtomicU64]>::split_first(self)
    }
}
