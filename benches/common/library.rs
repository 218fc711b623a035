//! The C library that `make lib` builds, loaded as a C program would load it.

use std::ffi::{c_char, c_void, CString, OsStr};
use std::os::unix::ffi::OsStrExt;

type FromText = unsafe extern "C" fn(*const c_char, *mut *mut c_void, *mut c_void) -> i32;
/// The type of `tollbar_limiter_check_at`.
pub type LimiterCheckAt = unsafe extern "C" fn(*const c_void, u64, u64, *mut c_void) -> i32;
/// The type of `tollbar_limiter_check`.
pub type LimiterCheck = unsafe extern "C" fn(*const c_void, u64, *mut c_void) -> i32;

/// A loaded libtollbar.so.
pub struct Library(*mut c_void);

impl Library {
    /// Loads the library; panics if that fails.
    pub fn open(path: &OsStr) -> Library {
        let name = CString::new(path.as_bytes()).expect("no NUL in a path");
        // SAFETY: a NUL-terminated path; the library's constructors do nothing.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW) };
        assert!(!handle.is_null(), "{path:?} cannot be loaded");
        Library(handle)
    }

    /// The address of an exported function; panics if there is none.
    pub fn symbol(&self, name: &str) -> *mut c_void {
        let c_name = CString::new(name).expect("no NUL in a name");
        // SAFETY: the handle is open for the life of the program.
        let symbol = unsafe { libc::dlsym(self.0, c_name.as_ptr()) };
        assert!(!symbol.is_null(), "no {name}");
        symbol
    }

    /// The object that one of the `_from_text` functions makes from `text`.
    pub fn made(&self, with: &str, text: &str) -> *mut c_void {
        let text = CString::new(text).expect("no NUL in a policy");
        let mut out = std::ptr::null_mut();
        // SAFETY: the symbol has this signature in tollbar.h; the pointers are live.
        let code = unsafe {
            let from_text: FromText = std::mem::transmute(self.symbol(with));
            from_text(text.as_ptr(), &mut out, std::ptr::null_mut())
        };
        assert_eq!(code, 0, "{with}");
        out
    }
}
