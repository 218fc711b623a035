//! Endless fresh keys, each asked for once.

use crate::book::{Book, Group, Row};
use crate::keys::Random;
use crate::limit::BRIEF;
use crate::memory::resident;
use crate::ours::Ours;
use crate::peers::governor;
use crate::who;
use std::time::{Duration, Instant};

/// Keys between two readings of the clock.
const BLOCK: usize = 256;

/// How large a flood.
#[derive(Clone, Copy)]
pub struct Size {
    /// The capacity of our table, in keys.
    pub capacity: usize,
    /// The turns of each side.
    pub rounds: usize,
    pub keys_a_round: usize,
}

struct Side<'a> {
    admit: Box<dyn FnMut(u64) -> bool + 'a>,
    random: Random,
    seen: Seen,
}

#[derive(Default)]
struct Seen {
    refused: usize,
    worst: Duration,
    grown_kib: i64,
    /// Nanoseconds per key, one figure for each round.
    rounds: Vec<f64>,
}

impl<'a> Side<'a> {
    fn new(admit: impl FnMut(u64) -> bool + 'a) -> Side<'a> {
        Side { admit: Box::new(admit), random: Random(1), seen: Seen::default() }
    }

    fn flood(&mut self, keys: usize) {
        let Side { admit, random, seen } = self;
        let resident_before = resident().kib;
        let start = Instant::now();
        let mut last = start;
        for _ in 0..keys / BLOCK {
            for _ in 0..BLOCK {
                seen.refused += usize::from(!admit(random.next()));
            }
            let now = Instant::now();
            seen.worst = seen.worst.max(now - last);
            last = now;
        }
        seen.rounds.push((last - start).as_nanos() as f64 / (keys / BLOCK * BLOCK) as f64);
        seen.grown_kib += resident().kib - resident_before;
    }
}

/// Floods both sides in turns, after twice as many keys as the table has slots.
pub fn flood(book: &mut Book, size: Size) {
    let table = Ours::new(BRIEF, size.capacity);
    let default = governor::Default::new(BRIEF);
    let mut sides = [
        Side::new(|key| table.admit(&key.to_ne_bytes())),
        Side::new(|key| default.admit(&key.to_ne_bytes())),
    ];
    for side in &mut sides {
        side.flood(2 * size.capacity);
        side.seen = Seen::default();
    }
    for _ in 0..size.rounds {
        for side in &mut sides {
            side.flood(size.keys_a_round);
        }
    }
    let [ours, governor] = sides.map(|side| side.seen);
    for (who, seen) in [(who::TABLE, &ours), (who::GOVERNOR, &governor)] {
        book.figure(TOPIC, "refused", Some(who), seen.refused as f64, "keys");
        book.figure(TOPIC, GREW, Some(who), seen.grown_kib as f64 / 4.0, "pages");
        book.figure(TOPIC, WORST, Some(who), seen.worst.as_secs_f64() * 1e3, "ms");
    }
    let rows = [(who::TABLE, ours), (who::GOVERNOR, governor)];
    let rows = rows.into_iter().map(|(who, seen)| Row { who, rounds: seen.rounds }).collect();
    book.put(Group { work: WORK.into(), threads: 1, rows });
}

/// The title of the flood's group.
pub const WORK: &str = "fresh keys without end";
/// The topic of the flood's figures.
pub const TOPIC: &str = "fresh keys without end";
pub const GREW: &str = "growth of resident memory";
pub const WORST: &str = "the slowest 256 keys";
