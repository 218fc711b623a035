//! Requests that leave a reserve: that of their class, or the caller's.

use super::Table;
use crate::algorithm::{needed, step_leaving};
use crate::decision::{Decision, Reason, Verdict};
use crate::policy::PolicyError;
use crate::table::memory::error::RequestError;
use crate::table::policies::compiled::Version;
use crate::table::policies::local::Scratch;
use crate::table::policies::PolicyId;

/// The reserve of a request: how many permits must be left after it.
#[derive(Clone, Copy)]
enum Leave<'a> {
    Permits(u64),
    /// The reserve of this class, given by its name or number.
    Class(&'a [u8]),
}

impl Table {
    /// [`Table::check`] of a request that passes only if the key has at least `reserve` permits
    /// left after it ([`Limiter::check_leaving`](crate::Limiter::check_leaving)). Credit that
    /// threads have of a hot key counts as taken.
    ///
    /// # Errors
    /// Those of [`Table::try_check`], and [`PolicyError::OptionMismatch`] as the
    /// [`RequestError::Policy`] for policies that cannot keep a reserve.
    pub fn check_leaving(
        &self,
        policy: PolicyId,
        key: &[u8],
        cost: u64,
        reserve: u64,
    ) -> Result<Decision, RequestError> {
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
    ) -> Result<Decision, RequestError> {
        self.counted_of(
            policy,
            key,
            now,
            self.take_leaving(policy, key, now, cost, Leave::Permits(reserve)),
        )
    }

    /// [`Table::check`] of a request of a class of the policy, given by its name, or by its number:
    /// "1" for the first one ([`Limiter::check_class`](crate::Limiter::check_class)). A key with an
    /// override has the override's classes. Credit that threads have of a hot key counts as taken,
    /// except for a class without a reserve, which spends it.
    ///
    /// # Errors
    /// Those of [`Table::try_check`], and [`PolicyError::NoSuchClass`] as the
    /// [`RequestError::Policy`]. Nothing has been charged.
    pub fn check_class(
        &self,
        policy: PolicyId,
        key: &[u8],
        cost: u64,
        class: &str,
    ) -> Result<Decision, RequestError> {
        self.check_class_at(policy, key, self.now(), cost, class.as_bytes())
    }

    /// [`Table::check_class`] at the caller's time, for a class as bytes.
    ///
    /// # Errors
    /// Those of [`Table::check_class`].
    pub fn check_class_at(
        &self,
        policy: PolicyId,
        key: &[u8],
        now: u64,
        cost: u64,
        class: &[u8],
    ) -> Result<Decision, RequestError> {
        self.counted_of(
            policy,
            key,
            now,
            self.take_leaving(policy, key, now, cost, Leave::Class(class)),
        )
    }

    /// The permits that a request of a class leaves. 0 if the table decides without the key's
    /// policy.
    pub(super) fn reserve_of(
        &self,
        policy: PolicyId,
        key: &[u8],
        class: &[u8],
    ) -> Result<u64, RequestError> {
        let mut scratch = Scratch::new();
        match self.prepare(policy, key, &mut scratch) {
            Ok((version, _)) => Leave::Class(class).of(version),
            Err(decided) => decided.map(|_| 0),
        }
    }

    /// [`Table::check_leaving_at`] without counting the decision.
    pub(super) fn charge_leaving(
        &self,
        policy: PolicyId,
        key: &[u8],
        now: u64,
        cost: u64,
        reserve: u64,
    ) -> Result<Decision, RequestError> {
        self.take_leaving(policy, key, now, cost, Leave::Permits(reserve))
    }

    /// The decision that [`Table::check_leaving_at`] would make. It changes nothing.
    pub(super) fn peek_leaving(
        &self,
        policy: PolicyId,
        key: &[u8],
        now: u64,
        cost: u64,
        reserve: u64,
    ) -> Result<Decision, RequestError> {
        let decision = self.try_peek(policy, key, Some(now), needed(cost, reserve))?;
        let without =
            || self.try_peek(policy, key, Some(now), cost).is_ok_and(|plain| plain.is_allowed());
        Ok(if_reserved(decision, !decision.is_allowed() && without()))
    }

    #[inline(never)]
    fn take_leaving(
        &self,
        policy: PolicyId,
        key: &[u8],
        now: u64,
        cost: u64,
        leave: Leave<'_>,
    ) -> Result<Decision, RequestError> {
        let mut scratch = Scratch::new();
        let (version, hash) = match self.prepare(policy, key, &mut scratch) {
            Ok(prepared) => prepared,
            Err(decided) => return decided,
        };
        let reserve = leave.of(version)?;
        self.policies.memory.note_time(now);
        if reserve == 0 {
            if let Some(decision) = self.decide_by_credit(version, hash, now, cost) {
                return Ok(decision);
            }
        }
        let mut reserved = false;
        let decision =
            self.decide_by(version, hash, now, needed(cost, reserve), &mut |rule, state| {
                let step = step_leaving(rule, state, now, cost, reserve);
                // The step is out of line, so that it is compiled once for all slow paths.
                reserved = step.verdict != Verdict::Allowed
                    && rule.step_out_of_line(step.next.unwrap_or(state), now, cost).verdict
                        == Verdict::Allowed;
                step
            })?;
        // Another call has changed the policy to a window or log, which has no classes.
        let decision = decision.ok_or(leave.refused())?;
        Ok(if_reserved(decision, reserved))
    }

    /// Counts a decision, and records the key if the request was refused.
    fn counted_of(
        &self,
        policy: PolicyId,
        key: &[u8],
        now: u64,
        decided: Result<Decision, RequestError>,
    ) -> Result<Decision, RequestError> {
        let decision = self.counted(policy, decided)?;
        self.note_refusal(decision.verdict, policy, key, Some(now));
        Ok(decision)
    }
}

impl Leave<'_> {
    /// The permits to leave under `version`.
    fn of(self, version: &Version) -> Result<u64, RequestError> {
        match self {
            Leave::Class(class) => version.policy.classes.reserve(class),
            Leave::Permits(reserve) => {
                let keeps = version.multi_word.is_none() && version.rule.keeps_reserves();
                keeps.then_some(reserve)
            }
        }
        .ok_or(self.refused())
    }

    /// The error of a policy that lets no request leave permits.
    fn refused(self) -> RequestError {
        RequestError::Policy(match self {
            Leave::Class(_) => PolicyError::NoSuchClass,
            Leave::Permits(_) => PolicyError::OptionMismatch,
        })
    }
}

/// The decision, with the reason that the reserve refused if the plain limit did not.
fn if_reserved(decision: Decision, reserved: bool) -> Decision {
    match decision.reason {
        Reason::Rate | Reason::Burst if reserved => decision.because(Reason::Reserve),
        _ => decision,
    }
}
