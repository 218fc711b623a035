//! Kong's plugin `rate-limiting`, in declarative configuration, as a rules file.
//!
//! Kong runs one plugin of a name for a request: that of its route, or else that of its service, or
//! else the global one. So each plugin becomes a group, and each path of a route becomes a route of
//! the rules, which replaces the groups of other plugins.

use super::plan::{everywhere, Group, Location, Plan};
use super::tree::{is_method, prefix, Tree};
use super::Imported;
use std::collections::HashSet;
use tollbar_rules::internal::BODY_MOST;
use tollbar_rules::internal::{parse, quoted, Node};
use tollbar_rules::Pattern;
use tollbar_rules::{Format, Place, Problem};

/// Translates the plugin `rate-limiting` in Kong's declarative configuration, in YAML or JSON, into
/// a rules file.
///
/// # Errors
/// The faults of the YAML, with their places.
pub fn kong(text: &str) -> Result<Imported, Vec<Problem>> {
    let root = parse(text, Format::Yaml)?;
    let mut import = KongImport {
        plan: Plan::default(),
        services: Vec::new(),
        routes: Vec::new(),
        seen: HashSet::new(),
    };
    let global = import.plugins(&root, "global", &everywhere(), &Scope::Global);
    for service in list(&root, "services") {
        let name = name_of(service);
        // A plugin of a service counts requests of all its routes together, so its group has the
        // path of a route only if there is one.
        let paths: Vec<Pattern> = list(service, "routes")
            .flat_map(|route| list(route, "paths"))
            .filter_map(pattern)
            .map(|(pattern, _)| pattern)
            .collect();
        let path = if let [one] = &paths[..] { one.clone() } else { everywhere() };
        let own = import.plugins(service, &name, &path, &Scope::Service);
        let in_force = if own.is_empty() { global.clone() } else { own };
        import.services.push((name, in_force.clone()));
        for route in list(service, "routes") {
            import.route(route, &in_force);
        }
    }
    for route in list(&root, "routes") {
        let service = route
            .get("service")
            .and_then(|service| service.text().or_else(|| service.text_of("name")));
        let of_service = import
            .services
            .iter()
            .find(|(name, _)| Some(name) == service.as_ref())
            .map(|(_, groups)| groups.clone());
        import.route(route, &of_service.unwrap_or_else(|| global.clone()));
    }
    let mut of_consumers = Vec::new();
    for consumer in list(&root, "consumers") {
        let name = consumer.text_of("username").unwrap_or_else(|| name_of(consumer));
        of_consumers.extend(import.plugins(
            consumer,
            &name,
            &everywhere(),
            &Scope::Consumer(&name),
        ));
    }
    for (place, mut location) in std::mem::take(&mut import.routes) {
        location.groups.extend(&of_consumers);
        import.plan.location(place, location);
    }
    import.say_unseen(&root);
    Ok(import.plan.finish())
}

struct KongImport {
    plan: Plan,
    /// The groups in force for routes of each service without a plugin of their own.
    services: Vec<(String, Vec<usize>)>,
    routes: Vec<(Place, Location)>,
    /// Where the plugins stand that have been read or remarked upon.
    seen: HashSet<Place>,
}

enum Scope<'a> {
    Global,
    Service,
    Route,
    Consumer(&'a str),
}

/// The windows of the plugin, and their policies in a rule. A month and a year are calendars in
/// UTC.
const WINDOWS: [(&str, &str); 6] = [
    ("second", "s algo fixed-window"),
    ("minute", "min algo fixed-window"),
    ("hour", "h algo fixed-window"),
    ("day", "day algo fixed-window"),
    ("month", "month"),
    ("year", "year"),
];
/// Fields of the plugin that change no decision of one node, or that the import reads.
const CONFIG: [&str; 10] = [
    "limit_by",
    "policy",
    "header_name",
    "path",
    "error_code",
    "error_message",
    "hide_client_headers",
    "fault_tolerant",
    "sync_rate",
    "redis",
];

impl KongImport {
    /// Adds the groups of the plugins of a node, and returns their numbers.
    fn plugins(
        &mut self,
        node: &Node,
        name: &str,
        path: &Pattern,
        scope: &Scope<'_>,
    ) -> Vec<usize> {
        let mut groups = Vec::new();
        for plugin in list(node, "plugins") {
            self.seen.insert(plugin.place);
            match plugin.text_of("name").as_deref() {
                Some("rate-limiting") => {}
                Some(other) if is_limit(other) => {
                    self.plan.remark(
                        plugin.place,
                        format!(
                            "the plugin {} is left out: only rate-limiting is read",
                            quoted(other)
                        ),
                    );
                    continue;
                }
                _ => continue,
            }
            if plugin.text_of("enabled").as_deref() == Some("false") {
                self.plan.remark(plugin.place, "the plugin is left out: it is not enabled");
                continue;
            }
            let bound = ["service", "route", "consumer", "consumer_group"]
                .into_iter()
                .find(|field| plugin.text_of(field).is_some());
            if let (Scope::Global, Some(field)) = (scope, bound) {
                let text = format!("the plugin is left out: write it below its {field}, and not in the global list");
                self.plan.remark(plugin.place, text);
                continue;
            }
            if plugin.text_of("consumer_group").is_some() {
                self.plan.remark(
                    plugin.place,
                    "the plugin is left out: rules know no groups of consumers",
                );
                continue;
            }
            let Some(config) = plugin.get("config") else {
                self.plan.remark(
                    plugin.place,
                    "the plugin is left out: expected config with second, minute, hour or day",
                );
                continue;
            };
            let consumer =
                plugin.text_of("consumer").or_else(|| plugin.get("consumer")?.text_of("username"));
            match &consumer {
                Some(consumer) => groups.extend(self.plugin(
                    plugin,
                    config,
                    name,
                    path,
                    &Scope::Consumer(consumer),
                )),
                None => groups.extend(self.plugin(plugin, config, name, path, scope)),
            }
        }
        groups
    }

    /// Adds a remark for each plugin that limits requests and stands where the import does not
    /// look, such as below a group of consumers.
    fn say_unseen(&mut self, node: &Node) {
        let name =
            node.text_of("name").filter(|name| is_limit(name) && node.get("config").is_some());
        if let Some(name) = name.filter(|_| self.seen.insert(node.place)) {
            let text = format!(
                "the plugin {} is left out: rules have nothing for where it stands",
                quoted(&name)
            );
            self.plan.remark(node.place, text);
        }
        node.entries().iter().for_each(|entry| self.say_unseen(&entry.node));
        node.list().iter().for_each(|node| self.say_unseen(node));
    }

    fn plugin(
        &mut self,
        plugin: &Node,
        config: &Node,
        name: &str,
        path: &Pattern,
        scope: &Scope<'_>,
    ) -> Option<usize> {
        let mut limits = Vec::new();
        for (field, window) in WINDOWS {
            let Some(node) = config.get(field) else { continue };
            let Some(most) = node.whole() else {
                self.plan
                    .remark(node.place, format!("{field} is left out: expected a whole number"));
                continue;
            };
            limits.extend(self.plan.policy(node.place, field, &format!("{most}/{window}")));
        }
        for entry in config.entries() {
            let is_known = CONFIG.contains(&entry.name.as_str())
                || WINDOWS.iter().any(|(field, _)| *field == entry.name);
            if !is_known && !entry.name.starts_with("redis_") {
                self.plan.remark(
                    entry.place,
                    format!("{} is left out: rules have no such field", quoted(&entry.name)),
                );
            }
        }
        if limits.is_empty() {
            self.plan.remark(
                config.place,
                "the plugin is left out: it has no limit that rules can have",
            );
            return None;
        }
        if let Some(policy) =
            config.get("policy").filter(|node| node.text().is_some_and(|text| text != "local"))
        {
            let text =
                "nodes of Kong share these counters; the rules count in the memory of one machine";
            self.plan.remark(policy.place, text);
        }
        let mut group = Group::new(name, Vec::new(), limits);
        group.path = path.clone();
        group.status = config
            .get("error_code")
            .and_then(Node::whole)
            .and_then(|code| u16::try_from(code).ok());
        if let Some(code) = config
            .get("error_code")
            .filter(|_| !group.status.is_some_and(|code| (400..600).contains(&code)))
        {
            self.plan
                .remark(code.place, "error_code is left out: expected a status from 400 to 599");
            group.status = None;
        }
        group.body = config.text_of("error_message");
        if group.body.as_ref().is_some_and(|body| body.len() > BODY_MOST) {
            self.plan.remark(
                config.place,
                format!("error_message is left out: it is longer than {BODY_MOST} bytes"),
            );
            group.body = None;
        }
        if let Scope::Consumer(consumer) = scope {
            let text = format!(
                "Kong does not count the requests of {} against other limits; by the rules all limits count",
                quoted(consumer)
            );
            self.plan.remark(plugin.place, text);
            let condition = format!("of the consumer {}", quoted(consumer));
            group.key = vec![self.plan.condition(plugin.place, "consumer", consumer, &condition)];
        } else {
            self.limit_by(config, &mut group, scope);
        }
        self.plan.group(plugin.place, group)
    }

    /// Sets the key of the group. Kong takes the address where the request has no consumer,
    /// credential or header.
    fn limit_by(&mut self, config: &Node, group: &mut Group, scope: &Scope<'_>) {
        const ADDRESS: &str = "address/32/128";
        let node = config.get("limit_by").unwrap_or(config);
        let by = config.text_of("limit_by").unwrap_or_else(|| "consumer".to_owned());
        let key = match by.as_str() {
            "ip" => ADDRESS.to_owned(),
            "consumer" | "credential" | "consumer-group" => {
                format!("{} | {ADDRESS}", self.plan.field(node.place, &by))
            }
            "header" => {
                let name = config.text_of("header_name").unwrap_or_default();
                match self.plan.source(node.place, "header", &name) {
                    Some(source) => format!("{source} | {ADDRESS}"),
                    None => ADDRESS.to_owned(),
                }
            }
            "path" => match config.text_of("path").and_then(|path| Pattern::parse(&path).ok()) {
                Some(path) => {
                    let text = "Kong counts requests of other paths by their address; the rule is for this path only";
                    self.plan.remark(node.place, text);
                    group.path = path;
                    "all".to_owned()
                }
                None => {
                    self.plan.remark(
                        node.place,
                        "limit_by: path has no path that a rule can have: the rule counts by address",
                    );
                    ADDRESS.to_owned()
                }
            },
            "service" => {
                if !matches!(scope, Scope::Service) {
                    self.plan.remark(
                        node.place,
                        "limit_by: service: rules know no services, so all requests of the rule share its limits",
                    );
                }
                "all".to_owned()
            }
            other => {
                self.plan.remark(
                    node.place,
                    format!("limit_by: {}: the rule counts by address", quoted(other)),
                );
                ADDRESS.to_owned()
            }
        };
        group.key = vec![key];
    }

    /// Adds the plugins of a route, and its paths as routes of the rules.
    fn route(&mut self, route: &Node, of_service: &[usize]) {
        let name = name_of(route);
        for field in ["hosts", "headers", "snis", "sources", "destinations"] {
            if let Some(node) = route.get(field) {
                self.plan.remark(
                    node.place,
                    format!("{field} is left out: rules choose by path and method only"),
                );
            }
        }
        let mut paths = Vec::new();
        for path in list(route, "paths") {
            match pattern(path) {
                Some((pattern, other)) => {
                    if let Some(other) = other {
                        self.plan.remark(path.place, other);
                    }
                    paths.push(pattern);
                }
                None => self.plan.remark(path.place, "the path is left out: a rule cannot have it"),
            }
        }
        if paths.is_empty() {
            if route.get("paths").is_some() {
                return self.plan.remark(
                    route.place,
                    "the route is left out: it has no path that a rule can have",
                );
            }
            paths.push(everywhere());
        }
        let methods: Vec<String> = list(route, "methods")
            .filter_map(Node::text)
            .filter(|method| is_method(method))
            .collect();
        let path = if let [one] = &paths[..] { one.clone() } else { everywhere() };
        let own = self.plugins(route, &name, &path, &Scope::Route);
        let groups = if own.is_empty() { of_service.to_vec() } else { own };
        for path in paths {
            let location = Location {
                name: format!("{name}-route"),
                path,
                methods: methods.clone(),
                groups: groups.clone(),
            };
            self.routes.push((route.place, location));
        }
    }
}

/// The pattern of a route's path. Kong takes a path that begins with `~` as a regular expression.
fn pattern(path: &Node) -> Option<(Pattern, Option<String>)> {
    let text = path.text()?;
    if text.contains([':', '*']) {
        return None;
    }
    prefix(&text, "Kong").filter(|_| text.starts_with('/'))
}

fn is_limit(plugin: &str) -> bool {
    plugin.contains("rate") || plugin.contains("limit")
}

fn name_of(node: &Node) -> String {
    node.text_of("name").unwrap_or_else(|| format!("line{}", node.place.line))
}

fn list<'a>(node: &'a Node, name: &str) -> impl Iterator<Item = &'a Node> {
    node.get(name).map_or(&[][..], Node::list).iter()
}
