//! Further limits of a rule, and its plans: each is a rule of its own that goes along with it.

use super::draft::{Defaults, Draft};
use super::fields::{is_name, networks, Fields, Problems};
use super::of_rule::{key, missing, policies};
use super::{classes, costs, keys};
use crate::file::{quoted, Entry, Node, Value};
use crate::rule::{Refusal, Role, Rule};
use std::collections::HashSet;

/// The fields of a group, a route and a further limit.
pub const FIELDS: [&str; 14] = [
    "key",
    "limit",
    "plan",
    "plans",
    "class",
    "cost",
    "estimate",
    "missing",
    "exempt",
    "exempt-networks",
    "keys",
    "reset",
    "status",
    "body",
];

/// The fields of a plan. All others are those of its rule.
const OF_PLAN: [&str; 7] = ["limit", "cost", "estimate", "keys", "reset", "status", "body"];

/// The rule of these fields, then its plans. `blank` has what the fields do not say.
pub fn with_plans(
    blank: Rule,
    fields: &Fields<'_>,
    field: &str,
    defaults: &Defaults,
    problems: &mut Problems,
) -> Option<Vec<Draft>> {
    let mut rule = blank;
    let own_key =
        if fields.get("key").is_some() { Some(key(fields, &rule.path, problems)?) } else { None };
    if let Some(key) = own_key {
        // The exempt keys of the rule before are bytes of its own key.
        (rule.key, rule.exempt) = (key, HashSet::new());
    }
    if fields.get("missing").is_some() {
        rule.missing = missing(fields, defaults, problems);
    }
    if let Some(node) = fields.get("exempt-networks") {
        rule.exempt_networks = networks(node, &fields.name("exempt-networks"), false, problems);
    }
    rule.class = classes::class("class", fields, &rule.path, problems);
    rule.plan = classes::class("plan", fields, &rule.path, problems);
    fill(&mut rule, fields, problems);
    classes::check(&rule, field, problems);
    if fields.get("class").is_none() {
        classes::check_without(&rule, field, problems);
    }
    if fields.get("exempt").is_some() {
        rule.exempt = keys::exempt(fields, &rule.key, problems);
    }
    let plans = plans(&rule, fields, problems);
    let rules: Vec<Rule> = plans.iter().map(|(plan, _)| plan.clone_without_keys()).collect();
    rule.keys = keys::own_policies(fields, &rule, &rules, problems);
    let name = rule.name.clone();
    let plan = |(plan, field)| Draft::of_rule(plan, field, Some(name.clone()));
    // Without `plan` only single keys have plans, as policies of their own.
    let plans: Vec<Draft> = match rule.plan {
        Some(_) => plans.into_iter().map(plan).collect(),
        None => Vec::new(),
    };
    Some(std::iter::once(Draft::of_rule(rule, field.to_owned(), None)).chain(plans).collect())
}

/// Reads the fields that rules and plans have.
fn fill(rule: &mut Rule, fields: &Fields<'_>, problems: &mut Problems) {
    rule.limits = policies(fields, "limit", problems).unwrap_or_default();
    rule.cost = costs::cost(fields, &rule.path, problems).or(rule.cost.take());
    if let Some((_, text)) = fields.text("reset", problems) {
        rule.reset = text.text.clone();
    }
    rule.refusal = Refusal::or(fields.refusal(problems), &rule.refusal);
}

/// `plans`: a table of names and policies, or of tables.
fn plans(rule: &Rule, fields: &Fields<'_>, problems: &mut Problems) -> Vec<(Rule, String)> {
    let entries = entries("plans", fields, problems);
    if entries.is_empty() {
        if let Some(plan) = &rule.plan {
            let expected = "plans = { pro = \"600/min\" }, a table of plans, beside it";
            problems.add(plan.place, &fields.name("plan"), "a plan, and no plans", expected);
        }
        return Vec::new();
    }
    let mut all = Vec::new();
    for entry in entries {
        let field = format!("{}.{}", fields.name("plans"), entry.name);
        let mut plan = part(rule, entry, &field, Role::Plan(usize::MAX), problems);
        // A policy, or a list of policies, is a plan without other fields.
        let alone = Node { place: entry.place, value: Value::Table(vec![limit(entry)]) };
        let node = if let Value::Table(_) = entry.node.value { &entry.node } else { &alone };
        let Some(fields) = Fields::new(node, &field, &OF_PLAN, problems) else { continue };
        if fields.get("limit").is_none() {
            problems.add(entry.place, &field, "no limit", "limit = \"100/min\", or another");
        }
        fill(&mut plan, &fields, problems);
        let has_classes = plan.limits.iter().any(|limit| !limit.policy.classes.is_empty());
        plan.class = rule.class.clone().filter(|_| has_classes);
        classes::check(&plan, &field, problems);
        classes::check_without(&plan, &field, problems);
        plan.keys = keys::own_policies(&fields, &plan, &[], problems);
        all.push((plan, field));
    }
    all
}

fn limit(entry: &Entry) -> Entry {
    Entry { name: "limit".to_owned(), place: entry.place, node: entry.node.clone() }
}

/// `limits`: a table of further limits with names.
pub fn limits(
    of: &Rule,
    fields: &Fields<'_>,
    defaults: &Defaults,
    problems: &mut Problems,
) -> Vec<Draft> {
    let mut all = Vec::new();
    for entry in entries("limits", fields, problems) {
        let field = format!("{}.{}", fields.name("limits"), entry.name);
        let mut blank = part(of, entry, &field, Role::Limit(usize::MAX), problems);
        // A number counts for all limits of a rule, another cost for its own.
        blank.cost = None;
        let Some(fields) = Fields::new(&entry.node, &field, &FIELDS, problems) else { continue };
        if fields.get("limit").is_none() && fields.get("plans").is_none() {
            problems.add(entry.place, &field, "no limit", "limit = \"100/min\", or another");
        }
        let Some(mut drafts) = with_plans(blank, &fields, &field, defaults, problems) else {
            continue;
        };
        if let Some(first) = drafts.first_mut() {
            first.part_of = Some(of.name.clone());
        }
        all.extend(drafts);
    }
    all
}

/// A rule with the fields of another one, of which it is a part.
fn part(of: &Rule, entry: &Entry, field: &str, role: Role, problems: &mut Problems) -> Rule {
    let name = format!("{}.{}", of.name, entry.name);
    if !is_name(&name) {
        let expected = "a name of letters, digits, . _ and -, at most 63 with that of its rule";
        problems.add(entry.place, field, quoted(&entry.name), expected);
    }
    let replaces = Vec::new();
    Rule { name, place: entry.place, role, plan: None, replaces, ..of.clone_without_keys() }
}

fn entries<'a>(name: &str, fields: &Fields<'a>, problems: &mut Problems) -> &'a [Entry] {
    match fields.get(name).map(|node| (node, &node.value)) {
        None => &[],
        Some((_, Value::Table(entries))) => entries,
        Some((node, value)) => {
            let expected = format!("a table of names: [{}.NAME]", fields.name(name));
            problems.add(node.place, &fields.name(name), super::fields::shown(value), expected);
            &[]
        }
    }
}
