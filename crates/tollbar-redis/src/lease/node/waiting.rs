//! Requests that wait for the store's answer.

use super::super::bell;
use super::super::ring::MessageKind;
use super::super::said::Said;
use super::super::state::KeyPhase;
use super::super::stats::Circuit;
use super::denial::{denied, never};
use super::Node;
use tollbar::decision::{Decision, Reason};

/// A request that waits for the store's answer. It is plain data: to give up, drop it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    cost: u64,
    /// When the request gives up, in nanoseconds of the node's clock.
    end: u64,
    questions: u32,
    /// Whether the request is counted in the key's line since the last question.
    is_counted: bool,
}

/// The most questions of one request. Another request of the node may take the permits that the
/// store served, and then the request asks again.
const QUESTIONS: u32 = 16;
/// The most tries to find a line. A try fails if another key takes the line between two looks.
const TRIES: u32 = 4;

impl Wait {
    /// A request for `cost` permits that waits until `end`, in nanoseconds on the scale of
    /// [`Node::now`].
    pub const fn new(cost: u64, end: u64) -> Wait {
        Wait::resumed(cost, end, 0)
    }

    /// The request whose [`Wait::progress`] was `progress`.
    pub const fn resumed(cost: u64, end: u64, progress: u32) -> Wait {
        Wait { cost, end, questions: progress >> 1, is_counted: progress & 1 != 0 }
    }

    /// How far the request has come, as a number: for callers that keep it in a struct of their
    /// own. A new request has 0.
    pub const fn progress(&self) -> u32 {
        self.questions << 1 | self.is_counted as u32
    }
}

impl Node {
    /// [`Node::check`] that waits for the store's answer, for at most `timeout` nanoseconds. As
    /// long as the store answers, it admits all that the store would admit. A wait takes about one
    /// round trip, because the call wakes the client and the answer wakes the call.
    ///
    /// The call does not wait while the circuit is open. While a client connects for the first
    /// time, the call waits for that. It denies as [`Reason::Pending`] if no
    /// answer came within `timeout` or within [`Terms::patience`](crate::lease::Terms::patience).
    /// The store may still charge such a request.
    pub fn wait(&self, key: &[u8], cost: u64, timeout: u64) -> Decision {
        let end = self.now().saturating_add(timeout);
        let mut wait = Wait::new(cost, end);
        loop {
            let answers = self.header().answers();
            let now = self.now();
            if let Some(decision) = self.poll_wait(&mut wait, key, now) {
                return decision;
            }
            // The circuit may open without an answer.
            let nanos = end.saturating_sub(now).min(self.patience());
            bell::sleep_until_answered(self.header(), answers, nanos);
        }
    }

    /// Decides a request that waits, at `now`; `None` as long as it waits. An event loop polls
    /// after each turn of the client ([`Client::tick`](crate::lease::Client::tick)), and once when
    /// the request's time is over.
    pub fn poll_wait(&self, wait: &mut Wait, key: &[u8], now: u64) -> Option<Decision> {
        let (hash, cost) = (self.hash(key), wait.cost);
        if cost == 0 {
            return Some(self.peek_at(key, now, 0));
        }
        if let Some(taken) = self.take(hash, now, cost) {
            if taken.low {
                self.nudge(hash, key, now, 1);
            }
            return Some(Decision::admitted(taken.left));
        }
        if cost > self.live().most() {
            return Some(never(0));
        }
        match self.circuit(now) {
            Circuit::Closed => {}
            // The client connects. Its first answer or fault ends this.
            Circuit::Unknown if now < wait.end && self.has_client(now) => return None,
            _ => return Some(self.check_at(key, now, cost)),
        }
        for _ in 0..TRIES {
            let Some(line) = self.claim(hash, now) else { return Some(self.full()) };
            let phase = line.state_of(hash).unwrap_or_default().phase_at(now);
            if wait.is_counted && phase == KeyPhase::Asked {
                break;
            }
            // By the right, or denied for certain. A key of which the store refused only a lease
            // may still have the cost of this request.
            let decision = self.by_right(line, hash, key, now, cost);
            if let Some(decision) = decision.filter(|d| d.is_allowed() || phase == KeyPhase::Firm) {
                return Some(self.counted(decision));
            }
            if wait.questions >= QUESTIONS {
                return Some(self.counted(denied(Reason::Pending, 0, self.answer_takes())));
            }
            let until = now.saturating_add(self.patience());
            wait.is_counted = line.wait(hash, now, until);
            if !wait.is_counted {
                // Another key has taken the line meanwhile.
                continue;
            }
            wait.questions += 1;
            if !self.ring_up(hash, key, MessageKind::Waiting, cost, 0) {
                line.heard(hash, &Said::default(), now, now);
                return Some(self.counted(denied(Reason::Pending, 0, self.answer_takes())));
            }
            break;
        }
        match wait.is_counted && now < wait.end {
            true => None,
            false => Some(self.counted(denied(Reason::Pending, 0, self.answer_takes()))),
        }
    }
}
