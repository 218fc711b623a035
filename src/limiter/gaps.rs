//! Departures that cancelled bookings have left between others.
//!
//! A booking in the middle cannot be given back: those after it keep their departures. So its
//! departure stays booked, as a *gap*, until
//!
//! - another caller books as many permits, and takes the gap instead of a departure after all
//!   others: no departure and no charge changes;
//! - or all bookings after it are given back. Then it is the last one, and is given back, too;
//! - or its time has come.
//!
//! A gap changes no decision. If there is no room for another, the caller gives back what is safe
//! at once, which is mostly nothing.

use crate::algorithm::Charge;
use crate::sync::{boxed, fence, AtomicPtr, Ordering, TwoWords, Written};
use alloc::boxed::Box;
use core::ptr;

/// The most gaps of one limiter.
const MOST: usize = if cfg!(loom) { 2 } else { 64 };

/// The gaps of a limiter. The first one allocates their memory, 1 KiB.
#[derive(Debug)]
pub(super) struct Gaps(AtomicPtr<Places>);

/// The time and the cost of each gap. A place without one holds 0 and 0.
#[derive(Debug)]
struct Places([TwoWords; MOST], Written);

const FREE: (u64, u64) = (0, 0);

impl Default for Gaps {
    fn default() -> Gaps {
        Gaps(AtomicPtr::new(ptr::null_mut()))
    }
}

impl Gaps {
    /// Whether there has been a gap.
    #[inline]
    pub(super) fn exist(&self) -> bool {
        // Relaxed: a call that reads null books after all others, as one that came before the first
        // gap.
        !self.0.load(Ordering::Relaxed).is_null()
    }

    /// Keeps a cancelled booking as a gap. False if there is no memory or no room. Gaps that have
    /// passed by `now` make room.
    pub(super) fn keep(&self, gap: Charge, now: u64) -> bool {
        let Some(places) = self.places().or_else(|| self.make()) else { return false };
        places.0.iter().any(|place| {
            let found = read(place);
            (found == FREE || found.0 <= now) && place.swap(found, (gap.at, gap.cost)).is_ok()
        })
    }

    /// Takes the earliest gap of `cost` permits from `now` on, if it is before `other`.
    pub(super) fn take_earliest(&self, now: u64, cost: u64, other: u64) -> Option<u64> {
        self.take(|at, permits| at >= now && permits == cost && at < other, |at, best| at < best)
            .map(|gap| gap.at)
    }

    /// Takes the latest gap after `now`.
    pub(super) fn take_latest(&self, now: u64) -> Option<Charge> {
        self.take(|at, _| at > now, |at, best| at > best)
    }

    /// The permits of all gaps from `now` on.
    pub(super) fn permits(&self, now: u64) -> u64 {
        let of = |place| match read(place) {
            (at, permits) if at >= now => permits,
            _ => 0,
        };
        self.places().map_or(0, |places| places.0.iter().map(of).fold(0, u64::saturating_add))
    }

    /// Forgets all gaps: their bookings are no longer in the state.
    pub(super) fn forget(&self) {
        for place in self.places().iter().flat_map(|places| &places.0) {
            // If the swap fails, another call has taken or put a gap.
            let _ = place.swap(read(place), FREE);
        }
    }

    /// Takes that gap which `is_wanted`, and which no other such gap `precedes`.
    fn take(
        &self,
        is_wanted: impl Fn(u64, u64) -> bool,
        precedes: fn(u64, u64) -> bool,
    ) -> Option<Charge> {
        // The caller has changed the state before, and a call that keeps a gap looks at the state
        // afterwards: one of the two sees the other.
        fence(Ordering::SeqCst);
        let places = self.places()?;
        // Another try after a failed swap, as often as there are places.
        for _ in 0..MOST {
            let mut best: Option<(&TwoWords, (u64, u64))> = None;
            for place in &places.0 {
                let found = read(place);
                let is_better = best.map_or(true, |(_, best)| precedes(found.0, best.0));
                if found != FREE && is_wanted(found.0, found.1) && is_better {
                    best = Some((place, found));
                }
            }
            let (place, found) = best?;
            if place.swap(found, FREE).is_ok() {
                return Some(Charge { at: found.0, cost: found.1 });
            }
        }
        None
    }

    fn places(&self) -> Option<&Places> {
        // Acquire: the places were made before the pointer was published.
        // SAFETY: null, or from `Box::into_raw` and freed only when `self` is dropped.
        let places = unsafe { self.0.load(Ordering::Acquire).as_ref() }?;
        places.1.is_read();
        Some(places)
    }

    #[cold]
    fn make(&self) -> Option<&Places> {
        let made = Box::into_raw(boxed(Places(
            core::array::from_fn(|_| TwoWords::default()),
            Written::new(),
        ))?);
        // Release: publishes the places. Relaxed on failure: the pointer is loaded again below.
        if self
            .0
            .compare_exchange(ptr::null_mut(), made, Ordering::Release, Ordering::Relaxed)
            .is_err()
        {
            // SAFETY: from `Box::into_raw` above, and no other thread has seen it.
            drop(unsafe { Box::from_raw(made) });
        }
        self.places()
    }
}

impl Drop for Gaps {
    fn drop(&mut self) {
        // Relaxed: the drop has the only reference to `self`.
        let places = self.0.load(Ordering::Relaxed);
        if !places.is_null() {
            // SAFETY: from `Box::into_raw`, and no other thread has `self` any more.
            drop(unsafe { Box::from_raw(places) });
        }
    }
}

/// The words of a place, perhaps of two instants. A swap from words that were never there together
/// fails.
fn read(place: &TwoWords) -> (u64, u64) {
    // Relaxed: a swap compares both.
    (
        crate::sync::Word::load(place.first(), Ordering::Relaxed),
        place.load_second(Ordering::Relaxed),
    )
}
