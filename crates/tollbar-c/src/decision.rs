//! Decisions in full, and their reasons.

use super::boundary::*;
use core::ffi::c_char;
use core::mem::size_of;
use tollbar::decision::Reason;

/// The limit had the permits: the usual reason of TOLLBAR_ALLOWED.
pub const TOLLBAR_REASON_ADMITTED: u32 = 0;
/// Denied: the permits are spent. They come back with time, or never if the limit is 0.
pub const TOLLBAR_REASON_RATE: u32 = 1;
/// Never: the cost is above the burst.
pub const TOLLBAR_REASON_BURST: u32 = 2;
/// The table has no free slot for a new key. TOLLBAR_ON_FULL_DENY denies the request, and
/// TOLLBAR_ON_FULL_ALLOW allows it without storing the key.
pub const TOLLBAR_REASON_TABLE_FULL: u32 = 3;
/// Denied: a new key inherits the debt of the key whose slot it needs (TOLLBAR_ON_FULL_INHERIT),
/// and that debt is too high.
pub const TOLLBAR_REASON_INHERITED_DEBT: u32 = 4;
/// The request had an empty key. The table's options say whether such requests pass.
pub const TOLLBAR_REASON_MISSING_KEY: u32 = 5;
/// Allowed and not charged: the key is exempt.
pub const TOLLBAR_REASON_EXEMPT: u32 = 6;
/// Denied: the permits would have come within the caller's `max_wait_ns`, but the maximum number of
/// callers sleeps already (`waiters` of tollbar_limiter_options and tollbar_table_options).
pub const TOLLBAR_REASON_QUEUE_FULL: u32 = 7;
/// Denied: the state is damaged. C calls return an error instead.
pub const TOLLBAR_REASON_FAULT: u32 = 8;
/// Denied for now: the client has asked the store, and the store has not answered yet.
pub const TOLLBAR_REASON_PENDING: u32 = 9;
/// Denied: by the store's last answer the limit is used up.
pub const TOLLBAR_REASON_STORE_DENIED: u32 = 10;
/// The store does not answer: the options of the lease decided.
pub const TOLLBAR_REASON_STORE_DOWN: u32 = 11;
/// Denied: the key is banned (the policy's option `ban`). For a cost of 1 `retry_after_ns` is the
/// end of the ban.
pub const TOLLBAR_REASON_BANNED: u32 = 12;
/// Denied: as many permits as the limit are in flight. They come back when their holders release
/// them, so no wait is known.
pub const TOLLBAR_REASON_IN_FLIGHT: u32 = 13;
/// Denied or never: the request's class leaves permits to others. Without the reserve the request
/// would have passed.
pub const TOLLBAR_REASON_RESERVE: u32 = 14;

/// A decision with its times and its reason.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tollbar_decision {
    /// sizeof(tollbar_decision), as the caller's compiler sees it.
    pub struct_size: u32,
    /// TOLLBAR_ALLOWED, TOLLBAR_DENIED or TOLLBAR_NEVER: what the call returned.
    pub verdict: u32,
    /// Permits that could be taken at this instant, after this decision.
    pub remaining: u64,
    /// Nanoseconds until the same request would be admitted if no other request came first. 0 if
    /// the request was admitted, TOLLBAR_NO_TIME if no wait would help.
    pub retry_after_ns: u64,
    /// Nanoseconds until the state is as good as fresh if no other request comes first.
    pub reset_after_ns: u64,
    /// One of TOLLBAR_REASON_*.
    pub reason: u32,
    /// Which policy of a list bound, from 0: of a refusal the one with the longest wait, and of an
    /// admission the one with the fewest permits left. 0 without a list.
    pub bound: u32,
}

// SAFETY: repr(C), u32 first, u32 and u64 fields without holes.
unsafe impl Growable for tollbar_decision {
    const FIRST_SIZE: usize = 32;
}

const _: () = assert!(size_of::<tollbar_decision>() == 40);

const _: () = assert!(TOLLBAR_REASON_ADMITTED == Reason::Admitted as u32);
const _: () = assert!(TOLLBAR_REASON_RATE == Reason::Rate as u32);
const _: () = assert!(TOLLBAR_REASON_BURST == Reason::Burst as u32);
const _: () = assert!(TOLLBAR_REASON_TABLE_FULL == Reason::TableFull as u32);
const _: () = assert!(TOLLBAR_REASON_INHERITED_DEBT == Reason::InheritedDebt as u32);
const _: () = assert!(TOLLBAR_REASON_MISSING_KEY == Reason::MissingKey as u32);
const _: () = assert!(TOLLBAR_REASON_EXEMPT == Reason::Exempt as u32);
const _: () = assert!(TOLLBAR_REASON_QUEUE_FULL == Reason::QueueFull as u32);
const _: () = assert!(TOLLBAR_REASON_FAULT == Reason::Fault as u32);
const _: () = assert!(TOLLBAR_REASON_PENDING == Reason::Pending as u32);
const _: () = assert!(TOLLBAR_REASON_STORE_DENIED == Reason::StoreDenied as u32);
const _: () = assert!(TOLLBAR_REASON_STORE_DOWN == Reason::StoreDown as u32);
const _: () = assert!(TOLLBAR_REASON_BANNED == Reason::Banned as u32);
const _: () = assert!(TOLLBAR_REASON_IN_FLIGHT == Reason::InFlight as u32);
const _: () = assert!(TOLLBAR_REASON_RESERVE == Reason::Reserve as u32);

/// Returns a reason in a few English words, such as "over the rate". The string is static and never
/// NULL. Numbers that this version does not know give "unknown reason".
#[no_mangle]
pub extern "C" fn tollbar_strreason(reason: u32) -> *const c_char {
    let name = match reason {
        TOLLBAR_REASON_ADMITTED => c"admitted",
        TOLLBAR_REASON_RATE => c"over the rate",
        TOLLBAR_REASON_BURST => c"above the burst",
        TOLLBAR_REASON_TABLE_FULL => c"table full",
        TOLLBAR_REASON_INHERITED_DEBT => c"inherited debt",
        TOLLBAR_REASON_MISSING_KEY => c"missing key",
        TOLLBAR_REASON_EXEMPT => c"exempt",
        TOLLBAR_REASON_QUEUE_FULL => c"queue full",
        TOLLBAR_REASON_FAULT => c"fault",
        TOLLBAR_REASON_PENDING => c"pending",
        TOLLBAR_REASON_STORE_DENIED => c"denied by the store",
        TOLLBAR_REASON_STORE_DOWN => c"store down",
        TOLLBAR_REASON_BANNED => c"banned",
        TOLLBAR_REASON_IN_FLIGHT => c"too many in flight",
        TOLLBAR_REASON_RESERVE => c"reserved for other classes",
        _ => c"unknown reason",
    };
    name.as_ptr()
}
