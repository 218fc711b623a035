//! What a request is told.

use super::error::TableError;
use crate::algorithm::{Algorithm, Rule};
use crate::decision::{Decision, Verdict};
use crate::units::NEVER;

/// What a request is told: a [`Verdict`] or a [`Decision`], with the error or with a refusal in its place.
pub(crate) trait Answer: Sized {
    /// `verdict` was given at `now` by `rule`, and `state` is the state after it.
    fn known(rule: &Rule, verdict: Verdict, state: u64, now: u64, cost: u64) -> Self;

    /// Of what has been told in full.
    fn told(decision: Decision) -> Self;

    /// There is no answer.
    fn failed(error: TableError) -> Self;
}

/// How a request ended before the table was asked.
pub(super) enum Skipped {
    Allowed,
    Denied,
    Failed(TableError),
    /// It did not: the answer is here.
    Told(Decision),
}

/// What an exempt key, or one that is missing and allowed, is told.
pub(super) const FREE: Decision =
    Decision { verdict: Verdict::Allowed, remaining: u64::MAX, retry_after: 0, reset_after: 0 };
/// What a request is told that no waiting can help.
pub(super) const CLOSED: Decision =
    Decision { verdict: Verdict::Denied, remaining: 0, retry_after: NEVER, reset_after: NEVER };

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
    fn failed(_: TableError) -> Decision {
        CLOSED
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
    fn failed(error: TableError) -> Self {
        Err(error)
    }
}

impl Skipped {
    #[cold]
    pub(super) fn decision(self) -> Result<Decision, TableError> {
        match self {
            Skipped::Allowed => Ok(FREE),
            Skipped::Denied => Ok(CLOSED),
            Skipped::Failed(error) => Err(error),
            Skipped::Told(decision) => Ok(decision),
        }
    }
}

/// Refused until a place is free.
pub(super) fn full(until: u64, now: u64) -> Decision {
    let wait = if until == NEVER { NEVER } else { until.saturating_sub(now) };
    Decision { verdict: Verdict::Denied, remaining: 0, retry_after: wait, reset_after: wait }
}
