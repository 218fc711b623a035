//! What time it is at the store, by the node's own steady clock.
//!
//! Each answer has the store's time when the question was executed, which was between its being put and its being answered. So the
//! store's time is ahead of the node's by no more than the answer's time less the time the question was put. The least such number
//! is kept: with it a question says how late it can be at the store ([`Ask::at`](super::bucket::Ask::at)), and a store's clock that
//! has jumped ahead is not believed.
//!
//! The number may rise by a thousandth of the time that passes, since no two clocks run alike. And it is raised at once when an answer
//! proves that the store's time is further ahead than the node would have allowed: others have allowed more.

use crate::sync::{AtomicU64, Ordering};

/// How far the store's time is ahead of the node's. Words for themselves in shared memory: a torn pair is off by what a thousandth of the
/// time between two answers is.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Horizon {
    /// Microseconds, as a signed number; 0: there has been no answer.
    ahead: AtomicU64,
    /// When the last answer's question was put, in nanoseconds.
    heard: AtomicU64,
}

/// The store's time fits into so much: Lua counts exactly below 2^53.
const TIME_MOST: u64 = 1 << 52;
/// One in so many is how much faster the store's clock may run.
const DRIFT: u64 = 1024;

// Relaxed throughout: nothing else is published by these words.
impl Horizon {
    /// The store's time at `now`, in microseconds, or later; 0 if it is not known.
    pub(super) fn estimate(&self, now: u64) -> u64 {
        let time = self.ahead(now).map_or(0, |ahead| micros(now).saturating_add(ahead));
        u64::try_from(time).ok().filter(|time| *time < TIME_MOST).unwrap_or(0)
    }

    /// An answer has come at `received`, to a question put at `sent`: then it was `store` there. `slack` is how far beyond the
    /// estimate questions allow.
    pub(super) fn heard(&self, store: u64, sent: u64, received: u64, slack: u64) {
        let store = i64::try_from(store).unwrap_or(i64::MAX);
        let most = store.saturating_sub(micros(sent));
        let ahead = match self.ahead(sent) {
            None => most,
            Some(known) => {
                let proved = store.saturating_sub(micros(received)).saturating_sub(slack as i64);
                known.min(most).max(proved)
            }
        };
        self.ahead.store(if ahead == 0 { 1 } else { ahead as u64 }, Ordering::Relaxed);
        self.heard.store(sent, Ordering::Relaxed);
    }

    /// The store has other data, with a time of their own.
    pub(super) fn forget(&self) {
        self.ahead.store(0, Ordering::Relaxed);
    }

    fn ahead(&self, now: u64) -> Option<i64> {
        let passed = now.saturating_sub(self.heard.load(Ordering::Relaxed));
        match self.ahead.load(Ordering::Relaxed) as i64 {
            0 => None,
            ahead => Some(ahead.saturating_add(micros(passed / DRIFT))),
        }
    }
}

fn micros(nanos: u64) -> i64 {
    (nanos / 1000) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn horizon() -> Horizon {
        Horizon { ahead: AtomicU64::new(0), heard: AtomicU64::new(0) }
    }

    #[test]
    fn the_least_is_kept_and_may_drift() {
        let horizon = horizon();
        assert_eq!(horizon.estimate(SECOND), 0);
        // Put at 1 s, executed 4 ms later, when it is 50 s there.
        horizon.heard(50_000_000, SECOND, SECOND + 9_000_000, 10_000);
        assert_eq!(horizon.estimate(SECOND), 50_000_000);
        // Executed after 1 ms.
        horizon.heard(50_097_000, SECOND + 100_000_000, SECOND + 110_000_000, 10_000);
        assert_eq!(horizon.estimate(SECOND + 100_000_000), 50_097_000);
        // 6 ms late, which says nothing, but for the drift.
        horizon.heard(50_206_000, SECOND + 200_000_000, SECOND + 210_000_000, 10_000);
        assert_eq!(horizon.estimate(SECOND + 200_000_000), 50_197_097);
        horizon.forget();
        assert_eq!(horizon.estimate(SECOND), 0);
    }

    #[test]
    fn others_may_have_allowed_more() {
        let horizon = horizon();
        horizon.heard(50_000_000, SECOND, SECOND, 10_000);
        // An hour ahead: 10 ms less than that is proved.
        horizon.heard(3_650_100_000, SECOND + 100_000_000, SECOND + 101_000_000, 10_000);
        assert_eq!(horizon.estimate(SECOND + 100_000_000), 3_650_089_000);
        // And back, as another server's data may be.
        horizon.heard(50_200_000, SECOND + 200_000_000, SECOND + 201_000_000, 10_000);
        assert_eq!(horizon.estimate(SECOND + 200_000_000), 50_200_000);
    }

    #[test]
    fn times_that_cannot_be() {
        let horizon = horizon();
        for store in [0, 1, 1 << 53, u64::MAX] {
            horizon.heard(store, u64::MAX, 0, u64::MAX);
            assert!(horizon.estimate(u64::MAX) < TIME_MOST && horizon.estimate(0) < TIME_MOST);
        }
    }
}
