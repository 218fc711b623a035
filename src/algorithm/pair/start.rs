//! A pair and its word, which tells the step in which a full bucket starts to be charged.
//!
//! A bucket that has been full is charged from the clock rounded up, and a request is admitted by
//! the clock rounded down. Between two steps these differ, so the last permit of a burst that is
//! taken bit by bit would wait for the end of the step. The permit has been there all the time. So
//! a word also says whether every charge of a bucket was made in the running step. Then the bucket
//! was full at an instant of this step, and it admits what is left of its burst.
//!
//! A word says so in one of two ways:
//!
//! - [`Start::Counts`]: the slow bucket starts at a multiple of `counts` steps, and a permit of it
//!   takes a multiple of `counts` steps. So its TAT is such a multiple, too, and its lowest bits
//!   are free. They hold the number of permits that have been charged in the step in which the
//!   *fast* bucket started. 0: unknown. A charge in a later step stores 0.
//! - [`Start::Spaced`]: if both buckets started in the step that ends at `u`, `c` charged permits
//!   have moved one TAT to `u + c·fast` and the other to `u + c·slow`. So the difference of the
//!   TATs gives `c`, and either TAT gives `u`.
//!
//! # Why no other word looks like a start
//!
//! *Counts*: each charge of a start is counted, and a charge in a later step clears the count. So
//! `TAT − count·fast` is the step of the start.
//!
//! *Spaced*: if the slow bucket had a TAT `s > u` when the fast one started at `u`, the same
//! equations give an instant before `u`, because `s − u` is above 0 in
//! `c·(slow − fast) = s − u + k·(slow − fast)`, and so `c > k`. The case `s = u` would look like a
//! start, though the slow bucket may be full only at the end of the step. So that charge makes the
//! slow bucket's TAT one step later ([`Pair::charged`]).
//!
//! # What is left
//!
//! The slow bucket needs no counts: its burst is larger than all permits that the fast one admits
//! within `counts` steps. If its burst is not larger, it is full only when the fast bucket is full
//! as well, and then `Spaced` tells both starts. `Spaced` does not tell the start of the fast
//! bucket while the slow one owes. There the last permit of the fast bucket's burst waits for the
//! end of the step, if the slow bucket has the larger burst.

use super::bucket::TokenBucket;
use super::one::One;
use super::steps::{StepReading, Steps};
use crate::units::{UnitLength, LAST};

/// Two compiled token buckets of one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pair {
    /// First, because checks of one permit read nothing else.
    pub(super) one: One,
    pub(super) steps: Steps,
    pub(super) fast: TokenBucket,
    pub(super) slow: TokenBucket,
    /// The largest cost: the smaller burst.
    pub(super) burst: u64,
    /// How a word tells the step in which its buckets started.
    pub(super) start: Start,
    /// Bits of the word that hold the difference of the TATs.
    pub(super) low: u32,
    /// The greatest TAT that a word holds.
    pub(super) most: u64,
    /// The length of a step.
    pub(super) length: UnitLength,
    /// Whether the first policy of the list is the slow bucket.
    pub(super) slow_first: bool,
}

/// The TATs of a word, in steps.
#[derive(Clone, Copy)]
pub(super) struct Tats {
    pub(super) fast: u64,
    pub(super) slow: u64,
}

/// How a word tells the step in which its buckets started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Start {
    /// The lowest bits of the slow TAT hold a count below this power of two.
    Counts(u64),
    /// The steps by which a permit of the slow bucket takes longer than one of the fast bucket: at
    /// least 2, or 0 if the words tell nothing.
    Spaced(u64),
}

/// A word at a clock reading.
#[derive(Clone, Copy)]
pub(super) struct WordAt {
    /// The TATs of the word.
    pub(super) tats: Tats,
    /// The permits charged in the running step, if the buckets started in it.
    pub(super) here: Option<u64>,
}

impl Start {
    /// The number of steps of which the slow TAT is a multiple.
    #[inline(always)]
    pub(super) const fn grid(self) -> u64 {
        match self {
            Start::Counts(counts) => counts,
            Start::Spaced(_) => 1,
        }
    }
}

impl Pair {
    /// The bits of the upper part of a word that hold a count.
    #[inline(always)]
    const fn counted(&self) -> u64 {
        self.start.grid().wrapping_sub(1)
    }

    /// The TATs of a word.
    #[inline(always)]
    pub(super) const fn unpack(&self, state: u64) -> Tats {
        // The shift is below 64, since both parts have at least a bit.
        let slow = (state >> self.low) & !self.counted();
        Tats { slow, fast: slow.wrapping_sub(state & ((1 << self.low) - 1)) }
    }

    #[inline(always)]
    pub(super) const fn pack(&self, tats: Tats) -> u64 {
        tats.slow << self.low | tats.slow.wrapping_sub(tats.fast)
    }

    /// [`Pair::pack`] with a count of permits charged in the fast bucket's step. A count that has
    /// no room is 0.
    #[inline(always)]
    pub(super) const fn pack_counted(&self, tats: Tats, count: u64) -> u64 {
        let count = if count > self.counted() { 0 } else { count };
        self.pack(tats) | count << self.low
    }

    /// The first multiple of the grid from `steps` on.
    #[inline(always)]
    pub(super) const fn on_grid(&self, steps: u64) -> u64 {
        steps.saturating_add(self.counted()) & !self.counted()
    }

    /// The word of these TATs, or of the earliest later ones that a word holds. It does not look
    /// like a start in the step that ends at `since` or a later one.
    pub(super) fn pack_later(&self, fast: u64, slow: u64, since: u64) -> u64 {
        // No `clamp`, which can panic.
        let slow = self.on_grid(slow.max(fast).max(1)).min(self.most);
        // A start's difference has one more step of room.
        let earliest = slow.saturating_sub((1 << self.low) - 2);
        let tats = Tats { slow, fast: fast.max(earliest).min(slow) };
        match self.start_of(tats) {
            Some((_, start)) if start >= since && start <= fast && slow < self.most => {
                self.pack(Tats { slow: slow.wrapping_add(1), ..tats })
            }
            _ => self.pack(tats),
        }
    }

    /// The word after a charge of so many permits: `tats` and `count` are those of
    /// [`Pair::charged`]. It is later if a word does not hold the TATs.
    pub(super) fn pack_charged(
        &self,
        tats: Tats,
        count: u64,
        (fast, slow): (u64, u64),
        clock: StepReading,
    ) -> u64 {
        let fits = tats.slow <= self.most
            && tats.fast <= tats.slow
            && tats.slow.wrapping_sub(tats.fast) >> self.low == 0;
        match self.start {
            Start::Spaced(_) if fast != slow => self.pack_later(tats.fast, tats.slow, clock.up),
            _ if fits => self.pack_counted(tats, count),
            _ => self.pack_later(tats.fast, tats.slow, clock.up),
        }
    }

    /// [`Start::Spaced`]: the permits of a start, and the end of its step. Without permits, the
    /// same charges to both buckets would make a start of it.
    fn start_of(&self, tats: Tats) -> Option<(u64, u64)> {
        let Start::Spaced(spacing @ 1..) = self.start else { return None };
        let difference = tats.slow.wrapping_sub(tats.fast);
        let count = difference / spacing;
        (count.wrapping_mul(spacing) == difference)
            .then(|| (count, tats.fast.wrapping_sub(self.fast.charge(count))))
    }

    /// The clock, rounded down, from which on both buckets admit `cost`.
    pub(super) fn due(&self, tats: Tats, cost: u64) -> u64 {
        self.fast.due(tats.fast, cost).max(self.slow.due(tats.slow, cost))
    }

    /// The first nanosecond of the step in which the buckets started, if the word tells it.
    pub(super) fn begins_again(&self, state: u64) -> Option<u64> {
        let tats = self.unpack(state);
        let end = match self.start {
            Start::Counts(_) => match (state >> self.low) & self.counted() {
                0 => None,
                count => tats.fast.checked_sub(self.fast.charge(count)),
            },
            Start::Spaced(_) => self.start_of(tats).map(|(_, end)| end),
        };
        // A step does not contain the whole nanosecond at which it begins.
        let before = end?.checked_sub(1)?;
        let at = self.steps.nanos(before);
        Some(at.saturating_add(u64::from(self.steps.clock(at.min(LAST)).up == before)))
    }

    /// What a word says at a clock reading.
    #[inline(always)]
    pub(super) fn word_at(&self, state: u64, clock: StepReading) -> WordAt {
        let tats = self.unpack(state);
        let here = match self.start {
            Start::Counts(_) => match (state >> self.low) & self.counted() {
                0 => None,
                count => {
                    (tats.fast.wrapping_sub(self.fast.charge(count)) == clock.up).then_some(count)
                }
            },
            Start::Spaced(_) => match self.start_of(tats) {
                Some((count @ 1.., start)) if start == clock.up => Some(count),
                _ => None,
            },
        };
        WordAt { tats, here }
    }

    /// The TATs as a request at this clock reading must see them. A bucket that started in the
    /// running step has been full at an instant of the step, and the beginning of the step is no
    /// later.
    #[inline(always)]
    pub(super) fn seen(&self, word: WordAt, clock: StepReading) -> Tats {
        let early = match word.here {
            Some(_) => clock.up.wrapping_sub(clock.down),
            None => 0,
        };
        let slow_early = match self.start {
            Start::Counts(_) => 0,
            Start::Spaced(_) => early,
        };
        Tats {
            fast: word.tats.fast.wrapping_sub(early),
            slow: word.tats.slow.wrapping_sub(slow_early),
        }
    }

    /// The TATs after a charge of so many permits at this clock reading, and the count of the word.
    #[inline(always)]
    pub(super) fn charge_both(
        &self,
        word: WordAt,
        clock: StepReading,
        fast: u64,
        slow: u64,
    ) -> (Tats, u64) {
        let tats = word.tats;
        let (fast_from, count) = match (tats.fast <= clock.down, word.here) {
            (true, _) => (clock.up, fast),
            (false, Some(count)) => (tats.fast, count.saturating_add(fast)),
            (false, None) => (tats.fast, 0),
        };
        let slow_from = match self.start {
            _ if tats.slow <= clock.down => self.on_grid(clock.up),
            // The bucket is full at the end of the step and not for sure before it: see above.
            Start::Spaced(_) if tats.slow == clock.up => clock.up.wrapping_add(1),
            _ => tats.slow,
        };
        let after = Tats {
            fast: fast_from.wrapping_add(self.fast.charge(fast)),
            slow: slow_from.wrapping_add(self.slow.charge(slow)),
        };
        (after, count)
    }
}
