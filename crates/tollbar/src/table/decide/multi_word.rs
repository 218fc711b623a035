//! Requests of keys whose state is more than one word.

use super::answer::full;
use super::Table;
use crate::decision::{Reason, Verdict};
use crate::limiter::head::{Head, Newcomer, Owner, TRIES};
use crate::sync::AtomicU64;
use crate::table::memory::error::TableError;
use crate::table::memory::slot::{Pair, Slot};
use crate::table::policies::compiled::Version;
use crate::table::policies::multi_word::{Decided, MultiWord};
use crate::table::policies::ROUNDS;
use crate::table::slots::protocol::{first_to_expire, Candidate, Changed, Event, OnFull};
use core::cell::Cell;

pub(super) use crate::table::policies::multi_word::Op;

impl Table {
    /// A request of a key whose state is more than a word.
    #[cold]
    #[inline(never)]
    pub(super) fn decide_multi_word(
        &self,
        version: &Version,
        hash: u64,
        now: u64,
        op: Op,
    ) -> Result<Decided, TableError> {
        let policy = version.multi_word.as_ref().ok_or(TableError::Corrupt)?;
        let candidates = self.slots.candidates(hash);
        let key = version.key | candidates.tag;
        // Each of these is up to TRIES rounds of the ring or log.
        for _ in 0..ROUNDS / TRIES {
            if let Some(slot) = candidates.find(key) {
                match policy.apply(&Owner { slot, key }, self.side(slot), now, op) {
                    Some(decided) => return Ok(decided),
                    None => continue,
                }
            }
            let first = match first_to_expire(&self.policies, &candidates, key, now) {
                Ok(Some(first)) => first,
                Ok(None) => return Err(TableError::Corrupt),
                Err(Changed) => continue,
            };
            if let Some(decided) = self.insert_multi_word(policy, key, first, now, op) {
                return Ok(decided);
            }
        }
        Err(TableError::Corrupt)
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
        // What charges nothing takes no slot.
        let charges = matches!(op, Op::Check(1..) | Op::TakeUpTo(1..)) && fresh.decision.is_allowed();
        let wants = charges || matches!(op, Op::Peek(1..)) && fresh.decision.is_allowed();
        let labelled = Cell::new(false);
        let newcomer = Newcomer { slot: first.slot, found: (first.pair.key, first.pair.state), key };
        let head = Labels { newcomer, labelled: &labelled };
        let side = self.side(first.slot);
        let (decided, event) = if first.expires <= now {
            let event = if first.pair.key == 0 { Event::Inserted } else { Event::Reclaimed };
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
                    if charges && !labelled.get() {
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
        if labelled.get() {
            self.policies.count_event(event, 0);
        }
        Some(decided)
    }

    /// Gives a slot whose key owes to the new key, and admits the new key. If the slot has fewer permits left than the request costs, the
    /// slot is charged for all that it has: the new key then gets no more from it than from a fresh slot.
    fn evict(&self, policy: &MultiWord, head: &Labels<'_>, side: &[AtomicU64], now: u64, op: Op) -> Option<()> {
        let admitted = policy.apply(head, side, now, op)?;
        let short = match op {
            Op::Check(_) => !admitted.decision.is_allowed(),
            Op::TakeUpTo(most) => admitted.taken < most,
            Op::Peek(_) => false,
        };
        if short {
            let _ = policy.apply(head, side, now, Op::TakeUpTo(u64::MAX))?;
        }
        if !head.labelled.get() {
            // There was nothing left: only the label changes.
            let (found, state) = head.newcomer.found;
            let relabelled = Pair { key: head.newcomer.key, state };
            head.newcomer.slot.swap(Pair { key: found, state }, relabelled).ok()?;
            head.labelled.set(true);
        }
        Some(())
    }

    /// The side words of a slot.
    fn side(&self, slot: &Slot) -> &[AtomicU64] {
        self.policies.memory.side_words(self.slots.number(slot))
    }
}

/// A new key in a slot, and whether the slot has the key's word yet.
struct Labels<'a> {
    newcomer: Newcomer<'a, Slot>,
    labelled: &'a Cell<bool>,
}

impl Head for Labels<'_> {
    fn load(&self) -> Option<u64> {
        self.newcomer.load()
    }

    fn glance(&self) -> Option<u64> {
        self.newcomer.glance()
    }

    fn takes_over(&self, word: u64) -> bool {
        self.newcomer.takes_over(word)
    }

    fn swap(&self, from: u64, to: u64) -> Result<(), Option<u64>> {
        let swapped = self.newcomer.swap(from, to);
        // The swap from what was found is the one that changes the key.
        if swapped.is_ok() && from == self.newcomer.found.1 {
            self.labelled.set(true);
        }
        swapped
    }
}
