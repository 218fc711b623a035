//! Answers to requests.

use crate::algorithm::{Algorithm, Rule};
use crate::decision::{Decision, Reason, Verdict};
use crate::table::memory::error::RequestError;
use crate::units::NEVER;

/// The answer to a request: a [`Verdict`] or a [`Decision`], which are refusals in case of an
/// error, or a `Result` of either.
pub trait Answer: Sized {
    /// Whether the answer has more than the verdict.
    const IS_FULL: bool;

    /// The answer to a request for `cost` to which `rule` gave `verdict` at `now`. `state` is the
    /// key's state after the request.
    fn of_step(rule: &Rule, verdict: Verdict, state: u64, now: u64, cost: u64) -> Self;

    /// The answer that says `decision`.
    fn of_decision(decision: Decision) -> Self;

    /// The answer to a request that failed with `error`.
    fn of_error(error: RequestError) -> Self;

    /// The verdict of the answer. An error is a refusal.
    fn verdict(&self) -> Verdict;

    /// The answer to an admitted request. It calls `full` only if it has more than the verdict.
    #[inline(always)]
    fn of_admission(full: impl FnOnce() -> Decision) -> Self {
        Self::of_decision(full())
    }

    /// The answer that says the decision, or the error.
    #[inline(always)]
    fn of(decision: Result<Decision, RequestError>) -> Self {
        match decision {
            Ok(decision) => Self::of_decision(decision),
            Err(error) => Self::of_error(error),
        }
    }

    /// The same answer with `permits` of the calling thread's credit added to the remaining ones.
    #[inline(always)]
    #[must_use]
    fn with_credit(self, permits: u64) -> Self {
        let _ = permits;
        self
    }
}

/// An admission that charges no slot.
pub(crate) const fn uncharged(reason: Reason) -> Decision {
    Decision::admitted(u64::MAX).because(reason)
}

/// A refusal that no wait ends.
pub(crate) const fn closed(reason: Reason) -> Decision {
    Decision {
        verdict: Verdict::Denied,
        reason,
        remaining: 0,
        retry_after: NEVER,
        reset_after: NEVER,
        bound: 0,
    }
}

impl Answer for Verdict {
    const IS_FULL: bool = false;

    #[inline(always)]
    fn verdict(&self) -> Verdict {
        *self
    }

    #[inline(always)]
    fn of_step(_: &Rule, verdict: Verdict, _: u64, _: u64, _: u64) -> Verdict {
        verdict
    }

    #[inline(always)]
    fn of_admission(_: impl FnOnce() -> Decision) -> Verdict {
        Verdict::Allowed
    }

    #[inline(always)]
    fn of_decision(decision: Decision) -> Verdict {
        decision.verdict
    }

    #[inline(always)]
    fn of_error(_: RequestError) -> Verdict {
        Verdict::Denied
    }
}

impl Answer for Decision {
    const IS_FULL: bool = true;

    #[inline(always)]
    fn verdict(&self) -> Verdict {
        self.verdict
    }

    #[inline(always)]
    fn of_step(rule: &Rule, verdict: Verdict, state: u64, now: u64, cost: u64) -> Decision {
        rule.describe(verdict, state, now, cost)
    }

    #[inline(always)]
    fn of_decision(decision: Decision) -> Decision {
        decision
    }

    #[inline(always)]
    fn of_error(_: RequestError) -> Decision {
        closed(Reason::Fault)
    }

    #[inline(always)]
    fn with_credit(self, permits: u64) -> Decision {
        Decision { remaining: self.remaining.saturating_add(permits), ..self }
    }
}

impl<A: Answer> Answer for Result<A, RequestError> {
    const IS_FULL: bool = A::IS_FULL;

    #[inline(always)]
    fn verdict(&self) -> Verdict {
        self.as_ref().map_or(Verdict::Denied, A::verdict)
    }

    #[inline(always)]
    fn of_step(rule: &Rule, verdict: Verdict, state: u64, now: u64, cost: u64) -> Self {
        Ok(A::of_step(rule, verdict, state, now, cost))
    }

    #[inline(always)]
    fn of_admission(full: impl FnOnce() -> Decision) -> Self {
        Ok(A::of_admission(full))
    }

    #[inline(always)]
    fn of_decision(decision: Decision) -> Self {
        Ok(A::of_decision(decision))
    }

    #[inline(always)]
    fn of_error(error: RequestError) -> Self {
        Err(error)
    }

    #[inline(always)]
    fn with_credit(self, permits: u64) -> Self {
        self.map(|answer| answer.with_credit(permits))
    }
}

/// A refusal by a full table, until a slot expires at `until`.
pub(crate) fn full(until: u64, now: u64) -> Decision {
    let wait = if until == NEVER { NEVER } else { until.saturating_sub(now) };
    Decision {
        verdict: Verdict::Denied,
        reason: Reason::TableFull,
        remaining: 0,
        retry_after: wait,
        reset_after: wait,
        bound: 0,
    }
}

/// [`Answer::of_step`] for slow paths, which share one copy of a full decision.
#[inline(always)]
pub(crate) fn of_slow_step<A: Answer>(
    rule: &Rule,
    verdict: Verdict,
    state: u64,
    now: u64,
    cost: u64,
) -> A {
    match A::IS_FULL {
        true => A::of_decision(describe(rule, verdict, state, now, cost)),
        false => A::of_step(rule, verdict, state, now, cost),
    }
}

/// [`Algorithm::describe`], compiled once for all slow paths.
#[inline(never)]
pub(crate) fn describe(rule: &Rule, verdict: Verdict, state: u64, now: u64, cost: u64) -> Decision {
    rule.describe(verdict, state, now, cost)
}
