//! The driver decides what to ask the store. It does no input or output: its caller sends its
//! questions and passes on the answers.
//!
//! At most one question about each key is in flight. While the store does not answer, at most one
//! question in all is in flight. It is a question for the script and not a ping, so the circuit
//! closes only when the store's script works.

use super::ask::Ask;
use super::bucket::Grant;
use super::keys::{Entry, Fifo, Keys};
use super::node::Node;
use super::ring::{Found, KeyMessage};
use super::said::Said;
use super::stats::{Circuit, Count};
use super::terms::Terms;
use super::watchdog::{Trouble, Watchdog};
use entry::chunk_most;
use pace::Pace;
use tollbar::internal::sync::Ordering;

/// The state of the client that asks the store for a [`Node`]. Times are nanoseconds of the node's
/// clock.
#[derive(Debug)]
pub struct Driver {
    keys: Keys,
    /// Questions in flight, in the order in which the store answers them, with the times they were
    /// sent.
    flight: Fifo,
    /// The sum of all keys' debts, in flight or not. Each turn reads it, and adding up thousands of
    /// keys would take too long.
    owed: u64,
    /// A message whose key has no entry yet, because all entries of its set are busy. The driver
    /// reads no further message before it has one.
    stalled: Option<KeyMessage>,
    /// The number of the ring's message that is claimed and not published, and when the driver
    /// first saw it so.
    claimed: Option<(u64, u64)>,
    circuit: Circuit,
    watchdog: Watchdog,
    /// The largest grant by the cap in force, in permits. 0: no answer has come.
    most: u64,
    /// Counts turns. Each sweeps a part of the node's lines.
    turns: usize,
    /// Whether an answer has come since the driver last woke the callers that wait.
    news: bool,
    /// When the circuit last closed.
    closed_at: u64,
    /// When the store last answered.
    answered_at: u64,
    /// The earliest time of the next question while the circuit is not closed.
    probe_at: u64,
    /// Nanoseconds between two questions to a store that does not answer.
    pause: u64,
    /// When the queued questions have to be sent; `u64::MAX`: there are none.
    due_at: u64,
    /// Whether a key in the queue has used half of its right.
    is_soon: bool,
    pace: Pace,
    random: u64,
}

/// A question to be sent to the store.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The key's name in the store (`node::key_names`). `None`: the question is about no key.
    pub key: Option<&'a [u8]>,
    /// The question.
    pub ask: Ask,
}

/// The most questions in flight.
const FLIGHT_MOST: usize = 256;
/// The number of a question without a key.
const PROBE: u32 = u32::MAX;
/// An idle driver that has had no answer for this many nanoseconds sends a question without a key.
/// If the store has lost its data, a node that knew the old data must ask within `record::GRACE`.
const HEARTBEAT: u64 = 400_000_000;
/// The shortest and the longest time between two questions to a store that does not answer, in
/// nanoseconds. It doubles each time the circuit opens within [`STEADY`] after it has closed, as of
/// a store that is full and serves a question now and then.
const PROBES: u64 = 50_000_000;
const PROBES_MOST: u64 = 2_000_000_000;
/// A circuit that was closed for so many nanoseconds forgets such times.
const STEADY: u64 = 5_000_000_000;
/// The driver skips a message that a writer has claimed and not published for this many
/// nanoseconds: the writer counts as dead.
const DEAD: u64 = 1_000_000_000;

impl Driver {
    /// A driver with room for at least `keys` keys, at most 32,768; `seed` spreads its retries.
    /// `None` if there is no memory.
    pub fn new(keys: usize, seed: u64) -> Option<Driver> {
        let keys = Keys::new(keys.min(1 << 15))?;
        Some(Driver {
            keys,
            flight: Fifo::new(FLIGHT_MOST)?,
            owed: 0,
            stalled: None,
            claimed: None,
            circuit: Circuit::Unknown,
            watchdog: Watchdog::default(),
            most: 0,
            turns: 0,
            news: false,
            closed_at: 0,
            answered_at: 0,
            probe_at: 0,
            pause: PROBES,
            due_at: u64::MAX,
            is_soon: false,
            pace: Pace::default(),
            random: seed | 1,
        })
    }

    /// Reads the callers' messages and publishes the driver's beat, circuit and debts. Opens the
    /// circuit if the oldest question has been in flight for longer than the patience.
    pub fn collect(&mut self, node: &Node, now: u64) {
        let header = node.header();
        // Relaxed, here and below: no word of the header publishes another.
        header.beat.store(now, Ordering::Relaxed);
        if let Some(message) = self.stalled.take() {
            self.note(node, message, now);
        }
        // At most one ring of messages a turn, so that writers who never stop cannot keep the
        // driver from its questions.
        for _ in 0..node.ring().len() {
            if self.stalled.is_some() {
                break;
            }
            match node.pop() {
                Found::Message(message) => self.note(node, message, now),
                Found::Lost => {}
                Found::Empty => {
                    self.claimed = None;
                    self.turns = self.turns.wrapping_add(1);
                    node.sweep(self.turns, now, |hash| self.keys.is_owed(hash));
                    break;
                }
                Found::Claimed(number) => match self.claimed {
                    Some((same, since)) if same == number && now.saturating_sub(since) > DEAD => {
                        node.skip(number)
                    }
                    Some((same, _)) if same == number => break,
                    _ => {
                        self.claimed = Some((number, now));
                        break;
                    }
                },
            }
        }
        if self.flight.front().is_some_and(|(_, at)| now.saturating_sub(at) > node.patience()) {
            self.open(node, now);
        }
        if header.circuit.load(Ordering::Relaxed) != self.circuit as u64 {
            header.circuit.store(self.circuit as u64, Ordering::Relaxed);
        }
        header.owed.store(self.owed(), Ordering::Relaxed);
    }

    /// Whether a question should be sent now. A request that waits or was refused is asked about at
    /// once. A debt waits for others for 20 ms. If its key has used half of its right, it waits
    /// only if there have been many calls lately.
    pub fn is_due(&self, now: u64) -> bool {
        if self.ready(now) == 0 {
            return false;
        }
        if self.probes() {
            return true;
        }
        match self.keys.waiting() {
            0 => now.saturating_sub(self.answered_at) > HEARTBEAT,
            _ => now >= self.due_at || self.is_soon && self.pace.may_ask(now),
        }
    }

    /// How many questions may be sent now. A heartbeat may be sent early, in a call that is sent
    /// for others.
    pub fn ready(&self, now: u64) -> usize {
        if self.probes() {
            return usize::from(self.flight.len() == 0 && now >= self.probe_at);
        }
        match self.keys.waiting() {
            0 => {
                let early = HEARTBEAT - HEARTBEAT / 4;
                let idle = now.saturating_sub(self.answered_at) > early;
                usize::from(self.flight.len() == 0 && idle)
            }
            queued => queued.min(FLIGHT_MOST.saturating_sub(self.flight.len())),
        }
    }

    /// Whether the next question is about a key.
    pub fn has_keys(&self) -> bool {
        self.keys.waiting() != 0
    }

    /// Takes the next question into flight, if there is one that may be sent. `now` must be a time
    /// before the store could read it, because a lease's life begins then.
    pub fn ask(&mut self, node: &Node, now: u64) -> Option<Question<'_>> {
        if self.ready(now) == 0 {
            return None;
        }
        // Without a key it is a probe or a heartbeat.
        let number = self.keys.dequeue().unwrap_or(PROBE);
        if self.keys.waiting() == 0 {
            (self.due_at, self.is_soon) = (u64::MAX, false);
        }
        let terms = node.terms();
        self.pace.asked(&terms, now);
        let most = self.most(&terms);
        if let Some(entry) = self.entry(number) {
            entry.note_requests(node, &terms, now);
            if entry.want != 0 && entry.granted_at != 0 {
                entry.adapt(&terms, now, most);
            }
            entry.send();
        }
        node.count(Count::Asked, 1);
        self.flight.push(number, now);
        self.asked(node, self.flight.len().saturating_sub(1), now)
    }

    /// The nth question in flight, as it is to be sent at `now`.
    pub fn asked(&self, node: &Node, n: usize, now: u64) -> Option<Question<'_>> {
        let (number, _) = self.flight.get(n)?;
        let terms = node.terms();
        let (at, slack) = (node.store_time(now), terms.slack());
        Some(match self.keys.get(number as usize) {
            Some(entry) if number != PROBE => Question {
                key: Some(entry.key()),
                ask: Ask { at, slack, ..entry.ask(&terms, self.most(&terms)) },
            },
            _ => Question { key: None, ask: Ask { at, slack, ..Ask::default() } },
        })
    }

    /// Whether one question at a time is sent, to see whether the store answers. A store with the
    /// watchdog's trouble answers, so the driver still sends it all queued questions: they carry
    /// debts.
    fn probes(&self) -> bool {
        self.circuit != Circuit::Closed
            && (self.watchdog.trouble().is_none() || self.keys.waiting() == 0)
    }

    /// Whether the oldest question in flight is about no key.
    pub fn is_probing(&self) -> bool {
        self.flight.front().is_some_and(|(number, _)| number == PROBE)
    }

    /// How many questions are in flight.
    pub fn in_flight(&self) -> usize {
        self.flight.len()
    }

    /// Whether a question is in flight.
    pub fn is_waiting(&self) -> bool {
        self.flight.len() != 0
    }

    /// Applies the answer to the oldest question in flight.
    pub fn answered(&mut self, node: &Node, grant: &Grant, now: u64) {
        let Some((number, sent_at)) = self.flight.pop() else { return };
        let jitter = self.random();
        self.answered_at = now;
        node.timed(now.saturating_sub(sent_at));
        node.on_answer(grant, sent_at, now);
        let terms = node.terms();
        if grant.most != 0 {
            self.most = grant.most;
        }
        let most = self.most(&terms);
        let least = self.entry(number).map_or(0, |entry| entry.ask(&terms, most).least);
        self.watchdog.on_answer(&terms, least, grant, sent_at, now);
        match self.watchdog.trouble() {
            None => self.close(node, now),
            Some(_) => self.open(node, now),
        }
        let Some(entry) = self.entry(number) else { return };
        let (hash, sent_debt) = (entry.hash, core::mem::take(&mut entry.sent_debt));
        let waited = core::mem::take(&mut entry.sent_waiting).saturating_mul(entry.sent_cost);
        // Callers wrote any remaining debt after the question was sent.
        entry.owed_since = sent_at;
        (entry.hint, entry.hint_version) = (grant.tat, terms.version);
        // A cap that has fallen bounds the chunk, or a machine asks for more than it can get.
        entry.chunk = entry.chunk.min(chunk_most(&terms, most));
        let confirmed = core::mem::take(&mut entry.sent_right);
        let said = Said::of(&terms, grant, (confirmed, waited), jitter, now);
        let micros = |n: u64| n.saturating_mul(1000);
        if grant.permits != 0 {
            entry.want = 0;
            entry.granted_at = now;
            entry.life = micros(grant.life);
        } else if grant.retry != 0 {
            entry.want = 0;
        }
        if waited != 0 && grant.served != 0 {
            node.install(hash, grant.served, sent_at.saturating_add(node.patience()), now);
        }
        if grant.permits != 0 {
            // The life begins before the question was sent. So neither the store's clock nor the
            // network's delay prolongs it.
            let until = sent_at.saturating_add(micros(grant.life));
            node.install(hash, grant.permits, until, now);
            node.count(Count::Granted, grant.permits);
        }
        node.heard(hash, &said, now);
        self.news = true;
        self.owed = self.owed.saturating_sub(sent_debt);
        self.requeue(node, number, now);
    }

    /// Wakes the callers that wait, if an answer has come since the last call.
    pub fn wake(&mut self, node: &Node) {
        if core::mem::take(&mut self.news) {
            node.header().wake_callers();
        }
    }

    /// Records that the store refused the oldest question in flight without executing it. With
    /// `gone` it would refuse others, too, so the circuit opens.
    pub fn refused(&mut self, node: &Node, gone: bool, now: u64) {
        let Some((number, _)) = self.flight.pop() else { return };
        self.give_back(node, number, now);
        if gone {
            self.open(node, now);
        }
    }

    /// Records that the connection is gone. The store may have executed any question in flight. The
    /// driver sends the debts of those questions again, so no debt is lost, and the store may
    /// charge a debt twice.
    pub fn dropped(&mut self, node: &Node, now: u64) {
        self.forget_questions(node, now);
        self.watchdog = Watchdog::default();
        self.open(node, now);
    }

    /// Records that another client asks in place of this one. This driver keeps its debts and sends
    /// them when it asks again.
    pub fn displaced(&mut self, node: &Node, now: u64) {
        self.forget_questions(node, now);
        self.watchdog = Watchdog::default();
        self.circuit = Circuit::Unknown;
    }

    /// Records that a connection has been made. The driver may ask the next question at once.
    pub fn connected(&mut self) {
        self.probe_at = 0;
    }

    /// Whether the store answers this driver.
    pub fn circuit(&self) -> Circuit {
        self.circuit
    }

    /// A text for the operator about a store that answers: it answers wrongly, or its record of the
    /// limit has other terms than the machine's configuration.
    pub fn notice(&self, node: &Node) -> Option<&'static str> {
        Some(match self.watchdog.trouble() {
            Some(Trouble::Standing) => "the server answers, but its clock stands still",
            Some(Trouble::Starved) => {
                "the server answers, but has granted nothing for longer than the limit explains"
            }
            None if self.circuit == Circuit::Closed => {
                return node.own_terms().mismatch(&node.terms())
            }
            None => return None,
        })
    }

    /// Nanoseconds that the oldest question has been in flight; 0 if there is none.
    pub fn waiting_for(&self, now: u64) -> u64 {
        self.flight.front().map_or(0, |(_, at)| now.saturating_sub(at))
    }

    /// Whether a question is queued or in flight, or a message waits for an entry.
    pub fn is_busy(&self) -> bool {
        self.keys.waiting() != 0 || self.flight.len() != 0 || self.stalled.is_some()
    }

    /// Permits of debt in the messages read so far that the store has not confirmed.
    pub fn owed(&self) -> u64 {
        self.owed
    }

    /// Whether the store has confirmed every debt in the messages read so far.
    pub fn has_confirmed_all(&self) -> bool {
        self.owed() == 0 && self.stalled.as_ref().map_or(0, |message| message.debt) == 0
    }

    fn open(&mut self, node: &Node, now: u64) {
        if self.circuit != Circuit::Open {
            let is_flapping =
                self.circuit == Circuit::Closed && now.saturating_sub(self.closed_at) < STEADY;
            self.pause = if is_flapping { (self.pause * 2).min(PROBES_MOST) } else { PROBES };
            self.circuit = Circuit::Open;
            // Callers may wait for the first answer.
            self.news = true;
            node.count(Count::Opened, 1);
            // The node may miss a change of the terms.
            node.cut_leases(now);
            node.header().circuit.store(Circuit::Open as u64, Ordering::Relaxed);
        }
        self.probe_at = now.saturating_add(self.pause);
    }

    fn close(&mut self, node: &Node, now: u64) {
        if self.circuit != Circuit::Closed {
            self.closed_at = now;
            self.circuit = Circuit::Closed;
            self.news = true;
            node.header().circuit.store(Circuit::Closed as u64, Ordering::Relaxed);
        }
    }

    /// The largest grant in permits: by the cap in force, and by the node's own.
    fn most(&self, terms: &Terms) -> u64 {
        match self.most {
            0 => terms.most,
            most => most.min(terms.most),
        }
    }

    fn entry(&mut self, number: u32) -> Option<&mut Entry> {
        match number {
            PROBE => None,
            number => self.keys.get_mut(number as usize),
        }
    }

    /// xorshift64, which spreads retries. An observer can predict it.
    fn random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }
}

mod entry;
mod pace;
mod queue;
#[cfg(test)]
mod tests;
