//! The rules of a file, as plain data.

use crate::file::Place;
use crate::key::Key;
use crate::path::{Pattern, Spelling};
use std::collections::HashSet;
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
}

/// One rule.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Its name, which no other rule of the file has.
    pub name: String,
    /// The place of its name in the file.
    pub place: Place,
    /// Whether it is a group, a route or a shadow.
    pub role: Role,
    /// The paths.
    pub path: Pattern,
    /// The methods; empty for all.
    pub methods: Vec<String>,
    /// The key.
    pub key: Key,
    /// The policies: a request takes its cost of each, or of none. Empty for a route that only sets
    /// a cost or replaces groups.
    pub limits: Vec<Limit>,
    /// Where a request's class comes from. `None` if no limit has classes.
    pub class: Option<Class>,
    /// The cost of a request.
    pub cost: Option<u64>,
    /// What a request without a key gets.
    pub missing: Missing,
    /// Keys that are not limited.
    pub exempt: HashSet<Vec<u8>>,
    /// Client networks that are not limited.
    pub exempt_networks: Vec<Network>,
    /// Policies of keys of their own: for each key one for each limit. In the order of the keys'
    /// bytes.
    pub keys: Vec<(Vec<u8>, Vec<Policy>)>,
    /// A word of the operator. A reload that finds another one lets all keys of the rule begin
    /// anew.
    pub reset: String,
    /// The answer to a refused request.
    pub refusal: Refusal,
    /// The numbers of the groups that do not take part where this route does.
    pub replaces: Vec<usize>,
}

/// One policy of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The policy.
    pub policy: Policy,
    /// The place of its text in the file.
    pub place: Place,
}

/// The source of the classes of a rule's requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// The first of these sources that the request has names the class.
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
}

impl RuleFile {
    /// The policies of single keys, each counted once for each limit of its rule.
    pub fn policies_of_keys(&self) -> usize {
        self.rules.iter().map(|rule| rule.keys.len() * rule.limits.len()).sum()
    }
}

impl Rule {
    /// Whether the rule is for the method.
    pub fn has_method(&self, method: &[u8]) -> bool {
        self.methods.is_empty() || self.methods.iter().any(|own| own.as_bytes() == method)
    }

    /// The policy of the limit `n` for a key.
    pub fn policy(&self, n: usize, key: &[u8]) -> Option<&Policy> {
        let own = self
            .keys
            .binary_search_by(|(own, _)| own.as_slice().cmp(key))
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
        methods && self.path.overlaps(&other.path)
    }

    /// Whether every request that `other` matches matches this rule too.
    pub fn covers(&self, other: &Rule) -> bool {
        let methods = self.methods.is_empty()
            || (!other.methods.is_empty()
                && other.methods.iter().all(|method| self.methods.contains(method)));
        methods && self.path.covers(&other.path)
    }
}
