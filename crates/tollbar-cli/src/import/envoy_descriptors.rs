//! The descriptors of Envoy's rate limit service.
//!
//! Descriptors without others around them are one group for each key: the limit of a descriptor
//! with a value is the limit of that key. A rule whose key has several parts cannot have limits for
//! single values. So a descriptor with a value that stands in others, or has others in it, becomes
//! a field that the server gives to the requests with that value. The service counts in fixed
//! windows that begin at multiples of their length, and so do the rules.

use super::plan::{Group, Plan, UNLIMITED};
use super::tree::{by_text, Tree};
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use tollbar_rules::internal::{quoted, Node};
use tollbar_rules::Place;

/// What is read of a configuration of Envoy.
#[derive(Default)]
pub(super) struct EnvoyImport {
    pub plan: Plan,
    /// The header that gives the value of a descriptor's key, from the actions of routes.
    headers: HashMap<String, String>,
    groups: usize,
}

/// A limit of a descriptor.
enum DescriptorLimit {
    Unlimited,
    Limited(String),
}

/// The fields of a descriptor, and of its rate limit, that the import reads or that mean nothing
/// for decisions.
const DESCRIPTOR: [&str; 7] = [
    "key",
    "value",
    "rate_limit",
    "shadow_mode",
    "descriptors",
    "detailed_metric",
    "value_to_metric",
];
const RATE_LIMIT: [&str; 6] =
    ["unit", "unit_multiplier", "requests_per_unit", "unlimited", "name", "replaces"];

impl EnvoyImport {
    /// Finds the actions of routes that make descriptors from headers.
    pub fn find_headers(&mut self, node: &Node) {
        if let (Some(header), Some(key)) =
            (node.text_of("header_name"), node.text_of("descriptor_key"))
        {
            if !header.starts_with(':') {
                self.headers.insert(key, header);
            }
        }
        node.entries().iter().for_each(|entry| self.find_headers(&entry.node));
        node.list().iter().for_each(|node| self.find_headers(node));
    }

    /// Reads the configuration of the rate limit service, if `root` is one.
    pub fn service(&mut self, root: &Node) {
        let Some(descriptors) = root.get("descriptors").filter(|_| root.get("domain").is_some())
        else {
            return;
        };
        self.level(descriptors.list(), &[]);
        if self.groups > 1 {
            self.plan.remark(
                descriptors.place,
                "Envoy counts a request that one limit refuses against its other limits too; rules charge all of them or none",
            );
        }
    }

    /// Reads the descriptors of one list. `outer` has the parts of the key that the descriptors
    /// around them give.
    fn level(&mut self, descriptors: &[Node], outer: &[String]) {
        let (keys, nameless) = by_text(descriptors, "key");
        for place in nameless {
            self.plan.remark(place, "a descriptor without a key is left out: expected key: NAME");
        }
        for (key, nodes) in keys {
            if outer.is_empty() {
                self.values(&key, &nodes);
            } else {
                self.inner(&key, &nodes, outer);
            }
            for node in nodes {
                self.say_unknown(node);
                let Some(descriptors) = node.get("descriptors") else { continue };
                let mut parts = outer.to_vec();
                parts.extend(self.part(&key, node));
                self.level(descriptors.list(), &parts);
            }
        }
    }

    /// Adds the group of a key that stands in no other descriptor: the descriptor without a value
    /// is the group's limit.
    fn values(&mut self, key: &str, nodes: &[&Node]) {
        let is_address = is_address(key);
        let has_general = nodes
            .iter()
            .any(|node| value_of(node, is_address).is_empty() && node.get("rate_limit").is_some());
        let mut group = Group::new(key, Vec::new(), Vec::new());
        let mut place = None;
        let mut seen = HashSet::new();
        for node in nodes {
            let value = value_of(node, is_address);
            if !seen.insert(value.clone()) {
                self.plan.remark(
                    node.place,
                    format!("{} is left out: it is there already", shown(key, &value)),
                );
                continue;
            }
            let rate = self.rate(node);
            let is_one_key =
                !value.contains('*') && (!is_address || value.parse::<IpAddr>().is_ok());
            match rate {
                Some(DescriptorLimit::Limited(limit)) if value.is_empty() => {
                    group.limits.push(limit);
                    group.shadow = is_shadow(node);
                    place = Some(node.place);
                }
                _ if value.is_empty() => {}
                Some(DescriptorLimit::Limited(limit)) if is_one_key && !is_shadow(node) => {
                    group.keys.push((value, limit));
                    place = place.or(Some(node.place));
                }
                rate => {
                    // A limit that could not be read leaves the key to the group's limit.
                    let is_exempt = rate.is_some() || node.get("rate_limit").is_none();
                    if let Some(DescriptorLimit::Limited(limit)) = rate {
                        self.own(key, node, &[], limit);
                    }
                    if is_exempt && is_one_key {
                        group.exempt.push(value);
                    } else if is_exempt && has_general {
                        let text =
                            "by the rules these requests also count against the limit of the key without a value";
                        self.plan.remark(node.place, format!("{}: {text}", shown(key, &value)));
                    }
                }
            }
        }
        let Some(place) = place else { return };
        if group.limits.is_empty() {
            group.limits.push(UNLIMITED.to_owned());
        }
        group.key.extend(self.source(key, place));
        if !group.key.is_empty() {
            self.add(place, group);
        }
    }

    /// Adds a group for each limited descriptor that stands in others.
    fn inner(&mut self, key: &str, nodes: &[&Node], outer: &[String]) {
        let is_general = |node: &&&Node| node.text_of("value").is_none_or(|value| value.is_empty());
        let general = nodes.iter().find(is_general);
        for node in nodes {
            let Some(DescriptorLimit::Limited(limit)) = self.rate(node) else {
                continue;
            };
            if general.is_some() && node.text_of("value").is_some_and(|value| !value.is_empty()) {
                let text = "Envoy does not count these requests against the descriptor without a value; by the rules both limits count";
                self.plan.remark(node.place, text);
            }
            self.own(key, node, outer, limit);
        }
    }

    /// Adds the group of one descriptor.
    fn own(&mut self, key: &str, node: &Node, outer: &[String], limit: String) {
        let mut parts = outer.to_vec();
        parts.extend(self.part(key, node));
        let name = match node.text_of("value") {
            Some(value) => format!("{key}-{value}"),
            None => key.to_owned(),
        };
        let group = Group { shadow: is_shadow(node), ..Group::new(&name, parts, vec![limit]) };
        self.add(node.place, group);
    }

    pub fn add(&mut self, place: Place, group: Group) {
        self.groups += usize::from(self.plan.group(place, group).is_some());
    }

    /// The part of a joined key for a descriptor or for an entry of one.
    pub fn part(&mut self, key: &str, node: &Node) -> Option<String> {
        match node.text_of("value").filter(|value| !value.is_empty()) {
            None => self.source(key, node.place),
            Some(value) => {
                let condition = match value.strip_suffix('*') {
                    Some(begin) => format!(
                        "whose {} begins with {}, with its value",
                        quoted(key),
                        quoted(begin)
                    ),
                    None => format!("whose {} is {}", quoted(key), quoted(&value)),
                };
                Some(self.plan.condition(node.place, key, &value, &condition))
            }
        }
    }

    /// The source of a descriptor's key.
    fn source(&mut self, key: &str, place: Place) -> Option<String> {
        match self.headers.get(key).cloned() {
            _ if is_address(key) => Some("address/32/128".to_owned()),
            Some(header) => self.plan.source(place, "header", &header),
            None => Some(self.plan.field(place, key)),
        }
    }

    /// The limit of a descriptor. `None`: it has none, or none that rules can have, which a remark
    /// says.
    fn rate(&mut self, node: &Node) -> Option<DescriptorLimit> {
        let limit = node.get("rate_limit")?;
        if let Some(replaces) = limit.get("replaces") {
            self.plan.remark(
                replaces.place,
                "replaces is left out: rules know the limits of a request by its path only, so both limits count",
            );
        }
        for entry in
            limit.entries().iter().filter(|entry| !RATE_LIMIT.contains(&entry.name.as_str()))
        {
            self.plan.remark(
                entry.place,
                format!("{} is left out: rules have no such field", quoted(&entry.name)),
            );
        }
        if limit.get("unlimited").is_some_and(Node::is_true) {
            return Some(DescriptorLimit::Unlimited);
        }
        let unit = limit.text_of("unit").unwrap_or_default();
        // A month of the service has 30 days, and a year 365.
        let period = match unit.to_ascii_lowercase().as_str() {
            "second" => (1, "s"),
            "minute" => (1, "min"),
            "hour" => (1, "h"),
            "day" => (1, "days"),
            "week" => (1, "weeks"),
            "month" => (30, "days"),
            "year" => (365, "days"),
            _ => {
                let text = "expected unit: second, minute, hour, day, week, month or year";
                self.plan.remark(limit.place, format!("rate_limit is left out: {text}"));
                return None;
            }
        };
        let Some(requests) = limit.get("requests_per_unit").and_then(Node::whole) else {
            self.plan.remark(
                limit.place,
                "rate_limit is left out: expected requests_per_unit: a whole number",
            );
            return None;
        };
        // A window of several units. The service takes 0 for 1.
        let multiplier = match limit.get("unit_multiplier").map(Node::whole) {
            None | Some(Some(0)) => 1,
            Some(Some(many)) => many,
            Some(None) => {
                self.plan.remark(
                    limit.place,
                    "rate_limit is left out: expected unit_multiplier: a whole number",
                );
                return None;
            }
        };
        let (many, unit) = period;
        let text =
            format!("{requests}/{}{unit} algo fixed-window", multiplier.saturating_mul(many));
        self.plan.policy(limit.place, "rate_limit", &text).map(DescriptorLimit::Limited)
    }

    fn say_unknown(&mut self, node: &Node) {
        let value = node.text_of("value").unwrap_or_default();
        if value.strip_suffix('*').unwrap_or(&value).contains('*') {
            let text = "only a * at the end of a value stands for other texts: the limit is for this text itself";
            self.plan.remark(node.place, format!("{}: {text}", quoted(&value)));
        }
        for entry in
            node.entries().iter().filter(|entry| !DESCRIPTOR.contains(&entry.name.as_str()))
        {
            self.plan.remark(
                entry.place,
                format!("{} is left out: rules have no such field", quoted(&entry.name)),
            );
        }
    }
}

fn is_shadow(node: &Node) -> bool {
    node.get("shadow_mode").is_some_and(Node::is_true)
}

fn is_address(key: &str) -> bool {
    matches!(key, "remote_address" | "masked_remote_address")
}

/// The value of a descriptor. Two spellings of an address are one value.
fn value_of(node: &Node, is_address: bool) -> String {
    let value = node.text_of("value").unwrap_or_default();
    match value.parse::<IpAddr>() {
        Ok(address) if is_address => address.to_string(),
        _ => value,
    }
}

fn shown(key: &str, value: &str) -> String {
    if value.is_empty() {
        quoted(key)
    } else {
        format!("{} with the value {}", quoted(key), quoted(value))
    }
}
