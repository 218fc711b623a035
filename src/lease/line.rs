//! A key's line: what a node's threads and processes spend from, without asking anybody.
//!
//! ```text
//!  one cache line, four slots of two words that change together ({ hash, word }, crate::table::slot)
//! ┌──────────────────┬──────────────────┬───────────────────┬───────────────────┐
//! │ lease            │ lease            │ control           │ size              │
//! │ hash │ permits,  │ hash │ permits,  │ hash │ time after │ hash │ permits of │
//! │      │ until     │      │ until     │      │ which to   │      │ the last   │
//! │      │           │      │           │      │ ask again  │      │ grant, hot │
//! │      │           │      │           │      │            │      │ until      │
//! └──────┴───────────┴──────┴───────────┴──────┴────────────┴──────┴────────────┘
//! ```
//!
//! Two leases, since a new one comes before the old one is spent, and nothing prolongs a lease. Each slot carries its
//! key's hash and changes by one swap, so a straggler never spends another key's permits. Nothing here is needed for the bound: permits
//! that are lost, or a key that has two lines, cost the node some of what it was granted, and no more was granted than that.

use super::word;
use crate::table::slot::{Pair, Slot};

/// The four slots of a key.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Line(pub(super) [Slot; 4]);

const LEASES: [usize; 2] = [0, 1];
const CONTROL: usize = 2;

/// What the control word says.
const DRY: u64 = 1;

/// So often a swap is tried. Where that is not enough the request is decided without the lease, and a lease that came is lost.
const TRIES: u32 = if cfg!(loom) { 16 } else { 1 << 10 };

/// How taking went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    /// Permits left in the key's leases.
    pub(super) left: u64,
    /// Whether it is time for the next lease.
    pub(super) low: bool,
}

impl Line {
    /// Spends `cost` permits.
    #[inline(always)]
    pub(super) fn take(&self, hash: u64, now: u64, cost: u64) -> Option<Taken> {
        let [first, second, _, size] = &self.0;
        // Each try that fails is another's success.
        for _ in 0..TRIES {
            let (mut slot, mut other) = (first, second);
            let mut old = Pair { key: slot.key(), state: slot.state() };
            let mut next = spend(old, hash, now, cost);
            if next.is_none() {
                (slot, other) = (second, first);
                old = Pair { key: slot.key(), state: slot.state() };
                next = spend(old, hash, now, cost);
            }
            let state = next?;
            // A pair that was read in two parts and never was fails here.
            if slot.swap(old, Pair { key: hash, state }).is_err() {
                continue;
            }
            let left = word::permits(state, now).saturating_add(live(other, hash, now));
            // At a quarter of the last grant the next one is fetched.
            let low = left.saturating_mul(4) <= live(size, hash, now);
            return Some(Taken { left, low });
        }
        None
    }

    /// Permits that could be spent.
    #[inline]
    pub(super) fn left(&self, hash: u64, now: u64) -> u64 {
        LEASES.iter().filter_map(|&n| self.0.get(n)).fold(0, |sum: u64, slot| sum.saturating_add(live(slot, hash, now)))
    }

    /// Whether this is the key's line.
    #[inline]
    pub(super) fn is_of(&self, hash: u64) -> bool {
        self.0.get(CONTROL).is_some_and(|slot| slot.key() == hash)
    }

    /// Whether it has had leases lately, and so lives on them.
    #[inline]
    pub(super) fn is_hot(&self, hash: u64, now: u64) -> bool {
        self.0.last().is_some_and(|size| live(size, hash, now) != 0)
    }

    /// The time up to which the store has said that there is nothing; 0 if it has not.
    #[inline]
    pub(super) fn dry_until(&self, hash: u64) -> u64 {
        match self.0.get(CONTROL).map(Slot::pair) {
            Some(pair) if pair.key == hash && pair.state & DRY != 0 => pair.state,
            _ => 0,
        }
    }

    /// Whether the store's last answer was that there is nothing.
    #[inline]
    pub(super) fn was_dry(&self, hash: u64) -> bool {
        self.dry_until(hash) != 0
    }

    /// Whether the caller is the one to ask the store: nobody else is before `until`. `None`: the line is another key's, which
    /// is not done with it.
    pub(super) fn ask(&self, hash: u64, now: u64, until: u64) -> Option<bool> {
        let slot = self.0.get(CONTROL)?;
        let old = slot.pair();
        if old.key != hash && (old.state > now || self.busy(old.key, now)) {
            return None;
        }
        if old.key == hash && old.state > now {
            return Some(false);
        }
        // A key that was dry stays so until it is answered otherwise.
        let dry = if old.key == hash { old.state & DRY } else { 0 };
        Some(slot.swap(old, Pair { key: hash, state: until & !DRY | dry }).is_ok())
    }

    /// The store has answered: nothing before `at` (`None`: there was something).
    pub(super) fn answered(&self, hash: u64, at: Option<u64>) {
        let Some(slot) = self.0.get(CONTROL) else { return };
        let old = slot.pair();
        if old.key == hash {
            // If another has changed it in the meantime it asks once more, or once less.
            let _ = slot.swap(old, Pair { key: hash, state: at.map_or(0, |at| at | DRY) });
        }
    }

    /// Puts a granted lease where there is nothing left to spend, or else where there is less. The key is hot until `hot`.
    pub(super) fn install(&self, hash: u64, lease: u64, hot: u64, now: u64) {
        let [first, second, ..] = &self.0;
        let (a, b) = (live(first, hash, now), live(second, hash, now));
        let slot = if a <= b { first } else { second };
        for _ in 0..TRIES {
            let old = slot.pair();
            // Somebody else's lease that came here meanwhile is not worth less than this one.
            if old.key != hash && word::permits(old.state, now) != 0 && !self.is_of(hash) {
                return;
            }
            if slot.swap(old, Pair { key: hash, state: lease }).is_ok() {
                break;
            }
        }
        self.heat(hash, word::permits(lease, now), hot);
    }

    /// The key lives on leases until `hot`; the last had so many permits.
    pub(super) fn heat(&self, hash: u64, permits: u64, hot: u64) {
        if let Some(size) = self.0.last() {
            let old = size.pair();
            let _ = size.swap(old, Pair { key: hash, state: word::lease(permits, hot) });
        }
    }

    /// Whether its key has something to spend.
    fn busy(&self, key: u64, now: u64) -> bool {
        self.left(key, now) != 0
    }
}

#[inline(always)]
fn spend(pair: Pair, hash: u64, now: u64, cost: u64) -> Option<u64> {
    match pair.key == hash {
        true => word::spend(pair.state, now, cost),
        false => None,
    }
}

#[inline(always)]
fn live(slot: &Slot, hash: u64, now: u64) -> u64 {
    // Only told: whether the two words belong together does not matter.
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
        // SAFETY: words, of which all may be 0: as a node's memory begins.
        unsafe { core::mem::zeroed() }
    }

    /// A line is its key's while that waits for an answer, or has something to spend. Then it is anybody's.
    #[test]
    fn a_line_is_given_up_when_its_key_is_done() {
        let line = line();
        assert_eq!(line.ask(KEY, 10, 20), Some(true));
        assert_eq!((line.ask(KEY, 19, 29), line.ask(OTHER, 19, 29)), (Some(false), None));
        let until = 5 << word::UNIT_BITS;
        line.install(KEY, word::lease(2, until), until, 15);
        line.answered(KEY, None);
        assert_eq!((line.ask(OTHER, 19, 29), line.is_of(KEY)), (None, true));
        // What another key is told is not this one's.
        line.answered(OTHER, Some(99));
        assert_eq!((line.dry_until(KEY), line.left(KEY, 19), line.left(OTHER, 19)), (0, 2, 0));
        assert!(line.take(KEY, 19, 2).is_some());
        assert_eq!(line.ask(OTHER, 19, 29), Some(true));
        assert!(line.is_of(OTHER) && !line.is_of(KEY));
        // A lease of another key that is over is no obstacle, either.
        line.install(OTHER, word::lease(2, until), until, 19);
        line.answered(OTHER, None);
        assert_eq!((line.ask(KEY, until - 1, until), line.ask(KEY, until, until + 9)), (None, Some(true)));
    }

    /// That there is nothing is one key's answer. It stands until there is another, also while the next question is on its way.
    #[test]
    fn dryness_is_one_keys_until_it_is_answered() {
        let line = line();
        assert_eq!(line.ask(KEY, 10, 20), Some(true));
        line.answered(KEY, Some(100));
        assert_eq!((line.dry_until(KEY), line.dry_until(OTHER)), (100 | DRY, 0));
        assert!(line.was_dry(KEY) && !line.was_dry(OTHER));
        assert_eq!((line.ask(KEY, 99, 199), line.ask(OTHER, 99, 199)), (Some(false), None));
        assert_eq!(line.ask(KEY, 102, 200), Some(true));
        assert!(line.was_dry(KEY));
        line.answered(KEY, None);
        assert!(!line.was_dry(KEY));
        // Nor does it go over to who has the line next.
        line.answered(KEY, Some(300));
        assert_eq!(line.ask(OTHER, 302, 400), Some(true));
        assert!(!line.was_dry(OTHER) && line.dry_until(OTHER) == 0);
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use crate::lease::model;
    use crate::table::slot::Journal;
    use alloc::sync::Arc;
    use loom::thread;

    /// Small hashes and words fit the model's slot: with 48 bits of state a lease has 8 bits of permits.
    const KEY: u64 = 1 << 56 | 1;
    const OTHER: u64 = 1 << 56 | 2;

    fn line(first: Pair, second: Pair) -> Line {
        let journal = Arc::new(Journal::new(false));
        let none = Pair { key: 0, state: 0 };
        let slot = |number, pair| Slot::new(number, pair, &journal);
        Line([slot(0, first), slot(1, second), slot(2, none), slot(3, none)])
    }

    fn lease(permits: u64) -> u64 {
        word::lease(permits, 50_000_000)
    }

    /// Two that spend, one that installs: no permit is spent twice, and none that was not granted.
    #[test]
    fn permits_are_spent_once() {
        model(|| {
            let line = Arc::new(line(Pair { key: KEY, state: lease(1) }, Pair { key: 0, state: 0 }));
            let spender = |line: Arc<Line>| thread::spawn(move || u64::from(line.take(KEY, 0, 1).is_some()));
            let (a, b) = (spender(line.clone()), spender(line.clone()));
            let granter = {
                let line = line.clone();
                thread::spawn(move || line.install(KEY, lease(1), 0, 0))
            };
            granter.join().expect("the granter");
            let spent = a.join().expect("a") + b.join().expect("b");
            assert!(spent >= 1, "a permit was there");
            assert_eq!(spent + line.left(KEY, 0), 2, "what was granted");
        });
    }

    /// A slot that changes hands: a straggler's swap fails, and each key spends its own permits only.
    #[test]
    fn a_straggler_does_not_spend_anothers_permits() {
        model(|| {
            let line = Arc::new(line(Pair { key: KEY, state: lease(1) }, Pair { key: KEY, state: 0 }));
            let straggler = {
                let line = line.clone();
                thread::spawn(move || u64::from(line.take(KEY, 0, 1).is_some()))
            };
            // The key's lease is over for the other, whose clock is ahead.
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

    /// Of two that meet an answer that is over, one asks.
    #[test]
    fn one_asks() {
        model(|| {
            let line = Arc::new(line(Pair { key: KEY, state: 0 }, Pair { key: KEY, state: 0 }));
            let asker = |line: Arc<Line>| thread::spawn(move || line.ask(KEY, 10, 20));
            let (a, b) = (asker(line.clone()), asker(line.clone()));
            let asked = [a.join().expect("a"), b.join().expect("b")];
            assert_eq!(asked.iter().filter(|asked| **asked == Some(true)).count(), 1);
        });
    }

    /// Two keys want one line: one has it and asks, and the other neither spends what that is granted nor changes what it is told.
    #[test]
    fn one_of_two_keys_has_the_line() {
        model(|| {
            let line = Arc::new(line(Pair { key: 0, state: 0 }, Pair { key: 0, state: 0 }));
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
            // One after the other both may: the first is done when it is answered, but has its permit.
            assert_eq!(asked.iter().filter(|asked| **asked).count(), 1);
            let (has, other) = if asked[0] { (KEY, OTHER) } else { (OTHER, KEY) };
            assert!(line.is_of(has) && !line.was_dry(has));
            assert_eq!((line.left(has, 10), line.left(other, 10)), (1, 0));
        });
    }
}
