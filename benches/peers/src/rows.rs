//! Decisions about known keys, by sets of keys and by orders.

use crate::book::Book;
use crate::floor::Floor;
use crate::keys::{key, word, Key, Order, Spread, BATCH};
use crate::limit::{Limit, BUSY, OPEN, SHUT};
use crate::measure::{fill, measure, Amount, Contender};
use crate::memory::weighed;
use crate::one::Work;
use crate::ours::Ours;
use crate::peers::governor::{set_now, Default, Fastest, Tuned, SHARDS};
use crate::peers::pingora::Pingora;
use crate::peers::Says;
use crate::who;
use core::arch::x86_64::_mm_lfence;

/// The topic of figures about memory.
pub const MEMORY: &str = "bytes a key";

/// Sets of fewer keys are not weighed, because other memory of the program would outweigh them.
pub const WEIGHED: usize = 2_000;

/// A set of keys in each of the tables, each under a limit of its own.
pub struct Tables {
    ours: Ours,
    default: Default,
    tuned: Tuned<Fastest>,
    pingora: Pingora,
}

impl Tables {
    /// Tables with every key inserted. With `weigh`, also records the memory that each took.
    pub fn new(book: &mut Book, keys: usize, limit: Limit, weigh: bool) -> Tables {
        let start = Ours::now();
        set_now(start);
        let (ours, ours_grown) = weighed(|| {
            let ours = Ours::new(limit, keys);
            let inserted = fill(keys, |key: &Key<8>| ours.admit_at(key, start));
            assert!(inserted > 0.9, "ours took {inserted} of {keys} keys");
            ours
        });
        let (default, default_grown) = weighed(|| {
            let default = Default::new(limit);
            assert_eq!(fill(keys, |key| default.admit(key)), 1.0, "governor");
            default
        });
        let (tuned, tuned_grown) = weighed(|| {
            let tuned = Tuned::new(limit, keys, SHARDS);
            assert_eq!(fill(keys, |key| tuned.admit(key)), 1.0, "governor, tuned");
            tuned
        });
        let says = if limit.burst == 1 { Says::No } else { Says::Yes };
        let (pingora, pingora_grown) = weighed(|| {
            let pingora = Pingora::keyed(says, keys.max(1024));
            fill(keys, |key| pingora.admit_key(key));
            pingora
        });
        if weigh {
            let all = [
                (who::TABLE, ours_grown),
                (who::GOVERNOR, default_grown),
                (who::GOVERNOR_FASTEST, tuned_grown),
                (who::PINGORA, pingora_grown),
            ];
            for (who, grown) in all {
                book.figure(MEMORY, &of_keys(keys), Some(who), grown.a_key(keys), "B");
            }
        }
        // The limit decides which path is measured: nearly all requests pass, or nearly none.
        let again = fill(keys.min(10_000), |key: &Key<8>| ours.admit_at(key, start + 1));
        let batch = ours.admit_many_at::<8>(&std::array::from_fn(|at| key(at % keys)), start + 1)
            as f64
            / BATCH as f64;
        for passed in [again, batch] {
            assert!(
                if limit.burst == 1 { passed < 0.05 } else { passed > 0.9 },
                "{passed} of the known keys passed"
            );
        }
        Tables { ours, default, tuned, pingora }
    }
}

/// Tables under a limit that no key reaches and, where requests are to be refused, under one that
/// every key has reached.
pub struct Set {
    pub keys: usize,
    pub name: String,
    yes: Tables,
    no: Option<Tables>,
    floor: Floor,
}

impl Set {
    pub fn new(book: &mut Book, keys: usize, refusing: bool) -> Set {
        let yes =
            Tables::new(book, keys, if keys < WEIGHED { BUSY } else { OPEN }, keys >= WEIGHED);
        let no = refusing.then(|| Tables::new(book, keys, SHUT, false));
        let floor = Floor::new(yes.ours.bytes());
        Set { keys, name: of_keys(keys), yes, no, floor }
    }

    /// The title of a row.
    pub fn title(&self, spread: Spread, work: Work) -> String {
        title(self.keys, spread, work)
    }

    /// Measures an order of the keys, by each number of threads. `others` are asked for the same
    /// keys.
    #[allow(clippy::too_many_arguments)]
    pub fn row<'a>(
        &'a self,
        book: &mut Book,
        order: &'a Order<8>,
        title: &str,
        work: Work,
        threads: &[usize],
        others: impl Fn() -> Vec<Contender<'a>>,
        amount: Amount,
    ) {
        for &threads in threads {
            let mut all = self.contenders(order, work);
            all.extend(others());
            measure(&mut all, threads, amount);
            book.add(title, threads, all);
        }
    }

    /// The contenders in this process.
    pub fn contenders<'a>(&'a self, order: &'a Order<8>, work: Work) -> Vec<Contender<'a>> {
        let of = move |key: &Key<8>| -> &'a Tables {
            match (work, &self.no) {
                (Work::Denied, Some(no)) => no,
                (Work::Mixed, Some(no)) if word(key) & 1 == 1 => no,
                _ => &self.yes,
            }
        };
        let mut all = vec![
            Contender::singles(who::TABLE, order, move |key, _| of(key).ours.admit(key)),
            Contender::singles(who::TABLE_AT, order, move |key, now| {
                of(key).ours.admit_at(key, now)
            }),
        ];
        if work != Work::Mixed {
            // A batch goes to one table.
            let ours = &of(&[0; 8]).ours;
            all.push(Contender::batches(who::TABLE_MANY, order, move |keys, now| {
                ours.admit_many_at(keys, now)
            }));
            all.push(Contender::batches(who::TABLE_DECISIONS, order, move |keys, now| {
                ours.check_many_at(keys, now)
            }));
        }
        if work == Work::Allowed {
            let ours = &self.yes.ours;
            all.push(Contender::singles(who::TABLE_HOT, order, move |key, _| ours.admit_hot(key)));
            all.push(Contender::singles(who::TABLE_HOT_AT, order, move |key, now| {
                ours.admit_hot_at(key, now)
            }));
        }
        all.extend([
            Contender::singles(who::GOVERNOR, order, move |key, _| of(key).default.admit(key)),
            Contender::batches(who::GOVERNOR_FASTEST, order, move |keys, now| {
                set_now(now);
                keys.iter().filter(|key| of(key).tuned.admit(key)).count()
            }),
            Contender::singles(who::PINGORA, order, move |key, _| of(key).pingora.admit_key(key)),
            Contender::batches(who::PREFETCHED, order, |keys, _| self.floor.batch(keys)),
        ]);
        all
    }

    /// Measures one request at a time: each begins when the one before has completed, so that cache
    /// misses do not overlap.
    pub fn isolated(&self, book: &mut Book, order: &Order<8>, amount: Amount) {
        let Tables { ours, default, tuned, .. } = &self.yes;
        for threads in [1, 2] {
            let mut all = vec![
                Contender::singles(who::TABLE, order, |key, _| alone(|| ours.admit(key))),
                Contender::singles(who::TABLE_AT, order, |key, now| {
                    alone(|| ours.admit_at(key, now))
                }),
                Contender::singles(who::GOVERNOR, order, |key, _| alone(|| default.admit(key))),
                Contender::batches(who::GOVERNOR_FASTEST, order, |keys, now| {
                    set_now(now);
                    keys.iter().filter(|key| alone(|| tuned.admit(key))).count()
                }),
            ];
            measure(&mut all, threads, amount);
            book.add(&format!("{} keys, one at a time", self.name), threads, all);
        }
    }
}

/// Measures keys of 24 bytes beside keys of 8.
pub fn strings(book: &mut Book, keys: usize, length: usize, amount: Amount) {
    let (short, long) = (Ours::new(OPEN, keys), Ours::new(OPEN, keys));
    let start = Ours::now();
    fill(keys, |key: &Key<8>| short.admit_at(key, start));
    fill(keys, |key: &Key<24>| long.admit_at(key, start));
    let short_order = Order::<8>::new(keys, Spread::Uniform, length);
    let long_order = Order::<24>::new(keys, Spread::Uniform, length);
    let mut all = vec![
        Contender::singles(who::TABLE_LONG, &long_order, |key, now| long.admit_at(key, now)),
        Contender::singles(who::TABLE_AT, &short_order, |key, now| short.admit_at(key, now)),
    ];
    measure(&mut all, 1, amount);
    book.add(&format!("{} keys, lengths", of_keys(keys)), 1, all);
}

#[inline(always)]
fn alone(admit: impl Fn() -> bool) -> bool {
    // SAFETY: every x86-64 processor has LFENCE. It waits until all instructions before it have
    // completed, loads and locked ones among them.
    unsafe { _mm_lfence() };
    admit()
}

/// The title of a row of decisions about keys.
pub fn title(keys: usize, spread: Spread, work: Work) -> String {
    let spread = match spread {
        Spread::Uniform => "uniform",
        Spread::Zipf => "zipf(1.0)",
    };
    match keys {
        1 => format!("table of one key, {}", work.words()),
        _ => format!("{} keys, {spread}, {}", of_keys(keys), work.words()),
    }
}

pub fn of_keys(keys: usize) -> String {
    match keys {
        1_000_000.. if keys.is_multiple_of(1_000_000) => format!("{}M", keys / 1_000_000),
        1_000.. if keys.is_multiple_of(1_000) => format!("{}k", keys / 1_000),
        _ => keys.to_string(),
    }
}
