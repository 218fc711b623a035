//! The charge of a request: all limits of its rules together, or none.

use crate::set::{Home, Set};
use std::ops::Range;
use tollbar::clock::TIME_ZERO;
use tollbar::policy::PolicyError;
use tollbar::table::{RequestError, Table};
use tollbar::take_many::{Limit, ManyError, Several, LIMITS_MOST};
use tollbar::{Decision, Policy, Reason, Verdict};

/// The decision on a request, with the rule and the policy that bind it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decided {
    pub decision: Decision,
    /// The number of the rule.
    pub rule: Option<usize>,
    pub policy: Option<Policy>,
}

impl Decided {
    /// A decision that no limit has made.
    pub fn without(verdict: Verdict, reason: Reason, rule: Option<usize>) -> Decided {
        let (remaining, retry_after) = match verdict {
            Verdict::Allowed => (u64::MAX, 0),
            _ => (0, tollbar::NEVER),
        };
        let decision =
            Decision { verdict, reason, remaining, retry_after, reset_after: 0, bound: 0 };
        Decided { decision, rule, policy: None }
    }

    /// The rule that refuses.
    pub fn refusing(&self) -> Option<usize> {
        self.rule.filter(|_| !self.decision.is_allowed())
    }
}

/// The caller's time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Time {
    /// For tables with the usual clock.
    tables: u64,
    /// For tables of calendars: nanoseconds since 1970.
    unix: u64,
}

impl Time {
    /// A time that counts from [`TIME_ZERO`], as the usual clock does.
    pub fn of_tables(now: u64) -> Time {
        Time { tables: now, unix: now.saturating_add(TIME_ZERO) }
    }

    /// A Unix time. Tables with the usual clock get it as it is, because a log may be older than
    /// [`TIME_ZERO`]. Their windows begin at the same instants, because `TIME_ZERO` is a whole
    /// number of days and weeks.
    pub fn of_unix(unix: u64) -> Time {
        Time { tables: unix, unix }
    }

    /// The time for tables with the usual clock.
    pub fn tables(self) -> u64 {
        self.tables
    }

    /// Nanoseconds since 1970.
    pub fn unix(self) -> u64 {
        self.unix
    }

    pub fn of(self, home: &Home) -> u64 {
        match home {
            Home::Calendar(_) => self.unix,
            Home::Shared(_) | Home::Own(_) => self.tables,
        }
    }
}

/// The rules of a request that have limits.
#[derive(Default)]
pub(crate) struct LimitedRules {
    count: usize,
    parts: [LimitedRule; LIMITS_MOST],
}

#[derive(Default)]
struct LimitedRule {
    rule: usize,
    /// The places of the key, and of what the request says of its class.
    key: Range<usize>,
    class: Range<usize>,
    cost: u64,
}

impl LimitedRules {
    pub fn push(&mut self, rule: usize, key: Range<usize>, class: Range<usize>, cost: u64) {
        if let Some(place) = self.parts.get_mut(self.count) {
            *place = LimitedRule { rule, key, class, cost };
            self.count += 1;
        }
    }

    fn all(&self) -> &[LimitedRule] {
        &self.parts[..self.count]
    }
}

/// What the limits of a request are charged by.
pub(crate) struct Charge<'a> {
    pub set: &'a Set,
    /// The table that the rules share.
    pub shared: &'a Table,
    /// The caller's time. Without one each table reads its clock.
    pub now: Option<Time>,
    /// The Unix time, if some limit depends on it.
    pub unix: u64,
}

impl Charge<'_> {
    /// Charges all limits of these rules or none. `None` if there are no limits.
    pub fn take(&self, parts: &LimitedRules, keys: &[u8]) -> Result<Option<Decided>, ManyError> {
        match self.take_with(parts, keys, true) {
            // A reload has changed the classes of a policy, and this request still has the set of
            // before. It is decided without a class.
            Err(error) if is_of_class(error) => self.take_with(parts, keys, false),
            result => result,
        }
    }

    /// Whether the limits of all rules but this one would admit the request. Charges nothing.
    pub fn admits_without(
        &self,
        rule: usize,
        parts: &LimitedRules,
        keys: &[u8],
    ) -> Result<bool, ManyError> {
        let of_others = |classes| {
            let mut several = Several::new(None);
            for part in parts.all().iter().filter(|part| part.rule != rule) {
                self.add(&mut several, part, keys, classes, |_| Ok(()))?;
            }
            several.admits()
        };
        match of_others(true) {
            Err(error) if is_of_class(error) => of_others(false),
            result => result,
        }
    }

    fn take_with(
        &self,
        parts: &LimitedRules,
        keys: &[u8],
        classes: bool,
    ) -> Result<Option<Decided>, ManyError> {
        let mut several = Several::new(None);
        // For each limit its part, its rule and its number there.
        let mut of = [(0, 0, 0); LIMITS_MOST];
        let mut count = 0;
        for (number, part) in parts.all().iter().enumerate() {
            self.add(&mut several, part, keys, classes, |n| {
                *of.get_mut(count).ok_or(ManyError::Count)? = (number, part.rule, n);
                count += 1;
                Ok(())
            })?;
        }
        if count == 0 {
            return Ok(None);
        }
        let taken = several.take(Some(&mut []))?;
        let Some(&(part, rule, n)) = of.get(taken.bound) else { return Err(ManyError::Count) };
        let key = parts.all().get(part).map(|part| bytes(keys, &part.key)).unwrap_or_default();
        let policy = self.set.rules()[rule].policy(n, key).copied();
        Ok(Some(Decided { decision: taken.decision, rule: Some(rule), policy }))
    }

    /// Adds the limits of one rule, and gives `added` the number of each.
    fn add<'a>(
        &'a self,
        several: &mut Several<'a>,
        part: &LimitedRule,
        keys: &'a [u8],
        classes: bool,
        mut added: impl FnMut(usize) -> Result<(), ManyError>,
    ) -> Result<(), ManyError> {
        let (rule, key, asked) =
            (&self.set.rules()[part.rule], bytes(keys, &part.key), bytes(keys, &part.class));
        for (n, home) in self.set.homes[part.rule].iter().enumerate() {
            let times = rule.limits.get(n).and_then(|limit| limit.when.as_ref());
            if times.is_some_and(|times| !times.hold(self.unix)) {
                continue;
            }
            let (table, id) = home.table(self.shared);
            let limit = Limit::Key(table, id, key, part.cost);
            several.set_now(self.now.map(|now| now.of(home)));
            match rule.class(n, key, asked).filter(|_| classes) {
                Some(class) => several.add_class(&limit, class.as_bytes())?,
                None => several.add(&limit)?,
            }
            added(n)?;
        }
        Ok(())
    }
}

fn bytes<'a>(keys: &'a [u8], place: &Range<usize>) -> &'a [u8] {
    keys.get(place.clone()).unwrap_or_default()
}

/// Whether a limit has no class of that name.
fn is_of_class(error: ManyError) -> bool {
    matches!(
        error,
        ManyError::Class(_) | ManyError::Table(_, RequestError::Policy(PolicyError::NoSuchClass))
    )
}
