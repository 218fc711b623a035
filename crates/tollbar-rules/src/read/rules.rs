//! Groups, routes and shadows.

use super::classes;
use super::fields::{self, inside, networks, shown, Fields, Problems};
use super::limits::{self, is_alone, is_calendar, LIMITS_OF_FILE_MOST};
use crate::file::{quoted, Entry, Node, Place, Text, Value};
use crate::key::Key;
use crate::path::Pattern;
use crate::rule::{Limit, Missing, Refusal, Role, Rule};
use std::collections::HashSet;

/// The file's settings for rules that have none of their own.
pub struct Defaults {
    pub refusal: (Option<u16>, Option<String>),
}

impl Defaults {
    fn refusal(&self, status: u16) -> Refusal {
        Refusal::or(self.refusal.clone(), &Refusal { status, body: String::new() })
    }
}

/// A rule whose references to other rules are still names.
pub struct Draft {
    pub rule: Rule,
    field: String,
    of: Option<(Place, String)>,
    replaces: Vec<(Place, String)>,
    /// Whether a shadow has a field `key`. Otherwise it has the key of its rule.
    own_key: bool,
}

const COMMON: [&str; 13] = [
    "path",
    "method",
    "key",
    "limit",
    "class",
    "cost",
    "missing",
    "exempt",
    "exempt-networks",
    "keys",
    "reset",
    "status",
    "body",
];

impl Draft {
    pub fn read(
        section: &str,
        entry: &Entry,
        field: String,
        defaults: &Defaults,
        problems: &mut Problems,
    ) -> Option<Draft> {
        if section == "shadow" {
            return Draft::shadow(entry, field, problems);
        }
        let is_route = section == "route";
        let names: Vec<&str> = COMMON.into_iter().chain(is_route.then_some("replaces")).collect();
        let fields = Fields::new(&entry.node, &field, &names, problems)?;
        let path = match fields.text("path", problems) {
            Some((place, text)) => pattern(place, text, &fields.name("path"), problems)?,
            None if fields.get("path").is_some() => return None,
            None if is_route => {
                problems.add(entry.place, &field, "no path", "path = \"/login\", or another");
                return None;
            }
            None => Pattern::parse("/**").ok()?,
        };
        let key = key(&fields, &path, problems);
        let limits = policies(&fields, "limit", problems);
        if limits.is_none() && !is_route && fields.get("limit").is_none() {
            problems.add(entry.place, &field, "no limit", "limit = \"100/min\", or another");
        }
        let refusal = Refusal::or(fields.refusal(problems), &defaults.refusal(429));
        let missing = missing(&fields, defaults, problems);
        let class = classes::class(&fields, &path, problems);
        let mut rule = Rule {
            name: entry.name.clone(),
            place: entry.place,
            role: if is_route { Role::Route } else { Role::Group },
            path,
            methods: methods(&fields, problems),
            key: key?,
            limits: limits.unwrap_or_default(),
            class,
            cost: fields.number("cost", 0, i64::MAX, problems),
            missing,
            exempt: HashSet::new(),
            exempt_networks: fields
                .get("exempt-networks")
                .map(|node| networks(node, &fields.name("exempt-networks"), false, problems))
                .unwrap_or_default(),
            keys: Vec::new(),
            reset: fields
                .text("reset", problems)
                .map(|(_, text)| text.text.clone())
                .unwrap_or_default(),
            refusal,
            replaces: Vec::new(),
        };
        classes::check(&rule, &field, problems);
        if fields.get("class").is_none() {
            classes::check_without(&rule, &field, problems);
        }
        rule.exempt = exempt(&fields, &rule.key, problems);
        rule.keys = own_policies(&fields, &rule, problems);
        let named = |(place, text): (Place, &Text)| (place, text.text.clone());
        let replaces =
            fields.texts("replaces", problems).unwrap_or_default().into_iter().map(named).collect();
        Some(Draft { rule, field, of: None, replaces, own_key: true })
    }

    /// The rule where upper and lower case of paths do not differ.
    pub fn in_lower_case(mut self) -> Draft {
        let rule = &mut self.rule;
        rule.path = rule.path.clone().in_lower_case();
        if rule.key.is_of_path() {
            rule.exempt = std::mem::take(&mut rule.exempt)
                .into_iter()
                .map(|key| key.to_ascii_lowercase())
                .collect();
            rule.keys.iter_mut().for_each(|(key, _)| key.make_ascii_lowercase());
            rule.keys.sort_by(|(one, _), (two, _)| one.cmp(two));
            // Of two keys that differ in case only, the first in the order of bytes.
            rule.keys.dedup_by(|(one, _), (two, _)| one == two);
        }
        self
    }

    fn shadow(entry: &Entry, field: String, problems: &mut Problems) -> Option<Draft> {
        let fields = Fields::new(&entry.node, &field, &["of", "limit", "key", "class"], problems)?;
        let Some((place, of)) = fields.text("of", problems) else {
            if fields.get("of").is_none() {
                problems.add(
                    entry.place,
                    &field,
                    "no rule",
                    "of = \"NAME\", the group or route that it goes along with",
                );
            }
            return None;
        };
        if fields.get("limit").is_none() {
            problems.add(entry.place, &field, "no limit", "limit = \"50/min\", or another to try");
        }
        // A placeholder: `link` copies the pattern and the other fields from the shadow's rule,
        // which may come later in the file.
        let path = Pattern::parse("/**").ok()?;
        let own_key = fields.get("key").is_some();
        let rule = Rule {
            name: entry.name.clone(),
            place: entry.place,
            role: Role::Shadow(usize::MAX),
            key: if own_key {
                key(&fields, &path, problems)?
            } else {
                Key::parse(&["address"], &path).ok()?
            },
            class: classes::class(&fields, &path, problems),
            path,
            methods: Vec::new(),
            limits: policies(&fields, "limit", problems)?,
            cost: None,
            missing: Missing::Allow,
            exempt: HashSet::new(),
            exempt_networks: Vec::new(),
            keys: Vec::new(),
            reset: String::new(),
            refusal: Refusal { status: 429, body: String::new() },
            replaces: Vec::new(),
        };
        classes::check(&rule, &field, problems);
        Some(Draft {
            rule,
            field,
            of: Some((place, of.text.clone())),
            replaces: Vec::new(),
            own_key,
        })
    }
}

/// Replaces names of rules by numbers. Shadows come last, so each rule that a shadow names is in
/// the list before it.
pub fn link(mut drafts: Vec<Draft>, problems: &mut Problems) -> Vec<Rule> {
    drafts.sort_by_key(|draft| (draft.of.is_some(), draft.rule.place));
    let known: Vec<(String, Role)> =
        drafts.iter().map(|draft| (draft.rule.name.clone(), draft.rule.role)).collect();
    let find = |name: &str, wanted: &dyn Fn(Role) -> bool| {
        known.iter().position(|(own, role)| own == name && wanted(*role))
    };
    let names = |wanted: &dyn Fn(Role) -> bool| {
        let names: Vec<&str> =
            known.iter().filter(|(_, role)| wanted(*role)).map(|(name, _)| name.as_str()).collect();
        if names.is_empty() {
            "a rule of this file, which has none".to_owned()
        } else {
            format!("one of {}", names.join(", "))
        }
    };
    let is_group = |role: Role| role == Role::Group;
    let is_enforced = |role: Role| !matches!(role, Role::Shadow(_));
    let mut rules: Vec<Rule> = Vec::new();
    for mut draft in drafts {
        for (place, name) in std::mem::take(&mut draft.replaces) {
            match find(&name, &is_group) {
                Some(group) => draft.rule.replaces.push(group),
                None => problems.add(
                    place,
                    &format!("{}.replaces", draft.field),
                    quoted(&name),
                    format!("{} (groups)", names(&is_group)),
                ),
            }
        }
        if let Some((place, name)) = &draft.of {
            let Some(of) = find(name, &is_enforced).and_then(|n| Some((n, rules.get(n)?.clone())))
            else {
                problems.add(
                    *place,
                    &format!("{}.of", draft.field),
                    quoted(name),
                    names(&is_enforced),
                );
                continue;
            };
            let (number, of) = of;
            let own = draft.rule;
            let key = if draft.own_key { own.key } else { of.key.clone() };
            // The rule's exempt keys are bytes of the rule's own key, so they mean nothing under
            // another key.
            let exempt = if draft.own_key { HashSet::new() } else { of.exempt.clone() };
            let policies = Rule {
                name: own.name,
                place: own.place,
                limits: own.limits,
                class: own.class.or_else(|| of.class.clone()),
                key,
                exempt,
                role: Role::Shadow(number),
                ..of
            };
            draft.rule = Rule {
                keys: Vec::new(),
                replaces: Vec::new(),
                missing: Missing::Allow,
                ..policies
            };
            classes::check_without(&draft.rule, &draft.field, problems);
        }
        rules.push(draft.rule);
    }
    rules
}

fn pattern(place: Place, text: &Text, field: &str, problems: &mut Problems) -> Option<Pattern> {
    Pattern::parse(&text.text)
        .map_err(|(at, expected)| {
            let rest = text.text.get(at..).unwrap_or("");
            problems.add(
                inside(place, text, at),
                field,
                format!("{} in {}", quoted(rest), quoted(&text.text)),
                expected,
            );
        })
        .ok()
}

/// The rule's key: `address` if the rule has no field `key`.
fn key(fields: &Fields<'_>, pattern: &Pattern, problems: &mut Problems) -> Option<Key> {
    let Some(texts) = fields.texts("key", problems) else {
        return Key::parse(&["address"], pattern).ok();
    };
    let parts: Vec<&str> = texts.iter().map(|(_, text)| text.text.as_str()).collect();
    if parts.is_empty() {
        return None;
    }
    Key::parse(&parts, pattern)
        .map_err(|(part, at, expected)| {
            let (place, text) = texts[part];
            problems.add(
                inside(place, text, at),
                &fields.name("key"),
                quoted(text.text.get(at..).unwrap_or("")),
                expected,
            );
        })
        .ok()
}

fn methods(fields: &Fields<'_>, problems: &mut Problems) -> Vec<String> {
    let mut all = Vec::new();
    for (place, text) in fields.texts("method", problems).unwrap_or_default() {
        if text.text.is_empty() || !text.text.bytes().all(|b| b.is_ascii_uppercase() || b == b'-') {
            problems.add(
                place,
                &fields.name("method"),
                quoted(&text.text),
                "a method in upper case, such as POST, or a list of them",
            );
        }
        all.push(text.text.clone());
    }
    all
}

fn policies(fields: &Fields<'_>, name: &str, problems: &mut Problems) -> Option<Vec<Limit>> {
    let texts = fields.texts(name, problems)?;
    let field = fields.name(name);
    if let Some((place, _)) = texts.get(LIMITS_OF_FILE_MOST) {
        problems.add(
            *place,
            &field,
            format!("{} limits", texts.len()),
            format!("at most {LIMITS_OF_FILE_MOST} in a file"),
        );
        return None;
    }
    let limits: Vec<Limit> = texts
        .into_iter()
        .filter_map(|(place, text)| limits::limit(place, text, &field, problems))
        .collect();
    for (n, limit) in limits.iter().enumerate() {
        if limits[..n].iter().any(|other| other.policy == limit.policy) {
            problems.add(
                limit.place,
                &field,
                format!("\"{}\" a second time", limit.policy),
                "each policy once",
            );
        }
    }
    (!limits.is_empty()).then_some(limits)
}

fn missing(fields: &Fields<'_>, defaults: &Defaults, problems: &mut Problems) -> Missing {
    let deny = || Missing::Deny(defaults.refusal(403));
    let Some(node) = fields.get("missing") else { return deny() };
    let name = fields.name("missing");
    match &node.value {
        Value::Text(text) if text.text == "allow" => Missing::Allow,
        Value::Text(text) if text.text == "deny" => deny(),
        Value::Table(_) => match Fields::new(node, &name, &["status", "body"], problems) {
            Some(own) => Missing::Deny(Refusal::or(
                own.refusal(problems),
                &Refusal { status: 403, body: String::new() },
            )),
            None => deny(),
        },
        value => {
            problems.add(
                node.place,
                &name,
                shown(value),
                "\"allow\", \"deny\", or { status = 403, body = \"...\" }",
            );
            deny()
        }
    }
}

const NAMED: &str =
    "a rule whose key has one source other than all, because other keys have no text";

/// The bytes of a key that the file names.
fn named(
    key: &Key,
    text: &str,
    place: Place,
    field: &str,
    problems: &mut Problems,
) -> Option<Vec<u8>> {
    let bytes = key.named(text);
    if bytes.is_none() {
        let has_text = key.only().is_some_and(|source| *source != crate::key::Source::All);
        let expected =
            if has_text { "a key, or an address where the key is an address" } else { NAMED };
        problems.add(place, field, quoted(text), expected);
    }
    bytes
}

fn exempt(fields: &Fields<'_>, key: &Key, problems: &mut Problems) -> HashSet<Vec<u8>> {
    let field = fields.name("exempt");
    let texts = fields.texts("exempt", problems).unwrap_or_default();
    texts
        .into_iter()
        .filter_map(|(place, text)| named(key, &text.text, place, &field, problems))
        .collect()
}

/// `keys`: policies of single keys.
fn own_policies(
    fields: &Fields<'_>,
    rule: &Rule,
    problems: &mut Problems,
) -> Vec<(Vec<u8>, Vec<tollbar::Policy>)> {
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
    let mut all: Vec<(Vec<u8>, Vec<tollbar::Policy>)> = Vec::new();
    let mut seen = HashSet::new();
    for entry in entries {
        let field = format!("{field}.{}", entry.name);
        let Some(key) = named(&rule.key, &entry.name, entry.place, &field, problems) else {
            continue;
        };
        if !seen.insert(key.clone()) {
            problems.add(entry.place, &field, "a key a second time", "each key once");
        }
        if let Some(policies) = policies_of_key(&entry.node, &field, rule, problems) {
            all.push((key, policies));
        }
    }
    all.sort_by(|(one, _), (two, _)| one.cmp(two));
    all
}

fn policies_of_key(
    node: &Node,
    field: &str,
    rule: &Rule,
    problems: &mut Problems,
) -> Option<Vec<tollbar::Policy>> {
    let texts = fields::texts(node, field, problems);
    let mut own = Vec::new();
    for (place, text) in texts {
        let Some(limit) = limits::limit(place, text, field, problems) else { continue };
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
    if rule.limits.iter().any(|limit| is_alone(&limit.policy)) {
        problems.add(
            node.place,
            field,
            "a key of a rule with a sliding window or log",
            "keys of rules with other algorithms",
        );
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
