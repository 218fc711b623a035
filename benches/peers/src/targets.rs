//! The targets of tollbar, beside the measured figures.

use crate::book::Book;
use crate::flood;
use crate::keys::Spread::{Uniform, Zipf};
use crate::memory;
use crate::one::{self, Work};
use crate::rows::{of_keys, title};
use crate::who::{self, Who};
use crate::Sizes;

/// One target.
pub struct Target {
    pub what: String,
    pub measured: Option<f64>,
    pub least: bool,
    pub goal: f64,
    pub unit: &'static str,
    /// The reason that the document gives if the target is missed.
    pub why: String,
}

impl Target {
    /// Whether the measured figure meets the target, with the digits that are shown.
    pub fn met(&self) -> Option<bool> {
        let measured = (self.measured? * 100.0).round() / 100.0;
        Some(if self.least { measured >= self.goal } else { measured <= self.goal })
    }

    /// The target as text, such as "≥ 7 ×".
    pub fn asked(&self) -> String {
        format!("{} {} {}", if self.least { "≥" } else { "≤" }, self.goal, self.unit)
    }

    pub fn found(&self) -> String {
        self.measured.map_or("not run".into(), |measured| format!("{measured:.2} {}", self.unit))
    }

    /// "met", or the share by which it was missed.
    pub fn verdict(&self) -> String {
        match (self.met(), self.measured) {
            (Some(true), _) => "met".into(),
            (Some(false), Some(measured)) if self.goal > 0.0 => {
                format!("missed by {:.0} %", (measured / self.goal - 1.0).abs() * 100.0)
            }
            (Some(false), _) => "missed".into(),
            (None, _) => "not run".into(),
        }
    }
}

struct Targets<'a> {
    book: &'a Book,
    all: Vec<Target>,
}

impl Targets<'_> {
    fn add(
        &mut self,
        what: &str,
        measured: Option<f64>,
        least: bool,
        goal: f64,
        unit: &'static str,
    ) {
        self.all.push(Target {
            what: what.to_owned(),
            measured,
            least,
            goal,
            unit,
            why: why(what).to_owned(),
        });
    }

    /// Target: at least `goal` times as fast as another.
    fn faster(&mut self, what: &str, work: &str, threads: usize, of: Who, than: Who, goal: f64) {
        let (of, than) = (self.book.row(work, threads, of), self.book.row(work, threads, than));
        let ratio = of.zip(than).map(|(of, than)| of.faster_than(than));
        self.add(what, ratio, true, goal, "×");
    }

    /// Target: at most `goal` times a floor's time.
    fn above(&mut self, what: &str, work: &str, threads: usize, of: Who, floor: Who, goal: f64) {
        let (of, floor) = (self.book.row(work, threads, of), self.book.row(work, threads, floor));
        let ratio = of.zip(floor).map(|(of, floor)| floor.faster_than(of));
        self.add(what, ratio, false, goal, "×");
    }

    /// Adds to the last target's reason how much faster than the same peer the floor itself is.
    fn even_the_floor(&mut self, work: &str, floor: Who, than: Who) {
        let (of, than) = (self.book.row(work, 1, floor), self.book.row(work, 1, than));
        if let (Some((of, than)), Some(target)) = (of.zip(than), self.all.last_mut()) {
            target.why = format!(
                "{} is {:.2} × itself; beside it, {}",
                floor.name,
                of.faster_than(than),
                target.why
            );
        }
    }

    /// Target: at most `goal` nanoseconds more than another.
    fn more(&mut self, what: &str, work: &str, of: Who, than: Who, goal: f64) {
        let (of, than) = (self.book.row(work, 1, of), self.book.row(work, 1, than));
        self.add(what, of.zip(than).map(|(of, than)| of.more_than(than)), false, goal, "ns");
    }

    /// Target: two threads make at least `goal` times the requests per second of one.
    fn scales(&mut self, what: &str, work: &str, of: Who, goal: f64) {
        let (one, two) = (self.book.row(work, 1, of), self.book.row(work, 2, of));
        let ratio = one.zip(two).map(|(one, two)| 2.0 * one.nanoseconds() / two.nanoseconds());
        self.add(what, ratio, true, goal, "×");
    }
}

/// The targets of the design.
pub fn design(book: &Book, sizes: &Sizes) -> Vec<Target> {
    let mut all = Targets { book, all: Vec::new() };
    let [allowed, denied] = [Work::Allowed, Work::Denied].map(one::title);
    all.faster(
        "one key, allowed, 1 thread: times governor",
        &allowed,
        1,
        who::HOT,
        who::GOVERNOR,
        7.0,
    );
    all.even_the_floor(&allowed, who::LOCAL, who::GOVERNOR);
    all.above(
        "one key, allowed, 1 thread: over a thread-local increment",
        &allowed,
        1,
        who::HOT,
        who::LOCAL,
        2.0,
    );
    all.faster(
        "one key, allowed, 2 threads: times governor",
        &allowed,
        2,
        who::HOT,
        who::GOVERNOR,
        20.0,
    );
    all.scales(
        "one key, allowed: requests a second of 2 threads, over those of 1",
        &allowed,
        who::HOT,
        1.8,
    );
    all.above(
        "one key, denied: over reading the TSC clock",
        &denied,
        1,
        who::HOT,
        who::READ_TSC,
        1.05,
    );
    all.scales(
        "one key, denied: requests a second of 2 threads, over those of 1",
        &denied,
        who::HOT,
        1.95,
    );
    all.above(
        "one key, caller's time: over a bare CAS",
        &allowed,
        1,
        who::GCRA_AT,
        who::BARE_CAS,
        1.15,
    );
    for keys in [sizes.medium, sizes.large] {
        let (work, keys) = (title(keys, Uniform, Work::Allowed), of_keys(keys));
        let what = |what: &str| format!("{keys} keys, batches: {what}");
        all.above(
            &what("over a prefetched line and a locked add"),
            &work,
            1,
            who::TABLE_MANY,
            who::PREFETCHED,
            1.3,
        );
        all.faster(&what("times governor"), &work, 1, who::TABLE_MANY, who::GOVERNOR, 12.0);
        all.faster(
            &what("times governor's fastest"),
            &work,
            1,
            who::TABLE_MANY,
            who::GOVERNOR_FASTEST,
            5.0,
        );
    }
    for (keys, who, how) in [
        (sizes.medium, who::TABLE_HOT, "hot keys"),
        (sizes.medium, who::TABLE_MANY, "batches"),
        (sizes.small, who::TABLE_HOT, "hot keys"),
    ] {
        let work = title(keys, Zipf, Work::Allowed);
        all.faster(
            &format!("{work}, 2 threads, {how}: times governor"),
            &work,
            2,
            who,
            who::GOVERNOR,
            6.0,
        );
    }
    all.faster(
        "one key, allowed, 2 threads, no lease: times governor",
        &allowed,
        2,
        who::TOLLBAR,
        who::GOVERNOR,
        2.5,
    );
    all.more("through C: over the Rust call", &allowed, who::TOLLBAR_C, who::TOLLBAR, 2.5);
    all.more("through C, credit: over the Rust call", &allowed, who::CREDIT_C, who::CREDIT, 2.5);
    all.more(
        "through C, caller's time: over the Rust call",
        &allowed,
        who::TOLLBAR_C_AT,
        who::TOLLBAR_AT,
        2.5,
    );
    let bytes = book.value(memory::FULL, memory::BYTES, Some(who::TABLE));
    all.add("memory a key, at 80 % full", bytes, false, 20.0, "B");
    all.all
}

/// The keyed table's first ratios, as targets: no later change may lose them.
pub fn kept(book: &Book, sizes: &Sizes) -> Vec<Target> {
    let mut all = Targets { book, all: Vec::new() };
    for (keys, spread, own, given, batch, floor) in [
        (sizes.small, Uniform, 1.9, 1.4, 1.4, None),
        (sizes.medium, Uniform, 3.0, 1.9, 4.0, Some(1.6)),
        (sizes.medium, Zipf, 2.5, 1.7, 4.0, None),
        (sizes.large, Uniform, 3.5, 1.8, 5.0, Some(1.6)),
    ] {
        let work = title(keys, spread, Work::Allowed);
        for threads in [1, 2] {
            let what = |what: &str| format!("{work}, {}: {what}", crate::book::of_threads(threads));
            let fastest = who::GOVERNOR_FASTEST;
            all.faster(&what("times governor"), &work, threads, who::TABLE, who::GOVERNOR, own);
            all.faster(
                &what("caller's time, times its fastest"),
                &work,
                threads,
                who::TABLE_AT,
                fastest,
                given,
            );
            all.faster(
                &what("batches, times its fastest"),
                &work,
                threads,
                who::TABLE_MANY,
                fastest,
                batch,
            );
            if keys == sizes.small {
                // Credit is meant for few keys like these.
                all.faster(
                    &what("hot keys, times governor"),
                    &work,
                    threads,
                    who::TABLE_HOT,
                    who::GOVERNOR,
                    own,
                );
                let label = what("hot keys, caller's time, times its fastest");
                all.faster(&label, &work, threads, who::TABLE_HOT_AT, fastest, given);
            }
            if let Some(floor) = floor {
                all.above(
                    &what("batches, over the floor"),
                    &work,
                    threads,
                    who::TABLE_MANY,
                    who::PREFETCHED,
                    floor,
                );
            }
        }
    }
    let work = format!("{} keys, one at a time", of_keys(sizes.large));
    for threads in [1, 2] {
        let what = format!("{work}, {}: times governor", crate::book::of_threads(threads));
        all.faster(&what, &work, threads, who::TABLE, who::GOVERNOR, 1.9);
    }
    for keys in [sizes.small, 4 * sizes.medium] {
        let work = format!("{} keys, lengths", of_keys(keys));
        let what = format!("{} keys of 24 bytes: over keys of 8", of_keys(keys));
        all.more(&what, &work, who::TABLE_LONG, who::TABLE_AT, 6.0);
    }
    all.faster(
        "fresh keys without end: times governor",
        flood::WORK,
        1,
        who::TABLE,
        who::GOVERNOR,
        3.0,
    );
    let figure = |topic, what| book.value(topic, what, Some(who::TABLE));
    all.add(
        "fresh keys without end: the slowest 256 keys",
        figure(flood::TOPIC, flood::WORST),
        false,
        5.0,
        "ms",
    );
    all.add(
        "fresh keys without end: growth of resident memory",
        figure(flood::TOPIC, flood::GREW),
        false,
        0.0,
        "pages",
    );
    all.add(
        "keys without a place at 80 % full",
        figure(memory::FULL, memory::HOMELESS),
        false,
        0.05,
        "%",
    );
    all.all
}

/// The reason for a target, by words in its text. Reasons come from how the code works, not from
/// measurements.
const WHY: [(&str, &str); 15] = [
    ("thread-local increment", "a thread finds its stripe and compares the owner before it spends"),
    (
        "allowed: requests a second",
        "a thread writes the shared line when it takes credit; the head of this page has the load of the machine",
    ),
    ("denied: requests a second", "a refusal writes no shared line; the head of this page has the load of the machine"),
    ("one key, allowed, 1 thread", "a thread finds its stripe and compares the owner before it spends"),
    ("no lease", "each request of both contenders hands one line over, whatever the arithmetic"),
    ("one key, allowed, 2 threads", "governor's two threads slow each other down only if both processors are free"),
    ("reading the TSC clock", "beside the clock a refusal reads the state and compares it with the limit"),
    ("bare CAS", "before the swap the arithmetic computes the word to store"),
    ("locked add", "tollbar hashes the key, compares it with the keys of its buckets, and swaps 16 bytes"),
    ("1k keys, zipf", "reading the clock takes most of the time, and hashing the key most of the rest"),
    ("hot keys", "most of the time goes into the many rarely checked keys, whose lines come from memory"),
    ("zipf", "every request for the hottest key hands its line over"),
    ("through C", "a call through a pointer, the checks of its arguments, and code that is built to be small"),
    ("memory a key", "slots of 16 bytes, a quarter more of them than keys, and the table's head"),
    ("batches", "beside waiting for memory a batch hashes, compares, and swaps 16 bytes for each key"),
];

fn why(what: &str) -> &'static str {
    WHY.iter().find(|(words, _)| what.contains(words)).map_or("", |(_, why)| why)
}

/// As text.
pub fn print(title: &str, targets: &[Target], judge: bool) {
    println!("\n{title:<76} {:>10} {:>12}", "measured", "goal");
    for target in targets {
        let verdict = if judge { target.verdict() } else { "not judged".into() };
        println!("{:<76} {:>10} {:>12}  {verdict}", target.what, target.found(), target.asked());
    }
}
