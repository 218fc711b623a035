//! Finds settings in a rules file that its author probably did not intend.

use crate::cost::{Cost, ONE};
use crate::file::Place;
use crate::key::Source;
use crate::read::is_calendar;
use crate::rule::{Limit, Role, Rule, RuleFile};
use crate::set::routes_by_nearness;
use std::fmt;
use tollbar::algorithm::worst_case;
use tollbar::{Kind, Policy};

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// A fact that the file's author should know.
    Note,
    /// A limit that admits more in some period than a reader of its text expects
    /// ([`surprise`]). It is printed as a warning, and may be intended.
    Surprise,
    /// A probable mistake.
    Warning,
}

/// A note or a warning about a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How much it matters.
    pub level: Level,
    /// Where the rule or the limit stands.
    pub place: Place,
    /// The rule; empty for the whole file.
    pub rule: String,
    /// What was found.
    pub text: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = if self.level == Level::Note { "note" } else { "warning" };
        write!(f, "{}: {level}: ", self.place)?;
        if !self.rule.is_empty() {
            write!(f, "{}: ", self.rule)?;
        }
        f.write_str(&self.text)
    }
}

/// The most that `policy` admits in some window of one period ([`worst_case`]), if that is above
/// the limit by more than the burst explains that the policy's text states: 239 for `120/min`.
/// `None` for `120/min burst 20`, which admits 139. A burst that is equal to the limit is the
/// default, so no text shows it. A pacer's `slack` is a burst. A warm-up may admit a permit of its
/// clock's unit more, which surprises nobody.
pub fn surprise(policy: &Policy) -> Option<u64> {
    let stated = if policy.burst == policy.limit { 0 } else { policy.burst };
    let unit = u64::from(policy.kind == Kind::WarmUp);
    let expected = policy.limit.saturating_add(stated).saturating_add(policy.slack + unit);
    let worst = worst_case(policy, policy.period).ok()?;
    (worst > expected && !policy.kind.is_forever()).then_some(worst)
}

/// All findings, in the order of the file.
pub fn lint(file: &RuleFile) -> Vec<Finding> {
    let mut lint = Lint { file, routes: routes_by_nearness(&file.rules), findings: Vec::new() };
    lint.proxies();
    for rule in &file.rules {
        lint.limits(rule);
        lint.key(rule);
        lint.words_of_client(rule);
        lint.reach(rule);
        lint.replaces(rule);
    }
    lint.findings.sort_by_key(|finding| finding.place);
    lint.findings
}

struct Lint<'a> {
    file: &'a RuleFile,
    /// The numbers of the routes, the nearest first.
    routes: Vec<usize>,
    findings: Vec<Finding>,
}

/// Headers in which proxies send the client's address. Any client can send them, too.
const ADDRESS_HEADERS: [&str; 8] = [
    "x-forwarded-for",
    "x-real-ip",
    "forwarded",
    "true-client-ip",
    "cf-connecting-ip",
    "x-client-ip",
    "client-ip",
    "x-cluster-client-ip",
];

impl Lint<'_> {
    fn add(&mut self, level: Level, place: Place, rule: &str, text: String) {
        self.findings.push(Finding { level, place, rule: rule.to_owned(), text });
    }

    fn proxies(&mut self) {
        if self.file.trusted.iter().any(|network| network.is_everything()) {
            let place = self.file.trusted_place.unwrap_or_default();
            let text = "trusted-proxies has every address, so anybody can choose an address in X-Forwarded-For: name the proxies";
            self.add(Level::Warning, place, "", text.to_owned());
        }
    }

    fn limits(&mut self, rule: &Rule) {
        let costs = self.costs(rule);
        for (n, limit) in rule.limits.iter().enumerate() {
            let policy = &limit.policy;
            if let Some(worst) = surprise(policy) {
                let period = period(policy);
                let more = if policy.borrow { ", and the largest request besides" } else { "" };
                let text = match is_calendar(policy) {
                    true => calendar(policy, worst),
                    false => format!(
                        "\"{policy}\" admits {worst} in some {period}{more}; \"{}\" never more than {}",
                        strict(policy),
                        policy.limit
                    ),
                };
                self.add(Level::Surprise, limit.place, &rule.name, text);
            }
            for (cost, whose) in &costs {
                // Who writes the limit 0 means it.
                if *cost > most_at_once(policy) && policy.limit > 0 {
                    let most = most_at_once(policy);
                    let text = format!(
                        "{whose} costs {cost}, and \"{policy}\" never has more than {most}"
                    );
                    self.add(Level::Warning, limit.place, &rule.name, text);
                }
            }
            if let Some((other, stricter)) = self.stricter(rule, n) {
                let text = format!(
                    "\"{policy}\" never refuses: \"{}\" of {} in line {} refuses before",
                    stricter.policy, other.name, stricter.place.line
                );
                self.add(Level::Warning, limit.place, &rule.name, text);
            }
        }
    }

    /// The costs that requests of a rule may have, as far as they are numbers.
    fn costs(&self, rule: &Rule) -> Vec<(u64, String)> {
        let fixed = |rule: &Rule| rule.cost.as_ref().and_then(Cost::fixed);
        let own = rule.cost.as_ref().unwrap_or(&ONE);
        let whose = if own.answer.is_some() { "the estimate for a request" } else { "a request" };
        let mut costs: Vec<(u64, String)> =
            own.taken.fixed().map(|cost| (cost, whose.to_owned())).into_iter().collect();
        if rule.role == Role::Group && own.fixed().is_some() {
            let of_route = |route: &Rule| Some((fixed(route)?, format!("route {}", route.name)));
            costs.extend(self.routes_of(rule).filter_map(of_route));
        }
        costs
    }

    /// The routes that share requests with a group.
    fn routes_of<'a>(&'a self, group: &'a Rule) -> impl Iterator<Item = &'a Rule> {
        let rules = &self.file.rules;
        self.routes.iter().map(|&n| &rules[n]).filter(move |route| {
            route.overlaps(group) && !route.replaces.iter().any(|&n| rules[n].name == group.name)
        })
    }

    /// Another limit that refuses every request that limit `n` of the rule would refuse.
    fn stricter<'a>(&'a self, rule: &'a Rule, n: usize) -> Option<(&'a Rule, &'a Limit)> {
        let has_own = rule.keys.iter().any(|(_, own)| !own.is_empty()) || rule.plan.is_some();
        let at_times = rule.limits.get(n).is_none_or(|limit| limit.when.is_some());
        if matches!(rule.role, Role::Shadow(_)) || has_own || at_times {
            return None;
        }
        let always = |other: &&Rule| {
            if std::ptr::eq(*other, rule) {
                return true;
            }
            let replaced = self.file.rules.iter().any(|route| {
                route.overlaps(rule)
                    && route.replaces.iter().any(|&n| self.file.rules[n].name == other.name)
            });
            let counts_all = other.exempt.is_empty()
                && other.exempt_networks.is_empty()
                && other.keys.is_empty()
                && other.plan.is_none()
                && other.limits.iter().all(|limit| limit.when.is_none());
            other.role == Role::Group
                && other.covers(rule)
                && other.key == rule.key
                && counts_all
                && !replaced
                && self.costs(other) == self.costs(rule)
                && other.cost == rule.cost
        };
        let own = &rule.limits.get(n)?.policy;
        self.file.rules.iter().filter(always).find_map(|other| {
            let stricter = other.limits.iter().enumerate().find(|(m, limit)| {
                let is_other = !std::ptr::eq(other, rule) || *m != n;
                // Of two equal limits only the later one in the file gets a warning.
                is_other
                    && is_stricter(&limit.policy, own)
                    && (limit.policy != *own || limit.place < rule.limits[n].place)
            });
            stricter.map(|(_, limit)| (other, limit))
        })
    }

    fn key(&mut self, rule: &Rule) {
        if rule.limits.is_empty() || matches!(rule.role, Role::Shadow(_) | Role::Plan(_)) {
            return;
        }
        let forged = rule.key.sources().find_map(|source| match source {
            Source::Header(name) if ADDRESS_HEADERS.contains(&name.as_str()) => Some(name.clone()),
            _ => None,
        });
        if let Some(name) = forged {
            let text = format!(
                "anybody can choose the key: every client can send the header {name}; key = \"address\" with trusted-proxies reads X-Forwarded-For from the right"
            );
            return self.add(Level::Warning, rule.place, &rule.name, text);
        }
        let is_bounded = |other: &Rule| {
            matches!(other.role, Role::Group | Role::Limit(_))
                && !other.limits.is_empty()
                && !other.key.is_chosen_by_client()
                && other.covers(rule)
        };
        if rule.key.is_chosen_by_client() && !self.file.rules.iter().any(is_bounded) {
            let text = format!(
                "a client that sends another key ({}) with each request is not limited, unless the server refuses unknown keys before; a group with key = \"address\" for the same paths limits it",
                rule.key
            );
            self.add(Level::Note, rule.place, &rule.name, text);
        }
        let by_address = rule.key.sources().any(|source| matches!(source, Source::Address(..)));
        if by_address && self.file.trusted.is_empty() && self.first_by_address(rule) {
            let text = "without trusted-proxies the address is that of the connection: behind a proxy all clients share its limit";
            self.add(Level::Note, rule.place, &rule.name, text.to_owned());
        }
    }

    /// Notes words of the client that change what a request gets: its class, plan or cost.
    fn words_of_client(&mut self, rule: &Rule) {
        if let Some(plan) = rule.plan.as_ref().filter(|plan| plan.source.is_chosen_by_client()) {
            let text = format!(
                "a client can name the plan with the highest limit ({}); \"field NAME\" is a word of the server",
                plan.source
            );
            self.add(Level::Note, plan.place, &rule.name, text);
        }
        let chosen = |source: &&Source| match source {
            // The server reads as many bytes as this header says.
            Source::Header(name) => name != "content-length",
            source => source.is_chosen_by_client(),
        };
        let cost = rule.cost.as_ref().filter(|_| !matches!(rule.role, Role::Shadow(_)));
        if let Some(source) = cost.and_then(|cost| cost.taken.sources().iter().find(chosen)) {
            let text = format!(
                "a client can choose its own cost ({source}), also 0; \"field NAME\" is a word of the server"
            );
            self.add(Level::Note, rule.place, &rule.name, text);
        }
        if let Some(class) = rule.class.as_ref().filter(|class| class.source.is_chosen_by_client())
        {
            let text = format!(
                "a client can name the class with the least reserve ({}); \"field NAME\" is a word of the server",
                class.source
            );
            self.add(Level::Note, class.place, &rule.name, text);
        }
    }

    /// Whether the rule is the file's first with an address in its key. Only that rule gets the
    /// note about addresses.
    fn first_by_address(&self, rule: &Rule) -> bool {
        let mut rules = self
            .file
            .rules
            .iter()
            .filter(|rule| !rule.limits.is_empty() && !matches!(rule.role, Role::Shadow(_)));
        rules
            .find(|rule| rule.key.sources().any(|source| matches!(source, Source::Address(..))))
            .is_some_and(|first| first.name == rule.name)
    }

    /// Warns of a route that is never the nearest.
    fn reach(&mut self, rule: &Rule) {
        if rule.role != Role::Route {
            return;
        }
        let rules = &self.file.rules;
        let nearer: Vec<&Rule> = self
            .routes
            .iter()
            .map(|&n| &rules[n])
            .take_while(|route| route.name != rule.name)
            .collect();
        let covers_for = |method: Option<&str>| {
            nearer.iter().find(|route| {
                route.path.covers(&rule.path)
                    && method.map_or(route.methods.is_empty(), |method| {
                        route.has_method(method.as_bytes())
                    })
            })
        };
        let covering: Option<Vec<&&Rule>> = match &rule.methods[..] {
            [] => covers_for(None).map(|route| vec![route]),
            methods => methods.iter().map(|method| covers_for(Some(method))).collect(),
        };
        if let Some(first) = covering.as_ref().and_then(|all| all.first()) {
            let text = format!(
                "no request reaches it: route {} in line {} is nearer for all of them",
                first.name, first.place.line
            );
            self.add(Level::Warning, rule.place, &rule.name, text);
        }
    }

    /// Warns of a route that replaces a group of other requests, and of a group that routes replace
    /// for all its requests.
    fn replaces(&mut self, rule: &Rule) {
        let rules = &self.file.rules;
        let mut found = Vec::new();
        for &group in &rule.replaces {
            if !rules[group].overlaps(rule) {
                found.push((
                    rule.place,
                    rule.name.clone(),
                    format!("it replaces {}, which is for other requests", rules[group].name),
                ));
            }
        }
        if rule.role == Role::Group {
            let replaces =
                |route: &Rule| route.replaces.iter().any(|&n| rules[n].name == rule.name);
            let routes: Vec<&Rule> = self
                .routes
                .iter()
                .map(|&n| &rules[n])
                .filter(|route| route.overlaps(rule))
                .collect();
            let end = routes.iter().position(|route| route.covers(rule));
            if end.is_some_and(|end| routes[..=end].iter().all(|route| replaces(route))) {
                let text = "no request reaches it: routes replace it for all of them".to_owned();
                found.push((rule.place, rule.name.clone(), text));
            }
        }
        for (place, name, text) in found {
            self.add(Level::Warning, place, &name, text);
        }
    }
}

/// Whether both policies are plain token buckets, and `one` never has more permits than `other`.
fn is_stricter(one: &Policy, other: &Policy) -> bool {
    let is_plain = |policy: &Policy| {
        policy.kind == Kind::Gcra
            && policy.second.is_none()
            && policy.ban == 0
            && !policy.borrow
            && policy.init == policy.burst
            && policy.limit > 0
    };
    is_plain(one)
        && is_plain(other)
        && one.burst <= other.burst
        && u128::from(one.limit) * u128::from(other.period)
            <= u128::from(other.limit) * u128::from(one.period)
}

/// The greatest cost that the policy can pay.
fn most_at_once(policy: &Policy) -> u64 {
    if policy.borrow || policy.kind.lends() {
        return u64::MAX;
    }
    // The burst of an algorithm without that option is its limit.
    policy.second.map_or(policy.burst, |second| second.burst.min(policy.burst))
}

/// A policy with the same limit and period that never admits more than the limit in any window.
fn strict(policy: &Policy) -> String {
    let text = Policy::new(policy.limit, policy.period).to_string();
    format!("{text} algo sliding-window mode strict")
}

/// The worst case of a calendar. A sliding window, which has one length, cannot take its place.
fn calendar(policy: &Policy, worst: u64) -> String {
    let shared = match worst / policy.limit {
        2 => "at the end of one window and at the start of the next",
        _ => "at the end of one window, in a short one and at the start of a third",
    };
    format!("\"{policy}\" admits {worst} in some time as long as a mean window: {shared}")
}

/// The policy's period in words: `minute`, `10 min`.
fn period(policy: &Policy) -> String {
    let text = Policy::new(1, policy.period).to_string();
    match text.strip_prefix("1/").unwrap_or(&text) {
        "s" => "second".to_owned(),
        "min" => "minute".to_owned(),
        "h" => "hour".to_owned(),
        other => other.split(' ').next().unwrap_or(other).to_owned(),
    }
}
