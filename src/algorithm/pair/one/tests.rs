//! The prepared way for a cost of 1, beside the general step.

use crate::algorithm::pair::{OneStep, Pair};
use crate::algorithm::{Algorithm, Step};
use crate::policy::Policy;
use crate::search::rounds;
use crate::units::LAST;

const LISTS: [&str; 12] = [
    "10/s; 1000/day",
    "50/s burst 10; 3000/h",
    "3/s burst 5; 100/min",
    "30/s burst 1; 1000/h burst 2",
    "2/s burst 100; 5/min burst 3",
    "10/s; 10/s burst 3",
    "1/s; 1/365d",
    "1000/s; 10000/min",
    "5/min; 100/h",
    "60/s; 1000/h",
    "13/17s burst 9; 129/1548s",
    "5/min burst 8; 6/min burst 8",
];

/// The prepared products decide as the general step does, between steps, at them and one nanosecond
/// beside them, up to the last time.
#[test]
fn the_prepared_products_are_exact() {
    let mut seed = 7_u64;
    let mut next = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        seed >> 1
    };
    for list in LISTS {
        let policy: Policy = list.parse().expect(list);
        let pair = Pair::new(&policy).expect(list);
        assert_eq!(pair.one_end(), LAST + 1, "{list}");
        let (mut allowed, mut denied, mut others) = (0, 0, 0);
        for _ in 0..rounds(20_000) {
            // A time near a whole step, of any magnitude.
            let near = |steps: u64| pair.steps.nanos(steps).min(LAST);
            let mut now = near(pair.steps.clock((next() & LAST) >> (next() % 60)).down);
            let mut state = 0;
            for _ in 0..4 {
                let at = now.saturating_add(next() % 3).saturating_sub(1).min(LAST);
                let want = pair.step_any(state, at, 1);
                let usual = match pair.step_one(state, at) {
                    OneStep::Admitted(next) => Some(Step::allow(next)),
                    OneStep::Refused => Some(Step::deny()),
                    OneStep::Other => match pair.start_one(state, at) {
                        OneStep::Admitted(next) => Some(Step::allow(next)),
                        _ => None,
                    },
                };
                assert_eq!(usual.unwrap_or(want), want, "{list}: {state} at {at}");
                others += u32::from(usual.is_none());
                allowed += u32::from(want.next.is_some());
                denied += u32::from(want.next.is_none());
                state = match next() % 4 {
                    0 => {
                        pair.charge(state, at, next() % (2 * pair.burst + 2)).next.unwrap_or(state)
                    }
                    1 => pair.reserve(state, at, 1).map_or(state, |booked| booked.next),
                    _ => want.next.unwrap_or(state),
                };
                if next() % 2 == 0 {
                    now = near(pair.steps.clock(pair.admits_at(state, at, 1).min(LAST)).up);
                }
            }
        }
        assert!(u64::from(allowed.min(denied)) > rounds(1_000), "{list}: {allowed} and {denied}");
        assert!(others < (allowed + denied) / 2, "{list}: {others} of {allowed} and {denied}");
    }
}

/// Clocks that need more than 64 bits take the general step.
#[test]
fn a_clock_without_exact_products_is_left_out() {
    let pair = |list: &str| Pair::new(&list.parse::<Policy>().expect(list)).expect(list);
    assert_eq!(pair("1/1s; 129/101s").one_end(), 0);
}
