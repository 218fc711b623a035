//! What a list gives back, beside exact fractions.

use super::*;
use crate::algorithm::{Algorithm, Charge};
use crate::policy::Policy;
use crate::search::rounds;
use std::format;
use std::string::String;
use std::vec::Vec;

const LISTS: [&str; 10] = [
    "10/s; 1000/day",
    "1/s burst 6; 2/min burst 9",
    "50/s burst 10; 3000/h",
    "3/s burst 5; 100/min burst 20",
    "7/s; 100/min burst 10",
    "2/s burst 100; 5/min burst 3",
    "10/s; 10/s burst 3",
    "13/17s burst 9; 129/1548s burst 12",
    "1000/s burst 20; 10000/min burst 30",
    "1/s burst 1; 1/h burst 4",
];

fn pair(list: &str) -> Pair {
    let policy: Policy = list.parse().expect(list);
    Pair::new(&policy).expect(list)
}

struct Rng(u64);

impl Rng {
    fn below(&mut self, most: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most.max(1)
    }
}

/// A charge: its instant in nanoseconds, its cost, and the steps that each bucket keeps of it.
struct Charged {
    at: u64,
    cost: u64,
    net: [u64; 2],
}

/// The permits that went back in a trace, and the first window that has more than a bucket's bound.
fn run(pair: &Pair, rng: &mut Rng, books: bool, keeps_slot: bool) -> (u64, Option<String>) {
    let (mut state, mut highest, mut given) = (0, 0, 0);
    let mut now = match rng.below(4) {
        0 => rng.below(1_000),
        1 => LAST / 2 + rng.below(1 << 30),
        _ => 1 << rng.below(61),
    };
    let mut charges: Vec<Charged> = Vec::new();
    let both = |cost: u64| [pair.fast.charge(cost), pair.slow.charge(cost)];
    for _ in 0..60 {
        let cost = 1 + rng.below(pair.burst);
        match rng.below(8) {
            0..=2 => {
                if let Some(next) = pair.step(state, now, cost).next {
                    charges.push(Charged { at: now, cost, net: both(cost) });
                    state = next;
                }
            }
            3 if books => {
                if let Some(booked) = pair.reserve(state, now, cost) {
                    charges.push(Charged { at: booked.at, cost, net: both(cost) });
                    state = booked.next;
                }
            }
            3..=5 => {
                let place = charges.len().saturating_sub(1 + rng.below(6) as usize);
                let Some(charge) = charges.get_mut(place).filter(|charge| charge.cost != 0) else {
                    continue;
                };
                let (at, cost) = (charge.at, core::mem::take(&mut charge.cost));
                let permits = if rng.below(2) == 0 { cost } else { rng.below(cost) };
                let (charge_of, floor) = (Charge { at, cost }, pair.expires_at(state));
                let back =
                    GiveBack { charge: charge_of, permits, booked: books, highest, keeps_slot };
                let Some(returned) = pair.give_back(state, now, &back) else { continue };
                let (from, to) = (pair.unpack(state), pair.unpack(returned.next));
                // A start without a charge is full from the beginning of its step on, so its TAT is
                // a step earlier.
                charge.net[0] = charge.net[0].saturating_sub(from.fast.saturating_sub(to.fast));
                charge.net[1] = charge.net[1].saturating_sub(from.slow.saturating_sub(to.slow));
                given += returned.permits;
                assert!(
                    !keeps_slot || pair.expires_at(returned.next) >= floor,
                    "the slot's time fell"
                );
                if !keeps_slot {
                    highest = highest.max(state);
                }
                state = returned.next;
            }
            6 => {
                now = now
                    .saturating_add(rng.below(3 * pair.steps.nanos(pair.fast.permit.get())))
                    .min(LAST)
            }
            _ => {
                let permits = rng.below(pair.burst + 2) * pair.slow.permit.get();
                now = now.saturating_add(rng.below(pair.steps.nanos(permits).max(2))).min(LAST);
            }
        }
    }
    (given, over(pair, charges))
}

/// The first window in which a bucket keeps more than its bound, in exact fractions of a
/// nanosecond.
fn over(pair: &Pair, mut charges: Vec<Charged>) -> Option<String> {
    charges.sort_by_key(|charge| charge.at);
    let (nanos, per) = (u128::from(pair.steps.nanos), u128::from(pair.steps.per.get()));
    for (n, bucket) in [&pair.fast, &pair.slow].into_iter().enumerate() {
        for (i, first) in charges.iter().enumerate() {
            let mut sum = 0;
            for last in &charges[i..] {
                sum += u128::from(last.net[n]);
                let bound =
                    u128::from(bucket.tolerance) * nanos + u128::from(last.at - first.at) * per;
                if sum * nanos > bound {
                    return Some(format!(
                        "bucket {n}: {sum} steps from {} to {}",
                        first.at, last.at
                    ));
                }
            }
        }
    }
    None
}

/// Takes, bookings and give-backs in any order, at any time: neither bucket keeps more than its
/// bound in any window.
#[test]
fn no_window_of_either_bucket_gets_more_than_its_bound() {
    for list in LISTS {
        let pair = pair(list);
        for (books, keeps_slot) in [(false, false), (true, false), (false, true), (true, true)] {
            let (mut rng, mut given) = (Rng(list.len() as u64), 0);
            for trace in 0..rounds(4_000) {
                let (back, over) = run(&pair, &mut rng, books, keeps_slot);
                assert_eq!(
                    over, None,
                    "{list}, trace {trace}, bookings {books}, in a slot {keeps_slot}"
                );
                given += back;
            }
            // In a slot the bound of bookings is so late that some lists give nothing back.
            let least = if books && keeps_slot { 0 } else { rounds(300) };
            assert!(given >= least, "{list}, bookings {books}, in a slot {keeps_slot}: {given}");
        }
    }
}

/// A charge that is given back at once leaves both buckets as they were, to the step. In a slot the
/// slow one keeps it.
#[test]
fn an_immediate_give_back_is_whole() {
    const DAY: u64 = 86_400_000_000_000;
    let pair = pair("10/s; 1000/day");
    let used = pair.step(0, DAY, 4).next.expect("room");
    let taken = pair.step(used, DAY, 5).next.expect("room");
    let back = |keeps_slot, now| {
        let charge = Charge { at: DAY, cost: 5 };
        let back = GiveBack { charge, permits: 5, booked: false, highest: 0, keeps_slot };
        pair.give_back(taken, now, &back)
    };
    assert_eq!(back(false, DAY), Some(Returned { next: used, permits: 5 }));
    let in_slot = back(true, DAY).expect("permits").next;
    assert_eq!(pair.expires_at(in_slot), pair.expires_at(taken));
    assert_eq!(
        (pair.unpack(in_slot).fast, pair.unpack(in_slot).slow),
        (pair.unpack(used).fast, pair.unpack(taken).slow)
    );
    // A second later the first bucket, which refills each second, has refilled the whole charge,
    // and the bucket of the day hardly any of it.
    let late = back(false, DAY + 1_000_000_000).expect("permits");
    assert_eq!(late.permits, 4);
    assert_eq!(pair.unpack(late.next).fast, pair.unpack(taken).fast);
}
