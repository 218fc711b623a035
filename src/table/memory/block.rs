//! A table's block of memory, and references to its parts.

use super::counters::lines::OwnerLine;
use super::counters::thread_lines::ThreadLines;
use super::error::TableError;
use super::layout::*;
use super::receipts::Receipts;
use super::refusals::Refusals;
use super::region::{is_process_gone, Region};
use super::returns::{ReturnTurn, TURNS};
use super::sizes::{override_groups, BUCKETS_AT};
use super::slot::Slot;
use super::special::GROUP;
use super::Sizes;
use crate::sync::{AtomicU64, Ordering, TwoWords};
use core::mem::size_of;

/// A table's block of memory with a valid header, and this process's map from threads to the
/// counters in it.
#[derive(Debug)]
pub(crate) struct Memory {
    region: Region,
    pub(crate) fixed: Fixed,
    /// Maps this process's threads to the counters that they own.
    pub(crate) thread_lines: ThreadLines,
}

impl Memory {
    /// The table in `region`, whose header has been inspected or written.
    pub(crate) fn over(region: Region) -> Result<Memory, TableError> {
        if !Slot::supported() {
            return Err(TableError::Unsupported);
        }
        // SAFETY: the functions that make a region check that it has at least the header's page,
        // and align it to 64 bytes.
        let header: &Header = unsafe { region.base().cast().as_ref() };
        let fixed = header.fixed()?;
        if region.len() as u64 != fixed.bytes {
            return Err(TableError::Truncated);
        }
        Ok(Memory { region, fixed, thread_lines: ThreadLines::new()? })
    }

    #[inline(always)]
    pub(crate) fn region(&self) -> &Region {
        &self.region
    }

    #[inline(always)]
    pub(crate) fn header(&self) -> &Header {
        // SAFETY: `over` checked the header's magic, checksum and length; regions are aligned to 64
        // bytes. Other processes can write this memory, so every field of a header is atomic.
        unsafe { self.region.base().cast().as_ref() }
    }

    /// The stamp of a policy's current version, or 0 if the table has no such policy.
    #[inline(always)]
    pub(crate) fn current_stamp(&self, policy: u32) -> u64 {
        // Acquire: a writer publishes a version's record before it stores the stamp here. No model
        // notices a weaker ordering, because loom's tables have a function of their own.
        self.header().current.get(policy as usize).map_or(0, |stamp| stamp.load(Ordering::Acquire))
    }

    #[inline(always)]
    pub(crate) fn has_policy(&self, policy: u32) -> bool {
        self.header()
            .current
            .get(policy as usize)
            .is_some_and(|stamp| stamp.load(Ordering::Relaxed) != 0)
    }

    /// Notes that a call books permits under a policy for a later time. The caller must call it
    /// before it swaps the slot.
    pub(crate) fn note_booking(&self, policy: u32) {
        note(&self.header().booked, policy);
    }

    /// Whether a call has ever booked permits under a policy for a later time than its own. A
    /// booking sets its bit before it swaps the slot. So a caller that reads a slot first (an
    /// Acquire load) and then the bit sees the bit of every booking in that slot's state.
    pub(crate) fn has_bookings(&self, policy: u32) -> bool {
        is_noted(&self.header().booked, policy)
    }

    /// Notes that a thread takes credit of a key under a policy. The caller must call it before it
    /// swaps the slot.
    pub(crate) fn note_credit(&self, policy: u32) {
        note(&self.header().lent, policy);
    }

    /// The turn of a return to a key with this tag.
    pub(crate) fn turn(&self, tag: u64) -> Option<ReturnTurn<'_>> {
        let me = self.thread_lines.process();
        // A process of another PID namespace, or of an unknown one, may look ended and run.
        let has_ended = |holder: u64| {
            holder >> 32 != 0 && holder >> 32 == me >> 32 && is_process_gone(holder as u32)
        };
        let rest = || {
            // SAFETY: sched_yield has no preconditions.
            let _ = unsafe { libc::sched_yield() };
        };
        ReturnTurn::take(self.header().returns.get(tag as usize % TURNS)?, me, has_ended, rest)
    }

    /// Whether a thread has ever taken credit of a key under a policy. A caller that reads a slot
    /// first sees the bit of every credit in its state, as in [`Memory::has_bookings`].
    pub(crate) fn has_credit(&self, policy: u32) -> bool {
        is_noted(&self.header().lent, policy)
    }

    #[inline(always)]
    pub(crate) fn records(&self) -> &[Record; VERSIONS] {
        // SAFETY: as `header`; `Sizes::new` makes every table longer than `BUCKETS_AT`.
        unsafe { self.region.base().byte_add(VERSIONS_AT).cast().as_ref() }
    }

    #[inline(always)]
    pub(crate) fn shards(&self) -> &[Shard; SHARDS] {
        // SAFETY: as `records`.
        unsafe { self.region.base().byte_add(COUNTERS_AT).cast().as_ref() }
    }

    #[inline(always)]
    pub(crate) fn lines(&self) -> &[OwnerLine; LINES] {
        // SAFETY: as `records`.
        unsafe { self.region.base().byte_add(LINES_AT).cast().as_ref() }
    }

    #[inline(always)]
    pub(crate) fn unowned_decisions(&self) -> &[Decisions; PARTS] {
        // SAFETY: as `records`.
        unsafe { self.region.base().byte_add(DECISIONS_AT).cast().as_ref() }
    }

    #[inline(always)]
    pub(crate) fn exempt_hashes(&self) -> &[AtomicU64; EXEMPT] {
        // SAFETY: as `records`.
        unsafe { self.region.base().byte_add(EXEMPT_AT).cast().as_ref() }
    }

    /// The places of overrides.
    pub(crate) fn overrides(&self) -> &[Slot] {
        let places = override_groups(self.fixed.overrides) as usize * GROUP;
        let at = self.fixed.bytes as usize - places * size_of::<Slot>();
        // SAFETY: the memory ends with so many places (`Header::fixed` has checked it), at a
        // multiple of 64 bytes; they are atomic.
        unsafe {
            core::slice::from_raw_parts(self.region.base().byte_add(at).cast().as_ptr(), places)
        }
    }

    #[inline]
    pub(crate) fn receipts(&self) -> &Receipts {
        // SAFETY: as `records`.
        unsafe { self.region.base().byte_add(RECEIPTS_AT).cast().as_ref() }
    }

    pub(crate) fn refusals(&self) -> &Refusals {
        // SAFETY: as `records`.
        unsafe { self.region.base().byte_add(REFUSALS_AT).cast().as_ref() }
    }

    /// The side words of slot number `slot`, which is below the number of slots.
    pub(crate) fn side_words(&self, slot: u64) -> &[AtomicU64] {
        let words = self.fixed.side as usize;
        let at = self.sizes().side_at() as usize + slot as usize * words * 8;
        debug_assert!(slot < self.sizes().slots());
        // SAFETY: `Header::fixed` checked that the memory has `words` side words behind the buckets
        // for each slot, and `slot` is below the number of slots. The words are aligned to 8, and
        // every process uses them only as atomics.
        unsafe {
            core::slice::from_raw_parts(self.region.base().byte_add(at).cast().as_ptr(), words)
        }
    }

    /// The cells of a slot of this table with room. None in a table without room.
    pub(crate) fn cells(&self, slot: &Slot) -> &[TwoWords] {
        let words = self.fixed.side as usize;
        let from = self.region.base().as_ptr() as usize + BUCKETS_AT;
        let number = (core::ptr::from_ref(slot) as usize).wrapping_sub(from) / size_of::<Slot>();
        if !self.fixed.has_room() || number as u64 >= self.sizes().slots() {
            return &[];
        }
        let at = self.sizes().side_at() as usize + number * words * 8;
        // SAFETY: as `side_words`. A slot's cells begin at a multiple of 16 bytes, because the
        // first slot's do and the number of words is even. Every process uses them only as pairs.
        unsafe {
            core::slice::from_raw_parts(self.region.base().byte_add(at).cast().as_ptr(), words / 2)
        }
    }

    pub(crate) fn sizes(&self) -> Sizes {
        Sizes { buckets: self.fixed.buckets, bytes: self.fixed.bytes }
    }
}

/// Sets a policy's bit. Relaxed: the caller's swap of the slot follows and is SeqCst, so a thread
/// that reads the swapped slot sees the bit. The load avoids a write to a cache line that all calls
/// read.
fn note(bits: &[AtomicU64; POLICIES_MOST / 64], policy: u32) {
    if let Some(words) = bits.get(policy as usize / 64) {
        let bit = 1 << (policy % 64);
        if words.load(Ordering::Relaxed) & bit == 0 {
            words.fetch_or(bit, Ordering::Relaxed);
        }
    }
}

fn is_noted(bits: &[AtomicU64; POLICIES_MOST / 64], policy: u32) -> bool {
    bits.get(policy as usize / 64)
        .is_some_and(|words| words.load(Ordering::Relaxed) >> (policy % 64) & 1 != 0)
}
