//! A thread's credit for the hottest keys of a table.

use super::boundary::*;
use super::status::*;
use super::table::{table_code, tollbar_table, Code};
use core::ffi::{c_char, c_void};
use tollbar::table::{HotKeys, PolicyId};

/// One thread's credit for the keys of a table that it checks most often. Only one thread at a time may use it.
pub struct tollbar_hot_keys {
    keys: HotKeys<'static>,
}

/// Makes room for the credit of about `keys` keys, 34 bytes each. A number below 64 means 64, and a number above 65,536
/// means 65,536. The table must outlive `*out`. The caller frees `*out` with tollbar_hot_keys_free.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_hot_keys_new(
    table: *const tollbar_table,
    keys: u32,
    out: *mut *mut tollbar_hot_keys,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise, which for the table is until after tollbar_hot_keys_free.
        let (out, table) = unsafe { (place(out)?, reference::<'static>(table)?) };
        let keys = HotKeys::new(&table.table, keys).map_err(table_code)?;
        out.write(boxed(tollbar_hot_keys { keys })?);
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Frees a thread's credit, whose permits are lost. NULL is a no-op.
///
/// # Safety
/// `hot_keys` is NULL or has not been freed.
#[no_mangle]
pub unsafe extern "C" fn tollbar_hot_keys_free(hot_keys: *mut tollbar_hot_keys) {
    // SAFETY: by the caller's promise.
    unsafe { unboxed(hot_keys) };
}

/// Decides as tollbar_table_check, from the thread's credit if it has any. tollbar_table_peek reports the remaining permits of
/// a key without the credit that threads hold.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_hot_keys_check(
    hot_keys: *mut tollbar_hot_keys,
    policy: u32,
    key: *const c_void,
    length: usize,
    cost: u64,
) -> i32 {
    // SAFETY: by the caller's promise.
    guard(|| code(unsafe { check(hot_keys, policy, key, length, None, cost) }))
}

/// tollbar_hot_keys_check at the caller's time, as tollbar_table_check_at.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_hot_keys_check_at(
    hot_keys: *mut tollbar_hot_keys,
    policy: u32,
    key: *const c_void,
    length: usize,
    cost: u64,
    now_ns: u64,
) -> i32 {
    // SAFETY: by the caller's promise.
    guard(|| code(unsafe { check(hot_keys, policy, key, length, Some(now_ns), cost) }))
}

/// Both calls share one copy of this code, because hashing a key makes it long.
///
/// # Safety
/// As the callers'.
#[inline(never)]
unsafe fn check(
    hot_keys: *mut tollbar_hot_keys,
    policy: u32,
    key: *const c_void,
    length: usize,
    now: Option<u64>,
    cost: u64,
) -> Result<i32, i32> {
    // SAFETY: by the caller's promise; nobody else is in a call with it.
    let (keys, key) = unsafe { (exclusive(hot_keys)?, bytes(key.cast::<c_char>(), length)?) };
    let Code(code) = keys.keys.decide(PolicyId::new(policy), key, now, cost);
    Ok(code)
}
