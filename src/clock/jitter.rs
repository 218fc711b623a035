//! Sleeps that end at random times.

use core::hash::{BuildHasher, Hasher};
use core::time::Duration;
use std::collections::hash_map::RandomState;

/// `sleep` with a random time of up to `most` added to each sleep, so that many tasks that wait for
/// one instant do not all begin at it. It is for [`Limiter::until_ready`] and
/// [`Table::until_key_ready`]. A task that does not have to wait is not delayed.
///
/// ```no_run
/// # mod tokio { pub mod time { pub async fn sleep(_: std::time::Duration) {} } }
/// # async fn send() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use tollbar::clock::with_jitter;
///
/// let limiter: tollbar::Limiter = "10/s".parse()?;
/// limiter.until_ready(with_jitter(Duration::from_millis(50), tokio::time::sleep)).await?;
/// # Ok(())
/// # }
/// ```
///
/// [`Limiter::until_ready`]: crate::Limiter::until_ready
/// [`Table::until_key_ready`]: crate::table::Table::until_key_ready
pub fn with_jitter<F>(most: Duration, sleep: impl Fn(Duration) -> F) -> impl Fn(Duration) -> F {
    move |time| sleep(time.saturating_add(share(most, RandomState::new().build_hasher().finish())))
}

/// `most · random / 2^64`.
fn share(most: Duration, random: u64) -> Duration {
    let nanos = u64::try_from(most.as_nanos()).unwrap_or(u64::MAX);
    Duration::from_nanos(((u128::from(nanos) * u128::from(random)) >> 64) as u64)
}
