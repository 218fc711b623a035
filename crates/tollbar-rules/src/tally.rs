//! What rules count beside the states of keys: requests without a key, exempt requests, and shadows
//! that decide otherwise than their rules.
//!
//! The counters are those of two tables without keys, in which each rule has a policy's number. So
//! the counters are in shared memory if the rules are, and a table counts without a lock.

use std::collections::VecDeque;
use std::sync::Arc;
use tollbar::table::{Options, PolicyId, Table, TableError};
use tollbar::{Counts, Policy, Reason, Verdict};

/// The numbers of each table: more than a file has rules, so that a rule gets a number that no
/// recent rule had.
const NUMBERS: u32 = 128;
const _: () = assert!(crate::RULES_MOST < NUMBERS as usize);

/// The counters of all rules, and the numbers that no rule has.
pub(crate) struct Ledger {
    tables: Tables,
    free: VecDeque<u32>,
}

#[derive(Clone)]
struct Tables {
    /// Counts an exempt request as allowed, and one without a key as denied.
    unlimited: Arc<Table>,
    /// Counts a shadow's admission as allowed, and its refusal as denied.
    disagreements: Arc<Table>,
}

/// The counters of one rule.
pub(crate) struct Tally {
    tables: Tables,
    number: PolicyId,
    /// The counts of the number when the rule got it.
    before: [Counts; 2],
}

impl Ledger {
    pub fn open(shared: bool) -> Result<Ledger, TableError> {
        // No key is ever stored, so any policy will do.
        let policies = vec![Policy::new(0, 1_000_000_000); NUMBERS as usize];
        let options = Options::new(1);
        let make = || match shared {
            true => Table::shared(&options, &policies),
            false => Table::private(&options, &policies),
        };
        let tables = Tables { unlimited: Arc::new(make()?), disagreements: Arc::new(make()?) };
        Ok(Ledger { tables, free: (0..NUMBERS).collect() })
    }

    /// The counters of a new rule, from 0 on.
    pub fn take(&mut self) -> Tally {
        // There is always one, because a reload gives the numbers of removed rules back first.
        let number = PolicyId::new(self.free.pop_front().unwrap_or(0));
        let mut tally =
            Tally { tables: self.tables.clone(), number, before: [Counts::default(); 2] };
        tally.before = tally.now();
        tally
    }

    /// Gives the number of a removed rule back. A request under an old set may still count by it,
    /// but many rules come before it is used again.
    pub fn give_back(&mut self, tally: &Tally) {
        self.free.push_back(tally.number.number());
    }
}

impl Tally {
    pub fn add_missing(&self) {
        self.add(&self.tables.unlimited, Verdict::Denied);
    }

    pub fn add_exempt(&self) {
        self.add(&self.tables.unlimited, Verdict::Allowed);
    }

    /// A shadow decides otherwise than the rules: `would_allow` says how.
    pub fn add_disagreement(&self, would_allow: bool) {
        self.add(
            &self.tables.disagreements,
            if would_allow { Verdict::Allowed } else { Verdict::Denied },
        );
    }

    /// Requests without a key, and exempt ones.
    pub fn unlimited(&self) -> (u64, u64) {
        let (now, before) = (self.now()[0], self.before[0]);
        (now.denied - before.denied, now.allowed - before.allowed)
    }

    /// Requests that the shadow would have refused, and those that it would have admitted.
    pub fn disagreements(&self) -> (u64, u64) {
        let (now, before) = (self.now()[1], self.before[1]);
        (now.denied - before.denied, now.allowed - before.allowed)
    }

    fn add(&self, table: &Table, verdict: Verdict) {
        // Fails only for a damaged table, and a statistic is no reason to refuse a request.
        let _ = table.count_decided(self.number, verdict, Reason::of(verdict));
    }

    fn now(&self) -> [Counts; 2] {
        [&self.tables.unlimited, &self.tables.disagreements]
            .map(|table| table.counts(self.number).unwrap_or_default())
    }
}

impl std::fmt::Debug for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tally").field("number", &self.number).finish_non_exhaustive()
    }
}
