//! `class` and `plan`: where the class or the plan of a request comes from.

use super::fields::{inside, Fields, Problems};
use crate::file::quoted;
use crate::key::{Key, Source};
use crate::path::Pattern;
use crate::rule::{Class, Limit, Rule};
use tollbar::Policy;

const EXPECTED: &str =
    "header NAME, cookie NAME, path NAME or field NAME; two with | between them for the first that is there";
const WITHOUT: &str = "class = \"field NAME\" or \"header NAME\" beside the limit";

/// Reads the field `class`, or another of its kind.
pub fn class(
    name: &str,
    fields: &Fields<'_>,
    pattern: &Pattern,
    problems: &mut Problems,
) -> Option<Class> {
    let (place, text) = fields.text(name, problems)?;
    let wrong = match Key::parse(&[&text.text], pattern) {
        Ok(source)
            if source
                .sources()
                .all(|source| !matches!(source, Source::All | Source::Address(..))) =>
        {
            return Some(Class { source, place });
        }
        Ok(_) => (0, EXPECTED),
        Err((_, at, of_path)) => {
            match text.text.get(at..).is_some_and(|rest| rest.starts_with("path ")) {
                true => (at, of_path),
                false => (at, EXPECTED),
            }
        }
    };
    let rest = text.text.get(wrong.0..).unwrap_or("");
    problems.add(inside(place, text, wrong.0), &fields.name(name), quoted(rest), wrong.1);
    None
}

/// Finds a class without reserves, and limits of one rule with different classes.
pub fn check(rule: &Rule, field: &str, problems: &mut Problems) {
    let of_limit = format!("{field}.limit");
    // Nobody knows the classes of a limit that has a fault.
    if problems.all.iter().any(|problem| problem.field == of_limit) {
        return;
    }
    let mut with_classes = rule.limits.iter().filter(|limit| !limit.policy.classes.is_empty());
    let Some(first) = with_classes.next() else {
        if let Some(class) = &rule.class {
            let expected =
                "limit = \"100/s reserve low 20 high 0\", or another with a reserve for each class";
            problems.add(
                class.place,
                &format!("{field}.class"),
                "a class, and no limit with classes",
                expected,
            );
        }
        return;
    };
    for limit in with_classes {
        check_same(limit, &first.policy, &of_limit, problems);
    }
}

/// Finds limits with classes in a rule that does not say where a request's class comes from.
pub fn check_without(rule: &Rule, field: &str, problems: &mut Problems) {
    let without =
        rule.limits.iter().filter(|limit| rule.class.is_none() && !limit.policy.classes.is_empty());
    for limit in without {
        let found = format!("\"{}\" in a rule without a class", limit.policy);
        problems.add(limit.place, &format!("{field}.limit"), found, WITHOUT);
    }
}

/// Finds a policy of a key whose classes are not those of the rule's limit.
pub fn check_own(own: &Limit, of_rule: &Policy, field: &str, problems: &mut Problems) {
    if !own.policy.classes.is_empty() || !of_rule.classes.is_empty() {
        check_same(own, of_rule, field, problems);
    }
}

/// A request names one class for all limits of a rule, so each limit must know the same names.
fn check_same(limit: &Limit, other: &Policy, field: &str, problems: &mut Problems) {
    if names(&limit.policy) != names(other) {
        let found = format!("\"{}\" with other classes than \"{other}\"", limit.policy);
        problems.add(limit.place, field, found, "the same names of classes in each");
    }
}

fn names(policy: &Policy) -> Vec<&str> {
    let mut names: Vec<&str> = policy.classes.iter().map(|(name, _)| name).collect();
    names.sort_unstable();
    names
}
