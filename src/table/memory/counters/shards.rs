//! Counters of rare events, in shards that threads share.
//!
//! A thread chooses its shard by the address of its stack, so two threads seldom share one.
//! Frequent events have counters of their own: lines that one thread owns ([`super::lines`]).

use crate::decision::{Reason, Reasons};
use crate::sync::Ordering;
use crate::table::memory::layout::{Shard, COUNTERS, SHARDS};

/// The counters of a shard. The number is the counter's index in [`Shard::counts`].
#[derive(Clone, Copy)]
#[repr(usize)]
pub(crate) enum ShardCounter {
    Inserted = 0,
    Reclaimed = 1,
    Refused = 2,
    Inherited = 3,
    Unremembered = 4,
    Evicted = 5,
    Vacated = 6,
    Resets = 7,
    Retries = 8,
    BackwardSteps = 9,
    /// The newest time of the requests of the shard's threads, which is not a count.
    Newest = 10,
}

/// The words of [`Shard::counts`] from this index on count decisions by reason. [`Reason::counter`]
/// is the offset.
const REASONS: usize = 11;

const _: () = assert!(SHARDS.is_power_of_two() && REASONS + Reasons::FIELDS <= COUNTERS);

/// Nanoseconds. Backward steps up to this are not counted, and the newest time is stored only when
/// it grows by more.
pub(crate) const GRAIN: u64 = 1_000;

/// The shard of the calling thread.
#[inline(always)]
pub(crate) fn shard(shards: &[Shard; SHARDS]) -> &Shard {
    // SAFETY: `number` has log2(SHARDS) bits, and SHARDS is a power of two, so it is below SHARDS.
    unsafe { shards.get_unchecked(number()) }
}

/// The number of the calling thread's shard.
#[inline(always)]
pub(crate) fn number() -> usize {
    // Stacks are at least 16 KiB apart, as a rule. The multiplier spreads them.
    let page = stack() >> 14;
    (page.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - SHARDS.ilog2())) as usize
}

/// An address on the thread's stack.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn stack() -> u64 {
    let pointer: u64;
    // SAFETY: it reads a register. (The address of a variable would do, but would cost a stack
    // frame.)
    unsafe {
        core::arch::asm!("mov {pointer}, rsp", pointer = lateout(reg) pointer, options(pure, nomem, nostack, preserves_flags))
    };
    pointer
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn stack() -> u64 {
    let here = 0u8;
    core::ptr::from_ref(&here) as u64
}

// Relaxed throughout: no decision depends on these counters.
impl Shard {
    pub(crate) fn get(&self, what: ShardCounter) -> u64 {
        self.counts.get(what as usize).map_or(0, |count| count.load(Ordering::Relaxed))
    }

    /// Counts a decision for `reason`, if the reason has a counter.
    pub(crate) fn add_reason(&self, reason: Reason) {
        if let Some(count) = reason.counter().and_then(|counter| self.counts.get(REASONS + counter))
        {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[inline(always)]
    pub(crate) fn add(&self, what: ShardCounter, n: u64) {
        if let Some(count) = self.counts.get(what as usize) {
            count.fetch_add(n, Ordering::Relaxed);
        }
    }

    /// Compares a caller's time with the newest one of this shard: counts a step back, or keeps
    /// `now` as the newest.
    #[inline(always)]
    pub(crate) fn note_time(&self, now: u64) {
        let Some(newest) = self.counts.get(ShardCounter::Newest as usize) else { return };
        let seen = newest.load(Ordering::Relaxed);
        // One comparison finds both earlier times and times more than a grain later, because the
        // difference wraps.
        if now.wrapping_sub(seen) > GRAIN {
            self.moved(now, seen);
        }
    }

    #[cold]
    fn moved(&self, now: u64, seen: u64) {
        if now > seen {
            if let Some(newest) = self.counts.get(ShardCounter::Newest as usize) {
                newest.store(now, Ordering::Relaxed);
            }
        } else if seen - now > GRAIN {
            self.add(ShardCounter::BackwardSteps, 1);
        }
    }
}

/// The sum of one counter over all shards.
pub(crate) fn sum(shards: &[Shard; SHARDS], what: ShardCounter) -> u64 {
    shards.iter().map(|shard| shard.get(what)).fold(0, u64::wrapping_add)
}

/// The decisions by reason: the sums over all shards.
pub(crate) fn reasons(shards: &[Shard; SHARDS]) -> Reasons {
    Reasons::by_counter(|counter| {
        let counts = shards.iter().filter_map(|shard| shard.counts.get(REASONS + counter));
        counts.map(|count| count.load(Ordering::Relaxed)).fold(0, u64::wrapping_add)
    })
}
