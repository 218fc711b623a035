//! Requests under policies whose state is more than one word.

use super::answer::full;
use super::Table;
use crate::decision::{Reason, Verdict};
use crate::limiter::state_word::{Owner, TRIES};
use crate::sync::AtomicU64;
use crate::table::memory::error::RequestError;
use crate::table::memory::slot::Slot;
use crate::table::policies::compiled::Version;
use crate::table::policies::conversion::UnderVersion;
use crate::table::policies::multi_word::{Decided, MultiWord};
use crate::table::policies::ROUNDS;
use crate::table::slots::protocol::{first_to_expire, Candidate};
use crate::table::slots::states::{Event, KeyChanged, OnFull};

pub(super) use crate::table::policies::multi_word::Op;

impl Table {
    /// Decides on a request under a policy whose state is more than one word.
    #[cold]
    #[inline(never)]
    pub(super) fn decide_multi_word(
        &self,
        version: &Version,
        hash: u64,
        now: u64,
        op: Op,
    ) -> Result<Decided, RequestError> {
        let policy = version.multi_word.as_ref().ok_or(RequestError::Corrupt)?;
        let candidates = self.slots.candidates(hash);
        let key = version.key | candidates.tag;
        // Each round makes up to TRIES tries in the ring or log.
        for _ in 0..ROUNDS / TRIES {
            if let Some(slot) = candidates.find(key) {
                match policy.apply(&Owner::new(slot, key), self.side(slot), now, op) {
                    Some(decided) => return Ok(decided),
                    None => continue,
                }
            }
            let states = UnderVersion { policies: &self.policies, version };
            let first = match first_to_expire(&states, &candidates, key, now) {
                Ok(Some(room)) => room.first,
                Ok(None) => return Err(RequestError::Corrupt),
                Err(KeyChanged) => continue,
            };
            if let Some(decided) = self.insert_multi_word(policy, key, first, now, op) {
                return Ok(decided);
            }
        }
        Err(RequestError::Corrupt)
    }

    fn insert_multi_word(
        &self,
        policy: &MultiWord,
        key: u64,
        first: Candidate<'_>,
        now: u64,
        op: Op,
    ) -> Option<Decided> {
        let fresh = policy.fresh(now, op);
        // A request that charges nothing takes no slot.
        let charges =
            matches!(op, Op::Check(1..) | Op::TakeUpTo(1..)) && fresh.decision.is_allowed();
        let wants = charges || matches!(op, Op::Peek(1..)) && fresh.decision.is_allowed();
        let head = Owner::of_new_key(first.slot, (first.pair.key, first.pair.state), key);
        let side = self.side(first.slot);
        let (decided, event) = if first.expires <= now {
            let event = if first.pair.is_vacant() { Event::Inserted } else { Event::Reclaimed };
            (policy.apply(&head, side, now, op)?, event)
        } else {
            match self.on_full {
                _ if !wants && self.on_full != OnFull::Inherit => return Some(fresh),
                OnFull::Deny => {
                    if charges {
                        self.policies.count_event(Event::Refused, 0);
                    }
                    return Some(Decided { decision: full(first.expires, now), taken: 0 });
                }
                OnFull::Allow => {
                    if charges {
                        self.policies.count_event(Event::Unremembered, 0);
                    }
                    return Some(fresh.because(Reason::TableFull));
                }
                OnFull::Inherit => {
                    let mut decided = policy.apply(&head, side, now, op)?;
                    if charges && !head.labelled() {
                        self.policies.count_event(Event::RefusedByDebt, 0);
                    }
                    if decided.decision.verdict == Verdict::Denied {
                        decided = decided.because(Reason::InheritedDebt);
                    }
                    (decided, Event::Inherited)
                }
                OnFull::EvictNearest if !charges => return Some(fresh),
                OnFull::EvictNearest => {
                    self.evict(policy, &head, side, now, op)?;
                    (fresh, Event::Evicted)
                }
            }
        };
        if head.labelled() {
            self.policies.count_event(event, 0);
        }
        Some(decided)
    }

    /// Gives the slot of a key with a debt to the new key, and admits the new key. If the slot has
    /// fewer permits left than the request costs, it is charged for all of them, so the new key
    /// gets no more than from a fresh slot.
    fn evict(
        &self,
        policy: &MultiWord,
        head: &Owner<'_, Slot>,
        side: &[AtomicU64],
        now: u64,
        op: Op,
    ) -> Option<()> {
        let admitted = policy.apply(head, side, now, op)?;
        let short = match op {
            Op::Check(_) => !admitted.decision.is_allowed(),
            Op::TakeUpTo(most) => admitted.taken < most,
            Op::Peek(_) => false,
        };
        if short {
            let _ = policy.apply(head, side, now, Op::TakeUpTo(u64::MAX))?;
        }
        if !head.labelled() {
            // The slot had no permits left, so only its label changes.
            head.relabel()?;
        }
        Some(())
    }

    /// The side words of a slot.
    fn side(&self, slot: &Slot) -> &[AtomicU64] {
        self.policies.memory.side_words(self.slots.number(slot))
    }
}
