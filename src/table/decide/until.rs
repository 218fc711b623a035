//! Waiting for a key's permits in asynchronous code.

use super::answer::Answer;
use super::booking::KeyPermits;
use super::Table;
use crate::decision::{Decision, NotAdmitted};
use crate::limiter::waiting;
use crate::table::policies::PolicyId;
use crate::units::nanos;
use core::future::Future;
use core::time::Duration;

/// Waits in futures, as those of a limiter ([`Limiter::until_ready`](crate::Limiter::until_ready)).
/// Each key has its queue, which tasks share with the threads of [`Table::wait`].
impl Table {
    /// Takes one permit of `key` under the first policy, and waits for it as long as it takes.
    ///
    /// # Errors
    /// [`NotAdmitted`], with nothing taken: if no wait helps, if as many callers sleep as may
    /// ([`Options::waiters`](crate::table::Options::waiters)), or for an empty key.
    pub async fn until_key_ready<F: Future>(
        &self,
        key: impl AsRef<[u8]>,
        sleep: impl Fn(Duration) -> F,
    ) -> Result<(), NotAdmitted> {
        self.until_key_n_ready(key, 1, sleep).await
    }

    /// [`Table::until_key_ready`] of `cost` permits.
    ///
    /// # Errors
    /// Those of [`Table::until_key_ready`]. A cost above the burst never passes.
    pub async fn until_key_n_ready<F: Future>(
        &self,
        key: impl AsRef<[u8]>,
        cost: u64,
        sleep: impl Fn(Duration) -> F,
    ) -> Result<(), NotAdmitted> {
        self.until_key_n_ready_within(PolicyId::FIRST, key, cost, Duration::MAX, sleep).await.ok()
    }

    /// [`Table::wait`] in a future: it refuses at once, with nothing taken, if the permits would
    /// come later than `patience` after the first poll.
    pub async fn until_key_n_ready_within<F: Future>(
        &self,
        policy: PolicyId,
        key: impl AsRef<[u8]>,
        cost: u64,
        patience: Duration,
        sleep: impl Fn(Duration) -> F,
    ) -> Decision {
        let key = key.as_ref();
        let permits = KeyPermits { table: self, policy, key };
        let deadline = self.now().saturating_add(nanos(patience));
        let queue = permits.hash();
        let wait =
            waiting::until(&permits, &permits, &self.waiting, queue, cost, deadline, sleep).await;
        if let Ok(decision) = &wait {
            self.policies.memory.count_with_reason(
                policy.number(),
                decision.verdict,
                decision.reason,
            );
            self.note_refusal(decision.verdict, policy, key, None);
        }
        Decision::of(wait)
    }
}
