//! The open receipts of a table, whose charges can still get permits back.
//!
//! Receipt number `n` has the place `n mod RECEIPTS` until a caller settles it or a later receipt
//! takes the place. The place of an open receipt holds a word that no other receipt has:
//!
//! ```text
//! 1 : check 31 : number 32        check: bits that depend on the key, the time of the charge and the version of the policy
//! ```
//!
//! A caller settles the receipt by swapping the word for 0. Only one caller can, whichever copy of
//! the receipt it has.

use crate::sync::{AtomicU64, Ordering};

/// The most receipts that can be open at one time.
pub(crate) const RECEIPTS: usize = if cfg!(loom) { 2 } else { 8184 };

/// The bit that every open receipt has in its place.
const OPEN: u64 = 1 << 63;

/// The open receipts.
#[repr(C)]
pub(crate) struct Receipts {
    /// The number of the next receipt.
    next: AtomicU64,
    spare: [AtomicU64; 7],
    /// A word for each place that identifies its open receipt, or 0 if the receipt has been
    /// settled.
    places: [AtomicU64; RECEIPTS],
}

impl Receipts {
    /// No receipt.
    #[cfg(loom)]
    pub(crate) fn new() -> Receipts {
        let zero = |_| AtomicU64::new(0);
        Receipts {
            next: AtomicU64::new(0),
            spare: core::array::from_fn(zero),
            places: core::array::from_fn(zero),
        }
    }

    /// Opens a receipt with 31 bits of `check`, and returns its number.
    pub(crate) fn open(&self, check: u64) -> u32 {
        // Relaxed: no other data depends on the number. This call writes the place before its
        // caller has the receipt, and a caller that passes the receipt to another thread orders
        // that.
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        if let Some(place) = self.place(number) {
            // A slow call for an older receipt may overwrite the place after this call. Then no
            // call can settle this receipt, and its unused permits do not go back. Relaxed: the
            // word stands for itself.
            place.store(word(check, number as u32), Ordering::Relaxed);
        }
        number as u32
    }

    /// Closes the receipt with this check and number. Returns whether it was open. If the process
    /// is killed after this, the unused permits do not go back.
    pub(crate) fn close(&self, check: u64, number: u32) -> bool {
        // A receipt has 32 bits of its number. The whole number is the latest one with these bits.
        let next = self.next.load(Ordering::Relaxed);
        let whole = next.wrapping_sub(u64::from((next as u32).wrapping_sub(number)));
        let Some(place) = self.place(whole) else { return false };
        // Relaxed: one swap succeeds, and its caller reads the state that it lowers afterwards.
        place.compare_exchange(word(check, number), 0, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    fn place(&self, number: u64) -> Option<&AtomicU64> {
        self.places.get((number % RECEIPTS as u64) as usize)
    }
}

/// The word of an open receipt in its place.
fn word(check: u64, number: u32) -> u64 {
    OPEN | check << 32 | u64::from(number)
}
