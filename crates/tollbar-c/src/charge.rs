//! Charges without asking.

use super::boundary::*;
use super::limiter::tollbar_limiter;
use super::status::*;
use super::table::{request_code, tollbar_table};
use core::ffi::c_void;
use tollbar::table::PolicyId;

/// Charges `cost` permits of the key under policy number `policy` without asking, now. Returns
/// TOLLBAR_ALLOWED if all of them have been charged, TOLLBAR_DENIED if the key's state has no room
/// for some, or an error. `*rest`, unless `rest` is NULL, gets the number of permits that have not
/// been charged. Of a list of two policies each is charged as far as it has room, and the rest is
/// what one of them could not take.
///
/// A new key takes a slot as it does with its first admission. In a full table nothing is charged
/// with TOLLBAR_ON_FULL_DENY and TOLLBAR_ON_FULL_ALLOW. An exempt key is charged nothing, with a
/// rest of 0.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_table_charge(
    table: *const tollbar_table,
    policy: u32,
    key: *const c_void,
    length: usize,
    cost: u64,
    rest: *mut u64,
) -> i32 {
    // SAFETY: by the caller's promise.
    guard(|| code(unsafe { charge_key(table, policy, key, length, cost, None, rest) }))
}

/// tollbar_table_charge at the caller's time.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_table_charge_at(
    table: *const tollbar_table,
    policy: u32,
    key: *const c_void,
    length: usize,
    cost: u64,
    now_ns: u64,
    rest: *mut u64,
) -> i32 {
    // SAFETY: by the caller's promise.
    guard(|| code(unsafe { charge_key(table, policy, key, length, cost, Some(now_ns), rest) }))
}

/// tollbar_table_charge for a limiter.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_limiter_charge(
    limiter: *const tollbar_limiter,
    cost: u64,
    rest: *mut u64,
) -> i32 {
    // SAFETY: by the caller's promise.
    guard(|| code(unsafe { charge(limiter, cost, None, rest) }))
}

/// tollbar_limiter_charge at the caller's time.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_limiter_charge_at(
    limiter: *const tollbar_limiter,
    cost: u64,
    now_ns: u64,
    rest: *mut u64,
) -> i32 {
    // SAFETY: by the caller's promise.
    guard(|| code(unsafe { charge(limiter, cost, Some(now_ns), rest) }))
}

/// # Safety
/// As the public calls.
unsafe fn charge_key(
    table: *const tollbar_table,
    policy: u32,
    key: *const c_void,
    length: usize,
    cost: u64,
    now: Option<u64>,
    rest: *mut u64,
) -> Result<i32, i32> {
    // SAFETY: by the caller's promise.
    let (table, key) = unsafe { (&reference(table)?.table, bytes(key.cast(), length)?) };
    aligned(rest)?;
    let left = table.try_charge(PolicyId::new(policy), key, now, cost).map_err(request_code)?;
    // SAFETY: by the caller's promise.
    Ok(unsafe { write_rest(left, rest) })
}

/// # Safety
/// As the public calls.
unsafe fn charge(
    limiter: *const tollbar_limiter,
    cost: u64,
    now: Option<u64>,
    rest: *mut u64,
) -> Result<i32, i32> {
    // SAFETY: by the caller's promise.
    let limiter = &unsafe { reference(limiter) }?.limiter;
    aligned(rest)?;
    let left = limiter.charge_at(now.unwrap_or_else(|| limiter.now()), cost);
    // SAFETY: by the caller's promise.
    Ok(unsafe { write_rest(left, rest) })
}

/// Checks that the rest can be written. Callers run it before they charge anything.
fn aligned(rest: *mut u64) -> Result<(), i32> {
    match rest.is_aligned() {
        true => Ok(()),
        false => Err(TOLLBAR_E_MISALIGNED),
    }
}

/// # Safety
/// `rest` is null, or aligned and writable.
unsafe fn write_rest(left: u64, rest: *mut u64) -> i32 {
    if !rest.is_null() {
        // SAFETY: aligned, and writable by the caller's promise.
        unsafe { rest.write(left) };
    }
    if left == 0 {
        TOLLBAR_ALLOWED
    } else {
        TOLLBAR_DENIED
    }
}
