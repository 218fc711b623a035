//! The operating system's clocks and its sleep.

use super::machine;

/// CLOCK_MONOTONIC of the machine's first time namespace.
#[inline]
pub(super) fn monotonic() -> u64 {
    read(libc::CLOCK_MONOTONIC).wrapping_sub(machine::ahead())
}

/// Unix time in nanoseconds; 0 before 1970.
#[inline]
pub(super) fn wall() -> u64 {
    let now = read(libc::CLOCK_REALTIME);
    // Seconds below zero wrap to values above `i64::MAX`.
    if now < i64::MAX as u64 {
        now
    } else {
        0
    }
}

/// CLOCK_MONOTONIC_COARSE of the machine's first time namespace.
#[cfg(any(target_os = "linux", target_os = "android"))]
#[inline]
pub(super) fn coarse() -> u64 {
    read(libc::CLOCK_MONOTONIC_COARSE).wrapping_sub(machine::ahead())
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[inline]
pub(super) fn coarse() -> u64 {
    monotonic()
}

/// Whether Linux has removed the time-stamp counter from its list of clock sources, because it saw
/// the counter run at an uneven speed or differ between cores. False if the list cannot be read;
/// the comparison with `CLOCK_MONOTONIC` once a second then bounds the error.
#[cfg(all(target_arch = "x86_64", not(loom)))]
pub(super) fn counter_is_struck_out() -> bool {
    const LIST: &core::ffi::CStr =
        c"/sys/devices/system/clocksource/clocksource0/available_clocksource";
    let mut list = [0_u8; 256];
    // SAFETY: the path is 0-terminated.
    let file = unsafe { libc::open(LIST.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    if file < 0 {
        return false;
    }
    // SAFETY: `list` is writable for its length; `file` was opened here and is closed once.
    let length = unsafe {
        let length = libc::read(file, list.as_mut_ptr().cast(), list.len());
        libc::close(file);
        length
    };
    let read = usize::try_from(length).ok().and_then(|length| list.get(..length));
    read.is_some_and(|list| !list.is_empty() && !names_counter(list))
}

/// Whether a list of clock sources, separated by blanks, names the counter.
#[cfg(all(target_arch = "x86_64", not(loom)))]
fn names_counter(list: &[u8]) -> bool {
    list.split(u8::is_ascii_whitespace).any(|name| name == b"tsc")
}

/// Sleeps until `now()` has reached `at`, in nanoseconds. After a signal it reads the clock and
/// sleeps again.
pub(super) fn sleep_until(at: u64, now: impl Fn() -> u64) {
    const SECOND: u64 = 1_000_000_000;
    loop {
        let left = at.saturating_sub(now());
        if left == 0 {
            return;
        }
        // It sleeps an hour at most, which fits every libc's time_t.
        let left = left.min(3600 * SECOND);
        let time = libc::timespec { tv_sec: (left / SECOND) as _, tv_nsec: (left % SECOND) as _ };
        // SAFETY: `time` is a valid timespec with tv_nsec below a second; a null remainder is
        // allowed.
        unsafe { libc::nanosleep(&time, core::ptr::null_mut()) };
    }
}

#[inline]
fn read(id: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable during the call. (These clocks exist on every supported system. If
    // the call failed, the time would be 0, and a limiter would admit its burst and no more.)
    unsafe { libc::clock_gettime(id, &mut time) };
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

#[cfg(all(test, target_arch = "x86_64", not(loom)))]
mod tests;
