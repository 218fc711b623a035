//! The rows of the table: decisions about keys that are all known, by sets of keys and orders.

use crate::floor::Floor;
use crate::keys::{key, Key, Order, Spread, BATCH};
use crate::limit::{Limit, OPEN, SHUT};
use crate::measure::{fill, measure, Amount, Contender};
use crate::memory::weighed;
use crate::ours::Ours;
use crate::peer::{self, set_now, Tuned};
use crate::report::{Goal, Report};
use core::arch::x86_64::_mm_lfence;

/// What is asked of an order: against governor as it comes, against its fastest, of a batch against its fastest,
/// and of a batch against the floor.
pub struct Asked {
    pub spread: Spread,
    pub length: usize,
    pub default: Goal,
    pub fastest: Goal,
    pub batch: Goal,
    pub floor: Goal,
}

/// A set of keys in each of the tables.
pub struct Set {
    keys: usize,
    name: String,
    ours: Ours,
    default: peer::Default,
    tuned: Tuned<peer::Fastest>,
    floor: Floor,
}

impl Set {
    /// With every key inserted. `weigh`: says what memory that took.
    pub fn new(report: &mut Report, keys: usize, limit: Limit, weigh: bool) -> Set {
        let name = human(keys);
        let start = Ours::now();
        set_now(start);
        let (ours, ours_grown) = weighed(|| {
            let ours = Ours::new(limit, keys);
            let inserted = fill(keys, |key: &Key<8>| ours.admit_at(key, start));
            assert!(inserted > 0.9, "ours took {inserted} of {keys} keys");
            ours
        });
        let (default, default_grown) = weighed(|| {
            let default = peer::Default::new(limit);
            assert_eq!(fill(keys, |key| default.admit(key)), 1.0, "governor");
            default
        });
        let (tuned, tuned_grown) = weighed(|| {
            let tuned = Tuned::new(limit, keys, peer::SHARDS);
            assert_eq!(fill(keys, |key| tuned.admit(key)), 1.0, "governor, tuned");
            tuned
        });
        if weigh {
            println!();
            let labels = ["ours, 80 % full", "governor as it comes", "governor's fastest, room made before"];
            for (label, grown) in labels.iter().zip([ours_grown, default_grown, tuned_grown]) {
                let bytes = grown.a_key(keys);
                report.figure(&format!("{name} keys, resident bytes a key: {label}"), bytes, "B", Goal::None);
            }
        }
        let floor = Floor::new(ours.bytes());
        // The limit decides what is measured: nearly all pass, or nearly none.
        let again = fill(keys.min(10_000), |key: &Key<8>| ours.admit_at(key, start + 1));
        let batch = ours.admit_many_at::<8>(&std::array::from_fn(key), start + 1) as f64 / BATCH as f64;
        for passed in [again, batch] {
            assert!(if limit.burst == 1 { passed < 0.05 } else { passed > 0.95 }, "{passed} of the known keys passed");
        }
        Set { keys, name, ours, default, tuned, floor }
    }

    /// An order of the keys, by one thread and by two.
    pub fn row(&self, report: &mut Report, asked: &Asked, amount: Amount) {
        let order = Order::<8>::new(self.keys, asked.spread, asked.length);
        let spread = match asked.spread {
            Spread::Uniform => "uniform",
            Spread::Zipf => "zipf(1.0)",
        };
        for threads in [1, 2] {
            let mut all = [
                Contender::singles(&order, |key, _| self.ours.admit(key)),
                Contender::singles(&order, |key, now| self.ours.admit_at(key, now)),
                Contender::batches(&order, |keys, now| self.ours.admit_many_at(keys, now)),
                Contender::batches(&order, |keys, now| self.ours.check_many_at(keys, now)),
                Contender::singles(&order, |key, _| self.default.admit(key)),
                Contender::batches(&order, |keys, now| tuned_batch(&self.tuned, keys, now)),
                Contender::batches(&order, |keys, _| self.floor.batch(keys)),
            ];
            measure(&mut all, order.len(), threads, amount);
            let [own, given, batch, checked, default, tuned, floor] = all.each_ref().map(|one| one.rounds.as_slice());
            report.head(&format!("{} keys, {spread}, {}", self.name, human_threads(threads)));
            report.faster("both read their clock : governor as it comes", own, default, asked.default);
            report.faster("caller's time : governor's fastest", given, tuned, asked.fastest);
            report.faster("admit_many of 32, caller's time : governor's fastest", batch, tuned, asked.batch);
            report.faster("check_many of 32, caller's time : governor's fastest", checked, tuned, Goal::None);
            report.above("admit_many of 32, caller's time : floor", batch, floor, asked.floor);
        }
    }

    /// One request at a time: what came before is over before the next begins, so that misses do not overlap.
    pub fn isolated(&self, report: &mut Report, asked: &Asked, amount: Amount) {
        let order = Order::<8>::new(self.keys, asked.spread, asked.length);
        for threads in [1, 2] {
            let mut all = [
                Contender::singles(&order, |key, _| alone(|| self.ours.admit(key))),
                Contender::singles(&order, |key, now| alone(|| self.ours.admit_at(key, now))),
                Contender::singles(&order, |key, _| alone(|| self.default.admit(key))),
                Contender::batches(&order, |keys, now| {
                    set_now(now);
                    keys.iter().filter(|key| alone(|| self.tuned.admit(key))).count()
                }),
            ];
            measure(&mut all, order.len(), threads, amount);
            let [own, given, default, tuned] = all.each_ref().map(|one| one.rounds.as_slice());
            report.head(&format!("{} keys, one at a time (lfence), {}", self.name, human_threads(threads)));
            report.faster("both read their clock : governor as it comes", own, default, asked.default);
            report.faster("caller's time : governor's fastest", given, tuned, asked.fastest);
        }
    }
}

/// Refusals of keys that are known; nothing is asked of them.
pub fn denied(report: &mut Report, keys: usize, length: usize, amount: Amount) {
    let set = Set::new(report, keys, SHUT, false);
    let order = Order::<8>::new(keys, Spread::Uniform, length);
    for threads in [1, 2] {
        let mut all = [
            Contender::singles(&order, |key, _| set.ours.admit(key)),
            Contender::singles(&order, |key, now| set.ours.admit_at(key, now)),
            Contender::singles(&order, |key, _| set.default.admit(key)),
            Contender::batches(&order, |keys, now| tuned_batch(&set.tuned, keys, now)),
        ];
        measure(&mut all, order.len(), threads, amount);
        let [own, given, default, tuned] = all.each_ref().map(|one| one.rounds.as_slice());
        report.head(&format!("{} keys, all refused, {}", set.name, human_threads(threads)));
        report.faster("both read their clock : governor as it comes", own, default, Goal::None);
        report.faster("caller's time : governor's fastest", given, tuned, Goal::None);
    }
}

/// What keys of 24 bytes cost above keys of 8.
pub fn strings(report: &mut Report, keys: usize, length: usize, amount: Amount) {
    let (short, long) = (Ours::new(OPEN, keys), Ours::new(OPEN, keys));
    let start = Ours::now();
    fill(keys, |key: &Key<8>| short.admit_at(key, start));
    fill(keys, |key: &Key<24>| long.admit_at(key, start));
    let short_order = Order::<8>::new(keys, Spread::Uniform, length);
    let long_order = Order::<24>::new(keys, Spread::Uniform, length);
    let mut all = [
        Contender::singles(&long_order, |key, now| long.admit_at(key, now)),
        Contender::singles(&short_order, |key, now| short.admit_at(key, now)),
    ];
    measure(&mut all, short_order.len(), 1, amount);
    let what = format!("{} keys of 24 bytes : of 8 bytes, caller's time", human(keys));
    report.more(&what, &all[0].rounds, &all[1].rounds, Goal::AtMost(6.0));
}

/// Governor has no batches: one by one, at a time that is set once.
fn tuned_batch(tuned: &Tuned<peer::Fastest>, keys: &[Key<8>; BATCH], now: u64) -> usize {
    set_now(now);
    keys.iter().filter(|key| tuned.admit(key)).count()
}

#[inline(always)]
fn alone(admit: impl Fn() -> bool) -> bool {
    // SAFETY: every x86-64 processor has it. It waits until all instructions before it have completed, loads
    // and locked ones among them.
    unsafe { _mm_lfence() };
    admit()
}

pub fn human(keys: usize) -> String {
    match keys {
        1_000_000.. if keys.is_multiple_of(1_000_000) => format!("{}M", keys / 1_000_000),
        1_000.. if keys.is_multiple_of(1_000) => format!("{}k", keys / 1_000),
        _ => keys.to_string(),
    }
}

pub fn human_threads(threads: usize) -> &'static str {
    if threads == 1 {
        "1 thread"
    } else {
        "2 threads"
    }
}
