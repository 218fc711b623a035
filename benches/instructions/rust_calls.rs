//! The hot calls of the crate, built as a release is.

use crate::{Call, START};
use std::hint::black_box;
use tollbar::algorithm::gcra::Gcra;
use tollbar::hierarchy::{ClassId, Hierarchy};
use tollbar::limiter::Cell;
use tollbar::table::{Options, PolicyId, Request, Table};
use tollbar::{Limiter, Policy, Shared, State, Verdict};

/// A policy so fast, and with so large a burst, that it refuses nothing.
pub const OPEN: &str = "1000000000/s burst 1000000000000";
/// A policy under which a permit comes back each minute: a key that has been asked for owes for the
/// whole run.
pub const KEYED: &str = "1/min burst 1000000";
/// The policy of two rates.
pub const PAIR: &str = "100/s burst 2000; 1000/min burst 2000";
/// A policy that refuses all requests but the first.
pub const SHUT: &str = "1/day burst 1";
/// The requests of a batch.
pub const BATCH: usize = 32;
/// The capacity of a table that is neither empty nor full: the bench inserts half as many keys, and
/// all other keys are new.
pub const CAPACITY: u64 = 8_000;
/// The requests after which a hot key is sure to have credit.
pub const WARM: usize = 5_000;
/// An arbitrary seed, the same in every run.
pub const SEED: u64 = 0x746f_6c6c_6261_7273;

/// The `index`-th key, a pseudo-random word.
pub fn key(index: u64) -> [u8; 8] {
    (index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

/// All hot calls of the crate.
pub fn all() -> Vec<Call> {
    let cell = Cell::new(Gcra::new(&policy(OPEN)).expect("compiles"));
    let open = State::new(&policy(OPEN)).expect("compiles");
    let shut = State::new(&policy(SHUT)).expect("compiles");
    let _ = shut.admit_at(START - 1, 1);
    let credited = Limiter::with_credit(&policy(OPEN)).expect("compiles");
    let clocked = Limiter::new(&policy(OPEN)).expect("compiles");
    let [known, batched] = [0, 1].map(|_| table());
    let changed = changed();
    let keys: [_; BATCH] = std::array::from_fn(|index| key(index as u64));
    let hot = table().with_hot_keys(256).expect("memory");
    for _ in 0..WARM {
        assert_eq!(hot.admit_at(PolicyId::FIRST, &keys[0], START - 1, 1), Verdict::Allowed);
    }
    let nodes = Table::private(&Options::new(CAPACITY), &[Hierarchy::policy()]).expect("a table");
    let mut tree =
        Hierarchy::new(PolicyId::FIRST, "1000000/s", 1_000_000_000, 3).expect("a hierarchy");
    let tenant = tree.add(ClassId::ROOT, b"tenant", "1000/s", "", 1).expect("a class");
    let users = tree.add(tenant, b"users", "", "", 2).expect("a class");
    vec![
        call("Rust Cell<Gcra>::admit_at", 1, move |now| {
            _ = black_box(black_box(&cell).admit_at(now, black_box(1)))
        }),
        call("Rust State::admit_at, allowed", 1, move |now| {
            _ = black_box(black_box(&open).admit_at(now, black_box(1)))
        }),
        call("Rust State::admit_at, denied", 1, move |now| {
            _ = black_box(black_box(&shut).admit_at(now, black_box(1)))
        }),
        call("Rust Limiter::admit, TSC", 1, move |_| {
            _ = black_box(black_box(&clocked).admit(black_box(1)))
        }),
        // A call that spends credit. In the least of the counts no credit is taken.
        call("Rust Limiter::admit, credit", 1, move |_| {
            _ = black_box(black_box(&credited).admit(black_box(1)))
        }),
        call("Rust Table::admit_at, known key", 1, move |now| {
            let _ =
                black_box(black_box(&known).admit_at(PolicyId::FIRST, black_box(&keys[0]), now, 1));
        }),
        call("Rust Table::admit_at, after 4,096 changes", 1, move |now| {
            let _ = black_box(black_box(&changed).admit_at(
                PolicyId::FIRST,
                black_box(&keys[0]),
                now,
                1,
            ));
        }),
        // Spends credit, as above.
        call("Rust Table::admit_at, hot key", 1, move |now| {
            let _ =
                black_box(black_box(&hot).admit_at(PolicyId::FIRST, black_box(&keys[0]), now, 1));
        }),
        call("Rust Hierarchy::take_at, a user of a tenant", 1, move |now| {
            _ = black_box(black_box(&tree).take_at(&nodes, users, black_box(&keys[0]), now, 1));
        }),
        call("Rust Table::admit_many_at, a key of 32", BATCH as u64, move |now| {
            let requests =
                keys.each_ref().map(|key| Request { policy: PolicyId::FIRST, key, cost: 1 });
            let mut verdicts = [Verdict::Denied; BATCH];
            black_box(&batched).admit_many_at(now, black_box(&requests), &mut verdicts);
            let _ = black_box(verdicts);
        }),
    ]
}

/// A call that decides `requests` requests.
pub fn call(name: &'static str, requests: u64, once: impl FnMut(u64) + 'static) -> Call {
    Call { name, once: Box::new(once), requests }
}

fn table() -> Table {
    let table =
        Table::private(&Options::new(CAPACITY).with_seed(SEED), &[policy(KEYED)]).expect("memory");
    for index in 0..CAPACITY / 2 {
        assert_eq!(table.admit_at(PolicyId::FIRST, &key(index), START - 1, 1), Verdict::Allowed);
    }
    table
}

/// A table whose policy has been changed, and asked for, more often than a process keeps versions
/// for all its threads.
fn changed() -> Table {
    let table = table();
    for change in 1..=4_200 {
        let policy =
            Policy { burst: 1_000_000 + change, init: 1_000_000 + change, ..policy(KEYED) };
        table.set_policy(PolicyId::FIRST, &policy).expect("a record");
        assert_eq!(table.admit_at(PolicyId::FIRST, &key(0), START - 1, 1), Verdict::Allowed);
    }
    table
}

fn policy(text: &str) -> Policy {
    text.parse().unwrap_or_else(|wrong| panic!("{text}: {wrong}"))
}
