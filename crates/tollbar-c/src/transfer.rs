//! Copies of tables.

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
    /// The library writes 0.
    pub reserved: u32,
    /// Keys with a debt that were copied.
    pub copied: u64,
    /// Keys with a debt that were not copied, because no slot was free for them or their version of
    /// a policy is unknown.
    pub lost: u64,
}

// SAFETY: repr(C), u32 first, u32 and u64 fields without holes.
unsafe impl Growable for tollbar_table_copy_result {
    const FIRST_SIZE: usize = 24;
}

const _: () = assert!(size_of::<tollbar_table_copy_result>() == 24);

/// Copies the debts of the keys of `from` at `now_ns` (tollbar_table_now) and the exempt keys into
/// `table`, for example to go on in a table of another size.
///
/// The call copies nothing and returns TOLLBAR_E_OTHER_OPTIONS if the tables have different seeds
/// (TOLLBAR_TABLE_HAS_SEED) or clocks, TOLLBAR_E_OTHER_POLICIES if `table` lacks the number of a
/// policy of `from`, and TOLLBAR_E_MIXED_POLICIES for a table of a sliding window or log without
/// room (tollbar_table_options.room).
///
/// If the policies of a number differ, a key lacks as many whole permits of the burst as before.
/// Partly repaid permits count as unpaid. (tollbar_table_set_policy keeps the number of permits
/// that a key has left instead.)
///
/// Both tables may be in use during the copy. Later charges in `from` reach `table` only by another
/// copy. If both tables have a key, the state that owes longer stays. A copied key never evicts
/// another, whatever `on_full` says. `out`, which may be NULL, counts keys without a slot as lost.
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
        let Copied { copied, lost } =
            table.table.copy_from(&from.table, now_ns).map_err(table_code)?;
        if !out.is_null() {
            let value = tollbar_table_copy_result { struct_size: 0, reserved: 0, copied, lost };
            // SAFETY: by the caller's promise; size_at has checked it.
            unsafe { write(out, &value) }?;
        }
        Ok(TOLLBAR_ALLOWED)
    })
}
