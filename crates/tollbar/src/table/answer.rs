//! What a request is told.

use super::error::TableError;
use crate::algorithm::{Algorithm, Rule};
use crate::decision::{Decision, Reason, Verdict};
use crate::units::NEVER;

/// What a request is told: a [`Verdict`] or a [`Decision`], with the error or with a refusal in its place.
pub trait Answer: Sized {
    /// `verdict` was given at `now` by `rule`, and `state` is the state after it.
    fn known(rule: &Rule, verdict: Verdict, state: u64, now: u64, cost: u64) -> Self;

    /// Of what has been told in full.
    fn told(decision: Decision) -> Self;

    /// The same answer for another reason.
    fn because(self, reason: Reason) -> Self;

    /// There is no answer.
    fn failed(error: TableError) -> Self;
}

/// How a request ended before the table was asked.
pub(super) enum Skipped {
    Allowed(Reason),
    Denied(Reason),
    Failed(TableError),
    /// It did not: the answer is here.
    Told(Decision),
}

/// What a request is told that passes without being charged to its slot.
pub(super) const fn free(reason: Reason) -> Decision {
    Decision { verdict: Verdict::Allowed, reason, remaining: u64::MAX, retry_after: 0, reset_after: 0 }
}

/// What a request is told that no waiting can help.
const fn closed(reason: Reason) -> Decision {
    Decision { verdict: Verdict::Denied, reason, remaining: 0, retry_after: NEVER, reset_after: NEVER }
}

impl Answer for Verdict {
    #[inline(always)]
    fn known(_: &Rule, verdict: Verdict, _: u64, _: u64, _: u64) -> Verdict {
        verdict
    }

    #[inline(always)]
    fn told(decision: Decision) -> Verdict {
        decision.verdict
    }

    #[inline(always)]
    fn because(self, _: Reason) -> Verdict {
        self
    }

    #[inline(always)]
    fn failed(_: TableError) -> Verdict {
        Verdict::Denied
    }
}

impl Answer for Decision {
    #[inline(always)]
    fn known(rule: &Rule, verdict: Verdict, state: u64, now: u64, cost: u64) -> Decision {
        rule.describe(verdict, state, now, cost)
    }

    #[inline(always)]
    fn told(decision: Decision) -> Decision {
        decision
    }

    #[inline(always)]
    fn because(self, reason: Reason) -> Decision {
        Decision::because(self, reason)
    }

    #[inline(always)]
    fn failed(_: TableError) -> Decision {
        closed(Reason::Fault)
    }
}

impl<A: Answer> Answer for Result<A, TableError> {
    #[inline(always)]
    fn known(rule: &Rule, verdict: Verdict, state: u64, now: u64, cost: u64) -> Self {
        Ok(A::known(rule, verdict, state, now, cost))
    }

    #[inline(always)]
    fn told(decision: Decision) -> Self {
        Ok(A::told(decision))
    }

    #[inline(always)]
    fn because(self, reason: Reason) -> Self {
        self.map(|answer| answer.because(reason))
    }

    #[inline(always)]
    fn failed(error: TableError) -> Self {
        Err(error)
    }
}

impl Skipped {
    #[cold]
    pub(super) fn decision(self) -> Result<Decision, TableError> {
        match self {
            Skipped::Allowed(reason) => Ok(free(reason)),
            Skipped::Denied(reason) => Ok(closed(reason)),
            Skipped::Failed(error) => Err(error),
            Skipped::Told(decision) => Ok(decision),
        }
    }
}

/// Refused until a place is free.
pub(super) fn full(until: u64, now: u64) -> Decision {
    let wait = if until == NEVER { NEVER } else { until.saturating_sub(now) };
    Decision { verdict: Verdict::Denied, reason: Reason::TableFull, remaining: 0, retry_after: wait, reset_after: wait }
}
