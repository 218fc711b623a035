//! The clock's line in memory that all threads read, behind a sequence lock.
//!
//! A thread that writes a line makes the sequence odd before and even after. A reader that finds an
//! odd sequence, or another one after its loads, has no line. No reader waits for a writer.

use super::line::{self, ClockLine};
use crate::sync::{fence, AtomicU64, Ordering};

#[cfg(all(test, loom))]
mod models;

/// The line and its lock. Every reading of the clock loads them, so they share one cache line at a
/// fixed address.
#[repr(C, align(64))]
pub(super) struct ClockRecord {
    /// Odd while a thread writes the record. 0: no thread has compared the clocks yet.
    /// [`NO_COUNTER`]: the counter cannot be used.
    sequence: AtomicU64,
    base_tsc: AtomicU64,
    base_ns: AtomicU64,
    mul: AtomicU64,
    /// Ticks after `base_tsc` from which the line is due.
    due: AtomicU64,
    first_tsc: AtomicU64,
    first_ns: AtomicU64,
}

pub(super) const NO_COUNTER: u64 = u64::MAX;

impl ClockRecord {
    /// The time, if the line is complete and not due by `counter`. It takes a few instructions and
    /// calls no function.
    #[inline(always)]
    pub(super) fn time(&self, counter: impl FnOnce() -> u64) -> Option<u64> {
        // Acquire: the loads of the record's words follow it.
        let before = self.sequence.load(Ordering::Acquire);
        // Each of the three checks returns by a branch of its own. All three nearly always pass, so
        // the processor predicts every branch.
        if before & 1 == 1 {
            return None;
        }
        let past = counter().wrapping_sub(self.base_tsc.load(Ordering::Relaxed));
        let mul = self.mul.load(Ordering::Relaxed);
        let base = self.base_ns.load(Ordering::Relaxed);
        // On a core whose counter is a little behind, `past` wraps to a huge number, so the line is
        // due.
        if past >= self.due.load(Ordering::Relaxed) {
            return None;
        }
        // Acquire fence: the loads of the record's words come before the second load of the
        // sequence.
        fence(Ordering::Acquire);
        if self.sequence.load(Ordering::Relaxed) != before {
            return None;
        }
        Some(base.wrapping_add(line::passed(past, mul)))
    }

    /// The sequence before a thread looks whether the line is due.
    pub(super) fn sequence(&self) -> u64 {
        // Acquire, and Release in `publish`, as in a lock: the thread's next loads read the
        // record's words of this sequence or newer ones.
        self.sequence.load(Ordering::Acquire)
    }

    /// Whether the counter cannot be used.
    pub(super) fn has_no_counter(&self) -> bool {
        self.sequence.load(Ordering::Relaxed) == NO_COUNTER
    }

    /// The system's clock at the first comparison, in nanoseconds.
    pub(super) fn first_ns(&self) -> u64 {
        self.first_ns.load(Ordering::Relaxed)
    }

    /// Whether the line is due at this value of the counter.
    pub(super) fn is_due(&self, counter: u64) -> bool {
        let past = counter.wrapping_sub(self.base_tsc.load(Ordering::Relaxed));
        past >= self.due.load(Ordering::Relaxed)
    }

    /// Takes the record for a new line, which [`ClockRecord::publish`] ends. False: another thread
    /// has taken it since the caller read `sequence`.
    pub(super) fn take(&self, sequence: u64) -> bool {
        // Relaxed: the swap succeeds only on the number that the caller has read by an Acquire
        // load, so the caller sees the line that came with it.
        let taken = self
            .sequence
            .compare_exchange(sequence, sequence + 1, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok();
        if taken {
            // Release fence: the caller's stores of the record's words come after this odd
            // sequence. So a thread that has read one of these words finds that the sequence has
            // changed.
            fence(Ordering::Release);
        }
        taken
    }

    /// Ends [`ClockRecord::take`]: the line that was written counts from now on.
    pub(super) fn publish(&self, next: u64) {
        self.sequence.store(next, Ordering::Release);
    }

    /// Reads the record. Only the thread that has taken it may call this.
    pub(super) fn read(&self) -> ClockLine {
        ClockLine {
            base_tsc: self.base_tsc.load(Ordering::Relaxed),
            base_ns: self.base_ns.load(Ordering::Relaxed),
            mul: self.mul.load(Ordering::Relaxed),
            due: self.due.load(Ordering::Relaxed),
            first_tsc: self.first_tsc.load(Ordering::Relaxed),
            first_ns: self.first_ns.load(Ordering::Relaxed),
        }
    }

    /// Writes the record. Only the thread that has taken it may call this.
    pub(super) fn write(&self, line: &ClockLine) {
        self.base_tsc.store(line.base_tsc, Ordering::Relaxed);
        self.base_ns.store(line.base_ns, Ordering::Relaxed);
        self.mul.store(line.mul, Ordering::Relaxed);
        self.due.store(line.due, Ordering::Relaxed);
        self.first_tsc.store(line.first_tsc, Ordering::Relaxed);
        self.first_ns.store(line.first_ns, Ordering::Relaxed);
    }
}

#[cfg(not(loom))]
impl ClockRecord {
    /// No line yet.
    pub(super) const fn new() -> ClockRecord {
        ClockRecord {
            sequence: AtomicU64::new(0),
            base_tsc: AtomicU64::new(0),
            base_ns: AtomicU64::new(0),
            mul: AtomicU64::new(0),
            due: AtomicU64::new(0),
            first_tsc: AtomicU64::new(0),
            first_ns: AtomicU64::new(0),
        }
    }
}
