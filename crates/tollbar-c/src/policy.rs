//! Policies.

mod conversion;
pub mod fit;
pub mod spec;

pub use conversion::policy;
pub(crate) use conversion::spec_of;
pub use spec::tollbar_policy_spec;

use super::boundary::*;
use super::status::*;
use core::ffi::{c_char, c_void};
use core::mem::{align_of, size_of};
use tollbar::algorithm::{worst_case, Algorithm, Rule};
use tollbar::clock::Tsc;
use tollbar::limiter::State;
use tollbar::policy::{text, Kind, Policy, PolicyError, SyntaxError};
use tollbar::units::NEVER;

/// Why a policy's text was refused.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tollbar_policy_error {
    /// sizeof(tollbar_policy_error), as the caller's compiler sees it.
    pub struct_size: u32,
    /// The result that the call returned.
    pub code: i32,
    /// The column, from 1, at which the wrong part of the text begins: a word, a number, or an
    /// option with its value. If the text ends too early, the column after its last byte.
    pub column: u64,
    /// What was expected there, or why the policy is refused. The string is static.
    pub expected: *const c_char,
}

/// A compiled policy for cells: read-only, for any number of cells and threads.
pub struct tollbar_policy {
    pub(super) rule: Rule,
}

// SAFETY: repr(C), u32 first, without holes; null is a value of the pointer.
unsafe impl Growable for tollbar_policy_error {
    const FIRST_SIZE: usize = 16 + size_of::<usize>();
}

/// Reads one line of text such as "100/s burst 20" into `out`.
///
/// `text` has `len` bytes and needs no NUL. Initialise `out` and `error` by their _INIT macros.
/// Returns 0, or an error: of the text (TOLLBAR_E_SYNTAX to TOLLBAR_E_DUPLICATE_OPTION), or of the
/// policy that it names (TOLLBAR_E_PERIOD_ZERO to TOLLBAR_E_CALENDAR). After such an error `error`,
/// unless NULL, says where the fault is and what was expected.
///
/// # Safety
/// Pointers are as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_policy_spec_parse(
    text: *const c_char,
    len: usize,
    out: *mut tollbar_policy_spec,
    error: *mut tollbar_policy_error,
) -> i32 {
    call(|| {
        size_at(out)?;
        // SAFETY: by the caller's promise.
        let policy = unsafe { parse(text, len, error, &State::validate) }?;
        // SAFETY: size_at has checked it; by the caller's promise writable.
        unsafe { write(out, &spec_of(&policy)) }.map(|()| TOLLBAR_ALLOWED)
    })
}

/// Writes the canonical text of a policy, with a NUL, into `buffer` of `capacity` bytes.
///
/// tollbar_policy_spec_parse reads that text as an equal policy. `length`, unless NULL, gets the
/// text's length without the NUL. TOLLBAR_POLICY_TEXT_MAX bytes are always enough. If the buffer is
/// too small, the call writes only `length` and returns TOLLBAR_E_BUFFER_TOO_SMALL.
///
/// # Safety
/// Pointers are as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_policy_spec_print(
    spec: *const tollbar_policy_spec,
    buffer: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let policy = unsafe { policy(spec) }?;
        if buffer.is_null() {
            return Err(TOLLBAR_E_NULL);
        }
        let mut line = [0u8; text::TEXT_MOST];
        let len = text::print(&policy, &mut line);
        if !length.is_null() {
            // SAFETY: writable by the caller's promise.
            unsafe { place(length) }?.write(len);
        }
        if capacity <= len || len >= line.len() {
            return Err(TOLLBAR_E_BUFFER_TOO_SMALL);
        }
        // SAFETY: `len + 1` bytes fit in both; the byte after the text is still 0.
        unsafe { core::ptr::copy_nonoverlapping(line.as_ptr(), buffer.cast::<u8>(), len + 1) };
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Returns 0 if a limiter can have this policy, or the error that tollbar_limiter_new would return.
///
/// # Safety
/// `spec` is NULL or points to a readable struct of its `struct_size`.
#[no_mangle]
pub unsafe extern "C" fn tollbar_policy_spec_validate(spec: *const tollbar_policy_spec) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let policy = unsafe { policy(spec) }?;
        State::validate(&policy).map_err(policy_code).map(|()| TOLLBAR_ALLOWED)
    })
}

/// Writes to `*last_ns` the policy's last time in nanoseconds: at later times every cost above 0 is
/// refused (clause C3). Returns 0, or the error that tollbar_policy_spec_validate would return.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_policy_spec_last_time(
    spec: *const tollbar_policy_spec,
    last_ns: *mut u64,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (last_ns, policy) = unsafe { (place(last_ns)?, policy(spec)?) };
        last_ns.write(policy.last_time().map_err(policy_code)?);
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Writes to `*refill_ns` the time in nanoseconds after which the policy has refilled one permit.
/// tollbar_take_many charges limits in the order of this time. Two values are no times:
///
///   - TOLLBAR_NO_TIME: a table does not give keys under this policy all unused permits back
///     (tollbar_table_cancel);
///   - TOLLBAR_NO_TIME - 1: a lifetime quota, which refills none.
///
/// Returns 0, or the error that tollbar_policy_spec_validate would return.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_policy_spec_refill(
    spec: *const tollbar_policy_spec,
    refill_ns: *mut u64,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (refill_ns, policy) = unsafe { (place(refill_ns)?, policy(spec)?) };
        let refill = match Rule::new(&policy) {
            Ok(rule) => rule.refill_in_slots(),
            // A state of more than one word takes no permits back.
            Err(_) => State::validate(&policy).map(|()| None).map_err(policy_code)?,
        };
        refill_ns.write(refill.unwrap_or(NEVER));
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Writes to `*most` the most permits of one key that the policy admits in some half-open window of
/// `window_ns` nanoseconds, by requests that cost 1 and come at the worst times: for "120/min" and
/// a minute 239, which are 120 at once and one each half second after that.
///
/// Under a policy with `borrow` a key can get its largest request besides. Classes change nothing:
/// permits that one class must leave may be taken by another. A window of 0 admits 0. Returns 0, or
/// the error that tollbar_policy_spec_validate would return. For days, weeks, months and years the
/// call looks at all of them from 1970 on, and may take some milliseconds.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_policy_spec_worst_case(
    spec: *const tollbar_policy_spec,
    window_ns: u64,
    most: *mut u64,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (most, policy) = unsafe { (place(most)?, policy(spec)?) };
        most.write(worst_case(&policy, window_ns).map_err(policy_code)?);
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Compiles a policy. The caller frees `*out` with tollbar_policy_free. A calendar is refused,
/// because a cell's clock is not the wall clock.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_policy_new(
    spec: *const tollbar_policy_spec,
    out: *mut *mut tollbar_policy,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (out, policy) = unsafe { (place(out)?, policy(spec)?) };
        out.write(boxed(compile(&policy)?)?);
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Reads and compiles a NUL-terminated text. The caller frees `*out` with tollbar_policy_free.
/// `error` may be NULL.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_policy_from_text(
    text: *const c_char,
    out: *mut *mut tollbar_policy,
    error: *mut tollbar_policy_error,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (out, policy) = unsafe { (place(out)?, parse(text, length(text)?, error, &one_word)?) };
        let made = compile(&policy).and_then(boxed).inspect_err(|&code| {
            // SAFETY: by the caller's promise.
            unsafe { report(error, code, 1, tollbar_strerror(code)) };
        })?;
        out.write(made);
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Frees a policy of tollbar_policy_new or tollbar_policy_from_text that no call is using. Cells
/// outlive their policy. With NULL the call does nothing.
///
/// # Safety
/// `policy` is NULL or has not been freed.
#[no_mangle]
pub unsafe extern "C" fn tollbar_policy_free(policy: *mut tollbar_policy) {
    // SAFETY: by the caller's promise.
    unsafe { unboxed(policy) };
}

/// Returns the number of bytes that tollbar_policy_init_in needs.
#[no_mangle]
pub extern "C" fn tollbar_policy_size() -> usize {
    size_of::<tollbar_policy>()
}

/// Returns the alignment that tollbar_policy_init_in needs.
#[no_mangle]
pub extern "C" fn tollbar_policy_align() -> usize {
    align_of::<tollbar_policy>()
}

/// Compiles a policy into the caller's memory of `size` bytes. `*out` is that memory. A compiled
/// policy holds no pointers and may be copied or mapped. Do not call tollbar_policy_free with it.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_policy_init_in(
    memory: *mut c_void,
    size: usize,
    spec: *const tollbar_policy_spec,
    out: *mut *mut tollbar_policy,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (out, policy) = unsafe { (place(out)?, policy(spec)?) };
        let memory = room::<tollbar_policy>(memory, size)?;
        let compiled = compile(&policy)?;
        // SAFETY: not null, aligned, large enough, and writable by the caller's promise.
        unsafe { memory.write(compiled) };
        out.write(memory);
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Reads a text and checks the policy. `error` gets the fault.
///
/// # Safety
/// `text` has `len` readable bytes; `error` is null or writable.
pub(super) unsafe fn parse(
    text: *const c_char,
    len: usize,
    error: *mut tollbar_policy_error,
    check: &dyn Fn(&Policy) -> Result<(), PolicyError>,
) -> Result<Policy, i32> {
    // SAFETY: by the caller's promise.
    unsafe { read_text(text, len, error, |bytes| text::parse_checked(bytes, check)) }
}

/// Lets `parse` read a text. `error` gets the fault.
///
/// # Safety
/// As [`parse`].
pub(super) unsafe fn read_text<T>(
    text: *const c_char,
    len: usize,
    error: *mut tollbar_policy_error,
    parse: impl FnOnce(&[u8]) -> Result<T, SyntaxError>,
) -> Result<T, i32> {
    if !error.is_null() {
        size_at(error)?;
    }
    // SAFETY: by the caller's promise.
    let bytes = unsafe { bytes(text, len) }?;
    parse(bytes).map_err(|wrong| {
        let code = fault_code(wrong.fault);
        let expected = match wrong.fault {
            tollbar::policy::Fault::Policy(_) => tollbar_strerror(code),
            _ => wrong.expected_c().as_ptr(),
        };
        // SAFETY: by the caller's promise; checked above.
        unsafe { report(error, code, wrong.column, expected) };
        code
    })
}

/// Writes to `error` unless it is null.
///
/// # Safety
/// `error` is null or writable.
pub(super) unsafe fn report(
    error: *mut tollbar_policy_error,
    code: i32,
    column: usize,
    expected: *const c_char,
) {
    if !error.is_null() {
        let value = tollbar_policy_error { struct_size: 0, code, column: column as u64, expected };
        // The caller has already refused a struct with a wrong size.
        // SAFETY: by the caller's promise.
        let _ = unsafe { write(error, &value) };
    }
}

/// Whether a cell can have the policy. A cell's clock counts from the machine's start, which no
/// calendar does.
fn one_word(policy: &Policy) -> Result<(), PolicyError> {
    match policy.kind == Kind::Calendar {
        true => Err(PolicyError::WallClock),
        false => Rule::new(policy).map(|_| ()),
    }
}

fn compile(policy: &Policy) -> Result<tollbar_policy, i32> {
    one_word(policy).map_err(policy_code)?;
    // The clock's first reading opens a file. It happens here, so that the first tollbar_cell_check
    // opens none.
    Tsc.is_counter();
    Ok(tollbar_policy { rule: Rule::new(policy).map_err(policy_code)? })
}
