//! nginx's `limit_req` and `limit_req_zone` as a rules file.
//!
//! Each `limit_req` becomes a group. In nginx one location handles a request; in a rules file all groups that match a request count. So each
//! location also becomes a route that replaces the groups of other locations. Each directive that a rules file cannot express becomes a
//! remark with the directive's line.

use super::tokens::{directives, Directive};
use crate::path::Pattern;
use std::collections::BTreeMap;
use std::fmt::Write;

/// A configuration as rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The rules file, in TOML.
    pub toml: String,
    /// The directives that a rules file cannot express: the line in the configuration, and the reason.
    pub remarks: Vec<(usize, String)>,
}

/// Translates the `limit_req` directives of an nginx configuration, given as text, into a rules file.
///
/// # Errors
/// The number of the line at which the configuration is malformed, and a description of the fault.
pub fn nginx(text: &str) -> Result<Imported, (usize, String)> {
    let mut import = Import::default();
    let all = directives(text)?;
    import.zones(&all);
    let place = Place {
        pattern: Pattern::parse("/**").map_err(|_| (1, String::new()))?,
        name: "all".to_owned(),
        limits: Vec::new(),
        settings: Settings::default(),
    };
    import.block(&all, &place);
    import.remarks.sort();
    import.remarks.dedup();
    Ok(Imported { toml: import.write(), remarks: import.remarks })
}

struct Zone {
    key: Vec<String>,
    rate: String,
    /// How many `limit_req` name it.
    uses: usize,
    line: usize,
}

/// A group to be: one `limit_req`.
struct Group {
    name: String,
    pattern: Pattern,
    zone: String,
    burst: u64,
    settings: Settings,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Settings {
    status: Option<u16>,
    dry_run: bool,
}

/// A block of the configuration: the paths that it serves, and the limits that it inherits from the blocks around it.
#[derive(Clone)]
struct Place {
    pattern: Pattern,
    name: String,
    /// The numbers of the groups in force.
    limits: Vec<usize>,
    settings: Settings,
}

#[derive(Default)]
struct Import {
    zones: BTreeMap<String, Zone>,
    groups: Vec<Group>,
    locations: Vec<(String, Pattern, Vec<usize>)>,
    trusted: Vec<String>,
    servers: usize,
    remarks: Vec<(usize, String)>,
}

impl Import {
    fn remark(&mut self, directive: &Directive, text: impl Into<String>) {
        self.remarks.push((directive.line, text.into()));
    }

    fn zones(&mut self, all: &[Directive]) {
        for directive in all {
            match directive.name() {
                "limit_req_zone" => self.zone(directive),
                "set_real_ip_from" => self.trusted.extend(directive.words.get(1).cloned()),
                _ => {}
            }
            self.zones(&directive.block);
        }
    }

    fn zone(&mut self, directive: &Directive) {
        let value = |name: &str| directive.words.iter().find_map(|word| word.strip_prefix(name));
        let name = value("zone=").and_then(|zone| zone.split(':').next()).map(str::to_owned);
        let rate = value("rate=").and_then(|rate| {
            let per = rate.strip_suffix("r/s").map(|n| (n, "s")).or(rate.strip_suffix("r/m").map(|n| (n, "min")))?;
            per.0.parse::<u64>().ok().filter(|n| *n > 0).map(|n| format!("{n}/{}", per.1))
        });
        let (Some(name), Some(rate), Some(key)) = (name, rate, directive.words.get(1)) else {
            return self.remark(directive, "limit_req_zone is left out: expected KEY zone=NAME:SIZE rate=Nr/s or Nr/m");
        };
        let key = self.key(directive, key);
        self.zones.insert(name, Zone { key, rate, uses: 0, line: directive.line });
    }

    /// The parts of a rule's key for nginx's text with variables.
    fn key(&mut self, directive: &Directive, text: &str) -> Vec<String> {
        let mut parts = Vec::new();
        for variable in text.split('$').skip(1) {
            let inside = variable.strip_prefix('{').and_then(|rest| rest.split('}').next());
            let end = variable.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(variable.len());
            let name = inside.unwrap_or(&variable[..end]);
            parts.push(match name {
                "binary_remote_addr" | "remote_addr" => "address/32/128".to_owned(),
                "server_name" | "host" | "http_host" => {
                    self.remark(directive, format!("${name}: rules know no host, so all hosts share this limit"));
                    continue;
                }
                _ => match (name.strip_prefix("http_"), name.strip_prefix("cookie_")) {
                    (Some(header), _) => format!("header {}", header.replace('_', "-")),
                    (_, Some(cookie)) => format!("cookie {cookie}"),
                    _ => {
                        self.remark(
                            directive,
                            format!("${name}: the server must give this value as the field \":{name}\""),
                        );
                        format!("field {name}")
                    }
                },
            });
        }
        if parts.is_empty() {
            parts.push("all".to_owned());
        }
        parts
    }

    /// The directives of a block, whose place inherits from the one around it.
    fn block(&mut self, all: &[Directive], outer: &Place) -> Place {
        let mut place = outer.clone();
        for directive in all {
            match (directive.name(), directive.words.get(1).map(String::as_str)) {
                ("limit_req_status", Some(status)) => {
                    place.settings.status = status.parse().ok().filter(|status| (400..600).contains(status))
                }
                ("limit_req_dry_run", Some(on)) => place.settings.dry_run = on == "on",
                _ => {}
            }
        }
        let own: Vec<usize> = all
            .iter()
            .filter(|directive| directive.name() == "limit_req")
            .filter_map(|directive| self.limit(directive, &place))
            .collect();
        if !own.is_empty() {
            place.limits = own;
        }
        for directive in all {
            match directive.name() {
                "http" => drop(self.block(&directive.block, &place)),
                "server" => {
                    self.servers += 1;
                    let has_limits = directive.has("limit_req");
                    if self.servers > 1 && has_limits {
                        self.remark(
                            directive,
                            "rules know no host: the limits and locations of this server are for all servers",
                        );
                    }
                    let server = Place { name: format!("server{}", self.servers), ..place.clone() };
                    self.block(&directive.block, &server);
                }
                "location" => self.location(directive, &place),
                "if" | "limit_except" if directive.has("limit_req") => {
                    let text = format!("{} is left out: rules choose by path and method only", directive.name());
                    self.remark(directive, text);
                }
                "include" => self.remark(directive, "include is not read: import that file too"),
                name @ ("limit_conn" | "limit_conn_zone" | "limit_rate" | "limit_rate_after") => {
                    self.remark(directive, format!("{name} is left out: rules limit how often requests come, not how many are open or how fast they are answered"));
                }
                "real_ip_header"
                    if !directive.words.get(1).is_some_and(|name| name.eq_ignore_ascii_case("x-forwarded-for")) =>
                {
                    self.remark(directive, "real_ip_header: rules read X-Forwarded-For only");
                }
                _ => {}
            }
        }
        place
    }

    fn limit(&mut self, directive: &Directive, place: &Place) -> Option<usize> {
        let value = |name: &str| directive.words.iter().find_map(|word| word.strip_prefix(name));
        let name = value("zone=").unwrap_or_default().to_owned();
        if !self.zones.contains_key(&name) {
            self.remark(directive, format!("limit_req is left out: no limit_req_zone has the zone \"{name}\""));
            return None;
        }
        let Ok(burst) = value("burst=").unwrap_or("0").parse::<u64>() else {
            self.remark(directive, "limit_req is left out: burst is no whole number");
            return None;
        };
        if burst > 0 && !directive.words.iter().any(|word| word == "nodelay") {
            self.remark(
                directive,
                "nginx delays requests above the rate; by the rule they pass at once, as with nodelay",
            );
        }
        let zone = self.zones.get_mut(&name)?;
        zone.uses += 1;
        let (uses, line) = (zone.uses, zone.line);
        if uses == 2 {
            self.remarks.push((line, format!("zone {name} is named by several limit_req, which share its debts in nginx; each rule has debts of its own")));
        }
        let taken = |wanted: &str| self.groups.iter().any(|group| group.name == wanted);
        let mut group = format!("{name}-{}", place.name);
        while taken(&group) {
            group.push('-');
        }
        self.groups.push(Group {
            name: group,
            pattern: place.pattern.clone(),
            zone: name,
            burst: burst.saturating_add(1),
            settings: place.settings.clone(),
        });
        Some(self.groups.len() - 1)
    }

    fn location(&mut self, directive: &Directive, outer: &Place) {
        let words: Vec<&str> = directive.words.iter().skip(1).map(String::as_str).collect();
        let path = match words[..] {
            ["=", path] => path.to_owned(),
            [path] | ["^~", path] if path.starts_with('/') => {
                if path.ends_with('/') {
                    format!("{path}**")
                } else {
                    self.remark(directive, format!("nginx's location {path} is also for longer names such as {path}x; the rule is for {path} and what is below"));
                    format!("{path}/**")
                }
            }
            _ => {
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
            }
        };
        let Ok(pattern) = Pattern::parse(&path) else {
            return self.remark(directive, format!("location {path} is no path that a rule can have: it is left out"));
        };
        let name = format!("line{}", directive.line);
        let place =
            self.block(&directive.block, &Place { pattern: pattern.clone(), name: name.clone(), ..outer.clone() });
        self.locations.push((name, pattern, place.limits));
    }

    fn write(&self) -> String {
        let mut out = String::from("version = 1\n");
        if !self.trusted.is_empty() {
            let _ = writeln!(out, "trusted-proxies = {:?}", self.trusted);
        }
        for (line, remark) in &self.remarks {
            let _ = writeln!(out, "# line {line}: {remark}");
        }
        let overlaps = |one: &Pattern, two: &Pattern| one.overlaps(two);
        for group in &self.groups {
            let Some(zone) = self.zones.get(&group.zone) else { continue };
            let name = &group.name;
            let key = if zone.key.len() == 1 { format!("{:?}", zone.key[0]) } else { format!("{:?}", zone.key) };
            let limit = format!("{} burst {}", zone.rate, group.burst);
            let _ = writeln!(
                out,
                "\n[group.{name}]\npath = {:?}\nkey = {key}\nmissing = \"allow\"",
                group.pattern.as_str()
            );
            // nginx's own default.
            let _ = writeln!(out, "status = {}", group.settings.status.unwrap_or(503));
            if group.settings.dry_run {
                // A group that admits everything, and a shadow that counts what the limit would do.
                let _ = writeln!(
                    out,
                    "limit = \"1000000000/s\"\n\n[shadow.{name}-dry-run]\nof = {name:?}\nlimit = {limit:?}"
                );
            } else {
                let _ = writeln!(out, "limit = {limit:?}");
            }
        }
        for (name, pattern, limits) in &self.locations {
            let others = self
                .groups
                .iter()
                .enumerate()
                .filter(|(n, group)| !limits.contains(n) && overlaps(&group.pattern, pattern));
            let others: Vec<&str> = others.map(|(_, group)| group.name.as_str()).collect();
            let _ = writeln!(out, "\n[route.{name}]\npath = {:?}", pattern.as_str());
            if !others.is_empty() {
                let _ = writeln!(out, "replaces = {others:?}");
            }
        }
        out
    }
}
