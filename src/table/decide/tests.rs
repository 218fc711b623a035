//! The vector probes agree with the scalar probes, and both agree with the protocol.

use super::receipts::Refund;
use super::*;
use crate::algorithm::{Algorithm, Charge};
use crate::decision::Verdict;
use crate::policy::Policy;
use crate::sync::Ordering;
use crate::table::memory::mix::mix;
use crate::table::memory::returns::ReturnTurn;
use crate::table::memory::slot;
use crate::table::memory::slot::{Slot, SlotPair};
use crate::table::policies::conversion::UnderVersion;
use crate::table::policies::record::version_of;
use crate::table::slots::candidates::CANDIDATES;
use crate::table::slots::probe::{self, scalar};
use crate::table::slots::protocol::{first_to_expire, Room};
use crate::table::slots::states::{Relation, States};
use crate::table::Options;
use alloc::vec::Vec;

mod asleep;

/// A call moves a key to another slot and is killed when the key has left its slot: the key owes
/// until that slot's time, and begins anew then.
#[test]
fn a_key_whose_move_was_killed_keeps_its_debt() {
    const SECOND: u64 = 1_000_000_000;
    const NOW: u64 = 100 * SECOND;
    let policy = "10/10s".parse().expect("a policy");
    let table = Table::private(&Options::new(4096), &[policy]).expect("memory");
    let kill = || {
        assert_eq!(table.take_up_to_at(PolicyId::FIRST, b"key", NOW, 10), 10);
        let hash = table.hash(PolicyId::FIRST, b"key").expect("a hash");
        let mut scratch = Scratch::new();
        let version =
            table.policies.current(PolicyId::FIRST, hash, &mut scratch).expect("a policy");
        let candidates = table.slots.candidates(hash);
        let slot = candidates.find(version.key | candidates.tag).expect("the key's slot");
        let pair = slot.pair();
        let expires = table.policies.expires_at(pair);
        slot.swap(pair, SlotPair { key: candidates.tag, state: expires })
            .expect("only this thread swaps");
        (slot, expires)
    };
    let (slot, expires) = kill();
    // States are finer than a nanosecond, and the time of a state is rounded up.
    let rounding = expires - (NOW + 10 * SECOND);
    assert!(rounding < 10);
    assert_eq!(table.entries(NOW).count(), 0);
    assert_eq!(table.validate(NOW).waiting, 1);
    let asked = table.check_at(PolicyId::FIRST, b"key", NOW, 1);
    assert_eq!((asked.verdict, asked.retry_after), (Verdict::Denied, SECOND + rounding));
    assert_eq!(table.peek_at(PolicyId::FIRST, b"key", NOW, 1), asked);
    assert_eq!(table.take_up_to_at(PolicyId::FIRST, b"key", NOW, 10), 0);
    // A request that the debt admits gives the key a slot, and removes the mark.
    let later = NOW + 4 * SECOND + rounding;
    assert_eq!(table.take_up_to_at(PolicyId::FIRST, b"key", later, 10), 4);
    assert_eq!(slot.pair(), SlotPair { key: 0, state: expires });
    assert_eq!(table.check_at(PolicyId::FIRST, b"key", later, 1).verdict, Verdict::Denied);
    // A reset lets the key begin anew, and removes the mark, too.
    table.reset_at(PolicyId::FIRST, b"key", later).expect("a reset");
    let (slot, _) = kill();
    table.reset_at(PolicyId::FIRST, b"key", NOW).expect("a reset");
    assert_eq!(slot.pair().key, 0);
    // A sweep removes the mark when the debt is paid.
    let (slot, expires) = kill();
    table.sweep(0, u64::MAX, expires - 1);
    assert_ne!(slot.pair().key, 0);
    table.sweep(0, u64::MAX, expires);
    assert_eq!(slot.pair().key, 0);
    assert_eq!(table.take_up_to_at(PolicyId::FIRST, b"key", expires, 10), 10);
}

/// The probes choose the slot that the protocol chooses, and in a full table they do choose one.
#[test]
fn the_protocol_chooses_the_same() {
    for policy in [
        "1000/s burst 1",
        "7/min burst 3",
        "3/s burst 5 init 2",
        "10000000000/s burst 100",
        "1/day",
    ] {
        let policy = policy.parse().expect("a policy");
        let table = Table::private(&Options::new(4096), &[policy, policy]).expect("memory");
        let (mut scratch, mut second) = (Scratch::new(), Scratch::new());
        let version = table.policies.current(PolicyId::FIRST, 0, &mut scratch).expect("a policy");
        let other = table.policies.current(PolicyId::new(1), 0, &mut second).expect("a policy");
        let Rule::Gcra(gcra) = &version.rule else { panic!("a token bucket") };
        let plain = &version.plain;
        let is_plain = plain.step(0, 1 << 40, 1).is_some();
        let (mut of_own, mut unused) = (0, 0);
        for n in 0..40_000 {
            let random = |salt: u64| mix(n << 8 | salt);
            let candidates = table.slots.candidates(random(1));
            let key = version.key | candidates.tag;
            let base = gcra.grid().units(1 << 40);
            // The greatest difference of two states.
            let spread = [base, 3, base / 1000 + 1, 1 << 20][(n & 3) as usize];
            for place in 0..CANDIDATES {
                let slot = candidates.slot(place).expect("a candidate");
                let state = base + random(place as u64 + 2) % spread;
                let mut new = SlotPair { key: version.key | random(place as u64 + 20) >> 8, state };
                match random(place as u64 + 40) % 150 {
                    0 => new.key = other.key | new.key << 8 >> 8,
                    1 => new.key = [key, other.key | candidates.tag][(n & 1) as usize],
                    2 => new = SlotPair { key: 0, state: 0 },
                    3 => new = SlotPair { key: 0, state: 1 << 40 },
                    4 => new.state = u64::MAX,
                    5 => new.state = 1 + state % 4,
                    _ => {}
                }
                slot.swap(slot.pair(), new).expect("only this thread swaps");
            }
            // The key word of one of the candidates, or of the new key.
            let probed = candidates.slot((random(70) % 14) as usize).map_or(key, Slot::key);
            let (first, second) = (candidates.first, candidates.second);
            let bits = slot::matches_in_two(first, second, probed);
            assert_eq!(bits, slot::scalar::matches_in_two(first, second, probed));
            assert!(core::ptr::eq(
                slot::choose(bits, first, second),
                slot::scalar::choose(bits, first, second)
            ));
            assert_eq!(
                slot::matches(candidates.spare, probed),
                slot::scalar::matches(candidates.spare, probed)
            );

            let states = UnderVersion { policies: &table.policies, version };
            let chosen = probe::first_unused(&candidates, key);
            let in_turn = scalar::first_unused(&candidates, key);
            assert_eq!(chosen.map(core::ptr::from_ref), in_turn.map(core::ptr::from_ref));
            if let Some(slot) = chosen {
                let Ok(Some(Room { first, .. })) = first_to_expire(&states, &candidates, key, 0)
                else {
                    panic!("a slot holds the key, and the probe chose a slot")
                };
                assert!(
                    core::ptr::eq(first.slot, slot) && first.pair == SlotPair::EMPTY,
                    "{:?}",
                    first.pair
                );
                unused += 1;
            }
            let gap = gcra.grid().units_up(1);
            let lowest = probe::lowest_state(&candidates, key, gap);
            let in_turn = scalar::lowest_state(&candidates, key, gap);
            let place = |(slot, state): (&Slot, u64)| (core::ptr::from_ref(slot), state);
            assert_eq!(lowest.map(place), in_turn.map(place));
            // Only plain policies use `lowest_state`.
            if let (Some((slot, state)), true) = (lowest, is_plain) {
                assert_eq!(plain.gap(), gap);
                let Ok(Some(Room { first, .. })) =
                    first_to_expire(&states, &candidates, key, 1 << 40)
                else {
                    panic!("a slot holds the key, and the probe chose a slot")
                };
                assert!(
                    core::ptr::eq(first.slot, slot) && first.pair.state == state,
                    "{:?}",
                    first.pair
                );
                let expires = gcra.expires_at(state);
                assert!(!plain.expired_before(state, expires - 1), "{state} under {policy}");
                assert!(plain.expired_before(state, expires + 8), "{state} under {policy}");
                of_own += 1;
            }
        }
        assert!(unused > 1_000, "{unused} unused under {policy}");
        assert_eq!(of_own > 5_000, is_plain, "{of_own} under {policy}");
    }
}

/// The first booking for a later time than its call sets the policy's bit, and a copy of the keys
/// has the bit, too.
#[test]
fn bookings_ahead_are_noted() {
    let policies = ["10/s burst 1".parse().expect("a policy"); 70];
    let options = Options::new(100).with_seed(7);
    let table = Table::private(&options, &policies).expect("memory");
    let noted = |table: &Table| -> Vec<u32> {
        (0..70).filter(|&n| table.policies.memory.has_bookings(n)).collect()
    };
    let book = |n, until| table.reserve_at(PolicyId::new(n), b"key", 5, 1, until);
    assert!(book(3, u64::MAX).is_ok() && book(66, u64::MAX).is_ok(), "permits of now");
    assert!(book(66, 5).is_err(), "not in time");
    assert_eq!(noted(&table), []);
    assert!(book(66, u64::MAX).is_ok());
    assert_eq!(noted(&table), [66]);
    let copy = Table::private(&options, &policies).expect("memory");
    copy.copy_from(&table, 5).expect("of the same seed");
    assert_eq!(noted(&copy), [66]);
}

/// A policy changes between the two steps of a settlement, which closes the receipt and then lowers
/// the key's debt. By the new, slower rate none of the permits that the old one refilled would
/// count as refilled.
#[test]
fn a_settlement_overtaken_by_a_change_returns_nothing() {
    const SECOND: u64 = 1_000_000_000;
    let table = Table::private(&Options::new(100), &["100/s burst 20".parse().expect("a policy")])
        .expect("memory");
    let (_, receipt) = table.take_at(PolicyId::FIRST, b"key", SECOND, 20).expect("a take");
    let is_changed = core::cell::Cell::new(false);
    let now = || {
        if !is_changed.replace(true) {
            let slow = "1/h burst 20".parse().expect("a policy");
            table.set_policy(PolicyId::FIRST, &slow).expect("a change");
            // 10 of the 20 permits are refilled.
            assert!(table.check_at(PolicyId::FIRST, b"key", SECOND + SECOND / 10, 5).is_allowed());
        }
        SECOND + SECOND / 10
    };
    let settled =
        table.settle_when(&receipt.expect("a receipt"), 0, Refund::Safe, &now).expect("settled");
    assert_eq!((settled.first, settled.given_back), (true, 0));
    assert_eq!(table.peek_at(PolicyId::FIRST, b"key", SECOND + SECOND / 10, 1).remaining, 5);
}

/// E10: between the read and the swap of one return, another return and a request at a later time
/// bring the state back. Without turns five permits would pass at one instant.
#[test]
fn a_state_that_came_back_gives_nothing_twice() {
    const SECOND: u64 = 1_000_000_000;
    let table = Table::private(&Options::new(100), &["1/s burst 4".parse().expect("a policy")])
        .expect("memory");
    let (own, first) = (PolicyId::FIRST, SECOND);
    for cost in [2, 1, 1] {
        assert_eq!(table.admit_at(own, b"key", first, cost), Verdict::Allowed);
    }
    // The state is marked from now on.
    let one = Charge { at: first, cost: 1 };
    assert_eq!(table.give_back_at(own, b"key", first, one, 1), Ok(1));
    let (now, taken) = (core::cell::Cell::new(first), core::cell::Cell::new(0));
    let slept = || {
        let read = now.get();
        if read == first {
            // The other return would wait for the turn, and then give nothing back.
            table.give_back_at(own, b"key", first, one, 1).expect("no damage");
            now.set(first + SECOND);
            taken.set(table.take_up_to_at(own, b"key", now.get(), 1));
        }
        read
    };
    table.give_back_when(own, b"key", Charge { at: first, cost: 2 }, 2, slept).expect("no damage");
    let more = table.take_up_to_at(own, b"key", now.get(), 9);
    assert!(taken.get() + more <= 4, "{} and {more} at one instant", taken.get());
    assert!(taken.get() + more >= 3, "the return gave too little back: {} and {more}", taken.get());
}

/// A return whose process was killed in its turn holds up no other.
#[test]
fn the_turn_of_a_killed_process_is_taken() {
    let table = Table::private(&Options::new(100), &["1/s burst 4".parse().expect("a policy")])
        .expect("memory");
    assert_eq!(table.admit_at(PolicyId::FIRST, b"key", 5, 4), Verdict::Allowed);
    let me = table.policies.memory.thread_lines.process();
    let turns = &table.policies.memory.header().returns;
    let back = |holder: u64| {
        turns.iter().for_each(|turn| turn.store(holder, Ordering::Relaxed));
        table
            .give_back_at(PolicyId::FIRST, b"key", 5, Charge { at: 5, cost: 1 }, 1)
            .expect("no damage")
    };
    // No process has the highest number. One of another namespace, or another thread of this
    // process, may run.
    let gone = me >> 32 << 32 | u64::from(i32::MAX as u32);
    assert_eq!([back(0), back(gone), back(gone ^ 1 << 40), back(me)], [1, 1, 0, 0]);
    turns.iter().for_each(|turn| turn.store(0, Ordering::Relaxed));
}

/// A caller has read its policy's version, and sleeps until the version's record belongs to another
/// policy. Its key has no permits by then, and gets no second slot under the other policy's
/// version.
#[test]
fn a_caller_whose_record_belongs_to_another_policy_finds_its_key() {
    let policy = |burst: u64| Policy { burst, init: burst, ..Policy::new(1, 3_600_000_000_000) };
    let table = Table::private(&Options::new(1), &[policy(5), policy(7)]).expect("memory");
    let (own, other) = (PolicyId::FIRST, PolicyId::new(1));
    let mut scratch = Scratch::new();
    let hash = table.hash(own, b"key").expect("a key");
    let slept = table.policies.current(own, hash, &mut scratch).expect("compiled");
    assert_eq!(table.admit_at(own, b"key", 0, 5), Verdict::Allowed);
    // The key comes under the next version of its policy, and the first version's record serves the
    // other policy.
    table.set_policy(own, &policy(6)).expect("a record");
    assert_eq!(table.admit_at(own, b"key", 0, 2), Verdict::Denied);
    let record = version_of(slept.stamp.load(Ordering::Relaxed));
    let taken = (0..2_000).any(|n| {
        table.set_policy(other, &policy(8 + n % 2)).expect("a record");
        version_of(table.policies.memory.current_stamp(other.number())) == record
    });
    assert!(taken, "no change took the record of the first version again");
    let decision = table.slow_uncounted(slept, hash, 0, 2).expect("no damage");
    assert_eq!(decision.verdict, Verdict::Denied);
}

/// [`States`] of a request that another call interrupts: `after_converting` runs between the
/// conversion of a state and its swap, and `after_vacating` runs when a moving key has left its old
/// slot.
struct Sleeper<'t> {
    states: UnderVersion<'t>,
    after_vacating: &'t dyn Fn(),
    after_converting: &'t dyn Fn(),
}

impl States for Sleeper<'_> {
    fn expires_at(&self, pair: SlotPair) -> u64 {
        self.states.expires_at(pair)
    }
    fn relation(&self, found: u64, key: u64) -> Relation {
        self.states.relation(found, key)
    }
    fn adopt(&self, key: u64, pair: SlotPair) -> u64 {
        self.states.adopt(key, pair)
    }
    fn convert(&self, key: u64, slot: &Slot, pair: SlotPair, now: u64) -> u64 {
        let state = self.states.convert(key, slot, pair, now);
        (self.after_converting)();
        state
    }
    fn owing(&self, key: u64, until: u64) -> u64 {
        self.states.owing(key, until)
    }
    fn hold(&self, pair: SlotPair, until: u64, now: u64, exact: bool) -> Option<u64> {
        self.states.hold(pair, until, now, exact)
    }
    fn is_current(&self, key: u64) -> bool {
        self.states.is_current(key)
    }
    fn turn(&self, tag: u64) -> Option<ReturnTurn<'_>> {
        self.states.turn(tag)
    }
    fn vacated(&self) {
        self.states.vacated();
        (self.after_vacating)();
    }
}

/// A call that moves a key sleeps through so many changes of the policy that its version's number
/// is another's. The key does not come under it.
#[test]
fn s36_a_call_that_sleeps_while_it_moves_a_key_admits_no_second_burst() {
    const NOW: u64 = 1_000_000_000_000;
    let [slow, fast]: [Policy; 2] =
        ["1/s burst 20", "10/s burst 7"].map(|text| text.parse().expect("a policy"));
    for changes in [1, 127, 128, 129, 254, 255, 256, 300, 510, 700] {
        let table = Table::private(&Options::new(4096), &[slow]).expect("memory");
        let own = PolicyId::FIRST;
        assert_eq!(table.take_up_to_at(own, b"key", NOW, 30), 20);
        table.set_policy(own, &fast).expect("a record");
        let (hash, slept) =
            (table.hash(own, b"key").expect("a hash"), core::cell::Cell::new(false));
        let mut scratch = Scratch::new();
        let version = table.policies.current(own, hash, &mut scratch).expect("compiled");
        let sleep = || {
            slept.set(true);
            for n in 0..changes {
                table.set_policy(own, if n % 2 == 0 { &slow } else { &fast }).expect("a record");
            }
        };
        let candidates = table.slots.candidates(hash);
        let states = UnderVersion { policies: &table.policies, version };
        let mover = Sleeper { states, after_vacating: &sleep, after_converting: &|| () };
        assert!(first_to_expire(&mover, &candidates, version.key | candidates.tag, NOW).is_err());
        assert!(slept.get(), "the key did not move");
        assert_eq!(table.take_up_to_at(own, b"key", NOW, 30), 0, "{changes} changes");
        assert!(table.entries(NOW).count() <= 1);
        // The key owes no longer than under the first policy.
        table.set_policy(own, &fast).expect("a record");
        let later = NOW + 20_100_000_000;
        assert_eq!(table.take_up_to_at(own, b"key", later, 30), 7, "{changes} changes");
    }
}

/// The policy changes while a call converts a key. The call leaves the slot to the next one,
/// because its own version's number may be another's soon.
#[test]
fn s36_a_call_converts_no_key_to_a_version_that_has_been_replaced() {
    const NOW: u64 = 1_000_000_000_000;
    let [first, second, third]: [Policy; 3] = ["10/s burst 20", "10/s burst 21", "10/s burst 22"]
        .map(|text| text.parse().expect("a policy"));
    let table = Table::private(&Options::new(4096), &[first]).expect("memory");
    assert_eq!(table.take_up_to_at(PolicyId::FIRST, b"key", NOW, 10), 10);
    table.set_policy(PolicyId::FIRST, &second).expect("a record");
    let hash = table.hash(PolicyId::FIRST, b"key").expect("a hash");
    let mut scratch = Scratch::new();
    let version = table.policies.current(PolicyId::FIRST, hash, &mut scratch).expect("compiled");
    let candidates = table.slots.candidates(hash);
    let pairs = || candidates.slots().map(|slot| slot.pair()).collect::<Vec<_>>();
    let before = pairs();
    let change = || table.set_policy(PolicyId::FIRST, &third).expect("a record");
    let states = UnderVersion { policies: &table.policies, version };
    let sleeper = Sleeper { states, after_vacating: &|| (), after_converting: &change };
    assert!(first_to_expire(&sleeper, &candidates, version.key | candidates.tag, NOW).is_err());
    assert_eq!(pairs(), before);
    assert_eq!(table.take_up_to_at(PolicyId::FIRST, b"key", NOW, 30), 10);
}
