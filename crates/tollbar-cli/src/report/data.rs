//! The report as one value: `--json` prints it, and `--html` puts it into the page.

use super::collector::Collector;
use super::limits::{BURSTS, RATES};
use super::series::{Axis, Strip};
use crate::replay::keys::{shown, Keys};
use crate::replay::run::{Run, RANKS};
use crate::replay::state::Replay;
use crate::text;
use serde::Serialize;
use std::io::{self, Write};

/// All of it. Times are milliseconds of Unix time, which a double holds exactly.
#[derive(Debug, Serialize)]
pub struct Data {
    log: Log,
    policies: Vec<Outcome>,
    /// The first policy's limit under each algorithm.
    algorithms: Vec<Outcome>,
    /// The first policy's rate with other bursts.
    bursts: Vec<Outcome>,
    series: Series,
    limits: Grid,
    clients: Vec<Client>,
}

#[derive(Debug, Serialize)]
struct Log {
    name: String,
    format: &'static str,
    lines: u64,
    requests: u64,
    bad_lines: u64,
    blank_lines: u64,
    keys: u64,
    first: String,
    last: String,
    first_ms: f64,
    last_ms: f64,
    /// Lines with an earlier time than some line before them.
    out_of_order: u64,
    /// How late the latest of them came.
    latest_s: f64,
    /// How long lines waited for older ones; 0 is the order of the file.
    reorder_s: f64,
    /// Lines that came later than that.
    too_late: u64,
    /// What the first policy would have refused in the order of the file.
    denied_in_file_order: Option<u64>,
    /// Whether every time is a whole second.
    whole_seconds: bool,
    /// The minutes of the hour in which requests stand.
    minutes_of_hour: u32,
    /// The most requests of one client within a minute.
    most_in_a_minute: Option<u64>,
    most_in_a_minute_key: Option<String>,
}

/// What a policy decided.
#[derive(Debug, Serialize)]
struct Outcome {
    policy: String,
    /// Permits a second in the long run.
    per_second: f64,
    /// Permits at once.
    burst: u64,
    requests: u64,
    allowed: u64,
    denied: u64,
    never: u64,
    keys: u64,
    keys_denied: u64,
    /// The most that one key was admitted in any window of a period; null if one period had too
    /// many requests to count.
    most_in_period: Option<u64>,
    most_in_period_key: Option<String>,
    most_denied: Vec<Denied>,
}

#[derive(Debug, Serialize)]
struct Denied {
    key: String,
    denied: u64,
}

#[derive(Debug, Serialize)]
struct Series {
    start_ms: f64,
    width_ms: f64,
    requests: Vec<u64>,
    /// By policy.
    denied: Vec<Vec<u64>>,
}

#[derive(Debug, Serialize)]
struct Grid {
    rates: Vec<GridRate>,
    bursts: Vec<u64>,
    requests: u64,
    clients: u64,
    /// By rate and burst.
    denied_requests: Vec<Vec<u64>>,
    denied_clients: Vec<Vec<u64>>,
    /// Those of the clients that are robots.
    robots: u64,
    /// Those of the denied clients that are robots.
    denied_robots: Vec<Vec<u64>>,
}

#[derive(Debug, Serialize)]
struct GridRate {
    text: String,
    per_second: f64,
}

#[derive(Debug, Serialize)]
struct Client {
    key: String,
    robot: bool,
    requests: u64,
    denied: u64,
    /// For each rate of the grid the smallest burst under which it is never refused.
    bursts_needed: Vec<u64>,
    paths: Vec<Path>,
    /// `[bin, requests, denied]`.
    strip: Vec<(u64, u32, u32)>,
}

#[derive(Debug, Serialize)]
struct Path {
    path: String,
    denied: u32,
}

/// The clients that the report shows.
const CLIENTS: usize = 20;
/// The paths of each.
const PATHS: usize = 3;

/// The figures of a replay, with those that were collected on the way.
pub fn of(collector: &Collector, replay: &Replay) -> Data {
    let outcome = |run: &Run| outcome(run, replay);
    Data {
        log: log(collector, replay),
        policies: replay.runs.iter().map(outcome).collect(),
        algorithms: collector.algorithms.iter().map(outcome).collect(),
        bursts: collector.bursts.iter().map(outcome).collect(),
        series: Series {
            start_ms: milliseconds(collector.axis.first.saturating_mul(collector.axis.width)),
            width_ms: milliseconds(collector.axis.width),
            requests: dense(&collector.axis, &collector.all, |cell| cell.requests),
            denied: collector
                .refused
                .iter()
                .map(|strip| dense(&collector.axis, strip, |cell| cell.refused))
                .collect(),
        },
        limits: Grid {
            rates: RATES
                .iter()
                .map(|rate| GridRate {
                    text: format!("{}/{}", rate.limit, rate.unit),
                    per_second: 1e9 / rate.interval as f64,
                })
                .collect(),
            bursts: BURSTS.to_vec(),
            requests: replay.input.requests,
            clients: replay.keys.len() as u64,
            denied_requests: collector.limits.refused.iter().map(|row| row.to_vec()).collect(),
            denied_clients: collector.limits.clients_refused(|_| true),
            robots: collector.robots.iter().filter(|&&robot| robot).count() as u64,
            denied_robots: collector.limits.clients_refused(|key| collector.robots[key]),
        },
        clients: clients(collector, replay),
    }
}

fn log(collector: &Collector, replay: &Replay) -> Log {
    let (input, seen) = (&replay.input, &replay.seen);
    let busiest = collector.busiest.most(|key| replay.keys.bytes(key));
    Log {
        name: text::plain_line(input.names.join(", ").as_bytes()),
        format: input.format.map_or("auto", |format| format.name()),
        lines: input.lines,
        requests: input.requests,
        bad_lines: input.bad,
        blank_lines: input.blank,
        keys: replay.keys.len() as u64,
        first: text::time(input.first),
        last: text::time(input.last),
        first_ms: milliseconds(input.first),
        last_ms: milliseconds(input.last),
        out_of_order: seen.backwards,
        latest_s: seconds(seen.latest),
        reorder_s: seconds(replay.reorder),
        too_late: seen.too_late,
        denied_in_file_order: replay.in_file_order.as_ref().map(Run::refusals),
        whole_seconds: collector.whole_seconds,
        minutes_of_hour: collector.minutes.count_ones(),
        most_in_a_minute: busiest.map(|(most, _)| most),
        most_in_a_minute_key: busiest.and_then(|(_, key)| key).map(|key| name(&replay.keys, key)),
    }
}

fn outcome(run: &Run, replay: &Replay) -> Outcome {
    let most = run.most(&replay.keys);
    let worst = run.worst(&replay.keys, RANKS).into_iter();
    Outcome {
        policy: run.policy.to_string(),
        per_second: run.policy.limit as f64 * 1e9 / run.policy.period as f64,
        burst: run.policy.burst,
        requests: run.allowed + run.refusals(),
        allowed: run.allowed,
        denied: run.refusals(),
        never: run.never,
        keys: replay.keys.len() as u64,
        keys_denied: run.keys_refused(),
        most_in_period: most.map(|(most, _)| most),
        most_in_period_key: most.and_then(|(_, key)| key).map(|key| name(&replay.keys, key)),
        most_denied: worst
            .map(|(key, denied)| Denied { key: name(&replay.keys, key), denied })
            .collect(),
    }
}

fn clients(collector: &Collector, replay: &Replay) -> Vec<Client> {
    let first = &replay.runs[0];
    let one = |(key, denied): (u32, u64)| {
        let strip = &collector.strips[key as usize];
        let paths =
            collector.tops[key as usize].as_ref().map(|top| top.first(PATHS)).unwrap_or_default();
        Client {
            key: name(&replay.keys, key),
            robot: collector.robots[key as usize],
            requests: strip.cells().iter().map(|cell| u64::from(cell.requests)).sum(),
            denied,
            bursts_needed: collector.limits.needs(key).map_or_else(Vec::new, |all| all.to_vec()),
            paths: paths
                .into_iter()
                .map(|(path, denied)| Path { path: collector.paths.name(path).to_owned(), denied })
                .collect(),
            strip: strip
                .cells()
                .iter()
                .map(|cell| (cell.bin - collector.axis.first, cell.requests, cell.refused))
                .collect(),
        }
    };
    first.worst(&replay.keys, CLIENTS).into_iter().map(one).collect()
}

/// The bytes of a key that are shown: a hostile log may have keys of a mebibyte.
const KEY_SHOWN: usize = 64;

fn name(keys: &Keys, key: u32) -> String {
    let bytes = shown(keys.bytes(key));
    let mut name = text::plain(&bytes[..bytes.len().min(KEY_SHOWN)]);
    if bytes.len() > KEY_SHOWN {
        name.push('…');
    }
    name
}

fn dense(axis: &Axis, strip: &Strip, what: impl Fn(&super::series::Cell) -> u32) -> Vec<u64> {
    let mut out = vec![0; axis.len()];
    for cell in strip.cells() {
        out[(cell.bin - axis.first) as usize] = u64::from(what(cell));
    }
    out
}

fn milliseconds(ns: u64) -> f64 {
    (ns / 1_000_000) as f64
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// The value as JSON, and a line feed.
pub fn write_json(out: &mut impl Write, data: &Data) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, data)?;
    out.write_all(b"\n")
}
