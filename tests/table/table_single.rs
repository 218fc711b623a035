//! A key of a table decides as a limiter: it gives the same answers, bit for bit, as a single state
//! to the same calls.

use crate::common::{one_word, policy, with_each, Rng, Shape, DAY, MS, SEC};
use std::collections::HashMap;
use tollbar::table::{OnFull, Options, PolicyId, Request, Table};
use tollbar::{Decision, Kind, Policy, Reason, Shared, State, Verdict};

/// Every one-word algorithm but the calendar, which needs the wall clock, with the options that it
/// takes, at rates from one a year to 10^10 a second.
const POLICIES: [&str; 39] = [
    "10/s burst 7",
    "10/s burst 7 init 2",
    "10/s burst 7 init 0",
    "10/s burst 7 ban 3s",
    "10/s burst 7 ban 1s after 3",
    "44100/s burst 5 ban 1ms after 1000",
    "10/s burst 7 borrow",
    "10/s burst 7 borrow init 4",
    "10/s burst 7 algo interval",
    "10/s burst 15 algo interval",
    "10/s burst 7 algo interval anchor first",
    "10/s algo fixed-window",
    "10/s algo fixed-window anchor first",
    "10/s algo fixed-window count rejected",
    "10/s algo fixed-window count rejected anchor first",
    "10/s algo weighted-window",
    "1000000/s algo weighted-window",
    "10/s burst 4 algo pacer",
    "10/s burst 4 algo pacer slack 6",
    "10/s burst 4 algo warm-up warm 2s",
    "3/s burst 9 algo warm-up warm 1min cold 10",
    "7/forever",
    "10/s curve ln",
    "10/s burst 7 refill 0:50% 50%:100%",
    "7/s",
    "10/s burst 7; 100/min",
    "700000000/s burst 100",
    "10000000000/s burst 1000",
    "999983/s burst 9 init 3",
    "1/365d burst 2",
    "44100/s burst 5 borrow",
    "999983/s burst 3 algo pacer slack 7",
    "1000000/s algo fixed-window anchor first",
    "3mb/s burst 64kb unit bytes",
    "1/h algo interval",
    "1/s burst 1",
    "0/s",
    "0/s burst 10",
    "0/s algo fixed-window",
];

fn policies() -> Vec<Policy> {
    let each = one_word().filter(|kind| *kind != Kind::Calendar);
    with_each(each, &POLICIES).iter().map(|text| policy(text)).collect()
}

/// A key of the table, the state that it is compared with, and the shape of its requests.
struct Pair {
    policy: PolicyId,
    key: Vec<u8>,
    state: State,
    shape: Shape,
}

impl Pair {
    fn new(number: usize, terms: &Policy, rng: &mut Rng) -> Pair {
        // A limit of 0 has no interval to shape a trace by.
        let shape = Shape::new(&if terms.limit == 0 { policy("10/s") } else { *terms }, rng);
        let length = rng.within(1, 40) as usize;
        Pair {
            policy: PolicyId::new(number as u32),
            key: (0..length).map(|_| rng.next() as u8).collect(),
            state: State::new(terms).unwrap(),
            shape,
        }
    }

    /// Makes one call on both. Returns the wait that the answer names.
    fn call(&mut self, table: &Table, rng: &mut Rng, context: &str) -> u64 {
        let Pair { policy, key, state, shape } = self;
        let (policy, cost) = (*policy, shape.cost(rng));
        let cost = if rng.one_in(50) {
            rng.pick(&[u64::MAX, u64::MAX - 1, 1 << 32, 1 << 63])
        } else {
            cost
        };
        let now = shape.now;
        let context = || format!("{context}: cost {cost} at {now}");
        match rng.below(9) {
            8 => assert_eq!(
                table.charge_at(policy, key, now, cost),
                state.charge_at(now, cost),
                "{}",
                context()
            ),
            0 => assert_eq!(
                table.peek_at(policy, key, now, cost),
                state.peek_at(now, cost),
                "{}",
                context()
            ),
            1 => {
                assert_eq!(
                    table.take_up_to_at(policy, key, now, cost),
                    state.take_up_to_at(now, cost),
                    "{}",
                    context()
                )
            }
            2 => assert_eq!(
                table.admit_at(policy, key, now, cost),
                state.admit_at(now, cost),
                "{}",
                context()
            ),
            3 => {
                // The same key several times in one batch: each request is decided after the one
                // before it.
                let requests = [Request { policy, key, cost }; 3];
                let mut decisions = [CLOSED; 3];
                table.check_many_at(now, &requests, &mut decisions);
                assert_eq!(decisions, [(); 3].map(|()| state.check_at(now, cost)), "{}", context());
            }
            _ => assert_eq!(
                table.check_at(policy, key, now, cost),
                state.check_at(now, cost),
                "{}",
                context()
            ),
        }
        // A peek, after any call.
        let (a, b) = (table.peek_at(policy, key, now, 1), state.peek_at(now, 1));
        assert_eq!(a, b, "{}", context());
        b.retry_after
    }
}

const CLOSED: Decision = Decision {
    verdict: Verdict::Never,
    reason: Reason::Burst,
    remaining: 0,
    retry_after: 0,
    reset_after: 0,
    bound: 0,
};

/// Each key of a table gets the answers of a limiter of its own, although the calls of all keys are
/// mixed. The table has three keys under each policy. Each key has a clock of its own, which also
/// goes back. The table is never full, so its option `on_full` must change no answer.
#[test]
fn every_key_is_a_limiter_of_its_own() {
    let policies = policies();
    let mut admitted = 0;
    for round in 0..160u64 {
        let mut rng = Rng(round);
        let on_full =
            rng.pick(&[OnFull::Deny, OnFull::Inherit, OnFull::Allow, OnFull::EvictNearest]);
        let table =
            Table::private(&Options::new(1000).with_seed(round).with_on_full(on_full), &policies)
                .unwrap();
        let mut pairs: Vec<Pair> = (0..3 * policies.len())
            .map(|n| Pair::new(n % policies.len(), &policies[n % policies.len()], &mut rng))
            .collect();
        for call in 0..3_000 {
            let n = rng.below(pairs.len() as u64) as usize;
            let context = format!("round {round}, call {call}, {}", policies[n % policies.len()]);
            let wait = pairs[n].call(&table, &mut rng, &context);
            pairs[n].shape.advance(&mut rng, wait);
        }
        let stats = table.stats();
        assert_eq!((stats.refused, stats.inherited, stats.untracked, stats.evicted), (0, 0, 0, 0));
        assert_eq!(
            (stats.reclaimed, stats.keys),
            (0, table.entries(0).count() as u64),
            "{on_full:?}"
        );
        admitted += stats.inserted;
    }
    assert!(admitted > 160 * 64, "too few keys were ever charged: {admitted}");
}

/// The policies whose expired state gives exactly the answers of a fresh one. Under the others
/// idleness can make a state better than fresh (`Algorithm::expires_at`).
const FORGETFUL: [&str; 12] = [
    "1/10ms burst 3",
    "1/10ms burst 3 ban 20ms after 2",
    "2/10ms burst 3 algo interval",
    "3/10ms burst 2 algo interval anchor first",
    "3/20ms algo fixed-window",
    "3/20ms algo fixed-window anchor first",
    "3/20ms algo fixed-window count rejected",
    "3/20ms algo fixed-window count rejected anchor first",
    "3/20ms algo weighted-window",
    "1/10ms burst 3 algo pacer",
    "1/3ms algo warm-up warm 10ms",
    "0/s",
];

/// Each slot goes to new keys a hundred times, and every key gets the answers of a state that is
/// never forgotten. So an expired state could be dropped.
#[test]
fn nothing_is_lost_or_won_when_slots_change_hands() {
    let policies: Vec<Policy> = FORGETFUL.iter().map(|text| policy(text)).collect();
    let table = Table::private(&Options::new(1).with_seed(9), &policies).unwrap();
    let slots = table.slots();
    let mut states: HashMap<u64, State> = HashMap::new();
    let (mut rng, mut now) = (Rng(77), DAY);
    // Some 15 us a call and debts of 10 to 40 ms: at most half of the 4,096 slots hold a debt at
    // one time.
    let mut calls = 0u64;
    while table.stats().reclaimed < 100 * slots {
        for _ in 0..4096 {
            now += rng.below(30_000);
            // Keys of the last 2,000 numbers, so that most come again, now and then one from long
            // ago.
            let newest = calls / 3;
            let key = if rng.one_in(16) {
                rng.below(newest + 1)
            } else {
                newest.saturating_sub(rng.below(2000))
            };
            let n = key % policies.len() as u64;
            let state =
                states.entry(key).or_insert_with(|| State::new(&policies[n as usize]).unwrap());
            let cost = rng.pick(&[0, 1, 1, 1, 2, 3, 4]);
            let got = table.check_at(PolicyId::new(n as u32), &key.to_le_bytes(), now, cost);
            assert_eq!(
                got,
                state.check_at(now, cost),
                "call {calls}: key {key}, {}",
                FORGETFUL[n as usize]
            );
            calls += 1;
        }
    }
    assert_eq!(table.stats().refused, 0, "the table was too small for this test");
}

/// The other policies: a fresh state gives no more than the expired one, so the loss of an expired
/// state gives no key an advantage.
#[test]
fn a_fresh_state_is_never_better_than_the_expired_one() {
    let texts = [
        "1/10ms burst 7 init 2",
        "1/10ms burst 5 borrow",
        "1/10ms burst 5 borrow init 3",
        "1/10ms algo pacer slack 3",
    ];
    let policies: Vec<Policy> = texts.iter().map(|text| policy(text)).collect();
    for (n, terms) in policies.iter().enumerate() {
        let id = PolicyId::new(n as u32);
        let mut rng = Rng(n as u64);
        for round in 0..300 {
            let table = Table::private(&Options::new(1).with_seed(3), &policies).unwrap();
            let state = State::new(terms).unwrap();
            let mut now = SEC + rng.below(SEC);
            for _ in 0..rng.within(1, 6) {
                assert_eq!(table.check_at(id, b"k", now, 1), state.check_at(now, 1));
                now += rng.below(20 * MS);
            }
            // A sweep at the very time, and one nanosecond before it.
            let expires = table.entries(now).next().unwrap().expires_at;
            if expires > now {
                assert_eq!(table.sweep(0, u64::MAX, expires - 1).vacated, 0);
            }
            let at = expires.max(now);
            assert_eq!(table.sweep(0, u64::MAX, at).vacated, 1);
            let later = at + rng.below(3) * rng.below(50 * MS);
            let (fresh, kept) = (table.peek_at(id, b"k", later, 1), state.peek_at(later, 1));
            assert!(
                fresh.remaining <= kept.remaining,
                "{} round {round}: {fresh:?} {kept:?}",
                texts[n]
            );
        }
    }
}
