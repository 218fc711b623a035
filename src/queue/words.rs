//! A queue of 64-bit words.

use super::error::{QueueError, Refusal, Refused};
use super::event::QueueEvent;
use super::ring::{ItemRing, Offered, QueueRoom, TakeAnswer, CELLS_MOST};
#[cfg(doc)]
use super::Queue;
use crate::algorithm::Rule;
use crate::clock::{Clock, Tsc, Utc};
use crate::limiter::clock_fits;
use crate::limiter::waiting::{Waiters, WAITERS};
use crate::policy::{Policy, PolicyError};
use crate::sync::{AtomicU32, Ordering};
use crate::units::NEVER;

/// A [`Queue`] of 64-bit words, such as pointers or numbers of the caller. It allocates only when
/// it is made.
#[derive(Debug)]
pub struct Words<C = Utc<Tsc>> {
    pub(super) ring: ItemRing,
    rule: Rule,
    pub(super) room: QueueRoom,
    pub(super) clock: C,
    /// Offers and [`Words::close`] notify it.
    came: QueueEvent,
    /// Every removal of an item and [`Words::close`] notify it.
    left: QueueEvent,
    /// The callers that sleep until there is room.
    pub(super) waiters: Waiters,
    closed: AtomicU32,
}

/// An item's place in a queue. With it the item can be cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// The number of the item: the first item of a queue has number 0.
    pub number: u64,
    /// The number of items before this one when it was offered. A cancelled item counts as long as
    /// an older item is in the queue.
    pub ahead: u64,
    /// The item's place in the spare ([`Queue::with_spare`]) when it was offered: 1 is the next to
    /// go into the first queue. 0: the item was put into the first queue.
    pub spare: u64,
}

impl<C: Clock> Words<C> {
    /// [`Queue::with`].
    ///
    /// # Errors
    /// [`QueueError`].
    pub fn with(policy: &Policy, capacity: u64, clock: C) -> Result<Words<C>, QueueError> {
        Words::with_spare(policy, capacity, 0, clock)
    }

    /// [`Queue::with_spare`].
    ///
    /// # Errors
    /// [`QueueError`].
    pub fn with_spare(
        policy: &Policy,
        capacity: u64,
        spare: u64,
        clock: C,
    ) -> Result<Words<C>, QueueError> {
        #[cfg(not(loom))]
        if !crate::table::memory::slot::Slot::supported() {
            return Err(QueueError::Unsupported);
        }
        let rule = rule(policy).map_err(QueueError::Policy)?;
        clock_fits(policy, &clock).map_err(QueueError::Policy)?;
        let at_once = policy.burst.max(policy.slack).saturating_add(1);
        let length = capacity.saturating_add(spare).saturating_add(at_once);
        if capacity == 0 || length > CELLS_MOST {
            return Err(QueueError::Capacity);
        }
        let ring = ItemRing::new(length).ok_or(QueueError::NoMemory)?;
        Ok(Words {
            ring,
            rule,
            room: QueueRoom { first: capacity, spare },
            clock,
            came: QueueEvent::new(),
            left: QueueEvent::new(),
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
        match self.ring.offer(&self.rule, now, self.room, item) {
            Offered::Queued { number, ahead, spare } => {
                self.came.notify();
                Ok(Ticket { number, ahead, spare })
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
            TakeAnswer::Item(item) => {
                self.removed();
                Some(item)
            }
            TakeAnswer::Empty | TakeAnswer::At(_) => None,
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

    /// Wakes the callers that sleep for room. In a closed queue it also wakes those that sleep for
    /// an item, because the queue may be empty now.
    fn removed(&self) {
        self.left.notify();
        if self.is_closed() {
            self.came.notify();
        }
    }

    /// [`Queue::close`].
    pub fn close(&self) {
        // Release: a receiver that sees it sees every item that was offered before.
        self.closed.store(1, Ordering::Release);
        self.came.notify();
        self.left.notify();
    }

    /// [`Queue::is_closed`].
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire) != 0
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
        self.room.first
    }

    /// [`Queue::spare`].
    pub fn spare(&self) -> u64 {
        self.room.spare
    }

    /// [`Queue::now`].
    pub fn now(&self) -> u64 {
        self.clock.now()
    }

    pub(super) fn take_before(&self, deadline: u64, stop: &dyn Fn() -> bool) -> Option<u64> {
        loop {
            let listener = self.came.listen();
            if stop() {
                return None;
            }
            // Before the last look at the ring: the queue may be closed after that look found no
            // item, and a producer may have put one in between.
            let closed = self.is_closed();
            let now = self.clock.now();
            let until = match self.ring.take(&self.rule, now) {
                TakeAnswer::Item(item) => {
                    drop(listener);
                    self.removed();
                    return Some(item);
                }
                TakeAnswer::Empty if closed => return None,
                TakeAnswer::Empty => NEVER,
                TakeAnswer::At(at) => at,
            };
            if now >= deadline {
                return None;
            }
            listener.sleep(until.min(deadline).saturating_sub(now));
        }
    }
}

/// The calls that sleep. Their clock must go on while they do.
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
            // There may be room later without any call: when the policy lets an item leave, that
            // item no longer counts as waiting.
            let until = self
                .next_departure_at(now)
                .filter(|&at| at > now)
                .map_or(deadline, |at| at.min(deadline));
            listener.sleep(until - now);
        }
    }

    /// [`Queue::take_within`].
    pub fn take_within(&self, patience: u64) -> Option<u64> {
        self.take_before(self.clock.now().saturating_add(patience), &|| false)
    }

    /// [`Words::take_within`] without an end. It returns `None` if `stop` returns true, which it
    /// calls before each attempt to take an item. [`Words::wake_takers`] causes another attempt.
    pub fn take_unless(&self, stop: &dyn Fn() -> bool) -> Option<u64> {
        self.take_before(NEVER, stop)
    }

    /// Wakes the callers that sleep for an item, so that they try again.
    pub fn wake_takers(&self) {
        self.came.notify();
    }
}

/// The rule of a queue with this policy.
pub(super) fn rule(policy: &Policy) -> Result<Rule, PolicyError> {
    // A taker calls the policy again and again until an item may leave. If refusals counted, these
    // calls would lead to a ban.
    if policy.ban != 0 || policy.count_rejected {
        return Err(PolicyError::OptionMismatch);
    }
    Rule::new(policy)
}
