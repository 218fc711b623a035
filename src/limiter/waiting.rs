//! Sleeping for permits, by a bounded number of callers.

use super::Shared;
use crate::clock::Clock;
use crate::decision::{Decision, Reason, Verdict};
use crate::sync::{AtomicU32, CachePadded, Ordering};

/// How many callers sleep, and how many may.
#[derive(Debug)]
pub(super) struct Waiters {
    asleep: CachePadded<AtomicU32>,
    most: u32,
}

/// A place among the sleepers; leaving is dropping it.
struct Place<'a>(&'a Waiters);

impl Waiters {
    pub(super) fn new(most: u32) -> Waiters {
        Waiters { asleep: CachePadded::new(AtomicU32::new(0)), most }
    }

    pub(super) fn asleep(&self) -> u32 {
        self.asleep.load(Ordering::Relaxed)
    }

    /// A compare-and-swap, not an addition to be taken back: a refused caller never counts, not even
    /// for a moment. Relaxed: the number is all there is to agree on.
    fn enter(&self) -> Option<Place<'_>> {
        let mut asleep = self.asleep.load(Ordering::Relaxed);
        while asleep < self.most {
            match self.asleep.compare_exchange_weak(asleep, asleep + 1, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Some(Place(self)),
                Err(seen) => asleep = seen,
            }
        }
        None
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.asleep.fetch_sub(1, Ordering::Relaxed);
    }
}

pub(super) fn wait<S: Shared, C: Clock>(
    shared: &S,
    clock: &C,
    waiters: &Waiters,
    cost: u64,
    deadline: u64,
) -> Decision {
    let mut place = None;
    loop {
        let now = clock.now();
        let decision = shared.check_at(now, cost);
        // `None` too where waiting would not help (a limit of 0): that is later than any deadline.
        if decision.retry().map_or(true, |wait| now.saturating_add(wait) > deadline) {
            return decision;
        }
        // It could pass in time. A place first, so that nothing is booked for a caller that is refused.
        if place.is_none() {
            place = waiters.enter();
        }
        if place.is_none() {
            return decision.because(Reason::QueueFull);
        }
        if !shared.books_ahead() {
            clock.sleep_until(now.saturating_add(decision.retry_after));
            continue;
        }
        // `None`: others booked in between and it does not fit any more; look again to say so.
        let Some(at) = shared.reserve_at(now, cost, deadline) else { continue };
        clock.sleep_until(at);
        let now = clock.now();
        return Decision { verdict: Verdict::Allowed, retry_after: 0, ..shared.peek_at(now, 0) };
    }
}
