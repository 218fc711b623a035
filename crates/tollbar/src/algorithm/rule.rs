//! Any one-word algorithm, chosen at run time.

use super::ban::Ban;
use super::fixed_window::FixedWindow;
use super::gcra::{Gcra, Plain};
use super::interval::Interval;
use super::pacer::Pacer;
use super::pair::Pair;
use super::quota::Quota;
use super::warm_up::WarmUp;
use super::weighted_window::WeightedWindow;
use super::{describe, Algorithm, Charged, GiveBack, Reservation, Returned, Step};
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
            Kind::SlidingWindow | Kind::SlidingLog => return Err(PolicyError::NotOneWord),
        })
    }

    /// Moves a key's state to a changed policy and keeps the time until which it owes: `state` belongs to
    /// `old`, the result to this rule.
    ///
    /// If the two rules count alike, the permits used stay used, up to the new limit. Rules count alike if they
    /// are equal, have windows of the same length and alignment, or refill as many permits at the same times.
    /// Every other pair keeps the time at which the old state would have been as good as fresh, and the result
    /// owes everything until then ([`Algorithm::owing`]).
    ///
    /// The result is 0 only for 0. It expires no earlier than `state` did under `old`. Over a change a key is admitted at most what `old`
    /// could have admitted before it, plus what this rule admits to a fresh state after it.
    ///
    /// A caller that knows the time should put the fresh word 0 in place of an expired state. Where this rule
    /// counts in windows, a state that has just expired may otherwise owe the rest of a window.
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
        match self {
            Rule::Interval(new) => {
                let Rule::Interval(old) = old else { return None };
                new.adopt(old, state)
            }
            Rule::FixedWindow(new) => {
                let Rule::FixedWindow(old) = old else { return None };
                new.adopt(old, state)
            }
            Rule::WeightedWindow(new) => {
                let Rule::WeightedWindow(old) = old else { return None };
                new.adopt(old, state)
            }
            Rule::Ban(new) => {
                let Rule::Ban(old) = old else { return None };
                new.adopt(old, state)
            }
            Rule::Pair(new) => {
                let Rule::Pair(old) = old else { return None };
                new.adopt(old, state)
            }
            Rule::Quota(new) => {
                let Rule::Quota(old) = old else { return None };
                Some(new.adopt(old, state))
            }
            // `adopt` has handled equal rules before.
            Rule::Closed | Rule::Gcra(_) | Rule::Pacer(_) | Rule::WarmUp(_) => None,
        }
    }

    /// Moves a key's state to a changed policy and keeps its permits as a number: `state` belongs to `old`, the
    /// result to this rule, which takes over at `now`.
    ///
    /// The result has as many permits left as `state`, rounded down, and no more than a fresh state. A debt stays as many permits, up to
    /// this rule's burst. So no wait is longer than this rule takes to refill (a token bucket: twice), and the change admits no request
    /// that was refused before it.
    ///
    /// If the two rules count alike ([`Rule::adopt`]), the permits used are kept. If one of them is closed,
    /// which counts nothing, the time is kept. The result is 0 for a fresh state. Unlike the result of
    /// [`Rule::adopt`] it may expire earlier than `state` did.
    pub fn convert(&self, old: &Rule, state: u64, now: u64) -> u64 {
        if state == 0 || self == old {
            return state;
        }
        if let Some(banned) = self.keep_ban(old, state, now) {
            return banned;
        }
        if let (Rule::Pair(pair), Rule::Pair(old)) = (self, old) {
            return pair.carry(old, state, now, now);
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

    /// [`Rule::adopt`] at a known time: a ban ends when it was to end, where [`Rule::adopt`] keeps the time at which the bucket is full again
    /// after it. So the result may expire earlier than `state` did.
    pub fn adopt_at(&self, old: &Rule, state: u64, now: u64) -> u64 {
        self.keep_ban(old, state, now).unwrap_or_else(|| self.adopt(old, state))
    }

    /// The state of a key that `old` has banned at `now`: the ban ends at the same time. `None` for other states, and if this rule bans no keys.
    #[inline(never)]
    fn keep_ban(&self, old: &Rule, state: u64, now: u64) -> Option<u64> {
        let (Rule::Ban(ban), Rule::Ban(old)) = (self, old) else { return None };
        match old.banned_until(state, now)? {
            NEVER => None,
            until => Some(ban.banned(until)),
        }
    }

    /// For a state in debt, the wait for its next permit in permits, rounded up, less 1. For other states 0. [`Rule::adopt`] and
    /// [`Rule::carry`] keep the debt of a ban.
    fn debt(&self, state: u64, now: u64) -> u64 {
        match self {
            Rule::Pacer(pacer) => pacer.debt(state, now),
            Rule::WarmUp(warm_up) => warm_up.debt(state, now),
            Rule::Gcra(gcra) => gcra.debt(state, now),
            Rule::Pair(pair) => pair.debt(state, now),
            Rule::Closed
            | Rule::Ban(_)
            | Rule::Interval(_)
            | Rule::FixedWindow(_)
            | Rule::WeightedWindow(_)
            | Rule::Quota(_) => 0,
        }
    }

    /// The permits by which a state falls short of a fresh one at `now`, rounded up. The debt of pacer, borrow, warm-up and gcra is
    /// included.
    pub fn owed(&self, state: u64, now: u64) -> u64 {
        if state == 0 {
            return 0;
        }
        match self {
            Rule::Pacer(pacer) => pacer.owed(state, now),
            Rule::WarmUp(warm_up) => warm_up.owed(state, now),
            Rule::Closed
            | Rule::Gcra(_)
            | Rule::Ban(_)
            | Rule::Pair(_)
            | Rule::Interval(_)
            | Rule::FixedWindow(_)
            | Rule::WeightedWindow(_)
            | Rule::Quota(_) => {
                let lacking = self.available(0, now).saturating_sub(self.available(state, now));
                lacking.saturating_add(self.debt(state, now))
            }
        }
    }

    /// Converts `state`, which a key had under `old` at the time `there` of another clock, to this rule at the time `here`. The result
    /// lacks as many permits of a fresh state as before, and a ban ends after the same time. 0 for a fresh state.
    pub fn carry(&self, old: &Rule, state: u64, there: u64, here: u64) -> u64 {
        if let (Rule::Ban(ban), Rule::Ban(old)) = (self, old) {
            if let Some(until) = old.banned_until(state, there) {
                return ban.banned(here.saturating_add(super::after(until, there)));
            }
        }
        if let (Rule::Pair(pair), Rule::Pair(old)) = (self, old) {
            return pair.carry(old, state, there, here);
        }
        self.charged(old.owed(state, there), here)
    }

    /// A state that falls short of a fresh one at `now` by `permits`, the burst at most (gcra: with a debt of another burst); 0 for no
    /// permits.
    pub fn charged(&self, permits: u64, now: u64) -> u64 {
        let most = match self {
            Rule::Pacer(pacer) => return pacer.charged(permits, now),
            Rule::Gcra(gcra) => return gcra.charge(0, now, permits).next.unwrap_or(0),
            Rule::WarmUp(warm_up) => warm_up.most(),
            Rule::Closed
            | Rule::Ban(_)
            | Rule::Pair(_)
            | Rule::Interval(_)
            | Rule::FixedWindow(_)
            | Rule::WeightedWindow(_)
            | Rule::Quota(_) => self.available(0, now),
        };
        match permits {
            0 => 0,
            // At least 1: a bucket that starts empty refuses this request, and stores the time at which it began to fill.
            _ => self.step(0, now, permits.min(most).max(1)).next.unwrap_or(0),
        }
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
            | Rule::Quota(_) => self,
        }
    }

    /// [`Algorithm::refill`] of a table's keys: `None` also for lists, and for the few rates of gcra at which a key's word has no room for what a give-back needs.
    pub fn refill_in_slots(&self) -> Option<u64> {
        match self {
            Rule::Gcra(gcra) if gcra.has_floors() => gcra.refill(),
            // A list's slow bucket takes nothing back in a slot, so the list is charged last.
            Rule::Gcra(_) | Rule::Pair(_) => None,
            Rule::Closed
            | Rule::Ban(_)
            | Rule::Interval(_)
            | Rule::FixedWindow(_)
            | Rule::Quota(_)
            | Rule::WeightedWindow(_)
            | Rule::Pacer(_)
            | Rule::WarmUp(_) => self.refill(),
        }
    }

    /// Whether a request may ask that permits are left after it. A rule that lends may admit a cost and refuse a smaller one's reserve.
    pub(crate) fn keeps_reserves(&self) -> bool {
        match self {
            Rule::Closed
            | Rule::Gcra(_)
            | Rule::Ban(_)
            | Rule::Pair(_)
            | Rule::Interval(_)
            | Rule::FixedWindow(_)
            | Rule::WeightedWindow(_)
            | Rule::Quota(_) => true,
            Rule::Pacer(_) | Rule::WarmUp(_) => false,
        }
    }

    /// Whether words that are at most [`TAT_MOST`](super::gcra::TAT_MOST) are times: of two of them the greater expires no sooner.
    pub(crate) fn words_are_times(&self) -> bool {
        match self {
            Rule::Gcra(_) | Rule::Ban(_) | Rule::Pair(_) | Rule::Pacer(_) => true,
            Rule::Closed
            | Rule::Interval(_)
            | Rule::FixedWindow(_)
            | Rule::WeightedWindow(_)
            | Rule::WarmUp(_)
            | Rule::Quota(_) => false,
        }
    }

    #[inline(never)]
    fn expires_other(&self, state: u64) -> u64 {
        each!(self, a => a.expires_at(state), state)
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

    /// Under a limit of 0 the word is a time: the end of the debt that the key had when its policy became 0.
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
        each!(self, a => a.owing(until), until.max(1))
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
            | Rule::Quota(_) => state,
        }
    }

    #[inline]
    fn refill(&self) -> Option<u64> {
        each!(self, a => a.refill(), None)
    }

    #[inline]
    fn give_back(&self, state: u64, now: u64, back: &GiveBack) -> Option<Returned> {
        each!(self, a => a.give_back(state, now, back), None)
    }

    fn counts_refusals(&self) -> bool {
        each!(self, a => a.counts_refusals(), false)
    }

    #[inline(never)]
    fn charge(&self, state: u64, now: u64, cost: u64) -> Charged {
        each!(self, a => a.charge(state, now, cost), Charged::none(cost))
    }
}
