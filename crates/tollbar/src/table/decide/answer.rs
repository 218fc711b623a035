//! What a request is told.

use crate::algorithm::{Algorithm, Rule};
use crate::decision::{Decision, Reason, Verdict};
use crate::table::memory::error::TableError;
use crate::units::NEVER;

/// What a request is told: a [`Verdict`] or a [`Decision`], either with a refusal in place of an error, or as a result.
pub trait Answer: Sized {
    /// Whether it has more than the verdict.
    const IS_FULL: bool;

    /// The answer of a request for `cost` that `rule` gave `verdict` at `now`; `state` is the key's state after it.
    fn known(rule: &Rule, verdict: Verdict, state: u64, now: u64, cost: u64) -> Self;

    /// The answer of a full decision.
    fn told(decision: Decision) -> Self;

    /// The answer of a request that was admitted; `full` makes the full decision, for those who want it.
    #[inline(always)]
    fn allowed(full: impl FnOnce() -> Decision) -> Self {
        Self::told(full())
    }

    /// The same answer, with the permits that the calling thread has in advance among those that remain.
    #[inline(always)]
    #[must_use]
    fn with_credit(self, permits: u64) -> Self {
        let _ = permits;
        self
    }

    /// There is no answer.
    fn failed(error: TableError) -> Self;

    /// The answer of a full decision, or of the error in its place.
    #[inline(always)]
    fn of(decision: Result<Decision, TableError>) -> Self {
        match decision {
            Ok(decision) => Self::told(decision),
            Err(error) => Self::failed(error),
        }
    }
}

/// A request that passes without being charged to its slot.
pub(crate) const fn uncharged(reason: Reason) -> Decision {
    Decision { verdict: Verdict::Allowed, reason, remaining: u64::MAX, retry_after: 0, reset_after: 0 }
}

/// A refusal that no waiting can help.
pub(crate) const fn closed(reason: Reason) -> Decision {
    Decision { verdict: Verdict::Denied, reason, remaining: 0, retry_after: NEVER, reset_after: NEVER }
}

impl Answer for Verdict {
    const IS_FULL: bool = false;

    #[inline(always)]
    fn known(_: &Rule, verdict: Verdict, _: u64, _: u64, _: u64) -> Verdict {
        verdict
    }

    #[inline(always)]
    fn told(decision: Decision) -> Verdict {
        decision.verdict
    }

    #[inline(always)]
    fn allowed(_: impl FnOnce() -> Decision) -> Verdict {
        Verdict::Allowed
    }

    #[inline(always)]
    fn failed(_: TableError) -> Verdict {
        Verdict::Denied
    }
}

impl Answer for Decision {
    const IS_FULL: bool = true;

    #[inline(always)]
    fn known(rule: &Rule, verdict: Verdict, state: u64, now: u64, cost: u64) -> Decision {
        rule.describe(verdict, state, now, cost)
    }

    #[inline(always)]
    fn told(decision: Decision) -> Decision {
        decision
    }

    #[inline(always)]
    fn with_credit(self, permits: u64) -> Decision {
        Decision { remaining: self.remaining.saturating_add(permits), ..self }
    }

    #[inline(always)]
    fn failed(_: TableError) -> Decision {
        closed(Reason::Fault)
    }
}

impl<A: Answer> Answer for Result<A, TableError> {
    const IS_FULL: bool = A::IS_FULL;

    #[inline(always)]
    fn known(rule: &Rule, verdict: Verdict, state: u64, now: u64, cost: u64) -> Self {
        Ok(A::known(rule, verdict, state, now, cost))
    }

    #[inline(always)]
    fn told(decision: Decision) -> Self {
        Ok(A::told(decision))
    }

    #[inline(always)]
    fn allowed(full: impl FnOnce() -> Decision) -> Self {
        Ok(A::allowed(full))
    }

    #[inline(always)]
    fn with_credit(self, permits: u64) -> Self {
        self.map(|answer| answer.with_credit(permits))
    }

    #[inline(always)]
    fn failed(error: TableError) -> Self {
        Err(error)
    }
}

/// A refusal until a slot is free.
pub(crate) fn full(until: u64, now: u64) -> Decision {
    let wait = if until == NEVER { NEVER } else { until.saturating_sub(now) };
    Decision { verdict: Verdict::Denied, reason: Reason::TableFull, remaining: 0, retry_after: wait, reset_after: wait }
}

/// [`Algorithm::describe`], once for all slow paths.
#[inline(never)]
pub(crate) fn describe(rule: &Rule, verdict: Verdict, state: u64, now: u64, cost: u64) -> Decision {
    rule.describe(verdict, state, now, cost)
}
