//! Envoy's local rate limits: token buckets of the HTTP filter, of virtual hosts and of routes.

use super::envoy_descriptors::EnvoyImport;
use super::plan::{everywhere, Group, Location};
use super::tree::{nanoseconds, prefix, Tree};
use tollbar_rules::internal::{quoted, Node};
use tollbar_rules::Pattern;
use tollbar_rules::Place;

/// Adds the local rate limits anywhere in the configuration. A limit of a route is for the route's
/// path, and takes the place of limits with wider paths there.
pub(super) fn limits(import: &mut EnvoyImport, root: &Node) {
    let all = everywhere();
    find(import, root, &all, false);
}

/// `is_route`: the node stands in a route whose path a rule can have.
fn find(import: &mut EnvoyImport, node: &Node, path: &Pattern, is_route: bool) {
    let is_typed = node
        .text_of("@type")
        .is_some_and(|name| name.ends_with("local_ratelimit.v3.LocalRateLimit"));
    if is_typed || (node.get("stat_prefix").is_some() && node.get("token_bucket").is_some()) {
        return local(import, node, path, is_route);
    }
    let own = node.get("match").and_then(|matched| route_path(import, matched));
    let (path, is_route) = own.as_ref().map_or((path, is_route), |own| (own, true));
    for entry in node.entries() {
        find(import, &entry.node, path, is_route);
    }
    for node in node.list() {
        find(import, node, path, is_route);
    }
}

/// The path of a route, which is `match: { prefix | path }`.
fn route_path(import: &mut EnvoyImport, matched: &Node) -> Option<Pattern> {
    if let Some(path) = matched.text_of("path") {
        return Pattern::parse(&path).ok();
    }
    let text = matched.text_of("prefix").or_else(|| matched.text_of("path_separated_prefix"))?;
    let (pattern, other) = prefix(&text, "Envoy")?;
    if let Some(other) = other.filter(|_| matched.get("prefix").is_some()) {
        import.plan.remark(matched.place, other);
    }
    Some(pattern)
}

/// Adds the limits of one filter or route.
fn local(import: &mut EnvoyImport, node: &Node, path: &Pattern, is_route: bool) {
    let name = node.text_of("stat_prefix").unwrap_or_else(|| "local".to_owned());
    let (enabled, enforced) =
        (share(import, node, "filter_enabled"), share(import, node, "filter_enforced"));
    if enabled == Share::None {
        return import.plan.remark(
            node.place,
            "the local rate limit is left out: its filter_enabled is 0 %, which is Envoy's default",
        );
    }
    if enforced == Share::None {
        import.plan.remark(
            node.place,
            "filter_enforced is 0 %, which is Envoy's default: the rule is a shadow",
        );
    }
    if let Some(own) =
        node.get("local_rate_limit_per_downstream_connection").filter(|own| own.is_true())
    {
        import.plan.remark(
            own.place,
            "Envoy has a bucket for each connection; rules know no connections, so all requests share one",
        );
    }
    let mut groups = Vec::new();
    let status = status(import, node);
    let group = |name: &str, key: Vec<String>, limit: String| Group {
        path: path.clone(),
        shadow: enforced == Share::None,
        status,
        ..Group::new(name, key, vec![limit])
    };
    if let Some(limit) = node.get("token_bucket").and_then(|bucket| token_bucket(import, bucket)) {
        groups.extend(import.plan.group(node.place, group(&name, vec!["all".to_owned()], limit)));
    }
    for descriptor in node.get("descriptors").map_or(&[][..], Node::list) {
        let Some(limit) =
            descriptor.get("token_bucket").and_then(|bucket| token_bucket(import, bucket))
        else {
            import.plan.remark(descriptor.place, "a descriptor without a token_bucket is left out");
            continue;
        };
        let mut key = Vec::new();
        for entry in descriptor.get("entries").map_or(&[][..], Node::list) {
            match entry.text_of("key") {
                Some(name) => key.extend(import.part(&name, entry)),
                None => import
                    .plan
                    .remark(entry.place, "an entry without a key is left out: expected key: NAME"),
            }
        }
        if key.is_empty() {
            import.plan.remark(descriptor.place, "a descriptor without entries is left out");
            continue;
        }
        groups.extend(
            import.plan.group(descriptor.place, group(&format!("{name}-descriptor"), key, limit)),
        );
    }
    if let Some(consume) =
        node.get("always_consume_default_token_bucket").filter(|node| !node.is_true())
    {
        let text = "requests of a descriptor count against the default bucket too: rules have no limit for the other requests only";
        import.plan.remark(consume.place, text);
    }
    if is_route && !groups.is_empty() {
        let location = Location {
            name: format!("line{}", node.place.line),
            path: path.clone(),
            methods: Vec::new(),
            groups,
        };
        import.plan.location(node.place, location);
    }
}

/// A part of all requests.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Share {
    None,
    Some,
    All,
}

/// The share of a runtime fraction. A remark says that a rule is for all requests.
fn share(import: &mut EnvoyImport, node: &Node, name: &str) -> Share {
    let Some(value) = node.get(name).and_then(|fraction| fraction.get("default_value")) else {
        return Share::None;
    };
    let most = match value.text_of("denominator").as_deref() {
        Some("TEN_THOUSAND") => 10_000,
        Some("MILLION") => 1_000_000,
        _ => 100,
    };
    match value.get("numerator").and_then(Node::whole).unwrap_or(0) {
        0 => Share::None,
        n if n >= most => Share::All,
        n => {
            import.plan.remark(
                value.place,
                format!("{name} is for {n} of {most} requests; the rule is for all"),
            );
            Share::Some
        }
    }
}

fn status(import: &mut EnvoyImport, node: &Node) -> Option<u16> {
    let code = node.get("status")?.get("code")?;
    match code.text()?.as_str() {
        "TooManyRequests" => None,
        "ServiceUnavailable" => Some(503),
        "Forbidden" => Some(403),
        text => match text.parse() {
            Ok(status @ 400..=599) => Some(status),
            _ => {
                import.plan.remark(
                    code.place,
                    format!("the status {} is left out: the rule answers 429", quoted(text)),
                );
                None
            }
        },
    }
}

/// The policy of a token bucket, which gets its tokens at the ends of intervals.
fn token_bucket(import: &mut EnvoyImport, bucket: &Node) -> Option<String> {
    let place: Place = bucket.place;
    let interval = bucket.text_of("fill_interval").and_then(|text| nanoseconds(&text));
    let burst = bucket.get("max_tokens").and_then(Node::whole).filter(|burst| *burst > 0);
    let tokens =
        bucket.get("tokens_per_fill").map_or(Some(1), Node::whole).filter(|tokens| *tokens > 0);
    let (Some(interval), Some(burst), Some(tokens)) = (interval, burst, tokens) else {
        let text =
            "expected max_tokens and tokens_per_fill above 0, and a fill_interval such as 1s";
        import.plan.remark(place, format!("token_bucket is left out: {text}"));
        return None;
    };
    import.plan.policy(
        place,
        "token_bucket",
        &format!("{tokens}/{interval}ns burst {burst} algo interval"),
    )
}
