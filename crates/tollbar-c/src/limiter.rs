//! Limiters: a state of any algorithm with a clock, for threads of one process. Their decisions are
//! in [`super::decide`].

use super::boundary::*;
use super::clock::source;
use super::policy::{parse, policy, report, tollbar_policy_error, tollbar_policy_spec};
use super::status::*;
use core::ffi::{c_char, c_void};
use core::mem::{align_of, size_of};
use tollbar::clock::{Source, Utc};
use tollbar::limiter::{Limiter, State};
use tollbar::policy::Policy;

/// No thread takes permits in advance: every decision is exact to the permit.
pub const TOLLBAR_CREDIT_OFF: u32 = 0;
/// Threads take permits in advance (see above). The policy is gcra without `borrow` and with a
/// limit above 0, or the call that makes the limiter returns TOLLBAR_E_OPTION_MISMATCH. With a
/// burst below 32 there is no credit, and every decision is that of a limiter without.
pub const TOLLBAR_CREDIT_ON: u32 = 1;

/// A limiter. Any number of threads may use it at once, in all calls but tollbar_limiter_free and
/// tollbar_limiter_close. After a fork each process has a copy of its own. A limiter must not lie
/// in memory that processes share, because their threads would overwrite each other's counts of
/// decisions. The counts take 2.75 KiB: 32 threads have a cache line each, and further threads
/// share eight more.
pub struct tollbar_limiter {
    pub(super) limiter: Limiter<State, Utc>,
    pub(super) policy: Policy,
}

/// How a limiter is made. All zero but `struct_size` is the default.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tollbar_limiter_options {
    /// sizeof(tollbar_limiter_options), as the caller's compiler sees it.
    pub struct_size: u32,
    /// A TOLLBAR_CLOCK_ number, for the calls without `_at` (tollbar_limiter_now).
    pub clock: u32,
    /// Callers that may sleep in tollbar_limiter_wait at one time. 0 means 1024. A further caller
    /// is refused at once.
    pub waiters: u32,
    /// TOLLBAR_CREDIT_OFF, which is the default, or TOLLBAR_CREDIT_ON.
    pub credit: u32,
}

// SAFETY: repr(C), u32 first, u32 fields only.
unsafe impl Growable for tollbar_limiter_options {
    const FIRST_SIZE: usize = 16;
}

/// Makes a limiter. `options` may be NULL. The caller frees `*out` with tollbar_limiter_free.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_limiter_new(
    spec: *const tollbar_policy_spec,
    options: *const tollbar_limiter_options,
    out: *mut *mut tollbar_limiter,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (out, policy) = unsafe { (place(out)?, policy(spec)?) };
        // SAFETY: by the caller's promise; `allocated` gives fresh memory of the layout.
        out.write(unsafe { make(&policy, options, allocated) }?);
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Makes a limiter of a NUL-terminated text such as "100/s burst 20", with default options. `error`
/// may be NULL.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_limiter_from_text(
    text: *const c_char,
    out: *mut *mut tollbar_limiter,
    error: *mut tollbar_policy_error,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (out, policy) =
            unsafe { (place(out)?, parse(text, length(text)?, error, &State::validate)?) };
        // SAFETY: null options are the default; `allocated` gives fresh memory of the layout.
        let made = unsafe { make(&policy, core::ptr::null(), allocated) }.inspect_err(|&code| {
            // SAFETY: by the caller's promise.
            unsafe { report(error, code, 1, tollbar_strerror(code)) };
        })?;
        out.write(made);
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Frees a limiter that no call is using. With NULL the call does nothing.
///
/// # Safety
/// `limiter` is NULL or has not been freed.
#[no_mangle]
pub unsafe extern "C" fn tollbar_limiter_free(limiter: *mut tollbar_limiter) {
    // SAFETY: by the caller's promise.
    unsafe { unboxed(limiter) };
}

/// Returns the number of bytes that tollbar_limiter_init_in needs.
#[no_mangle]
pub extern "C" fn tollbar_limiter_size() -> usize {
    size_of::<tollbar_limiter>()
}

/// Returns the alignment that tollbar_limiter_init_in needs: a cache line or two.
#[no_mangle]
pub extern "C" fn tollbar_limiter_align() -> usize {
    align_of::<tollbar_limiter>()
}

/// Makes a limiter in the caller's memory of `size` bytes; `*out` is that memory. `options` may be
/// NULL.
///
/// The caller ends the limiter with tollbar_limiter_close, not with tollbar_limiter_free. The call
/// allocates the arrays of a sliding window or a sliding log, and the threads' credit. For other
/// limiters it allocates nothing.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_limiter_init_in(
    memory: *mut c_void,
    size: usize,
    spec: *const tollbar_policy_spec,
    options: *const tollbar_limiter_options,
    out: *mut *mut tollbar_limiter,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (out, policy) = unsafe { (place(out)?, policy(spec)?) };
        let memory = room::<tollbar_limiter>(memory, size)?;
        // SAFETY: by the caller's promise; the memory is not null, aligned, large enough, and
        // writable by that promise, too.
        out.write(unsafe { make(&policy, options, || Ok(memory)) }?);
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Ends a limiter of tollbar_limiter_init_in that no call is using. Its memory is the caller's
/// again. With NULL the call does nothing.
///
/// # Safety
/// `limiter` is NULL or came from tollbar_limiter_init_in and has not been closed.
#[no_mangle]
pub unsafe extern "C" fn tollbar_limiter_close(limiter: *mut tollbar_limiter) {
    if !limiter.is_null() && limiter.is_aligned() {
        // SAFETY: by the caller's promise a live value.
        unsafe { limiter.drop_in_place() };
    }
}

/// Writes the time that calls without `_at` use to `*now_ns`: nanoseconds of UTC since
/// TOLLBAR_TIME_ZERO. The process reads CLOCK_REALTIME once and counts on from there, so this time
/// never steps. On TOLLBAR_CLOCK_WALL it is Unix time.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_limiter_now(
    limiter: *const tollbar_limiter,
    now_ns: *mut u64,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (limiter, out) = unsafe { (reference(limiter)?, place(now_ns)?) };
        out.write(limiter.limiter.now());
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Makes a limiter in the memory that `room` gives. Nothing takes the memory if the call fails.
///
/// # Safety
/// `options` is null or readable. What `room` gives is writable memory of the limiter's layout.
unsafe fn make(
    policy: &Policy,
    options: *const tollbar_limiter_options,
    room: impl FnOnce() -> Result<*mut tollbar_limiter, i32>,
) -> Result<*mut tollbar_limiter, i32> {
    let (clock, waiters, credit) = if options.is_null() {
        (Source::Tsc, 0, TOLLBAR_CREDIT_OFF)
    } else {
        // SAFETY: by the caller's promise.
        let options = unsafe { read(options) }?;
        (source(options.clock)?, options.waiters, options.credit)
    };
    State::validate_on(policy, clock).map_err(policy_code)?;
    let state = match credit {
        TOLLBAR_CREDIT_OFF => State::new(policy),
        TOLLBAR_CREDIT_ON => State::with_credit(policy),
        _ => return Err(TOLLBAR_E_OUT_OF_RANGE),
    };
    let state = state.map_err(policy_code)?;
    let place = room()?;
    // SAFETY: by the caller's promise. Each part is written to its place, so that one copy of it at
    // most lies on the stack.
    let limiter = unsafe {
        core::ptr::addr_of_mut!((*place).policy).write(*policy);
        let limiter = core::ptr::addr_of_mut!((*place).limiter);
        limiter.write(Limiter::with(state, Utc::new(clock)));
        &mut *limiter
    };
    if waiters != 0 {
        limiter.set_waiters(waiters);
    }
    Ok(place)
}
