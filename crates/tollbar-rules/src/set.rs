//! An immutable set of rules. It finds the rules that take part in a request, and knows which table
//! has the states of each limit.

use crate::key::Written;
use crate::request::{Field, Seen};
use crate::rule::{Missing, Role, Rule, RuleFile};
use crate::tally::Tally;
use std::sync::Arc;
use tollbar::table::{PolicyId, Table};
use tollbar::take_many::LIMITS_MOST;

/// Where the states of a limit's keys are.
#[derive(Clone, Debug)]
pub(crate) enum Home {
    /// Under a policy of the table that the rules share.
    Shared(PolicyId),
    /// In a table of its own.
    Own(Arc<Table>),
    /// In a table of its own whose clock is the wall clock, which calendars need.
    Calendar(Arc<Table>),
}

impl Home {
    pub fn table<'a>(&'a self, shared: &'a Table) -> (&'a Table, PolicyId) {
        match self {
            Home::Shared(id) => (shared, *id),
            Home::Own(table) | Home::Calendar(table) => (table, PolicyId::FIRST),
        }
    }

    /// The table, unless the rules share it.
    pub fn own_table(&self) -> Option<&Table> {
        match self {
            Home::Shared(_) => None,
            Home::Own(table) | Home::Calendar(table) => Some(table),
        }
    }
}

/// The rules of one file. It never changes.
#[derive(Debug)]
pub struct Set {
    pub(crate) file: RuleFile,
    /// For each rule, where the states of each limit are.
    pub(crate) homes: Vec<Vec<Home>>,
    pub(crate) tallies: Vec<Arc<Tally>>,
    /// The routes, the nearest first.
    routes: Vec<usize>,
    /// The shadows of each rule.
    shadows: Vec<Vec<usize>>,
    /// See [`Set::generation`].
    pub(crate) generation: u64,
}

impl Set {
    pub(crate) fn new(
        file: RuleFile,
        homes: Vec<Vec<Home>>,
        tallies: Vec<Arc<Tally>>,
        generation: u64,
    ) -> Set {
        let routes = routes_by_nearness(&file.rules);
        let mut shadows = vec![Vec::new(); file.rules.len()];
        for (n, rule) in file.rules.iter().enumerate() {
            if let Role::Shadow(of) = rule.role {
                shadows[of].push(n);
            }
        }
        Set { file, homes, tallies, routes, shadows, generation }
    }

    /// The rules, in their order.
    pub fn rules(&self) -> &[Rule] {
        &self.file.rules
    }

    /// The number of the set: 1 when the rules are opened, and one more after each successful
    /// reload.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    pub(crate) fn see<'a>(&'a self, fields: &'a [Field<'a>]) -> Seen<'a> {
        Seen::new(fields, &self.file.trusted, self.file.spelling)
    }

    /// The rules that take part in a request.
    pub(crate) fn matching(&self, request: &Seen<'_>) -> Matching {
        let rules = self.rules();
        let is_for =
            |rule: &Rule| rule.has_method(request.method) && rule.path.matches(&request.path);
        let route = self.routes.iter().copied().find(|&n| is_for(&rules[n]));
        let mut matching = Matching { route, count: 0, rules: [0; RULES_OF_REQUEST_MOST] };
        let replaced = route.map_or(&[][..], |route| &rules[route].replaces[..]);
        for (n, rule) in rules.iter().enumerate() {
            if rule.role == Role::Group && !replaced.contains(&n) && is_for(rule) {
                matching.push(n);
            }
        }
        if let Some(route) = route {
            matching.push(route);
        }
        matching
    }

    /// The shadows of a rule.
    pub(crate) fn shadows_of(&self, rule: usize) -> &[usize] {
        &self.shadows[rule]
    }

    /// The cost of a request under a rule: the route's, else the rule's, else 1.
    pub(crate) fn cost(&self, rule: usize, route: Option<usize>) -> u64 {
        route.and_then(|route| self.rules()[route].cost).or(self.rules()[rule].cost).unwrap_or(1)
    }

    /// How a rule takes part in a request. If the rule limits the request, the call appends the
    /// request's key to `keys`.
    pub(crate) fn part(&self, rule: usize, request: &Seen<'_>, keys: &mut Vec<u8>) -> Part {
        let of = &self.rules()[rule];
        if of.limits.is_empty() {
            return Part::NoLimit;
        }
        if !of.exempt_networks.is_empty() {
            if let Some(client) = request.client() {
                if of.exempt_networks.iter().any(|network| network.contains(client)) {
                    return Part::Exempt;
                }
            }
        }
        let begin = keys.len();
        let written = of.key.write(request, keys);
        if written != Written::Key {
            keys.truncate(begin);
            return match of.missing {
                _ if written == Written::Ambiguous => Part::Ambiguous,
                Missing::Allow => Part::MissingAllowed,
                Missing::Deny(_) => Part::MissingDenied,
            };
        }
        if !of.exempt.is_empty() && of.exempt.contains(&keys[begin..]) {
            keys.truncate(begin);
            return Part::Exempt;
        }
        Part::Limited(begin..keys.len())
    }

    /// Appends what the request says of its class under a rule, and returns the place of these
    /// bytes.
    pub(crate) fn class(
        &self,
        rule: usize,
        request: &Seen<'_>,
        keys: &mut Vec<u8>,
    ) -> std::ops::Range<usize> {
        let begin = keys.len();
        if let Some(class) = &self.rules()[rule].class {
            class.source.write_value(request, keys);
        }
        begin..keys.len()
    }

    /// Counts whether the shadow of `rule` decides otherwise. `refusing` is the rule that refuses
    /// the request. If that is another one than `rule`, nobody knows whether `rule` alone would
    /// have refused it, so the shadow's decision is no disagreement.
    pub(crate) fn compare(
        &self,
        refusing: Option<usize>,
        rule: usize,
        shadow: usize,
        would_allow: bool,
    ) {
        let disagrees = match refusing {
            None => !would_allow,
            Some(refusing) => would_allow && refusing == rule,
        };
        if disagrees {
            self.tallies[shadow].add_disagreement(would_allow);
        }
    }

    pub(crate) fn tally(&self, rule: usize, part: &Part) {
        match part {
            Part::Exempt => self.tallies[rule].add_exempt(),
            Part::MissingAllowed | Part::MissingDenied | Part::Ambiguous => {
                self.tallies[rule].add_missing()
            }
            Part::NoLimit | Part::Limited(_) => {}
        }
    }
}

/// How a rule takes part in a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The rule has no limit.
    NoLimit,
    /// The key or the client's network is exempt.
    Exempt,
    /// The request has no key, and the rule admits such requests.
    MissingAllowed,
    /// The request has no key, and the rule refuses such requests.
    MissingDenied,
    /// The request has several values of the key, so the rule refuses it.
    Ambiguous,
    /// The request takes the rule's limits, with the key in these bytes.
    Limited(std::ops::Range<usize>),
}

/// The most rules of one request: each has a limit, except one route.
pub(crate) const RULES_OF_REQUEST_MOST: usize = LIMITS_MOST + 1;

/// The rules that take part in a request: groups in the order of the file, then the route.
pub(crate) struct Matching {
    pub route: Option<usize>,
    count: usize,
    rules: [usize; RULES_OF_REQUEST_MOST],
}

impl Matching {
    fn push(&mut self, rule: usize) {
        // There is room for all, because the reader refuses a file with more rules for one request
        // (`check_counts`).
        if let Some(place) = self.rules.get_mut(self.count) {
            *place = rule;
            self.count += 1;
        }
    }

    pub fn rules(&self) -> &[usize] {
        &self.rules[..self.count]
    }
}

/// The routes in the order in which a request tries them: narrow paths first, then routes for
/// certain methods, then the order of the file.
pub(crate) fn routes_by_nearness(rules: &[Rule]) -> Vec<usize> {
    let mut routes: Vec<usize> =
        (0..rules.len()).filter(|&n| rules[n].role == Role::Route).collect();
    routes.sort_by_key(|&n| {
        (std::cmp::Reverse(rules[n].path.narrowness()), rules[n].methods.is_empty(), n)
    });
    routes
}
