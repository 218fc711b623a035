//! The time-stamp counter on CLOCK_MONOTONIC's scale.
//!
//! The process has one straight line ([`ClockLine`]), in a record with a sequence lock. The first
//! thread that finds the line due takes the record, compares the clocks and writes the new line.
//! Until that line is complete, all other threads read the system's clock.
//!
//! The record is in memory of this process, so a killed process leaves nothing behind. A child that
//! is forked during an adjustment finds the record taken for ever. It reads the system's clock,
//! which is slower and correct.

use super::line::{self, ClockLine, CALIBRATION, LONGEST};
use super::system;
use core::arch::x86_64::{__cpuid, _rdtsc};
use core::sync::atomic::{fence, AtomicU64, Ordering};

/// The line and its lock. Every reading of the clock loads them, so they share one cache line at a
/// fixed address.
#[repr(C, align(64))]
struct ClockRecord {
    /// Odd while a thread writes the record. 0: no thread has compared the clocks yet.
    /// `NO_COUNTER`: the counter cannot be used.
    sequence: AtomicU64,
    base_tsc: AtomicU64,
    base_ns: AtomicU64,
    mul: AtomicU64,
    /// Ticks after `base_tsc` from which the line is due.
    due: AtomicU64,
    first_tsc: AtomicU64,
    first_ns: AtomicU64,
}

static RECORD: ClockRecord = ClockRecord {
    sequence: AtomicU64::new(0),
    base_tsc: AtomicU64::new(0),
    base_ns: AtomicU64::new(0),
    mul: AtomicU64::new(0),
    due: AtomicU64::new(0),
    first_tsc: AtomicU64::new(0),
    first_ns: AtomicU64::new(0),
};

const NO_COUNTER: u64 = u64::MAX;

#[inline]
pub(super) fn now() -> u64 {
    match at_once() {
        Some(now) => now,
        None => slow(),
    }
}

/// The time, if the line is complete and not due. It takes a few instructions and calls no
/// function.
#[inline(always)]
pub(super) fn at_once() -> Option<u64> {
    // Acquire: the loads of the record's words follow it.
    let before = RECORD.sequence.load(Ordering::Acquire);
    // Each condition is a separate branch, because the processor predicts each well.
    if before & 1 == 1 {
        return None;
    }
    let past = counter().wrapping_sub(RECORD.base_tsc.load(Ordering::Relaxed));
    let mul = RECORD.mul.load(Ordering::Relaxed);
    let base = RECORD.base_ns.load(Ordering::Relaxed);
    // On a core whose counter is a little behind, `past` wraps to a huge number, so the line is
    // due.
    if past >= RECORD.due.load(Ordering::Relaxed) {
        return None;
    }
    // Acquire fence: the loads of the record's words come before the second load of the sequence.
    fence(Ordering::Acquire);
    if RECORD.sequence.load(Ordering::Relaxed) != before {
        return None;
    }
    Some(base.wrapping_add(line::passed(past, mul)))
}

/// Whether the clock uses the counter. It does not if the processor does not say that the counter
/// is invariant, if Linux has removed it from its list, or if two comparisons gave no slope.
pub(super) fn usable() -> bool {
    now();
    RECORD.sequence.load(Ordering::Relaxed) != NO_COUNTER
}

#[inline(always)]
fn counter() -> u64 {
    // SAFETY: every x86-64 processor has RDTSC. In a process that forbids it (prctl PR_SET_TSC) the
    // kernel sends SIGSEGV.
    unsafe { _rdtsc() }
}

#[cold]
fn slow() -> u64 {
    // Acquire: the loads below read the record's words of this sequence or newer ones.
    let sequence = RECORD.sequence.load(Ordering::Acquire);
    let ns = system::monotonic();
    if sequence == NO_COUNTER || sequence & 1 == 1 {
        return ns;
    }
    // The first comparison is too recent for a slope: after the start, and after the machine was
    // suspended.
    if sequence != 0 && ns.wrapping_sub(RECORD.first_ns.load(Ordering::Relaxed)) < CALIBRATION {
        return ns;
    }
    // Another thread has written a new line meanwhile.
    let past = counter().wrapping_sub(RECORD.base_tsc.load(Ordering::Relaxed));
    if past < RECORD.due.load(Ordering::Relaxed) {
        return ns;
    }
    // Acquire here and Release in the store below, as in a lock. If the swap fails, another thread
    // adjusts the line.
    if RECORD
        .sequence
        .compare_exchange(sequence, sequence + 1, Ordering::Acquire, Ordering::Relaxed)
        .is_err()
    {
        return ns;
    }
    // Release fence: a thread that reads a word of the new record then reads the odd sequence or a
    // later one.
    fence(Ordering::Release);
    let next = if sequence == 0 { start() } else { adjust(sequence) };
    RECORD.sequence.store(next, Ordering::Release);
    system::monotonic()
}

/// Makes the first comparison. There is no slope yet, so the line is due at once, and every call
/// reads the system's clock until [`CALIBRATION`] has passed. No thread waits for the second
/// comparison.
fn start() -> u64 {
    if !invariant() || system::counter_is_struck_out() {
        return NO_COUNTER;
    }
    write(&ClockLine::begun(pair()));
    2
}

/// Makes the second comparison, at least [`CALIBRATION`] after the first, which gives the line its
/// slope. If it is more than [`LONGEST`] after the first, the machine may have been suspended
/// between them, and it replaces the first.
fn finish(first: &ClockLine, sequence: u64) -> u64 {
    let second = pair();
    if second.1.saturating_sub(first.first_ns) > LONGEST {
        write(&ClockLine::begun(second));
        return sequence + 2;
    }
    match ClockLine::first((first.first_tsc, first.first_ns), second) {
        Some(line) => {
            write(&line);
            sequence + 2
        }
        None => NO_COUNTER,
    }
}

fn adjust(sequence: u64) -> u64 {
    let line = read();
    if line.mul == 0 {
        return finish(&line, sequence);
    }
    match line.again(pair()) {
        Some(line) => {
            write(&line);
            sequence + 2
        }
        None => NO_COUNTER,
    }
}

/// Reads the record. Only the thread that has taken it may call this.
fn read() -> ClockLine {
    ClockLine {
        base_tsc: RECORD.base_tsc.load(Ordering::Relaxed),
        base_ns: RECORD.base_ns.load(Ordering::Relaxed),
        mul: RECORD.mul.load(Ordering::Relaxed),
        due: RECORD.due.load(Ordering::Relaxed),
        first_tsc: RECORD.first_tsc.load(Ordering::Relaxed),
        first_ns: RECORD.first_ns.load(Ordering::Relaxed),
    }
}

fn write(line: &ClockLine) {
    RECORD.base_tsc.store(line.base_tsc, Ordering::Relaxed);
    RECORD.base_ns.store(line.base_ns, Ordering::Relaxed);
    RECORD.mul.store(line.mul, Ordering::Relaxed);
    RECORD.due.store(line.due, Ordering::Relaxed);
    RECORD.first_tsc.store(line.first_tsc, Ordering::Relaxed);
    RECORD.first_ns.store(line.first_ns, Ordering::Relaxed);
}

/// The two clocks at almost one instant, `(counter, nanoseconds)`: the closest of eight pairs of
/// readings.
fn pair() -> (u64, u64) {
    let mut best = (0, 0);
    let mut closest = u64::MAX;
    for _ in 0..8 {
        let before = counter();
        let ns = system::monotonic();
        let width = counter().wrapping_sub(before);
        if width < closest {
            closest = width;
            best = (before.wrapping_add(width / 2), ns);
        }
    }
    best
}

/// Whether the processor says that the counter runs at one speed in all power states (AMD APM
/// volume 3 and Intel SDM volume 2, CPUID leaf 8000_0007h, EDX bit 8).
fn invariant() -> bool {
    // SAFETY: every x86-64 processor has CPUID; the leaf is read only if leaf 8000_0000h says it
    // exists.
    #[allow(unused_unsafe)]
    unsafe {
        __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & (1 << 8) != 0
    }
}
