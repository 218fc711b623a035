//! Reads the tree of a file as rules. It collects all problems that it can tell apart, so that one
//! run shows them all.

mod classes;
pub(crate) mod fields;
pub(crate) mod limits;
mod rules;

pub use limits::LIMITS_OF_FILE_MOST;
pub(crate) use limits::{is_alone, is_calendar};

use crate::file::{self, Format, Node, Place, Problem, Value};
use crate::path::Spelling;
use crate::rule::{Role, Rule, RuleFile};
use fields::{networks, Fields, Problems};
use rules::{Defaults, Draft};
use std::collections::{HashMap, HashSet};
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
    let root = file::parse(text, format)?;
    let mut problems = Problems::default();
    let file = read_root(&root, &mut problems);
    let mut all = problems.all;
    if all.is_empty() {
        return Ok(file);
    }
    all.sort_by_key(|problem| problem.place);
    Err(all)
}

fn read_root(root: &Node, problems: &mut Problems) -> RuleFile {
    let mut file = RuleFile::default();
    let names =
        ["version", "trusted-proxies", "same-paths", "status", "body", "group", "route", "shadow"];
    let Some(fields) = Fields::new(root, "", &names, problems) else { return file };
    match fields.get("version") {
        None => problems.add(root.place, "version", "no version", "version = 1"),
        Some(node) => {
            if !matches!(node.value, Value::Number(VERSION)) {
                problems.add(
                    node.place,
                    "version",
                    fields::shown(&node.value),
                    "1, the version of this format",
                );
            }
        }
    }
    if let Some(node) = fields.get("trusted-proxies") {
        file.trusted_place = Some(node.place);
        file.trusted = networks(node, "trusted-proxies", true, problems);
    }
    file.spelling = spelling(&fields, problems);
    let defaults = Defaults { refusal: fields.refusal(problems) };
    let mut drafts: Vec<Draft> = Vec::new();
    let mut names: HashMap<&str, Place> = HashMap::new();
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
        if let Some(other) = names.insert(&entry.name, entry.place) {
            let found = format!("the name of the rule in line {}", other.line);
            problems.add(
                entry.place,
                &field,
                found,
                "another name for each group, route and shadow",
            );
        }
        let draft = Draft::read(section, entry, field, &defaults, problems);
        drafts.extend(draft.map(|draft| {
            if file.spelling.any_case {
                draft.in_lower_case()
            } else {
                draft
            }
        }));
    }
    if drafts.is_empty() && problems.all.is_empty() {
        problems.add(root.place, "", "no rules", "a [group.NAME] or a [route.NAME]");
    }
    file.rules = rules::link(drafts, problems);
    check_counts(&file.rules, root, problems);
    file
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

fn is_name(name: &str) -> bool {
    (1..64).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
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
        policies.extend(rule.keys.iter().flat_map(|(_, own)| own));
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
    for rule in rules.iter().filter(|rule| !matches!(rule.role, Role::Shadow(_))) {
        // Rules that share a request with this rule: it may be all groups that overlap it, and one
        // route.
        let shares = |other: &&Rule| !std::ptr::eq(*other, rule) && rule.overlaps(other);
        let groups: usize = rules
            .iter()
            .filter(|other| other.role == Role::Group)
            .filter(shares)
            .map(|other| other.limits.len())
            .sum();
        let routes = rules.iter().filter(|other| other.role == Role::Route).filter(shares);
        let route = match rule.role {
            Role::Group => routes.map(|other| other.limits.len()).max().unwrap_or(0),
            _ => 0,
        };
        let sum = rule.limits.len() + groups + route;
        if sum > LIMITS_MOST {
            let found =
                format!("a request of this rule may have {sum} limits, with those of other groups");
            problems.add(rule.place, &rule.name, found, format!("at most {LIMITS_MOST}"));
        }
    }
}
