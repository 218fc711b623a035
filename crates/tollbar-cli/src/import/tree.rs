//! The values of a configuration in YAML or TOML.

use std::collections::HashMap;
use tollbar_rules::internal::{Entry, Node, Value};
use tollbar_rules::{Pattern, Place};

/// How importers read a value.
pub trait Tree {
    /// The value of that name. Names may differ in case.
    fn get(&self, name: &str) -> Option<&Node>;
    fn entries(&self) -> &[Entry];
    fn list(&self) -> &[Node];
    /// The values of a list, or one value.
    fn one_or_list(&self) -> &[Node];
    /// The text of a string, number or boolean.
    fn text(&self) -> Option<String>;
    /// The text of the value of that name.
    fn text_of(&self, name: &str) -> Option<String>;
    /// A whole number from 0 on, also as a string.
    fn whole(&self) -> Option<u64>;
    fn is_true(&self) -> bool;
}

impl Tree for Node {
    fn get(&self, name: &str) -> Option<&Node> {
        self.entries()
            .iter()
            .find(|entry| entry.name.eq_ignore_ascii_case(name))
            .map(|entry| &entry.node)
    }

    fn entries(&self) -> &[Entry] {
        match &self.value {
            Value::Table(entries) => entries,
            _ => &[],
        }
    }

    fn list(&self) -> &[Node] {
        match &self.value {
            Value::List(list) => list,
            _ => &[],
        }
    }

    fn one_or_list(&self) -> &[Node] {
        match &self.value {
            Value::List(list) => list,
            _ => std::slice::from_ref(self),
        }
    }

    fn text(&self) -> Option<String> {
        match &self.value {
            Value::Text(text) => Some(text.text.clone()),
            Value::Number(number) => Some(number.to_string()),
            Value::Bool(value) => Some(value.to_string()),
            _ => None,
        }
    }

    fn text_of(&self, name: &str) -> Option<String> {
        self.get(name).and_then(Node::text)
    }

    fn whole(&self) -> Option<u64> {
        self.text()?.parse().ok()
    }

    fn is_true(&self) -> bool {
        self.text().is_some_and(|text| text.eq_ignore_ascii_case("true"))
    }
}

/// The nanoseconds of a time as Go and Protocol Buffers write it: `1s`, `0.5s`, `1m30s`, `2h`.
/// `None` if it is no such time, 0, or too long.
pub fn nanoseconds(text: &str) -> Option<u64> {
    let mut rest = text.trim();
    let mut sum = 0u64;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.'))?;
        let (number, after) = rest.split_at(end);
        let unit_end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, next) = after.split_at(unit_end);
        let unit: u64 = match unit {
            "ns" => 1,
            "us" | "µs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        sum = sum.checked_add(whole.checked_mul(unit)?)?;
        let mut digit_unit = unit;
        for digit in fraction.bytes() {
            digit_unit /= 10;
            sum = sum.checked_add(u64::from(digit.checked_sub(b'0')?).checked_mul(digit_unit)?)?;
        }
        rest = next;
    }
    (sum > 0).then_some(sum)
}

/// The pattern of a path that other programs take as the beginning of longer paths. The text after
/// the pattern says what is different by the rule, if something is.
pub fn prefix(path: &str, program: &str) -> Option<(Pattern, Option<String>)> {
    if path.is_empty() || path.ends_with('/') {
        return Pattern::parse(&format!("/{}**", path.trim_start_matches('/')))
            .ok()
            .map(|pattern| (pattern, None));
    }
    let pattern = Pattern::parse(&format!("{path}/**")).ok()?;
    let text = format!("{program} also takes longer names such as {path}x; the rule is for {path} and what is below");
    Some((pattern, Some(text)))
}

/// Whether a rule can have that method.
pub fn is_method(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_uppercase())
}

/// The nodes of a list by the text of one of their fields, in the order in which the texts come
/// first. Nodes without it are in the second list.
pub fn by_text<'a>(nodes: &'a [Node], name: &str) -> (Vec<(String, Vec<&'a Node>)>, Vec<Place>) {
    let mut groups: Vec<(String, Vec<&Node>)> = Vec::new();
    let mut numbers: HashMap<String, usize> = HashMap::new();
    let mut without = Vec::new();
    for node in nodes {
        let Some(text) = node.text_of(name) else {
            without.push(node.place);
            continue;
        };
        let n = *numbers.entry(text.clone()).or_insert_with(|| {
            groups.push((text, Vec::new()));
            groups.len() - 1
        });
        if let Some((_, nodes)) = groups.get_mut(n) {
            nodes.push(node);
        }
    }
    (groups, without)
}
