//! Overwrites words of a table's memory at random. Every call must return, without a panic and
//! without an access beyond the memory. Its answer may be wrong.
//!
//! `TABLE_ROUNDS=n` runs n times as many rounds. The seeds are fixed, and a failure names its
//! round.

use crate::common::scribble::{Memory, Watchdog};
use crate::common::{policy, Rng, DAY, MIN};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use tollbar::table::{OnFull, Options, PolicyId, Request, Table};
use tollbar::{Decision, Policy, Reason, Verdict};

const NOW: u64 = 400 * DAY;
/// Keys that are in the table.
const KEYS: u64 = 6_000;

/// The layout in words: see src/table/memory/layout.rs.
const HEADER: std::ops::Range<u64> = 0..160;
const RECORDS: std::ops::Range<u64> = 512..512 + 256 * 16;
const COUNTERS: std::ops::Range<u64> = 8704..8704 + 64 * 16;
const EXEMPT: std::ops::Range<u64> = 5632..5632 + 2048;
const SLOTS: u64 = 8192;

fn attach(memory: &Memory) -> Result<Table, tollbar::table::TableError> {
    // SAFETY: the block outlives the tables of a round, and only tables and atomics touch it.
    unsafe { Table::attach_in(memory.start(), memory.bytes()) }
}

/// Another view, whose threads may have credit.
fn attach_hot(memory: &Memory) -> Result<Table, tollbar::table::TableError> {
    attach(memory).and_then(|view| view.with_hot_keys(64))
}

const POLICIES: [&str; 9] = [
    "1/s burst 20",
    "10/min algo fixed-window",
    "10/min algo fixed-window count rejected anchor first",
    "1000000/s algo weighted-window",
    "10/s burst 7 borrow init 4",
    "9/min burst 30 algo interval",
    "10/s burst 4 algo pacer slack 6",
    "3/s burst 9 algo warm-up warm 1min cold 10",
    "0/s",
];
/// Tables of one policy whose keys have words beside their slots.
const RINGS: [&[&str]; 3] = [
    &["20/s algo sliding-window segments 4"],
    &["7/min algo sliding-window segments 10 mode strict"],
    &["3/s algo sliding-window segments 1 mode n"],
];
const LOGS: [&[&str]; 3] = [
    &["20/s algo sliding-log"],
    &["9/min algo sliding-log count rejected"],
    &["1/h algo sliding-log"],
];
const MODES: [OnFull; 4] = [OnFull::Deny, OnFull::Inherit, OnFull::Allow, OnFull::EvictNearest];

/// A table in use: keys of all policies, some under replaced versions; vacant slots; exempt keys.
fn used(memory: &Memory, texts: &[&str], on_full: OnFull) {
    let policies: Vec<Policy> = texts.iter().map(|text| policy(text)).collect();
    let wide = texts.len() == 1;
    let options = Options::new(1).with_seed(3).with_on_full(on_full);
    // SAFETY: as `attach`.
    let table =
        unsafe { Table::init_in(memory.start(), memory.bytes(), &options, &policies) }.unwrap();
    let mut rng = Rng(5);
    for change in 0..6 {
        for _ in 0..KEYS / 6 {
            let key = rng.below(KEYS);
            let id = PolicyId::new((key % texts.len() as u64) as u32);
            let _ = table.check_at(id, &key.to_le_bytes(), NOW, rng.within(1, 3));
            if rng.one_in(20) {
                table.reset_at(id, &key.to_le_bytes(), NOW).unwrap();
            }
        }
        if !wide {
            table
                .set_policy(
                    PolicyId::new(change % 3),
                    &policy(&format!("{}/h burst 30", 40 + change)),
                )
                .unwrap();
        }
        for key in 0..10u64 {
            table.exempt(PolicyId::FIRST, &(KEYS + key).to_le_bytes()).unwrap();
        }
    }
}

/// Damages some words. Most new values are plausible: other words of the table, and values near the
/// old one.
fn scribble(memory: &Memory, image: &[u64], rng: &mut Rng) -> String {
    let mut context = String::new();
    // Usually one word, so that the damage of another does not hide its effect.
    let words = rng.pick(&[1, 1, 1, 2, 3, 10, 100, 2000]);
    let area = rng.below(8);
    for n in 0..words {
        let range = match if rng.one_in(4) { rng.below(8) } else { area } {
            0 | 1 => HEADER,
            2 | 3 => RECORDS.start..RECORDS.start + 20 * 16,
            4 => RECORDS,
            5 => {
                rng.pick(&[(COUNTERS.start, COUNTERS.end), (EXEMPT.start, EXEMPT.end)]).into_range()
            }
            _ => SLOTS..image.len() as u64,
        };
        // The first twelve words are read once, when a table is attached. They are damaged less
        // often.
        let first = if range.start == 0 && !rng.one_in(8) { 12 } else { range.start };
        let at = rng.within(first, range.end - 1);
        let old = image[at as usize];
        let new = match rng.below(10) {
            0 => rng.next(),
            1 => 0,
            2 => rng.pick(&[1, u64::MAX, u64::MAX - 1, 1 << 63, NOW]),
            3 | 4 => old ^ 1 << rng.below(64),
            5 => old.wrapping_add(1),
            6 => old ^ rng.below(256) << rng.pick(&[0, 8, 16, 56]),
            // The same place of another record or slot.
            7 => image[(at ^ 16 << rng.below(5)) as usize % image.len()],
            8 => image[(at ^ 2 << rng.below(10)) as usize % image.len()],
            _ => image[rng.within(range.start, range.end - 1) as usize],
        };
        memory.word(at).store(new, Ordering::Relaxed);
        if n < 4 {
            context += &format!(" {at}: {old:#x} -> {new:#x};");
        }
    }
    format!("{words} words:{context}")
}

trait IntoRange {
    fn into_range(self) -> std::ops::Range<u64>;
}

impl IntoRange for (u64, u64) {
    fn into_range(self) -> std::ops::Range<u64> {
        self.0..self.1
    }
}

/// Every public call, for existing and unknown keys and policies, at any time and cost.
fn every_call(table: &Table, hot: &Table, rng: &mut Rng, keys: u64) {
    let none = Decision {
        verdict: Verdict::Never,
        reason: Reason::Burst,
        remaining: 0,
        retry_after: 0,
        reset_after: 0,
        bound: 0,
    };
    for _ in 0..keys {
        let number = rng.below(KEYS + 100);
        let key = number.to_le_bytes();
        let n = if rng.one_in(8) { rng.pick(&[9, 10, 127, 128, u64::MAX]) } else { number % 9 };
        let id = PolicyId::new(n as u32);
        let now = rng.pick(&[NOW, NOW, NOW + MIN, 0, NOW * 2, u64::MAX, u64::MAX - 1]);
        let cost = rng.pick(&[1, 1, 1, 0, 2, 9, 1 << 32, u64::MAX]);
        let _ = table.check_at(id, &key, now, cost);
        let _ = table.admit_at(id, &key, NOW, cost);
        let _ = table.peek_at(id, &key, now, cost);
        table.take_up_to_at(id, &key, now, cost);
        table.charge_at(id, &key, now, cost);
        let _ = table.reset_at(id, &key, now);
        let _ = (table.hash(id, &key), table.policy(id));
    }
    let bytes = [(); 40].map(|()| rng.below(KEYS).to_le_bytes());
    let requests = bytes.each_ref().map(|key| Request {
        policy: PolicyId::new(u32::from(key[0] % 10)),
        key,
        cost: 1,
    });
    table.admit_many_at(NOW, &requests, &mut [Verdict::Never; 40]);
    // Few keys, so that some have credit.
    for n in 0..keys {
        let key = rng.below(4).to_le_bytes();
        let _ = hot.admit_at(
            PolicyId::new(n as u32 % 2 * 3),
            &key,
            NOW + n,
            rng.pick(&[1, 1, 1, 0, 7, u64::MAX]),
        );
        let _ = hot.check_at(PolicyId::new(0), &key, NOW + n, 1);
        let _ = hot.peek_at(PolicyId::new(3), &key, NOW + n, 1);
    }
    table.check_many_at(NOW, &requests, &mut [none; 40]);
    let id = PolicyId::new(rng.below(10) as u32);
    let _ = table.exempt(id, &rng.below(KEYS).to_le_bytes());
    let _ = table.unexempt(id, &rng.below(KEYS).to_le_bytes());
    let _ = table.set_policy(id, &policy(rng.pick(&POLICIES)));
    if rng.one_in(16) {
        let _ = table.add_policy(&policy(rng.pick(&POLICIES)));
        // Until no record is free, and a sweep has to convert all slots.
        for n in 0..300 {
            let _ = table.set_policy(id, &policy(&format!("{}/s", n + 1)));
        }
    }
    table.sweep(rng.below(table.slots()), 200, NOW);
    if rng.one_in(4) {
        table.sweep(0, u64::MAX, NOW + MIN);
    }
    assert!(table.entries(NOW).count() as u64 <= table.slots());
    table.next_entry(u64::MAX, NOW);
    let _ = (table.stats(), table.policies(), table.now(), table.sync());
    if rng.one_in(16) {
        let _ = table.validate(NOW);
        if let Ok(copy) = Table::private(&Options::new(1).with_seed(3), &[policy("9/h")]) {
            let _ = copy.copy_from(table, NOW);
        }
        let _ = table.repair(NOW);
    }
}

fn rounds() -> u64 {
    crate::common::rounds(5_000)
        * std::env::var("TABLE_ROUNDS").map_or(1, |n| n.parse::<u64>().unwrap())
}

/// A block of memory for a table of these policies.
fn memory_for(texts: &[&str]) -> Memory {
    let policies: Vec<Policy> = texts.iter().map(|text| policy(text)).collect();
    Memory::new(Table::bytes_for(&Options::new(1), &policies).unwrap() as usize)
}

/// Damages tables of each kind in turn, and makes every call on each: in a view that was attached
/// before the damage and in one attached after it.
fn damaged(kinds: &[&[&str]]) {
    let dog = Watchdog::new();
    let tables: Vec<_> = kinds
        .iter()
        .flat_map(|texts| MODES.map(|on_full| (texts, on_full)))
        .map(|(texts, on_full)| {
            let memory = memory_for(texts);
            used(&memory, texts, on_full);
            let image = memory.image();
            (memory, image)
        })
        .collect();
    let (mut attached, mut refused) = (0, 0);
    for round in 0..rounds() {
        let mut rng = Rng(round);
        let (memory, image) = &tables[(round % tables.len() as u64) as usize];
        memory.restore(image);
        let (table, hot) = (attach(memory).unwrap(), attach_hot(memory).unwrap());
        // By then a random number of its policies is compiled.
        let keys = rng.below(20);
        for key in 0..keys {
            let _ = table.check_at(PolicyId::new(key as u32 % 9), &key.to_le_bytes(), NOW, 1);
        }
        let context = scribble(memory, image, &mut rng);
        dog.round(round, &context);
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            every_call(&table, &hot, &mut rng, 40);
            // And in a view that is attached to the damaged table.
            match attach(memory).and_then(|table| Ok((table, attach_hot(memory)?))) {
                Ok((table, hot)) => {
                    attached += 1;
                    every_call(&table, &hot, &mut rng, 20);
                }
                Err(_) => refused += 1,
            }
        }));
        assert!(caught.is_ok(), "round {round}: a call panicked after {context}");
        assert!(
            memory.guards_are_whole(),
            "round {round}: written beyond the table's memory after {context}"
        );
    }
    println!("{attached} attached again, {refused} refused");
    assert!(attached > 0 && refused > 0);
}

#[test]
fn whatever_is_in_its_memory_every_call_comes_back() {
    damaged(&[&POLICIES]);
}

#[test]
fn whatever_is_in_a_ring_every_call_comes_back() {
    damaged(&RINGS);
}

#[test]
fn whatever_is_in_a_log_every_call_comes_back() {
    damaged(&LOGS);
}

/// Threads use a table while its words change, also between two reads of one call.
fn damaged_meanwhile(texts: &[&str]) {
    let memory = memory_for(texts);
    used(&memory, texts, OnFull::Deny);
    let image = memory.image();
    let (table, hot) = (attach(&memory).unwrap(), attach_hot(&memory).unwrap());
    let done = AtomicU64::new(0);
    // Each round meets some ten mutations.
    let rounds = rounds() / 20;
    let mutations = thread::scope(|scope| {
        let (memory, image, done) = (&memory, &image, &done);
        let scribbler = scope.spawn(move || {
            let mut rng = Rng(99);
            let mut mutations = 0;
            while done.load(Ordering::Relaxed) < rounds || mutations < rounds * 20 {
                scribble(memory, image, &mut rng);
                mutations += 1;
                if rng.one_in(10) {
                    memory.restore(image);
                }
            }
            mutations
        });
        let mut rng = Rng(98);
        let dog = Watchdog::new();
        for round in 0..rounds {
            dog.round(round, "whatever the other thread did");
            every_call(&table, &hot, &mut rng, 40);
            done.fetch_add(1, Ordering::Relaxed);
        }
        scribbler.join().unwrap()
    });
    println!("{mutations} mutations in {rounds} rounds");
    assert!(memory.guards_are_whole());
}

#[test]
fn whatever_changes_in_its_memory_meanwhile_every_call_comes_back() {
    damaged_meanwhile(&POLICIES);
}

#[test]
fn whatever_changes_in_a_ring_meanwhile_every_call_comes_back() {
    damaged_meanwhile(RINGS[0]);
}

#[test]
fn whatever_changes_in_a_log_meanwhile_every_call_comes_back() {
    damaged_meanwhile(LOGS[0]);
}
