//! The change of a limiter's policy ([`change`](super::change)), now or at the time of the caller.

use super::{clock_fits, Limiter, State};
use crate::clock::Clock;
use crate::policy::{Keep, Policy, PolicyError};

impl<C: Clock> Limiter<State, C> {
    /// Changes the policy while other threads use the limiter. `keep` says what the limiter keeps
    /// of its state; between windows of one length [`Keep::Count`] and [`Keep::Time`] keep the
    /// usage.
    ///
    /// Calls that run at the same time neither wait nor fail. Such a call is decided under one of
    /// the two policies. In any interval the limiter admits at most the sum of the bounds of all
    /// policies that were in force in that interval, each as often as it came into force. Permits
    /// that were booked ahead keep their departures.
    ///
    /// A limiter keeps a state for each policy that it has been changed to. Calls after a change do
    /// not use the quick way of the first policy.
    ///
    /// ```
    /// use tollbar::policy::Keep;
    /// use tollbar::Limiter;
    ///
    /// let limiter = Limiter::new(&"10/min".parse()?)?;
    /// assert!(limiter.check(4).is_allowed());
    /// limiter.set_policy(&"100/min".parse()?, Keep::Count)?;
    /// assert_eq!(limiter.peek(1).remaining, 6); // six were left
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`PolicyError::OptionMismatch`] for a limiter whose threads have credit,
    /// [`PolicyError::Changes`] after 4,096 different policies, and those of [`State::new`]. The
    /// policy stays as it was.
    pub fn set_policy(&self, policy: &Policy, keep: Keep) -> Result<(), PolicyError> {
        clock_fits(policy, &self.clock)?;
        self.changes.change(&self.shared, policy, keep, &|| self.clock.now())
    }

    /// [`Limiter::set_policy`] at the caller's time.
    ///
    /// # Errors
    /// Those of [`Limiter::set_policy`].
    pub fn set_policy_at(&self, now: u64, policy: &Policy, keep: Keep) -> Result<(), PolicyError> {
        clock_fits(policy, &self.clock)?;
        self.changes.change(&self.shared, policy, keep, &|| now)
    }

    /// The policy that the limiter was last changed to; `None` if it has not been changed.
    pub fn changed_policy(&self) -> Option<&Policy> {
        self.changes.policy()
    }
}
