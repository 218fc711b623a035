//! Loom models of acquisition, release and the freeing of a dead process's permits. Loom tries
//! every interleaving within a bound of preemptions.
//!
//! `RUSTFLAGS="--cfg loom" cargo test --profile models --target-dir target/loom --lib in_flight::models`
//!
//! A table has one window of three slots, and up to four owners. The standard library's atomics
//! count the permits in flight, because loom does not interleave them. A killed process is a record
//! and a slot as it left them, and a bit by which the models' system says that it has ended.

mod handed_over;

use super::protocol::{ProcessPart, System, TableView};
use super::refusal::Refusal;
use super::word::{
    InFlightOwner, OwnerRecord, OwnerState, PermitSlot, Process, Ticket, OWNERS_MOST,
};
use super::{Adaptive, AdaptiveOptions, AdaptiveTicket, Outcome, SendWindow};
use crate::sync::{explore, AtomicU64, Ordering};
use handed_over::add_as_holder;
use loom::thread;
use std::println;
use std::sync::atomic::{AtomicU64 as Plain, Ordering::SeqCst};
use std::sync::Arc;

pub(crate) const HASH: u64 = 0x1234;
const SLOTS: usize = 3;

/// The shared memory, and the models' own counts.
pub(crate) struct World {
    records: [AtomicU64; OWNERS_MOST],
    slots: [AtomicU64; SLOTS],
    joined: AtomicU64,
    namespace: AtomicU64,
    /// A bit for each process that has ended.
    ended: Plain,
    /// The number of permits in flight, as the models count them.
    inside: Plain,
    clock: Plain,
}

/// A process: its number, and its own memory.
pub(crate) struct Me {
    number: u32,
    local: ProcessPart,
    world: Arc<World>,
}

impl System for Me {
    fn this_process(&self) -> Process {
        Process { number: self.number, start: 1 }
    }

    fn namespace(&self) -> u64 {
        1
    }

    fn has_ended(&self, process: Process, _: bool) -> bool {
        self.world.ended.load(SeqCst) >> process.number & 1 != 0
    }

    /// A process asks the system at most once in a millisecond, so each call here returns a later
    /// one.
    fn now(&self) -> u64 {
        self.world.clock.fetch_add(1024, SeqCst)
    }

    fn pause(&self, _: u32) {}
}

impl World {
    pub(crate) fn new() -> Arc<World> {
        Arc::new(World {
            records: core::array::from_fn(|_| AtomicU64::new(0)),
            slots: core::array::from_fn(|_| AtomicU64::new(0)),
            joined: AtomicU64::new(7),
            namespace: AtomicU64::new(1),
            ended: Plain::new(0),
            inside: Plain::new(0),
            clock: Plain::new(0),
        })
    }

    pub(crate) fn process(self: &Arc<World>, number: u32) -> Arc<Me> {
        Arc::new(Me { number, local: ProcessPart::new(), world: self.clone() })
    }

    /// Writes what a killed process leaves behind: its record, and its permit if it had one.
    fn kill(
        &self,
        number: u32,
        place: usize,
        state: OwnerState,
        permit: Option<fn(PermitSlot) -> PermitSlot>,
    ) {
        self.ended.fetch_or(1 << number, SeqCst);
        self.records[place]
            .store(OwnerRecord::new(Process { number, start: 1 }, 3, state).0, Ordering::SeqCst);
        if let Some(permit) = permit {
            let word = permit(PermitSlot::first(HASH, InFlightOwner { place, generation: 3 }));
            self.slots[place % SLOTS].store(word.0, Ordering::SeqCst);
        }
    }
}

/// A slot with one decided permit, and a slot with one undecided permit.
const HELD: fn(PermitSlot) -> PermitSlot = |slot| PermitSlot(slot.0 - PermitSlot::DECIDED);
const UNDECIDED: fn(PermitSlot) -> PermitSlot = |slot| slot;

impl Me {
    fn view(&self) -> TableView<'_, Me> {
        TableView {
            records: &self.world.records,
            slots: &self.world.slots,
            window: SLOTS,
            joined: &self.world.joined,
            namespace: &self.world.namespace,
            local: &self.local,
            system: self,
        }
    }

    /// Becomes an owner.
    pub(crate) fn join(&self) {
        self.view().join_once().expect("a record");
    }

    /// The key's permits in flight. If they are `limit` or more, permits of ended processes do not
    /// count.
    pub(crate) fn count(&self, limit: u32) -> u64 {
        self.view().count_of_living(HASH, limit)
    }

    /// Acquires a permit without counting it in `inside`.
    pub(crate) fn try_acquire(&self, limit: u32) -> Result<Ticket, Refusal> {
        self.view().acquire(HASH, limit)
    }

    /// Releases a permit that `inside` does not count.
    pub(crate) fn give_back(&self, ticket: Ticket) -> bool {
        self.view().release(ticket)
    }

    fn acquire(&self, limit: u32) -> Option<Ticket> {
        let ticket = match self.try_acquire(limit) {
            Ok(ticket) => ticket,
            Err(why) => {
                assert_eq!(why, Refusal::Limit);
                return None;
            }
        };
        self.enter(limit);
        Some(ticket)
    }

    /// Counts an admitted permit in `inside`.
    pub(crate) fn enter(&self, limit: u32) {
        let inside = self.world.inside.fetch_add(1, SeqCst);
        assert!(inside < u64::from(limit), "more than the limit are in flight");
    }

    pub(crate) fn release(&self, ticket: Ticket) {
        self.world.inside.fetch_sub(1, SeqCst);
        assert!(self.give_back(ticket), "a live ticket was lost");
    }

    /// Acquires a permit and releases it. Returns whether the limit admitted it.
    fn pass(&self, limit: u32) -> bool {
        let ticket = self.acquire(limit);
        // Lets loom run other threads between the two.
        thread::yield_now();
        ticket.map(|ticket| self.release(ticket)).is_some()
    }
}

/// Checks the end of every model: no permit is undecided or in flight, and a caller without
/// concurrent ones gets the whole limit.
fn judge(world: &Arc<World>, limit: u32) {
    let last = world.process(9);
    let tickets: std::vec::Vec<Ticket> =
        (0..limit).map(|_| last.acquire(limit).expect("a free permit")).collect();
    assert!(last.acquire(limit).is_none());
    tickets.into_iter().for_each(|ticket| last.release(ticket));
    assert_eq!(last.view().count(HASH), 0);
    for slot in &world.slots {
        assert_eq!(PermitSlot(slot.load(Ordering::SeqCst)).undecided(), 0);
    }
}

fn report(name: &str, executions: usize) {
    println!("{name}: {executions} executions");
}

/// Several processes want the last permit. With `held` each has a permit already, and so a slot of
/// its own. Otherwise they all try to take the first free slot.
fn last_permit<const PROCESSES: usize>(limit: u32, held: bool, preemptions: usize) {
    let executions = explore(preemptions, move || {
        let world = World::new();
        let processes: [Arc<Me>; PROCESSES] = core::array::from_fn(|n| world.process(n as u32 + 1));
        processes.iter().for_each(|me| me.view().join_once().expect("a record"));
        let tickets = processes
            .each_ref()
            .map(|me| held.then(|| me.acquire(limit).expect("below the limit")));
        let threads = processes.clone().map(|me| thread::spawn(move || me.pass(limit)));
        let passed = threads.map(|thread| thread.join().expect("a thread"));
        let wanted = PROCESSES as u32 * (1 + u32::from(held));
        assert!(limit < wanted || passed == [true; PROCESSES]);
        for (me, ticket) in processes.iter().zip(tickets) {
            ticket.into_iter().for_each(|ticket| me.release(ticket));
        }
        judge(&world, limit);
    });
    report("the last permit", executions);
}

#[test]
fn the_last_permit_of_two_processes() {
    last_permit::<2>(1, false, 4);
    last_permit::<2>(2, false, 4);
    last_permit::<2>(3, true, 4);
    last_permit::<2>(4, true, 3);
}

#[test]
fn the_last_permit_of_three_processes() {
    last_permit::<3>(2, false, 2);
    last_permit::<3>(4, true, 2);
}

#[test]
fn threads_of_one_process_share_a_slot() {
    for limit in [1, 2] {
        let executions = explore(3, move || {
            let world = World::new();
            let me = world.process(1);
            me.view().join_once().expect("a record");
            let threads = [me.clone(), me.clone()]
                .map(|me| thread::spawn(move || me.pass(limit) | me.pass(limit)));
            let passed = threads.map(|thread| thread.join().expect("a thread"));
            assert!(limit == 1 || passed == [true; 2]);
            judge(&world, limit);
        });
        report("2 threads of a process", executions);
    }
}

#[test]
fn a_ticket_is_released_by_another_thread() {
    let executions = explore(3, || {
        let world = World::new();
        let (me, other) = (world.process(1), world.process(2));
        let ticket = me.acquire(1).expect("the only one");
        let releaser = me.clone();
        let first = thread::spawn(move || releaser.release(ticket));
        let second = thread::spawn(move || me.pass(1));
        other.pass(1);
        first.join().expect("a thread");
        second.join().expect("a thread");
        judge(&world, 1);
    });
    report("released by another thread", executions);
}

#[test]
fn threads_that_join_at_once_are_one_owner() {
    let executions = explore(3, || {
        let world = World::new();
        let me = world.process(1);
        let threads = [me.clone(), me].map(|me| thread::spawn(move || me.pass(1)));
        let _ = threads.map(|thread| thread.join().expect("a thread"));
        let live =
            |record: &&AtomicU64| OwnerRecord(record.load(Ordering::SeqCst)) != OwnerRecord::FREE;
        assert_eq!(world.records.iter().filter(live).count(), 1);
        judge(&world, 1);
    });
    report("join", executions);
}

/// A process was killed with a decided permit, with an undecided one, or before it had one.
#[test]
fn the_permit_of_a_dead_process_comes_back() {
    for permit in [Some(HELD), Some(UNDECIDED), None] {
        let executions = explore(3, move || {
            let world = World::new();
            world.kill(4, 0, OwnerState::Live, permit);
            let processes = [world.process(1), world.process(2)];
            // These processes join without cleaning, as if the other one had been killed after
            // that.
            for (me, place) in processes.iter().zip([1, 2]) {
                me.join_at(place);
            }
            let threads = processes.clone().map(|me| thread::spawn(move || me.pass(1)));
            let _ = threads.map(|thread| thread.join().expect("a thread"));
            // No process joins here, so none has cleaned.
            assert!(processes[0].pass(1));
            judge(&world, 1);
        });
        report("a dead process", executions);
    }
}

/// Two processes join, and both try to free the slots of a killed process, which was itself
/// cleaning in one of the runs. A third process has a permit in flight all the time.
#[test]
fn the_dead_are_cleaned_by_one_and_the_living_stay() {
    // With a limit of 2 a process needs the dead process's permit. With 3 none does.
    for (state, limit) in [
        (OwnerState::Live, 2),
        (OwnerState::Cleaning, 2),
        (OwnerState::Dead, 2),
        (OwnerState::Dead, 3),
    ] {
        let executions = explore(2, move || {
            let world = World::new();
            world.kill(4, 0, state, Some(HELD));
            let living = world.process(1);
            living.join_at(1);
            let ticket = living.acquire(limit).expect("below the limit");
            let threads = [world.process(2), world.process(3)]
                .map(|me| thread::spawn(move || me.pass(limit)));
            let _ = threads.map(|thread| thread.join().expect("a thread"));
            living.release(ticket);
            judge(&world, limit);
        });
        report("cleaning", executions);
    }
}

/// A process closes its view with a permit in flight, while a second process acquires and a third
/// one joins.
#[test]
fn a_view_that_is_closed_leaves_nothing() {
    let executions = explore(3, || {
        let world = World::new();
        let (me, other) = (world.process(1), world.process(2));
        other.view().join_once().expect("a record");
        let _ticket = me.view().acquire(HASH, 1).expect("the only one");
        let closing = thread::spawn(move || me.view().part());
        let third = world.process(3);
        let joining = thread::spawn(move || third.pass(1));
        other.pass(1);
        closing.join().expect("a thread");
        joining.join().expect("a thread");
        judge(&world, 1);
    });
    report("closing", executions);
}

impl Me {
    /// Becomes the owner of a record without freeing the slots of dead processes.
    fn join_at(&self, place: usize) {
        let generation = 5;
        let live = OwnerRecord::new(self.this_process(), generation, OwnerState::Live);
        self.world.records[place].store(live.0, Ordering::SeqCst);
        self.local.become_owner(InFlightOwner { place, generation });
    }
}

#[test]
fn a_send_window_among_threads() {
    let executions = explore(4, || {
        let window = Arc::new(SendWindow::new(2));
        let inside = Arc::new(Plain::new(0));
        let threads = [0, 1].map(|_| {
            let (window, inside) = (window.clone(), inside.clone());
            thread::spawn(move || {
                for _ in 0..2 {
                    if window.acquire(1).is_some() {
                        assert!(inside.fetch_add(1, SeqCst) < 2);
                        inside.fetch_sub(1, SeqCst);
                        assert!(window.release(1));
                    }
                }
            })
        });
        window.resize(1);
        let _ = threads.map(|thread| thread.join().expect("a thread"));
        assert_eq!((window.read().limit, window.read().in_flight()), (1, 0));
    });
    report("send window", executions);
}

#[test]
fn an_acknowledgement_counts_once() {
    let executions = explore(5, || {
        let window = Arc::new(SendWindow::new(2));
        assert_eq!((window.acquire(1), window.acquire(1)), (Some(1), Some(2)));
        let threads = [1, 2].map(|last| {
            let window = window.clone();
            thread::spawn(move || {
                window.acknowledge(last);
                window.acknowledge(1);
                window.acquire(1);
            })
        });
        let _ = threads.map(|thread| thread.join().expect("a thread"));
        let end = window.read();
        assert_eq!((end.acknowledged, end.in_flight()), (2, 2));
    });
    report("acknowledgements", executions);
}

/// Two threads acquire and release at the same time. Without windows each of the two releases is a
/// sample and adds 1 to the limit. With windows a sample needs two releases under loom. There are
/// three releases with the one before the threads, so in any order they make one sample.
#[test]
fn an_adaptive_limit_takes_every_sample() {
    // A ticket that says that 9 permits are in flight, so each sample adds 1.
    let full = AdaptiveTicket::from_bits(9);
    for window_ns in [0, 1] {
        let executions = explore(4, move || {
            let limit = Arc::new(Adaptive::new(&AdaptiveOptions {
                window_ns,
                ..AdaptiveOptions::aimd(2, 1, 9, 5)
            }));
            if window_ns != 0 {
                assert!(limit.acquire().is_some());
                assert!(limit.release_at(full, Outcome::Answered, 1, 1));
            }
            let threads = [0, 1].map(|_| {
                let limit = limit.clone();
                thread::spawn(move || {
                    assert!(limit.acquire().is_some(), "one is in flight at most");
                    assert!(limit.release_at(full, Outcome::Answered, 1, 1));
                })
            });
            let _ = threads.map(|thread| thread.join().expect("a thread"));
            assert_eq!(
                (limit.limit(), limit.read().in_flight),
                (if window_ns == 0 { 4 } else { 3 }, 0)
            );
        });
        report("adaptive limit", executions);
    }
}

/// Two threads' releases make one sample. It has the permits in flight of both, whichever thread
/// ends the window.
#[test]
fn a_window_knows_the_most_permits_in_flight() {
    let executions = explore(4, || {
        let limit = Arc::new(Adaptive::new(&AdaptiveOptions {
            window_ns: 1,
            ..AdaptiveOptions::aimd(4, 1, 9, 5)
        }));
        let tickets = [1, 9].map(AdaptiveTicket::from_bits);
        assert!(limit.acquire().is_some() && limit.acquire().is_some());
        let threads = tickets.map(|ticket| {
            let limit = limit.clone();
            thread::spawn(move || assert!(limit.release_at(ticket, Outcome::Answered, 1, 1)))
        });
        let _ = threads.map(|thread| thread.join().expect("a thread"));
        // With one permit in flight of four the limit would stay.
        assert_eq!(limit.limit(), 5);
    });
    report("adaptive limit, a window's most", executions);
}

#[test]
fn an_adaptive_limit_admits_no_more() {
    let executions = explore(4, || {
        let limit = Arc::new(Adaptive::new(&AdaptiveOptions::gradient2(1, 1, 1)));
        let inside = Arc::new((Plain::new(0), AtomicU64::new(0)));
        let threads = [0, 1].map(|_| {
            let (limit, inside) = (limit.clone(), inside.clone());
            thread::spawn(move || {
                let Some(ticket) = limit.acquire() else { return 0 };
                assert_eq!(inside.0.fetch_add(1, SeqCst), 0, "more than the limit are inside");
                add_as_holder(&inside.1);
                inside.0.fetch_sub(1, SeqCst);
                assert!(limit.release_at(ticket, Outcome::Answered, 1, 1));
                1
            })
        });
        let held: u64 = threads.map(|thread| thread.join().expect("a thread")).iter().sum();
        assert_eq!((limit.read().in_flight, inside.1.load(Ordering::Relaxed)), (0, held));
    });
    report("adaptive limit of one", executions);
}
