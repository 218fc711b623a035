//! Several limits in one request: one for the user and one for the address, one a second and one a day.
//!
//! # What holds
//!
//! *A call charges all of its limits or none, and no limit ever admits more than its bound.* There are two exceptions to "none". A call
//! that loses a race has charged some limits before another one refuses. It returns these permits, without those that the limits have
//! refilled meanwhile. Until then these limits may refuse other requests. And if a process is killed between two charges, the charges that
//! it made stay until the limits have refilled them.
//!
//! # How
//!
//! 1. The call merges limits that are the same: one part has their costs together.
//! 2. It peeks at the limits in turn and writes nothing. If a limit refuses, the call charges none. That limit records the refusal, as a
//!    check would: some policies count refusals, and a bucket with `init` begins to fill.
//! 3. It charges the limits in an order that is the same for all calls: the limit that refills a permit fastest comes first. So two calls
//!    that race for the same limits meet at the first of them, and one of the two passes. If a limit refuses now because another call was
//!    faster, the call returns its earlier charges, as far as [`GiveBack`](crate::algorithm::GiveBack) allows.
//!
//! Limits that cannot take permits back come last, and the last limit is never charged for a request that another limit refuses: beside
//! `10/s`, `1/day` keeps its permit. If there are two limits that cannot take permits back (sliding windows, logs, tables whose threads
//! have had credit, …), the first of them stays charged when the call loses a race for the second.

mod answer;
mod part;
mod several;

#[doc(hidden)]
pub use several::Several;

use crate::algorithm::Charge;
use crate::clock::Clock;
use crate::decision::{Decision, Verdict};
use crate::limiter::{Limiter, Shared};
#[cfg(not(loom))]
use crate::table::{PolicyId, Table, TableError};

/// The most limits of one call.
pub const LIMITS_MOST: usize = 16;

/// Any [`Limiter`].
pub trait AnyLimiter: Sync {
    /// [`Limiter::now`].
    fn now(&self) -> u64;
    /// Returns what a check at `now` would return.
    fn peek_at(&self, now: u64, cost: u64) -> Decision;
    /// Charges, and leaves the counts to the caller.
    fn charge_at(&self, now: u64, cost: u64) -> Decision;
    /// Gives a charge back.
    fn undo(&self, charge: Charge, now: &dyn Fn() -> u64);
    /// Counts a decision.
    fn count(&self, verdict: Verdict);
    /// The nanoseconds in which the limit refills one permit. `u64::MAX` if it never takes permits back.
    fn refill(&self) -> u64;
}

impl<S: Shared, C: Clock + Sync> AnyLimiter for Limiter<S, C> {
    fn now(&self) -> u64 {
        Limiter::now(self)
    }

    fn peek_at(&self, now: u64, cost: u64) -> Decision {
        self.shared().peek_at(now, cost)
    }

    fn charge_at(&self, now: u64, cost: u64) -> Decision {
        self.shared().check_at(now, cost)
    }

    fn undo(&self, charge: Charge, now: &dyn Fn() -> u64) {
        self.shared().give_back(charge, charge.cost, now);
    }

    fn count(&self, verdict: Verdict) {
        self.count_decided(verdict);
    }

    fn refill(&self) -> u64 {
        self.shared().refill().unwrap_or(u64::MAX)
    }
}

/// One limit of a request, and the cost of the request there.
#[derive(Clone, Copy)]
pub enum Limit<'a> {
    /// Admits every request, for callers some of whose limits are optional.
    Unlimited,
    /// A limiter.
    Limiter(&'a dyn AnyLimiter, u64),
    /// A key under a policy of a table.
    #[cfg(not(loom))]
    Key(&'a Table, PolicyId, &'a [u8], u64),
}

/// The common answer of several limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The decision of all limits together: the verdict, the smallest number of remaining permits, the longest wait, and the time until all
    /// limits are fresh. The reason is that of the binding limit.
    pub decision: Decision,
    /// The index of the binding limit. If the request was refused, that is the limit with the longest wait, otherwise the limit with the
    /// fewest permits left.
    pub bound: usize,
}

/// The error of a call with several limits: nothing has been charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManyError {
    /// There are no limits, or more than [`LIMITS_MOST`].
    Count,
    /// The table of the limit with this index cannot decide.
    #[cfg(not(loom))]
    Table(usize, TableError),
}

impl core::fmt::Display for ManyError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            ManyError::Count => write!(f, "a request has 1 to {LIMITS_MOST} limits"),
            #[cfg(not(loom))]
            ManyError::Table(n, error) => write!(f, "limit {n}: {error}"),
        }
    }
}

impl core::error::Error for ManyError {}

/// Charges each limit with its cost, or charges none. Each limit reads its own clock.
///
/// ```
/// use tollbar::take_many::{take_many, Limit};
/// use tollbar::table::{Options, PolicyId, Table};
/// use tollbar::Limiter;
///
/// let all = Limiter::new(&"1000/s".parse()?)?;
/// let users = Table::private(&Options::new(10_000), &["2/s".parse()?, "5/day".parse()?])?;
/// let (second, day) = (PolicyId::new(0), PolicyId::new(1));
/// let ask = |user: &[u8]| {
///     take_many(&[Limit::Limiter(&all, 1), Limit::Key(&users, second, user, 1), Limit::Key(&users, day, user, 1)])
/// };
/// assert!(ask(b"ann")?.decision.is_allowed());
/// assert!(ask(b"ann")?.decision.is_allowed());
/// let refused = ask(b"ann")?;
/// assert_eq!((refused.decision.is_allowed(), refused.bound), (false, 1)); // 2/s
/// assert_eq!(users.peek(day, b"ann", 1).remaining, 3); // which the refusal left alone
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`ManyError`]. Nothing has been charged.
pub fn take_many(limits: &[Limit<'_>]) -> Result<Taken, ManyError> {
    take_all(limits, None, Some(&mut []))
}

/// [`take_many`] at the caller's time.
///
/// # Errors
/// Those of [`take_many`].
pub fn take_many_at(limits: &[Limit<'_>], now: u64) -> Result<Taken, ManyError> {
    take_all(limits, Some(now), Some(&mut []))
}

/// [`take_many`] or, with a time, [`take_many_at`], with the decision of each limit in `decisions[i]`. If the request is refused, each
/// limit gives the decision that it would make alone. Without `decisions` the answer has a verdict and a reason only, and an admission is
/// cheaper.
///
/// # Errors
/// Those of [`take_many`].
pub fn take_all(
    limits: &[Limit<'_>],
    now: Option<u64>,
    decisions: Option<&mut [Decision]>,
) -> Result<Taken, ManyError> {
    let mut several = Several::new(now);
    for limit in limits {
        several.add(limit)?;
    }
    several.take(decisions)
}
