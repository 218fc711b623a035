//! Permits that come back to limiters and to keys of a table.

use crate::common::Rng;
use std::cell::Cell;
use tollbar::algorithm::Charge;
use tollbar::clock::Manual;
use tollbar::policy::Keep;
use tollbar::table::{OnFull, Options, PolicyId, Table};
use tollbar::{Limiter, Policy, Shared, State, Verdict};

const SECOND: u64 = 1_000_000_000;
const NOW: u64 = 1000 * SECOND;
const KEY: &[u8] = b"192.0.2.7";

fn limiter(text: &str) -> Limiter<State, Manual> {
    Limiter::with(State::new(&text.parse().unwrap()).unwrap(), Manual::new(NOW))
}

fn table(capacity: u64, texts: &[&str]) -> Table {
    let policies: Vec<Policy> = texts.iter().map(|text| text.parse().unwrap()).collect();
    Table::private(&Options::new(capacity), &policies).unwrap()
}

/// Takes 5 of 10 permits, and 7 more two seconds later. Of the 5, only 3 come back, so a request
/// for 5 does not pass.
#[test]
fn a_refund_leaves_out_what_time_has_brought_back() {
    let limiter = limiter("1/s burst 10");
    let first = Charge { at: NOW, cost: 5 };
    assert_eq!(limiter.admit_at(NOW, 5), Verdict::Allowed);
    assert_eq!(limiter.admit_at(NOW + 2 * SECOND, 7), Verdict::Allowed);
    assert_eq!(limiter.give_back_at(NOW + 2 * SECOND, first, 5), 3);
    assert_eq!(limiter.admit_at(NOW + 2 * SECOND, 5), Verdict::Denied);
    let table = table(100, &["1/s burst 10"]);
    let key = |now, cost| table.admit_at(PolicyId::FIRST, KEY, now, cost);
    assert_eq!((key(NOW, 5), key(NOW + 2 * SECOND, 7)), (Verdict::Allowed, Verdict::Allowed));
    assert_eq!(table.give_back_at(PolicyId::FIRST, KEY, NOW + 2 * SECOND, first, 5), Ok(3));
    assert_eq!(key(NOW + 2 * SECOND, 5), Verdict::Denied);
    assert_eq!(key(NOW + 2 * SECOND, 3), Verdict::Allowed);
}

/// Each policy of a limiter's list takes back the permits that it has not refilled since the
/// charge. In a table the slower policy keeps its charge.
#[test]
fn a_list_takes_back_what_each_policy_has_not_refilled() {
    let list = "10/s; 1000/day";
    let charge = Charge { at: NOW, cost: 8 };
    let limiter = limiter(list);
    assert_eq!(limiter.admit_at(NOW, 8), Verdict::Allowed);
    assert_eq!(limiter.give_back_at(NOW, charge, 8), 8);
    assert_eq!(limiter.peek(10).verdict, Verdict::Allowed);
    // After 700 ms the fast policy has 1 of 8 permits left to refill, and the slow one all 8.
    assert_eq!(limiter.admit_at(NOW, 8), Verdict::Allowed);
    assert_eq!(limiter.give_back_at(NOW + 700_000_000, charge, 8), 7);
    assert_eq!(limiter.admit_at(NOW + 700_000_000, 10), Verdict::Allowed);
    let later = NOW + 100 * SECOND;
    let left =
        (0..100).filter(|n| limiter.admit_at(later + n * SECOND, 10) == Verdict::Allowed).count();
    assert_eq!(
        left, 99,
        "of the day's 1000 the limiter has taken 10 and not 26, and refilled 2 meanwhile"
    );

    let table = table(100, &[list]);
    let key = |now, cost| table.admit_at(PolicyId::FIRST, KEY, now, cost);
    assert_eq!(key(NOW, 8), Verdict::Allowed);
    assert_eq!(table.give_back_at(PolicyId::FIRST, KEY, NOW, charge, 8), Ok(8));
    assert_eq!(key(NOW, 10), Verdict::Allowed, "of the second");
    let left = (1..=100).filter(|n| key(NOW + n * SECOND, 10) == Verdict::Allowed).count();
    assert_eq!(left, 98, "of the day");
}

/// Algorithms and limiters that cannot give back return 0 and change nothing.
#[test]
fn nothing_comes_back_where_that_is_not_possible() {
    let charge = Charge { at: NOW, cost: 1 };
    for text in [
        "5/s ban 1h",
        "5/s algo interval",
        "5/s algo sliding-log",
        "5/s algo sliding-window",
        "5/s borrow",
        "5/s algo pacer burst 5",
    ] {
        let limiter = limiter(text);
        assert_eq!(limiter.admit_at(NOW, 1), Verdict::Allowed);
        let before = limiter.peek(1);
        assert_eq!(limiter.give_back_at(NOW, charge, 1), 0, "{text}");
        assert_eq!(limiter.peek(1), before, "{text}");
    }
    let mut table = table(100, &["5/s", "5/s burst 64", "7/s"]);
    // The word of this rate has no room for a floor.
    assert_eq!(table.admit_at(PolicyId::new(2), KEY, NOW, 1), Verdict::Allowed);
    assert_eq!(table.give_back_at(PolicyId::new(2), KEY, NOW, charge, 1), Ok(0));
    let sevens = limiter("7/s");
    assert_eq!(
        (sevens.admit_at(NOW, 1), sevens.give_back_at(NOW, charge, 1)),
        (Verdict::Allowed, 1)
    );
    assert_eq!(table.give_back_at(PolicyId::FIRST, KEY, NOW, charge, 1), Ok(0), "no such key");
    assert!(table.give_back_at(PolicyId::new(9), KEY, NOW, charge, 1).is_err());
    // No permits come back under a policy of which a thread has had credit.
    let second = PolicyId::new(1);
    table.set_hot_keys(64).unwrap();
    for _ in 0..4 {
        assert_eq!(table.admit_at(second, KEY, NOW, 1), Verdict::Allowed);
    }
    assert_eq!(table.give_back_at(second, KEY, NOW, charge, 1), Ok(0));
    assert_eq!(table.admit_at(PolicyId::FIRST, KEY, NOW, 1), Verdict::Allowed);
    assert_eq!(table.give_back_at(PolicyId::FIRST, KEY, NOW, charge, 1), Ok(1));
}

/// Windows give back charges in the window of the charge. A weighted window also gives back in the
/// next one, as far as the permits have not faded.
#[test]
fn windows_give_back_what_they_count() {
    for text in [
        "5/s algo fixed-window",
        "5/s algo fixed-window anchor first",
        "5/s algo weighted-window",
        "5/s algo interval anchor first",
    ] {
        let (limiter, table) = (limiter(text), table(100, &[text]));
        let charge = Charge { at: NOW + 7, cost: 3 };
        assert_eq!(limiter.admit_at(NOW, 2), Verdict::Allowed);
        assert_eq!(table.admit_at(PolicyId::FIRST, KEY, NOW, 2), Verdict::Allowed);
        assert_eq!(limiter.admit_at(charge.at, 3), Verdict::Allowed);
        assert_eq!(table.admit_at(PolicyId::FIRST, KEY, charge.at, 3), Verdict::Allowed);
        assert_eq!(limiter.give_back_at(charge.at, charge, 3), 3, "{text}");
        assert_eq!(table.give_back_at(PolicyId::FIRST, KEY, charge.at, charge, 3), Ok(3), "{text}");
        assert_eq!(table.peek_at(PolicyId::FIRST, KEY, charge.at, 1).remaining, 3, "{text}");
        // Three more requests pass, and a fourth does not.
        assert_eq!(limiter.admit_at(charge.at, 3), Verdict::Allowed, "{text}");
        assert_eq!(limiter.admit_at(charge.at, 1), Verdict::Denied, "{text}");
        // The window has ended. A weighted window's count fades now.
        let later = NOW + SECOND + SECOND / 2;
        let back = if text.contains("weighted") { 1 } else { 0 };
        assert_eq!(limiter.give_back_at(later, charge, 3), back, "{text}");
        assert_eq!(limiter.give_back_at(NOW + 2 * SECOND, charge, 1), 0, "{text}");
    }
}

/// A key that got all permits of its window back keeps its slot until the window has ended.
#[test]
fn a_key_of_a_window_keeps_its_slot() {
    for (text, until) in [("5/s algo fixed-window", 1), ("5/s algo weighted-window", 2)] {
        let options = Options::new(8).with_on_full(OnFull::Deny);
        let table = Table::private(&options, &[text.parse().unwrap()]).unwrap();
        let mut keys = 0_u32;
        // New keys, until no slot is left.
        while table.admit_at(PolicyId::FIRST, &keys.to_le_bytes(), NOW, 1) == Verdict::Allowed {
            let charge = Charge { at: NOW, cost: 1 };
            assert_eq!(
                table.give_back_at(PolicyId::FIRST, &keys.to_le_bytes(), NOW, charge, 1),
                Ok(1),
                "{text}"
            );
            keys += 1;
        }
        let new = |now| table.admit_at(PolicyId::FIRST, &keys.to_le_bytes(), now, 1);
        assert_eq!(new(NOW + until * SECOND - 1), Verdict::Denied, "{text}: after {keys} keys");
        assert_eq!(new(NOW + until * SECOND), Verdict::Allowed, "{text}");
    }
}

/// A booking that later ones follow gives back only permits that no later booking waits behind. The
/// latest one comes back whole.
#[test]
fn a_cancelled_booking_in_the_middle_gives_nothing_back() {
    let table = table(100, &["1/s burst 1"]);
    let book = || table.reserve_at(PolicyId::FIRST, KEY, NOW, 1, NOW + 10 * SECOND).unwrap().at;
    let (first, second, third) = (book(), book(), book());
    assert_eq!((first, second, third), (NOW, NOW + SECOND, NOW + 2 * SECOND));
    let cancel = |at| table.give_back_at(PolicyId::FIRST, KEY, NOW, Charge { at, cost: 1 }, 1);
    assert_eq!(cancel(second), Ok(0));
    assert_eq!(book(), NOW + 3 * SECOND);
    assert_eq!(cancel(NOW + 3 * SECOND), Ok(1));
    assert_eq!(book(), NOW + 3 * SECOND);
}

/// A bucket that starts empty begins to fill with a refused booking, as with a refused check.
#[test]
fn a_refused_booking_begins_an_empty_bucket() {
    let text = "1/s burst 5 init 0";
    let (limiter, table) = (limiter(text), table(100, &[text]));
    let (mut ours, mut theirs) = (0, 0);
    for second in 0..10 {
        let now = NOW + second * SECOND;
        ours += u32::from(limiter.reserve_at(now, 1, now).is_ok());
        theirs += u32::from(table.reserve_at(PolicyId::FIRST, KEY, now, 1, now).is_ok());
    }
    assert_eq!((ours, theirs), (9, 9));
}

/// Many keys in a small table, with every kind of call: a key that got permits back is found and
/// keeps its slot, and no key gets more than its bound.
#[test]
fn keys_of_a_full_table_keep_their_bounds() {
    let (burst, keys, mut rng) = (4, 30, Rng(17));
    let table = table(32, &["1/s burst 4"]);
    let mut now = NOW;
    // For each key the time and the permits of each charge, and then the permits that it kept of
    // the charge.
    let mut taken: Vec<Vec<(u64, u64)>> = vec![Vec::new(); keys];
    let mut kept = taken.clone();
    let (mut back, mut refused) = (0, 0);
    for _ in 0..20_000 {
        let n = rng.below(keys as u64) as usize;
        let (key, cost) = ([n as u8, 7], rng.within(1, burst));
        match rng.below(4) {
            0 | 1 => match table.admit_at(PolicyId::FIRST, &key, now, cost) {
                Verdict::Allowed => taken[n].push((now, cost)),
                _ => refused += 1,
            },
            2 => {
                // A charge is given back once.
                let Some((at, cost)) = taken[n].pop() else { continue };
                let came = table
                    .give_back_at(PolicyId::FIRST, &key, now, Charge { at, cost }, cost)
                    .unwrap();
                back += came;
                kept[n].push((at, cost - came));
            }
            // Whole seconds, so that whole permits come back.
            _ => now += rng.below(2) * SECOND,
        }
        let used = || taken[n].iter().chain(&kept[n]);
        for &(from, _) in used() {
            let permits: u64 = used().filter(|&&(at, _)| at >= from).map(|&(_, cost)| cost).sum();
            assert!(
                permits <= burst + (now - from) / SECOND,
                "{n}: {:?}, {:?} until {now}",
                taken[n],
                kept[n]
            );
        }
        taken[n].retain(|&(at, _)| at + 20 * SECOND > now);
        kept[n].retain(|&(at, _)| at + 20 * SECOND > now);
    }
    assert!(back > 1000 && refused > 1000, "{back} {refused}");
    let stats = table.stats();
    assert_eq!(stats.evicted, 0, "{stats:?}");
}

/// The admissions and returns after a change to a slower policy.
#[derive(Default)]
struct AfterAChange {
    /// Admissions after the change: time and cost.
    admitted: Vec<(u64, u64)>,
    /// The permits that came back although the former policy had refilled them, in the time that
    /// the slower policy takes to refill them.
    refilled: u64,
    /// The permits kept under both policies.
    kept: u64,
}

impl AfterAChange {
    /// The most permits above the bound of `burst` and a permit each `permit` nanoseconds, in any
    /// interval after the change, in the same time.
    fn excess(&self, burst: u64, permit: u64) -> u64 {
        let mut most = 0;
        for (first, (start, _)) in self.admitted.iter().enumerate() {
            let mut sum = 0;
            for (at, cost) in &self.admitted[first..] {
                sum += cost;
                most = most.max((sum * permit).saturating_sub(burst * permit + (at - start)));
            }
        }
        most
    }
}

/// If a policy changes to a slower one between a charge and its return, a limiter or key may be
/// admitted more than the slower policy's bound: by at most the permits of the charge that the
/// former policy had refilled. Both policies together still bound what is kept.
#[test]
fn a_change_to_a_slower_policy_may_return_what_the_former_one_refilled() {
    let (old, new) = ((10, SECOND / 10), (10, 2 * SECOND));
    let to: Policy = "30/min burst 10".parse().unwrap();
    let mut rng = Rng(3);
    let (mut above, mut most) = ([0; 2], 0);
    for round in 0..2_000 {
        let in_table = round % 2 == 1;
        let (limiter, table) = (limiter("10/s"), table(100, &["10/s"]));
        let admit = |now, cost| match in_table {
            true => table.admit_at(PolicyId::FIRST, KEY, now, cost),
            false => limiter.admit_at(now, cost),
        };
        let (mut now, mut charges, mut seen) = (NOW, Vec::new(), AfterAChange::default());
        for _ in 0..rng.within(1, 6) {
            let cost = rng.within(1, 8);
            if admit(now, cost) == Verdict::Allowed {
                charges.push(Charge { at: now, cost });
                seen.kept += cost;
            }
            now += rng.below(SECOND);
        }
        let changed = now;
        limiter.set_policy_at(now, &to, Keep::Count).unwrap();
        table.set_policy(PolicyId::FIRST, &to).unwrap();
        for _ in 0..40 {
            let cost = rng.within(1, 8);
            if let (true, false) = (rng.below(3) == 0, charges.is_empty()) {
                let charge = charges.swap_remove(rng.below(charges.len() as u64) as usize);
                let back = match in_table {
                    true => {
                        table.give_back_at(PolicyId::FIRST, KEY, now, charge, charge.cost).unwrap()
                    }
                    false => limiter.give_back_at(now, charge, charge.cost),
                };
                seen.kept -= back;
                // `returned` is the part of the charge, as time under the new policy, that the call
                // may give back. The former, faster policy had already refilled some of it before
                // the change: `refilled` counts these permits, which the key has twice.
                let returned = (charge.cost * new.1).saturating_sub(now - charge.at);
                seen.refilled += returned.min((changed - charge.at).div_ceil(old.1) * new.1);
            } else if admit(now, cost) == Verdict::Allowed {
                seen.admitted.push((now, cost));
                seen.kept += cost;
            }
            now += rng.below(SECOND / 2);
        }
        let excess = seen.excess(new.0, new.1);
        assert!(
            excess <= seen.refilled,
            "{excess} ns above the bound, {} ns refilled",
            seen.refilled
        );
        let both = old.0 + (changed - NOW) / old.1 + new.0 + (now - changed) / new.1;
        assert!(seen.kept <= both, "{} kept of {both}", seen.kept);
        above[usize::from(in_table)] += u32::from(excess != 0);
        most = most.max(excess);
    }
    println!(
        "above the slower policy's bound: {above:?} of 1,000 limiters and 1,000 keys, by {:.2} permits at most",
        most as f64 / new.1 as f64
    );
    assert!(above.iter().all(|n| *n > 10), "{above:?}");
}

/// E10: between the read and the swap of one return, another return and a request bring the word
/// back to the value that was read. The clock's closure is called between the two, so the test
/// needs no second thread. When the swap compared the word alone, four permits passed at one
/// instant.
#[test]
fn a_word_that_came_back_gives_nothing_twice() {
    for text in ["1/s burst 3", "1/s burst 4; 1/s burst 3"] {
        let state = State::new(&text.parse().unwrap()).unwrap();
        assert_eq!(state.take_up_to_at(NOW, 2) + state.take_up_to_at(NOW, 1), 3);
        let (now, taken) = (Cell::new(NOW), Cell::new(0));
        let back = state.give_back(Charge { at: NOW, cost: 2 }, 2, || {
            let read = now.get();
            if read == NOW {
                state.give_back(Charge { at: NOW, cost: 1 }, 1, || NOW);
                now.set(NOW + SECOND);
                taken.set(state.take_up_to_at(now.get(), 1));
            }
            read
        });
        let more = state.take_up_to_at(now.get(), 9);
        assert_eq!((taken.get(), back, more), (1, 1, 2), "{text}");
    }
}
