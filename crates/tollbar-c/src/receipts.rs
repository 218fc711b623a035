//! Estimates that are settled when the real cost is known.

use super::boundary::*;
use super::check::answer_to;
use super::decision::tollbar_decision;
use super::status::*;
use super::table::{request_code, tollbar_table};
use core::ffi::c_void;
use core::mem::size_of;
use tollbar::table::{PolicyId, Receipt, Refund};

/// The proof of a charge. It is plain data: it may be copied, stored, and settled by another
/// process that has the same table.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tollbar_receipt {
    /// The library's own.
    pub words: [u64; 4],
}

/// What tollbar_table_settle did with a receipt.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tollbar_settled {
    /// sizeof(tollbar_settled), as the caller's compiler sees it.
    pub struct_size: u32,
    /// TOLLBAR_YES if this call settled the receipt. TOLLBAR_NO if an earlier call did, or the
    /// receipt is too old: then no permits went back.
    pub first: u32,
    /// The number of whole permits that went back to the key. A part of one more may have gone
    /// back, too.
    pub given_back: u64,
    /// The number of permits above the estimate that could not be charged, because the key's debt
    /// is as high as its state can hold.
    pub rest: u64,
}

// SAFETY: repr(C), u32 first, u32 and u64 fields without holes.
unsafe impl Growable for tollbar_settled {
    const FIRST_SIZE: usize = 24;
}

const _: () = assert!(size_of::<tollbar_settled>() == 24);
const _: () = assert!(size_of::<tollbar_receipt>() == 32 && size_of::<Receipt>() == 32);

/// tollbar_table_check of `estimate` permits, with a receipt on TOLLBAR_ALLOWED. With any other
/// result `*receipt` is left alone. TOLLBAR_E_RECEIPT for an estimate of 2^56 or more.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_table_take(
    table: *const tollbar_table,
    policy: u32,
    key: *const c_void,
    length: usize,
    estimate: u64,
    receipt: *mut tollbar_receipt,
    out: *mut tollbar_decision,
) -> i32 {
    // SAFETY: by the caller's promise.
    call(|| unsafe { take(table, policy, key, length, estimate, None, receipt, out) })
}

/// tollbar_table_take at the caller's time.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_table_take_at(
    table: *const tollbar_table,
    policy: u32,
    key: *const c_void,
    length: usize,
    estimate: u64,
    now_ns: u64,
    receipt: *mut tollbar_receipt,
    out: *mut tollbar_decision,
) -> i32 {
    // SAFETY: by the caller's promise.
    call(|| unsafe { take(table, policy, key, length, estimate, Some(now_ns), receipt, out) })
}

/// Settles a receipt at the real cost: returns the unused permits of the estimate to the key,
/// without those that the key has regained by refill since the charge, or charges the permits above
/// the estimate as a debt (tollbar_table_charge).
///
/// Returns TOLLBAR_ALLOWED, TOLLBAR_DENIED if a part of the debt could not be charged, or an error.
/// TOLLBAR_E_RECEIPT means that the receipt is not one of this table. `out`, unless NULL, gets the
/// details.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_table_settle(
    table: *const tollbar_table,
    receipt: *const tollbar_receipt,
    cost: u64,
    out: *mut tollbar_settled,
) -> i32 {
    // SAFETY: by the caller's promise.
    call(|| unsafe { settle(table, receipt, cost, None, Refund::Safe, out) })
}

/// tollbar_table_settle at the caller's time, which must not be earlier than that of any call for
/// this key that has returned.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_table_settle_at(
    table: *const tollbar_table,
    receipt: *const tollbar_receipt,
    cost: u64,
    now_ns: u64,
    out: *mut tollbar_settled,
) -> i32 {
    // SAFETY: by the caller's promise.
    call(|| unsafe { settle(table, receipt, cost, Some(now_ns), Refund::Safe, out) })
}

/// tollbar_table_settle that returns all unused permits of the estimate, also those that the key
/// has regained by refill. It may break the policy's bound: each receipt that stays open while the
/// limit refills a burst may let one more burst pass.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_table_settle_in_full(
    table: *const tollbar_table,
    receipt: *const tollbar_receipt,
    cost: u64,
    out: *mut tollbar_settled,
) -> i32 {
    // SAFETY: by the caller's promise.
    call(|| unsafe { settle(table, receipt, cost, None, Refund::Full, out) })
}

/// # Safety
/// As the public calls.
#[allow(clippy::too_many_arguments)] // those of the C call
unsafe fn take(
    table: *const tollbar_table,
    policy: u32,
    key: *const c_void,
    length: usize,
    estimate: u64,
    now: Option<u64>,
    receipt: *mut tollbar_receipt,
    out: *mut tollbar_decision,
) -> Result<i32, i32> {
    // SAFETY: by the caller's promise.
    let (table, key) = unsafe { (&reference(table)?.table, bytes(key.cast(), length)?) };
    // SAFETY: by the caller's promise.
    let place = unsafe { place(receipt) }?;
    if !out.is_null() {
        size_at(out)?;
    }
    let now = now.unwrap_or_else(|| table.now());
    let (decision, proof) =
        table.take_at(PolicyId::new(policy), key, now, estimate).map_err(request_code)?;
    if let Some(proof) = proof {
        place.write(tollbar_receipt { words: proof.words() });
    }
    // SAFETY: by the caller's promise.
    unsafe { answer_to(out, || decision) }
}

/// # Safety
/// As the public calls.
unsafe fn settle(
    table: *const tollbar_table,
    receipt: *const tollbar_receipt,
    cost: u64,
    now: Option<u64>,
    refund: Refund,
    out: *mut tollbar_settled,
) -> Result<i32, i32> {
    // SAFETY: by the caller's promise.
    let (table, receipt) = unsafe { (&reference(table)?.table, reference(receipt)?) };
    if !out.is_null() {
        size_at(out)?;
    }
    let receipt = Receipt::from_words(receipt.words);
    let settled = match now {
        Some(now) => table.settle_at(&receipt, now, cost, refund),
        None => table.settle(&receipt, cost, refund),
    };
    let settled = settled.map_err(request_code)?;
    if !out.is_null() {
        let value = tollbar_settled {
            struct_size: 0,
            first: u32::from(settled.first),
            given_back: settled.given_back,
            rest: settled.rest,
        };
        // SAFETY: `size_at` has inspected it; writable by the caller's promise.
        unsafe { write(out, &value) }?;
    }
    Ok(if settled.rest == 0 { TOLLBAR_ALLOWED } else { TOLLBAR_DENIED })
}
