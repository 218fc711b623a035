//! Sliding log: the time of each permit admitted in the last period, exact. The arithmetic; the
//! shared state is [`crate::limiter::Log`].
//!
//! The log has one entry a permit and `limit` entries, used in turn. The permit with number k takes
//! the place of number k − limit, and may do so when that one has left the window `(now − period, now]`.
//!
//! An entry is `time + 1 : lap` in one word: 61 bits of nanoseconds and the number of times that its
//! place has been used, modulo 8. 0 is an empty entry.
//!
//! Most admitted in any window of one period: `limit`.

use crate::policy::{Kind, Policy, PolicyError};
use crate::units::{Divisor, HORIZON};
use core::num::NonZeroU64;

/// A compiled sliding log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SlidingLog {
    limit: Divisor,
    period: u64,
    count_rejected: bool,
}

/// One entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// When, in nanoseconds; `None` if empty.
    pub at: Option<u64>,
    /// How often its place has been used, modulo 8.
    pub lap: u64,
}

impl SlidingLog {
    /// The last time that an entry can hold.
    pub const LAST: u64 = HORIZON - 2;
    const LAPS: u64 = 8;

    /// Compiles a policy of kind [`Kind::SlidingLog`] whose limit is not 0.
    pub fn new(policy: &Policy) -> Result<SlidingLog, PolicyError> {
        policy.validate()?;
        if policy.kind != Kind::SlidingLog {
            return Err(PolicyError::OptionMismatch);
        }
        let limit = NonZeroU64::new(policy.limit).ok_or(PolicyError::OptionMismatch)?;
        Ok(SlidingLog { limit: Divisor::new(limit), period: policy.period, count_rejected: policy.count_rejected })
    }

    /// Entries, and the largest cost.
    #[inline(always)]
    pub const fn limit(&self) -> u64 {
        self.limit.get()
    }

    /// Whether refused requests are entered too.
    #[inline(always)]
    pub const fn count_rejected(&self) -> bool {
        self.count_rejected
    }

    /// The place of permit number `k`, and the lap that its predecessor there wrote.
    #[inline(always)]
    pub const fn place(&self, k: u64) -> (u64, u64) {
        let (lap, place) = self.limit.div_rem(k);
        (place, lap % Self::LAPS)
    }

    /// The lap after `lap`.
    #[inline(always)]
    pub const fn next_lap(lap: u64) -> u64 {
        (lap + 1) % Self::LAPS
    }

    /// As a word.
    #[inline(always)]
    pub const fn pack(at: u64, lap: u64) -> u64 {
        ((at + 1) << 3) | lap
    }

    /// From a word.
    #[inline(always)]
    pub const fn unpack(word: u64) -> Entry {
        let at = word >> 3;
        Entry { at: if at == 0 { None } else { Some(at - 1) }, lap: word % Self::LAPS }
    }

    /// When the entry leaves the window.
    #[inline(always)]
    pub const fn leaves(&self, entry: Entry) -> u64 {
        match entry.at {
            Some(at) => at.saturating_add(self.period),
            None => 0,
        }
    }

    /// The length of the window in nanoseconds.
    pub const fn period(&self) -> u64 {
        self.period
    }
}
