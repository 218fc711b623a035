//! Results and errors.

use core::ffi::{c_char, CStr};

/// The request may pass, and its cost has been charged; for other calls: done.
pub const TOLLBAR_ALLOWED: i32 = 0;
/// Not now; nothing has been charged.
pub const TOLLBAR_DENIED: i32 = 1;
/// Not at any time: the cost is more than the policy can ever have at once; nothing has been charged.
pub const TOLLBAR_NEVER: i32 = 2;

/// A pointer that may not be null is.
pub const TOLLBAR_E_NULL: i32 = -1;
/// A pointer is not aligned for what it should point to.
pub const TOLLBAR_E_MISALIGNED: i32 = -2;
/// `struct_size` is smaller than any version of the struct, or absurdly large.
pub const TOLLBAR_E_STRUCT_SIZE: i32 = -3;
/// A field or flag that this version does not know is not zero.
pub const TOLLBAR_E_RESERVED: i32 = -4;
/// A number that stands for a choice (algorithm, clock, mode, anchor, unit) is out of range.
pub const TOLLBAR_E_CHOICE: i32 = -5;

/// The policy's text does not follow the grammar.
pub const TOLLBAR_E_SYNTAX: i32 = -10;
/// A number in the policy's text does not fit 64 bits.
pub const TOLLBAR_E_NUMBER: i32 = -11;
/// No algorithm of that name.
pub const TOLLBAR_E_ALGORITHM: i32 = -12;
/// An option given twice.
pub const TOLLBAR_E_DUPLICATE: i32 = -13;

/// The period is 0.
pub const TOLLBAR_E_PERIOD_ZERO: i32 = -20;
/// The burst is 0. (A limit of 0 is how to deny all.)
pub const TOLLBAR_E_BURST_ZERO: i32 = -21;
/// A rate higher than the algorithm can count exactly.
pub const TOLLBAR_E_RATE_TOO_HIGH: i32 = -22;
/// A burst that takes longer to refill than a state word can say.
pub const TOLLBAR_E_BURST_TOO_LARGE: i32 = -23;
/// More initial permits than the burst.
pub const TOLLBAR_E_INIT_ABOVE_BURST: i32 = -24;
/// An option that the algorithm does not have.
pub const TOLLBAR_E_OPTION_MISMATCH: i32 = -25;
/// Not 1 to 1024 segments, or not a whole number of nanoseconds in each.
pub const TOLLBAR_E_SEGMENTS: i32 = -26;
/// A warm-up without a time, or with a cold factor outside 1 to 1000.
pub const TOLLBAR_E_WARM_UP: i32 = -27;
/// A sliding log of more than 2^24 entries.
pub const TOLLBAR_E_LOG_TOO_LARGE: i32 = -28;
/// The algorithm needs more than one state word: use a limiter, not a cell.
pub const TOLLBAR_E_NOT_ONE_WORD: i32 = -29;

/// Out of memory.
pub const TOLLBAR_E_NO_MEMORY: i32 = -40;
/// The buffer is too small.
pub const TOLLBAR_E_BUFFER: i32 = -41;

/// A fault of the library itself, stopped before it reached the caller.
pub const TOLLBAR_E_INTERNAL: i32 = -90;

/// In a time: there is none.
pub const TOLLBAR_NO_TIME: u64 = 0xffff_ffff_ffff_ffff;

/// One line in English for a result. The string is static; unknown codes have one too. Never NULL.
#[no_mangle]
pub extern "C" fn tollbar_strerror(code: i32) -> *const c_char {
    lookup(code).1.as_ptr()
}

/// The name of a result's macro, such as "TOLLBAR_E_NULL". Static; "TOLLBAR_E_UNKNOWN" for unknown
/// codes. Never NULL.
#[no_mangle]
pub extern "C" fn tollbar_errname(code: i32) -> *const c_char {
    lookup(code).0.as_ptr()
}

fn lookup(code: i32) -> (&'static CStr, &'static CStr) {
    match code {
        TOLLBAR_ALLOWED => (c"TOLLBAR_ALLOWED", c"allowed"),
        TOLLBAR_DENIED => (c"TOLLBAR_DENIED", c"denied for now"),
        TOLLBAR_NEVER => (c"TOLLBAR_NEVER", c"never: the cost is more than the policy can have at once"),
        TOLLBAR_E_NULL => (c"TOLLBAR_E_NULL", c"a pointer that may not be null is"),
        TOLLBAR_E_MISALIGNED => (c"TOLLBAR_E_MISALIGNED", c"a pointer is not aligned"),
        TOLLBAR_E_STRUCT_SIZE => (c"TOLLBAR_E_STRUCT_SIZE", c"struct_size is not that of any version"),
        TOLLBAR_E_RESERVED => (c"TOLLBAR_E_RESERVED", c"a field or flag unknown to this version is not zero"),
        TOLLBAR_E_CHOICE => (c"TOLLBAR_E_CHOICE", c"a number that stands for a choice is out of range"),
        TOLLBAR_E_SYNTAX => (c"TOLLBAR_E_SYNTAX", c"the policy does not follow the grammar"),
        TOLLBAR_E_NUMBER => (c"TOLLBAR_E_NUMBER", c"a number in the policy does not fit 64 bits"),
        TOLLBAR_E_ALGORITHM => (c"TOLLBAR_E_ALGORITHM", c"no algorithm of that name"),
        TOLLBAR_E_DUPLICATE => (c"TOLLBAR_E_DUPLICATE", c"an option of the policy is given twice"),
        TOLLBAR_E_PERIOD_ZERO => (c"TOLLBAR_E_PERIOD_ZERO", c"the period is zero"),
        TOLLBAR_E_BURST_ZERO => (c"TOLLBAR_E_BURST_ZERO", c"the burst is zero (limit 0 denies all)"),
        TOLLBAR_E_RATE_TOO_HIGH => (c"TOLLBAR_E_RATE_TOO_HIGH", c"the rate is higher than the algorithm can count"),
        TOLLBAR_E_BURST_TOO_LARGE => {
            (c"TOLLBAR_E_BURST_TOO_LARGE", c"the burst is larger than a state word can hold at this rate")
        }
        TOLLBAR_E_INIT_ABOVE_BURST => (c"TOLLBAR_E_INIT_ABOVE_BURST", c"init is larger than the burst"),
        TOLLBAR_E_OPTION_MISMATCH => (c"TOLLBAR_E_OPTION_MISMATCH", c"an option does not belong to the algorithm"),
        TOLLBAR_E_SEGMENTS => (c"TOLLBAR_E_SEGMENTS", c"segments must be 1 to 1024 and divide the period"),
        TOLLBAR_E_WARM_UP => (c"TOLLBAR_E_WARM_UP", c"warm-up needs a time above zero and cold from 1 to 1000"),
        TOLLBAR_E_LOG_TOO_LARGE => (c"TOLLBAR_E_LOG_TOO_LARGE", c"a sliding log may have 16777216 entries at most"),
        TOLLBAR_E_NOT_ONE_WORD => (c"TOLLBAR_E_NOT_ONE_WORD", c"the algorithm needs more than one state word"),
        TOLLBAR_E_NO_MEMORY => (c"TOLLBAR_E_NO_MEMORY", c"out of memory"),
        TOLLBAR_E_BUFFER => (c"TOLLBAR_E_BUFFER", c"the buffer is too small"),
        TOLLBAR_E_INTERNAL => (c"TOLLBAR_E_INTERNAL", c"a fault of the library itself"),
        _ => (c"TOLLBAR_E_UNKNOWN", c"unknown result"),
    }
}
