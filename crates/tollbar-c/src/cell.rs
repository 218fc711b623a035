//! Cells: one state word that the caller owns, stepped with a compiled policy.

use super::boundary::*;
use super::policy::tollbar_policy;
use super::status::*;
use core::ffi::c_char;
use core::mem::size_of;
use core::sync::atomic::AtomicU64;
use tollbar::clock::{Clock, Tsc};
use tollbar::decision::{Decision, Reason};
use tollbar::limiter::cell;

/// A state word. All-zero is fresh: `= {0}`, .bss, calloc and a fresh mapping will do. It may lie
/// anywhere, also in memory shared by processes; it must be aligned to 8 bytes and, while threads
/// use it, touched by these calls only. Decisions of cells are not counted: there is no room for that in a word. What the word means is in docs/state-word.md.
#[repr(C)]
pub struct tollbar_cell {
    /// The state.
    pub word: u64,
}

/// The limit had the permits: the usual reason of TOLLBAR_ALLOWED.
pub const TOLLBAR_REASON_ADMITTED: u32 = 0;
/// Denied: the permits are spent and come back with time (with a limit of 0, never).
pub const TOLLBAR_REASON_RATE: u32 = 1;
/// Never: the cost is above the burst.
pub const TOLLBAR_REASON_BURST: u32 = 2;
/// The table has no free slot for a new key. Denied with TOLLBAR_ON_FULL_DENY; allowed, and not remembered, with
/// TOLLBAR_ON_FULL_ALLOW.
pub const TOLLBAR_REASON_TABLE_FULL: u32 = 3;
/// Denied: with TOLLBAR_ON_FULL_INHERIT a new key took over the debt of the key whose slot it needs.
pub const TOLLBAR_REASON_INHERITED_DEBT: u32 = 4;
/// The request had an empty key; the table's options say whether it passes.
pub const TOLLBAR_REASON_MISSING_KEY: u32 = 5;
/// Allowed and not charged: the key is exempt.
pub const TOLLBAR_REASON_EXEMPT: u32 = 6;
/// Denied: the permits would have come within the caller's patience, but as many callers as may are asleep already
/// (tollbar_limiter_options).
pub const TOLLBAR_REASON_QUEUE_FULL: u32 = 7;
/// Denied: the state is damaged. C calls return an error instead.
pub const TOLLBAR_REASON_FAULT: u32 = 8;
/// Denied for now: the store has been asked and has not answered yet.
pub const TOLLBAR_REASON_PENDING: u32 = 9;
/// Denied: the store's last answer was that the limit is used up.
pub const TOLLBAR_REASON_STORE_DENIED: u32 = 10;
/// The store does not answer: the options of the lease decided.
pub const TOLLBAR_REASON_STORE_DOWN: u32 = 11;

/// An answer in full.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tollbar_decision {
    /// sizeof(tollbar_decision), as the caller's compiler sees it.
    pub struct_size: u32,
    /// TOLLBAR_ALLOWED, TOLLBAR_DENIED or TOLLBAR_NEVER: what the call returned.
    pub verdict: u32,
    /// Permits that could be taken at this instant, after this decision.
    pub remaining: u64,
    /// Nanoseconds after which the same request would be admitted if no other request came between; 0 when
    /// it was admitted, TOLLBAR_NO_TIME when waiting would not help.
    pub retry_after_ns: u64,
    /// Nanoseconds until the state is as good as fresh if no other request comes between.
    pub reset_after_ns: u64,
    /// Why: one of TOLLBAR_REASON_*.
    pub reason: u32,
    /// 0.
    pub reserved: u32,
}

// SAFETY: repr(C), u32 first, u32 and u64 fields without holes.
unsafe impl Growable for tollbar_decision {
    const FIRST_SIZE: usize = 32;
}

const _: () = assert!(size_of::<tollbar_decision>() == 40);

const _: () = assert!(TOLLBAR_REASON_ADMITTED == Reason::Admitted as u32);
const _: () = assert!(TOLLBAR_REASON_RATE == Reason::Rate as u32);
const _: () = assert!(TOLLBAR_REASON_BURST == Reason::Burst as u32);
const _: () = assert!(TOLLBAR_REASON_TABLE_FULL == Reason::TableFull as u32);
const _: () = assert!(TOLLBAR_REASON_INHERITED_DEBT == Reason::InheritedDebt as u32);
const _: () = assert!(TOLLBAR_REASON_MISSING_KEY == Reason::MissingKey as u32);
const _: () = assert!(TOLLBAR_REASON_EXEMPT == Reason::Exempt as u32);
const _: () = assert!(TOLLBAR_REASON_QUEUE_FULL == Reason::QueueFull as u32);
const _: () = assert!(TOLLBAR_REASON_FAULT == Reason::Fault as u32);
const _: () = assert!(TOLLBAR_REASON_PENDING == Reason::Pending as u32);
const _: () = assert!(TOLLBAR_REASON_STORE_DENIED == Reason::StoreDenied as u32);
const _: () = assert!(TOLLBAR_REASON_STORE_DOWN == Reason::StoreDown as u32);

/// A reason in a few English words, such as "over the rate". Static; "unknown reason" for numbers that this
/// version does not know. Never NULL.
#[no_mangle]
pub extern "C" fn tollbar_strreason(reason: u32) -> *const c_char {
    let name = match reason {
        TOLLBAR_REASON_ADMITTED => c"admitted",
        TOLLBAR_REASON_RATE => c"over the rate",
        TOLLBAR_REASON_BURST => c"above the burst",
        TOLLBAR_REASON_TABLE_FULL => c"table full",
        TOLLBAR_REASON_INHERITED_DEBT => c"inherited debt",
        TOLLBAR_REASON_MISSING_KEY => c"missing key",
        TOLLBAR_REASON_EXEMPT => c"exempt",
        TOLLBAR_REASON_QUEUE_FULL => c"queue full",
        TOLLBAR_REASON_FAULT => c"fault",
        TOLLBAR_REASON_PENDING => c"pending",
        TOLLBAR_REASON_STORE_DENIED => c"denied by the store",
        TOLLBAR_REASON_STORE_DOWN => c"store down",
        _ => c"unknown reason",
    };
    name.as_ptr()
}

/// Takes `cost` permits now, by TOLLBAR_CLOCK_TSC. A cost of 0 asks without charging.
///
/// Returns TOLLBAR_ALLOWED, TOLLBAR_DENIED, TOLLBAR_NEVER, or an error. `out`, unless NULL, gets the
/// answer in full; it is cheaper without. Any number of threads and processes may call at once.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_cell_check(
    cell: *mut tollbar_cell,
    policy: *const tollbar_policy,
    cost: u64,
    out: *mut tollbar_decision,
) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe { tollbar_cell_check_at(cell, policy, cost, Tsc.now(), out) }
}

/// tollbar_cell_check at the caller's time, in nanoseconds of any one clock.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_cell_check_at(
    cell: *mut tollbar_cell,
    policy: *const tollbar_policy,
    cost: u64,
    now_ns: u64,
    out: *mut tollbar_decision,
) -> i32 {
    // SAFETY: by the caller's promise.
    guard(|| code(unsafe { check(cell, policy, now_ns, cost, out) }))
}

/// What tollbar_cell_check_at would answer; changes nothing.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_cell_peek_at(
    cell: *const tollbar_cell,
    policy: *const tollbar_policy,
    cost: u64,
    now_ns: u64,
    out: *mut tollbar_decision,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (word, policy) = unsafe { (word(cell)?, reference(policy)?) };
        answer(out, move || cell::peek(word, &policy.rule, now_ns, cost))
    })
}

/// Takes as many permits as there are at `now_ns`, up to `most`; `*taken` says how many. Returns
/// TOLLBAR_ALLOWED if that is not 0, else TOLLBAR_DENIED.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_cell_take_up_to_at(
    cell: *mut tollbar_cell,
    policy: *const tollbar_policy,
    most: u64,
    now_ns: u64,
    taken: *mut u64,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (word, policy) = unsafe { (word(cell)?, reference(policy)?) };
        // SAFETY: by the caller's promise.
        let taken = unsafe { place(taken) }?;
        let permits = cell::take_up_to(word, &policy.rule, now_ns, most);
        taken.write(permits);
        Ok(if permits == 0 { TOLLBAR_DENIED } else { TOLLBAR_ALLOWED })
    })
}

/// tollbar_cell_check_at for `count` cells of one policy, each with the same cost; `results[i]` is
/// what the call for `cells[i]` alone would return. Returns 0, or an error that concerns all (then
/// nothing has been charged). No all-or-nothing: each cell is decided for itself.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_cell_check_many_at(
    cells: *mut tollbar_cell,
    count: usize,
    policy: *const tollbar_policy,
    cost: u64,
    now_ns: u64,
    results: *mut i32,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let policy = unsafe { reference(policy) }?;
        if count == 0 {
            return Ok(TOLLBAR_ALLOWED);
        }
        // SAFETY: the first of `count` cells, by the caller's promise; alignment holds for the rest too.
        unsafe { word(cells) }?;
        array(results, count)?;
        for i in 0..count {
            // SAFETY: `i` is below the count that the caller vouches for, in both arrays.
            unsafe {
                let (verdict, _) = cell::step_apart(word(cells.add(i))?, &policy.rule, now_ns, cost);
                results.add(i).write(verdict as i32);
            }
        }
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Back to fresh. Safe beside other calls; admissions in the same instant may survive it.
///
/// # Safety
/// `cell` is NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_cell_reset(cell: *mut tollbar_cell) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let word = unsafe { word(cell) }?;
        word.store(0, core::sync::atomic::Ordering::Relaxed);
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Decides, writes the answer and returns its verdict. `out` is inspected before anything is decided. Out of line, so that
/// calls without an answer in full save no registers for one.
#[inline(never)]
pub(crate) fn answer(out: *mut tollbar_decision, decide: impl FnOnce() -> Decision) -> Result<i32, i32> {
    if out.is_null() {
        return Ok(decide().verdict as i32);
    }
    let size = size_at(out)?;
    // SAFETY: size_at has inspected it; writable by the promise that every caller of this makes to C.
    unsafe { put_apart(out, size, &decide()) }
}

/// [`put`] out of line: one copy for all instances of [`answer`].
///
/// # Safety
/// As [`put`].
#[inline(never)]
unsafe fn put_apart(out: *mut tollbar_decision, size: usize, decision: &Decision) -> Result<i32, i32> {
    // SAFETY: by the caller's promise.
    unsafe { put(out, size, decision) }
}

/// `answer` for the C faces of other crates.
///
/// # Safety
/// `out` is null, or points to a writable struct of `out.struct_size` bytes.
#[inline(always)]
pub unsafe fn answer_to(out: *mut tollbar_decision, decide: impl FnOnce() -> Decision) -> Result<i32, i32> {
    answer(out, decide)
}

/// Writes an answer and returns its verdict.
///
/// # Safety
/// `out` points to a writable struct of `size` bytes, which [`size_at`] has returned for it.
#[inline(always)]
pub(super) unsafe fn put(out: *mut tollbar_decision, size: usize, decision: &Decision) -> Result<i32, i32> {
    let value = tollbar_decision {
        struct_size: size as u32,
        verdict: decision.verdict as u32,
        remaining: decision.remaining,
        retry_after_ns: decision.retry_after,
        reset_after_ns: decision.reset_after,
        reason: decision.reason as u32,
        reserved: 0,
    };
    // The usual caller knows the struct as this version does: some stores instead of a call that copies.
    if size == size_of::<tollbar_decision>() {
        // SAFETY: by the caller's promise; `value` has the caller's own `struct_size`.
        unsafe { out.write(value) };
    } else {
        // SAFETY: by the caller's promise.
        unsafe { write(out, &value) }?;
    }
    Ok(decision.verdict as i32)
}

/// # Safety
/// As the public calls.
#[inline(always)]
unsafe fn check(
    cell: *mut tollbar_cell,
    policy: *const tollbar_policy,
    now: u64,
    cost: u64,
    out: *mut tollbar_decision,
) -> Result<i32, i32> {
    // SAFETY: by the caller's promise.
    let (word, policy) = unsafe { (word(cell)?, reference(policy)?) };
    if out.is_null() {
        let (verdict, _) = cell::step(word, &policy.rule, now, cost);
        return Ok(verdict as i32);
    }
    answer(out, move || cell::check(word, &policy.rule, now, cost))
}

/// # Safety
/// `cell` is null or a live cell.
#[inline(always)]
unsafe fn word<'a>(cell: *const tollbar_cell) -> Result<&'a AtomicU64, i32> {
    // SAFETY: a cell is 8 bytes as an AtomicU64 is, whose alignment `reference` checks; cells are only
    // touched by these calls while shared, by the caller's promise.
    unsafe { reference(cell.cast::<AtomicU64>()) }
}
