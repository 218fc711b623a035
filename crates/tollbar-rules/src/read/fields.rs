//! The fields of a table, and problems with them.

use crate::file::{quoted, Entry, Node, Place, Problem, Text, Value};
use crate::rule::Refusal;
use tollbar::address::Network;

/// The problems found so far.
#[derive(Default)]
pub struct Problems {
    /// In the order in which they were found.
    pub all: Vec<Problem>,
}

impl Problems {
    /// Adds a problem.
    pub fn add(
        &mut self,
        place: Place,
        field: &str,
        found: impl Into<String>,
        expected: impl Into<String>,
    ) {
        self.all.push(Problem {
            place,
            field: field.to_owned(),
            found: found.into(),
            expected: expected.into(),
        });
    }

    /// A value of a wrong type.
    fn mismatch(&mut self, node: &Node, field: &str, expected: &str) {
        self.add(node.place, field, shown(&node.value), expected);
    }
}

/// A value in a message.
pub fn shown(value: &Value) -> String {
    match value {
        Value::Text(text) => quoted(&text.text),
        Value::Number(number) => number.to_string(),
        Value::Bool(value) => value.to_string(),
        other => other.kind().to_owned(),
    }
}

/// A table whose fields are known by name.
pub struct Fields<'a> {
    field: String,
    entries: &'a [Entry],
}

impl<'a> Fields<'a> {
    /// The fields of `node`, which may have these names. Other names are problems.
    pub fn new(
        node: &'a Node,
        field: &str,
        names: &[&str],
        problems: &mut Problems,
    ) -> Option<Fields<'a>> {
        let Value::Table(entries) = &node.value else {
            problems.mismatch(node, field, "a table");
            return None;
        };
        let fields = Fields { field: field.to_owned(), entries };
        for entry in entries.iter().filter(|entry| !names.contains(&entry.name.as_str())) {
            let mut expected = format!("one of {}", names.join(", "));
            if let Some(near) = names.iter().find(|name| is_near(name, &entry.name)) {
                expected = format!("{near}, or another of {}", names.join(", "));
            }
            problems.add(
                entry.place,
                field,
                format!("unknown field {}", quoted(&entry.name)),
                expected,
            );
        }
        Some(fields)
    }

    /// A field's value.
    pub fn get(&self, name: &str) -> Option<&'a Node> {
        self.entries.iter().find(|entry| entry.name == name).map(|entry| &entry.node)
    }

    /// The field's whole name, for messages.
    pub fn name(&self, name: &str) -> String {
        if self.field.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.field)
        }
    }

    /// The entries of these tables, with their table's name.
    pub fn sections<'n>(
        &self,
        names: &[&'n str],
        problems: &mut Problems,
    ) -> Vec<(&'n str, &'a Entry)> {
        let mut all = Vec::new();
        for name in names {
            match self.get(name).map(|node| (node, &node.value)) {
                None => {}
                Some((_, Value::Table(entries))) => {
                    all.extend(entries.iter().map(|entry| (*name, entry)))
                }
                Some((node, _)) => problems.mismatch(node, name, &format!("tables [{name}.NAME]")),
            }
        }
        all
    }

    /// A field that must be a string.
    pub fn text(&self, name: &str, problems: &mut Problems) -> Option<(Place, &'a Text)> {
        let node = self.get(name)?;
        match &node.value {
            Value::Text(text) => Some((node.place, text)),
            _ => {
                problems.mismatch(node, &self.name(name), "a string");
                None
            }
        }
    }

    /// A string, or a list of strings.
    pub fn texts(&self, name: &str, problems: &mut Problems) -> Option<Vec<(Place, &'a Text)>> {
        self.get(name).map(|node| texts(node, &self.name(name), problems))
    }

    /// A field that must be a whole number from `least` to `most`.
    pub fn number(
        &self,
        name: &str,
        least: i64,
        most: i64,
        problems: &mut Problems,
    ) -> Option<u64> {
        let node = self.get(name)?;
        match node.value {
            Value::Number(number) if (least..=most).contains(&number) => u64::try_from(number).ok(),
            _ => {
                problems.mismatch(
                    node,
                    &self.name(name),
                    &format!("a whole number from {least} to {most}"),
                );
                None
            }
        }
    }

    /// `status` and `body`.
    pub fn refusal(&self, problems: &mut Problems) -> (Option<u16>, Option<String>) {
        let status =
            self.number("status", 400, 599, problems).and_then(|status| u16::try_from(status).ok());
        let body = self.text("body", problems).and_then(|(place, text)| {
            if text.text.len() > BODY_MOST {
                let found = format!("{} bytes", text.text.len());
                problems.add(place, &self.name("body"), found, format!("at most {BODY_MOST}"));
                return None;
            }
            Some(text.text.clone())
        });
        (status, body)
    }
}

/// The longest body of a refusal. The C face has room for it in its answer.
pub const BODY_MOST: usize = 255;

impl Refusal {
    pub(super) fn or((status, body): (Option<u16>, Option<String>), default: &Refusal) -> Refusal {
        Refusal {
            status: status.unwrap_or(default.status),
            body: body.unwrap_or_else(|| default.body.clone()),
        }
    }
}

/// A string, or a list of strings that is not empty.
pub fn texts<'a>(node: &'a Node, field: &str, problems: &mut Problems) -> Vec<(Place, &'a Text)> {
    match &node.value {
        Value::Text(text) => vec![(node.place, text)],
        Value::List(list) if !list.is_empty() => {
            let mut all = Vec::new();
            for node in list {
                match &node.value {
                    Value::Text(text) => all.push((node.place, text)),
                    _ => problems.mismatch(node, field, "a string"),
                }
            }
            all
        }
        Value::List(_) => {
            problems.add(node.place, field, "an empty list", "a string, or a list of strings");
            Vec::new()
        }
        _ => {
            problems.mismatch(node, field, "a string, or a list of strings");
            Vec::new()
        }
    }
}

/// Networks of addresses and, where `sockets` says so, Unix sockets.
pub fn networks(node: &Node, field: &str, sockets: bool, problems: &mut Problems) -> Vec<Network> {
    let all = texts(node, field, problems);
    let network = |(place, text): (Place, &Text)| {
        let network = Network::parse(text.text.as_bytes())
            .filter(|network| sockets || *network != Network::UNIX);
        if network.is_none() {
            let expected =
                "a network such as 10.0.0.0/8 or 2001:db8::/32, without bits beyond its prefix, or an address";
            let expected =
                if sockets { format!("{expected}, or unix:") } else { expected.to_owned() };
            problems.add(place, field, quoted(&text.text), expected);
        }
        network
    };
    all.into_iter().filter_map(network).collect()
}

/// The place of an offset in a text.
pub fn inside(place: Place, text: &Text, at: usize) -> Place {
    let before = text.text.get(..at).map_or(0, |before| before.chars().count());
    text.begins.map_or(place, |begins| Place { column: begins.column + before, ..begins })
}

/// Whether the words differ in one character, or in the order of two, or in their case.
fn is_near(one: &str, two: &str) -> bool {
    if one.eq_ignore_ascii_case(two) || one.replace('-', "_") == two {
        return true;
    }
    let (a, b): (Vec<char>, Vec<char>) = (one.chars().collect(), two.chars().collect());
    let front = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    let (a, b) = (&a[front..], &b[front..]);
    let back = a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count();
    let (a, b) = (&a[..a.len() - back], &b[..b.len() - back]);
    a.len().max(b.len()) <= 1 || (a.len() == 2 && b.len() == 2 && a[0] == b[1] && a[1] == b[0])
}

/// Whether a rule can have the name.
pub fn is_name(name: &str) -> bool {
    (1..64).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
}
