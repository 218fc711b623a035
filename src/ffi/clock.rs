//! Clocks: where the time comes from when a call is not given it.

use super::boundary::*;
use super::status::*;
use crate::clock::{Clock, Source, Tsc};

/// The processor's counter on CLOCK_MONOTONIC's scale; CLOCK_MONOTONIC where it cannot be trusted.
pub const TOLLBAR_CLOCK_TSC: u32 = 0;
/// CLOCK_MONOTONIC.
pub const TOLLBAR_CLOCK_MONOTONIC: u32 = 1;
/// CLOCK_MONOTONIC_COARSE: cheap, in steps of the kernel's tick (1 to 10 ms).
pub const TOLLBAR_CLOCK_COARSE: u32 = 2;

/// Reads a TOLLBAR_CLOCK_: nanoseconds since boot. All three have one scale, so their times may be
/// given to any `_at` call; times of another scale may not be mixed with them in one limiter.
///
/// # Safety
/// `now_ns` is NULL or writable.
#[no_mangle]
pub unsafe extern "C" fn tollbar_clock_now(clock: u32, now_ns: *mut u64) -> i32 {
    guard(|| {
        code((|| {
            // SAFETY: by the caller's promise.
            let now_ns = unsafe { place(now_ns) }?;
            now_ns.write(source(clock)?.now());
            Ok(TOLLBAR_ALLOWED)
        })())
    })
}

/// 1 if TOLLBAR_CLOCK_TSC reads the processor's counter, 0 if it reads CLOCK_MONOTONIC in its place.
#[no_mangle]
pub extern "C" fn tollbar_clock_is_counter() -> i32 {
    i32::from(Tsc.is_counter())
}

pub(super) fn source(clock: u32) -> Result<Source, i32> {
    [Source::Tsc, Source::Monotonic, Source::Coarse].get(clock as usize).copied().ok_or(TOLLBAR_E_CHOICE)
}
