//! Checks of tables. A C caller gets a decision as a number, or in full as a `tollbar_decision`.

use super::boundary::*;
use super::decision::tollbar_decision;
use super::status::TOLLBAR_ALLOWED;
use super::table::{request_code, table_of, tollbar_table};
use core::ffi::c_void;
use core::mem::size_of;
use tollbar::algorithm::Rule;
use tollbar::decision::{Decision, Verdict};
use tollbar::table::{Answer, PolicyId, RequestError, Table};

/// Takes `cost` permits of a key now, or takes none. `key` points to `length` bytes, which the
/// table does not keep. `policy` is the index of one of the table's policies. A cost of 0 asks
/// without charging.
///
/// Returns TOLLBAR_ALLOWED if the key had the permits and has been charged, TOLLBAR_DENIED if it
/// does not have them now, TOLLBAR_NEVER if `cost` is more than it can ever have at once, or an
/// error. The call writes the full decision to `out`, such as the time until the same request would
/// pass. With NULL for `out` it is cheaper.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_table_check(
    table: *const tollbar_table,
    policy: u32,
    key: *const c_void,
    length: usize,
    cost: u64,
    out: *mut tollbar_decision,
) -> i32 {
    // SAFETY: by the caller's promise.
    guard(|| code(unsafe { check(table, policy, key, length, None, cost, out) }))
}

/// tollbar_table_check at the caller's time: on the scale of tollbar_table_now, or another that all
/// callers of this table share.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_table_check_at(
    table: *const tollbar_table,
    policy: u32,
    key: *const c_void,
    length: usize,
    cost: u64,
    now_ns: u64,
    out: *mut tollbar_decision,
) -> i32 {
    // SAFETY: by the caller's promise.
    guard(|| code(unsafe { check(table, policy, key, length, Some(now_ns), cost, out) }))
}

/// Returns what tollbar_table_check would return. It takes no permits and stores no key.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_table_peek(
    table: *const tollbar_table,
    policy: u32,
    key: *const c_void,
    length: usize,
    cost: u64,
    out: *mut tollbar_decision,
) -> i32 {
    // SAFETY: by the caller's promise.
    guard(|| code(unsafe { peek(KeyRequest::new(table, policy, key, length, None, cost), out) }))
}

/// tollbar_table_peek at the caller's time.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_table_peek_at(
    table: *const tollbar_table,
    policy: u32,
    key: *const c_void,
    length: usize,
    cost: u64,
    now_ns: u64,
    out: *mut tollbar_decision,
) -> i32 {
    guard(|| {
        // SAFETY: by the caller's promise.
        code(unsafe { peek(KeyRequest::new(table, policy, key, length, Some(now_ns), cost), out) })
    })
}

/// A request for a key of a table, from the arguments of a C call.
struct KeyRequest<'a> {
    table: &'a Table,
    policy: PolicyId,
    key: &'a [u8],
    now: Option<u64>,
    cost: u64,
}

impl KeyRequest<'_> {
    /// # Safety
    /// As the public calls.
    #[inline(always)]
    unsafe fn new(
        table: *const tollbar_table,
        policy: u32,
        key: *const c_void,
        length: usize,
        now: Option<u64>,
        cost: u64,
    ) -> Result<Self, i32> {
        // SAFETY: by the caller's promise.
        let (table, key) = unsafe { (table_of(table)?, bytes(key.cast(), length)?) };
        Ok(KeyRequest { table, policy: PolicyId::new(policy), key, now, cost })
    }
}

/// # Safety
/// As the public calls.
#[inline(always)]
unsafe fn check(
    table: *const tollbar_table,
    policy: u32,
    key: *const c_void,
    length: usize,
    now: Option<u64>,
    cost: u64,
    out: *mut tollbar_decision,
) -> Result<i32, i32> {
    if !out.is_null() {
        // Full decisions are out of line, and get the arguments unchanged. So the compiler saves no
        // registers for them in a call without `out`. SAFETY: by the caller's promise.
        return Ok(unsafe {
            match now {
                Some(now) => check_in_full_at(table, policy, key, length, now, cost, out),
                None => check_in_full(table, policy, key, length, cost, out),
            }
        });
    }
    // SAFETY: by the caller's promise.
    let KeyRequest { table, policy, key, now, cost } =
        unsafe { KeyRequest::new(table, policy, key, length, now, cost) }?;
    let Code(code) = table.decide(policy, key, now, cost);
    Ok(code)
}

/// # Safety
/// As the public calls.
#[inline(never)]
unsafe fn check_in_full_at(
    table: *const tollbar_table,
    policy: u32,
    key: *const c_void,
    length: usize,
    now: u64,
    cost: u64,
    out: *mut tollbar_decision,
) -> i32 {
    // SAFETY: by the caller's promise.
    code(unsafe {
        write_in_full(KeyRequest::new(table, policy, key, length, Some(now), cost), out)
    })
}

/// # Safety
/// As the public calls.
#[inline(never)]
unsafe fn check_in_full(
    table: *const tollbar_table,
    policy: u32,
    key: *const c_void,
    length: usize,
    cost: u64,
    out: *mut tollbar_decision,
) -> i32 {
    // SAFETY: by the caller's promise.
    code(unsafe { write_in_full(KeyRequest::new(table, policy, key, length, None, cost), out) })
}

/// Decides, writes the full decision to `out`, and returns its verdict. There is one copy for both
/// kinds of time, because the arithmetic of a full decision takes longer than a call.
///
/// # Safety
/// As the public calls.
#[inline(never)]
unsafe fn write_in_full(
    request: Result<KeyRequest<'_>, i32>,
    out: *mut tollbar_decision,
) -> Result<i32, i32> {
    let KeyRequest { table, policy, key, now, cost } = request?;
    // SAFETY: by the caller's promise.
    let size = unsafe { usual_size_at(out) }?;
    match table.decide::<Result<Decision, RequestError>>(policy, key, now, cost) {
        // SAFETY: usual_size_at has checked the size that `out` says; writable by the caller's
        // promise.
        Ok(decision) => unsafe { put(out, size, &decision) },
        Err(error) => Err(request_code(error)),
    }
}

/// # Safety
/// As the public calls.
unsafe fn peek(
    request: Result<KeyRequest<'_>, i32>,
    out: *mut tollbar_decision,
) -> Result<i32, i32> {
    let KeyRequest { table, policy, key, now, cost } = request?;
    if out.is_null() {
        let Code(code) = table.peek_for(policy, key, now, cost);
        return Ok(code);
    }
    match table.try_peek(policy, key, now, cost) {
        Ok(decision) => answer(out, move || decision),
        Err(error) => Err(request_code(error)),
    }
}

/// The result of a call without a full decision. It is the verdict's number, so the hot path
/// converts nothing.
pub(super) struct Code(pub(super) i32);

impl Answer for Code {
    const IS_FULL: bool = false;

    #[inline(always)]
    fn verdict(&self) -> Verdict {
        match self.0 {
            TOLLBAR_ALLOWED => Verdict::Allowed,
            _ => Verdict::Denied,
        }
    }

    #[inline(always)]
    fn of_step(_: &Rule, verdict: Verdict, _: u64, _: u64, _: u64) -> Code {
        Code(verdict as i32)
    }

    #[inline(always)]
    fn of_admission(_: impl FnOnce() -> Decision) -> Code {
        Code(TOLLBAR_ALLOWED)
    }

    #[inline(always)]
    fn of_decision(decision: Decision) -> Code {
        Code(decision.verdict as i32)
    }

    #[inline(always)]
    fn of_error(error: RequestError) -> Code {
        Code(request_code(error))
    }
}

/// Decides, writes the decision to `out` unless that is NULL, and returns the verdict. A wrong
/// `out` is an error before anything is charged. The function is out of line, so that its callers
/// save no registers for it.
#[inline(never)]
pub(crate) fn answer(
    out: *mut tollbar_decision,
    decide: impl FnOnce() -> Decision,
) -> Result<i32, i32> {
    if out.is_null() {
        return Ok(decide().verdict as i32);
    }
    let size = size_at(out)?;
    // SAFETY: size_at has inspected it; writable by the promise that every caller of this makes to
    // C.
    unsafe { put_out_of_line(out, size, &decide()) }
}

/// [`put`] out of line: one copy for all instances of [`answer`].
///
/// # Safety
/// As [`put`].
#[inline(never)]
unsafe fn put_out_of_line(
    out: *mut tollbar_decision,
    size: usize,
    decision: &Decision,
) -> Result<i32, i32> {
    // SAFETY: by the caller's promise.
    unsafe { put(out, size, decision) }
}

/// `answer` for the C faces of other crates.
///
/// # Safety
/// `out` is null, or points to a writable struct of `out.struct_size` bytes.
#[inline(always)]
pub unsafe fn answer_to(
    out: *mut tollbar_decision,
    decide: impl FnOnce() -> Decision,
) -> Result<i32, i32> {
    answer(out, decide)
}

/// Writes a decision and returns its verdict, or an error if a struct of `size` bytes cannot hold
/// it.
///
/// # Safety
/// `out` points to a writable struct of `size` bytes, which [`size_at`] or [`usual_size_at`] has
/// returned for it.
#[inline(always)]
pub(super) unsafe fn put(
    out: *mut tollbar_decision,
    size: usize,
    decision: &Decision,
) -> Result<i32, i32> {
    let value = tollbar_decision {
        struct_size: size as u32,
        verdict: decision.verdict as u32,
        remaining: decision.remaining,
        retry_after_ns: decision.retry_after,
        reset_after_ns: decision.reset_after,
        reason: decision.reason as u32,
        bound: decision.bound,
    };
    // A struct of this version's size is written by plain stores. Another size needs the copying
    // call.
    if size == size_of::<tollbar_decision>() {
        // SAFETY: by the caller's promise; `value` has the caller's own `struct_size`.
        unsafe { out.write(value) };
    } else {
        // SAFETY: by the caller's promise.
        unsafe { write(out, &value) }?;
    }
    Ok(decision.verdict as i32)
}

const _: () = assert!(size_of::<RequestError>() <= 12);
