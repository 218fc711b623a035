//! Limitador's limits as a rules file.
//!
//! A condition on the method or the path becomes the rule's own. Any other condition becomes a part
//! of the key: a field that the server gives to the requests for which the condition is true.

use super::plan::{everywhere, Group, Plan};
use super::tree::{is_method, Tree};
use super::Imported;
use std::collections::HashSet;
use tollbar_rules::internal::{parse, quoted, Node};
use tollbar_rules::Pattern;
use tollbar_rules::{Format, Problem};

/// Translates Limitador's limits, a list in YAML (or the field `limits` of a resource of
/// Kubernetes), into a rules file.
///
/// # Errors
/// The faults of the YAML, with their places.
pub fn limitador(text: &str) -> Result<Imported, Vec<Problem>> {
    let root = parse(text, Format::Yaml)?;
    let mut plan = Plan::default();
    let limits = root.get("spec").unwrap_or(&root);
    let limits = limits.get("limits").unwrap_or(limits).list();
    let namespaces: HashSet<String> =
        limits.iter().filter_map(|limit| limit.text_of("namespace")).collect();
    for limit in limits {
        read(&mut plan, limit, namespaces.len() > 1);
    }
    Ok(plan.finish())
}

const FIELDS: [&str; 8] =
    ["namespace", "max_value", "seconds", "name", "id", "conditions", "variables", "policy"];

fn read(plan: &mut Plan, limit: &Node, has_namespaces: bool) {
    for entry in limit.entries().iter().filter(|entry| !FIELDS.contains(&entry.name.as_str())) {
        plan.remark(
            entry.place,
            format!("{} is left out: rules have no such field", quoted(&entry.name)),
        );
    }
    let most = limit.get("max_value").and_then(Node::whole);
    let seconds = limit.get("seconds").and_then(Node::whole).filter(|seconds| *seconds > 0);
    let (Some(most), Some(seconds)) = (most, seconds) else {
        return plan.remark(
            limit.place,
            "the limit is left out: expected whole numbers for max_value and seconds",
        );
    };
    let Some(policy) =
        plan.policy(limit.place, "the limit", &format!("{most}/{seconds}s algo fixed-window"))
    else {
        return;
    };
    plan.remark(
        limit.place,
        format!("a window of Limitador begins with a first request; a window of the rule at a multiple of {seconds} s"),
    );
    let name = limit
        .text_of("name")
        .or_else(|| limit.text_of("namespace"))
        .unwrap_or_else(|| "limit".to_owned());
    let mut group = Group::new(&name, Vec::new(), vec![policy]);
    if let Some(namespace) = limit.text_of("namespace").filter(|_| has_namespaces) {
        let condition = format!("of the namespace {}", quoted(&namespace));
        group.key.push(plan.condition(limit.place, "namespace", &namespace, &condition));
    }
    for condition in limit.get("conditions").map_or(&[][..], Node::one_or_list) {
        match condition.text() {
            Some(text) => apply(plan, condition, &text, &mut group),
            None => plan.remark(condition.place, "a condition that is no string is left out"),
        }
    }
    for variable in limit.get("variables").map_or(&[][..], Node::one_or_list) {
        match variable.text() {
            Some(text) => {
                let name = word(&text);
                let source = match name {
                    "source.address" | "remote_address" | "source.remote_address" => {
                        "address/32/128".to_owned()
                    }
                    _ => plan.field(variable.place, name),
                };
                group.key.push(source);
            }
            None => plan.remark(variable.place, "a variable that is no string is left out"),
        }
    }
    if group.key.is_empty() {
        group.key.push("all".to_owned());
    }
    plan.group(limit.place, group);
}

/// Adds a condition to the group: as its method, as its path, or as a part of its key.
fn apply(plan: &mut Plan, node: &Node, text: &str, group: &mut Group) {
    let is_plain = !text.contains("&&") && !text.contains("||");
    let equal = text
        .split_once("==")
        .filter(|_| is_plain)
        .and_then(|(name, value)| Some((word(name), literal(value)?)));
    match equal {
        Some(("req.method" | "request.method", method))
            if group.methods.is_empty() && is_method(method) =>
        {
            group.methods.push(method.to_owned());
            return;
        }
        Some(("req.path" | "request.path" | "request.url_path", path))
            if group.path == everywhere() && !path.contains([':', '*']) =>
        {
            if let Ok(pattern) = Pattern::parse(path) {
                group.path = pattern;
                return;
            }
        }
        _ => {}
    }
    let condition = format!("for which {} is true", quoted(text));
    let at = format!("{}-{}", node.place.line, node.place.column);
    let (name, value) = equal.unwrap_or(("condition", &at));
    group.key.push(plan.condition(node.place, name, value, &condition));
}

/// The name of a descriptor's entry: `user_id`, `descriptors[0].user_id` or
/// `descriptors[0]['user_id']`.
fn word(text: &str) -> &str {
    let text = text.trim();
    let Some(rest) = text.strip_prefix("descriptors[0]") else { return text };
    let rest = rest.trim_start_matches('.');
    let inside = rest.strip_prefix("['").and_then(|rest| rest.strip_suffix("']"));
    let inside =
        inside.or_else(|| rest.strip_prefix("[\"").and_then(|rest| rest.strip_suffix("\"]")));
    inside.unwrap_or(rest)
}

/// The text between quotes.
fn literal(text: &str) -> Option<&str> {
    let text = text.trim();
    let inside = text.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
    let inside =
        inside.or_else(|| text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')))?;
    (!inside.contains(['\'', '"'])).then_some(inside)
}
