//! Sleeping for permits, by a bounded number of callers, who get them in the order in which they
//! came ([`line`]).

mod line;
mod lock;
#[cfg(all(test, loom))]
mod models;
mod permits;
#[cfg(all(test, not(loom)))]
pub(crate) mod tests;
#[cfg(feature = "std")]
mod until;
mod wakers;

#[cfg(feature = "std")]
pub(crate) use until::until;

pub(crate) use permits::{after_first, last_by_peeks, last_by_steps, Permits};

use crate::clock::Clock;
use crate::decision::{Decision, Reason, Verdict};
use crate::sync::{AtomicU64, CachePadded, Ordering};
use crate::units::NEVER;
use line::{Seat, Waiter, WaiterAction, WaiterList};
use lock::process;
use permits::in_time;

/// The most callers that sleep at one time, unless the caller says otherwise.
pub(crate) const WAITERS: u32 = 1024;

/// The number of callers that sleep, and the most that may.
#[derive(Debug)]
pub(crate) struct Waiters {
    /// The process's number in the upper half, and the number of its sleeping callers in the lower
    /// half. A forked child has a copy of the word, and none of the sleepers. It sees that the
    /// process's number is not its own.
    asleep: CachePadded<AtomicU64>,
    most: u32,
}

/// A caller's place among the sleepers. Dropping it gives the place back.
pub(crate) struct SleeperPlace<'a>(&'a Waiters);

impl Waiters {
    pub(crate) fn new(most: u32) -> Waiters {
        Waiters { asleep: CachePadded::new(AtomicU64::new(0)), most }
    }

    pub(crate) fn asleep(&self) -> u32 {
        in_process(self.asleep.load(Ordering::Relaxed), process()) as u32
    }

    /// Takes a place. `None` if all are taken. A compare-and-swap never counts a refused caller,
    /// which an addition that is undone would do for a moment. Relaxed: the number publishes no
    /// other data.
    pub(crate) fn enter(&self) -> Option<SleeperPlace<'_>> {
        let process = process();
        let mut seen = self.asleep.load(Ordering::Relaxed);
        loop {
            let asleep = in_process(seen, process);
            if asleep >= u64::from(self.most) {
                return None;
            }
            match self.asleep.compare_exchange_weak(
                seen,
                process | (asleep + 1),
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Some(SleeperPlace(self)),
                Err(other) => seen = other,
            }
        }
    }
}

/// How many callers of `process` sleep by that word.
fn in_process(word: u64, process: u64) -> u64 {
    match word >> 32 == process >> 32 {
        true => word & u64::from(u32::MAX),
        false => 0,
    }
}

impl Drop for SleeperPlace<'_> {
    fn drop(&mut self) {
        self.0.asleep.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The queues of a limiter, or of the keys of a table: each queue is in one of `N` lists.
#[derive(Debug)]
pub(crate) struct WaiterQueues<const N: usize> {
    waiters: Waiters,
    lists: [WaiterList; N],
}

impl<const N: usize> WaiterQueues<N> {
    pub(crate) fn new(most: u32) -> WaiterQueues<N> {
        WaiterQueues {
            waiters: Waiters::new(most),
            lists: core::array::from_fn(|_| WaiterList::default()),
        }
    }

    /// Sets the most callers that may sleep. Only before the first one does.
    pub(crate) fn set_most(&mut self, most: u32) {
        self.waiters.most = most;
    }

    pub(crate) fn asleep(&self) -> u32 {
        self.waiters.asleep()
    }

    fn list(&self, queue: u64) -> &WaiterList {
        &self.lists[queue as usize % N]
    }
}

/// Takes permits, and sleeps for them until `deadline` at the latest, in the queue of that number.
/// The decision describes the instant of the return.
pub(crate) fn wait<P: Permits, C: Clock, const N: usize>(
    permits: &P,
    clock: &C,
    queues: &WaiterQueues<N>,
    queue: u64,
    cost: u64,
    deadline: u64,
) -> Result<Decision, P::Error> {
    let now = clock.now();
    if let Some(decision) = decide(permits, queues, queue, now, cost, deadline)? {
        return Ok(decision);
    }
    // The request could pass in time. The caller takes a place before it joins the queue, so that
    // nothing is booked for a caller that is refused.
    let Some(_place) = queues.waiters.enter() else {
        return crowded(permits, now, cost, deadline);
    };
    let waiter = Waiter::new(queue, cost, deadline);
    let seat = Seat::new(queues.list(queue), &waiter, permits);
    let mut action = seat.join(now, None)?;
    if let WaiterAction::Refused(at) = action {
        return late(permits, now, cost, at);
    }
    loop {
        action = match action {
            WaiterAction::Admitted => return admitted(permits, clock.now()),
            WaiterAction::Refused(at) => return late(permits, clock.now(), cost, at),
            WaiterAction::Until(at) => {
                clock.sleep_until_rung(at, waiter.bell());
                seat.action(clock.now(), None)?
            }
        };
    }
}

/// The decision on a caller that need not wait, or waits in vain. `None` for a caller whose permits
/// come by its deadline if it joins the queue.
fn decide<P: Permits, const N: usize>(
    permits: &P,
    queues: &WaiterQueues<N>,
    queue: u64,
    now: u64,
    cost: u64,
    deadline: u64,
) -> Result<Option<Decision>, P::Error> {
    if cost == 0 || queues.asleep() == 0 || !queues.list(queue).anybody(queue) {
        let decision = permits.try_until(now, cost, deadline)?;
        return Ok(Some(decision).filter(|decision| !in_time(decision, now, deadline)));
    }
    // Permits that are there belong to the callers that wait.
    let decision = permits.ask(now, cost, deadline)?;
    match decision.is_allowed() || in_time(&decision, now, deadline) {
        true => Ok(None),
        // A refusal may count toward a ban.
        false => permits.check(now, cost).map(Some),
    }
}

/// The decision on a caller that got its permits by `now`.
fn admitted<P: Permits>(permits: &P, now: u64) -> Result<Decision, P::Error> {
    let after = permits.check(now, 0)?;
    Ok(Decision { verdict: Verdict::Allowed, reason: Reason::Admitted, retry_after: 0, ..after })
}

/// The refusal of a caller that found all places of sleepers taken.
fn crowded<P: Permits>(
    permits: &P,
    now: u64,
    cost: u64,
    deadline: u64,
) -> Result<Decision, P::Error> {
    let decision = permits.ask(now, cost, deadline)?;
    Ok(refused(decision, decision.retry_after).because(Reason::QueueFull))
}

/// The refusal of a caller whose permits would come at `at`, after its deadline.
fn late<P: Permits>(permits: &P, now: u64, cost: u64, at: u64) -> Result<Decision, P::Error> {
    let mut decision = permits.peek(now, cost)?;
    if decision.verdict == Verdict::Denied && permits.counts_refusals()? {
        decision = permits.check(now, cost)?;
        if decision.is_allowed() {
            return Ok(decision);
        }
    }
    let wait = if at == NEVER { NEVER } else { at.saturating_sub(now) };
    Ok(match decision.verdict {
        // The permits are for the callers that wait.
        Verdict::Allowed => refused(decision, wait).because(Reason::Rate),
        Verdict::Denied => refused(decision, wait.max(decision.retry_after)),
        Verdict::Never => decision,
    })
}

/// The decision as a refusal. Its wait is not 0, because the caller was refused.
fn refused(decision: Decision, wait: u64) -> Decision {
    Decision { verdict: Verdict::Denied, retry_after: wait.max(1), ..decision }
}
