//! The time-stamp counter on CLOCK_MONOTONIC's scale.
//!
//! The process has one straight line ([`ClockLine`]), in a record with a sequence lock
//! ([`super::record`]). The first thread that finds the line due takes the record, compares the
//! clocks and writes the new line. Until that line is complete, all other threads read the system's
//! clock.
//!
//! The record is in memory of this process, so a killed process leaves nothing behind. A child that
//! is forked during an adjustment finds the record taken for ever. It reads the system's clock,
//! which is slower and correct.

use super::line::{ClockLine, CALIBRATION, LONGEST};
use super::record::{ClockRecord, NO_COUNTER};
use super::system;
use core::arch::x86_64::{__cpuid, _rdtsc};

static RECORD: ClockRecord = ClockRecord::new();

#[inline]
pub(super) fn now() -> u64 {
    match at_once() {
        Some(now) => now,
        None => slow(),
    }
}

/// The time, if the line is complete and not due.
#[inline(always)]
pub(super) fn at_once() -> Option<u64> {
    RECORD.time(counter)
}

/// Whether the clock uses the counter. It does not if the processor does not say that the counter
/// is invariant, if Linux has removed it from its list, or if two comparisons gave no slope.
pub(super) fn usable() -> bool {
    now();
    !RECORD.has_no_counter()
}

#[inline(always)]
fn counter() -> u64 {
    // SAFETY: every x86-64 processor has RDTSC. In a process that forbids it (prctl PR_SET_TSC) the
    // kernel sends SIGSEGV.
    unsafe { _rdtsc() }
}

#[cold]
fn slow() -> u64 {
    let sequence = RECORD.sequence();
    let ns = system::monotonic();
    if sequence == NO_COUNTER || sequence & 1 == 1 {
        return ns;
    }
    // The first comparison is too recent for a slope: after the start, and after the machine was
    // suspended.
    if sequence != 0 && ns.wrapping_sub(RECORD.first_ns()) < CALIBRATION {
        return ns;
    }
    // The line is not due any more if another thread has written a new one meanwhile. If another
    // thread has the record, that one adjusts the line.
    if !RECORD.is_due(counter()) || !RECORD.take(sequence) {
        return ns;
    }
    RECORD.publish(if sequence == 0 { start() } else { adjust(sequence) });
    system::monotonic()
}

/// Makes the first comparison. There is no slope yet, so the line is due at once, and every call
/// reads the system's clock until [`CALIBRATION`] has passed. No thread waits for the second
/// comparison.
fn start() -> u64 {
    if !invariant() || system::counter_is_struck_out() {
        return NO_COUNTER;
    }
    RECORD.write(&ClockLine::begun(pair()));
    2
}

/// Makes the second comparison, at least [`CALIBRATION`] after the first, which gives the line its
/// slope. If it is more than [`LONGEST`] after the first, the machine may have been suspended
/// between them, and it replaces the first.
fn finish(first: &ClockLine, sequence: u64) -> u64 {
    let second = pair();
    if second.1.saturating_sub(first.first_ns) > LONGEST {
        RECORD.write(&ClockLine::begun(second));
        return sequence + 2;
    }
    match ClockLine::first((first.first_tsc, first.first_ns), second) {
        Some(line) => {
            RECORD.write(&line);
            sequence + 2
        }
        None => NO_COUNTER,
    }
}

fn adjust(sequence: u64) -> u64 {
    let line = RECORD.read();
    if line.mul == 0 {
        return finish(&line, sequence);
    }
    match line.again(pair()) {
        Some(line) => {
            RECORD.write(&line);
            sequence + 2
        }
        None => NO_COUNTER,
    }
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
