//! HTTP header fields about limits: servers write them, and clients read them.

use super::boundary::*;
use super::decision::tollbar_decision;
use super::limiter::tollbar_limiter;
use super::policy::{policy, tollbar_policy_spec};
use super::status::*;
use super::table::{request_code, tollbar_table};
use core::ffi::{c_char, c_void};
use core::mem::{size_of, MaybeUninit};
use tollbar::decision::{Decision, Reason, Verdict};
use tollbar::http::{more_after, problem, Draft, Fields, Limit, Reset, Seen};
use tollbar::limiter::Shared;
use tollbar::policy::Policy;
use tollbar::table::PolicyId;
use tollbar::units::NEVER;

/// Retry-After, of a refused request: seconds, rounded up.
pub const TOLLBAR_HTTP_RETRY_AFTER: u32 = 1;
/// X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset in seconds from now.
pub const TOLLBAR_HTTP_LEGACY: u32 = 2;
/// The same, with the reset in seconds since 1970.
pub const TOLLBAR_HTTP_LEGACY_EPOCH: u32 = 4;
/// RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, RateLimit-Policy:
/// draft-ietf-httpapi-ratelimit-headers 00 to 06.
pub const TOLLBAR_HTTP_DRAFT_06: u32 = 8;
/// RateLimit and RateLimit-Policy of draft 07. They do not name limits.
pub const TOLLBAR_HTTP_DRAFT_07: u32 = 16;
/// RateLimit and RateLimit-Policy of drafts 08 to 11.
pub const TOLLBAR_HTTP_DRAFT_11: u32 = 32;

/// The most limits of tollbar_http_fields and tollbar_http_problem.
pub const TOLLBAR_HTTP_LIMITS_MOST: u32 = 64;

const LIMITS: usize = TOLLBAR_HTTP_LIMITS_MOST as usize;

/// A limit of a request and its decision, for the fields that tell a client about it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tollbar_http_limit {
    /// The name that clients see. Bytes other than printable ASCII are written as `?`.
    pub name: *const c_char,
    /// The bytes of the name.
    pub name_length: usize,
    /// The limit's policy. If it is a list of two rates, the fields describe the rate that bound
    /// the decision.
    pub policy: *const tollbar_policy_spec,
    /// The limit's decision about the request.
    pub decision: *const tollbar_decision,
    /// Nanoseconds until more permits are left than the decision's `remaining`
    /// (tollbar_table_more_after). TOLLBAR_NO_TIME: unknown, or no permit is missing.
    pub more_after_ns: u64,
    /// The partition key (`pk` of drafts 08 to 11), which clients see. NULL: none.
    pub partition: *const c_void,
    /// The bytes of the partition key.
    pub partition_length: usize,
}

/// The limits that a server's header fields describe. A field of this struct is UINT64_MAX if no
/// header field gives it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tollbar_http_seen {
    /// sizeof(tollbar_http_seen), as the caller's compiler sees it.
    pub struct_size: u32,
    /// Must be 0.
    pub reserved: u32,
    /// Permits per window.
    pub limit: u64,
    /// The window in nanoseconds.
    pub window_ns: u64,
    /// The permits left.
    pub remaining: u64,
    /// Nanoseconds until more permits than `remaining` are left.
    pub more_after_ns: u64,
    /// Nanoseconds to wait before the next request (Retry-After).
    pub retry_after_ns: u64,
}

// SAFETY: repr(C), u32 first, u32 and u64 fields without holes.
unsafe impl Growable for tollbar_http_seen {
    const FIRST_SIZE: usize = 48;
}

const _: () = assert!(size_of::<tollbar_http_seen>() == 48);

/// Writes the header fields of 1 to TOLLBAR_HTTP_LIMITS_MOST limits (TOLLBAR_E_LIMITS) into
/// `buffer`. A field is a line: its name, a colon, a space, the value, CR and LF. A NUL follows the
/// last line.
///
/// `fields` is a sum of TOLLBAR_HTTP_ numbers, with at most one of the two LEGACY numbers and at
/// most one of the three DRAFT numbers (TOLLBAR_E_OUT_OF_RANGE). `utc_ns` is the time in
/// nanoseconds since 1970; only TOLLBAR_HTTP_LEGACY_EPOCH uses it. The call writes the text's
/// length without the NUL to `*length`, unless `length` is NULL. If the buffer is too small, the
/// call still writes `*length`, and returns TOLLBAR_E_BUFFER_TOO_SMALL. A buffer is large enough if
/// it has 300 bytes, and for each limit 100 bytes, 4 for each byte of its name and 3 for each byte
/// of its partition key.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_http_fields(
    limits: *const tollbar_http_limit,
    count: usize,
    fields: u32,
    utc_ns: u64,
    buffer: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> i32 {
    call(|| {
        let fields = fields_of(fields)?;
        // SAFETY: by the caller's promise.
        unsafe {
            print(limits, count, buffer, capacity, length, &|limits, out| {
                fields.write(limits, utc_ns, out)
            })
        }
    })
}

/// Writes the body of a refusal's answer into `buffer`: a problem in JSON (RFC 9457, media type
/// application/problem+json) with the names of the limits that refuse. `status` is the answer's
/// HTTP status, such as
/// 429. For the other arguments see tollbar_http_fields.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_http_problem(
    limits: *const tollbar_http_limit,
    count: usize,
    status: u32,
    buffer: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> i32 {
    call(|| {
        let status = u16::try_from(status).map_err(|_| TOLLBAR_E_OUT_OF_RANGE)?;
        // SAFETY: by the caller's promise.
        unsafe {
            print(limits, count, buffer, capacity, length, &|limits, out| {
                problem(limits, status, out)
            })
        }
    })
}

/// Reads a server's limits from `length` bytes of its answer's header. Each line is a name, a colon
/// and a value, and ends with LF or CR LF. The call skips other fields and ignores malformed ones.
///
/// Returns TOLLBAR_YES if a field describes a limit or a wait, and otherwise TOLLBAR_NO. `utc_ns`
/// is the time of the answer in nanoseconds since 1970; dates and epochs are counted from it. The
/// call reads every dialect that tollbar_http_fields writes. If an answer has several dialects, the
/// newest counts. If a field describes several limits, on one line or on several, the one with the
/// fewest permits left counts, and of RateLimit-Policy only the policy of that name.
///
/// Of several values of Retry-After the longest wait counts: seconds, with or without a fraction,
/// or a date in one of the three forms of RFC 9110. Servers write the reset of each dialect in
/// several ways: a number from 10^12 on is read as milliseconds since 1970, one from 10^9 on as
/// seconds since 1970, and a smaller one as seconds from now. A time that is past is 0, and one
/// beyond 64 bits of nanoseconds is the largest of these.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_http_read(
    text: *const c_char,
    length: usize,
    utc_ns: u64,
    out: *mut tollbar_http_seen,
) -> i32 {
    call(|| {
        size_at(out)?;
        // SAFETY: by the caller's promise.
        let seen = Seen::read(unsafe { bytes(text, length)? }, utc_ns);
        let number = |value: Option<u64>| value.unwrap_or(u64::MAX);
        let value = tollbar_http_seen {
            struct_size: 0,
            reserved: 0,
            limit: number(seen.limit),
            window_ns: number(seen.window),
            remaining: number(seen.remaining),
            more_after_ns: number(seen.more_after),
            retry_after_ns: number(seen.retry_after),
        };
        // SAFETY: size_at has inspected it; writable by the caller's promise.
        unsafe { write(out, &value) }?;
        Ok(if seen == Seen::default() { TOLLBAR_NO } else { TOLLBAR_YES })
    })
}

/// Writes to `*more_ns` how many nanoseconds after `decision` the key will have more permits than
/// `decision->remaining`. If the decision is a refusal, that is at most its `retry_after_ns`.
/// TOLLBAR_NO_TIME: no permit is missing, none will come back, or the policy lends (`borrow`,
/// pacer, warm-up) and has permits left.
///
/// `cost` is the cost of the request that was decided, with its reserve after
/// tollbar_table_check_leaving. Returns 0 or an error. The call peeks at the key at most once, and
/// charges nothing.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_table_more_after(
    table: *const tollbar_table,
    policy: u32,
    key: *const c_void,
    length: usize,
    cost: u64,
    decision: *const tollbar_decision,
    more_ns: *mut u64,
) -> i32 {
    // SAFETY: by the caller's promise.
    call(|| unsafe { more_of_key(table, policy, key, length, cost, None, decision, more_ns) })
}

/// tollbar_table_more_after at the caller's time. Give the time of the decision.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_table_more_after_at(
    table: *const tollbar_table,
    policy: u32,
    key: *const c_void,
    length: usize,
    cost: u64,
    now_ns: u64,
    decision: *const tollbar_decision,
    more_ns: *mut u64,
) -> i32 {
    // SAFETY: by the caller's promise.
    call(|| unsafe {
        more_of_key(table, policy, key, length, cost, Some(now_ns), decision, more_ns)
    })
}

/// tollbar_table_more_after for a limiter.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_limiter_more_after(
    limiter: *const tollbar_limiter,
    cost: u64,
    decision: *const tollbar_decision,
    more_ns: *mut u64,
) -> i32 {
    // SAFETY: by the caller's promise.
    call(|| unsafe { more_of_limiter(limiter, cost, None, decision, more_ns) })
}

/// tollbar_limiter_more_after at the caller's time. Give the time of the decision.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_limiter_more_after_at(
    limiter: *const tollbar_limiter,
    cost: u64,
    now_ns: u64,
    decision: *const tollbar_decision,
    more_ns: *mut u64,
) -> i32 {
    // SAFETY: by the caller's promise.
    call(|| unsafe { more_of_limiter(limiter, cost, Some(now_ns), decision, more_ns) })
}

/// # Safety
/// As the public calls.
#[allow(clippy::too_many_arguments)] // C's
unsafe fn more_of_key(
    table: *const tollbar_table,
    policy: u32,
    key: *const c_void,
    length: usize,
    cost: u64,
    now: Option<u64>,
    decision: *const tollbar_decision,
    more_ns: *mut u64,
) -> Result<i32, i32> {
    // SAFETY: by the caller's promise.
    let (table, key, out) =
        unsafe { (&reference(table)?.table, bytes(key.cast(), length)?, place(more_ns)?) };
    // SAFETY: by the caller's promise.
    let decision = unsafe { decision_of(decision) }?;
    let id = PolicyId::new(policy);
    let policy = table.policy_of(id, key).map_err(request_code)?;
    let more = more_after(&policy, &decision, cost, |n| table.peek_uncounted(id, key, now, n));
    out.write(more);
    Ok(TOLLBAR_ALLOWED)
}

/// # Safety
/// As the public calls.
unsafe fn more_of_limiter(
    limiter: *const tollbar_limiter,
    cost: u64,
    now: Option<u64>,
    decision: *const tollbar_decision,
    more_ns: *mut u64,
) -> Result<i32, i32> {
    // SAFETY: by the caller's promise.
    let (limiter, out) = unsafe { (reference(limiter)?, place(more_ns)?) };
    // SAFETY: by the caller's promise.
    let decision = unsafe { decision_of(decision) }?;
    let policy = limiter.limiter.changed_policy().unwrap_or(&limiter.policy);
    let now = now.unwrap_or_else(|| limiter.limiter.now());
    let more =
        more_after(policy, &decision, cost, |n| limiter.limiter.shared().peek_uncounted_at(now, n));
    out.write(more);
    Ok(TOLLBAR_ALLOWED)
}

fn fields_of(fields: u32) -> Result<Fields, i32> {
    let one = |of: u32| (fields & of).count_ones() <= 1;
    let legacy = TOLLBAR_HTTP_LEGACY | TOLLBAR_HTTP_LEGACY_EPOCH;
    let drafts = TOLLBAR_HTTP_DRAFT_06 | TOLLBAR_HTTP_DRAFT_07 | TOLLBAR_HTTP_DRAFT_11;
    if !one(legacy) || !one(drafts) || fields & !(TOLLBAR_HTTP_RETRY_AFTER | legacy | drafts) != 0 {
        return Err(TOLLBAR_E_OUT_OF_RANGE);
    }
    Ok(Fields {
        retry_after: fields & TOLLBAR_HTTP_RETRY_AFTER != 0,
        legacy: match fields & legacy {
            0 => None,
            TOLLBAR_HTTP_LEGACY => Some(Reset::Seconds),
            _ => Some(Reset::Epoch),
        },
        draft: match fields & drafts {
            0 => None,
            TOLLBAR_HTTP_DRAFT_06 => Some(Draft::Six),
            TOLLBAR_HTTP_DRAFT_07 => Some(Draft::Seven),
            _ => Some(Draft::Eleven),
        },
    })
}

/// Reads the limits and lets `write` print them into the caller's buffer. A NUL follows the text.
///
/// # Safety
/// Pointers are NULL or as the public calls say.
#[inline(never)]
unsafe fn print(
    limits: *const tollbar_http_limit,
    count: usize,
    buffer: *mut c_char,
    capacity: usize,
    length: *mut usize,
    write: &dyn Fn(&[Limit<'_>], &mut [u8]) -> usize,
) -> Result<i32, i32> {
    if count == 0 || count > LIMITS {
        return Err(TOLLBAR_E_LIMITS);
    }
    array(limits, count)?;
    let mut read = [const { MaybeUninit::<Limit<'_>>::uninit() }; LIMITS];
    for (n, place) in read.iter_mut().enumerate().take(count) {
        // SAFETY: by the caller's promise `count` limits, not null and aligned.
        place.write(unsafe { limit_of(&*limits.add(n)) }?);
    }
    // SAFETY: the loop has written the first `count`, which is at most LIMITS.
    let read = unsafe { core::slice::from_raw_parts(read.as_ptr().cast::<Limit<'_>>(), count) };
    // SAFETY: by the caller's promise.
    unsafe { fill(buffer, capacity, length, |out| write(read, out)) }
}

/// # Safety
/// The limit's pointers are NULL or as said.
unsafe fn limit_of(limit: &tollbar_http_limit) -> Result<Limit<'_>, i32> {
    // SAFETY: by the caller's promise.
    let (name, partition) = unsafe {
        (
            bytes(limit.name, limit.name_length)?,
            bytes(limit.partition.cast(), limit.partition_length)?,
        )
    };
    // SAFETY: by the caller's promise.
    let (policy, decision): (Policy, _) =
        unsafe { (policy(limit.policy)?, decision_of(limit.decision)?) };
    let mut read = Limit::new(name, &policy, &decision).with_partition(partition);
    if limit.more_after_ns != NEVER {
        read.more_after = limit.more_after_ns;
    }
    Ok(read)
}

/// # Safety
/// `decision` is NULL or points to a readable struct of its `struct_size`.
unsafe fn decision_of(decision: *const tollbar_decision) -> Result<Decision, i32> {
    // SAFETY: by the caller's promise.
    let read = unsafe { read(decision) }?;
    let verdict = match read.verdict {
        0 => Verdict::Allowed,
        1 => Verdict::Denied,
        2 => Verdict::Never,
        _ => return Err(TOLLBAR_E_OUT_OF_RANGE),
    };
    Ok(Decision {
        verdict,
        // No field shows the reason, so the caller's reason is not read.
        reason: Reason::of(verdict),
        remaining: read.remaining,
        retry_after: read.retry_after_ns,
        reset_after: read.reset_after_ns,
        bound: read.bound,
    })
}
