//! Classes of requests that share a limit.

use super::boundary::*;
use super::check::put;
use super::decision::tollbar_decision;
use super::limiter::tollbar_limiter;
use super::table::{table_code, tollbar_table};
use core::ffi::c_void;
use tollbar::decision::Decision;
use tollbar::table::PolicyId;

/// tollbar_limiter_check for a request that passes only if at least `reserve` permits are left after it. TOLLBAR_NEVER if the cost and the
/// reserve together are above the burst. TOLLBAR_E_OPTION_MISMATCH for a limiter without reserves (see above).
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_limiter_check_leaving(
    limiter: *const tollbar_limiter,
    cost: u64,
    reserve: u64,
    out: *mut tollbar_decision,
) -> i32 {
    // SAFETY: by the caller's promise.
    guard(|| code(unsafe { check(limiter, cost, reserve, None, out) }))
}

/// tollbar_limiter_check_leaving at the caller's time.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_limiter_check_leaving_at(
    limiter: *const tollbar_limiter,
    cost: u64,
    reserve: u64,
    now_ns: u64,
    out: *mut tollbar_decision,
) -> i32 {
    // SAFETY: by the caller's promise.
    guard(|| code(unsafe { check(limiter, cost, reserve, Some(now_ns), out) }))
}

/// tollbar_table_check for a request that passes only if the key has at least `reserve` permits left after it. TOLLBAR_NEVER if the cost and
/// the reserve together are above the burst. TOLLBAR_E_OPTION_MISMATCH under a policy without reserves (see above).
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_table_check_leaving(
    table: *const tollbar_table,
    policy: u32,
    key: *const c_void,
    length: usize,
    cost: u64,
    reserve: u64,
    out: *mut tollbar_decision,
) -> i32 {
    // SAFETY: by the caller's promise.
    guard(|| code(unsafe { check_key(table, policy, key, length, cost, reserve, None, out) }))
}

/// tollbar_table_check_leaving at the caller's time.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_table_check_leaving_at(
    table: *const tollbar_table,
    policy: u32,
    key: *const c_void,
    length: usize,
    cost: u64,
    reserve: u64,
    now_ns: u64,
    out: *mut tollbar_decision,
) -> i32 {
    // SAFETY: by the caller's promise.
    guard(|| code(unsafe { check_key(table, policy, key, length, cost, reserve, Some(now_ns), out) }))
}

/// # Safety
/// As the public calls.
unsafe fn check(
    limiter: *const tollbar_limiter,
    cost: u64,
    reserve: u64,
    now: Option<u64>,
    out: *mut tollbar_decision,
) -> Result<i32, i32> {
    // SAFETY: by the caller's promise.
    let limiter = &unsafe { reference(limiter) }?.limiter;
    let size = size_of_out(out)?;
    let now = now.unwrap_or_else(|| limiter.now());
    let decision = limiter.check_leaving_at(now, cost, reserve).map_err(policy_code)?;
    // SAFETY: by the caller's promise.
    unsafe { write(out, size, &decision) }
}

/// # Safety
/// As the public calls.
#[allow(clippy::too_many_arguments)] // those of the public calls
unsafe fn check_key(
    table: *const tollbar_table,
    policy: u32,
    key: *const c_void,
    length: usize,
    cost: u64,
    reserve: u64,
    now: Option<u64>,
    out: *mut tollbar_decision,
) -> Result<i32, i32> {
    // SAFETY: by the caller's promise.
    let (table, key) = unsafe { (&reference(table)?.table, bytes(key.cast(), length)?) };
    let size = size_of_out(out)?;
    let now = now.unwrap_or_else(|| table.now());
    let decision = table.check_leaving_at(PolicyId::new(policy), key, now, cost, reserve).map_err(table_code)?;
    // SAFETY: by the caller's promise.
    unsafe { write(out, size, &decision) }
}

/// The size of the caller's struct; 0 for NULL. Callers check it before they charge anything.
fn size_of_out(out: *mut tollbar_decision) -> Result<usize, i32> {
    match out.is_null() {
        true => Ok(0),
        false => size_at(out),
    }
}

/// # Safety
/// `out` is null, or points to a writable struct of `size` bytes, which [`size_at`] has returned for it.
unsafe fn write(out: *mut tollbar_decision, size: usize, decision: &Decision) -> Result<i32, i32> {
    match out.is_null() {
        true => Ok(decision.verdict as i32),
        // SAFETY: by the caller's promise.
        false => unsafe { put(out, size, decision) },
    }
}
