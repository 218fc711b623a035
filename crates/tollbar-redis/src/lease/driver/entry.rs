//! Builds the question that the driver asks the store about one key.

use crate::lease::ask::Ask;
use crate::lease::keys::{Entry, Phase};
use crate::lease::node::Node;
use crate::lease::terms::{Terms, PATIENCE_MOST};

/// A key with so many debts within a lease's life gets leases. So does one about which so many
/// questions asked for requests that waited.
const FREQUENT: u64 = 4;

impl Entry {
    /// Moves what there is to ask into the question in flight.
    pub(super) fn send(&mut self) {
        self.state = Phase::Asked;
        self.sent_debt = core::mem::take(&mut self.debt);
        self.sent_right = core::mem::take(&mut self.right);
        self.sent_waiting = core::mem::take(&mut self.waiting);
        self.sent_cost = core::mem::take(&mut self.cost);
        self.asked = self.want;
    }

    /// The question in flight.
    pub(super) fn ask(&self, terms: &Terms, most: u64) -> Ask {
        let least = match self.asked {
            0 => 0,
            // A smaller grant than a quarter of a chunk would need another question too soon. No
            // machine asks for more than a quarter of its share of the cap, or it would wait while
            // others take less; nor for more than the rate brings within a quarter of a second, or
            // the last permits of a day's limit would be refused for hours.
            cost => {
                let soon = terms.fitting(PATIENCE_MOST / 1000);
                let share = most.checked_div(4 * terms.nodes).unwrap_or(0);
                let quantum = share.min(soon).max(1);
                cost.max((self.chunk / 4).min(quantum)).min(terms.most)
            }
        };
        Ask {
            want: if self.asked == 0 { 0 } else { self.chunk.max(self.asked) },
            least,
            waiting: self.sent_waiting.saturating_mul(self.sent_cost),
            cost: self.sent_cost,
            // A TAT counts by the terms under which the store told it.
            hint: if self.hint_version == terms.version { self.hint } else { 0 },
            debt: self.sent_debt,
            life: terms.life / 1000,
            ..Ask::default()
        }
    }

    /// Adds the requests that callers have counted in the key's line since the last question.
    pub(super) fn note_requests(&mut self, node: &Node, terms: &Terms, now: u64) {
        let (pending, waiting) = node.take_requests(self.hash, self.cost != 0);
        self.waiting = self.waiting.saturating_add(waiting);
        if self.want != 0 {
            // Each refused request will come again.
            self.want = self.want.max(pending).min(terms.most);
        } else if self.frequents(waiting.min(1), now, terms.life) {
            self.want = 1;
        }
    }

    /// Counts debts and questions that a lease would have saved. Returns whether the key has had
    /// [`FREQUENT`] of them within a lease's life.
    pub(super) fn frequents(&mut self, more: u64, now: u64, life: u64) -> bool {
        if now.saturating_sub(self.counted_since) > life {
            (self.counted, self.counted_since) = (0, now);
        }
        self.counted = self.counted.saturating_add(more);
        more != 0 && self.counted >= FREQUENT
    }

    /// Adapts the chunk to the permits that the key spends in half a lease's life. The chunk
    /// doubles if the last lease lasted less than half a life, and halves if it lasted longer than
    /// a life. It is at most [`chunk_most`].
    pub(super) fn adapt(&mut self, terms: &Terms, now: u64, most: u64) {
        let lasted = now.saturating_sub(self.granted_at);
        if lasted < self.life / 2 {
            self.chunk = self.chunk.saturating_mul(2).min(chunk_most(terms, most));
        } else if lasted > self.life {
            self.chunk = (self.chunk / 2).max(1);
        }
        self.granted_at = 0;
    }
}

/// The largest chunk: half of a machine's share of what the store may grant, or what the rate
/// brings within a quarter of a second if that is more, and at most half of all. The other machines
/// refuse their users the permits that a machine has leased and does not spend.
pub(super) fn chunk_most(terms: &Terms, most: u64) -> u64 {
    let share = most.checked_div(2 * terms.nodes).unwrap_or(0);
    share.max(terms.fitting(PATIENCE_MOST / 1000)).min(most / 2).max(1)
}
