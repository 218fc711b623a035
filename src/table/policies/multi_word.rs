//! Policies whose state is more than one word: sliding windows and sliding logs.
//!
//! In a table without room such a policy is the only one, and does not change, because a slot's
//! words count in the same way for every key. A slot's state word decides. The slot also has a
//! fixed number of side words (a ring of starts, or the entries of a log). They stay unchanged when
//! another key takes the slot. This is sound, because the ring or log is one long history and the
//! key only a label on it ([`crate::limiter::state_word`]). A table with room may have any policies
//! ([`super::folded`]).
//!
//! A new key takes the slot that the protocol chooses ([`crate::table::slots::protocol`]). The
//! state word alone says when the slot expires.

use crate::algorithm::sliding_log::{KeyedLog, SlidingLog};
use crate::algorithm::sliding_window::SlidingWindow;
use crate::decision::{Decision, Reason, Verdict};
use crate::limiter::log::LogView;
use crate::limiter::ring::RingView;
use crate::limiter::state_word::{self, Owner};
use crate::limiter::words::Protocol;
use crate::policy::{Policy, PolicyError, Words};
use crate::sync::{AtomicU64, Ordering};
use crate::table::memory::slot::{Slot, SlotPair};
use crate::units::NEVER;

/// A compiled policy whose state is more than a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MultiWord {
    Ring(SlidingWindow),
    Log(KeyedLog),
}

/// The operation of a request, with its cost.
#[derive(Clone, Copy)]
pub(crate) enum Op {
    Check(u64),
    Peek(u64),
    TakeUpTo(u64),
}

/// A request's decision, and the number of permits that it took.
#[derive(Clone, Copy)]
pub(crate) struct Decided {
    pub(crate) decision: Decision,
    pub(crate) taken: u64,
}

impl Decided {
    /// The same decision with another reason.
    pub(crate) fn because(self, reason: Reason) -> Decided {
        Decided { decision: self.decision.because(reason), ..self }
    }
}

impl MultiWord {
    /// `None` for a policy whose state is one word. In a table with room a word has a bit less.
    pub(crate) fn new(policy: &Policy, has_room: bool) -> Result<Option<MultiWord>, PolicyError> {
        match policy.kind.words() {
            _ if policy.limit == 0 => Ok(None),
            Words::Ring if has_room => {
                Ok(Some(MultiWord::Ring(SlidingWindow::keyed_beside_a_bit(policy)?)))
            }
            Words::Log if has_room => Ok(Some(MultiWord::Log(KeyedLog::in_bits(policy, 63)?))),
            Words::Ring => Ok(Some(MultiWord::Ring(SlidingWindow::keyed(policy)?))),
            Words::Log => Ok(Some(MultiWord::Log(KeyedLog::new(policy)?))),
            Words::One => Ok(None),
        }
    }

    /// The number of side words of a slot.
    pub(crate) fn side_words(&self) -> u64 {
        match self {
            MultiWord::Ring(window) => window.side_words(),
            MultiWord::Log(log) => log.side_words(),
        }
    }

    pub(crate) fn expires_at(&self, state: u64) -> u64 {
        match self {
            MultiWord::Ring(window) => window.expires_at(state),
            MultiWord::Log(log) => log.expires_at(state),
        }
    }

    pub(crate) fn limit(&self) -> u64 {
        match self {
            MultiWord::Ring(window) => window.limit(),
            MultiWord::Log(log) => log.log().limit(),
        }
    }

    pub(super) fn last_time(&self) -> u64 {
        match self {
            MultiWord::Ring(window) => window.last_time(),
            MultiWord::Log(_) => SlidingLog::LAST,
        }
    }

    /// Applies `op` to the ring or log whose state word `head` reads. `None` if the slot no longer
    /// holds the caller's key.
    pub(crate) fn apply(
        &self,
        head: &Owner<'_, Slot>,
        side: &[AtomicU64],
        now: u64,
        op: Op,
    ) -> Option<Decided> {
        match self {
            MultiWord::Ring(window) => decided(&RingView::new(head, side, window), now, op),
            MultiWord::Log(log) => decided(&LogView::new(head, side, log)?, now, op),
        }
    }

    /// The permits that the key of a slot has left.
    pub(crate) fn remaining(&self, slot: &Slot, key: u64, side: &[AtomicU64], now: u64) -> u64 {
        let decided = self.apply(&Owner::new(slot, key), side, now, Op::Peek(0));
        decided.map_or(self.limit(), |decided| decided.decision.remaining)
    }

    /// The decision at `now` on a new key that gets no slot.
    pub(crate) fn fresh(&self, now: u64, op: Op) -> Decided {
        let limit = self.limit();
        let (verdict, taken) = match op {
            Op::Check(cost) | Op::Peek(cost) if cost > limit => (Verdict::Never, 0),
            Op::Check(1..) | Op::Peek(1..) | Op::TakeUpTo(_) if now > self.last_time() => {
                let denied = state_word::given_up(Verdict::Denied, 0);
                return Decided {
                    decision: Decision { retry_after: NEVER, reset_after: NEVER, ..denied },
                    taken: 0,
                };
            }
            Op::Check(cost) => (Verdict::Allowed, cost),
            Op::Peek(_) => (Verdict::Allowed, 0),
            Op::TakeUpTo(most) => (Verdict::Allowed, most.min(limit)),
        };
        let retry_after = if verdict == Verdict::Never { NEVER } else { 0 };
        Decided {
            decision: Decision { retry_after, ..state_word::given_up(verdict, limit - taken) },
            taken,
        }
    }
}

/// Applies `op` to a ring or log.
pub(super) fn decided(view: &impl Protocol, now: u64, op: Op) -> Option<Decided> {
    match op {
        Op::Check(cost) => view.check(now, cost).map(|decision| Decided { decision, taken: cost }),
        Op::Peek(cost) => view.peek(now, cost).map(|decision| Decided { decision, taken: 0 }),
        Op::TakeUpTo(most) => view.take_up_to(now, most).map(|taken| {
            let verdict = if taken == 0 { Verdict::Denied } else { Verdict::Allowed };
            Decided { decision: state_word::given_up(verdict, 0), taken }
        }),
    }
}

impl state_word::SlotWords for Slot {
    #[inline(always)]
    fn key(&self, _: Ordering) -> u64 {
        self.key()
    }

    #[inline(always)]
    fn state(&self, _: Ordering) -> u64 {
        self.state()
    }

    #[inline(always)]
    fn both(&self) -> (u64, u64) {
        let SlotPair { key, state } = self.pair();
        (key, state)
    }

    #[inline(always)]
    fn swap(&self, from: (u64, u64), to: (u64, u64)) -> Result<(), (u64, u64)> {
        let pair = |(key, state)| SlotPair { key, state };
        self.swap(pair(from), pair(to)).map_err(|seen| (seen.key, seen.state))
    }
}
