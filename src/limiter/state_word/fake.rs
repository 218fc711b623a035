//! A table of one slot, for the tests beside this file.

use super::{Owner, SlotWords, StateWord};
use crate::algorithm::sliding_log::KeyedLog;
use crate::algorithm::sliding_window::SlidingWindow;
use crate::decision::{Decision, Verdict};
use crate::limiter::log::LogView;
use crate::limiter::ring::RingView;
use crate::limiter::words::Protocol;
use crate::policy::{Policy, Words};
use crate::sync::{zeroed, AtomicU64, Ordering};
use alloc::boxed::Box;

/// The 16 bytes of a slot. In loom's models they are one word, because loom has no wider
/// compare-and-swap: the upper 8 bits are the key, the others the state, which fits them at small
/// times.
#[cfg(loom)]
pub(super) struct FakeSlot(AtomicU64);

#[cfg(loom)]
impl FakeSlot {
    fn split(word: u64) -> (u64, u64) {
        (word >> 56, word & (u64::MAX >> 8))
    }

    fn join((key, state): (u64, u64)) -> u64 {
        assert!(key < 1 << 8 && state < 1 << 56);
        key << 56 | state
    }

    pub(super) fn new(key: u64) -> FakeSlot {
        FakeSlot(AtomicU64::new(FakeSlot::join((key, 0))))
    }
}

#[cfg(loom)]
impl SlotWords for FakeSlot {
    fn key(&self, order: Ordering) -> u64 {
        FakeSlot::split(self.0.load(order)).0
    }

    fn state(&self, order: Ordering) -> u64 {
        FakeSlot::split(self.0.load(order)).1
    }

    fn both(&self) -> (u64, u64) {
        FakeSlot::split(self.0.load(Ordering::Acquire))
    }

    fn swap(&self, from: (u64, u64), to: (u64, u64)) -> Result<(), (u64, u64)> {
        let (from, to) = (FakeSlot::join(from), FakeSlot::join(to));
        self.0
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed)
            .map(drop)
            .map_err(FakeSlot::split)
    }
}

/// The 16 bytes.
#[cfg(not(loom))]
pub(super) struct FakeSlot(std::sync::Mutex<(u64, u64)>);

#[cfg(not(loom))]
impl FakeSlot {
    pub(super) fn new(key: u64) -> FakeSlot {
        FakeSlot(std::sync::Mutex::new((key, 0)))
    }
}

#[cfg(not(loom))]
impl SlotWords for FakeSlot {
    fn key(&self, _: Ordering) -> u64 {
        self.both().0
    }

    fn state(&self, _: Ordering) -> u64 {
        self.both().1
    }

    fn both(&self) -> (u64, u64) {
        *self.0.lock().unwrap()
    }

    fn swap(&self, from: (u64, u64), to: (u64, u64)) -> Result<(), (u64, u64)> {
        let mut pair = self.0.lock().unwrap();
        if *pair != from {
            return Err(*pair);
        }
        *pair = to;
        Ok(())
    }
}

/// A compiled policy, as a table holds it.
pub(super) enum Rule {
    Window(SlidingWindow),
    Log(KeyedLog),
}

impl Rule {
    pub(super) fn new(policy: &Policy) -> Rule {
        match policy.kind.words() {
            Words::One => unreachable!("a key of a table has such a state in its slot"),
            Words::Ring => Rule::Window(SlidingWindow::keyed(policy).unwrap()),
            Words::Log => Rule::Log(KeyedLog::new(policy).unwrap()),
        }
    }

    pub(super) fn expires_at(&self, word: u64) -> u64 {
        match self {
            Rule::Window(window) => window.expires_at(word),
            Rule::Log(log) => log.expires_at(word),
        }
    }
}

/// A slot with its side words.
pub(super) struct Place {
    pub(super) slot: FakeSlot,
    pub(super) side: Box<[AtomicU64]>,
    pub(super) rule: Rule,
}

impl Place {
    /// A fresh slot with a key in it. In a table a slot is so only until its first admission.
    pub(super) fn new(policy: &str, key: u64) -> Place {
        let policy = policy.parse::<Policy>().unwrap();
        let rule = Rule::new(&policy);
        let words = match &rule {
            Rule::Window(window) => window.side_words(),
            Rule::Log(log) => log.side_words(),
        };
        Place { slot: FakeSlot::new(key), side: zeroed(words as usize).unwrap(), rule }
    }

    pub(super) fn owner(&self, key: u64) -> Owner<'_, FakeSlot> {
        Owner::new(&self.slot, key)
    }

    /// The slot for a new key; `None` if the slot has not expired.
    pub(super) fn new_owner(&self, key: u64, now: u64) -> Option<Owner<'_, FakeSlot>> {
        let found = self.slot.both();
        (self.rule.expires_at(found.1) <= now).then_some(Owner::of_new_key(&self.slot, found, key))
    }

    pub(super) fn admit(&self, head: &impl StateWord, now: u64, cost: u64) -> Option<Verdict> {
        match &self.rule {
            Rule::Window(window) => RingView::new(head, &*self.side, window).admit(now, cost),
            Rule::Log(log) => LogView::new(head, &*self.side, log).unwrap().admit(now, cost),
        }
    }

    #[cfg(not(loom))]
    pub(super) fn check(&self, head: &impl StateWord, now: u64, cost: u64) -> Option<Decision> {
        match &self.rule {
            Rule::Window(window) => RingView::new(head, &*self.side, window).check(now, cost),
            Rule::Log(log) => LogView::new(head, &*self.side, log).unwrap().check(now, cost),
        }
    }

    pub(super) fn peek(&self, head: &impl StateWord, now: u64, cost: u64) -> Option<Decision> {
        match &self.rule {
            Rule::Window(window) => RingView::new(head, &*self.side, window).peek(now, cost),
            Rule::Log(log) => LogView::new(head, &*self.side, log).unwrap().peek(now, cost),
        }
    }

    pub(super) fn take_up_to(&self, head: &impl StateWord, now: u64, most: u64) -> Option<u64> {
        match &self.rule {
            Rule::Window(window) => RingView::new(head, &*self.side, window).take_up_to(now, most),
            Rule::Log(log) => LogView::new(head, &*self.side, log).unwrap().take_up_to(now, most),
        }
    }
}
