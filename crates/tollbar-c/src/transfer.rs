//! From one table into another.

use super::boundary::*;
use super::status::*;
use super::table::{table_code, tollbar_table};
use core::mem::size_of;
use tollbar::table::Copied;

/// The result of tollbar_table_copy.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tollbar_table_copy_result {
    /// sizeof(tollbar_table_copy_result), as the caller's compiler sees it.
    pub struct_size: u32,
    /// 0.
    pub reserved: u32,
    /// Keys with a debt that the table has now.
    pub copied: u64,
    /// Keys with a debt that were not copied: no slot was free for them, or their version is unknown.
    pub lost: u64,
}

// SAFETY: repr(C), u32 first, u32 and u64 fields without holes.
unsafe impl Growable for tollbar_table_copy_result {
    const FIRST_SIZE: usize = 24;
}

const _: () = assert!(size_of::<tollbar_table_copy_result>() == 24);

/// Copies what the keys of `from` owe at `now_ns` (tollbar_table_now) into `table`, and who is exempt: to go on in a
/// table of another size.
///
/// Both have the same seed (TOLLBAR_TABLE_HAS_SEED) and clock, or it is TOLLBAR_E_OTHER_OPTIONS; `table` has a policy of each
/// number that `from` has, or it is TOLLBAR_E_OTHER_POLICIES; and none is a sliding window or log, or it is
/// TOLLBAR_E_MIXED_POLICIES. Then nothing has been copied.
///
/// Where the policy of a number is another one, a key has as many permits less than a fresh one as it had before; what has
/// been paid of a permit is lost. (tollbar_table_set_policy keeps what a key has left instead.)
///
/// Both may be in use meanwhile. What `from` is charged later is not in `table`, until it is copied again: of a key that is in
/// both, the state that owes longer stays. A copied key evicts no other, whatever `on_full` says; `out`, which may
/// be NULL, counts it as lost.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_table_copy(
    table: *const tollbar_table,
    from: *const tollbar_table,
    now_ns: u64,
    out: *mut tollbar_table_copy_result,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (table, from) = unsafe { (reference(table)?, reference(from)?) };
        if !out.is_null() {
            size_at(out)?;
        }
        let Copied { copied, lost } = table.table.copy_from(&from.table, now_ns).map_err(table_code)?;
        if !out.is_null() {
            let told = tollbar_table_copy_result { struct_size: 0, reserved: 0, copied, lost };
            // SAFETY: by the caller's promise; size_at has checked it.
            unsafe { write(out, &told) }?;
        }
        Ok(TOLLBAR_ALLOWED)
    })
}
