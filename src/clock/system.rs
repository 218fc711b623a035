//! The operating system's clocks and its sleep.

#[inline]
pub(super) fn monotonic() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

#[cfg(any(target_os = "linux", target_os = "android"))]
#[inline]
pub(super) fn coarse() -> u64 {
    read(libc::CLOCK_MONOTONIC_COARSE)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[inline]
pub(super) fn coarse() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Sleeps until `now()` has reached `at`. Signals only make it look at the clock again.
pub(super) fn sleep_until(at: u64, now: impl Fn() -> u64) {
    const SECOND: u64 = 1_000_000_000;
    loop {
        let left = at.saturating_sub(now());
        if left == 0 {
            return;
        }
        // An hour at a time fits every libc's time_t.
        let left = left.min(3600 * SECOND);
        let time = libc::timespec { tv_sec: (left / SECOND) as _, tv_nsec: (left % SECOND) as _ };
        // SAFETY: `time` is a valid timespec with tv_nsec below a second; a null remainder is allowed.
        unsafe { libc::nanosleep(&time, core::ptr::null_mut()) };
    }
}

#[inline]
fn read(id: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable for the call. These clocks exist on every supported system; if the
    // call failed all the same, time would stand at 0, which admits nothing more.
    unsafe { libc::clock_gettime(id, &mut time) };
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}
