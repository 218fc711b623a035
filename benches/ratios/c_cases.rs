//! The cases through the C library.

use crate::cases::{case, timeline, OPEN, SHUT, START};
use crate::library::{Library, LimiterCheck, LimiterCheckAt};
use crate::Case;
use std::ffi::{c_void, OsStr};
use std::hint::black_box;

type CellCheckAt = unsafe extern "C" fn(*mut u64, *const c_void, u64, u64, *mut c_void) -> i32;

/// All cases of the C library.
pub fn all(path: &OsStr) -> Vec<Case> {
    let library = Library::open(path);
    // SAFETY: the symbols have these signatures in tollbar.h.
    let (cell_at, limiter_at, limiter): (CellCheckAt, LimiterCheckAt, LimiterCheck) = unsafe {
        (
            std::mem::transmute::<*mut c_void, CellCheckAt>(
                library.symbol("tollbar_cell_check_at"),
            ),
            std::mem::transmute::<*mut c_void, LimiterCheckAt>(
                library.symbol("tollbar_limiter_check_at"),
            ),
            std::mem::transmute::<*mut c_void, LimiterCheck>(
                library.symbol("tollbar_limiter_check"),
            ),
        )
    };
    let cell = |name: &'static str, text: &str, allowed: bool| {
        let policy = library.made("tollbar_policy_from_text", text);
        let word: &'static mut u64 = Box::leak(Box::new(0));
        let word: *mut u64 = word;
        let once = move |now| {
            // SAFETY: a live cell and policy.
            black_box(unsafe { cell_at(black_box(word), policy, 1, now, std::ptr::null_mut()) })
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
            black_box(unsafe { limiter_at(black_box(open), 1, now, std::ptr::null_mut()) });
        }),
        case("C limiter allowed, TSC", move || {
            // SAFETY: a live limiter.
            black_box(unsafe { limiter(black_box(timed), 1, std::ptr::null_mut()) });
        }),
    ]
}
