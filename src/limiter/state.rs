//! A state of any algorithm, chosen at run time.

use super::fast::Fast;
#[cfg(not(loom))]
use super::fast::{Quick, Tried};
#[cfg(unix)]
use super::striped::Striped;
use super::{Cell, Log, Ring, Shared, Watch};
use crate::algorithm::closed::Closed;
use crate::algorithm::sliding_log::SlidingLog;
use crate::algorithm::sliding_window::SlidingWindow;
use crate::algorithm::{Charge, Rule};
#[cfg(unix)]
use crate::clock::{Clock, Source};
use crate::decision::{Decision, Verdict};
use crate::policy::{Kind, Policy, PolicyError, Words};

/// One of the shared states. `repr` gives it a tag of its own: in a niche of a state's words the
/// tag would cost each decision an instruction.
#[derive(Debug)]
#[repr(u8)]
// A box would cost each decision another cache line.
#[allow(clippy::large_enum_variant)]
pub enum State {
    /// A one-word algorithm, or a limit of 0.
    Cell(Cell<Rule>),
    /// A sliding window.
    Ring(Ring),
    /// A sliding log.
    Log(Log),
    /// A token bucket whose threads take permits in advance.
    #[cfg(unix)]
    Striped(Striped),
}

impl State {
    /// Whether [`State::new`] would make a state of `policy` if it had the memory.
    ///
    /// # Errors
    /// Those of [`State::new`], except [`PolicyError::NoMemory`].
    pub fn validate(policy: &Policy) -> Result<(), PolicyError> {
        match policy.kind.words() {
            _ if policy.limit == 0 => policy.validate(),
            Words::Ring => SlidingWindow::new(policy).map(|_| ()),
            Words::Log => SlidingLog::new(policy).map(|_| ()),
            Words::One => Rule::new(policy).map(|_| ()),
        }
    }

    /// [`State::validate`], and whether `policy` admits for decades by `clock`. The fastest
    /// policies count fewer than 73 years ([`Policy::last_time`]). Unix time has used most of
    /// those, so on [`Source::Wall`] they are [`PolicyError::RateTooHigh`]. A calendar needs Unix
    /// time: on other clocks it is [`PolicyError::WallClock`].
    ///
    /// # Errors
    /// Those of [`State::validate`], [`PolicyError::RateTooHigh`] and [`PolicyError::WallClock`] as
    /// above.
    #[cfg(unix)]
    pub fn validate_on(policy: &Policy, clock: Source) -> Result<(), PolicyError> {
        State::validate(policy)?;
        match clock {
            _ if policy.kind == Kind::Calendar && !clock.is_unix() => Err(PolicyError::WallClock),
            Source::Wall if policy.last_time()? < crate::units::LAST => {
                Err(PolicyError::RateTooHigh)
            }
            _ => Ok(()),
        }
    }

    /// A fresh token bucket whose threads take permits in advance, for a limit that several threads
    /// check all the time. Such a thread is charged for more permits than its request costs. It
    /// keeps the rest as *credit* on a cache line of its own, and spends it on its next requests
    /// without reading the clock.
    ///
    /// At most `burst + rate · t` pass in every interval of length t, as without credit. Credit
    /// costs part of the burst: the credit of all threads together is at most C, an eighth of the
    /// burst and 65,536 permits at most. So requests may be refused up to C permits early, and one
    /// request can take at most `burst − C`. C is 0 if the burst is below 32: then no thread keeps
    /// credit, and every answer is that of [`State::new`]'s.
    ///
    /// # Errors
    /// As [`State::new`], and [`PolicyError::OptionMismatch`] unless the policy is of kind
    /// [`crate::Kind::Gcra`], without `borrow` and with a limit above 0. [`PolicyError::Classes`]
    /// for a policy with classes: a thread's credit would pay for any of them.
    #[cfg(unix)]
    pub fn with_credit(policy: &Policy) -> Result<State, PolicyError> {
        if !policy.classes.is_empty() {
            return Err(PolicyError::Classes);
        }
        let striped = Striped::new(policy)?;
        Ok(match striped.credit() {
            // No thread would ever have credit.
            0 => State::new(policy)?,
            _ => State::Striped(striped),
        })
    }

    /// A fresh state for `policy`.
    ///
    /// # Errors
    /// [`PolicyError::NoMemory`], and those of the algorithm.
    pub fn new(policy: &Policy) -> Result<State, PolicyError> {
        policy.validate()?;
        Ok(match policy.kind.words() {
            _ if policy.limit == 0 => {
                State::Cell(Cell::of_limiter(Rule::Closed(Closed), policy.classes))
            }
            Words::Ring => State::Ring(Ring::new(policy)?),
            Words::Log => State::Log(Log::new(policy)?),
            Words::One => State::Cell(Cell::of_limiter(Rule::new(policy)?, policy.classes)),
        })
    }
}

macro_rules! each {
    ($self:ident, $s:ident => $call:expr) => {
        match $self {
            State::Cell($s) => $call,
            State::Ring($s) => $call,
            State::Log($s) => $call,
            #[cfg(unix)]
            State::Striped($s) => $call,
        }
    };
}

impl State {
    /// The most permits that all threads together may have in advance; 0 without
    /// [`State::with_credit`].
    pub fn credit(&self) -> u64 {
        match self {
            #[cfg(unix)]
            State::Striped(striped) => striped.credit(),
            _ => 0,
        }
    }

    /// Ends the fast path. Later calls take the slow way, which finds the state that replaced this
    /// one.
    pub(super) fn retire(&self) {
        if let State::Cell(cell) = self {
            cell.retire();
        }
    }

    #[inline(never)]
    fn admit_slow(&self, now: u64, cost: u64) -> Verdict {
        each!(self, s => s.admit_at(now, cost))
    }
}

impl Fast for State {
    #[cfg(not(loom))]
    #[inline(always)]
    fn quick(&self) -> Option<Quick<'_>> {
        match self {
            State::Cell(cell) => Some(cell.quick(cell.algorithm().plain()?)),
            _ => None,
        }
    }
    #[cfg(not(loom))]
    #[inline(always)]
    fn is_cell(&self) -> bool {
        matches!(self, State::Cell(_))
    }
    #[inline(always)]
    fn spend_quickly(&self, cost: u64) -> bool {
        match self {
            #[cfg(unix)]
            State::Striped(striped) => striped.spend_quickly(cost),
            _ => false,
        }
    }
    #[inline(always)]
    fn spend_quickly_at(&self, now: u64, cost: u64) -> bool {
        match self {
            #[cfg(unix)]
            State::Striped(striped) => striped.spend_quickly_at(now, cost),
            _ => false,
        }
    }
    #[inline]
    fn spend_in_other_places(&self, cost: u64) -> bool {
        match self {
            #[cfg(unix)]
            State::Striped(striped) => striped.spend_in_other_places(cost),
            _ => false,
        }
    }
    #[inline]
    fn admit_without_credit_at(&self, now: u64, cost: u64) -> Verdict {
        match self {
            #[cfg(unix)]
            State::Striped(striped) => striped.admit_without_credit_at(now, cost),
            _ => self.admit_at(now, cost),
        }
    }
    fn spent(&self) -> u64 {
        each!(self, s => s.spent())
    }
    #[cfg(not(loom))]
    #[inline(always)]
    fn admit_pair_at(&self, now: u64) -> Tried {
        let State::Cell(cell) = self else { return Tried::Other };
        cell.algorithm().pair().map_or(Tried::Other, |pair| cell.admit_pair_at(pair, now))
    }
    #[cfg(not(loom))]
    #[inline(always)]
    fn start_pair_at(&self, now: u64) -> Option<Verdict> {
        match self {
            State::Cell(cell) => cell.start_pair_at(cell.algorithm().pair()?, now),
            _ => None,
        }
    }
}

impl Shared for State {
    #[inline]
    fn admit_at(&self, now: u64, cost: u64) -> Verdict {
        #[cfg(not(loom))]
        if let Some(quick) = self.quick() {
            if let Some(verdict) = quick.admit_at(now, cost) {
                return verdict;
            }
        }
        // Out of line, so that a token bucket's request does not save the registers of the others.
        self.admit_slow(now, cost)
    }
    #[inline]
    fn check_at(&self, now: u64, cost: u64) -> Decision {
        each!(self, s => s.check_at(now, cost))
    }
    fn peek_at(&self, now: u64, cost: u64) -> Decision {
        each!(self, s => s.peek_at(now, cost))
    }
    fn peek_uncounted_at(&self, now: u64, cost: u64) -> Decision {
        each!(self, s => s.peek_uncounted_at(now, cost))
    }
    fn reserve_of(&self, class: &[u8]) -> Result<u64, PolicyError> {
        match self {
            State::Cell(cell) => cell.reserve_of(class),
            _ => Err(PolicyError::NoSuchClass),
        }
    }
    #[inline(never)]
    fn check_leaving_at(&self, now: u64, cost: u64, reserve: u64) -> Decision {
        match self {
            State::Cell(cell) => cell.check_leaving_at(now, cost, reserve),
            // They have no classes.
            _ => self.peek_at(now, u64::MAX),
        }
    }
    #[inline(never)]
    fn peek_leaving_at(&self, now: u64, cost: u64, reserve: u64) -> Decision {
        match self {
            State::Cell(cell) => cell.peek_leaving_at(now, cost, reserve),
            _ => self.peek_at(now, u64::MAX),
        }
    }
    fn take_up_to_at(&self, now: u64, most: u64) -> u64 {
        each!(self, s => s.take_up_to_at(now, most))
    }
    fn reserve_at(&self, now: u64, cost: u64, until: u64) -> Option<u64> {
        each!(self, s => s.reserve_at(now, cost, until))
    }
    #[inline(never)]
    fn charge_at(&self, now: u64, cost: u64) -> u64 {
        each!(self, s => s.charge_at(now, cost))
    }
    fn books_ahead(&self) -> bool {
        each!(self, s => s.books_ahead())
    }
    fn refill(&self) -> Option<u64> {
        each!(self, s => s.refill())
    }
    fn give_back(&self, charge: Charge, permits: u64, now: impl Fn() -> u64) -> u64 {
        each!(self, s => s.give_back(charge, permits, now))
    }
    fn last_of(&self, now: u64, costs: &mut dyn Iterator<Item = u64>, until: u64) -> u64 {
        each!(self, s => s.last_of(now, costs, until))
    }
    fn bans(&self, now: u64) -> bool {
        each!(self, s => s.bans(now))
    }
    fn counts_refusals(&self) -> bool {
        each!(self, s => s.counts_refusals())
    }
    fn reset(&self) {
        each!(self, s => s.reset());
    }
    fn watch(&self) -> &Watch {
        each!(self, s => s.watch())
    }
}
