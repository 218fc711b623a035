//! Counts of decisions.

use super::boundary::*;
use super::decision::*;
use super::status::*;
use super::table::{request_code, tollbar_table};
use core::ffi::c_void;
use core::mem::size_of;
use tollbar::decision::{Counts, Reason, Verdict};
use tollbar::table::PolicyId;

/// Decisions by verdict.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tollbar_counts {
    /// sizeof(tollbar_counts), as the caller's compiler sees it.
    pub struct_size: u32,
    /// The library writes 0.
    pub reserved: u32,
    /// Decisions that were TOLLBAR_ALLOWED.
    pub allowed: u64,
    /// Decisions that were TOLLBAR_DENIED.
    pub denied: u64,
    /// Decisions that were TOLLBAR_NEVER.
    pub never: u64,
}

// SAFETY: repr(C), u32 first, u32 and u64 fields without holes.
unsafe impl Growable for tollbar_counts {
    const FIRST_SIZE: usize = 32;
}

const _: () = assert!(size_of::<tollbar_counts>() == 32);

/// Writes to `out` the counts of decisions under policy number `policy`, of all threads and
/// processes since the table was made. A changed policy keeps its counts. A killed process loses at
/// most the counts of the call that it was in.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_table_get_counts(
    table: *const tollbar_table,
    policy: u32,
    out: *mut tollbar_counts,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let table = &unsafe { reference(table) }?.table;
        let Counts { allowed, denied, never } =
            table.counts(PolicyId::new(policy)).map_err(request_code)?;
        let value = tollbar_counts { struct_size: 0, reserved: 0, allowed, denied, never };
        // SAFETY: by the caller's promise.
        unsafe { write(out, &value) }.map(|()| TOLLBAR_ALLOWED)
    })
}

/// Counts a decision that the caller made itself under policy number `policy`, and charges nothing.
/// A caller needs it if it peeks at several limits and refuses a request because of one of them.
/// `verdict` is TOLLBAR_ALLOWED, TOLLBAR_DENIED or TOLLBAR_NEVER; for another number the call
/// returns TOLLBAR_E_OUT_OF_RANGE. `reason` is the TOLLBAR_REASON_ number that the peek returned.
/// If tollbar_reasons_total of the metrics has this reason, the call counts it there, too. All
/// other numbers are ignored.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_table_count_verdict(
    table: *const tollbar_table,
    policy: u32,
    verdict: i32,
    reason: u32,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let table = &unsafe { reference(table) }?.table;
        let verdict = match verdict {
            TOLLBAR_ALLOWED => Verdict::Allowed,
            TOLLBAR_DENIED => Verdict::Denied,
            TOLLBAR_NEVER => Verdict::Never,
            _ => return Err(TOLLBAR_E_OUT_OF_RANGE),
        };
        let reason = reason_of(reason, verdict);
        table.count_decided(PolicyId::new(policy), verdict, reason).map_err(request_code)?;
        Ok(TOLLBAR_ALLOWED)
    })
}

/// tollbar_table_count_verdict for a request of a key that the caller refused itself. If the table
/// records refusals (tollbar_table_record_refusals), the call records this one, too. `verdict` is
/// TOLLBAR_DENIED or TOLLBAR_NEVER; for another number the call returns TOLLBAR_E_OUT_OF_RANGE.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_table_count_refusal(
    table: *const tollbar_table,
    policy: u32,
    key: *const c_void,
    length: usize,
    verdict: i32,
    reason: u32,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (table, key) = unsafe { (&reference(table)?.table, bytes(key.cast(), length)?) };
        let verdict = match verdict {
            TOLLBAR_DENIED => Verdict::Denied,
            TOLLBAR_NEVER => Verdict::Never,
            _ => return Err(TOLLBAR_E_OUT_OF_RANGE),
        };
        let reason = reason_of(reason, verdict);
        table.count_refused(PolicyId::new(policy), key, verdict, reason).map_err(request_code)?;
        Ok(TOLLBAR_ALLOWED)
    })
}

/// The reason with this number. A number that no metric counts becomes the verdict's usual reason.
fn reason_of(number: u32, verdict: Verdict) -> Reason {
    match number {
        TOLLBAR_REASON_BANNED => Reason::Banned,
        TOLLBAR_REASON_RESERVE => Reason::Reserve,
        TOLLBAR_REASON_MISSING_KEY => Reason::MissingKey,
        TOLLBAR_REASON_EXEMPT => Reason::Exempt,
        TOLLBAR_REASON_QUEUE_FULL => Reason::QueueFull,
        _ => Reason::of(verdict),
    }
}
