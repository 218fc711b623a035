//! The versions of policies under every interleaving that loom finds within a bound of preemptions.
//!
//! `RUSTFLAGS="--cfg loom" cargo test --profile models --target-dir target/loom --lib policies::models`
//!
//! A table has three records for versions, so the fourth change of a policy already uses a record
//! again. A policy's limit says which policy it is, and its period fits the limit. Requests compile
//! versions, changes write and free records, and a slot is one key word.

use super::local::Scratch;
use super::record::version_of;
use super::{records, references, Keep, Policies, PolicyId};
use crate::policy::Policy;
use crate::sync::{deep, explore, fence, AtomicU64, Ordering};
use crate::table::memory::error::TableError;
use crate::table::memory::layout::VERSIONS;
use crate::table::memory::slot::TAG_BITS;
use crate::table::memory::Memory;
use crate::table::slots::states::Relation;
use alloc::sync::Arc;
use alloc::vec::Vec;
use loom::thread;
use std::println;
use std::sync::Mutex;

/// The hash of the models' key. Loom's slots have room for eight bits of it.
const HASH: u64 = 1 << 56;

/// A table's policies, and what the models know about them.
struct World {
    policies: Policies,
    /// The limit of the policy of each stamp that became current. std's mutex is no step of loom's.
    made: Mutex<Vec<(u64, u64)>>,
    /// The key word of a slot.
    slot: AtomicU64,
}

fn policy(limit: u64) -> Policy {
    Policy::new(limit, limit * 1_000_000)
}

impl World {
    /// A table with policies of these limits.
    fn new(limits: &[u64]) -> Arc<World> {
        let memory = Memory::new();
        for limit in limits {
            records::add(memory.header(), memory.records(), &policy(*limit)).expect("a record");
        }
        let policies = Policies::over(memory).expect("memory");
        let world = World { policies, made: Mutex::default(), slot: AtomicU64::new(0) };
        (0..limits.len()).for_each(|number| world.note(number as u32, limits[number]));
        Arc::new(world)
    }

    /// Notes which policy the current stamp of a number is. Only one thread changes a number.
    fn note(&self, number: u32, limit: u64) {
        let stamp = self.policies.memory.current_stamp(number);
        self.made.lock().expect("no panic").push((stamp, limit));
    }

    /// Makes a change like `Table::free_versions`. The only slot is swept.
    fn free_versions<T>(
        &self,
        change: impl Fn() -> Result<T, TableError>,
    ) -> Result<T, TableError> {
        match change() {
            Err(TableError::Versions) => {
                let (header, all) = (self.policies.memory.header(), self.policies.memory.records());
                let former = records::former(header, all);
                fence(Ordering::SeqCst);
                self.convert();
                let older = records::older(header, &former);
                records::free_former(header, all, &older);
                change()
            }
            result => result,
        }
    }

    /// Sets a policy like `Table::set_policy`.
    fn change(&self, number: u32, limit: u64) {
        assert!(self.try_change(number, limit), "a record");
    }

    /// False if no record was free.
    fn try_change(&self, number: u32, limit: u64) -> bool {
        let (header, all) = (self.policies.memory.header(), self.policies.memory.records());
        let change = || records::change(header, all, number, &policy(limit), Keep::Count);
        let is_done = self.free_versions(change).is_ok();
        if is_done {
            self.note(number, limit);
        }
        is_done
    }

    /// Brings the key in the slot to the current version of the first policy.
    fn convert(&self) {
        let version = version_of(self.policies.memory.current_stamp(0)) as u64;
        // Relaxed: loads of the slot are Acquire, and a version's stamp is published before.
        let _ = self.slot.fetch_update(Ordering::AcqRel, Ordering::Acquire, |word| {
            (word != 0).then_some(version << TAG_BITS | 1)
        });
    }

    /// The limit of the version that a request for the key gets. The version is whole, and is the
    /// one of its stamp.
    fn request(&self) -> u64 {
        let mut scratch = Scratch::new();
        let version =
            self.policies.current(PolicyId::FIRST, HASH, &mut scratch).expect("no damage");
        let (stamp, limit) = (version.stamp.load(Ordering::Relaxed), version.policy.limit);
        assert_eq!((version.policy, version.number), (policy(limit), 0));
        assert_eq!(version.key >> TAG_BITS, version_of(stamp) as u64);
        let made = self.made.lock().expect("no panic");
        let differs = made.iter().find(|(of, is)| *of == stamp && *is != limit);
        assert_eq!(differs, None, "the version of {stamp:x} has the limit {limit}");
        limit
    }

    /// Sets the key's own policy like `Table::set_override`. False if no record was free, because
    /// another call was writing one.
    fn set_override(&self, limit: u64) -> bool {
        let set = || self.policies.set_override(0, HASH, &policy(limit), Keep::Count);
        self.free_versions(set).is_ok()
    }

    /// Takes a reference of an override's version, uses it, and gives it back. Without a free
    /// record it does nothing.
    fn refer(&self, limit: u64) {
        let (header, all) = (self.policies.memory.header(), self.policies.memory.records());
        let acquire = || references::acquire(header, all, 0, &policy(limit), Keep::Count);
        let Ok(stamp) = self.free_versions(acquire) else { return };
        let read = all[version_of(stamp)].read(stamp);
        assert_eq!(read, Some(policy(limit)), "the record of a key's policy was freed");
        references::release(header, version_of(stamp));
    }
}

/// Runs two threads' acts from the same beginning, and then `end`. Each is the first thread once,
/// because loom does not try every order with a thread that only reads.
fn model(
    name: &str,
    preemptions: usize,
    begin: impl Fn() -> Arc<World> + Copy + Send + Sync + 'static,
    acts: [fn(&World); 2],
    end: fn(&World),
) {
    let mut executions = 0;
    for [here, there] in [acts, [acts[1], acts[0]]] {
        executions += explore(preemptions, move || {
            let world = begin();
            let other = {
                let world = world.clone();
                thread::spawn(move || there(&world))
            };
            here(&world);
            other.join().unwrap();
            end(&world);
        });
    }
    println!("{name}: {executions} executions");
}

/// A policy changes until its records serve later versions. A request gets a version that was
/// current while it ran, whole, and never an older one than before.
#[test]
fn a_request_beside_changes_that_use_its_record_again() {
    let full = || {
        let world = World::new(&[1]);
        world.change(0, 2);
        world.change(0, 3);
        world
    };
    fn requests(world: &World) {
        let (first, second) = (world.request(), world.request());
        assert!((3..=6).contains(&first) && first <= second, "{first} {second}");
    }
    fn changes(world: &World) {
        for limit in 4..=6 {
            world.change(0, limit);
            assert_eq!(world.request(), limit);
        }
    }
    model("records used again", deep(2), full, [requests, changes], |world| {
        assert_eq!(world.request(), 6);
    });
}

/// A policy comes back to a limit that it had before, under the number that it had, and with the
/// version that was compiled then.
#[test]
fn a_request_beside_a_policy_that_comes_back() {
    let begin = || {
        let world = World::new(&[1]);
        world.change(0, 2);
        assert_eq!(world.request(), 2);
        world
    };
    fn changes(world: &World) {
        for limit in [3, 1, 2] {
            world.change(0, limit);
            assert_eq!(world.request(), limit);
        }
    }
    fn requests(world: &World) {
        for _ in 0..2 {
            world.request();
        }
    }
    model("a policy comes back", deep(2), begin, [requests, changes], |world| {
        assert_eq!(world.request(), 2);
    });
}

/// Two calls change a policy at once: the later stamp wins, and no record is lost.
#[test]
fn two_changes_of_a_policy() {
    fn changes<const LIMIT: u64>(world: &World) {
        let (header, all) = (world.policies.memory.header(), world.policies.memory.records());
        let change = || records::change(header, all, 0, &policy(LIMIT), Keep::Count);
        world.free_versions(change).expect("a record");
        assert!([2, 3].contains(&world.request()));
    }
    model(
        "two changes",
        deep(3),
        || World::new(&[1]),
        [changes::<2>, changes::<3>],
        |world| {
            // The first policy's stamp was the first.
            assert_eq!(world.policies.memory.current_stamp(0) >> 16, 3, "the later stamp wins");
            // Two more changes find a record each.
            world.change(0, 4);
            world.change(0, 5);
            assert_eq!(world.request(), 5);
        },
    );
}

/// Two calls add a policy at once: it gets one number, which both return.
#[test]
fn one_policy_is_added_by_two_calls() {
    fn adds(world: &World) {
        let (header, all) = (world.policies.memory.header(), world.policies.memory.records());
        let number = records::find_or_add(header, all, &policy(2)).expect("a record");
        assert_eq!(number, 1, "the policy has two numbers");
    }
    model(
        "added",
        4,
        || World::new(&[1]),
        [adds, adds],
        |world| {
            // The call that added nothing has left its record free.
            world.change(0, 3);
            assert_eq!(world.request(), 3);
            let (header, all) = (world.policies.memory.header(), world.policies.memory.records());
            assert_eq!(records::find_or_add(header, all, &policy(2)), Ok(1));
        },
    );
}

/// A request has read its policy's version, and sleeps until the version's record serves the other
/// policy. It takes the key in the slot, which is under its own policy, for no other key.
#[test]
fn a_key_beside_a_record_of_another_policy() {
    let begin = || {
        let world = World::new(&[1, 11]);
        world.slot.store(1 << TAG_BITS | 1, Ordering::Relaxed);
        world.convert();
        world
    };
    fn asks(world: &World) {
        let mut scratch = Scratch::new();
        let version =
            world.policies.current(PolicyId::FIRST, HASH, &mut scratch).expect("no damage");
        let word = version.key | 1;
        let found = world.slot.load(Ordering::Acquire);
        if world.policies.relation(found, word, 0) == Relation::Other {
            let now = world.slot.load(Ordering::Acquire);
            assert_ne!(now, found, "the request inserts its key a second time");
        }
    }
    fn changes(world: &World) {
        world.change(0, 2);
        world.change(1, 12);
        world.change(1, 13);
    }
    model("another policy's record", deep(2), begin, [asks, changes], |_| ());
}

/// Calls take and give back references of overrides' versions while others free the records without
/// references: no record is freed that a key refers to.
#[test]
fn references_beside_the_freeing_of_records() {
    let begin = || {
        let world = World::new(&[1]);
        world.refer(9);
        world
    };
    fn frees_and_refers(world: &World) {
        let (header, all) = (world.policies.memory.header(), world.policies.memory.records());
        let former = records::former(header, all);
        records::free_former(header, all, &former);
        world.refer(8);
    }
    model("references", deep(3), begin, [|world| world.refer(9), frees_and_refers], |world| {
        // All references are given back, so that both records come free.
        world.change(0, 2);
        world.change(0, 3);
        world.change(0, 4);
        assert_eq!(world.request(), 4);
    });
}

/// A key gets a policy of its own and loses it while its policy changes, which frees records.
#[test]
fn an_override_beside_changes() {
    fn overrides(world: &World) {
        if world.set_override(9) {
            assert_eq!(world.request_own(), 9);
            assert!(world.policies.clear_override(HASH));
        }
    }
    fn changes(world: &World) {
        for limit in 3..=5 {
            // It fails if the other call is writing the last record.
            world.try_change(0, limit);
        }
        assert!([2, 3, 4, 5, 9].contains(&world.request_own()));
    }
    let begin = || {
        let world = World::new(&[1]);
        world.change(0, 2);
        world
    };
    model("an override", deep(2), begin, [overrides, changes], |world| {
        assert!((2..=5).contains(&world.request()));
        assert_eq!(world.policies.memory.header().special.read().overrides(), 0);
    });
}

impl World {
    /// The limit of the key's version, which may be of its own policy.
    fn request_own(&self) -> u64 {
        let mut scratch = Scratch::new();
        let version =
            self.policies.current(PolicyId::FIRST, HASH, &mut scratch).expect("no damage");
        assert_eq!(version.policy, policy(version.policy.limit));
        version.policy.limit
    }
}

/// Two keys, or one, are exempted at once, and one of the two is charged again: requests see each
/// as its last call left it, and the count is that of the places.
#[test]
fn exemptions_beside_each_other() {
    // Both keys try the same place first.
    const OTHER: u64 = 2 << 56;
    fn exempts(world: &World) {
        world.policies.exempt(HASH).expect("a place");
        assert!(world.policies.is_exempt(HASH));
    }
    fn exempts_and_ends(world: &World) {
        world.policies.exempt(OTHER).expect("a place");
        assert!(world.policies.is_exempt(OTHER));
        assert!(world.policies.unexempt(OTHER));
        assert!(!world.policies.is_exempt(OTHER));
    }
    model(
        "exempt",
        3,
        || World::new(&[1]),
        [exempts, exempts_and_ends],
        |world| {
            assert!(world.policies.is_exempt(HASH) && !world.policies.is_exempt(OTHER));
            assert_eq!(world.policies.memory.header().special.read().word(), 1);
        },
    );
    // The second call may find the place and do nothing more.
    model(
        "exempt, one key",
        3,
        || World::new(&[1]),
        [exempts, exempts],
        |world| assert!(world.policies.is_exempt(HASH)),
    );
}

mod asleep;

const _: () = assert!(VERSIONS == 4);
