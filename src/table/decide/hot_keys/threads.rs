//! The memory of the credit of this process's threads.
//!
//! A table with hot keys has [`THREADS`] blocks in memory of this process, each for one thread. A
//! thread claims a free block in its first decision, by one compare-and-swap of the owner in the
//! block's head, and keeps it as long as the table is open. A thread that ends does not free its
//! block, because no code of the library runs then. The next thread with the same thread pointer
//! takes the block over. That is safe, because the C library reuses a thread pointer only after its
//! thread has ended. A thread that finds no free block decides without credit.
//!
//! *Fork.* A child finds all blocks free and empty, because the system wipes that memory. On a
//! system that does not (Linux before 4.14, other systems) there are no blocks, and no thread has
//! credit.
//!
//! *Signals.* A thread marks its block as in use during a decision. A handler that interrupts the
//! decision finds the mark and decides without credit. If a handler jumps out of a decision, the
//! mark stays, and the thread has no credit any more.

use super::credit::{bytes_of, sets_for, Head, ThreadCredit};
use crate::limiter::thread::{find_or_claim, place, pointer, FREE};
use crate::sync::{AtomicU64, Ordering};
use crate::table::memory::error::TableError;
use crate::table::memory::region::Region;
use core::sync::atomic::compiler_fence;

/// The fewest keys of a thread, if the options ask for any.
const KEYS_LEAST: u32 = 64;
/// The most keys of a thread.
const KEYS_MOST: u32 = 16_384;
/// The number of blocks, a power of two.
const THREADS: usize = 128;
/// The number of blocks that a thread may own or claim.
const PROBES: usize = 8;
/// A bit in an owner beside the thread's pointer, which is aligned: the thread is in a decision.
const IN_USE: u64 = 1;

/// The credit of this process's threads for the keys of one table.
#[derive(Debug)]
pub(crate) struct HotKeys {
    memory: Region,
    /// The number of sets, less one.
    mask: usize,
    /// The bytes from one block to the next.
    stride: usize,
}

impl HotKeys {
    /// Memory for `keys` keys of each thread. `None` for 0, and on a system that does not wipe
    /// memory in children.
    pub(crate) fn new(keys: u32) -> Result<Option<HotKeys>, TableError> {
        if keys == 0 {
            return Ok(None);
        }
        let sets = sets_for(keys.clamp(KEYS_LEAST, KEYS_MOST));
        let stride = bytes_of(sets);
        // The system allocates a page when a thread first uses it.
        let memory = Region::private(THREADS * stride)?;
        let is_wiped = memory.wipe_in_children();
        Ok(is_wiped.then_some(HotKeys { memory, mask: sets - 1, stride }))
    }

    /// Begins the use of the calling thread's credit, which [`HotKeys::leave`] ends. `None`: the
    /// thread has no block.
    #[inline(always)]
    pub(crate) fn enter(&self) -> Option<ThreadCredit<'_>> {
        match self.enter_first() {
            Some(credit) => Some(credit),
            None => self.search(pointer()),
        }
    }

    /// [`HotKeys::enter`], if the thread's block is the first that it probes.
    #[inline(always)]
    pub(crate) fn enter_first(&self) -> Option<ThreadCredit<'_>> {
        let thread = pointer();
        let at = place(thread, THREADS);
        // A combinator would be a call when the compiler optimizes for size.
        if self.owner(at).load(Ordering::Relaxed) != thread {
            return None;
        }
        Some(self.entered(thread, at))
    }

    /// Ends the use of the credit.
    #[inline(always)]
    pub(crate) fn leave(credit: ThreadCredit<'_>) {
        // A handler on this thread that finds the mark removed sees the last change of the credit.
        compiler_fence(Ordering::SeqCst);
        let owner = credit.owner();
        owner.store(owner.load(Ordering::Relaxed) & !IN_USE, Ordering::Relaxed);
    }

    #[inline(always)]
    fn entered(&self, thread: u64, at: usize) -> ThreadCredit<'_> {
        self.owner(at).store(thread | IN_USE, Ordering::Relaxed);
        // A handler on this thread sees the mark before any access to the credit.
        compiler_fence(Ordering::SeqCst);
        // SAFETY: the calling thread owns the block: only it stores its pointer in the owner, and
        // its handlers find the mark.
        unsafe { ThreadCredit::of(self.memory.base().byte_add(at * self.stride), self.mask) }
    }

    /// Finds the thread's block behind the first probe, or claims one.
    #[inline(never)]
    fn search(&self, thread: u64) -> Option<ThreadCredit<'_>> {
        let places = (0..PROBES).map(|n| place(thread, THREADS).wrapping_add(n) % THREADS);
        let is_in_use = |at| self.owner(at).load(Ordering::Relaxed) == thread | IN_USE;
        if thread == FREE || places.clone().any(is_in_use) {
            return None;
        }
        let at = find_or_claim(thread, places, |at| self.owner(at))?;
        Some(self.entered(thread, at))
    }

    /// The owner of the block `at`, which is below [`THREADS`].
    #[inline(always)]
    fn owner(&self, at: usize) -> &AtomicU64 {
        // SAFETY: `at` is the number of a block, and each block begins with a head. Heads are
        // aligned, because the memory is aligned to a page and a block's bytes are a multiple of
        // 64. The owner is atomic.
        unsafe { &(*self.memory.base().as_ptr().add(at * self.stride).cast::<Head>()).owner }
    }
}

const _: () = assert!(THREADS.is_power_of_two() && bytes_of(16) % 64 == 0);

#[cfg(test)]
mod tests;
