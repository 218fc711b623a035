//! Reads the tree of a file as rules. It collects all problems that it can tell apart, so that one
//! run shows them all.

mod classes;
mod costs;
mod draft;
pub(crate) mod fields;
mod keys;
pub(crate) mod limits;
mod of_rule;
mod parts;
mod rules;

pub use limits::LIMITS_OF_FILE_MOST;
pub(crate) use limits::{is_alone, is_calendar};

use crate::file::{self, Format, Node, Place, Problem, Value};
use crate::path::Spelling;
use crate::rule::{Limit, Role, Rule, RuleFile};
use crate::times::Times;
use draft::{Defaults, Draft};
use fields::{is_name, networks, Fields, Problems};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use tollbar::take_many::LIMITS_MOST;
use tollbar::Policy;

/// The version of the format that this crate reads.
const VERSION: i64 = 1;
/// The most rules of a file.
pub const RULES_MOST: usize = 96;
/// The most policies of single keys in a file, each counted once for each limit of its rule.
pub const KEYS_MOST: usize = 1 << 18;
/// The most different policies of a file, those of limits and of keys. A table has 255 versions of
/// policies, and a change of a policy needs another one.
pub const POLICIES_MOST: usize = 240;

/// Reads the text of a rules file.
///
/// # Errors
/// All problems, in the order of the file.
pub fn read(text: &str, format: Format) -> Result<RuleFile, Vec<Problem>> {
    read_tree(&file::parse(text, format)?)
}

/// Reads the tree of a file, and of those that it includes.
pub(crate) fn read_tree(root: &Node) -> Result<RuleFile, Vec<Problem>> {
    let mut problems = Problems::default();
    let file = read_root(root, &mut problems);
    let mut all = problems.all;
    if all.is_empty() {
        return Ok(file);
    }
    all.sort_by_key(|problem| problem.place);
    Err(all)
}

fn read_root(root: &Node, problems: &mut Problems) -> RuleFile {
    let mut file = RuleFile::default();
    let names = [
        "version",
        "include",
        "trusted-proxies",
        "same-paths",
        "status",
        "body",
        "group",
        "route",
        "shadow",
    ];
    let Some(fields) = Fields::new(root, "", &names, problems) else { return file };
    check_version(root, problems);
    if let Some(node) = fields.get("include") {
        let expected = "a file: rules of a text include no files";
        problems.add(node.place, "include", "an include", expected);
    }
    if let Some(node) = fields.get("trusted-proxies") {
        file.trusted_place = Some(node.place);
        file.trusted = networks(node, "trusted-proxies", true, problems);
    }
    file.spelling = spelling(&fields, problems);
    let defaults = Defaults { refusal: fields.refusal(problems) };
    let mut drafts: Vec<Draft> = Vec::new();
    let mut names: HashMap<String, Place> = HashMap::new();
    let sections = fields.sections(&["group", "route", "shadow"], problems);
    if let Some((section, entry)) = sections.get(RULES_MOST) {
        let field = format!("{section}.{}", entry.name);
        problems.add(
            entry.place,
            &field,
            format!("{} rules", sections.len()),
            format!("at most {RULES_MOST}"),
        );
        return file;
    }
    for (section, entry) in sections {
        let field = format!("{section}.{}", entry.name);
        if !is_name(&entry.name) {
            problems.add(
                entry.place,
                &field,
                file::quoted(&entry.name),
                "a name of 1 to 63 letters, digits, . _ and -",
            );
        }
        for draft in Draft::read(section, entry, field, &defaults, problems) {
            let (name, place) = (draft.rule.name.clone(), draft.rule.place);
            if let Some(other) = names.insert(name, place) {
                let file = if other.file == place.file { "" } else { " of another file" };
                let found = format!("the name of the rule in line {}{file}", other.line);
                let expected = "another name for each group, route and shadow";
                problems.add(place, &draft.field, found, expected);
            }
            drafts.push(match file.spelling.any_case {
                true => draft.in_lower_case(),
                false => draft,
            });
        }
    }
    if let Some(draft) = drafts.get(RULES_MOST) {
        let found = format!("{} rules, with their limits and plans", drafts.len());
        problems.add(draft.rule.place, &draft.field, found, format!("at most {RULES_MOST}"));
        return file;
    }
    if drafts.is_empty() && problems.all.is_empty() {
        problems.add(root.place, "", "no rules", "a [group.NAME] or a [route.NAME]");
    }
    file.rules = rules::link(drafts, problems);
    check_counts(&file.rules, root, problems);
    file
}

/// Refuses a file without a version, or of another one.
pub(crate) fn check_version(root: &Node, problems: &mut Problems) {
    let Value::Table(entries) = &root.value else { return };
    match entries.iter().find(|entry| entry.name == "version").map(|entry| &entry.node) {
        None => problems.add(root.place, "version", "no version", "version = 1"),
        Some(node) if matches!(node.value, Value::Number(VERSION)) => {}
        Some(node) => {
            let found = fields::shown(&node.value);
            problems.add(node.place, "version", found, "1, the version of this format");
        }
    }
}

/// `same-paths`: which spellings of a path the server behind the rules takes for one.
fn spelling(fields: &Fields<'_>, problems: &mut Problems) -> Spelling {
    let mut spelling = Spelling::default();
    for (place, text) in fields.texts("same-paths", problems).unwrap_or_default() {
        match text.text.as_str() {
            "any-case" => spelling.any_case = true,
            "parameters" => spelling.parameters = true,
            other => {
                let expected =
                    "\"any-case\", for which /LOGIN is /login, or \"parameters\", for which /login;x=1 is /login";
                problems.add(place, "same-paths", file::quoted(other), expected);
            }
        }
    }
    spelling
}

/// C5: refuses more keys with policies of their own, and more different policies, than the table
/// holds.
fn check_keys(rules: &[Rule], problems: &mut Problems) {
    let mut policies: HashSet<Policy> =
        rules.iter().flat_map(|rule| &rule.limits).map(|limit| limit.policy).collect();
    let mut keys = 0;
    for rule in rules {
        let field = format!("{}.keys", rule.name);
        keys += rule.keys.len() * rule.limits.len();
        if keys > KEYS_MOST {
            let found = format!("{keys} policies of keys up to here");
            return problems.add(
                rule.place,
                &field,
                found,
                format!("at most {KEYS_MOST} in a file"),
            );
        }
        let mut seen = HashSet::new();
        let own = rule.keys.iter().map(|(_, own)| own);
        policies.extend(own.filter(|own| seen.insert(Arc::as_ptr(own))).flat_map(|own| &**own));
        if policies.len() > POLICIES_MOST {
            let found = format!("{} different policies up to here", policies.len());
            return problems.add(
                rule.place,
                &field,
                found,
                format!("at most {POLICIES_MOST} in a file; keys may share one"),
            );
        }
    }
}

/// Refuses more limits and policies of keys than the table holds, and more limits than one request
/// can take.
fn check_counts(rules: &[Rule], root: &Node, problems: &mut Problems) {
    let limits: usize = rules.iter().map(|rule| rule.limits.len()).sum();
    if limits > LIMITS_OF_FILE_MOST {
        problems.add(
            root.place,
            "",
            format!("{limits} limits"),
            format!("at most {LIMITS_OF_FILE_MOST}"),
        );
    }
    check_keys(rules, problems);
    let all = most_limits(rules);
    for (n, rule) in rules.iter().enumerate() {
        // Rules that share a request with this rule: it may be all groups that overlap it, and one
        // route.
        let with_role = |role: Role| {
            let shares = move |(m, other): &(usize, &Rule)| {
                *m != n && other.role == role && rule.overlaps(other)
            };
            rules.iter().enumerate().filter(shares).map(|(m, _)| all[m])
        };
        let route = match rule.role {
            Role::Group => with_role(Role::Route).max().unwrap_or(0),
            Role::Route => 0,
            _ => continue,
        };
        let sum = all[n] + with_role(Role::Group).sum::<usize>() + route;
        if sum > LIMITS_MOST {
            let found =
                format!("a request of this rule may have {sum} limits, with those of other groups");
            problems.add(rule.place, &rule.name, found, format!("at most {LIMITS_MOST}"));
        }
    }
}

/// For each rule the most limits that a request may have of it: its own or those of a plan, and
/// those of its further limits.
fn most_limits(rules: &[Rule]) -> Vec<usize> {
    // Of a schedule one policy is in force.
    let counts = |limit: &&Limit| limit.when.as_ref().is_none_or(Times::are_usual);
    let own = |rule: &Rule| rule.limits.iter().filter(counts).count();
    let mut all: Vec<usize> = rules.iter().map(own).collect();
    for (rule, of) in rules.iter().filter_map(|rule| Some((rule, rule.role.part_of()?))) {
        if matches!(rule.role, Role::Plan(_)) {
            all[of] = all[of].max(own(rule));
        }
    }
    // A further limit may have plans, and stands behind its rule.
    for n in (0..rules.len()).rev() {
        if let Role::Limit(of) = rules[n].role {
            all[of] += all[n];
        }
    }
    all
}
