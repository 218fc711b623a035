//! Clocks: where the time comes from when a call is not given it.
//!
//! The calls of a cell count nanoseconds from the machine's start (TOLLBAR_CLOCK_TSC). The calls of a limiter or a table count UTC:
//! nanoseconds since 2025-03-13 00:00:00 (TOLLBAR_TIME_ZERO), so that windows begin at full minutes, hours and days.

use super::boundary::*;
use super::status::*;
use tollbar::clock::{Clock, Source, Tsc};

/// The processor's counter on CLOCK_MONOTONIC's scale. It reads CLOCK_MONOTONIC instead for the first millisecond of a process,
/// and where the processor does not call its counter invariant or Linux has struck it from its list of clock sources.
pub const TOLLBAR_CLOCK_TSC: u32 = 0;
/// CLOCK_MONOTONIC.
pub const TOLLBAR_CLOCK_MONOTONIC: u32 = 1;
/// CLOCK_MONOTONIC_COARSE: cheap, in steps of the kernel's tick (1 to 10 ms).
pub const TOLLBAR_CLOCK_COARSE: u32 = 2;
/// CLOCK_REALTIME, Unix nanoseconds. It follows each step of the system's clock: after a step back by an hour, whatever had used
/// up its limit before the step is refused for up to an hour. Unix time leaves a state word until January 2043; policies that end
/// earlier (tollbar_policy_spec_last_time) are TOLLBAR_E_RATE_TOO_HIGH on this clock.
pub const TOLLBAR_CLOCK_WALL: u32 = 3;

/// Where the times of limiters and tables begin, in Unix nanoseconds: 2025-03-13 00:00:00 UTC, 20,160 days after 1970. A window
/// whose length divides 20,160 days (so every one that divides a day, 2 to 10 days, and 4 weeks) begins when it would in Unix time.
pub const TOLLBAR_TIME_ZERO: u64 = 1_741_824_000_000_000_000;

const _: () = assert!(TOLLBAR_TIME_ZERO == tollbar::clock::TIME_ZERO);

/// Reads a TOLLBAR_CLOCK_: nanoseconds since the machine's start, in every process of it; TOLLBAR_CLOCK_WALL: since 1970. For cells
/// and for intervals. Limiters and tables have a zero of their own: tollbar_limiter_now, tollbar_table_now.
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

/// 1 if TOLLBAR_CLOCK_TSC reads the processor's counter, 0 if it reads CLOCK_MONOTONIC in its place.
#[no_mangle]
pub extern "C" fn tollbar_clock_is_counter() -> i32 {
    i32::from(Tsc.is_counter())
}

pub(super) fn source(clock: u32) -> Result<Source, i32> {
    Source::ALL.get(clock as usize).copied().ok_or(TOLLBAR_E_OUT_OF_RANGE)
}
