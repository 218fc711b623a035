//! The usual request to a pair, of one permit, in fewer instructions than [`Pair::step_any`](super::Pair).

use super::bucket::Bucket;
use super::steps::Steps;
use crate::units::LAST;

/// The usual request, of one permit, with products that are computed in advance: see [`One::step`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct One {
    /// [`One::step`] decides at clock readings below this. 0: at none.
    pub(super) end: u64,
    /// `now · reciprocal / 2^(64 + shift)`, rounded down, is the clock in steps, rounded down.
    reciprocal: u64,
    pub(super) nanos: u64,
    pub(super) per: u64,
    /// The bits of the word that hold the difference of the TATs.
    mask: u64,
    /// The slow bucket admits a permit if its TAT is at most so many steps after the clock.
    room: u64,
    /// The steps by which `room` is above that of the fast bucket.
    gap: u64,
    /// The number that a charge adds to the word.
    charge: u64,
    shift: u32,
    low: u32,
}

impl One {
    /// `None` if the reciprocal alone does not convert the clock exactly ([`Steps::exact_reciprocal`]).
    pub(super) fn new(steps: &Steps, fast: &Bucket, slow: &Bucket, low: u32) -> Option<One> {
        let reciprocal = steps.exact_reciprocal()?;
        // `now · per` must not wrap for times up to [`LAST`].
        if steps.per.get() >> 3 != 0 {
            return None;
        }
        let room = |bucket: &Bucket| bucket.tolerance.saturating_sub(bucket.permit.get());
        let (fast_permit, slow_permit) = (fast.permit.get(), slow.permit.get());
        Some(One {
            end: LAST + 1,
            reciprocal,
            nanos: steps.nanos,
            per: steps.per.get(),
            mask: 1_u64.checked_shl(low)?.wrapping_sub(1),
            room: room(slow),
            gap: room(slow).saturating_sub(room(fast)),
            charge: slow_permit.checked_shl(low)?.checked_add(slow_permit.checked_sub(fast_permit)?)?,
            shift: steps.shift,
            low,
        })
    }

    /// The step of one permit at a clock reading below `end`: the next word, or `None` for a refusal.
    ///
    /// With s the slow TAT, d the difference of the TATs and c the clock, the slow bucket admits the permit if `s <= c + room`. The fast
    /// TAT is `s - d`, so the fast bucket admits it if `c + room - s + d >= gap`. Both then start from the clock rounded up, u, if that is
    /// later: the slow TAT from `S = max(s, u)`, and the fast one from `max(s - d, u)`, which is `S - min(d, S - u)`.
    #[inline(always)]
    pub(super) fn step(&self, state: u64, now: u64) -> Option<u64> {
        let clock = ((u128::from(now) * u128::from(self.reciprocal)) >> 64) as u64 >> (self.shift & 63);
        let (slow, difference) = (state >> (self.low & 63), state & self.mask);
        // Each term is below 2^63, so the difference is negative if its highest bit is set.
        let above = clock.wrapping_add(self.room).wrapping_sub(slow) as i64;
        if above < 0 || (above as u64).wrapping_add(difference) < self.gap {
            return None;
        }
        let start_of_step = clock.wrapping_mul(self.nanos);
        let up = clock.wrapping_add(u64::from(start_of_step < now.wrapping_mul(self.per)));
        let start = slow.max(up);
        let difference = difference.min(start.wrapping_sub(up));
        Some((start << (self.low & 63)).wrapping_add(difference).wrapping_add(self.charge))
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
