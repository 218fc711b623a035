//! Sleeping for permits, by a bounded number of callers, who get them in the order in which they
//! came ([`line`]).

mod line;
mod lock;
#[cfg(all(test, loom))]
mod models;
#[cfg(all(test, not(loom)))]
pub(crate) mod tests;

use super::{Limiter, Shared};
use crate::algorithm::{Algorithm, Charge};
use crate::clock::Clock;
use crate::decision::{Decision, Reason, Verdict};
use crate::sync::{AtomicU64, CachePadded, Ordering};
use crate::units::NEVER;
use core::convert::Infallible;
use line::{List, Seat, Taken, Turn, Waiter};

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
pub(crate) struct Place<'a>(&'a Waiters);

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
    pub(crate) fn enter(&self) -> Option<Place<'_>> {
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
                Ok(_) => return Some(Place(self)),
                Err(other) => seen = other,
            }
        }
    }
}

/// The number of this process, in the upper half of a word. Without a Unix there is one process.
fn process() -> u64 {
    #[cfg(all(unix, not(loom)))]
    return u64::from(crate::clock::machine::generation()) << 32;
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

/// The queues of a limiter, or of the keys of a table: each queue is in one of `N` lists.
#[derive(Debug)]
pub(crate) struct Lines<const N: usize> {
    waiters: Waiters,
    lists: [List; N],
}

impl<const N: usize> Lines<N> {
    pub(crate) fn new(most: u32) -> Lines<N> {
        Lines { waiters: Waiters::new(most), lists: core::array::from_fn(|_| List::default()) }
    }

    /// Sets the most callers that may sleep. Only before the first one does.
    pub(crate) fn set_most(&mut self, most: u32) {
        self.waiters.most = most;
    }

    pub(crate) fn asleep(&self) -> u32 {
        self.waiters.asleep()
    }

    fn list(&self, queue: u64) -> &List {
        &self.lists[queue as usize % N]
    }
}

/// The permits that [`wait`] waits for: those of a limiter, or of a table's key.
pub(crate) trait Permits {
    type Error;

    fn now(&self) -> u64;

    /// Takes the permits now, or returns the time to wait.
    fn check(&self, now: u64, cost: u64) -> Result<Decision, Self::Error>;

    /// What [`Permits::check`] would return.
    fn peek(&self, now: u64, cost: u64) -> Result<Decision, Self::Error>;

    /// Books the permits for the earliest instant; `None` if that is after `until`.
    fn book(&self, now: u64, cost: u64, until: u64) -> Result<Option<u64>, Self::Error>;

    /// Whether [`Permits::book`] works.
    fn books_ahead(&self) -> Result<bool, Self::Error>;

    /// Whether refusals lead to a ban.
    fn counts_refusals(&self) -> Result<bool, Self::Error>;

    /// Gives a booking back, as far as the limiter takes it.
    fn give_back(&self, booking: Charge);

    /// When the last of requests for `costs` would pass, which come one after the other from `now`
    /// on, or earlier. The call may stop after `until`.
    fn last_of(
        &self,
        now: u64,
        costs: &mut dyn Iterator<Item = u64>,
        until: u64,
    ) -> Result<u64, Self::Error>;

    /// [`Permits::peek`] for a caller that may wait until `deadline`. Where refusals lead to a ban,
    /// a peek shows the ban after the refusal. The caller is not refused, so the wait here is that
    /// for the permits.
    fn ask(&self, now: u64, cost: u64, deadline: u64) -> Result<Decision, Self::Error> {
        let decision = self.peek(now, cost)?;
        if decision.verdict == Verdict::Denied && self.counts_refusals()? {
            let at = self.last_of(now, &mut core::iter::once(cost), deadline)?;
            if at != NEVER && at <= deadline {
                return Ok(Decision { retry_after: at.saturating_sub(now), ..decision }
                    .because(Reason::Rate));
            }
        }
        Ok(decision)
    }

    /// [`Permits::check`] for a caller that may wait until `deadline`. If the permits come by then,
    /// the call records no refusal, because a refusal could lead to a ban.
    fn try_until(&self, now: u64, cost: u64, deadline: u64) -> Result<Decision, Self::Error> {
        if self.counts_refusals()? {
            let decision = self.ask(now, cost, deadline)?;
            if decision.verdict == Verdict::Denied && in_time(&decision, now, deadline) {
                return Ok(decision);
            }
        }
        self.check(now, cost)
    }

    /// Takes or books the permits for a caller that is the first of its queue.
    fn take(&self, now: u64, cost: u64, deadline: u64) -> Result<Taken, Self::Error> {
        if self.books_ahead()? {
            return Ok(self.book(now, cost, deadline)?.map_or(Taken::Late, Taken::At));
        }
        let decision = self.try_until(now, cost, deadline)?;
        Ok(match decision.is_allowed() {
            true => Taken::At(now),
            false if in_time(&decision, now, deadline) => {
                Taken::Again(now.saturating_add(decision.retry_after))
            }
            false => Taken::Late,
        })
    }
}

impl<S: Shared, C: Clock> Permits for Limiter<S, C> {
    type Error = Infallible;

    fn now(&self) -> u64 {
        self.clock().now()
    }

    fn check(&self, now: u64, cost: u64) -> Result<Decision, Self::Error> {
        Ok(self.shared().check_at(now, cost))
    }

    fn peek(&self, now: u64, cost: u64) -> Result<Decision, Self::Error> {
        Ok(self.shared().peek_at(now, cost))
    }

    fn book(&self, now: u64, cost: u64, until: u64) -> Result<Option<u64>, Self::Error> {
        Ok(self.shared().reserve_at(now, cost, until))
    }

    fn books_ahead(&self) -> Result<bool, Self::Error> {
        Ok(self.shared().books_ahead())
    }

    fn counts_refusals(&self) -> Result<bool, Self::Error> {
        Ok(self.shared().counts_refusals())
    }

    fn give_back(&self, booking: Charge) {
        Limiter::give_back(self, booking, booking.cost);
    }

    fn last_of(
        &self,
        now: u64,
        costs: &mut dyn Iterator<Item = u64>,
        until: u64,
    ) -> Result<u64, Self::Error> {
        Ok(self.shared().last_of(now, costs, until))
    }
}

/// [`Permits::last_of`] by the state's word: what the first callers of a queue will do in turn.
pub(crate) fn last_by_steps<A: Algorithm>(
    algorithm: &A,
    mut state: u64,
    mut now: u64,
    costs: &mut dyn Iterator<Item = u64>,
    until: u64,
) -> u64 {
    for cost in costs {
        let (at, next) = match algorithm.books_ahead() {
            true => algorithm
                .reserve(state, now, cost)
                .map_or((NEVER, None), |booked| (booked.at, Some(booked.next))),
            false => {
                let at = algorithm.admits_at(state, now, cost);
                (at, algorithm.step(state, at, cost).next)
            }
        };
        now = at;
        if now > until {
            break;
        }
        state = next.unwrap_or(state);
    }
    now
}

/// What is left of `costs` when the first ones have got `permits`.
pub(crate) fn after_first<'a>(
    mut permits: u64,
    costs: &'a mut dyn Iterator<Item = u64>,
) -> impl Iterator<Item = u64> + 'a {
    costs.filter_map(move |cost| {
        let paid = cost.min(permits);
        permits -= paid;
        Some(cost - paid).filter(|&rest| rest != 0)
    })
}

/// [`Permits::last_of`] by `peek`, for states that only a decision can read. It looks one limit
/// ahead: if the costs are more, the result is the time at which half of them would be there, or a
/// quarter, and so on.
pub(crate) fn last_by_peeks<E>(
    now: u64,
    costs: &mut dyn Iterator<Item = u64>,
    peek: impl Fn(u64) -> Result<Decision, E>,
) -> Result<u64, E> {
    let mut sum = costs.fold(0, u64::saturating_add);
    while sum != 0 {
        let decision = peek(sum)?;
        if decision.verdict != Verdict::Never {
            return Ok(now.saturating_add(decision.retry_after));
        }
        sum /= 2;
    }
    Ok(now)
}

/// Whether a refused request could pass by `deadline`. False for an admitted request, and if no
/// wait helps (a limit of 0).
pub(crate) fn in_time(decision: &Decision, now: u64, deadline: u64) -> bool {
    decision.retry().is_some_and(|wait| now.saturating_add(wait) <= deadline)
}

/// Takes permits, and sleeps for them until `deadline` at the latest, in the queue of that number.
/// The decision describes the instant of the return.
pub(crate) fn wait<P: Permits, C: Clock, const N: usize>(
    permits: &P,
    clock: &C,
    lines: &Lines<N>,
    queue: u64,
    cost: u64,
    deadline: u64,
) -> Result<Decision, P::Error> {
    let now = clock.now();
    if let Some(decision) = decide(permits, lines, queue, now, cost, deadline)? {
        return Ok(decision);
    }
    // The request could pass in time. The caller takes a place before it joins the queue, so that
    // nothing is booked for a caller that is refused.
    let Some(_place) = lines.waiters.enter() else {
        let decision = permits.ask(now, cost, deadline)?;
        return Ok(refused(decision, decision.retry_after).because(Reason::QueueFull));
    };
    let waiter = Waiter::new(queue, cost, deadline);
    let seat = Seat::new(lines.list(queue), &waiter, permits);
    let mut turn = seat.join(now)?;
    if let Turn::Refused(at) = turn {
        return late(permits, now, cost, at);
    }
    loop {
        turn = match turn {
            Turn::Admitted => break,
            Turn::Refused(at) => return late(permits, clock.now(), cost, at),
            Turn::Until(at) => {
                clock.sleep_until_rung(at, waiter.bell());
                seat.turn(clock.now())?
            }
        };
    }
    let after = permits.check(clock.now(), 0)?;
    Ok(Decision { verdict: Verdict::Allowed, reason: Reason::Admitted, retry_after: 0, ..after })
}

/// The decision on a caller that need not wait, or waits in vain. `None` for a caller whose permits
/// come by its deadline if it joins the queue.
fn decide<P: Permits, const N: usize>(
    permits: &P,
    lines: &Lines<N>,
    queue: u64,
    now: u64,
    cost: u64,
    deadline: u64,
) -> Result<Option<Decision>, P::Error> {
    if cost == 0 || lines.asleep() == 0 || !lines.list(queue).anybody(queue) {
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
