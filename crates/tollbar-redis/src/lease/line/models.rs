//! Loom models of a key's line.

use super::*;
use crate::lease::model;
use alloc::{sync::Arc, vec::Vec};
use loom::thread;
use tollbar::internal::Journal;

/// Small hashes and words fit the model's slot: with 48 bits of state a lease has 8 bits of
/// permits.
const KEY: u64 = 1 << 56 | 1;
const OTHER: u64 = 1 << 56 | 2;
const NONE: SlotPair = SlotPair { key: 0, state: 0 };

fn line(first: SlotPair, second: SlotPair, state: SlotPair) -> Line {
    let journal = Arc::new(Journal::new(false));
    let slot = |number, pair| Slot::new(number, pair, &journal);
    Line([slot(0, first), slot(1, second), slot(2, state), slot(3, NONE)])
}

fn lease(permits: u64) -> u64 {
    word::lease(permits, 50_000_000)
}

/// The state slot of a key without a debt.
fn idle(key: u64) -> SlotPair {
    SlotPair { key, state: KeyState::default().pack() }
}

/// Two threads spend while one installs: each granted permit is spent once at most.
#[test]
fn permits_are_spent_once() {
    model(|| {
        let line = Arc::new(line(SlotPair { key: KEY, state: lease(1) }, NONE, NONE));
        let spender =
            |line: Arc<Line>| thread::spawn(move || u64::from(line.take(KEY, 0, 1).is_some()));
        let (a, b) = (spender(line.clone()), spender(line.clone()));
        let granter = {
            let line = line.clone();
            thread::spawn(move || line.install(KEY, lease(1), 0))
        };
        granter.join().expect("the granter");
        let spent = a.join().expect("a") + b.join().expect("b");
        assert!(spent >= 1, "one permit was there before the grant");
        assert_eq!(spent + line.left(KEY, 0), 2, "spent and left are the permits granted");
    });
}

/// A lease joins another while a thread spends from it: no permit is lost or doubled.
#[test]
fn a_lease_joins_while_it_is_spent() {
    model(|| {
        let pair = SlotPair { key: KEY, state: lease(1) };
        let line = Arc::new(line(pair, pair, idle(KEY)));
        let spender = {
            let line = line.clone();
            thread::spawn(move || u64::from(line.take(KEY, 0, 1).is_some()))
        };
        line.install(KEY, lease(2), 0);
        let spent = spender.join().expect("the spender");
        assert_eq!(spent + line.left(KEY, 0), 4);
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
            NONE,
        ));
        let straggler = {
            let line = line.clone();
            thread::spawn(move || u64::from(line.take(KEY, 0, 1).is_some()))
        };
        // For this thread, whose clock is ahead, KEY's lease has ended.
        let other = {
            let line = line.clone();
            thread::spawn(move || {
                line.install(OTHER, lease(1), 60_000_000);
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
        let line = Arc::new(line(NONE, NONE, idle(KEY)));
        let asker = |line: Arc<Line>| thread::spawn(move || u64::from(line.ask(KEY, 0, 1_000_000)));
        let (a, b) = (asker(line.clone()), asker(line.clone()));
        assert_eq!(a.join().expect("a") + b.join().expect("b"), 1);
    });
}

/// Two callers of one key find it in neither of its lines: it gets one line, and its right of one
/// permit is used once. A third caller comes when a former key leaves the first line.
fn one_right(first: SlotPair, callers: usize) {
    model(move || {
        let lines = Arc::new([line(NONE, NONE, first), line(NONE, NONE, NONE)]);
        let caller = |number: u64| {
            let lines = lines.clone();
            thread::spawn(move || {
                // The second caller looks at the lines in the same order, as every caller does.
                let line = claim(&[&lines[0], &lines[1]], KEY, 0, number);
                u64::from(line.is_some_and(|line| line.use_right(KEY, 0, 1, 1).is_some()))
            })
        };
        let threads: Vec<_> = (1..=callers as u64).map(caller).collect();
        // The former key is done only now.
        if first.key != 0 {
            lines[0].heard(OTHER, &Said { confirmed: 1, shut: Some(0), ..Said::default() }, 0, 0);
        }
        let used: u64 = threads.into_iter().map(|thread| thread.join().expect("a caller")).sum();
        assert!(used <= 1, "{used} permits of a right of one");
        let has = lines.iter().filter(|line| line.state_of(KEY).is_some()).count();
        assert!(has <= 1, "the key is in {has} lines");
    });
}

#[test]
fn a_right_is_used_once() {
    one_right(NONE, 2);
}

#[test]
fn a_right_is_used_once_while_a_line_becomes_free() {
    let used = KeyState { used: 1, ..KeyState::default() };
    one_right(SlotPair { key: OTHER, state: used.pack() }, 2);
}

/// The store confirms a debt while callers use the right: no more than the right is unconfirmed.
#[test]
fn a_right_beside_its_confirmation() {
    model(|| {
        let used = KeyState { used: 1, ..KeyState::default() };
        let line = Arc::new(line(NONE, NONE, SlotPair { key: KEY, state: used.pack() }));
        let caller = |line: Arc<Line>| {
            thread::spawn(move || u64::from(line.use_right(KEY, 0, 1, 2).is_some()))
        };
        let (a, b) = (caller(line.clone()), caller(line.clone()));
        line.heard(KEY, &Said { confirmed: 1, shut: Some(0), ..Said::default() }, 0, 0);
        let used = a.join().expect("a") + b.join().expect("b");
        assert_eq!(line.state_of(KEY).map(|state| state.used), Some(used));
        assert!((1..=2).contains(&used));
    });
}

/// Two keys claim one line: one gets it and asks. The other spends none of its permits and
/// changes none of its answers.
#[test]
fn one_of_two_keys_has_the_line() {
    model(|| {
        let line = Arc::new(line(NONE, NONE, NONE));
        let wants = |key: u64, line: Arc<Line>| {
            thread::spawn(move || {
                let own = claim(&[&*line, &*line], key, 0, key & 7);
                let asked = own.is_some_and(|line| line.ask(key, 0, 1_000_000));
                if asked {
                    line.install(key, lease(1), 0);
                    line.heard(key, &Said { granted: 1, ..Said::default() }, 0, 0);
                } else {
                    let dry = Some((99_000_000, true));
                    line.heard(key, &Said { dry, ..Said::default() }, 0, 0);
                }
                asked
            })
        };
        let (a, b) = (wants(KEY, line.clone()), wants(OTHER, line.clone()));
        let asked = [a.join().expect("a"), b.join().expect("b")];
        // A key that is claimed and has not asked yet may lose the line, and then nobody asks.
        let (has, other) = if asked[0] { (KEY, OTHER) } else { (OTHER, KEY) };
        assert!(!(asked[0] && asked[1]));
        assert_eq!(line.left(other, 0), 0);
        if asked[0] || asked[1] {
            let state = line.state_of(has).expect("its line");
            assert_eq!((line.left(has, 0), state.phase_at(0)), (1, KeyPhase::Idle));
        }
    });
}
