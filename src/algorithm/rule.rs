//! Any one-word algorithm, chosen at run time.

use super::ban::Ban;
use super::calendar::Calendar;
use super::closed::Closed;
use super::curve::Curve;
use super::facts::Facts;
use super::fixed_window::FixedWindow;
use super::gcra::{Gcra, Plain};
use super::interval::Interval;
use super::level_refill::LevelRefill;
use super::pacer::Pacer;
use super::pair::Pair;
use super::quota::Quota;
use super::warm_up::WarmUp;
use super::weighted_window::WeightedWindow;
use super::{describe, Algorithm, Charge, Charged, GiveBack, Reservation, Returned, Step};
use crate::decision::{Decision, Verdict};
use crate::policy::{Kind, Policy, PolicyError, Words};

/// Calls a macro with the list of algorithms whose state is one word: the only place that lists
/// them.
macro_rules! algorithms {
    ($then:ident! $arguments:tt) => {
        $then! {
            $arguments
            /// A limit of 0: denies all.
            Closed
            /// Token bucket.
            Gcra
            /// Token bucket with `ban`.
            Ban
            /// Two token buckets.
            Pair
            /// Interval refill.
            Interval
            /// Fixed window.
            FixedWindow
            /// Weighted window.
            WeightedWindow
            /// Pacer, and the token bucket that lends.
            Pacer
            /// Warm-up.
            WarmUp
            /// Lifetime quota.
            Quota
            /// Refill curve.
            Curve
            /// Token bucket with level-dependent refill.
            LevelRefill
            /// Calendar quota.
            Calendar
        }
    };
}

macro_rules! define {
    (() $($(#[$doc:meta])+ $name:ident)+) => {
        /// A compiled policy of any algorithm whose state is one word.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Rule {
            $($(#[$doc])+ $name($name),)+
        }
    };
}

algorithms!(define!());

macro_rules! each_arm {
    (($rule:expr, $a:ident => $call:expr) $($(#[$doc:meta])+ $name:ident)+) => {
        match $rule {
            $(Rule::$name($a) => $call,)+
        }
    };
}

/// Calls the compiled algorithm: `each!(rule, a => a.step(state, now, cost))`.
macro_rules! each {
    ($rule:expr, $a:ident => $call:expr) => {
        algorithms!(each_arm!($rule, $a => $call))
    };
}

macro_rules! alike_arm {
    (($new:expr, $old:expr, $a:ident, $b:ident => $call:expr) $($(#[$doc:meta])+ $name:ident)+) => {
        match ($new, $old) {
            $((Rule::$name($a), Rule::$name($b)) => $call,)+
            _ => None,
        }
    };
}

/// Calls the compiled algorithm with another policy of the same algorithm; `None` if the algorithms
/// differ.
macro_rules! alike {
    ($new:expr, $old:expr, ($a:ident, $b:ident) => $call:expr) => {
        algorithms!(alike_arm!($new, $old, $a, $b => $call))
    };
}

mod conversion;

impl Rule {
    /// Compiles a policy. A limit of 0 gives [`Closed`].
    ///
    /// # Errors
    /// [`PolicyError::NotOneWord`] for the sliding window and the sliding log, and those of the
    /// algorithm.
    pub fn new(policy: &Policy) -> Result<Rule, PolicyError> {
        policy.validate()?;
        match policy.kind.words() {
            Words::One => {}
            Words::Ring | Words::Log => return Err(PolicyError::NotOneWord),
        }
        if policy.limit == 0 {
            return Ok(Rule::Closed(Closed));
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

    /// `state` in a slot that stays taken until `until`: [`Facts::hold`].
    pub(crate) fn hold(&self, state: u64, until: u64, now: u64, exact: bool) -> Option<u64> {
        each!(self, a => a.hold(state, until, now, exact))
    }

    /// The same rule for words of slots ([`Facts::enter_slots`]).
    pub(crate) fn in_slots(mut self) -> Rule {
        each!(&mut self, a => a.enter_slots());
        self
    }

    /// [`Facts::keeps_reserves`].
    pub(crate) fn keeps_reserves(&self) -> bool {
        each!(self, a => a.keeps_reserves())
    }

    /// [`Facts::words_are_times`].
    pub(crate) fn words_are_times(&self) -> bool {
        each!(self, a => a.words_are_times())
    }

    /// [`Facts::most_in`].
    pub(super) fn most_in(&self, policy: &Policy, window: u64) -> u64 {
        each!(self, a => a.most_in(policy, window))
    }

    #[inline(never)]
    fn expires_other(&self, state: u64) -> u64 {
        each!(self, a => a.expires_at(state))
    }

    #[inline(never)]
    fn describe_other(&self, verdict: Verdict, state: u64, now: u64, cost: u64) -> Decision {
        let decision = describe(self, verdict, state, now, cost);
        each!(self, a => a.explained(decision, state, now, cost))
    }

    /// [`Algorithm::step`], compiled once for all slow paths.
    #[inline(never)]
    pub(crate) fn step_out_of_line(&self, state: u64, now: u64, cost: u64) -> Step {
        self.step(state, now, cost)
    }

    #[inline(never)]
    fn step_other(&self, state: u64, now: u64, cost: u64) -> Step {
        each!(self, a => a.step(state, now, cost))
    }
}

impl Algorithm for Rule {
    fn last_time(&self) -> u64 {
        each!(self, a => a.last_time())
    }

    #[inline]
    fn books_ahead(&self) -> bool {
        each!(self, a => a.books_ahead())
    }

    fn largest(&self) -> u64 {
        each!(self, a => a.largest())
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
        each!(self, a => a.available(state, now))
    }

    #[inline]
    fn admits_at(&self, state: u64, now: u64, cost: u64) -> u64 {
        each!(self, a => a.admits_at(state, now, cost))
    }

    #[inline]
    fn fresh_at(&self, state: u64, now: u64) -> u64 {
        each!(self, a => a.fresh_at(state, now))
    }

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
        each!(self, a => a.owing(until))
    }

    #[inline]
    fn reserve(&self, state: u64, now: u64, cost: u64) -> Option<Reservation> {
        each!(self, a => a.reserve(state, now, cost))
    }

    #[inline(always)]
    fn described(&self, step: Step, state: u64) -> u64 {
        each!(self, a => a.described(step, state))
    }

    #[inline]
    fn refill(&self) -> Option<u64> {
        each!(self, a => a.refill())
    }

    #[inline(never)]
    fn refill_in_slots(&self) -> Option<u64> {
        each!(self, a => a.refill_in_slots())
    }

    fn unused_in_slot(&self) -> Option<u64> {
        each!(self, a => a.unused_in_slot())
    }

    #[inline]
    fn give_back(&self, state: u64, now: u64, back: &GiveBack) -> Option<Returned> {
        each!(self, a => a.give_back(state, now, back))
    }

    fn last_booking(&self, state: u64, charge: Charge) -> Option<Reservation> {
        each!(self, a => a.last_booking(state, charge))
    }

    fn bans(&self, state: u64, now: u64) -> bool {
        each!(self, a => a.bans(state, now))
    }

    fn counts_refusals(&self) -> bool {
        each!(self, a => a.counts_refusals())
    }

    #[inline(never)]
    fn charge(&self, state: u64, now: u64, cost: u64) -> Charged {
        each!(self, a => a.charge(state, now, cost))
    }
}
