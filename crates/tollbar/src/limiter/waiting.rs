//! Sleeping for permits, by a bounded number of callers.

use super::{Limiter, Shared};
use crate::clock::Clock;
use crate::decision::{Decision, Reason, Verdict};
use crate::sync::{AtomicU64, CachePadded, Ordering};
use core::convert::Infallible;

/// The most callers that sleep at one time, unless the caller says otherwise.
pub(crate) const WAITERS: u32 = 1024;

/// The number of callers that sleep, and the most that may.
#[derive(Debug)]
pub(crate) struct Waiters {
    /// The process's number in the upper half, and the number of its sleeping callers in the lower half. A forked child has a copy of the word, and none of
    /// the sleepers. It sees that the process's number is not its own.
    asleep: CachePadded<AtomicU64>,
    most: u32,
}

/// A caller's place among the sleepers. Dropping it gives the place back.
pub(crate) struct Place<'a>(&'a Waiters);

impl Waiters {
    pub(crate) fn new(most: u32) -> Waiters {
        Waiters { asleep: CachePadded::new(AtomicU64::new(0)), most }
    }

    pub(crate) fn asleep(&self) -> u32 {
        in_process(self.asleep.load(Ordering::Relaxed), process()) as u32
    }

    /// Takes a place. `None` if all are taken. A compare-and-swap never counts a refused caller, which an addition that is undone would do for a moment.
    /// Relaxed: the number publishes no other data.
    pub(crate) fn enter(&self) -> Option<Place<'_>> {
        let process = process();
        let mut seen = self.asleep.load(Ordering::Relaxed);
        loop {
            let asleep = in_process(seen, process);
            if asleep >= u64::from(self.most) {
                return None;
            }
            match self.asleep.compare_exchange_weak(seen, process | (asleep + 1), Ordering::Relaxed, Ordering::Relaxed)
            {
                Ok(_) => return Some(Place(self)),
                Err(other) => seen = other,
            }
        }
    }
}

/// The number of this process, in the upper half of a word. Without a Unix there is one process.
fn process() -> u64 {
    #[cfg(all(unix, not(loom)))]
    // SAFETY: getpid has no preconditions.
    return (unsafe { libc::getpid() } as u64) << 32;
    #[cfg(not(all(unix, not(loom))))]
    return 1 << 32;
}

/// How many callers of `process` sleep by that word.
fn in_process(word: u64, process: u64) -> u64 {
    match word >> 32 == process >> 32 {
        true => word & u64::from(u32::MAX),
        false => 0,
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.asleep.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The permits that [`wait`] waits for: those of a limiter, or of a table's key.
pub(crate) trait Permits {
    type Error;

    /// Takes the permits now, or returns the time to wait.
    fn check(&self, now: u64, cost: u64) -> Result<Decision, Self::Error>;

    /// [`Permits::check`] for a caller that will wait until `deadline`. If the permits come by then, the call records no refusal, because a refusal could
    /// lead to a ban.
    fn try_until(&self, now: u64, cost: u64, deadline: u64) -> Result<Decision, Self::Error>;

    /// Books the permits for the earliest instant; `None` if that is after `until`.
    fn book(&self, now: u64, cost: u64, until: u64) -> Result<Option<u64>, Self::Error>;

    /// Whether [`Permits::book`] works.
    fn books_ahead(&self) -> Result<bool, Self::Error>;
}

impl<S: Shared, C: Clock> Permits for Limiter<S, C> {
    type Error = Infallible;

    fn check(&self, now: u64, cost: u64) -> Result<Decision, Infallible> {
        Ok(self.shared().check_at(now, cost))
    }

    fn try_until(&self, now: u64, cost: u64, deadline: u64) -> Result<Decision, Infallible> {
        if self.shared().counts_refusals() {
            let decision = self.shared().peek_at(now, cost);
            if decision.verdict == Verdict::Denied && in_time(&decision, now, deadline) {
                return Ok(decision);
            }
        }
        Ok(self.shared().check_at(now, cost))
    }

    fn book(&self, now: u64, cost: u64, until: u64) -> Result<Option<u64>, Infallible> {
        Ok(self.shared().reserve_at(now, cost, until))
    }

    fn books_ahead(&self) -> Result<bool, Infallible> {
        Ok(self.shared().books_ahead())
    }
}

/// Whether a refused request could pass by `deadline`. False for an admitted request, and if no wait helps (a limit of 0).
pub(crate) fn in_time(decision: &Decision, now: u64, deadline: u64) -> bool {
    decision.retry().is_some_and(|wait| now.saturating_add(wait) <= deadline)
}

/// Takes permits, and sleeps for them until `deadline` at the latest. The decision describes the instant of the return.
pub(crate) fn wait<P: Permits, C: Clock>(
    permits: &P,
    clock: &C,
    waiters: &Waiters,
    cost: u64,
    deadline: u64,
) -> Result<Decision, P::Error> {
    let mut place = None;
    loop {
        let now = clock.now();
        let decision = permits.try_until(now, cost, deadline)?;
        if !in_time(&decision, now, deadline) {
            return Ok(decision);
        }
        // The request could pass in time. The caller takes a place before it books, so that nothing is booked
        // for a caller that is refused.
        if place.is_none() {
            place = waiters.enter();
        }
        if place.is_none() {
            return Ok(decision.because(Reason::QueueFull));
        }
        if !permits.books_ahead()? {
            clock.sleep_until(now.saturating_add(decision.retry_after));
            continue;
        }
        // `None`: other callers have booked meanwhile, and the permits would come too late. The next round refuses the request.
        let Some(at) = permits.book(now, cost, deadline)? else { continue };
        clock.sleep_until(at);
        let after = permits.check(clock.now(), 0)?;
        return Ok(Decision { verdict: Verdict::Allowed, reason: Reason::Admitted, retry_after: 0, ..after });
    }
}
