//! Keys whose state is more than a word: sliding windows and sliding logs.
//!
//! Such a policy has a table for itself. A slot's state word is the word that decides; beside it the slot has a fixed
//! number of side words (a ring of starts, or the entries of a log), which stay where they are when the slot is given
//! to another key. That is sound since the ring or log is one long history and the key only a label on it
//! (see [`crate::limiter::head`]); it needs all keys to count alike, and so there is one policy and it does not change.
//!
//! Which slot a newcomer takes is decided as everywhere ([`super::protocol`]): the state word alone says when it expires.

use super::answer::full;
use super::counts::Count;
use super::error::TableError;
use super::layout::SLOTS_A_BUCKET;
use super::protocol::{first_to_expire, Again, Candidate, Event, OnFull};
use super::request::{Sought, ROUNDS};
use super::slot::{Pair, Slot};
use super::Table;
use crate::algorithm::sliding_log::{KeyedLog, SlidingLog};
use crate::algorithm::sliding_window::SlidingWindow;
use crate::decision::{Decision, Reason, Verdict};
use crate::limiter::head::{self, Head, Newcomer, Owner, TRIES};
use crate::limiter::log::LogView;
use crate::limiter::ring::RingView;
use crate::policy::{Policy, PolicyError, Words};
use crate::sync::{AtomicU64, Ordering};
use crate::units::NEVER;
use core::cell::Cell;

/// A compiled policy whose state is more than a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wide {
    Ring(SlidingWindow),
    Log(KeyedLog),
}

/// What a slot is asked.
#[derive(Clone, Copy)]
pub(super) enum Ask {
    Check(u64),
    Peek(u64),
    TakeUpTo(u64),
}

/// The answer to any of them.
#[derive(Clone, Copy)]
pub(super) struct Told {
    pub(super) decision: Decision,
    pub(super) taken: u64,
}

impl Told {
    /// The same answer for another reason.
    fn because(self, reason: Reason) -> Told {
        Told { decision: self.decision.because(reason), ..self }
    }
}

impl Wide {
    /// `None` for a policy whose state is one word.
    pub(super) fn new(policy: &Policy) -> Result<Option<Wide>, PolicyError> {
        match policy.kind.words() {
            _ if policy.limit == 0 => Ok(None),
            Words::Ring => Ok(Some(Wide::Ring(SlidingWindow::keyed(policy)?))),
            Words::Log => Ok(Some(Wide::Log(KeyedLog::new(policy)?))),
            Words::One => Ok(None),
        }
    }

    /// Side words that a slot needs.
    pub(super) fn side_words(&self) -> u64 {
        match self {
            Wide::Ring(window) => window.side_words(),
            Wide::Log(log) => log.side_words(),
        }
    }

    pub(super) fn expires_at(&self, state: u64) -> u64 {
        match self {
            Wide::Ring(window) => window.expires_at(state),
            Wide::Log(log) => log.expires_at(state),
        }
    }

    fn limit(&self) -> u64 {
        match self {
            Wide::Ring(window) => window.limit(),
            Wide::Log(log) => log.log().limit(),
        }
    }

    fn last_time(&self) -> u64 {
        match self {
            Wide::Ring(window) => window.last_time(),
            Wide::Log(_) => SlidingLog::LAST,
        }
    }

    /// Asks the ring or log whose word is behind `head`; `None` if it is not the caller's any more.
    fn ask<H: Head>(&self, head: &H, side: &[AtomicU64], now: u64, ask: Ask) -> Option<Told> {
        macro_rules! each {
            ($view:ident => $call:expr) => {
                match self {
                    Wide::Ring(window) => {
                        let $view = RingView::new(head, side, window);
                        $call
                    }
                    Wide::Log(log) => {
                        let $view = LogView::new(head, side, log)?;
                        $call
                    }
                }
            };
        }
        match ask {
            Ask::Check(cost) => each!(view => view.check(now, cost)).map(|decision| Told { decision, taken: cost }),
            Ask::Peek(cost) => each!(view => view.peek(now, cost)).map(|decision| Told { decision, taken: 0 }),
            Ask::TakeUpTo(most) => each!(view => view.take_up_to(now, most)).map(|taken| {
                let verdict = if taken == 0 { Verdict::Denied } else { Verdict::Allowed };
                Told { decision: head::given_up(verdict, 0), taken }
            }),
        }
    }

    /// What a key that the table does not have is told at `now`, without being remembered.
    fn fresh(&self, now: u64, ask: Ask) -> Told {
        let limit = self.limit();
        let (verdict, taken) = match ask {
            Ask::Check(cost) | Ask::Peek(cost) if cost > limit => (Verdict::Never, 0),
            Ask::Check(1..) | Ask::Peek(1..) | Ask::TakeUpTo(_) if now > self.last_time() => {
                let denied = head::given_up(Verdict::Denied, 0);
                return Told { decision: Decision { retry_after: NEVER, reset_after: NEVER, ..denied }, taken: 0 };
            }
            Ask::Check(cost) => (Verdict::Allowed, cost),
            Ask::Peek(_) => (Verdict::Allowed, 0),
            Ask::TakeUpTo(most) => (Verdict::Allowed, most.min(limit)),
        };
        let retry_after = if verdict == Verdict::Never { NEVER } else { 0 };
        Told { decision: Decision { retry_after, ..head::given_up(verdict, limit - taken) }, taken }
    }
}

impl Table {
    /// A request of a key whose state is more than a word.
    #[cold]
    #[inline(never)]
    pub(super) fn ask_wide(&self, sought: Sought<'_>, now: u64, ask: Ask) -> Result<Told, TableError> {
        let wide = sought.version.wide.as_ref().ok_or(TableError::Corrupt)?;
        let key = sought.key();
        // Each of these is up to TRIES rounds of the ring or log.
        for _ in 0..ROUNDS / TRIES {
            if let Some(slot) = sought.home.find(key) {
                match wide.ask(&Owner { slot, key }, self.side(slot), now, ask) {
                    Some(told) => return Ok(told),
                    None => continue,
                }
            }
            let first = match first_to_expire(self, &sought.home, key, now) {
                Ok(Some(first)) => first,
                Ok(None) => return Err(TableError::Corrupt),
                Err(Again) => continue,
            };
            if let Some(told) = self.ask_newcomer(wide, key, first, now, ask) {
                return Ok(told);
            }
        }
        Err(TableError::Corrupt)
    }

    fn ask_newcomer(&self, wide: &Wide, key: u64, first: Candidate<'_>, now: u64, ask: Ask) -> Option<Told> {
        let fresh = wide.fresh(now, ask);
        // What charges nothing takes no slot.
        let charges = matches!(ask, Ask::Check(1..) | Ask::TakeUpTo(1..)) && fresh.decision.is_allowed();
        let wants = charges || matches!(ask, Ask::Peek(1..)) && fresh.decision.is_allowed();
        let labelled = Cell::new(false);
        let newcomer = Newcomer { slot: first.slot, found: (first.pair.key, first.pair.state), key };
        let head = Labels { newcomer, labelled: &labelled };
        let side = self.side(first.slot);
        let (told, event) = if first.expires <= now {
            let event = if first.pair.key == 0 { Event::Inserted } else { Event::Reclaimed };
            (wide.ask(&head, side, now, ask)?, event)
        } else {
            match self.on_full {
                _ if !wants && self.on_full != OnFull::Inherit => return Some(fresh),
                OnFull::Deny => {
                    if charges {
                        self.event(Event::Refused);
                    }
                    return Some(Told { decision: full(first.expires, now), taken: 0 });
                }
                OnFull::Allow => {
                    if charges {
                        self.event(Event::Unremembered);
                    }
                    return Some(fresh.because(Reason::TableFull));
                }
                OnFull::Inherit => {
                    let mut told = wide.ask(&head, side, now, ask)?;
                    if charges && !labelled.get() {
                        self.event(Event::RefusedByDebt);
                    }
                    if told.decision.verdict == Verdict::Denied {
                        told = told.because(Reason::InheritedDebt);
                    }
                    (told, Event::Inherited)
                }
                OnFull::EvictNearest if !charges => return Some(fresh),
                OnFull::EvictNearest => {
                    self.evict(wide, &head, side, now, ask)?;
                    (fresh, Event::Evicted)
                }
            }
        };
        if labelled.get() {
            self.event(event);
        }
        Some(told)
    }

    /// Gives a debtor's slot to the newcomer, which is admitted whatever is left: what it takes beyond that fills the slot
    /// up, so that it has no more from it than it had from a fresh one.
    fn evict(&self, wide: &Wide, head: &Labels<'_>, side: &[AtomicU64], now: u64, ask: Ask) -> Option<()> {
        let admitted = wide.ask(head, side, now, ask)?;
        let short = match ask {
            Ask::Check(_) => !admitted.decision.is_allowed(),
            Ask::TakeUpTo(most) => admitted.taken < most,
            Ask::Peek(_) => false,
        };
        if short {
            let _ = wide.ask(head, side, now, Ask::TakeUpTo(u64::MAX))?;
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

    fn event(&self, event: Event) {
        self.shard().event(event, 0);
    }

    /// What a key of a slot has left.
    pub(super) fn remaining_wide(&self, wide: &Wide, slot: &Slot, key: u64, now: u64) -> u64 {
        let told = wide.ask(&Owner { slot, key }, self.side(slot), now, Ask::Peek(0));
        told.map_or(wide.limit(), |told| told.decision.remaining)
    }

    /// The side words of a slot.
    fn side(&self, slot: &Slot) -> &[AtomicU64] {
        let number = self.number_of(slot) as usize;
        let words = self.fixed.side as usize;
        let at = self.sizes().side_at() as usize + number * words * 8;
        debug_assert!(number < (self.fixed.buckets * SLOTS_A_BUCKET.get()) as usize);
        // SAFETY: `slot` is one of this table's, so `number` is below the number of slots, and the memory has so many times the side
        // words behind the buckets (`Header::inspect`); they are aligned to 8 and only ever used as atomics.
        unsafe { core::slice::from_raw_parts(self.memory.base().byte_add(at).cast().as_ptr(), words) }
    }

    /// The one policy of a table with side words.
    pub(super) fn wide(&self) -> Option<&Wide> {
        match self.fixed.side {
            0 => None,
            // It is compiled when the table is opened.
            _ => self.versions.known(self.header().current.first()?.load(Ordering::Acquire))?.wide.as_ref(),
        }
    }

    /// Takes a key's slot away from it; its time stays.
    pub(super) fn vacant(&self, pair: Pair, expires: u64) -> Pair {
        // A ring's or log's word goes on counting under the next label.
        let state = if self.fixed.side == 0 { expires } else { pair.state };
        Pair { key: 0, state }
    }

    pub(super) fn count_vacated(&self) {
        self.count(Count::Vacated);
    }
}

/// A newcomer that knows whether its key is on the slot.
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

impl head::Slot for Slot {
    #[inline(always)]
    fn key(&self, _: Ordering) -> u64 {
        self.key()
    }

    #[inline(always)]
    fn state(&self, _: Ordering) -> u64 {
        self.state()
    }

    #[inline(always)]
    fn swap(&self, from: (u64, u64), to: (u64, u64)) -> Result<(), (u64, u64)> {
        let pair = |(key, state)| Pair { key, state };
        self.swap(pair(from), pair(to)).map_err(|seen| (seen.key, seen.state))
    }
}
