//! Waiting for a limiter's permits in asynchronous code.

use super::{waiting, Limiter, Shared};
use crate::clock::Clock;
use crate::decision::{Decision, NotAdmitted};
use crate::units::nanos;
use core::future::Future;
use core::time::Duration;

/// Waits in futures. They need no runtime of their own: `sleep` makes the runtime's future for a
/// time, such as `tokio::time::sleep` or `async_io::Timer::after`.
///
/// ```no_run
/// # mod tokio { pub mod time { pub async fn sleep(_: std::time::Duration) {} } }
/// # async fn send() -> Result<(), Box<dyn std::error::Error>> {
/// let limiter: tollbar::Limiter = "10/s".parse()?;
/// limiter.until_ready(tokio::time::sleep).await?;
/// // send
/// # Ok(())
/// # }
/// ```
///
/// Tasks and the threads of [`Limiter::wait`] are in one queue: each gets its permits in the order
/// of its first poll or call. A future that is dropped leaves the queue and gives back what it has
/// booked, so it may stand in a `select!` or a timeout.
///
/// A limiter's clock and `sleep` may differ. A future that wakes early sleeps again; one that wakes
/// late has its permits.
impl<S: Shared, C: Clock> Limiter<S, C> {
    /// Takes one permit, and waits for it as long as it takes.
    ///
    /// # Errors
    /// [`NotAdmitted`], with nothing taken: if no wait helps, or if as many callers sleep as may
    /// ([`Limiter::with_waiters`], 1,024 if not set).
    pub async fn until_ready<F: Future>(
        &self,
        sleep: impl Fn(Duration) -> F,
    ) -> Result<(), NotAdmitted> {
        self.until_n_ready(1, sleep).await
    }

    /// [`Limiter::until_ready`] of `cost` permits.
    ///
    /// # Errors
    /// Those of [`Limiter::until_ready`]. A cost above the burst never passes.
    pub async fn until_n_ready<F: Future>(
        &self,
        cost: u64,
        sleep: impl Fn(Duration) -> F,
    ) -> Result<(), NotAdmitted> {
        self.until_n_ready_within(cost, Duration::MAX, sleep).await.ok()
    }

    /// [`Limiter::wait`] in a future: it refuses at once, with nothing taken, if the permits would
    /// come later than `patience` after the first poll. A timeout around the other calls waits in
    /// vain first.
    pub async fn until_n_ready_within<F: Future>(
        &self,
        cost: u64,
        patience: Duration,
        sleep: impl Fn(Duration) -> F,
    ) -> Decision {
        let deadline = self.clock.now().saturating_add(nanos(patience));
        let wait = waiting::until(self, &self.clock, &self.waiting, 0, cost, deadline, sleep).await;
        let decision = match wait {
            Ok(decision) => decision,
            Err(never) => match never {},
        };
        self.tally.count_with_reason(&decision);
        decision
    }
}
