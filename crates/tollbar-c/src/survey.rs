//! Entries, policies, counters and health of tables.

use super::boundary::*;
use super::policy::{policy, spec_of, tollbar_policy_spec};
use super::status::*;
use super::table::{request_code, table_code, tollbar_table};
use core::mem::size_of;
use tollbar::decision::Counts;
use tollbar::table::{Health, PolicyId, Stats};

/// One key of a table.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tollbar_table_entry {
    /// sizeof(tollbar_table_entry), as the caller's compiler sees it.
    pub struct_size: u32,
    /// The number of the key's policy.
    pub policy: u32,
    /// The key's hash. The table stores nothing else of the key (tollbar_table_hash).
    pub hash: u64,
    /// The state word.
    pub state: u64,
    /// Permits that the key has left.
    pub remaining: u64,
    /// Nanoseconds until the state is as good as fresh. 0: it has expired.
    pub reset_after_ns: u64,
    /// The `from` of the next call.
    pub next: u64,
}

// SAFETY: repr(C), u32 first, u32 and u64 fields without holes.
unsafe impl Growable for tollbar_table_entry {
    const FIRST_SIZE: usize = 48;
}

const _: () = assert!(size_of::<tollbar_table_entry>() == 48);

/// The result of a sweep.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tollbar_table_sweep_result {
    /// sizeof(tollbar_table_sweep_result), as the caller's compiler sees it.
    pub struct_size: u32,
    /// 1 if the sweep has reached the end of the table, otherwise 0.
    pub done: u32,
    /// The `from` of the next call. 0 at the end of the table.
    pub next: u64,
    /// Keys that have a debt.
    pub live: u64,
    /// Slots that the sweep made vacant.
    pub vacated: u64,
}

// SAFETY: repr(C), u32 first, u32 and u64 fields without holes.
unsafe impl Growable for tollbar_table_sweep_result {
    const FIRST_SIZE: usize = 32;
}

const _: () = assert!(size_of::<tollbar_table_sweep_result>() == 32);

/// Counters and sizes of a table. The counters count since the table was made, for all processes.
/// If a process is killed, its last count may be missing.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tollbar_table_stats {
    /// sizeof(tollbar_table_stats), as the caller's compiler sees it.
    pub struct_size: u32,
    /// The number of policies.
    pub policies: u32,
    /// The capacity that the table was made with.
    pub capacity: u64,
    /// The number of slots.
    pub slots: u64,
    /// The table's size in bytes.
    pub bytes: u64,
    /// Slots that hold a key, expired or not. A slot that a reset has emptied does not count. No
    /// key may take such a slot until the former key's debt would have been paid.
    /// tollbar_table_validate counts such slots.
    pub keys: u64,
    /// Keys inserted into an empty or vacant slot.
    pub inserted: u64,
    /// Keys inserted into the slot of an expired key.
    pub reclaimed: u64,
    /// Slots that a sweep or a reset made vacant.
    pub vacated: u64,
    /// Resets of keys.
    pub resets: u64,
    /// New keys refused because no slot was free, or because of the debt that they would have
    /// inherited.
    pub refused: u64,
    /// New keys that inherited a slot with its debt.
    pub inherited: u64,
    /// New keys admitted and not stored.
    pub untracked: u64,
    /// Keys with a debt whose slot a new key took.
    pub evicted: u64,
    /// Swaps that failed and were tried again, because another thread had changed the slot.
    pub retries: u64,
    /// Requests whose time was a microsecond or more older than that of an earlier request.
    pub backward_steps: u64,
    /// TOLLBAR_ALLOWED decisions under all policies (tollbar_table_get_counts).
    pub allowed: u64,
    /// TOLLBAR_DENIED decisions under all policies.
    pub denied: u64,
    /// TOLLBAR_NEVER decisions under all policies.
    pub never: u64,
    /// Keys with a policy of their own. A process that was killed in a change may leave it one too
    /// high, until tollbar_table_repair.
    pub overrides: u64,
    /// The most segments of a window, or permits of a log, for which each slot has room, as the
    /// table was made (tollbar_table_options.room).
    pub room: u64,
}

// SAFETY: repr(C), u32 first, u32 and u64 fields without holes.
unsafe impl Growable for tollbar_table_stats {
    const FIRST_SIZE: usize = 160;
}

const _: () = assert!(size_of::<tollbar_table_stats>() == 160);

/// The content of a table's slots. The 64-bit numbers add up to the number of slots while no other
/// thread or process uses the table.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tollbar_table_health {
    /// sizeof(tollbar_table_health), as the caller's compiler sees it.
    pub struct_size: u32,
    /// Policy records that a killed process left unfinished.
    pub claimed: u32,
    /// Slots that hold no key and may be taken.
    pub vacant: u64,
    /// Slots that hold no key and may not be taken yet.
    pub waiting: u64,
    /// Keys that have expired.
    pub expired: u64,
    /// Keys with a debt.
    pub live: u64,
    /// Slots that name a version of a policy that the table does not have. No key can take such a
    /// slot.
    pub unknown: u64,
    /// Slots whose key is also in another slot.
    pub duplicate: u64,
}

// SAFETY: repr(C), u32 first, u32 and u64 fields without holes.
unsafe impl Growable for tollbar_table_health {
    const FIRST_SIZE: usize = 56;
}

const _: () = assert!(size_of::<tollbar_table_health>() == 56);

/// Finds the first slot from number `from` on that holds a key, and writes that key's state at
/// `now_ns` to `out`. Begin with `from` 0 and continue with the entry's `next`. Returns
/// TOLLBAR_YES, or TOLLBAR_NO if no such slot is left. Each entry is what its slot held at one
/// instant. A key that is inserted, moved or removed between the calls may appear once, twice or
/// not at all.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_table_next(
    table: *const tollbar_table,
    from: u64,
    now_ns: u64,
    out: *mut tollbar_table_entry,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let table = &unsafe { reference(table) }?.table;
        size_at(out)?;
        let Some((entry, next)) = table.next_entry(from, now_ns) else { return Ok(TOLLBAR_NO) };
        let value = tollbar_table_entry {
            struct_size: 0,
            policy: entry.policy.number(),
            hash: entry.hash,
            state: entry.state,
            remaining: entry.remaining,
            reset_after_ns: entry.reset_after(now_ns),
            next,
        };
        // SAFETY: by the caller's promise; size_at has checked it.
        unsafe { write(out, &value) }.map(|()| TOLLBAR_YES)
    })
}

/// Examines `most` slots from number `from` on, and makes vacant the slots whose keys have expired
/// by `now_ns`. No table needs sweeps. They serve to count the keys with a debt.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_table_sweep(
    table: *const tollbar_table,
    from: u64,
    most: u64,
    now_ns: u64,
    out: *mut tollbar_table_sweep_result,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let table = &unsafe { reference(table) }?.table;
        size_at(out)?;
        let swept = table.sweep(from, most, now_ns);
        let value = tollbar_table_sweep_result {
            struct_size: 0,
            done: u32::from(swept.next.is_none()),
            next: swept.next.unwrap_or(0),
            live: swept.live,
            vacated: swept.vacated,
        };
        // SAFETY: by the caller's promise; size_at has checked it.
        unsafe { write(out, &value) }.map(|()| TOLLBAR_ALLOWED)
    })
}

/// Adds a policy, for all processes, while the table is in use. Requests name the policy by
/// `*number`.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_table_add_policy(
    table: *const tollbar_table,
    spec: *const tollbar_policy_spec,
    number: *mut u32,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (table, number, policy) = unsafe { (reference(table)?, place(number)?, policy(spec)?) };
        number.write(table.table.add_policy(&policy).map_err(table_code)?.number());
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Finds the first policy that equals `spec` in every field, or adds `spec` if there is none, and
/// writes its number to `*number`. If several callers ask for one policy at once, all get the same
/// number.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_table_find_or_add_policy(
    table: *const tollbar_table,
    spec: *const tollbar_policy_spec,
    number: *mut u32,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (table, number, policy) = unsafe { (reference(table)?, place(number)?, policy(spec)?) };
        number.write(table.table.find_or_add_policy(&policy).map_err(table_code)?.number());
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Changes a policy, for all processes at once, while the table is in use. A key comes under the
/// new policy at its next request, and `keep`, a TOLLBAR_KEEP_ number, says what it keeps of its
/// state. Between windows of one length, quotas, and intervals of one limit and period, it keeps
/// its usage, up to the new limit.
///
/// In any interval a key is admitted at most the sum of the bounds of all policies that were in
/// force in that interval, each as often as it came into force. With TOLLBAR_KEEP_COUNT a key of a
/// full table keeps, by the former and the new algorithm:
///
///     any but a quota -> gcra; any -> quota                   its permits
///     another rate or burst of a list, interval, curve,       its permits or its usage
///       level-dependent refill, windows of one length
///     any -> 7/s, 14/min, ... of gcra, whose words are full   its permits, if another slot is free; otherwise the time of its debt
///     another rate or burst with ban or borrow, or of a       the same
///       pacer; any -> another algorithm; quota -> any
///     any -> sliding window, sliding log                      its permits; the used ones may come back later
///
/// From and to sliding windows and sliding logs the table needs room (tollbar_table_options.room).
/// Without room the call returns TOLLBAR_E_MIXED_POLICIES, and with too little TOLLBAR_E_SLOT_ROOM.
/// Then the policy stays as it was. With TOLLBAR_KEEP_COUNT a key keeps the permits that it has
/// left, and all others count as used at its first request after the change. With TOLLBAR_KEEP_TIME
/// a window or log that a key comes to has none for it until its debt would have been paid; a
/// window counts by segments, and a log by up to a sixteenth of its period.
///
/// A limit of 0 keeps what keys had before it. With TOLLBAR_KEEP_RESET all keys without an override
/// begin anew, also if the policy is the current one. Such a call examines every slot, and so does
/// about one of a hundred other calls, because a table has room for some 250 versions of its
/// policies: it converts the keys that made no request since a former change, one after the other,
/// while requests go on.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_table_set_policy(
    table: *const tollbar_table,
    number: u32,
    spec: *const tollbar_policy_spec,
    keep: u32,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (table, policy) = unsafe { (reference(table)?, policy(spec)?) };
        let keep = keep_of(keep)?;
        table.table.set_policy_keeping(PolicyId::new(number), &policy, keep).map_err(table_code)?;
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Writes the current policy of that number to `out`.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_table_get_policy(
    table: *const tollbar_table,
    number: u32,
    out: *mut tollbar_policy_spec,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let table = unsafe { reference(table) }?;
        let policy = table.table.policy(PolicyId::new(number)).map_err(request_code)?;
        // SAFETY: by the caller's promise.
        unsafe { write(out, &spec_of(&policy)) }.map(|()| TOLLBAR_ALLOWED)
    })
}

/// Writes the table's counters and sizes to `out`.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_table_get_stats(
    table: *const tollbar_table,
    out: *mut tollbar_table_stats,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let table = &unsafe { reference(table) }?.table;
        let Stats {
            capacity,
            slots,
            bytes,
            keys,
            decisions: Counts { allowed, denied, never },
            inserted,
            reclaimed,
            vacated,
            resets,
            refused,
            inherited,
            untracked,
            evicted,
            retries,
            backward_steps,
            overrides,
            // tollbar_metrics prints them.
            reasons: _,
        } = table.stats();
        let stats = tollbar_table_stats {
            struct_size: 0,
            policies: table.policies(),
            capacity,
            slots,
            bytes,
            keys,
            inserted,
            reclaimed,
            vacated,
            resets,
            refused,
            inherited,
            untracked,
            evicted,
            retries,
            backward_steps,
            allowed,
            denied,
            never,
            overrides,
            room: u64::from(table.options().room),
        };
        // SAFETY: by the caller's promise.
        unsafe { write(out, &stats) }.map(|()| TOLLBAR_ALLOWED)
    })
}

/// Writes the table of a file to the disk, with the current time. After the machine's next start
/// the table goes on from that time. Call it at the end of a program, or regularly. As long as the
/// machine runs, nothing is lost without it.
///
/// # Safety
/// `table` is NULL or live.
#[no_mangle]
pub unsafe extern "C" fn tollbar_table_sync(table: *const tollbar_table) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        unsafe { reference(table) }?.table.sync().map_err(table_code)?;
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Examines every slot at `now_ns` (tollbar_table_now). Returns TOLLBAR_ALLOWED, or
/// TOLLBAR_E_SLOTS_INVALID if it finds an `unknown` or `duplicate` slot. The call writes `out` in
/// both cases.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_table_validate(
    table: *const tollbar_table,
    now_ns: u64,
    out: *mut tollbar_table_health,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let table = &unsafe { reference(table) }?.table;
        size_at(out)?;
        // SAFETY: by the caller's promise; size_at has checked it.
        unsafe { write_health(&table.validate(now_ns), out) }
    })
}

/// Empties each slot that names an unknown version of a policy. If two slots hold one key, it keeps
/// the slot that expires last and empties the other. It also frees policy records that a killed
/// process left unfinished. Call it only while no other thread or process uses the table, because
/// an emptied slot may have held a debt. Returns as tollbar_table_validate would have returned
/// before the repair.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_table_repair(
    table: *const tollbar_table,
    now_ns: u64,
    out: *mut tollbar_table_health,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let table = &unsafe { reference(table) }?.table;
        size_at(out)?;
        // SAFETY: by the caller's promise; size_at has checked it.
        unsafe { write_health(&table.repair(now_ns), out) }
    })
}

/// # Safety
/// `out` is writable and has a struct_size.
unsafe fn write_health(health: &Health, out: *mut tollbar_table_health) -> Result<i32, i32> {
    let &Health { vacant, waiting, expired, live, unknown, duplicate, claimed } = health;
    let value = tollbar_table_health {
        struct_size: 0,
        claimed: claimed as u32,
        vacant,
        waiting,
        expired,
        live,
        unknown,
        duplicate,
    };
    // SAFETY: by the caller's promise.
    unsafe { write(out, &value) }?;
    Ok(if health.is_sound() { TOLLBAR_ALLOWED } else { TOLLBAR_E_SLOTS_INVALID })
}
