//! A token bucket for one key that many threads ask for all the time.

use super::boundary::*;
use super::cell::{answer, tollbar_decision};
use super::clock::source;
use super::counts::{tell, tollbar_counts};
use super::policy::{length, parse, policy, report, tollbar_policy_error, tollbar_policy_spec};
use super::status::*;
use core::ffi::c_char;
use tollbar::clock::Source;
use tollbar::limiter::Striped;
use tollbar::policy::Policy;

/// A striped limiter. All calls but tollbar_striped_free may be made by any number of threads at once, on
/// either side of a fork (each side goes on with its own copy), but not by a signal handler that may have
/// interrupted one of them on its thread.
pub struct tollbar_striped {
    pub(super) striped: Striped<Source>,
}

/// Makes a striped limiter on a TOLLBAR_CLOCK_. On success `*out` is to be freed with
/// tollbar_striped_free; otherwise it is left alone.
///
/// The policy is gcra without `borrow` and with a limit above 0, or it is TOLLBAR_E_OPTION_MISMATCH.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_striped_new(
    spec: *const tollbar_policy_spec,
    clock: u32,
    out: *mut *mut tollbar_striped,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (out, policy) = unsafe { (place(out)?, policy(spec)?) };
        out.write(make(&policy, source(clock)?)?);
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Makes a striped limiter of a NUL-terminated text such as "1000000/s burst 10000", on TOLLBAR_CLOCK_TSC.
/// `error` may be NULL.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_striped_from_text(
    text: *const c_char,
    out: *mut *mut tollbar_striped,
    error: *mut tollbar_policy_error,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (out, policy) = unsafe { (place(out)?, parse(text, length(text)?, error, &Striped::check_policy)?) };
        let made = make(&policy, Source::Tsc).inspect_err(|&code| {
            // SAFETY: by the caller's promise.
            unsafe { report(error, code, 1, tollbar_strerror(code)) };
        })?;
        out.write(made);
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Frees a striped limiter that no call is using. Threads need no call before. NULL is a no-op.
///
/// # Safety
/// `striped` is NULL or has not been freed.
#[no_mangle]
pub unsafe extern "C" fn tollbar_striped_free(striped: *mut tollbar_striped) {
    // SAFETY: by the caller's promise.
    unsafe { unboxed(striped) };
}

/// Takes `cost` permits now. A cost of 0 asks without charging.
///
/// Returns TOLLBAR_ALLOWED, TOLLBAR_DENIED, TOLLBAR_NEVER (the cost is above burst - C, see
/// above), or an error. `out`, unless NULL, gets the full decision. Its `remaining` is what this thread could take. With NULL
/// the call is much cheaper, because a thread with credit then does not read the clock.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_striped_check(
    striped: *const tollbar_striped,
    cost: u64,
    out: *mut tollbar_decision,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let striped = &unsafe { reference(striped) }?.striped;
        if out.is_null() {
            return Ok(striped.admit(cost) as i32);
        }
        answer(out, move || striped.check(cost))
    })
}

/// tollbar_striped_check at the caller's time. A limiter is either always called with the caller's time or
/// on the scale of its clock (tollbar_clock_now).
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_striped_check_at(
    striped: *const tollbar_striped,
    cost: u64,
    now_ns: u64,
    out: *mut tollbar_decision,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let striped = &unsafe { reference(striped) }?.striped;
        if out.is_null() {
            return Ok(striped.admit_at(now_ns, cost) as i32);
        }
        answer(out, move || striped.check_at(now_ns, cost))
    })
}

/// The permits that the calling thread could take now, one at a time: those that every thread may take, and its own credit.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_striped_available(striped: *const tollbar_striped, permits: *mut u64) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (striped, permits) = unsafe { (&reference(striped)?.striped, place(permits)?) };
        permits.write(striped.available());
        Ok(TOLLBAR_ALLOWED)
    })
}

/// tollbar_striped_available at the caller's time.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_striped_available_at(
    striped: *const tollbar_striped,
    now_ns: u64,
    permits: *mut u64,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (striped, permits) = unsafe { (&reference(striped)?.striped, place(permits)?) };
        permits.write(striped.available_at(now_ns));
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Makes the state fresh, except for the threads' credit. Other calls may run at the same time. An admission at the same
/// instant may survive the reset.
///
/// # Safety
/// `striped` is NULL or live.
#[no_mangle]
pub unsafe extern "C" fn tollbar_striped_reset(striped: *const tollbar_striped) -> i32 {
    guard(|| {
        // SAFETY: by the caller's promise.
        code(unsafe { reference(striped) }.map(|s| {
            s.striped.reset();
            TOLLBAR_ALLOWED
        }))
    })
}

/// Decisions since the limiter was made, of all threads. Each call counts once, by what it returned; errors do not count.
/// tollbar_striped_reset leaves the counts.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_striped_get_counts(striped: *const tollbar_striped, out: *mut tollbar_counts) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let striped = &unsafe { reference(striped) }?.striped;
        // SAFETY: by the caller's promise.
        unsafe { tell(striped.counts(), out) }
    })
}

fn make(policy: &Policy, clock: Source) -> Result<*mut tollbar_striped, i32> {
    boxed(tollbar_striped { striped: Striped::with(policy, clock).map_err(policy_code)? })
}
