//! The counters of limiters and tables as text for Prometheus, and how long decisions take.
//!
//! ```
//! use tollbar::metrics::{write, Format, Source};
//! use tollbar::{Limiter, Policy};
//!
//! let policy: Policy = "2/min".parse()?;
//! let limiter = Limiter::new(&policy)?;
//! limiter.check(1);
//! let sources = [Source::limiter("logins", &policy, &limiter.snapshot())];
//! let mut out = [0; 4096];
//! let length = write(&sources, Format::Prometheus, &mut out);
//! let text = std::str::from_utf8(&out[..length])?;
//! assert!(text.contains("tollbar_decisions_total{limit=\"logins\",policy=\"0\",verdict=\"allowed\"} 1\n"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod times;

#[doc(hidden)]
pub use times::write_each_times;
pub use times::{write_times, Times};

use crate::decision::{Counts, Reasons};
use crate::limiter::Snapshot;
use crate::policy::{text, Policy};
use crate::table::{PolicyId, Stats, Table};
use crate::writer::Writer;

/// The format of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Prometheus' text format 0.0.4, media type `text/plain; version=0.0.4`.
    Prometheus,
    /// OpenMetrics 1.0, media type `application/openmetrics-text; version=1.0.0; charset=utf-8`.
    /// The text ends with the line `# EOF`, after which the format allows no further metrics.
    OpenMetrics,
}

/// A limiter or a table, and the name of its series (the value of their label `limit`).
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    name: &'a str,
    of: Of<'a>,
    /// Whether the texts of policies leave out the burst.
    rates_only: bool,
    /// The number of the first policy that is shown.
    first: u32,
}

/// Calls the given function with each source. The writer calls it once for each metric, and must
/// see the same sources each time.
type Each<'a> = dyn Fn(&mut dyn FnMut(&Source<'_>)) + 'a;

#[derive(Clone, Copy, Debug)]
enum Of<'a> {
    Table(&'a Table),
    Limiter {
        policy: &'a Policy,
        decisions: Counts,
        reasons: Reasons,
        waiting: u32,
        backward_steps: u64,
    },
}

impl<'a> Source<'a> {
    /// A table. Its counters count the decisions of all processes that share it.
    pub const fn table(name: &'a str, table: &'a Table) -> Source<'a> {
        Source { name, of: Of::Table(table), rates_only: false, first: 0 }
    }

    /// A limiter, by its policy and its [`snapshot`](crate::Limiter::snapshot).
    pub const fn limiter(name: &'a str, policy: &'a Policy, snapshot: &Snapshot) -> Source<'a> {
        let Snapshot { decisions, reasons, waiting, backward_steps, .. } = *snapshot;
        Source {
            name,
            of: Of::Limiter { policy, decisions, reasons, waiting, backward_steps },
            rates_only: false,
            first: 0,
        }
    }

    /// The source, whose policies are shown as rates: for a table whose policies have a greater
    /// burst than any limit, because callers leave the difference untouched.
    pub const fn rates_only(self) -> Source<'a> {
        Source { rates_only: true, ..self }
    }

    /// The source without series of the table's first policy, for a table whose callers never use
    /// that policy.
    pub const fn without_first_policy(self) -> Source<'a> {
        Source { first: 1, ..self }
    }

    fn reasons(&self) -> Reasons {
        match self.of {
            Of::Table(table) => table.stats().reasons,
            Of::Limiter { reasons, .. } => reasons,
        }
    }

    fn stats(&self) -> Option<Stats> {
        match self.of {
            Of::Table(table) => Some(table.stats()),
            Of::Limiter { .. } => None,
        }
    }
}

/// Writes the metrics of all sources and returns the length of the text in bytes. If that is more
/// than `out.len()`, the end is missing.
///
/// No key is ever a label, so the number of series depends on the sources and their policies alone.
/// The sources must have different names. The call takes no permits. It reads the counters one
/// after the other while other threads decide, so two counters may differ by the decisions made
/// between the two reads.
pub fn write(sources: &[Source<'_>], format: Format, out: &mut [u8]) -> usize {
    write_each(&|with: &mut dyn FnMut(&Source<'_>)| sources.iter().for_each(with), format, out)
}

/// [`write`] of sources that no array holds.
#[doc(hidden)]
pub fn write_each(sources: &Each<'_>, format: Format, out: &mut [u8]) -> usize {
    let mut w = Exposition::new(out, format);
    w.decisions(sources);
    w.reasons(sources);
    w.policies(sources);
    for family in &FAMILIES {
        w.family(family, sources);
    }
    w.end()
}

/// A metric with one value for each source that has it.
struct Family {
    /// The name without a counter's suffix `_total`.
    name: &'static str,
    kind: MetricKind,
    help: &'static str,
    /// The source's value. `None`: the source does not have this metric.
    value: fn(&Source<'_>, Option<&Stats>) -> Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum MetricKind {
    Counter,
    Gauge,
    Histogram,
}

const fn counter(
    name: &'static str,
    help: &'static str,
    value: fn(&Source<'_>, Option<&Stats>) -> Option<u64>,
) -> Family {
    Family { name, kind: MetricKind::Counter, help, value }
}

const fn gauge(
    name: &'static str,
    help: &'static str,
    value: fn(&Source<'_>, Option<&Stats>) -> Option<u64>,
) -> Family {
    Family { name, kind: MetricKind::Gauge, help, value }
}

static FAMILIES: [Family; 13] = [
    counter("tollbar_clock_backward", "Requests older than one before them.", |source, stats| {
        match source.of {
            Of::Limiter { backward_steps, .. } => Some(backward_steps),
            Of::Table(_) => Some(stats?.backward_steps),
        }
    }),
    gauge("tollbar_waiting", "Callers that wait for a permit.", |source, _| match source.of {
        Of::Limiter { waiting, .. } => Some(u64::from(waiting)),
        Of::Table(_) => None,
    }),
    gauge("tollbar_table_size_bytes", "Bytes of the table.", |_, stats| Some(stats?.bytes)),
    gauge("tollbar_table_slots", "Slots of the table.", |_, stats| Some(stats?.slots)),
    gauge("tollbar_table_used_slots", "Slots that hold a key, expired or not.", |_, stats| {
        Some(stats?.keys)
    }),
    counter(
        "tollbar_table_inserts",
        "New keys in an empty slot or that of an expired key.",
        |_, stats| stats.map(|stats| stats.inserted.wrapping_add(stats.reclaimed)),
    ),
    counter(
        "tollbar_table_evictions",
        "Keys with a debt whose slot a new key took.",
        |_, stats| Some(stats?.evicted),
    ),
    counter(
        "tollbar_table_refused_keys",
        "New keys refused because no slot was free.",
        |_, stats| Some(stats?.refused),
    ),
    counter(
        "tollbar_table_inherited_keys",
        "New keys that took a slot with its debt.",
        |_, stats| Some(stats?.inherited),
    ),
    counter("tollbar_table_untracked_keys", "New keys admitted and not stored.", |_, stats| {
        Some(stats?.untracked)
    }),
    counter("tollbar_table_resets", "Keys that were reset.", |_, stats| Some(stats?.resets)),
    counter("tollbar_table_retries", "Repeated swaps.", |_, stats| Some(stats?.retries)),
    gauge("tollbar_table_overrides", "Keys with a policy of their own.", |_, stats| {
        Some(stats?.overrides)
    }),
];

/// The text of metrics, for counters of other crates.
pub struct Exposition<'a> {
    w: Writer<'a>,
    format: Format,
}

impl<'a> Exposition<'a> {
    /// A text that begins in `out`.
    pub fn new(out: &'a mut [u8], format: Format) -> Exposition<'a> {
        Exposition { w: Writer::new(out), format }
    }

    /// Begins a counter. `name` is without the suffix `_total`, which its samples have.
    pub fn counter(&mut self, name: &str, help: &str) {
        self.head(name, MetricKind::Counter, help);
    }

    /// Begins a gauge.
    pub fn gauge(&mut self, name: &str, help: &str) {
        self.head(name, MetricKind::Gauge, help);
    }

    /// A sample of the metric that was begun last, with at least one label.
    pub fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: u64) {
        self.w.text(name);
        let mut before = "{";
        for (label, of) in labels {
            self.w.text(before);
            self.w.text(label);
            self.label("=", of.as_bytes());
            before = ",";
        }
        self.value(value);
    }

    /// Ends the text, and returns its length in bytes. If that is more than the buffer has, the end
    /// is missing.
    pub fn end(mut self) -> usize {
        if self.format == Format::OpenMetrics {
            self.w.text("# EOF\n");
        }
        self.w.length
    }

    fn decisions(&mut self, sources: &Each<'_>) {
        self.head("tollbar_decisions", MetricKind::Counter, "Decisions by policy and verdict.");
        sources(&mut |source| {
            each_policy(source, |number, _, counts| {
                let verdicts = [
                    ("allowed", counts.allowed),
                    ("denied", counts.denied),
                    ("never", counts.never),
                ];
                for (verdict, value) in verdicts {
                    self.w.text("tollbar_decisions_total");
                    self.labels(source.name, Some(number));
                    self.label(",verdict=", verdict.as_bytes());
                    self.value(value);
                }
            });
        });
    }

    fn reasons(&mut self, sources: &Each<'_>) {
        self.head(
            "tollbar_reasons",
            MetricKind::Counter,
            "Decisions for a ban, a reserve, a full queue, a missing or an exempt key.",
        );
        sources(&mut |source| {
            let Reasons { banned, reserve, queue_full, missing_key, exempt } = source.reasons();
            let all = [
                ("banned", banned),
                ("reserve", reserve),
                ("queue_full", queue_full),
                ("missing_key", missing_key),
                ("exempt", exempt),
            ];
            let have = if let Of::Table(_) = source.of { 5 } else { 3 };
            for (reason, value) in all.into_iter().take(have) {
                self.w.text("tollbar_reasons_total");
                self.labels(source.name, None);
                self.label(",reason=", reason.as_bytes());
                self.value(value);
            }
        });
    }

    /// Only these series have the policy's text as a label. So when an operator edits a policy, all
    /// other series go on.
    fn policies(&mut self, sources: &Each<'_>) {
        self.head("tollbar_policy_info", MetricKind::Gauge, "The text of a policy.");
        sources(&mut |source| {
            each_policy(source, |number, policy, _| {
                let mut line = [0; text::TEXT_MOST];
                let burst = if source.rates_only { policy.limit } else { policy.burst };
                let length = text::print(
                    &Policy { burst, init: policy.init.min(burst), ..*policy },
                    &mut line,
                );
                self.w.text("tollbar_policy_info");
                self.labels(source.name, Some(number));
                self.label(",text=", line.get(..length).unwrap_or_default());
                self.value(1);
            });
        });
    }

    fn family(&mut self, family: &Family, sources: &Each<'_>) {
        let mut headed = false;
        sources(&mut |source| {
            let Some(value) = (family.value)(source, source.stats().as_ref()) else {
                return;
            };
            if !headed {
                self.head(family.name, family.kind, family.help);
                headed = true;
            }
            self.w.text(family.name);
            if family.kind == MetricKind::Counter {
                self.w.text("_total");
            }
            self.labels(source.name, None);
            self.value(value);
        });
    }

    fn head(&mut self, name: &str, kind: MetricKind, help: &str) {
        // These lines name a counter with `_total` in Prometheus' format and without it in
        // OpenMetrics.
        let total = kind == MetricKind::Counter && self.format == Format::Prometheus;
        let kind = match kind {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        };
        for (word, rest) in [("# HELP ", help), ("# TYPE ", kind)] {
            self.w.text(word);
            self.w.text(name);
            self.w.text(if total { "_total " } else { " " });
            self.w.text(rest);
            self.w.text("\n");
        }
    }

    /// The labels that all series have. [`Exposition::value`] closes them.
    fn labels(&mut self, name: &str, policy: Option<u32>) {
        self.label("{limit=", name.as_bytes());
        if let Some(number) = policy {
            self.w.text(",policy=\"");
            self.w.number(u64::from(number));
            self.w.text("\"");
        }
    }

    fn label(&mut self, name: &str, value: &[u8]) {
        self.w.text(name);
        self.w.byte(b'"');
        for &byte in value {
            match byte {
                b'"' | b'\\' => {
                    self.w.byte(b'\\');
                    self.w.byte(byte);
                }
                b'\n' => self.w.text("\\n"),
                _ => self.w.byte(byte),
            }
        }
        self.w.byte(b'"');
    }

    fn value(&mut self, value: u64) {
        self.w.text("} ");
        self.w.number(value);
        self.w.text("\n");
    }
}

/// Calls `with` for each policy of a source: its number, the policy and its decisions.
fn each_policy(source: &Source<'_>, mut with: impl FnMut(u32, &Policy, Counts)) {
    match source.of {
        Of::Limiter { policy, decisions, .. } => with(0, policy, decisions),
        Of::Table(table) => {
            for number in source.first..table.policies() {
                let id = PolicyId::new(number);
                if let (Ok(policy), Ok(counts)) = (table.policy(id), table.counts(id)) {
                    with(number, &policy, counts);
                }
            }
        }
    }
}
