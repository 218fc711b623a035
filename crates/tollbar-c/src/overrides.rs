//! Keys with a policy of their own.

use super::boundary::*;
use super::policy::{policy as policy_of, spec_of, tollbar_policy_spec};
use super::status::*;
use super::table::{request_code, table_code, tollbar_table};
use core::ffi::c_void;
use core::mem::size_of;
use tollbar::table::PolicyId;

/// A key with a policy of its own.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tollbar_table_override {
    /// sizeof(tollbar_table_override), as the caller's compiler sees it.
    pub struct_size: u32,
    /// The policy's number that calls name.
    pub policy: u32,
    /// The key's hash under that policy (tollbar_table_hash). The table stores nothing else of the
    /// key.
    pub hash: u64,
    /// The `from` of the next call.
    pub next: u64,
}

// SAFETY: repr(C), u32 first, u32 and u64 fields without holes.
unsafe impl Growable for tollbar_table_override {
    const FIRST_SIZE: usize = 24;
}

const _: () = assert!(size_of::<tollbar_table_override>() == 24);

/// Gives a key a policy of its own in place of number `policy`, or another one if it has one.
/// `keep`, a TOLLBAR_KEEP_ number, says what the key keeps of its debt when the override begins,
/// and when it ends. The key comes under it at its next request, in every process.
///
/// Returns TOLLBAR_E_OVERRIDES_FULL if as many keys have overrides as the table's options allow,
/// TOLLBAR_E_POLICY_VERSIONS if too many different policies are in use, and
/// TOLLBAR_E_MIXED_POLICIES if this policy or that of the table is a sliding window or log and the
/// table has no room (tollbar_table_options.room), or TOLLBAR_E_SLOT_ROOM if it has too little. An
/// error changes nothing.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_table_set_override(
    table: *const tollbar_table,
    policy: u32,
    key: *const c_void,
    length: usize,
    spec: *const tollbar_policy_spec,
    keep: u32,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (table, key, own) =
            unsafe { (reference(table)?, bytes(key.cast(), length)?, policy_of(spec)?) };
        let keep = keep_of(keep)?;
        table.table.set_override(PolicyId::new(policy), key, &own, keep).map_err(table_code)?;
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Puts a key back under policy number `policy`. Returns TOLLBAR_YES, or TOLLBAR_NO if it had no
/// override.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_table_clear_override(
    table: *const tollbar_table,
    policy: u32,
    key: *const c_void,
    length: usize,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (table, key) = unsafe { (reference(table)?, bytes(key.cast(), length)?) };
        let had = table.table.clear_override(PolicyId::new(policy), key).map_err(request_code)?;
        Ok(if had { TOLLBAR_YES } else { TOLLBAR_NO })
    })
}

/// Writes to `out` the policy that a key has of its own in place of number `policy`. Returns
/// TOLLBAR_YES, or TOLLBAR_NO if it has none.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_table_get_override(
    table: *const tollbar_table,
    policy: u32,
    key: *const c_void,
    length: usize,
    out: *mut tollbar_policy_spec,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (table, key) = unsafe { (reference(table)?, bytes(key.cast(), length)?) };
        size_at(out)?;
        match table.table.override_of(PolicyId::new(policy), key).map_err(request_code)? {
            // SAFETY: by the caller's promise; size_at has checked it.
            Some(own) => unsafe { write(out, &spec_of(&own)) }.map(|()| TOLLBAR_YES),
            None => Ok(TOLLBAR_NO),
        }
    })
}

/// Finds the first override from place `from` on, and writes its key to `out` and its policy to
/// `spec`, which may be NULL. Begin with `from` 0 and continue with `next`. Returns TOLLBAR_YES, or
/// TOLLBAR_NO if none is left. An override that is set or cleared between the calls may appear or
/// not.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_table_next_override(
    table: *const tollbar_table,
    from: u64,
    out: *mut tollbar_table_override,
    spec: *mut tollbar_policy_spec,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let table = &unsafe { reference(table) }?.table;
        size_at(out)?;
        if !spec.is_null() {
            size_at(spec)?;
        }
        let Some((found, next)) = table.next_override(from) else { return Ok(TOLLBAR_NO) };
        let value = tollbar_table_override {
            struct_size: 0,
            policy: found.policy.number(),
            hash: found.hash,
            next,
        };
        if !spec.is_null() {
            // SAFETY: by the caller's promise; size_at has checked it.
            unsafe { write(spec, &spec_of(&found.of)) }?;
        }
        // SAFETY: by the caller's promise; size_at has checked it.
        unsafe { write(out, &value) }.map(|()| TOLLBAR_YES)
    })
}
