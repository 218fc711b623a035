//! The atomic layer, and the limiter that puts a clock before it.
//!
//! [`Shared`] is what every state offers: [`Cell`] (any one-word algorithm), [`Ring`] (sliding
//! window) and [`Log`] (sliding log). [`State`] is one of them chosen at run time, and [`Limiter`]
//! gives any of them a clock, waiting, and the count of backward steps. [`State::with_credit`] is a
//! token bucket whose threads take permits in advance.

pub mod cell;
mod change;
mod fast;
mod gaps;
mod leaving;
pub(crate) mod log;
mod permits;

pub(crate) mod ring;
mod set_policy;
mod shared;
pub(crate) mod side_words;
mod snapshot;
mod state;
pub(crate) mod state_word;
#[cfg(unix)]
mod striped;
mod tally;
mod text;
pub(crate) mod thread;
#[cfg(any(unix, loom))]
pub(crate) mod unfolding;
#[cfg(feature = "std")]
mod until;
pub(crate) mod waiting;
mod watch;
pub(crate) mod words;

pub use cell::Cell;
pub use log::Log;
pub use ring::Ring;
pub use shared::Shared;
pub use snapshot::Snapshot;
pub use state::State;
pub use watch::Watch;

use crate::algorithm::Charge;
use crate::clock::Clock;
#[cfg(not(unix))]
use crate::clock::Manual as DefaultClock;
use crate::decision::{Decision, Reason, Verdict};
use crate::policy::{Kind, Policy, PolicyError};
use crate::sync::rarely;
use crate::units::nanos;
use change::Changes;
use core::time::Duration;
use fast::Tried;
use tally::Tally;
use waiting::{WaiterQueues, WAITERS};

#[cfg(unix)]
type DefaultClock = crate::clock::Utc<crate::clock::Tsc>;

/// A shared state with a clock. The default clock is the time-stamp counter, or, on a system that
/// is no Unix, a clock that the caller moves.
///
/// ```
/// use tollbar::{Limiter, Policy};
/// let limiter = Limiter::new(&"3/min".parse::<Policy>()?)?;
/// for _ in 0..3 {
///     assert!(limiter.check(1).is_allowed());
/// }
/// let refused = limiter.check(1);
/// assert!(!refused.is_allowed());
/// assert!(refused.retry_after <= 20_000_000_000); // nanoseconds: the bucket refills one every 20 s
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Each call counts the decision that it returns ([`Limiter::counts`]), in 2.75 KiB of the limiter:
/// 32 threads have a cache line each, and further threads share eight more.
pub struct Limiter<S = State, C = DefaultClock> {
    shared: S,
    clock: C,
    waiting: WaiterQueues<1>,
    tally: Tally,
    /// The states that replaced `shared`.
    changes: Changes<S>,
}

#[cfg(unix)]
impl Limiter {
    /// A limiter of any algorithm on the default clock: UTC, read from the processor's counter,
    /// never stepping.
    ///
    /// # Errors
    /// As [`State::new`]. [`PolicyError::WallClock`] for a calendar, which needs the wall clock
    /// ([`Limiter::with`]).
    pub fn new(policy: &Policy) -> Result<Limiter, PolicyError> {
        let clock = DefaultClock::default();
        clock_fits(policy, &clock)?;
        Ok(Limiter::with(State::new(policy)?, clock))
    }

    /// [`Limiter::new`] whose threads take permits in advance ([`State::with_credit`]).
    ///
    /// ```
    /// let limiter = tollbar::Limiter::with_credit(&"1000000/s burst 10000".parse()?)?;
    /// if limiter.admit(1) == tollbar::Verdict::Allowed {
    ///     // serve
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`State::with_credit`].
    pub fn with_credit(policy: &Policy) -> Result<Limiter, PolicyError> {
        Ok(Limiter::with(State::with_credit(policy)?, DefaultClock::default()))
    }
}

/// Refuses a calendar on a clock that does not count Unix time.
pub(crate) fn clock_fits(policy: &Policy, clock: &impl Clock) -> Result<(), PolicyError> {
    match policy.kind == Kind::Calendar && !clock.is_unix() {
        true => Err(PolicyError::WallClock),
        false => Ok(()),
    }
}

impl<S: Shared, C: Clock> Limiter<S, C> {
    /// The default maximum of callers asleep in [`Limiter::wait_until`] at one time.
    pub const WAITERS: u32 = WAITERS;

    /// Joins a state and a clock.
    pub fn with(shared: S, clock: C) -> Limiter<S, C> {
        Limiter {
            shared,
            clock,
            waiting: WaiterQueues::new(Self::WAITERS),
            tally: Tally::default(),
            changes: Changes::default(),
        }
    }

    /// Sets the maximum of callers asleep at one time. 0: none may sleep.
    pub fn with_waiters(mut self, most: u32) -> Limiter<S, C> {
        self.set_waiters(most);
        self
    }

    /// [`Limiter::with_waiters`] of a limiter in its place.
    pub fn set_waiters(&mut self, most: u32) {
        self.waiting.set_most(most);
    }

    /// The clock.
    pub fn clock(&self) -> &C {
        &self.clock
    }

    /// The current state. The limiter does not count decisions that a caller makes on it directly.
    #[inline]
    pub fn shared(&self) -> &S {
        self.changes.current().unwrap_or(&self.shared)
    }

    /// The clock's time in nanoseconds: the scale of [`Limiter::check_at`] and of deadlines.
    #[inline]
    pub fn now(&self) -> u64 {
        self.clock.now()
    }

    /// Takes `cost` permits now, or takes none and returns the nanoseconds to wait
    /// ([`Decision::retry_after`]). A cost of 0 asks without charging.
    #[inline]
    pub fn check(&self, cost: u64) -> Decision {
        self.check_at(self.clock.now(), cost)
    }

    /// Takes `cost` permits now, or takes none. It returns only the verdict, so it is the fastest
    /// call.
    #[inline]
    pub fn admit(&self, cost: u64) -> Verdict {
        let Some(quick) = self.shared.quick() else {
            rarely();
            return match self.shared.is_cell() {
                true => self.admit_late(cost),
                false => self.admit_with_credit(cost),
            };
        };
        // This comes before the reading of the clock: the processor loads the line of counts while
        // it waits for the time-stamp counter.
        let Some(line) = self.tally.own_line() else { return self.admit_late(cost) };
        let Some(now) = self.clock.at_once() else { return self.admit_late(cost) };
        match quick.admit_at(now, cost) {
            Some(verdict) => line.counted(verdict),
            None => self.admit_slow_at(now, cost),
        }
    }

    // Each of these rare cases is a tail call to a function that is out of line, so the usual case
    // saves no registers.

    #[inline(never)]
    fn admit_with_credit(&self, cost: u64) -> Verdict {
        match self.shared.spend_quickly(cost) {
            true => Verdict::Allowed,
            false => self.admit_without_quick_credit(cost),
        }
    }

    #[inline(never)]
    fn admit_without_quick_credit(&self, cost: u64) -> Verdict {
        match self.shared.spend_in_other_places(cost) {
            true => Verdict::Allowed,
            false => {
                self.tally.count(self.shared().admit_without_credit_at(self.clock.now(), cost))
            }
        }
    }

    #[inline(never)]
    fn admit_late(&self, cost: u64) -> Verdict {
        self.admit_slow_at(self.clock.now(), cost)
    }

    #[inline(never)]
    fn admit_with_credit_at(&self, now: u64, cost: u64) -> Verdict {
        match self.shared.spend_quickly_at(now, cost) {
            true => Verdict::Allowed,
            false => self.admit_slow_at(now, cost),
        }
    }

    /// [`Limiter::check`] at the caller's time, on the scale of [`Limiter::now`], or on another
    /// that all callers of this limiter share.
    #[inline]
    pub fn check_at(&self, now: u64, cost: u64) -> Decision {
        let decision = self.shared().check_at(now, cost);
        self.tally.count_with_reason(&decision);
        decision
    }

    /// [`Limiter::admit`] at the caller's time.
    #[inline]
    pub fn admit_at(&self, now: u64, cost: u64) -> Verdict {
        let Some(quick) = self.shared.quick() else {
            rarely();
            return match self.shared.is_cell() {
                true => self.admit_slow_at(now, cost),
                false => self.admit_with_credit_at(now, cost),
            };
        };
        let Some(line) = self.tally.own_line() else { return self.admit_slow_at(now, cost) };
        match quick.admit_at(now, cost) {
            Some(verdict) => line.counted(verdict),
            None => self.admit_slow_at(now, cost),
        }
    }

    #[inline(never)]
    fn admit_slow_at(&self, now: u64, cost: u64) -> Verdict {
        if cost != 1 {
            return self.admit_any_at(now, cost);
        }
        match self.shared.admit_pair_at(now) {
            // A known verdict's count has a fixed place in its line, which takes fewer
            // instructions.
            Tried::Decided(Verdict::Allowed) => self.tally.count(Verdict::Allowed),
            Tried::Decided(_) => self.tally.count(Verdict::Denied),
            Tried::Full => self.admit_full_at(now),
            Tried::Other => self.admit_any_at(now, 1),
        }
    }

    #[inline(never)]
    fn admit_full_at(&self, now: u64) -> Verdict {
        match self.shared.start_pair_at(now) {
            Some(_) => self.tally.count(Verdict::Allowed),
            None => self.admit_any_at(now, 1),
        }
    }

    #[inline(never)]
    fn admit_any_at(&self, now: u64, cost: u64) -> Verdict {
        let verdict = self.shared().admit_at(now, cost);
        if verdict == Verdict::Denied {
            self.count_ban(now);
        }
        self.tally.count(verdict)
    }

    /// Counts a refusal at `now` as one by a ban, if a ban is in force. For calls that return no
    /// reason.
    #[inline(never)]
    fn count_ban(&self, now: u64) {
        if self.shared().bans(now) {
            self.tally.count_reason(Reason::Banned);
        }
    }

    /// Returns what [`Limiter::check`] would return, and takes no permits.
    pub fn peek(&self, cost: u64) -> Decision {
        self.shared().peek_at(self.clock.now(), cost)
    }

    /// Takes all permits that are left, `most` at the most; returns how many.
    pub fn take_up_to(&self, most: u64) -> u64 {
        self.take_up_to_at(self.clock.now(), most)
    }

    /// [`Limiter::take_up_to`] at the caller's time.
    pub fn take_up_to_at(&self, now: u64, most: u64) -> u64 {
        let taken = self.shared().take_up_to_at(now, most);
        self.tally.count_taken(taken);
        if taken == 0 {
            self.count_ban(now);
        }
        taken
    }

    /// Charges `cost` permits without asking, and returns the rest that could not be charged. Use
    /// it for an admitted request whose cost, or failure, is known only afterwards. Later requests
    /// wait until the debt is paid.
    ///
    /// A token bucket holds a debt of one burst below empty, and windows and logs hold none;
    /// [`Algorithm::charge`](crate::algorithm::Algorithm::charge) has all algorithms. Under a
    /// policy with `ban` a charge that leaves no permit counts as a refusal. The counts of
    /// decisions leave out charges.
    ///
    /// ```
    /// use tollbar::{Limiter, Policy, Reason};
    /// let logins = Limiter::new(&"5/min ban 1h".parse::<Policy>()?)?;
    /// for _ in 0..5 {
    ///     assert!(logins.peek(1).is_allowed());
    ///     // … the password is wrong
    ///     assert_eq!(logins.charge(1), 0);
    /// }
    /// let refused = logins.peek(1);
    /// assert_eq!(refused.reason, Reason::Banned);
    /// assert!(refused.retry_after > 3_599_000_000_000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn charge(&self, cost: u64) -> u64 {
        self.charge_at(self.clock.now(), cost)
    }

    /// [`Limiter::charge`] at the caller's time.
    pub fn charge_at(&self, now: u64, cost: u64) -> u64 {
        self.shared().charge_at(now, cost)
    }

    /// Takes `cost` permits, and sleeps for them until `deadline` (on the clock's scale) at the
    /// latest. The decision's times count from the return.
    ///
    /// Callers wait in a queue and get their permits in the order in which they came. A caller that
    /// comes while others wait joins the queue, also if permits are there. Only the first of the
    /// queue holds a booking, where the algorithm can book ahead (gcra, lists of two, pacer,
    /// warm-up, interval aligned to time 0). It hands the booking on if it leaves, and the last
    /// caller gives it back. Under all other algorithms the first one asks again when a permit
    /// could be free. There a caller that checks in a loop may take every permit; past a booking it
    /// gets none.
    ///
    /// The call refuses at once, with nothing taken, if the permits would come after the deadline:
    /// after those of all callers before it, as far as these are known. (A sliding window or log
    /// sees one limit ahead, and a limiter whose threads have credit less.) So does a caller that
    /// finds the maximum number of callers asleep ([`Reason::QueueFull`]).
    pub fn wait_until(&self, cost: u64, deadline: u64) -> Decision {
        let decision = match waiting::wait(self, &self.clock, &self.waiting, 0, cost, deadline) {
            Ok(decision) => decision,
            Err(never) => match never {},
        };
        self.tally.count_with_reason(&decision);
        decision
    }

    /// [`Limiter::wait_until`] with a deadline `patience` from now.
    pub fn wait(&self, cost: u64, patience: Duration) -> Decision {
        self.wait_ns(cost, nanos(patience))
    }

    /// [`Limiter::wait`] with the patience in nanoseconds.
    pub fn wait_ns(&self, cost: u64, patience: u64) -> Decision {
        self.wait_until(cost, self.clock.now().saturating_add(patience))
    }

    /// Takes `cost` permits ahead for the earliest instant at which they may be used, and returns
    /// that instant. The caller must not act earlier. `None`, and nothing is taken, if it is after
    /// `until`. A cost of 0 takes nothing and departs now.
    pub fn reserve(&self, cost: u64, until: u64) -> Option<u64> {
        self.reserve_at(self.clock.now(), cost, until).ok()
    }

    /// [`Limiter::reserve`] at the caller's time.
    ///
    /// # Errors
    /// [`Verdict::Never`] if the cost is above the burst, otherwise [`Verdict::Denied`]. Nothing
    /// has been taken.
    pub fn reserve_at(&self, now: u64, cost: u64, until: u64) -> Result<u64, Verdict> {
        let booked = match cost {
            // Nothing has to be booked.
            0 => Some(now),
            cost => self.shared().reserve_at(now, cost, until),
        };
        let booked = booked.ok_or_else(|| {
            // The peek may allow the request, if the algorithm cannot book ahead. The booking stays
            // refused.
            match self.shared().peek_at(now, cost).verdict {
                Verdict::Never => Verdict::Never,
                _ => Verdict::Denied,
            }
        });
        let _ = self.tally.count(booked.err().unwrap_or(Verdict::Allowed));
        if booked == Err(Verdict::Denied) {
            self.count_ban(now);
        }
        booked
    }

    /// Takes back up to `permits` unused permits of an earlier charge, without those that the
    /// limiter has regained by refill since the charge ([`GiveBack`](crate::algorithm::GiveBack)
    /// says why no more is safe). Returns the number that it took back.
    ///
    /// The caller must give back a charge only once. These algorithms take permits back, and the
    /// others take none:
    ///
    /// - Gcra without `borrow` and `ban`, unless the limiter's threads have credit.
    /// - Lifetime quotas.
    /// - Fixed windows, interval with `anchor first`, curves and calendars, in the charge's window
    ///   or slice. Weighted windows, in that window and the next.
    /// - Of a list each policy takes back the permits that it has not refilled. The return value is
    ///   of the policy that took more.
    ///
    /// If the policy has become a slower one since the charge, the call may return permits that the
    /// former policy has refilled. The limiter may then admit that many permits more than the
    /// slower policy's bound, and never more than the bounds of both policies together.
    ///
    /// ```
    /// use tollbar::algorithm::Charge;
    /// use tollbar::clock::Manual;
    /// use tollbar::{Limiter, State};
    ///
    /// let limiter = Limiter::with(State::new(&"1/s burst 10".parse()?)?, Manual::new(60_000_000_000));
    /// let charge = Charge { at: limiter.now(), cost: 8 };
    /// assert!(limiter.check(8).is_allowed()); // an estimate
    /// assert_eq!(limiter.give_back(charge, 5), 5); // it was 3
    /// assert_eq!(limiter.peek(1).remaining, 7);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn give_back(&self, charge: Charge, permits: u64) -> u64 {
        self.shared().give_back(charge, permits, || self.clock.now())
    }

    /// [`Limiter::give_back`] at the caller's time, which must not be earlier than that of any call
    /// that has returned.
    pub fn give_back_at(&self, now: u64, charge: Charge, permits: u64) -> u64 {
        self.shared().give_back(charge, permits, || now)
    }

    /// Counts a decision that a call with several limits made.
    pub(crate) fn count_decided(&self, verdict: Verdict, reason: Reason) {
        let _ = self.tally.count(verdict);
        self.tally.count_reason(reason);
    }

    /// Makes the state fresh, which ends a ban, too. Admissions of other threads in the same
    /// instant may survive it.
    pub fn reset(&self) {
        // A limit of 0 goes on with the state before it. All other states are not in use, or a
        // change of policy is about to charge them.
        self.shared.reset();
        self.changes.states().for_each(Shared::reset);
    }
}
