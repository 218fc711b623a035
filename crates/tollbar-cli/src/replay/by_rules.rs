//! `tollbar replay --rules`: a log by a rules file.

use super::decisions::Decisions;
use super::keys::Keys;
use super::options::Options;
use super::order::{Event, Order};
use super::parse::Key;
use super::reading::{self, Input};
use super::source::Source;
use crate::problem::{Problem, Result};
use crate::text;
use std::io::Write;
use tollbar::Verdict;
use tollbar_rules::{Field, Options as RulesOptions, Role, Rules};

/// The keys that can have a debt at one time, without `--keys`.
const KEYS: u64 = 1_000_000;

struct ByRules {
    rules: Rules,
    /// Each different address, method and path, joined by zero bytes.
    targets: Keys,
    order: Order,
    decisions: Option<Decisions>,
    allowed: u64,
    refused: u64,
    /// Requests by the status of their answer.
    statuses: std::collections::BTreeMap<u16, u64>,
}

/// Runs `tollbar replay --rules`.
pub fn replay(path: &str, options: &Options) -> Result<()> {
    // With a fixed seed each replay of a log makes the same decisions.
    let table = RulesOptions {
        keys: options.room.keys.unwrap_or(KEYS),
        seed: Some(0),
        ..RulesOptions::default()
    };
    let rules = Rules::open(path, &table).map_err(|error| crate::rules::problem(&error))?;
    let first = Source::open(&options.logs[0])?;
    let decisions = match &options.decisions {
        Some(path) => Some(Decisions::of_options(path, options, &first)?),
        None => None,
    };
    let order = Order::new(options.reorder);
    let (targets, statuses) = Default::default();
    let mut all = ByRules { rules, targets, order, decisions, allowed: 0, refused: 0, statuses };
    let mut input = Input::default();
    let mut source = Some(first);
    for log in &options.logs {
        let source = match source.take() {
            Some(first) => first,
            None => Source::open(log)?,
        };
        let mut joined = Vec::new();
        reading::read(&mut input, options, source, true, |sequence, request| {
            joined.clear();
            match &request.key {
                // Writing to a vector does not fail.
                Key::Address(address) => drop(write!(joined, "{address}")),
                Key::Text(text) => joined.extend_from_slice(text),
            }
            joined.push(0);
            joined.extend_from_slice(&request.method);
            joined.push(0);
            joined.extend_from_slice(&request.path);
            let key = all
                .targets
                .number(&joined)
                .ok_or_else(|| Problem::io("more than 2^32 different requests"))?;
            all.order.push(Event {
                time: request.time,
                sequence,
                key,
                path: 0,
                cost: request.cost,
                class: 0,
            });
            all.decide(false)
        })?;
    }
    all.decide(true)?;
    if let Some(decisions) = all.decisions.take() {
        decisions.close()?;
    }
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let written =
        if options.json { all.json(&mut out, &input) } else { all.summary(&mut out, path, &input) };
    written.and_then(|()| out.flush()).map_err(|error| Problem::system("standard output", &error))
}

impl ByRules {
    /// Decides on the requests whose turn it is; with `rest`, on all that wait.
    fn decide(&mut self, rest: bool) -> Result<()> {
        while let Some(event) = self.order.next(rest) {
            // Neither an address nor a method has a zero byte.
            let mut parts = self.targets.bytes(event.key).splitn(3, |&byte| byte == 0);
            let mut part = || parts.next().unwrap_or_default();
            let request = [
                Field::new(b":address", part()),
                Field::new(b":method", part()),
                Field::new(b":path", part()),
            ];
            let answer = self
                .rules
                .check_at_unix(&request, event.time)
                .map_err(|error| Problem::io(error.to_string()))?;
            match answer.is_allowed() {
                true => self.allowed += 1,
                false => self.refused += 1,
            }
            *self.statuses.entry(answer.status()).or_default() += 1;
            if let Some(decisions) = &mut self.decisions {
                let letter = match answer.decision().verdict {
                    Verdict::Allowed => 'A',
                    Verdict::Denied => 'D',
                    Verdict::Never => 'N',
                };
                let line =
                    format!("{letter} {} {}\n", answer.status(), answer.rule().unwrap_or("-"));
                decisions.write_text(event.sequence, line.into_bytes())?;
            }
        }
        Ok(())
    }

    fn summary(&self, out: &mut impl Write, path: &str, input: &Input) -> std::io::Result<()> {
        writeln!(
            out,
            "log            {}, {} lines",
            text::plain_line(input.names.join(", ").as_bytes()),
            input.lines
        )?;
        writeln!(out, "requests       {}", input.requests)?;
        writeln!(out, "bad lines      {}", input.bad)?;
        let seen = &self.order.seen;
        if seen.backwards > 0 {
            writeln!(
                out,
                "out of order   {}, by up to {}",
                seen.backwards,
                text::span(seen.latest)
            )?;
        }
        writeln!(out, "rules          {}", text::plain_line(path.as_bytes()))?;
        writeln!(out, "allowed        {}", self.allowed)?;
        writeln!(out, "refused        {}", self.refused)?;
        if self.rules.evicted() > 0 {
            writeln!(
                out,
                "no place       {} keys forgotten: --keys says how many have room",
                self.rules.evicted()
            )?;
        }
        writeln!(
            out,
            "\n{:24} {:>10} {:>10} {:>10} {:>10}",
            "rule", "allowed", "refused", "no key", "exempt"
        )?;
        for rule in self.rules.counts() {
            let name = &rule.rule;
            writeln!(
                out,
                "{name:24} {:>10} {:>10} {:>10} {:>10}",
                rule.allowed, rule.refused, rule.missing, rule.exempt
            )?;
        }
        let set = self.rules.set();
        let mut is_first = true;
        for (rule, counts) in set.rules().iter().zip(self.rules.counts()) {
            let Role::Shadow(of) = rule.role else { continue };
            if is_first {
                writeln!(
                    out,
                    "\n{:24} {:24} {:>12} {:>12}",
                    "shadow", "of", "would refuse", "would allow"
                )?;
                is_first = false;
            }
            let of = &set.rules()[of].name;
            writeln!(
                out,
                "{:24} {of:24} {:>12} {:>12}",
                rule.name, counts.would_refuse, counts.would_allow
            )?;
        }
        Ok(())
    }

    fn json(&self, out: &mut impl Write, input: &Input) -> std::io::Result<()> {
        let rules = self.rules.counts().into_iter().map(|rule| {
            serde_json::json!({ "rule": rule.rule, "allowed": rule.allowed, "refused": rule.refused, "missing": rule.missing, "exempt": rule.exempt,
                "would_refuse": rule.would_refuse, "would_allow": rule.would_allow })
        });
        let rules = rules.collect::<Vec<_>>();
        let statuses: serde_json::Map<String, serde_json::Value> =
            self.statuses.iter().map(|(status, n)| (status.to_string(), (*n).into())).collect();
        let all = serde_json::json!({
            "requests": input.requests, "bad": input.bad, "allowed": self.allowed, "refused": self.refused,
            "evicted": self.rules.evicted(), "statuses": statuses, "rules": rules,
        });
        writeln!(out, "{all:#}")
    }
}
