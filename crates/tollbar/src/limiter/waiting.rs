//! Sleeping for permits, by a bounded number of callers.

use super::Shared;
use crate::clock::Clock;
use crate::decision::{Decision, Reason, Verdict};
use crate::sync::{AtomicU32, CachePadded, Ordering};

/// The number of callers that sleep, and the most that may.
#[derive(Debug)]
pub(super) struct Waiters {
    asleep: CachePadded<AtomicU32>,
    most: u32,
}

/// A caller's place among the sleepers. Dropping it gives the place back.
struct Place<'a>(&'a Waiters);

impl Waiters {
    pub(super) fn new(most: u32) -> Waiters {
        Waiters { asleep: CachePadded::new(AtomicU32::new(0)), most }
    }

    pub(super) fn asleep(&self) -> u32 {
        self.asleep.load(Ordering::Relaxed)
    }

    /// Takes a place; `None` if all are taken. It is a compare-and-swap and not an addition that is taken back,
    /// so that a refused caller is never counted. Relaxed: the number publishes no other data.
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
        // `retry` is `None` if the request was admitted, and if waiting does not help (a limit of 0).
        if decision.retry().map_or(true, |wait| now.saturating_add(wait) > deadline) {
            return decision;
        }
        // The request could pass in time. The caller takes a place before it books, so that nothing is booked
        // for a caller that is refused.
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
        // `None`: others have booked in between, and the request does not fit any more. The next round answers
        // so.
        let Some(at) = shared.reserve_at(now, cost, deadline) else { continue };
        clock.sleep_until(at);
        let now = clock.now();
        return Decision { verdict: Verdict::Allowed, retry_after: 0, ..shared.peek_at(now, 0) };
    }
}
