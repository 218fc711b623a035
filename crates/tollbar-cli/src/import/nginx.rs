//! nginx's `limit_req` and `limit_conn` as a rules file.
//!
//! Each `limit_req` becomes a group. In nginx one location handles a request; in a rules file all
//! groups that match a request count. So each location also becomes a route that replaces the
//! groups of other locations. A `limit_conn` becomes a remark with the `tollbar_conn` that does the
//! same in nginx, because rules limit how often requests come, and not how many are open.

use super::plan::{everywhere, Group, Location, Plan};
use super::tokens::{directives, Directive};
use super::tree::prefix;
use super::Imported;
use std::collections::{BTreeMap, BTreeSet};
use tollbar::address::Network;
use tollbar_rules::internal::quoted;
use tollbar_rules::Pattern;
use tollbar_rules::{Place, Problem};

/// Translates the `limit_req` directives of an nginx configuration, given as text, into a rules
/// file.
///
/// # Errors
/// The first fault of the configuration's syntax, and its place.
pub fn nginx(text: &str) -> Result<Imported, Vec<Problem>> {
    let mut import = NginxImport::default();
    let all = directives(text)?;
    import.zones(&all);
    let block = Block {
        pattern: everywhere(),
        name: "all".to_owned(),
        limits: Vec::new(),
        settings: Settings::default(),
    };
    import.block(&all, &block);
    Ok(import.plan.finish())
}

struct Zone {
    key: Vec<String>,
    rate: String,
    /// How many `limit_req` name it.
    uses: usize,
    place: Place,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Settings {
    status: Option<u16>,
    dry_run: bool,
}

/// A block of the configuration: the paths that it serves, and the limits that it inherits from the
/// blocks around it.
#[derive(Clone)]
struct Block {
    pattern: Pattern,
    name: String,
    /// The numbers of the groups in force.
    limits: Vec<usize>,
    settings: Settings,
}

#[derive(Default)]
struct NginxImport {
    plan: Plan,
    zones: BTreeMap<String, Zone>,
    /// The zones of `limit_conn`.
    open_zones: BTreeSet<String>,
    servers: usize,
}

impl NginxImport {
    fn remark(&mut self, directive: &Directive, text: impl AsRef<str>) {
        self.plan.remark(directive.place, text);
    }

    fn zones(&mut self, all: &[Directive]) {
        for directive in all {
            match directive.name() {
                "limit_req_zone" => self.zone(directive),
                "limit_conn_zone" => self.open_zone(directive),
                "set_real_ip_from" => self.trusted(directive),
                _ => {}
            }
            self.zones(&directive.block);
        }
    }

    fn trusted(&mut self, directive: &Directive) {
        let network = directive.words.get(1).map_or("", String::as_str);
        match Network::parse(network.as_bytes()) {
            Some(_) => self.plan.trusted.push(network.to_owned()),
            None => self.remark(
                directive,
                format!("set_real_ip_from {network} is left out: expected a network, such as 192.0.2.0/24"),
            ),
        }
    }

    fn zone(&mut self, directive: &Directive) {
        let rate = directive.value("rate=").and_then(|rate| {
            let per = rate
                .strip_suffix("r/s")
                .map(|n| (n, "s"))
                .or(rate.strip_suffix("r/m").map(|n| (n, "min")))?;
            per.0.parse::<u64>().ok().filter(|n| *n > 0).map(|n| format!("{n}/{}", per.1))
        });
        let (Some(name), Some(rate), Some(key)) =
            (directive.zone_name(), rate, directive.words.get(1))
        else {
            return self.remark(
                directive,
                "limit_req_zone is left out: expected KEY zone=NAME:SIZE rate=Nr/s or Nr/m",
            );
        };
        let key = self.key(directive, key);
        self.zones.insert(name, Zone { key, rate, uses: 0, place: directive.place });
    }

    /// A zone of `limit_conn`, for which a remark has the directive of this project's nginx module.
    fn open_zone(&mut self, directive: &Directive) {
        let Some(name) = directive.zone_name() else {
            return self
                .remark(directive, "limit_conn_zone is left out: expected KEY zone=NAME:SIZE");
        };
        self.open_zones.insert(name);
        let words = directive.words.get(1..).unwrap_or_default().join(" ");
        self.remark(directive, format!("limit_conn_zone is left out, because rules do not limit how many requests are open; tollbar's nginx module does: tollbar_conn_zone {words};"));
    }

    fn limit_conn(&mut self, directive: &Directive) {
        let text = match &directive.words[..] {
            [_, zone, number]
                if self.open_zones.contains(zone) && number.parse::<u32>().is_ok_and(|n| n > 0) =>
            {
                format!("limit_conn is left out, because rules do not limit how many requests are open; tollbar's nginx module does: tollbar_conn {zone} {number};")
            }
            [_, zone, number] if number.parse::<u32>().is_ok_and(|n| n > 0) => {
                format!("limit_conn is left out: no limit_conn_zone has the zone {}", quoted(zone))
            }
            _ => "limit_conn is left out: expected ZONE NUMBER".to_owned(),
        };
        self.remark(directive, text);
    }

    /// The parts of a rule's key for nginx's text with variables.
    fn key(&mut self, directive: &Directive, text: &str) -> Vec<String> {
        let mut parts = Vec::new();
        let mut pieces = text.split('$');
        // Whether the text is never empty: nginx limits no request whose key is, and every other.
        let mut is_never_empty = pieces.next().is_some_and(|literal| !literal.is_empty());
        for variable in pieces {
            let inside = variable.strip_prefix('{').and_then(|rest| rest.split('}').next());
            let end = match inside {
                Some(inside) => inside.len() + 2,
                None => variable
                    .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                    .unwrap_or(variable.len()),
            };
            let name = inside.unwrap_or(&variable[..end]);
            is_never_empty |= end < variable.len();
            is_never_empty |= matches!(
                name,
                "binary_remote_addr" | "remote_addr" | "server_name" | "host" | "http_host"
            );
            let source = match (name, name.strip_prefix("http_"), name.strip_prefix("cookie_")) {
                ("binary_remote_addr" | "remote_addr", ..) => Some("address/32/128".to_owned()),
                ("server_name" | "host" | "http_host", ..) => {
                    self.remark(
                        directive,
                        format!("${name}: rules know no host, so all hosts share this limit"),
                    );
                    None
                }
                (_, Some(header), _) => {
                    self.plan.source(directive.place, "header", &header.replace('_', "-"))
                }
                (_, _, Some(cookie)) => self.plan.source(directive.place, "cookie", cookie),
                _ => Some(self.plan.field(directive.place, name)),
            };
            parts.extend(source);
        }
        if parts.is_empty() {
            parts.push("all".to_owned());
        }
        // Of a key of several parts, one may be missing.
        let empty = match (is_never_empty, parts.len()) {
            (true, _) => "all",
            (false, 1) => return parts,
            (false, _) => "nothing",
        };
        let is_always_there = |part: &String| part.starts_with("address") || part == "all";
        parts
            .iter_mut()
            .filter(|part| !is_always_there(part))
            .for_each(|part| *part = format!("{part} | {empty}"));
        parts
    }

    /// Reads the directives of a block, which inherits from the block around it.
    fn block(&mut self, all: &[Directive], outer: &Block) -> Block {
        let mut block = outer.clone();
        for directive in all {
            match (directive.name(), directive.words.get(1).map(String::as_str)) {
                ("limit_req_status", Some(status)) => {
                    block.settings.status =
                        status.parse().ok().filter(|status| (400..600).contains(status))
                }
                ("limit_req_dry_run", Some(on)) => block.settings.dry_run = on == "on",
                _ => {}
            }
        }
        let own: Vec<usize> = all
            .iter()
            .filter(|directive| directive.name() == "limit_req")
            .filter_map(|directive| self.limit(directive, &block))
            .collect();
        if !own.is_empty() {
            block.limits = own;
        }
        for directive in all {
            match directive.name() {
                "http" => drop(self.block(&directive.block, &block)),
                "server" => {
                    self.servers += 1;
                    let has_limits = directive.has("limit_req");
                    if self.servers > 1 && has_limits {
                        self.remark(
                            directive,
                            "rules know no host: the limits and locations of this server are for all servers",
                        );
                    }
                    let server = Block { name: format!("server{}", self.servers), ..block.clone() };
                    self.block(&directive.block, &server);
                }
                "location" => self.location(directive, &block),
                "if" | "limit_except" if directive.has("limit_req") => {
                    let text = format!(
                        "{} is left out: rules choose by path and method only",
                        directive.name()
                    );
                    self.remark(directive, text);
                }
                "include" => self.remark(directive, "include is not read: import that file too"),
                "limit_conn" => self.limit_conn(directive),
                name @ ("limit_conn_status" | "limit_conn_dry_run" | "limit_conn_log_level") => {
                    let own = name.replacen("limit", "tollbar", 1);
                    let value = directive.words.get(1).map_or("", String::as_str);
                    self.remark(
                        directive,
                        format!(
                            "{name} is left out; tollbar's nginx module has it as: {own} {value};"
                        ),
                    );
                }
                name @ ("limit_rate" | "limit_rate_after") => {
                    self.remark(
                        directive,
                        format!(
                            "{name} is left out: rules do not limit how fast requests are answered"
                        ),
                    );
                }
                "real_ip_header"
                    if !directive
                        .words
                        .get(1)
                        .is_some_and(|name| name.eq_ignore_ascii_case("x-forwarded-for")) =>
                {
                    self.remark(directive, "real_ip_header: rules read X-Forwarded-For only");
                }
                _ => {}
            }
        }
        block
    }

    fn limit(&mut self, directive: &Directive, block: &Block) -> Option<usize> {
        let name = directive.value("zone=").unwrap_or_default().to_owned();
        let Some(zone) = self.zones.get_mut(&name) else {
            self.remark(
                directive,
                format!("limit_req is left out: no limit_req_zone has the zone {}", quoted(&name)),
            );
            return None;
        };
        zone.uses += 1;
        let (uses, zone_place, key, rate) =
            (zone.uses, zone.place, zone.key.clone(), zone.rate.clone());
        let Ok(burst) = directive.value("burst=").unwrap_or("0").parse::<u64>() else {
            self.remark(directive, "limit_req is left out: burst is no whole number");
            return None;
        };
        if burst > 0 && !directive.words.iter().any(|word| word == "nodelay") {
            self.remark(
                directive,
                "nginx delays requests above the rate; by the rule they pass at once, as with nodelay",
            );
        }
        if uses == 2 {
            self.plan.remark(zone_place, format!("zone {name} is named by several limit_req, which share its debts in nginx; each rule has debts of its own"));
        }
        let limit = format!("{rate} burst {}", burst.saturating_add(1));
        let limit = self.plan.policy(directive.place, "limit_req", &limit)?;
        let group = Group {
            path: block.pattern.clone(),
            // nginx's own default.
            status: Some(block.settings.status.unwrap_or(503)),
            shadow: block.settings.dry_run,
            ..Group::new(&format!("{name}-{}", block.name), key, vec![limit])
        };
        self.plan.group(directive.place, group)
    }

    fn location(&mut self, directive: &Directive, outer: &Block) {
        let words: Vec<&str> = directive.words.iter().skip(1).map(String::as_str).collect();
        let read = match words[..] {
            ["=", path] => Pattern::parse(path).ok().map(|pattern| (pattern, None)),
            [path] | ["^~", path] if path.starts_with('/') => prefix(path, "nginx's location"),
            _ => None,
        };
        let Some((pattern, other)) = read else {
            let has_limits = directive.has("limit_req");
            let what = if has_limits {
                "its limits are left out"
            } else {
                "requests of it count as those of other locations"
            };
            return self.remark(
                directive,
                format!("location {} is no path that a rule can have: {what}", words.join(" ")),
            );
        };
        if let Some(text) = other {
            self.remark(directive, text);
        }
        let name = format!("line{}", directive.place.line);
        let block = self.block(
            &directive.block,
            &Block { pattern: pattern.clone(), name: name.clone(), ..outer.clone() },
        );
        self.plan.location(
            directive.place,
            Location { name, path: pattern, methods: Vec::new(), groups: block.limits },
        );
    }
}
