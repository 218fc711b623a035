//! Policies.

mod conversion;

pub(crate) use conversion::describe;
pub use conversion::policy;

use super::boundary::*;
use super::status::*;
use core::ffi::{c_char, c_void};
use core::mem::{align_of, size_of};
use tollbar::algorithm::{Algorithm, Rule};
use tollbar::clock::Tsc;
use tollbar::limiter::State;
use tollbar::policy::{text, Kind, Policy, PolicyError, SyntaxError, CLASSES_MOST, CLASS_NAME_MOST};
use tollbar::units::NEVER;

/// Windows are aligned to time 0 of the clock. By the clocks of limiters and tables that is UTC.
pub const TOLLBAR_ANCHOR_EPOCH: u32 = 0;
/// Windows are aligned to the first request of a fresh state.
pub const TOLLBAR_ANCHOR_FIRST: u32 = 1;

/// Sliding window: the last `segments` segments count, the running one among them.
pub const TOLLBAR_MODE_N: u32 = 0;
/// Sliding window: one more segment counts. Every window of a period then stays within the limit.
pub const TOLLBAR_MODE_STRICT: u32 = 1;
/// Sliding window: one more segment counts, by the part of it that is still in the window.
pub const TOLLBAR_MODE_INTERPOLATED: u32 = 2;

/// The period of a quota: no permit comes back.
pub const TOLLBAR_FOREVER: u64 = 0xffff_ffff_ffff_ffff;

/// The period of a calendar with windows of a day.
pub const TOLLBAR_DAY: u64 = 86_400_000_000_000;
/// The period of a calendar with windows of a week.
pub const TOLLBAR_WEEK: u64 = 604_800_000_000_000;
/// The period of a calendar with windows of a month: the mean month of 400 years.
pub const TOLLBAR_MONTH: u64 = 2_629_746_000_000_000;
/// The period of a calendar with windows of a year: the mean year of 400 years.
pub const TOLLBAR_YEAR: u64 = 31_556_952_000_000_000;

/// A permit is a request, a call, a message.
pub const TOLLBAR_UNIT_PERMITS: u32 = 0;
/// A permit is a byte.
pub const TOLLBAR_UNIT_BYTES: u32 = 1;

/// gcra: a bucket without debt lets any cost pass, and later requests wait until that cost is refilled.
pub const TOLLBAR_POLICY_BORROW: u32 = 1;
/// fixed window, sliding log: refused requests count too.
pub const TOLLBAR_POLICY_COUNT_REJECTED: u32 = 2;
/// gcra: a fresh state holds `init` permits. Without this flag it holds the burst, or nothing with
/// TOLLBAR_POLICY_BORROW.
pub const TOLLBAR_POLICY_HAS_INIT: u32 = 4;

/// After a change of policy a limiter, or a key of a table, keeps the number of permits that it has left, up to the
/// new burst. No wait becomes longer than the new policy's refill, and the change admits no request that was refused,
/// with two exceptions: windows of one length keep the permits used (tollbar_table_set_policy), and a key that has
/// taken no permit of a curve is fresh.
pub const TOLLBAR_KEEP_COUNT: u32 = 0;
/// After a change of policy the limiter or key keeps its debt, as the time until that debt is paid. To and
/// from a quota, which has no such time, it keeps the number of permits used.
pub const TOLLBAR_KEEP_TIME: u32 = 1;
/// After a change of policy the limiter or key has a fresh state.
pub const TOLLBAR_KEEP_RESET: u32 = 2;

/// The most classes of a policy.
pub const TOLLBAR_CLASSES_MOST: u32 = 4;
/// The bytes of a class's name, with at least one 0 at the end.
pub const TOLLBAR_CLASS_NAME_SIZE: u32 = 16;

/// A class of requests, and the permits that its requests leave to the others.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tollbar_class {
    /// The name: a letter, then letters, digits, `-` and `_`, and zeroes to the end. All zeroes: no class.
    pub name: [c_char; 16],
    /// A request of the class passes only if so many permits are left after it. Below the burst.
    pub reserve: u64,
}

/// A policy as plain data. Start from TOLLBAR_POLICY_SPEC_INIT and set `limit`, `period_ns` and
/// `burst`; leave the options of other algorithms at 0.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tollbar_policy_spec {
    /// sizeof(tollbar_policy_spec), as the caller's compiler sees it.
    pub struct_size: u32,
    /// A TOLLBAR_ALGORITHM_ number.
    pub algorithm: u32,
    /// Permits per period. 0 denies every request.
    pub limit: u64,
    /// The period in nanoseconds, from 1 on. TOLLBAR_FOREVER for a quota. TOLLBAR_DAY, _WEEK, _MONTH or _YEAR for a
    /// calendar.
    pub period_ns: u64,
    /// The most permits that can be taken at once, at least 1. Windows and logs: equal to `limit`. Pacer and warm-up:
    /// the largest cost.
    pub burst: u64,
    /// gcra with TOLLBAR_POLICY_HAS_INIT: permits of a fresh state, at most `burst`.
    pub init: u64,
    /// pacer: the number of departures that may leave at once after an idle time.
    pub slack: u64,
    /// warm-up: nanoseconds from cold to warm.
    pub warm_up_ns: u64,
    /// warm-up: the factor by which the rate is lower when cold, 1 to 1000.
    pub cold: u32,
    /// sliding window: the number of segments, 1 to 1024.
    pub segments: u32,
    /// sliding window: a TOLLBAR_MODE_ number.
    pub mode: u32,
    /// interval, fixed window, sliding window: a TOLLBAR_ANCHOR_ number.
    pub anchor: u32,
    /// A TOLLBAR_UNIT_ number. It changes the text form only.
    pub unit: u32,
    /// TOLLBAR_POLICY_ flags.
    pub flags: u32,
    /// gcra, without `init` and borrow: the length of a ban in nanoseconds; 0 for no ban.
    pub ban_ns: u64,
    /// gcra, with `ban_ns`: the refusal that bans, 1 to 1000; 0 stands for 1.
    pub ban_after: u32,
    /// calendar: the first day of each window, from 0. Of a month: the day of the month less 1, up to 30. Of a week:
    /// the day from Monday, up to 6. Of a year: 32 times the month less 1, plus the day of the month less 1.
    pub from: u32,
    /// gcra, without `init`, borrow and ban: permits per `second_period_ns` of a second bucket, which a request needs
    /// and charges as well ("10/s; 1000/day"). 0: no second bucket.
    pub second_limit: u64,
    /// The second bucket's period in nanoseconds.
    pub second_period_ns: u64,
    /// The most permits that can be taken at once of the second bucket.
    pub second_burst: u64,
    /// gcra without borrow, interval, fixed window, weighted window, quota: the classes of requests, the used ones
    /// first.
    pub classes: [tollbar_class; 4],
    /// curve: up to 16 knots of two bytes, {time in the period, share of `limit`} in whole percents, without {0, 0},
    /// where each curve begins; none is a straight line. level-refill: up to 4 bands of two bytes, {level in percents
    /// of `burst`, rate in percents of the policy's}; none is one rate at all levels. Unused bytes are 0.
    /// tollbar_policy_spec_parse knows the curves' names.
    pub knots: [u8; 32],
    /// calendar: the zone, all 0 for UTC. tollbar_policy_spec_parse writes the words of a name or a rule.
    pub zone: [u64; 5],
}

/// Why a policy's text was refused.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tollbar_policy_error {
    /// sizeof(tollbar_policy_error), as the caller's compiler sees it.
    pub struct_size: u32,
    /// The result that the call returned.
    pub code: i32,
    /// The column, from 1, at which the wrong part of the text begins: a word, a number, or an option with its value.
    /// If the text ends too early, the column after its last byte.
    pub column: u64,
    /// What was expected there, or why the policy is refused. The string is static.
    pub expected: *const c_char,
}

/// A compiled policy for cells: read-only, for any number of cells and threads.
pub struct tollbar_policy {
    pub(super) rule: Rule,
}

// SAFETY: repr(C), u32 first, u32, u64 and byte fields without holes (8-byte fields at multiples of 8).
unsafe impl Growable for tollbar_policy_spec {
    // A shorter struct would lose a ban, a second bucket, classes, knots or a zone when a policy is written to it.
    const FIRST_SIZE: usize = 288;
}
// SAFETY: repr(C), u32 first, without holes; null is a value of the pointer.
unsafe impl Growable for tollbar_policy_error {
    const FIRST_SIZE: usize = 16 + size_of::<usize>();
}

const _: () =
    assert!(TOLLBAR_CLASSES_MOST as usize == CLASSES_MOST && TOLLBAR_CLASS_NAME_SIZE as usize == CLASS_NAME_MOST + 1);
const _: () = assert!(size_of::<tollbar_policy_spec>() == 288);

/// Reads one line of text such as "100/s burst 20" into `out`.
///
/// `text` has `len` bytes and needs no NUL. Initialise `out` and `error` by their _INIT macros. Returns 0, or an
/// error: of the text (TOLLBAR_E_SYNTAX to TOLLBAR_E_DUPLICATE_OPTION), or of the policy that it names
/// (TOLLBAR_E_PERIOD_ZERO to TOLLBAR_E_CALENDAR). After such an error `error`, unless NULL, says where the fault is
/// and what was expected.
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
        unsafe { write(out, &describe(&policy)) }.map(|()| TOLLBAR_ALLOWED)
    })
}

/// Writes the canonical text of a policy, with a NUL, into `buffer` of `capacity` bytes.
///
/// tollbar_policy_spec_parse reads that text as an equal policy. `length`, unless NULL, gets the text's length
/// without the NUL. TOLLBAR_POLICY_TEXT_MAX bytes are always enough. If the buffer is too small, the call writes only
/// `length` and returns TOLLBAR_E_BUFFER_TOO_SMALL.
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

/// Writes to `*last_ns` the policy's last time in nanoseconds: at later times every cost above 0 is refused (clause
/// C3). Returns 0, or the error that tollbar_policy_spec_validate would return.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_policy_spec_last_time(spec: *const tollbar_policy_spec, last_ns: *mut u64) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (last_ns, policy) = unsafe { (place(last_ns)?, policy(spec)?) };
        last_ns.write(policy.last_time().map_err(policy_code)?);
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Writes to `*refill_ns` the time in nanoseconds after which the policy has refilled one permit. tollbar_take_many
/// charges limits in the order of this time. Two values are no times:
///
///   - TOLLBAR_NO_TIME: a table does not give keys under this policy all unused permits back (tollbar_table_cancel);
///   - TOLLBAR_NO_TIME - 1: a lifetime quota, which refills none.
///
/// Returns 0, or the error that tollbar_policy_spec_validate would return.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_policy_spec_refill(spec: *const tollbar_policy_spec, refill_ns: *mut u64) -> i32 {
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

/// Compiles a policy. The caller frees `*out` with tollbar_policy_free. A calendar is refused, because a cell's clock
/// is not the wall clock.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_policy_new(spec: *const tollbar_policy_spec, out: *mut *mut tollbar_policy) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (out, policy) = unsafe { (place(out)?, policy(spec)?) };
        out.write(boxed(compile(&policy)?)?);
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Reads and compiles a NUL-terminated text. The caller frees `*out` with tollbar_policy_free. `error` may be NULL.
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

/// Frees a policy of tollbar_policy_new or tollbar_policy_from_text that no call is using. Cells outlive their
/// policy. With NULL the call does nothing.
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

/// Compiles a policy into the caller's memory of `size` bytes. `*out` is that memory. A compiled policy holds no
/// pointers and may be copied or mapped. Do not call tollbar_policy_free with it.
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
pub(super) unsafe fn report(error: *mut tollbar_policy_error, code: i32, column: usize, expected: *const c_char) {
    if !error.is_null() {
        let value = tollbar_policy_error { struct_size: 0, code, column: column as u64, expected };
        // The caller has already refused a struct with a wrong size.
        // SAFETY: by the caller's promise.
        let _ = unsafe { write(error, &value) };
    }
}

/// Whether a cell can have the policy. A cell's clock counts from the machine's start, which no calendar does.
fn one_word(policy: &Policy) -> Result<(), PolicyError> {
    match policy.kind == Kind::Calendar {
        true => Err(PolicyError::WallClock),
        false => Rule::new(policy).map(|_| ()),
    }
}

fn compile(policy: &Policy) -> Result<tollbar_policy, i32> {
    one_word(policy).map_err(policy_code)?;
    // The clock's first reading opens a file. It happens here, so that the first tollbar_cell_check opens none.
    Tsc.is_counter();
    Ok(tollbar_policy { rule: Rule::new(policy).map_err(policy_code)? })
}
