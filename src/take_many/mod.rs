//! Several limits in one request: for example one for the user and one for the address, or one a
//! second and one a day.
//!
//! # The guarantee
//!
//! *A call charges all of its limits or none, and no limit ever admits more than its bound.* There
//! are two exceptions to "none". A call that loses a race has charged some limits before another
//! one refuses. It returns these permits, without those that the limits have refilled meanwhile.
//! Until then these limits may refuse other requests. And if a process is killed between two
//! charges, the charges that it made stay until the limits have refilled them.
//!
//! # The steps of a call
//!
//! 1. The call merges limits that are the same, and adds up their costs: one limiter, or one key
//!    under one policy of one table, also through two views of its file. Requests of several
//!    classes at one limit pass if they pass one after the other in some order, so the class with
//!    the largest reserve counts first (`several.rs`).
//! 2. It peeks at all limits and writes nothing. If a limit refuses, the call charges none. Each
//!    limit that refuses records the refusal, as a check would: some policies count refusals, and a
//!    bucket with `init` begins to fill.
//! 3. It charges the limits in an order that is the same for all calls: the limit that refills a
//!    permit fastest comes first. So two calls that race for the same limits meet at the first of
//!    them, and one of the two passes. If a limit refuses now because another call was faster, the
//!    call returns its earlier charges, as far as [`GiveBack`](crate::algorithm::GiveBack) allows.
//!
//! A table that has room for one of the request's new keys only refuses the other at its charge, as
//! if the call had lost a race.
//!
//! Limits that cannot take permits back come last ([`Limiter::give_back`] and [`Table::give_back`]
//! list them). The last limit is never charged for a request that another limit refuses: beside
//! `10/s`, `1/day` keeps its permit. If two limits of a request cannot take permits back, the first
//! of them stays charged when the call loses a race for the second.
//!
//! A limit may also be a permit in flight ([`Limit::InFlight`]): "10/s, and at most 4 at one time".
//! The call acquires it before it charges any rate. If a rate refuses, the call releases the
//! permit. If the in-flight limit refuses, no rate is charged.

mod answer;
mod in_flight;
#[cfg(all(loom, test))]
mod models;
mod part;
mod several;

#[doc(hidden)]
pub use several::Several;
pub use several::{take_all, take_many, take_many_at};

use crate::algorithm::{needed, Charge};
use crate::clock::Clock;
use crate::decision::{Decision, Reason, Verdict};
#[cfg(not(loom))]
use crate::in_flight::{Adaptive, InFlight};
use crate::in_flight::{Refusal, Ticket};
use crate::limiter::{Limiter, Shared};
use crate::policy::PolicyError;
#[cfg(not(loom))]
use crate::table::{PolicyId, RequestError, Table};
use core::cell::Cell;

/// The most limits of one call.
pub const LIMITS_MOST: usize = 16;

/// Any [`Limiter`].
pub trait AnyLimiter: Sync {
    /// [`Limiter::now`].
    fn now(&self) -> u64;
    /// The permits that a request of that class leaves.
    ///
    /// # Errors
    /// [`PolicyError::NoSuchClass`].
    fn reserve_of(&self, class: &[u8]) -> Result<u64, PolicyError> {
        let _ = class;
        Err(PolicyError::NoSuchClass)
    }
    /// Returns what a check at `now` would return, of a request that leaves `reserve` permits. A
    /// limiter without classes is never asked.
    fn peek_leaving_at(&self, now: u64, cost: u64, reserve: u64) -> Decision {
        self.peek_at(now, needed(cost, reserve))
    }
    /// Charges such a request, and leaves the counts to the caller. A limiter without classes is
    /// never asked, and this one refuses.
    fn charge_leaving_at(&self, now: u64, cost: u64, reserve: u64) -> Decision {
        let _ = (cost, reserve);
        self.peek_at(now, u64::MAX)
    }
    /// Returns what a check at `now` would return.
    fn peek_at(&self, now: u64, cost: u64) -> Decision;
    /// Charges, and leaves the counts to the caller.
    fn charge_at(&self, now: u64, cost: u64) -> Decision;
    /// Gives a charge back.
    fn undo(&self, charge: Charge, now: &dyn Fn() -> u64);
    /// Counts a decision by its verdict and its reason.
    fn count(&self, verdict: Verdict, reason: Reason);
    /// The nanoseconds in which the limit refills one permit. `u64::MAX` if it never takes permits
    /// back.
    fn refill(&self) -> u64;
}

impl<S: Shared, C: Clock + Sync> AnyLimiter for Limiter<S, C> {
    fn now(&self) -> u64 {
        Limiter::now(self)
    }

    fn peek_at(&self, now: u64, cost: u64) -> Decision {
        self.shared().peek_at(now, cost)
    }

    fn reserve_of(&self, class: &[u8]) -> Result<u64, PolicyError> {
        self.shared().reserve_of(class)
    }

    fn peek_leaving_at(&self, now: u64, cost: u64, reserve: u64) -> Decision {
        self.shared().peek_leaving_at(now, cost, reserve)
    }

    fn charge_leaving_at(&self, now: u64, cost: u64, reserve: u64) -> Decision {
        self.shared().check_leaving_at(now, cost, reserve)
    }

    fn charge_at(&self, now: u64, cost: u64) -> Decision {
        self.shared().check_at(now, cost)
    }

    fn undo(&self, charge: Charge, now: &dyn Fn() -> u64) {
        self.shared().give_back(charge, charge.cost, now);
    }

    fn count(&self, verdict: Verdict, reason: Reason) {
        self.count_decided(verdict, reason);
    }

    fn refill(&self) -> u64 {
        self.shared().refill().unwrap_or(u64::MAX)
    }
}

/// Any in-flight table, which is an `InFlight`.
pub trait AnyInFlight: Sync {
    /// Acquires a permit of a key unless `limit` are in flight.
    ///
    /// # Errors
    /// [`Refusal`].
    fn acquire(&self, key: &[u8], limit: u32) -> Result<Ticket, Refusal>;
    /// Releases a permit.
    fn release(&self, ticket: Ticket) -> bool;
    /// The number of permits of a key in flight. If that is `limit` or more, permits of ended
    /// owners do not count.
    fn in_flight(&self, key: &[u8], limit: u32) -> u64;
    /// The key's place in the order in which all processes acquire permits of this table.
    fn rank(&self, key: &[u8]) -> u64;
}

#[cfg(not(loom))]
impl AnyInFlight for InFlight {
    fn acquire(&self, key: &[u8], limit: u32) -> Result<Ticket, Refusal> {
        InFlight::acquire(self, key, limit)
    }

    fn release(&self, ticket: Ticket) -> bool {
        InFlight::release(self, ticket)
    }

    fn in_flight(&self, key: &[u8], limit: u32) -> u64 {
        self.count_of_living(key, limit)
    }

    fn rank(&self, key: &[u8]) -> u64 {
        self.hash(key)
    }
}

/// One limit of a request, and the cost of the request there.
#[derive(Clone, Copy)]
pub enum Limit<'a> {
    /// No limit: it admits every request. A caller with optional limits can use it in place of one
    /// that is off.
    Unlimited,
    /// A limiter.
    Limiter(&'a dyn AnyLimiter, u64),
    /// A key under a policy of a table.
    #[cfg(not(loom))]
    Key(&'a Table, PolicyId, &'a [u8], u64),
    /// A [`Limit::Limiter`] or a [`Limit::Key`], with the class of the request:
    /// `Limit::Class("low", &Limit::Limiter(&all, 1))`.
    Class(&'a str, &'a Limit<'a>),
    /// One permit of a key of an in-flight table: the table, the key, the most permits of the key
    /// in flight, and a cell. If the call admits the request, it stores the permit's ticket in the
    /// cell, and the caller releases it. Otherwise the cell does not change. A key that is named
    /// twice takes two permits.
    InFlight(&'a dyn AnyInFlight, &'a [u8], u32, &'a Cell<Ticket>),
}

#[cfg(not(loom))]
impl<'a> Limit<'a> {
    /// A [`Limit::InFlight`] whose most permits are the present value of `limit`. So one call takes
    /// from rates and opens a request at a server whose limit follows its latency:
    ///
    /// ```
    /// use std::cell::Cell;
    /// use tollbar::in_flight::{Adaptive, AdaptiveOptions, InFlight, Options, Outcome};
    /// use tollbar::take_many::{take_many, Limit};
    /// use tollbar::Limiter;
    ///
    /// let ann = Limiter::new(&"10/s".parse()?)?;
    /// let open = InFlight::private(&Options::new(100))?;
    /// let server = Adaptive::new(&AdaptiveOptions::gradient2(20, 5, 200));
    /// let ticket = Cell::default();
    /// let limits = [Limit::Limiter(&ann, 1), Limit::adaptive(&server, &open, b"server", &ticket)];
    /// if take_many(&limits)?.decision.is_allowed() {
    ///     let begin = std::time::Instant::now();
    ///     // ... ask the server ...
    ///     let latency = begin.elapsed().as_nanos() as u64;
    ///     server.release_key(&open, b"server", ticket.get(), Outcome::Answered, latency);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn adaptive(
        limit: &Adaptive,
        table: &'a InFlight,
        key: &'a [u8],
        ticket: &'a Cell<Ticket>,
    ) -> Limit<'a> {
        Limit::InFlight(table, key, limit.limit(), ticket)
    }
}

/// The common answer of several limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The decision of all limits together: the verdict, the smallest number of remaining permits,
    /// the earliest time at which all limits admit the request if no other request comes, and the
    /// time until all limits are fresh. That time may be after the longest wait of a single limit,
    /// because permits of a `curve` are lost at the end of its slice. The reason is that of the
    /// binding limit. The wait for a permit in flight is unknown, so it is [`NEVER`](crate::NEVER).
    pub decision: Decision,
    /// The index of the binding limit. If the request was refused, that is the limit with the
    /// longest wait, otherwise the limit with the fewest permits left.
    pub bound: usize,
}

/// The error of a call with several limits: nothing has been charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManyError {
    /// There are no limits, or more than [`LIMITS_MOST`].
    Count,
    /// The policy of the limiter with this index has no such class, or the limit can have no class.
    Class(usize),
    /// The table of the limit with this index cannot decide.
    #[cfg(not(loom))]
    Table(usize, RequestError),
    /// The in-flight table of the limit with this index is too small: [`Refusal::Full`] or
    /// [`Refusal::OwnersFull`].
    InFlight(usize, Refusal),
}

impl core::fmt::Display for ManyError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            ManyError::Count => write!(f, "a request has 1 to {LIMITS_MOST} limits"),
            ManyError::Class(n) => write!(f, "limit {n}: {}", PolicyError::NoSuchClass),
            #[cfg(not(loom))]
            ManyError::Table(n, error) => write!(f, "limit {n}: {error}"),
            ManyError::InFlight(n, refusal) => write!(f, "limit {n}: {refusal}"),
        }
    }
}

impl core::error::Error for ManyError {}
