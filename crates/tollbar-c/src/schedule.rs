//! Schedules: another policy by time of day and day of the week.

use super::boundary::*;
use super::policy::{read_text, spec_of, tollbar_policy_error, tollbar_policy_spec};
use super::status::*;
use core::ffi::c_char;
use tollbar::limiter::State;
use tollbar::policy::schedule::{Schedule, SCHEDULE_TEXT_MOST};

/// A buffer of this size takes any schedule's text.
pub const TOLLBAR_SCHEDULE_TEXT_MAX: usize = 19296;

const _: () = assert!(TOLLBAR_SCHEDULE_TEXT_MAX == SCHEDULE_TEXT_MOST);

/// Writes to `*policy` the policy that a schedule's text has in force at `unix_ns`, and to
/// `*until_ns`, unless NULL, the time at which the next one comes into force, or TOLLBAR_NO_TIME.
/// Both times are nanoseconds since 1970 (TOLLBAR_CLOCK_WALL).
///
/// `text` has `len` bytes and needs no NUL. Returns 0, or an error of tollbar_policy_spec_parse, of
/// which `error`, unless NULL, gets the column.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_schedule_at(
    text: *const c_char,
    len: usize,
    unix_ns: u64,
    policy: *mut tollbar_policy_spec,
    until_ns: *mut u64,
    error: *mut tollbar_policy_error,
) -> i32 {
    call(|| {
        size_at(policy)?;
        // SAFETY: by the caller's promise.
        let now = unsafe { schedule(text, len, error) }?.at(unix_ns);
        if !until_ns.is_null() {
            // SAFETY: writable by the caller's promise.
            unsafe { place(until_ns) }?.write(now.until);
        }
        // SAFETY: size_at has checked it; by the caller's promise writable.
        unsafe { write(policy, &spec_of(&now.policy)) }.map(|()| TOLLBAR_ALLOWED)
    })
}

/// Writes the canonical text of a schedule, with a NUL, into `buffer` of `capacity` bytes: a zone's
/// name has become its rule, so the text means the same on machines with other zone data.
///
/// `length`, unless NULL, gets the text's length without the NUL. TOLLBAR_SCHEDULE_TEXT_MAX bytes
/// are always enough. If the buffer is too small, the call writes `length` and returns
/// TOLLBAR_E_BUFFER_TOO_SMALL. Errors of the text are those of tollbar_schedule_at.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_schedule_print(
    text: *const c_char,
    len: usize,
    buffer: *mut c_char,
    capacity: usize,
    length: *mut usize,
    error: *mut tollbar_policy_error,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let schedule = unsafe { schedule(text, len, error) }?;
        // SAFETY: by the caller's promise.
        unsafe { fill(buffer, capacity, length, |out| schedule.print(out)) }
    })
}

/// # Safety
/// As the public calls.
unsafe fn schedule(
    text: *const c_char,
    len: usize,
    error: *mut tollbar_policy_error,
) -> Result<Schedule, i32> {
    // SAFETY: by the caller's promise.
    unsafe { read_text(text, len, error, |bytes| Schedule::parse(bytes, &State::validate)) }
}
