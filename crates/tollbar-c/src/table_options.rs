//! The policies and options of a call that makes or opens a table.

use super::boundary::*;
use super::clock::source;
use super::policy::{policy, tollbar_policy_spec};
use super::status::*;
use super::table::*;
use alloc::boxed::Box;
use tollbar::internal::sync::filled;
use tollbar::policy::Policy;
use tollbar::table::{Missing, OnFull, Options, Trust, POLICIES_MOST};

/// The policies and options of a call. The policies are on the heap, because 128 of them are more than the stack of a
/// small thread.
pub(super) struct Asked {
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
pub(super) struct Any {
    pub(super) trust: Trust,
    pub(super) waiters: u32,
    pub(super) hot_keys: u32,
}

/// The options of a call that opens any existing table: they are NULL, or have capacity 0 and no field of a new
/// table. `None`: the options ask for a certain table.
///
/// # Safety
/// `options` is null or readable.
pub(super) unsafe fn any_table(options: *const tollbar_table_options) -> Result<Option<Any>, i32> {
    if options.is_null() {
        return Ok(Some(Any { trust: Trust::Owner, waiters: waiters(0), hot_keys: 0 }));
    }
    // SAFETY: by the caller's promise.
    let options = unsafe { read(options) }?;
    let flags = options.flags;
    let rest = tollbar_table_options { struct_size: 0, flags: 0, ..options };
    let nothing = rest.capacity == 0
        && (rest.on_full, rest.seed, rest.missing_key, rest.clock, rest.mode) == (0, 0, 0, 0, 0)
        && (rest.overrides, rest.reserved) == (0, 0)
        && flags & !TOLLBAR_TABLE_TRUST_ANYONE == 0;
    Ok(nothing.then(|| Any { trust: trust(flags), waiters: waiters(rest.waiters), hot_keys: rest.hot_keys }))
}

/// # Safety
/// `options` is null or readable; `policies` is null or has `count` entries, each null or readable.
#[inline(never)]
pub(super) unsafe fn asked(
    options: *const tollbar_table_options,
    policies: *const *const tollbar_policy_spec,
    count: usize,
) -> Result<Asked, i32> {
    // SAFETY: by the caller's promise.
    let options = unsafe { read(options) }?;
    if options.flags & !(TOLLBAR_TABLE_HAS_SEED | TOLLBAR_TABLE_SMALL_PAGES | TOLLBAR_TABLE_TRUST_ANYONE) != 0 {
        return Err(TOLLBAR_E_RESERVED);
    }
    let seeded = options.flags & TOLLBAR_TABLE_HAS_SEED != 0;
    if !seeded && options.seed != 0 {
        return Err(TOLLBAR_E_RESERVED);
    }
    if options.reserved != 0 {
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
    Ok(Asked { options, policies: read })
}
