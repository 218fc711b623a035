//! The tables of the document.

use super::Document;
use crate::book::{of_threads, Book, Group, Row};
use crate::flood;
use crate::keys::Spread::{Uniform, Zipf};
use crate::memory;
use crate::model::{millions, Model};
use crate::one::{self, Work};
use crate::rows::{of_keys, title, MEMORY};
use crate::targets::Target;
use crate::who::{self, Side, Who};

/// A table in Markdown.
pub struct Table {
    columns: usize,
    text: String,
}

impl Table {
    /// The first column holds words, the others figures.
    pub fn new(heads: &[&str]) -> Table {
        let mut table = Table { columns: heads.len(), text: String::new() };
        table.row(heads);
        let rule = if heads.iter().skip(1).any(|head| !head.is_empty()) { "---:" } else { "---" };
        table.text += &format!("|---|{}\n", format!("{rule}|").repeat(heads.len() - 1));
        table
    }

    pub fn row(&mut self, cells: &[&str]) {
        assert_eq!(cells.len(), self.columns);
        self.text += &format!("| {} |\n", cells.join(" | "));
    }

    pub fn text(self) -> String {
        self.text
    }
}

/// All works with figures for one thread and for two.
fn both<'a>(book: &'a Book, work: &str) -> Option<(&'a Group, &'a Group)> {
    book.group(work, 1).zip(book.group(work, 2))
}

/// One work: every contender by one thread and by two.
pub fn work(book: &Book, work: &str) -> String {
    let Some((one, two)) = both(book, work) else { return String::new() };
    let mut table = Table::new(&[
        work,
        "1 thread, ns",
        "2 threads, ns",
        "times governor",
        "by 2 threads",
        "M/s of 2",
    ]);
    let mut rows: Vec<&Row> = one.rows.iter().collect();
    rows.sort_by(|one, other| one.nanoseconds().total_cmp(&other.nanoseconds()));
    for row in rows {
        let times = |group: &Group, row: Option<&Row>| {
            let ratio =
                row.zip(group.row(who::GOVERNOR)).map(|(row, governor)| row.faster_than(governor));
            ratio.map_or("–".into(), times)
        };
        let both = two.row(row.who);
        let nanoseconds = both.map(Row::nanoseconds);
        table.row(&[
            &name(row.who),
            &figure(row.nanoseconds()),
            &nanoseconds.map_or("–".into(), figure),
            &times(one, Some(row)),
            &times(two, both),
            &nanoseconds.map_or("–".into(), |nanoseconds| figure(millions(nanoseconds, 2))),
        ]);
    }
    table.text()
}

/// tollbar's names are bold; contenders that decide nothing are in italics.
pub fn name(who: Who) -> String {
    match who.side {
        Side::Ours => format!("**{}**", who.name),
        Side::Peer => who.name.to_owned(),
        Side::Floor => format!("*{}*", who.name),
    }
}

pub fn one_key(document: &Document) -> String {
    one::WORKS.map(|work_of| work(document.book, &one::title(work_of))).join("\n")
}

pub fn keys(document: &Document) -> String {
    document
        .key_works()
        .iter()
        .map(|title| work(document.book, title))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Our fastest beside the fastest peer: of contenders that read a clock, or of those that get the
/// time from the caller.
pub fn glance(document: &Document, given_time: bool) -> String {
    let mut table = Table::new(&["", "tollbar", "ns", "fastest peer", "ns", "times as fast"]);
    let mut works: Vec<String> = one::WORKS.map(one::title).into();
    works.extend(document.key_works());
    for work in works {
        for threads in [1, 2] {
            let Some(group) = document.book.group(&work, threads) else { continue };
            let (own, peer) =
                (group.best(Side::Ours, given_time), group.best(Side::Peer, given_time));
            let Some((own, peer)) = own.zip(peer) else { continue };
            table.row(&[
                &format!("{work}, {}", of_threads(threads)),
                own.who.name,
                &figure(own.nanoseconds()),
                peer.who.name,
                &figure(peer.nanoseconds()),
                &times(own.faster_than(peer)),
            ]);
        }
    }
    table.text()
}

/// The reasons for missed targets.
pub fn reasons(targets: &[Target]) -> String {
    let missed =
        targets.iter().filter(|target| target.met() == Some(false) && !target.why.is_empty());
    let lines: Vec<_> = missed.map(|target| format!("- {}: {}", target.what, target.why)).collect();
    if lines.is_empty() {
        return String::new();
    }
    let head =
        "Likely reasons for the missed targets, from how the code works, not from measurements:";
    format!("{head}\n\n{}", lines.join("\n"))
}

pub fn targets(targets: &[Target]) -> String {
    let mut table = Table::new(&["", "target", "measured", "verdict"]);
    for target in targets {
        table.row(&[&target.what, &target.asked(), &target.found(), &target.verdict()]);
    }
    table.text()
}

pub fn memory(document: &Document) -> String {
    let sizes = [document.sizes.medium, document.sizes.large];
    let heads = sizes.map(|keys| format!("{} keys, bytes", of_keys(keys)));
    let mut table = Table::new(&["", &heads[0], &heads[1]]);
    for (who, values) in memory_rows(document) {
        let [medium, large] = values.map(|value| value.map_or("–".into(), figure));
        table.row(&[&name(who), &medium, &large]);
    }
    table.text()
}

/// Bytes per key at the two larger sets, smallest first.
pub fn memory_rows(document: &Document) -> Vec<(Who, [Option<f64>; 2])> {
    let keys = [document.sizes.medium, document.sizes.large].map(of_keys);
    let known = document
        .book
        .figures
        .iter()
        .filter(|figure| figure.topic == MEMORY && figure.what == keys[0]);
    let mut rows: Vec<_> = known
        .filter_map(|figure| figure.who)
        .map(|who| (who, [0, 1].map(|at: usize| document.book.value(MEMORY, &keys[at], Some(who)))))
        .collect();
    rows.sort_by(|(_, one), (_, other)| one[0].partial_cmp(&other[0]).expect("numbers"));
    rows
}

/// The figures of one topic.
pub fn figures(document: &Document, topic: &str) -> String {
    let mut table = Table::new(&[topic, "", ""]);
    for found in document.book.figures.iter().filter(|figure| figure.topic == topic) {
        let who = found.who.map_or(String::new(), name);
        table.row(&[&who, &found.what, &format!("{} {}", figure(found.value), found.unit)]);
    }
    table.text()
}

pub fn full(document: &Document) -> String {
    figures(document, memory::FULL)
}

pub fn flood(document: &Document) -> String {
    let mut text = String::new();
    if let Some(group) = document.book.group(flood::WORK, 1) {
        let mut table = Table::new(&["", "ns a key", "times governor"]);
        for row in &group.rows {
            let ratio = group
                .row(who::GOVERNOR)
                .map_or("–".into(), |governor| times(row.faster_than(governor)));
            table.row(&[&name(row.who), &figure(row.nanoseconds()), &ratio]);
        }
        text = table.text() + "\n";
    }
    text + &figures(document, flood::TOPIC)
}

/// The contenders and works that are modelled.
pub fn modelled(document: &Document) -> Vec<(String, Model)> {
    let [allowed, denied] = [Work::Allowed, Work::Denied].map(one::title);
    let [uniform, zipf] =
        [Uniform, Zipf].map(|spread| title(document.sizes.medium, spread, Work::Allowed));
    let mut works = vec![(who::HOT, &allowed, "one key, allowed")];
    if who::HOT.name != who::TOLLBAR.name {
        works.push((who::TOLLBAR, &allowed, "one key, allowed"));
    }
    works.extend([
        (who::GOVERNOR, &allowed, "one key, allowed"),
        (who::HOT, &denied, "one key, denied"),
        (who::GOVERNOR, &denied, "one key, denied"),
        (who::TABLE, &uniform, "keys, uniform"),
        (who::GOVERNOR, &uniform, "keys, uniform"),
        (who::TABLE, &zipf, "keys, zipf(1.0)"),
        (who::GOVERNOR, &zipf, "keys, zipf(1.0)"),
    ]);
    let model = |(who, work, words): (Who, &String, &str)| {
        Some((format!("{}: {words}", who.name), Model::of(document.book, work, who)?))
    };
    works.into_iter().filter_map(model).collect()
}

/// The numbers of processors for which the model is asked.
pub const PROCESSORS: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];

pub fn model(document: &Document) -> String {
    let heads = PROCESSORS.map(|processors| processors.to_string());
    let mut columns = vec!["processors", "a, ns", "s"];
    columns.extend(heads.iter().map(String::as_str));
    let mut table = Table::new(&columns);
    for (name, model) in modelled(document) {
        let mut cells = vec![name, figure(model.alone), format!("{:.3}", model.lines)];
        cells.extend(PROCESSORS.map(|processors| figure(model.millions(processors))));
        table.row(&cells.iter().map(String::as_str).collect::<Vec<_>>());
    }
    table.text()
}

/// A figure with its significant digits.
pub fn figure(value: f64) -> String {
    match value.abs() {
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        0.0 => "0".into(),
        _ => format!("{value:.2}"),
    }
}

fn times(ratio: f64) -> String {
    format!("{} ×", figure(ratio))
}
