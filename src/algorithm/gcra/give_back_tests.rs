//! Give-backs beside charges and bookings, against the bound of every window.

use super::tests::in_slots;
use super::*;
use crate::algorithm::Charge;
use crate::decision::Verdict;
use crate::search::rounds;
use proptest::prelude::*;
use std::format;
use std::string::String;
use std::vec::Vec;

fn gcra(text: &str) -> Gcra {
    in_slots(Gcra::new(&text.parse().expect("a policy")).expect("a bucket"))
}

/// A charge in units, and the instant from which on it counts.
#[derive(Clone, Copy, Debug)]
struct Charged {
    at: u64,
    cost: u64,
    net: u64,
    given: bool,
}

#[derive(Clone, Copy, Debug)]
enum Call {
    Take(u64),
    Book(u64),
    /// Gives back this many permits of an earlier charge, counted back from the last one.
    Back(usize, u64),
    Pass(u64),
}

fn calls(burst: u64, permit: u64) -> impl Strategy<Value = Vec<Call>> {
    let call = prop_oneof![
        3 => (1..=burst).prop_map(Call::Take),
        1 => (1..=burst).prop_map(Call::Book),
        4 => ((0..6usize), (1..=burst)).prop_map(|(n, cost)| Call::Back(n, cost)),
        3 => prop_oneof![Just(permit), 0..permit * 3, 0..permit * burst].prop_map(Call::Pass),
    ];
    proptest::collection::vec(call, 1..40)
}

/// How close the permits of a trace came to the bound of a window, in units, and the number that
/// was given back.
#[derive(Default)]
struct Run {
    given: u64,
    over: Option<String>,
    fullest: u64,
}

/// Makes the calls. `back` is the rule that decides how many permits go back.
fn run(
    bucket: &Gcra,
    calls: &[Call],
    books: bool,
    back: impl Fn(u64, u64, &GiveBack) -> Option<u64>,
) -> Run {
    let (mut state, mut now) = (0, 1_u64 << 40);
    let mut charges: Vec<Charged> = Vec::new();
    let mut run = Run::default();
    let mut floor = 0;
    for call in calls {
        match *call {
            Call::Take(cost) => {
                let Step { verdict, next } = bucket.step(state, now, cost);
                if let (Verdict::Allowed, Some(next)) = (verdict, next) {
                    charges.push(Charged {
                        at: now,
                        cost,
                        net: cost * bucket.grid.per_permit().get(),
                        given: false,
                    });
                    state = next;
                }
            }
            Call::Book(cost) if books => {
                if let Some(Reservation { next, at }) = bucket.reserve(state, now, cost) {
                    charges.push(Charged {
                        at,
                        cost,
                        net: cost * bucket.grid.per_permit().get(),
                        given: false,
                    });
                    state = next;
                }
            }
            Call::Book(_) => {}
            Call::Back(age, permits) => {
                let Some(n) = charges.len().checked_sub(age + 1) else { continue };
                let charge = &mut charges[n];
                if charge.given {
                    continue;
                }
                let (charged_at, cost) = (charge.at, charge.cost);
                let how = GiveBack {
                    charge: Charge { at: charged_at, cost },
                    permits: permits.min(cost),
                    booked: books,
                    highest: 0,
                    keeps_slot: true,
                };
                let Some(next) = back(state, now, &how) else { continue };
                let units = bucket.floors.tat(state) - bucket.floors.tat(next);
                charge.net -= units;
                charge.given = true;
                run.given += units;
                state = next;
            }
            Call::Pass(time) => now += time,
        }
        let expires = bucket.expires_at(state);
        assert!(expires >= floor, "the expiry fell from {floor} to {expires}: {calls:?}");
        assert!(
            state == 0 || expires >= bucket.fresh_at(state, 0),
            "{state:x} expires at {expires}"
        );
        floor = expires;
    }
    charges.sort_by_key(|charge| charge.at);
    for (n, first) in charges.iter().enumerate() {
        let mut sum = 0;
        for last in &charges[n..] {
            sum += last.net;
            // The instant of a booking is rounded up to a nanosecond.
            let nanosecond = if books { bucket.grid.units_up(1) - 1 } else { 0 };
            let bound = bucket.tolerance + bucket.grid.units(last.at) - bucket.grid.units(first.at)
                + nanosecond;
            run.fullest = run.fullest.max(sum * 100 / bound);
            if sum > bound {
                run.over = Some(format!(
                    "{sum} of {bound} units from {} to {}: {calls:?}",
                    first.at, last.at
                ));
            }
        }
    }
    run
}

fn by_rule(bucket: &Gcra) -> impl Fn(u64, u64, &GiveBack) -> Option<u64> + '_ {
    |state, now, back| bucket.give_back(state, now, back).map(|returned| returned.next)
}

const POLICIES: [&str; 6] = [
    "1/s burst 10",
    "1/s burst 1",
    "3/s burst 4",
    "11/s burst 7",
    "1000/s burst 32",
    "13/min burst 5",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: rounds(20_000) as u32, failure_persistence: None, ..ProptestConfig::default() })]

    /// Requests that are admitted at once, and give-backs in any order.
    #[test]
    fn no_window_gets_more_than_its_bound((text, calls) in (0..POLICIES.len()).prop_flat_map(|n| {
        let bucket = gcra(POLICIES[n]);
        let permit = bucket.grid.nanos(bucket.grid.per_permit().get());
        (Just(POLICIES[n]), calls(bucket.burst, permit))
    })) {
        for books in [false, true] {
            let run = run(&gcra(text), &calls, books, by_rule(&gcra(text)));
            prop_assert!(run.over.is_none(), "{text}: {:?}", run.over);
        }
    }
}

/// Generated traces. The searches below count the violations in them.
fn searched(
    back: impl Fn(&Gcra, u64, u64, &GiveBack) -> Option<u64>,
    books: bool,
) -> (u32, u64, u64) {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let bucket = gcra("1/s burst 6");
    let (mut over, mut given, mut fullest) = (0, 0, 0);
    for _ in 0..rounds(20_000) {
        let calls = calls(6, 1_000_000_000).new_tree(&mut runner).expect("calls").current();
        let run = run(&bucket, &calls, books, |state, now, how| back(&bucket, state, now, how));
        over += u32::from(run.over.is_some());
        given += run.given;
        fullest = fullest.max(run.fullest);
    }
    (over, given, fullest)
}

use proptest::strategy::ValueTree;

/// The search finds the faults of simpler rules, and the rule gives back most of the permits that
/// the unsafe rules would.
#[test]
fn the_search_finds_what_is_wrong_with_simpler_rules() {
    let lowered = |bucket: &Gcra, state: u64, now: u64, units: u64| {
        let tat = bucket.floors.tat(state);
        let next = bucket.lower(state, tat - units.min(tat.saturating_sub(bucket.grid.units(now))));
        (next != state).then_some(next)
    };
    let all = |bucket: &Gcra, state, now, how: &GiveBack| {
        lowered(bucket, state, now, how.permits * bucket.plain.permit)
    };
    let by_time = |bucket: &Gcra, state, now: u64, how: &GiveBack| {
        let kept = (how.charge.cost * bucket.plain.permit)
            .saturating_sub(now.saturating_sub(how.charge.at));
        lowered(bucket, state, now, kept.min(how.permits * bucket.plain.permit))
    };
    let rule = |bucket: &Gcra, state, now, how: &GiveBack| by_rule(bucket)(state, now, how);
    let (over, most, _) = searched(all, false);
    assert!(
        u64::from(over) > rounds(20_000) / 200,
        "a full refund broke the bound in {over} traces only"
    );
    let (over, given, fullest) = searched(rule, false);
    assert_eq!((over, fullest), (0, 100));
    assert!(given > most / 3, "{given} of {most}");
    let (over, _, _) = searched(by_time, true);
    assert!(
        u64::from(over) > rounds(20_000) / 1_000,
        "a refund that does not know of bookings broke the bound in {over} traces only"
    );
    let (over, given, fullest) = searched(rule, true);
    assert_eq!((over, fullest), (0, 100));
    assert!(given > most / 10, "{given} of {most}");
}

/// Rates with 4 to 7 units in a nanosecond have no bit left for floors.
#[test]
fn a_full_word_gives_nothing_back() {
    for (text, gives) in [
        ("7/s", false),
        ("6/s", true),
        ("11/s", true),
        ("1000/h", true),
        ("1000000000/s", true),
        ("8000000000/s", false),
    ] {
        let bucket = gcra(text);
        let now = 1 << 40;
        let taken = bucket.step(0, now, 3).next.expect("three");
        let back = GiveBack {
            charge: Charge { at: now, cost: 3 },
            permits: 3,
            booked: false,
            highest: 0,
            keeps_slot: true,
        };
        assert_eq!(bucket.give_back(taken, now, &back).is_some(), gives, "{text}");
    }
}

/// Ten permits, five of them taken at 0 s and seven at 2 s: of the five, three can come back at 2
/// s.
#[test]
fn a_refund_leaves_out_what_time_has_brought_back() {
    const SECOND: u64 = 1_000_000_000;
    let bucket = gcra("1/s burst 10");
    let taken = bucket.step(0, SECOND, 5).next.expect("five");
    let taken = bucket.step(taken, 3 * SECOND, 7).next.expect("seven");
    let back = GiveBack {
        charge: Charge { at: SECOND, cost: 5 },
        permits: 5,
        booked: false,
        highest: 0,
        keeps_slot: true,
    };
    let returned = bucket.give_back(taken, 3 * SECOND, &back).expect("permits");
    assert_eq!(returned.permits, 3);
    assert_eq!(bucket.available(returned.next, 3 * SECOND), 3);
    assert_eq!(bucket.step(returned.next, 3 * SECOND, 5).verdict, Verdict::Denied);
    assert_eq!(
        bucket.expires_at(returned.next) / SECOND,
        17,
        "the floor: the word was full at 11 s, and a quantum is 17.2 s"
    );
    // A charge that has just been made comes back whole, to the unit.
    let now = 3 * SECOND;
    let back = GiveBack {
        charge: Charge { at: now, cost: 7 },
        permits: 7,
        booked: false,
        highest: 0,
        keeps_slot: true,
    };
    let returned = bucket.give_back(taken, now, &back).expect("permits");
    assert_eq!(bucket.floors.tat(returned.next), bucket.floors.tat(taken) - 7 * SECOND);
    // Permits that the limit has refilled are not given back.
    let back = GiveBack {
        charge: Charge { at: SECOND, cost: 5 },
        permits: 5,
        booked: false,
        highest: 0,
        keeps_slot: true,
    };
    assert_eq!(bucket.give_back(taken, 6 * SECOND, &back), None);
    assert_eq!(bucket.give_back(0, now, &back), None);
}

/// A charge without asking keeps the floor of a word that was lowered before it.
#[test]
fn a_charge_keeps_the_floor() {
    let bucket = in_slots(gcra("1/s burst 10"));
    let taken = bucket.step(0, 0, 10).next.expect("permits");
    let back = GiveBack {
        charge: Charge { at: 0, cost: 10 },
        permits: 8,
        booked: false,
        highest: 0,
        keeps_slot: true,
    };
    let mut state = bucket.give_back(taken, 0, &back).expect("permits").next;
    for owed in 3..=20 {
        let charged = bucket.charge(state, 0, 1);
        let next = charged.next.expect("room");
        assert!(bucket.expires_at(next) >= bucket.expires_at(state), "{owed} owed");
        assert_eq!((charged.rest, bucket.floors.tat(next)), (0, owed * 1_000_000_000));
        state = next;
    }
    assert_eq!(bucket.charge(state, 0, 1).rest, 1);
}
