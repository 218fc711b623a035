//! The policies and options of a call that makes or opens a table.

use super::boundary::*;
use super::clock::source;
use super::policy::{policy, tollbar_policy_spec};
use super::status::*;
use alloc::boxed::Box;
use core::mem::size_of;
use tollbar::internal::sync::filled;
use tollbar::policy::Policy;
use tollbar::table::{Missing, OnFull, Options, Trust, POLICIES_MOST};

/// The table admits a new key as a fresh one. The new key takes the slot that would have expired
/// first and keeps its expiry. The table forgets the key that had the slot.
pub const TOLLBAR_ON_FULL_EVICT_NEAREST: u32 = 0;
/// A new key takes over the slot that would have expired first, together with its debt.
pub const TOLLBAR_ON_FULL_INHERIT: u32 = 1;
/// The table admits a new key as a fresh one, and does not store it.
pub const TOLLBAR_ON_FULL_ALLOW: u32 = 2;
/// The table refuses a new key. It evicts no key, and admits no key without a count. Use it only
/// for keys that a stranger cannot invent, because a stranger with invented keys can fill the table
/// and shut out all new keys.
pub const TOLLBAR_ON_FULL_DENY: u32 = 3;

/// The table refuses a request without a key (NULL, or a length of 0).
pub const TOLLBAR_MISSING_DENY: u32 = 0;
/// The table admits a request without a key, and charges no key.
pub const TOLLBAR_MISSING_ALLOW: u32 = 1;
/// A request without a key returns TOLLBAR_E_MISSING_KEY.
pub const TOLLBAR_MISSING_REPORT: u32 = 2;

/// The table uses `seed`. Without this flag the seed is random.
pub const TOLLBAR_TABLE_HAS_SEED: u32 = 1;
/// The library does not advise the system to use huge pages.
pub const TOLLBAR_TABLE_SMALL_PAGES: u32 = 2;
/// The call opens a file whatever its owner and permissions are. Every user who may write the file
/// can admit or refuse keys, and the file's owner can end this process by SIGBUS at any time.
pub const TOLLBAR_TABLE_TRUST_ANYONE: u32 = 4;

/// How a table is made. Start from TOLLBAR_TABLE_OPTIONS_INIT.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tollbar_table_options {
    /// sizeof(tollbar_table_options), as the caller's compiler sees it.
    pub struct_size: u32,
    /// A TOLLBAR_ON_FULL_ number. It says what the table does with a new key if all slots of that
    /// key are taken. 0 is TOLLBAR_ON_FULL_EVICT_NEAREST.
    pub on_full: u32,
    /// The number of keys that can have a debt at one time. The table has a quarter more slots, and
    /// at least 5,120.
    pub capacity: u64,
    /// The seed of the hash, with TOLLBAR_TABLE_HAS_SEED. A client that knows the seed can choose
    /// keys that collide.
    pub seed: u64,
    /// A TOLLBAR_MISSING_ number: how the table decides on a request without a key.
    pub missing_key: u32,
    /// A TOLLBAR_CLOCK_ number: the clock that calls without `_at` read (tollbar_table_now).
    pub clock: u32,
    /// The permissions of a new file. 0 means 0600. An existing file is refused if a user may write
    /// it whom `mode` does not let write.
    pub mode: u32,
    /// TOLLBAR_TABLE_ flags.
    pub flags: u32,
    /// Callers of this object that may sleep in tollbar_table_wait at one time. 0 means 1024. A
    /// further caller is refused at once.
    pub waiters: u32,
    /// The keys for which each thread of this process may take permits in advance (see above): the
    /// keys that it checks most often. 0: none. A number below 64 means 64, and a number above
    /// 16,384 means 16,384. It may differ from process to process.
    pub hot_keys: u32,
    /// The keys that may have a policy of their own at one time (tollbar_table_set_override), 32
    /// bytes each. 0: 1024. At most 524,288.
    pub overrides: u32,
    /// The most segments of a sliding window, or permits of a sliding log, for which each slot has
    /// room. With room the table may have any policies, and each may change to any other
    /// (tollbar_table_set_policy). 0: none, and a sliding window or log must be the only policy.
    /// Room for n takes 32 bytes a slot, and 16 for each place: the next power of two from n + 2
    /// on.
    pub room: u32,
}

// SAFETY: repr(C), u32 first, u32 and u64 fields without holes.
unsafe impl Growable for tollbar_table_options {
    const FIRST_SIZE: usize = 56;
}

const _: () = assert!(size_of::<tollbar_table_options>() == 56);

/// The policies and options of a call. The policies are on the heap, because 128 of them are more
/// than the stack of a small thread.
pub(super) struct NewTable {
    pub(super) options: Options,
    pub(super) policies: Box<[Policy]>,
}

fn trust(flags: u32) -> Trust {
    if flags & TOLLBAR_TABLE_TRUST_ANYONE != 0 {
        Trust::Anyone
    } else {
        Trust::Owner
    }
}

fn waiters(asked: u32) -> u32 {
    match asked {
        0 => Options::WAITERS,
        most => most,
    }
}

/// The options of this process's view, which are not part of the table.
pub(super) struct AnyTable {
    pub(super) mode: u32,
    pub(super) trust: Trust,
    pub(super) waiters: u32,
    pub(super) hot_keys: u32,
}

/// The options of a call that opens any existing table: they are NULL, or have capacity 0 and no
/// field of a new table. `None`: the options ask for a certain table.
///
/// # Safety
/// `options` is null or readable.
pub(super) unsafe fn any_table(
    options: *const tollbar_table_options,
) -> Result<Option<AnyTable>, i32> {
    if options.is_null() {
        return Ok(Some(AnyTable {
            mode: 0o600,
            trust: Trust::Owner,
            waiters: waiters(0),
            hot_keys: 0,
        }));
    }
    // SAFETY: by the caller's promise.
    let options = unsafe { read(options) }?;
    let flags = options.flags;
    let rest = tollbar_table_options { struct_size: 0, flags: 0, ..options };
    let nothing = rest.capacity == 0
        && (rest.on_full, rest.seed, rest.missing_key, rest.clock) == (0, 0, 0, 0)
        && rest.mode & !0o777 == 0
        && (rest.overrides, rest.room) == (0, 0)
        && flags & !TOLLBAR_TABLE_TRUST_ANYONE == 0;
    Ok(nothing.then(|| AnyTable {
        mode: rest.mode,
        trust: trust(flags),
        waiters: waiters(rest.waiters),
        hot_keys: rest.hot_keys,
    }))
}

/// # Safety
/// `options` is null or readable; `policies` is null or has `count` entries, each null or readable.
#[inline(never)]
pub(super) unsafe fn new_table(
    options: *const tollbar_table_options,
    policies: *const *const tollbar_policy_spec,
    count: usize,
) -> Result<NewTable, i32> {
    // SAFETY: by the caller's promise.
    let options = unsafe { read(options) }?;
    if options.flags
        & !(TOLLBAR_TABLE_HAS_SEED | TOLLBAR_TABLE_SMALL_PAGES | TOLLBAR_TABLE_TRUST_ANYONE)
        != 0
    {
        return Err(TOLLBAR_E_RESERVED);
    }
    let seeded = options.flags & TOLLBAR_TABLE_HAS_SEED != 0;
    if !seeded && options.seed != 0 {
        return Err(TOLLBAR_E_RESERVED);
    }
    // Clause C6: the library would have to ignore bits that are no permissions.
    if options.mode & !0o777 != 0 {
        return Err(TOLLBAR_E_RESERVED);
    }
    let on_full = [OnFull::EvictNearest, OnFull::Inherit, OnFull::Allow, OnFull::Deny];
    let missing = [Missing::Deny, Missing::Allow, Missing::Report];
    let options = Options {
        on_full: *on_full.get(options.on_full as usize).ok_or(TOLLBAR_E_OUT_OF_RANGE)?,
        missing: *missing.get(options.missing_key as usize).ok_or(TOLLBAR_E_OUT_OF_RANGE)?,
        clock: source(options.clock)?,
        seed: seeded.then_some(options.seed),
        huge_pages: options.flags & TOLLBAR_TABLE_SMALL_PAGES == 0,
        trust: trust(options.flags),
        mode: if options.mode == 0 { 0o600 } else { options.mode },
        waiters: waiters(options.waiters),
        hot_keys: options.hot_keys,
        overrides: if options.overrides == 0 { Options::OVERRIDES } else { options.overrides },
        room: options.room,
        ..Options::new(options.capacity)
    };
    if count == 0 || count > POLICIES_MOST {
        return Err(TOLLBAR_E_POLICY_COUNT);
    }
    array(policies, count)?;
    let mut read = filled(count, Policy::new(0, 1)).ok_or(TOLLBAR_E_NO_MEMORY)?;
    for (n, place) in read.iter_mut().enumerate() {
        // SAFETY: `n` is below the count that the caller vouches for.
        *place = unsafe { policy(policies.add(n).read()) }?;
    }
    Ok(NewTable { options, policies: read })
}
