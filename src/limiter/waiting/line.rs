//! The queue of the callers that wait for the permits of one limiter, or of one key of a table, in
//! one process.
//!
//! **Only the first caller of a queue holds a booking, and the booking is the queue's.** A first
//! caller that leaves hands it on to the next one. If no caller is left, it is the last booking of
//! the state, and goes back whole. So callers that give up leave nothing behind.
//!
//! Algorithms that cannot book ahead have the same queue. Its first caller asks again when a permit
//! could be free.
//!
//! Each caller sleeps until the time at which it expects its permits, which it computed from the
//! callers before it. Any caller that wakes serves all callers whose permits are there, and books
//! for the first of the others. So no caller depends on the thread of another one. A bell wakes a
//! caller only if its turn comes earlier than it expects.
//!
//! A forked child has a copy of its parent's queues, whose threads it does not have. It forgets
//! them with its first call ([`Lock`]).

use super::lock::{Lock, LockGuard};
use super::permits::{Permits, TakeAttempt};
use super::wakers::{WakerPlace, Woken};
use crate::algorithm::Charge;
use crate::clock::Bell;
use crate::sync::{AtomicPtr, AtomicU64, Ordering};
use crate::units::NEVER;
use core::iter;
use core::ptr;
use core::task::Waker;

/// Callers in the order of their arrival, of one or several queues, each of which has a number.
#[derive(Debug, Default)]
pub(super) struct WaiterList {
    lock: Lock,
    first: AtomicPtr<Waiter>,
}

/// A caller that waits. It is in the list from [`Seat::join`] until it is served or refused, or its
/// [`Seat`] is dropped.
#[derive(Debug)]
pub(crate) struct Waiter {
    /// The number of its queue.
    queue: u64,
    cost: u64,
    /// The last time at which it can use its permits.
    deadline: u64,
    /// Ends the sleep of a caller in a thread.
    bell: Bell,
    /// Ends the sleep of a caller in a future.
    waker: WakerPlace,
    next: AtomicPtr<Waiter>,
    /// [`WAITS`], [`ADMITTED`], [`REFUSED`] or [`LEFT`].
    state: LockedWord,
    /// The end of its sleep.
    wakes: LockedWord,
    /// When the first caller of a queue without a booking asks again.
    asks: LockedWord,
    /// When the queue's booking may be used, if this is the first caller and the queue has one;
    /// else [`NONE`].
    departs: LockedWord,
}

const WAITS: u64 = 0;
const ADMITTED: u64 = 1;
const REFUSED: u64 = 2;
/// The caller knows that it has its permits.
const LEFT: u64 = 3;

/// No booking. Nothing departs at that time.
const NONE: u64 = NEVER;

/// A word that only the holder of the list's lock uses. Relaxed: the lock orders it.
#[derive(Debug, Default)]
struct LockedWord(AtomicU64);

impl LockedWord {
    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
    fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }
}

/// What a waiting caller does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaiterAction {
    /// It has its permits.
    Admitted,
    /// It leaves without permits, which would have come at that time or later.
    Refused(u64),
    /// It sleeps until that time, or until its bell rings.
    Until(u64),
}

impl Waiter {
    pub(crate) fn new(queue: u64, cost: u64, deadline: u64) -> Waiter {
        Waiter {
            queue,
            cost,
            deadline,
            bell: Bell::default(),
            waker: WakerPlace::default(),
            next: AtomicPtr::new(ptr::null_mut()),
            state: LockedWord::default(),
            wakes: LockedWord::default(),
            asks: LockedWord::default(),
            departs: LockedWord(AtomicU64::new(NONE)),
        }
    }

    pub(crate) fn bell(&self) -> &Bell {
        &self.bell
    }

    /// The next time at which something may happen for the first caller of a queue.
    fn due(&self) -> u64 {
        match self.departs.get() {
            NONE => self.asks.get(),
            departs => departs,
        }
    }

    fn is(&self, other: &Waiter) -> bool {
        ptr::eq(self, other)
    }
}

impl WaiterList {
    fn lock(&self) -> Locked<'_> {
        let guard = self.lock.take(|| self.first.store(ptr::null_mut(), Ordering::Relaxed));
        Locked { list: self, guard, woken: Woken::default() }
    }

    /// Whether a caller waits in that queue.
    pub(super) fn anybody(&self, queue: u64) -> bool {
        self.lock().first(queue).is_some()
    }

    /// As a child finds the list while a thread of its parent holds the lock.
    #[cfg(all(test, not(loom)))]
    pub(super) fn hold_by_another_process(&self) {
        self.lock.hold_by_another_process();
    }

    /// As a child finds the list that a thread of its parent, this process, holds.
    #[cfg(all(test, not(loom)))]
    pub(super) fn hold(&self) {
        core::mem::forget(self.lock());
    }
}

/// A list whose lock this thread holds.
struct Locked<'a> {
    list: &'a WaiterList,
    guard: LockGuard<'a>,
    /// Dropped after the guard: a waker runs without the lock.
    woken: Woken,
}

impl Locked<'_> {
    fn all(&self) -> impl Iterator<Item = &Waiter> {
        let mut at = self.list.first.load(Ordering::Relaxed);
        iter::from_fn(move || {
            // SAFETY: null, or a caller in the list. A caller's `Seat` takes it out of the list,
            // under the lock, before the caller's borrow ends.
            let waiter = unsafe { at.as_ref() }?;
            at = waiter.next.load(Ordering::Relaxed);
            Some(waiter)
        })
    }

    fn queue(&self, queue: u64) -> impl Iterator<Item = &Waiter> {
        self.all().filter(move |waiter| waiter.queue == queue)
    }

    fn first(&self, queue: u64) -> Option<&Waiter> {
        self.queue(queue).next()
    }

    fn has(&self, waiter: &Waiter) -> bool {
        self.all().any(|other| other.is(waiter))
    }

    fn push(&self, waiter: &Waiter) {
        waiter.next.store(ptr::null_mut(), Ordering::Relaxed);
        let link = self.all().last().map_or(&self.list.first, |last| &last.next);
        link.store(ptr::from_ref(waiter).cast_mut(), Ordering::Relaxed);
    }

    /// Takes a caller out of the list.
    fn remove(&self, waiter: &Waiter) {
        let before = self.all().take_while(|other| !other.is(waiter)).last();
        let link = before.map_or(&self.list.first, |before| &before.next);
        link.store(waiter.next.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    fn end(&self, waiter: &Waiter, state: u64, now: u64) {
        self.remove(waiter);
        waiter.state.set(state);
        self.wake(waiter, now);
    }

    /// Ends the sleep of a caller, unless it ends at `by` anyway.
    fn wake(&self, waiter: &Waiter, by: u64) {
        if waiter.wakes.get() > by {
            waiter.wakes.set(by);
            if !self.woken.add(&waiter.waker, &self.guard) {
                waiter.bell.ring();
            }
        }
    }

    /// Hands the booking of a caller that has left on to the next one of its queue. If that one has
    /// another cost, or if there is none, the booking goes back: the next caller may then depart
    /// earlier, and permits that were booked for one time must not be used at a later one.
    fn hand_on<P: Permits>(&self, from: &Waiter, permits: &P) {
        let departs = from.departs.get();
        from.departs.set(NONE);
        match self.first(from.queue) {
            _ if departs == NONE => {}
            Some(next) if next.cost == from.cost => {
                // If the caller left after it was admitted, the next one may have booked. Its
                // booking is the last one, and goes back whole.
                let later = next.departs.get();
                next.departs.set(departs);
                if later != NONE {
                    permits.give_back(Charge { at: later, cost: next.cost });
                }
            }
            _ => permits.give_back(Charge { at: departs, cost: from.cost }),
        }
    }

    /// Serves all callers of a queue whose permits are there, and books for the first of the
    /// others.
    fn serve<P: Permits>(&self, queue: u64, now: u64, permits: &P) -> Result<(), P::Error> {
        while let Some(first) = self.first(queue) {
            if first.departs.get() == NONE {
                if now < first.asks.get() {
                    break;
                }
                match permits.take(now, first.cost, first.deadline) {
                    Ok(TakeAttempt::At(at)) => first.departs.set(at),
                    Ok(TakeAttempt::Again(at)) => {
                        // Later than now, so that the caller sleeps.
                        first.asks.set(at.max(now.saturating_add(1)));
                        self.wake(first, first.asks.get());
                        break;
                    }
                    Ok(TakeAttempt::Late) => {
                        self.end(first, REFUSED, now);
                        continue;
                    }
                    Err(error) => {
                        // The first caller has to see the error, too.
                        self.wake(first, now);
                        return Err(error);
                    }
                }
            }
            let departs = first.departs.get();
            if departs > first.deadline {
                // It was booked for a caller with more patience.
                self.end(first, REFUSED, now);
                self.hand_on(first, permits);
            } else if departs <= now {
                self.end(first, ADMITTED, now);
            } else {
                self.wake(first, departs);
                break;
            }
        }
        Ok(())
    }

    /// When a caller of `cost` permits would have them if those before it stay and no other caller
    /// comes before them, or earlier.
    fn expected<P: Permits>(
        &self,
        queue: u64,
        before: Option<&Waiter>,
        cost: u64,
        now: u64,
        until: u64,
        permits: &P,
    ) -> Result<u64, P::Error> {
        let Some(first) = self.first(queue) else { return Ok(now) };
        let callers =
            self.queue(queue).take_while(|waiter| !before.is_some_and(|before| waiter.is(before)));
        let costs = callers.map(|waiter| waiter.cost).chain(iter::once(cost));
        let at = match first.departs.get() {
            NONE => permits.last_of(now, &mut { costs }, until)?,
            // The first caller's permits are charged already.
            departs => permits.last_of(now.max(departs), &mut costs.skip(1), until)?,
        };
        Ok(at.max(first.due()))
    }
}

/// A caller's place in a queue, from [`Seat::new`] until it is dropped.
pub(crate) struct Seat<'a, P: Permits> {
    list: &'a WaiterList,
    waiter: &'a Waiter,
    permits: &'a P,
}

impl<'a, P: Permits> Seat<'a, P> {
    pub(super) fn new(list: &'a WaiterList, waiter: &'a Waiter, permits: &'a P) -> Seat<'a, P> {
        Seat { list, waiter, permits }
    }

    /// Joins the end of the queue, unless the caller's permits would come after its deadline. The
    /// queue wakes a caller with a waker by that, and any other by its bell.
    pub(crate) fn join(&self, now: u64, waker: Option<&Waker>) -> Result<WaiterAction, P::Error> {
        let Waiter { queue, cost, deadline, .. } = *self.waiter;
        let locked = self.list.lock();
        locked.serve(queue, now, self.permits)?;
        if locked.first(queue).is_some() {
            let at = locked.expected(queue, None, cost, now, deadline, self.permits)?;
            if at > deadline {
                return Ok(WaiterAction::Refused(at));
            }
        }
        locked.push(self.waiter);
        self.action_locked(&locked, now, waker)
    }

    /// What the caller does at `now`, after its sleep.
    pub(crate) fn action(&self, now: u64, waker: Option<&Waker>) -> Result<WaiterAction, P::Error> {
        let locked = self.list.lock();
        let waiter = self.waiter;
        if waiter.state.get() == WAITS && !locked.has(waiter) {
            // A signal handler has forked during the sleep, and this is the child. The booking is
            // the parent's.
            waiter.departs.set(NONE);
            locked.push(waiter);
        }
        self.action_locked(&locked, now, waker)
    }

    fn action_locked(
        &self,
        locked: &Locked<'_>,
        now: u64,
        waker: Option<&Waker>,
    ) -> Result<WaiterAction, P::Error> {
        let Waiter { queue, cost, deadline, .. } = *self.waiter;
        let waiter = self.waiter;
        if waiter.state.get() == WAITS {
            locked.serve(queue, now, self.permits)?;
        }
        match waiter.state.get() {
            ADMITTED => {
                waiter.state.set(LEFT);
                return Ok(WaiterAction::Admitted);
            }
            REFUSED => return Ok(WaiterAction::Refused(deadline.saturating_add(1))),
            _ => {}
        }
        if now >= deadline {
            return Ok(WaiterAction::Refused(deadline.saturating_add(1)));
        }
        waiter.bell.silence();
        waiter.waker.keep(waker, &locked.guard);
        // The first caller's time is exact.
        let at = locked.expected(queue, Some(waiter), cost, now, deadline, self.permits)?;
        waiter.wakes.set(at.min(deadline));
        Ok(WaiterAction::Until(at.min(deadline)))
    }
}

/// Leaves the queue, at the end of the wait, by an error, because the caller's clock panicked, or
/// because its future is dropped.
impl<P: Permits> Drop for Seat<'_, P> {
    fn drop(&mut self) {
        let locked = self.list.lock();
        let waiter = self.waiter;
        let waits = locked.has(waiter);
        if waits {
            locked.remove(waiter);
        }
        // A future may be dropped after another caller has admitted it.
        if waits || waiter.state.get() == ADMITTED {
            locked.hand_on(waiter, self.permits);
            // An error shows itself to the next caller, whom `serve` wakes.
            let _ = locked.serve(waiter.queue, self.permits.now(), self.permits);
        }
    }
}
