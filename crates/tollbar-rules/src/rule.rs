//! The rules of a file, as plain data.

use crate::cost::Cost;
use crate::file::Place;
use crate::host::Host;
use crate::key::Key;
use crate::path::{Pattern, Spelling};
use crate::times::Times;
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use tollbar::address::Network;
use tollbar::Policy;

/// What a rule is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// It takes part in every request that it matches.
    Group,
    /// Of all routes that match a request, only the nearest takes part.
    Route,
    /// It takes part where the rule with this number does, decides and counts, and refuses nothing.
    Shadow(usize),
    /// A further limit of the rule with this number, with a key and a cost of its own: it takes
    /// part where that rule does.
    Limit(usize),
    /// A plan of the rule with this number: it takes the place of that rule's limit for the
    /// requests that name the plan.
    Plan(usize),
}

impl Role {
    /// The rule of which this one is a limit or a plan.
    pub fn part_of(self) -> Option<usize> {
        match self {
            Role::Limit(of) | Role::Plan(of) => Some(of),
            Role::Group | Role::Route | Role::Shadow(_) => None,
        }
    }

    /// The word of the file for such rules.
    pub fn word(self) -> &'static str {
        match self {
            Role::Group => "group",
            Role::Route => "route",
            Role::Shadow(_) => "shadow",
            Role::Limit(_) => "limit",
            Role::Plan(_) => "plan",
        }
    }
}

/// One rule.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Its name, which no other rule of the file has.
    pub name: String,
    /// The place of its name in the file.
    pub place: Place,
    /// What the rule is for.
    pub role: Role,
    /// The paths.
    pub path: Pattern,
    /// The methods; empty for all.
    pub methods: Vec<String>,
    /// The hosts; empty for all.
    pub hosts: Vec<Host>,
    /// The times at which the rule counts; `None` for all.
    pub when: Option<Times>,
    /// The key.
    pub key: Key,
    /// The policies: a request takes its cost of each, or of none. Empty for a route that only sets
    /// a cost or replaces groups.
    pub limits: Vec<Limit>,
    /// Where a request's class comes from. `None` if no limit has classes.
    pub class: Option<Class>,
    /// Where a request's plan comes from. `None` if the rule has no plans.
    pub plan: Option<Class>,
    /// The cost of a request.
    pub cost: Option<Cost>,
    /// What a request without a key gets.
    pub missing: Missing,
    /// Keys that are not limited.
    pub exempt: HashSet<Vec<u8>>,
    /// Client networks that are not limited.
    pub exempt_networks: Vec<Network>,
    /// Policies of keys of their own: for each key one for each limit. In the order of the keys'
    /// bytes. Keys of one text share their policies.
    pub keys: Vec<OwnPolicies>,
    /// A word of the operator. A reload that finds another one lets all keys of the rule begin
    /// anew.
    pub reset: String,
    /// The answer to a refused request.
    pub refusal: Refusal,
    /// The numbers of the groups that do not take part where this route does.
    pub replaces: Vec<usize>,
}

/// A key with policies of its own.
pub type OwnPolicies = (Arc<[u8]>, Arc<[Policy]>);

/// One policy of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The policy.
    pub policy: Policy,
    /// If it is one of a schedule: the times at which it is in force.
    pub when: Option<Times>,
    /// The place of its text in the file.
    pub place: Place,
}

/// The source of a word that each request of a rule has: of its class, or of its plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// The first of these sources that the request has says the word.
    pub source: Key,
    /// The place of its text in the file.
    pub place: Place,
}

/// The answer to a refused request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// The body.
    pub body: String,
}

/// What a request without a key gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The rule does not limit it.
    Allow,
    /// A refusal.
    Deny(Refusal),
}

/// All rules of a file.
#[derive(Clone, Debug, Default)]
pub struct RuleFile {
    /// In the order of the file, with shadows at the end.
    pub rules: Vec<Rule>,
    /// The proxies whose X-Forwarded-For counts.
    pub trusted: Vec<Network>,
    /// Which spellings of a path are the same.
    pub spelling: Spelling,
    /// The place of `trusted-proxies`, if the file has it.
    pub trusted_place: Option<Place>,
    /// The files that the rules are from: the one that was loaded, then those that it includes.
    pub files: Vec<PathBuf>,
}

impl RuleFile {
    /// Whether some rule or limit counts at some times only.
    pub(crate) fn has_times(&self) -> bool {
        let has = |rule: &Rule| {
            rule.when.is_some() || rule.limits.iter().any(|limit| limit.when.is_some())
        };
        self.rules.iter().any(has)
    }

    /// Whether each request has the same path, client, route and replaced groups under both files.
    pub(crate) fn chooses_as(&self, other: &RuleFile) -> bool {
        let routes = |file: &'_ RuleFile| -> Vec<(String, Vec<String>)> {
            let routes = file.rules.iter().filter(|rule| rule.role == Role::Route);
            let replaces =
                |rule: &Rule| rule.replaces.iter().map(|&n| file.rules[n].name.clone()).collect();
            routes.map(|rule| (rule.name.clone(), replaces(rule))).collect()
        };
        let same_routes = || {
            let of = |file: &'_ RuleFile| -> Vec<Rule> {
                let routes = file.rules.iter().filter(|rule| rule.role == Role::Route);
                routes.map(Rule::clone_without_keys).collect()
            };
            of(self).iter().zip(of(other)).all(|(one, two)| one.matches_as(&two))
        };
        self.spelling == other.spelling
            && self.trusted == other.trusted
            && routes(self) == routes(other)
            && same_routes()
    }

    /// The words of answers that tell costs, without their colons, in the order of the file and
    /// each once. A server gives them to [`Rules::settle`](crate::Rules::settle).
    pub fn words_of_answers(&self) -> Vec<&str> {
        let mut all: Vec<&str> = Vec::new();
        for rule in self.rules.iter().filter(|rule| !rule.limits.is_empty()) {
            if let Some(word) = rule.cost.as_ref().and_then(|cost| cost.answer.as_deref()) {
                let word = word.trim_start_matches(':');
                if !all.contains(&word) {
                    all.push(word);
                }
            }
        }
        all
    }

    /// The policies of single keys, each counted once for each limit of its rule.
    pub fn policies_of_keys(&self) -> usize {
        self.rules.iter().map(|rule| rule.keys.len() * rule.limits.len()).sum()
    }
}

impl Rule {
    /// Whether both rules match the same requests.
    fn matches_as(&self, other: &Rule) -> bool {
        (&self.path, &self.methods, &self.hosts, &self.when)
            == (&other.path, &other.methods, &other.hosts, &other.when)
    }

    /// Whether both rules limit the same requests by the same keys and costs.
    pub(crate) fn asks_as(&self, other: &Rule) -> bool {
        let source = |class: &Option<Class>| class.as_ref().map(|class| class.source.clone());
        self.matches_as(other)
            && self.role == other.role
            && self.key == other.key
            && self.cost == other.cost
            && self.missing == other.missing
            && self.exempt == other.exempt
            && self.exempt_networks == other.exempt_networks
            && source(&self.plan) == source(&other.plan)
    }

    /// The rule without the policies of its keys, of which there may be many.
    pub(crate) fn clone_without_keys(&self) -> Rule {
        Rule {
            name: self.name.clone(),
            place: self.place,
            role: self.role,
            path: self.path.clone(),
            methods: self.methods.clone(),
            hosts: self.hosts.clone(),
            when: self.when.clone(),
            key: self.key.clone(),
            limits: self.limits.clone(),
            class: self.class.clone(),
            plan: self.plan.clone(),
            cost: self.cost.clone(),
            missing: self.missing.clone(),
            exempt: self.exempt.clone(),
            exempt_networks: self.exempt_networks.clone(),
            keys: Vec::new(),
            reset: self.reset.clone(),
            refusal: self.refusal.clone(),
            replaces: self.replaces.clone(),
        }
    }

    /// Whether the rule is for the method.
    pub fn has_method(&self, method: &[u8]) -> bool {
        self.methods.is_empty() || self.methods.iter().any(|own| own.as_bytes() == method)
    }

    /// Whether the rule is for a request with these hosts: one of them, because nobody knows which
    /// one of several a server takes.
    pub fn has_host<'a>(&self, mut hosts: impl Iterator<Item = &'a [u8]>) -> bool {
        self.hosts.is_empty() || hosts.any(|host| self.hosts.iter().any(|own| own.matches(host)))
    }

    /// The name without that of the rule of which it is a limit or a plan.
    pub fn own_name(&self, of: &Rule) -> &str {
        self.name.get(of.name.len() + 1..).unwrap_or(&self.name)
    }

    /// The policy of the limit `n` for a key.
    pub fn policy(&self, n: usize, key: &[u8]) -> Option<&Policy> {
        let own = self
            .keys
            .binary_search_by(|(own, _)| (**own).cmp(key))
            .ok()
            .and_then(|at| self.keys.get(at));
        match own.and_then(|(_, policies)| policies.get(n)) {
            Some(own) => Some(own),
            None => Some(&self.limits.get(n)?.policy),
        }
    }

    /// The class of a request under the limit `n`, if the limit has classes. `asked` is what the
    /// request says. A request that says nothing, or that names no class of the limit, has the
    /// class with the greatest reserve, so no client gets more by another word.
    pub fn class(&self, n: usize, key: &[u8], asked: &[u8]) -> Option<&str> {
        self.class.as_ref()?;
        let classes = &self.policy(n, key)?.classes;
        let named = classes.iter().find(|(name, _)| name.as_bytes() == asked);
        Some(named.or_else(|| classes.iter().max_by_key(|(_, reserve)| *reserve))?.0)
    }

    /// Whether some request matches both rules, as far as paths and methods say.
    pub fn overlaps(&self, other: &Rule) -> bool {
        let methods = self.methods.is_empty()
            || other.methods.is_empty()
            || self.methods.iter().any(|method| other.methods.contains(method));
        let hosts = self.hosts.is_empty()
            || other.hosts.is_empty()
            || self
                .hosts
                .iter()
                .any(|one| other.hosts.iter().any(|two| one.covers(two) || two.covers(one)));
        methods && hosts && self.path.overlaps(&other.path)
    }

    /// Whether every request that `other` matches matches this rule too.
    pub fn covers(&self, other: &Rule) -> bool {
        let methods = self.methods.is_empty()
            || (!other.methods.is_empty()
                && other.methods.iter().all(|method| self.methods.contains(method)));
        let hosts = self.hosts.is_empty()
            || (!other.hosts.is_empty()
                && other.hosts.iter().all(|two| self.hosts.iter().any(|one| one.covers(two))));
        let times = self.when.is_none() || self.when == other.when;
        methods && hosts && times && self.path.covers(&other.path)
    }
}
