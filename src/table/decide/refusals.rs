//! Requests that record the keys that they refuse ([`Table::record_refusals`]).

use super::Table;
use crate::decision::{Reason, Verdict};
use crate::table::memory::error::RequestError;
use crate::table::policies::compiled::salt;
use crate::table::policies::PolicyId;

impl Table {
    /// [`Table::count_decided`] for a request of `key` that the caller has refused itself. If the
    /// table records refusals, it records this one, too.
    ///
    /// # Errors
    /// [`RequestError::NoSuchPolicy`].
    pub fn count_refused(
        &self,
        policy: PolicyId,
        key: &[u8],
        verdict: Verdict,
        reason: Reason,
    ) -> Result<(), RequestError> {
        self.count_decided(policy, verdict, reason)?;
        self.note_refusal(verdict, policy, key, None);
        Ok(())
    }

    /// Records the key of a request, if the request was refused and the table records refusals.
    #[inline]
    pub(super) fn note_refusal(
        &self,
        verdict: Verdict,
        policy: PolicyId,
        key: &[u8],
        now: Option<u64>,
    ) {
        let is_recorded = verdict != Verdict::Allowed
            && self.policies.memory.header().special.read().records_refusals();
        if is_recorded && !key.is_empty() {
            self.record_refused(policy, key, now);
        }
    }

    #[cold]
    #[inline(never)]
    fn record_refused(&self, policy: PolicyId, key: &[u8], now: Option<u64>) {
        let hash = self.hash_out_of_line(key) ^ salt(policy.number());
        self.policies.memory.refusals().record(hash, policy.number(), key, self.time(now));
    }
}
