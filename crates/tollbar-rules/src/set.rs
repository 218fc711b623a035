//! An immutable set of rules. It finds the rules that take part in a request, and knows which table
//! has the states of each limit.

use crate::cost::{Asked, Cost, ONE};
use crate::key::Written;
use crate::request::{Field, Said, Seen};
use crate::rule::{Missing, Role, Rule, RuleFile};
use crate::tally::Tally;
use crate::times::Times;
use std::sync::Arc;
use tollbar::table::{PolicyId, Table};
use tollbar::take_many::LIMITS_MOST;
use tollbar::{Decision, Verdict};

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

    /// Whether the states are in the same place.
    pub fn is(&self, other: &Home) -> bool {
        match (self, other) {
            (Home::Shared(one), Home::Shared(two)) => one == two,
            (Home::Own(one), Home::Own(two)) | (Home::Calendar(one), Home::Calendar(two)) => {
                Arc::ptr_eq(one, two)
            }
            _ => false,
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
    /// For each rule the first generation from which on it is for the same requests, with the same
    /// costs, in the same tables.
    pub(crate) since: Vec<u64>,
    /// The further limits of each rule, and its plans.
    limits: Vec<Vec<usize>>,
    plans: Vec<Vec<usize>>,
    /// Whether some rule or limit counts at some times only, and whether some cost is that of an
    /// answer.
    pub(crate) has_times: bool,
    pub(crate) has_answers: bool,
    /// See [`Set::generation`].
    pub(crate) generation: u64,
}

impl Set {
    pub(crate) fn new(
        file: RuleFile,
        homes: Vec<Vec<Home>>,
        tallies: Vec<Arc<Tally>>,
        generation: u64,
        old: Option<&Set>,
    ) -> Set {
        let since = since(&file, &homes, generation, old);
        let routes = routes_by_nearness(&file.rules);
        let none = || vec![Vec::new(); file.rules.len()];
        let (mut shadows, mut limits, mut plans) = (none(), none(), none());
        for (n, rule) in file.rules.iter().enumerate() {
            match rule.role {
                Role::Shadow(of) => shadows[of].push(n),
                Role::Limit(of) => limits[of].push(n),
                Role::Plan(of) => plans[of].push(n),
                Role::Group | Role::Route => {}
            }
        }
        let (has_times, has_answers) = (file.has_times(), !file.words_of_answers().is_empty());
        Set {
            file,
            homes,
            tallies,
            routes,
            shadows,
            since,
            limits,
            plans,
            has_times,
            has_answers,
            generation,
        }
    }

    /// The rules, in their order.
    pub fn rules(&self) -> &[Rule] {
        &self.file.rules
    }

    /// The file.
    pub fn file(&self) -> &RuleFile {
        &self.file
    }

    /// The number of the set: 1 when the rules are opened, and one more after each successful
    /// reload.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    pub(crate) fn see<'a>(&'a self, fields: &'a [Field<'a>]) -> Seen<'a> {
        Seen::new(fields, &self.file.trusted, self.file.spelling)
    }

    /// The rules that take part in a request. `unix` is its time, if some rule depends on it.
    pub(crate) fn matching(&self, request: &Seen<'_>, unix: u64) -> Matching {
        let rules = self.rules();
        let is_for = |rule: &Rule| {
            rule.has_method(request.method)
                && rule.path.matches(&request.path)
                && rule.has_host(request.hosts())
                && rule.when.as_ref().is_none_or(|times| times.hold(unix))
        };
        let route = self.routes.iter().copied().find(|&n| is_for(&rules[n]));
        let mut matching = Matching { route, count: 0, rules: [0; RULES_OF_REQUEST_MOST] };
        let replaced = route.map_or(&[][..], |route| &rules[route].replaces[..]);
        for (n, rule) in rules.iter().enumerate() {
            if rule.role == Role::Group && !replaced.contains(&n) && is_for(rule) {
                self.add(n, request, &mut matching);
            }
        }
        if let Some(route) = route {
            self.add(route, request, &mut matching);
        }
        matching
    }

    /// Adds a rule or the plan that takes its place, and the rule's further limits.
    fn add(&self, rule: usize, request: &Seen<'_>, matching: &mut Matching) {
        matching.push(self.plan(rule, request).unwrap_or(rule));
        for &limit in &self.limits[rule] {
            self.add(limit, request, matching);
        }
    }

    /// The plan of a rule that the request names.
    pub(crate) fn plan(&self, rule: usize, request: &Seen<'_>) -> Option<usize> {
        let of = &self.rules()[rule];
        // Several values name no plan, so a client gets no other one by a second value.
        let named = of.plan.as_ref()?.source.sources().map(|source| source.said(request));
        let Said::One(name) = named.into_iter().find(|said| *said != Said::Nothing)? else {
            return None;
        };
        let is_named = |&&n: &&usize| self.rules()[n].own_name(of).as_bytes() == name;
        self.plans[rule].iter().find(is_named).copied()
    }

    /// The shadows of a rule.
    pub(crate) fn shadows_of(&self, rule: usize) -> &[usize] {
        &self.shadows[rule]
    }

    /// The cost of a request under a rule. A cost that the request or its answer says is that of
    /// its own rule only. A number of the route counts for its groups too.
    pub(crate) fn cost(&self, rule: usize, route: Option<usize>) -> &Cost {
        let rules = self.rules();
        let own = rules[rule].cost.as_ref();
        let number = |n: usize| rules[n].cost.as_ref().filter(|cost| cost.fixed().is_some());
        if let Some(own) = own.filter(|own| own.fixed().is_none()) {
            return own;
        }
        // The rule whose limit or plan this one is, if it is any.
        let mut of = rule;
        while let Some(next) = rules[of].role.part_of() {
            of = next;
        }
        let own_or_parent = || own.or_else(|| number(of));
        let cost = match route {
            Some(route) if route == of => own_or_parent(),
            route => route.and_then(number).or_else(own_or_parent),
        };
        cost.unwrap_or(&ONE)
    }

    /// Shortens the wait of a refusal to the time at which another policy of a schedule comes into
    /// force, or at which a rule begins or ends to count: nobody knows what is left then.
    pub(crate) fn bound_wait(&self, matching: &Matching, unix: u64, decision: &mut Decision) {
        if decision.verdict != Verdict::Denied {
            return;
        }
        let times = |rule: &Rule| {
            let of_limits = rule.limits.iter().filter_map(|limit| limit.when.clone());
            rule.when.clone().into_iter().chain(of_limits).collect::<Vec<Times>>()
        };
        let all = matching.rules().iter().flat_map(|&rule| times(&self.rules()[rule]));
        if let Some(until) = all.map(|times| times.until(unix)).min() {
            decision.retry_after = decision.retry_after.min(until.saturating_sub(unix));
        }
    }

    /// How a rule takes part in a request of that route. If the rule limits the request, the call
    /// appends the request's key to `keys`.
    pub(crate) fn part(
        &self,
        rule: usize,
        route: Option<usize>,
        request: &Seen<'_>,
        keys: &mut Vec<u8>,
    ) -> Part {
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
        let missing = || match of.missing {
            Missing::Allow => Part::MissingAllowed,
            Missing::Deny(_) => Part::MissingDenied,
        };
        let written = of.key.write(request, keys);
        if written != Written::Key {
            keys.truncate(begin);
            return if written == Written::Ambiguous { Part::Ambiguous } else { missing() };
        }
        if !of.exempt.is_empty() && of.exempt.contains(&keys[begin..]) {
            keys.truncate(begin);
            return Part::Exempt;
        }
        match self.cost(rule, route).taken.of(request) {
            Asked::Amount(cost) => Part::Limited(begin..keys.len(), cost),
            Asked::Missing => missing(),
            Asked::Wrong => Part::Ambiguous,
        }
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
            Part::NoLimit | Part::Limited(..) => {}
        }
    }
}

/// [`Set::since`] of each rule of a new set.
fn since(file: &RuleFile, homes: &[Vec<Home>], generation: u64, old: Option<&Set>) -> Vec<u64> {
    let of = |n: usize, rule: &Rule| {
        let old = old.filter(|old| file.chooses_as(&old.file))?;
        let m = old.rules().iter().position(|own| own.name == rule.name)?;
        let is_same = old.rules()[m].asks_as(rule)
            && m == n
            && old.homes[m].len() == homes[n].len()
            && old.homes[m].iter().zip(&homes[n]).all(|(one, two)| one.is(two));
        is_same.then(|| old.since[m])
    };
    let all = file.rules.iter().enumerate();
    all.map(|(n, rule)| of(n, rule).unwrap_or(generation)).collect()
}

/// How a rule takes part in a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The rule has no limit.
    NoLimit,
    /// The key or the client's network is exempt.
    Exempt,
    /// The request has no key or no cost, and the rule admits such requests.
    MissingAllowed,
    /// The request has no key or no cost, and the rule refuses such requests.
    MissingDenied,
    /// The request has several values of the key, or a cost that is no number, so the rule refuses
    /// it.
    Ambiguous,
    /// The request takes that cost of the rule's limits, with the key in these bytes.
    Limited(std::ops::Range<usize>, u64),
}

/// The most rules of one request: each has a limit, except one route or the route's plan.
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
/// certain hosts, then those for certain times and methods, then the order of the file.
pub(crate) fn routes_by_nearness(rules: &[Rule]) -> Vec<usize> {
    let mut routes: Vec<usize> =
        (0..rules.len()).filter(|&n| rules[n].role == Role::Route).collect();
    routes.sort_by_key(|&n| {
        let of = &rules[n];
        // One host is nearer than those below a domain, and these are nearer than all.
        let hosts = of.hosts.iter().filter(|host| !host.is_one()).count();
        let hosts = if of.hosts.is_empty() { usize::MAX } else { hosts };
        let path = std::cmp::Reverse(of.path.narrowness());
        (path, hosts, of.when.is_none(), of.methods.is_empty(), n)
    });
    routes
}
