//! A slot that changes hands: the answers to each key are compared with a state that only that key
//! uses.

use super::fake::{FakeSlot, Place, Rule};
use super::{Owner, SlotWords, StateWord};
use crate::decision::Verdict;
use crate::limiter::{Shared, State};
use crate::policy::Policy;
use crate::units::NEVER;
use alloc::boxed::Box;
use core::cell::{Cell, RefCell};
use std::format;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};

const POLICIES: [&str; 13] = [
    "2/20ns algo sliding-window segments 2",
    "5/60s algo sliding-window segments 6",
    "5/60s algo sliding-window segments 6 mode strict",
    "3/1s algo sliding-window segments 1 mode strict",
    "1/1s algo sliding-window segments 1",
    "4/40ns algo sliding-window segments 4 mode interpolated",
    "7/60s algo sliding-window segments 5 mode interpolated",
    "1/10ns algo sliding-log",
    "3/5ns algo sliding-log",
    "5/60s algo sliding-log",
    "1/1s algo sliding-log",
    "2/10ns algo sliding-log count rejected",
    "5/60s algo sliding-log count rejected",
];

fn fresh(policy: &str) -> State {
    State::new(&policy.parse::<Policy>().unwrap()).unwrap()
}

fn period(policy: &str) -> u64 {
    policy.parse::<Policy>().unwrap().period
}

/// Reproducible numbers.
struct Rng(u64);

impl Rng {
    fn below(&mut self, n: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((u128::from(self.0) * u128::from(n)) >> 64) as u64
    }
}

/// One request, to the slot through `head` and to the key's own state: the answers are the same.
fn both(place: &Place, head: &impl StateWord, own: &State, rng: &mut Rng, now: u64, cost: u64) {
    match rng.below(4) {
        0 => assert_eq!(place.admit(head, now, cost), Some(own.admit_at(now, cost))),
        1 => assert_eq!(place.check(head, now, cost), Some(own.check_at(now, cost))),
        2 => assert_eq!(place.peek(head, now, cost), Some(own.peek_at(now, cost))),
        _ => assert_eq!(place.take_up_to(head, now, cost), Some(own.take_up_to_at(now, cost))),
    }
}

/// Asserts that the state is as good as fresh at the slot's time of expiry, and is not an instant
/// before (for a log, a grain before).
fn expiry(place: &Place, policy: &str) {
    let (key, word) = place.slot.both();
    let expires = place.rule.expires_at(word);
    if word == 0 {
        assert_eq!(expires, 0);
        return;
    }
    let head = place.owner(key);
    let peek = |now| place.peek(&head, now, 1).unwrap();
    assert_eq!(peek(expires).reset_after, 0);
    let grain = match &place.rule {
        Rule::Window(_) => 1,
        // A sixteenth of the period, or all of it in logs with more entries than a sixteenth
        // allows.
        Rule::Log(_) if period(policy) < 100 => period(policy),
        Rule::Log(_) => period(policy) / 16,
    };
    assert!(peek(expires - grain).reset_after > 0);
}

/// Several keys want one slot, at times that mostly advance, and also rest and step back.
#[test]
fn answers_are_those_of_a_state_of_its_own() {
    for policy in POLICIES {
        for seed in 0..60 {
            let mut rng = Rng(seed);
            let place = Place::new(policy, 0);
            let (mut own, mut now, mut before) = (fresh(policy), 0u64, 0);
            let (mut moves, period) = (0, period(policy));
            for _ in 0..600 {
                now = match rng.below(8) {
                    0 => now.saturating_sub(rng.below(period)),
                    1 => now + rng.below(4 * period),
                    2..=5 => now + rng.below(period / 4 + 1),
                    _ => now,
                };
                let (key, cost) = (rng.below(3), rng.below(7));
                if place.slot.both().0 == key {
                    both(&place, &place.owner(key), &own, &mut rng, now, cost);
                } else if let Some(new_key) = place.new_owner(key, now) {
                    let state = fresh(policy);
                    both(&place, &new_key, &state, &mut rng, now, cost);
                    if place.slot.both().0 == key {
                        (own, moves) = (state, moves + 1);
                    }
                }
                let expires = place.rule.expires_at(place.slot.both().1);
                assert!(expires >= before, "{policy}, {seed}: {expires} after {before}");
                assert!(expires != NEVER);
                before = expires;
                expiry(&place, policy);
            }
            assert!(moves > 5, "{policy}, {seed}: {moves}");
        }
    }
}

/// An owner that is stopped before or after its `n`th read or swap of the slot, while another call
/// runs.
struct Stopped<'a> {
    owner: Owner<'a, FakeSlot>,
    steps: Cell<u32>,
    meanwhile: RefCell<Option<Box<dyn FnOnce() + 'a>>>,
}

impl<'a> Stopped<'a> {
    fn new(owner: Owner<'a, FakeSlot>, n: u32, meanwhile: impl FnOnce() + 'a) -> Stopped<'a> {
        Stopped { owner, steps: Cell::new(n), meanwhile: RefCell::new(Some(Box::new(meanwhile))) }
    }

    fn step(&self) {
        let left = self.steps.get();
        self.steps.set(left.wrapping_sub(1));
        if left == 0 {
            let meanwhile = self.meanwhile.borrow_mut().take().unwrap();
            meanwhile();
        }
    }

    fn beside<T>(&self, f: impl FnOnce(&Owner<'a, FakeSlot>) -> T) -> T {
        self.step();
        let seen = f(&self.owner);
        self.step();
        seen
    }
}

impl StateWord for Stopped<'_> {
    fn load(&self) -> Option<u64> {
        self.beside(|owner| owner.load())
    }
    fn load_relaxed(&self) -> Option<u64> {
        self.beside(|owner| owner.load_relaxed())
    }
    fn swap(&self, from: u64, to: u64) -> Result<(), Option<u64>> {
        self.beside(|owner| owner.swap(from, to))
    }
}

/// More steps than an admission takes here.
const STEPS: u32 = 40;
const OLD: u64 = 1;
const NEW: u64 = 2;

/// An old key's admission is stopped between any two of its steps, and the slot goes to a new key.
/// The admission goes on when the new key has made `laps` admissions, or is killed. The new key
/// gets the answers of a state of its own.
#[test]
fn stragglers_of_an_old_key_are_harmless() {
    for policy in POLICIES {
        for (steps, laps, killed) in product() {
            let text = format!("{policy}, {steps} steps, {laps} laps, killed: {killed}");
            let (place, own, period) = (Place::new(policy, OLD), fresh(policy), period(policy));
            let limit = policy.parse::<Policy>().unwrap().limit;
            // The old key takes all permits long ago. The stopped admission comes late enough for
            // them to have left, and early enough for the slot to expire before the new key.
            assert_eq!(place.admit(&place.owner(OLD), 3 * period, limit), Some(Verdict::Allowed));
            let (late, mut now) = (7 * period + 3, 10 * period);
            let (before, stopped, charged) =
                (place.slot.both(), Cell::new(false), Cell::new(false));
            let old = Stopped::new(place.owner(OLD), steps, || {
                stopped.set(true);
                charged.set(place.slot.both() != before);
                for lap in 0..laps {
                    let cost = if lap == 0 { 1 } else { limit };
                    let at = 10 * period + 2 * period * lap;
                    let verdict = match place.new_owner(NEW, at) {
                        Some(new_key) if lap == 0 => place.check(&new_key, at, cost),
                        _ => place.check(&place.owner(NEW), at, cost),
                    };
                    assert_eq!(verdict, Some(own.check_at(at, cost)), "{text}");
                }
                if killed {
                    resume_unwind(Box::new(()));
                }
            });
            let cost = if steps % 3 == 0 { 1 } else { limit };
            let given = catch_unwind(AssertUnwindSafe(|| place.check(&old, late, cost)));
            if !stopped.get() {
                assert_eq!(given.unwrap().unwrap().verdict, Verdict::Allowed);
                continue;
            }
            // The old key's caller was admitted before it lost the slot, or was told that it had
            // lost it.
            if !killed {
                let expected = if charged.get() { Some(Verdict::Allowed) } else { None };
                assert_eq!(given.unwrap().map(|decision| decision.verdict), expected, "{text}");
            }
            assert_eq!(place.slot.both().0, NEW);
            now += 2 * period * (laps - 1);
            // Compares all answers of the two states for three periods.
            for quarter in 0..12 {
                let at = now + quarter * period / 4 + quarter % 3;
                let head = place.owner(NEW);
                for cost in [1, limit] {
                    assert_eq!(
                        place.peek(&head, at, cost),
                        Some(own.peek_at(at, cost)),
                        "{text}, {quarter}"
                    );
                }
                assert_eq!(
                    place.admit(&head, at, 1),
                    Some(own.admit_at(at, 1)),
                    "{text}, {quarter}"
                );
            }
        }
    }
}

fn product() -> impl Iterator<Item = (u32, u64, bool)> {
    (0..STEPS)
        .flat_map(|steps| (1..20).flat_map(move |laps| [(steps, laps, false), (steps, laps, true)]))
}

/// Two admissions are both stopped before their entries are written, the second for ever. Their
/// permits differ by a whole turn of the head, so they have one place and one lap. The first must
/// not write its time into the second's entry.
#[test]
fn a_turn_of_the_head_is_noticed() {
    let mut seen = 0;
    for (asleep, killed) in
        (0..STEPS).flat_map(|asleep| (0..STEPS).map(move |killed| (asleep, killed)))
    {
        // A turn is 8 permits.
        let place = Place::new("1/10ns algo sliding-log", OLD);
        let first = Stopped::new(place.owner(OLD), asleep, || {
            for n in 0..7 {
                assert_eq!(place.admit(&place.owner(OLD), 40 + 40 * n, 1), Some(Verdict::Allowed));
            }
            let second = Stopped::new(place.owner(OLD), killed, || resume_unwind(Box::new(())));
            let _ = catch_unwind(AssertUnwindSafe(|| place.admit(&second, 400, 1)));
        });
        let _ = place.admit(&first, 7, 1);
        if place.rule.expires_at(place.slot.both().1) >= 410 {
            seen += 1;
            let decision = place.peek(&place.owner(OLD), 409, 1).map(|decision| decision.verdict);
            assert_eq!(decision, Some(Verdict::Denied), "{asleep}, {killed}");
        }
    }
    assert!(seen > 0);
}

/// An admission that is killed between any two of its steps has taken its permits for a period, or
/// none.
#[test]
fn what_a_killed_admission_took_is_taken() {
    for policy in POLICIES {
        for (steps, at) in (0..STEPS).flat_map(|steps| (0..9).map(move |n| (steps, n))) {
            let (place, period) = (Place::new(policy, OLD), period(policy));
            let limit = policy.parse::<Policy>().unwrap().limit;
            let at = 3 * period + at * period / 9;
            let killed = Stopped::new(place.owner(OLD), steps, || resume_unwind(Box::new(())));
            let _ = catch_unwind(AssertUnwindSafe(|| place.admit(&killed, at, limit)));
            let (_, word) = place.slot.both();
            let head = place.owner(OLD);
            let verdict = |now| place.peek(&head, now, 1).unwrap().verdict;
            if word == 0 {
                assert_eq!(verdict(at), Verdict::Allowed);
                continue;
            }
            // In mode n a window is up to a segment short.
            let short = if policy.contains("log") { 1 } else { period / 2 + 1 };
            let short = if policy.contains("segments 1") && !policy.contains("mode") {
                period
            } else {
                short
            };
            for now in [at, at + (period - short) / 2, at + period - short] {
                assert_eq!(verdict(now), Verdict::Denied, "{policy}, {steps} steps, {at}, {now}");
            }
            assert_eq!(
                verdict(place.rule.expires_at(word)),
                Verdict::Allowed,
                "{policy}, {steps} steps, {at}"
            );
        }
    }
}

/// While an admission sleeps, refused requests that count go round the log, all at one time.
#[test]
fn laps_of_refused_requests_are_noticed() {
    for (steps, laps) in (0..STEPS).flat_map(|steps| (1..8).map(move |laps| (steps, laps))) {
        // A turn is 8 permits, and no request comes at the end of a grain.
        let place = Place::new("1/10ns algo sliding-log count rejected", OLD);
        let first = Stopped::new(place.owner(OLD), steps, || {
            for _ in 0..laps {
                let _ = place.admit(&place.owner(OLD), 40, 1);
            }
        });
        let _ = place.admit(&first, 40, 1);
        let verdict = |now| place.peek(&place.owner(OLD), now, 1).unwrap().verdict;
        assert_eq!(verdict(49), Verdict::Denied, "{steps} steps, {laps} laps");
        assert_eq!(verdict(50), Verdict::Allowed, "{steps} steps, {laps} laps");
    }
}

/// A log whose head has gone round does not look fresh, in the first grain of the clock either.
#[test]
fn a_turn_at_the_clocks_zero_has_not_expired() {
    let place = Place::new("1/10ns algo sliding-log count rejected", OLD);
    for n in 0..40 {
        assert_eq!(place.admit(&place.owner(OLD), 0, 1) == Some(Verdict::Allowed), n == 0);
        assert!(place.rule.expires_at(place.slot.both().1) >= 10, "{n}");
    }
}
