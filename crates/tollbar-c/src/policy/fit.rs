//! Policies of a refill function.

use super::conversion::spec_of;
use super::spec::tollbar_policy_spec;
use crate::boundary::*;
use crate::status::*;
use core::ffi::{c_char, c_void};
use core::mem::size_of;
use tollbar::limiter::State;
use tollbar::policy::fit::{Fit, FitError, FitFault, TIMES};
use tollbar::policy::{Knots, Policy};

/// The values of a function that tollbar_policy_spec_samples takes as they are.
pub const TOLLBAR_CURVE_TIMES: usize = 40001;
const _: () = assert!(TOLLBAR_CURVE_TIMES == TIMES);

/// How near a curve is to the function that it was made of, or why there is none.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tollbar_curve_fit {
    /// sizeof(tollbar_curve_fit), as the caller's compiler sees it.
    pub struct_size: u32,
    /// The result that the call returned.
    pub code: i32,
    /// After 0: the largest difference between the curve and the function that was found, as a
    /// share of the limit (0.001 is a permille). Otherwise 0.
    pub error: f64,
    /// The time of that difference, or of the refused value, as a share of the slice.
    pub time: f64,
    /// The function's value at that time.
    pub value: f64,
    /// The value that the call expected there, in English. The string is static. It is empty if the
    /// call returned 0.
    pub expected: *const c_char,
}

// SAFETY: repr(C), u32 first, without holes; null is a value of the pointer.
unsafe impl Growable for tollbar_curve_fit {
    const FIRST_SIZE: usize = 32 + size_of::<usize>();
}

/// Makes a policy of the algorithm `curve` whose permits come as a function says: `share` gets a
/// time in the slice from 0 to 1 and returns the share of `limit` that has come by then, from 0 to
/// 1. A slice is `period_ns` nanoseconds long and admits exactly `limit` permits.
///
/// The call asks `share` at 40,001 times in rising order and sets up to 64 knots, so the policy's
/// text is that of any curve. Unless NULL, `fit` gets the largest difference between curve and
/// function: at most half a permille of the limit for a smooth function of up to twelve convex or
/// concave pieces, and at most a permille for up to twenty. The difference is larger in two
/// places, because knots stand at hundredths of a percent of the slice. If the function jumps
/// between two of them, the curve jumps at the later one. And the curve cannot follow a function
/// that rises by a percent or more from one to the next, as the square root does at 0.
///
/// `share` must not fall, must end at 1, and is not called any more after a value that breaks a
/// rule. The call then returns TOLLBAR_E_OUT_OF_RANGE for a value that is no share (such as NaN),
/// or TOLLBAR_E_KNOTS for one that falls or a last one that is not 1, and `fit` has the time and
/// the value. Differences below 1e-7 are taken for rounding. Other results: TOLLBAR_E_NO_MEMORY,
/// and those of tollbar_policy_spec_validate. `context` is passed on as it is. `share` must return,
/// so it throws no C++ exception and does not longjmp.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_policy_spec_curve(
    limit: u64,
    period_ns: u64,
    share: Option<unsafe extern "C" fn(time: f64, context: *mut c_void) -> f64>,
    context: *mut c_void,
    out: *mut tollbar_policy_spec,
    fit: *mut tollbar_curve_fit,
) -> i32 {
    call(|| {
        let share = share.ok_or(TOLLBAR_E_NULL)?;
        // SAFETY: by the caller's promise.
        let mut share = |time| unsafe { share(time, context) };
        // SAFETY: by the caller's promise.
        unsafe { curve(limit, period_ns, &mut share, out, fit) }
    })
}

/// tollbar_policy_spec_curve for values instead of a function: the shares at `count` times with
/// equal distances, the first at 0 and the last at 1. Between two of them the function is straight.
/// There are at least two. Of TOLLBAR_CURVE_TIMES values each is used as it is.
///
/// # Safety
/// `shares` has `count` readable values; other pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_policy_spec_samples(
    limit: u64,
    period_ns: u64,
    shares: *const f64,
    count: usize,
    out: *mut tollbar_policy_spec,
    fit: *mut tollbar_curve_fit,
) -> i32 {
    call(|| {
        let Some(last) = count.checked_sub(1).filter(|last| *last > 0) else {
            return Err(TOLLBAR_E_OUT_OF_RANGE);
        };
        array(shares, count)?;
        // SAFETY: checked; by the caller's promise so many readable values.
        let shares = unsafe { core::slice::from_raw_parts(shares, count) };
        let mut share = |time: f64| {
            let place = time * last as f64;
            let n = (place as usize).min(last - 1);
            let (from, to) = (shares.get(n).copied(), shares.get(n + 1).copied());
            let (from, to) = (from.unwrap_or(f64::NAN), to.unwrap_or(f64::NAN));
            match place - n as f64 {
                // Not a product of 0 and an infinite rise.
                0.0 => from,
                1.0 => to,
                part => from + (to - from) * part,
            }
        };
        // SAFETY: by the caller's promise.
        unsafe { curve(limit, period_ns, &mut share, out, fit) }
    })
}

/// Makes the policy of a refill function. `fit` gets how near it is, or the fault.
///
/// # Safety
/// `out` and `fit` are null or writable.
#[inline(never)]
unsafe fn curve(
    limit: u64,
    period: u64,
    share: &mut dyn FnMut(f64) -> f64,
    out: *mut tollbar_policy_spec,
    fit: *mut tollbar_curve_fit,
) -> Result<i32, i32> {
    size_at(out)?;
    if !fit.is_null() {
        size_at(fit)?;
    }
    let mut answer = tollbar_curve_fit {
        struct_size: 0,
        code: TOLLBAR_ALLOWED,
        error: 0.0,
        time: 0.0,
        value: 0.0,
        expected: c"".as_ptr(),
    };
    let made = match Knots::fit(share) {
        Ok(Fit { knots, error, time, value }) => {
            (answer.error, answer.time, answer.value) = (error, time, value);
            let policy = Policy::new(limit, period).with_curve(knots);
            State::validate(&policy).map(|()| policy).map_err(policy_code)
        }
        Err(FitError { fault, time, value }) => {
            (answer.time, answer.value) = (time, value);
            let (code, expected) = match fault {
                FitFault::Range => (TOLLBAR_E_OUT_OF_RANGE, c"a share from 0 to 1"),
                FitFault::Falls => (TOLLBAR_E_KNOTS, c"a share that is not below those before it"),
                FitFault::End => (TOLLBAR_E_KNOTS, c"1: a slice gets its whole limit"),
                FitFault::NoMemory => (TOLLBAR_E_NO_MEMORY, c"more memory"),
            };
            answer.expected = expected.as_ptr();
            Err(code)
        }
    };
    answer.code = made.as_ref().err().copied().unwrap_or(TOLLBAR_ALLOWED);
    if !fit.is_null() {
        // SAFETY: size_at has checked it; by the caller's promise writable.
        unsafe { write(fit, &answer) }?;
    }
    // SAFETY: as above.
    unsafe { write(out, &spec_of(&made?)) }.map(|()| TOLLBAR_ALLOWED)
}
