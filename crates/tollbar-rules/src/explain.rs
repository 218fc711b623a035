//! Which rules take part in a request, and why.

use crate::key::Written;
use crate::request::{Field, Seen};
use crate::rule::{Limit, Missing, Refusal, Role, Rule, RuleFile};
use crate::set::{Matching, Part, Set};
use crate::times;
use std::fmt::Write;

/// Says line by line which rules take part in a request, with their keys, costs and limits, and why
/// the others do not.
pub fn explain(file: &RuleFile, request: &[Field<'_>]) -> String {
    let set = Set::new(file.clone(), vec![Vec::new(); file.rules.len()], Vec::new(), 1, None);
    let seen = set.see(request);
    let unix = times::wall_clock();
    let matching = set.matching(&seen, unix);
    let mut out = String::new();
    let method = if seen.method.is_empty() { "no method".to_owned() } else { plain(seen.method) };
    let client = seen.client().map_or("no address".to_owned(), |client| client.to_string());
    let _ = writeln!(out, "request: {method} {} from {client}", plain(&seen.path));
    for (n, rule) in set.rules().iter().enumerate() {
        let kind = rule.role.word();
        let takes_part = match rule.role {
            Role::Shadow(of) => matching.rules().contains(&of),
            _ => matching.rules().contains(&n),
        };
        let _ = write!(out, "{kind} {} (line {}): ", rule.name, rule.place.line);
        if !takes_part {
            let _ = writeln!(out, "no: {}", reason(&set, n, &seen, &matching, unix));
            continue;
        }
        let mut key = Vec::new();
        let part = set.part(n, matching.route, &seen, &mut key);
        let _ = match part {
            Part::NoLimit => {
                writeln!(out, "yes, without a limit of its own{}", cost_of_route(rule))
            }
            Part::Exempt => writeln!(out, "exempt, and not charged"),
            Part::MissingAllowed => {
                let lacks = lacks(&set, n, matching.route, &seen);
                writeln!(out, "no {lacks}, so it does not limit the request")
            }
            Part::Ambiguous => {
                let lacks = lacks(&set, n, matching.route, &seen);
                writeln!(out, "no certain {lacks}, so it refuses the request")
            }
            Part::MissingDenied => match &rule.missing {
                Missing::Deny(Refusal { status, body }) => {
                    let lacks = lacks(&set, n, matching.route, &seen);
                    writeln!(out, "no {lacks}: answers {status} {body:?}")
                }
                Missing::Allow => writeln!(out),
            },
            Part::Limited(of_key, cost) => {
                let of_class = set.class(n, &seen, &mut key);
                let class = class(rule, &key[of_key.clone()], &key[of_class]);
                let limits = limits(rule, &key[of_key], cost, unix);
                writeln!(out, "yes: {limits}{class}{}", settled(&set, n, matching.route))
            }
        };
    }
    out
}

/// What the request lacks: the key, or the cost.
fn lacks(set: &Set, n: usize, route: Option<usize>, seen: &Seen<'_>) -> String {
    let rule = &set.rules()[n];
    match rule.key.write(seen, &mut Vec::new()) {
        Written::Key => format!("cost ({})", set.cost(n, route).taken),
        Written::Missing => format!("key ({})", rule.key),
        Written::Ambiguous => format!("key ({} has several values)", rule.key),
    }
}

/// That the answer tells the cost.
fn settled(set: &Set, n: usize, route: Option<usize>) -> String {
    match &set.cost(n, route).answer {
        Some(word) => format!("; an estimate, until the answer says {}", word.trim_matches(':')),
        None => String::new(),
    }
}

fn limits(rule: &Rule, key: &[u8], cost: u64, unix: u64) -> String {
    let own = rule.keys.iter().find(|(own, _)| **own == *key).map(|(_, policies)| policies);
    let policies: Vec<String> = match own {
        Some(policies) => policies
            .iter()
            .map(|policy| format!("{policy:?}", policy = policy.to_string()))
            .collect(),
        None => {
            let holds = |limit: &&Limit| limit.when.as_ref().is_none_or(|when| when.hold(unix));
            let limits = rule.limits.iter().filter(holds);
            limits.map(|limit| format!("{:?}", limit.policy.to_string())).collect()
        }
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
    let cost = rule.cost.as_ref();
    cost.map_or(String::new(), |cost| format!("; the request costs {}", cost.taken))
}

fn reason(set: &Set, number: usize, seen: &Seen<'_>, matching: &Matching, unix: u64) -> String {
    let (rule, route) = (&set.rules()[number], matching.route);
    if let Role::Shadow(of) = rule.role {
        return format!("{} takes no part", set.rules()[of].name);
    }
    if !rule.path.matches(&seen.path) {
        return format!("its path is {}", rule.path.as_str());
    }
    if !rule.has_method(seen.method) {
        return format!("its method is {}", rule.methods.join(", "));
    }
    if !rule.has_host(seen.hosts()) {
        let hosts: Vec<String> = rule.hosts.iter().map(ToString::to_string).collect();
        return format!("its host is {}", hosts.join(", "));
    }
    if let Some(when) = rule.when.as_ref().filter(|when| !when.hold(unix)) {
        return format!("it counts {}", when.as_str());
    }
    if let Some(plan) = set.plan(number, seen).filter(|plan| matching.rules().contains(plan)) {
        return format!("the plan {} takes its place", set.rules()[plan].name);
    }
    match (rule.role, route.map(|route| &set.rules()[route])) {
        (Role::Plan(of), _) if matching.rules().contains(&of) => {
            "the request names another plan, or none".to_owned()
        }
        (Role::Plan(of) | Role::Limit(of), _) => {
            format!("{} takes no part", set.rules()[of].name)
        }
        (_, Some(route)) if route.replaces.contains(&number) => {
            format!("route {} replaces it", route.name)
        }
        (_, Some(route)) => format!("route {} is nearer", route.name),
        (_, None) => "another route is nearer".to_owned(),
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
