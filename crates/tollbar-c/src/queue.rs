//! Queues: items that wait, and leave at the pace of a policy.

use super::boundary::*;
use super::clock::source;
use super::policy::{parse, policy, report, tollbar_policy_error, tollbar_policy_spec};
use super::status::*;
use core::ffi::{c_char, c_void};
use core::mem::size_of;
use core::sync::atomic::{AtomicU32, Ordering};
use tollbar::clock::{Source, Utc};
use tollbar::policy::Policy;
use tollbar::queue::{validate, QueueError, Refusal, Refused, Ticket, Words};

/// A queue. Threads of one process share it.
pub struct tollbar_queue {
    words: Words<Utc>,
    /// 1 after tollbar_queue_stop.
    stopped: AtomicU32,
}

/// How a queue is made. All zero but `struct_size` is the default.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tollbar_queue_options {
    /// sizeof(tollbar_queue_options), as the caller's compiler sees it.
    pub struct_size: u32,
    /// A TOLLBAR_CLOCK_ number, for the calls without `_at`.
    pub clock: u32,
    /// Callers that may sleep in tollbar_queue_offer_within at one time; 0: 1024. More are refused
    /// at once.
    pub waiters: u32,
    /// Items that wait in the spare; 0: there is none. See the introduction.
    pub spare: u32,
}

// SAFETY: repr(C), u32 first, u32 fields only.
unsafe impl Growable for tollbar_queue_options {
    const FIRST_SIZE: usize = 16;
}

/// An item's place in a queue. It is plain data, and needs no end.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tollbar_queue_ticket {
    /// The number of the item: the first item of a queue has number 0.
    pub number: u64,
    /// The number of items before this one when it was offered. A cancelled item counts as long as
    /// an older item is in the queue.
    pub ahead: u64,
    /// The item's place in the spare when it was offered: 1 is the next to go into the first queue.
    /// 0: the item was put into the first queue.
    pub spare: u64,
}

const _: () = assert!(size_of::<tollbar_queue_ticket>() == 24);

/// The function that tollbar_queue_run calls with its context and an item.
pub type tollbar_queue_work = Option<unsafe extern "C" fn(context: *mut c_void, item: *mut c_void)>;

/// Makes a queue in which up to `capacity` items wait. Items that may leave at once do not wait, so
/// more items can be in the queue: a burst for a token bucket (with `borrow` one more), and the
/// slack and one more for a pacer. `options` may be NULL. The caller frees `*out` with
/// tollbar_queue_free.
///
/// The policy must have a state of one word: sliding-window and sliding-log return
/// TOLLBAR_E_NOT_ONE_WORD. It must not count refusals: `ban` and `count rejected` return
/// TOLLBAR_E_OPTION_MISMATCH, because the policy refuses each caller that takes an item too early.
/// The queue takes 16 bytes for each item that can be in it, rounded up to a power of two, and
/// allocates nothing later. TOLLBAR_E_CAPACITY: `capacity` is 0, or `capacity`, the spare, the
/// larger of burst and slack, and 1 add up to more than 2^28.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_queue_new(
    spec: *const tollbar_policy_spec,
    capacity: u64,
    options: *const tollbar_queue_options,
    out: *mut *mut tollbar_queue,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (out, policy) = unsafe { (place(out)?, policy(spec)?) };
        // SAFETY: by the caller's promise.
        out.write(boxed(unsafe { make(&policy, capacity, options) }?)?);
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Makes a queue of a NUL-terminated text such as "10/s algo pacer", with default options. `error`
/// may be NULL.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_queue_from_text(
    text: *const c_char,
    capacity: u64,
    out: *mut *mut tollbar_queue,
    error: *mut tollbar_policy_error,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (out, policy) = unsafe { (place(out)?, parse(text, length(text)?, error, &validate)?) };
        // SAFETY: null options are the default; `error` by the caller's promise.
        let made = unsafe { make(&policy, capacity, core::ptr::null()) }
            .and_then(boxed)
            .inspect_err(|&code| {
                // SAFETY: by the caller's promise.
                unsafe { report(error, code, 1, tollbar_strerror(code)) };
            })?;
        out.write(made);
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Frees a queue that no call is using. It does not free the items that are still in the queue. The
/// caller can take them with tollbar_queue_drain before. With NULL the call does nothing.
///
/// # Safety
/// `queue` is NULL or has not been freed.
#[no_mangle]
pub unsafe extern "C" fn tollbar_queue_free(queue: *mut tollbar_queue) {
    // SAFETY: by the caller's promise.
    unsafe { unboxed(queue) };
}

/// Puts an item behind all others. `ticket`, unless NULL, gets its place. Any pointer is an item,
/// NULL too.
///
/// Returns TOLLBAR_DENIED if the queue is full, and TOLLBAR_E_CLOSED after tollbar_queue_close.
/// Then the item stays the caller's.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_queue_offer(
    queue: *const tollbar_queue,
    item: *mut c_void,
    ticket: *mut tollbar_queue_ticket,
) -> i32 {
    // SAFETY: by the caller's promise.
    call(|| unsafe { offer(queue, ticket, |words| words.offer(item as u64)) })
}

/// tollbar_queue_offer at the caller's time.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_queue_offer_at(
    queue: *const tollbar_queue,
    item: *mut c_void,
    now_ns: u64,
    ticket: *mut tollbar_queue_ticket,
) -> i32 {
    // SAFETY: by the caller's promise.
    call(|| unsafe { offer(queue, ticket, |words| words.offer_at(now_ns, item as u64)) })
}

/// tollbar_queue_offer that sleeps up to `max_wait_ns` for room. It returns TOLLBAR_DENIED at once
/// if `waiters` callers sleep already (tollbar_queue_options).
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_queue_offer_within(
    queue: *const tollbar_queue,
    item: *mut c_void,
    max_wait_ns: u64,
    ticket: *mut tollbar_queue_ticket,
) -> i32 {
    // SAFETY: by the caller's promise.
    call(|| unsafe { offer(queue, ticket, |words| words.offer_within(item as u64, max_wait_ns)) })
}

/// Takes the oldest item if the policy lets it leave now, and writes it to `*item`.
///
/// Returns TOLLBAR_DENIED if no item may leave now, and TOLLBAR_E_CLOSED if the queue is empty and
/// closed, so that none ever will.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_queue_take(
    queue: *const tollbar_queue,
    item: *mut *mut c_void,
) -> i32 {
    // SAFETY: by the caller's promise.
    call(|| unsafe { take(queue, item, |words| words.take()) })
}

/// tollbar_queue_take at the caller's time.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_queue_take_at(
    queue: *const tollbar_queue,
    now_ns: u64,
    item: *mut *mut c_void,
) -> i32 {
    // SAFETY: by the caller's promise.
    call(|| unsafe { take(queue, item, |words| words.take_at(now_ns)) })
}

/// tollbar_queue_take that sleeps up to `max_wait_ns` until an item may leave.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_queue_take_within(
    queue: *const tollbar_queue,
    max_wait_ns: u64,
    item: *mut *mut c_void,
) -> i32 {
    // SAFETY: by the caller's promise.
    call(|| unsafe { take(queue, item, |words| words.take_within(max_wait_ns)) })
}

/// Whether the queue has an item. If so, `*at_ns` gets the time at which tollbar_queue_take will
/// next return one: the present or later, or TOLLBAR_NO_TIME if the policy's limit is 0.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_queue_next_departure(
    queue: *const tollbar_queue,
    at_ns: *mut u64,
) -> i32 {
    // SAFETY: by the caller's promise.
    call(|| unsafe { next(queue, None, at_ns) })
}

/// tollbar_queue_next_departure at the caller's time.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_queue_next_departure_at(
    queue: *const tollbar_queue,
    now_ns: u64,
    at_ns: *mut u64,
) -> i32 {
    // SAFETY: by the caller's promise.
    call(|| unsafe { next(queue, Some(now_ns), at_ns) })
}

/// Takes an item out of the queue before it leaves. TOLLBAR_YES: `*item` has it, and it will not
/// leave. TOLLBAR_NO: it has left, or was cancelled before. The items behind it move up.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_queue_cancel(
    queue: *const tollbar_queue,
    ticket: *const tollbar_queue_ticket,
    item: *mut *mut c_void,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (queue, ticket, out) =
            unsafe { (reference(queue)?, *reference(ticket)?, place(item)?) };
        let ticket = Ticket { number: ticket.number, ahead: ticket.ahead, spare: ticket.spare };
        Ok(match queue.words.cancel(ticket) {
            Some(word) => {
                out.write(word as *mut c_void);
                TOLLBAR_YES
            }
            None => TOLLBAR_NO,
        })
    })
}

/// Takes the oldest item at once, without the policy. A program that ends can empty a queue with
/// it. TOLLBAR_YES: `*item` has the item. TOLLBAR_NO: the queue is empty.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_queue_drain(
    queue: *const tollbar_queue,
    item: *mut *mut c_void,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (queue, out) = unsafe { (reference(queue)?, place(item)?) };
        Ok(match queue.words.drain() {
            Some(word) => {
                out.write(word as *mut c_void);
                TOLLBAR_YES
            }
            None => TOLLBAR_NO,
        })
    })
}

/// Refuses all offers from now on, and wakes all callers that sleep. Items in the queue stay, and
/// callers can take them. An offer of another thread that overlaps this call may still succeed. So
/// a program that relies on TOLLBAR_E_CLOSED must end its producers first.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_queue_close(queue: *const tollbar_queue) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        unsafe { reference(queue)? }.words.close();
        Ok(TOLLBAR_ALLOWED)
    })
}

/// The number of items in the queue. A cancelled item counts as long as an older item is in the
/// queue.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_queue_length(queue: *const tollbar_queue, items: *mut u64) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (queue, out) = unsafe { (reference(queue)?, place(items)?) };
        out.write(queue.words.len());
        Ok(TOLLBAR_ALLOWED)
    })
}

/// The time that the calls without `_at` read (tollbar_limiter_now).
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_queue_now(queue: *const tollbar_queue, now_ns: *mut u64) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (queue, out) = unsafe { (reference(queue)?, place(now_ns)?) };
        out.write(queue.words.now());
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Takes the items at the policy's pace and calls `work(context, item)` for each, until the queue
/// is closed and empty or tollbar_queue_stop is called. It blocks, so a program calls it in a
/// thread of its own, or in several, each of which then has one item at a time.
///
/// # Safety
/// Pointers are NULL or as said; `work` may be called with `context`.
#[no_mangle]
pub unsafe extern "C" fn tollbar_queue_run(
    queue: *const tollbar_queue,
    work: tollbar_queue_work,
    context: *mut c_void,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let queue = unsafe { reference(queue)? };
        let work = work.ok_or(TOLLBAR_E_NULL)?;
        let stop = || queue.stopped.load(Ordering::SeqCst) != 0;
        while let Some(word) = queue.words.take_unless(&stop) {
            // SAFETY: by the caller's promise.
            unsafe { work(context, word as *mut c_void) };
        }
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Makes all calls of tollbar_queue_run return after the call of `work` that they are in. Later
/// calls of tollbar_queue_run return at once. Items in the queue stay there. Any thread may call
/// it, also from `work`. The call does not wait.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_queue_stop(queue: *const tollbar_queue) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let queue = unsafe { reference(queue)? };
        queue.stopped.store(1, Ordering::SeqCst);
        queue.words.wake_takers();
        Ok(TOLLBAR_ALLOWED)
    })
}

/// # Safety
/// `options` is null or readable.
unsafe fn make(
    policy: &Policy,
    capacity: u64,
    options: *const tollbar_queue_options,
) -> Result<tollbar_queue, i32> {
    let (clock, waiters, spare) = if options.is_null() {
        (Source::Tsc, 0, 0)
    } else {
        // SAFETY: by the caller's promise.
        let options = unsafe { read(options) }?;
        (source(options.clock)?, options.waiters, options.spare)
    };
    let words = Words::with_spare(policy, capacity, u64::from(spare), Utc::new(clock));
    let mut words = words.map_err(|error| match error {
        QueueError::Policy(error) => policy_code(error),
        QueueError::Capacity => TOLLBAR_E_CAPACITY,
        QueueError::NoMemory => TOLLBAR_E_NO_MEMORY,
        QueueError::Unsupported => TOLLBAR_E_UNSUPPORTED,
    })?;
    if waiters != 0 {
        words = words.with_waiters(waiters);
    }
    Ok(tollbar_queue { words, stopped: AtomicU32::new(0) })
}

/// # Safety
/// Pointers are null or as the callers say.
unsafe fn offer(
    queue: *const tollbar_queue,
    ticket: *mut tollbar_queue_ticket,
    put: impl FnOnce(&Words<Utc>) -> Result<Ticket, Refused<u64>>,
) -> Result<i32, i32> {
    // SAFETY: by the caller's promise.
    let queue = unsafe { reference(queue)? };
    let out = match ticket.is_null() {
        true => None,
        // SAFETY: by the caller's promise.
        false => Some(unsafe { place(ticket)? }),
    };
    match put(&queue.words) {
        Ok(Ticket { number, ahead, spare }) => {
            if let Some(out) = out {
                out.write(tollbar_queue_ticket { number, ahead, spare });
            }
            Ok(TOLLBAR_ALLOWED)
        }
        Err(Refused { reason: Refusal::Full | Refusal::Waiters, .. }) => Ok(TOLLBAR_DENIED),
        Err(Refused { reason: Refusal::Closed, .. }) => Err(TOLLBAR_E_CLOSED),
    }
}

/// # Safety
/// Pointers are null or as the callers say.
unsafe fn take(
    queue: *const tollbar_queue,
    item: *mut *mut c_void,
    take: impl FnOnce(&Words<Utc>) -> Option<u64>,
) -> Result<i32, i32> {
    // SAFETY: by the caller's promise.
    let (queue, out) = unsafe { (reference(queue)?, place(item)?) };
    match take(&queue.words) {
        Some(word) => {
            out.write(word as *mut c_void);
            Ok(TOLLBAR_ALLOWED)
        }
        // In this order: an item that was offered before the close is in the queue.
        None if queue.words.is_closed() && queue.words.is_empty() => Err(TOLLBAR_E_CLOSED),
        None => Ok(TOLLBAR_DENIED),
    }
}

/// # Safety
/// Pointers are null or as the callers say.
unsafe fn next(queue: *const tollbar_queue, now: Option<u64>, at: *mut u64) -> Result<i32, i32> {
    // SAFETY: by the caller's promise.
    let (queue, out) = unsafe { (reference(queue)?, place(at)?) };
    Ok(match queue.words.next_departure_at(now.unwrap_or_else(|| queue.words.now())) {
        Some(at) => {
            out.write(at);
            TOLLBAR_YES
        }
        None => TOLLBAR_NO,
    })
}
