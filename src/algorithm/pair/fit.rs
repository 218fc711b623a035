//! The choice of the steps: as short as the word has room for.

use super::bucket::TokenBucket;
use super::one::One;
use super::start::{Pair, Start};
use super::steps::Steps;
use crate::policy::Rate;
use crate::units::{bits, gcd, UnitLength, LAST};
use core::num::{NonZeroU128, NonZeroU64};

/// A permit of the fast bucket takes at least this many steps. The clock is off by less than a
/// step, so a decision is late by less than the time of half a permit.
const LEAST_STEPS: u64 = 2;
/// Steps with counts may be longer than the shortest steps by this factor.
const LONGER_FOR_COUNTS: u128 = 4;
/// The number of powers of ten that [`Pair::of`] tries as divisors of a step. 10^20 does not fit in
/// the word's 64 bits, so a finer step cannot.
const MOST_DECADES: usize = 20;

/// Two rates in one unit of time.
struct Rates {
    fast: Rate,
    slow: Rate,
    /// `nanos / per` nanoseconds divide the time of a permit of both, and `permits` are the
    /// quotients.
    nanos: u128,
    per: u128,
    permits: (u128, u128),
}

impl Pair {
    #[inline(never)]
    pub(super) fn of(first: Rate, second: Rate) -> Option<Pair> {
        // The time per permit is `length / common` nanoseconds.
        let length =
            |rate: Rate, other: Rate| u128::from(rate.period).checked_mul(u128::from(other.limit));
        let per = u128::from(first.limit).checked_mul(u128::from(second.limit))?;
        let lengths = (length(first, second)?, length(second, first)?);
        // Of two equal rates the one with the larger burst is the slow one.
        let slow_first =
            lengths.0 > lengths.1 || (lengths.0 == lengths.1 && first.burst > second.burst);
        let (fast, slow) = if slow_first { (second, first) } else { (first, second) };
        let (fast_length, slow_length) = if slow_first { (lengths.1, lengths.0) } else { lengths };
        // At equal rates the larger burst never binds. A burst that is larger by 2 leaves room for
        // counts.
        let least = if fast_length == slow_length { fast.burst.saturating_add(2) } else { 0 };
        let slow = Rate { burst: slow.burst.max(least), ..slow };
        let nanos = NonZeroU128::new(gcd(fast_length, slow_length))?;
        let permits = (fast_length / nanos, slow_length / nanos);
        let rates = Rates { fast, slow, nanos: nanos.get(), per, permits };
        // The shortest steps that fit: the greatest common divisor of both times, divided by 1, 2,
        // 5, 10, 20, …
        let (mut shortest, mut decade) = (None, 1_u128);
        for _ in 0..MOST_DECADES {
            for times in [1, 2, 5] {
                let parts = decade.saturating_mul(times);
                shortest =
                    rates.pair(parts, Start::Spaced(0)).map(|pair| (pair, parts)).or(shortest);
            }
            decade = decade.saturating_mul(10);
        }
        let (pair, parts) = shortest?;
        let pair = rates.with_counts(parts / LONGER_FOR_COUNTS).unwrap_or(pair);
        (pair.fast.permit.get() >= LEAST_STEPS).then_some(Pair { slow_first, ..pair })
    }
}

impl Rates {
    /// The pair in the shortest steps in which a word has room for the counts that tell when the
    /// fast bucket started ([`Start::Counts`]). They are the greatest common divisor divided by a
    /// power of two, or by `least` times one. `None`: there are none as short as a `least`-th of
    /// the divisor.
    #[inline(never)]
    fn with_counts(&self, least: u128) -> Option<Pair> {
        let counts = self.fast.burst.checked_next_power_of_two()?;
        // A burst of 1 is not taken bit by bit.
        if self.slow.burst <= self.fast.burst || counts == 1 {
            return None;
        }
        let mut found = None;
        for power in 0..u64::BITS {
            let parts = 1_u128 << power;
            let pair = self.pair(parts, Start::Counts(counts)).filter(|_| parts >= least);
            found = pair.or(found);
        }
        found
    }

    /// The pair in steps of `nanos / per / parts` nanoseconds. `None`: the word has no room for
    /// such steps.
    #[inline(never)]
    fn pair(&self, parts: u128, start: Start) -> Option<Pair> {
        let per = self.per.saturating_mul(parts);
        let shared = NonZeroU128::new(gcd(self.nanos, per))?;
        let steps = Steps::new(self.nanos / shared, per / shared)?;
        let fast = TokenBucket::new(self.permits.0.checked_mul(parts)?, self.fast.burst)?;
        let slow = TokenBucket::new(self.permits.1.checked_mul(parts)?, self.slow.burst)?;
        let start = match start {
            Start::Counts(counts) => {
                // The permits that the fast bucket admits until the slow one, which starts at a
                // multiple of `counts`, is sure to have been full.
                let meanwhile = fast.burst.checked_add(counts / fast.permit)?;
                // `counts` is a power of two.
                let divides = slow.permit.get() & counts.wrapping_sub(1) == 0;
                let fits = divides && counts <= slow.permit.get() / 2 && meanwhile < slow.burst;
                fits.then_some(start)?
            }
            Start::Spaced(_) => match slow.permit.get().wrapping_sub(fast.permit.get()) {
                spacing @ 2.. => Start::Spaced(spacing),
                _ => Start::Spaced(0),
            },
        };
        // A debt of one burst follows the burst. The clock is rounded up, to the grid or by one
        // step more.
        let ahead = slow.tolerance.checked_mul(2)?.checked_add(start.grid())?.checked_add(2)?;
        let low = bits(ahead);
        let most = steps.clock(LAST).up.checked_add(ahead)?;
        let high = bits(most);
        if high + low > u64::BITS {
            return None;
        }
        let length = UnitLength::new(
            NonZeroU64::new(self.slow.limit)?,
            NonZeroU64::new(self.slow.period)?,
            slow.permit,
        );
        let most = u64::MAX >> (u64::BITS - high) & !(start.grid().wrapping_sub(1));
        let burst = fast.burst.min(slow.burst);
        let one = One::new(&steps, &fast, &slow, low, start.grid()).unwrap_or_default();
        Some(Pair { one, steps, fast, slow, burst, start, low, most, length, slow_first: false })
    }
}
