//! Classes of requests that share a limit.

use super::boundary::*;
use super::check::put;
use super::decision::tollbar_decision;
use super::limiter::tollbar_limiter;
use super::policy::spec::TOLLBAR_CLASS_NAME_SIZE;
use super::status::*;
use super::table::{request_code, tollbar_table};
use core::ffi::{c_char, c_void};
use tollbar::decision::Decision;
use tollbar::table::PolicyId;

/// tollbar_limiter_check for a request that passes only if at least `reserve` permits are left
/// after it. TOLLBAR_NEVER if the cost and the reserve together are above the burst.
/// TOLLBAR_E_OPTION_MISMATCH for a limiter without reserves (see above).
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
    guard(|| code(unsafe { check(limiter, cost, Leave::Permits(reserve), None, out) }))
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
    guard(|| code(unsafe { check(limiter, cost, Leave::Permits(reserve), Some(now_ns), out) }))
}

/// tollbar_table_check for a request that passes only if the key has at least `reserve` permits
/// left after it. TOLLBAR_NEVER if the cost and the reserve together are above the burst.
/// TOLLBAR_E_OPTION_MISMATCH under a policy without reserves (see above).
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
    guard(|| {
        // SAFETY: by the caller's promise.
        code(unsafe {
            check_key(table, policy, key, length, cost, Leave::Permits(reserve), None, out)
        })
    })
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
    guard(|| {
        // SAFETY: by the caller's promise.
        code(unsafe {
            check_key(table, policy, key, length, cost, Leave::Permits(reserve), Some(now_ns), out)
        })
    })
}

/// tollbar_limiter_check for a request of a class of the policy ("100/s reserve low 20 high 0"): it
/// passes only if the class's reserve is left after it. `class_name` is NUL-terminated: the name,
/// or the number in decimal, which is "1" for the first class. A refusal for the reserve has
/// TOLLBAR_REASON_RESERVE. TOLLBAR_NEVER if the cost and the reserve together are above the burst.
/// TOLLBAR_E_NO_SUCH_CLASS if the policy has no such class.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_limiter_check_class(
    limiter: *const tollbar_limiter,
    cost: u64,
    class_name: *const c_char,
    out: *mut tollbar_decision,
) -> i32 {
    guard(|| {
        // SAFETY: by the caller's promise.
        code(unsafe {
            Leave::class(class_name).and_then(|leave| check(limiter, cost, leave, None, out))
        })
    })
}

/// tollbar_limiter_check_class at the caller's time.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_limiter_check_class_at(
    limiter: *const tollbar_limiter,
    cost: u64,
    class_name: *const c_char,
    now_ns: u64,
    out: *mut tollbar_decision,
) -> i32 {
    guard(|| {
        // SAFETY: by the caller's promise.
        code(unsafe {
            Leave::class(class_name)
                .and_then(|leave| check(limiter, cost, leave, Some(now_ns), out))
        })
    })
}

/// tollbar_table_check for a request of a class of the policy. `class_name` and the results are
/// those of tollbar_limiter_check_class. For a key with an override the classes are the override's.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_table_check_class(
    table: *const tollbar_table,
    policy: u32,
    key: *const c_void,
    length: usize,
    cost: u64,
    class_name: *const c_char,
    out: *mut tollbar_decision,
) -> i32 {
    // SAFETY: by the caller's promise.
    let decide = |leave| unsafe { check_key(table, policy, key, length, cost, leave, None, out) };
    // SAFETY: by the caller's promise.
    guard(|| code(unsafe { Leave::class(class_name) }.and_then(decide)))
}

/// tollbar_table_check_class at the caller's time.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_table_check_class_at(
    table: *const tollbar_table,
    policy: u32,
    key: *const c_void,
    length: usize,
    cost: u64,
    class_name: *const c_char,
    now_ns: u64,
    out: *mut tollbar_decision,
) -> i32 {
    // SAFETY: by the caller's promise.
    let decide =
        |leave| unsafe { check_key(table, policy, key, length, cost, leave, Some(now_ns), out) };
    // SAFETY: by the caller's promise.
    guard(|| code(unsafe { Leave::class(class_name) }.and_then(decide)))
}

/// The reserve of a request: how many permits must be left after it.
#[derive(Clone, Copy)]
enum Leave<'a> {
    Permits(u64),
    /// The reserve of this class.
    Class(&'a [u8]),
}

impl Leave<'_> {
    /// # Safety
    /// `name` is null or NUL-terminated, and lives until the call returns.
    unsafe fn class(name: *const c_char) -> Result<Self, i32> {
        // SAFETY: by the caller's promise.
        unsafe { class_name(name) }.map(Leave::Class)
    }
}

/// # Safety
/// As the public calls.
unsafe fn check(
    limiter: *const tollbar_limiter,
    cost: u64,
    leave: Leave<'_>,
    now: Option<u64>,
    out: *mut tollbar_decision,
) -> Result<i32, i32> {
    // SAFETY: by the caller's promise.
    let limiter = &unsafe { reference(limiter) }?.limiter;
    let size = size_of_out(out)?;
    let now = now.unwrap_or_else(|| limiter.now());
    let decision = match leave {
        Leave::Permits(reserve) => limiter.check_leaving_at(now, cost, reserve),
        Leave::Class(class) => limiter.check_class_at(now, cost, class),
    };
    let decision = decision.map_err(policy_code)?;
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
    leave: Leave<'_>,
    now: Option<u64>,
    out: *mut tollbar_decision,
) -> Result<i32, i32> {
    // SAFETY: by the caller's promise.
    let (table, key) = unsafe { (&reference(table)?.table, bytes(key.cast(), length)?) };
    let size = size_of_out(out)?;
    let now = now.unwrap_or_else(|| table.now());
    let policy = PolicyId::new(policy);
    let decision = match leave {
        Leave::Permits(reserve) => table.check_leaving_at(policy, key, now, cost, reserve),
        Leave::Class(class) => table.check_class_at(policy, key, now, cost, class),
    };
    let decision = decision.map_err(request_code)?;
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
/// `out` is null, or points to a writable struct of `size` bytes, which [`size_at`] has returned
/// for it.
unsafe fn write(out: *mut tollbar_decision, size: usize, decision: &Decision) -> Result<i32, i32> {
    match out.is_null() {
        true => Ok(decision.verdict as i32),
        // SAFETY: by the caller's promise.
        false => unsafe { put(out, size, decision) },
    }
}

/// The bytes of a class's name in a call. A name that is too long is cut, and then no class has it.
///
/// # Safety
/// `name` is null or NUL-terminated, and lives as long as the result is used.
pub(super) unsafe fn class_name<'a>(name: *const c_char) -> Result<&'a [u8], i32> {
    if name.is_null() {
        return Err(TOLLBAR_E_NULL);
    }
    // SAFETY: `strnlen` reads up to the NUL, and no more bytes than that are in the slice.
    Ok(unsafe {
        core::slice::from_raw_parts(
            name.cast(),
            libc::strnlen(name, TOLLBAR_CLASS_NAME_SIZE as usize),
        )
    })
}
