//! Decisions on requests that no lease covers.

use super::denial::{denied, never};
use super::key_names::reserve_key;
use super::Node;
use crate::lease::line::Line;
use crate::lease::ring::MessageKind;
use crate::lease::said::Said;
use crate::lease::state::KeyPhase;
use crate::lease::stats::{Circuit, Count};
use crate::lease::terms::Fallback;
use tollbar::decision::{Decision, Reason};
use tollbar::internal::sync::Ordering;

impl Node {
    /// Decides a request that no lease covers: by the key's right, and while the circuit is not
    /// closed as [`Fallback`] says.
    #[inline(never)]
    pub(super) fn without_lease(&self, hash: u64, key: &[u8], now: u64, cost: u64) -> Decision {
        if cost > self.live().most() {
            return never(0);
        }
        if self.circuit(now) != Circuit::Closed {
            return self.without_store(hash, key, now, cost);
        }
        let Some(line) = self.claim(hash, now) else { return self.full() };
        let decision = self.by_right(line, hash, key, now, cost).unwrap_or_else(|| {
            let until = now.saturating_add(self.patience());
            if line.ask(hash, now, until) && !self.ring_up(hash, key, MessageKind::Right, 0, cost) {
                line.heard(hash, &Said::default(), now, until);
            }
            denied(Reason::Pending, 0, self.answer_takes())
        });
        self.counted(decision)
    }

    /// Admits a request by the key's right, or denies it if the store has no permits. `None`: only
    /// the store can tell.
    pub(super) fn by_right(
        &self,
        line: &Line,
        hash: u64,
        key: &[u8],
        now: u64,
        cost: u64,
    ) -> Option<Decision> {
        // A client that takes no turns sends the store no debts.
        let is_heard = now.abs_diff(self.header().beat.load(Ordering::Relaxed)) <= self.patience();
        let right = if is_heard { self.live().right() } else { 0 };
        if let Some(left) = line.use_right(hash, now, cost, right) {
            if self.write_message(hash, key, MessageKind::Right, cost, 0) {
                self.count(Count::Overdrawn, cost);
                return Some(Decision::admitted(left));
            }
            line.return_right(hash, cost);
        }
        let state = line.state_of(hash)?;
        match state.phase_at(now) {
            KeyPhase::Dry | KeyPhase::Firm => {
                Some(denied(Reason::StoreDenied, 0, state.time().saturating_sub(now)))
            }
            _ => None,
        }
    }

    /// Decides a request while the circuit is not closed.
    fn without_store(&self, hash: u64, key: &[u8], now: u64, cost: u64) -> Decision {
        let mut retry = self.patience();
        match self.fallback {
            Fallback::Allow => {
                self.nudge(hash, key, now, cost);
                self.count(Count::Uncounted, cost);
                return Decision::admitted(0).because(Reason::StoreDown);
            }
            Fallback::Deny => self.nudge(hash, key, now, cost),
            Fallback::Share => {
                let (policy, bytes) = reserve_key(key);
                let own = self.reserve.check_at(policy, bytes, now, cost);
                // If the ring has no room for the debt, the request is denied, and the permits
                // drawn from the reserve are lost.
                if own.is_allowed() && self.write_message(hash, key, MessageKind::Fallback, cost, 0)
                {
                    self.count(Count::FallbackPermits, cost);
                    return Decision::admitted(own.remaining).because(Reason::StoreDown);
                }
                if !own.is_allowed() {
                    retry = retry.min(own.retry_after);
                }
                self.nudge(hash, key, now, cost);
            }
        }
        self.counted(denied(Reason::StoreDown, 0, retry))
    }

    /// The decision, counted if it is a denial.
    pub(super) fn counted(&self, decision: Decision) -> Decision {
        if !decision.is_allowed() {
            self.count(Count::Denied, 1);
            self.count(
                match decision.reason {
                    Reason::StoreDenied => Count::DeniedByStore,
                    Reason::StoreDown => Count::DeniedByFallback,
                    Reason::TableFull => Count::Full,
                    _ => Count::DeniedPending,
                },
                1,
            );
        }
        decision
    }

    /// The denial of a key for which the node has no line.
    pub(super) fn full(&self) -> Decision {
        self.counted(denied(Reason::TableFull, 0, self.answer_takes()))
    }
}
