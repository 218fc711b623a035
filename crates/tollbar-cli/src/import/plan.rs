//! The groups and locations that an importer has found, and their text as a rules file.

use super::{Imported, Remark};
use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use tollbar_rules::internal::policy_for_table;
use tollbar_rules::internal::quoted;
use tollbar_rules::Pattern;
use tollbar_rules::{read, LIMITS_OF_FILE_MOST, RULES_MOST};
use tollbar_rules::{Format, Place};

/// A limit that refuses no request: the limit of a group of which only single keys are limited, or
/// which has only a shadow.
pub const UNLIMITED: &str = "1000000000/s";

/// The rules of a configuration.
#[derive(Default)]
pub struct Plan {
    pub trusted: Vec<String>,
    groups: Vec<Group>,
    locations: Vec<Location>,
    remarks: Vec<Remark>,
    names: HashSet<String>,
    /// The name of the field that stands for a value or a condition of the configuration.
    fields: HashMap<String, String>,
    taken_fields: HashSet<String>,
}

/// A limit of the configuration.
#[derive(Clone, Debug)]
pub struct Group {
    pub name: String,
    pub path: Pattern,
    /// Empty for all methods.
    pub methods: Vec<String>,
    /// The parts of the key.
    pub key: Vec<String>,
    pub limits: Vec<String>,
    pub status: Option<u16>,
    pub body: Option<String>,
    /// Whether the limit only counts what it would refuse.
    pub shadow: bool,
    /// Keys without a limit.
    pub exempt: Vec<String>,
    pub exempt_networks: Vec<String>,
    /// Policies of single keys.
    pub keys: Vec<(String, String)>,
}

impl Group {
    /// A group for all requests.
    pub fn new(name: &str, key: Vec<String>, limits: Vec<String>) -> Group {
        Group {
            name: name.to_owned(),
            path: everywhere(),
            methods: Vec::new(),
            key,
            limits,
            status: None,
            body: None,
            shadow: false,
            exempt: Vec::new(),
            exempt_networks: Vec::new(),
            keys: Vec::new(),
        }
    }
}

/// A part of the configuration that handles requests alone: a location, a route or a router. Groups
/// that are not in force there do not count.
#[derive(Clone, Debug)]
pub struct Location {
    pub name: String,
    pub path: Pattern,
    pub methods: Vec<String>,
    /// The numbers of the groups in force, as [`Plan::group`] gives them.
    pub groups: Vec<usize>,
}

/// The pattern of all paths.
pub fn everywhere() -> Pattern {
    Pattern::parse("/**").unwrap_or_else(|_| unreachable!("/** is a pattern"))
}

impl Plan {
    pub fn remark(&mut self, place: Place, text: impl AsRef<str>) {
        let text = text.as_ref().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        self.remarks.push(Remark { place, text });
    }

    /// The policy in its short form. If a table cannot have it, adds a remark that `what` is left
    /// out, and why.
    pub fn policy(&mut self, place: Place, what: &str, text: &str) -> Option<String> {
        match policy_for_table(text) {
            Ok(policy) => Some(policy.to_string()),
            Err(why) => {
                self.remark(place, format!("{what} is left out: {why}"));
                None
            }
        }
    }

    /// Adds a group whose policies [`Plan::policy`] has given, and returns its number. `None`: the
    /// file is full, which a remark says.
    pub fn group(&mut self, place: Place, group: Group) -> Option<usize> {
        let limits: usize = self.groups.iter().map(|group| group.limits.len()).sum();
        if self.groups.len() + self.locations.len() >= RULES_MOST
            || limits + group.limits.len() > LIMITS_OF_FILE_MOST
        {
            let text = format!(
                "{} is left out: a rules file has at most {RULES_MOST} rules and {LIMITS_OF_FILE_MOST} limits",
                quoted(&group.name)
            );
            self.remark(place, text);
            return None;
        }
        let name = self.free_name(&group.name);
        let mut seen = HashSet::new();
        let limits = group.limits.into_iter().filter(|limit| seen.insert(limit.clone())).collect();
        self.groups.push(Group { name, limits, ..group });
        Some(self.groups.len() - 1)
    }

    /// Adds a location. Of two locations with one path and the same methods the later one adds its
    /// groups to the earlier one: rules cannot tell their requests apart.
    pub fn location(&mut self, place: Place, location: Location) {
        let same = |other: &&mut Location| {
            other.path == location.path && other.methods == location.methods
        };
        if let Some(other) = self.locations.iter_mut().find(same) {
            if other.groups != location.groups {
                other.groups.extend(location.groups);
                self.remark(
                    place,
                    format!(
                        "{} has the path of another part: the limits of both count for it",
                        quoted(location.path.as_str())
                    ),
                );
            }
            return;
        }
        if self.groups.len() + self.locations.len() >= RULES_MOST {
            let text = format!(
                "{} is left out: a rules file has at most {RULES_MOST} rules",
                quoted(&location.name)
            );
            return self.remark(place, text);
        }
        let name = self.free_name(&location.name);
        self.locations.push(Location { name, ..location });
    }

    /// The source of a key that has one value of `header`, `cookie` or `field`. `None`, with a
    /// remark, for a name that a rule cannot have.
    pub fn source(&mut self, place: Place, kind: &str, name: &str) -> Option<String> {
        if !name.is_empty() && name.bytes().all(is_source_byte) {
            return Some(format!("{kind} {name}"));
        }
        self.remark(
            place,
            format!("{kind} {} is left out: a rule cannot have that name", quoted(name)),
        );
        None
    }

    /// The source of a key whose value the server must give: the value of `name` in the
    /// configuration.
    pub fn field(&mut self, place: Place, name: &str) -> String {
        let is_new = !self.fields.contains_key(name);
        let field = self.field_name(name, name);
        if is_new {
            self.remark(
                place,
                format!(
                    "the server must give the value of {} as the field \":{field}\"",
                    quoted(name)
                ),
            );
        }
        format!("field {field}")
    }

    /// The source of a key that only some requests have: the server must give the field to them,
    /// and to no others.
    pub fn condition(&mut self, place: Place, name: &str, value: &str, condition: &str) -> String {
        let meaning = format!("{name}\0{value}");
        let is_new = !self.fields.contains_key(&meaning);
        let field = self.field_name(&meaning, &format!("{name}.{value}"));
        if is_new {
            let text = format!("the server must give the field \":{field}\" to requests {condition}, and to no others");
            self.remark(place, text);
        }
        format!("field {field}")
    }

    fn field_name(&mut self, meaning: &str, wanted: &str) -> String {
        if let Some(name) = self.fields.get(meaning) {
            return name.clone();
        }
        let mut name: String = wanted
            .bytes()
            .take(60)
            .map(|b| if is_source_byte(b) { b as char } else { '-' })
            .collect();
        name = free(&mut self.taken_fields, name);
        self.fields.insert(meaning.to_owned(), name.clone());
        name
    }

    /// A name of a rule that no other rule has, from a name of the configuration.
    fn free_name(&mut self, wanted: &str) -> String {
        let is_safe = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
        let mut name: String =
            wanted.bytes().take(40).map(|b| if is_safe(b) { b as char } else { '-' }).collect();
        if name.is_empty() {
            name.push('-');
        }
        free(&mut self.names, name)
    }

    /// The rules file. If rules cannot be loaded from it, a remark says why.
    pub fn finish(mut self) -> Imported {
        self.remarks.sort();
        self.remarks.dedup();
        if let Err(problems) = read(&self.write(), Format::Toml) {
            let first = problems
                .first()
                .map(|p| format!("{}; expected {}", p.found, p.expected))
                .unwrap_or_default();
            let text = if self.groups.is_empty() {
                "no limit was found that a rules file can have".to_owned()
            } else {
                format!("the rules cannot be loaded before they are changed: {first}")
            };
            self.remark(Place::new(1, 1), text);
            self.remarks.sort();
        }
        let limits = self.groups.iter().map(|group| group.limits.len()).sum();
        Imported { toml: self.write(), limits, remarks: self.remarks }
    }

    fn write(&self) -> String {
        let mut out = String::from("version = 1\n");
        if !self.trusted.is_empty() {
            let _ = writeln!(out, "trusted-proxies = {}", list(&self.trusted));
        }
        for Remark { place, text } in &self.remarks {
            let _ = writeln!(out, "# {place}: {text}");
        }
        for group in &self.groups {
            write_group(&mut out, group);
        }
        for location in &self.locations {
            let others = self.groups.iter().enumerate().filter(|(n, group)| {
                !location.groups.contains(n) && group.path.overlaps(&location.path)
            });
            let others: Vec<String> = others.map(|(_, group)| group.name.clone()).collect();
            let _ = writeln!(
                out,
                "\n[route.{}]\npath = {}",
                location.name,
                string(location.path.as_str())
            );
            write_methods(&mut out, &location.methods);
            if !others.is_empty() {
                let _ = writeln!(out, "replaces = {}", list(&others));
            }
        }
        out
    }
}

fn write_group(out: &mut String, group: &Group) {
    let name = &group.name;
    let _ = writeln!(out, "\n[group.{name}]\npath = {}", string(group.path.as_str()));
    write_methods(out, &group.methods);
    let _ = writeln!(out, "key = {}\nmissing = \"allow\"", one_or_list(&group.key));
    if let Some(status) = group.status {
        let _ = writeln!(out, "status = {status}");
    }
    if let Some(body) = &group.body {
        let _ = writeln!(out, "body = {}", string(body));
    }
    for (field, values) in [("exempt", &group.exempt), ("exempt-networks", &group.exempt_networks)]
    {
        if !values.is_empty() {
            let _ = writeln!(out, "{field} = {}", list(values));
        }
    }
    let unlimited = [UNLIMITED.to_owned()];
    let _ = writeln!(
        out,
        "limit = {}",
        one_or_list(if group.shadow { &unlimited } else { &group.limits })
    );
    if !group.keys.is_empty() {
        let _ = writeln!(out, "\n[group.{name}.keys]");
    }
    for (key, policy) in &group.keys {
        let _ = writeln!(out, "{} = {}", string(key), string(policy));
    }
    if group.shadow {
        let limits = one_or_list(&group.limits);
        let _ = writeln!(out, "\n[shadow.{name}-dry-run]\nof = \"{name}\"\nlimit = {limits}");
    }
}

fn write_methods(out: &mut String, methods: &[String]) {
    if !methods.is_empty() {
        let _ = writeln!(out, "method = {}", one_or_list(methods));
    }
}

/// The name, or the name with the first number that makes it free.
fn free(taken: &mut HashSet<String>, wanted: String) -> String {
    let mut name = wanted.clone();
    let mut n = 2;
    while !taken.insert(name.clone()) {
        name = format!("{wanted}-{n}");
        n += 1;
    }
    name
}

/// Whether the name of a header, cookie or field in a rule's key may have that byte.
fn is_source_byte(b: u8) -> bool {
    b.is_ascii_graphic() && !b"=;:,|".contains(&b)
}

fn one_or_list(texts: &[String]) -> String {
    match texts {
        [one] => string(one),
        _ => list(texts),
    }
}

fn list(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| string(text)).collect();
    format!("[{}]", texts.join(", "))
}

/// A basic string of TOML.
fn string(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
