//! Tables that are there: their entries, policies, counters and health.

use super::boundary::*;
use super::policy::{describe, policy, tollbar_policy_spec};
use super::status::*;
use super::table::{table_code, tollbar_table};
use core::mem::size_of;
use tollbar::decision::Counts;
use tollbar::table::{Health, Keep, PolicyId, Stats};

/// One key of a table.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tollbar_table_entry {
    /// sizeof(tollbar_table_entry), as the caller's compiler sees it.
    pub struct_size: u32,
    /// The number of its policy.
    pub policy: u32,
    /// Its hash, which is all that the table knows of it (tollbar_table_hash).
    pub hash: u64,
    /// The state word.
    pub state: u64,
    /// Permits that could be taken.
    pub remaining: u64,
    /// Nanoseconds until it is as good as fresh; 0: it has expired.
    pub reset_after_ns: u64,
    /// The slot to go on with.
    pub next: u64,
}

// SAFETY: repr(C), u32 first, u32 and u64 fields without holes.
unsafe impl Growable for tollbar_table_entry {
    const FIRST_SIZE: usize = 48;
}

const _: () = assert!(size_of::<tollbar_table_entry>() == 48);

/// How far a sweep came, and what it saw.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tollbar_table_sweep_result {
    /// sizeof(tollbar_table_sweep_result), as the caller's compiler sees it.
    pub struct_size: u32,
    /// 1 if the sweep has come to the end of the table.
    pub done: u32,
    /// The slot to go on with; 0 at the end.
    pub next: u64,
    /// Keys that have a debt.
    pub live: u64,
    /// Slots that were made vacant.
    pub vacated: u64,
}

// SAFETY: repr(C), u32 first, u32 and u64 fields without holes.
unsafe impl Growable for tollbar_table_sweep_result {
    const FIRST_SIZE: usize = 32;
}

const _: () = assert!(size_of::<tollbar_table_sweep_result>() == 32);

/// Counters and sizes of a table: since it was made, of all processes. One that is killed may miss its
/// last.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tollbar_table_stats {
    /// sizeof(tollbar_table_stats), as the caller's compiler sees it.
    pub struct_size: u32,
    /// How many policies there are.
    pub policies: u32,
    /// The keys it was made for.
    pub capacity: u64,
    /// The slots it has.
    pub slots: u64,
    /// The bytes it takes.
    pub bytes: u64,
    /// Slots that hold a key, expired or not. After a reset a slot stays empty until its key's debt would have been paid; no key
    /// may take it until then, and it is not counted here. tollbar_table_validate counts such slots.
    pub keys: u64,
    /// Keys that were put into an empty or vacant slot.
    pub inserted: u64,
    /// Expired keys whose slot was given to another.
    pub reclaimed: u64,
    /// Slots that became vacant by a sweep or a reset.
    pub vacated: u64,
    /// Keys that were reset.
    pub resets: u64,
    /// Newcomers refused for want of a place, or by the debt that they would have taken over.
    pub refused: u64,
    /// Newcomers that took over a slot and its debt.
    pub inherited: u64,
    /// Newcomers admitted and not remembered.
    pub untracked: u64,
    /// Keys with a debt that were forgotten.
    pub evicted: u64,
    /// Swaps that were tried again because another thread came first.
    pub retries: u64,
    /// Requests that came with an older time than one before them, by a microsecond or more.
    pub backward_steps: u64,
    /// Decisions under all policies that were TOLLBAR_ALLOWED; see tollbar_table_get_counts.
    pub allowed: u64,
    /// Decisions under all policies that were TOLLBAR_DENIED.
    pub denied: u64,
    /// Decisions under all policies that were TOLLBAR_NEVER.
    pub never: u64,
}

// SAFETY: repr(C), u32 first, u32 and u64 fields without holes.
unsafe impl Growable for tollbar_table_stats {
    const FIRST_SIZE: usize = 144;
}

const _: () = assert!(size_of::<tollbar_table_stats>() == 144);

/// What is in a table's slots. The 64-bit numbers add up to those of its slots while no other thread or process uses the table.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tollbar_table_health {
    /// sizeof(tollbar_table_health), as the caller's compiler sees it.
    pub struct_size: u32,
    /// Records of policies that were begun and not finished.
    pub claimed: u32,
    /// Slots that hold no key and may be taken.
    pub vacant: u64,
    /// Slots that hold no key and may not be taken yet.
    pub waiting: u64,
    /// Keys that have expired.
    pub expired: u64,
    /// Keys with a debt.
    pub live: u64,
    /// Slots under a version of a policy that the table does not have: they are never given away.
    pub unknown: u64,
    /// Slots whose key is also in another slot.
    pub duplicate: u64,
}

// SAFETY: repr(C), u32 first, u32 and u64 fields without holes.
unsafe impl Growable for tollbar_table_health {
    const FIRST_SIZE: usize = 56;
}

const _: () = assert!(size_of::<tollbar_table_health>() == 56);

/// The key in the first slot from number `from` on that holds one, as of `now_ns`. Begin with 0, go on
/// with `next`. Returns TOLLBAR_YES, or TOLLBAR_NO if there are no more. Each entry is what its slot held at
/// one instant; keys that come or go meanwhile may be seen or not, or twice.
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

/// Makes slots vacant whose keys have expired by `now_ns`: `most` slots from number `from` on. The table does
/// without; it is for those who want to know how many keys have a debt.
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

/// Adds a policy while the table is in use, in all processes; `*number` is how requests name it.
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

/// `*number` is that of the first policy that equals this one in every field, which is added if there is none:
/// all that ask for the same policy at once get the same number.
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

/// When a table's policy changes, a key keeps its permits as a number: what it has left, up to the new burst. No
/// wait is longer than the new policy refills, and no refused key is admitted by the change.
pub const TOLLBAR_KEEP_COUNT: u32 = 0;
/// A key keeps its debt as the time until it is paid.
pub const TOLLBAR_KEEP_TIME: u32 = 1;

/// Changes a policy while the table is in use, in all processes at once. Each key is carried over when it is next
/// asked for, and keeps what `keep`, a TOLLBAR_KEEP_ number, says; windows of one length keep what has been used.
/// In a time with one change no more is admitted than the two policies' bounds together; with several, than those
/// of all. A key that would expire sooner takes another slot, and where all its places are taken it keeps the time
/// of its debt. Once in some hundred changes this call looks at every slot.
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
        let keep = match keep {
            TOLLBAR_KEEP_COUNT => Keep::Count,
            TOLLBAR_KEEP_TIME => Keep::Time,
            _ => return Err(TOLLBAR_E_OUT_OF_RANGE),
        };
        table.table.set_policy_keeping(PolicyId::new(number), &policy, keep).map_err(table_code)?;
        Ok(TOLLBAR_ALLOWED)
    })
}

/// The policy of that number as it is now.
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
        let policy = table.table.policy(PolicyId::new(number)).map_err(table_code)?;
        // SAFETY: by the caller's promise.
        unsafe { write(out, &describe(&policy)) }.map(|()| TOLLBAR_ALLOWED)
    })
}

/// Counters and sizes.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_table_get_stats(table: *const tollbar_table, out: *mut tollbar_table_stats) -> i32 {
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
        };
        // SAFETY: by the caller's promise.
        unsafe { write(out, &stats) }.map(|()| TOLLBAR_ALLOWED)
    })
}

/// Writes a file's table to the disk, and the time with it, from which it goes on after the machine's next
/// start. For the end of a program or now and then; as long as the machine runs nothing is lost without.
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

/// Looks at every slot, as of `now_ns` (tollbar_table_now). Returns TOLLBAR_ALLOWED, or TOLLBAR_E_SLOTS_INVALID if
/// there is anything to repair; `out` is filled in either way.
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
        unsafe { tell(&table.validate(now_ns), out) }
    })
}

/// Empties each slot that names an unknown version of a policy. If two slots hold one key, it keeps the slot that expires last and
/// empties the other. It also frees policy records that a killed process left unfinished. Call it only while no other thread or process
/// uses the table, because an emptied slot may have held a debt. Returns as tollbar_table_validate would have returned before the repair.
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
        unsafe { tell(&table.repair(now_ns), out) }
    })
}

/// # Safety
/// `out` is writable and has a struct_size.
unsafe fn tell(health: &Health, out: *mut tollbar_table_health) -> Result<i32, i32> {
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
