//! The last time of each policy.
//!
//! A state word holds a time, so it has an end. Every policy has one last clock reading at which it
//! admits. It is the same for cells, for limiters with credit and without, and for tables. At all
//! later readings, [`NEVER`](crate::NEVER) among them, every call and every batch refuses every
//! cost above 0.

use super::sliding_log::SlidingLog;
use super::sliding_window::SlidingWindow;
use super::{Algorithm, Rule};
use crate::policy::{Policy, PolicyError, Words};
use crate::units::LAST;

impl Policy {
    /// The last clock reading, in nanoseconds, at which this policy admits a request. Later
    /// requests are refused, with a `retry_after` of [`NEVER`](crate::NEVER).
    ///
    /// It is [`LAST`], 73 years from the clock's zero, for every policy of at most 4·10⁹ permits
    /// per second whose burst refills within two years and whose period is below 12 years. Other
    /// policies may end earlier, down to 2⁵⁸ ns (9 years).
    ///
    /// On a clock of Unix time [`LAST`] is in January 2043, and the last time of some of the other
    /// policies has passed. Compare it with the clock before you use such a policy.
    ///
    /// ```
    /// use tollbar::Policy;
    /// let slow: Policy = "5/min".parse()?;
    /// assert_eq!(slow.last_time(), Ok((1 << 61) - 2));
    /// let fast: Policy = "15000000000/s burst 1000".parse()?;
    /// assert!(fast.last_time()? < (1 << 61) - 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Those of compiling the policy.
    pub fn last_time(&self) -> Result<u64, PolicyError> {
        self.validate()?;
        match self.kind.words() {
            // A limit of 0 admits nothing at any time.
            _ if self.limit == 0 => Ok(LAST),
            Words::Ring => SlidingWindow::new(self).map(|window| window.last_time()),
            Words::Log => SlidingLog::new(self).map(|_| SlidingLog::LAST),
            Words::One => Rule::new(self).map(|rule| rule.last_time()),
        }
    }
}
