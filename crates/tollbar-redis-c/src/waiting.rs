//! Requests that wait for the store's answer.

use super::lease::tollbar_lease;
use core::ffi::c_void;
use core::mem::size_of;
use tollbar_c::boundary::*;
use tollbar_c::check::answer_to;
use tollbar_c::decision::tollbar_decision;
use tollbar_redis::lease::Wait;

/// tollbar_lease_poll: the request waits for the store.
pub const TOLLBAR_LEASE_WAITS: i32 = 3;

/// A request that waits for the store (tollbar_lease_poll). Start from TOLLBAR_LEASE_REQUEST_INIT.
/// It is plain data: to give up, forget it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tollbar_lease_request {
    /// sizeof(tollbar_lease_request), as the caller's compiler sees it.
    pub struct_size: u32,
    /// The library's. 0 in a new request.
    pub progress: u32,
    /// The permits that the request takes.
    pub cost: u64,
    /// When the request gives up, on the scale of tollbar_lease_now.
    pub until_ns: u64,
}

// SAFETY: repr(C), u32 first, u32 and u64 fields without holes.
unsafe impl Growable for tollbar_lease_request {
    const FIRST_SIZE: usize = 24;
}

const _: () = assert!(size_of::<tollbar_lease_request>() == 24);

/// tollbar_lease_check that waits for the store's answer, for at most `timeout_ns`. While the store
/// answers, the call denies only what the store denies. The wait is about one round trip if a
/// thread runs tollbar_lease_client_run; with tollbar_lease_client_tick it lasts until a later
/// tick.
///
/// While the store does not answer, the call decides at once as tollbar_lease_check does. It denies
/// as TOLLBAR_REASON_PENDING if no answer came in time; the store may still charge such a request.
/// The thread that drives the client must not make this call.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_lease_wait(
    lease: *const tollbar_lease,
    key: *const c_void,
    length: usize,
    cost: u64,
    timeout_ns: u64,
    out: *mut tollbar_decision,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (node, key) = unsafe { (&reference(lease)?.node, bytes(key.cast(), length)?) };
        // SAFETY: by the caller's promise.
        unsafe { answer_to(out, || node.wait(key, cost, timeout_ns)) }
    })
}

/// tollbar_lease_wait for an event loop. Returns TOLLBAR_LEASE_WAITS and leaves `out` alone as long
/// as the request waits for the store. Call it again with the same key and `request` after each
/// tollbar_lease_client_tick of this process, or each millisecond if another process drives the
/// client, and at `until_ns`. Any other result is final.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_lease_poll(
    lease: *const tollbar_lease,
    key: *const c_void,
    length: usize,
    request: *mut tollbar_lease_request,
    out: *mut tollbar_decision,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (node, key) = unsafe { (&reference(lease)?.node, bytes(key.cast(), length)?) };
        // SAFETY: by the caller's promise.
        let asked = unsafe { read(request) }?;
        // Before the request takes anything.
        if !out.is_null() {
            size_at(out)?;
        }
        let mut wait = Wait::resumed(asked.cost, asked.until_ns, asked.progress);
        let decision = node.poll_wait(&mut wait, key, node.now());
        let progress = wait.progress();
        // SAFETY: by the caller's promise; `read` has checked it.
        unsafe { write(request, &tollbar_lease_request { progress, ..asked }) }?;
        match decision {
            None => Ok(TOLLBAR_LEASE_WAITS),
            // SAFETY: by the caller's promise.
            Some(decision) => unsafe { answer_to(out, || decision) },
        }
    })
}
