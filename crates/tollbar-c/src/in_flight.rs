//! Limits on the number of permits in flight: tables by key, and send windows.

use super::boundary::*;
use super::status::*;
use super::table::table_code;
use core::ffi::{c_char, c_void, CStr};
use core::mem::size_of;
use core::ptr::NonNull;
use tollbar::in_flight::{InFlight, Options, Refusal, SendWindow, Ticket};
use tollbar::table::{TableError, Trust};

/// The call opens a file whatever its owner and permissions are (TOLLBAR_TABLE_TRUST_ANYONE).
pub const TOLLBAR_IN_FLIGHT_TRUST_ANYONE: u32 = 1;

/// This process's view of an in-flight table. Any number of threads may use it at once, and a
/// forked child may use it, too. Only tollbar_in_flight_close needs the view for itself.
pub struct tollbar_in_flight {
    pub(crate) table: InFlight,
}

/// A permit in flight. It is plain data: any thread of the process may release it. 0 is no ticket.
pub type tollbar_ticket = u64;

/// How an in-flight table is made. Start from TOLLBAR_IN_FLIGHT_OPTIONS_INIT.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tollbar_in_flight_options {
    /// sizeof(tollbar_in_flight_options), as the caller's compiler sees it.
    pub struct_size: u32,
    /// The number of processes that have permits of one key at one time. 0: 8. A key has room for
    /// four times as many, and at least for 32.
    pub processes: u32,
    /// The number of keys that can have permits in flight at one time. A key with permits of
    /// several processes counts once for each process.
    pub capacity: u64,
    /// The permissions of a new file. 0 means 0600. The call refuses an existing file that more
    /// users may write than `mode` lets write.
    pub mode: u32,
    /// TOLLBAR_IN_FLIGHT_ flags.
    pub flags: u32,
}

// SAFETY: repr(C), u32 first, u32 and u64 fields without holes.
unsafe impl Growable for tollbar_in_flight_options {
    const FIRST_SIZE: usize = 24;
}

const _: () = assert!(size_of::<tollbar_in_flight_options>() == 24);

/// A send window: one word of the caller's memory, which threads may share. If it is 0, the limit
/// is 0; tollbar_send_window_resize sets the limit.
#[repr(C)]
pub struct tollbar_send_window {
    /// The library's own.
    pub word: u64,
}

/// The state of a send window at one instant. `sent` and `acknowledged` count permits modulo 2^22.
/// Their difference is in flight.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tollbar_send_window_state {
    /// sizeof(tollbar_send_window_state), as the caller's compiler sees it.
    pub struct_size: u32,
    /// The most permits that may be in flight.
    pub limit: u32,
    /// The number of the last permit that was sent.
    pub sent: u32,
    /// The number of the last permit that was acknowledged. With tollbar_send_window_release: how
    /// many permits were released, modulo 2^22.
    pub acknowledged: u32,
    /// Permits sent and not acknowledged.
    pub in_flight: u32,
    /// Permits that may be sent now.
    pub usable: u32,
}

// SAFETY: repr(C), u32 fields only.
unsafe impl Growable for tollbar_send_window_state {
    const FIRST_SIZE: usize = 24;
}

const _: () = assert!(size_of::<tollbar_send_window_state>() == 24);
const _: () = assert!(size_of::<tollbar_send_window>() == size_of::<SendWindow>());

/// Writes to `*bytes` the size of a table with these options. A table's size never changes.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_in_flight_bytes(
    options: *const tollbar_in_flight_options,
    bytes: *mut u64,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (out, options) = unsafe { (place(bytes)?, asked(options)?) };
        out.write(InFlight::bytes_for(&options).map_err(table_code)?);
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Makes a table in this process's own memory. The caller frees `*out` with
/// tollbar_in_flight_close.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_in_flight_new(
    options: *const tollbar_in_flight_options,
    out: *mut *mut tollbar_in_flight,
) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe { make(options, out, &InFlight::private) }
}

/// tollbar_in_flight_new in memory that this process shares with the processes that it forks later.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_in_flight_new_shared(
    options: *const tollbar_in_flight_options,
    out: *mut *mut tollbar_in_flight,
) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe { make(options, out, &InFlight::shared) }
}

/// Opens the table in the file at `path`, or makes the file if there is none. If several processes
/// call at once, one makes the file and the others open it. With `options` NULL the call makes no
/// file and opens any table. TOLLBAR_E_OTHER_CAPACITY: the file's table has another capacity, or is
/// for another number of processes.
///
/// Give the file a directory of the service's own, such as /run/SERVICE, or /dev/shm. All processes
/// that have the file open at one time must be in one PID namespace (TOLLBAR_E_PID_NAMESPACE),
/// because each asks the system whether the others still run. A file that no process has open
/// begins empty, if it is of another boot or of another PID namespace. The call never frees the
/// permits of a file that is in use: TOLLBAR_E_OTHER_BOOT if its users' system gives another boot
/// id, and TOLLBAR_E_BOOT_ID if this process cannot read the boot id and the file is not in tmpfs.
/// Whom the call trusts: tollbar_table_open.
///
/// # Safety
/// Pointers are NULL or as said; `path` is NUL-terminated.
#[no_mangle]
pub unsafe extern "C" fn tollbar_in_flight_open(
    path: *const c_char,
    options: *const tollbar_in_flight_options,
    out: *mut *mut tollbar_in_flight,
) -> i32 {
    if path.is_null() {
        return TOLLBAR_E_NULL;
    }
    // SAFETY: not null, and NUL-terminated by the caller's promise.
    let path = unsafe { CStr::from_ptr(path) };
    if options.is_null() {
        // SAFETY: by the caller's promise.
        return unsafe { put(out, || InFlight::open_at(path, Trust::Owner)) };
    }
    // SAFETY: by the caller's promise.
    unsafe { make(options, out, &|options| InFlight::file_at(path, options)) }
}

/// Makes a table in the caller's memory, which other processes may share. It overwrites as many of
/// the `size` bytes as tollbar_in_flight_bytes says; with capacity 0 it takes all. `memory` must be
/// aligned to 64 bytes and must outlive `*out`.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_in_flight_init_in(
    memory: *mut c_void,
    size: usize,
    options: *const tollbar_in_flight_options,
    out: *mut *mut tollbar_in_flight,
) -> i32 {
    let Some(memory) = NonNull::new(memory.cast::<u8>()) else { return TOLLBAR_E_NULL };
    // SAFETY: by the caller's promise.
    unsafe { make(options, out, &|options| InFlight::init_in(memory, size, options)) }
}

/// Opens the table that tollbar_in_flight_init_in has made in the caller's memory, in this process
/// or another, at this address or another.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_in_flight_attach(
    memory: *mut c_void,
    size: usize,
    out: *mut *mut tollbar_in_flight,
) -> i32 {
    let Some(memory) = NonNull::new(memory.cast::<u8>()) else { return TOLLBAR_E_NULL };
    // SAFETY: by the caller's promise.
    unsafe { put(out, || InFlight::attach_in(memory, size)) }
}

/// Makes this process an owner now, so that its first tollbar_in_flight_acquire makes no system
/// calls for it. TOLLBAR_E_OWNERS_FULL: 1,024 owners use the table. TOLLBAR_E_PID_NAMESPACE: this
/// process is a forked child in another PID namespace, or cannot read in which one it is.
///
/// # Safety
/// `table` is NULL or live.
#[no_mangle]
pub unsafe extern "C" fn tollbar_in_flight_join(table: *const tollbar_in_flight) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        unsafe { reference(table) }?.table.join().map_err(refusal_code)?;
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Takes a permit of a key, unless `limit` permits of the key are in flight. Each call may give
/// another limit. With TOLLBAR_ALLOWED the caller gives `*ticket` to tollbar_in_flight_release,
/// once.
///
/// Returns TOLLBAR_ALLOWED, TOLLBAR_DENIED, or an error. TOLLBAR_E_IN_FLIGHT_FULL: no slot is free
/// among those that the key may use. Before that, at most once a second, the call frees the slots
/// of killed processes and tries again. TOLLBAR_E_OWNERS_FULL and TOLLBAR_E_PID_NAMESPACE: as
/// tollbar_in_flight_join. A key has at most 2,097,120 permits in flight, whatever its limit.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_in_flight_acquire(
    table: *const tollbar_in_flight,
    key: *const c_void,
    length: usize,
    limit: u32,
    ticket: *mut tollbar_ticket,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (table, key, out) =
            unsafe { (reference(table)?, bytes(key.cast(), length)?, place(ticket)?) };
        let ticket = table.table.acquire(key, limit).map_err(refusal_code)?;
        out.write(ticket.to_bits());
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Releases a permit. TOLLBAR_E_TICKET, and nothing changes, if `ticket` is 0, has been released,
/// belongs to another view of the table, or was acquired by this process's parent before a fork.
///
/// Release each ticket once. Tickets of one key may be equal numbers, and so may tickets of two
/// keys of one process, because a slot that has become free may go to another key. So a second
/// release of one ticket may release another permit of this process. The key may then have one
/// permit more than its limit in flight, and the release of that other permit returns
/// TOLLBAR_E_TICKET.
///
/// # Safety
/// `table` is NULL or live.
#[no_mangle]
pub unsafe extern "C" fn tollbar_in_flight_release(
    table: *const tollbar_in_flight,
    ticket: tollbar_ticket,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        match unsafe { reference(table) }?.table.release(Ticket::from_bits(ticket)) {
            true => Ok(TOLLBAR_ALLOWED),
            false => Err(TOLLBAR_E_TICKET),
        }
    })
}

/// Writes to `*count` how many permits of a key are in flight. The count includes permits of a
/// killed process until the key refuses a request of another process.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_in_flight_count(
    table: *const tollbar_in_flight,
    key: *const c_void,
    length: usize,
    count: *mut u64,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (table, key, out) =
            unsafe { (reference(table)?, bytes(key.cast(), length)?, place(count)?) };
        out.write(table.table.count(key));
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Closes this process's view of a table and releases all permits that the process acquired through
/// it. No other call may use the view at the same time or later. The table stays for other
/// processes. With NULL the call does nothing.
///
/// # Safety
/// `table` is NULL or has not been freed.
#[no_mangle]
pub unsafe extern "C" fn tollbar_in_flight_close(table: *mut tollbar_in_flight) {
    // SAFETY: by the caller's promise.
    unsafe { unboxed(table) };
}

/// Sends `permits` permits: TOLLBAR_ALLOWED, or TOLLBAR_DENIED, and it sends none, if fewer are
/// usable. The call writes the number of the last permit to `*last`, unless `last` is NULL.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_send_window_acquire(
    window: *mut tollbar_send_window,
    permits: u32,
    last: *mut u32,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let window = unsafe { window_at(window) }?;
        let out = match last.is_null() {
            true => None,
            // SAFETY: by the caller's promise.
            false => Some(unsafe { place(last) }?),
        };
        let Some(number) = window.acquire(permits) else { return Ok(TOLLBAR_DENIED) };
        if let Some(out) = out {
            out.write(number);
        }
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Releases any `permits` of the permits in flight. TOLLBAR_E_TICKET, and nothing changes, if fewer
/// are in flight.
///
/// # Safety
/// `window` is NULL or points to a window.
#[no_mangle]
pub unsafe extern "C" fn tollbar_send_window_release(
    window: *mut tollbar_send_window,
    permits: u32,
) -> i32 {
    // SAFETY: by the caller's promise.
    call(|| ticket_code(unsafe { window_at(window) }?.release(permits)))
}

/// Releases all permits up to number `last`, which a call of tollbar_send_window_acquire has
/// written. TOLLBAR_E_TICKET, and nothing changes, if no permit in flight has this number.
///
/// # Safety
/// `window` is NULL or points to a window.
#[no_mangle]
pub unsafe extern "C" fn tollbar_send_window_acknowledge(
    window: *mut tollbar_send_window,
    last: u32,
) -> i32 {
    // SAFETY: by the caller's promise.
    call(|| ticket_code(unsafe { window_at(window) }?.acknowledge(last)))
}

/// Sets the limit, 1,048,575 at most (TOLLBAR_E_OUT_OF_RANGE). If more permits are in flight than
/// the new limit, none is usable until enough of them are released.
///
/// # Safety
/// `window` is NULL or points to a window.
#[no_mangle]
pub unsafe extern "C" fn tollbar_send_window_resize(
    window: *mut tollbar_send_window,
    limit: u32,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let window = unsafe { window_at(window) }?;
        if limit > tollbar::in_flight::SEND_LIMIT_MOST {
            return Err(TOLLBAR_E_OUT_OF_RANGE);
        }
        window.resize(limit);
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Writes the state of a window to `*out`.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_send_window_read(
    window: *const tollbar_send_window,
    out: *mut tollbar_send_window_state,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let read = unsafe { window_at(window) }?.read();
        size_at(out)?;
        let state = tollbar_send_window_state {
            struct_size: 0,
            limit: read.limit,
            sent: read.sent,
            acknowledged: read.acknowledged,
            in_flight: read.in_flight(),
            usable: read.usable(),
        };
        // SAFETY: `size_at` has inspected it; writable by the caller's promise.
        unsafe { write(out, &state) }?;
        Ok(TOLLBAR_ALLOWED)
    })
}

/// # Safety
/// `window` is null, or points to a window that nobody writes to but through these calls.
unsafe fn window_at<'a>(window: *const tollbar_send_window) -> Result<&'a SendWindow, i32> {
    // SAFETY: by the caller's promise; a SendWindow is one atomic word, and any word is one.
    unsafe { reference(window.cast()) }
}

pub(crate) fn ticket_code(changed: bool) -> Result<i32, i32> {
    match changed {
        true => Ok(TOLLBAR_ALLOWED),
        false => Err(TOLLBAR_E_TICKET),
    }
}

pub(crate) fn refusal_code(refusal: Refusal) -> i32 {
    match refusal {
        Refusal::Limit => TOLLBAR_DENIED,
        Refusal::Full => TOLLBAR_E_IN_FLIGHT_FULL,
        Refusal::OwnersFull => TOLLBAR_E_OWNERS_FULL,
        Refusal::Namespace => TOLLBAR_E_PID_NAMESPACE,
    }
}

/// # Safety
/// `options` is null or readable.
unsafe fn asked(options: *const tollbar_in_flight_options) -> Result<Options, i32> {
    // SAFETY: by the caller's promise.
    let options = unsafe { read(options) }?;
    if options.flags & !TOLLBAR_IN_FLIGHT_TRUST_ANYONE != 0 || options.mode & !0o777 != 0 {
        return Err(TOLLBAR_E_RESERVED);
    }
    let mut asked = Options::new(options.capacity);
    if options.processes != 0 {
        asked.processes = options.processes;
    }
    if options.mode != 0 {
        asked.mode = options.mode;
    }
    if options.flags & TOLLBAR_IN_FLIGHT_TRUST_ANYONE != 0 {
        asked.trust = Trust::Anyone;
    }
    Ok(asked)
}

/// # Safety
/// As the public calls.
unsafe fn make(
    options: *const tollbar_in_flight_options,
    out: *mut *mut tollbar_in_flight,
    make: &dyn Fn(&Options) -> Result<InFlight, TableError>,
) -> i32 {
    // SAFETY: by the caller's promise.
    match unsafe { asked(options) } {
        // SAFETY: by the caller's promise.
        Ok(options) => unsafe { put(out, || make(&options)) },
        Err(code) => code,
    }
}

/// # Safety
/// `out` is null or writable.
unsafe fn put(
    out: *mut *mut tollbar_in_flight,
    make: impl FnOnce() -> Result<InFlight, TableError>,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let out = unsafe { place(out) }?;
        out.write(boxed(tollbar_in_flight { table: make().map_err(table_code)? })?);
        Ok(TOLLBAR_ALLOWED)
    })
}
