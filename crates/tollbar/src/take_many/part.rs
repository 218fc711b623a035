//! One limit of several: its look, its charge, and what takes the charge back.

use super::{AnyLimiter, Limit, ManyError, LIMITS_MOST};
use crate::algorithm::Charge;
use crate::decision::{Decision, Verdict};
#[cfg(not(loom))]
use crate::table::{KeyLimit, Look};

/// A limit of the request, with the costs of all that are the same.
#[derive(Clone, Copy)]
pub(super) struct Part<'a> {
    pub(super) target: Target<'a>,
    /// Which of the caller's limits it is: a bit each, and the first of them.
    pub(super) limits: u32,
    pub(super) index: usize,
    pub(super) cost: u64,
    now: u64,
    /// The caller's time.
    given: bool,
    pub(super) refill: u64,
    #[cfg(not(loom))]
    look: Option<Look<'a>>,
    /// What the limit has said last.
    pub(super) decision: Option<Decision>,
}

#[derive(Clone, Copy)]
pub(super) enum Target<'a> {
    None,
    Limiter(&'a dyn AnyLimiter),
    #[cfg(not(loom))]
    Key(KeyLimit<'a>),
}

impl<'a> Target<'a> {
    #[inline]
    pub(super) fn of(limit: &Limit<'a>) -> (Target<'a>, u64) {
        match *limit {
            Limit::Unlimited => (Target::None, 0),
            Limit::Limiter(limiter, cost) => (Target::Limiter(limiter), cost),
            #[cfg(not(loom))]
            Limit::Key(table, policy, key, cost) => (Target::Key(KeyLimit { table, policy, key }), cost),
        }
    }

    #[inline]
    pub(super) fn is(&self, other: &Target<'_>) -> bool {
        match (self, other) {
            (Target::None, Target::None) => true,
            (Target::Limiter(a), Target::Limiter(b)) => address(*a) == address(*b),
            #[cfg(not(loom))]
            (Target::Key(a), Target::Key(b)) => a.is(b),
            _ => false,
        }
    }

    pub(super) fn now(&self) -> u64 {
        match self {
            Target::None => 0,
            Target::Limiter(limiter) => limiter.now(),
            #[cfg(not(loom))]
            Target::Key(key) => key.table.now(),
        }
    }

    #[inline]
    pub(super) fn count(&self, verdict: Verdict) {
        match self {
            Target::None => {}
            Target::Limiter(limiter) => limiter.count(verdict),
            #[cfg(not(loom))]
            Target::Key(key) => key.count(verdict),
        }
    }

    /// What orders limits that refill alike: the same for all threads of a process.
    pub(super) fn rank(&self) -> u64 {
        match self {
            Target::None => 0,
            Target::Limiter(limiter) => address(*limiter) as u64,
            #[cfg(not(loom))]
            Target::Key(key) => key.hash(),
        }
    }
}

fn address(limiter: &dyn AnyLimiter) -> usize {
    core::ptr::from_ref(limiter).cast::<()>() as usize
}

impl<'a> Part<'a> {
    #[inline]
    pub(super) fn new(target: Target<'a>, index: usize, cost: u64, now: u64, given: bool) -> Part<'a> {
        Part {
            target,
            limits: 1 << index,
            index,
            cost,
            now,
            given,
            refill: u64::MAX,
            #[cfg(not(loom))]
            look: None,
            decision: None,
        }
    }

    /// Looks at the limit; whether it admits the cost.
    #[inline]
    pub(super) fn look(&mut self) -> Result<bool, ManyError> {
        Ok(match &self.target {
            Target::None => true,
            Target::Limiter(limiter) => {
                self.refill = limiter.refill();
                limiter.peek_at(self.now, self.cost).is_allowed()
            }
            #[cfg(not(loom))]
            Target::Key(key) => {
                let look = key.look(self.now, self.cost).map_err(|error| ManyError::Table(self.index, error))?;
                (self.refill, self.look) = (look.refill, Some(look));
                look.verdict == Verdict::Allowed
            }
        })
    }

    /// Makes the refusal that the look has found: a bucket with `init` begins to fill with it, and some policies count it. If a reset or
    /// another thread has come between and the limit admits the cost, that is given back.
    #[inline(never)]
    pub(super) fn refuse(&mut self) {
        // An error would have been the look's.
        if let Ok(true) = self.charge() {
            self.undo();
            self.decision = None;
        }
    }

    /// Charges the limit; whether it admits the cost.
    #[inline]
    pub(super) fn charge(&mut self) -> Result<bool, ManyError> {
        let decision = match &self.target {
            Target::None => return Ok(true),
            Target::Limiter(limiter) => limiter.charge_at(self.now, self.cost),
            #[cfg(not(loom))]
            Target::Key(key) => {
                if self.look.is_some_and(|look| key.charge_looked(&look, self.now).is_some()) {
                    return Ok(true);
                }
                self.look = None;
                key.charge(self.now, self.cost).map_err(|error| ManyError::Table(self.index, error))?
            }
        };
        self.decision = Some(decision);
        Ok(decision.is_allowed())
    }

    pub(super) fn undo(&self) {
        let charge = Charge { at: self.now, cost: self.cost };
        let now = || if self.given { self.now } else { self.target.now() };
        match &self.target {
            Target::None => {}
            Target::Limiter(limiter) => limiter.undo(charge, &now),
            #[cfg(not(loom))]
            Target::Key(key) => key.undo(charge, &now),
        }
    }

    /// What the limit says of the request that it has admitted.
    pub(super) fn told(&self) -> Option<Decision> {
        match (&self.target, self.decision) {
            (_, Some(decision)) => Some(decision),
            #[cfg(not(loom))]
            (Target::Key(key), None) => key.describe_looked(self.look.as_ref()?, self.now, self.cost),
            _ => None,
        }
    }

    /// Tells every limit that is this part what it has said.
    pub(super) fn tell(&self, decision: Decision, decisions: &mut [Decision]) {
        for (index, told) in decisions.iter_mut().enumerate().take(LIMITS_MOST) {
            if self.limits >> index & 1 != 0 {
                *told = decision;
            }
        }
    }

    /// What the limit would say of the request now, of which nothing is charged.
    pub(super) fn peek(&self) -> Option<Decision> {
        match &self.target {
            Target::None => None,
            Target::Limiter(limiter) => Some(limiter.peek_at(self.now, self.cost)),
            #[cfg(not(loom))]
            Target::Key(key) => key.peek(self.now, self.cost).ok(),
        }
    }
}
