//! Limits of what is in flight that follow the measured latency.

use super::boundary::*;
use super::in_flight::{refusal_code, ticket_code, tollbar_in_flight, tollbar_ticket};
use super::status::*;
use core::ffi::c_void;
use core::mem::{size_of, MaybeUninit};
use tollbar::in_flight::{Adaptive, AdaptiveOptions, AdaptiveTicket, Algorithm, Outcome, Ticket};

/// Netflix's Gradient2. A sample raises the limit by 0.8. If its latency is above 1.5 times the
/// long-term latency, it also lowers the limit, in proportion to the excess and by up to a tenth. A
/// sample with less than half of the limit in flight changes nothing, so the limit grows to at most
/// twice what was in flight.
pub const TOLLBAR_ADAPTIVE_GRADIENT2: u32 = 0;
/// Additive increase, multiplicative decrease. A dropped request or a latency above `timeout_ns`
/// lowers the limit by a tenth. Any other sample raises it by 1, if at least half of the limit is
/// in flight.
pub const TOLLBAR_ADAPTIVE_AIMD: u32 = 1;

/// The request was answered. Its latency counts.
pub const TOLLBAR_OUTCOME_ANSWERED: u32 = 0;
/// The server refused the request, or the request timed out. AIMD lowers the limit. Gradient2 uses
/// latencies only, so it takes no sample.
pub const TOLLBAR_OUTCOME_DROPPED: u32 = 1;
/// The request says nothing about the server, for example because the client gave it up. The limit
/// takes no sample.
pub const TOLLBAR_OUTCOME_IGNORED: u32 = 2;

/// How a limit learns. Start from TOLLBAR_ADAPTIVE_OPTIONS_INIT.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tollbar_adaptive_options {
    /// sizeof(tollbar_adaptive_options), as the caller's compiler sees it.
    pub struct_size: u32,
    /// One of TOLLBAR_ADAPTIVE_*.
    pub algorithm: u32,
    /// The limit before the first sample.
    pub initial: u32,
    /// The floor, at least 1.
    pub least: u32,
    /// The ceiling.
    pub most: u32,
    /// Must be 0.
    pub reserved: u32,
    /// With TOLLBAR_ADAPTIVE_AIMD: a latency above this counts as a dropped request. With
    /// TOLLBAR_ADAPTIVE_GRADIENT2 it must be 0.
    pub timeout_ns: u64,
    /// The length of a window in nanoseconds. All releases of a window are one sample: their mean
    /// latency, and the most permits that were in flight at any of them. A window with fewer than
    /// ten releases goes on. 0: each release is a sample.
    pub window_ns: u64,
}

// SAFETY: repr(C), u32 first, u32 and u64 fields without holes.
unsafe impl Growable for tollbar_adaptive_options {
    const FIRST_SIZE: usize = 40;
}

const _: () = assert!(size_of::<tollbar_adaptive_options>() == 40);

/// A limit and the count of its permits in flight: 128 bytes of the caller's memory. Threads may
/// share it, and processes in shared memory. If all bytes are 0, the limit is 0.
#[repr(C)]
pub struct tollbar_adaptive {
    /// The library's own.
    pub words: [u64; 16],
}

const _: () = assert!(size_of::<tollbar_adaptive>() == size_of::<Adaptive>());

/// The state of a limit at one instant.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tollbar_adaptive_state {
    /// sizeof(tollbar_adaptive_state), as the caller's compiler sees it.
    pub struct_size: u32,
    /// The limit.
    pub limit: u32,
    /// The permits of tollbar_adaptive_acquire in flight.
    pub in_flight: u64,
    /// Gradient2's long-term latency in nanoseconds. 0 before the first sample, and with AIMD.
    pub latency_ns: u64,
}

// SAFETY: repr(C), u32 first, u32 and u64 fields without holes.
unsafe impl Growable for tollbar_adaptive_state {
    const FIRST_SIZE: usize = 24;
}

const _: () = assert!(size_of::<tollbar_adaptive_state>() == 24);

/// Makes a limit in the caller's memory, with nothing in flight. TOLLBAR_E_OUT_OF_RANGE: an
/// algorithm that does not exist, bounds that are not 1 <= least <= initial <= most, or AIMD
/// without `timeout_ns`.
///
/// # Safety
/// Pointers are NULL or as said; nobody uses `*limit` during the call.
#[no_mangle]
pub unsafe extern "C" fn tollbar_adaptive_init(
    limit: *mut tollbar_adaptive,
    options: *const tollbar_adaptive_options,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise; the struct and the limit have the same size and
        // alignment, and any words are atomics.
        let (out, options) =
            unsafe { (place::<MaybeUninit<Adaptive>>(limit.cast())?, read(options)?) };
        if options.reserved != 0 {
            return Err(TOLLBAR_E_RESERVED);
        }
        let algorithm = match options.algorithm {
            TOLLBAR_ADAPTIVE_GRADIENT2 if options.timeout_ns == 0 => Algorithm::Gradient2,
            TOLLBAR_ADAPTIVE_AIMD if options.timeout_ns != 0 => {
                Algorithm::Aimd { timeout_ns: options.timeout_ns }
            }
            _ => return Err(TOLLBAR_E_OUT_OF_RANGE),
        };
        if options.least == 0 || options.initial < options.least || options.most < options.initial {
            return Err(TOLLBAR_E_OUT_OF_RANGE);
        }
        out.write(MaybeUninit::new(Adaptive::new(&AdaptiveOptions {
            algorithm,
            initial: options.initial,
            least: options.least,
            most: options.most,
            window_ns: options.window_ns,
        })));
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Takes one permit of the limit for a request. Returns TOLLBAR_ALLOWED and writes `*ticket`; when
/// the request ends, the caller passes the ticket to tollbar_adaptive_release of the same limit,
/// once. Returns TOLLBAR_DENIED if all permits of the limit are in flight.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_adaptive_acquire(
    limit: *mut tollbar_adaptive,
    ticket: *mut tollbar_ticket,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (limit, out) = unsafe { (limit_at(limit)?, place(ticket)?) };
        let Some(ticket) = limit.acquire() else { return Ok(TOLLBAR_DENIED) };
        out.write(ticket.to_bits());
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Releases a permit. The limit learns from the request's `outcome` (TOLLBAR_OUTCOME_*) and from
/// `latency_ns`, which the caller measures always from the same point, such as the acquisition.
///
/// Release each ticket once. TOLLBAR_E_TICKET if `ticket` is 0 or no permit is in flight,
/// TOLLBAR_E_OUT_OF_RANGE if there is no such outcome: nothing has changed.
///
/// # Safety
/// `limit` is NULL or points to a limit.
#[no_mangle]
pub unsafe extern "C" fn tollbar_adaptive_release(
    limit: *mut tollbar_adaptive,
    ticket: tollbar_ticket,
    outcome: u32,
    latency_ns: u64,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let limit = unsafe { limit_at(limit) }?;
        ticket_code(limit.release(
            AdaptiveTicket::from_bits(ticket),
            outcome_of(outcome)?,
            latency_ns,
        ))
    })
}

/// tollbar_adaptive_release at the caller's time. A window ends by this time (`window_ns`).
///
/// # Safety
/// `limit` is NULL or points to a limit.
#[no_mangle]
pub unsafe extern "C" fn tollbar_adaptive_release_at(
    limit: *mut tollbar_adaptive,
    ticket: tollbar_ticket,
    outcome: u32,
    latency_ns: u64,
    now_ns: u64,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let limit = unsafe { limit_at(limit) }?;
        ticket_code(limit.release_at(
            AdaptiveTicket::from_bits(ticket),
            outcome_of(outcome)?,
            latency_ns,
            now_ns,
        ))
    })
}

/// tollbar_in_flight_acquire of a key with the present value of `*limit`. The table counts the
/// permits of all processes. `*limit` counts none of them.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_adaptive_acquire_key(
    limit: *mut tollbar_adaptive,
    table: *const tollbar_in_flight,
    key: *const c_void,
    length: usize,
    ticket: *mut tollbar_ticket,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (limit, table, key, out) = unsafe {
            (limit_at(limit)?, reference(table)?, bytes(key.cast(), length)?, place(ticket)?)
        };
        let ticket = limit.acquire_key(&table.table, key).map_err(refusal_code)?;
        out.write(ticket.to_bits());
        Ok(TOLLBAR_ALLOWED)
    })
}

/// tollbar_in_flight_release of a ticket of tollbar_adaptive_acquire_key. The limit learns from the
/// outcome and the latency, as in tollbar_adaptive_release.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_adaptive_release_key(
    limit: *mut tollbar_adaptive,
    table: *const tollbar_in_flight,
    key: *const c_void,
    length: usize,
    ticket: tollbar_ticket,
    outcome: u32,
    latency_ns: u64,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (limit, table, key) =
            unsafe { (limit_at(limit)?, reference(table)?, bytes(key.cast(), length)?) };
        let ticket = Ticket::from_bits(ticket);
        ticket_code(limit.release_key(&table.table, key, ticket, outcome_of(outcome)?, latency_ns))
    })
}

/// The present limit, for TOLLBAR_LIMIT_OF_ADAPTIVE. 0, which admits nothing, if `limit` is NULL.
///
/// # Safety
/// `limit` is NULL or points to a limit.
#[no_mangle]
pub unsafe extern "C" fn tollbar_adaptive_limit(limit: *const tollbar_adaptive) -> u32 {
    // SAFETY: by the caller's promise.
    unsafe { limit_at(limit) }.map_or(0, Adaptive::limit)
}

/// Writes the state of a limit to `*out`.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_adaptive_read(
    limit: *const tollbar_adaptive,
    out: *mut tollbar_adaptive_state,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let read = unsafe { limit_at(limit) }?.read();
        size_at(out)?;
        let state = tollbar_adaptive_state {
            struct_size: 0,
            limit: read.limit,
            in_flight: read.in_flight,
            latency_ns: read.latency_ns,
        };
        // SAFETY: `size_at` has inspected it; writable by the caller's promise.
        unsafe { write(out, &state) }?;
        Ok(TOLLBAR_ALLOWED)
    })
}

/// # Safety
/// `limit` is null, or points to words that nobody writes to but through these calls.
unsafe fn limit_at<'a>(limit: *const tollbar_adaptive) -> Result<&'a Adaptive, i32> {
    // SAFETY: by the caller's promise; an Adaptive is atomic words, and any words are one.
    unsafe { reference(limit.cast()) }
}

fn outcome_of(outcome: u32) -> Result<Outcome, i32> {
    match outcome {
        TOLLBAR_OUTCOME_ANSWERED => Ok(Outcome::Answered),
        TOLLBAR_OUTCOME_DROPPED => Ok(Outcome::Dropped),
        TOLLBAR_OUTCOME_IGNORED => Ok(Outcome::Ignored),
        _ => Err(TOLLBAR_E_OUT_OF_RANGE),
    }
}
