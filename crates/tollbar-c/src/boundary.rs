//! Helpers of every C call: a guard against unwinding, and reads and writes of structs that may
//! grow in later versions.

use super::status::*;
use core::ffi::c_char;
use core::mem::{align_of, size_of, MaybeUninit};
use tollbar::policy::{Fault, Keep, PolicyError};

/// Runs a call so that nothing unwinds into C.
#[inline(always)]
pub fn guard(call: impl FnOnce() -> i32) -> i32 {
    #[cfg(feature = "std")]
    return std::panic::catch_unwind(std::panic::AssertUnwindSafe(call))
        .unwrap_or(TOLLBAR_E_INTERNAL);
    #[cfg(not(feature = "std"))]
    call()
}

/// [`guard`] for a call whose steps may fail: C gets the `Ok` value or the error's number.
#[inline(always)]
pub fn call(steps: impl FnOnce() -> Result<i32, i32>) -> i32 {
    guard(|| code(steps()))
}

/// A struct that later versions may lengthen; its first field is `uint32_t struct_size`.
///
/// # Safety
/// The type is `repr(C)`, starts with a `u32`, has no padding, and every bit pattern is a value.
pub unsafe trait Growable: Copy {
    /// The struct's size in the first version that had it.
    const FIRST_SIZE: usize;
    /// No version will be larger. A larger `struct_size` is garbage.
    const MOST_SIZE: usize = 4096;
}

/// Reads a struct of any version. Fields that an older caller's struct lacks are 0. Bytes that this
/// version does not know must be 0.
///
/// # Safety
/// `from` is null, or points to a readable struct of `from.struct_size` bytes.
pub unsafe fn read<T: Growable>(from: *const T) -> Result<T, i32> {
    let mut value = MaybeUninit::<T>::zeroed();
    let size = size_at(from)?;
    // SAFETY: `size_at` has inspected `from`, which has that many bytes by the caller's promise;
    // `value` has a T's.
    unsafe { read_bytes(from.cast(), size, value.as_mut_ptr().cast(), size_of::<T>()) }?;
    // SAFETY: every bit pattern of a Growable is a value, zero bytes among them.
    Ok(unsafe { value.assume_init() })
}

/// [`read`], compiled once for all types.
///
/// # Safety
/// `from` has `size` readable bytes and `to` has `room` writable ones.
#[inline(never)]
unsafe fn read_bytes(from: *const u8, size: usize, to: *mut u8, room: usize) -> Result<(), i32> {
    // SAFETY: both have as many bytes by the caller's promise; a struct of C's and one of ours
    // cannot overlap.
    unsafe { core::ptr::copy_nonoverlapping(from, to, size.min(room)) };
    for offset in room..size {
        // SAFETY: `offset` is below the size the caller vouches for.
        if unsafe { from.add(offset).read() } != 0 {
            return Err(TOLLBAR_E_RESERVED);
        }
    }
    Ok(())
}

/// Writes a struct of any version. An older caller gets the fields that its struct has. A newer
/// caller gets 0 in the fields that this version lacks. `struct_size` stays the caller's.
///
/// # Safety
/// `to` points to a writable struct of `to.struct_size` bytes.
pub unsafe fn write<T: Growable>(to: *mut T, value: &T) -> Result<(), i32> {
    let size = size_at(to)?;
    // SAFETY: `size_at` has inspected `to`, which has that many bytes by the caller's promise.
    unsafe { write_bytes(to.cast(), size, core::ptr::from_ref(value).cast(), size_of::<T>()) };
    Ok(())
}

/// [`write()`] to an element of an array, whose first element says the size of each.
///
/// # Safety
/// `to` points to `size` writable bytes, a size that [`size_at`] has returned for a `T`.
pub unsafe fn write_element<T: Growable>(to: *mut T, size: usize, value: &T) {
    // SAFETY: by the caller's promise.
    unsafe { write_bytes(to.cast(), size, core::ptr::from_ref(value).cast(), size_of::<T>()) };
}

/// [`write`], compiled once for all types.
///
/// # Safety
/// `to` has `size` writable bytes and `from` has `room` readable ones. Both sizes are at least that
/// of `struct_size`.
#[inline(never)]
unsafe fn write_bytes(to: *mut u8, size: usize, from: *const u8, room: usize) {
    let header = size_of::<u32>();
    let known = size.min(room);
    // SAFETY: `header..known` lies within both structs, which cannot overlap, and `known..size`
    // within the caller's.
    unsafe {
        core::ptr::copy_nonoverlapping(from.add(header), to.add(header), known - header);
        core::ptr::write_bytes(to.add(known), 0, size - known);
    }
}

/// Checks that a struct can be written, and returns its size. Callers run it before they decide
/// anything.
#[inline(always)]
pub fn size_at<T: Growable>(at: *const T) -> Result<usize, i32> {
    // SAFETY: a Growable starts with a u32.
    unsafe { size_of_struct(at.cast(), align_of::<T>(), T::FIRST_SIZE, T::MOST_SIZE) }
}

/// [`size_at`] for hot calls: a struct of this version's size is checked without a call.
///
/// # Safety
/// `at` is null, or points to a readable `T` of the caller's version.
#[inline(always)]
pub unsafe fn usual_size_at<T: Growable>(at: *const T) -> Result<usize, i32> {
    if !at.is_null()
        && at.is_aligned()
        // SAFETY: not null and aligned, and readable by the caller's promise.
        && unsafe { at.cast::<u32>().read() } as usize == size_of::<T>()
    {
        return Ok(size_of::<T>());
    }
    size_at(at)
}

/// [`size_at`], compiled once for all types.
///
/// # Safety
/// `at` is null, misaligned, or points to a readable `struct_size`.
#[inline(never)]
unsafe fn size_of_struct(
    at: *const u32,
    align: usize,
    first: usize,
    most: usize,
) -> Result<usize, i32> {
    if at.is_null() {
        return Err(TOLLBAR_E_NULL);
    }
    if at as usize & (align - 1) != 0 {
        return Err(TOLLBAR_E_MISALIGNED);
    }
    // SAFETY: not null and aligned, and readable by the caller's promise.
    let size = unsafe { at.read() } as usize;
    if size < first || size > most {
        return Err(TOLLBAR_E_STRUCT_SIZE);
    }
    Ok(size)
}

/// Makes a pointer from C a reference. A null or misaligned pointer is an error.
///
/// # Safety `at` is null, or points to a live `T` that all threads write only through atomics.
#[inline(always)]
pub unsafe fn reference<'a, T>(at: *const T) -> Result<&'a T, i32> {
    if !at.is_aligned() {
        rarely();
        return Err(TOLLBAR_E_MISALIGNED);
    }
    // SAFETY: aligned; null becomes None; the rest is the caller's promise.
    match unsafe { at.as_ref() } {
        Some(value) => Ok(value),
        None => {
            rarely();
            Err(TOLLBAR_E_NULL)
        }
    }
}

/// Tells the compiler that the block which calls this is rare, as `rarely` in src/sync.rs does: the
/// usual case then takes no branch.
#[cold]
pub const fn rarely() {}

/// [`reference()`] to a value that only this call uses.
///
/// # Safety
/// `at` is null, or points to a live `T` that only this call uses.
#[inline(always)]
pub unsafe fn exclusive<'a, T>(at: *mut T) -> Result<&'a mut T, i32> {
    if !at.is_aligned() {
        return Err(TOLLBAR_E_MISALIGNED);
    }
    // SAFETY: aligned; null becomes None; the rest is the caller's promise.
    unsafe { at.as_mut() }.ok_or(TOLLBAR_E_NULL)
}

/// Makes a pointer from C the place of an output.
///
/// # Safety
/// `at` is null, or points to writable memory for a `T`.
pub unsafe fn place<'a, T>(at: *mut T) -> Result<&'a mut MaybeUninit<T>, i32> {
    if !at.is_aligned() {
        return Err(TOLLBAR_E_MISALIGNED);
    }
    // SAFETY: aligned; null becomes None; a MaybeUninit may have any bytes.
    unsafe { at.cast::<MaybeUninit<T>>().as_mut() }.ok_or(TOLLBAR_E_NULL)
}

/// Checks the pointer of an array. An empty array may have any pointer.
pub fn array<T>(at: *const T, count: usize) -> Result<(), i32> {
    if count == 0 {
        return Ok(());
    }
    if at.is_null() {
        return Err(TOLLBAR_E_NULL);
    }
    if !at.is_aligned() {
        return Err(TOLLBAR_E_MISALIGNED);
    }
    Ok(())
}

/// A text from C. A null with length 0 is the empty text.
///
/// # Safety
/// `text` is null, or points to `len` readable bytes.
pub unsafe fn bytes<'a>(text: *const core::ffi::c_char, len: usize) -> Result<&'a [u8], i32> {
    if text.is_null() {
        return if len == 0 { Ok(&[]) } else { Err(TOLLBAR_E_NULL) };
    }
    if len > isize::MAX as usize {
        return Err(TOLLBAR_E_BUFFER_TOO_SMALL);
    }
    // SAFETY: not null, of `len` readable bytes by the caller's promise, no longer than isize::MAX.
    Ok(unsafe { core::slice::from_raw_parts(text.cast::<u8>(), len) })
}

/// Lets `write` fill the caller's buffer, and writes a NUL behind the text and the text's length to
/// `*length`, unless `length` is null. `write` returns the length of the whole text. If the buffer
/// is too small, the call still writes `*length` and returns an error.
///
/// # Safety
/// `buffer` is null or has `capacity` writable bytes; `length` is null or writable.
pub unsafe fn fill(
    buffer: *mut core::ffi::c_char,
    capacity: usize,
    length: *mut usize,
    write: impl FnOnce(&mut [u8]) -> usize,
) -> Result<i32, i32> {
    if buffer.is_null() {
        return Err(TOLLBAR_E_NULL);
    }
    // SAFETY: not null, `capacity` writable bytes by the caller's promise. No allocation has more
    // than isize::MAX bytes.
    let out = unsafe {
        core::slice::from_raw_parts_mut(buffer.cast::<u8>(), capacity.min(isize::MAX as usize))
    };
    let text = write(out);
    if !length.is_null() {
        // SAFETY: writable by the caller's promise.
        unsafe { place(length) }?.write(text);
    }
    *out.get_mut(text).ok_or(TOLLBAR_E_BUFFER_TOO_SMALL)? = 0;
    Ok(TOLLBAR_ALLOWED)
}

/// Checks that the caller's memory can hold a `T`.
pub fn room<T>(memory: *mut core::ffi::c_void, size: usize) -> Result<*mut T, i32> {
    let at = memory.cast::<T>();
    if at.is_null() {
        return Err(TOLLBAR_E_NULL);
    }
    if !at.is_aligned() {
        return Err(TOLLBAR_E_MISALIGNED);
    }
    if size < size_of::<T>() {
        return Err(TOLLBAR_E_BUFFER_TOO_SMALL);
    }
    Ok(at)
}

/// Moves `value` to the heap. Without memory it returns an error.
pub fn boxed<T>(value: T) -> Result<*mut T, i32> {
    let block = allocated::<T>()?;
    // SAFETY: fresh memory of T's layout.
    unsafe { block.write(value) };
    Ok(block)
}

/// Memory for a T, which the caller writes to before anything reads it.
pub fn allocated<T>() -> Result<*mut T, i32> {
    let layout = core::alloc::Layout::new::<T>();
    // SAFETY: no type here has size 0.
    let block = unsafe { alloc::alloc::alloc(layout) }.cast::<T>();
    if block.is_null() {
        return Err(TOLLBAR_E_NO_MEMORY);
    }
    Ok(block)
}

/// Drops and frees a value that [`boxed`] made, or that lies in memory of [`allocated`]. Null is
/// ignored.
///
/// # Safety
/// `block` is null, or came from [`boxed`] or [`allocated`], has a live value, and has not been
/// freed.
pub unsafe fn unboxed<T>(block: *mut T) {
    if !block.is_null() && block.is_aligned() {
        // SAFETY: by the caller's promise a live value in memory of T's layout, from the same
        // allocator.
        unsafe {
            block.drop_in_place();
            alloc::alloc::dealloc(block.cast(), core::alloc::Layout::new::<T>());
        }
    }
}

/// The number that C gets, of `Ok` or of the error.
#[inline(always)]
pub fn code(result: Result<i32, i32>) -> i32 {
    match result {
        Ok(code) | Err(code) => code,
    }
}

/// The code of a refused policy.
pub fn policy_code(error: PolicyError) -> i32 {
    match error {
        PolicyError::PeriodZero => TOLLBAR_E_PERIOD_ZERO,
        PolicyError::BurstZero => TOLLBAR_E_BURST_ZERO,
        PolicyError::RateTooHigh => TOLLBAR_E_RATE_TOO_HIGH,
        PolicyError::BurstTooLarge => TOLLBAR_E_BURST_TOO_LARGE,
        PolicyError::InitAboveBurst => TOLLBAR_E_INIT_ABOVE_BURST,
        PolicyError::OptionMismatch => TOLLBAR_E_OPTION_MISMATCH,
        PolicyError::Segments => TOLLBAR_E_SEGMENTS,
        PolicyError::WarmUp => TOLLBAR_E_WARM_UP,
        PolicyError::Ban => TOLLBAR_E_BAN,
        PolicyError::LogTooLarge => TOLLBAR_E_LOG_TOO_LARGE,
        PolicyError::NotOneWord => TOLLBAR_E_NOT_ONE_WORD,
        PolicyError::List => TOLLBAR_E_LIST,
        PolicyError::Quota => TOLLBAR_E_QUOTA,
        PolicyError::Classes => TOLLBAR_E_CLASSES,
        PolicyError::NoSuchClass => TOLLBAR_E_NO_SUCH_CLASS,
        PolicyError::Knots => TOLLBAR_E_KNOTS,
        PolicyError::Calendar => TOLLBAR_E_CALENDAR,
        PolicyError::WallClock => TOLLBAR_E_WALL_CLOCK,
        PolicyError::NoMemory => TOLLBAR_E_NO_MEMORY,
        PolicyError::Changes => TOLLBAR_E_POLICY_CHANGES,
    }
}

/// The length of a NUL-terminated text.
///
/// # Safety
/// `text` is null or NUL-terminated.
pub unsafe fn length(text: *const c_char) -> Result<usize, i32> {
    if text.is_null() {
        return Err(TOLLBAR_E_NULL);
    }
    // SAFETY: by the caller's promise.
    Ok(unsafe { libc::strlen(text) })
}

/// The code of a text that cannot be read.
pub fn fault_code(fault: Fault) -> i32 {
    match fault {
        Fault::Syntax => TOLLBAR_E_SYNTAX,
        Fault::Overflow => TOLLBAR_E_NUMBER_TOO_LARGE,
        Fault::UnknownAlgorithm => TOLLBAR_E_ALGORITHM,
        Fault::Duplicate => TOLLBAR_E_DUPLICATE_OPTION,
        Fault::Policy(why) => policy_code(why),
        Fault::NoMemory => TOLLBAR_E_NO_MEMORY,
    }
}

/// What a TOLLBAR_KEEP_ number says.
pub fn keep_of(keep: u32) -> Result<Keep, i32> {
    [Keep::Count, Keep::Time, Keep::Reset]
        .into_iter()
        .find(|&k| k as u32 == keep)
        .ok_or(TOLLBAR_E_OUT_OF_RANGE)
}

/// The value with that number.
pub fn choose<T: Copy>(number: u32, of: &[T]) -> Result<T, i32> {
    of.get(number as usize).copied().ok_or(TOLLBAR_E_OUT_OF_RANGE)
}
