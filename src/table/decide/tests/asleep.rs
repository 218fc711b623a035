//! A call that has read its policy's version and sleeps before it reads its key's slot. Meanwhile
//! the policy changes so often that the version's number belongs to another policy, and the slot
//! holds the key under that number.

use super::*;

const NOW: u64 = 1_000_000_000_000_000;

/// The policies under which a call falls asleep, and wakes up.
const POLICIES: [&str; 8] = [
    "100/h",
    "100/day burst 100",
    "100/h algo fixed-window",
    "100/h algo weighted-window",
    "100/h algo sliding-window segments 20",
    "100/h algo sliding-log",
    "100/forever",
    "100/h burst 100; 1000/day burst 1000",
];

/// What a call did, and the permits that its key has left.
type Done = (u64, u64);

/// A call for a key's hash, by the version that it has read.
type Call = fn(&Table, &Version, u64) -> u64;

/// The calls that take a version.
const CALLS: [(&str, Call); 5] = [
    ("check", |table, version, hash| {
        let decision: Decision = table.decide_hashed(version, hash, Some(NOW), 1);
        decision.verdict as u64
    }),
    ("check by the protocol", |table, version, hash| {
        table.slow_uncounted(version, hash, NOW, 1).expect("no damage").verdict as u64
    }),
    ("charge", |table, version, hash| {
        table.charge_hashed(version, hash, NOW, 1).expect("no damage")
    }),
    ("give back", |table, version, hash| {
        let charge = Charge { at: NOW, cost: 2 };
        table.give_back_of(version, hash, charge, 1, &|| NOW).expect("no damage")
    }),
    ("take credit", |table, version, hash| {
        let credit = table.take_credit(&table.lookup(version, hash), NOW, 1, 4);
        // A call that gets none asks by the protocol.
        match credit {
            Some((credit, _)) => credit,
            None => table.slow_uncounted(version, hash, NOW, 1).expect("no damage").verdict as u64,
        }
    }),
];

/// A table whose key has 40 of 100 permits left under `old`, or is new. Then the policy becomes
/// `new`, under the version number that `old` had. `call` gets the version that it read before, or
/// the one in force if it is `awake`.
fn wake(old: &str, new: &str, call: Call, is_known: bool, is_awake: bool) -> Done {
    let [old, new, filler]: [Policy; 3] =
        [old, new, "101/h"].map(|text| text.parse().expect("a policy"));
    let options = Options { room: 100, ..Options::new(64) };
    let table = Table::private(&options, &[old]).expect("memory");
    let own = PolicyId::FIRST;
    if is_known {
        assert_eq!(table.take_up_to_at(own, b"key", NOW, 60), 60);
    }
    let hash = table.hash(own, b"key").expect("a hash");
    let (mut scratch, mut other) = (Scratch::new(), Scratch::new());
    let slept = table.policies.current(own, hash, &mut scratch).expect("compiled");
    let number = version_of(slept.stamp.load(Ordering::Relaxed));
    let is_there = (0..4_000).any(|n| {
        let policy = if n % 3 == 0 { &filler } else { &new };
        table.set_policy(own, policy).expect("a record");
        n % 3 != 0 && version_of(table.policies.memory.current_stamp(0)) == number
    });
    assert!(is_there, "no change took the version's number again");
    if is_known {
        // The key comes under the version in force.
        assert_eq!(table.admit_at(own, b"key", NOW, 1), Verdict::Allowed);
    }
    let version = match is_awake {
        true => table.policies.current(own, hash, &mut other).expect("compiled"),
        false => slept,
    };
    let did = call(&table, version, hash);
    (did, table.take_up_to_at(own, b"key", NOW, 1000))
}

/// A call that slept does what it would do awake: nobody with permits left is refused, and nobody
/// gets more.
#[test]
fn a_call_that_slept_before_its_slot_decides_under_the_policy_in_force() {
    let mut wrong = Vec::new();
    for (name, call) in CALLS {
        let pairs = POLICIES.iter().flat_map(|old| POLICIES.iter().map(move |new| (*old, *new)));
        for ((old, new), is_known) in pairs.flat_map(|pair| [(pair, true), (pair, false)]) {
            let [asleep, awake] =
                [false, true].map(|is_awake| wake(old, new, call, is_known, is_awake));
            if asleep != awake {
                wrong.push((name, old, new, is_known, asleep, awake));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {}: {wrong:#?}", wrong.len(), CALLS.len() * 128);
}
