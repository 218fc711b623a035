//! S37: bytes as permits. A sender of 100 MB/s in costs of 1,500 bytes is off by less than one
//! cost after 10 seconds.

use crate::common::*;
use std::sync::atomic::{AtomicU64, Ordering};
use tollbar::{Shared, State, Verdict};

const POLICY: &str = "100mb/s burst 15000 unit bytes";
const COST: u64 = 1_500;
const START: u64 = 1_000 * SEC;
const END: u64 = START + 10 * SEC;
/// What an exact bucket that begins full gives until `END`.
const BYTES: u64 = 15_000 + 10 * 100_000_000;
/// The bucket holds 150 us of its rate, so a request each microsecond finds it never full.
const EVERY: u64 = US;

/// What a sender gets that sends whenever a request may pass.
fn sent(state: &State, ask: impl Fn(&State, u64) -> u64) -> u64 {
    (START..=END).step_by(EVERY as usize).map(|now| ask(state, now)).sum()
}

fn whole(state: &State, now: u64) -> u64 {
    let mut bytes = 0;
    while state.admit_at(now, COST) == Verdict::Allowed {
        bytes += COST;
    }
    bytes
}

#[test]
fn s37_a_sender_in_whole_costs_lacks_less_than_one() {
    let bytes = sent(&State::new(&policy(POLICY)).expect("memory"), whole);
    assert!(bytes <= BYTES && BYTES - bytes < COST, "{bytes} of {BYTES}");
}

#[test]
fn s37_a_sender_that_takes_what_there_is_gets_all() {
    let state = State::new(&policy(POLICY)).expect("memory");
    assert_eq!(sent(&state, |state, now| state.take_up_to_at(now, u64::MAX)), BYTES);
}

/// The threads share a clock, which each of their requests moves on. A thread that was stopped asks
/// at an old time, and the others go on.
#[test]
fn s37_four_threads_lack_less_than_one_cost_together() {
    for up_to in [false, true] {
        let state = State::new(&policy(POLICY)).expect("memory");
        let clock = AtomicU64::new(START);
        let thread = || {
            let mut bytes = 0;
            loop {
                let now = clock.fetch_add(EVERY, Ordering::Relaxed);
                if now > END {
                    return bytes;
                }
                bytes += match up_to {
                    true => state.take_up_to_at(now, COST),
                    false => whole(&state, now),
                };
            }
        };
        let bytes: u64 = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(thread)).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).sum()
        });
        let rest = if up_to { state.take_up_to_at(END, u64::MAX) } else { whole(&state, END) };
        let bytes = bytes + rest;
        let least = if up_to { BYTES } else { BYTES - COST + 1 };
        assert!((least..=BYTES).contains(&bytes), "up to: {up_to}: {bytes} of {BYTES}");
    }
}
