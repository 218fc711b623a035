//! `exempt` and `keys`: single keys of a rule.

use super::classes;
use super::fields::{self, shown, Fields, Problems};
use super::limits::{self, is_alone, is_calendar};
use crate::file::{quoted, Node, Place, Text, Value};
use crate::key::Key;
use crate::rule::{Limit, OwnPolicies, Rule};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use tollbar::Policy;

const NAMED: &str =
    "a rule whose key has one source other than all, because other keys have no text";

/// The bytes of a key that the file names, or what is expected.
fn named(key: &Key, text: &str) -> Result<Vec<u8>, &'static str> {
    key.named(text).ok_or_else(|| {
        let has_text = key.only().is_some_and(|source| *source != crate::key::Source::All);
        if has_text {
            "a key, or an address where the key is an address"
        } else {
            NAMED
        }
    })
}

/// `exempt`: keys that are not limited.
pub fn exempt(fields: &Fields<'_>, key: &Key, problems: &mut Problems) -> HashSet<Vec<u8>> {
    let field = fields.name("exempt");
    let texts = fields.texts("exempt", problems).unwrap_or_default();
    let one = |(place, text): (Place, &Text)| match named(key, &text.text) {
        Ok(bytes) => Some(bytes),
        Err(expected) => {
            problems.add(place, &field, quoted(&text.text), expected);
            None
        }
    };
    texts.into_iter().filter_map(one).collect()
}

/// `keys`: policies of single keys. A key may have those of one of the rule's `plans`.
pub fn own_policies(
    fields: &Fields<'_>,
    rule: &Rule,
    plans: &[Rule],
    problems: &mut Problems,
) -> Vec<OwnPolicies> {
    let Some(node) = fields.get("keys") else { return Vec::new() };
    let field = fields.name("keys");
    let Value::Table(entries) = &node.value else {
        problems.add(
            node.place,
            &field,
            shown(&node.value),
            "a table of keys and policies: { ann = \"1000/min\" }",
        );
        return Vec::new();
    };
    let mut all: Vec<OwnPolicies> = Vec::with_capacity(entries.len());
    let mut seen = HashSet::with_capacity(entries.len());
    // Most of many keys have the text of another one.
    let mut of_text: HashMap<&str, Arc<[Policy]>> = HashMap::new();
    for entry in entries {
        let field = || format!("{field}.{}", entry.name);
        let key: Arc<[u8]> = match named(&rule.key, &entry.name) {
            Ok(key) => key.into(),
            Err(expected) => {
                problems.add(entry.place, &field(), quoted(&entry.name), expected);
                continue;
            }
        };
        if !seen.insert(Arc::clone(&key)) {
            problems.add(entry.place, &field(), "a key a second time", "each key once");
        }
        let text = match &entry.node.value {
            Value::Text(text) => Some(text.text.as_str()),
            _ => None,
        };
        if let Some(known) = text.and_then(|text| of_text.get(text)) {
            all.push((key, Arc::clone(known)));
            continue;
        }
        let before = problems.all.len();
        let read = policies_of_key(&entry.node, &field(), rule, plans, problems);
        let Some(policies) = read.map(Arc::<[Policy]>::from) else { continue };
        // A text with a fault is a fault of each key that has it.
        if let (Some(text), true) = (text, problems.all.len() == before) {
            of_text.insert(text, Arc::clone(&policies));
        }
        all.push((key, policies));
    }
    all.sort_by(|(one, _), (two, _)| one.cmp(two));
    all
}

fn policies_of_key(
    node: &Node,
    field: &str,
    rule: &Rule,
    plans: &[Rule],
    problems: &mut Problems,
) -> Option<Vec<Policy>> {
    let texts = fields::texts(node, field, problems);
    let mut own = Vec::new();
    if let [(place, text)] = texts[..] {
        if let Some(plan) = plans.iter().find(|plan| plan.own_name(rule) == text.text) {
            own = plan.limits.iter().map(|limit| Limit { place, ..limit.clone() }).collect();
        }
    }
    let of_plan = !own.is_empty();
    let given = if of_plan { own.len() } else { texts.len() };
    for (place, text) in texts.into_iter().filter(|_| !of_plan) {
        let Some(limit) = limits::policy(place, text, field, problems) else { continue };
        if is_alone(&limit.policy) {
            let found = format!("\"{}\"", limit.policy);
            problems.add(
                place,
                field,
                found,
                "another algorithm than sliding-window and sliding-log",
            );
        }
        own.push(limit);
    }
    if rule.limits.iter().chain(&own).any(|limit| limit.when.is_some()) {
        let expected = "rules without a schedule in a limit; `when` in a rule goes with keys";
        problems.add(node.place, field, "a key of a rule with a schedule", expected);
        return None;
    }
    if rule.limits.iter().any(|limit| is_alone(&limit.policy)) {
        problems.add(
            node.place,
            field,
            "a key of a rule with a sliding window or log",
            "keys of rules with other algorithms",
        );
    }
    if own.len() < given {
        return None;
    }
    if own.len() != rule.limits.len() {
        let found = format!("{} policies", own.len());
        problems.add(
            node.place,
            field,
            found,
            format!("{}, one for each limit of the rule", rule.limits.len()),
        );
        return None;
    }
    for (own, of_rule) in own.iter().zip(&rule.limits) {
        classes::check_own(own, &of_rule.policy, field, problems);
        let expected = match (is_calendar(&own.policy), is_calendar(&of_rule.policy)) {
            (true, false) => "another policy than a calendar",
            (false, true) => "a calendar",
            _ => continue,
        };
        let found = format!("\"{}\"", own.policy);
        problems.add(
            own.place,
            field,
            found,
            format!("{expected}, because the limit of the rule is \"{}\"", of_rule.policy),
        );
    }
    Some(own.into_iter().map(|limit| limit.policy).collect())
}
