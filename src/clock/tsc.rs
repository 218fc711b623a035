//! The time-stamp counter on CLOCK_MONOTONIC's scale.
//!
//! One straight line for the process, `ns = base_ns + (tsc − base_tsc) · mul / 2^32`, kept in a
//! sequence-locked record. The thread that finds it due for comparison tries to take the record; all
//! others go on with the old line, or read the system's clock if they catch it half written.
//!
//! A process that is killed takes its record with it; a child forked in the very moment of an
//! adjustment finds the record taken for ever, and keeps reading the system's clock: slower, right.

use super::system;
use core::arch::x86_64::{__cpuid, _rdtsc};
use core::sync::atomic::{fence, AtomicU64, Ordering};

/// Odd while being written. 0: not calibrated yet. `NO_COUNTER`: cannot be used.
static SEQUENCE: AtomicU64 = AtomicU64::new(0);
static BASE_TSC: AtomicU64 = AtomicU64::new(0);
static BASE_NS: AtomicU64 = AtomicU64::new(0);
static MUL: AtomicU64 = AtomicU64::new(0);
/// The counter's distance from `BASE_TSC` at which the line is due.
static DUE: AtomicU64 = AtomicU64::new(0);
/// Where the first comparison was made, for the slope: a longer line is a better one.
static FIRST_TSC: AtomicU64 = AtomicU64::new(0);
static FIRST_NS: AtomicU64 = AtomicU64::new(0);

const NO_COUNTER: u64 = u64::MAX;
const CALIBRATION: u64 = 1_000_000;
const LONGEST: u64 = 1_000_000_000;

#[inline]
pub(super) fn now() -> u64 {
    // Acquire: the record's words are read after it.
    let before = SEQUENCE.load(Ordering::Acquire);
    let tsc = counter();
    let past = tsc.wrapping_sub(BASE_TSC.load(Ordering::Relaxed));
    let mul = MUL.load(Ordering::Relaxed);
    let base = BASE_NS.load(Ordering::Relaxed);
    let due = DUE.load(Ordering::Relaxed);
    // Acquire fence: the record's words are read before the sequence is looked at again.
    fence(Ordering::Acquire);
    let whole = SEQUENCE.load(Ordering::Relaxed) == before;
    // A counter of another core that is a little behind makes `past` huge: it is due then too, and
    // the system's clock is read instead.
    if whole && past < due && before & 1 == 0 {
        return base.wrapping_add(((u128::from(past) * u128::from(mul)) >> 32) as u64);
    }
    slow(before)
}

/// Whether the counter runs at one speed always, and is in use.
pub(super) fn usable() -> bool {
    now();
    SEQUENCE.load(Ordering::Relaxed) != NO_COUNTER
}

#[inline(always)]
fn counter() -> u64 {
    // SAFETY: every x86-64 processor has it; user code may execute it, or the kernel (prctl
    // PR_SET_TSC) kills the process by its own choice.
    unsafe { _rdtsc() }
}

#[cold]
fn slow(sequence: u64) -> u64 {
    let ns = system::monotonic();
    if sequence == NO_COUNTER || sequence & 1 == 1 {
        return ns;
    }
    // Acquire/Release as a lock's; failing, somebody else is at it, and this call has its time.
    if SEQUENCE.compare_exchange(sequence, sequence + 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
        return ns;
    }
    // Release fence: the odd sequence is seen before any word of the new record.
    fence(Ordering::Release);
    let next = if sequence == 0 { start() } else { adjust(sequence) };
    SEQUENCE.store(next, Ordering::Release);
    system::monotonic()
}

fn start() -> u64 {
    if !invariant() {
        return NO_COUNTER;
    }
    let (first_tsc, first_ns) = pair();
    while system::monotonic().wrapping_sub(first_ns) < CALIBRATION {
        core::hint::spin_loop();
    }
    let (tsc, ns) = pair();
    FIRST_TSC.store(first_tsc, Ordering::Relaxed);
    FIRST_NS.store(first_ns, Ordering::Relaxed);
    if !line(tsc, ns, first_tsc, first_ns, 10 * CALIBRATION) {
        return NO_COUNTER;
    }
    2
}

fn adjust(sequence: u64) -> u64 {
    let (tsc, ns) = pair();
    let (first_tsc, first_ns) = (FIRST_TSC.load(Ordering::Relaxed), FIRST_NS.load(Ordering::Relaxed));
    let old = BASE_NS.load(Ordering::Relaxed);
    let mul = MUL.load(Ordering::Relaxed);
    let past = tsc.wrapping_sub(BASE_TSC.load(Ordering::Relaxed));
    let told = old.wrapping_add(((u128::from(past) * u128::from(mul)) >> 32) as u64);
    let since = ns.saturating_sub(old);
    let span = (since.saturating_mul(4)).clamp(10 * CALIBRATION, LONGEST);
    // Off by more than 100 ppm: the machine was suspended or moved, and the old line is void.
    let moved = told.abs_diff(ns) > 100_000 + since / 10_000;
    if moved {
        FIRST_TSC.store(tsc, Ordering::Relaxed);
        FIRST_NS.store(ns, Ordering::Relaxed);
        BASE_TSC.store(tsc, Ordering::Relaxed);
        BASE_NS.store(ns, Ordering::Relaxed);
        return if mul == 0 { NO_COUNTER } else { sequence + 2 };
    }
    if line(tsc, ns, first_tsc, first_ns, span) {
        sequence + 2
    } else {
        NO_COUNTER
    }
}

/// Writes the line through `(tsc, ns)` with the slope from the first comparison, good for `span`
/// nanoseconds. False if there is no slope.
fn line(tsc: u64, ns: u64, first_tsc: u64, first_ns: u64, span: u64) -> bool {
    let (Some(ticks), Some(time)) = (tsc.checked_sub(first_tsc), ns.checked_sub(first_ns)) else { return false };
    let Some(ticks) = core::num::NonZeroU128::new(u128::from(ticks)) else { return false };
    let mul = (u128::from(time) << 32) / ticks;
    let (Ok(mul), Some(divisor)) = (u64::try_from(mul), core::num::NonZeroU128::new(mul)) else { return false };
    let due = (u128::from(span) << 32) / divisor;
    BASE_TSC.store(tsc, Ordering::Relaxed);
    BASE_NS.store(ns, Ordering::Relaxed);
    MUL.store(mul, Ordering::Relaxed);
    DUE.store(u64::try_from(due).unwrap_or(u64::MAX), Ordering::Relaxed);
    true
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
