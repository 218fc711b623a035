//! The usual request to a pair, of one permit, in fewer instructions than
//! [`Pair::step_any`](super::Pair).

use super::bucket::TokenBucket;
use super::steps::Steps;
use crate::units::LAST;

/// The usual request, of one permit, with products that are computed in advance: see [`One::step`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct One {
    /// [`One::step`] decides at clock readings below this. 0: at none.
    pub(super) end: u64,
    /// `now · reciprocal / 2^(64 + shift)`, rounded down, is the clock in steps, rounded down.
    reciprocal: u64,
    nanos: u64,
    per: u64,
    /// The bits of the word that hold the difference of the TATs.
    mask: u64,
    /// The bits of the slow TAT that may hold a count.
    counted: u64,
    /// The slow bucket admits a permit if its TAT is at most so many steps after the clock.
    room: u64,
    /// The steps by which `room` is above that of the fast bucket.
    gap: u64,
    /// The fast bucket is sure to owe if its TAT is at most so many steps before the latest that
    /// admits a permit. Negative: never.
    owing: i64,
    /// The number that a charge adds to the word.
    charge: u64,
    /// The number that a count of 1 adds to the word; 0 if words have no counts.
    first: u64,
    /// The steps of the fast bucket's permit.
    permit: u64,
    shift: u32,
    low: u32,
}

/// What [`One::step`] or [`One::start`] has found.
pub(crate) enum OneStep {
    /// Both buckets admit the permit: the next word.
    Admitted(u64),
    /// A bucket refuses.
    Refused,
    /// The other way must decide.
    Other,
}

impl One {
    /// `grid` is the number of steps of which the slow TAT is a multiple. `None` if the reciprocal
    /// alone does not convert the clock exactly ([`Steps::exact_reciprocal`]).
    pub(super) fn new(
        steps: &Steps,
        fast: &TokenBucket,
        slow: &TokenBucket,
        low: u32,
        grid: u64,
    ) -> Option<One> {
        let reciprocal = steps.exact_reciprocal()?;
        let room = |bucket: &TokenBucket| bucket.tolerance.saturating_sub(bucket.permit.get());
        let (fast_permit, slow_permit) = (fast.permit.get(), slow.permit.get());
        Some(One {
            end: LAST + 1,
            reciprocal,
            nanos: steps.nanos,
            per: steps.per.get(),
            mask: 1_u64.checked_shl(low)?.wrapping_sub(1),
            counted: grid.wrapping_sub(1),
            room: room(slow),
            gap: room(slow).saturating_sub(room(fast)),
            owing: i64::try_from(room(fast).min(room(slow))).ok()?.saturating_sub(2),
            charge: slow_permit
                .checked_shl(low)?
                .checked_add(slow_permit.checked_sub(fast_permit)?)?,
            first: if grid == 1 { 0 } else { 1_u64.checked_shl(low)? },
            permit: fast_permit,
            shift: steps.shift,
            low,
        })
    }

    /// The step of one permit at a clock reading below `end`, if both buckets owe and the word has
    /// no count.
    ///
    /// With s the slow TAT, d the difference of the TATs and c the clock, the slow bucket admits
    /// the permit if `s <= c + room`. The fast TAT is `s - d`, so the fast bucket admits it if
    /// `c + room - s + d >= gap`. If the fast TAT is two steps after the clock or more, both
    /// buckets owe, and the charge moves both TATs.
    #[inline(always)]
    pub(super) fn step(&self, state: u64, now: u64) -> OneStep {
        let Read { high, slow, above, fast_above, .. } = self.read(state, now);
        let least = fast_above.min(above);
        if least < 0 {
            // A bucket that refuses by one step may have started in the running step.
            return if least < -1 { OneStep::Refused } else { OneStep::Other };
        }
        match fast_above <= self.owing && high == slow {
            true => OneStep::Admitted(state.wrapping_add(self.charge)),
            false => OneStep::Other,
        }
    }

    /// The step of one permit where [`One::step`] does not decide. The fast bucket starts from the
    /// clock rounded up, or the word has a count ([`super::start`]). The general step decides in
    /// the other cases: the clock, rounded down, is a step before the instant at which a bucket
    /// admits the permit or is full.
    #[inline(always)]
    pub(super) fn start(&self, state: u64, now: u64) -> OneStep {
        let Read { clock, high, slow, difference, above, fast_above } = self.read(state, now);
        if above < 0 || fast_above < 0 {
            return OneStep::Other;
        }
        // The rest of the division is below `nanos`, so it is 0 if it is 0 modulo 2^64.
        let is_whole = now.wrapping_mul(self.per) == clock.wrapping_mul(self.nanos);
        let up = clock.wrapping_add(u64::from(!is_whole));
        if fast_above <= self.owing {
            // The next count in the step in which the fast bucket started, and otherwise none.
            let count = high.wrapping_sub(slow);
            let here =
                slow.wrapping_sub(difference).wrapping_sub(count.wrapping_mul(self.permit)) == up;
            let next = if here { count.wrapping_add(1) & self.counted } else { 0 };
            let counted = (slow.wrapping_add(next) << (self.low & 63)).wrapping_add(difference);
            return OneStep::Admitted(counted.wrapping_add(self.charge));
        }
        let slow_is_full = slow <= clock;
        if fast_above == self.owing.wrapping_add(1)
            || (!slow_is_full && slow <= clock.wrapping_add(1))
        {
            return OneStep::Other;
        }
        let start = if slow_is_full { up.wrapping_add(self.counted) & !self.counted } else { slow };
        let started = (start << (self.low & 63)).wrapping_add(start.wrapping_sub(up));
        OneStep::Admitted(started.wrapping_add(self.charge).wrapping_add(self.first))
    }

    #[inline(always)]
    fn read(&self, state: u64, now: u64) -> Read {
        let clock =
            ((u128::from(now) * u128::from(self.reciprocal)) >> 64) as u64 >> (self.shift & 63);
        let (high, difference) = (state >> (self.low & 63), state & self.mask);
        let slow = high & !self.counted;
        // Each term is below 2^63, so a difference is negative if its highest bit is set.
        let above = clock.wrapping_add(self.room).wrapping_sub(slow);
        let fast_above = above.wrapping_add(difference).wrapping_sub(self.gap) as i64;
        Read { clock, high, slow, difference, above: above as i64, fast_above }
    }
}

/// A word at a clock reading, in steps.
struct Read {
    clock: u64,
    /// The slow TAT with the count.
    high: u64,
    slow: u64,
    difference: u64,
    /// The steps that the slow bucket has above one permit. Negative: it refuses the permit.
    above: i64,
    /// [`Read::above`] of the bucket that has less room, if its TAT is the fast one's.
    fast_above: i64,
}

#[cfg(all(test, not(loom)))]
mod tests;
