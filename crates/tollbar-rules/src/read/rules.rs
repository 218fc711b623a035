//! Groups, routes and shadows.

use super::classes;
use super::draft::{Defaults, Draft};
use super::fields::{Fields, Problems};
use super::of_rule::{hosts, key, methods, pattern, policies, when};
use super::parts;
use crate::file::{quoted, Entry, Place, Text};
use crate::key::Key;
use crate::path::Pattern;
use crate::rule::{Missing, Refusal, Role, Rule};
use std::collections::HashSet;

/// A rule without limits, for all requests of a path.
fn blank(entry: &Entry, key: Key, path: Pattern) -> Rule {
    Rule {
        name: entry.name.clone(),
        place: entry.place,
        role: Role::Group,
        path,
        methods: Vec::new(),
        hosts: Vec::new(),
        when: None,
        key,
        limits: Vec::new(),
        class: None,
        plan: None,
        cost: None,
        missing: Missing::Allow,
        exempt: HashSet::new(),
        exempt_networks: Vec::new(),
        keys: Vec::new(),
        reset: String::new(),
        refusal: Refusal { status: 429, body: String::new() },
        replaces: Vec::new(),
    }
}

/// The fields of a group or route, beside those of all its parts.
const OF_RULE: [&str; 5] = ["path", "method", "host", "when", "limits"];

impl Draft {
    /// A group or a route with its further limits and its plans, or a shadow.
    pub fn read(
        section: &str,
        entry: &Entry,
        field: String,
        defaults: &Defaults,
        problems: &mut Problems,
    ) -> Vec<Draft> {
        if section == "shadow" {
            return Draft::shadow(entry, field, problems).into_iter().collect();
        }
        Draft::enforced(section == "route", entry, field, defaults, problems).unwrap_or_default()
    }

    fn enforced(
        is_route: bool,
        entry: &Entry,
        field: String,
        defaults: &Defaults,
        problems: &mut Problems,
    ) -> Option<Vec<Draft>> {
        let replaces = is_route.then_some("replaces");
        let names: Vec<&str> = OF_RULE.into_iter().chain(parts::FIELDS).chain(replaces).collect();
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
        if !is_route && fields.get("limit").is_none() {
            problems.add(entry.place, &field, "no limit", "limit = \"100/min\", or another");
        }
        let mut blank = blank(entry, Key::parse(&["address"], &path).ok()?, path);
        blank.role = if is_route { Role::Route } else { Role::Group };
        blank.methods = methods(&fields, problems);
        blank.hosts = hosts(&fields, problems);
        blank.when = when(&fields, problems);
        blank.refusal = defaults.refusal(429);
        blank.missing = Missing::Deny(defaults.refusal(403));
        let named = |(place, text): (Place, &Text)| (place, text.text.clone());
        let replaces =
            fields.texts("replaces", problems).unwrap_or_default().into_iter().map(named).collect();
        let mut all = parts::with_plans(blank, &fields, &field, defaults, problems)?;
        if let Some(first) = all.first_mut() {
            first.replaces = replaces;
            let of = first.rule.clone_without_keys();
            all.extend(parts::limits(&of, &fields, defaults, problems));
        }
        Some(all)
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
            rule.keys.iter_mut().for_each(|(key, _)| *key = key.to_ascii_lowercase().into());
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
        let key = match own_key {
            true => key(&fields, &path, problems)?,
            false => Key::parse(&["address"], &path).ok()?,
        };
        let class = classes::class("class", &fields, &path, problems);
        let rule = Rule {
            role: Role::Shadow(usize::MAX),
            class,
            limits: policies(&fields, "limit", problems)?,
            ..blank(entry, key, path)
        };
        classes::check(&rule, &field, problems);
        let of = Some((place, of.text.clone()));
        Some(Draft { of, own_key, ..Draft::of_rule(rule, field, None) })
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
        if let Some(of) = draft.part_of.as_ref().and_then(|of| find(of, &is_enforced)) {
            draft.rule.role = match draft.rule.role {
                Role::Plan(_) => Role::Plan(of),
                _ => Role::Limit(of),
            };
        }
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
            let Some(of) = find(name, &is_enforced)
                .and_then(|n| Some((n, rules.get(n)?.clone_without_keys())))
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
                plan: None,
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
