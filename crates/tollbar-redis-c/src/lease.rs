//! Leases: one limit over many machines. [`super::client`] asks the store for them.

use core::ffi::{c_char, c_void};
use core::mem::size_of;
use core::ptr::NonNull;
use tollbar::policy::Policy;
use tollbar_c::boundary::*;
use tollbar_c::check::answer_to;
use tollbar_c::decision::tollbar_decision;
use tollbar_c::policy::{policy, tollbar_policy_spec};
use tollbar_c::status::*;
use tollbar_c::table::table_code;
use tollbar_redis::lease::{Circuit, Fallback, Node, NodeError, OnLoss, Options, TermsError};

/// While the store does not answer, a node admits its share of the limit. The client charges those
/// permits when the store is back.
pub const TOLLBAR_FALLBACK_SHARE: u32 = 0;
/// Without the store a node refuses what no lease covers.
pub const TOLLBAR_FALLBACK_DENY: u32 = 1;
/// Without the store a node admits what no lease covers, and does not count it.
pub const TOLLBAR_FALLBACK_ALLOW: u32 = 2;

/// The store grants the whole burst. The machines together may exceed the policy by the overdrafts
/// of all of them.
pub const TOLLBAR_LEASE_INEXACT: u32 = 1;
/// The library uses the field `overdraft`. Without this flag it chooses the overdraft for the
/// policy.
pub const TOLLBAR_LEASE_HAS_OVERDRAFT: u32 = 2;
/// After the store has lost data, every key's bucket counts as empty at the loss, and refills.
/// Without this flag a key that the store has lost has a full bucket, and may get one burst more
/// for each loss.
pub const TOLLBAR_LEASE_REFILL: u32 = 4;

/// No client has reached the store yet. The node follows its fallback.
pub const TOLLBAR_CIRCUIT_UNKNOWN: u32 = 0;
/// The store answers.
pub const TOLLBAR_CIRCUIT_CLOSED: u32 = 1;
/// The node follows its fallback, for one of four causes: the store does not answer, the store's
/// clock stands still, the store grants nothing for longer than the limit explains, or no thread
/// drove the client for 250 ms. tollbar_lease_client_error names the first three.
pub const TOLLBAR_CIRCUIT_OPEN: u32 = 2;

/// This machine's part of a limit: a node. Any number of threads may use one node at once, on both
/// sides of a fork, in every call but tollbar_lease_close.
pub struct tollbar_lease {
    pub(super) node: Node,
}

/// How machines share a limit. Start from TOLLBAR_LEASE_OPTIONS_INIT. The first machine of a limit
/// puts its policy and options into the store's record, and all machines follow the record.
/// tollbar_lease_client_error says what a machine's configuration has otherwise. `capacity` and
/// `fallback` are each machine's own.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tollbar_lease_options {
    /// sizeof(tollbar_lease_options), as the caller's compiler sees it.
    pub struct_size: u32,
    /// Machines that share the limit, at most: 1 to 65,535.
    pub nodes: u32,
    /// Keys that this machine tracks at one time. A key is tracked while it has a lease, while the
    /// store does not know all its permits, and while it is refused.
    pub capacity: u64,
    /// Nanoseconds for which a machine may spend a lease: 1 ms to 10 min. With 0 the library takes
    /// a sixteenth of the time that the burst refills in, at most 4 s.
    pub life_ns: u64,
    /// With TOLLBAR_LEASE_HAS_OVERDRAFT: the permits of one key that a machine may have admitted
    /// and the store has not charged yet, at most 127.
    pub overdraft: u64,
    /// How a machine decides while the store does not answer: one of the TOLLBAR_FALLBACK_
    /// constants.
    pub fallback: u32,
    /// TOLLBAR_LEASE_ flags.
    pub flags: u32,
}

// SAFETY: repr(C), u32 first, u32 and u64 fields without holes.
unsafe impl Growable for tollbar_lease_options {
    const FIRST_SIZE: usize = 40;
}

const _: () = assert!(size_of::<tollbar_lease_options>() == 40);

/// Counters of a node since it was made. Start from TOLLBAR_LEASE_STATS_INIT.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tollbar_lease_stats {
    /// sizeof(tollbar_lease_stats), as the caller's compiler sees it.
    pub struct_size: u32,
    /// A TOLLBAR_CIRCUIT_ number: whether the store answers.
    pub circuit: u32,
    /// Permits that the store granted.
    pub granted: u64,
    /// Requests for permits that the machine sent to the store.
    pub asked: u64,
    /// Permits that the machine admitted before it asked the store, while the store answered.
    pub overdrawn: u64,
    /// Permits that the machine admitted from its own bucket while the store did not answer.
    pub fallback_permits: u64,
    /// Permits that TOLLBAR_FALLBACK_ALLOW admitted without a count.
    pub uncounted: u64,
    /// Requests that were TOLLBAR_DENIED. TOLLBAR_NEVER is not counted.
    pub denied: u64,
    /// Messages to the client that the full queue dropped. The node refused their requests or got
    /// their leases later.
    pub queue_full: u64,
    /// How often the client opened the circuit (TOLLBAR_CIRCUIT_OPEN).
    pub opened: u64,
    /// Permits that the node admitted without a lease and the store has not charged yet, as of the
    /// client's last turn.
    pub owed: u64,
    /// Requests that were TOLLBAR_DENIED because other keys used the node's places
    /// (TOLLBAR_REASON_TABLE_FULL).
    pub full: u64,
    /// Requests that were TOLLBAR_DENIED because the store had not answered yet
    /// (TOLLBAR_REASON_PENDING).
    pub denied_pending: u64,
    /// Requests that were TOLLBAR_DENIED because by the store's last answer the limit was used up
    /// (TOLLBAR_REASON_STORE_DENIED).
    pub denied_by_store: u64,
    /// Requests that were TOLLBAR_DENIED by the fallback (TOLLBAR_REASON_STORE_DOWN).
    pub denied_by_fallback: u64,
}

// SAFETY: repr(C), u32 first, u32 and u64 fields without holes.
unsafe impl Growable for tollbar_lease_stats {
    const FIRST_SIZE: usize = 88;
}

const _: () = assert!(size_of::<tollbar_lease_stats>() == 112);

/// Computes the bytes of a node with this policy and these options. A node never grows.
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

/// Makes this process's node of the limit `name`: 1 to 64 visible ASCII characters without braces.
/// The policy is gcra without `borrow`, `ban`, `init`, `reserve` and a second rate. The caller ends
/// `*out` with tollbar_lease_close.
///
/// A node asks the store through a client (tollbar_lease_client_new). Without a client the node
/// admits permits from its own bucket, some hundred to some thousand in all, because its queue of
/// reports is then full. A forked child has a copy of the unspent permits. If parent and child both
/// make decisions, use tollbar_lease_new_shared.
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

/// tollbar_lease_new in memory that this process shares with the children that it forks later. The
/// processes together are one machine of the limit, and one of them drives the client.
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

/// tollbar_lease_new in the caller's memory, which must be aligned to 64 bytes and outlive `*out`.
/// The call overwrites as many of the `size` bytes as tollbar_lease_bytes computes, and the node
/// keeps its leases there.
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
    let in_memory = |name: &str, policy: &Policy, options: &Options| unsafe {
        Node::init_in(memory, size, name, policy, options)
    };
    // SAFETY: by the caller's promise.
    unsafe { make(name, name_length, spec, options, out, in_memory) }
}

/// Opens the node that tollbar_lease_init_in made in this memory, in this process or in another
/// one.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_lease_attach(
    memory: *mut c_void,
    size: usize,
    out: *mut *mut tollbar_lease,
) -> i32 {
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

/// Ends this process's use of a node that no call and no client is using. NULL is allowed and does
/// nothing.
///
/// # Safety
/// `lease` is NULL or has not been freed.
#[no_mangle]
pub unsafe extern "C" fn tollbar_lease_close(lease: *mut tollbar_lease) {
    // SAFETY: by the caller's promise.
    unsafe { unboxed(lease) };
}

/// Takes `cost` permits of the key now. `length` 0 means the one limit that all requests share. The
/// call decides from the permits that the store has granted to this machine, or from the machine's
/// overdraft, and never waits for the store. TOLLBAR_REASON_PENDING says that only the store can
/// tell: tollbar_lease_wait asks it.
///
/// Returns TOLLBAR_ALLOWED, TOLLBAR_DENIED, TOLLBAR_NEVER (the cost is more than a lease can have),
/// or an error. `out` may be NULL. Otherwise the call writes the full decision: `remaining` counts
/// this machine's permits, `retry_after_ns` is an estimate, and `reset_after_ns` is 0.
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

/// tollbar_lease_check at the caller's time, on the scale of tollbar_lease_now.
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

/// Says how tollbar_lease_check would decide, and takes nothing. The call counts the permits that
/// this machine has leased and its overdraft. It requests no lease from the store.
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

/// Reads the node's clock: nanoseconds of UTC since TOLLBAR_TIME_ZERO, on the scale of
/// tollbar_table_now. All processes of a node read the same clock. Returns 0 for NULL.
///
/// # Safety
/// `lease` is NULL or a node.
#[no_mangle]
pub unsafe extern "C" fn tollbar_lease_now(lease: *const tollbar_lease) -> u64 {
    // SAFETY: by the caller's promise.
    unsafe { reference(lease) }.map_or(0, |lease| lease.node.now())
}

/// Writes the node's counters to `out`.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_lease_get_stats(
    lease: *const tollbar_lease,
    out: *mut tollbar_lease_stats,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let node = &unsafe { reference(lease) }?.node;
        size_at(out)?;
        let stats = node.stats();
        let value = tollbar_lease_stats {
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
            full: stats.full,
            denied_pending: stats.denied_pending,
            denied_by_store: stats.denied_by_store,
            denied_by_fallback: stats.denied_by_fallback,
        };
        // SAFETY: by the caller's promise; size_at has checked it.
        unsafe { write(out, &value) }?;
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

/// Maps a node's error to its number in C.
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
        NodeError::TooMany => TOLLBAR_E_CLIENT_LEASES,
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
    let known = TOLLBAR_LEASE_INEXACT | TOLLBAR_LEASE_HAS_OVERDRAFT | TOLLBAR_LEASE_REFILL;
    if given.flags & !known != 0 {
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
        on_loss: match given.flags & TOLLBAR_LEASE_REFILL {
            0 => OnLoss::Full,
            _ => OnLoss::Refill,
        },
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
        let (out, name, (policy, options)) =
            unsafe { (place(out)?, bytes(name, name_length)?, asked(spec, options)?) };
        let name = core::str::from_utf8(name).map_err(|_| TOLLBAR_E_LEASE_NAME)?;
        let node = make(name, &policy, &options).map_err(node_code)?;
        out.write(boxed(tollbar_lease { node })?);
        Ok(TOLLBAR_ALLOWED)
    })
}
