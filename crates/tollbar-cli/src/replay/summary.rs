//! The summary as text.

use super::keys;
use super::options::Options;
use super::parse::Format;
use super::run::{Run, RANKS};
use super::state::Replay;
use crate::text;
use std::io::{self, Write};

/// Writes all of it.
pub fn write(out: &mut impl Write, replay: &Replay, options: &Options) -> io::Result<()> {
    input(out, replay)?;
    if let Some(keys) = options.room.keys {
        let bytes = replay.tables.bytes() as f64 / 1e6;
        writeln!(
            out,
            "tables         {} for {keys} keys a policy, {bytes:.1} MB",
            replay.tables.len()
        )?;
        match replay.tables.homeless() {
            0 => writeln!(out, "no place       0")?,
            homeless => writeln!(out, "no place       {homeless}, {}", options.room.on_full.got())?,
        }
    }
    if options.compares {
        return table(out, replay);
    }
    replay.runs.iter().try_for_each(|run| policy(out, replay, run))
}

fn input(out: &mut impl Write, replay: &Replay) -> io::Result<()> {
    let (input, seen) = (&replay.input, &replay.seen);
    let name = text::plain_line(input.names.join(", ").as_bytes());
    writeln!(out, "log            {name}, {} lines", input.lines)?;
    writeln!(out, "requests       {}", input.requests)?;
    writeln!(out, "bad lines      {}", input.bad)?;
    if input.blank > 0 {
        writeln!(out, "blank lines    {}", input.blank)?;
    }
    match seen.backwards {
        0 => writeln!(out, "out of order   0")?,
        n => writeln!(out, "out of order   {n}, by up to {}", text::span(seen.latest))?,
    }
    if seen.backwards > 0 {
        match (replay.reorder, seen.too_late) {
            (0, _) => writeln!(out, "order          of the file")?,
            (window, 0) => writeln!(out, "order          of time; lines waited {} for older ones", text::span(window))?,
            (window, late) => writeln!(
                out,
                "order          of time; lines waited {} for older ones, and {late} came later than that",
                text::span(window)
            )?,
        }
        if let Some(run) = &replay.in_file_order {
            let other = replay.runs[0].refusals();
            writeln!(
                out,
                "               {} denies {other} so, and {} in the order of the file",
                run.policy,
                run.refusals()
            )?;
        }
    }
    writeln!(out, "keys           {}", replay.keys.len())?;
    if input.requests == 0 {
        return Ok(());
    }
    match input.format {
        Some(Format::Trace) => writeln!(out, "times          {} to {} ns", input.first, input.last),
        _ => writeln!(
            out,
            "times          {} to {} UTC",
            text::time(input.first),
            text::time(input.last)
        ),
    }
}

/// Stands for a figure that the replay gave up, because one period had more admissions than it
/// remembers.
const UNCOUNTED: &str = "not counted: more than 4194304 requests in one period";

fn policy(out: &mut impl Write, replay: &Replay, run: &Run) -> io::Result<()> {
    let all = &replay.keys;
    writeln!(out, "\npolicy         {}", run.policy)?;
    writeln!(out, "requests       {}", replay.input.requests)?;
    writeln!(out, "allowed        {}", run.allowed)?;
    writeln!(out, "denied         {}, of them never {}", run.refusals(), run.never)?;
    writeln!(out, "keys           {}, of them denied {}", all.len(), run.keys_refused())?;
    match run.most(all) {
        None => writeln!(out, "most admitted  {UNCOUNTED}")?,
        Some((most, None)) => writeln!(out, "most admitted  {most} in one period")?,
        Some((most, Some(key))) => writeln!(
            out,
            "most admitted  {most} in one period, {}",
            text::plain(&keys::shown(all.bytes(key)))
        )?,
    }
    let worst = run.worst(all, RANKS);
    if worst.is_empty() {
        return writeln!(out, "most denied    none");
    }
    for (n, (key, refused)) in worst.into_iter().enumerate() {
        let label = if n == 0 { "most denied" } else { "" };
        writeln!(out, "{label:15}{refused:8}  {}", text::plain(&keys::shown(all.bytes(key))))?;
    }
    Ok(())
}

fn table(out: &mut impl Write, replay: &Replay) -> io::Result<()> {
    let names: Vec<String> = replay.runs.iter().map(|run| run.policy.to_string()).collect();
    let width = names.iter().map(String::len).max().unwrap_or(0).max("policy".len());
    writeln!(
        out,
        "\n{:width$} {:>10} {:>10} {:>11} {:>12} {:>15}  of key",
        "policy", "allowed", "denied", "of it never", "keys denied", "most in period"
    )?;
    for (run, name) in replay.runs.iter().zip(&names) {
        let (most, key) = match run.most(&replay.keys) {
            None => ("-".to_owned(), "-".to_owned()),
            Some((most, key)) => (
                most.to_string(),
                key.map_or("-".to_owned(), |key| text::plain(&keys::shown(replay.keys.bytes(key)))),
            ),
        };
        let (allowed, denied, never, keys) =
            (run.allowed, run.refusals(), run.never, run.keys_refused());
        writeln!(
            out,
            "{name:width$} {allowed:>10} {denied:>10} {never:>11} {keys:>12} {most:>15}  {key}"
        )?;
    }
    Ok(())
}
