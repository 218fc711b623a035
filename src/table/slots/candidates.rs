//! A key's tag, and its candidates: the slots that may hold it.

use crate::table::memory::slot::{find_in, Bucket, Slot, SLOTS, TAG, TAG_BITS};

/// The slots that may hold one key. Loom's models have no spare bucket.
pub(crate) const CANDIDATES: usize = if cfg!(loom) { 2 } else { 3 } * SLOTS;
/// Bits of a hash that the number of a slot's bucket implies.
pub(super) const REST_BITS: u32 = 64 - TAG_BITS;
/// The number of different rests.
#[cfg(not(loom))]
pub(super) const RESTS: u64 = 1 << REST_BITS;

/// The hash with this tag and the rest 0.
pub(crate) const fn hash_of_tag(tag: u64) -> u64 {
    tag << REST_BITS
}

/// A key's buckets, whose slots may hold it.
#[derive(Clone, Copy)]
pub(crate) struct Candidates<'a> {
    pub(crate) first: &'a Bucket,
    pub(crate) second: &'a Bucket,
    #[cfg(not(loom))]
    pub(crate) spare: &'a Bucket,
    /// The tag of the key.
    pub(crate) tag: u64,
}

impl<'a> Candidates<'a> {
    /// The slot whose key word is `key`.
    #[inline(never)]
    pub(crate) fn find(&self, key: u64) -> Option<&'a Slot> {
        if let Some(slot) = find_in(self.first, key) {
            return Some(slot);
        }
        if let Some(slot) = find_in(self.second, key) {
            return Some(slot);
        }
        self.spare().and_then(|spare| find_in(spare, key))
    }

    /// Candidate number `n`, below [`CANDIDATES`]. The order alternates between the first two
    /// buckets, each from its first slot on, so that a key that takes the first empty slot goes to
    /// the emptier bucket.
    #[inline(always)]
    pub(crate) fn slot(&self, n: usize) -> Option<&'a Slot> {
        if n >= 2 * SLOTS {
            return self.spare()?.0.get(n - 2 * SLOTS);
        }
        let bucket = if n & 1 == 0 { self.first } else { self.second };
        bucket.0.get(n >> 1)
    }

    /// The numbers of the candidates, in the order in which the key prefers slots that expire at
    /// the same time. A flood of new keys makes many slots expire at the same time. If all keys
    /// preferred the first slot of a bucket, the flood would evict only the keys there. So each key
    /// begins at another slot. The spare bucket comes last, because it belongs to many more keys.
    pub(crate) fn order(&self) -> impl Iterator<Item = usize> {
        let begin = (self.tag % (2 * SLOTS as u64)) as usize;
        (begin..2 * SLOTS).chain(0..begin).chain(2 * SLOTS..CANDIDATES)
    }

    /// All candidates in their order.
    pub(crate) fn slots(self) -> impl Iterator<Item = &'a Slot> {
        (0..CANDIDATES).filter_map(move |n| self.slot(n))
    }

    /// The words of the keys in the slots that have the key's tag.
    pub(crate) fn tagged(&self) -> impl Iterator<Item = u64> + '_ {
        let is_tagged = |key: &u64| *key >> TAG_BITS != 0 && *key & TAG == self.tag;
        self.slots().map(Slot::key).filter(is_tagged)
    }

    /// The last candidate that an insertion takes. In a table that holds no more keys than its
    /// capacity it is mostly empty.
    #[inline(always)]
    pub(crate) fn last(&self) -> Option<&'a Slot> {
        self.slot(CANDIDATES - 1)
    }

    #[inline(always)]
    fn spare(&self) -> Option<&'a Bucket> {
        #[cfg(not(loom))]
        return Some(self.spare);
        #[cfg(loom)]
        None
    }
}

/// The part of a hash that a slot stores. It is the upper part, because that takes fewer
/// instructions.
#[inline(always)]
pub(crate) fn tag(hash: u64) -> u64 {
    hash >> REST_BITS
}
