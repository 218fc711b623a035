//! Policies in a rules file.

use super::fields::Problems;
use crate::file::{quoted, Place, Text};
use crate::rule::Limit;
use crate::times::Times;
use tollbar::clock::Source;
use tollbar::policy::text::parse_checked;
use tollbar::policy::{Fault, PolicyError, Words};
use tollbar::table::{Options, Table, TableError};
use tollbar::{Kind, Policy, SyntaxError};

/// The most limits of a file. A table has 128 policies, and a reload may rename every rule while
/// requests still use the old ones.
pub const LIMITS_OF_FILE_MOST: usize = 63;

/// Reads a policy that a key of a table can be under, or the policies of a schedule. None if the
/// text is neither.
pub fn limit(place: Place, text: &Text, field: &str, problems: &mut Problems) -> Vec<Limit> {
    let error = match parse_checked(text.text.as_bytes(), &suits_table) {
        Ok(policy) => return vec![Limit { policy, when: None, place }],
        Err(error) => error,
    };
    if !text.text.contains(',') {
        fault(&error, place, text, field, problems);
        return Vec::new();
    }
    match Times::of_limit(&text.text, &suits_table) {
        Ok(policies) => {
            let limit = |(policy, when)| Limit { policy, when: Some(when), place };
            policies.into_iter().map(limit).collect()
        }
        Err(of_schedule) => {
            let further = if of_schedule.column > error.column { of_schedule } else { error };
            fault(&further, place, text, field, problems);
            Vec::new()
        }
    }
}

/// Reads a policy that a key of a table can be under.
pub fn policy(place: Place, text: &Text, field: &str, problems: &mut Problems) -> Option<Limit> {
    match parse_checked(text.text.as_bytes(), &suits_table) {
        Ok(policy) => Some(Limit { policy, when: None, place }),
        Err(error) => {
            fault(&error, place, text, field, problems);
            None
        }
    }
}

fn fault(error: &SyntaxError, place: Place, text: &Text, field: &str, problems: &mut Problems) {
    // If the text is a policy that only a table refuses, the error names no column. `anchor`, if
    // the text has it, is then the option at fault.
    let is_of_tables = text.text.parse::<Policy>().is_ok();
    let at = match text.text.find("anchor") {
        Some(at) if is_of_tables => at,
        _ => error.column.saturating_sub(1),
    };
    let before = text.text.get(..at).unwrap_or("");
    let wrong = text
        .begins
        .map_or(place, |begins| Place { column: begins.column + before.chars().count(), ..begins });
    let rest = text.text.get(before.len()..).unwrap_or("");
    let of = quoted(&text.text);
    let (found, expected) = match error.fault {
        Fault::Policy(PolicyError::List) => (
            format!("policies in {of} that do not fit one state"),
            "a list: limit = [\"10/s\", \"1000/day\"]".to_owned(),
        ),
        Fault::Policy(PolicyError::OptionMismatch) if is_of_tables => (
            format!("`anchor first` in {of}"),
            "`anchor epoch`, because a window of many keys cannot start at a first request"
                .to_owned(),
        ),
        Fault::Policy(why) => (format!("{of}: {why}"), String::new()),
        Fault::Duplicate => {
            (format!("an option a second time in {of}"), error.expected().to_owned())
        }
        Fault::Overflow => (format!("a number too large in {of}"), error.expected().to_owned()),
        _ if rest.is_empty() => (format!("the end of {of}"), error.expected().to_owned()),
        _ => (format!("{} in {of}", quoted(rest)), error.expected().to_owned()),
    };
    problems.add(wrong, field, found, expected);
}

/// The policy of a text, if a key of a table can be under it, or else what is wrong.
pub fn policy_for_table(text: &str) -> Result<Policy, String> {
    parse_checked(text.as_bytes(), &suits_table).map_err(|error| error.to_string())
}

/// A sliding window or log has a table for itself, and its keys have no policies of their own.
pub fn is_alone(policy: &Policy) -> bool {
    policy.limit != 0 && policy.kind.words() != Words::One
}

/// A calendar has a table for itself, whose clock is the wall clock.
pub fn is_calendar(policy: &Policy) -> bool {
    policy.kind == Kind::Calendar
}

fn suits_table(policy: &Policy) -> Result<(), PolicyError> {
    let mut options = Options::new(1);
    if is_calendar(policy) {
        options.clock = Source::Wall;
    }
    match Table::bytes_for(&options, &[*policy]) {
        Ok(_) => Ok(()),
        Err(error) => policy_error(error),
    }
}

/// Not inlined: the compiler would read the error of a call that had none, before it knows that,
/// and valgrind would report it.
#[inline(never)]
fn policy_error(error: TableError) -> Result<(), PolicyError> {
    match error {
        TableError::Policy(error) => Err(error),
        _ => Ok(()),
    }
}
