//! Limiters of the loaded C library whose threads take permits in advance.

use crate::library::Library;
use std::ffi::{c_char, c_void};
use std::ptr::null_mut;

/// `tollbar_policy_spec`, whose first four bytes are its size. It is larger than the library's,
/// which fills the rest with zeroes.
type Spec = [u64; 64];
/// `tollbar_limiter_options`: its size, the clock, waiters, credit.
type Options = [u32; 4];
type SpecParse = unsafe extern "C" fn(*const c_char, usize, *mut Spec, *mut c_void) -> i32;
type LimiterNew = unsafe extern "C" fn(*const Spec, *const Options, *mut *mut c_void) -> i32;

/// TOLLBAR_CREDIT_ON.
const ON: u32 = 1;

/// A limiter of `text` with credit.
pub fn limiter(library: &Library, text: &str) -> *mut c_void {
    let mut spec: Spec = [0; 64];
    spec[0] = size_of::<Spec>() as u64;
    let options: Options = [size_of::<Options>() as u32, 0, 0, ON];
    let mut out = null_mut();
    // SAFETY: the symbols have these signatures in tollbar.h; the pointers are live.
    let codes = unsafe {
        let parse: SpecParse = std::mem::transmute(library.symbol("tollbar_policy_spec_parse"));
        let new: LimiterNew = std::mem::transmute(library.symbol("tollbar_limiter_new"));
        [
            parse(text.as_ptr().cast(), text.len(), &mut spec, null_mut()),
            new(&spec, &options, &mut out),
        ]
    };
    assert_eq!(codes, [0, 0], "{text}");
    out
}
