//! The tables with the states of all keys, and their change from one set of rules to the next.

use crate::read::{is_alone, is_calendar};
use crate::rule::{OwnPolicies, Rule, RuleFile};
use crate::set::{Home, Set};
use crate::tally::{Ledger, Tally};
use std::cmp::Ordering;
use std::collections::{HashMap, VecDeque};
use std::ops::RangeInclusive;
use std::sync::{Arc, Weak};
use tollbar::clock::Source;
use tollbar::table::{Keep, Options, PolicyId, RequestError, Table, TableError};
use tollbar::{Counts, Policy};

#[allow(clippy::reversed_empty_ranges)] // no generation is in it
const UNUSED: RangeInclusive<u64> = 1..=0;

/// A limit by the name of its rule and its number there.
type Name = (String, usize);

/// The table that the rules share, and the state that a reload needs.
pub struct Store {
    table: Arc<Table>,
    options: Options,
    shared: bool,
    limits: HashMap<Name, (Home, Policy)>,
    /// The policies of removed rules, each with the generations whose sets used it. A new limit may
    /// get such a policy when no request uses a set of these generations.
    free: VecDeque<(RangeInclusive<u64>, PolicyId)>,
    /// The first generation that uses a policy.
    since: HashMap<u32, u64>,
    /// The sets that requests may still use.
    former: Vec<(u64, Weak<Set>)>,
    /// The keys with policies of their own under each limit, in the order of their bytes.
    overrides: HashMap<Name, Vec<OwnPolicies>>,
    ledger: Ledger,
    tallies: HashMap<String, Arc<Tally>>,
    /// The words `reset` of the rules.
    resets: HashMap<String, String>,
    /// The counts of a policy at the time at which its rule got it.
    /// [`Rules::counts`](crate::Rules::counts) subtracts them.
    pub(crate) counted: HashMap<u32, Counts>,
}

/// What a reload changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reloaded {
    /// Rules that are new.
    pub added: Vec<String>,
    /// Rules that are gone.
    pub removed: Vec<String>,
    /// Rules with other policies, whose keys keep the permits that they have left.
    pub changed: Vec<String>,
    /// Rules whose keys begin anew: those with another word `reset`, sliding windows and logs with
    /// another policy without room for it, and limits that become a calendar or were one.
    pub anew: Vec<String>,
}

/// A step of a reload that can be taken back.
enum Undo {
    Policy(Home, Box<Policy>),
    /// What the key had under the limit of this number.
    Override(Home, Arc<[u8]>, Option<Arc<[Policy]>>, usize),
}

impl Store {
    pub fn open(options: &Options, shared: bool) -> Result<Store, TableError> {
        // A table must begin with a policy. This one refuses everything, and no rule uses it.
        let closed = Policy::new(0, 1_000_000_000);
        Ok(Store {
            table: Arc::new(make(options, shared, &closed)?),
            options: *options,
            shared,
            limits: HashMap::new(),
            free: VecDeque::new(),
            former: Vec::new(),
            since: HashMap::new(),
            overrides: HashMap::new(),
            ledger: Ledger::open(shared)?,
            tallies: HashMap::new(),
            resets: HashMap::new(),
            counted: HashMap::new(),
        })
    }

    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// For how many policies of keys each table has room.
    pub fn overrides(&self) -> usize {
        self.options.overrides as usize
    }

    /// Makes the set of the file's rules. `old` is the set in force. After an error every table has
    /// its former policies and overrides.
    pub fn change(
        &mut self,
        file: RuleFile,
        old: Option<&Arc<Set>>,
    ) -> Result<(Set, Reloaded), TableError> {
        let generation = old.map_or(0, |old| old.generation());
        self.former.retain(|(_, set)| set.strong_count() > 0);
        let mut undo = Vec::new();
        let mut added = Vec::new();
        match self.prepare(&file, &mut undo, &mut added) {
            Ok((limits, overrides, reloaded)) => {
                let homes = file.rules.iter().map(|rule| {
                    let homes = (0..rule.limits.len())
                        .filter_map(|n| Some(limits.get(&(rule.name.clone(), n))?.0.clone()));
                    homes.collect()
                });
                let homes: Vec<Vec<Home>> = homes.collect();
                for (name, (home, _)) in &self.limits {
                    let is_used = limits.get(name).is_some_and(|(new, _)| new.is(home));
                    if let (false, Home::Shared(id)) = (is_used, home) {
                        let since = self.since.remove(&id.number()).unwrap_or(0);
                        self.free.push_back((since..=generation, *id));
                    }
                }
                self.former.extend(old.map(|old| (generation, Arc::downgrade(old))));
                self.since.extend(added.into_iter().map(|id| (id.number(), generation + 1)));
                (self.limits, self.overrides) = (limits, overrides);
                self.resets =
                    file.rules.iter().map(|rule| (rule.name.clone(), rule.reset.clone())).collect();
                let tallies = self.tally(&file);
                Ok((Set::new(file, homes, tallies, generation + 1, old.map(Arc::as_ref)), reloaded))
            }
            Err(error) => {
                for step in undo.into_iter().rev() {
                    self.take_back(step);
                }
                // No set has used the added policies, so any new limit may get them.
                self.free.extend(added.into_iter().map(|id| (UNUSED, id)));
                Err(error)
            }
        }
    }

    /// The counters of the file's rules: those that the rule has, or new ones.
    fn tally(&mut self, file: &RuleFile) -> Vec<Arc<Tally>> {
        let mut known = std::mem::take(&mut self.tallies);
        let stays = |name: &String| file.rules.iter().any(|rule| rule.name == *name);
        known
            .iter()
            .filter(|(name, _)| !stays(name))
            .for_each(|(_, tally)| self.ledger.give_back(tally));
        let tallies: Vec<Arc<Tally>> = file
            .rules
            .iter()
            .map(|rule| known.remove(&rule.name).unwrap_or_else(|| Arc::new(self.ledger.take())))
            .collect();
        self.tallies =
            file.rules.iter().map(|rule| rule.name.clone()).zip(tallies.iter().cloned()).collect();
        tallies
    }

    /// Undoes a step of a reload. That needs no more room than the step freed or used, so it fails
    /// only if the memory is damaged. Then all calls fail, and this one ignores the error.
    fn take_back(&self, step: Undo) {
        let _ = match step {
            Undo::Policy(home, policy) => {
                let (table, id) = home.table(&self.table);
                table.set_policy(id, &policy)
            }
            Undo::Override(home, key, before, limit) => {
                let (table, id) = home.table(&self.table);
                match before.as_ref().and_then(|before| before.get(limit)) {
                    Some(policy) => table.set_override(id, &key, policy, Keep::Count),
                    None => table.clear_override(id, &key).map(|_| ()).map_err(TableError::from),
                }
            }
        };
    }

    /// Adds policies, which no request uses yet, then changes policies and overrides.
    #[allow(clippy::type_complexity)] // the fields of a store
    fn prepare(
        &mut self,
        file: &RuleFile,
        undo: &mut Vec<Undo>,
        added: &mut Vec<PolicyId>,
    ) -> Result<
        (HashMap<Name, (Home, Policy)>, HashMap<Name, Vec<OwnPolicies>>, Reloaded),
        TableError,
    > {
        let mut limits = HashMap::new();
        let mut overrides = HashMap::new();
        let mut reloaded = Reloaded::default();
        let mut changes = Vec::new();
        let mut resets = Vec::new();
        for rule in &file.rules {
            let is_reset = self.resets.get(&rule.name).is_some_and(|former| *former != rule.reset);
            let (mut is_changed, mut is_anew) = (false, is_reset);
            for (n, limit) in rule.limits.iter().enumerate() {
                let name = (rule.name.clone(), n);
                let policy = limit.policy;
                let home = match self.limits.get(&name).cloned() {
                    // The table of one sliding window or log cannot change its policy, so the keys
                    // begin anew in a new table.
                    Some((Home::Own(_), _)) if is_reset => self.add(&policy, added)?,
                    Some((home, old)) if old == policy => home,
                    Some((home, old)) if self.can_change(&home, &policy) => {
                        is_changed = true;
                        changes.push((home.clone(), old, policy));
                        home
                    }
                    known => {
                        is_anew |= known.is_some();
                        self.add(&policy, added)?
                    }
                };
                if !matches!(home, Home::Own(_)) {
                    overrides.insert(name.clone(), rule.keys.clone());
                }
                limits.insert(name, (home, policy));
            }
            if is_reset {
                resets.push(rule);
            }
            match self.tallies.contains_key(&rule.name) {
                false => reloaded.added.push(rule.name.clone()),
                true if is_anew => reloaded.anew.push(rule.name.clone()),
                true if is_changed => reloaded.changed.push(rule.name.clone()),
                true => {}
            }
        }
        let is_gone = |name: &&String| !file.rules.iter().any(|rule| rule.name == **name);
        reloaded.removed = self.tallies.keys().filter(is_gone).cloned().collect();
        reloaded.removed.sort();
        for (home, old, new) in changes {
            let (table, id) = home.table(&self.table);
            table.set_policy(id, &new)?;
            undo.push(Undo::Policy(home, Box::new(old)));
        }
        self.change_overrides(&limits, &overrides, undo)?;
        // The last step, because nothing takes it back.
        for rule in resets {
            for n in 0..rule.limits.len() {
                if let Some((home, _)) = limits
                    .get(&(rule.name.clone(), n))
                    .filter(|(home, _)| !matches!(home, Home::Own(_)))
                {
                    begin_anew(rule, n, home, &self.table)?;
                }
            }
        }
        Ok((limits, overrides, reloaded))
    }

    /// Lets all keys of a rule begin anew. Returns the set to put in force, which has new tables
    /// for the rule's sliding windows and logs.
    pub fn begin_anew(&mut self, old: &Arc<Set>, number: usize) -> Result<Set, TableError> {
        let mut homes = old.homes.clone();
        let Some((rule, own)) = old.rules().get(number).zip(homes.get_mut(number)) else {
            return Err(RequestError::NoSuchPolicy.into());
        };
        for (n, home) in own.iter_mut().enumerate() {
            match (&home, rule.limits.get(n)) {
                (Home::Own(_), Some(limit)) => {
                    *home = self.add(&limit.policy, &mut Vec::new())?;
                    self.limits.insert((rule.name.clone(), n), (home.clone(), limit.policy));
                }
                _ => begin_anew(rule, n, home, &self.table)?,
            }
        }
        self.former.push((old.generation(), Arc::downgrade(old)));
        let generation = old.generation() + 1;
        Ok(Set::new(old.file.clone(), homes, old.tallies.clone(), generation, Some(old)))
    }

    /// Whether the policy of this limit can change in its table, so that its keys keep their
    /// permits. If it cannot, the limit gets a table of its own and its keys begin anew.
    fn can_change(&self, home: &Home, policy: &Policy) -> bool {
        match home {
            Home::Shared(_) => !self.is_alone(policy) && !is_calendar(policy),
            Home::Own(_) => false,
            Home::Calendar(_) => is_calendar(policy),
        }
    }

    /// Whether the policy is a sliding window or log for which the keys have too little room.
    fn is_alone(&self, policy: &Policy) -> bool {
        is_alone(policy)
            && (self.options.room == 0 || Table::bytes_for(&self.options, &[*policy]).is_err())
    }

    /// A policy that no request uses, for a new limit.
    fn add(&mut self, policy: &Policy, added: &mut Vec<PolicyId>) -> Result<Home, TableError> {
        if self.is_alone(policy) {
            let options = Options { room: 0, ..self.options };
            return Ok(Home::Own(Arc::new(make(&options, self.shared, policy)?)));
        }
        if is_calendar(policy) {
            let options = Options { clock: Source::Wall, ..self.options };
            return Ok(Home::Calendar(Arc::new(make(&options, self.shared, policy)?)));
        }
        // Other processes that share the table may still use an old set. So in shared memory a
        // policy of a removed rule is used again only if the table has no new policy.
        let is_unused = |of: &RangeInclusive<u64>| {
            !self.former.iter().any(|(generation, _)| of.contains(generation))
        };
        let reusable = || self.free.iter().position(|(of, _)| is_unused(of));
        let reused = if self.shared { None } else { reusable() };
        let id = match reused {
            Some(at) => self.reuse(at, policy)?,
            None => match self.table.add_policy(policy) {
                Err(TableError::Policies) => match reusable() {
                    Some(at) => self.reuse(at, policy)?,
                    None => return Err(TableError::Policies),
                },
                result => result?,
            },
        };
        added.push(id);
        self.counted.insert(id.number(), self.table.counts(id)?);
        Ok(Home::Shared(id))
    }

    fn reuse(&mut self, at: usize, policy: &Policy) -> Result<PolicyId, TableError> {
        let Some((_, id)) = self.free.get(at) else { return Err(TableError::Policies) };
        let id = *id;
        self.table.set_policy_keeping(id, policy, Keep::Reset)?;
        let of_id: Vec<(PolicyId, u64)> =
            self.table.overrides().filter(|o| o.policy == id).map(|o| (o.policy, o.hash)).collect();
        debug_assert!(
            of_id.is_empty(),
            "the reload that removed the rule has cleared its overrides"
        );
        self.free.remove(at);
        Ok(id)
    }

    fn change_overrides(
        &self,
        limits: &HashMap<Name, (Home, Policy)>,
        overrides: &HashMap<Name, Vec<OwnPolicies>>,
        undo: &mut Vec<Undo>,
    ) -> Result<(), TableError> {
        // Clears old overrides before it sets new ones, because a table has room for a limited
        // number.
        for (name, keys) in &self.overrides {
            let Some((home, _)) = self.limits.get(name) else { continue };
            let (table, id) = home.table(&self.table);
            let stays = limits.get(name).is_some_and(|(new, _)| new.is(home));
            let new = overrides.get(name).filter(|_| stays);
            let mut new = InOrder(new.map_or(&[], Vec::as_slice));
            for (key, own) in keys {
                if new.find(key).is_none() {
                    table.clear_override(id, key)?;
                    undo.push(Undo::Override(home.clone(), key.clone(), Some(own.clone()), name.1));
                }
            }
        }
        for (name, keys) in overrides {
            let Some((home, _)) = limits.get(name) else { continue };
            let (table, id) = home.table(&self.table);
            let stays = self.limits.get(name).is_some_and(|(old, _)| old.is(home));
            let old = self.overrides.get(name).filter(|_| stays);
            let is_new = old.is_none();
            let mut old = InOrder(old.map_or(&[], Vec::as_slice));
            for (key, own) in keys {
                let Some(policy) = own.get(name.1) else { continue };
                let before = old.find(key);
                if before.and_then(|before| before.get(name.1)) != Some(policy) {
                    table.set_override(id, key, policy, Keep::Count)?;
                    let before = before.map(Arc::clone);
                    undo.push(Undo::Override(home.clone(), key.clone(), before, name.1));
                    if is_new {
                        // The key may have a debt from a removed rule that used this policy. An
                        // override that equals a former one would keep that debt.
                        table.reset(id, key)?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Keys in the order of their bytes, of which a caller asks for others in the same order.
struct InOrder<'a>(&'a [OwnPolicies]);

impl<'a> InOrder<'a> {
    /// The policies of `key`. Later calls ask for greater keys.
    fn find(&mut self, key: &[u8]) -> Option<&'a Arc<[Policy]>> {
        while let Some(((first, own), rest)) = self.0.split_first() {
            match (**first).cmp(key) {
                Ordering::Less => self.0 = rest,
                Ordering::Equal => return Some(own),
                Ordering::Greater => return None,
            }
        }
        None
    }
}

/// Lets all keys of a rule begin anew under one of its limits.
fn begin_anew(rule: &Rule, limit: usize, home: &Home, shared: &Table) -> Result<(), TableError> {
    let (table, id) = home.table(shared);
    if let Some(limit) = rule.limits.get(limit) {
        table.set_policy_keeping(id, &limit.policy, Keep::Reset)?;
    }
    // That leaves out keys with a policy of their own.
    for (key, _) in &rule.keys {
        table.reset(id, key)?;
    }
    Ok(())
}

fn make(options: &Options, shared: bool, policy: &Policy) -> Result<Table, TableError> {
    match shared {
        true => Table::shared(options, &[*policy]),
        false => Table::private(options, &[*policy]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::Format;
    use crate::{Options, Rules};

    /// The number of the only policy of a set.
    fn policy(set: &Set) -> PolicyId {
        match &set.homes[0][0] {
            Home::Shared(id) => *id,
            home => panic!("{home:?}"),
        }
    }

    /// The reload has changed a policy and some keys when the table has no room for another key's
    /// policy.
    #[test]
    fn a_reload_that_fails_half_way_is_taken_back() {
        let file = |text: &str| crate::read::read(text, Format::Toml).unwrap();
        let before = "version = 1\n[group.a]\nlimit = '5/h'\n[group.a.keys]\n'2.2.2.2' = '7/h'\n'3.3.3.3' = '8/h'\n";
        let keys: String =
            (0..1100).map(|n| format!("'1.2.{}.{}' = '6/h'\n", n / 250, n % 250)).collect();
        let after = format!(
            "version = 1\n[group.b]\nlimit = '1/h'\n[group.a]\nlimit = '50/h'\n[group.a.keys]\n'2.2.2.2' = '9/h'\n{keys}"
        );
        let mut options = tollbar::table::Options::new(10_000);
        options.overrides = 1024;
        let mut store = Store::open(&options, false).unwrap();
        let set = Arc::new(store.change(file(before), None).unwrap().0);
        let id = policy(&set);
        let state = |store: &Store| {
            let mut all: Vec<_> =
                store.table.overrides().map(|own| (own.hash, own.of.to_string())).collect();
            all.sort();
            (store.table.policy(id).unwrap().to_string(), all)
        };
        let wanted = state(&store);
        for _ in 0..200 {
            assert!(matches!(store.change(file(&after), Some(&set)), Err(TableError::Overrides)));
            assert_eq!(state(&store), wanted);
        }
        let (_, good) = store.change(file(&before.replace("5/h", "6/h")), Some(&set)).unwrap();
        assert_eq!(good.changed, ["a"]);
    }

    /// A request that began long ago may still charge the policy of its set.
    #[test]
    fn a_policy_serves_no_other_rule_while_a_request_uses_its_set() {
        let of = |n: u32| format!("version = 1\n[group.r{n}]\nlimit = '2/h'");
        let rules = Rules::from_text(&of(0), Format::Toml, &Options::default()).unwrap();
        let mut reload = |n: u32| {
            rules.replace(&of(n), Format::Toml).unwrap();
            policy(&rules.set())
        };
        let held = rules.set();
        let own = policy(&held);
        let others: Vec<PolicyId> = (1..20).map(&mut reload).collect();
        assert!(!others.contains(&own));
        // Meanwhile reloads reuse the slots of freed policies.
        assert!(others.iter().max() < Some(&PolicyId::new(6)), "{others:?}");
        drop(held);
        assert!((20..40).map(&mut reload).any(|id| id == own));
    }
}
