//! The answers of limiters and tables.

use crate::units::NEVER;
use core::time::Duration;

/// Whether a request may pass.
#[must_use = "a request that is refused must not pass"]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Verdict {
    /// The request may pass, and its cost has been charged.
    Allowed = 0,
    /// The request may not pass now. Nothing has been charged, unless the policy counts rejected
    /// requests.
    Denied = 1,
    /// The request may not pass at any time: its cost is more than the policy can ever have at
    /// once. Nothing has been charged.
    Never = 2,
}

/// Why a request was decided as it was. The numbers are part of the C face and never change their
/// meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Reason {
    /// Admitted: the limit had the permits.
    Admitted = 0,
    /// Denied: the permits are spent and come back with time (with a limit of 0, never).
    Rate = 1,
    /// Never: the cost is above the burst.
    Burst = 2,
    /// The table has no free slot for a new key. Denied under `deny`; allowed, and not stored,
    /// under `allow`.
    TableFull = 3,
    /// Denied: under `inherit` a new key inherits the debt of the slot that it needs.
    InheritedDebt = 4,
    /// The request had an empty key; the table's options say whether it passes.
    MissingKey = 5,
    /// Allowed and not charged: the key is exempt.
    Exempt = 6,
    /// Denied: the permits would have come within the caller's patience, but the most callers that
    /// may sleep are asleep already.
    QueueFull = 7,
    /// Denied: the table is damaged, or has no policy of that number.
    Fault = 8,
    /// Denied for now: the store has not answered yet.
    Pending = 9,
    /// Denied: the store's last answer said that the limit is used up.
    StoreDenied = 10,
    /// The store does not answer: the options of the lease decided.
    StoreDown = 11,
    /// Denied: the key is banned, and `retry_after` is the end of the ban for a cost of 1.
    Banned = 12,
    /// Denied: as many permits as the limit are in flight. They come back when their holders
    /// release them, so no wait is known.
    InFlight = 13,
    /// Denied or never: the request's class leaves permits to others. Without the reserve the
    /// request would have passed.
    Reserve = 14,
}

impl Reason {
    /// The reason for a verdict of the limit itself. The first three reasons have the numbers of
    /// the verdicts, so this compiles to a copy.
    #[inline(always)]
    pub const fn of(verdict: Verdict) -> Reason {
        match verdict {
            Verdict::Allowed => Reason::Admitted,
            Verdict::Denied => Reason::Rate,
            Verdict::Never => Reason::Burst,
        }
    }

    /// The number of the counter in [`Reasons`] for this reason. `None` if [`Reasons`] does not
    /// count it.
    #[inline]
    pub(crate) const fn counter(self) -> Option<usize> {
        match self {
            Reason::Banned => Some(0),
            Reason::Reserve => Some(1),
            Reason::QueueFull => Some(2),
            Reason::MissingKey => Some(3),
            Reason::Exempt => Some(4),
            _ => None,
        }
    }
}

/// How many decisions had each of these reasons. A decision with one of them also counts under its
/// verdict ([`Counts`]). The other reasons have no counter here: the verdict tells them, or another
/// statistic of the table counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Reasons {
    /// [`Reason::Banned`], with the refusal that began the ban.
    pub banned: u64,
    /// [`Reason::Reserve`].
    pub reserve: u64,
    /// [`Reason::QueueFull`].
    pub queue_full: u64,
    /// [`Reason::MissingKey`], admitted or denied. A limiter has none.
    pub missing_key: u64,
    /// [`Reason::Exempt`]. A limiter has none.
    pub exempt: u64,
}

impl Reasons {
    /// The number of counters.
    pub(crate) const FIELDS: usize = 5;

    /// The counts, which `of` returns by the number of their counter ([`Reason::counter`]).
    pub(crate) fn by_counter(of: impl Fn(usize) -> u64) -> Reasons {
        Reasons {
            banned: of(0),
            reserve: of(1),
            queue_full: of(2),
            missing_key: of(3),
            exempt: of(4),
        }
    }
}

/// Numbers of decisions by verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Counts {
    /// [`Verdict::Allowed`].
    pub allowed: u64,
    /// [`Verdict::Denied`].
    pub denied: u64,
    /// [`Verdict::Never`].
    pub never: u64,
}

/// A verdict with everything that a caller may want to pass on to its own client.
#[must_use = "a request that is refused must not pass"]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Decision {
    /// Whether the request may pass.
    pub verdict: Verdict,
    /// Why.
    pub reason: Reason,
    /// The number of permits that are left at this instant, after this decision. Other threads may
    /// have taken some since.
    pub remaining: u64,
    /// Nanoseconds after which the same request would be admitted, if no other request comes
    /// between. One nanosecond earlier it would still be refused. 0 if it was admitted; [`NEVER`]
    /// if waiting does not help.
    pub retry_after: u64,
    /// Nanoseconds until the state is as good as fresh, if no request comes between; [`NEVER`] if
    /// that is after the last time at which the policy admits a request.
    pub reset_after: u64,
    /// The index of the policy of a list that bound the decision: in a refusal the one with the
    /// longest wait, in an admission the one with the fewest permits left. 0 for a policy that is
    /// not a list.
    pub bound: u32,
}

impl Decision {
    /// An admission after which `remaining` permits are left, at any time.
    #[inline(always)]
    pub const fn admitted(remaining: u64) -> Decision {
        Decision {
            verdict: Verdict::Allowed,
            reason: Reason::Admitted,
            remaining,
            retry_after: 0,
            reset_after: 0,
            bound: 0,
        }
    }

    /// Whether the request may pass.
    #[inline(always)]
    pub const fn is_allowed(&self) -> bool {
        matches!(self.verdict, Verdict::Allowed)
    }

    /// The decision as a result, for `?`.
    ///
    /// ```
    /// fn serve(limiter: &tollbar::Limiter) -> Result<&'static str, tollbar::NotAdmitted> {
    ///     limiter.check(1).ok()?;
    ///     Ok("welcome")
    /// }
    /// let limiter = "1/h".parse()?;
    /// assert_eq!(serve(&limiter)?, "welcome");
    /// assert!(serve(&limiter).unwrap_err().to_string().starts_with("refused: again in 3599"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`NotAdmitted`] unless [`Decision::is_allowed`].
    pub const fn ok(self) -> Result<(), NotAdmitted> {
        match self.is_allowed() {
            true => Ok(()),
            false => Err(NotAdmitted(self)),
        }
    }

    /// This decision with another reason.
    #[inline(always)]
    pub const fn because(self, reason: Reason) -> Decision {
        Decision { reason, ..self }
    }

    /// How long to wait until the same request could pass, to the nanosecond. `None` if the request
    /// passed, or if waiting does not help.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollbar::clock::Manual;
    /// use tollbar::{Limiter, Policy, State};
    ///
    /// let limiter = Limiter::with(State::new(&Policy::per_minute(3))?, Manual::new(0));
    /// assert_eq!(limiter.check(3).retry_after(), None); // it passed
    /// assert_eq!(limiter.check(1).retry_after(), Some(Duration::from_secs(20)));
    /// assert_eq!(limiter.check(4).retry_after(), None); // above the burst: it never passes
    /// # Ok::<(), tollbar::PolicyError>(())
    /// ```
    pub const fn retry_after(&self) -> Option<Duration> {
        match self.retry_ns() {
            Some(wait) => Some(Duration::from_nanos(wait)),
            None => None,
        }
    }

    /// [`Decision::retry_after()`] in nanoseconds.
    pub const fn retry_ns(&self) -> Option<u64> {
        match self.verdict {
            Verdict::Denied if self.retry_after != NEVER => Some(self.retry_after),
            _ => None,
        }
    }

    /// How long until the state is as good as fresh, if no request comes between. `None` if that is
    /// after the last time at which the policy admits a request.
    pub const fn reset_after(&self) -> Option<Duration> {
        match self.reset_after {
            NEVER => None,
            wait => Some(Duration::from_nanos(wait)),
        }
    }
}

/// A refusal as an error. It has the decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NotAdmitted(pub Decision);

impl core::fmt::Display for NotAdmitted {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.0.retry_after() {
            Some(wait) => write!(f, "refused: again in {wait:?}"),
            None => write!(f, "refused: no wait helps ({:?})", self.0.reason),
        }
    }
}

impl core::error::Error for NotAdmitted {}

/// D5: a decision that nobody looks at lets a refused request pass.
///
/// ```compile_fail
/// #![deny(unused_must_use)]
/// let limiter = tollbar::Limiter::new(&tollbar::Policy::new(5, 1_000_000_000)).unwrap();
/// limiter.check(1);
/// ```
///
/// ```
/// #![deny(unused_must_use)]
/// let limiter = tollbar::Limiter::new(&tollbar::Policy::new(5, 1_000_000_000)).unwrap();
/// let _ = limiter.check(1);
/// ```
#[cfg(doctest)]
struct Unused;
