//! What a limiter has decided and what is left of it, for people and metrics.

use super::{Limiter, Shared};
use crate::clock::Clock;
use crate::decision::{Counts, Decision, Reasons};

/// A snapshot of a limiter for people and metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The clock's time of the snapshot, in nanoseconds.
    pub now: u64,
    /// What a peek for one permit answers.
    pub decision: Decision,
    /// Callers asleep in [`Limiter::wait_until`].
    pub waiting: u32,
    /// Requests whose time was earlier than that of a request admitted before them.
    pub backward_steps: u64,
    /// [`Limiter::counts`].
    pub decisions: Counts,
    /// How many of these decisions had which reason.
    pub reasons: Reasons,
}

impl<S: Shared, C: Clock> Limiter<S, C> {
    /// Decisions of all threads since the limiter was made, by verdict.
    ///
    /// A call counts once, by the verdict that it returns. [`Limiter::take_up_to`] and
    /// [`Limiter::reserve`] count as allowed if they took permits, and as refused if not; a cost of
    /// 0 is allowed. A peek is not a decision. [`Limiter::reset`] leaves the counts.
    pub fn counts(&self) -> Counts {
        let counts = self.tally.counts();
        Counts { allowed: counts.allowed.wrapping_add(self.shared().spent()), ..counts }
    }

    /// The state for people and metrics. The call takes no permits.
    pub fn snapshot(&self) -> Snapshot {
        let now = self.clock.now();
        Snapshot {
            now,
            decision: self.shared().peek_at(now, 1),
            waiting: self.waiting.asleep(),
            backward_steps: self
                .changes
                .states()
                .fold(self.shared.watch().backward_steps(), |steps, state| {
                    steps.saturating_add(state.watch().backward_steps())
                }),
            decisions: self.counts(),
            reasons: self.tally.reasons(),
        }
    }
}
