//! Cells: one state word that the caller owns, stepped with a compiled policy.

use super::boundary::*;
use super::policy::tollbar_policy;
use super::status::*;
use crate::clock::{Clock, Tsc};
use crate::decision::Decision;
use crate::limiter::cell;
use crate::sync::AtomicU64;

/// A state word. All-zero is fresh: `= {0}`, .bss, calloc and a fresh mapping will do. It may lie
/// anywhere, also in memory shared by processes; it must be aligned to 8 bytes and, while threads
/// use it, touched by these calls only. What the word means is in docs/state-word.md.
#[repr(C)]
pub struct tollbar_cell {
    /// The state.
    pub word: u64,
}

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
    /// Nanoseconds after which the same request would be admitted if nobody else came between; 0 when
    /// it was admitted, TOLLBAR_NO_TIME when waiting would not help.
    pub retry_after_ns: u64,
    /// Nanoseconds until the state is as good as fresh if nobody comes between.
    pub reset_after_ns: u64,
}

// SAFETY: repr(C), u32 first, u32 and u64 fields without holes.
unsafe impl Growable for tollbar_decision {
    const FIRST_SIZE: usize = 32;
}

const _: () = assert!(core::mem::size_of::<tollbar_decision>() == 32);

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
    unsafe { tollbar_cell_check_at(cell, policy, Tsc.now(), cost, out) }
}

/// tollbar_cell_check at the caller's time, in nanoseconds of any one clock.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_cell_check_at(
    cell: *mut tollbar_cell,
    policy: *const tollbar_policy,
    now_ns: u64,
    cost: u64,
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
    now_ns: u64,
    cost: u64,
    out: *mut tollbar_decision,
) -> i32 {
    guard(|| {
        code((|| {
            // SAFETY: by the caller's promise.
            let (word, policy) = unsafe { (word(cell)?, reference(policy)?) };
            answer(out, || cell::peek(word, &policy.rule, now_ns, cost))
        })())
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
    now_ns: u64,
    most: u64,
    taken: *mut u64,
) -> i32 {
    guard(|| {
        code((|| {
            // SAFETY: by the caller's promise.
            let (word, policy) = unsafe { (word(cell)?, reference(policy)?) };
            // SAFETY: by the caller's promise.
            let taken = unsafe { place(taken) }?;
            let permits = cell::take_up_to(word, &policy.rule, now_ns, most);
            taken.write(permits);
            Ok(if permits == 0 { TOLLBAR_DENIED } else { TOLLBAR_ALLOWED })
        })())
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
    now_ns: u64,
    cost: u64,
    results: *mut i32,
) -> i32 {
    guard(|| {
        code((|| {
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
        })())
    })
}

/// Back to fresh. Safe beside other calls; admissions in the same instant may survive it.
///
/// # Safety
/// `cell` is NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_cell_reset(cell: *mut tollbar_cell) -> i32 {
    guard(|| {
        code((|| {
            // SAFETY: by the caller's promise.
            let word = unsafe { word(cell) }?;
            word.store(0, crate::sync::Ordering::Relaxed);
            Ok(TOLLBAR_ALLOWED)
        })())
    })
}

/// Writes an answer and returns its verdict; `out` is looked at before anything is decided. Apart, so that those who want no answer
/// in full save no registers for one.
#[inline(never)]
pub(super) fn answer(out: *mut tollbar_decision, decide: impl FnOnce() -> Decision) -> Result<i32, i32> {
    if out.is_null() {
        return Ok(decide().verdict as i32);
    }
    size_at(out)?;
    let decision = decide();
    let value = tollbar_decision {
        struct_size: 0,
        verdict: decision.verdict as u32,
        remaining: decision.remaining,
        retry_after_ns: decision.retry_after,
        reset_after_ns: decision.reset_after,
    };
    // SAFETY: size_at has checked it; writable by the promise every caller of this makes to C.
    unsafe { write(out, &value) }?;
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
    answer(out, || cell::check(word, &policy.rule, now, cost))
}

/// # Safety
/// `cell` is null or a live cell.
#[inline(always)]
unsafe fn word<'a>(cell: *const tollbar_cell) -> Result<&'a AtomicU64, i32> {
    // SAFETY: a cell is 8 bytes as an AtomicU64 is, whose alignment `reference` checks; cells are only
    // touched by these calls while shared, by the caller's promise.
    unsafe { reference(cell.cast::<AtomicU64>()) }
}
