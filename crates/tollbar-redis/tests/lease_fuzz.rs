//! Overwrites words of a node's memory at random. Every call must return, none may panic or leave
//! the memory. Its answers may be wrong then.
//!
//! `LEASE_ROUNDS=n` runs n times as many rounds. The seeds are fixed, and a failure names its
//! round.

#[path = "../../../tests/common/mod.rs"]
mod common;

use common::scribble::{Memory, Watchdog};
use common::{policy, Rng, SEC};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use tollbar_redis::lease::ask::Ask;
use tollbar_redis::lease::bucket::Grant;
use tollbar_redis::lease::{Client, Driver, Node, NodeError, Options};
use tollbar_redis::redis::Url;

/// The number of keys in use.
const KEYS: u64 = 300;
/// The header, ring and lines of a node, in words (src/lease/layout.rs). The first 29 words are the
/// part that never changes.
const FIXED: std::ops::Range<u64> = 0..29;
const HEADER: std::ops::Range<u64> = 29..192;
const RING: std::ops::Range<u64> = 512..512 + 8 + 64 * 16;
const LINES: std::ops::Range<u64> = RING.end..RING.end + 256 * 8;

fn rounds() -> u64 {
    10_000 * std::env::var("LEASE_ROUNDS").map_or(1, |n| n.parse::<u64>().unwrap())
}

fn attach(memory: &Memory) -> Result<Node, NodeError> {
    // SAFETY: the block outlives the nodes of a round, and only nodes and atomics touch it.
    unsafe { Node::attach_in(memory.start(), memory.bytes()) }
}

fn options() -> Options {
    Options { capacity: 256, ..Options::new(2) }
}

/// A node in use: with leases, exhausted keys, and messages that the client has not read.
fn used() -> (Memory, Vec<u64>) {
    let policy = policy("100/s burst 50");
    let memory = Memory::new(Node::bytes_for(&policy, &options()).unwrap() as usize);
    // SAFETY: as `attach`.
    let node =
        unsafe { Node::init_in(memory.start(), memory.bytes(), "scribbled", &policy, &options()) }
            .unwrap();
    let mut driver = Driver::new(256, 5).unwrap();
    every_call(&node, &mut driver, &mut Rng(7), 3000);
    let image = memory.image();
    (memory, image)
}

/// Damages some words. Most new values are plausible: other words of the node, and values near the
/// old one.
fn scribble(memory: &Memory, image: &[u64], rng: &mut Rng) -> String {
    let mut context = String::new();
    // Mostly one word, so that one damage does not hide another.
    let words = rng.pick(&[1, 1, 1, 2, 3, 10, 100, 2000]);
    let area = rng.below(8);
    for n in 0..words {
        let range = match if rng.one_in(4) { rng.below(8) } else { area } {
            // Only attaching reads this part, so it is damaged less often.
            0 if rng.one_in(8) => FIXED,
            0 | 1 => HEADER,
            2..=4 => RING,
            5 | 6 => LINES,
            _ => LINES.end..image.len() as u64,
        };
        let at = rng.within(range.start, range.end - 1);
        let old = memory.word(at).load(Ordering::Relaxed);
        let new = match rng.below(10) {
            0 => rng.next(),
            1 => 0,
            2 => rng.pick(&[1, u64::MAX, u64::MAX - 1, 1 << 63]),
            3 | 4 => old ^ 1 << rng.below(64),
            5 => old.wrapping_add(1),
            6 => old.wrapping_sub(rng.within(1, 70)),
            7 => old ^ rng.below(256) << rng.pick(&[0, 8, 16, 56]),
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

/// Makes every call of callers and of the driver, at random times and with random answers.
fn every_call(node: &Node, driver: &mut Driver, rng: &mut Rng, calls: u64) {
    let mut now = node.now() | 1 << 40;
    for _ in 0..calls {
        now += rng.skewed(40_000_000);
        let at = rng.pick(&[now, now, now, now, now - SEC, 0, u64::MAX]);
        let (key, cost) =
            (rng.below(KEYS).to_le_bytes(), rng.pick(&[1, 1, 1, 0, 2, 9, 1 << 32, u64::MAX]));
        let key = &key[..rng.pick(&[0, 8, 8, 8])];
        let _ = node.check_at(key, at, cost);
        let _ = node.peek_at(key, at, cost);
        if rng.one_in(16) {
            let _ = node.wait(key, cost, 0);
        }
        if rng.one_in(8) {
            driver.collect(node, now);
            let mut asked = 0;
            while asked < 600 && driver.ask(node, now).is_some() {
                asked += 1;
            }
            while driver.is_waiting() {
                let permits = rng.pick(&[0, 1, 5, 1 << 20, u64::MAX]);
                match rng.below(8) {
                    0 => driver.refused(node, rng.one_in(2), now),
                    1 => driver.dropped(node, now),
                    2 => driver.displaced(node, now),
                    _ => driver.answered(
                        node,
                        &Grant {
                            permits,
                            retry: 900,
                            tat: rng.next(),
                            now: rng.next(),
                            epoch: 1,
                            terms: None,
                            served: rng.pick(&[0, 1, 1 << 20, u64::MAX]),
                            life: rng.pick(&[0, 1_000, 1 << 40, u64::MAX]),
                            open: rng.one_in(2),
                            most: rng.pick(&[0, 1, 50, u64::MAX]),
                        },
                        now,
                    ),
                }
            }
        }
    }
    let _ = (
        node.stats(),
        node.circuit(now),
        node.capacity(),
        node.name().len(),
        node.terms().charge(3),
        Ask::default(),
    );
}

/// Ticks a client whose store does not exist.
fn ticks(node: &Node) {
    let url = Url::parse("unix:/nonexistent/redis.sock").unwrap();
    if let Ok(mut client) = Client::new(&url).and_then(|client| client.with(node)) {
        for _ in 0..3 {
            client.tick();
        }
        client.close(0);
    }
}

#[test]
fn whatever_is_in_its_memory_every_call_comes_back() {
    let (memory, image) = used();
    let dog = Watchdog::new();
    let (mut attached, mut refused) = (0, 0);
    for round in 0..rounds() {
        let mut rng = Rng(round);
        memory.restore(&image);
        let node = attach(&memory).unwrap();
        let mut driver = Driver::new(256, round).unwrap();
        let context = scribble(&memory, &image, &mut rng);
        dog.round(round, &context);
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            every_call(&node, &mut driver, &mut rng, 40);
            ticks(&node);
            // The same for a node that is attached to the damaged memory.
            match attach(&memory) {
                Ok(node) => {
                    attached += 1;
                    every_call(&node, &mut driver, &mut rng, 20);
                }
                Err(_) => refused += 1,
            }
        }));
        assert!(caught.is_ok(), "round {round}: a call panicked after {context}");
        assert!(
            memory.guards_are_whole(),
            "round {round}: written beyond the node's memory after {context}"
        );
    }
    println!("{attached} attached again, {refused} refused");
    assert!(attached > 0 && refused > 0);
}

/// Threads use the node while its words change, also between two reads of one call.
#[test]
fn whatever_changes_in_its_memory_meanwhile_every_call_comes_back() {
    let (memory, image) = used();
    let node = attach(&memory).unwrap();
    let (done, changes) = (AtomicU64::new(0), AtomicU64::new(0));
    let rounds = rounds() / 20;
    thread::scope(|scope| {
        let (memory, image, done, changes) = (&memory, &image, &done, &changes);
        scope.spawn(move || {
            let mut rng = Rng(99);
            while done.load(Ordering::Relaxed) < rounds
                || changes.load(Ordering::Relaxed) < 20 * rounds
            {
                scribble(memory, image, &mut rng);
                changes.fetch_add(1, Ordering::Relaxed);
                if rng.one_in(10) {
                    memory.restore(image);
                }
            }
        });
        let mut rng = Rng(98);
        let dog = Watchdog::new();
        let mut driver = Driver::new(256, 3).unwrap();
        for round in 0..rounds {
            dog.round(round, "whatever the other thread did");
            every_call(&node, &mut driver, &mut rng, 40);
            done.fetch_add(1, Ordering::Relaxed);
        }
        done.fetch_max(rounds, Ordering::Relaxed);
    });
    assert!(memory.guards_are_whole());
}

/// A ring with a damaged word loses messages for some seconds and then works again.
#[test]
fn a_damaged_ring_is_used_again() {
    let policy = policy("100/s burst 50");
    let memory = Memory::new(Node::bytes_for(&policy, &options()).unwrap() as usize);
    for at in [RING.start, RING.start + 1, RING.start + 8, RING.start + 8 + 16 * 5] {
        for value in [1, 5, 63, 64, 65, 1 << 40, 1 << 63, u64::MAX - 3, u64::MAX] {
            // SAFETY: as `attach`.
            let node = unsafe {
                Node::init_in(memory.start(), memory.bytes(), "scribbled", &policy, &options())
            }
            .unwrap();
            // Room for keys whose debts no store is told.
            let mut driver = Driver::new(8192, 5).unwrap();
            memory.word(at).store(value, Ordering::Relaxed);
            let mut now = node.now();
            // The reader may wait a second for each of the 64 places, as for a dead writer.
            for turn in 0..90_u64 {
                let _ = node.check_at(&turn.to_le_bytes(), now, 1);
                driver.collect(&node, now);
                now += SEC + 1;
                driver.collect(&node, now);
            }
            let (before, queue_full) = (driver.owed(), node.stats().queue_full);
            assert!(node.check_at(b"fresh", now, 1).is_allowed(), "word {at} = {value:#x}");
            driver.collect(&node, now);
            assert_eq!(
                (driver.owed(), node.stats().queue_full),
                (before + 1, queue_full),
                "word {at} = {value:#x}"
            );
        }
    }
}
