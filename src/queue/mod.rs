//! A leaky bucket as a queue: items wait, and leave at the pace of a policy.
//!
//! A limiter refuses requests above its rate. A queue keeps them as items, up to a bound, and gives
//! them out later in the order of their offers: for example text messages to a gateway that takes
//! ten a second.
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
//! The policy charges an item when it leaves, not when it is offered. So a worker that was late
//! gets no burst to catch up, unless the policy has one: a pacer's `slack`, or a token bucket's
//! `burst`.
//!
//! All calls are lock-free, except those that sleep: [`Queue::offer_within`] and
//! [`Queue::take_within`]. Two offers that overlap in time may enter in either order.

mod error;
mod event;
#[cfg(all(test, loom))]
mod models;
mod ring;
mod words;

use crate::clock::{Clock, Tsc, Utc};
use crate::limiter::waiting::Waiters;
use crate::policy::{Policy, PolicyError};
use alloc::boxed::Box;
use core::marker::PhantomData;

pub use error::{QueueError, Refusal, Refused};
pub use words::{Ticket, Words};

/// A queue of items that leave at a policy's pace. Threads share it by reference.
///
/// Each item is one allocation, which `offer` makes and `take` frees. [`Words`] has none.
#[derive(Debug)]
pub struct Queue<T: Send, C = Utc<Tsc>> {
    words: Words<C>,
    /// A queue is `Sync` if its items are `Send`, because it moves items in and out and gives no
    /// caller a reference to one.
    items: PhantomData<fn() -> T>,
}

/// Whether a queue can have this policy.
///
/// # Errors
/// The reason, as in [`QueueError::Policy`].
pub fn validate(policy: &Policy) -> Result<(), PolicyError> {
    words::rule(policy).map(|_| ())
}

impl<T: Send> Queue<T> {
    /// A queue on the default clock. Up to `capacity` items wait. Items that may leave at once do
    /// not wait, so more items can be in the queue: a burst for a token bucket (with `borrow` one
    /// more), and the slack and one more for a pacer.
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
        Queue::with_spare(policy, capacity, 0, clock)
    }

    /// [`Queue::with`] and a spare, which holds up to `spare` items that overflow the capacity.
    ///
    /// When an item leaves the first queue, the oldest item of the spare moves up into it. While
    /// the spare has items, an offer puts its item behind them, so items leave in the order in
    /// which they were offered. [`Ticket::spare`] is above 0 if the item went into the spare. A
    /// producer that sees this can slow down before the queue refuses an offer. The spare has no
    /// rate of its own: its items leave at the rate of the first queue.
    ///
    /// ```
    /// use tollbar::clock::Manual;
    /// use tollbar::queue::Queue;
    ///
    /// // One leaves every 100 ms, two may wait, and one more in the spare.
    /// let queue = Queue::with_spare(&"10/s algo pacer".parse()?, 2, 1, Manual::new(0))?;
    /// let spare = ["a", "b", "c", "d"].map(|item| queue.offer(item).unwrap().spare);
    /// assert_eq!(spare, [0, 0, 0, 1]);
    /// assert!(queue.offer("e").is_err());
    ///
    /// assert_eq!(queue.take(), Some("a"));
    /// assert_eq!(queue.next_departure(), Some(100_000_000));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`QueueError`].
    pub fn with_spare(
        policy: &Policy,
        capacity: u64,
        spare: u64,
        clock: C,
    ) -> Result<Queue<T, C>, QueueError> {
        let words = Words::with_spare(policy, capacity, spare, clock)?;
        Ok(Queue { words, items: PhantomData })
    }

    /// The same queue, of which at most `waiters` callers sleep in [`Queue::offer_within`] at one
    /// time. The default is 1,024.
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

    /// When [`Queue::take`] will next return an item, on the clock's scale: now or later, or
    /// [`NEVER`](crate::units::NEVER). `None`: the queue is empty.
    pub fn next_departure(&self) -> Option<u64> {
        self.words.next_departure_at(self.words.clock.now())
    }

    /// [`Queue::next_departure`] at the caller's time.
    pub fn next_departure_at(&self, now: u64) -> Option<u64> {
        self.words.next_departure_at(now)
    }

    /// Takes an item out of the queue before it leaves. `None` if it has left. The items behind it
    /// move up. Its memory becomes free when all items before it have left.
    pub fn cancel(&self, ticket: Ticket) -> Option<T> {
        self.words.cancel(ticket).map(Self::item)
    }

    /// Takes the oldest item at once, without the policy. A program that ends can empty a queue
    /// with it.
    pub fn drain(&self) -> Option<T> {
        self.words.drain().map(Self::item)
    }

    /// Refuses all offers from now on, and wakes all callers that sleep. Items in the queue stay,
    /// and callers can take them. An offer of another thread that overlaps this call may still
    /// succeed.
    pub fn close(&self) {
        self.words.close();
    }

    /// Whether [`Queue::close`] was called.
    pub fn is_closed(&self) -> bool {
        self.words.is_closed()
    }

    /// The number of items. A cancelled item counts as long as an older item is in the queue. Other
    /// threads may change the number at once.
    pub fn len(&self) -> u64 {
        self.words.len()
    }

    /// Whether [`Queue::len`] is 0.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The most items that wait in the first queue.
    pub fn capacity(&self) -> u64 {
        self.words.capacity()
    }

    /// The most items that wait in the spare ([`Queue::with_spare`]).
    pub fn spare(&self) -> u64 {
        self.words.spare()
    }

    /// The time of the queue's clock.
    pub fn now(&self) -> u64 {
        self.words.clock.now()
    }

    /// The queue's clock.
    pub fn clock(&self) -> &C {
        &self.words.clock
    }

    fn put(
        &self,
        item: T,
        put: impl FnOnce(u64) -> Result<Ticket, Refused<u64>>,
    ) -> Result<Ticket, Refused<T>> {
        let word = Box::into_raw(Box::new(item)) as u64;
        put(word)
            .map_err(|refused| Refused { item: Self::item(refused.item), reason: refused.reason })
    }

    fn item(word: u64) -> T {
        // SAFETY: every word of this queue was made by `put` from a Box, and the ring gives each
        // word out once.
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

    /// [`Queue::take`] that sleeps up to `patience` nanoseconds until an item may leave. It returns
    /// `None` at once if the queue is closed and empty.
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
