//! Hierarchies: classes with a guaranteed rate and a ceiling, that borrow what is idle.

use super::boundary::*;
use super::status::*;
use super::table::{request_code, tollbar_table};
use core::ffi::{c_char, c_void};
use core::mem::size_of;
use tollbar::hierarchy::{ClassId, Hierarchy, HierarchyError, Share};
use tollbar::table::PolicyId;

/// The root of a hierarchy.
pub const TOLLBAR_HIERARCHY_ROOT: u32 = 0;

/// A tree of classes. It is plain data of one process: the states are in a table.
pub struct tollbar_hierarchy {
    classes: Hierarchy,
}

/// The answer to a request for a class of a hierarchy.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tollbar_share {
    /// sizeof(tollbar_share), as the caller's compiler sees it.
    pub struct_size: u32,
    /// TOLLBAR_ALLOWED, TOLLBAR_DENIED or TOLLBAR_NEVER: what the call returned.
    pub verdict: u32,
    /// Permits that the leaf could take at this instant, as long as their interval stays the same.
    pub remaining: u64,
    /// Nanoseconds until the same request would be admitted if no other request came first. 0 if
    /// the request was admitted, TOLLBAR_NO_TIME if no wait would help.
    pub retry_after_ns: u64,
    /// Nanoseconds until no node from the leaf to the root owes anything if no other request comes
    /// first.
    pub reset_after_ns: u64,
    /// The nanoseconds that a permit costs the leaf at present: its rate is 10^9 / `interval_ns` a
    /// second.
    pub interval_ns: u64,
    /// One of TOLLBAR_REASON_*.
    pub reason: u32,
    /// The class of the binding node: of a refusal the one with the longest wait, and of an
    /// admission the one with the fewest permits left.
    pub bound: u32,
}

// SAFETY: repr(C), u32 first, u32 and u64 fields without holes.
unsafe impl Growable for tollbar_share {
    const FIRST_SIZE: usize = 48;
}

const _: () = assert!(size_of::<tollbar_share>() == 48);

/// Makes a hierarchy of up to `classes` classes, the root included, 1 to 65536. The root admits
/// `rate`, such as "1000/s", and is class TOLLBAR_HIERARCHY_ROOT. Its nodes are keys under the
/// policy of number `policy`, which is TOLLBAR_HIERARCHY_POLICY. `burst_ns`, 1 ms to 10 s and at
/// least twenty permits of `rate`, is the time for which a leaf may be ahead of its rate. The
/// caller frees `*out` with tollbar_hierarchy_free.
///
/// TOLLBAR_E_CLASS_RATE, TOLLBAR_E_OUT_OF_RANGE for a burst, TOLLBAR_E_CAPACITY for a number of
/// classes, TOLLBAR_E_NO_MEMORY.
///
/// # Safety
/// `rate` is NULL or NUL-terminated, `out` NULL or writable.
#[no_mangle]
pub unsafe extern "C" fn tollbar_hierarchy_new(
    rate: *const c_char,
    burst_ns: u64,
    classes: u32,
    policy: u32,
    out: *mut *mut tollbar_hierarchy,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (out, rate) = unsafe { (place(out)?, text(rate)?) };
        let made = Hierarchy::new(PolicyId::new(policy), rate, burst_ns, classes as usize)
            .map_err(hierarchy_code)?;
        out.write(boxed(tollbar_hierarchy { classes: made })?);
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Frees a hierarchy that no call is using. The table keeps its nodes. With NULL the call does
/// nothing.
///
/// # Safety
/// `hierarchy` is NULL or has not been freed.
#[no_mangle]
pub unsafe extern "C" fn tollbar_hierarchy_free(hierarchy: *mut tollbar_hierarchy) {
    // SAFETY: by the caller's promise.
    unsafe { unboxed(hierarchy) };
}

/// Adds a child of the class `parent`, and writes its number to `*out`. Processes find the same
/// nodes by `name`, which no other child of `parent` has. `guaranteed` is the rate that the child
/// gets whatever others ask for, or "" for none. `ceiling` is the rate that it never exceeds, or ""
/// for that of its parent. `keys` is 1, or the number of keys that each get such a node: at least
/// as many as ask at one time, because their guarantees count for the parent. No other call may use
/// the hierarchy at the same time.
///
/// TOLLBAR_E_OUT_OF_RANGE for 0 keys, TOLLBAR_E_GUARANTEE, TOLLBAR_E_CLASS_RATE,
/// TOLLBAR_E_CLASS_TREE, TOLLBAR_E_CLASS_NUMBER if there is no class `parent`, TOLLBAR_E_CAPACITY
/// if the hierarchy has all its classes. After an error nothing has been added.
///
/// # Safety
/// Texts are NULL or NUL-terminated, other pointers NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_hierarchy_add(
    hierarchy: *mut tollbar_hierarchy,
    parent: u32,
    name: *const c_char,
    guaranteed: *const c_char,
    ceiling: *const c_char,
    keys: u32,
    out: *mut u32,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (tree, out) = unsafe { (exclusive(hierarchy)?, place(out)?) };
        // SAFETY: by the caller's promise.
        let (name, guaranteed, ceiling) =
            unsafe { (bytes(name, length(name)?)?, text(guaranteed)?, text(ceiling)?) };
        let class = tree
            .classes
            .add(ClassId::new(parent), name, guaranteed, ceiling, keys)
            .map_err(hierarchy_code)?;
        out.write(class.number());
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Takes `cost` permits for the leaf class `leaf`, or for a key of it, from the leaf and all
/// classes above it, or from none. A key of 0 bytes is a node of its own, and `key` may then be
/// NULL. `out`, unless NULL, gets the answer.
///
/// Returns TOLLBAR_ALLOWED, TOLLBAR_DENIED, TOLLBAR_NEVER, or an error: TOLLBAR_E_CLASS_NUMBER if
/// there is no such class or it has children, TOLLBAR_E_OTHER_POLICIES if the table's policy is not
/// TOLLBAR_HIERARCHY_POLICY, and those of tollbar_table_check. After an error the call has charged
/// nothing.
///
/// # Safety
/// `key` has `key_length` readable bytes, or is NULL. Other pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_hierarchy_take(
    hierarchy: *const tollbar_hierarchy,
    table: *const tollbar_table,
    leaf: u32,
    key: *const c_void,
    key_length: usize,
    cost: u64,
    out: *mut tollbar_share,
) -> i32 {
    // SAFETY: by the caller's promise.
    guard(|| unsafe { code(take(hierarchy, table, leaf, (key, key_length), (cost, None), out)) })
}

/// tollbar_hierarchy_take at the caller's time, on the scale of the table's clock.
///
/// # Safety
/// Those of tollbar_hierarchy_take.
#[no_mangle]
pub unsafe extern "C" fn tollbar_hierarchy_take_at(
    hierarchy: *const tollbar_hierarchy,
    table: *const tollbar_table,
    leaf: u32,
    key: *const c_void,
    key_length: usize,
    cost: u64,
    now_ns: u64,
    out: *mut tollbar_share,
) -> i32 {
    // SAFETY: by the caller's promise.
    guard(|| unsafe {
        code(take(hierarchy, table, leaf, (key, key_length), (cost, Some(now_ns)), out))
    })
}

/// # Safety
/// As the public calls.
#[inline(never)]
unsafe fn take(
    hierarchy: *const tollbar_hierarchy,
    table: *const tollbar_table,
    leaf: u32,
    (key, key_length): (*const c_void, usize),
    (cost, now): (u64, Option<u64>),
    out: *mut tollbar_share,
) -> Result<i32, i32> {
    if !out.is_null() {
        // The output is checked first, so that a call that cannot write it charges nothing.
        size_at(out)?;
    }
    // SAFETY: by the caller's promise.
    let (tree, table, key) =
        unsafe { (reference(hierarchy)?, reference(table)?, bytes(key.cast(), key_length)?) };
    let share = tree
        .classes
        .try_take(&table.table, ClassId::new(leaf), key, now, cost)
        .map_err(hierarchy_code)?;
    let Share { decision, bound, interval } = share;
    if !out.is_null() {
        let value = tollbar_share {
            struct_size: 0,
            verdict: decision.verdict as u32,
            remaining: decision.remaining,
            retry_after_ns: decision.retry_after,
            reset_after_ns: decision.reset_after,
            interval_ns: interval,
            reason: decision.reason as u32,
            bound: bound.number(),
        };
        // SAFETY: `size_at` has inspected it; writable by the caller's promise.
        unsafe { write(out, &value) }?;
    }
    Ok(decision.verdict as i32)
}

/// A rate's text. A text that is not UTF-8 is no rate.
///
/// # Safety
/// `from` is null or NUL-terminated.
unsafe fn text<'a>(from: *const c_char) -> Result<&'a str, i32> {
    // SAFETY: by the caller's promise.
    let bytes = unsafe { bytes(from, length(from)?)? };
    core::str::from_utf8(bytes).map_err(|_| TOLLBAR_E_CLASS_RATE)
}

fn hierarchy_code(error: HierarchyError) -> i32 {
    match error {
        HierarchyError::NoSuchClass | HierarchyError::NotALeaf => TOLLBAR_E_CLASS_NUMBER,
        HierarchyError::Classes => TOLLBAR_E_CAPACITY,
        HierarchyError::Levels | HierarchyError::Name => TOLLBAR_E_CLASS_TREE,
        HierarchyError::Rate => TOLLBAR_E_CLASS_RATE,
        HierarchyError::Guarantee => TOLLBAR_E_GUARANTEE,
        HierarchyError::Burst | HierarchyError::Keys => TOLLBAR_E_OUT_OF_RANGE,
        HierarchyError::Policy => TOLLBAR_E_OTHER_POLICIES,
        HierarchyError::NoMemory => TOLLBAR_E_NO_MEMORY,
        HierarchyError::Table(error) => request_code(error),
    }
}
