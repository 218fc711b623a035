//! `tollbar replay`: yesterday's log through tomorrow's limit.
//!
//! The replay decides on each request at the time that its line gives, as a limiter in front of the server would
//! have, and reads no clock. Memory is for keys, for the lines of one `--reorder` window and for the admissions of
//! one period; never for all lines.
//!
//! ```text
//! source ──bytes──▶ lines ──line──▶ parse ──request──▶ keys, order ──event──▶ run (one per policy) ──▶ summary, JSON, HTML
//! ```

pub mod by_rules;
pub mod decisions;
pub mod engine;
pub mod fullest;
pub mod keys;
pub mod lines;
pub mod options;
pub mod order;
pub mod parse;
pub mod progress;
pub mod reading;
pub mod run;
pub mod source;
pub mod summary;
pub mod tables;

use crate::problem::{Problem, Result};
use crate::report::Collector;
use decisions::Decisions;
use engine::{Ask, Engine};
use keys::Keys;
use options::{Grouping, Options};
use order::{Event, Order, Seen};
use parse::{Format, Key};
use run::Run;
use source::Source;
use std::io::Write;
use tables::Tables;
use tollbar::prefix::Prefix;
use tollbar::Decision;

/// What was read of the log.
#[derive(Debug, Default)]
pub struct Input {
    /// The files' names, for messages.
    pub names: Vec<String>,
    /// The format, once a line has been read.
    pub format: Option<Format>,
    /// Lines of all files.
    pub lines: u64,
    /// Lines that are no requests.
    pub bad: u64,
    /// Blank lines.
    pub blank: u64,
    /// Lines that are requests.
    pub requests: u64,
    /// The earliest time.
    pub first: u64,
    /// The latest time.
    pub last: u64,
}

/// A finished replay.
pub struct Replay {
    /// What was read.
    pub input: Input,
    /// The log's order.
    pub seen: Seen,
    /// How long lines waited for older ones, in nanoseconds.
    pub reorder: u64,
    /// All keys.
    pub keys: Keys,
    /// The names of all classes.
    classes: Keys,
    /// The tables, if the caller asked for a size.
    pub tables: Tables,
    /// The policies.
    pub runs: Vec<Run>,
    /// The first policy in the order of the file, if that differs from the order of time.
    pub in_file_order: Option<Run>,
    /// For JSON and HTML.
    pub collector: Option<Collector>,
}

/// Runs `tollbar replay`.
pub fn replay(options: &Options) -> Result<()> {
    if let Some(rules) = &options.rules {
        return by_rules::replay(rules, options);
    }
    Tables::check_room(&options.room, &options.policies)?;
    let first = Source::open(&options.logs[0])?;
    let mut decisions = match &options.decisions {
        Some(path) => Some(open_decisions(path, options, &first)?),
        None => None,
    };
    let mut replay = Replay::new(options)?;
    let mut order = Order::new(options.reorder);
    let mut source = Some(first);
    for log in &options.logs {
        let source = match source.take() {
            Some(first) => first,
            None => Source::open(log)?,
        };
        replay.read(options, source, &mut order, &mut decisions)?;
    }
    while let Some(event) = order.next(true) {
        replay.decide(event, &mut decisions)?;
    }
    replay.seen = order.seen;
    replay.tables.sync()?;
    // Writes all decisions to their file before it prints the summary.
    if let Some(decisions) = decisions {
        decisions.close()?;
    }
    let data = replay.collector.take().map(|collector| collector.finish(&replay));
    if let (Some(path), Some(data)) = (&options.html, &data) {
        crate::report::html::write(path, data)?;
    }
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let written = match &data {
        Some(data) if options.json => crate::report::data::write_json(&mut out, data),
        _ => summary::write(&mut out, &replay, options),
    };
    written.and_then(|()| out.flush()).map_err(|error| Problem::system("standard output", &error))?;
    if let Some(path) = &options.html {
        eprintln!("tollbar: the report is in {path}");
    }
    Ok(())
}

fn open_decisions(path: &str, options: &Options, first: &Source) -> Result<Decisions> {
    let log = |name: &str| format!("{name}: decisions would overwrite the log");
    let mut others = vec![(first.identity, log(&first.name))];
    for name in &options.logs[1..] {
        let identity = std::fs::metadata(name).ok().and_then(|metadata| source::identity(&metadata));
        others.push((identity, log(name)));
    }
    let stdout = std::fs::metadata("/dev/stdout").ok().and_then(|metadata| source::identity(&metadata));
    others.push((stdout, format!("{path}: the report would overwrite the decisions")));
    Decisions::open(path, &others)
}

impl Replay {
    fn new(options: &Options) -> Result<Replay> {
        let (tables, engines) = match options.room.keys {
            Some(keys) => Tables::open(&options.room, keys, &options.policies)?,
            None => {
                let engine = |policy| Engine::new(policy).map_err(|error| Problem::usage(format!("{policy}: {error}")));
                (Tables::default(), options.policies.iter().map(engine).collect::<Result<_>>()?)
            }
        };
        let runs: Vec<Run> =
            options.policies.iter().zip(engines).map(|(policy, engine)| Run::new(*policy, engine)).collect();
        // A second state for each key, where a state is one word: cheap enough to always have it.
        let in_file_order = match Engine::new(&options.policies[0]) {
            Ok(engine @ Engine::Words(..)) if options.reorder > 0 => Some(Run::new(options.policies[0], engine)),
            _ => None,
        };
        let collector = options.wants_data().then(|| Collector::new(&options.policies)).transpose()?;
        Ok(Replay {
            input: Input::default(),
            seen: Seen::default(),
            reorder: options.reorder,
            keys: Keys::default(),
            classes: Keys::default(),
            tables,
            runs,
            in_file_order,
            collector,
        })
    }

    fn read(
        &mut self,
        options: &Options,
        source: Source,
        order: &mut Order,
        decisions: &mut Option<Decisions>,
    ) -> Result<()> {
        let mut input = std::mem::take(&mut self.input);
        let result = reading::read(&mut input, options, source, options.wants_data(), |place, request| {
            let event = self.event(place, request, options.key)?;
            if let Some(run) = &mut self.in_file_order {
                let key = self.keys.bytes(event.key);
                let _ = run.admit(&self.tables, ask(&event, key, &self.classes))?;
            }
            order.push(event);
            while let Some(event) = order.next(false) {
                self.decide(event, decisions)?;
            }
            Ok(())
        });
        self.input = input;
        result
    }

    /// The request with its place in the log, its key and its path as numbers.
    #[inline]
    fn event(&mut self, sequence: u64, request: &parse::Request<'_>, grouping: Grouping) -> Result<Event> {
        let known = self.keys.len();
        let key = match (grouping, &request.key) {
            (Grouping::None, _) => self.keys.number(b"(all)"),
            (Grouping::Address(v4, v6), Key::Address(address)) => {
                let prefix = Prefix::of(*address, v4.into(), v6.into());
                self.keys.number(prefix.as_ref().map_or(b"", Prefix::as_bytes))
            }
            (_, Key::Text(text)) => self.keys.number(text),
        };
        let key = key.ok_or_else(|| Problem::io("more than 2^32 keys"))?;
        let path = match &mut self.collector {
            Some(collector) => collector.path(key, key as usize == known, &request.path, &request.agent),
            None => 0,
        };
        let class = match &*request.class {
            [] => 0,
            class => 1 + self.classes.number(class).ok_or_else(|| Problem::io("more than 2^32 classes"))?,
        };
        Ok(Event { time: request.time, sequence, key, path, cost: request.cost, class })
    }

    /// On one request, by all policies.
    #[inline]
    fn decide(&mut self, event: Event, decisions: &mut Option<Decisions>) -> Result<()> {
        let key = self.keys.bytes(event.key);
        let ask = ask(&event, key, &self.classes);
        match decisions {
            None => {
                for (n, run) in self.runs.iter_mut().enumerate() {
                    let verdict = run.admit(&self.tables, ask)?;
                    if let Some(collector) = &mut self.collector {
                        collector.verdict(n, verdict);
                    }
                }
            }
            Some(decisions) => {
                let mut answers: Vec<Decision> = Vec::with_capacity(self.runs.len());
                for (n, run) in self.runs.iter_mut().enumerate() {
                    let decision = run.check(&self.tables, ask)?;
                    if let Some(collector) = &mut self.collector {
                        collector.verdict(n, decision.verdict);
                    }
                    answers.push(decision);
                }
                decisions.write(event.sequence, &answers)?;
            }
        }
        match &mut self.collector {
            Some(collector) => collector.request(&self.tables, ask, event.path),
            None => Ok(()),
        }
    }
}

/// The request of an event. `classes` has the name of its class.
#[inline]
fn ask<'a>(event: &Event, key: &'a [u8], classes: &'a Keys) -> Ask<'a> {
    let class = event.class.checked_sub(1).map_or(&b""[..], |class| classes.bytes(class));
    Ask { number: event.key, key, now: event.time, cost: event.cost, class }
}
