//! Requests that leave a reserve.

use super::Table;
use crate::algorithm::step_leaving;
use crate::decision::Decision;
use crate::policy::PolicyError;
use crate::table::memory::error::TableError;
use crate::table::policies::local::Scratch;
use crate::table::policies::PolicyId;

impl Table {
    /// [`Table::check`] of a request that passes only if the key has at least `reserve` permits left after it
    /// ([`Limiter::check_leaving`](crate::Limiter::check_leaving)). Credit that threads have of a hot key counts as taken.
    ///
    /// # Errors
    /// Those of [`Table::try_check`], and [`PolicyError::OptionMismatch`] as the [`TableError::Policy`] for policies that cannot keep a reserve.
    pub fn check_leaving(&self, policy: PolicyId, key: &[u8], cost: u64, reserve: u64) -> Result<Decision, TableError> {
        self.check_leaving_at(policy, key, self.now(), cost, reserve)
    }

    /// [`Table::check_leaving`] at the caller's time.
    ///
    /// # Errors
    /// Those of [`Table::check_leaving`].
    pub fn check_leaving_at(
        &self,
        policy: PolicyId,
        key: &[u8],
        now: u64,
        cost: u64,
        reserve: u64,
    ) -> Result<Decision, TableError> {
        let mut scratch = Scratch::new();
        let (version, hash) = match self.prepare(policy, key, &mut scratch) {
            Ok(prepared) => prepared,
            Err(decided) => return self.count_unprobed(policy, decided),
        };
        if version.multi_word.is_some() || !version.rule.keeps_reserves() {
            return Err(TableError::Policy(PolicyError::OptionMismatch));
        }
        self.policies.memory.note_time(now);
        let needed = if cost == 0 { 0 } else { cost.saturating_add(reserve) };
        let decision = self
            .decide_by(version, hash, now, needed, &mut |rule, state| step_leaving(rule, state, now, cost, reserve))?;
        self.policies.memory.count_decision(version.number, decision.verdict);
        Ok(decision)
    }
}
