//! Errors of a rules file, as text in a buffer of the C caller.

use ::tollbar_rules::LoadError;
use core::ffi::c_char;
use tollbar_c::status::*;
use tollbar_c::table::table_code;

/// Writes the error's text, cut at the buffer's end, and returns its number.
///
/// # Safety
/// `buffer` is null or has `size` writable bytes.
pub(crate) unsafe fn report(why: &LoadError, buffer: *mut c_char, size: usize) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe { print(why, buffer, size) };
    match why {
        LoadError::Read(..) | LoadError::NoFile => TOLLBAR_E_OPEN,
        LoadError::Problems(..) => TOLLBAR_E_SYNTAX,
        LoadError::Table(_, error) => table_code(*error),
        LoadError::OtherProcess(_) => TOLLBAR_E_OWNER,
    }
}

/// Writes a text, cut at the buffer's end.
///
/// # Safety
/// `buffer` is null or has `size` writable bytes.
pub(crate) unsafe fn print(why: &dyn std::fmt::Display, buffer: *mut c_char, size: usize) {
    if let (false, Some(most)) = (buffer.is_null(), size.checked_sub(1)) {
        let text = why.to_string();
        let mut length = text.len().min(most);
        while !text.is_char_boundary(length) {
            length -= 1;
        }
        // SAFETY: `length` is below `size`, and the text has as many bytes.
        unsafe {
            core::ptr::copy_nonoverlapping(text.as_ptr(), buffer.cast::<u8>(), length);
            buffer.add(length).write(0);
        }
    }
}
