//! The keys that a table refuses most.

use super::boundary::*;
use super::status::*;
use super::table::tollbar_table;
use core::mem::size_of;
use tollbar::internal::sync::filled;
use tollbar::table::{Refused, TEXT_MOST};

/// The bytes of a refused key that a table keeps.
pub const TOLLBAR_REFUSED_KEY: usize = 48;
/// The most refused keys of a table.
pub const TOLLBAR_REFUSED_MOST: usize = 224;

/// A key that a table has refused.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tollbar_table_refused {
    /// sizeof(tollbar_table_refused), as the caller's compiler sees it.
    pub struct_size: u32,
    /// The number of the policy under which the table refused the key.
    pub policy: u32,
    /// About the number of refusals in the last two minutes.
    pub count: u64,
    /// The number of bytes in `key`.
    pub length: u32,
    /// TOLLBAR_YES if the key is longer, otherwise TOLLBAR_NO.
    pub is_cut: u32,
    /// The key's first bytes. No NUL follows them.
    pub key: [u8; TOLLBAR_REFUSED_KEY],
}

// SAFETY: repr(C), u32 first, u32 and u64 fields and bytes without holes.
unsafe impl Growable for tollbar_table_refused {
    const FIRST_SIZE: usize = 72;
}

const _: () = assert!(size_of::<tollbar_table_refused>() == 72 && TOLLBAR_REFUSED_KEY == TEXT_MOST);

/// Sets whether requests record the keys that they refuse, in all processes of the table: any other
/// number than 0 begins it, 0 ends it. No table records them at first. While it does, the first 48
/// bytes of refused keys are in the table's memory, which otherwise holds hashes alone; a check
/// costs as much as in a table with exempt keys; a refusal also hashes the key again and searches a
/// cache line; and threads take no credit of hot keys.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_table_record_refusals(
    table: *const tollbar_table,
    on: u32,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        unsafe { reference(table) }?.table.record_refusals(on != 0);
        Ok(TOLLBAR_ALLOWED)
    })
}

/// Returns TOLLBAR_YES if requests record the keys that they refuse, otherwise TOLLBAR_NO.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_table_records_refusals(table: *const tollbar_table) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let table = unsafe { reference(table)? };
        Ok(if table.table.records_refusals() { TOLLBAR_YES } else { TOLLBAR_NO })
    })
}

/// Writes the keys that requests were refused most, by `now`, to `refused`, the most refused first,
/// and their number to `count`. `refused` points to `most` structs of the first one's
/// `struct_size`. The counts are of the last minute or two: each is halved every 68.7 s. They are
/// not exact, and a key with few refusals may be missing. The call reads 14 KiB of the table, and
/// allocates up to 14 KiB for as long as it runs.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_table_top_refused(
    table: *const tollbar_table,
    now: u64,
    refused: *mut tollbar_table_refused,
    most: usize,
    count: *mut usize,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (table, count) = unsafe { (reference(table)?, place(count)?) };
        if most == 0 {
            count.write(0);
            return Ok(TOLLBAR_ALLOWED);
        }
        let size = size_at(refused)?;
        let mut top =
            filled(most.min(TOLLBAR_REFUSED_MOST), Refused::NONE).ok_or(TOLLBAR_E_NO_MEMORY)?;
        let length = table.table.top_refused_at(now, &mut top);
        for (n, from) in top.iter().take(length).enumerate() {
            // SAFETY: `n` is below `most`, and the caller's array has `most` structs of this size.
            unsafe { write_element(refused.byte_add(n * size), size, &described(from)) };
        }
        count.write(length);
        Ok(TOLLBAR_ALLOWED)
    })
}

fn described(from: &Refused) -> tollbar_table_refused {
    let mut key = [0; TOLLBAR_REFUSED_KEY];
    key.iter_mut().zip(from.key()).for_each(|(to, from)| *to = *from);
    tollbar_table_refused {
        struct_size: 0,
        policy: from.policy.number(),
        count: from.count,
        length: from.key().len() as u32,
        is_cut: if from.is_cut { TOLLBAR_YES as u32 } else { TOLLBAR_NO as u32 },
        key,
    }
}
