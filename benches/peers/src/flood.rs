//! Endless fresh keys, each asked for once.

use crate::keys::Random;
use crate::limit::BRIEF;
use crate::memory::resident;
use crate::ours::Ours;
use crate::peer;
use crate::report::{Goal, Report};
use std::time::{Duration, Instant};

/// Keys between two looks at the clock.
const LOOK: usize = 256;

/// How large a flood.
#[derive(Clone, Copy)]
pub struct Size {
    /// Of our table, in keys.
    pub capacity: usize,
    /// In turns.
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
    /// Nanoseconds a key, one figure a round.
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
        for _ in 0..keys / LOOK {
            for _ in 0..LOOK {
                seen.refused += usize::from(!admit(random.next()));
            }
            let now = Instant::now();
            seen.worst = seen.worst.max(now - last);
            last = now;
        }
        seen.rounds.push((last - start).as_nanos() as f64 / (keys / LOOK * LOOK) as f64);
        seen.grown_kib += resident().kib - resident_before;
    }
}

/// Both sides in turns, after as many keys as fill the table twice.
pub fn flood(report: &mut Report, size: Size) {
    let table = Ours::new(BRIEF, size.capacity);
    let default = peer::Default::new(BRIEF);
    let mut sides =
        [Side::new(|key| table.admit(&key.to_ne_bytes())), Side::new(|key| default.admit(&key.to_ne_bytes()))];
    for side in &mut sides {
        side.flood(2 * size.capacity);
        side.seen = Seen::default();
    }
    for _ in 0..size.rounds {
        for side in &mut sides {
            side.flood(size.keys_a_round);
        }
    }
    let keys = size.rounds * size.keys_a_round;
    report.head(&format!("flood: {keys} fresh keys, capacity {}, idle after 1 ms", size.capacity));
    let [ours, governor] = sides.map(|side| side.seen);
    report.faster("both read their clock : governor as it comes", &ours.rounds, &governor.rounds, Goal::AtLeast(3.0));
    report.figure("refused: ours", ours.refused as f64, "keys", Goal::None);
    report.figure("refused: governor", governor.refused as f64, "keys", Goal::None);
    report.figure("resident pages more after it: ours", ours.grown_kib as f64 / 4.0, "pages", Goal::AtMost(0.0));
    report.figure("resident pages more after it: governor", governor.grown_kib as f64 / 4.0, "pages", Goal::None);
    report.figure("worst 256 keys: ours", ours.worst.as_secs_f64() * 1e3, "ms", Goal::AtMost(5.0));
    report.figure("worst 256 keys: governor", governor.worst.as_secs_f64() * 1e3, "ms", Goal::None);
}
