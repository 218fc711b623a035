//! The page of a run: its targets, and for each work the requests a second of all threads.

use super::record::{Row, Run};
use super::{calls, hot_keys};
use crate::document::{figure, name, Table};
use crate::keys::Spread;
use crate::model::millions;
use crate::one::{self, Work};
use crate::rows::title;
use crate::targets::{self, Target};
use crate::who::{self, Who};
use std::path::Path;

/// Writes the page of the run that `json` has to the directory `docs`.
pub fn write(json: &Path, docs: &Path) {
    let text =
        std::fs::read_to_string(json).unwrap_or_else(|error| panic!("{}: {error}", json.display()));
    let run: Run =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", json.display()));
    let path = docs.join(format!("{}-processors.md", run.machine.processors));
    std::fs::write(&path, page(&run)).expect("writable");
    println!("written: {}", path.display());
}

/// Prints the targets.
pub fn print(run: &Run) {
    targets::print(&format!("targets at {} threads", most(run)), &targets(run), true);
}

fn page(run: &Run) -> String {
    let machine = &run.machine;
    let mut text = format!(
        "# Benchmarks on {} processors\n\n\
         `make bench-cores` measures these figures with one to all processors of a machine. The program is\n\
         static, so `build/bench-cores --cores --json FILE` runs on any x86-64 Linux host. It writes\n\
         [the figures]({0}-processors.json) to the file, and `build/bench-cores --page FILE docs/benchmarks`\n\
         writes this page from them. [The benchmarks](../benchmarks.md) say how contenders are run.\n\n",
        machine.processors
    );
    let mut table = Table::new(&["", ""]);
    let siblings = match machine.siblings.as_str() {
        "0" => "processor 0 shares its core with no other".to_owned(),
        all => format!("processors {all} share a core"),
    };
    for (what, value) in [
        ("date", &machine.date),
        ("processor", &format!("{}, {} to this machine", machine.processor, machine.processors)),
        ("cores", &siblings),
        ("caches", &machine.caches),
        ("memory", &machine.memory),
        ("kernel", &machine.kernel),
        ("compiler", &machine.compiler),
        ("peers", &format!("governor {}", machine.governor)),
        ("other programs", &format!("load before the run: {}", machine.load)),
        ("the run took", &format!("{} s", machine.seconds)),
    ] {
        table.row(&[what, value]);
    }
    text += &table.text();
    text += "\n## Targets\n\n\
             The share of linear is the time of a request with one thread, divided by the time of a request\n\
             with all threads. A share of 1 means that no thread slows another. A share above 1 means that the\n\
             processor ran at a lower speed in the row of one thread, and shows by how much the shares of fast\n\
             rows may be wrong. So the targets for one key divide a share by that of reading the clock, in\n\
             which threads share nothing.\n\n";
    let mut table = Table::new(&["target", "measured", "goal", ""]);
    for target in targets(run) {
        table.row(&[&target.what, &target.found(), &target.asked(), &target.verdict()]);
    }
    text += &table.text();
    text += "\n## Two threads at many addresses\n\n\
             Two threads use one limit. tollbar finds a thread's counts and credit by a hash of the thread's\n\
             address, so two threads could share a cache line by chance. Each of 20 placements starts one of the\n\
             two threads at another address, on a new limit.\n\
             \"Counted\" is a limiter that counts its decisions, as C's does. Nanoseconds a request of one thread:\n\n";
    let mut table = Table::new(&["", "contender", "ns"]);
    for row in &run.figures {
        table.row(&[&row.what, &row.who, &figure(row.value)]);
    }
    text += &table.text();
    text += &format!(
        "\n## Millions of requests a second, of all threads\n\nThe number in brackets is the share of linear. {}.\n",
        hot_keys()
    );
    for work in run.works() {
        text += &format!("\n### {work}\n\n{}", of_work(run, work));
    }
    text
}

/// The table of one work: a row a contender, the fastest first, and a column for each number of
/// threads.
fn of_work(run: &Run, work: &str) -> String {
    let threads = run.threads();
    let heads: Vec<String> =
        threads.iter().map(|&threads| crate::book::of_threads(threads)).collect();
    let heads: Vec<&str> =
        ["contender"].into_iter().chain(heads.iter().map(String::as_str)).collect();
    let mut table = Table::new(&heads);
    let last = threads.last().copied().unwrap_or(1);
    let group = run.groups.iter().find(|group| group.work == work && group.threads == last);
    let mut rows: Vec<&Row> = group.map_or(Vec::new(), |group| group.rows.iter().collect());
    rows.sort_by(|one, other| one.nanoseconds().total_cmp(&other.nanoseconds()));
    for row in rows {
        let alone = run.row(work, 1, &row.who).map(Row::nanoseconds);
        let cell = |&threads: &usize| {
            let nanoseconds = run.row(work, threads, &row.who)?.nanoseconds();
            let share =
                alone.map_or(String::new(), |alone| format!(" ({:.2})", alone / nanoseconds));
            Some(format!("{}{share}", figure(millions(nanoseconds, threads))))
        };
        let cells: Vec<String> =
            threads.iter().map(|at| cell(at).unwrap_or_else(|| "–".into())).collect();
        let who = name_of(&row.who);
        let cells: Vec<&str> =
            [who.as_str()].into_iter().chain(cells.iter().map(String::as_str)).collect();
        table.row(&cells);
    }
    table.text()
}

/// A contender's name as tables show it: tollbar's own are bold.
fn name_of(text: &str) -> String {
    who::ALL.iter().find(|who| who.name == text).map_or(text.to_owned(), |&who| name(who))
}

fn most(run: &Run) -> usize {
    run.threads().last().copied().unwrap_or(1)
}

fn targets(run: &Run) -> Vec<Target> {
    let most = most(run);
    let mut all = Vec::new();
    let mut add =
        |what: String, measured: Option<f64>, least: bool, goal: f64, unit: &'static str| {
            all.push(Target { what, measured, least, goal, unit, why: String::new() });
        };
    let share = |work: &str, who: Who| {
        let of = |name: &str| {
            Some(run.row(work, 1, name)?.nanoseconds() / run.row(work, most, name)?.nanoseconds())
        };
        // The speed of a processor may differ between the two rows. Reading the clock shares
        // nothing, so its share says by how much.
        Some(of(who.name)? / of(who::READ_TSC.name).unwrap_or(1.0))
    };
    let times = |work: &str, who: Who, other: Who| {
        let (own, other) = (run.row(work, most, who.name)?, run.row(work, most, other.name)?);
        Some(own.faster_than(other))
    };
    let [allowed, denied] = [Work::Allowed, Work::Denied].map(one::title);
    let uniform = title(run.medium, Spread::Uniform, Work::Allowed);
    let zipf = title(run.medium, Spread::Zipf, Work::Allowed);
    let open = calls::in_flight_title(run.small);
    for (work, who, goal) in [
        (&allowed, who::CREDIT, 0.8),
        (&denied, who::TOLLBAR, 0.9),
        (&uniform, who::TABLE, 0.7),
        (&open, who::IN_FLIGHT, 0.7),
    ] {
        add(format!("{work}, {}: share of linear", who.name), share(work, who), true, goal, "");
    }
    for (work, who, goal) in
        [(&allowed, who::CREDIT, 50.0), (&uniform, who::TABLE, 2.0), (&zipf, who::TABLE_HOT, 5.0)]
    {
        add(
            format!("{work}, {}: times governor", who.name),
            times(work, who, who::GOVERNOR),
            true,
            goal,
            "×",
        );
    }
    let value = |who: Who, which: &str| {
        let mut of = run.figures.iter().filter(|figure| figure.who == who.name);
        of.find(|figure| figure.what.ends_with(which)).map(|figure| figure.value)
    };
    for who in [who::TOLLBAR, who::COUNTED_AT, who::CREDIT, who::TABLE] {
        let ratio = value(who, super::placements::WORST).zip(value(who, super::placements::MEDIAN));
        let what = format!("two threads, {}: the worst placement, over the median", who.name);
        add(what, ratio.map(|(worst, median)| worst / median), false, 1.3, "×");
    }
    all
}
