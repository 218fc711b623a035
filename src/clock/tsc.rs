//! The time-stamp counter on CLOCK_MONOTONIC's scale.
//!
//! One straight line for the process ([`Line`]), kept in a sequence-locked record. The thread that finds it due for comparison tries to take the record; all
//! others go on with the old line, or read the system's clock if they catch it half written.
//!
//! A process that is killed takes its record with it; a child forked in the very moment of an
//! adjustment finds the record taken for ever, and keeps reading the system's clock: slower, right.

use super::line::{self, Line, CALIBRATION, LONGEST};
use super::system;
use core::arch::x86_64::{__cpuid, _rdtsc};
use core::sync::atomic::{fence, AtomicU64, Ordering};

/// The line and its lock, which every reading of the clock looks at: on one cache line, at one address.
#[repr(C, align(64))]
struct Record {
    /// Odd while being written. 0: not calibrated yet. `NO_COUNTER`: cannot be used.
    sequence: AtomicU64,
    base_tsc: AtomicU64,
    base_ns: AtomicU64,
    mul: AtomicU64,
    /// The counter's distance from `base_tsc` at which the line is due.
    due: AtomicU64,
    first_tsc: AtomicU64,
    first_ns: AtomicU64,
}

static RECORD: Record = Record {
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

/// The time, if the line is whole and not due: a few instructions, and no call among them.
#[inline(always)]
pub(super) fn at_once() -> Option<u64> {
    // Acquire: the record's words are read after it.
    let before = RECORD.sequence.load(Ordering::Acquire);
    // Each a branch of its own: all are foreseen.
    if before & 1 == 1 {
        return None;
    }
    let past = counter().wrapping_sub(RECORD.base_tsc.load(Ordering::Relaxed));
    let mul = RECORD.mul.load(Ordering::Relaxed);
    let base = RECORD.base_ns.load(Ordering::Relaxed);
    // A counter of another core that is a little behind makes `past` huge: it is due then too, and
    // the system's clock is read instead.
    if past >= RECORD.due.load(Ordering::Relaxed) {
        return None;
    }
    // Acquire fence: the record's words are read before the sequence is looked at again.
    fence(Ordering::Acquire);
    if RECORD.sequence.load(Ordering::Relaxed) != before {
        return None;
    }
    Some(base.wrapping_add(line::passed(past, mul)))
}

/// Whether the counter runs at one speed always, and is in use.
pub(super) fn usable() -> bool {
    now();
    RECORD.sequence.load(Ordering::Relaxed) != NO_COUNTER
}

#[inline(always)]
fn counter() -> u64 {
    // SAFETY: every x86-64 processor has it; user code may execute it, or the kernel (prctl
    // PR_SET_TSC) kills the process by its own choice.
    unsafe { _rdtsc() }
}

#[cold]
fn slow() -> u64 {
    // Acquire: what is looked at below is that record's.
    let sequence = RECORD.sequence.load(Ordering::Acquire);
    let ns = system::monotonic();
    if sequence == NO_COUNTER || sequence & 1 == 1 {
        return ns;
    }
    // The first comparison is too recent for a slope: right after the start, and after the machine was suspended.
    if sequence != 0 && ns.wrapping_sub(RECORD.first_ns.load(Ordering::Relaxed)) < CALIBRATION {
        return ns;
    }
    // Somebody else has drawn the line anew meanwhile.
    let past = counter().wrapping_sub(RECORD.base_tsc.load(Ordering::Relaxed));
    if past < RECORD.due.load(Ordering::Relaxed) {
        return ns;
    }
    // Acquire/Release as a lock's; failing, somebody else is at it, and this call has its time.
    if RECORD.sequence.compare_exchange(sequence, sequence + 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
        return ns;
    }
    // Release fence: the odd sequence is seen before any word of the new record.
    fence(Ordering::Release);
    let next = if sequence == 0 { start() } else { adjust(sequence) };
    RECORD.sequence.store(next, Ordering::Release);
    system::monotonic()
}

/// The first comparison. There is no slope yet, so the line is due at once, and every call reads the system's clock until
/// [`CALIBRATION`] has passed: nobody waits for the second comparison.
fn start() -> u64 {
    if !invariant() || system::counter_is_struck_out() {
        return NO_COUNTER;
    }
    write(&Line::begun(pair()));
    2
}

/// The second comparison, a calibration after the first: from now on there is a line. A process that reads the clock so seldom
/// that a machine may have been suspended in between begins again.
fn finish(first: &Line, sequence: u64) -> u64 {
    let second = pair();
    if second.1.saturating_sub(first.first_ns) > LONGEST {
        write(&Line::begun(second));
        return sequence + 2;
    }
    match Line::first((first.first_tsc, first.first_ns), second) {
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

/// The record, for the one that has taken it.
fn read() -> Line {
    Line {
        base_tsc: RECORD.base_tsc.load(Ordering::Relaxed),
        base_ns: RECORD.base_ns.load(Ordering::Relaxed),
        mul: RECORD.mul.load(Ordering::Relaxed),
        due: RECORD.due.load(Ordering::Relaxed),
        first_tsc: RECORD.first_tsc.load(Ordering::Relaxed),
        first_ns: RECORD.first_ns.load(Ordering::Relaxed),
    }
}

fn write(line: &Line) {
    RECORD.base_tsc.store(line.base_tsc, Ordering::Relaxed);
    RECORD.base_ns.store(line.base_ns, Ordering::Relaxed);
    RECORD.mul.store(line.mul, Ordering::Relaxed);
    RECORD.due.store(line.due, Ordering::Relaxed);
    RECORD.first_tsc.store(line.first_tsc, Ordering::Relaxed);
    RECORD.first_ns.store(line.first_ns, Ordering::Relaxed);
}

/// The two clocks at one instant: the closest of a few readings.
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

/// The processor's word that the counter runs at one speed in all power states (AMD APM volume 3 and
/// Intel SDM volume 2, CPUID leaf 8000_0007h, EDX bit 8).
fn invariant() -> bool {
    // SAFETY: every x86-64 processor has CPUID; the leaf is read only if leaf 8000_0000h says it exists.
    #[allow(unused_unsafe)]
    unsafe {
        __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & (1 << 8) != 0
    }
}
