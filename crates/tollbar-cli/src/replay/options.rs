//! The command line of `tollbar replay`.

use super::parse::{Format, Named};
use super::tables::{OnFullName, Room};
use crate::policy;
use crate::problem::{Problem, Result};
use clap::Args;
use std::fmt;
use std::str::FromStr;
use tollbar::Policy;

/// Shows what a limit would have done to the requests of a log
#[derive(Args, Debug)]
pub struct ReplayArgs {
    /// The log, or several in their order; - is standard input. gzip and zstd are read as they are
    #[arg(value_name = "LOG", required = true)]
    logs: Vec<String>,
    /// A policy to try, such as "100/min burst 20"; may be repeated. Without it, six algorithms at
    /// 10/min are compared
    #[arg(long, value_name = "POLICY")]
    policy: Vec<String>,
    /// Decide by a rules file instead of policies, with the methods, paths and client addresses of
    /// the log
    #[arg(long, value_name = "FILE", conflicts_with_all = ["policy", "key", "table", "on_full", "html"])]
    rules: Option<String>,
    /// Whose requests share a limit: address (an IPv4 address, or an IPv6 /64), address/24/56
    /// (other prefixes), or none (all requests)
    #[arg(long, value_name = "KEY", default_value_t)]
    key: Grouping,
    /// The log's format
    #[arg(long, value_enum, default_value_t = Format::Auto)]
    format: Format,
    /// A JSON field or CSV column, time=NAME, key=NAME, cost=NAME, class=NAME, path=NAME,
    /// agent=NAME or method=NAME; may be repeated
    #[arg(long, value_name = "WHAT=NAME")]
    field: Vec<String>,
    /// How long a line waits for older ones, so that requests are decided in order of time; 0 is
    /// the order of the file
    #[arg(long, value_name = "TIME", default_value = "60s")]
    reorder: String,
    /// Tables with room for so many keys under each policy; without it every key of the log has
    /// room
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    keys: Option<String>,
    /// What a new key gets that finds no slot
    #[arg(long, value_enum, default_value_t = OnFullName::EvictNearest, value_name = "WHAT")]
    on_full: OnFullName,
    /// Keep what the keys have used up in FILE, from one replay to the next; with --keys
    #[arg(long, value_name = "FILE")]
    table: Option<String>,
    /// Write each decision to FILE: "A|D|N remaining retry_after_ns"
    #[arg(long, value_name = "FILE")]
    decisions: Option<String>,
    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
    /// Write a report to FILE: one page for a browser, which needs no network
    #[arg(long, value_name = "FILE")]
    html: Option<String>,
}

/// Whose requests share a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grouping {
    /// Those of one network, of so many bits of IPv4 and of IPv6; or of one key of a trace.
    Address(u8, u8),
    /// All.
    None,
}

impl Default for Grouping {
    fn default() -> Grouping {
        Grouping::Address(32, 64)
    }
}

impl fmt::Display for Grouping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Grouping::Address(32, 64) => f.write_str("address"),
            Grouping::Address(v4, v6) => write!(f, "address/{v4}/{v6}"),
            Grouping::None => f.write_str("none"),
        }
    }
}

impl FromStr for Grouping {
    type Err = &'static str;

    fn from_str(text: &str) -> std::result::Result<Grouping, &'static str> {
        const EXPECTED: &str = "address, none, or address/N/M with the bits of IPv4 (to 32) and IPv6 (to 128) prefixes";
        match text {
            "address" => return Ok(Grouping::default()),
            "none" => return Ok(Grouping::None),
            _ => {}
        }
        let (v4, v6) =
            text.strip_prefix("address/").and_then(|bits| bits.split_once('/')).ok_or(EXPECTED)?;
        match (v4.parse(), v6.parse()) {
            (Ok(v4 @ 0..=32), Ok(v6 @ 0..=128)) => Ok(Grouping::Address(v4, v6)),
            _ => Err(EXPECTED),
        }
    }
}

/// The command line, checked.
pub struct Options {
    /// At least one.
    pub logs: Vec<String>,
    /// At least one.
    pub policies: Vec<Policy>,
    /// Whether the caller named no policy, and six algorithms are compared.
    pub compares: bool,
    /// The rules file that decides in place of the policies.
    pub rules: Option<String>,
    /// Whose requests share a limit.
    pub key: Grouping,
    /// The format.
    pub format: Format,
    /// Names of fields.
    pub fields: Named,
    /// Nanoseconds.
    pub reorder: u64,
    /// Tables.
    pub room: Room,
    /// The file of decisions.
    pub decisions: Option<String>,
    /// JSON on standard output.
    pub json: bool,
    /// The report.
    pub html: Option<String>,
}

/// The policies that a replay without a policy compares.
const COMPARED: [&str; 6] = [
    "10/min",
    "10/min algo interval",
    "10/min algo fixed-window",
    "10/min algo weighted-window",
    "10/min algo sliding-window",
    "10/min algo sliding-log",
];

impl Options {
    /// Whether the caller wants JSON or a page. Both need figures that the summary does not show.
    pub fn wants_data(&self) -> bool {
        self.json || self.html.is_some()
    }

    /// Reads policies, numbers and times.
    pub fn new(args: ReplayArgs) -> Result<Options> {
        let compares = args.policy.is_empty();
        let texts: Vec<&str> = match compares {
            true => COMPARED.to_vec(),
            false => args.policy.iter().map(String::as_str).collect(),
        };
        let policies = texts.into_iter().map(policy::parse).collect::<Result<Vec<_>>>()?;
        let mut fields = Named::default();
        for field in &args.field {
            fields.add(field).map_err(Problem::usage)?;
        }
        let stdins = args.logs.iter().filter(|log| *log == "-").count();
        if stdins > 1 {
            return Err(Problem::usage("standard input is given twice"));
        }
        Ok(Options {
            logs: args.logs,
            policies,
            compares,
            rules: args.rules,
            key: args.key,
            format: args.format,
            fields,
            reorder: time(&args.reorder)?,
            room: Room {
                keys: args.keys.as_deref().map(keys).transpose()?,
                on_full: args.on_full,
                file: args.table,
            },
            decisions: args.decisions,
            json: args.json,
            html: args.html,
        })
    }
}

fn keys(text: &str) -> Result<u64> {
    // `parse` also takes a sign.
    let digits = text.starts_with(|c: char| c.is_ascii_digit());
    let wrong = || Problem::usage(format!("--keys is a whole number from 1 on, not '{text}'"));
    text.parse().ok().filter(|&keys| digits && keys > 0).ok_or_else(wrong)
}

/// `60s`, `1500ms`, `2min`, or 0.
fn time(text: &str) -> Result<u64> {
    let wrong =
        || Problem::usage(format!("--reorder is a time such as 60s, 500ms or 0, not '{text}'"));
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..end].parse().map_err(|_| wrong())?;
    let unit = match &text[end..] {
        "" if number == 0 => 1,
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "min" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return Err(wrong()),
    };
    number.checked_mul(unit).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        for (text, ns) in
            [("0", 0), ("60s", 60_000_000_000), ("500ms", 500_000_000), ("2min", 120_000_000_000)]
        {
            assert_eq!(time(text).ok(), Some(ns));
        }
        for text in ["", "60", "s", "-1s", "+1s", "1y", "18446744073709551615s", "1.5s"] {
            assert!(time(text).is_err(), "{text}");
        }
    }
}
