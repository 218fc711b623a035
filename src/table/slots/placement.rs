//! A key's three buckets, and the order of their slots.
//!
//! The table knows a key only by the 64-bit hash of its bytes and policy. A slot stores the upper
//! 56 bits of the hash (the *tag*). The number of the slot's bucket implies the other 8 bits (the
//! *rest*): the buckets of one tag are different for each rest. So the table confuses two keys only
//! if all 64 bits of their hashes agree.
//!
//! ```text
//! hash = tag 56 : rest 8
//! first  = place(tag) ^ rest           in the first part of the table
//! second = place'(tag) ^ rest          in the second part, which is as large
//! spare  = place"(tag) + rest          in the third part, of at least 256 buckets, modulo their number
//! ```
//!
//! Keys with the same tag have the same places, so two of them share a bucket of one part only if
//! their rests agree. The parts share no bucket. The lengths of the first two parts are multiples
//! of 256, so a number that is below such a length stays below it when its lowest eight bits
//! change.
//!
//! A new key takes a slot in the emptier of its first two buckets, and the spare bucket comes last.
//! With two buckets alone, one key in 90 would find no free slot in a table that is four fifths
//! full. The spare buckets, a fifteenth of the table and therefore mostly in the cache, reduce that
//! to one key in some thousands. In a new table, 98 of 100 keys are in their first two buckets;
//! after slots have been reused many times, 91 of 100 are.

use super::candidates::{tag, Candidates, RESTS, REST_BITS};
use crate::table::memory::sizes::BUCKETS_AT;
use crate::table::memory::slot::{Bucket, Slot, SLOTS_A_BUCKET, TAG, TAG_BITS};
use crate::table::memory::{BucketParts, Memory};
use core::ptr::NonNull;

/// The addresses of a table's buckets. It keeps the addresses of the first and the second part,
/// which saves each request four instructions. It must not outlive its memory.
#[derive(Debug)]
pub(crate) struct Slots {
    first: NonNull<Bucket>,
    second: NonNull<Bucket>,
    placement: Placement,
    buckets: u64,
}

// SAFETY: buckets consist of atomics, and the memory is the process's.
unsafe impl Send for Slots {}
// SAFETY: as above.
unsafe impl Sync for Slots {}

impl Slots {
    /// # Safety
    /// `memory` lives as long as the result.
    pub(crate) unsafe fn of(memory: &Memory) -> Slots {
        let buckets = memory.fixed.buckets;
        let placement = Placement::new(buckets);
        // SAFETY: `Header::fixed` checked that the memory has this many buckets. They are aligned,
        // because the region and BUCKETS_AT are aligned to 64 bytes.
        let first: NonNull<Bucket> = unsafe { memory.region().base().byte_add(BUCKETS_AT).cast() };
        // SAFETY: as above; the second part is in the memory, too.
        let second = unsafe { first.add(placement.second_part() as usize) };
        Slots { first, second, placement, buckets }
    }

    /// The number of slots.
    pub(crate) fn count(&self) -> u64 {
        self.buckets * SLOTS_A_BUCKET.get()
    }

    /// Slot number `n`, and the number of its bucket.
    pub(crate) fn get(&self, n: u64) -> Option<(&Slot, u64)> {
        if n >= self.count() {
            return None;
        }
        let (bucket, place) = (n / SLOTS_A_BUCKET, n % SLOTS_A_BUCKET);
        // SAFETY: n is below the number of slots, so its bucket is below the number of buckets.
        let slot = unsafe { self.bucket(bucket) }.0.get(place as usize)?;
        Some((slot, bucket))
    }

    /// The number of one of this table's slots.
    #[inline(always)]
    pub(crate) fn number(&self, slot: &Slot) -> u64 {
        let from = self.first.as_ptr() as usize;
        ((core::ptr::from_ref(slot) as usize).wrapping_sub(from) / core::mem::size_of::<Slot>())
            as u64
    }

    /// The first two buckets of a hash.
    #[inline(always)]
    pub(crate) fn first_two(&self, hash: u64) -> (&Bucket, &Bucket) {
        let (first, second) = self.placement.in_parts(hash);
        // SAFETY: `in_parts` returns numbers below the length of a part.
        unsafe {
            (self.first.add(first as usize).as_ref(), self.second.add(second as usize).as_ref())
        }
    }

    /// All buckets of a hash.
    pub(crate) fn candidates(&self, hash: u64) -> Candidates<'_> {
        let (first, second, spare) = self.placement.buckets(hash);
        // SAFETY: `Placement::buckets` returns numbers below the number of buckets.
        let (first, second, spare) =
            unsafe { (self.bucket(first), self.bucket(second), self.bucket(spare)) };
        Candidates { first, second, spare, tag: tag(hash) }
    }

    /// [`Slots::candidates`] for a key word and the key's second bucket.
    #[inline(always)]
    pub(crate) fn candidates_of_key<'a>(&'a self, key: u64, second: &'a Bucket) -> Candidates<'a> {
        let hash = self.hash_of_key(key, second);
        let (first, spare) = (self.placement.first(hash), self.placement.spare(hash));
        // SAFETY: both are numbers below the number of buckets.
        let (first, spare) = unsafe { (self.bucket(first), self.bucket(spare)) };
        Candidates { first, second, spare, tag: tag(hash) }
    }

    /// The spare bucket of a hash.
    #[inline(always)]
    pub(crate) fn spare(&self, hash: u64) -> &Bucket {
        // SAFETY: `Placement::spare` returns a number below the number of buckets.
        unsafe { self.bucket(self.placement.spare(hash)) }
    }

    /// The hash of a key, from its key word and its second bucket. Few requests need the hash, and
    /// keeping it would cost every request a register.
    #[inline(always)]
    pub(crate) fn hash_of_key(&self, key: u64, second: &Bucket) -> u64 {
        let from = self.first.as_ptr() as usize;
        let bytes = (core::ptr::from_ref(second) as usize).wrapping_sub(from);
        self.placement.hash_in_second(key & TAG, (bytes / core::mem::size_of::<Bucket>()) as u64)
    }

    /// The hash of the key word `key` in `slot`. `None` in damaged memory.
    pub(crate) fn hash_in_slot(&self, key: u64, slot: &Slot) -> Option<u64> {
        self.hash_in_bucket(key, self.number(slot) / SLOTS_A_BUCKET)
    }

    /// The hash of the key word `key` in bucket number `bucket`. `None` in damaged memory.
    pub(crate) fn hash_in_bucket(&self, key: u64, bucket: u64) -> Option<u64> {
        self.placement.hash_of(key & TAG, bucket)
    }

    /// # Safety
    /// `n` is below the number of buckets.
    #[inline(always)]
    unsafe fn bucket(&self, n: u64) -> &Bucket {
        // SAFETY: the memory outlives `self` and has all buckets, and the caller promises that `n`
        // is below their number.
        unsafe { self.first.add(n as usize).as_ref() }
    }
}

/// Maps hashes to the numbers of buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Placement {
    parts: BucketParts,
}

impl Placement {
    /// The placement in a table of `buckets`, which is in `BUCKETS_LEAST..=BUCKETS_MOST`.
    pub(crate) fn new(buckets: u64) -> Placement {
        Placement { parts: BucketParts::new(buckets) }
    }

    /// The numbers of a hash's buckets: first, second, spare.
    #[inline(always)]
    pub(crate) fn buckets(&self, hash: u64) -> (u64, u64, u64) {
        let (first, second) = self.in_parts(hash);
        (first, self.parts.half + second, self.spare(hash))
    }

    /// The number of a hash's first bucket.
    #[inline(always)]
    pub(crate) fn first(&self, hash: u64) -> u64 {
        self.first_place(tag(hash)) ^ rest(hash)
    }

    /// The number of a hash's spare bucket.
    #[inline(always)]
    pub(crate) fn spare(&self, hash: u64) -> u64 {
        2 * self.parts.half + wrap(self.spare_place(tag(hash)) + rest(hash), self.parts.spares)
    }

    /// A hash's first two buckets, each counted from the beginning of its part.
    #[inline(always)]
    pub(crate) fn in_parts(&self, hash: u64) -> (u64, u64) {
        let (tag, rest) = (tag(hash), rest(hash));
        (self.first_place(tag) ^ rest, self.second_place(tag) ^ rest)
    }

    /// The number of the second part's first bucket.
    pub(crate) fn second_part(&self) -> u64 {
        self.parts.half
    }

    /// The hash whose key, with `tag`, is in bucket number `bucket`: the inverse of
    /// [`Placement::buckets`]. `None` in damaged memory.
    pub(crate) fn hash_of(&self, tag: u64, bucket: u64) -> Option<u64> {
        let BucketParts { half, spares } = self.parts;
        let back =
            |from: u64, by: u64, parts: u64| if from >= by { from - by } else { from + parts - by };
        let hash = |rest: u64| (rest < RESTS).then_some(tag << REST_BITS | rest);
        match (bucket.checked_sub(half), bucket.checked_sub(2 * half)) {
            (_, Some(spare)) => hash(back(spare, self.spare_place(tag), spares)),
            (Some(second), _) => hash(second ^ self.second_place(tag)),
            _ => hash(bucket ^ self.first_place(tag)),
        }
    }

    /// [`Placement::hash_of`] for a bucket of the second part, in fewer instructions.
    #[inline(always)]
    pub(crate) fn hash_in_second(&self, tag: u64, bucket: u64) -> u64 {
        // The second part begins at a multiple of the number of rests.
        tag << REST_BITS | (bucket ^ self.second_place(tag)) & (RESTS - 1)
    }

    /// The first place depends on the tag's upper 32 bits.
    #[inline(always)]
    fn first_place(&self, tag: u64) -> u64 {
        scale((tag >> (TAG_BITS - 32)) as u32, self.parts.half)
    }

    /// The second place depends on the tag's lower 32 bits. The two places share eight bits, the
    /// lowest of the one and the highest of the other: in tables of less than 2^24 buckets the
    /// places are independent, and in larger ones nearly so.
    #[inline(always)]
    fn second_place(&self, tag: u64) -> u64 {
        scale(tag as u32, self.parts.half)
    }

    /// The spare place depends on all bits of the tag.
    #[inline(always)]
    fn spare_place(&self, tag: u64) -> u64 {
        scale((mixed(tag ^ tag >> 28) >> 32) as u32, self.parts.spares)
    }
}

/// The part of a hash that the number of a slot's bucket says.
#[inline(always)]
fn rest(hash: u64) -> u64 {
    hash & (RESTS - 1)
}

/// A number whose upper half depends on all bits of `tag`: the multiplier is odd and near 2^64 /
/// phi.
#[inline(always)]
fn mixed(tag: u64) -> u64 {
    tag.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Maps `n` of 2^32 to one of `parts`.
#[inline(always)]
fn scale(n: u32, parts: u64) -> u64 {
    (u64::from(n) * parts) >> 32
}

/// `n`, which is below twice `buckets`, modulo `buckets`. It is computed by a mask, because
/// compilers make a branch of a choice, and this one cannot be predicted.
#[inline(always)]
fn wrap(n: u64, buckets: u64) -> u64 {
    let over = n.wrapping_sub(buckets);
    over.wrapping_add(buckets & ((over as i64) >> 63) as u64)
}

#[cfg(test)]
mod tests;
