//! Leases: one limit over many machines. Who asks the store is in [`super::client`].

use core::ffi::{c_char, c_void};
use core::mem::size_of;
use core::ptr::NonNull;
use tollbar::policy::Policy;
use tollbar_c::boundary::*;
use tollbar_c::cell::{answer_to, tollbar_decision};
use tollbar_c::policy::{policy, tollbar_policy_spec};
use tollbar_c::status::*;
use tollbar_c::table::table_code;
use tollbar_redis::lease::{Circuit, Fallback, Node, NodeError, Options, TermsError};

/// Without the store a node goes on by itself at its share; what it admits is charged when the store is back.
pub const TOLLBAR_FALLBACK_SHARE: u32 = 0;
/// Without the store a node refuses what no lease covers.
pub const TOLLBAR_FALLBACK_DENY: u32 = 1;
/// Without the store a node admits what no lease covers, and does not count it.
pub const TOLLBAR_FALLBACK_ALLOW: u32 = 2;

/// The store gives out the whole burst. The machines together may exceed the policy by the permits that they hold in leases and reserves.
pub const TOLLBAR_LEASE_INEXACT: u32 = 1;
/// `overdraft` is used. Without it, it is chosen for the policy.
pub const TOLLBAR_LEASE_HAS_OVERDRAFT: u32 = 2;

/// Nobody has reached the store yet: a node is on its own.
pub const TOLLBAR_CIRCUIT_UNKNOWN: u32 = 0;
/// The store answers.
pub const TOLLBAR_CIRCUIT_CLOSED: u32 = 1;
/// The store does not answer, or its clock stands still, or it grants nothing for longer than the limit explains: the node is on its own.
/// tollbar_lease_client_error says which.
pub const TOLLBAR_CIRCUIT_OPEN: u32 = 2;

/// This machine's part of a limit. All calls but tollbar_lease_close may be made by any number of threads at
/// once, on either side of a fork.
pub struct tollbar_lease {
    pub(super) node: Node,
}

/// How a limit is shared between machines. Start from TOLLBAR_LEASE_OPTIONS_INIT. All machines of a limit say
/// the same, but for `capacity`. While a change is rolled out the stricter is in force, and tollbar_lease_client_error says so; there may never be
/// more machines than the smallest `nodes` that one of them has.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tollbar_lease_options {
    /// sizeof(tollbar_lease_options), as the caller's compiler sees it.
    pub struct_size: u32,
    /// Machines that share the limit, at most: 1 to 65,535.
    pub nodes: u32,
    /// Keys of this machine that are to have a place at one time.
    pub capacity: u64,
    /// How long a lease may be spent, 1 ms to 10 min; 0: chosen for the policy, a sixteenth of the time of its burst and 4 s at most.
    pub life_ns: u64,
    /// Permits that a machine admits of a key before the store has been asked, if TOLLBAR_LEASE_HAS_OVERDRAFT.
    pub overdraft: u64,
    /// A TOLLBAR_FALLBACK_ number: what a machine does while the store does not answer.
    pub fallback: u32,
    /// TOLLBAR_LEASE_ flags.
    pub flags: u32,
}

// SAFETY: repr(C), u32 first, u32 and u64 fields without holes.
unsafe impl Growable for tollbar_lease_options {
    const FIRST_SIZE: usize = 40;
}

const _: () = assert!(size_of::<tollbar_lease_options>() == 40);

/// What has happened on this machine. Start from TOLLBAR_LEASE_STATS_INIT.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tollbar_lease_stats {
    /// sizeof(tollbar_lease_stats), as the caller's compiler sees it.
    pub struct_size: u32,
    /// A TOLLBAR_CIRCUIT_ number: whether the store answers.
    pub circuit: u32,
    /// Permits that the store has granted.
    pub granted: u64,
    /// Requests for permits that the machine sent to the store.
    pub asked: u64,
    /// Permits that the machine admitted from its own bucket while the store answered.
    pub overdrawn: u64,
    /// Permits that the machine admitted from its own bucket while the store did not answer.
    pub fallback_permits: u64,
    /// Permits that TOLLBAR_FALLBACK_ALLOW admitted without a count.
    pub uncounted: u64,
    /// Requests refused.
    pub denied: u64,
    /// Messages to the client that found no room: their requests were refused, or their lease came later.
    pub queue_full: u64,
    /// Times that the store was lost.
    pub opened: u64,
    /// Permits admitted without a lease of which the store has not been told yet.
    pub owed: u64,
}

// SAFETY: repr(C), u32 first, u32 and u64 fields without holes.
unsafe impl Growable for tollbar_lease_stats {
    const FIRST_SIZE: usize = 80;
}

const _: () = assert!(size_of::<tollbar_lease_stats>() == 80);

/// The bytes that a node of this policy and these options takes, all told and for ever.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_lease_bytes(
    spec: *const tollbar_policy_spec,
    options: *const tollbar_lease_options,
    bytes: *mut u64,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (out, (policy, options)) = unsafe { (place(bytes)?, asked(spec, options)?) };
        out.write(Node::bytes_for(&policy, &options).map_err(node_code)?);
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Makes this process's part of the limit called `name`, 1 to 64 visible ASCII characters without braces. The policy
/// is gcra without `borrow` and `init`.
///
/// It asks nobody: see tollbar_lease_client_new. Without a client it lives on its own bucket, and on no more than some hundred to some
/// thousand permits, since nobody takes note of them. A child that is forked has a copy of what is unspent: where parent and
/// child both go on, use tollbar_lease_new_shared.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_lease_new(
    name: *const c_char,
    name_length: usize,
    spec: *const tollbar_policy_spec,
    options: *const tollbar_lease_options,
    out: *mut *mut tollbar_lease,
) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe { make(name, name_length, spec, options, out, Node::private) }
}

/// tollbar_lease_new in memory that is shared with the processes forked from this one later. Together they are one
/// machine of the limit, and one of them has the client.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_lease_new_shared(
    name: *const c_char,
    name_length: usize,
    spec: *const tollbar_policy_spec,
    options: *const tollbar_lease_options,
    out: *mut *mut tollbar_lease,
) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe { make(name, name_length, spec, options, out, Node::shared) }
}

/// The same in the caller's memory, which is aligned to 64 bytes, stays the caller's and must outlive `*out`; of its
/// `size` bytes it takes what tollbar_lease_bytes says. What was in it is gone.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_lease_init_in(
    memory: *mut c_void,
    size: usize,
    name: *const c_char,
    name_length: usize,
    spec: *const tollbar_policy_spec,
    options: *const tollbar_lease_options,
    out: *mut *mut tollbar_lease,
) -> i32 {
    let Some(memory) = NonNull::new(memory.cast::<u8>()) else { return TOLLBAR_E_NULL };
    // SAFETY: by the caller's promise.
    let in_memory =
        |name: &str, policy: &Policy, options: &Options| unsafe { Node::init_in(memory, size, name, policy, options) };
    // SAFETY: by the caller's promise.
    unsafe { make(name, name_length, spec, options, out, in_memory) }
}

/// A view of the node in the caller's memory, made by tollbar_lease_init_in here or in another process.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_lease_attach(memory: *mut c_void, size: usize, out: *mut *mut tollbar_lease) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let out = unsafe { place(out) }?;
        let memory = NonNull::new(memory.cast::<u8>()).ok_or(TOLLBAR_E_NULL)?;
        // SAFETY: by the caller's promise.
        let node = unsafe { Node::attach_in(memory, size) }.map_err(node_code)?;
        out.write(boxed(tollbar_lease { node })?);
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Frees a node that no call and no client is using. NULL is nothing.
///
/// # Safety
/// `lease` is NULL or has not been freed.
#[no_mangle]
pub unsafe extern "C" fn tollbar_lease_close(lease: *mut tollbar_lease) {
    // SAFETY: by the caller's promise.
    unsafe { unboxed(lease) };
}

/// Takes `cost` permits of the key, now; with `length` 0, of the one limit for all. It never waits for the store: it is
/// answered from what this machine has been granted, or from its own bucket.
///
/// Returns TOLLBAR_ALLOWED, TOLLBAR_DENIED, TOLLBAR_NEVER (the cost is more than a lease can have), or an error. `out`,
/// unless NULL, gets the answer in full: `remaining` is this machine's, `retry_after_ns` an estimate,
/// `reset_after_ns` 0.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_lease_check(
    lease: *const tollbar_lease,
    key: *const c_void,
    length: usize,
    cost: u64,
    out: *mut tollbar_decision,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (node, key) = unsafe { (&reference(lease)?.node, bytes(key.cast(), length)?) };
        // SAFETY: by the caller's promise.
        unsafe { answer_to(out, || node.check(key, cost)) }
    })
}

/// tollbar_lease_check at the caller's time, which is on the scale of tollbar_lease_now.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_lease_check_at(
    lease: *const tollbar_lease,
    key: *const c_void,
    length: usize,
    cost: u64,
    now_ns: u64,
    out: *mut tollbar_decision,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (node, key) = unsafe { (&reference(lease)?.node, bytes(key.cast(), length)?) };
        // SAFETY: by the caller's promise.
        unsafe { answer_to(out, || node.check_at(key, now_ns, cost)) }
    })
}

/// What tollbar_lease_check could answer from the leases and the machine's own bucket. It takes nothing and asks for
/// nothing.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_lease_peek(
    lease: *const tollbar_lease,
    key: *const c_void,
    length: usize,
    cost: u64,
    out: *mut tollbar_decision,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (node, key) = unsafe { (&reference(lease)?.node, bytes(key.cast(), length)?) };
        // SAFETY: by the caller's promise.
        unsafe { answer_to(out, || node.peek_at(key, node.now(), cost)) }
    })
}

/// The node's time in nanoseconds, the same in all its processes: UTC since TOLLBAR_TIME_ZERO, as tollbar_table_now has it. 0 for NULL.
///
/// # Safety
/// `lease` is NULL or a node.
#[no_mangle]
pub unsafe extern "C" fn tollbar_lease_now(lease: *const tollbar_lease) -> u64 {
    // SAFETY: by the caller's promise.
    unsafe { reference(lease) }.map_or(0, |lease| lease.node.now())
}

/// Fills in what has happened.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_lease_get_stats(lease: *const tollbar_lease, out: *mut tollbar_lease_stats) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let node = &unsafe { reference(lease) }?.node;
        size_at(out)?;
        let stats = node.stats();
        let told = tollbar_lease_stats {
            struct_size: 0,
            circuit: circuit_number(node.circuit(node.now())),
            granted: stats.granted,
            asked: stats.asked,
            overdrawn: stats.overdrawn,
            fallback_permits: stats.fallback_permits,
            uncounted: stats.uncounted,
            denied: stats.denied,
            queue_full: stats.queue_full,
            opened: stats.opened,
            owed: stats.owed,
        };
        // SAFETY: by the caller's promise; size_at has checked it.
        unsafe { write(out, &told) }?;
        Ok(TOLLBAR_ALLOWED)
    })
}

pub(super) fn circuit_number(circuit: Circuit) -> u32 {
    match circuit {
        Circuit::Unknown => TOLLBAR_CIRCUIT_UNKNOWN,
        Circuit::Closed => TOLLBAR_CIRCUIT_CLOSED,
        Circuit::Open => TOLLBAR_CIRCUIT_OPEN,
    }
}

/// The code of a node's error.
pub(super) fn node_code(error: NodeError) -> i32 {
    match error {
        NodeError::Terms(error) => match error {
            TermsError::Policy(error) => policy_code(error),
            TermsError::Algorithm => TOLLBAR_E_LEASE_ALGORITHM,
            TermsError::Nodes => TOLLBAR_E_LEASE_NODES,
            TermsError::Life => TOLLBAR_E_LEASE_LIFE,
            TermsError::BurstTooSmall => TOLLBAR_E_LEASE_BURST,
            TermsError::TooLarge => TOLLBAR_E_LEASE_TOO_LARGE,
            TermsError::Capacity => TOLLBAR_E_CAPACITY,
            TermsError::Name => TOLLBAR_E_LEASE_NAME,
        },
        NodeError::Table(error) => table_code(error),
        NodeError::NotANode => TOLLBAR_E_NOT_A_LEASE,
        NodeError::NoMemory => TOLLBAR_E_NO_MEMORY,
    }
}

/// # Safety
/// As the public calls.
unsafe fn asked(
    spec: *const tollbar_policy_spec,
    options: *const tollbar_lease_options,
) -> Result<(Policy, Options), i32> {
    // SAFETY: by the caller's promise.
    let (policy, given) = unsafe { (policy(spec)?, read(options)?) };
    if given.flags & !(TOLLBAR_LEASE_INEXACT | TOLLBAR_LEASE_HAS_OVERDRAFT) != 0 {
        return Err(TOLLBAR_E_RESERVED);
    }
    let overdraft = match given.flags & TOLLBAR_LEASE_HAS_OVERDRAFT != 0 {
        true => given.overdraft.min(u64::MAX - 1),
        false if given.overdraft != 0 => return Err(TOLLBAR_E_RESERVED),
        false => Options::OVERDRAFT_DEFAULT,
    };
    let fallback = [Fallback::Share, Fallback::Deny, Fallback::Allow];
    let options = Options {
        nodes: given.nodes,
        life: given.life_ns,
        overdraft,
        exact: given.flags & TOLLBAR_LEASE_INEXACT == 0,
        fallback: *fallback.get(given.fallback as usize).ok_or(TOLLBAR_E_OUT_OF_RANGE)?,
        capacity: given.capacity,
    };
    Ok((policy, options))
}

/// # Safety
/// As the public calls.
unsafe fn make(
    name: *const c_char,
    name_length: usize,
    spec: *const tollbar_policy_spec,
    options: *const tollbar_lease_options,
    out: *mut *mut tollbar_lease,
    make: impl FnOnce(&str, &Policy, &Options) -> Result<Node, NodeError>,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (out, name, (policy, options)) = unsafe { (place(out)?, bytes(name, name_length)?, asked(spec, options)?) };
        let name = core::str::from_utf8(name).map_err(|_| TOLLBAR_E_LEASE_NAME)?;
        let node = make(name, &policy, &options).map_err(node_code)?;
        out.write(boxed(tollbar_lease { node })?);
        Ok(TOLLBAR_ALLOWED)
    })
}
