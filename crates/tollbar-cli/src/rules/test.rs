//! `tollbar rules test`: the requests of a file of cases, decided in the cases' own time.

use super::cases::{self, Case, Step};
use super::source::{problem, RulesSource};
use crate::problem::{Problem, Result};
use crate::text;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use tollbar_rules::internal::{parse, quoted, Problems};
use tollbar_rules::{Answer, Field, Format, LoadError, Options, Rules};

/// Runs the cases.
pub fn test(source: &RulesSource, file: &str) -> Result<()> {
    let path = Path::new(file);
    let text = std::fs::read_to_string(path).map_err(|error| Problem::system(file, &error))?;
    let faults = |problems| problem(&LoadError::Problems(vec![PathBuf::from(file)], problems));
    let root = parse(&text, Format::of(path)).map_err(faults)?;
    let mut problems = Problems::default();
    let cases = cases::read(&root, &mut problems);
    if !problems.all.is_empty() {
        problems.all.sort_by_key(|problem| problem.place);
        return Err(faults(problems.all));
    }
    let (mut out, mut failed) = (String::new(), 0);
    for case in &cases {
        let wrong = run(source, case)?;
        failed += u64::from(!wrong.is_empty());
        for (step, text) in wrong {
            let _ = writeln!(out, "{file}:{}: {}: {text}", step.place, quoted(&case.name));
        }
    }
    let requests: u64 = cases.iter().flat_map(|case| &case.steps).map(|step| step.times).sum();
    let _ = writeln!(
        out,
        "{}: {} with {}, {failed} failed",
        source.name().display(),
        text::count(cases.len() as u64, "case"),
        text::count(requests, "request")
    );
    match failed {
        0 => crate::stdout::print(out.as_bytes()),
        _ => {
            let end = out.trim_end().rfind('\n').map_or(0, |at| at + 1);
            crate::stdout::print(&out.as_bytes()[..end])?;
            Err(Problem::found(out[end..].trim_end()))
        }
    }
}

/// Makes the requests of a case under fresh rules. Returns what was decided otherwise.
fn run<'a>(source: &RulesSource, case: &'a Case) -> Result<Vec<(&'a Step, String)>> {
    // With a fixed seed each run makes the same decisions.
    let rules = source.open(&Options { seed: Some(0), ..Options::default() })?;
    let mut now = case.start;
    let mut wrong = Vec::new();
    for step in &case.steps {
        now = now.saturating_add(step.after);
        let (passed, last) = make(&rules, step, &mut now)?;
        if passed != step.pass {
            let by = last.rule().map_or(String::new(), |rule| format!(", the last by {rule}"));
            let text = format!("{passed} of {} passed{by}; expected {}", step.times, step.pass);
            wrong.push((step, text));
        }
        wrong.extend(otherwise(step, &last).into_iter().map(|text| (step, text)));
    }
    Ok(wrong)
}

/// Makes the requests of a step. Returns how many passed, and the answer to the last one.
fn make(rules: &Rules, step: &Step, now: &mut u64) -> Result<(u64, Answer)> {
    let damaged = |error: &dyn std::fmt::Display| Problem::io(error.to_string());
    let fields: Vec<Field<'_>> = step.request.iter().map(of).collect();
    let answered: Vec<Field<'_>> =
        fields.iter().copied().chain(step.answer.iter().map(of)).collect();
    let mut passed = 0;
    let mut last = None;
    for n in 0..step.times {
        if n > 0 {
            *now = now.saturating_add(step.every);
        }
        let answer = rules.check_at_unix(&fields, *now).map_err(|error| damaged(&error))?;
        if answer.is_allowed() {
            passed += 1;
            if !step.answer.is_empty() {
                rules
                    .settle_at_unix(&answer.taken(), &answered, *now)
                    .map_err(|error| damaged(&error))?;
            }
        }
        last = Some(answer);
    }
    let last = last.ok_or_else(|| Problem::usage("a step without requests"))?;
    Ok((passed, last))
}

fn of((name, value): &(String, String)) -> Field<'_> {
    Field::new(name.as_bytes(), value.as_bytes())
}

/// What of the last answer is not as the step says.
fn otherwise(step: &Step, last: &Answer) -> Vec<String> {
    let mut all = Vec::new();
    let mut compare = |what: &str, found: String, expected: Option<String>| {
        if let Some(expected) = expected.filter(|expected| *expected != found) {
            all.push(format!("{what} {found} of the last; expected {expected}"));
        }
    };
    compare("status", last.status().to_string(), step.status.map(|status| status.to_string()));
    compare("rule", quoted(last.rule().unwrap_or("")), step.rule.as_deref().map(quoted));
    compare("body", quoted(last.body()), step.body.as_deref().map(quoted));
    let wait = |ns| if ns == tollbar::NEVER { "for ever".to_owned() } else { text::span(ns) };
    compare("wait", wait(last.decision().retry_after), step.wait.map(wait));
    all
}
