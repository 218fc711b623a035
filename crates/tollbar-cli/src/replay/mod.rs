//! `tollbar replay`: yesterday's log through tomorrow's limit.
//!
//! The replay decides on each request at the time that its line gives, as a limiter in front of the
//! server would have, and reads no clock. Memory is for keys, for the lines of one `--reorder`
//! window and for the admissions of one period; never for all lines.
//!
//! ```text
//! source ──bytes──▶ lines ──line──▶ parse ──request──▶ keys, order ──event──▶ run (one per policy) ──▶ summary, JSON, HTML
//! ```

pub mod ask;
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
pub mod state;
pub mod summary;
pub mod tables;

use crate::problem::{Problem, Result};
use crate::report::{data, html};
use decisions::Decisions;
use options::Options;
use order::Order;
use source::Source;
use state::Replay;
use std::io::Write;
use tables::Tables;

/// Runs `tollbar replay`.
pub fn replay(options: &Options) -> Result<()> {
    if let Some(rules) = &options.rules {
        return by_rules::replay(rules, options);
    }
    Tables::check_room(&options.room, &options.policies)?;
    let first = Source::open(&options.logs[0])?;
    let mut decisions = match &options.decisions {
        Some(path) => Some(Decisions::of_options(path, options, &first)?),
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
    let data = replay.collector.take().map(|collector| data::of(&collector, &replay));
    if let (Some(path), Some(data)) = (&options.html, &data) {
        html::write(path, data)?;
    }
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let written = match &data {
        Some(data) if options.json => data::write_json(&mut out, data),
        _ => summary::write(&mut out, &replay, options),
    };
    written
        .and_then(|()| out.flush())
        .map_err(|error| Problem::system("standard output", &error))?;
    if let Some(path) = &options.html {
        eprintln!("tollbar: the report is in {path}");
    }
    Ok(())
}
