//! The most that a policy admits in a window of any length.

use super::rule::Rule;
use super::sliding_window::SlidingWindow;
use crate::policy::{Policy, PolicyError, Words};

/// The most permits of one key that `policy` admits in some half-open window `[t, t + window)` of
/// nanoseconds, by requests that cost 1 and come at the worst times. 0 for a window of 0.
///
/// It is exact to a permit, for rates of at most a permit a nanosecond. Under a policy with
/// `borrow` a key can get its largest request besides.
/// Classes change nothing: permits that one class must leave may be taken by another. An
/// interpolated sliding window of more permits than a segment has nanoseconds may admit more, by
/// less than limit / nanoseconds permits for each period, and a bucket whose fastest band is below
/// a slower one less, by what a nanosecond refills for each permit.
///
/// ```
/// use tollbar::algorithm::worst_case;
///
/// let (minute, hour) = (60_000_000_000, 3_600_000_000_000);
/// let policy = "120/min".parse()?;
/// assert_eq!(worst_case(&policy, minute), Ok(239)); // 120 at once, and one each half second after that
/// assert_eq!(worst_case(&policy, hour), Ok(7319));
/// # Ok::<(), tollbar::SyntaxError>(())
/// ```
///
/// # Errors
/// Those of making a limiter of the policy.
pub fn worst_case(policy: &Policy, window: u64) -> Result<u64, PolicyError> {
    policy.validate()?;
    if window == 0 || policy.limit == 0 {
        return Ok(0);
    }
    match policy.kind.words() {
        Words::One => Rule::new(policy).map(|rule| rule.most_in(policy, window)),
        Words::Ring => SlidingWindow::new(policy).map(|ring| ring.most_in(window)),
        // A permit comes back one period after it was taken.
        Words::Log => {
            let periods = (window - 1).checked_div(policy.period).unwrap_or(0);
            Ok(policy.limit.saturating_mul(periods.saturating_add(1)))
        }
    }
}
