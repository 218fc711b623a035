//! The slot protocol under every interleaving that loom finds within a bound of preemptions.
//!
//! `RUSTFLAGS="--cfg loom" cargo test --release --target-dir target/loom --lib table::models`
//!
//! The code is that of `protocol`, `home` and `slot`. Buckets have one slot, so a key has two candidates, and the
//! rules are small ones of our own. Each swap is written into a journal, and the models check two things: what is
//! true of any play ([`Played::judge`]), and what is true of theirs.
//!
//! A thread that loom stops between two of its steps while the others run to their end is also what a killed thread
//! looks like to them: that every model ends says that nobody waits for anybody.

use super::home::{Home, TAG, TAG_BITS};
use super::protocol::{self, Again, Event, Kin, OnFull, Outcome, Terms};
use super::slot::{Bucket, Change, Journal, Pair, Slot};
use crate::algorithm::Step;
use crate::decision::Verdict;
use alloc::format;
use alloc::vec::Vec;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::sync::Arc;
use loom::thread::{self, ThreadId};
use std::println;
use std::sync::atomic::AtomicUsize;

// Rules.

/// A version's rule. Of both, a state of 0 is fresh.
#[derive(Clone, Copy)]
enum Rule {
    /// `burst` permits, one more each 10 ns. The state is when it will be full again, in `unit`s of a nanosecond.
    Refill { unit: u64, burst: u64 },
    /// `limit` permits in each 100 ns. The state is the window's end and how many have been taken in it: states differ
    /// that expire at one time, and a slot may come to have the same one twice.
    Window { limit: u64 },
}

const PERMIT: u64 = 10;
const PERIOD: u64 = 100;
/// A window's count is below it; and a unit of the versions whose states are finer than nanoseconds.
const FINE: u64 = 16;

/// The policy that a key is limited by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    /// Two permits; may change from version 1 to 2, whose states are in other units, to 3, which has a third permit.
    Changing,
    /// Two permits.
    Fixed,
    /// Two permits in a window.
    Window,
}

/// Of what policy a version is, and its rule.
fn version(number: u64) -> (By, Rule) {
    match number {
        1 => (By::Changing, Rule::Refill { unit: 1, burst: 2 }),
        2 => (By::Changing, Rule::Refill { unit: FINE, burst: 2 }),
        3 => (By::Changing, Rule::Refill { unit: 1, burst: 3 }),
        4 => (By::Fixed, Rule::Refill { unit: FINE, burst: 2 }),
        5 => (By::Window, Rule::Window { limit: 2 }),
        _ => panic!("a key word of no version: {number}"),
    }
}

fn named(key: u64) -> (By, Rule) {
    version(key >> TAG_BITS)
}

impl Rule {
    fn step(self, state: u64, now: u64, cost: u64) -> Step {
        if cost == 0 {
            return Step::ask();
        }
        let (next, allowed) = match self {
            Rule::Refill { unit, burst } => {
                let next = state.max(now * unit) + cost * PERMIT * unit;
                (next, next <= (now + burst * PERMIT) * unit)
            }
            Rule::Window { limit } => {
                let end = (now / PERIOD + 1) * PERIOD;
                let state = if state / FINE < end { end * FINE } else { state };
                (state + cost, state % FINE + cost <= limit)
            }
        };
        match allowed {
            true => Step::allow(next),
            false => Step::deny(),
        }
    }

    fn expires_at(self, state: u64) -> u64 {
        match self {
            Rule::Refill { unit, .. } => state.div_ceil(unit),
            Rule::Window { .. } => state / FINE,
        }
    }

    fn owing(self, until: u64) -> u64 {
        match self {
            Rule::Refill { unit, .. } => until * unit,
            Rule::Window { limit } => until.next_multiple_of(PERIOD) * FINE + limit,
        }
    }
}

fn expires(pair: Pair) -> u64 {
    match pair.key {
        0 => pair.state,
        key => named(key).1.expires_at(pair.state),
    }
}

/// Policies keep what is owed when they change: their rate stays the same.
fn adopted(key: u64, pair: Pair) -> u64 {
    named(key).1.owing(expires(pair))
}

/// Whether two key words are the same key's.
fn akin(one: u64, other: u64) -> bool {
    one != 0 && other != 0 && one & TAG == other & TAG && named(one).0 == named(other).0
}

// Scenes.

/// A key: its tag, its policy, and its buckets.
#[derive(Clone, Copy, Debug)]
struct Key(u64, By, [usize; 2]);

/// What a thread does, one after the other.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// Asks for permits: key, time, cost.
    Ask(Key, u64, u64),
    /// Lets a key begin again: key, time.
    Reset(Key, u64),
    /// Makes a version current.
    Change(u64),
}

use Act::{Ask, Change as SetVersion, Reset};

/// What came of it; between what numbers of changes.
#[derive(Clone, Copy, Debug)]
struct Done {
    act: Act,
    from: usize,
    till: usize,
    /// The key word that was asked for in the end.
    key: u64,
    outcome: Option<Outcome>,
    /// Whether a key was reset.
    reset: bool,
}

struct World {
    buckets: Vec<Bucket>,
    journal: std::sync::Arc<Journal>,
    on_full: OnFull,
    current: AtomicU64,
}

impl Terms for World {
    fn expires_at(&self, pair: Pair) -> u64 {
        expires(pair)
    }

    fn kin(&self, found: u64, key: u64) -> Kin {
        if !akin(found, key) {
            return Kin::Stranger;
        }
        match found != key && self.current(named(key).0) == key >> TAG_BITS {
            true => Kin::Former,
            false => Kin::Later,
        }
    }

    fn adopt(&self, key: u64, pair: Pair) -> u64 {
        adopted(key, pair)
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

    fn home(&self, Key(tag, _, [first, second]): Key) -> Home<'_> {
        Home { first: &self.buckets[first], second: &self.buckets[second], tag }
    }

    fn word(&self, Key(tag, by, _): Key) -> u64 {
        self.current(by) << TAG_BITS | tag
    }

    fn act(&self, act: Act) -> Done {
        let mut done = Done { act, from: self.journal.len(), till: 0, key: 0, outcome: None, reset: false };
        match act {
            Ask(key, now, cost) => (done.key, done.outcome) = self.ask(key, now, cost),
            Reset(key, now) => (done.key, done.reset) = self.reset(key, now),
            // Generations of a policy only grow.
            SetVersion(number) => drop(self.current.fetch_max(number, Ordering::AcqRel)),
        }
        done.till = self.journal.len();
        done
    }

    /// As `Table::request`.
    fn ask(&self, key: Key, now: u64, cost: u64) -> (u64, Option<Outcome>) {
        loop {
            let word = self.word(key);
            let rule = named(word).1;
            let step = |state| rule.step(state, now, cost);
            if let Ok(outcome) = protocol::request(self, &self.home(key), word, now, self.on_full, step) {
                return (word, Some(outcome));
            }
        }
    }

    /// As `Table::reset_at`.
    fn reset(&self, key: Key, now: u64) -> (u64, bool) {
        loop {
            let (word, home) = (self.word(key), self.home(key));
            let Some(slot) = home.find(word) else {
                match protocol::first_to_expire(self, &home, word, now) {
                    Err(Again) => continue,
                    Ok(_) => return (word, false),
                }
            };
            let pair = slot.pair();
            if pair.key != word {
                continue;
            }
            let expires = expires(pair);
            let room =
                |n| home.candidate(n).map(Slot::pair).is_some_and(|at| at.key != word && self.expires_at(at) <= now);
            if expires <= now || !(0..super::home::CANDIDATES).any(room) {
                return (word, false);
            }
            if slot.swap(pair, Pair { key: 0, state: expires }).is_ok() {
                return (word, true);
            }
        }
    }
}

/// What a scene begins with, and what its threads do.
#[derive(Clone)]
struct Scene {
    on_full: OnFull,
    slots: Vec<Pair>,
    threads: std::sync::Arc<[Vec<Act>]>,
}

fn scene(on_full: OnFull, slots: &[Pair], threads: &[&[Act]]) -> Scene {
    Scene { on_full, slots: slots.to_vec(), threads: threads.iter().map(|acts| acts.to_vec()).collect() }
}

/// What a scene came to.
struct Played {
    on_full: OnFull,
    weak: bool,
    changes: Vec<Change>,
    /// The slots after each number of changes.
    tables: Vec<Vec<Pair>>,
    threads: Vec<(ThreadId, Vec<Done>)>,
}

/// Explores a scene. Loom looks for another order only where an access meets the last one of another thread, so it can
/// miss that a thread which only reads could have come later than one that reads and then swaps. So each thread has
/// its turn to be the first, the one that runs until it is preempted.
fn model<C>(name: &str, preemptions: usize, scene: Scene, check: C)
where
    C: Fn(&Played) + Copy + Send + Sync + 'static,
{
    let name = match scene.on_full {
        OnFull::Deny => format!("{name}:"),
        on_full => format!("{name}, {on_full:?}:"),
    };
    let executions = std::sync::Arc::new(AtomicUsize::new(0));
    let start = std::time::Instant::now();
    for (first, weak) in (0..scene.threads.len()).flat_map(|first| [(first, false), (first, true)]) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = builder.preemption_bound.or(Some(preemptions));
        // Far more steps than any model takes: to reach it is to loop without an end.
        builder.max_branches = 3_000;
        let (count, scene) = (executions.clone(), scene.clone());
        builder.check(move || {
            count.fetch_add(1, core::sync::atomic::Ordering::Relaxed);
            let played = play(&scene, first, weak);
            played.judge();
            check(&played);
        });
    }
    let executions = executions.load(core::sync::atomic::Ordering::Relaxed);
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
    /// What is true of every play: no slot's time falls, no key is ever in two slots, each charge is in the key's
    /// state and each swap is one request's, nobody's debt is forgotten, and a request that changed nothing could
    /// have been made at one instant while it ran, with the same answer.
    fn judge(&self) {
        for (n, Change { old, new, .. }) in self.changes.iter().enumerate() {
            assert!(expires(*new) >= expires(*old), "a slot's time fell: {:?}", self.changes);
            let table = &self.tables[n + 1];
            let places = table.iter().filter(|pair| akin(pair.key, new.key)).count();
            assert!(places <= 1, "a key has two slots: {:?}", self.changes);
        }
        for (thread, acts) in &self.threads {
            for done in acts {
                let changes = self.changes[done.from..done.till].iter();
                let mut own: Vec<_> = changes.filter(|change| change.thread == *thread).collect();
                let writes = match done.act {
                    Ask(_, _, cost) => {
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
                assert!(own.iter().all(|change| change.brings_over(done.key)), "whose? {:?}", self.changes);
            }
        }
    }

    /// A request's swap did what the request was told.
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
                _ => panic!("a debtor's slot was given away: {change:?}"),
            }
        };
        assert_eq!(new.key, done.key);
        assert_eq!((Some(new.state), outcome.event), expected, "{change:?}");
        assert_eq!(new.state, outcome.state);
    }

    /// At one instant while it ran, this was the answer.
    fn justify(&self, done: &Done) {
        // A look in no order with the swaps may be one at an instant before it.
        let from = if self.weak { 0 } else { done.from };
        let tables = &self.tables[from..=done.till];
        let justified = match done.act {
            Ask(key, now, cost) => tables.iter().any(|table| self.answers(table, done, key, now, cost)),
            Reset(_, now) => tables.iter().any(|table| {
                let own = table.iter().find(|pair| akin(pair.key, done.key));
                // Absent, or fresh again, or there is no other place.
                own.map_or(true, |own| expires(*own) <= now) || table.iter().all(|pair| expires(*pair) > now)
            }),
            SetVersion(_) => true,
        };
        assert!(justified, "never the right answer: {done:?} in {tables:?}");
    }

    fn answers(&self, table: &[Pair], done: &Done, Key(_, _, homes): Key, now: u64, cost: u64) -> bool {
        let Some(outcome) = done.outcome else { return false };
        let rule = named(done.key).1;
        let step = |state| rule.step(state, now, cost);
        if let Some(own) = table.iter().find(|pair| akin(pair.key, done.key)) {
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

    /// A key's state in the end.
    fn state(&self, Key(tag, by, _): Key) -> Option<u64> {
        let own = self.last().iter().find(|pair| pair.key != 0 && pair.key & TAG == tag && named(pair.key).0 == by);
        own.map(|pair| pair.state)
    }

    /// Permits of a key that were given.
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
    /// Whether it only brought `key` from a former version of its policy to a later one. If it has expired there, it
    /// loses its slot.
    fn brings_over(&self, key: u64) -> bool {
        let Change { old, new, .. } = *self;
        let expected = if new.key == 0 { expires(old) } else { adopted(new.key, old) };
        akin(old.key, key)
            && old.key < key
            && old.key != new.key
            && (new.key == 0 || akin(new.key, key))
            && new.state == expected
    }
}

// The keys of the scenes. The first two may be in buckets 0 and 1, in that order; bucket 2 is elsewhere.

const K: Key = Key(1, By::Changing, [0, 1]);
const N: Key = Key(2, By::Fixed, [0, 1]);
/// In the other order.
const M: Key = Key(3, By::Fixed, [1, 0]);
/// Has only one candidate in common with K.
const L: Key = Key(4, By::Fixed, [0, 2]);
/// Has K's tag, and is another policy's.
const NAMESAKE: Key = Key(1, By::Fixed, [0, 1]);
/// Windows.
const W: Key = Key(5, By::Window, [0, 1]);
const V: Key = Key(6, By::Window, [0, 1]);

const EMPTY: Pair = Pair { key: 0, state: 0 };

/// A slot of a version whose states are nanoseconds.
const fn held(Key(tag, ..): Key, state: u64) -> Pair {
    Pair { key: 1 << TAG_BITS | tag, state }
}

/// Of some other key that is not asked for.
const fn other(tag: u64, until: u64) -> Pair {
    Pair { key: 1 << TAG_BITS | (0x80 + tag), state: until }
}

const fn windowed(Key(tag, ..): Key, end: u64, taken: u64) -> Pair {
    Pair { key: 5 << TAG_BITS | tag, state: end * FINE + taken }
}

use OnFull::{Allow, Deny, EvictNearest, Inherit};

/// Two or three threads put one key into a table: it has one slot then, and all of them are charged there.
#[test]
fn one_key_is_put_in_once() {
    let once: &[Act] = &[Ask(K, 100, 1)];
    let sum = |played: &Played| {
        assert_eq!((played.admitted(K), played.state(K)), (2, Some(120)));
        assert_eq!(played.changes.len(), 2);
    };
    model("one key, empty, 3×1", 3, scene(Deny, &[EMPTY, EMPTY], &[once, once, once]), sum);
    model("one key, empty, 2 and 1", 3, scene(Deny, &[EMPTY, EMPTY], &[&[Ask(K, 100, 1), Ask(K, 100, 1)], once]), sum);
    model("one key, expired at once", 3, scene(Deny, &[other(0, 50), other(1, 50)], &[once, once]), sum);
    model("one key, expired", 3, scene(Deny, &[other(0, 50), other(1, 30)], &[once, once]), sum);
    // To one of them only the second has expired.
    let late: &[Act] = &[Ask(K, 40, 1)];
    model("one key, late clock", 3, scene(Deny, &[other(0, 50), other(1, 30)], &[once, late]), |played| {
        assert_eq!(played.state(K), Some(110));
        assert_eq!(played.last()[0], other(0, 50));
    });
}

/// A key comes back while its slot is given to another: neither loses a charge.
#[test]
fn a_key_comes_back_while_it_is_replaced() {
    let threads: &[&[Act]] = &[&[Ask(K, 100, 1), Ask(K, 100, 1)], &[Ask(N, 100, 1)]];
    model("replaced, room", 3, scene(Deny, &[held(K, 50), other(0, 60)], threads), |played| {
        assert_eq!((played.admitted(K), played.state(K)), (2, Some(120)));
        assert_eq!((played.admitted(N), played.state(N)), (1, Some(110 * FINE)));
    });
    model("replaced, no room", 3, scene(Deny, &[held(K, 50), other(0, 200)], threads), |played| {
        // Whoever has the slot has all of its charges.
        let (k, n) = (played.admitted(K), played.admitted(N));
        assert!((k, n) == (2, 0) || (k, n) == (0, 1));
        assert_eq!(played.count(Event::Refused) as u64, 3 - k - n);
    });
}

/// Two put a key into a table while a third takes the place that it would have had.
#[test]
fn a_third_takes_the_place() {
    for (name, slots, third) in [
        ("a third, empty", [EMPTY, EMPTY], N),
        ("a third, empty, other order", [EMPTY, EMPTY], M),
        ("a third, first", [other(0, 20), other(1, 30)], N),
        ("a third, second", [other(0, 30), other(1, 20)], N),
    ] {
        let threads: &[&[Act]] = &[&[Ask(K, 100, 1)], &[Ask(K, 100, 1)], &[Ask(third, 100, 1)]];
        model(name, 3, scene(Deny, &slots, threads), move |played| {
            assert_eq!((played.admitted(K), played.state(K)), (2, Some(120)));
            assert_eq!((played.admitted(third), played.state(third)), (1, Some(110 * FINE)));
        });
    }
}

/// A key that was seen in a slot has left it, and is back: a swap for what was seen either is right or fails.
#[test]
fn a_slot_comes_back_to_a_straggler() {
    // N was there at 60 and has expired at 100.
    let there_and_back: &[Act] = &[Ask(N, 60, 1), Ask(K, 100, 1)];
    let straggler: &[Act] = &[Ask(K, 100, 1)];
    for late in [50, 100] {
        let straggler: &[Act] = if late == 100 { straggler } else { &[Ask(K, 50, 1)] };
        let scene = scene(Deny, &[held(K, 50), other(0, 300)], &[there_and_back, straggler]);
        model(&format!("straggler at {late}"), 4, scene, move |played| {
            assert!(played.admitted(K) >= 1 && (late == 50 || played.admitted(K) == 2 || played.admitted(N) == 0));
            assert_eq!(played.last()[1], other(0, 300));
        });
    }
    // V leaves the very words behind that it has found, but for the key; then W is back with those that it had.
    let there_and_back: &[Act] = &[Ask(V, 150, 1), Ask(W, 150, 1)];
    let straggler: &[Act] = &[Ask(W, 150, 1)];
    let full = [windowed(W, 200, 1), other(0, 300)];
    model("straggler, same words", 4, scene(EvictNearest, &full, &[there_and_back, straggler]), |played| {
        assert!(played.admitted(V) == 1 && played.state(W).is_some());
    });
    let threads: &[&[Act]] = &[&[Ask(V, 150, 1)], &[Ask(W, 150, 1), Ask(W, 150, 1)], &[Ask(W, 150, 1)]];
    model("straggler, three threads", 3, scene(EvictNearest, &full, threads), |_| ());
}

/// Newcomers where nothing has expired.
#[test]
fn newcomers_meet_in_a_full_table() {
    let keys: &[&[Act]] = &[&[Ask(K, 100, 1)], &[Ask(N, 100, 1)]];
    let one: &[&[Act]] = &[&[Ask(K, 100, 1)], &[Ask(K, 100, 1)]];
    let three: &[&[Act]] = &[&[Ask(K, 100, 1)], &[Ask(K, 100, 1)], &[Ask(N, 100, 1)]];
    let ties = [other(0, 110), other(1, 110)];
    let near = [other(0, 300), other(1, 110)];
    let far = [other(0, 300), other(1, 200)];
    for slots in [&ties, &near, &far] {
        for on_full in [Deny, Allow] {
            model("full", 3, scene(on_full, slots, keys), move |played| {
                assert_eq!(played.changes.len(), 0);
                let event = if on_full == Deny { Event::Refused } else { Event::Unremembered };
                assert_eq!(played.count(event), 2);
            });
        }
    }
    // Of a debt of one permit another can be had.
    model("full, two keys", 3, scene(Inherit, &ties, keys), |played| {
        assert_eq!((played.admitted(K), played.admitted(N)), (1, 1));
        assert_eq!((played.state(K), played.state(N)).0.is_some(), played.state(N).is_some());
    });
    model("full, two keys, near", 3, scene(Inherit, &near, keys), |played| {
        // The second would inherit two permits.
        assert_eq!(played.admitted(K) + played.admitted(N), 1);
    });
    model("full, two keys, far", 3, scene(Inherit, &far, keys), |played| {
        assert_eq!(played.changes.len(), 0);
    });
    model("full, one key", 3, scene(Inherit, &ties, one), |played| {
        assert_eq!((played.admitted(K), played.state(K)), (1, Some(120)));
    });
    model("full, three threads", 2, scene(Inherit, &ties, three), |played| {
        assert_eq!((played.admitted(K), played.admitted(N)), (1, 1));
    });
    for slots in [&ties, &near, &far] {
        model("full, two keys", 3, scene(EvictNearest, slots, keys), |played| {
            assert_eq!((played.admitted(K), played.admitted(N)), (1, 1));
        });
        model("full, one key", 3, scene(EvictNearest, slots, one), |played| {
            assert!(played.admitted(K) >= 1 && played.state(K) >= Some(110));
        });
        model("full, three threads", 2, scene(EvictNearest, slots, three), |played| {
            assert!(played.admitted(K) >= 1 && played.admitted(N) == 1);
        });
    }
}

/// A thread has found a place for a key and sleeps. If a neighbour makes another place look earlier meanwhile, the key
/// gets a second slot there.
#[test]
fn a_place_stays_the_first_to_expire() {
    let threads: &[&[Act]] = &[&[Ask(L, 100, 1), Ask(K, 100, 1)], &[Ask(K, 100, 1)]];
    for (name, slots) in [
        ("neighbour", [other(0, 300), other(1, 250), other(2, 400)]),
        // K may have what is owed and one more; so may L.
        ("neighbour, near", [other(0, 110), other(1, 108), other(2, 120)]),
    ] {
        for on_full in [EvictNearest, Inherit] {
            model(name, 3, scene(on_full, &slots, threads), |played| assert!(played.count(Event::Refused) == 0));
        }
    }
    let threads: &[&[Act]] = &[&[Reset(L, 100), Ask(K, 100, 1)], &[Ask(K, 100, 1)]];
    let debtor = Pair { key: 4 << TAG_BITS | L.0, state: 300 * FINE };
    model("neighbour is reset", 3, scene(Deny, &[debtor, other(1, 50), EMPTY], threads), |played| {
        assert_eq!((played.admitted(K), played.state(K)), (2, Some(120)));
        assert_eq!(played.last()[0], Pair { key: 0, state: 300 });
    });
}

/// A slot goes to a key whose states are in other units while it is looked at: read as one pair that never was, it
/// would seem to expire late, and the key would get a second slot.
#[test]
fn a_slot_is_looked_at_in_one_instant() {
    let threads: &[&[Act]] = &[&[Ask(L, 25, 1), Ask(K, 50, 1)], &[Ask(K, 50, 1)]];
    model("torn look", 3, scene(Deny, &[other(0, 20), other(1, 40), other(2, 90)], threads), |played| {
        assert_eq!((played.admitted(K), played.state(K)), (2, Some(70)));
    });
    let threads: &[&[Act]] = &[&[Ask(L, 25, 1)], &[Ask(K, 50, 1)], &[Ask(K, 50, 1)]];
    model("torn look, 3×1", 3, scene(Deny, &[other(0, 20), other(1, 40), other(2, 90)], threads), |played| {
        assert_eq!((played.admitted(K), played.state(K)), (2, Some(70)));
    });
}

/// A refusal is never made from another key's state.
#[test]
fn a_refusal_is_the_keys_own() {
    // K has all its permits; N takes all of its own in K's slot.
    let threads: &[&[Act]] = &[&[Ask(K, 100, 1)], &[Ask(N, 100, 2)]];
    model("refusal", 4, scene(Deny, &[held(K, 50), other(0, 60)], threads), |played| {
        assert_eq!((played.admitted(K), played.admitted(N)), (1, 2));
    });
    model("refusal, no room", 4, scene(Deny, &[held(K, 50), other(0, 400)], threads), |played| {
        assert_eq!(played.admitted(K) == 1, played.admitted(N) == 0);
        assert_eq!(played.count(Event::Refused), 1);
    });
    // K itself is refused until 120, and by then its slot is another's.
    let threads: &[&[Act]] = &[&[Ask(K, 100, 1), Ask(K, 120, 1)], &[Ask(N, 120, 2)]];
    model("refusal, then admitted", 4, scene(Deny, &[held(K, 120), EMPTY], threads), |played| {
        assert_eq!((played.admitted(K), played.admitted(N)), (1, 2));
    });
    let threads: &[&[Act]] = &[&[Ask(W, 150, 1)], &[Ask(V, 150, 1), Ask(V, 150, 1)]];
    model("refusal, evicted", 4, scene(EvictNearest, &[windowed(W, 200, 0), other(0, 300)], threads), |played| {
        assert!(played.admitted(W) == 1);
    });
}

/// A reset beside the same key's requests, another's, and another reset.
#[test]
fn a_reset_leaves_no_second_slot() {
    let debtor = [held(K, 120), EMPTY];
    let threads: &[&[Act]] = &[&[Reset(K, 100), Ask(K, 100, 1)], &[Ask(K, 100, 1)]];
    model("reset", 4, scene(Deny, &debtor, threads), |played| {
        let k = played.admitted(K);
        assert!((1..=2).contains(&k));
        assert_eq!(played.last(), [Pair { key: 0, state: 120 }, held(K, 100 + k * PERMIT)]);
    });
    // It has credit while it is reset.
    model("reset, credit", 4, scene(Deny, &[held(K, 110), EMPTY], threads), |played| {
        assert!(played.admitted(K) == 2);
    });
    let threads: &[&[Act]] = &[&[Reset(K, 100), Ask(K, 100, 1)], &[Ask(N, 100, 1)]];
    model("reset, another", 4, scene(Deny, &debtor, threads), |played| {
        // Who has the last place.
        let (k, n) = (played.admitted(K), played.admitted(N));
        assert!(n == 1 || k == 1, "{k} {n}");
    });
    model("reset, another", 4, scene(EvictNearest, &debtor, threads), |played| {
        assert_eq!(played.admitted(N), 1);
    });
    model("reset, another", 4, scene(Inherit, &debtor, threads), |played| assert_eq!(played.admitted(N), 1));
    let threads: &[&[Act]] = &[&[Reset(K, 100)], &[Reset(K, 100)], &[Ask(K, 100, 1)]];
    model("resets", 3, scene(Deny, &debtor, threads), |played| {
        assert!(played.changes.len() <= 2 && played.last()[0] == Pair { key: 0, state: 120 });
    });
    let threads: &[&[Act]] = &[&[Reset(K, 100)], &[Ask(K, 100, 1)], &[Ask(K, 100, 1)]];
    model("reset, 3×1", 3, scene(Deny, &debtor, threads), |played| {
        assert_eq!(played.last()[0], Pair { key: 0, state: 120 });
    });
    model(
        "reset, late clock",
        3,
        scene(Deny, &[held(K, 110), other(0, 50)], &[&[Reset(K, 100), Ask(K, 100, 1)], &[Ask(K, 120, 1)]]),
        |_| (),
    );
}

/// A policy changes while its keys are asked for: a key stays one, and what it owes stays.
#[test]
fn a_policy_changes() {
    let sum = |played: &Played| {
        // All versions have one rate, so it is seen in the end what has been charged.
        let slot = played.last().iter().find(|pair| akin(pair.key, 1 << TAG_BITS | K.0)).copied().unwrap();
        assert_eq!(expires(slot), 100 + PERMIT * played.admitted(K));
    };
    let threads: &[&[Act]] = &[&[SetVersion(2), Ask(K, 100, 1)], &[Ask(K, 100, 1), Ask(K, 100, 1)]];
    model("change, not there yet", 4, scene(Deny, &[EMPTY, EMPTY], threads), move |played| {
        assert_eq!(played.admitted(K), 2);
        sum(played);
    });
    model("change, expired", 4, scene(Deny, &[other(0, 50), held(K, 60)], threads), move |played| {
        assert_eq!(played.admitted(K), 2);
        sum(played);
    });
    model("change, owing", 4, scene(Deny, &[EMPTY, held(K, 110)], threads), |played| {
        assert_eq!(played.admitted(K), 1);
        assert_eq!(expires(played.last()[1]), 120);
    });
    let threads: &[&[Act]] = &[&[SetVersion(2), Ask(K, 100, 1)], &[SetVersion(3), Ask(K, 100, 1)], &[Ask(K, 100, 1)]];
    model("change, twice", 2, scene(Deny, &[EMPTY, EMPTY], threads), move |played| {
        assert!((2..=3).contains(&played.admitted(K)));
        sum(played);
    });
    // Its slot is given to another while it is brought over.
    let threads: &[&[Act]] = &[&[SetVersion(2), Ask(K, 100, 1)], &[Ask(N, 100, 1)]];
    model("change, replaced", 4, scene(Deny, &[held(K, 50), other(0, 60)], threads), |played| {
        assert_eq!((played.admitted(K), played.admitted(N)), (1, 1));
    });
    // It has expired, is only looked at, and so loses its slot: which must not look earlier to N for that.
    let threads: &[&[Act]] = &[&[SetVersion(2), Ask(K, 100, 0), Ask(N, 100, 1)], &[Ask(N, 100, 1)]];
    model("change, vacated", 4, scene(Deny, &[held(K, 60), other(0, 50)], threads), |played| {
        assert_eq!((played.admitted(N), played.state(N)), (2, Some(120 * FINE)));
    });
    let threads: &[&[Act]] = &[&[SetVersion(2), Ask(K, 100, 1)], &[Ask(K, 100, 1)], &[Ask(N, 100, 1)]];
    model("change, 3×1", 3, scene(Deny, &[other(0, 20), other(1, 30)], threads), |played| {
        assert_eq!((played.admitted(K), played.admitted(N)), (2, 1));
    });
    let threads: &[&[Act]] = &[&[SetVersion(2), Ask(K, 100, 1)], &[Reset(K, 100), Ask(K, 100, 1)]];
    model("change, reset", 4, scene(Deny, &[held(K, 120), EMPTY], threads), |_| ());
    // Another policy's key of the same tag is another key.
    let threads: &[&[Act]] = &[&[SetVersion(2), Ask(K, 100, 2)], &[Ask(NAMESAKE, 100, 2)]];
    model("namesake", 4, scene(Deny, &[EMPTY, EMPTY], threads), |played| {
        assert_eq!((played.admitted(K), played.admitted(NAMESAKE)), (2, 2));
    });
}
