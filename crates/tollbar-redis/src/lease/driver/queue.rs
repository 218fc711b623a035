//! The keys that wait for their questions: which messages make them wait, and until when.

use super::Driver;
use crate::lease::keys::Phase;
use crate::lease::node::Node;
use crate::lease::ring::{KeyMessage, MessageKind};
use crate::lease::said::Said;
use crate::lease::stats::Circuit;

/// The most nanoseconds for which a debt waits for other questions, to go in one call with them.
const HOLD: u64 = 20_000_000;

impl Driver {
    pub(super) fn note(&mut self, node: &Node, message: KeyMessage, now: u64) {
        let Some(number) = self.keys.place(&message, now) else {
            self.stalled = Some(message);
            return;
        };
        let (closed, closed_at) = (self.circuit == Circuit::Closed, self.closed_at);
        let Some(entry) = self.keys.get_mut(number) else { return };
        if entry.debt == 0 && entry.sent_debt == 0 {
            entry.owed_since = now;
        }
        // Time before the circuit closed does not count: debts of an outage are outside the bound.
        let debt = if message.kind == MessageKind::Waiting { 0 } else { message.debt };
        let overdue =
            debt != 0 && now.saturating_sub(entry.owed_since.max(closed_at)) > node.patience();
        match message.kind {
            MessageKind::Right => entry.right = entry.right.saturating_add(debt),
            MessageKind::Fallback => {}
            MessageKind::Waiting => entry.cost = entry.cost.max(message.debt),
        }
        entry.debt = entry.debt.saturating_add(debt);
        entry.want = entry.want.max(message.want);
        if entry.frequents(debt.min(1), now, node.life()) && entry.want == 0 {
            entry.want = 1;
            node.expect(entry.hash, now);
        }
        self.owed = self.owed.saturating_add(debt);
        if entry.state == Phase::Idle {
            self.keys.enqueue(number as u32);
        }
        self.schedule(node, number, now);
        // The key still overdraws, and the store has not confirmed an earlier debt of it for longer
        // than the patience: the store is too slow.
        if closed && overdue {
            self.open(node, now);
        }
    }

    /// Queues the key again if callers wrote messages while its question was in flight.
    pub(super) fn requeue(&mut self, node: &Node, number: u32, now: u64) {
        let Some(entry) = self.entry(number) else { return };
        let more = entry.has_more();
        entry.state = Phase::Idle;
        if more {
            self.keys.enqueue(number);
            self.schedule(node, number as usize, now);
        }
    }

    /// Decides when the queue has to be sent because of this key.
    fn schedule(&mut self, node: &Node, number: usize, now: u64) {
        let Some(entry) = self.keys.get(number) else { return };
        if entry.state != Phase::Queued {
            return;
        }
        let hold = match entry.want != 0 || entry.cost != 0 {
            true => 0,
            false => HOLD.min(node.patience() / 4),
        };
        self.is_soon |= entry.right.saturating_mul(2) >= node.terms().overdraft;
        self.due_at = self.due_at.min(now.saturating_add(hold));
    }

    pub(super) fn forget_questions(&mut self, node: &Node, now: u64) {
        while let Some((number, _)) = self.flight.pop() {
            self.give_back(node, number, now);
        }
    }

    pub(super) fn give_back(&mut self, node: &Node, number: u32, now: u64) {
        let Some(entry) = self.entry(number) else { return };
        entry.debt = entry.debt.saturating_add(core::mem::take(&mut entry.sent_debt));
        entry.right = entry.right.saturating_add(core::mem::take(&mut entry.sent_right));
        (entry.want, entry.sent_waiting) = (0, 0);
        let hash = entry.hash;
        node.heard(hash, &Said::default(), now);
        self.news = true;
        self.requeue(node, number, now);
    }
}
