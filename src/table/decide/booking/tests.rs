//! Callers that wait for a key, at virtual times.

use super::*;
use crate::clock::Manual;
use crate::limiter::waiting::tests::{
    at_random, caller, departures, stay_charged, twenty, within_the_bound, Caller, End, Rng, World,
    ASK, BOOK, MS, START,
};
use crate::policy::Policy;
use crate::search::rounds;
use crate::table::Options;
use std::println;
use std::vec::Vec;

const FIRST: PolicyId = PolicyId::FIRST;

/// A key's permits at the time of `clock`.
struct KeyAt<'a> {
    key: KeyPermits<'a>,
    clock: &'a Manual,
}

impl Permits for KeyAt<'_> {
    type Error = RequestError;

    fn now(&self) -> u64 {
        self.clock.now()
    }
    fn check(&self, now: u64, cost: u64) -> Result<Decision, RequestError> {
        self.key.check(now, cost)
    }
    fn peek(&self, now: u64, cost: u64) -> Result<Decision, RequestError> {
        self.key.peek(now, cost)
    }
    fn book(&self, now: u64, cost: u64, until: u64) -> Result<Option<u64>, RequestError> {
        self.key.book(now, cost, until)
    }
    fn books_ahead(&self) -> Result<bool, RequestError> {
        self.key.books_ahead()
    }
    fn counts_refusals(&self) -> Result<bool, RequestError> {
        self.key.counts_refusals()
    }
    fn give_back(&self, booking: Charge) {
        let KeyPermits { table, policy, key } = self.key;
        table.give_back_at(policy, key, self.clock.now(), booking, booking.cost).unwrap();
    }
    fn last_of(
        &self,
        now: u64,
        costs: &mut dyn Iterator<Item = u64>,
        until: u64,
    ) -> Result<u64, RequestError> {
        self.key.last_of(now, costs, until)
    }
}

fn policy(text: &str) -> Policy {
    text.parse().unwrap()
}

fn table(text: &str) -> Table {
    Table::private(&Options::new(1000).with_seed(7), &[policy(text)]).unwrap()
}

/// A key whose first permit has just been taken.
fn taken<'a>(table: &'a Table, key: &'a [u8], clock: &'a Manual) -> KeyAt<'a> {
    clock.set(START);
    assert!(table.check_at(FIRST, key, START, 1).is_allowed());
    KeyAt { key: KeyPermits { table, policy: FIRST, key }, clock }
}

/// 20 callers of a key give up after 50 ms. One caller comes then, alone.
#[test]
fn a2_callers_that_give_up_leave_nothing() {
    for text in BOOK.map(|(text, _)| text).into_iter().chain(ASK) {
        let table = table(text);
        let clock = Manual::default();
        let key = taken(&table, b"key", &clock);
        let expected = departures(text, 2);
        let mut callers: Vec<Caller> =
            (0..20).map(|_| Caller { gives_up: START + 50 * MS, ..caller(START) }).collect();
        callers.push(caller(START + 50 * MS));
        let (ends, _) = World::new(&clock).run(&key, &callers, &mut |_| 0);
        let at = ends[20].admitted().unwrap();
        // The last caller's booking stays where the slot takes no permits back.
        let comes_back =
            ASK.contains(&text) || Rule::new(&policy(text)).unwrap().refill_in_slots().is_some();
        let wanted = if comes_back { expected[0] } else { expected[1] };
        assert!(at <= wanted, "{text}: {} ms after the start", (at - START) / MS);
    }
}

/// 20 callers of a key come at one time and leave in any order before the first departure. With
/// equal costs all permits come back. With unequal costs fewer may come back, because a slot keeps
/// the latest departure only roughly.
#[test]
fn a2_all_twenty_come_back_in_any_order() {
    let mut rng = Rng(20);
    let policies = [policy("10/s burst 1"), policy("10/s burst 4")];
    let table = Table::private(&Options::new(20_000).with_seed(7), &policies).unwrap();
    let mut lost = [(0, 0); 2];
    for trace in 0..rounds(10_000) {
        let n = rng.below(2);
        let (policy, burst) = (PolicyId::new(n as u32), 1 + 3 * n);
        let name = trace.to_ne_bytes();
        let clock = Manual::new(START);
        assert!(table.check_at(policy, &name, START, burst).is_allowed());
        let key = KeyAt { key: KeyPermits { table: &table, policy, key: &name }, clock: &clock };
        let callers = twenty(&mut rng, burst, START);
        let (ends, _) = World::new(&clock).run(&key, &callers, &mut |_| 0);
        assert!(ends.iter().all(|end| matches!(end, End::GaveUp(_))), "{ends:?}");
        let stays =
            (table.peek_at(policy, &name, START, 1).retry_after - 100 * MS).div_ceil(100 * MS);
        let (theorem, most) = stay_charged(&callers, burst, START);
        assert!(stays <= most, "{stays} permits stay charged, at most {most} may: {callers:?}");
        let (lost, allowed) = &mut lost[n as usize];
        *lost += stays;
        *allowed += theorem;
    }
    println!(
        "permits that stay charged, and by the theorem, with costs of 1 and up to 4: {lost:?}"
    );
}

/// Callers of a key in two processes that come and leave at any time: never above the bound.
#[test]
fn a2_random_callers_of_a_key_stay_within_the_bound() {
    let mut rng = Rng(11);
    let (mut admitted, mut callers_of_all) = (0, 0);
    let table =
        Table::private(&Options::new(1000).with_seed(7), &[policy("10/s burst 4")]).unwrap();
    for trace in 0..rounds(3_000) {
        let name = trace.to_ne_bytes();
        let begin = START + trace * 100_000 * MS;
        let clock = Manual::new(begin);
        assert!(table.check_at(FIRST, &name, begin, 1).is_allowed());
        let key =
            KeyAt { key: KeyPermits { table: &table, policy: FIRST, key: &name }, clock: &clock };
        let mut comes = begin;
        let callers: Vec<Caller> = (0..30)
            .map(|_| {
                comes += if rng.below(3) == 0 { 0 } else { rng.below(100 * MS) };
                let patience = rng.below(800 * MS);
                let (gives_up, deadline) = if rng.below(2) == 0 {
                    (comes + patience, u64::MAX - 1)
                } else {
                    (u64::MAX, comes + patience)
                };
                let process = rng.below(2) as usize;
                Caller { comes, cost: 1 + rng.below(4), gives_up, deadline, process }
            })
            .collect();
        let world = World { processes: 2, ..World::new(&clock) };
        let (ends, _) = world.run(&key, &callers, &mut at_random(&mut rng));
        let mut used: Vec<(u64, u64)> = callers
            .iter()
            .zip(&ends)
            .filter_map(|(caller, end)| Some((end.admitted()?, caller.cost)))
            .collect();
        admitted += used.len();
        callers_of_all += callers.len();
        used.push((begin, 1));
        assert!(within_the_bound(used.clone(), 4), "trace {trace}: {used:?}");
    }
    println!("{admitted} of {callers_of_all} admitted, 0 traces above the bound");
}
