//! The memory in which this process's threads have their credit.
//!
//! A table with hot keys has [`THREADS`] blocks in memory of its own, each for one thread. A thread claims a free block by one
//! compare-and-swap of its head's owner, in its first decision, and keeps it as long as the table is open. No code runs when a thread ends: its
//! block goes to the next thread with its thread pointer, and the C library gives the memory at that address to a new thread only after
//! the old one has ended. A thread that finds no free block decides without credit.
//!
//! *Fork.* A child finds all blocks free and empty, because the system wipes that memory. Where the system cannot promise it (Linux before
//! 4.14, other systems) there are no blocks, and no thread has credit.
//!
//! *Signals.* A thread marks its block as in use during a decision. A handler that has interrupted one finds the mark and decides without
//! credit. If a handler jumps out of a decision, the mark stays, and the thread has no credit any more.

use super::credit::{bytes_of, sets_for, Head, ThreadCredit};
use crate::limiter::thread::pointer;
use crate::sync::{AtomicU64, Ordering};
use crate::table::memory::error::TableError;
use crate::table::memory::region::Region;
use core::sync::atomic::compiler_fence;

/// The least and the most keys of a thread, of any number but 0.
const KEYS_LEAST: u32 = 64;
const KEYS_MOST: u32 = 16_384;
/// A power of two.
const THREADS: usize = 128;
/// Blocks that a thread looks at.
const PROBES: usize = 8;
const FREE: u64 = 0;
/// With a thread's pointer, which is aligned: the thread is in a decision.
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
    /// Memory for `keys` keys of each thread. `None` for 0, and on a system that does not wipe memory in children.
    pub(crate) fn new(keys: u32) -> Result<Option<HotKeys>, TableError> {
        if keys == 0 {
            return Ok(None);
        }
        let sets = sets_for(keys.clamp(KEYS_LEAST, KEYS_MOST));
        let stride = bytes_of(sets);
        // The system adds a page only when a thread uses it.
        let memory = Region::private(THREADS * stride)?;
        let is_wiped = memory.wipe_in_children();
        Ok(is_wiped.then_some(HotKeys { memory, mask: sets - 1, stride }))
    }

    /// The calling thread's credit, until [`HotKeys::leave`]. `None`: the thread has none.
    #[inline(always)]
    pub(crate) fn enter(&self) -> Option<ThreadCredit<'_>> {
        match self.enter_first() {
            Some(credit) => Some(credit),
            None => self.search(pointer()),
        }
    }

    /// [`HotKeys::enter`] if the block is the first that the thread looks at.
    #[inline(always)]
    pub(crate) fn enter_first(&self) -> Option<ThreadCredit<'_>> {
        let thread = pointer();
        let at = place(thread);
        // Without a combinator, which would be a call in code that is compiled for size.
        if self.owner(at).load(Ordering::Relaxed) != thread {
            return None;
        }
        Some(self.entered(thread, at))
    }

    /// Ends the use of what [`HotKeys::enter`] gave.
    #[inline(always)]
    pub(crate) fn leave(credit: ThreadCredit<'_>) {
        // After the last change of the credit, as the thread's own handlers see it.
        compiler_fence(Ordering::SeqCst);
        let owner = credit.owner();
        owner.store(owner.load(Ordering::Relaxed) & !IN_USE, Ordering::Relaxed);
    }

    #[inline(always)]
    fn entered(&self, thread: u64, at: usize) -> ThreadCredit<'_> {
        self.owner(at).store(thread | IN_USE, Ordering::Relaxed);
        // Before the credit is looked at.
        compiler_fence(Ordering::SeqCst);
        // SAFETY: the block is the calling thread's: only it stores its pointer in the owner, and its handlers find the mark.
        unsafe { ThreadCredit::of(self.memory.base().byte_add(at * self.stride), self.mask) }
    }

    /// The thread's block where it is not the first that it looks at, or not yet its own.
    #[inline(never)]
    fn search(&self, thread: u64) -> Option<ThreadCredit<'_>> {
        let places = || (0..PROBES).map(|n| place(thread).wrapping_add(n) % THREADS);
        let owner = |at: usize| self.owner(at).load(Ordering::Relaxed);
        if thread == FREE || places().any(|at| owner(at) == thread | IN_USE) {
            return None;
        }
        let claimed = |at: &usize| {
            let word = self.owner(*at);
            // Relaxed: the block is zeroed, or what a thread with this pointer has left, which has ended.
            owner(*at) == FREE && word.compare_exchange(FREE, thread, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        };
        let at = places().find(|at| owner(*at) == thread).or_else(|| places().find(claimed))?;
        Some(self.entered(thread, at))
    }

    /// The owner of the block `at`, which is below [`THREADS`].
    #[inline(always)]
    fn owner(&self, at: usize) -> &AtomicU64 {
        // SAFETY: one of the blocks, each of which begins with a head. They are aligned as heads are: the memory to a page, and a block's
        // bytes are a multiple of 64. The owner is atomic.
        unsafe { &(*self.memory.base().as_ptr().add(at * self.stride).cast::<Head>()).owner }
    }
}

/// The first block that a thread looks at. Thread pointers mostly differ by the size of a stack, a multiple of 4096: the upper bits of the
/// product depend on all of those.
#[inline(always)]
fn place(thread: u64) -> usize {
    ((thread as u32).wrapping_mul(0x9e37_79b1) >> (32 - THREADS.trailing_zeros())) as usize
}

const _: () = assert!(THREADS.is_power_of_two() && bytes_of(16) % 64 == 0);

#[cfg(test)]
mod tests {
    use super::*;

    /// A handler that interrupts a decision finds no credit, and the decision after it does.
    #[test]
    fn a_block_in_use_is_not_given_again() {
        let hot = HotKeys::new(64).expect("memory").expect("Linux 4.14 or later");
        for _ in 0..3 {
            let credit = hot.enter().expect("a free block");
            assert!(hot.enter().is_none() && hot.enter_first().is_none());
            HotKeys::leave(credit);
        }
    }

    /// Every thread finds the block that it had, whichever of its places that is, and no other thread does.
    #[test]
    fn a_thread_keeps_its_block() {
        let hot = HotKeys::new(64).expect("memory").expect("Linux 4.14 or later");
        let all_are_there = std::sync::Barrier::new(2 * THREADS);
        std::thread::scope(|scope| {
            for n in 0..2 * THREADS as u64 {
                let (hot, all_are_there) = (&hot, &all_are_there);
                scope.spawn(move || {
                    let had = hot.enter().map(|mut credit| {
                        credit.miss(n + 1);
                        credit.fill(n + 1, n, u64::MAX);
                        HotKeys::leave(credit);
                    });
                    all_are_there.wait();
                    let again = hot.enter();
                    assert_eq!(again.is_some(), had.is_some());
                    if let Some(mut credit) = again {
                        assert_eq!(credit.find(n + 1).map(|credit| credit.permits(0)), Some(n));
                        HotKeys::leave(credit);
                    }
                });
            }
        });
    }
}
