//! Bookings that are cancelled before they depart (A2), of every algorithm that books ahead. Each
//! test counts both sides: permits above the bound, and permits that nobody could use although all
//! who waited had left.

use crate::common::{assert_near, has_each, rounds, Rng, SEC};
use tollbar::algorithm::Charge;
use tollbar::{Kind, Policy, Shared, State};

const NOW: u64 = 1_000 * SEC;
/// Among them rates without whole units a nanosecond (11/s), and a list whose steps are not whole
/// nanoseconds.
const POLICIES: [&str; 14] = [
    "10/s burst 1",
    "10/s burst 5",
    "10/s burst 20 borrow",
    "11/s burst 1",
    "7/s burst 3",
    "7/min burst 4",
    "10/s burst 5; 100/min burst 50",
    "7/s burst 3; 100/min burst 3",
    "10/s algo pacer",
    "7/s algo pacer burst 4",
    "10/s algo warm-up warm 1s",
    "7/s burst 3 algo warm-up warm 3s",
    "10/s algo interval",
    "7/s burst 20 algo interval",
];

fn state(text: &str) -> State {
    State::new(&text.parse().unwrap()).unwrap()
}

fn book(state: &State, now: u64, cost: u64) -> Charge {
    Charge { at: state.reserve_at(now, cost, u64::MAX - 1).unwrap(), cost }
}

/// A state without a permit left at `NOW`.
fn drained(text: &str) -> State {
    let state = state(text);
    while state.take_up_to_at(NOW, 100) != 0 {}
    state
}

#[test]
fn every_algorithm_that_books_ahead_is_here() {
    let ahead = [Kind::Gcra, Kind::Interval, Kind::Pacer, Kind::WarmUp];
    has_each(ahead, &POLICIES);
    for kind in Kind::ALL.into_iter().filter(|kind| !ahead.contains(kind)) {
        let texts = crate::common::with_each([kind], &[]);
        assert!(!state(&texts[0]).books_ahead(), "{}: add it to this file", texts[0]);
    }
}

/// 20 callers book and leave, in random orders. Afterwards the next permit comes as early as if
/// they had never come, and so do those after it. The word of a warm-up does not tell how much was
/// stored before a booking that found it warm. There a booking given back leaves it colder, and so
/// later permits may come later, by less than the warm-up time.
#[test]
fn when_all_have_left_all_permits_are_back() {
    let mut rng = Rng(0xA2);
    let (mut lost, mut colder, mut gained, mut orders) = (0, 0, 0, 0);
    for text in POLICIES {
        let policy: Policy = text.parse().unwrap();
        let is_warm_up = policy.kind == Kind::WarmUp;
        let alone = twenty(&drained(text));
        for round in 0..rounds(800) {
            let state = drained(text);
            let mut booked: Vec<Charge> = (0..20).map(|_| book(&state, NOW, 1)).collect();
            if round == 1 {
                booked.reverse();
            }
            for left in (1..booked.len()).rev().take_while(|_| round > 1) {
                booked.swap(left, rng.below(left as u64 + 1) as usize);
            }
            for charge in booked {
                state.give_back(charge, 1, || NOW);
            }
            orders += 1;
            for (after, alone) in twenty(&state).into_iter().zip(&alone) {
                let late = after.saturating_sub(*alone);
                gained += u64::from(after < *alone);
                *if is_warm_up { &mut colder } else { &mut lost } += u64::from(late > 0);
                assert!(
                    after >= *alone && late <= if is_warm_up { policy.warm_up } else { 0 },
                    "{text}, order {round}: {after}, {alone}"
                );
            }
        }
    }
    println!("{orders} orders of 20 callers who leave: {gained} departures too early, {lost} too late, {colder} later as the limiter is colder");
    assert!(colder > 0, "the exception is none");
}

/// The same with a fresh limiter, when those callers cancel, too, whose permits have come, as a
/// program does that cancels every booking at its end. At most the permits of those are gone.
#[test]
fn callers_whose_permits_have_come_may_cancel_too() {
    const LATER: u64 = NOW + 2_000;
    let mut rng = Rng(0xA3);
    let (mut lost, mut colder, mut orders) = (0, 0, 0);
    // Lists whose slow permits have hardly been refilled when the callers leave.
    for text in POLICIES.into_iter().chain(["10/s; 1000/day", "5/s; 1000/h"]) {
        let policy: Policy = text.parse().unwrap();
        let most = if policy.kind == Kind::WarmUp { policy.warm_up } else { 0 };
        let alone = state(text);
        while alone.reserve_at(NOW, 1, NOW).is_some() {}
        let alone = departures(&alone, LATER);
        for round in 0..rounds(400) {
            let state = state(text);
            let mut booked: Vec<Charge> = (0..20).map(|_| book(&state, NOW, 1)).collect();
            for left in (1..booked.len()).rev().take_while(|_| round > 0) {
                booked.swap(left, rng.below(left as u64 + 1) as usize);
            }
            for charge in booked {
                state.give_back(charge, 1, || LATER);
            }
            orders += 1;
            for (after, alone) in departures(&state, LATER).into_iter().zip(&alone) {
                let late = after.saturating_sub(*alone);
                *if most > 0 { &mut colder } else { &mut lost } += u64::from(late > 0);
                assert!(late <= most, "{text}, order {round}: {after}, {alone}");
            }
        }
    }
    println!("{orders} orders of 20 callers who leave late: {lost} departures too late, {colder} later as the limiter is colder");
}

/// The departures of twenty bookings.
fn twenty(state: &State) -> Vec<u64> {
    departures(state, NOW)
}

fn departures(state: &State, now: u64) -> Vec<u64> {
    (0..20).map(|_| book(state, now, 1).at).collect()
}

/// A booking of other costs than those after it, and callers that come while others leave.
#[test]
fn a_gap_goes_to_the_next_caller() {
    let state = drained("10/s burst 5");
    let booked: Vec<Charge> = [1, 2, 1, 3, 1].map(|cost| book(&state, NOW, cost)).to_vec();
    assert_eq!(state.give_back(booked[2], 1, || NOW), 0);
    assert_eq!(state.give_back(booked[1], 2, || NOW), 0);
    // A caller of one permit takes the gap of one permit, and the next one departs after all
    // others.
    assert_eq!(book(&state, NOW, 1).at, booked[2].at);
    assert!(book(&state, NOW, 1).at > booked[4].at);
    // A gap that has passed is no use, nor one that comes too late.
    assert_eq!(state.reserve_at(NOW, 2, booked[1].at - 1), None);
    assert!(book(&state, booked[1].at + 1, 2).at > booked[4].at);
}

/// After a change of policy a booking of the former one is no reason to give back what others will
/// use.
#[test]
fn a_change_of_policy_remembers_that_permits_were_booked() {
    use tollbar::clock::Manual;
    use tollbar::policy::Keep;
    let limiter = tollbar::Limiter::with(state("1/s burst 1"), Manual::new(NOW));
    let booked: Vec<Charge> = (0..4)
        .map(|_| limiter.reserve_at(NOW, 1, u64::MAX - 1).unwrap())
        .map(|at| Charge { at, cost: 1 })
        .collect();
    limiter.set_policy(&"1/s burst 2".parse().unwrap(), Keep::Count).unwrap();
    // In the middle of the others, so nothing comes back, or their departures would have company.
    assert_eq!(limiter.give_back_at(NOW, booked[1], 1), 0);
}

/// Random takes, bookings, cancellations and pauses. No interval has more than its bound, and some
/// have exactly that.
#[test]
fn no_interval_exceeds_its_bound() {
    for (text, bound) in BOUNDS {
        let (mut rng, mut nearest, mut exact, mut above) = (Rng(7), 0, 0u64, 0u64);
        for _ in 0..rounds(3_000) {
            let kept = trace(text, &mut rng);
            for (n, from) in kept.iter().enumerate() {
                let mut permits = 0;
                for to in &kept[n..] {
                    permits += to.cost;
                    let most = bound(from.at, to.at);
                    nearest = nearest.max(permits * 1_000 / most.max(1));
                    exact += u64::from(permits == most);
                    above += u64::from(permits > most);
                    assert!(
                        permits <= most,
                        "{text}: {permits} permits of {most} from {} to {}: {kept:?}",
                        from.at,
                        to.at
                    );
                }
            }
        }
        println!("{text}: {above} intervals above the bound, {exact} exactly at it");
        assert_near(text, nearest, 1_000);
    }
}

type Bound = fn(u64, u64) -> u64;
/// The most permits that depart from the first to the second instant, both included.
const BOUNDS: [(&str, Bound); 7] = [
    ("10/s burst 3", |from, to| 3 + (to - from) / (SEC / 10)),
    ("11/s burst 2", |from, to| 2 + (11 * (to - from)).div_ceil(SEC)),
    ("10/s burst 4; 5/s burst 3", |from, to| {
        (4 + (to - from) / (SEC / 10)).min(3 + (to - from) / (SEC / 5))
    }),
    ("10/s algo pacer burst 3", |from, to| 3 + (to - from) / (SEC / 10)),
    ("10/s burst 3 borrow", |from, to| 3 + 3 + (to - from) / (SEC / 10)),
    ("3/s algo interval", |from, to| 3 + 3 * (to / SEC - from / SEC)),
    ("3/s algo interval burst 5", |from, to| 5 + 3 * (to / SEC - from / SEC)),
];

/// The charges of one trace in the order of their departures, without the permits that went back.
fn trace(text: &str, rng: &mut Rng) -> Vec<Charge> {
    let state = state(text);
    let mut now = NOW;
    let mut charges: Vec<Charge> = Vec::new();
    let mut kept = Vec::new();
    for _ in 0..10 + rng.below(50) {
        let cost = 1 + rng.below(3);
        match rng.below(10) {
            0 | 1 => kept.extend(
                state
                    .admit_at(now, cost)
                    .eq(&tollbar::Verdict::Allowed)
                    .then_some(Charge { at: now, cost }),
            ),
            2..=4 => charges.extend(
                state.reserve_at(now, cost, now + rng.below(3 * SEC)).map(|at| Charge { at, cost }),
            ),
            5..=7 => {
                let Some(last) = charges.len().checked_sub(1) else { continue };
                let n = if rng.below(2) == 0 { last } else { rng.below(last as u64 + 1) as usize };
                let charge = charges[n];
                if charge.at <= now {
                    continue;
                }
                // A gap gives nothing back, and its departure may go to another caller, or to
                // nobody.
                charges.swap_remove(n);
                let back = state.give_back(charge, charge.cost, || now);
                if back != 0 && back != charge.cost {
                    kept.push(Charge { cost: charge.cost - back, ..charge });
                }
            }
            8 => now += rng.below(SEC / 5),
            _ => now += rng.below(SEC),
        }
    }
    kept.extend(charges);
    kept.sort_by_key(|charge| charge.at);
    kept
}
