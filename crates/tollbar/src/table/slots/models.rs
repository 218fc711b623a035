//! loom models of the slot protocol: every interleaving within a bound of preemptions.
//!
//! `RUSTFLAGS="--cfg loom" cargo test --profile models --target-dir target/loom --lib table::slots::models`
//!
//! The models run the code of `protocol`, `candidates`, the scalar probes and `slot`. A bucket has one slot, so a key has two candidates. The
//! rules of the policies are small ones of the models ([`rules`]). Each swap writes its change into a journal. Each model checks the
//! invariants of every run ([`Played::judge`]), and the results of its own scene.
//!
//! In some runs loom stops a thread between two steps until the others have ended. To them it looks like a killed thread. So no
//! thread waits for another if every model ends.

mod rules;

use super::candidates::{Candidates, TAG, TAG_BITS};
use super::protocol::{self, Changed, Event, OnFull, Outcome, Relation, States};
use crate::algorithm::Step;
use crate::decision::Verdict;
use crate::sync::explore;
use crate::table::memory::slot::{Bucket, Change, Journal, Pair, Slot};
use alloc::format;
use alloc::vec::Vec;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::sync::Arc;
use loom::thread::{self, ThreadId};
use rules::{adopted, akin, converted, expires, named, By, FAST, FINE, PERMIT};
use std::println;

/// A key: its tag, its policy, and the numbers of its buckets.
#[derive(Clone, Copy, Debug)]
struct Key(u64, By, [usize; 2]);

/// One step of a thread.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// A request, by the slow path: key, time, cost.
    Ask(Key, u64, u64),
    /// A request that tries the fast paths first: key, time, cost.
    Short(Key, u64, u64),
    /// A reset: key, time.
    Reset(Key, u64),
    /// A change of the policy to this version.
    Change(u64),
}

use Act::{Ask, Change as SetVersion, Reset, Short};

/// An act and its result.
#[derive(Clone, Copy, Debug)]
struct Done {
    act: Act,
    /// The number of changes in the journal when the act began.
    from: usize,
    /// The number of changes in the journal when the act ended.
    till: usize,
    /// The key word of the last try.
    key: u64,
    outcome: Option<Outcome>,
    /// Whether the act reset a key.
    reset: bool,
}

struct World {
    buckets: Vec<Bucket>,
    journal: std::sync::Arc<Journal>,
    on_full: OnFull,
    current: AtomicU64,
}

impl States for World {
    fn expires_at(&self, pair: Pair) -> u64 {
        expires(pair)
    }

    fn relation(&self, found: u64, key: u64) -> Relation {
        if !akin(found, key) {
            return Relation::Other;
        }
        match found != key && self.current(named(key).0) == key >> TAG_BITS {
            true => Relation::Former,
            false => Relation::Same,
        }
    }

    fn adopt(&self, key: u64, pair: Pair) -> u64 {
        adopted(key, pair)
    }

    fn convert(&self, key: u64, pair: Pair, now: u64) -> u64 {
        converted(key, pair, now)
    }

    fn owing(&self, key: u64, until: u64) -> u64 {
        named(key).1.owing(until)
    }
}

impl World {
    fn new(on_full: OnFull, slots: &[Pair], weak: bool) -> World {
        let journal = std::sync::Arc::new(Journal::new(weak));
        let bucket = |(number, &pair): (usize, &Pair)| Bucket([Slot::new(number, pair, &journal)]);
        let buckets = slots.iter().enumerate().map(bucket).collect();
        World { buckets, journal, on_full, current: AtomicU64::new(1) }
    }

    /// The number of the current version.
    fn current(&self, by: By) -> u64 {
        match by {
            By::Changing => self.current.load(Ordering::Acquire),
            By::Fixed => 4,
            By::Window => 5,
        }
    }

    fn candidates(&self, Key(tag, _, [first, second]): Key) -> Candidates<'_> {
        Candidates { first: &self.buckets[first], second: &self.buckets[second], tag }
    }

    fn word(&self, Key(tag, by, _): Key) -> u64 {
        self.current(by) << TAG_BITS | tag
    }

    fn act(&self, act: Act) -> Done {
        let mut done = Done { act, from: self.journal.len(), till: 0, key: 0, outcome: None, reset: false };
        match act {
            Ask(key, now, cost) => (done.key, done.outcome) = self.ask(key, now, cost),
            Short(key, now, cost) => {
                done.act = Ask(key, now, cost);
                (done.key, done.outcome) = self.ask_short(key, now, cost);
            }
            Reset(key, now) => (done.key, done.reset) = self.reset(key, now),
            // Generations of a policy only grow.
            SetVersion(number) => drop(self.current.fetch_max(number, Ordering::AcqRel)),
        }
        done.till = self.journal.len();
        done
    }

    /// Repeats the request until the protocol decides, like `Table::request`.
    fn ask(&self, key: Key, now: u64, cost: u64) -> (u64, Option<Outcome>) {
        loop {
            let word = self.word(key);
            let rule = named(word).1;
            let step = |state| rule.step(state, now, cost);
            if let Ok(outcome) = protocol::request(self, &self.candidates(key), word, now, self.on_full, step) {
                return (word, Some(outcome));
            }
        }
    }

    /// Tries each fast path once and then the slow path, like `Table::decide`.
    fn ask_short(&self, key: Key, now: u64, cost: u64) -> (u64, Option<Outcome>) {
        let (word, candidates) = (self.word(key), self.candidates(key));
        let rule = named(word).1;
        if let Some(slot) = candidates.find(word) {
            let state = slot.state();
            let Step { verdict, next } = rule.step(state, now, cost);
            if slot.commit(word, state, next) {
                let state = next.unwrap_or(state);
                return (word, Some(Outcome { verdict, state, event: Event::Known, until: 0, retries: 0 }));
            }
        } else if let (Some(apart), Some(fresh)) = (rule.apart(), rule.step(0, now, cost).next) {
            let expired = |state| expires(Pair { key: word, state }) <= now;
            if let Some(event) = protocol::insert_among_own(&candidates, word, fresh, apart, expired) {
                let verdict = Verdict::Allowed;
                return (word, Some(Outcome { verdict, state: fresh, event, until: 0, retries: 0 }));
            }
        }
        self.ask(key, now, cost)
    }

    /// Resets a key, like `Table::reset_at`.
    fn reset(&self, key: Key, now: u64) -> (u64, bool) {
        loop {
            let (word, candidates) = (self.word(key), self.candidates(key));
            let Some(slot) = candidates.find(word) else {
                match protocol::first_to_expire(self, &candidates, word, now) {
                    Err(Changed) => continue,
                    Ok(_) => return (word, false),
                }
            };
            let pair = slot.pair();
            if pair.key != word {
                continue;
            }
            let expires = expires(pair);
            let room =
                |n| candidates.slot(n).map(Slot::pair).is_some_and(|at| at.key != word && self.expires_at(at) <= now);
            if expires <= now || !(0..super::candidates::CANDIDATES).any(room) {
                return (word, false);
            }
            if slot.swap(pair, Pair { key: 0, state: expires }).is_ok() {
                return (word, true);
            }
        }
    }
}

/// The slots at the beginning of a model, and the acts of its threads.
#[derive(Clone)]
struct Scene {
    on_full: OnFull,
    slots: Vec<Pair>,
    threads: std::sync::Arc<[Vec<Act>]>,
}

fn scene(on_full: OnFull, slots: &[Pair], threads: &[&[Act]]) -> Scene {
    Scene { on_full, slots: slots.to_vec(), threads: threads.iter().map(|acts| acts.to_vec()).collect() }
}

/// One run of a scene.
struct Played {
    on_full: OnFull,
    weak: bool,
    changes: Vec<Change>,
    /// The slots after each number of changes.
    tables: Vec<Vec<Pair>>,
    threads: Vec<(ThreadId, Vec<Done>)>,
}

/// Explores a scene. loom tries another order only where an access conflicts with another thread's last access. So it may not try that a
/// thread which only reads runs after a thread that reads and then swaps. Therefore each thread in turn is the one that starts first.
fn model<C>(name: &str, preemptions: usize, scene: Scene, check: C)
where
    C: Fn(&Played) + Copy + Send + Sync + 'static,
{
    let name = match scene.on_full {
        OnFull::Deny => format!("{name}:"),
        on_full => format!("{name}, {on_full:?}:"),
    };
    let (mut executions, start) = (0, std::time::Instant::now());
    for (first, weak) in (0..scene.threads.len()).flat_map(|first| [(first, false), (first, true)]) {
        let scene = scene.clone();
        executions += explore(preemptions, move || {
            let played = play(&scene, first, weak);
            played.judge();
            check(&played);
        });
    }
    println!("{name} {executions} executions, {:.1} s", start.elapsed().as_secs_f32());
}

fn play(scene: &Scene, first: usize, weak: bool) -> Played {
    let world = Arc::new(World::new(scene.on_full, &scene.slots, weak));
    let run = |world: &World, acts: &[Act]| (thread::current().id(), acts.iter().map(|&act| world.act(act)).collect());
    let mut threads: Vec<(ThreadId, Vec<Done>)> = Vec::new();
    let others: Vec<_> = (0..scene.threads.len())
        .filter(|&n| n != first)
        .map(|n| {
            let (world, threads) = (world.clone(), scene.threads.clone());
            thread::spawn(move || run(&world, &threads[n]))
        })
        .collect();
    let mine = run(&world, &scene.threads[first]);
    threads.extend(others.into_iter().map(|other| other.join().unwrap()));
    threads.insert(first, mine);
    let changes = world.journal.changes();
    let mut tables = Vec::from([scene.slots.to_vec()]);
    for change in &changes {
        let mut table = tables[tables.len() - 1].clone();
        assert_eq!(table[change.slot], change.old, "the journal is not in order");
        table[change.slot] = change.new;
        tables.push(table);
    }
    Played { on_full: scene.on_full, weak, changes, tables, threads }
}

impl Played {
    /// Checks the invariants of every run. No slot's time becomes earlier. No key is in two slots. Each charge is in the key's state, each swap
    /// belongs to one request, and no debt is lost. The answer of a request that changed nothing was right at one instant while it ran.
    fn judge(&self) {
        for (n, Change { old, new, .. }) in self.changes.iter().enumerate() {
            assert!(expires(*new) >= expires(*old), "a slot's time fell: {:?}", self.changes);
            let table = &self.tables[n + 1];
            let places = table.iter().filter(|pair| pair.key != 0 && pair.key == new.key).count();
            assert!(places <= 1, "a key has two slots: {:?}", self.changes);
            // Only a key that moves to another slot (version 6) may also be in its former slot.
            let akin = table.iter().filter(|pair| akin(pair.key, new.key)).count();
            assert!(akin <= 1 || new.key >> TAG_BITS == 6, "a key has two slots: {:?}", self.changes);
        }
        for (thread, acts) in &self.threads {
            for done in acts {
                let changes = self.changes[done.from..done.till].iter();
                let mut own: Vec<_> = changes.filter(|change| change.thread == *thread).collect();
                let writes = match done.act {
                    Ask(_, _, cost) | Short(_, _, cost) => {
                        cost != 0 && done.admitted() == cost && done.event() != Some(Event::Unremembered)
                    }
                    Reset(..) => done.reset,
                    SetVersion(_) => false,
                };
                match (writes, done.act) {
                    (false, _) => self.justify(done),
                    (true, Reset(..)) => {
                        let Change { old, new, .. } = own.pop().expect("a reset without its swap");
                        assert_eq!((old.key, *new), (done.key, Pair { key: 0, state: expires(*old) }));
                    }
                    (true, _) => self.account(done, own.pop().expect("an answer without its swap")),
                }
                assert!(own.iter().all(|change| change.converts(done.key)), "a swap of no act: {:?}", self.changes);
            }
        }
    }

    /// Checks that a request's swap stored the state, and the request returned the event, that the rule prescribes.
    fn account(&self, done: &Done, change: &Change) {
        let (Ask(_, now, cost), Some(outcome)) = (done.act, done.outcome) else { panic!("no request") };
        let Change { old, new, .. } = *change;
        let rule = named(done.key).1;
        let step = |state| rule.step(state, now, cost).next;
        let expected = if old.key == done.key {
            (step(old.state), Event::Known)
        } else if expires(old) <= now {
            (step(0), if old.key == 0 { Event::Inserted } else { Event::Reclaimed })
        } else {
            match self.on_full {
                OnFull::Inherit => (step(adopted(done.key, old)), Event::Inherited),
                OnFull::EvictNearest => {
                    let owing =
                        |fresh| if rule.expires_at(fresh) < expires(old) { rule.owing(expires(old)) } else { fresh };
                    (step(0).map(owing), Event::Evicted)
                }
                _ => panic!("a new key took the slot of a key with a debt: {change:?}"),
            }
        };
        assert_eq!(new.key, done.key);
        assert_eq!((Some(new.state), outcome.event), expected, "{change:?}");
        assert_eq!(new.state, outcome.state);
    }

    /// Checks that the answer was right at one instant while the act ran.
    fn justify(&self, done: &Done) {
        // With weak loads the act may have read values from before its beginning.
        let from = if self.weak { 0 } else { done.from };
        let tables = &self.tables[from..=done.till];
        let justified = match done.act {
            Ask(key, now, cost) | Short(key, now, cost) => {
                tables.iter().any(|table| self.answers(table, done, key, now, cost))
            }
            Reset(_, now) => tables.iter().any(|table| {
                let own = table.iter().find(|pair| akin(pair.key, done.key));
                // A reset may leave the table as it was in two cases: the key is absent or has expired, or no slot has expired to which the
                // reset could move the key.
                own.map_or(true, |own| expires(*own) <= now) || table.iter().all(|pair| expires(*pair) > now)
            }),
            SetVersion(_) => true,
        };
        assert!(justified, "the answer was right at no instant: {done:?} in {tables:?}");
    }

    fn answers(&self, table: &[Pair], done: &Done, Key(_, _, homes): Key, now: u64, cost: u64) -> bool {
        let Some(outcome) = done.outcome else { return false };
        let rule = named(done.key).1;
        let step = |state| rule.step(state, now, cost);
        let own = table.iter().find(|pair| pair.key == done.key);
        if let Some(own) = own.or_else(|| table.iter().find(|pair| akin(pair.key, done.key))) {
            let step = step(own.state);
            return own.key == done.key
                && (step.verdict, step.next, Event::Known) == (outcome.verdict, None, outcome.event);
        }
        let fresh = step(0);
        let nearest = homes.iter().map(|&n| table[n]).min_by_key(|pair| expires(*pair)).unwrap();
        let expected = if fresh.next.is_none() {
            (fresh.verdict, Event::Known)
        } else if expires(nearest) <= now {
            return false;
        } else {
            match self.on_full {
                OnFull::Deny => (Verdict::Denied, Event::Refused),
                OnFull::Allow => (fresh.verdict, Event::Unremembered),
                OnFull::Inherit => (step(adopted(done.key, nearest)).verdict, Event::RefusedByDebt),
                OnFull::EvictNearest => return false,
            }
        };
        (outcome.verdict, outcome.event) == expected
    }

    fn last(&self) -> &[Pair] {
        &self.tables[self.tables.len() - 1]
    }

    /// A key's state at the end of the run.
    fn state(&self, Key(tag, by, _): Key) -> Option<u64> {
        let own = self.last().iter().find(|pair| pair.key != 0 && pair.key & TAG == tag && named(pair.key).0 == by);
        own.map(|pair| pair.state)
    }

    /// The permits that a key's requests took.
    fn admitted(&self, Key(tag, by, _): Key) -> u64 {
        self.done().filter(|done| done.key & TAG == tag && named(done.key).0 == by).map(Done::admitted).sum()
    }

    fn done(&self) -> impl Iterator<Item = &Done> {
        self.threads.iter().flat_map(|(_, done)| done).filter(|done| done.key != 0)
    }

    fn count(&self, event: Event) -> usize {
        self.done().filter(|done| done.event() == Some(event)).count()
    }
}

impl Done {
    fn event(&self) -> Option<Event> {
        self.outcome.map(|outcome| outcome.event)
    }

    fn admitted(&self) -> u64 {
        match (self.act, self.outcome) {
            (Ask(_, _, cost), Some(outcome)) if outcome.verdict == Verdict::Allowed => cost,
            _ => 0,
        }
    }
}

impl Change {
    /// Whether the change only converted `key` from a former version of its policy to a later one. A key that has expired loses its slot
    /// instead.
    fn converts(&self, key: u64) -> bool {
        let Change { old, new, .. } = *self;
        if new.key == key && key >> TAG_BITS == 6 && !akin(old.key, key) {
            // The key has moved to another slot, and has not inherited that slot's debt.
            return expires(new) >= expires(old) && (expires(new) - 100) % FAST == 0;
        }
        let expected = if new.key == 0 { expires(old) } else { adopted(new.key, old) };
        akin(old.key, key)
            && old.key < key
            && old.key != new.key
            && (new.key == 0 || akin(new.key, key))
            && (new.state == expected || new.key >> TAG_BITS == 6)
    }
}

mod scenes;
