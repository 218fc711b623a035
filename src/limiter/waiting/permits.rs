//! The permits that callers wait for, and when they come.

use crate::algorithm::{Algorithm, Charge};
use crate::decision::{Decision, Reason, Verdict};
use crate::units::NEVER;

/// The permits that [`wait`](super::wait) waits for: those of a limiter, or of a table's key.
pub(crate) trait Permits {
    type Error;

    fn now(&self) -> u64;

    /// Takes the permits now, or returns the time to wait.
    fn check(&self, now: u64, cost: u64) -> Result<Decision, Self::Error>;

    /// What [`Permits::check`] would return.
    fn peek(&self, now: u64, cost: u64) -> Result<Decision, Self::Error>;

    /// Books the permits for the earliest instant; `None` if that is after `until`.
    fn book(&self, now: u64, cost: u64, until: u64) -> Result<Option<u64>, Self::Error>;

    /// Whether [`Permits::book`] works.
    fn books_ahead(&self) -> Result<bool, Self::Error>;

    /// Whether refusals lead to a ban.
    fn counts_refusals(&self) -> Result<bool, Self::Error>;

    /// Gives a booking back, as far as the limiter takes it.
    fn give_back(&self, booking: Charge);

    /// When the last of requests for `costs` would pass, which come one after the other from `now`
    /// on, or earlier. The call may stop after `until`.
    fn last_of(
        &self,
        now: u64,
        costs: &mut dyn Iterator<Item = u64>,
        until: u64,
    ) -> Result<u64, Self::Error>;

    /// [`Permits::peek`] for a caller that may wait until `deadline`. Where refusals lead to a ban,
    /// a peek shows the ban after the refusal. The caller is not refused, so the wait here is that
    /// for the permits.
    fn ask(&self, now: u64, cost: u64, deadline: u64) -> Result<Decision, Self::Error> {
        let decision = self.peek(now, cost)?;
        if decision.verdict == Verdict::Denied && self.counts_refusals()? {
            let at = self.last_of(now, &mut core::iter::once(cost), deadline)?;
            if at != NEVER && at <= deadline {
                return Ok(Decision { retry_after: at.saturating_sub(now), ..decision }
                    .because(Reason::Rate));
            }
        }
        Ok(decision)
    }

    /// [`Permits::check`] for a caller that may wait until `deadline`. If the permits come by then,
    /// the call records no refusal, because a refusal could lead to a ban.
    fn try_until(&self, now: u64, cost: u64, deadline: u64) -> Result<Decision, Self::Error> {
        if self.counts_refusals()? {
            let decision = self.ask(now, cost, deadline)?;
            if decision.verdict == Verdict::Denied && in_time(&decision, now, deadline) {
                return Ok(decision);
            }
        }
        self.check(now, cost)
    }

    /// Takes or books the permits for a caller that is the first of its queue.
    fn take(&self, now: u64, cost: u64, deadline: u64) -> Result<TakeAttempt, Self::Error> {
        if self.books_ahead()? {
            return Ok(self.book(now, cost, deadline)?.map_or(TakeAttempt::Late, TakeAttempt::At));
        }
        let decision = self.try_until(now, cost, deadline)?;
        Ok(match decision.is_allowed() {
            true => TakeAttempt::At(now),
            false if in_time(&decision, now, deadline) => {
                TakeAttempt::Again(now.saturating_add(decision.retry_after))
            }
            false => TakeAttempt::Late,
        })
    }
}

/// What a first caller gets.
pub(crate) enum TakeAttempt {
    /// The permits, which may be used at that time.
    At(u64),
    /// Nothing. The algorithm cannot book ahead, and the permits may be there at that time.
    Again(u64),
    /// Nothing. The permits come after the deadline, or never.
    Late,
}

/// [`Permits::last_of`] by the state's word: what the first callers of a queue will do in turn.
pub(crate) fn last_by_steps<A: Algorithm>(
    algorithm: &A,
    mut state: u64,
    mut now: u64,
    costs: &mut dyn Iterator<Item = u64>,
    until: u64,
) -> u64 {
    for cost in costs {
        let (at, next) = match algorithm.books_ahead() {
            true => algorithm
                .reserve(state, now, cost)
                .map_or((NEVER, None), |booked| (booked.at, Some(booked.next))),
            false => {
                let at = algorithm.admits_at(state, now, cost);
                (at, algorithm.step(state, at, cost).next)
            }
        };
        now = at;
        if now > until {
            break;
        }
        state = next.unwrap_or(state);
    }
    now
}

/// What is left of `costs` when the first ones have got `permits`.
pub(crate) fn after_first<'a>(
    mut permits: u64,
    costs: &'a mut dyn Iterator<Item = u64>,
) -> impl Iterator<Item = u64> + 'a {
    costs.filter_map(move |cost| {
        let paid = cost.min(permits);
        permits -= paid;
        Some(cost - paid).filter(|&rest| rest != 0)
    })
}

/// [`Permits::last_of`] by `peek`, for states that only a decision can read. It looks one limit
/// ahead: if the costs are more, the result is the time at which half of them would be there, or a
/// quarter, and so on.
pub(crate) fn last_by_peeks<E>(
    now: u64,
    costs: &mut dyn Iterator<Item = u64>,
    peek: impl Fn(u64) -> Result<Decision, E>,
) -> Result<u64, E> {
    let mut sum = costs.fold(0, u64::saturating_add);
    while sum != 0 {
        let decision = peek(sum)?;
        if decision.verdict != Verdict::Never {
            return Ok(now.saturating_add(decision.retry_after));
        }
        sum /= 2;
    }
    Ok(now)
}

/// Whether a refused request could pass by `deadline`. False for an admitted request, and if no
/// wait helps (a limit of 0).
pub(crate) fn in_time(decision: &Decision, now: u64, deadline: u64) -> bool {
    decision.retry_ns().is_some_and(|wait| now.saturating_add(wait) <= deadline)
}
