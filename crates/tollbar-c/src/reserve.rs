//! Reservations of limiters and of keys of a table: reserve, wait and cancel.

use super::boundary::*;
use super::check::answer;
use super::decision::tollbar_decision;
use super::limiter::tollbar_limiter;
use super::status::*;
use super::table::{request_code, tollbar_table};
use core::ffi::c_void;
use core::mem::{size_of, MaybeUninit};
use tollbar::algorithm::Charge;
use tollbar::decision::Verdict;
use tollbar::table::PolicyId;

/// Booked permits. This is plain data: it may be copied, and sent to another process that has the
/// same table.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tollbar_reservation {
    /// When the permits may be used, on the scale of the call's time.
    pub departs_ns: u64,
    /// Nanoseconds from the call's time to `departs_ns`. 0 if the permits may be used at once.
    pub wait_ns: u64,
    /// The permits that were charged: the call's `cost`, or 0 where no key was charged (an exempt
    /// or empty key, and a new key that a full table admits without storing it).
    pub cost: u64,
}

const _: () = assert!(size_of::<tollbar_reservation>() == 24);

/// Takes `cost` permits for the earliest instant at which they may be used. On TOLLBAR_ALLOWED the
/// caller must act `out->wait_ns` from now, not earlier.
///
/// Returns TOLLBAR_DENIED if the wait would be longer than `max_wait_ns` or if the algorithm cannot
/// book ahead, and TOLLBAR_NEVER if the cost is above the burst. Then nothing has been charged.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_limiter_reserve(
    limiter: *const tollbar_limiter,
    cost: u64,
    max_wait_ns: u64,
    out: *mut tollbar_reservation,
) -> i32 {
    // SAFETY: by the caller's promise.
    guard(|| code(unsafe { reserve(limiter, None, cost, max_wait_ns, out) }))
}

/// tollbar_limiter_reserve at the caller's time: the wait counts from `now_ns`.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_limiter_reserve_at(
    limiter: *const tollbar_limiter,
    cost: u64,
    max_wait_ns: u64,
    now_ns: u64,
    out: *mut tollbar_reservation,
) -> i32 {
    // SAFETY: by the caller's promise.
    guard(|| code(unsafe { reserve(limiter, Some(now_ns), cost, max_wait_ns, out) }))
}

/// Takes `cost` permits, sleeping up to `max_wait_ns` for them. Callers wait in a queue and get
/// their permits in the order in which they came.
///
/// The call refuses at once, and charges nothing, if the permits would come later than that, after
/// those of all callers before it, or if `waiters` callers sleep already (tollbar_limiter_options;
/// TOLLBAR_REASON_QUEUE_FULL). A sliding window or log counts the callers before it only up to its
/// limit. A caller may then sleep until its time is up, and is refused then.
///
/// A signal does not end the sleep, and the call is no cancellation point on Linux: a cancelled
/// thread ends its wait first. A signal handler must not leave the call by longjmp, and must not
/// wait itself. Returns the results of tollbar_limiter_check.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_limiter_wait(
    limiter: *const tollbar_limiter,
    cost: u64,
    max_wait_ns: u64,
    out: *mut tollbar_decision,
) -> i32 {
    guard(|| {
        code(
            // SAFETY: by the caller's promise.
            unsafe { reference(limiter) }
                .and_then(|l| answer(out, move || l.limiter.wait_ns(cost, max_wait_ns))),
        )
    })
}

/// tollbar_limiter_reserve for a key of a table under policy number `policy`. A new key takes a
/// slot as with tollbar_table_check. If the table refuses the new key, the call returns
/// TOLLBAR_DENIED.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_table_reserve(
    table: *const tollbar_table,
    policy: u32,
    key: *const c_void,
    length: usize,
    cost: u64,
    max_wait_ns: u64,
    out: *mut tollbar_reservation,
) -> i32 {
    // SAFETY: by the caller's promise.
    guard(|| code(unsafe { reserve_key(table, policy, key, length, None, cost, max_wait_ns, out) }))
}

/// tollbar_table_reserve at the caller's time: the wait counts from `now_ns`.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_table_reserve_at(
    table: *const tollbar_table,
    policy: u32,
    key: *const c_void,
    length: usize,
    cost: u64,
    max_wait_ns: u64,
    now_ns: u64,
    out: *mut tollbar_reservation,
) -> i32 {
    guard(|| {
        // SAFETY: by the caller's promise.
        code(unsafe {
            reserve_key(table, policy, key, length, Some(now_ns), cost, max_wait_ns, out)
        })
    })
}

/// tollbar_limiter_wait for a key of a table. Each tollbar_table object has its own queues, one for
/// each key; `waiters` callers of all keys may sleep in them at one time (tollbar_table_options).
/// The first callers of a key's queues, in all processes, depart in the order of their bookings.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_table_wait(
    table: *const tollbar_table,
    policy: u32,
    key: *const c_void,
    length: usize,
    cost: u64,
    max_wait_ns: u64,
    out: *mut tollbar_decision,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (table, key) = unsafe { (&reference(table)?.table, bytes(key.cast(), length)?) };
        if !out.is_null() {
            // Checked before the sleep, so that a call that cannot write its answer books nothing.
            size_at(out)?;
        }
        let deadline = table.now().saturating_add(max_wait_ns);
        let decided = table
            .try_wait_until(PolicyId::new(policy), key, cost, deadline)
            .map_err(request_code)?;
        answer(out, move || decided)
    })
}

/// Gives back the permits of a reservation that the caller does not use, and writes the number that
/// came back to `*back`. `back` may be NULL. Cancel a reservation once only.
///
/// All permits of the latest reservation come back. Of an earlier one only those come back that no
/// later reservation waits behind, usually none, because the later callers keep the departure times
/// that they have. Permits that the limit has refilled meanwhile do not come back again. So a
/// cancelled reservation never admits more than the limit.
///
/// These algorithms give permits back, and the others write 0: gcra without `borrow` and `ban`, in
/// limiters and tables without credit; lifetime quotas; fixed windows, interval with
/// `anchor first`, curves and calendars, in the window or slice of the charge; weighted windows, in
/// that window and the next. Of a list each policy gets back the permits that it has not refilled,
/// in a table only the policy that refills faster. The number is that of the policy that got more
/// back.
///
/// If the policy has become a slower one since the reservation, the call may return permits that
/// the former policy has refilled. The limiter may then admit that many permits more than the
/// slower policy's bound, and never more than the bounds of both policies together.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_limiter_cancel(
    limiter: *const tollbar_limiter,
    reservation: *const tollbar_reservation,
    back: *mut u64,
) -> i32 {
    // SAFETY: by the caller's promise.
    guard(|| code(unsafe { cancel(limiter, reservation, None, back) }))
}

/// tollbar_limiter_cancel at the caller's time, which must not be earlier than that of any call for
/// this limiter that has returned.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_limiter_cancel_at(
    limiter: *const tollbar_limiter,
    reservation: *const tollbar_reservation,
    now_ns: u64,
    back: *mut u64,
) -> i32 {
    // SAFETY: by the caller's promise.
    guard(|| code(unsafe { cancel(limiter, reservation, Some(now_ns), back) }))
}

/// tollbar_limiter_cancel for a reservation of a table's key. A key that is not in the table gets
/// nothing back. A key that was reset or evicted and is in the table again may get back permits of
/// its former state. So cancel before you reset a key. A receipt (tollbar_table_take) knows its
/// policy, and returns none after a change.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_table_cancel(
    table: *const tollbar_table,
    policy: u32,
    key: *const c_void,
    length: usize,
    reservation: *const tollbar_reservation,
    back: *mut u64,
) -> i32 {
    // SAFETY: by the caller's promise.
    guard(|| code(unsafe { cancel_key(table, policy, key, length, reservation, None, back) }))
}

/// tollbar_table_cancel at the caller's time, which must not be earlier than that of any call for
/// this key that has returned.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_table_cancel_at(
    table: *const tollbar_table,
    policy: u32,
    key: *const c_void,
    length: usize,
    reservation: *const tollbar_reservation,
    now_ns: u64,
    back: *mut u64,
) -> i32 {
    guard(|| {
        // SAFETY: by the caller's promise.
        code(unsafe { cancel_key(table, policy, key, length, reservation, Some(now_ns), back) })
    })
}

/// # Safety
/// Pointers are null or live.
unsafe fn cancel(
    limiter: *const tollbar_limiter,
    reservation: *const tollbar_reservation,
    now: Option<u64>,
    back: *mut u64,
) -> Result<i32, i32> {
    // SAFETY: by the caller's promise.
    let (limiter, reservation) = unsafe { (&reference(limiter)?.limiter, reference(reservation)?) };
    // SAFETY: by the caller's promise.
    let back = unsafe { place_if_any(back) }?;
    let charge = Charge { at: reservation.departs_ns, cost: reservation.cost };
    let permits = match now {
        Some(now) => limiter.give_back_at(now, charge, charge.cost),
        None => limiter.give_back(charge, charge.cost),
    };
    Ok(write_back(permits, back))
}

/// # Safety
/// Pointers are null or live; `key` has `length` readable bytes.
unsafe fn cancel_key(
    table: *const tollbar_table,
    policy: u32,
    key: *const c_void,
    length: usize,
    reservation: *const tollbar_reservation,
    now: Option<u64>,
    back: *mut u64,
) -> Result<i32, i32> {
    // SAFETY: by the caller's promise.
    let (table, key) = unsafe { (&reference(table)?.table, bytes(key.cast(), length)?) };
    // SAFETY: by the caller's promise.
    let (reservation, back) = unsafe { (reference(reservation)?, place_if_any(back)?) };
    let charge = Charge { at: reservation.departs_ns, cost: reservation.cost };
    let permits = match now {
        Some(now) => table.give_back_at(PolicyId::new(policy), key, now, charge, charge.cost),
        None => table.give_back(PolicyId::new(policy), key, charge, charge.cost),
    };
    Ok(write_back(permits.map_err(request_code)?, back))
}

/// [`place`] of an output that may be null.
///
/// # Safety
/// As [`place`].
unsafe fn place_if_any<'a, T>(at: *mut T) -> Result<Option<&'a mut MaybeUninit<T>>, i32> {
    match at.is_null() {
        true => Ok(None),
        // SAFETY: by the caller's promise.
        false => unsafe { place(at) }.map(Some),
    }
}

fn write_back(permits: u64, back: Option<&mut MaybeUninit<u64>>) -> i32 {
    if let Some(back) = back {
        back.write(permits);
    }
    TOLLBAR_ALLOWED
}

/// # Safety
/// Pointers are null or live.
unsafe fn reserve(
    limiter: *const tollbar_limiter,
    now: Option<u64>,
    cost: u64,
    patience: u64,
    out: *mut tollbar_reservation,
) -> Result<i32, i32> {
    // SAFETY: by the caller's promise.
    let (limiter, out) = unsafe { (&reference(limiter)?.limiter, place(out)?) };
    let now = now.unwrap_or_else(|| limiter.now());
    let booked = limiter.reserve_at(now, cost, now.saturating_add(patience));
    put(booked.map(|at| Charge { at, cost }), now, out)
}

/// # Safety
/// Pointers are null or live; `key` has `length` readable bytes.
#[allow(clippy::too_many_arguments)] // those of the C call
unsafe fn reserve_key(
    table: *const tollbar_table,
    policy: u32,
    key: *const c_void,
    length: usize,
    now: Option<u64>,
    cost: u64,
    patience: u64,
    out: *mut tollbar_reservation,
) -> Result<i32, i32> {
    // SAFETY: by the caller's promise.
    let (table, key, out) =
        unsafe { (&reference(table)?.table, bytes(key.cast(), length)?, place(out)?) };
    let now = now.unwrap_or_else(|| table.now());
    let until = now.saturating_add(patience);
    put(
        table.try_reserve(PolicyId::new(policy), key, now, cost, until).map_err(request_code)?,
        now,
        out,
    )
}

fn put(
    booked: Result<Charge, Verdict>,
    now: u64,
    out: &mut MaybeUninit<tollbar_reservation>,
) -> Result<i32, i32> {
    match booked {
        Ok(Charge { at, cost }) => {
            out.write(tollbar_reservation {
                departs_ns: at,
                wait_ns: at.saturating_sub(now),
                cost,
            });
            Ok(TOLLBAR_ALLOWED)
        }
        Err(verdict) => Ok(verdict as i32),
    }
}
