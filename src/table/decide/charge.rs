//! Charges without a decision, for requests that have been admitted already.

use super::multi_word::Op;
use super::Table;
use crate::algorithm::{Algorithm, Rule, Step};
use crate::decision::{Reason, Verdict};
use crate::table::memory::error::RequestError;
use crate::table::policies::compiled::Version;
use crate::table::policies::local::Scratch;
use crate::table::policies::PolicyId;
use crate::table::slots::states::Event;

impl Table {
    /// Charges `cost` permits to `key` without a decision, and returns the rest that could not be
    /// charged. Use it for a request that has been admitted already and whose cost, or failure, is
    /// known only now. Later requests of the key are refused until the debt is paid.
    ///
    /// A token bucket can owe one burst, windows and logs can owe nothing; [`Algorithm::charge`]
    /// says what each algorithm can owe. Under a policy with `ban` a charge that leaves no permit
    /// counts as a refusal. A charge is not counted as a decision.
    ///
    /// A new key takes a slot, as with its first admission. If a full table gives it none, the rest
    /// is the whole cost. An exempt key is charged nothing, and the rest is 0. The rest is the
    /// whole cost where [`Table::check`] would refuse because of an error.
    ///
    /// ```
    /// use tollbar::table::{Options, PolicyId, Table};
    /// let table = Table::private(&Options::new(10_000), &["1000/h".parse()?])?;
    /// assert!(table.peek(PolicyId::FIRST, b"ann", 1).is_allowed());
    /// // … the answer took 1,500 tokens
    /// assert_eq!(table.charge(PolicyId::FIRST, b"ann", 1_500), 0);
    /// assert!(table.peek(PolicyId::FIRST, b"ann", 1).retry_after > 1_800_000_000_000); // half an hour
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn charge(&self, policy: PolicyId, key: &[u8], cost: u64) -> u64 {
        self.try_charge(policy, key, None, cost).unwrap_or(cost)
    }

    /// [`Table::charge`] at the caller's time.
    pub fn charge_at(&self, policy: PolicyId, key: &[u8], now: u64, cost: u64) -> u64 {
        self.try_charge(policy, key, Some(now), cost).unwrap_or(cost)
    }

    /// [`Table::charge`], or [`Table::charge_at`] if `now` is given. It returns the error where
    /// they would charge nothing because of one.
    ///
    /// # Errors
    /// Those of [`Table::try_check`].
    pub fn try_charge(
        &self,
        policy: PolicyId,
        key: &[u8],
        now: Option<u64>,
        cost: u64,
    ) -> Result<u64, RequestError> {
        let mut scratch = Scratch::new();
        let (version, hash) = match self.prepare(policy, key, &mut scratch) {
            Ok(prepared) => prepared,
            Err(decided) => return Ok(if decided?.is_allowed() { 0 } else { cost }),
        };
        let now = self.time(now);
        self.charge_hashed(version, hash, now, cost)
    }

    /// [`Table::charge_at`] for a key's hash under its policy.
    pub(super) fn charge_hashed(
        &self,
        version: &Version,
        hash: u64,
        now: u64,
        cost: u64,
    ) -> Result<u64, RequestError> {
        self.policies.memory.note_time(now);
        self.decide_any(
            version,
            hash,
            now,
            // A ring or a log can owe nothing, so the call takes the permits that it has.
            Op::TakeUpTo(cost),
            &mut || self.charge_one_word(version, hash, now, cost),
            &|decided| match decided.decision.reason {
                Reason::TableFull => cost,
                _ => cost - decided.taken,
            },
        )
    }

    fn charge_one_word(
        &self,
        version: &Version,
        hash: u64,
        now: u64,
        cost: u64,
    ) -> Result<Option<u64>, RequestError> {
        let mut rest = cost;
        let mut stored = true;
        let mut step = |rule: &Rule, state| {
            let charged = rule.charge(state, now, cost);
            rest = charged.rest;
            Step { verdict: Verdict::Allowed, next: charged.next }
        };
        let done = self.request(version, hash, now, &mut step, &mut |_, outcome| {
            stored = !matches!(outcome.event, Event::Refused | Event::Unremembered);
        })?;
        Ok(done.then_some(if stored { rest } else { cost }))
    }
}
