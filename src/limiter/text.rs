//! A limiter from a policy's text, and a limiter as a short text.

#[cfg(unix)]
use super::{DefaultClock, State};
use super::{Limiter, Shared};
use crate::clock::Clock;
#[cfg(unix)]
use crate::policy::{text::parse_checked, Fault, PolicyError, SyntaxError};
use core::fmt;

/// ```
/// let uploads: tollbar::Limiter = "100/s burst 20".parse()?;
/// assert!(uploads.check(20).is_allowed());
/// # Ok::<(), tollbar::SyntaxError>(())
/// ```
#[cfg(unix)]
impl core::str::FromStr for Limiter {
    type Err = SyntaxError;

    /// The limiter that [`Limiter::new`] makes of the text's policy. The error of a policy that it
    /// refuses has the column of the option at fault.
    fn from_str(text: &str) -> Result<Limiter, SyntaxError> {
        let clock = DefaultClock::default();
        let policy = parse_checked(text.as_bytes(), &|policy| {
            super::clock_fits(policy, &clock)?;
            State::validate(policy)
        })?;
        match State::new(&policy) {
            Ok(state) => Ok(Limiter::with(state, clock)),
            Err(PolicyError::NoMemory) => Err(SyntaxError {
                column: 1,
                expected: c"memory for the state",
                fault: Fault::NoMemory,
            }),
            Err(why) => Err(SyntaxError { column: 1, expected: c"", fault: Fault::Policy(why) }),
        }
    }
}

/// `{:?}` prints the permits that are left, the wait for one permit, and the counts. Printing takes
/// no permits. `{:#?}` prints every field.
impl<S: Shared + fmt::Debug, C: Clock + fmt::Debug> fmt::Debug for Limiter<S, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.alternate() {
            return f
                .debug_struct("Limiter")
                .field("shared", &self.shared)
                .field("clock", &self.clock)
                .field("waiting", &self.waiting)
                .field("changes", &self.changes)
                .field("tally", &self.tally)
                .finish();
        }
        let snapshot = self.snapshot();
        f.debug_struct("Limiter")
            .field("remaining", &snapshot.decision.remaining)
            .field("retry_after", &snapshot.decision.retry_after())
            .field("waiting", &snapshot.waiting)
            .field("allowed", &snapshot.decisions.allowed)
            .field("denied", &snapshot.decisions.denied)
            .field("never", &snapshot.decisions.never)
            .finish_non_exhaustive()
    }
}
