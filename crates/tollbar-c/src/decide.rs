//! Decisions of limiters.

use super::boundary::*;
use super::check::answer;
use super::decision::tollbar_decision;
use super::limiter::tollbar_limiter;
use super::policy::{policy, spec_of, tollbar_policy_spec};
use super::status::*;
use core::mem::size_of;
use tollbar::clock::{Clock, Utc};
use tollbar::limiter::{Limiter, Shared, State};

/// A limiter's state, for people and metrics.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tollbar_limiter_state {
    /// sizeof(tollbar_limiter_state), as the caller's compiler sees it.
    pub struct_size: u32,
    /// Callers asleep in tollbar_limiter_wait.
    pub waiting: u32,
    /// The limiter's time when the state was read.
    pub now_ns: u64,
    /// Permits that could be taken at that time.
    pub remaining: u64,
    /// Nanoseconds until one permit could be taken; 0 if one can.
    pub retry_after_ns: u64,
    /// Nanoseconds until the state is as good as fresh.
    pub reset_after_ns: u64,
    /// Requests whose time was earlier than that of a request admitted before them.
    pub backward_steps: u64,
    /// Calls of all threads, since the limiter was made, that returned TOLLBAR_ALLOWED. Each
    /// request of a batch counts as a call. Peeks and errors do not count. tollbar_limiter_reset
    /// keeps the counts.
    pub allowed: u64,
    /// Calls that returned TOLLBAR_DENIED.
    pub denied: u64,
    /// Calls that returned TOLLBAR_NEVER.
    pub never: u64,
}

// SAFETY: repr(C), u32 first, u32 and u64 fields without holes.
unsafe impl Growable for tollbar_limiter_state {
    const FIRST_SIZE: usize = 72;
}

const _: () = assert!(size_of::<tollbar_limiter_state>() == 72);

/// Takes `cost` permits now, or takes none. A cost of 0 asks without charging.
///
/// Returns TOLLBAR_ALLOWED if the limiter had the permits and has charged them, TOLLBAR_DENIED if
/// it does not have them now, TOLLBAR_NEVER if `cost` is more than it can ever have at once, or an
/// error. The call writes the full decision to `out`, such as the time until the same request would
/// pass. With NULL for `out` it is cheaper.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_limiter_check(
    limiter: *const tollbar_limiter,
    cost: u64,
    out: *mut tollbar_decision,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let limiter = &unsafe { reference(limiter) }?.limiter;
        if !out.is_null() {
            rarely();
            return answer(out, move || limiter.check(cost));
        }
        Ok(limiter.admit(cost) as i32)
    })
}

/// tollbar_limiter_check at the caller's time. All calls to one limiter use one scale of time: that
/// of tollbar_limiter_now, as the calls without a time do, or another one that every call passes.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_limiter_check_at(
    limiter: *const tollbar_limiter,
    cost: u64,
    now_ns: u64,
    out: *mut tollbar_decision,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let limiter = &unsafe { reference(limiter) }?.limiter;
        if !out.is_null() {
            rarely();
            return answer(out, move || limiter.check_at(now_ns, cost));
        }
        Ok(limiter.admit_at(now_ns, cost) as i32)
    })
}

/// Returns what tollbar_limiter_check would return, and changes nothing.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_limiter_peek(
    limiter: *const tollbar_limiter,
    cost: u64,
    out: *mut tollbar_decision,
) -> i32 {
    guard(|| {
        // SAFETY: by the caller's promise.
        code(unsafe { reference(limiter) }.and_then(|l| answer(out, move || l.limiter.peek(cost))))
    })
}

/// tollbar_limiter_peek at the caller's time.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_limiter_peek_at(
    limiter: *const tollbar_limiter,
    cost: u64,
    now_ns: u64,
    out: *mut tollbar_decision,
) -> i32 {
    guard(|| {
        // SAFETY: by the caller's promise.
        let limiter = unsafe { reference(limiter) };
        code(limiter.and_then(|l| answer(out, move || l.limiter.shared().peek_at(now_ns, cost))))
    })
}

/// Decides on `count` requests in turn with one reading of the clock. `results[i]` gets what
/// tollbar_limiter_check would have returned for `costs[i]`. If `costs` is NULL, each request costs
/// one permit. Returns 0, or an error of the whole batch. Then nothing has been charged.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_limiter_check_many(
    limiter: *const tollbar_limiter,
    costs: *const u64,
    count: usize,
    results: *mut i32,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let limiter = &unsafe { reference(limiter) }?.limiter;
        // SAFETY: by the caller's promise.
        unsafe { check_many(limiter, limiter.clock().now(), costs, count, results) }
    })
}

/// tollbar_limiter_check_many at the caller's time.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_limiter_check_many_at(
    limiter: *const tollbar_limiter,
    costs: *const u64,
    count: usize,
    now_ns: u64,
    results: *mut i32,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let limiter = &unsafe { reference(limiter) }?.limiter;
        // SAFETY: by the caller's promise.
        unsafe { check_many(limiter, now_ns, costs, count, results) }
    })
}

/// Takes all permits that are left, `most` at the most, and writes their number to `*taken`.
/// Returns TOLLBAR_ALLOWED if it took any, otherwise TOLLBAR_DENIED.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_limiter_take_up_to(
    limiter: *const tollbar_limiter,
    most: u64,
    taken: *mut u64,
) -> i32 {
    // SAFETY: by the caller's promise.
    guard(|| code(unsafe { take_up_to(limiter, None, most, taken) }))
}

/// tollbar_limiter_take_up_to at the caller's time.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_limiter_take_up_to_at(
    limiter: *const tollbar_limiter,
    most: u64,
    now_ns: u64,
    taken: *mut u64,
) -> i32 {
    // SAFETY: by the caller's promise.
    guard(|| code(unsafe { take_up_to(limiter, Some(now_ns), most, taken) }))
}

/// Makes the limiter fresh. Other calls may run at the same time, and admissions in the same
/// instant may survive the reset.
///
/// # Safety
/// `limiter` is NULL or live.
#[no_mangle]
pub unsafe extern "C" fn tollbar_limiter_reset(limiter: *const tollbar_limiter) -> i32 {
    guard(|| {
        // SAFETY: by the caller's promise.
        code(unsafe { reference(limiter) }.map(|l| {
            l.limiter.reset();
            TOLLBAR_ALLOWED
        }))
    })
}

/// Writes the limiter's present state to `out`, and takes no permits.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_limiter_get_state(
    limiter: *const tollbar_limiter,
    out: *mut tollbar_limiter_state,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let limiter = unsafe { reference(limiter) }?;
        size_at(out)?;
        let view = limiter.limiter.snapshot();
        let state = tollbar_limiter_state {
            struct_size: 0,
            waiting: view.waiting,
            now_ns: view.now,
            remaining: view.decision.remaining,
            retry_after_ns: view.decision.retry_after,
            reset_after_ns: view.decision.reset_after,
            backward_steps: view.backward_steps,
            allowed: view.decisions.allowed,
            denied: view.decisions.denied,
            never: view.decisions.never,
        };
        // SAFETY: by the caller's promise; size_at has checked it.
        unsafe { write(out, &state) }.map(|()| TOLLBAR_ALLOWED)
    })
}

/// Changes the policy while other threads use the limiter. `keep`, a TOLLBAR_KEEP_ number, says
/// what the limiter keeps of its state. Between windows of one length, quotas, and intervals of one
/// limit and period, TOLLBAR_KEEP_COUNT and TOLLBAR_KEEP_TIME keep the usage, up to the new limit.
///
/// Calls that run at the same time neither wait nor fail, and are decided under one of the two
/// policies. In any interval the limiter admits at most the sum of the bounds of all policies that
/// were in force in that interval, each as often as it came into force. Reserved permits keep their
/// departures.
///
/// The call allocates a state for each policy that is new to the limiter. tollbar_limiter_free and
/// tollbar_limiter_close free all of them. Returns TOLLBAR_E_POLICY_CHANGES after 4,096 policies,
/// and TOLLBAR_E_OPTION_MISMATCH for a limiter with TOLLBAR_CREDIT_ON. Then the policy stays as it
/// was.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_limiter_set_policy(
    limiter: *const tollbar_limiter,
    spec: *const tollbar_policy_spec,
    keep: u32,
) -> i32 {
    // SAFETY: by the caller's promise.
    call(|| unsafe { set_policy(limiter, spec, keep, None) })
}

/// tollbar_limiter_set_policy at the caller's time, for a limiter that is asked at the caller's
/// time. The limiter converts what it keeps by that time.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_limiter_set_policy_at(
    limiter: *const tollbar_limiter,
    spec: *const tollbar_policy_spec,
    keep: u32,
    now_ns: u64,
) -> i32 {
    // SAFETY: by the caller's promise.
    call(|| unsafe { set_policy(limiter, spec, keep, Some(now_ns)) })
}

/// Writes the limiter's policy to `out`: the one that it was made with, or was last changed to.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_limiter_get_policy(
    limiter: *const tollbar_limiter,
    out: *mut tollbar_policy_spec,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let limiter = unsafe { reference(limiter) }?;
        // SAFETY: by the caller's promise.
        unsafe { write(out, &spec_of(limiter.limiter.changed_policy().unwrap_or(&limiter.policy))) }
            .map(|()| TOLLBAR_ALLOWED)
    })
}

/// # Safety
/// `costs` is null or has `count` entries; `results` is null or has `count` places.
unsafe fn check_many(
    limiter: &Limiter<State, Utc>,
    now: u64,
    costs: *const u64,
    count: usize,
    results: *mut i32,
) -> Result<i32, i32> {
    array(results, count)?;
    if !costs.is_null() {
        array(costs, count)?;
    }
    for i in 0..count {
        // SAFETY: `i` is below the count that the caller vouches for, in both arrays.
        unsafe {
            let cost = if costs.is_null() { 1 } else { costs.add(i).read() };
            results.add(i).write(limiter.admit_at(now, cost) as i32);
        }
    }
    Ok(TOLLBAR_ALLOWED)
}

/// # Safety
/// Pointers are null or live.
unsafe fn take_up_to(
    limiter: *const tollbar_limiter,
    now: Option<u64>,
    most: u64,
    taken: *mut u64,
) -> Result<i32, i32> {
    // SAFETY: by the caller's promise.
    let (limiter, taken) = unsafe { (&reference(limiter)?.limiter, place(taken)?) };
    let permits = limiter.take_up_to_at(now.unwrap_or_else(|| limiter.clock().now()), most);
    taken.write(permits);
    Ok(if permits == 0 { TOLLBAR_DENIED } else { TOLLBAR_ALLOWED })
}

/// # Safety
/// As the public calls.
unsafe fn set_policy(
    limiter: *const tollbar_limiter,
    spec: *const tollbar_policy_spec,
    keep: u32,
    now: Option<u64>,
) -> Result<i32, i32> {
    // SAFETY: by the caller's promise.
    let (limiter, policy) = unsafe { (reference(limiter)?, policy(spec)?) };
    let keep = keep_of(keep)?;
    State::validate_on(&policy, limiter.limiter.clock().source()).map_err(policy_code)?;
    // `Limiter` keeps the policies that it was changed to, and this struct the first one.
    if limiter.limiter.changed_policy().is_some() || limiter.policy != policy {
        match now {
            Some(now) => limiter.limiter.set_policy_at(now, &policy, keep),
            None => limiter.limiter.set_policy(&policy, keep),
        }
        .map_err(policy_code)?;
    }
    Ok(TOLLBAR_ALLOWED)
}
