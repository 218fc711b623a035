//! loom models of the slot protocol: every interleaving within a bound of preemptions.
//!
//! `RUSTFLAGS="--cfg loom" cargo test --profile models --target-dir target/loom --lib table::slots::models`
//!
//! The models run the code of `protocol`, `candidates`, the scalar probes and `slot`. A bucket has
//! one slot, so a key has two candidates. The rules of the policies are small ones of the models
//! ([`rules`]). Each swap writes its change into a journal. Each model checks the invariants of
//! every run ([`Played::judge`]), and the results of its own scene.
//!
//! Loom tries each order of steps. In some of them a thread stands still between two steps until
//! the others have ended, as a killed thread would. If a thread waited for another, such a run
//! would never end. Every model ends, so no thread waits.

mod rules;

use super::candidates::Candidates;
use super::give_back::give_back_under;
use super::protocol;
use super::states::{Event, KeyChanged, OnFull, Relation, RequestOutcome, States};
use crate::algorithm::Step;
use crate::decision::Verdict;
use crate::sync::{deep, explore};
use crate::table::memory::receipts::Receipts;
use crate::table::memory::returns::ReturnTurn;
use crate::table::memory::slot::{Bucket, Change, Journal, Slot, SlotPair, TAG, TAG_BITS};
use alloc::format;
use alloc::vec::Vec;
use loom::sync::atomic::{fence, AtomicU64, Ordering};
use loom::sync::Arc;
use loom::thread::{self, ThreadId};
use overrides::Map;
use rules::{adopted, converted, expires, full_at, named, related, By, FAST, FINE, PERMIT, SLOW};
use std::println;

/// A change to this version plus the number of another uses that number again.
const GENERATION: u64 = 256;

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
    /// The sweep after which the numbers of former versions are free: the policy's only key, time.
    Free(Key, u64),
    /// A request that opens a receipt if it is admitted: key, time, estimate.
    Take(Key, u64, u64),
    /// A settlement of one of the scene's receipts: its number, time, cost.
    Settle(usize, u64, u64),
    /// A settlement of the receipt that the thread's last take opened: time, cost.
    SettleOwn(u64, u64),
    /// A policy of its own for the key: this version.
    Own(Key, u64),
    /// The end of the key's own policy.
    End(Key),
}

use Act::{Ask, Change as SetVersion, End, Free, Own, Reset, Settle, SettleOwn, Short, Take};

/// A charge with a receipt: the key, the time and the cost of the charge, and the receipt's number
/// and check.
#[derive(Clone, Copy, Debug)]
struct Paper {
    key: Key,
    at: u64,
    cost: u64,
    check: u64,
    number: u32,
}

/// What a settlement did: whether it was the first of its receipt, and the permits that went back.
#[derive(Clone, Copy, Debug)]
struct Settled {
    paper: Paper,
    first: bool,
    back: u64,
}

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
    outcome: Option<RequestOutcome>,
    /// Whether the act reset a key.
    reset: bool,
    settled: Option<Settled>,
    opened: Option<Paper>,
}

struct World {
    buckets: Vec<Bucket>,
    journal: std::sync::Arc<Journal>,
    on_full: OnFull,
    current: AtomicU64,
    receipts: Receipts,
    /// The receipts that are open when the threads start.
    papers: Vec<Paper>,
    /// The newest time of any request under [`By::Lent`]. A settlement reads its time here.
    clock: AtomicU64,
    turn: AtomicU64,
    overrides: Option<Map>,
    /// What other calls do while the first conversion sleeps. std's mutex is no step of loom's.
    asleep: std::sync::Mutex<Vec<Act>>,
}

impl States for World {
    fn expires_at(&self, pair: SlotPair) -> u64 {
        expires(pair)
    }

    fn relation(&self, found: u64, key: u64) -> Relation {
        if !related(found, key) {
            return Relation::Other;
        }
        match found != key && self.version(key & TAG, named(key).0) == key >> TAG_BITS {
            true => Relation::Former,
            false => Relation::Same,
        }
    }

    fn adopt(&self, key: u64, pair: SlotPair) -> u64 {
        adopted(key, pair)
    }

    fn convert(&self, key: u64, _slot: &Slot, pair: SlotPair, now: u64) -> u64 {
        let asleep = core::mem::take(&mut *self.asleep.lock().expect("no panic"));
        asleep.into_iter().for_each(|act| {
            self.act(act, &mut None);
        });
        converted(key, pair, now)
    }

    fn owing(&self, key: u64, until: u64) -> u64 {
        named(key).1.owing(until)
    }

    fn is_current(&self, key: u64) -> bool {
        self.version(key & TAG, named(key).0) == key >> TAG_BITS
    }

    fn turn(&self, _tag: u64) -> Option<ReturnTurn<'_>> {
        ReturnTurn::take(&self.turn, 1, |_| false, || ())
    }

    fn hold(&self, pair: SlotPair, until: u64, now: u64, _exact: bool) -> Option<u64> {
        rules::held(pair, until, now)
    }
}

impl World {
    fn new(scene: &Scene, weak: bool) -> World {
        let Scene { on_full, slots, .. } = scene;
        let journal = std::sync::Arc::new(Journal::new(weak));
        let bucket =
            |(number, &pair): (usize, &SlotPair)| Bucket([Slot::new(number, pair, &journal)]);
        let buckets = slots.iter().enumerate().map(bucket).collect();
        let receipts = Receipts::new();
        let papers = scene
            .charges
            .iter()
            .map(|&(key, at, cost)| open(&receipts, 7, key, at, cost))
            .collect();
        let (current, clock, turn) = (AtomicU64::new(1), AtomicU64::new(0), AtomicU64::new(0));
        let overrides = scene.overrides.as_ref().map(|keys| Map::new(weak, keys));
        World {
            buckets,
            journal,
            on_full: *on_full,
            current,
            receipts,
            papers,
            clock,
            turn,
            overrides,
            asleep: std::sync::Mutex::new(scene.asleep.clone()),
        }
    }

    /// The number of the current version.
    fn current(&self, by: By) -> u64 {
        match by {
            By::Changing => self.current.load(Ordering::Acquire) % GENERATION,
            By::Fixed => 4,
            By::Window => 5,
            By::Lent => self.current.load(Ordering::Acquire).max(7),
            By::Staying => self.current.load(Ordering::Acquire).max(9),
        }
    }

    /// The number of the version that a key is under, like `Policies::stamp_for`.
    fn version(&self, tag: u64, by: By) -> u64 {
        let own = self.overrides.as_ref().and_then(|map| map.lookup(tag));
        own.unwrap_or_else(|| self.current(by))
    }

    fn candidates(&self, Key(tag, _, [first, second]): Key) -> Candidates<'_> {
        Candidates { first: &self.buckets[first], second: &self.buckets[second], tag }
    }

    fn word(&self, Key(tag, by, _): Key) -> u64 {
        self.version(tag, by) << TAG_BITS | tag
    }

    fn act(&self, act: Act, own: &mut Option<Paper>) -> Done {
        let from = self.journal.len();
        let mut done = Done {
            act,
            from,
            till: 0,
            key: 0,
            outcome: None,
            reset: false,
            settled: None,
            opened: None,
        };
        match act {
            Ask(key, now, cost) => (done.key, done.outcome) = self.ask(key, now, cost),
            Short(key, now, cost) => {
                done.act = Ask(key, now, cost);
                (done.key, done.outcome) = self.ask_fast(key, now, cost);
            }
            Reset(key, now) => (done.key, done.reset) = self.reset(key, now),
            // Generations of a policy only grow.
            SetVersion(number) => drop(self.current.fetch_max(number, Ordering::AcqRel)),
            Free(key, now) => self.free(key, now),
            Take(key, now, cost) => {
                done.act = Ask(key, now, cost);
                (done.key, done.outcome) = self.ask(key, now, cost);
                if done.admitted() == cost {
                    *own = Some(open(&self.receipts, done.key >> TAG_BITS, key, now, cost));
                    done.opened = *own;
                }
            }
            Own(Key(tag, ..), version) => self.overrides.as_ref().expect("a map").set(tag, version),
            End(Key(tag, ..)) => self.overrides.as_ref().expect("a map").clear(tag),
            Settle(n, now, cost) => {
                (done.key, done.settled) = self.settle(self.papers[n], now, cost)
            }
            SettleOwn(now, cost) => {
                if let Some(paper) = own.take() {
                    (done.key, done.settled) = self.settle(paper, now, cost);
                }
            }
        }
        done.till = self.journal.len();
        done
    }

    /// Repeats the request until the protocol decides, like `Table::request`.
    fn ask(&self, key: Key, now: u64, cost: u64) -> (u64, Option<RequestOutcome>) {
        if key.1 == By::Lent {
            self.clock.fetch_max(now, Ordering::AcqRel);
        }
        loop {
            let word = self.word(key);
            let rule = named(word).1;
            let step = |state| rule.step(state, now, cost);
            if let Ok(outcome) =
                protocol::request(self, &self.candidates(key), word, now, self.on_full, step)
            {
                return (word, Some(outcome));
            }
        }
    }

    /// Tries each fast path once and then the slow path, like `Table::decide`.
    fn ask_fast(&self, key: Key, now: u64, cost: u64) -> (u64, Option<RequestOutcome>) {
        let (word, candidates) = (self.word(key), self.candidates(key));
        let rule = named(word).1;
        if let Some(slot) = candidates.find(word) {
            let state = slot.state();
            let Step { verdict, next } = rule.step(state, now, cost);
            if slot.commit(word, state, next) {
                let state = next.unwrap_or(state);
                return (
                    word,
                    Some(RequestOutcome {
                        verdict,
                        state,
                        event: Event::Known,
                        until: 0,
                        retries: 0,
                    }),
                );
            }
        } else if let (Some(gap), Some(fresh)) = (rule.gap(), rule.step(0, now, cost).next) {
            let expired = |state| expires(SlotPair { key: word, state }) <= now;
            if let Some(event) = protocol::insert_among_own(&candidates, word, fresh, gap, expired)
            {
                let verdict = Verdict::Allowed;
                return (
                    word,
                    Some(RequestOutcome { verdict, state: fresh, event, until: 0, retries: 0 }),
                );
            }
        }
        self.ask(key, now, cost)
    }

    /// Settles a receipt at a cost below the estimate, like `Table::settle`.
    fn settle(&self, paper: Paper, now: u64, cost: u64) -> (u64, Option<Settled>) {
        let Paper { key, at, cost: estimate, number, .. } = paper;
        let (word, candidates) = (self.word(key), self.candidates(key));
        let version = word >> TAG_BITS;
        let first = self.receipts.close(check(version, key, at), number);
        let is_current = || self.current(key.1) == version;
        let time = || self.clock.load(Ordering::Acquire).max(now);
        let mut lower =
            |state| named(word).1.lowered(state, time(), (at, estimate), estimate - cost);
        let back = match first {
            true => give_back_under(self, &candidates, word, is_current, &time, &mut lower)
                .expect("too many tries"),
            false => 0,
        };
        (word, Some(Settled { paper, first, back }))
    }

    /// Brings each slot over, like `Table::free_versions`.
    fn free(&self, key: Key, now: u64) {
        fence(Ordering::SeqCst);
        for Bucket(slots) in &self.buckets {
            let slot = &slots[0];
            loop {
                let (pair, word) = (slot.pair(), self.word(key));
                if pair.is_vacant() {
                    match protocol::disturb(slot, pair, now) {
                        Ok(()) => break,
                        Err(_) => continue,
                    }
                }
                if pair.key == word || !related(pair.key, word) {
                    break;
                }
                let _ = protocol::first_to_expire(self, &self.candidates(key), word, now);
            }
        }
    }

    /// Resets a key, like `Table::reset_at`.
    fn reset(&self, key: Key, now: u64) -> (u64, bool) {
        loop {
            let (word, candidates) = (self.word(key), self.candidates(key));
            let Some(slot) = candidates.find(word) else {
                match protocol::first_to_expire(self, &candidates, word, now) {
                    Err(KeyChanged) => continue,
                    Ok(_) => return (word, false),
                }
            };
            let pair = slot.pair();
            if pair.key != word {
                continue;
            }
            let expires = expires(pair);
            let room = |n| {
                candidates
                    .slot(n)
                    .map(Slot::pair)
                    .is_some_and(|at| at.key != word && self.expires_at(at) <= now)
            };
            if expires <= now || !(0..super::candidates::CANDIDATES).any(room) {
                return (word, false);
            }
            if slot.swap(pair, SlotPair { key: 0, state: expires }).is_ok() {
                return (word, true);
            }
        }
    }
}

/// The slots at the beginning of a model, and the acts of its threads.
#[derive(Clone)]
struct Scene {
    on_full: OnFull,
    slots: Vec<SlotPair>,
    threads: std::sync::Arc<[Vec<Act>]>,
    /// Charges in the slots that have open receipts: key, time, cost.
    charges: Vec<(Key, u64, u64)>,
    /// The keys that have a policy of their own at the beginning, and its version. `None`: no key
    /// ever has one.
    overrides: Option<Vec<(Key, u64)>>,
    /// What other calls do while the first call that converts a key sleeps.
    asleep: Vec<Act>,
}

fn scene(on_full: OnFull, slots: &[SlotPair], threads: &[&[Act]]) -> Scene {
    let threads = threads.iter().map(|acts| acts.to_vec()).collect();
    let (slots, charges, asleep) = (slots.to_vec(), Vec::new(), Vec::new());
    Scene { on_full, slots, threads, charges, overrides: None, asleep }
}

/// Opens a receipt for a charge under a version.
fn open(receipts: &Receipts, version: u64, key: Key, at: u64, cost: u64) -> Paper {
    let check = check(version, key, at);
    Paper { key, at, cost, check, number: receipts.open(check) }
}

/// What distinguishes receipts with one place.
fn check(version: u64, Key(tag, ..): Key, at: u64) -> u64 {
    version << 24 | tag << 16 | at
}

/// One run of a scene.
struct Played {
    on_full: OnFull,
    weak: bool,
    changes: Vec<Change>,
    /// The slots after each number of changes.
    tables: Vec<Vec<SlotPair>>,
    threads: Vec<(ThreadId, Vec<Done>)>,
    /// The places of the map of overrides at the end.
    overrides: Vec<SlotPair>,
    /// Whether a key may come back to a former version.
    returns: bool,
    /// The version to which the last change was.
    newest: u64,
}

/// Explores a scene. loom tries another order only where an access conflicts with another thread's
/// last access. So it may not try that a thread which only reads runs after a thread that reads and
/// then swaps. Therefore each thread in turn is the one that starts first.
fn model<C>(name: &str, preemptions: usize, scene: Scene, check: C)
where
    C: Fn(&Played) + Copy + Send + Sync + 'static,
{
    let name = match scene.on_full {
        OnFull::Deny => format!("{name}:"),
        on_full => format!("{name}, {on_full:?}:"),
    };
    let (mut executions, start) = (0, std::time::Instant::now());
    for (first, weak) in (0..scene.threads.len()).flat_map(|first| [(first, false), (first, true)])
    {
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
    let world = Arc::new(World::new(scene, weak));
    let run = |world: &World, acts: &[Act]| {
        let mut own = None;
        (thread::current().id(), acts.iter().map(|&act| world.act(act, &mut own)).collect())
    };
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
    let overrides = world.overrides.as_ref().map_or_else(Vec::new, Map::end);
    let (returns, newest) = (scene.overrides.is_some(), world.current.load(Ordering::Acquire));
    Played { on_full: scene.on_full, weak, changes, tables, threads, overrides, returns, newest }
}

/// Whether a key that comes under the version of this key word may expire earlier, and so move to
/// another slot.
fn moves(key: u64) -> bool {
    matches!(key >> TAG_BITS, 6 | 8 | 12)
}

mod frees;
mod judge;
mod overrides;
mod receipts;
mod scenes;
mod stays;
