//! Pacing of a client's requests to servers that limit it.

use super::boundary::*;
use super::status::*;
use core::ffi::c_char;
use core::mem::size_of;
use tollbar::http::Seen;
use tollbar::pacing::{Algorithm, Answer, Hosts, Options, Ticket, HOSTS_MOST};

/// The rate is cut to 0.7, rises to its former value, stays near it, and then rises faster and
/// faster, as in the AWS SDKs' adaptive retry mode. A host that sends only Retry-After has another
/// curve: once a rate was kept for two pauses, it is cut to 0.97, and is back after fifty pauses.
pub const TOLLBAR_PACING_CUBIC: u32 = 0;
/// The rate is cut to 0.9, and rises by `increase` in each second.
pub const TOLLBAR_PACING_AIMD: u32 = 1;

/// How rates are learned. Start from TOLLBAR_PACING_OPTIONS_INIT.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tollbar_pacing_options {
    /// sizeof(tollbar_pacing_options), as the caller's compiler sees it.
    pub struct_size: u32,
    /// TOLLBAR_PACING_CUBIC or TOLLBAR_PACING_AIMD.
    pub algorithm: u32,
    /// The floor of a host's rate in millionths of a request per second, at least 1.
    pub least: u64,
    /// The ceiling in millionths of a request per second, up to 10^15.
    pub most: u64,
    /// With TOLLBAR_PACING_AIMD: the rise in a second, in millionths of a request per second. With
    /// TOLLBAR_PACING_CUBIC it must be 0.
    pub increase: u64,
    /// The longest pause in nanoseconds that an answer can cause.
    pub pause_most_ns: u64,
    /// How many requests may be sent at once after an idle time, at least 1.
    pub burst: u32,
    /// Must be 0.
    pub reserved: u32,
}

// SAFETY: repr(C), u32 first, u32 and u64 fields without holes.
unsafe impl Growable for tollbar_pacing_options {
    const FIRST_SIZE: usize = 48;
}

const _: () = assert!(size_of::<tollbar_pacing_options>() == 48);

/// The rates of a client's hosts.
pub struct tollbar_pacing {
    hosts: Hosts,
}

/// A turn to send one request to a host. Callers may copy it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tollbar_pacing_ticket {
    /// The library's own.
    pub host: u64,
    /// The library's own.
    pub turn: u64,
}

/// A host at one instant.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tollbar_pacing_state {
    /// sizeof(tollbar_pacing_state), as the caller's compiler sees it.
    pub struct_size: u32,
    /// Must be 0.
    pub reserved: u32,
    /// The rate in millionths of a request per second.
    pub rate: u64,
    /// The smoothed rate of answers in millionths of a request per second. 0 in the first half
    /// second.
    pub measured: u64,
    /// How many callers wait.
    pub waiting: u64,
    /// Nanoseconds until the pause ends. 0: none.
    pub paused_ns: u64,
}

// SAFETY: repr(C), u32 first, u32 and u64 fields without holes.
unsafe impl Growable for tollbar_pacing_state {
    const FIRST_SIZE: usize = 40;
}

const _: () = assert!(size_of::<tollbar_pacing_state>() == 40);

/// Makes room for the rates of 1 to 4096 hosts (TOLLBAR_E_CAPACITY). If a new host finds no room,
/// the host that has been idle for the longest time is forgotten. A host that has been idle for ten
/// minutes counts as new. `options` may be NULL. The caller frees `*out` with tollbar_pacing_free.
///
/// TOLLBAR_E_OUT_OF_RANGE: an algorithm that does not exist, bounds that are not 1 <= least <= most
/// <= 10^15, a burst of 0, or `increase` with TOLLBAR_PACING_CUBIC.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_pacing_new(
    options: *const tollbar_pacing_options,
    hosts: usize,
    out: *mut *mut tollbar_pacing,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (out, options) = unsafe { (place(out)?, options_of(options)?) };
        if hosts == 0 || hosts > HOSTS_MOST {
            return Err(TOLLBAR_E_CAPACITY);
        }
        let hosts = Hosts::new(&options, hosts).ok_or(TOLLBAR_E_NO_MEMORY)?;
        out.write(boxed(tollbar_pacing { hosts })?);
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Frees the rates. NULL is ignored.
///
/// # Safety
/// `pacing` is NULL or came from tollbar_pacing_new and has not been freed.
#[no_mangle]
pub unsafe extern "C" fn tollbar_pacing_free(pacing: *mut tollbar_pacing) {
    // SAFETY: by the caller's promise.
    unsafe { unboxed(pacing) };
}

/// Takes the next turn of a host, whose name is any `length` bytes that name what has one limit,
/// such as `https://api.example.com`. `now_ns` is the time of any clock that does not go back.
///
/// Pass the ticket to tollbar_pacing_wait_at until that returns TOLLBAR_ALLOWED, send the request,
/// and pass the ticket to tollbar_pacing_respond_at once. A request that was sent and got no answer
/// needs no further call.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_pacing_acquire_at(
    pacing: *mut tollbar_pacing,
    host: *const c_char,
    length: usize,
    now_ns: u64,
    ticket: *mut tollbar_pacing_ticket,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (pacing, name, out) =
            unsafe { (exclusive(pacing)?, bytes(host, length)?, place(ticket)?) };
        let Ticket { host, turn } = pacing.hosts.acquire(name, now_ns);
        out.write(tollbar_pacing_ticket { host, turn });
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Returns TOLLBAR_ALLOWED and writes 0 if the ticket's request may be sent now; it counts as sent
/// then. Otherwise it returns TOLLBAR_DENIED and writes the nanoseconds to sleep before the caller
/// asks again: at least the rest of a pause, and after that at most a second, because the rate may
/// rise meanwhile.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_pacing_wait_at(
    pacing: *mut tollbar_pacing,
    ticket: *const tollbar_pacing_ticket,
    now_ns: u64,
    wait_ns: *mut u64,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (pacing, ticket, out) =
            unsafe { (exclusive(pacing)?, ticket_of(ticket)?, place(wait_ns)?) };
        let wait = pacing.hosts.wait(ticket, now_ns);
        out.write(wait);
        Ok(if wait == 0 { TOLLBAR_ALLOWED } else { TOLLBAR_DENIED })
    })
}

/// The host has answered a ticket's request with an HTTP status up to 65535
/// (TOLLBAR_E_OUT_OF_RANGE). `header` is the answer's header as for tollbar_http_read; fields that
/// say nothing about limits may be left out. `utc_ns` is the time of the answer in nanoseconds
/// since 1970.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_pacing_respond_at(
    pacing: *mut tollbar_pacing,
    ticket: *const tollbar_pacing_ticket,
    status: u32,
    header: *const c_char,
    length: usize,
    utc_ns: u64,
    now_ns: u64,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (pacing, ticket, text) =
            unsafe { (exclusive(pacing)?, ticket_of(ticket)?, bytes(header, length)?) };
        let status = u16::try_from(status).map_err(|_| TOLLBAR_E_OUT_OF_RANGE)?;
        let seen = Seen::read(text, utc_ns);
        pacing.hosts.respond(ticket, now_ns, Answer::of(status, &seen), &seen);
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Gives a turn back before its request was sent. The callers behind it move up. Give each ticket
/// back at most once.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_pacing_leave_at(
    pacing: *mut tollbar_pacing,
    ticket: *const tollbar_pacing_ticket,
    now_ns: u64,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (pacing, ticket) = unsafe { (exclusive(pacing)?, ticket_of(ticket)?) };
        pacing.hosts.leave(ticket, now_ns);
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Writes the state of a host. Returns TOLLBAR_YES, or TOLLBAR_NO without writing if the host is
/// unknown or forgotten.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_pacing_read_at(
    pacing: *mut tollbar_pacing,
    host: *const c_char,
    length: usize,
    now_ns: u64,
    out: *mut tollbar_pacing_state,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (pacing, name) = unsafe { (exclusive(pacing)?, bytes(host, length)?) };
        size_at(out)?;
        let Some(read) = pacing.hosts.read(name, now_ns) else { return Ok(TOLLBAR_NO) };
        let state = tollbar_pacing_state {
            struct_size: 0,
            reserved: 0,
            rate: read.rate,
            measured: read.measured,
            waiting: read.waiting,
            paused_ns: read.paused,
        };
        // SAFETY: `size_at` has inspected it; writable by the caller's promise.
        unsafe { write(out, &state) }?;
        Ok(TOLLBAR_YES)
    })
}

/// # Safety
/// `options` is NULL or points to a readable struct of its `struct_size`.
unsafe fn options_of(options: *const tollbar_pacing_options) -> Result<Options, i32> {
    if options.is_null() {
        return Ok(Options::new());
    }
    // SAFETY: by the caller's promise.
    let options = unsafe { read(options) }?;
    if options.reserved != 0 {
        return Err(TOLLBAR_E_RESERVED);
    }
    let algorithm = match options.algorithm {
        TOLLBAR_PACING_CUBIC if options.increase == 0 => Algorithm::Cubic,
        TOLLBAR_PACING_AIMD => Algorithm::Aimd { increase: options.increase },
        _ => return Err(TOLLBAR_E_OUT_OF_RANGE),
    };
    let made = Options {
        algorithm,
        least: options.least,
        most: options.most,
        burst: options.burst,
        pause_most: options.pause_most_ns,
    };
    match made.is_valid() {
        true => Ok(made),
        false => Err(TOLLBAR_E_OUT_OF_RANGE),
    }
}

/// # Safety
/// `ticket` is NULL or points to a ticket.
unsafe fn ticket_of(ticket: *const tollbar_pacing_ticket) -> Result<Ticket, i32> {
    // SAFETY: by the caller's promise.
    let tollbar_pacing_ticket { host, turn } = *unsafe { reference(ticket) }?;
    Ok(Ticket { host, turn })
}
