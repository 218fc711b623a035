//! Any one-word algorithm, chosen at run time.

use super::fixed_window::FixedWindow;
use super::gcra::Gcra;
use super::interval::Interval;
use super::pacer::Pacer;
use super::warm_up::WarmUp;
use super::weighted_window::WeightedWindow;
use super::{describe, Algorithm, Reservation, Step};
use crate::decision::{Decision, Verdict};
use crate::policy::{Kind, Policy, PolicyError};
use crate::units::{LAST, NEVER};

/// A compiled policy of any algorithm whose state is one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// A limit of 0: denies all.
    Closed,
    /// Token bucket.
    Gcra(Gcra),
    /// Interval refill.
    Interval(Interval),
    /// Fixed window.
    FixedWindow(FixedWindow),
    /// Weighted window.
    WeightedWindow(WeightedWindow),
    /// Pacer, and the token bucket that lends.
    Pacer(Pacer),
    /// Warm-up.
    WarmUp(WarmUp),
}

/// The same call on whichever algorithm it is; `$closed` for a limit of 0.
macro_rules! each {
    ($self:ident, $a:ident => $call:expr, $closed:expr) => {
        match $self {
            Rule::Closed => $closed,
            Rule::Gcra($a) => $call,
            Rule::Interval($a) => $call,
            Rule::FixedWindow($a) => $call,
            Rule::WeightedWindow($a) => $call,
            Rule::Pacer($a) => $call,
            Rule::WarmUp($a) => $call,
        }
    };
}

impl Rule {
    /// Compiles a policy. [`PolicyError::NotOneWord`] if its algorithm is the sliding window or the
    /// sliding log.
    pub fn new(policy: &Policy) -> Result<Rule, PolicyError> {
        policy.validate()?;
        if matches!(policy.kind, Kind::SlidingWindow | Kind::SlidingLog) {
            return Err(PolicyError::NotOneWord);
        }
        if policy.limit == 0 {
            return Ok(Rule::Closed);
        }
        Ok(match policy.kind {
            Kind::Gcra if policy.borrow => Rule::Pacer(Pacer::new(policy)?),
            Kind::Gcra => Rule::Gcra(Gcra::new(policy)?),
            Kind::Interval => Rule::Interval(Interval::new(policy)?),
            Kind::FixedWindow => Rule::FixedWindow(FixedWindow::new(policy)?),
            Kind::WeightedWindow => Rule::WeightedWindow(WeightedWindow::new(policy)?),
            Kind::Pacer => Rule::Pacer(Pacer::new(policy)?),
            Kind::WarmUp => Rule::WarmUp(WarmUp::new(policy)?),
            Kind::SlidingWindow | Kind::SlidingLog => return Err(PolicyError::NotOneWord),
        })
    }

    /// The state of a key under a changed policy: `state` belongs to `old`, the result to this rule.
    ///
    /// Where the two count alike, what has been used stays used, or as much of it as the new limit is: equal
    /// rules, windows of the same length and alignment, refills of as many permits at the same times. Every
    /// other pair keeps the time at which the old state would have been as good as fresh, and owes everything
    /// until then ([`Algorithm::owing`]).
    ///
    /// It is 0 only for 0; it expires no earlier than `state` did under `old`; and over a change no more is
    /// admitted than `old` could have up to it, and this rule to a fresh state after it. A state that has
    /// expired needs no adopting, and where this rule counts in windows one that has just done so may be taken
    /// to owe the rest of a window: who knows the time puts the fresh word 0 in its place.
    pub fn adopt(&self, old: &Rule, state: u64) -> u64 {
        if state == 0 || self == old {
            return state;
        }
        match self.adopt_alike(old, state) {
            Some(word) if word != 0 => word,
            _ => self.owing(old.expires_at(state)),
        }
    }

    fn adopt_alike(&self, old: &Rule, state: u64) -> Option<u64> {
        match (self, old) {
            (Rule::Interval(new), Rule::Interval(old)) => new.adopt(old, state),
            (Rule::FixedWindow(new), Rule::FixedWindow(old)) => new.adopt(old, state),
            (Rule::WeightedWindow(new), Rule::WeightedWindow(old)) => new.adopt(old, state),
            _ => None,
        }
    }

    /// The state of a key under a changed policy that keeps its permits as a number: `state` belongs to `old`, the result to
    /// this rule, which takes over at `now`.
    ///
    /// The result has as many permits left as `state`, rounded down, and no more than a fresh state; a debt (pacer, borrow,
    /// warm-up) stays as many permits, up to this rule's burst. So no wait is longer than this rule refills, and what was
    /// refused is not admitted by the change. Where the two count alike ([`Rule::adopt`]) the permits used are kept, and where
    /// one is closed, which counts nothing, the time. It is 0 for a fresh state. Unlike [`Rule::adopt`]'s it may expire earlier
    /// than `state` did.
    pub fn convert(&self, old: &Rule, state: u64, now: u64) -> u64 {
        if state == 0 || self == old {
            return state;
        }
        match self.adopt_alike(old, state) {
            Some(word) if word != 0 => word,
            _ if matches!((self, old), (Rule::Closed, _) | (_, Rule::Closed)) => self.owing(old.expires_at(state)),
            _ => {
                let lacking = self.available(0, now).saturating_sub(old.available(state, now));
                self.charged(lacking.saturating_add(old.debt(state, now)), now)
            }
        }
    }

    /// The permits that must come back before the first one of a state does.
    fn debt(&self, state: u64, now: u64) -> u64 {
        match self {
            Rule::Pacer(pacer) => pacer.debt(state, now),
            Rule::WarmUp(warm_up) => warm_up.debt(state, now),
            _ => 0,
        }
    }

    /// The permits that a state lacks to a fresh one at `now`, rounded up. For those that can be in debt (pacer, borrow,
    /// warm-up) the debt is among them.
    pub fn owed(&self, state: u64, now: u64) -> u64 {
        match self {
            _ if state == 0 => 0,
            Rule::Pacer(pacer) => pacer.owed(state, now),
            Rule::WarmUp(warm_up) => warm_up.owed(state, now),
            _ => self.available(0, now).saturating_sub(self.available(state, now)),
        }
    }

    /// A state that lacks `permits` to a fresh one at `now`, or as many as the burst is; 0 for none.
    pub fn charged(&self, permits: u64, now: u64) -> u64 {
        let most = match self {
            Rule::Pacer(pacer) => return pacer.charged(permits, now),
            Rule::WarmUp(warm_up) => warm_up.most(),
            _ => self.available(0, now),
        };
        match permits {
            0 => 0,
            // A bucket that starts empty begins to fill.
            _ => self.step(0, now, permits.min(most).max(1)).next.unwrap_or(0),
        }
    }

    #[inline(never)]
    fn expires_other(&self, state: u64) -> u64 {
        each!(self, a => a.expires_at(state), state)
    }

    #[inline(never)]
    fn describe_other(&self, verdict: Verdict, state: u64, now: u64, cost: u64) -> Decision {
        describe(self, verdict, state, now, cost)
    }

    #[inline(never)]
    fn step_other(&self, state: u64, now: u64, cost: u64) -> Step {
        let closed = if cost == 0 { Step::ask() } else { Step::deny() };
        each!(self, a => a.step(state, now, cost), closed)
    }
}

impl Algorithm for Rule {
    const BOOKS_AHEAD: bool = true;

    fn last_time(&self) -> u64 {
        each!(self, a => a.last_time(), LAST)
    }

    #[inline]
    fn books_ahead(&self) -> bool {
        each!(self, a => a.books_ahead(), false)
    }

    /// The bucket is what nearly everybody uses: it is tried first, and inlined.
    #[inline(always)]
    fn step(&self, state: u64, now: u64, cost: u64) -> Step {
        match self {
            Rule::Gcra(gcra) => gcra.step(state, now, cost),
            _ => self.step_other(state, now, cost),
        }
    }

    #[inline(always)]
    fn describe(&self, verdict: Verdict, state: u64, now: u64, cost: u64) -> Decision {
        match self {
            Rule::Gcra(gcra) => gcra.describe(verdict, state, now, cost),
            _ => self.describe_other(verdict, state, now, cost),
        }
    }

    #[inline]
    fn available(&self, state: u64, now: u64) -> u64 {
        each!(self, a => a.available(state, now), 0)
    }

    #[inline]
    fn admits_at(&self, state: u64, now: u64, cost: u64) -> u64 {
        let closed = if cost == 0 { now } else { NEVER };
        each!(self, a => a.admits_at(state, now, cost), closed)
    }

    #[inline]
    fn fresh_at(&self, state: u64, now: u64) -> u64 {
        each!(self, a => a.fresh_at(state, now), now)
    }

    /// A limit of 0 keeps in its word the time until which something was owed when it came.
    #[inline(always)]
    fn expires_at(&self, state: u64) -> u64 {
        match self {
            Rule::Gcra(gcra) => gcra.expires_at(state),
            _ => self.expires_other(state),
        }
    }

    #[inline(never)]
    fn owing(&self, until: u64) -> u64 {
        each!(self, a => a.owing(until), until.max(1))
    }

    #[inline]
    fn reserve(&self, state: u64, now: u64, cost: u64) -> Option<Reservation> {
        each!(self, a => a.reserve(state, now, cost), None)
    }
}
