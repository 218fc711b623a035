//! Requests that leave a reserve.

use super::{Limiter, State};
use crate::clock::Clock;
use crate::decision::Decision;
use crate::policy::PolicyError;

impl<C: Clock> Limiter<State, C> {
    /// [`Limiter::check`] of a request that passes only if at least `reserve` permits are left after it. So classes of requests can share one limiter: the
    /// highest class calls [`Limiter::check`], and each other class leaves a reserve to the higher classes.
    ///
    /// A refusal's `retry_after` is the time until the cost and the reserve are there. If cost and reserve together are above the burst, the request is
    /// never admitted. The reserve is a part of the burst and not of the rate: while higher classes take every permit that is refilled, lower classes
    /// get none. A refusal because of the reserve counts toward a ban.
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
    /// [`PolicyError::OptionMismatch`] for policies without a reserve: those that lend (`borrow`, pacer, warm-up), those with more than one word (sliding
    /// window, sliding log), and limiters whose threads have credit. The call has charged nothing.
    pub fn check_leaving(&self, cost: u64, reserve: u64) -> Result<Decision, PolicyError> {
        self.check_leaving_at(self.clock().now(), cost, reserve)
    }

    /// [`Limiter::check_leaving`] at the caller's time.
    ///
    /// # Errors
    /// Those of [`Limiter::check_leaving`].
    pub fn check_leaving_at(&self, now: u64, cost: u64, reserve: u64) -> Result<Decision, PolicyError> {
        let State::Cell(cell) = self.shared() else { return Err(PolicyError::OptionMismatch) };
        if !cell.algorithm().keeps_reserves() {
            return Err(PolicyError::OptionMismatch);
        }
        let decision = cell.check_leaving_at(now, cost, reserve);
        self.count_decided(decision.verdict);
        Ok(decision)
    }
}
