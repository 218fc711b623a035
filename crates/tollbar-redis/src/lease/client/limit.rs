//! One of the limits of a client.

use super::owner::{is_alive, LEADER};
use crate::lease::driver::Driver;
use crate::lease::node::Node;
use crate::lease::stats::Circuit;
use crate::lease::wire::{self, Refusal};
use crate::lease::NodeError;
use crate::redis::{Fault, Text};
use alloc::boxed::Box;
use core::ops::Deref;
use tollbar::internal::sync::{boxed, Ordering};

/// A limit's node and driver.
pub(super) struct Limit<N> {
    pub(super) node: N,
    pub(super) driver: Driver,
    /// The node's time at the last turn, in nanoseconds.
    pub(super) now: u64,
    /// The node's bell before the last turn.
    pub(super) bell: u32,
    /// Whether this client asks the store for the node.
    pub(super) leads: bool,
    /// Whether the store has refused a call with questions of this limit and others. Until it
    /// answers one with this limit's questions only, no call mixes them.
    pub(super) alone: bool,
    /// Whether the client has asked about this limit on the current connection.
    pub(super) has_asked: bool,
    /// Questions of this limit in the call that is being made.
    pub(super) quota: usize,
    /// The circuit that the last [`Client::has_changed`](super::Client::has_changed) saw.
    pub(super) reported: Circuit,
    /// Why the store last refused a question. The next answer clears it.
    pub(super) fault: Option<Refused>,
}

/// A refusal by the store.
pub(super) struct Refused {
    pub(super) fault: Fault,
    /// The beginning of the key that the question was about; empty for one without a key.
    pub(super) key: Text<KEY_SHOWN>,
    /// The store's words.
    pub(super) words: Text<144>,
}

/// The most bytes of a key in [`Client::trouble`](super::Client::trouble).
pub(super) const KEY_SHOWN: usize = 40;

impl<N: Deref<Target = Node>> Limit<N> {
    /// It is made in a frame of its own, so that its bytes are on no deeper caller's stack.
    #[inline(never)]
    pub(super) fn boxed(node: N, random: u64) -> Result<Box<Limit<N>>, NodeError> {
        let driver = Driver::new(node.capacity(), random).ok_or(NodeError::NoMemory)?;
        // Requests that wait know from now on that there is a client. It need not beat if another
        // has: the exchange fails. Relaxed: the word publishes no other.
        let (beat, now) = (&node.header().beat, node.now());
        let _ = beat.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
        let limit = Limit {
            node,
            driver,
            now: 0,
            bell: 0,
            leads: false,
            alone: false,
            has_asked: false,
            quota: 0,
            reported: Circuit::Unknown,
            fault: None,
        };
        boxed(limit).ok_or(NodeError::NoMemory)
    }

    /// Forgets all debts: they belong to the parent of this process.
    pub(super) fn after_fork(&mut self, random: u64) {
        if let Some(driver) = Driver::new(self.node.capacity(), random) {
            self.driver = driver;
        }
        self.leads = false;
    }

    /// Begins a turn. Makes the client `me` the one that asks the store for the node if there is
    /// none. Returns whether `me` asked before and another client does now.
    pub(super) fn begin(&mut self, me: u64) -> bool {
        self.bell = self.node.header().bell();
        self.now = self.node.now();
        let leads = self.leads_as(me);
        core::mem::replace(&mut self.leads, leads) && !leads
    }

    /// Records that a connection has been made.
    pub(super) fn connected(&mut self) {
        self.has_asked = false;
        self.driver.connected();
    }

    pub(super) fn is_owned_by(&self, me: u64) -> bool {
        self.node.header().owner.load(Ordering::Relaxed) == me
    }

    /// Lets another client ask for the node.
    pub(super) fn resign(&mut self, me: u64) {
        let header = self.node.header();
        if self.is_owned_by(me) {
            // `collect` published the debts before the last answers came.
            header.owed.store(self.driver.owed(), Ordering::Relaxed);
        }
        let _ = header.owner.compare_exchange(me, 0, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Records that the store refused the `count` oldest questions in flight.
    pub(super) fn refused(&mut self, count: usize, gone: bool) {
        for _ in 0..count {
            self.driver.refused(&self.node, gone, self.now);
        }
    }

    /// Passes the `count` grants of an answer's item about this limit to the driver. `None`: there
    /// is no such item.
    pub(super) fn answered(&mut self, item: Option<&[u8]>, count: usize) {
        let keys = if self.driver.is_probing() { 0 } else { count };
        match item.and_then(|item| wire::grants(item, keys)) {
            Some(Ok(mut grants)) => {
                self.fault = None;
                for _ in 0..count {
                    self.driver.answered(&self.node, &grants.next(), self.now);
                }
            }
            Some(Err(Refusal { question, text })) => {
                self.note(Fault::of(text), text, question.saturating_sub(1));
                self.refused(count, true);
            }
            // A reply of another form counts as a refusal.
            None => {
                self.note(Fault::Protocol, Fault::Protocol.message().as_bytes(), 0);
                self.refused(count, true);
            }
        }
    }

    /// Remembers why the store refuses the oldest questions in flight, of which the nth is to be
    /// named: `text` is the store's.
    pub(super) fn note(&mut self, fault: Fault, text: &[u8], n: usize) {
        let asked = self.driver.asked(&self.node, n, self.now);
        let key = Text::of(asked.and_then(|asked| asked.key).unwrap_or_default());
        let words = Text::printable(text);
        self.fault = Some(Refused { fault, key, words });
    }

    /// Publishes whether the client waits for an answer about this limit and takes no turns.
    pub(super) fn waits(&self, waits: bool) {
        let since = if waits { self.now.max(1) } else { 0 };
        self.node.header().waits_since.store(since, Ordering::Relaxed);
    }

    fn leads_as(&self, me: u64) -> bool {
        let (header, now) = (self.node.header(), self.now);
        // Acquire, and Release in the exchange below: the next owner sees the ring's tail that the
        // last owner wrote.
        let owner = header.owner.load(Ordering::Acquire);
        if owner == me {
            return true;
        }
        // abs_diff: a beat in the future is damage, and counts as no beat.
        let quiet = now.abs_diff(header.beat.load(Ordering::Relaxed)) > LEADER;
        if owner != 0 && is_alive(owner) && !quiet {
            return false;
        }
        if header.owner.compare_exchange(owner, me, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            return false;
        }
        header.beat.store(now, Ordering::Relaxed);
        self.waits(false);
        true
    }
}
