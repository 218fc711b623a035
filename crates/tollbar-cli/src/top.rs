//! `tollbar top`: the keys that a shared table refuses most, live.

use crate::problem::Result;
use crate::text::{grouped, plain, plain_line};
use std::fmt::Write as _;
use std::io::IsTerminal;
use std::time::Duration;
use tollbar::table::{Refused, Table};

/// Shows the keys that a shared table refuses most, drawn again each second
///
/// The first call begins to record refusals in the table: from then on the first 48 bytes of
/// refused keys are in its memory, and checks by all processes are a little slower. --off ends it.
/// Counts are of the last minute or two: each is halved every 68.7 seconds.
#[derive(clap::Args)]
pub struct TopArgs {
    /// The table's file
    file: String,
    /// How many keys
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=224))]
    count: u16,
    /// Print once; the default where the output is no terminal
    #[arg(long)]
    once: bool,
    /// One JSON object for each key, once
    #[arg(long)]
    json: bool,
    /// End the recording
    #[arg(long, conflicts_with_all = ["once", "json"])]
    off: bool,
}

/// Runs the command.
pub fn run(args: &TopArgs) -> Result<()> {
    let table = crate::table::open(&args.file)?;
    if args.off {
        table.record_refusals(false);
        return crate::stdout::print(
            format!("{}: refusals are no longer recorded\n", args.file).as_bytes(),
        );
    }
    let began = !table.records_refusals();
    table.record_refusals(true);
    if args.json {
        return crate::stdout::print(json(&table, args.count).as_bytes());
    }
    let is_live = !args.once && std::io::stdout().is_terminal();
    loop {
        if is_live {
            // Clears the terminal, as top does.
            crate::stdout::print(b"\x1b[H\x1b[2J")?;
        }
        crate::stdout::print(page(&table, args.count, began).as_bytes())?;
        if !is_live {
            return Ok(());
        }
        std::thread::sleep(Duration::from_secs(1));
    }
}

fn most_refused(table: &Table, count: u16) -> Vec<Refused> {
    let mut top = vec![Refused::NONE; usize::from(count)];
    let length = table.top_refused(&mut top);
    top.truncate(length);
    top
}

fn page(table: &Table, count: u16, began: bool) -> String {
    let decisions = table.stats().decisions;
    let mut out =
        format!("{} allowed, {} denied", grouped(decisions.allowed), grouped(decisions.denied));
    out.push_str(if began { "; refusals are recorded from now on\n" } else { "\n" });
    let _ = writeln!(out, "{:>10}  {:40}  policy", "refused", "key");
    for refused in most_refused(table, count) {
        // The bytes of a key are a client's.
        let key = plain(refused.key()) + if refused.is_cut { "..." } else { "" };
        let text = table
            .policy(refused.policy)
            .map_or("?".to_owned(), |policy| plain_line(policy.to_string().as_bytes()));
        let _ = writeln!(out, "{:>10}  {key:40}  {text}", grouped(refused.count));
    }
    out
}

fn json(table: &Table, count: u16) -> String {
    let line = |refused: &Refused| {
        let object = serde_json::json!({
            "refused": refused.count,
            "policy": refused.policy.number(),
            "key": plain(refused.key()),
            "cut": refused.is_cut,
        });
        object.to_string() + "\n"
    };
    most_refused(table, count).iter().map(line).collect()
}
