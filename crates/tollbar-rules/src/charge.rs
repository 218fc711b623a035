//! The charge of a request: all limits of its rules together, or none.

use crate::set::{Home, Set};
use std::ops::Range;
use tollbar::clock::TIME_ZERO;
use tollbar::table::Table;
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
        let decision = Decision { verdict, reason, remaining, retry_after, reset_after: 0, bound: 0 };
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

    /// A Unix time. Tables with the usual clock get it as it is, because a log may be older than [`TIME_ZERO`]. Their windows begin at the same
    /// instants, because `TIME_ZERO` is a whole number of days and weeks.
    pub fn of_unix(unix: u64) -> Time {
        Time { tables: unix, unix }
    }

    fn of(self, home: &Home) -> u64 {
        match home {
            Home::Calendar(_) => self.unix,
            Home::Shared(_) | Home::Own(_) => self.tables,
        }
    }
}

/// The rules of a request that have limits, with the places of their keys.
#[derive(Default)]
pub(crate) struct Parts {
    count: usize,
    parts: [(usize, Range<usize>); LIMITS_MOST],
}

impl Parts {
    pub fn push(&mut self, rule: usize, key: Range<usize>) {
        if let Some(place) = self.parts.get_mut(self.count) {
            *place = (rule, key);
            self.count += 1;
        }
    }

    fn all(&self) -> &[(usize, Range<usize>)] {
        &self.parts[..self.count]
    }
}

/// What the limits of a request are charged by.
pub(crate) struct Charge<'a> {
    pub set: &'a Set,
    /// The table that the rules share.
    pub shared: &'a Table,
    /// The request's route, whose cost counts.
    pub route: Option<usize>,
    /// The caller's time. Without one each table reads its clock.
    pub now: Option<Time>,
}

impl Charge<'_> {
    /// Charges all limits of these rules or none. `None` if there are no limits.
    pub fn take(&self, parts: &Parts, keys: &[u8]) -> Result<Option<Decided>, ManyError> {
        let mut several = Several::new(None);
        // For each limit its part, its rule and its number there.
        let mut of = [(0, 0, 0); LIMITS_MOST];
        let mut count = 0;
        for (part, (rule, key)) in parts.all().iter().enumerate() {
            let cost = self.set.cost(*rule, self.route);
            let key = keys.get(key.clone()).unwrap_or_default();
            for (n, home) in self.set.homes[*rule].iter().enumerate() {
                let (table, id) = home.table(self.shared);
                several.set_now(self.now.map(|now| now.of(home)));
                several.add(&Limit::Key(table, id, key, cost))?;
                *of.get_mut(count).ok_or(ManyError::Count)? = (part, *rule, n);
                count += 1;
            }
        }
        if count == 0 {
            return Ok(None);
        }
        let taken = several.take(Some(&mut []))?;
        let Some(&(part, rule, n)) = of.get(taken.bound) else { return Err(ManyError::Count) };
        let key = parts.all().get(part).and_then(|(_, key)| keys.get(key.clone())).unwrap_or_default();
        let policy = self.set.rules()[rule].policy(n, key);
        Ok(Some(Decided { decision: taken.decision, rule: Some(rule), policy }))
    }
}
