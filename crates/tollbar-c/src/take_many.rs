//! Several limits in one call.

use super::boundary::*;
use super::check::put;
use super::classes::class_name;
use super::decision::tollbar_decision;
use super::in_flight::{refusal_code, tollbar_in_flight, tollbar_ticket};
use super::limiter::tollbar_limiter;
use super::status::*;
use super::table::{request_code, tollbar_table};
use core::cell::Cell;
use core::ffi::{c_char, c_void};
use core::mem::{align_of, size_of, MaybeUninit};
use tollbar::decision::{Decision, Reason, Verdict};
use tollbar::in_flight::Ticket;
use tollbar::table::{Asked, Found, PolicyId, Table, Time, Under};
use tollbar::take_many::{Limit, ManyError, Several, LIMITS_MOST};

/// The most limits of one call.
pub const TOLLBAR_LIMITS_MOST: u32 = 16;

const _: () = assert!(TOLLBAR_LIMITS_MOST as usize == LIMITS_MOST);

/// One of several limits: a limiter, a key under a policy of a table, or a permit of a key of an
/// in-flight table. One of `limiter`, `table` and `in_flight` is not NULL.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tollbar_limit {
    /// The limiter, or NULL.
    pub limiter: *const tollbar_limiter,
    /// The table, or NULL.
    pub table: *const tollbar_table,
    /// The key of a table or an in-flight table.
    pub key: *const c_void,
    /// The number of the key's bytes.
    pub length: usize,
    /// The cost of the request in this limit. It must be 1 for an in-flight table.
    pub cost: u64,
    /// The number of the table's policy.
    pub policy: u32,
    /// The most permits of the key in flight. It must be 0 for a limiter or a table.
    pub most: u32,
    /// The in-flight table, or NULL.
    pub in_flight: *const tollbar_in_flight,
    /// Gets the ticket of the permit in flight if the request is admitted. NULL for a limiter or a
    /// table.
    pub ticket: *mut tollbar_ticket,
    /// The name of the request's class, NUL-terminated, or NULL for none. NULL for an in-flight
    /// table.
    pub class_name: *const c_char,
}

/// The common answer of several limits.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tollbar_taken {
    /// sizeof(tollbar_taken), as the caller's compiler sees it.
    pub struct_size: u32,
    /// TOLLBAR_ALLOWED, TOLLBAR_DENIED or TOLLBAR_NEVER: what the call returned.
    pub verdict: u32,
    /// The smallest number of permits that a limit has left.
    pub remaining: u64,
    /// The nanoseconds after which all limits would admit the same request if no other request came
    /// first. 0 if the request was admitted, TOLLBAR_NO_TIME if no wait would help.
    pub retry_after_ns: u64,
    /// Nanoseconds until all limits are as good as fresh if no other request comes first.
    pub reset_after_ns: u64,
    /// The reason of the binding limit: one of TOLLBAR_REASON_*.
    pub reason: u32,
    /// The index of the binding limit. If the request was refused, that is the limit with the
    /// longest wait, otherwise the limit with the fewest permits left.
    pub bound: u32,
}

// SAFETY: repr(C), u32 first, u32 and u64 fields without holes.
unsafe impl Growable for tollbar_taken {
    const FIRST_SIZE: usize = 40;
}

const _: () = assert!(size_of::<tollbar_taken>() == 40);
const _: () = assert!(size_of::<tollbar_limit>() == 72);
const _: () = assert!(size_of::<Cell<Ticket>>() == size_of::<tollbar_ticket>());

/// Charges each of `count` limits, 1 to TOLLBAR_LIMITS_MOST, with its cost, or charges none. Each
/// limit reads its own clock.
///
/// Returns TOLLBAR_ALLOWED, TOLLBAR_DENIED, TOLLBAR_NEVER, or an error. After an error nothing has
/// been charged. `out`, unless NULL, gets the common answer. `decisions`, unless NULL, points to
/// `count` structs of the first one's `struct_size` and gets the decision of each limit. If the
/// request is refused, each limit gives the decision that it would make alone. With NULL for both
/// the call is cheaper.
///
/// Limits that are the same count as one, with the sum of their costs: one limiter, or one key
/// under one policy of one table, also through two views of its file. Requests of several classes
/// at one limit pass if they pass one after the other in some order.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_take_many(
    limits: *const tollbar_limit,
    count: usize,
    decisions: *mut tollbar_decision,
    out: *mut tollbar_taken,
) -> i32 {
    // SAFETY: by the caller's promise.
    guard(|| unsafe { take_quickly(limits, count, 0, decisions, out, false) })
}

/// tollbar_take_many at the caller's time, which must be on the scale of every limit.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_take_many_at(
    limits: *const tollbar_limit,
    count: usize,
    now_ns: u64,
    decisions: *mut tollbar_decision,
    out: *mut tollbar_taken,
) -> i32 {
    // SAFETY: by the caller's promise.
    guard(|| unsafe { take_quickly(limits, count, now_ns, decisions, out, true) })
}

/// Decides the usual case: two keys of one table that are known and admit their costs, and the
/// caller wants the verdict only. The parameters are in the order of the public calls, so that they
/// stay in their registers. `given`: `now` is the caller's time.
///
/// # Safety
/// As the public calls.
#[inline(always)]
unsafe fn take_quickly(
    limits: *const tollbar_limit,
    count: usize,
    now: u64,
    decisions: *mut tollbar_decision,
    out: *mut tollbar_taken,
    given: bool,
) -> i32 {
    let off = (limits as usize) & (align_of::<tollbar_limit>() - 1);
    if count != 2 || off | decisions as usize | out as usize != 0 {
        // SAFETY: as the caller's.
        return unsafe { take_any(limits, count, now, decisions, out, given) };
    }
    // SAFETY: aligned, and two limits by the caller's promise if it is not null.
    match unsafe { limits.as_ref() } {
        // SAFETY: as the caller's.
        Some(first) if given => unsafe { take_two(first, true, now) },
        // SAFETY: as the caller's.
        Some(first) => unsafe { take_two_now(first) },
        // SAFETY: as the caller's.
        None => unsafe { take_any(limits, count, now, decisions, out, given) },
    }
}

/// [`take_two`] at the time of the first limit's table.
///
/// # Safety
/// As [`take_two`].
#[inline(never)]
unsafe fn take_two_now(first: &tollbar_limit) -> i32 {
    // SAFETY: by the caller's promise.
    match unsafe { reference(first.table) } {
        // SAFETY: as the caller's.
        Ok(table) => unsafe { take_two(first, false, table.table.now()) },
        // SAFETY: as the caller's.
        Err(_) => unsafe {
            take_any(first, 2, 0, core::ptr::null_mut(), core::ptr::null_mut(), false)
        },
    }
}

/// # Safety
/// `first` is the first of two limits, whose pointers are NULL or as said.
#[inline(never)]
unsafe fn take_two(first: &tollbar_limit, given: bool, now: u64) -> i32 {
    // SAFETY: as the caller's.
    match unsafe { take_two_keys(first, Time { now, given }) } {
        true => TOLLBAR_ALLOWED,
        // SAFETY: as the caller's.
        false => unsafe {
            take_any(first, 2, now, core::ptr::null_mut(), core::ptr::null_mut(), given)
        },
    }
}

/// Charges two keys of a table. False: the call has charged nothing, because the limits are not two
/// keys of one table, because one of them is invalid, or because the general call must decide.
///
/// # Safety
/// As [`take_two`].
#[inline(always)]
unsafe fn take_two_keys(first: &tollbar_limit, when: Time) -> bool {
    // SAFETY: there are two by the caller's promise.
    let limits: &[tollbar_limit; 2] = unsafe { &*core::ptr::from_ref(first).cast() };
    let [one, other] = limits;
    if one.table != other.table {
        return false;
    }
    // SAFETY: by the caller's promise.
    let Ok(table) = (unsafe { reference(one.table) }) else { return false };
    let table = &table.table;
    let Some(under_one) = table.under(PolicyId::new(one.policy)) else { return false };
    let mut under = under_one;
    let mut founds = [const { MaybeUninit::<Found<'_>>::uninit() }; 2];
    let (mut limit, mut place) = (limits.as_ptr(), founds.as_mut_ptr());
    // A loop, because a function called for each key would save and restore registers.
    loop {
        // SAFETY: the pointers go through two limits and two places, and the loop ends after the
        // second.
        let (this, to) = unsafe { (&*limit, &mut *place) };
        // SAFETY: by the caller's promise.
        let Some(found) = (unsafe { find(this, table, under, when.now) }) else { return false };
        to.write(found);
        if core::ptr::eq(this, other) {
            break;
        }
        // SAFETY: as above.
        (limit, place) = unsafe { (limit.add(1), place.add(1)) };
        if one.policy != other.policy {
            let Some(of_other) = table.under(PolicyId::new(other.policy)) else { return false };
            under = of_other;
        }
    }
    let [first, second] = &founds;
    // SAFETY: the loop has written both.
    let (first, second) = unsafe { (first.assume_init_ref(), second.assume_init_ref()) };
    if one.policy != other.policy {
        return take_under_two(table, limits, [under_one, under], [first, second], when);
    }
    let first = Asked { under, found: first, cost: &one.cost };
    table.take_both(&first, &Asked { under, found: second, cost: &other.cost }, when)
}

/// Charges two keys under two policies. It is out of line, so that two keys under one policy stay
/// in registers.
#[inline(never)]
fn take_under_two(
    table: &Table,
    limits: &[tollbar_limit; 2],
    unders: [Under<'_>; 2],
    founds: [&Found<'_>; 2],
    when: Time,
) -> bool {
    let ([one, other], [first, second], [under, under_other]) = (limits, founds, unders);
    let first = Asked { under, found: first, cost: &one.cost };
    table.take_under_two(
        &first,
        &Asked { under: under_other, found: second, cost: &other.cost },
        when,
    )
}

/// # Safety
/// The key of `limit` is NULL or as said.
#[inline(always)]
unsafe fn find<'a>(
    limit: &tollbar_limit,
    table: &'a Table,
    under: Under<'a>,
    now: u64,
) -> Option<Found<'a>> {
    // The general call returns the error for other invalid fields.
    let wrong = limit.limiter as usize
        | limit.in_flight as usize
        | limit.ticket as usize
        | limit.most as usize;
    let wrong = wrong | limit.class_name as usize;
    if wrong != 0 || limit.key.is_null() || limit.length.wrapping_sub(1) >= KEY_MOST {
        return None;
    }
    // SAFETY: not null, of so many bytes by the caller's promise.
    let key = unsafe { core::slice::from_raw_parts(limit.key.cast::<u8>(), limit.length) };
    table.find(under, key, now, limit.cost)
}

/// The most bytes of a key in [`take_two`].
const KEY_MOST: usize = 16;

/// # Safety
/// As the public calls.
#[inline(never)]
unsafe fn take_any(
    limits: *const tollbar_limit,
    count: usize,
    now: u64,
    decisions: *mut tollbar_decision,
    out: *mut tollbar_taken,
    given: bool,
) -> i32 {
    // SAFETY: as the caller's.
    code(unsafe { take(limits, count, given.then_some(now), decisions, out) })
}

/// # Safety
/// As the public calls.
#[inline(always)]
unsafe fn take(
    limits: *const tollbar_limit,
    count: usize,
    now: Option<u64>,
    decisions: *mut tollbar_decision,
    out: *mut tollbar_taken,
) -> Result<i32, i32> {
    array(limits, count)?;
    if count == 0 || count > LIMITS_MOST {
        return Err(TOLLBAR_E_LIMITS);
    }
    // The outputs are checked first, so that a call that cannot write them charges nothing.
    let size = if decisions.is_null() { 0 } else { size_at(decisions)? };
    if !out.is_null() {
        size_at(out)?;
    }
    // SAFETY: not null and aligned, of `count` limits by the caller's promise; `count` is small.
    let given = unsafe { core::slice::from_raw_parts(limits, count) };
    let mut several = Several::new(now);
    for from in given {
        // SAFETY: by the caller's promise.
        let limit = unsafe { limit(from) }?;
        match from.class_name.is_null() {
            true => several.add(&limit),
            // SAFETY: by the caller's promise.
            false => several.add_class(&limit, unsafe { class_name(from.class_name) }?),
        }
        .map_err(many_code)?;
    }
    if decisions.is_null() && out.is_null() {
        return Ok(several.take(None).map_err(many_code)?.decision.verdict as i32);
    }
    // SAFETY: as the caller's.
    unsafe { answer_all(&mut several, count, decisions, size, out) }
}

/// Decides, and writes the answers.
///
/// # Safety
/// As the public calls; `size` is that of a decision.
#[inline(never)]
unsafe fn answer_all(
    several: &mut Several<'_>,
    count: usize,
    decisions: *mut tollbar_decision,
    size: usize,
    out: *mut tollbar_taken,
) -> Result<i32, i32> {
    let mut all = [BLANK; LIMITS_MOST];
    let taken = several.take(Some(&mut all)).map_err(many_code)?;
    if !decisions.is_null() {
        for (n, decision) in all.iter().enumerate().take(count) {
            // SAFETY: `count` structs of `size` bytes, which is a multiple of their alignment, by
            // the caller's promise.
            unsafe { put(decisions.byte_add(n * size), size, decision) }?;
        }
    }
    let decision = taken.decision;
    if !out.is_null() {
        let value = tollbar_taken {
            struct_size: 0,
            verdict: decision.verdict as u32,
            remaining: decision.remaining,
            retry_after_ns: decision.retry_after,
            reset_after_ns: decision.reset_after,
            reason: decision.reason as u32,
            bound: taken.bound as u32,
        };
        // SAFETY: `size_at` has inspected it; writable by the caller's promise.
        unsafe { write(out, &value) }?;
    }
    Ok(decision.verdict as i32)
}

/// # Safety
/// The pointers of `from` are NULL or as said.
unsafe fn limit<'a>(from: &'a tollbar_limit) -> Result<Limit<'a>, i32> {
    if !from.in_flight.is_null() {
        // SAFETY: as the caller's.
        return unsafe { permit(from) };
    }
    if from.most != 0 || !from.ticket.is_null() {
        return Err(TOLLBAR_E_RESERVED);
    }
    match (from.limiter.is_null(), from.table.is_null()) {
        (false, true) => {
            // SAFETY: by the caller's promise.
            Ok(Limit::Limiter(&unsafe { reference(from.limiter) }?.limiter, from.cost))
        }
        (true, false) => {
            // SAFETY: by the caller's promise.
            let (table, key) =
                unsafe { (&reference(from.table)?.table, bytes(from.key.cast(), from.length)?) };
            Ok(Limit::Key(table, PolicyId::new(from.policy), key, from.cost))
        }
        _ => Err(TOLLBAR_E_LIMITS),
    }
}

/// A permit in flight.
///
/// # Safety
/// As [`limit`].
#[inline(never)]
unsafe fn permit<'a>(from: &'a tollbar_limit) -> Result<Limit<'a>, i32> {
    if !from.limiter.is_null() || !from.table.is_null() {
        return Err(TOLLBAR_E_LIMITS);
    }
    if from.cost != 1 || from.policy != 0 || !from.class_name.is_null() {
        return Err(TOLLBAR_E_RESERVED);
    }
    // SAFETY: by the caller's promise. A `Cell<Ticket>` is a `tollbar_ticket` in memory, and the
    // call writes to it from this thread only.
    let (table, key, ticket) = unsafe {
        (
            &reference(from.in_flight)?.table,
            bytes(from.key.cast(), from.length)?,
            reference(from.ticket.cast())?,
        )
    };
    Ok(Limit::InFlight(table, key, from.most, ticket))
}

fn many_code(error: ManyError) -> i32 {
    match error {
        ManyError::Count => TOLLBAR_E_LIMITS,
        ManyError::Class(_) => TOLLBAR_E_NO_SUCH_CLASS,
        ManyError::Table(_, error) => request_code(error),
        ManyError::InFlight(_, refusal) => refusal_code(refusal),
    }
}

/// The value of a decision before the call makes it.
const BLANK: Decision = Decision {
    verdict: Verdict::Denied,
    reason: Reason::Fault,
    remaining: 0,
    retry_after: 0,
    reset_after: 0,
    bound: 0,
};
