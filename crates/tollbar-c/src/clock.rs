//! Clocks: the time of calls without `_at`.
//!
//! The calls of a cell count nanoseconds from the machine's start (TOLLBAR_CLOCK_TSC). The calls of
//! a limiter or a table count UTC: nanoseconds since 2025-03-13 00:00:00 (TOLLBAR_TIME_ZERO), so
//! that windows begin at full minutes, hours and days.

use super::boundary::*;
use super::status::*;
use tollbar::clock::{Clock, Source, Tsc};

/// The processor's counter on CLOCK_MONOTONIC's scale. It reads CLOCK_MONOTONIC instead for the
/// first millisecond of a process, and where the processor does not call its counter invariant or
/// Linux has struck it from its list of clock sources.
pub const TOLLBAR_CLOCK_TSC: u32 = 0;
/// CLOCK_MONOTONIC of the machine's first time namespace. In another time namespace the library
/// subtracts how far the caller's CLOCK_MONOTONIC is ahead, for this clock, for TOLLBAR_CLOCK_TSC
/// and for TOLLBAR_CLOCK_COARSE. So processes of different time namespaces can share a table, and
/// times that the caller reads itself with clock_gettime are on another scale there.
pub const TOLLBAR_CLOCK_MONOTONIC: u32 = 1;
/// CLOCK_MONOTONIC_COARSE: cheap, in steps of the kernel's tick (1 to 10 ms).
pub const TOLLBAR_CLOCK_COARSE: u32 = 2;
/// CLOCK_REALTIME, Unix nanoseconds. It follows each step of the system's clock: after a step back
/// by an hour, a key that had used up its limit before the step is refused for up to an hour. A
/// state word can hold Unix time until January 2043. A policy whose last time
/// (tollbar_policy_spec_last_time) is earlier is refused on this clock with
/// TOLLBAR_E_RATE_TOO_HIGH.
pub const TOLLBAR_CLOCK_WALL: u32 = 3;

/// Where the times of limiters and tables begin, in Unix nanoseconds: 2025-03-13 00:00:00 UTC,
/// 20,160 days after
/// 1970. A window whose length divides 20,160 days (so every one that divides a day, 2 to 10 days,
/// and 4 weeks) begins when it would in Unix time.
pub const TOLLBAR_TIME_ZERO: u64 = 1_741_824_000_000_000_000;

const _: () = assert!(TOLLBAR_TIME_ZERO == tollbar::clock::TIME_ZERO);

/// Reads the clock of that TOLLBAR_CLOCK_ number. TOLLBAR_CLOCK_WALL counts nanoseconds since 1970,
/// the others since the machine's start, alike in every process. The time is for cells and for
/// intervals. Limiters and tables count from another zero (tollbar_limiter_now, tollbar_table_now).
///
/// # Safety
/// `now_ns` is NULL or writable.
#[no_mangle]
pub unsafe extern "C" fn tollbar_clock_now(clock: u32, now_ns: *mut u64) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let now_ns = unsafe { place(now_ns) }?;
        now_ns.write(source(clock)?.now());
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Returns TOLLBAR_YES if TOLLBAR_CLOCK_TSC reads the processor's counter, TOLLBAR_NO if it reads
/// CLOCK_MONOTONIC instead.
#[no_mangle]
pub extern "C" fn tollbar_clock_is_counter() -> i32 {
    i32::from(Tsc.is_counter())
}

pub(super) fn source(clock: u32) -> Result<Source, i32> {
    Source::ALL.get(clock as usize).copied().ok_or(TOLLBAR_E_OUT_OF_RANGE)
}
