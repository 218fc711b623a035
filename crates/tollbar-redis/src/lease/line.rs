//! A key's line: the leases that a node's threads and processes spend.
//!
//! ```text
//!  one cache line, four slots of two words that change together ({ hash, word }, tollbar::table::memory::slot)
//! ┌──────────────────┬──────────────────┬───────────────────┬───────────────────┐
//! │ lease            │ lease            │ control           │ size              │
//! │ hash │ permits,  │ hash │ permits,  │ hash │ time after │ hash │ permits of │
//! │      │ until     │      │ until     │      │ which to   │      │ the last   │
//! │      │           │      │           │      │ ask again  │      │ grant, hot │
//! │      │           │      │           │      │            │      │ until      │
//! └──────┴───────────┴──────┴───────────┴──────┴────────────┴──────┴────────────┘
//! ```
//!
//! There is room for two leases, because a new lease comes before the old one is spent, and nothing
//! prolongs a lease. Each slot holds its key's hash and changes by one swap of both words. So a
//! slow thread never spends the permits of another key.
//!
//! The bound does not depend on lines. The store charges every permit before it grants it. So a
//! lost lease, or a key with two lines, costs the node permits and never adds any.

use super::word;
use tollbar::internal::{Slot, SlotPair};

/// The four slots of a key.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Line(pub(super) [Slot; 4]);

const LEASES: [usize; 2] = [0, 1];
const CONTROL: usize = 2;

/// The lowest bit of the control word: the store's last answer was "nothing left" until the word's
/// time. Times lose that bit.
const EXHAUSTED: u64 = 1;

/// The most tries of one swap. After that many a request is decided without the lease, and a lease
/// that was being installed is lost.
const TRIES: u32 = if cfg!(loom) { 16 } else { 1 << 10 };

/// The outcome of a request that a lease covered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    /// Permits left in the key's leases.
    pub(super) left: u64,
    /// Whether at most a quarter of the last grant is left. The caller should then ask for the next
    /// lease.
    pub(super) low: bool,
}

impl Line {
    /// Spends `cost` permits of one lease. `None`: neither lease covers it, or [`TRIES`] swaps
    /// failed.
    #[inline(always)]
    pub(super) fn take(&self, hash: u64, now: u64, cost: u64) -> Option<Taken> {
        let [first, second, _, size] = &self.0;
        // A try fails because another thread's swap succeeded.
        for _ in 0..TRIES {
            let (mut slot, mut other) = (first, second);
            let mut old = SlotPair { key: slot.key(), state: slot.state() };
            let mut next = spend(old, hash, now, cost);
            if next.is_none() {
                (slot, other) = (second, first);
                old = SlotPair { key: slot.key(), state: slot.state() };
                next = spend(old, hash, now, cost);
            }
            let state = next?;
            // `old` was read as two words. If they were never a pair, the swap fails.
            if slot.swap(old, SlotPair { key: hash, state }).is_err() {
                continue;
            }
            let left = word::permits(state, now).saturating_add(live(other, hash, now));
            let low = left.saturating_mul(4) <= live(size, hash, now);
            return Some(Taken { left, low });
        }
        None
    }

    /// Permits that both leases have left at `now`. A request takes its whole cost from one of
    /// them.
    #[inline]
    pub(super) fn left(&self, hash: u64, now: u64) -> u64 {
        LEASES
            .iter()
            .filter_map(|&n| self.0.get(n))
            .fold(0, |sum: u64, slot| sum.saturating_add(live(slot, hash, now)))
    }

    /// Whether this line's control slot holds the key. A line records answers about that key only.
    #[inline]
    pub(super) fn is_of(&self, hash: u64) -> bool {
        self.0.get(CONTROL).is_some_and(|slot| slot.key() == hash)
    }

    /// Whether the key is hot: its `hot until` has not passed.
    #[inline]
    pub(super) fn is_hot(&self, hash: u64, now: u64) -> bool {
        self.0.last().is_some_and(|size| live(size, hash, now) != 0)
    }

    /// The time until which the store has no permits for the key, in nanoseconds. 0 if the store's
    /// last answer was not "nothing left". The time may have passed, because the answer stands
    /// until the next one.
    #[inline]
    pub(super) fn exhausted_until(&self, hash: u64) -> u64 {
        match self.0.get(CONTROL).map(Slot::pair) {
            Some(pair) if pair.key == hash && pair.state & EXHAUSTED != 0 => pair.state,
            _ => 0,
        }
    }

    /// Whether the store's last answer about the key was "nothing left".
    #[inline]
    pub(super) fn was_dry(&self, hash: u64) -> bool {
        self.exhausted_until(hash) != 0
    }

    /// Claims the question about the key. `Some(true)`: the caller asks the store, and no other
    /// caller does so before `until`. `Some(false)`: another caller has asked. `None`: the line
    /// belongs to another key, which waits for an answer or has permits.
    pub(super) fn ask(&self, hash: u64, now: u64, until: u64) -> Option<bool> {
        let slot = self.0.get(CONTROL)?;
        let old = slot.pair();
        if old.key != hash && (old.state > now || self.busy(old.key, now)) {
            return None;
        }
        if old.key == hash && old.state > now {
            return Some(false);
        }
        // The answer "nothing left" stands until the next answer comes.
        let exhausted = if old.key == hash { old.state & EXHAUSTED } else { 0 };
        Some(slot.swap(old, SlotPair { key: hash, state: until & !EXHAUSTED | exhausted }).is_ok())
    }

    /// Records the store's answer about the key: with `Some(at)` there is nothing left before `at`.
    /// `None` is any other answer, or the end of a question that got none.
    pub(super) fn answered(&self, hash: u64, at: Option<u64>) {
        let Some(slot) = self.0.get(CONTROL) else { return };
        let old = slot.pair();
        if old.key == hash {
            // If the swap fails, callers ask once too often or once too seldom. No permit depends
            // on it.
            let _ =
                slot.swap(old, SlotPair { key: hash, state: at.map_or(0, |at| at | EXHAUSTED) });
        }
    }

    /// Installs a granted lease in the slot where the key has fewer permits left, and keeps the key
    /// hot until `hot`.
    pub(super) fn install(&self, hash: u64, lease: u64, hot: u64, now: u64) {
        let [first, second, ..] = &self.0;
        let (a, b) = (live(first, hash, now), live(second, hash, now));
        let slot = if a <= b { first } else { second };
        for _ in 0..TRIES {
            let old = slot.pair();
            // Another key owns the line and has a live lease in this slot. That lease stays, and
            // the new one is lost.
            if old.key != hash && word::permits(old.state, now) != 0 && !self.is_of(hash) {
                return;
            }
            if slot.swap(old, SlotPair { key: hash, state: lease }).is_ok() {
                break;
            }
        }
        self.mark_hot(hash, word::permits(lease, now), hot);
    }

    /// Records that the key is hot until `hot` and that its last grant had `permits`.
    pub(super) fn mark_hot(&self, hash: u64, permits: u64, hot: u64) {
        if let Some(size) = self.0.last() {
            let old = size.pair();
            let _ = size.swap(old, SlotPair { key: hash, state: word::lease(permits, hot) });
        }
    }

    /// Whether `key` has permits to spend here.
    fn busy(&self, key: u64, now: u64) -> bool {
        self.left(key, now) != 0
    }
}

#[inline(always)]
fn spend(pair: SlotPair, hash: u64, now: u64, cost: u64) -> Option<u64> {
    match pair.key == hash {
        true => word::spend(pair.state, now, cost),
        false => None,
    }
}

#[inline(always)]
fn live(slot: &Slot, hash: u64, now: u64) -> u64 {
    // The two words may not belong together. That is harmless, because the result is only a hint:
    // permits are spent by a swap of both words.
    match slot.key() == hash {
        true => word::permits(slot.state(), now),
        false => 0,
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const KEY: u64 = 0x1111;
    const OTHER: u64 = 0x2222;

    fn line() -> Line {
        // SAFETY: a line is atomic words, for which all zeroes are valid; a node's memory begins
        // so.
        unsafe { core::mem::zeroed() }
    }

    /// A key keeps its line while it waits for an answer or has permits to spend. After that
    /// another key may claim the line.
    #[test]
    fn a_line_is_given_up_when_its_key_is_done() {
        let line = line();
        assert_eq!(line.ask(KEY, 10, 20), Some(true));
        assert_eq!((line.ask(KEY, 19, 29), line.ask(OTHER, 19, 29)), (Some(false), None));
        let until = 5 << word::UNIT_BITS;
        line.install(KEY, word::lease(2, until), until, 15);
        line.answered(KEY, None);
        assert_eq!((line.ask(OTHER, 19, 29), line.is_of(KEY)), (None, true));
        // An answer about another key changes nothing here.
        line.answered(OTHER, Some(99));
        assert_eq!(
            (line.exhausted_until(KEY), line.left(KEY, 19), line.left(OTHER, 19)),
            (0, 2, 0)
        );
        assert!(line.take(KEY, 19, 2).is_some());
        assert_eq!(line.ask(OTHER, 19, 29), Some(true));
        assert!(line.is_of(OTHER) && !line.is_of(KEY));
        // A lease that has ended does not keep the line.
        line.install(OTHER, word::lease(2, until), until, 19);
        line.answered(OTHER, None);
        assert_eq!(
            (line.ask(KEY, until - 1, until), line.ask(KEY, until, until + 9)),
            (None, Some(true))
        );
    }

    /// "Nothing left" is an answer about one key. It stands until the next answer, also while the
    /// next question is on its way.
    #[test]
    fn dryness_is_one_keys_until_it_is_answered() {
        let line = line();
        assert_eq!(line.ask(KEY, 10, 20), Some(true));
        line.answered(KEY, Some(100));
        assert_eq!((line.exhausted_until(KEY), line.exhausted_until(OTHER)), (100 | EXHAUSTED, 0));
        assert!(line.was_dry(KEY) && !line.was_dry(OTHER));
        assert_eq!((line.ask(KEY, 99, 199), line.ask(OTHER, 99, 199)), (Some(false), None));
        assert_eq!(line.ask(KEY, 102, 200), Some(true));
        assert!(line.was_dry(KEY));
        line.answered(KEY, None);
        assert!(!line.was_dry(KEY));
        // The key that claims the line next does not inherit it.
        line.answered(KEY, Some(300));
        assert_eq!(line.ask(OTHER, 302, 400), Some(true));
        assert!(!line.was_dry(OTHER) && line.exhausted_until(OTHER) == 0);
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use crate::lease::model;
    use alloc::sync::Arc;
    use loom::thread;
    use tollbar::internal::Journal;

    /// Small hashes and words fit the model's slot: with 48 bits of state a lease has 8 bits of
    /// permits.
    const KEY: u64 = 1 << 56 | 1;
    const OTHER: u64 = 1 << 56 | 2;

    fn line(first: SlotPair, second: SlotPair) -> Line {
        let journal = Arc::new(Journal::new(false));
        let none = SlotPair { key: 0, state: 0 };
        let slot = |number, pair| Slot::new(number, pair, &journal);
        Line([slot(0, first), slot(1, second), slot(2, none), slot(3, none)])
    }

    fn lease(permits: u64) -> u64 {
        word::lease(permits, 50_000_000)
    }

    /// Two threads spend while one installs: each granted permit is spent once at most.
    #[test]
    fn permits_are_spent_once() {
        model(|| {
            let line = Arc::new(line(
                SlotPair { key: KEY, state: lease(1) },
                SlotPair { key: 0, state: 0 },
            ));
            let spender =
                |line: Arc<Line>| thread::spawn(move || u64::from(line.take(KEY, 0, 1).is_some()));
            let (a, b) = (spender(line.clone()), spender(line.clone()));
            let granter = {
                let line = line.clone();
                thread::spawn(move || line.install(KEY, lease(1), 0, 0))
            };
            granter.join().expect("the granter");
            let spent = a.join().expect("a") + b.join().expect("b");
            assert!(spent >= 1, "one permit was there before the grant");
            assert_eq!(spent + line.left(KEY, 0), 2, "spent and left are the permits granted");
        });
    }

    /// A slot passes to another key while a slow thread spends from it: the slow thread's swap
    /// fails, and each key spends only its own permits.
    #[test]
    fn a_straggler_does_not_spend_anothers_permits() {
        model(|| {
            let line = Arc::new(line(
                SlotPair { key: KEY, state: lease(1) },
                SlotPair { key: KEY, state: 0 },
            ));
            let straggler = {
                let line = line.clone();
                thread::spawn(move || u64::from(line.take(KEY, 0, 1).is_some()))
            };
            // For this thread, whose clock is ahead, KEY's lease has ended.
            let other = {
                let line = line.clone();
                thread::spawn(move || {
                    line.install(OTHER, lease(1), 0, 60_000_000);
                    u64::from(line.take(OTHER, 0, 1).is_some())
                })
            };
            let own = other.join().expect("the other");
            let spent = straggler.join().expect("the straggler");
            assert!(spent <= 1 && own <= 1);
            assert_eq!(own + line.left(OTHER, 0), 1, "the other's one permit");
        });
    }

    /// Two callers find no question pending: exactly one asks.
    #[test]
    fn one_asks() {
        model(|| {
            let line =
                Arc::new(line(SlotPair { key: KEY, state: 0 }, SlotPair { key: KEY, state: 0 }));
            let asker = |line: Arc<Line>| thread::spawn(move || line.ask(KEY, 10, 20));
            let (a, b) = (asker(line.clone()), asker(line.clone()));
            let asked = [a.join().expect("a"), b.join().expect("b")];
            assert_eq!(asked.iter().filter(|asked| **asked == Some(true)).count(), 1);
        });
    }

    /// Two keys claim one line: one gets it and asks. The other spends none of its permits and
    /// changes none of its answers.
    #[test]
    fn one_of_two_keys_has_the_line() {
        model(|| {
            let line = Arc::new(line(SlotPair { key: 0, state: 0 }, SlotPair { key: 0, state: 0 }));
            let wants = |key: u64, line: Arc<Line>| {
                thread::spawn(move || {
                    let asked = line.ask(key, 10, 20) == Some(true);
                    if asked {
                        line.install(key, lease(1), 0, 10);
                    }
                    line.answered(key, if asked { None } else { Some(99) });
                    asked
                })
            };
            let (a, b) = (wants(KEY, line.clone()), wants(OTHER, line.clone()));
            let asked = [a.join().expect("a"), b.join().expect("b")];
            // One also if they run one after the other: the first key's permit keeps the line after
            // its answer.
            assert_eq!(asked.iter().filter(|asked| **asked).count(), 1);
            let (has, other) = if asked[0] { (KEY, OTHER) } else { (OTHER, KEY) };
            assert!(line.is_of(has) && !line.was_dry(has));
            assert_eq!((line.left(has, 10), line.left(other, 10)), (1, 0));
        });
    }
}
