//! Any one-word algorithm, chosen at run time.

mod conversion;

use super::ban::Ban;
use super::calendar::Calendar;
use super::curve::Curve;
use super::fixed_window::FixedWindow;
use super::gcra::{Gcra, Plain};
use super::interval::Interval;
use super::level_refill::LevelRefill;
use super::pacer::Pacer;
use super::pair::Pair;
use super::quota::Quota;
use super::warm_up::WarmUp;
use super::weighted_window::WeightedWindow;
use super::{describe, until, Algorithm, Charge, Charged, GiveBack, Reservation, Returned, Step};
use crate::decision::{Decision, Verdict};
use crate::policy::{Kind, Policy, PolicyError, Words};
use crate::units::{LAST, NEVER};

/// A compiled policy of any algorithm whose state is one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// A limit of 0: denies all.
    Closed,
    /// Token bucket.
    Gcra(Gcra),
    /// Token bucket with `ban`.
    Ban(Ban),
    /// Two token buckets.
    Pair(Pair),
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
    /// Lifetime quota.
    Quota(Quota),
    /// Refill curve.
    Curve(Curve),
    /// Token bucket with level-dependent refill.
    LevelRefill(LevelRefill),
    /// Calendar quota.
    Calendar(Calendar),
}

/// Calls the compiled algorithm; `$closed` is the result for a limit of 0.
macro_rules! each {
    ($self:ident, $a:ident => $call:expr, $closed:expr) => {
        match $self {
            Rule::Closed => $closed,
            Rule::Gcra($a) => $call,
            Rule::Ban($a) => $call,
            Rule::Pair($a) => $call,
            Rule::Interval($a) => $call,
            Rule::FixedWindow($a) => $call,
            Rule::WeightedWindow($a) => $call,
            Rule::Pacer($a) => $call,
            Rule::WarmUp($a) => $call,
            Rule::Quota($a) => $call,
            Rule::Curve($a) => $call,
            Rule::LevelRefill($a) => $call,
            Rule::Calendar($a) => $call,
        }
    };
}

impl Rule {
    /// Compiles a policy. A limit of 0 gives [`Rule::Closed`].
    ///
    /// # Errors
    /// [`PolicyError::NotOneWord`] for the sliding window and the sliding log, and those of the algorithm.
    pub fn new(policy: &Policy) -> Result<Rule, PolicyError> {
        policy.validate()?;
        match policy.kind.words() {
            Words::One => {}
            Words::Ring | Words::Log => return Err(PolicyError::NotOneWord),
        }
        if policy.limit == 0 {
            return Ok(Rule::Closed);
        }
        Ok(match policy.kind {
            Kind::Gcra if policy.borrow => Rule::Pacer(Pacer::new(policy)?),
            Kind::Gcra if policy.ban != 0 => Rule::Ban(Ban::new(policy)?),
            Kind::Gcra if policy.second.is_some() => Rule::Pair(Pair::new(policy)?),
            Kind::Gcra => Rule::Gcra(Gcra::new(policy)?),
            Kind::Interval => Rule::Interval(Interval::new(policy)?),
            Kind::FixedWindow => Rule::FixedWindow(FixedWindow::new(policy)?),
            Kind::WeightedWindow => Rule::WeightedWindow(WeightedWindow::new(policy)?),
            Kind::Pacer => Rule::Pacer(Pacer::new(policy)?),
            Kind::WarmUp => Rule::WarmUp(WarmUp::new(policy)?),
            Kind::Quota => Rule::Quota(Quota::new(policy)?),
            Kind::Curve => Rule::Curve(Curve::new(policy)?),
            Kind::LevelRefill => Rule::LevelRefill(LevelRefill::new(policy)?),
            Kind::Calendar => Rule::Calendar(Calendar::new(policy)?),
            Kind::SlidingWindow | Kind::SlidingLog => return Err(PolicyError::NotOneWord),
        })
    }

    /// The two token buckets of a list, if the rule is one.
    #[inline(always)]
    pub(crate) fn pair(&self) -> Option<&Pair> {
        let Rule::Pair(pair) = self else { return None };
        Some(pair)
    }

    /// The common case of a token bucket, if the rule is one.
    #[inline(always)]
    pub(crate) fn plain(&self) -> Option<&Plain> {
        let Rule::Gcra(gcra) = self else { return None };
        Some(gcra.plain())
    }

    /// `state` in a slot that stays taken until `until`, at the time `now`. With `exact` the debt is kept to the
    /// unit, and otherwise the time to a 64th. `None` if no word of the rule says so.
    pub(crate) fn hold(&self, state: u64, until: u64, now: u64, exact: bool) -> Option<u64> {
        match self {
            Rule::Gcra(gcra) => gcra.hold(state, until, now, exact),
            Rule::Closed
            | Rule::Ban(_)
            | Rule::Pair(_)
            | Rule::Interval(_)
            | Rule::FixedWindow(_)
            | Rule::WeightedWindow(_)
            | Rule::Pacer(_)
            | Rule::WarmUp(_)
            | Rule::Curve(_)
            | Rule::LevelRefill(_)
            | Rule::Calendar(_)
            | Rule::Quota(_) => None,
        }
    }

    /// The same rule for words of slots, whose TAT may have been lowered.
    pub(crate) fn in_slots(self) -> Rule {
        match self {
            Rule::Gcra(gcra) => Rule::Gcra(gcra.in_slots()),
            Rule::Closed
            | Rule::Ban(_)
            | Rule::Pair(_)
            | Rule::Interval(_)
            | Rule::FixedWindow(_)
            | Rule::WeightedWindow(_)
            | Rule::Pacer(_)
            | Rule::WarmUp(_)
            | Rule::Curve(_)
            | Rule::LevelRefill(_)
            | Rule::Calendar(_)
            | Rule::Quota(_) => self,
        }
    }

    /// Whether a request may ask that permits are left after it ([`step_leaving`](super::step_leaving)). Rules that
    /// lend are left out: they may admit a cost and refuse a smaller one.
    pub(crate) fn keeps_reserves(&self) -> bool {
        match self {
            Rule::Closed
            | Rule::Gcra(_)
            | Rule::Ban(_)
            | Rule::Pair(_)
            | Rule::Interval(_)
            | Rule::FixedWindow(_)
            | Rule::WeightedWindow(_)
            | Rule::Curve(_)
            | Rule::LevelRefill(_)
            | Rule::Calendar(_)
            | Rule::Quota(_) => true,
            Rule::Pacer(_) | Rule::WarmUp(_) => false,
        }
    }

    /// Whether words that are at most [`TAT_MOST`](super::gcra::TAT_MOST) are times: of two of them the greater
    /// expires no sooner.
    pub(crate) fn words_are_times(&self) -> bool {
        match self {
            Rule::Gcra(_) | Rule::Ban(_) | Rule::Pair(_) | Rule::Pacer(_) | Rule::LevelRefill(_) => true,
            Rule::Closed
            | Rule::Interval(_)
            | Rule::FixedWindow(_)
            | Rule::WeightedWindow(_)
            | Rule::WarmUp(_)
            | Rule::Curve(_)
            | Rule::Calendar(_)
            | Rule::Quota(_) => false,
        }
    }

    #[inline(never)]
    fn expires_other(&self, state: u64) -> u64 {
        each!(self, a => a.expires_at(state), until(LAST, state))
    }

    #[inline(never)]
    fn describe_other(&self, verdict: Verdict, state: u64, now: u64, cost: u64) -> Decision {
        let decision = describe(self, verdict, state, now, cost);
        match self {
            Rule::Ban(ban) => ban.with_reason(decision, state, now),
            Rule::Pair(pair) => Decision { bound: pair.bound(verdict, state, now, cost), ..decision },
            Rule::Closed
            | Rule::Gcra(_)
            | Rule::Interval(_)
            | Rule::FixedWindow(_)
            | Rule::WeightedWindow(_)
            | Rule::Pacer(_)
            | Rule::WarmUp(_)
            | Rule::Curve(_)
            | Rule::LevelRefill(_)
            | Rule::Calendar(_)
            | Rule::Quota(_) => decision,
        }
    }

    /// [`Algorithm::step`], compiled once for all slow paths.
    #[inline(never)]
    pub(crate) fn step_out_of_line(&self, state: u64, now: u64, cost: u64) -> Step {
        self.step(state, now, cost)
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

    /// Most policies are token buckets, so that case is tested first and inlined.
    #[inline(always)]
    fn step(&self, state: u64, now: u64, cost: u64) -> Step {
        if let Rule::Gcra(gcra) = self {
            gcra.step(state, now, cost)
        } else {
            self.step_other(state, now, cost)
        }
    }

    #[inline(always)]
    fn describe(&self, verdict: Verdict, state: u64, now: u64, cost: u64) -> Decision {
        if let Rule::Gcra(gcra) = self {
            gcra.describe(verdict, state, now, cost)
        } else {
            self.describe_other(verdict, state, now, cost)
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

    /// Under a limit of 0 the word is a time: the end of the debt that the key had when its policy became 0. A word
    /// after the last time is a quota's count, and never expires.
    #[inline(always)]
    fn expires_at(&self, state: u64) -> u64 {
        if let Rule::Gcra(gcra) = self {
            gcra.expires_at(state)
        } else {
            self.expires_other(state)
        }
    }

    #[inline(never)]
    fn owing(&self, until: u64) -> u64 {
        each!(self, a => a.owing(until), self::until(LAST, until.max(1)))
    }

    #[inline]
    fn reserve(&self, state: u64, now: u64, cost: u64) -> Option<Reservation> {
        each!(self, a => a.reserve(state, now, cost), None)
    }

    #[inline(always)]
    fn described(&self, step: Step, state: u64) -> u64 {
        match self {
            Rule::Ban(ban) => ban.described(step, state),
            Rule::Closed
            | Rule::Gcra(_)
            | Rule::Pair(_)
            | Rule::Interval(_)
            | Rule::FixedWindow(_)
            | Rule::WeightedWindow(_)
            | Rule::Pacer(_)
            | Rule::WarmUp(_)
            | Rule::Curve(_)
            | Rule::LevelRefill(_)
            | Rule::Calendar(_)
            | Rule::Quota(_) => state,
        }
    }

    #[inline]
    fn refill(&self) -> Option<u64> {
        each!(self, a => a.refill(), None)
    }

    #[inline(never)]
    fn refill_in_slots(&self) -> Option<u64> {
        each!(self, a => a.refill_in_slots(), None)
    }

    fn unused_in_slot(&self) -> Option<u64> {
        each!(self, a => a.unused_in_slot(), None)
    }

    #[inline]
    fn give_back(&self, state: u64, now: u64, back: &GiveBack) -> Option<Returned> {
        each!(self, a => a.give_back(state, now, back), None)
    }

    fn last_booking(&self, state: u64, charge: Charge) -> Option<Reservation> {
        each!(self, a => a.last_booking(state, charge), None)
    }

    fn bans(&self, state: u64, now: u64) -> bool {
        matches!(self, Rule::Ban(ban) if ban.bans(state, now))
    }

    fn counts_refusals(&self) -> bool {
        each!(self, a => a.counts_refusals(), false)
    }

    #[inline(never)]
    fn charge(&self, state: u64, now: u64, cost: u64) -> Charged {
        each!(self, a => a.charge(state, now, cost), Charged::none(cost))
    }
}
