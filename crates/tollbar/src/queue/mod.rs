//! A leaky bucket as a queue: items wait, and leave at the pace of a policy.
//!
//! A limiter refuses what is above its rate. A queue keeps it, up to a bound, and hands it out later, in the order in which it came: text
//! messages to a gateway that takes ten a second, jobs for workers that may not be flooded.
//!
//! ```
//! use tollbar::clock::Manual;
//! use tollbar::queue::Queue;
//!
//! let clock = Manual::new(0);
//! let queue = Queue::with(&"10/s algo pacer".parse()?, 2, &clock)?; // one leaves every 100 ms, and two may wait
//! assert!(queue.offer("a").is_ok());
//! assert!(queue.offer("b").is_ok());
//! assert!(queue.offer("c").is_ok());
//! assert_eq!(queue.offer("d").unwrap_err().item, "d"); // one may leave now, and two wait
//!
//! assert_eq!(queue.take(), Some("a"));
//! assert_eq!(queue.take(), None); // not yet
//! assert_eq!(queue.next_departure(), Some(100_000_000));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The policy admits items when they leave, not when they come. So a worker that was late does not catch up by a burst, unless the policy
//! has one: a pacer's `slack`, or a token bucket's `burst`.
//!
//! All calls are lock-free, except those that sleep: [`Queue::offer_within`] and [`Queue::take_within`]. Items leave in the order of their
//! offers. Offers that overlap in time may come in either order.

mod event;
#[cfg(all(test, loom))]
mod models;
mod ring;

use crate::algorithm::Rule;
use crate::clock::{Clock, Tsc, Utc};
use crate::limiter::waiting::{Waiters, WAITERS};
use crate::policy::{Policy, PolicyError};
use crate::sync::{AtomicU32, Ordering};
use crate::units::NEVER;
use alloc::boxed::Box;
use core::fmt;
use core::marker::PhantomData;
use event::Event;
use ring::{Offered, Ring, Taken, CELLS_MOST};

/// A queue of items that leave at a policy's pace. Threads share it by reference.
///
/// Each item is one allocation, which `offer` makes and `take` frees. [`Words`] has none.
#[derive(Debug)]
pub struct Queue<T: Send, C = Utc<Tsc>> {
    words: Words<C>,
    /// A queue gives and takes items, and no caller gets a reference to one: `Send` items make it `Sync`.
    items: PhantomData<fn() -> T>,
}

/// A [`Queue`] of 64-bit words, such as pointers or numbers of the caller. It allocates only when it is made.
#[derive(Debug)]
pub struct Words<C = Utc<Tsc>> {
    ring: Ring,
    rule: Rule,
    capacity: u64,
    clock: C,
    /// An item came, or the queue was closed.
    came: Event,
    /// An item left, or the queue was closed.
    left: Event,
    /// Callers that sleep for room.
    waiters: Waiters,
    closed: AtomicU32,
}

/// An item's place in a queue. With it the item can be cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// The number of the item: the first item of a queue has number 0.
    pub number: u64,
    /// The items that were before it when it came. A cancelled item counts as long as an older item is in the queue.
    pub ahead: u64,
}

/// An item that the queue did not take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused<T> {
    /// The item.
    pub item: T,
    /// Why.
    pub reason: Refusal,
}

/// Why a queue did not take an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The number of waiting items has reached the capacity.
    Full,
    /// The queue is full, and the number of callers that sleep for room has reached its limit ([`Queue::with_waiters`]).
    Waiters,
    /// The queue was closed.
    Closed,
}

/// Why a queue cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub enum QueueError {
    /// The policy is not valid, its state is not one word ([`PolicyError::NotOneWord`]: sliding windows and logs), or it counts refusals
    /// ([`PolicyError::OptionMismatch`]: `ban`, `count rejected`).
    Policy(PolicyError),
    /// A capacity of 0, or a capacity and a burst of more than 2^28 items together.
    Capacity,
    /// Out of memory.
    NoMemory,
    /// This processor has no 16-byte compare-and-swap.
    Unsupported,
}

/// Whether a queue can have this policy.
///
/// # Errors
/// The reason, as in [`QueueError::Policy`].
pub fn validate(policy: &Policy) -> Result<(), PolicyError> {
    rule(policy).map(|_| ())
}

fn rule(policy: &Policy) -> Result<Rule, PolicyError> {
    // A taker asks again and again. Where refusals count, it would ban itself.
    if policy.ban != 0 || policy.count_rejected {
        return Err(PolicyError::OptionMismatch);
    }
    Rule::new(policy)
}

impl<T: Send> Queue<T> {
    /// A queue on the default clock. Up to `capacity` items wait. Items that may leave at once do not wait, so up to a burst more can be in
    /// the queue (a pacer: one more, and its slack; with `borrow` a burst and one more).
    ///
    /// The queue has 16 bytes for each item that can be in it, rounded up to a power of two.
    ///
    /// # Errors
    /// [`QueueError`].
    pub fn new(policy: &Policy, capacity: u64) -> Result<Queue<T>, QueueError> {
        Queue::with(policy, capacity, Utc::default())
    }
}

impl<T: Send, C: Clock> Queue<T, C> {
    /// [`Queue::new`] on another clock.
    ///
    /// # Errors
    /// [`QueueError`].
    pub fn with(policy: &Policy, capacity: u64, clock: C) -> Result<Queue<T, C>, QueueError> {
        Ok(Queue { words: Words::with(policy, capacity, clock)?, items: PhantomData })
    }

    /// The same queue, of which at most `waiters` callers sleep in [`Queue::offer_within`] at one time. The default is 1,024.
    pub fn with_waiters(mut self, waiters: u32) -> Queue<T, C> {
        self.words.waiters = Waiters::new(waiters);
        self
    }

    /// Puts an item behind all others.
    ///
    /// # Errors
    /// [`Refused`] has the item.
    pub fn offer(&self, item: T) -> Result<Ticket, Refused<T>> {
        self.offer_at(self.words.clock.now(), item)
    }

    /// [`Queue::offer`] at the caller's time.
    ///
    /// # Errors
    /// [`Refused`] has the item.
    pub fn offer_at(&self, now: u64, item: T) -> Result<Ticket, Refused<T>> {
        self.put(item, |word| self.words.offer_at(now, word))
    }

    /// Takes the oldest item if the policy lets it leave now.
    pub fn take(&self) -> Option<T> {
        self.take_at(self.words.clock.now())
    }

    /// [`Queue::take`] at the caller's time.
    pub fn take_at(&self, now: u64) -> Option<T> {
        self.words.take_at(now).map(Self::item)
    }

    /// When [`Queue::take`] will next return an item, on the clock's scale: now or later, or [`NEVER`]. `None`: the queue is empty.
    pub fn next_departure(&self) -> Option<u64> {
        self.words.next_departure_at(self.words.clock.now())
    }

    /// [`Queue::next_departure`] at the caller's time.
    pub fn next_departure_at(&self, now: u64) -> Option<u64> {
        self.words.next_departure_at(now)
    }

    /// Takes an item out of the queue before it leaves; `None` if it has left. The items behind it move up. Its place in the memory is free when the items
    /// before it have left.
    pub fn cancel(&self, ticket: Ticket) -> Option<T> {
        self.words.cancel(ticket).map(Self::item)
    }

    /// Takes the oldest item without asking the policy: for a program that ends.
    pub fn drain(&self) -> Option<T> {
        self.words.drain().map(Self::item)
    }

    /// Refuses all offers from now on, and wakes all callers that sleep. Items that are in the queue stay, and can be taken. An offer of
    /// another thread that overlaps this call may still come in.
    pub fn close(&self) {
        self.words.close();
    }

    /// Whether [`Queue::close`] was called.
    pub fn is_closed(&self) -> bool {
        self.words.is_closed()
    }

    /// The number of items. A cancelled item counts as long as an older item is in the queue. Other threads may change the number at once.
    pub fn len(&self) -> u64 {
        self.words.len()
    }

    /// Whether [`Queue::len`] is 0.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The most items that wait.
    pub fn capacity(&self) -> u64 {
        self.words.capacity
    }

    /// The time of the queue's clock.
    pub fn now(&self) -> u64 {
        self.words.clock.now()
    }

    /// The queue's clock.
    pub fn clock(&self) -> &C {
        &self.words.clock
    }

    fn put(&self, item: T, put: impl FnOnce(u64) -> Result<Ticket, Refused<u64>>) -> Result<Ticket, Refused<T>> {
        let word = Box::into_raw(Box::new(item)) as u64;
        put(word).map_err(|refused| Refused { item: Self::item(refused.item), reason: refused.reason })
    }

    fn item(word: u64) -> T {
        // SAFETY: every word of this queue was made by `put` from a Box, and the ring gives each word out once.
        *unsafe { Box::from_raw(word as *mut T) }
    }
}

impl<T: Send, C> Queue<T, Utc<C>>
where
    Utc<C>: Clock,
{
    /// [`Queue::offer`] that sleeps up to `patience` nanoseconds for room.
    ///
    /// # Errors
    /// [`Refused`] has the item.
    pub fn offer_within(&self, item: T, patience: u64) -> Result<Ticket, Refused<T>> {
        self.put(item, |word| self.words.offer_within(word, patience))
    }

    /// [`Queue::take`] that sleeps up to `patience` nanoseconds until an item may leave. It returns `None` at once if the queue is closed
    /// and empty.
    pub fn take_within(&self, patience: u64) -> Option<T> {
        self.words.take_within(patience).map(Self::item)
    }
}

impl<T: Send, C> Drop for Queue<T, C> {
    fn drop(&mut self) {
        while let Some(word) = self.words.ring.drain() {
            // SAFETY: as `Queue::item`.
            drop(unsafe { Box::from_raw(word as *mut T) });
        }
    }
}

impl<C: Clock> Words<C> {
    /// [`Queue::with`].
    ///
    /// # Errors
    /// [`QueueError`].
    pub fn with(policy: &Policy, capacity: u64, clock: C) -> Result<Words<C>, QueueError> {
        #[cfg(not(loom))]
        if !crate::table::memory::slot::Slot::supported() {
            return Err(QueueError::Unsupported);
        }
        let rule = rule(policy).map_err(QueueError::Policy)?;
        let at_once = policy.burst.max(policy.slack).saturating_add(1);
        let length = capacity.saturating_add(at_once);
        if capacity == 0 || length > CELLS_MOST {
            return Err(QueueError::Capacity);
        }
        let ring = Ring::new(length).ok_or(QueueError::NoMemory)?;
        Ok(Words {
            ring,
            rule,
            capacity,
            clock,
            came: Event::new(),
            left: Event::new(),
            waiters: Waiters::new(WAITERS),
            closed: AtomicU32::new(0),
        })
    }

    /// [`Queue::with_waiters`].
    pub fn with_waiters(self, waiters: u32) -> Words<C> {
        Words { waiters: Waiters::new(waiters), ..self }
    }

    /// [`Queue::offer`].
    ///
    /// # Errors
    /// [`Refused`] has the word.
    pub fn offer(&self, item: u64) -> Result<Ticket, Refused<u64>> {
        self.offer_at(self.clock.now(), item)
    }

    /// [`Queue::offer_at`].
    ///
    /// # Errors
    /// [`Refused`] has the word.
    pub fn offer_at(&self, now: u64, item: u64) -> Result<Ticket, Refused<u64>> {
        if self.is_closed() {
            return Err(Refused { item, reason: Refusal::Closed });
        }
        match self.ring.offer(&self.rule, now, self.capacity, item) {
            Offered::Queued { number, ahead } => {
                self.came.notify();
                Ok(Ticket { number, ahead })
            }
            Offered::Full => Err(Refused { item, reason: Refusal::Full }),
        }
    }

    /// [`Queue::take`].
    pub fn take(&self) -> Option<u64> {
        self.take_at(self.clock.now())
    }

    /// [`Queue::take_at`].
    pub fn take_at(&self, now: u64) -> Option<u64> {
        match self.ring.take(&self.rule, now) {
            Taken::Item(item) => {
                self.removed();
                Some(item)
            }
            Taken::Empty | Taken::At(_) => None,
        }
    }

    /// [`Queue::next_departure`].
    pub fn next_departure(&self) -> Option<u64> {
        self.next_departure_at(self.clock.now())
    }

    /// [`Queue::next_departure_at`].
    pub fn next_departure_at(&self, now: u64) -> Option<u64> {
        self.ring.next_departure(&self.rule, now)
    }

    /// [`Queue::cancel`].
    pub fn cancel(&self, ticket: Ticket) -> Option<u64> {
        let item = self.ring.cancel(ticket.number);
        if item.is_some() {
            self.removed();
        }
        item
    }

    /// Takes the oldest item without asking the policy.
    pub fn drain(&self) -> Option<u64> {
        let item = self.ring.drain();
        if item.is_some() {
            self.removed();
        }
        item
    }

    /// Wakes those for whom the removal of an item changes something: callers that sleep for room, and in a closed queue, which may be empty
    /// now, callers that sleep for an item.
    fn removed(&self) {
        self.left.notify();
        if self.is_closed() {
            self.came.notify();
        }
    }

    /// [`Queue::close`].
    pub fn close(&self) {
        self.closed.store(1, Ordering::SeqCst);
        self.came.notify();
        self.left.notify();
    }

    /// [`Queue::is_closed`].
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst) != 0
    }

    /// [`Queue::len`].
    pub fn len(&self) -> u64 {
        self.ring.len()
    }

    /// [`Queue::is_empty`].
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// [`Queue::capacity`].
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// [`Queue::now`].
    pub fn now(&self) -> u64 {
        self.clock.now()
    }
}

/// The calls that sleep need a clock that goes on while they do.
impl<C> Words<Utc<C>>
where
    Utc<C>: Clock,
{
    /// [`Queue::offer_within`].
    ///
    /// # Errors
    /// [`Refused`] has the word.
    pub fn offer_within(&self, item: u64, patience: u64) -> Result<Ticket, Refused<u64>> {
        let start = self.clock.now();
        let deadline = start.saturating_add(patience);
        let mut refused = match self.offer_at(start, item) {
            Err(Refused { item, reason: Refusal::Full }) if patience != 0 => item,
            answer => return answer,
        };
        let Some(_place) = self.waiters.enter() else {
            return Err(Refused { item: refused, reason: Refusal::Waiters });
        };
        loop {
            let listener = self.left.listen();
            let now = self.clock.now();
            refused = match self.offer_at(now, refused) {
                Err(Refused { item, reason: Refusal::Full }) if now < deadline => item,
                answer => return answer,
            };
            // Room also comes with time: items that may leave at once do not wait.
            let until = self.next_departure_at(now).filter(|&at| at > now).map_or(deadline, |at| at.min(deadline));
            listener.sleep(until - now);
        }
    }

    /// [`Queue::take_within`].
    pub fn take_within(&self, patience: u64) -> Option<u64> {
        self.take_before(self.clock.now().saturating_add(patience), &|| false)
    }

    /// [`Words::take_within`] without an end, unless `stop` says so. It asks before it takes, and again after [`Words::wake_takers`].
    pub fn take_unless(&self, stop: &dyn Fn() -> bool) -> Option<u64> {
        self.take_before(NEVER, stop)
    }

    /// Wakes the callers that sleep for an item, so that they look again.
    pub fn wake_takers(&self) {
        self.came.notify();
    }

    fn take_before(&self, deadline: u64, stop: &dyn Fn() -> bool) -> Option<u64> {
        loop {
            let listener = self.came.listen();
            if stop() {
                return None;
            }
            let now = self.clock.now();
            let until = match self.ring.take(&self.rule, now) {
                Taken::Item(item) => {
                    drop(listener);
                    self.removed();
                    return Some(item);
                }
                Taken::Empty if self.is_closed() => return None,
                Taken::Empty => NEVER,
                Taken::At(at) => at,
            };
            if now >= deadline {
                return None;
            }
            listener.sleep(until.min(deadline).saturating_sub(now));
        }
    }
}

impl fmt::Display for QueueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueueError::Policy(error) => fmt::Display::fmt(error, f),
            QueueError::Capacity => {
                f.write_str("the capacity is 0, or capacity and burst are more than 268435456 items")
            }
            QueueError::NoMemory => f.write_str("out of memory"),
            QueueError::Unsupported => f.write_str("the processor has no 16-byte compare-and-swap"),
        }
    }
}

#[cfg(feature = "std")]
impl std::error::Error for QueueError {}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::Full => "the queue is full",
            Refusal::Waiters => "the queue is full, and too many callers wait for room",
            Refusal::Closed => "the queue is closed",
        })
    }
}

impl<T> fmt::Display for Refused<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.reason, f)
    }
}

#[cfg(feature = "std")]
impl<T: fmt::Debug> std::error::Error for Refused<T> {}
