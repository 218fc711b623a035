//! The version of the linked library. A program compares it with the header's TOLLBAR_VERSION_*
//! macros.

use core::ffi::c_char;

/// The version of the linked library, `major << 16 | minor << 8 | patch`: compare with
/// TOLLBAR_VERSION.
#[no_mangle]
pub extern "C" fn tollbar_version() -> u32 {
    (number(env!("CARGO_PKG_VERSION_MAJOR")) << 16)
        | (number(env!("CARGO_PKG_VERSION_MINOR")) << 8)
        | number(env!("CARGO_PKG_VERSION_PATCH"))
}

/// The version of the linked library as text, such as "0.1.0". Static.
#[no_mangle]
pub extern "C" fn tollbar_version_string() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// The ABI that this header describes. A library of another ABI does not have this symbol, so a
/// program that refers to it does not link, or does not start, with the wrong one. Always 1.
#[no_mangle]
pub static tollbar_abi_1: u32 = 1;

const fn number(text: &str) -> u32 {
    let bytes = text.as_bytes();
    let mut n = 0;
    let mut i = 0;
    while i < bytes.len() {
        n = n * 10 + (bytes[i] - b'0') as u32;
        i += 1;
    }
    n
}
