//! Batches, and the other calls for keys of tables.

use super::boundary::*;
use super::check::Code;
use super::status::*;
use super::table::{request_code, table_code, table_of, tollbar_table};
use core::ffi::c_void;
use tollbar::table::{AsRequest, PolicyId, Request, Table};

/// One request of a batch.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tollbar_request {
    /// The key.
    pub key: *const c_void,
    /// Its bytes.
    pub length: usize,
    /// The permits asked for.
    pub cost: u64,
    /// The policy's number.
    pub policy: u32,
    /// 0, or the number of the request's class: 1 for the policy's first one.
    pub class_number: u32,
}

/// Decides on `count` requests in turn with one reading of the clock. `results[i]` gets what
/// tollbar_table_check would have returned for the i-th. It is faster than one call for each
/// request, because it prefetches the memory of all keys first. Returns 0, or an error of the whole
/// batch. Then nothing has been charged.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_table_check_many(
    table: *const tollbar_table,
    requests: *const tollbar_request,
    count: usize,
    results: *mut i32,
) -> i32 {
    // SAFETY: by the caller's promise.
    guard(|| code(unsafe { check_many(table, None, requests, count, results) }))
}

/// tollbar_table_check_many at the caller's time.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_table_check_many_at(
    table: *const tollbar_table,
    requests: *const tollbar_request,
    count: usize,
    now_ns: u64,
    results: *mut i32,
) -> i32 {
    // SAFETY: by the caller's promise.
    guard(|| code(unsafe { check_many(table, Some(now_ns), requests, count, results) }))
}

/// Takes all permits that are left, `most` at the most, and writes their number to `*taken`.
/// Returns TOLLBAR_ALLOWED if it took any, otherwise TOLLBAR_DENIED.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_table_take_up_to(
    table: *const tollbar_table,
    policy: u32,
    key: *const c_void,
    length: usize,
    most: u64,
    taken: *mut u64,
) -> i32 {
    // SAFETY: by the caller's promise.
    guard(|| code(unsafe { take_up_to(table, policy, key, length, None, most, taken) }))
}

/// tollbar_table_take_up_to at the caller's time.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_table_take_up_to_at(
    table: *const tollbar_table,
    policy: u32,
    key: *const c_void,
    length: usize,
    most: u64,
    now_ns: u64,
    taken: *mut u64,
) -> i32 {
    // SAFETY: by the caller's promise.
    guard(|| code(unsafe { take_up_to(table, policy, key, length, Some(now_ns), most, taken) }))
}

/// Gives a key a fresh state. The key's slot stays taken until its debt would have been paid, and
/// its next charge takes another slot. If all of its other slots are taken, by earlier resets of
/// the key or because the table is full, a key under gcra begins again in its slot. Returns
/// TOLLBAR_YES. Under other algorithms the call then returns TOLLBAR_NO and changes nothing.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_table_reset(
    table: *const tollbar_table,
    policy: u32,
    key: *const c_void,
    length: usize,
) -> i32 {
    // SAFETY: by the caller's promise.
    guard(|| code(unsafe { reset(table, policy, key, length, None) }))
}

/// tollbar_table_reset at the caller's time.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_table_reset_at(
    table: *const tollbar_table,
    policy: u32,
    key: *const c_void,
    length: usize,
    now_ns: u64,
) -> i32 {
    // SAFETY: by the caller's promise.
    guard(|| code(unsafe { reset(table, policy, key, length, Some(now_ns)) }))
}

/// Exempts a key under that policy: it always passes and is charged nothing. A table has room for
/// some 1,600 exempt keys.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_table_exempt(
    table: *const tollbar_table,
    policy: u32,
    key: *const c_void,
    length: usize,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (table, key) = unsafe { (table_of(table)?, bytes(key.cast(), length)?) };
        table.exempt(PolicyId::new(policy), key).map_err(table_code)?;
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Ends a key's exemption under that policy. Returns TOLLBAR_YES, or TOLLBAR_NO if the key was not
/// exempt.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_table_unexempt(
    table: *const tollbar_table,
    policy: u32,
    key: *const c_void,
    length: usize,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (table, key) = unsafe { (table_of(table)?, bytes(key.cast(), length)?) };
        let was = table.unexempt(PolicyId::new(policy), key).map_err(request_code)?;
        Ok(if was { TOLLBAR_YES } else { TOLLBAR_NO })
    })
}

/// Writes the hash by which the table knows a key to `*hash`. tollbar_table_next shows the same
/// hash.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_table_hash(
    table: *const tollbar_table,
    policy: u32,
    key: *const c_void,
    length: usize,
    hash: *mut u64,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (table, key, out) =
            unsafe { (table_of(table)?, bytes(key.cast(), length)?, place(hash)?) };
        out.write(table.hash(PolicyId::new(policy), key).map_err(request_code)?);
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Writes the time that calls without `_at` use to `*now_ns`: nanoseconds of UTC since
/// TOLLBAR_TIME_ZERO. The process that made the table read CLOCK_REALTIME once, and all processes
/// count on from there, so this time never steps. A file's time goes on after a restart of the
/// machine. On TOLLBAR_CLOCK_WALL it is Unix time.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_table_now(table: *const tollbar_table, now_ns: *mut u64) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (table, out) = unsafe { (table_of(table)?, place(now_ns)?) };
        out.write(table.now());
        Ok(TOLLBAR_ALLOWED)
    })
}

/// # Safety
/// As the public calls.
unsafe fn take_up_to(
    table: *const tollbar_table,
    policy: u32,
    key: *const c_void,
    length: usize,
    now: Option<u64>,
    most: u64,
    taken: *mut u64,
) -> Result<i32, i32> {
    // SAFETY: by the caller's promise.
    let (table, key, taken) =
        unsafe { (table_of(table)?, bytes(key.cast(), length)?, place(taken)?) };
    let permits =
        table.try_take_up_to(PolicyId::new(policy), key, now, most).map_err(request_code)?;
    taken.write(permits);
    Ok(if permits == 0 { TOLLBAR_DENIED } else { TOLLBAR_ALLOWED })
}

/// # Safety
/// As the public calls.
unsafe fn reset(
    table: *const tollbar_table,
    policy: u32,
    key: *const c_void,
    length: usize,
    now: Option<u64>,
) -> Result<i32, i32> {
    // SAFETY: by the caller's promise.
    let (table, key) = unsafe { (table_of(table)?, bytes(key.cast(), length)?) };
    let now = now.unwrap_or_else(|| table.now());
    let done = table.reset_at(PolicyId::new(policy), key, now).map_err(request_code)?;
    Ok(if done { TOLLBAR_YES } else { TOLLBAR_NO })
}

/// # Safety
/// `requests` is null or has `count` entries whose keys are readable; `results` is null or has
/// `count` places.
unsafe fn check_many(
    table: *const tollbar_table,
    now: Option<u64>,
    requests: *const tollbar_request,
    count: usize,
    results: *mut i32,
) -> Result<i32, i32> {
    // SAFETY: by the caller's promise.
    let table = unsafe { table_of(table) }?;
    array(requests, count)?;
    array(results, count)?;
    if count == 0 {
        return Ok(TOLLBAR_ALLOWED);
    }
    // SAFETY: both have `count` entries by the caller's promise.
    let (requests, results) = unsafe {
        (
            core::slice::from_raw_parts(requests, count),
            core::slice::from_raw_parts_mut(results, count),
        )
    };
    let mut classes = 0;
    for request in requests {
        // SAFETY: the slice is dropped unread; only its pointer and length are checked.
        unsafe { bytes(request.key.cast(), request.length) }?;
        classes |= request.class_number;
    }
    if classes != 0 {
        check_classes(table, now, requests, results);
        return Ok(TOLLBAR_ALLOWED);
    }
    table.batch(now, requests, results, |result, answer: Code| {
        *result = answer.0;
    });
    Ok(TOLLBAR_ALLOWED)
}

/// [`check_many`] of a batch of which some requests name a class.
#[inline(never)]
fn check_classes(
    table: &Table,
    now: Option<u64>,
    requests: &[tollbar_request],
    results: &mut [i32],
) {
    let now = now.unwrap_or_else(|| table.now());
    for (request, result) in requests.iter().zip(results) {
        let Request { policy, key, cost } = request.view();
        let decided = match request.class_number {
            0 => table.try_check(policy, key, Some(now), cost),
            // A number of two digits is no class's.
            number => table.check_class_at(
                policy,
                key,
                now,
                cost,
                &[b'0'.saturating_add(number.min(10) as u8)],
            ),
        };
        *result = decided.map_or_else(request_code, |decision| decision.verdict as i32);
    }
}

impl AsRequest for tollbar_request {
    /// The core's view of a request whose key `check_many` has checked. The batch keeps no
    /// reference to it.
    #[inline(always)]
    fn view(&self) -> Request<'_> {
        let key = match self.key.is_null() {
            true => &[],
            // SAFETY: not null; `check_many` has checked the length; readable by the caller's
            // promise for the time of the call, which is longer than this reference is used.
            false => unsafe { core::slice::from_raw_parts(self.key.cast(), self.length) },
        };
        Request { policy: PolicyId::new(self.policy), key, cost: self.cost }
    }
}
