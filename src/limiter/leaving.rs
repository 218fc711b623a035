//! Requests that leave a reserve: that of their class, or the caller's.

use super::{Limiter, Shared, State};
use crate::clock::Clock;
use crate::decision::Decision;
use crate::policy::PolicyError;

impl<C: Clock> Limiter<State, C> {
    /// [`Limiter::check`] of a request that passes only if at least `reserve` permits are left
    /// after it. So classes of requests can share one limiter: the highest class calls
    /// [`Limiter::check`], and each other class leaves a reserve to the higher classes.
    ///
    /// A refusal's `retry_after` is the time until the cost and the reserve are there. If cost and
    /// reserve together are above the burst, the request is never admitted. The reserve is a part
    /// of the burst and not of the rate: while higher classes take every permit that is refilled,
    /// lower classes get none. A refusal because of the reserve counts toward a ban.
    ///
    /// ```
    /// use tollbar::clock::Manual;
    /// use tollbar::{Limiter, State};
    ///
    /// let limiter = Limiter::with(State::new(&"100/s".parse()?)?, Manual::new(60_000_000_000));
    /// let standard = (0..200).filter(|_| limiter.check_leaving(1, 20).is_ok_and(|d| d.is_allowed())).count();
    /// assert_eq!(standard, 80);
    /// assert_eq!(limiter.take_up_to(100), 20); // for urgent requests
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`PolicyError::OptionMismatch`] for policies without a reserve: those that lend (`borrow`,
    /// pacer, warm-up), those with more than one word (sliding window, sliding log), and limiters
    /// whose threads have credit. The call has charged nothing.
    pub fn check_leaving(&self, cost: u64, reserve: u64) -> Result<Decision, PolicyError> {
        self.check_leaving_at(self.clock().now(), cost, reserve)
    }

    /// [`Limiter::check_leaving`] at the caller's time.
    ///
    /// # Errors
    /// Those of [`Limiter::check_leaving`].
    pub fn check_leaving_at(
        &self,
        now: u64,
        cost: u64,
        reserve: u64,
    ) -> Result<Decision, PolicyError> {
        let State::Cell(cell) = self.shared() else { return Err(PolicyError::OptionMismatch) };
        if !cell.algorithm().keeps_reserves() {
            return Err(PolicyError::OptionMismatch);
        }
        let decision = cell.check_leaving_at(now, cost, reserve);
        self.count_decided(decision.verdict, decision.reason);
        Ok(decision)
    }
}

impl<S: Shared, C: Clock> Limiter<S, C> {
    /// [`Limiter::check`] of a request of a class of the policy, given by its name, or by its
    /// number: "1" for the first one. The request passes only if the class's reserve is left after
    /// it. A refusal for the reserve has [`Reason::Reserve`](crate::Reason::Reserve), and its
    /// `retry_after` is the earliest time at which the cost and the reserve are there.
    ///
    /// ```
    /// use tollbar::{Limiter, Reason};
    ///
    /// let limiter = Limiter::new(&"100/h reserve standard 20 urgent 0".parse()?)?;
    /// for _ in 0..80 {
    ///     assert!(limiter.check_class(1, "standard")?.is_allowed());
    /// }
    /// assert_eq!(limiter.check_class(1, "standard")?.reason, Reason::Reserve);
    /// assert!(limiter.check_class(1, "urgent")?.is_allowed());
    /// assert!(limiter.check_class(1, "urgnet").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`PolicyError::NoSuchClass`]. Nothing has been charged.
    pub fn check_class(&self, cost: u64, class: &str) -> Result<Decision, PolicyError> {
        self.check_class_at(self.clock().now(), cost, class.as_bytes())
    }

    /// [`Limiter::check_class`] at the caller's time, for a class as bytes.
    ///
    /// # Errors
    /// Those of [`Limiter::check_class`].
    pub fn check_class_at(
        &self,
        now: u64,
        cost: u64,
        class: &[u8],
    ) -> Result<Decision, PolicyError> {
        let decision = self.shared().check_class_at(now, cost, class)?;
        self.count_decided(decision.verdict, decision.reason);
        Ok(decision)
    }
}
