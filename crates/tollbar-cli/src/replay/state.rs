//! The state of a running replay: the lines that it has read, and the states and counts of each
//! policy.

use super::ask::Ask;
use super::decisions::Decisions;
use super::engine::Engine;
use super::keys::Keys;
use super::options::{Grouping, Options};
use super::order::{Event, Order, Seen};
use super::parse::{Key, Request};
use super::reading::{self, Input};
use super::run::Run;
use super::source::Source;
use super::tables::Tables;
use crate::problem::{Problem, Result};
use crate::report::Collector;
use tollbar::prefix::Prefix;
use tollbar::Decision;

/// A replay.
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

impl Replay {
    /// A replay that has read nothing.
    pub fn new(options: &Options) -> Result<Replay> {
        let (tables, engines): (Tables, Vec<Engine>) = match options.room.keys {
            Some(keys) => {
                let (tables, places) = Tables::open(&options.room, keys, &options.policies)?;
                (
                    tables,
                    places
                        .into_iter()
                        .map(|(table, policy)| Engine::Table(table, policy))
                        .collect(),
                )
            }
            None => {
                let engine = |policy| {
                    Engine::new(policy)
                        .map_err(|error| Problem::usage(format!("{policy}: {error}")))
                };
                (Tables::default(), options.policies.iter().map(engine).collect::<Result<_>>()?)
            }
        };
        let runs: Vec<Run> = options
            .policies
            .iter()
            .zip(engines)
            .map(|(policy, engine)| Run::new(*policy, engine))
            .collect();
        // A second state for each key, where a state is one word: cheap enough to always have it.
        let in_file_order = match Engine::new(&options.policies[0]) {
            Ok(engine @ Engine::Words(..)) if options.reorder > 0 => {
                Some(Run::new(options.policies[0], engine))
            }
            _ => None,
        };
        let collector =
            options.wants_data().then(|| Collector::new(&options.policies)).transpose()?;
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

    /// Reads one log, and decides on the requests whose turn has come.
    pub fn read(
        &mut self,
        options: &Options,
        source: Source,
        order: &mut Order,
        decisions: &mut Option<Decisions>,
    ) -> Result<()> {
        let mut input = std::mem::take(&mut self.input);
        let result =
            reading::read(&mut input, options, source, options.wants_data(), |place, request| {
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
    fn event(&mut self, sequence: u64, request: &Request<'_>, grouping: Grouping) -> Result<Event> {
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
            Some(collector) => {
                collector.path(key, key as usize == known, &request.path, &request.agent)
            }
            None => 0,
        };
        let class = match &*request.class {
            [] => 0,
            class => {
                1 + self
                    .classes
                    .number(class)
                    .ok_or_else(|| Problem::io("more than 2^32 classes"))?
            }
        };
        Ok(Event { time: request.time, sequence, key, path, cost: request.cost, class })
    }

    /// On one request, by all policies.
    #[inline]
    pub fn decide(&mut self, event: Event, decisions: &mut Option<Decisions>) -> Result<()> {
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
