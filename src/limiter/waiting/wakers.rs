//! The wakers of the callers that wait in futures.
//!
//! A waker may run any code, such as a poll of the future that it wakes, and that poll takes the
//! list's lock. So the holder of the lock collects wakers, and wakes them after it has released the
//! lock.

use super::lock::LockGuard;
#[cfg(feature = "std")]
use alloc::vec::Vec;
#[cfg(feature = "std")]
use core::cell::{RefCell, UnsafeCell};
use core::task::Waker;

/// The waker of a caller in a future. A caller that sleeps in a thread has none. Without `std`
/// there are no futures, and the place holds nothing.
#[derive(Debug, Default)]
pub(super) struct WakerPlace(#[cfg(feature = "std")] UnsafeCell<Option<Waker>>);

// SAFETY: both methods need the guard of the list's lock, so one thread at a time uses the cell.
// `Waker` is `Send`.
#[cfg(feature = "std")]
unsafe impl Sync for WakerPlace {}

impl WakerPlace {
    /// Keeps a waker in the place of the former one.
    pub(super) fn keep(&self, waker: Option<&Waker>, _: &LockGuard<'_>) {
        #[cfg(feature = "std")]
        {
            // SAFETY: the caller holds the list's lock, so no other thread uses the cell, and no
            // borrow of it outlives a method.
            unsafe { *self.0.get() = waker.cloned() };
        }
        #[cfg(not(feature = "std"))]
        let _ = waker;
    }

    #[cfg(feature = "std")]
    fn take(&self, _: &LockGuard<'_>) -> Option<Waker> {
        // SAFETY: as in `keep`.
        unsafe { (*self.0.get()).take() }
    }
}

/// Wakers that are woken when this is dropped.
#[derive(Default)]
pub(super) struct Woken(#[cfg(feature = "std")] RefCell<Vec<Waker>>);

impl Woken {
    /// Collects the waker of that place. False if there is none.
    pub(super) fn add(&self, place: &WakerPlace, guard: &LockGuard<'_>) -> bool {
        #[cfg(feature = "std")]
        if let Some(waker) = place.take(guard) {
            self.0.borrow_mut().push(waker);
            return true;
        }
        let _ = (place, guard);
        false
    }
}

#[cfg(feature = "std")]
impl Drop for Woken {
    fn drop(&mut self) {
        self.0.take().into_iter().for_each(Waker::wake);
    }
}
