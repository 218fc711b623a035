//! Clients: each asks the store for the leases of one node.

use super::lease::{circuit_number, node_code, tollbar_lease, TOLLBAR_CIRCUIT_UNKNOWN};
use super::tls::{tollbar_tls, TlsLibrary};
use core::cell::UnsafeCell;
use core::ffi::{c_char, c_void};
use core::sync::atomic::{AtomicU32, Ordering};
use tollbar::internal::generation;
use tollbar_c::boundary::*;
use tollbar_c::status::*;
use tollbar_redis::lease::{Client, Node};
use tollbar_redis::redis::Url;

/// Watch the descriptor of tollbar_lease_client_fd for data to read.
pub const TOLLBAR_EVENT_READ: u32 = 1;
/// Watch the descriptor of tollbar_lease_client_fd for room to write.
pub const TOLLBAR_EVENT_WRITE: u32 = 2;

/// A client asks one store for the permits of up to 128 nodes, each of another limit, over one
/// connection. One thread at a time may use it. Any thread may call tollbar_lease_client_circuit
/// and tollbar_lease_client_stop, also while tollbar_lease_client_run runs.
pub struct tollbar_lease_client {
    client: UnsafeCell<Client<&'static Node>>,
    stop: AtomicU32,
    /// The process whose thread drives the client; 0 if no thread does.
    running: AtomicU32,
    /// The circuit of all leases as of the last turn.
    circuit: AtomicU32,
    listener: UnsafeCell<Listener>,
    /// 1 while the driving thread is in the listener.
    listening: AtomicU32,
    error: UnsafeCell<[u8; 512]>,
}

#[derive(Clone, Copy)]
struct Listener {
    call: Option<unsafe extern "C" fn(*mut c_void, u32)>,
    argument: *mut c_void,
}

// SAFETY: one thread at a time uses `client`, `listener` and `error`: by the caller's promise, or
// because that thread has set `running`. The other fields are atomic.
unsafe impl Sync for tollbar_lease_client {}

/// Makes a client that asks the store at `url` for the leases of `lease`, which must outlive the
/// client. tollbar_lease_client_add gives it the leases of further limits. The URL is
/// `redis://[user[:password]@]host[:port][,host[:port]...][/db]`, the same with `valkey://`, or
/// `unix:/path`. Options may follow: `?db=N&user=...&password=...`, `password_file=` with a path,
/// `timeout=` with a time such as 500ms. Several hosts are tried in turn. The first line of the file
/// is the password, and each connection reads it again.
///
/// The call does not connect. tollbar_lease_client_run in a thread, or tollbar_lease_client_tick
/// from an event loop, connects later. For each new connection the client looks up a host's name by
/// the system's resolver (getaddrinfo), on a thread that ends with the lookup. A client has at most
/// one such thread, and a process at most 16. If the URL cannot be read, the call returns
/// TOLLBAR_E_URL and `*column`, unless `column` is NULL, gets the column of the fault, from 1. A
/// URL with TLS needs tollbar_lease_client_new_tls.
///
/// With a glibc before 2.34 a program must have libpthread (`-pthread`) for that thread. Without
/// it, tollbar_lease_client_tick waits for the resolver.
///
/// If several processes share a node (tollbar_lease_new_shared, tollbar_lease_init_in), each may
/// have a client. One client asks the store. When its process ends, in any way, another client
/// takes over within a second.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_lease_client_new(
    lease: *const tollbar_lease,
    url: *const c_char,
    url_length: usize,
    column: *mut usize,
    out: *mut *mut tollbar_lease_client,
) -> i32 {
    // SAFETY: by the caller's promise.
    call(|| unsafe { new_client(lease, (url, url_length), core::ptr::null(), column, out) })
}

/// tollbar_lease_client_new for a URL with or without TLS (`rediss://` or `valkeys://`). `*tls` has
/// the program's TLS library, and is copied; its functions and its context must outlive the client.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_lease_client_new_tls(
    lease: *const tollbar_lease,
    url: *const c_char,
    url_length: usize,
    tls: *const tollbar_tls,
    column: *mut usize,
    out: *mut *mut tollbar_lease_client,
) -> i32 {
    call(|| {
        if tls.is_null() {
            return Err(TOLLBAR_E_NULL);
        }
        // SAFETY: by the caller's promise.
        unsafe { new_client(lease, (url, url_length), tls, column, out) }
    })
}

/// # Safety
/// As [`tollbar_lease_client_new_tls`], except that `tls` may be null.
unsafe fn new_client(
    lease: *const tollbar_lease,
    (url, url_length): (*const c_char, usize),
    tls: *const tollbar_tls,
    column: *mut usize,
    out: *mut *mut tollbar_lease_client,
) -> Result<i32, i32> {
    // SAFETY: by the caller's promise.
    let (out, node, text) =
        unsafe { (place(out)?, &reference(lease)?.node, bytes(url, url_length)?) };
    let url = match core::str::from_utf8(text).map(Url::parse) {
        Ok(Ok(url)) if !url.is_tls || !tls.is_null() => url,
        fault => {
            if !column.is_null() {
                let at =
                    fault.map_or(1, |refused| refused.map_or_else(|error| error.column, |_| 1));
                // SAFETY: by the caller's promise.
                unsafe { place(column) }?.write(at);
            }
            return Err(TOLLBAR_E_URL);
        }
    };
    let mut client = Client::new(&url).map_err(node_code)?;
    if !tls.is_null() {
        // SAFETY: by the caller's promise.
        client.secure(unsafe { TlsLibrary::boxed(tls) }?);
    }
    let client = boxed(tollbar_lease_client {
        client: UnsafeCell::new(client),
        stop: AtomicU32::new(0),
        running: AtomicU32::new(0),
        circuit: AtomicU32::new(TOLLBAR_CIRCUIT_UNKNOWN),
        listening: AtomicU32::new(0),
        listener: UnsafeCell::new(Listener { call: None, argument: core::ptr::null_mut() }),
        error: UnsafeCell::new([0; 512]),
    })?;
    // SAFETY: `boxed` has made it, and no other thread knows it.
    if let Err(code) = unsafe { (*client).add(node) } {
        // SAFETY: as above.
        unsafe { unboxed(client) };
        return Err(code);
    }
    out.write(client);
    Ok(TOLLBAR_ALLOWED)
}

/// Makes the client ask for the leases of `lease`, too, which must outlive the client. A process
/// needs one client for all limits of a store: one connection, one heartbeat, and one call for the
/// questions of all limits. A fault of one limit leaves the others alone.
/// tollbar_lease_client_remove ends this.
///
/// Returns TOLLBAR_E_CLIENT_LEASES if the client has 128 leases, or one of this limit. While
/// tollbar_lease_client_run runs, the call returns TOLLBAR_E_RUNNING.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_lease_client_add(
    client: *mut tollbar_lease_client,
    lease: *const tollbar_lease,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise: no other thread is in a call, and the lease outlives the
        // client.
        let (client, node) = unsafe { (exclusive(client)?, &reference(lease)?.node) };
        // SAFETY: `exclusive` has seen that no thread drives it.
        unsafe { client.add(node) }.map(|()| TOLLBAR_ALLOWED)
    })
}

/// Reports to the store the admissions of `lease` that the store does not know yet, for at most
/// `timeout_ms`. The client asks for its other leases meanwhile. The call returns
/// TOLLBAR_E_UNREPORTED if the time was too short; with 0 it begins no connection. It returns
/// TOLLBAR_E_CLIENT_LEASES if the client does not have this lease, and TOLLBAR_E_RUNNING while
/// tollbar_lease_client_run runs.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_lease_client_report(
    client: *mut tollbar_lease_client,
    lease: *const tollbar_lease,
    timeout_ms: u32,
) -> i32 {
    // SAFETY: by the caller's promise.
    call(|| unsafe { reported(client, lease, |client, node| client.report(node, timeout_ms)) })
}

/// tollbar_lease_client_report, which then makes the client forget the lease, also if it returns
/// TOLLBAR_E_UNREPORTED.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_lease_client_remove(
    client: *mut tollbar_lease_client,
    lease: *const tollbar_lease,
    timeout_ms: u32,
) -> i32 {
    // SAFETY: by the caller's promise.
    call(|| unsafe { reported(client, lease, |client, node| client.remove(node, timeout_ms)) })
}

/// # Safety
/// As [`tollbar_lease_client_report`].
unsafe fn reported(
    client: *mut tollbar_lease_client,
    lease: *const tollbar_lease,
    f: impl FnOnce(&mut Client<&'static Node>, &Node) -> Option<bool>,
) -> Result<i32, i32> {
    // SAFETY: by the caller's promise: no other thread is in a call.
    let (client, node) = unsafe { (exclusive(client)?, &reference(lease)?.node) };
    // SAFETY: `exclusive` has seen that no thread drives it.
    match f(unsafe { &mut *client.client.get() }, node) {
        Some(true) => Ok(TOLLBAR_ALLOWED),
        Some(false) => Err(TOLLBAR_E_UNREPORTED),
        None => Err(TOLLBAR_E_CLIENT_LEASES),
    }
}

/// Makes tollbar_lease_client_tick and tollbar_lease_client_run call `listener` with `argument` and
/// tollbar_lease_client_circuit whenever this or the circuit of one of the client's leases changes.
/// A NULL `listener` ends the calls.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_lease_client_on_change(
    client: *mut tollbar_lease_client,
    listener: Option<unsafe extern "C" fn(argument: *mut c_void, circuit: u32)>,
    argument: *mut c_void,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise: no other thread is in a call.
        let client = unsafe { exclusive(client) }?;
        // SAFETY: `exclusive` has seen that no thread drives it.
        unsafe { client.listener.get().write(Listener { call: listener, argument }) };
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Drives the client until tollbar_lease_client_stop. The call blocks, so give it a thread of its
/// own, which sleeps most of the time.
///
/// # Safety
/// `client` is NULL or a client.
#[no_mangle]
pub unsafe extern "C" fn tollbar_lease_client_run(client: *mut tollbar_lease_client) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let client = unsafe { reference(client) }?;
        // Acquire: this thread sees the writes of the thread that drove the client before.
        let before = client.running.load(Ordering::Relaxed);
        let taken = client.running.compare_exchange(
            before,
            generation(),
            Ordering::Acquire,
            Ordering::Relaxed,
        );
        // After a fork, `running` may name the parent, whose thread drives the parent's copy only.
        if before == generation() || taken.is_err() {
            return Err(TOLLBAR_E_RUNNING);
        }
        // SAFETY: this thread has set `running`, and the leases outlive the client.
        unsafe { client.drive() };
        client.stop.store(0, Ordering::Relaxed);
        client.running.store(0, Ordering::Release);
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Makes tollbar_lease_client_run return within some 10 ms, or at once if that call comes later.
/// Any thread and any signal handler may call it.
///
/// # Safety
/// `client` is NULL or a client.
#[no_mangle]
pub unsafe extern "C" fn tollbar_lease_client_stop(client: *const tollbar_lease_client) -> i32 {
    // SAFETY: by the caller's promise.
    match unsafe { reference(client) } {
        Ok(client) => {
            client.stop.store(1, Ordering::Release);
            TOLLBAR_ALLOWED
        }
        Err(code) => code,
    }
}

/// Does the client's pending work, and never waits for the network or the system's resolver.
/// `*wait_ms`, unless NULL, gets a number of milliseconds. The caller must call again after that
/// time, or earlier if the descriptor becomes ready.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_lease_client_tick(
    client: *mut tollbar_lease_client,
    wait_ms: *mut u32,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let client = unsafe { exclusive(client) }?;
        // SAFETY: by the caller's promise.
        let wait = unsafe { client.turn() };
        if !wait_ms.is_null() {
            // SAFETY: by the caller's promise.
            unsafe { place(wait_ms) }?.write(wait);
        }
        Ok(TOLLBAR_ALLOWED)
    })
}

/// The descriptor to watch until the next tollbar_lease_client_tick, or -1 if there is none. A tick
/// may replace the descriptor, and the new descriptor has another number. `*events`, unless NULL,
/// gets the TOLLBAR_EVENT_ flags to watch for.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_lease_client_fd(
    client: *mut tollbar_lease_client,
    events: *mut u32,
) -> i32 {
    // SAFETY: by the caller's promise.
    let Ok(client) = (unsafe { exclusive(client) }) else { return -1 };
    // SAFETY: no thread drives it, and by the caller's promise no other is in a call.
    let inner = unsafe { &*client.client.get() };
    let wants = inner.wants();
    if !events.is_null() && events.is_aligned() {
        let read = if wants.readable { TOLLBAR_EVENT_READ } else { 0 };
        let write = if wants.writable { TOLLBAR_EVENT_WRITE } else { 0 };
        // SAFETY: not null, aligned, and writable by the caller's promise.
        unsafe { events.write(read | write) };
    }
    inner.fd()
}

/// Returns whether the store answers, as a TOLLBAR_CIRCUIT_ number: open if the circuit of any of
/// the client's leases is open, closed if all are closed. The call returns what the last
/// tollbar_lease_client_tick, or the last turn of tollbar_lease_client_run, has found.
/// tollbar_lease_get_stats has each lease's. Returns TOLLBAR_CIRCUIT_UNKNOWN for NULL.
///
/// # Safety
/// `client` is NULL or a client.
#[no_mangle]
pub unsafe extern "C" fn tollbar_lease_client_circuit(client: *const tollbar_lease_client) -> u32 {
    // SAFETY: by the caller's promise.
    let client = unsafe { reference(client) };
    client.map_or(TOLLBAR_CIRCUIT_UNKNOWN, |client| client.circuit.load(Ordering::Relaxed))
}

/// The fault, as text: why the store does not answer, why it grants nothing, or what the store's
/// record of a limit has otherwise than the machine's configuration. If the store refuses a
/// command, the text has the command, the key that it was about, and the store's own words. A text
/// about one of several limits begins with the limit's name. The text is empty if there is no
/// fault, and never NULL. The client owns it until the next call. While tollbar_lease_client_run
/// runs, only its listener gets the text, and other callers get an empty one.
///
/// # Safety
/// `client` is NULL or a client.
#[no_mangle]
pub unsafe extern "C" fn tollbar_lease_client_error(
    client: *mut tollbar_lease_client,
) -> *const c_char {
    // SAFETY: by the caller's promise.
    unsafe { trouble(client, None) }
}

/// tollbar_lease_client_error, only as far as it is about one of the client's leases.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_lease_client_lease_error(
    client: *mut tollbar_lease_client,
    lease: *const tollbar_lease,
) -> *const c_char {
    // SAFETY: by the caller's promise.
    let node = unsafe { reference(lease) }.map(|lease| &lease.node);
    // SAFETY: by the caller's promise.
    node.map_or(c"".as_ptr(), |node| unsafe { trouble(client, Some(node)) })
}

/// # Safety
/// `client` is NULL or a client.
unsafe fn trouble(client: *mut tollbar_lease_client, only: Option<&Node>) -> *const c_char {
    // SAFETY: by the caller's promise.
    let Ok(client) = (unsafe { reference(client) }) else { return c"".as_ptr() };
    if client.running.load(Ordering::Acquire) == generation()
        && client.listening.load(Ordering::Relaxed) == 0
    {
        return c"".as_ptr();
    }
    // SAFETY: no thread drives the client, or this thread drives it and is in the listener. By the
    // caller's promise no other thread is in a call.
    let (inner, buffer) = unsafe { (&*client.client.get(), &mut *client.error.get()) };
    let text = only.map_or_else(|| inner.trouble(), |node| inner.trouble_with(node));
    buffer.fill(0);
    let room = buffer.len() - 1;
    for (to, from) in buffer.iter_mut().zip(text.as_bytes().iter().take(room)) {
        *to = *from;
    }
    buffer.as_ptr().cast()
}

/// Reports to the store all admissions that the store does not know yet, for at most `timeout_ms`,
/// and frees the client. If the time was too short, the call frees the client and returns
/// TOLLBAR_E_UNREPORTED. With 0 the call begins no connection. While tollbar_lease_client_run runs,
/// the call returns TOLLBAR_E_RUNNING and does nothing. NULL is a no-op.
///
/// # Safety
/// `client` is NULL or has not been closed.
#[no_mangle]
pub unsafe extern "C" fn tollbar_lease_client_close(
    client: *mut tollbar_lease_client,
    timeout_ms: u32,
) -> i32 {
    if client.is_null() {
        return TOLLBAR_ALLOWED;
    }
    call(|| {
        // SAFETY: by the caller's promise.
        let handle = unsafe { reference(client) }?;
        if handle.running.load(Ordering::Acquire) == generation() {
            return Err(TOLLBAR_E_RUNNING);
        }
        // SAFETY: nobody drives it any more; the leases outlive the client.
        let confirmed = unsafe { (*handle.client.get()).close(timeout_ms) };
        // SAFETY: by the caller's promise.
        unsafe { unboxed(client) };
        if confirmed {
            Ok(TOLLBAR_ALLOWED)
        } else {
            Err(TOLLBAR_E_UNREPORTED)
        }
    })
}

impl tollbar_lease_client {
    /// # Safety
    /// No thread drives the client or is in another call that uses it exclusively.
    unsafe fn add(&self, node: &'static Node) -> Result<(), i32> {
        // SAFETY: by the caller's promise.
        unsafe { (*self.client.get()).add(node) }.map_err(node_code)
    }

    /// # Safety
    /// As [`tollbar_lease_client::turn`].
    unsafe fn drive(&self) {
        const SLICE: u32 = 10;
        while self.stop.load(Ordering::Acquire) == 0 {
            // SAFETY: by the caller's promise.
            let wait = unsafe { self.turn() };
            // SAFETY: as above.
            unsafe { (*self.client.get()).wait(wait.min(SLICE)) };
        }
    }

    /// # Safety
    /// The leases are alive, and the caller is the one that drives the client.
    unsafe fn turn(&self) -> u32 {
        // SAFETY: by the caller's promise.
        let client = unsafe { &mut *self.client.get() };
        let wait = client.tick();
        let circuit = circuit_number(client.circuit());
        let before = self.circuit.swap(circuit, Ordering::Relaxed);
        if client.has_changed() || circuit != before {
            // SAFETY: other threads write `listener` only while no thread drives the client. The
            // caller owns the function and its argument.
            unsafe {
                let Listener { call, argument } = self.listener.get().read();
                if let Some(call) = call {
                    self.listening.store(1, Ordering::Relaxed);
                    call(argument, circuit);
                    self.listening.store(0, Ordering::Relaxed);
                }
            }
        }
        wait
    }
}

/// Returns the client, unless a thread of this process drives it.
///
/// # Safety
/// `client` is null or a client, in no other call.
unsafe fn exclusive<'a>(
    client: *mut tollbar_lease_client,
) -> Result<&'a tollbar_lease_client, i32> {
    // SAFETY: by the caller's promise.
    let client = unsafe { reference(client) }?;
    if client.running.load(Ordering::Acquire) == generation() {
        return Err(TOLLBAR_E_RUNNING);
    }
    Ok(client)
}
