//! The calls that every shared state has.

use super::fast::Fast;
use super::waiting::last_by_peeks;
use super::watch::Watch;
use crate::algorithm::{needed, Charge};
use crate::decision::{Decision, Verdict};
use crate::policy::PolicyError;

/// A state that threads share. All calls are lock-free, and none allocates or blocks.
///
/// The states are those of this crate: a program cannot implement this trait.
pub trait Shared: Fast {
    /// Decides and charges, and returns the verdict only. A cost of 0 is always allowed.
    fn admit_at(&self, now: u64, cost: u64) -> Verdict;

    /// Decides and charges.
    fn check_at(&self, now: u64, cost: u64) -> Decision;

    /// Returns what [`Shared::check_at`] would return, and charges nothing. It may write one thing:
    /// in a log, an entry that its owner has not written yet.
    fn peek_at(&self, now: u64, cost: u64) -> Decision;

    /// [`Shared::peek_at`] of a request whose refusal would not count toward a ban. It tells when
    /// permits come to a client that waits for them.
    fn peek_uncounted_at(&self, now: u64, cost: u64) -> Decision {
        self.peek_at(now, cost)
    }

    /// The permits that a request of a class of the policy leaves, given by its name or number.
    ///
    /// # Errors
    /// [`PolicyError::NoSuchClass`].
    fn reserve_of(&self, class: &[u8]) -> Result<u64, PolicyError> {
        let _ = class;
        Err(PolicyError::NoSuchClass)
    }

    /// [`Shared::check_at`] of a request that passes only if `reserve` permits are left after it.
    /// States that keep no reserves ([`Shared::reserve_of`]) refuse every request with one.
    #[doc(hidden)]
    fn check_leaving_at(&self, now: u64, cost: u64, reserve: u64) -> Decision {
        match reserve {
            0 => self.check_at(now, cost),
            _ => self.peek_at(now, u64::MAX),
        }
    }

    /// [`Shared::peek_at`] of such a request.
    #[doc(hidden)]
    fn peek_leaving_at(&self, now: u64, cost: u64, reserve: u64) -> Decision {
        self.peek_at(now, needed(cost, reserve))
    }

    /// [`Shared::check_at`] of a request of a class of the policy, given by its name or number.
    ///
    /// # Errors
    /// [`PolicyError::NoSuchClass`]. Nothing has been charged.
    fn check_class_at(&self, now: u64, cost: u64, class: &[u8]) -> Result<Decision, PolicyError> {
        Ok(self.check_leaving_at(now, cost, self.reserve_of(class)?))
    }

    /// Takes all permits that are left, but at most `most`. Returns how many it took.
    fn take_up_to_at(&self, now: u64, most: u64) -> u64;

    /// Takes `cost` permits for the earliest instant at which they may be used, and returns that
    /// instant. `None`, and nothing changes, if it is after `until` or if the algorithm cannot book
    /// ahead.
    fn reserve_at(&self, now: u64, cost: u64, until: u64) -> Option<u64>;

    /// Charges `cost` permits whether or not they are there, after the work. The state goes into
    /// debt as far as it can hold one ([`Algorithm::charge`](crate::algorithm::Algorithm::charge);
    /// rings and logs hold no debt, and charge the permits that are left). Returns the rest of the
    /// cost, which has not been charged.
    fn charge_at(&self, now: u64, cost: u64) -> u64 {
        cost.saturating_sub(self.take_up_to_at(now, cost))
    }

    /// Whether [`Shared::reserve_at`] works.
    fn books_ahead(&self) -> bool;

    /// Gives back up to `permits` permits of an earlier charge, as far as the bound allows
    /// ([`GiveBack`](crate::algorithm::GiveBack)), and returns how many. The call reads the state
    /// before it calls `now`.
    fn give_back(&self, charge: Charge, permits: u64, now: impl Fn() -> u64) -> u64 {
        let _ = (charge, permits, now);
        0
    }

    /// The nanoseconds in which the limit refills one permit. `None` if [`Shared::give_back`] never
    /// gives any back.
    fn refill(&self) -> Option<u64> {
        None
    }

    /// When the last of requests for `costs` would pass, which come one after the other from `now`
    /// on and find no other request before them, or earlier. The call may stop after `until`. It
    /// charges nothing.
    fn last_of(&self, now: u64, costs: &mut dyn Iterator<Item = u64>, until: u64) -> u64 {
        let _ = until;
        let peek = |cost| Ok::<_, core::convert::Infallible>(self.peek_at(now, cost));
        match last_by_peeks(now, costs, peek) {
            Ok(at) => at,
            Err(never) => match never {},
        }
    }

    /// Whether a ban refuses requests at `now`.
    fn bans(&self, now: u64) -> bool {
        let _ = now;
        false
    }

    /// Whether refusals lead to a ban. If so, a caller that may wait for permits peeks first.
    fn counts_refusals(&self) -> bool {
        false
    }

    /// Makes the state fresh. Admissions of other threads in the same instant may survive it.
    fn reset(&self);

    /// The count of the clock's steps back.
    fn watch(&self) -> &Watch;
}
