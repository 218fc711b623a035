//! Traefik's middleware `rateLimit` as a rules file.
//!
//! Each router that has the middleware has buckets of its own, so each becomes a group. One router
//! handles a request, so each router's path also becomes a route, which replaces the groups of
//! other routers. Where no router is in the file, each middleware is a group for all requests.

use super::plan::{everywhere, Group, Location, Plan};
use super::tree::{is_method, nanoseconds, prefix, Tree};
use super::Imported;
use std::collections::HashSet;
use tollbar::address::Network;
use tollbar_rules::internal::{parse, quoted, Entry, Node};
use tollbar_rules::Pattern;
use tollbar_rules::{Format, Place, Problem};

/// Translates the middleware `rateLimit` of Traefik's dynamic configuration (YAML or TOML), or of
/// one resource of Kubernetes, into a rules file.
///
/// # Errors
/// The faults of the file, with their places.
pub fn traefik(text: &str, format: Format) -> Result<Imported, Vec<Problem>> {
    let root = parse(text, format)?;
    let mut plan = Plan::default();
    let http = root.get("http").unwrap_or(&root);
    let middlewares = http.get("middlewares").map_or(&[][..], Node::entries);
    let routers = http.get("routers").map_or(&[][..], Node::entries);
    let entry_points = root.get("entryPoints").map_or(&[][..], Node::entries);
    for entry in middlewares {
        if let Some(open) = entry.node.get("inFlightReq") {
            say_in_flight(&mut plan, open);
        }
    }
    let mut named = HashSet::new();
    for router in routers {
        self::router(&mut plan, router, entry_points, middlewares, &mut named);
    }
    for entry in middlewares
        .iter()
        .filter(|entry| !routers.is_empty() && entry.node.get("rateLimit").is_some())
    {
        if !named.contains(entry.name.as_str()) {
            let text = format!(
                "the middleware {} is left out: no router of this file names it",
                quoted(&entry.name)
            );
            plan.remark(entry.place, text);
        }
    }
    if routers.is_empty() {
        for entry in middlewares {
            middleware(&mut plan, &entry.name, &entry.node, &everywhere(), &[]);
        }
    }
    if let Some(spec) = root.get("spec") {
        let name = root
            .get("metadata")
            .and_then(|metadata| metadata.text_of("name"))
            .unwrap_or_else(|| "middleware".to_owned());
        if let Some(open) = spec.get("inFlightReq") {
            say_in_flight(&mut plan, open);
        }
        middleware(&mut plan, &name, spec, &everywhere(), &[]);
    }
    Ok(plan.finish())
}

fn say_in_flight(plan: &mut Plan, node: &Node) {
    let amount = node.text_of("amount").unwrap_or_default();
    let text = format!(
        "inFlightReq with amount {} is left out: rules limit how often requests come, not how many are open",
        quoted(&amount)
    );
    plan.remark(node.place, text);
}

/// The middlewares that a list of names stands for, each with the place of its name: a chain stands
/// for those that it names. `named` gets their names.
fn chained<'a>(
    plan: &mut Plan,
    names: &[Node],
    middlewares: &'a [Entry],
    depth: usize,
    named: &mut HashSet<&'a str>,
) -> Vec<(Place, &'a Entry)> {
    let mut found = Vec::new();
    for used in names {
        let Some(name) = used.text() else { continue };
        let local = name.split('@').next().unwrap_or_default();
        let Some(entry) = middlewares.iter().find(|entry| entry.name == local) else {
            plan.remark(
                used.place,
                format!("the middleware {} is left out: it is not in this file", quoted(&name)),
            );
            continue;
        };
        named.insert(&entry.name);
        match entry
            .node
            .get("chain")
            .map(|chain| chain.get("middlewares").map_or(&[][..], Node::list))
        {
            // A chain may name itself.
            Some(_) if depth == 0 => {
                let text = format!(
                    "the chain {} is left out: chains are followed {CHAINS_MOST} deep",
                    quoted(local)
                );
                plan.remark(used.place, text);
            }
            Some(names) => found.extend(chained(plan, names, middlewares, depth - 1, named)),
            None => found.push((used.place, entry)),
        }
    }
    found
}

/// The middlewares that hold for a router: those of its entry points come first. Without
/// `entryPoints` it listens at all.
fn used_by<'a>(
    plan: &mut Plan,
    router: &Entry,
    entry_points: &[Entry],
    middlewares: &'a [Entry],
    named: &mut HashSet<&'a str>,
) -> Vec<(Place, &'a Entry)> {
    let listens = router
        .node
        .get("entryPoints")
        .map(|list| list.list().iter().filter_map(Node::text).collect::<Vec<_>>());
    let mut used = Vec::new();
    for point in entry_points
        .iter()
        .filter(|point| listens.as_ref().is_none_or(|names| names.contains(&point.name)))
    {
        let names = point
            .node
            .get("http")
            .and_then(|http| http.get("middlewares"))
            .map_or(&[][..], Node::list);
        used.extend(chained(plan, names, middlewares, CHAINS_MOST, named));
    }
    let names = router.node.get("middlewares").map_or(&[][..], Node::list);
    used.extend(chained(plan, names, middlewares, CHAINS_MOST, named));
    used
}

/// How deep chains may name each other.
const CHAINS_MOST: usize = 8;

/// Adds the groups of a router, and its paths.
fn router<'a>(
    plan: &mut Plan,
    router: &Entry,
    entry_points: &[Entry],
    middlewares: &'a [Entry],
    named: &mut HashSet<&'a str>,
) {
    let (paths, methods) = matches(plan, &router.node);
    let mut groups = vec![Vec::new(); paths.len()];
    for (place, entry) in used_by(plan, router, entry_points, middlewares, named) {
        if paths.len() > 1 && entry.node.get("rateLimit").is_some() {
            plan.remark(place, "the paths of a router share its limit in Traefik; by the rules each path has its own");
        }
        for (path, groups) in paths.iter().zip(&mut groups) {
            let name = format!("{}-{}", router.name, entry.name);
            groups.extend(middleware(plan, &name, &entry.node, path, &methods));
        }
    }
    for (path, groups) in paths.into_iter().zip(groups) {
        let location = Location {
            name: format!("{}-router", router.name),
            path,
            methods: methods.clone(),
            groups,
        };
        plan.location(router.place, location);
    }
}

/// The paths and methods of a router's rule. A rule that is no conjunction of paths, hosts and
/// methods is for all requests.
fn matches(plan: &mut Plan, router: &Node) -> (Vec<Pattern>, Vec<String>) {
    let Some(node) = router.get("rule") else { return (vec![everywhere()], Vec::new()) };
    let text = node.text().unwrap_or_default();
    let Some(matchers) = matchers(&text) else {
        let what = "the limits are for all paths, because rules have no path for it";
        plan.remark(node.place, format!("the router's rule {}: {what}", quoted(&text)));
        return (vec![everywhere()], Vec::new());
    };
    let (mut paths, mut methods) = (Vec::new(), Vec::new());
    for (name, arguments) in matchers {
        match name {
            "Path" | "PathPrefix" if paths.is_empty() => {
                for path in arguments {
                    let read = if name == "Path" {
                        Pattern::parse(path).ok().map(|path| (path, None))
                    } else {
                        prefix(path, "Traefik")
                    };
                    match read.filter(|_| path.starts_with('/') && !path.contains(['{', ':', '*']))
                    {
                        Some((pattern, other)) => {
                            if let Some(other) = other {
                                plan.remark(node.place, other);
                            }
                            paths.push(pattern);
                        }
                        None => plan.remark(
                            node.place,
                            format!("the path {} is left out: a rule cannot have it", quoted(path)),
                        ),
                    }
                }
            }
            "Method" if methods.is_empty() => {
                methods.extend(
                    arguments.into_iter().filter(|method| is_method(method)).map(str::to_owned),
                );
            }
            name => plan.remark(
                node.place,
                format!("{} is left out: rules choose by path and method only", quoted(name)),
            ),
        }
    }
    if paths.is_empty() {
        paths.push(everywhere());
    }
    (paths, methods)
}

/// A matcher of a rule: its name and its arguments.
type Matcher<'a> = (&'a str, Vec<&'a str>);

/// The matchers of ``Host(`a`) && PathPrefix(`/b`, `/c`)``. `None` for another form.
fn matchers(text: &str) -> Option<Vec<Matcher<'_>>> {
    let mut all = Vec::new();
    let mut rest = text.trim();
    loop {
        let (name, after) = rest.split_once('(')?;
        if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric()) {
            return None;
        }
        let mut arguments = Vec::new();
        let mut after = after.trim_start();
        loop {
            let quote = after.chars().next().filter(|c| matches!(c, '`' | '"'))?;
            let (argument, next) = after[1..].split_once(quote)?;
            arguments.push(argument);
            after = next.trim_start();
            match after.strip_prefix(',') {
                Some(next) => after = next.trim_start(),
                None => break,
            }
        }
        all.push((name, arguments));
        rest = after.strip_prefix(')')?.trim_start();
        if rest.is_empty() {
            return Some(all);
        }
        rest = rest.strip_prefix("&&")?.trim_start();
    }
}

/// Adds the group of a middleware.
fn middleware(
    plan: &mut Plan,
    name: &str,
    node: &Node,
    path: &Pattern,
    methods: &[String],
) -> Option<usize> {
    let limit = node.get("rateLimit")?;
    let place: Place = limit.place;
    let average = limit.get("average").map_or(Some(0), Node::whole);
    let burst = limit.get("burst").map_or(Some(1), Node::whole);
    // A number without a unit is in seconds.
    let period = match limit.text_of("period") {
        None => Some(1_000_000_000),
        Some(text) => text
            .parse::<u64>()
            .ok()
            .filter(|n| *n > 0)
            .and_then(|n| n.checked_mul(1_000_000_000))
            .or_else(|| nanoseconds(&text)),
    };
    let (Some(average), Some(burst), Some(period)) = (average, burst, period) else {
        let text = "expected whole numbers for average and burst, and a period such as 1m";
        plan.remark(place, format!("rateLimit is left out: {text}"));
        return None;
    };
    if average == 0 {
        plan.remark(place, "rateLimit is left out: an average of 0 limits nothing");
        return None;
    }
    let policy = plan.policy(place, "rateLimit", &format!("{average}/{period}ns burst {burst}"))?;
    let text = "Traefik holds a request back for up to half the time of one permit, 500 ms at most; the rule refuses it at once";
    plan.remark(place, text);
    if let Some(redis) = limit.get("redis") {
        plan.remark(
            redis.place,
            "Traefik's instances share these buckets; the rules count in the memory of one machine",
        );
    }
    let mut group = Group::new(name, Vec::new(), vec![policy]);
    group.key.push(source(plan, limit.get("sourceCriterion")));
    group.path = path.clone();
    group.methods = methods.to_vec();
    plan.group(place, group)
}

/// The key of a source criterion. Requests without the header share one bucket in Traefik.
fn source(plan: &mut Plan, criterion: Option<&Node>) -> String {
    const ADDRESS: &str = "address/32/128";
    let Some(criterion) = criterion else { return ADDRESS.to_owned() };
    if let Some(node) = criterion.get("requestHeaderName") {
        let source = plan.source(node.place, "header", &node.text().unwrap_or_default());
        return source.map_or_else(|| "all".to_owned(), |source| format!("{source} | all"));
    }
    if criterion.get("requestHost").is_some_and(Node::is_true) {
        return "header Host | all".to_owned();
    }
    let Some(strategy) = criterion.get("ipStrategy") else { return ADDRESS.to_owned() };
    if let Some(depth) = strategy.get("depth").filter(|depth| depth.whole() != Some(0)) {
        let text = "ipStrategy.depth is left out: rules find the client by the addresses of proxies, so add them to trusted-proxies";
        plan.remark(depth.place, text);
    }
    for node in strategy.get("excludedIPs").map_or(&[][..], Node::one_or_list) {
        let network = node.text().unwrap_or_default();
        if Network::parse(network.as_bytes()).is_none() {
            plan.remark(
                node.place,
                format!(
                    "{} is left out: expected a network, such as 192.0.2.0/24",
                    quoted(&network)
                ),
            );
        } else if !plan.trusted.contains(&network) {
            plan.trusted.push(network);
            let text = "the address is a trusted proxy of all rules, which read X-Forwarded-For only of requests from such a proxy";
            plan.remark(node.place, text);
        }
    }
    match strategy.get("ipv6Subnet").map(Node::whole) {
        Some(Some(bits @ 1..=128)) => format!("address/32/{bits}"),
        _ => ADDRESS.to_owned(),
    }
}
