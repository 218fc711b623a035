//! Who asks the store, without input and output: what callers said goes in, questions come out, answers go in.
//!
//! One question a key is on its way at a time, many keys at once. While the store does not answer there is one question at all,
//! and a real one, so that it is known to work when the circuit closes again.

use super::bucket::{Ask, Grant};
use super::keys::{Entry, Fifo, Keys, Phase};
use super::node::Node;
use super::ring::{Found, Message};
use super::stats::{Circuit, Count};
use super::watchdog::{Trouble, Watchdog};
use crate::sync::Ordering;

/// The state of the one who asks for a [`Node`].
#[derive(Debug)]
pub struct Driver {
    keys: Keys,
    queue: Fifo,
    /// Questions on their way, in the order in which they will be answered, with the times they were put.
    flight: Fifo,
    /// The debts of all keys, told or not. The loop asks for it each time, and there are thousands of keys.
    owed: u64,
    /// A message whose key has no place yet.
    stalled: Option<Message>,
    /// A place of the ring that was claimed and not published, and since when.
    claimed: Option<(u64, u64)>,
    circuit: Circuit,
    watchdog: Watchdog,
    /// Whether stricter terms than this node's are in force.
    mixed: bool,
    /// When it last closed.
    closed_at: u64,
    /// When the store last answered, or was asked in vain.
    answered_at: u64,
    probe_at: u64,
    random: u64,
}

/// A question to be put to the store.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The key's bytes as the store has them.
    pub key: &'a [u8],
    /// What is asked.
    pub ask: Ask,
}

/// Questions on their way at most.
const FLIGHT_MOST: usize = 256;
/// The number of a question that is about no key.
const PROBE: u32 = u32::MAX;
/// An idle node lets itself be heard so often: new data must meet those who knew the old ones (`record::GRACE`).
const HEARTBEAT: u64 = 400_000_000;
/// So often a store that does not answer is tried.
const PROBES: u64 = 50_000_000;
/// A key that overdraws so many permits in a lease's life is to have a lease.
const FREQUENT: u64 = 8;
/// After so long a writer that has claimed a place is taken for dead.
const DEAD: u64 = 1_000_000_000;
/// The shortest time between two questions about a key that has nothing.
const RETRY_LEAST: u64 = 200_000;

impl Driver {
    /// For so many keys at one time; `None` if there is no memory.
    pub fn new(keys: usize, seed: u64) -> Option<Driver> {
        let keys = Keys::new(keys.min(1 << 15))?;
        let queue = Fifo::new(keys.len())?;
        Some(Driver {
            keys,
            queue,
            flight: Fifo::new(FLIGHT_MOST)?,
            owed: 0,
            stalled: None,
            claimed: None,
            circuit: Circuit::Unknown,
            watchdog: Watchdog::default(),
            mixed: false,
            closed_at: 0,
            answered_at: 0,
            probe_at: 0,
            random: seed | 1,
        })
    }

    /// Takes in what callers have said, and lets them know that somebody is there.
    pub fn collect(&mut self, node: &Node, now: u64) {
        let header = node.header();
        // Relaxed: words for themselves.
        header.beat.store(now, Ordering::Relaxed);
        if let Some(message) = self.stalled.take() {
            self.note(node, message, now);
        }
        // A ring's worth at a time: writers that never stop do not keep the driver from its questions.
        for _ in 0..node.ring().len() {
            if self.stalled.is_some() {
                break;
            }
            match node.pop() {
                Found::Message(message) => self.note(node, message, now),
                Found::Lost => {}
                Found::Empty => {
                    self.claimed = None;
                    break;
                }
                Found::Claimed(number) => match self.claimed {
                    Some((same, since)) if same == number && now.saturating_sub(since) > DEAD => node.skip(number),
                    Some((same, _)) if same == number => break,
                    _ => {
                        self.claimed = Some((number, now));
                        break;
                    }
                },
            }
        }
        if self.flight.front().is_some_and(|(_, at)| now.saturating_sub(at) > node.terms.patience()) {
            self.open(node, now);
        }
        if header.circuit.load(Ordering::Relaxed) != self.circuit as u64 {
            header.circuit.store(self.circuit as u64, Ordering::Relaxed);
        }
        header.owed.store(self.owed(), Ordering::Relaxed);
    }

    /// The next question, if it is time for one. It has to be [`Driver::sent`], or it comes again.
    pub fn next(&mut self, node: &Node, now: u64) -> Option<Question<'_>> {
        if self.flight.is_full() {
            return None;
        }
        // A store that answers, but not as it should, is told all debts.
        let probes = self.circuit != Circuit::Closed && (self.watchdog.trouble().is_none() || self.queue.len() == 0);
        if probes && (self.flight.len() != 0 || now < self.probe_at) {
            return None;
        }
        let slack = node.terms.slack();
        let Some((number, _)) = self.queue.front() else {
            // Nothing to ask: is it still there?
            return match self.circuit != Circuit::Closed || now.saturating_sub(self.answered_at) > HEARTBEAT {
                true if self.flight.len() == 0 => {
                    Some(Question { key: b"", ask: Ask { at: node.store_time(now), slack, ..Ask::default() } })
                }
                _ => None,
            };
        };
        let entry = self.keys.get_mut(number as usize)?;
        if entry.want != 0 && entry.granted_at != 0 {
            entry.adapt(now, node.terms.life, node.terms.most);
        }
        let entry = self.keys.get(number as usize)?;
        Some(Question { key: entry.key(), ask: Ask { at: node.store_time(now), slack, ..entry.ask(node) } })
    }

    /// The question that [`Driver::next`] gave is on its way since `now`, a time before it could have been read.
    pub fn sent(&mut self, node: &Node, now: u64) {
        node.count(Count::Asked, 1);
        let number = match self.queue.pop() {
            Some((number, _)) => number,
            None => PROBE,
        };
        if let Some(entry) = self.entry(number) {
            entry.state = Phase::Asked;
            entry.told = core::mem::take(&mut entry.debt);
            entry.asked = entry.want;
        }
        self.flight.push(number, now);
    }

    /// Whether answers are waited for.
    pub fn is_waiting(&self) -> bool {
        self.flight.len() != 0
    }

    /// The answer to the question that has been on its way the longest.
    pub fn answered(&mut self, node: &Node, grant: &Grant, now: u64) {
        let Some((number, sent_at)) = self.flight.pop() else { return };
        let jitter = self.random();
        self.answered_at = now;
        node.timed(now.saturating_sub(sent_at));
        self.mixed = grant.mixed;
        node.heard(grant, sent_at, now);
        let least = self.entry(number).map_or(0, |entry| entry.ask(node).least);
        self.watchdog.heard(&node.terms, least, grant, sent_at, now);
        match self.watchdog.trouble() {
            None => self.close(node, now),
            Some(_) => self.open(node, now),
        }
        let Some(entry) = self.entry(number) else { return };
        let told = core::mem::take(&mut entry.told);
        // What is still owed was said after the question was put.
        entry.owed_since = sent_at;
        entry.hint = grant.tat;
        if grant.permits != 0 {
            entry.want = 0;
            entry.granted_at = now;
            // Counted from before it was asked for: no clock and no delay of the network is in it.
            let until = sent_at.saturating_add(node.terms.life);
            node.install(entry.hash, grant.permits, until, now, core::mem::take(&mut entry.hot));
            node.count(Count::Granted, grant.permits);
        } else if entry.asked != 0 {
            let wait = grant.retry.saturating_mul(1000).max(RETRY_LEAST);
            // Whoever asks for a saturated key comes back at a time of its own.
            let wait = wait.saturating_add((wait / 256).saturating_mul(jitter >> 58));
            entry.want = 0;
            node.dry(entry.hash, now.saturating_add(wait));
        }
        self.owed = self.owed.saturating_sub(told);
        self.requeue(number, now);
    }

    /// The store has refused the question that has been on its way the longest: it has not been executed. `gone`: nor will others
    /// be for now.
    pub fn refused(&mut self, node: &Node, gone: bool, now: u64) {
        let Some((number, _)) = self.flight.pop() else { return };
        self.give_back(node, number, now);
        if gone {
            self.open(node, now);
        }
    }

    /// The connection is gone. Nobody knows what has been executed: debts are told again.
    pub fn dropped(&mut self, node: &Node, now: u64) {
        self.forget_questions(node, now);
        self.watchdog = Watchdog::default();
        self.open(node, now);
    }

    /// Another asks in its place. What is owed here is told if this one is to ask again.
    pub fn displaced(&mut self, node: &Node, now: u64) {
        self.forget_questions(node, now);
        self.watchdog = Watchdog::default();
        self.circuit = Circuit::Unknown;
    }

    /// A connection is there: it is tried at once.
    pub fn connected(&mut self) {
        self.probe_at = 0;
    }

    /// Whether the store is answering.
    pub fn circuit(&self) -> Circuit {
        self.circuit
    }

    /// What is to be said of a store that answers.
    pub fn notice(&self) -> Option<&'static str> {
        Some(match self.watchdog.trouble() {
            Some(Trouble::Standing) => "the server answers, but its clock stands still",
            Some(Trouble::Starved) => "the server answers, but has granted nothing for longer than the limit explains",
            None if self.mixed && self.circuit == Circuit::Closed => "other machines have a lower rate, a smaller burst or other options for this limit: the stricter are in force",
            None => return None,
        })
    }

    /// How long the oldest question has been on its way.
    pub fn waiting_for(&self, now: u64) -> u64 {
        self.flight.front().map_or(0, |(_, at)| now.saturating_sub(at))
    }

    /// Questions that are to be put, or whose keys have no place yet.
    pub fn is_busy(&self) -> bool {
        self.queue.len() != 0 || self.flight.len() != 0 || self.stalled.is_some()
    }

    /// Permits taken without a lease of which the store has not been told, as far as callers have said so.
    pub fn owed(&self) -> u64 {
        self.owed
    }

    /// Whether the store knows of all that callers have said to have taken without a lease.
    pub fn has_told(&self) -> bool {
        self.owed() == 0 && self.stalled.as_ref().map_or(0, |message| message.debt) == 0
    }

    fn note(&mut self, node: &Node, message: Message, now: u64) {
        let Some(number) = self.keys.place(&message, now) else {
            self.stalled = Some(message);
            return;
        };
        let (closed, closed_at) = (self.circuit == Circuit::Closed, self.closed_at);
        let Some(entry) = self.keys.get_mut(number) else { return };
        if entry.debt == 0 && entry.told == 0 {
            entry.owed_since = now;
        }
        // What was owed when the circuit closed does not count: no bound was promised for it.
        let overdue = message.debt != 0 && now.saturating_sub(entry.owed_since.max(closed_at)) > node.terms.patience();
        entry.debt = entry.debt.saturating_add(message.debt);
        entry.want = entry.want.max(message.want);
        // A lease that is wanted along with a debt is for the next request, which may be long in coming.
        entry.hot |= message.want != 0 && message.debt == 0;
        if entry.frequents(message.debt, now, node.terms.life) {
            entry.hot = true;
            if entry.want == 0 {
                entry.want = 1;
                node.expect(entry.hash, now);
            }
        }
        self.owed = self.owed.saturating_add(message.debt);
        if entry.state == Phase::Idle {
            entry.state = Phase::Queued;
            self.queue.push(number as u32, now);
        }
        // A key goes on overdrawing while the store is not told of it: it does not answer in time, or not enough.
        if closed && overdue {
            self.open(node, now);
        }
    }

    /// What has been said meanwhile.
    fn requeue(&mut self, number: u32, now: u64) {
        let Some(entry) = self.entry(number) else { return };
        let more = entry.debt != 0 || entry.want != 0;
        entry.state = if more { Phase::Queued } else { Phase::Idle };
        if more {
            self.queue.push(number, now);
        }
    }

    fn forget_questions(&mut self, node: &Node, now: u64) {
        while let Some((number, _)) = self.flight.pop() {
            self.give_back(node, number, now);
        }
    }

    fn give_back(&mut self, node: &Node, number: u32, now: u64) {
        let Some(entry) = self.entry(number) else { return };
        entry.debt = entry.debt.saturating_add(core::mem::take(&mut entry.told));
        entry.want = 0;
        let hash = entry.hash;
        node.unanswered(hash);
        self.requeue(number, now);
    }

    fn open(&mut self, node: &Node, now: u64) {
        if self.circuit != Circuit::Open {
            self.circuit = Circuit::Open;
            node.count(Count::Opened, 1);
            node.header().circuit.store(Circuit::Open as u64, Ordering::Relaxed);
        }
        self.probe_at = now.saturating_add(PROBES);
    }

    fn close(&mut self, node: &Node, now: u64) {
        if self.circuit != Circuit::Closed {
            self.closed_at = now;
            self.circuit = Circuit::Closed;
            node.header().circuit.store(Circuit::Closed as u64, Ordering::Relaxed);
        }
    }

    fn entry(&mut self, number: u32) -> Option<&mut Entry> {
        match number {
            PROBE => None,
            number => self.keys.get_mut(number as usize),
        }
    }

    /// xorshift: for spreading, not for secrets.
    fn random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }
}

impl Entry {
    fn ask(&self, node: &Node) -> Ask {
        let least = match self.want {
            0 => 0,
            // A quarter of a chunk is worth a question.
            cost => cost.max(self.chunk / 4).min(node.terms.most),
        };
        let want = if self.want == 0 { 0 } else { self.asked_for() };
        Ask { want, least, hint: self.hint, debt: self.debt, ..Ask::default() }
    }

    /// Whether so much is overdrawn that a lease would serve it better: one question in place of many.
    fn frequents(&mut self, debt: u64, now: u64, life: u64) -> bool {
        if now.saturating_sub(self.counted_since) > life {
            (self.counted, self.counted_since) = (0, now);
        }
        self.counted = self.counted.saturating_add(debt);
        debt != 0 && self.counted >= FREQUENT
    }

    fn asked_for(&self) -> u64 {
        self.chunk.max(self.want)
    }

    /// The chunk is what is spent in half a lease's life: doubled if it was gone sooner, halved if it ran out.
    fn adapt(&mut self, now: u64, life: u64, most: u64) {
        let lasted = now.saturating_sub(self.granted_at);
        if lasted < life / 2 {
            self.chunk = self.chunk.saturating_mul(2).min(most / 2).max(1);
        } else if lasted > life {
            self.chunk = (self.chunk / 2).max(1);
        }
        self.granted_at = 0;
    }
}

#[cfg(test)]
mod tests;
