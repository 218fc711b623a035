//! Which rules take part in a request, and why.

use crate::request::Field;
use crate::rule::{Missing, Role, Rule, RuleFile};
use crate::set::{Part, Set};
use std::fmt::Write;

/// Says line by line which rules take part in a request, with their keys, costs and limits, and why
/// the others do not.
pub fn explain(file: &RuleFile, request: &[Field<'_>]) -> String {
    let set = Set::new(file.clone(), vec![Vec::new(); file.rules.len()], Vec::new(), 1);
    let seen = set.see(request);
    let matching = set.matching(&seen);
    let mut out = String::new();
    let method = if seen.method.is_empty() { "no method".to_owned() } else { plain(seen.method) };
    let client = seen.client().map_or("no address".to_owned(), |client| client.to_string());
    let _ = writeln!(out, "request: {method} {} from {client}", plain(&seen.path));
    for (n, rule) in set.rules().iter().enumerate() {
        let kind = match rule.role {
            Role::Group => "group",
            Role::Route => "route",
            Role::Shadow(_) => "shadow",
        };
        let takes_part = match rule.role {
            Role::Shadow(of) => matching.rules().contains(&of),
            _ => matching.rules().contains(&n),
        };
        let _ = write!(out, "{kind} {} (line {}): ", rule.name, rule.place.line);
        if !takes_part {
            let _ = writeln!(out, "no: {}", reason(&set, n, rule, &seen, matching.route));
            continue;
        }
        let mut key = Vec::new();
        let part = set.part(n, &seen, &mut key);
        let cost = set.cost(n, matching.route);
        let _ = match part {
            Part::NoLimit => {
                writeln!(out, "yes, without a limit of its own{}", cost_of_route(rule))
            }
            Part::Exempt => writeln!(out, "exempt, and not charged"),
            Part::MissingAllowed => {
                writeln!(out, "no key ({}), so it does not limit the request", rule.key)
            }
            Part::Ambiguous => {
                writeln!(out, "several values of the key ({}), so it refuses the request", rule.key)
            }
            Part::MissingDenied => match &rule.missing {
                Missing::Deny(refusal) => {
                    writeln!(
                        out,
                        "no key ({}): answers {} {:?}",
                        rule.key, refusal.status, refusal.body
                    )
                }
                Missing::Allow => writeln!(out),
            },
            Part::Limited(of_key) => {
                let of_class = set.class(n, &seen, &mut key);
                let class = class(rule, &key[of_key.clone()], &key[of_class]);
                writeln!(out, "yes: {}{class}", limits(rule, &key[of_key], cost))
            }
        };
    }
    out
}

fn limits(rule: &Rule, key: &[u8], cost: u64) -> String {
    let own = rule.keys.iter().find(|(own, _)| own == key).map(|(_, policies)| policies);
    let policies: Vec<String> = match own {
        Some(policies) => policies
            .iter()
            .map(|policy| format!("{policy:?}", policy = policy.to_string()))
            .collect(),
        None => rule.limits.iter().map(|limit| format!("{:?}", limit.policy.to_string())).collect(),
    };
    let whose = if own.is_some() { " (the key's own)" } else { "" };
    let refusal = match rule.role {
        Role::Shadow(_) => "refuses nothing".to_owned(),
        _ => format!("else {} {:?}", rule.refusal.status, rule.refusal.body),
    };
    format!("takes {cost} of {}{whose} by {}; {refusal}", policies.join(" and "), rule.key)
}

/// The class of the request, and why it is that one.
fn class(rule: &Rule, key: &[u8], asked: &[u8]) -> String {
    let of_limit = |n| Some((rule.class.as_ref()?, rule.class(n, key, asked)?));
    match (0..rule.limits.len()).find_map(of_limit) {
        None => String::new(),
        Some((class, name)) if name.as_bytes() == asked => {
            format!("; of class {name} ({})", class.source)
        }
        Some((class, name)) if asked.is_empty() => {
            format!(
                "; of class {name}, which has the greatest reserve, because it names none ({})",
                class.source
            )
        }
        Some((class, name)) => {
            let asked = plain(asked);
            format!("; of class {name}, which has the greatest reserve, because {asked} is no class ({})", class.source)
        }
    }
}

fn cost_of_route(rule: &Rule) -> String {
    rule.cost.map_or(String::new(), |cost| format!("; the request costs {cost}"))
}

fn reason(
    set: &Set,
    number: usize,
    rule: &Rule,
    seen: &crate::request::Seen<'_>,
    route: Option<usize>,
) -> String {
    if let Role::Shadow(of) = rule.role {
        return format!("{} takes no part", set.rules()[of].name);
    }
    if !rule.path.matches(&seen.path) {
        return format!("its path is {}", rule.path.as_str());
    }
    if !rule.has_method(seen.method) {
        return format!("its method is {}", rule.methods.join(", "));
    }
    match route.map(|route| &set.rules()[route]) {
        Some(route) if route.replaces.contains(&number) => {
            format!("route {} replaces it", route.name)
        }
        Some(route) => format!("route {} is nearer", route.name),
        None => "another route is nearer".to_owned(),
    }
}

/// Bytes of a request as printable text.
fn plain(bytes: &[u8]) -> String {
    let char = |&byte: &u8| match byte {
        0x21..=0x7e => char::from(byte).to_string(),
        _ => format!("\\x{byte:02x}"),
    };
    bytes.iter().map(char).collect()
}
