//! The lease word: permits, and the time until which they may be spent.
//!
//! ```text
//!  permits 24 | until 40     until in units of 2^17 ns (131 us) of the node's clock; 40 bits last 4.5 years
//! ```
//!
//! The word 0 is no lease. Spending lowers the permits and keeps `until`; nothing prolongs a lease.

use super::terms::PERMITS_MOST;

const UNTIL_BITS: u32 = 40;
const UNTIL: u64 = (1 << UNTIL_BITS) - 1;
/// The binary logarithm of a unit of `until`, in nanoseconds.
pub(super) const UNIT_BITS: u32 = 17;

/// The latest time of a word, in nanoseconds.
pub(super) const LAST: u64 = UNTIL << UNIT_BITS;

/// A lease of `permits`, at most 2^24 - 1. It ends at `until` nanoseconds rounded down to a unit. 0
/// (no lease) if `permits` is 0 or `until` is more than 40 bits of units.
#[inline]
pub fn lease(permits: u64, until: u64) -> u64 {
    let until = until >> UNIT_BITS;
    if until > UNTIL || permits == 0 {
        return 0;
    }
    permits.min(PERMITS_MOST) << UNTIL_BITS | until
}

/// Permits that may be spent at `now`.
#[inline(always)]
pub fn permits(word: u64, now: u64) -> u64 {
    if word & UNTIL > now >> UNIT_BITS {
        word >> UNTIL_BITS
    } else {
        0
    }
}

/// The word's permits, whether it has ended or not.
#[inline(always)]
pub(super) fn all(word: u64) -> u64 {
    word >> UNTIL_BITS
}

/// The word after a caller has spent `cost` permits at `now`. `None` if fewer are left or the lease
/// has ended.
#[inline(always)]
pub fn spend(word: u64, now: u64, cost: u64) -> Option<u64> {
    match permits(word, now) >= cost && cost <= PERMITS_MOST {
        true => Some(word - (cost << UNTIL_BITS)),
        false => None,
    }
}

/// The word with an end at `until` nanoseconds at the latest, rounded down to a unit.
#[inline]
pub fn cut(word: u64, until: u64) -> u64 {
    word & !UNTIL | (word & UNTIL).min(until >> UNIT_BITS)
}

/// The time at which the lease ends, in nanoseconds.
#[inline]
pub fn until(word: u64) -> u64 {
    (word & UNTIL) << UNIT_BITS
}

/// The word's permits times the units of time for which they may still be spent. Both fit 64 bits.
pub(super) fn worth(word: u64, now: u64) -> u64 {
    all(word) * (word & UNTIL).saturating_sub(now >> UNIT_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_spent_and_ends() {
        let word = lease(5, 50_000_000);
        assert_eq!(permits(word, 0), 5);
        let end = until(word);
        assert!(end <= 50_000_000 && end + (1 << UNIT_BITS) > 50_000_000);
        assert_eq!((permits(word, end - 1), permits(word, end)), (5, 0));
        let rest = spend(word, 0, 3).expect("three of five");
        assert_eq!((permits(rest, 0), until(rest)), (2, end));
        assert_eq!((spend(rest, 0, 3), spend(rest, end, 1)), (None, None));
    }

    #[test]
    fn extremes_give_nothing() {
        assert_eq!(lease(0, 1 << 40), 0);
        assert_eq!(lease(5, u64::MAX), 0);
        assert_eq!(permits(lease(u64::MAX, 1 << 56), 0), PERMITS_MOST);
        assert_eq!(spend(lease(u64::MAX, 1 << 56), 0, u64::MAX), None);
        assert_eq!(permits(0, 0), 0);
    }
}
