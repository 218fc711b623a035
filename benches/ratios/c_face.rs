//! The same through the C library that `make lib` builds, loaded as a program would.

use crate::cases::{case, timeline, OPEN, SHUT, START};
use crate::Case;
use std::ffi::{c_char, c_void, CString, OsStr};
use std::hint::black_box;
use std::os::unix::ffi::OsStrExt;

type FromText = unsafe extern "C" fn(*const c_char, *mut *mut c_void, *mut c_void) -> i32;
type CellCheckAt = unsafe extern "C" fn(*mut u64, *const c_void, u64, u64, *mut c_void) -> i32;
type LimiterCheckAt = unsafe extern "C" fn(*const c_void, u64, u64, *mut c_void) -> i32;
type LimiterCheck = unsafe extern "C" fn(*const c_void, u64, *mut c_void) -> i32;

struct Library(*mut c_void);

impl Library {
    fn open(path: &OsStr) -> Library {
        let name = CString::new(path.as_bytes()).expect("no NUL in a path");
        // SAFETY: a NUL-terminated path; the library's constructors do nothing.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW) };
        assert!(!handle.is_null(), "{path:?} cannot be loaded");
        Library(handle)
    }

    fn symbol(&self, name: &str) -> *mut c_void {
        let c_name = CString::new(name).expect("no NUL in a name");
        // SAFETY: the handle is open for the life of the program.
        let symbol = unsafe { libc::dlsym(self.0, c_name.as_ptr()) };
        assert!(!symbol.is_null(), "no {name}");
        symbol
    }

    fn made(&self, with: &str, text: &str) -> *mut c_void {
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

pub fn all(path: &OsStr) -> Vec<Case> {
    let library = Library::open(path);
    // SAFETY: the symbols have these signatures in tollbar.h.
    let (cell_at, limiter_at, limiter): (CellCheckAt, LimiterCheckAt, LimiterCheck) = unsafe {
        (
            std::mem::transmute::<*mut c_void, CellCheckAt>(library.symbol("tollbar_cell_check_at")),
            std::mem::transmute::<*mut c_void, LimiterCheckAt>(library.symbol("tollbar_limiter_check_at")),
            std::mem::transmute::<*mut c_void, LimiterCheck>(library.symbol("tollbar_limiter_check")),
        )
    };
    let cell = |name: &'static str, text: &str, allowed: bool| {
        let policy = library.made("tollbar_policy_from_text", text);
        let word: &'static mut u64 = Box::leak(Box::new(0));
        let word: *mut u64 = word;
        let once = move |now| {
            // SAFETY: a live cell and policy.
            black_box(unsafe { cell_at(black_box(word), policy, now, 1, std::ptr::null_mut()) })
        };
        once(START - 1);
        assert_eq!(once(START) == 0, allowed, "{name}");
        timeline(name, move |now| {
            once(now);
        })
    };
    let open = library.made("tollbar_limiter_from_text", OPEN);
    let timed = library.made("tollbar_limiter_from_text", OPEN);
    vec![
        cell("C cell allowed", OPEN, true),
        cell("C cell denied", SHUT, false),
        timeline("C limiter allowed", move |now| {
            // SAFETY: a live limiter.
            black_box(unsafe { limiter_at(black_box(open), now, 1, std::ptr::null_mut()) });
        }),
        case("C limiter allowed, TSC", move || {
            // SAFETY: a live limiter.
            black_box(unsafe { limiter(black_box(timed), 1, std::ptr::null_mut()) });
        }),
    ]
}
