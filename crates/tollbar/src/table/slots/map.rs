//! References to a table's buckets.

use super::placement::{tag, Candidates, Placement, TAG};
use crate::table::memory::layout::BUCKETS_AT;
use crate::table::memory::slot::{Bucket, Slot, SLOTS_A_BUCKET};
use crate::table::memory::Memory;
use core::ptr::NonNull;

/// The addresses of a table's buckets. It keeps the addresses of the first and the second part, which saves each request four instructions.
/// It must not outlive its memory.
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
        // SAFETY: `Header::fixed` checked that the memory has this many buckets. They are aligned, because the region and BUCKETS_AT are
        // aligned to 64 bytes.
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
        ((core::ptr::from_ref(slot) as usize).wrapping_sub(from) / core::mem::size_of::<Slot>()) as u64
    }

    /// The first two buckets of a hash.
    #[inline(always)]
    pub(crate) fn first_two(&self, hash: u64) -> (&Bucket, &Bucket) {
        let (first, second) = self.placement.in_parts(hash);
        // SAFETY: `in_parts` returns numbers below the length of a part.
        unsafe { (self.first.add(first as usize).as_ref(), self.second.add(second as usize).as_ref()) }
    }

    /// All buckets of a hash.
    pub(crate) fn candidates(&self, hash: u64) -> Candidates<'_> {
        let (first, second, spare) = self.placement.buckets(hash);
        // SAFETY: `Placement::buckets` returns numbers below the number of buckets.
        let (first, second, spare) = unsafe { (self.bucket(first), self.bucket(second), self.bucket(spare)) };
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

    /// The hash of a key, from its key word and its second bucket. Few requests need the hash, and keeping it would cost every request a
    /// register.
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
        // SAFETY: the memory outlives `self` and has all buckets, and the caller promises that `n` is below their number.
        unsafe { self.first.add(n as usize).as_ref() }
    }
}
