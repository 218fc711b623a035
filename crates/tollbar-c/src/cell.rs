//! Cells: one state word that the caller owns, stepped with a compiled policy.

use super::boundary::*;
use super::check::answer;
use super::decision::tollbar_decision;
use super::policy::tollbar_policy;
use super::status::*;
use core::sync::atomic::AtomicU64;
use tollbar::clock::{Clock, Tsc};
use tollbar::limiter::cell;

/// A state word. All-zero is fresh: `= {0}`, .bss, calloc and a fresh mapping make fresh cells. A
/// cell must be aligned to 8 bytes and may lie anywhere, also in memory that processes share. While
/// threads use it, only these calls may access it. Cells do not count decisions, because a word has
/// no room for counts. docs/internals/state-word.md says what the word means.
#[repr(C)]
pub struct tollbar_cell {
    /// The state.
    pub word: u64,
}

/// Takes `cost` permits now, or takes none. It reads TOLLBAR_CLOCK_TSC. A cost of 0 asks without
/// charging.
///
/// Returns TOLLBAR_ALLOWED if the cell had the permits and has been charged, TOLLBAR_DENIED if it
/// does not have them now, TOLLBAR_NEVER if `cost` is more than it can ever have at once, or an
/// error. The call writes the full decision to `out`. With NULL for `out` it is cheaper. Any number
/// of threads and processes may call at once.
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

/// Returns what tollbar_cell_check_at would return, and changes nothing.
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

/// Takes all permits that are left at `now_ns`, `most` at the most, and writes their number to
/// `*taken`. Returns TOLLBAR_ALLOWED if it took any, otherwise TOLLBAR_DENIED.
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

/// Makes the call tollbar_cell_check_at for each of `count` cells of one policy, with the same
/// cost, and writes its result to `results[i]`. Each cell is decided by itself. Returns 0, or an
/// error of the whole batch. Then no cell has been charged.
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
        // SAFETY: the first of `count` cells, by the caller's promise. If it is aligned, so are the
        // others.
        unsafe { word(cells) }?;
        array(results, count)?;
        for i in 0..count {
            // SAFETY: `i` is below the count that the caller vouches for, in both arrays.
            unsafe {
                let (verdict, _) =
                    cell::step_out_of_line(word(cells.add(i))?, &policy.rule, now_ns, cost);
                results.add(i).write(verdict as i32);
            }
        }
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Makes the cell fresh. Other calls may run at the same time, and admissions in the same instant
/// may survive the reset.
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
        return Ok(cell::admit(word, &policy.rule, now, cost) as i32);
    }
    answer(out, move || cell::check(word, &policy.rule, now, cost))
}

/// # Safety
/// `cell` is null or a live cell.
#[inline(always)]
unsafe fn word<'a>(cell: *const tollbar_cell) -> Result<&'a AtomicU64, i32> {
    // SAFETY: a cell is 8 bytes as an AtomicU64 is, whose alignment `reference` checks; cells are
    // only touched by these calls while shared, by the caller's promise.
    unsafe { reference(cell.cast::<AtomicU64>()) }
}
