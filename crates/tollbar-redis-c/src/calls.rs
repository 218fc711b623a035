//! Questions that the program's own Redis client carries to the store.

use super::lease::{node_code, tollbar_lease};
use core::ffi::{c_char, c_void};
use core::mem::size_of;
use tollbar_c::boundary::{self, *};
use tollbar_c::status::*;
use tollbar_redis::lease::{Call, Calls, Node, Turn, CALL_SCRIPT_C};

/// tollbar_lease_calls_turn: the calls tell the store at once what it does not know yet.
pub const TOLLBAR_LEASE_CLOSING: u32 = 1;

/// The calls of a program's Redis client for up to 128 nodes, each of another limit. One thread at
/// a time may use it. A node whose call takes longer than half a lease's life, or 250 ms, follows
/// its fallback meanwhile.
pub struct tollbar_lease_calls {
    calls: Calls<&'static Node>,
    parts: [tollbar_lease_part; PARTS_MOST],
    error: [u8; 512],
}

const PARTS_MOST: usize = Call::PARTS_MOST;

/// A key or an argument of a call. It may have any bytes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tollbar_lease_part {
    /// Its bytes.
    pub bytes: *const c_void,
    /// How many.
    pub length: usize,
}

/// A call of the script. Start from TOLLBAR_LEASE_CALL_INIT.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tollbar_lease_call {
    /// sizeof(tollbar_lease_call), as the caller's compiler sees it.
    pub struct_size: u32,
    /// Without a call, the milliseconds until the next tollbar_lease_calls_turn.
    pub wait_ms: u32,
    /// The keys and then the arguments. They are valid until the next tollbar_lease_calls_turn.
    pub parts: *const tollbar_lease_part,
    /// The number of parts; 0 if there is no call to make now.
    pub count: usize,
    /// How many of them are keys.
    pub keys: usize,
}

// SAFETY: repr(C), u32 first, fields without holes.
unsafe impl Growable for tollbar_lease_call {
    const FIRST_SIZE: usize = 8 + 3 * size_of::<usize>();
}

/// Makes the calls for the leases of `lease`, which must outlive `*out`. The caller ends `*out`
/// with tollbar_lease_calls_close.
///
/// If several processes share a node (tollbar_lease_new_shared, tollbar_lease_init_in), each may
/// have calls or a client for it. One of them asks the store.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_lease_calls_new(
    lease: *const tollbar_lease,
    out: *mut *mut tollbar_lease_calls,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (out, node) = unsafe { (place(out)?, &reference(lease)?.node) };
        let mut calls = Calls::new().map_err(node_code)?;
        calls.add(node).map_err(node_code)?;
        let none = tollbar_lease_part { bytes: core::ptr::null(), length: 0 };
        out.write(boxed(tollbar_lease_calls {
            calls,
            parts: [none; PARTS_MOST],
            error: [0; 512],
        })?);
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Makes calls for the leases of `lease`, too, with the results of tollbar_lease_client_add.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_lease_calls_add(
    calls: *mut tollbar_lease_calls,
    lease: *const tollbar_lease,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise: the lease outlives the calls.
        let (handle, node) = unsafe { (exclusive(calls)?, &reference(lease)?.node) };
        handle.calls.add(node).map_err(node_code)?;
        Ok(TOLLBAR_ALLOWED)
    })
}

/// The script of all calls, in Lua. It returns an array of one string.
#[no_mangle]
pub extern "C" fn tollbar_lease_calls_script() -> *const c_char {
    CALL_SCRIPT_C.as_ptr()
}

/// Writes the call to make now to `*call`, or the milliseconds to wait. `flags` is 0 or
/// TOLLBAR_LEASE_CLOSING; with the flag, no call and a wait of 0 say that the store knows all
/// admissions. The program makes the call at once, by EVALSHA and, if the store does not
/// know the script, by EVAL. It must not repeat a call that may have reached the store. A call of
/// which the program has said nothing by the next turn counts as lost.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_lease_calls_turn(
    calls: *mut tollbar_lease_calls,
    flags: u32,
    call: *mut tollbar_lease_call,
) -> i32 {
    boundary::call(|| {
        // SAFETY: by the caller's promise.
        let (handle, asked) = unsafe { (exclusive(calls)?, read(call)?) };
        if flags & !TOLLBAR_LEASE_CLOSING != 0 {
            return Err(TOLLBAR_E_RESERVED);
        }
        handle.calls.hurry(flags & TOLLBAR_LEASE_CLOSING != 0);
        let mut found = tollbar_lease_call {
            wait_ms: 0,
            parts: handle.parts.as_ptr(),
            count: 0,
            keys: 0,
            ..asked
        };
        match handle.calls.turn() {
            Turn::Pause(wait_ms) => found.wait_ms = wait_ms,
            Turn::Call(made) => {
                found.keys = made.keys();
                for (place, part) in handle.parts.iter_mut().zip(made.parts()) {
                    *place = tollbar_lease_part { bytes: part.as_ptr().cast(), length: part.len() };
                    found.count += 1;
                }
            }
        }
        // SAFETY: by the caller's promise; `read` has checked it.
        unsafe { write(call, &found) }?;
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Takes the call's reply: the string in the array that the script returned.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_lease_calls_answered(
    calls: *mut tollbar_lease_calls,
    reply: *const c_void,
    length: usize,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (handle, text) = unsafe { (exclusive(calls)?, bytes(reply.cast(), length)?) };
        handle.calls.answered(text);
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Takes the store's error in place of a reply, such as `OOM command not allowed`. The store has
/// not run the script.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_lease_calls_refused(
    calls: *mut tollbar_lease_calls,
    error: *const c_char,
    length: usize,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (handle, text) = unsafe { (exclusive(calls)?, bytes(error, length)?) };
        handle.calls.refused(text);
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Says that the call has no reply, and why. The store may have run the script.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_lease_calls_lost(
    calls: *mut tollbar_lease_calls,
    why: *const c_char,
    length: usize,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (handle, text) = unsafe { (exclusive(calls)?, bytes(why, length)?) };
        handle.calls.lost(text);
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Waits for `wait_ms` milliseconds, or until a request cannot wait for the next turn.
///
/// # Safety
/// `calls` is NULL or calls.
#[no_mangle]
pub unsafe extern "C" fn tollbar_lease_calls_wait(
    calls: *mut tollbar_lease_calls,
    wait_ms: u32,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        unsafe { exclusive(calls) }?.calls.wait(wait_ms);
        Ok(TOLLBAR_ALLOWED)
    })
}

/// What is wrong, as tollbar_lease_client_error says it. The caller owns the text until its next
/// call.
///
/// # Safety
/// `calls` is NULL or calls.
#[no_mangle]
pub unsafe extern "C" fn tollbar_lease_calls_error(
    calls: *mut tollbar_lease_calls,
) -> *const c_char {
    // SAFETY: by the caller's promise.
    let Ok(handle) = (unsafe { exclusive(calls) }) else { return c"".as_ptr() };
    let text = handle.calls.trouble();
    handle.error.fill(0);
    let room = handle.error.len() - 1;
    for (to, from) in handle.error.iter_mut().zip(text.as_bytes().iter().take(room)) {
        *to = *from;
    }
    handle.error.as_ptr().cast()
}

/// Ends the calls. Turns with TOLLBAR_LEASE_CLOSING before it tell the store all admissions.
/// Returns TOLLBAR_E_UNREPORTED if the store does not know them all. NULL is a no-op.
///
/// # Safety
/// `calls` is NULL or has not been closed.
#[no_mangle]
pub unsafe extern "C" fn tollbar_lease_calls_close(calls: *mut tollbar_lease_calls) -> i32 {
    if calls.is_null() {
        return TOLLBAR_ALLOWED;
    }
    call(|| {
        // SAFETY: by the caller's promise.
        let confirmed = unsafe { exclusive(calls) }?.calls.close();
        // SAFETY: by the caller's promise.
        unsafe { unboxed(calls) };
        if confirmed {
            Ok(TOLLBAR_ALLOWED)
        } else {
            Err(TOLLBAR_E_UNREPORTED)
        }
    })
}
