//! Estimates the store's time from the node's steady clock.
//!
//! An answer has the store's time at which the store executed the question. The node sent the
//! question before that. So the store's time is ahead of the node's by at most (the answer's time −
//! the time of sending). The node keeps the smallest such difference, and sends an upper bound of
//! the store's time with each question ([`Ask::at`](super::ask::Ask::at)). The store does not
//! follow its server's clock further than this bound and a slack.
//!
//! Two exceptions raise the difference:
//! - It grows by 1/1024 of the time that passes, because no two clocks run at one speed.
//! - Another node's questions may have allowed the store's time to go further ahead than this
//!   node's questions allow. An answer then proves it, and the difference rises at once to the
//!   proven one.

use tollbar::internal::sync::{AtomicU64, Ordering};

/// How far the store's time is ahead of the node's. The two words are in shared memory and need not
/// belong together: a reader that sees one old and one new word is off by 1/1024 of the time
/// between two answers.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Horizon {
    /// The difference in microseconds, an `i64`; 0: there has been no answer.
    ahead: AtomicU64,
    /// When the last answer's question was sent, in nanoseconds of the node's clock.
    answered: AtomicU64,
}

/// The store's times are below this many microseconds. Lua counts exactly below 2^53, so a sum of
/// two of them is exact.
const TIME_MOST: u64 = 1 << 52;
/// The store's clock may run faster than the node's by one part in this many.
const DRIFT: u64 = 1024;

// Relaxed throughout: these words publish no other memory.
impl Horizon {
    /// An upper bound of the store's time at `now`, in microseconds; 0 if it is not known.
    pub(super) fn estimate(&self, now: u64) -> u64 {
        let time = self.ahead(now).map_or(0, |ahead| micros(now).saturating_add(ahead));
        u64::try_from(time).ok().filter(|time| *time < TIME_MOST).unwrap_or(0)
    }

    /// Learns from an answer. The node sent the question at `sent` and got the answer at
    /// `received`, both in nanoseconds. In between the store's time was `store`, in microseconds.
    /// Questions allow the store `slack` microseconds more than the estimate.
    pub(super) fn on_answer(&self, store: u64, sent: u64, received: u64, slack: u64) {
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
        self.answered.store(sent, Ordering::Relaxed);
    }

    /// Forgets the estimate: the store has other data, which have a time of their own.
    pub(super) fn forget(&self) {
        self.ahead.store(0, Ordering::Relaxed);
    }

    fn ahead(&self, now: u64) -> Option<i64> {
        let passed = now.saturating_sub(self.answered.load(Ordering::Relaxed));
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
        Horizon { ahead: AtomicU64::new(0), answered: AtomicU64::new(0) }
    }

    #[test]
    fn the_least_is_kept_and_may_drift() {
        let horizon = horizon();
        assert_eq!(horizon.estimate(SECOND), 0);
        // Sent at 1 s, executed within 9 ms, when the store's time is 50 s.
        horizon.on_answer(50_000_000, SECOND, SECOND + 9_000_000, 10_000);
        assert_eq!(horizon.estimate(SECOND), 50_000_000);
        // 3 ms nearer than the first answer: the estimate falls.
        horizon.on_answer(50_097_000, SECOND + 100_000_000, SECOND + 110_000_000, 10_000);
        assert_eq!(horizon.estimate(SECOND + 100_000_000), 50_097_000);
        // Farther than the last answer, so only the drift of 100 ms / 1024 raises the estimate.
        horizon.on_answer(50_206_000, SECOND + 200_000_000, SECOND + 210_000_000, 10_000);
        assert_eq!(horizon.estimate(SECOND + 200_000_000), 50_197_097);
        horizon.forget();
        assert_eq!(horizon.estimate(SECOND), 0);
    }

    #[test]
    fn others_may_have_allowed_more() {
        let horizon = horizon();
        horizon.on_answer(50_000_000, SECOND, SECOND, 10_000);
        // The store's time is an hour ahead. The answer proves all of it but the way back (1 ms)
        // and the slack (10 ms).
        horizon.on_answer(3_650_100_000, SECOND + 100_000_000, SECOND + 101_000_000, 10_000);
        assert_eq!(horizon.estimate(SECOND + 100_000_000), 3_650_089_000);
        // The store's time is back. The smaller difference counts at once.
        horizon.on_answer(50_200_000, SECOND + 200_000_000, SECOND + 201_000_000, 10_000);
        assert_eq!(horizon.estimate(SECOND + 200_000_000), 50_200_000);
    }

    #[test]
    fn times_that_cannot_be() {
        let horizon = horizon();
        for store in [0, 1, 1 << 53, u64::MAX] {
            horizon.on_answer(store, u64::MAX, 0, u64::MAX);
            assert!(horizon.estimate(u64::MAX) < TIME_MOST && horizon.estimate(0) < TIME_MOST);
        }
    }
}
