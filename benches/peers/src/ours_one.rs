//! tollbar's limiters of one key, in Rust and through the C library.

use crate::library::{Library, LimiterCheck, LimiterCheckAt};
use crate::peers::{One, Says};
use std::ffi::c_void;
use std::ptr::null_mut;
use tollbar::algorithm::gcra::Gcra;
use tollbar::limiter::Cell;
use tollbar::{Limiter, Policy, Shared, State, Verdict};

fn text(says: Says) -> &'static str {
    match says {
        Says::Yes => "1000000000/s burst 1000000000000",
        Says::No => "1/day burst 1",
    }
}

fn policy(says: Says) -> Policy {
    text(says).parse().expect("a policy")
}

/// `Limiter::new`, as the documentation shows it: the algorithm chosen at run time, the time-stamp
/// clock.
pub struct Ours(Limiter);

impl Ours {
    pub fn new(says: Says) -> Ours {
        Ours(Limiter::new(&policy(says)).expect("compiles"))
    }
}

impl One for Ours {
    #[inline(always)]
    fn admit(&self, _now: u64) -> bool {
        self.0.admit(1) == Verdict::Allowed
    }
}

/// A limiter whose threads take permits in advance.
pub struct Credited(Limiter);

impl Credited {
    pub fn new(says: Says) -> Credited {
        Credited(Limiter::with_credit(&policy(says)).expect("compiles"))
    }
}

impl One for Credited {
    #[inline(always)]
    fn admit(&self, _now: u64) -> bool {
        self.0.admit(1) == Verdict::Allowed
    }
}

/// `Limiter` at the caller's time.
pub struct OursAt(State);

impl OursAt {
    pub fn new(says: Says) -> OursAt {
        OursAt(State::new(&policy(says)).expect("compiles"))
    }
}

impl One for OursAt {
    #[inline(always)]
    fn admit(&self, now: u64) -> bool {
        self.0.admit_at(now, 1) == Verdict::Allowed
    }
}

/// `Cell<Gcra>` at the caller's time: the compiler knows the algorithm.
pub struct GcraAt(Cell<Gcra>);

impl GcraAt {
    pub fn new(says: Says) -> GcraAt {
        GcraAt(Cell::new(Gcra::new(&policy(says)).expect("compiles")))
    }
}

impl One for GcraAt {
    #[inline(always)]
    fn admit(&self, now: u64) -> bool {
        self.0.admit_at(now, 1) == Verdict::Allowed
    }
}

/// A limiter of the loaded C library.
pub struct Through {
    limiter: *mut c_void,
    check: LimiterCheck,
}
// SAFETY: tollbar.h [C5]: any number of threads may call.
unsafe impl Send for Through {}
// SAFETY: the same.
unsafe impl Sync for Through {}

impl Through {
    pub fn limiter(library: &Library, says: Says) -> Through {
        Through::over(library, library.made("tollbar_limiter_from_text", text(says)))
    }

    pub fn with_credit(library: &Library, says: Says) -> Through {
        Through::over(library, crate::credit::limiter(library, text(says)))
    }

    fn over(library: &Library, limiter: *mut c_void) -> Through {
        // SAFETY: the symbol has this signature in tollbar.h.
        let check = unsafe {
            std::mem::transmute::<*mut c_void, LimiterCheck>(
                library.symbol("tollbar_limiter_check"),
            )
        };
        Through { limiter, check }
    }
}

impl One for Through {
    #[inline(always)]
    fn admit(&self, _now: u64) -> bool {
        // SAFETY: a live limiter, which is never freed.
        unsafe { (self.check)(self.limiter, 1, null_mut()) == 0 }
    }
}

/// A limiter of the loaded C library at the caller's time.
pub struct ThroughAt {
    limiter: *mut c_void,
    check: LimiterCheckAt,
}
// SAFETY: tollbar.h [C5]: any number of threads may call.
unsafe impl Send for ThroughAt {}
// SAFETY: the same.
unsafe impl Sync for ThroughAt {}

impl ThroughAt {
    pub fn new(library: &Library, says: Says) -> ThroughAt {
        let symbol = library.symbol("tollbar_limiter_check_at");
        // SAFETY: the symbol has this signature in tollbar.h.
        let check = unsafe { std::mem::transmute::<*mut c_void, LimiterCheckAt>(symbol) };
        ThroughAt { limiter: library.made("tollbar_limiter_from_text", text(says)), check }
    }
}

impl One for ThroughAt {
    #[inline(always)]
    fn admit(&self, now: u64) -> bool {
        // SAFETY: a live limiter, which is never freed.
        unsafe { (self.check)(self.limiter, 1, now, null_mut()) == 0 }
    }
}
