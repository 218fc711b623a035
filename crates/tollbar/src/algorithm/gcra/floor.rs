//! Words of buckets that got permits back.
//!
//! A table may give a slot to another key once the slot's word has expired. So that time must never fall, although the TAT of a bucket
//! falls when permits are given back. A word whose TAT was lowered therefore also holds the time until which the slot stays taken: its
//! *floor*. The floor is a multiple of a *quantum*, the smallest power of two of units that is at least the burst's length, so that one bit
//! can hold it:
//!
//! ```text
//! bit 63        1: the TAT was lowered. All other words of a bucket are below 2^63, and are the TAT itself
//! bit 61        0: the near form
//!   bit 62      the floor is (TAT / quantum + 1 + this bit) quanta
//!   bits 60..0  the TAT, rounded up to a multiple of 2^fine units, divided by that
//! bit 61        1: the wide form. bit 62 is 0
//!   bits 60..10 the TAT, rounded up to a multiple of 2^(fine + 10) units, divided by that
//!   bits 9..6   e: a step is 4^e quanta / 64
//!   bits 5..0   the floor is (TAT / step + 1 + these bits) steps
//! ```
//!
//! `fine` is 0 if 61 bits hold every clock reading of the policy, as for all rates whose unit is a nanosecond; otherwise 1 or 2. The word
//! is the plain TAT again as soon as charges bring the TAT to the floor. Policies whose TATs need all 64 bits never lower one.

/// The bits of a TAT that leave room for a floor.
pub(super) const TAT_BITS: u32 = 63;
/// The highest TAT that leaves room for a floor. Under a policy that gives back, every higher word was lowered.
pub(crate) const TAT_MOST: u64 = u64::MAX >> 1;
const LOWERED: u64 = 1 << 63;
const SECOND: u64 = 1 << 62;
const WIDE: u64 = 1 << 61;
/// The bits of a TAT that the wide form leaves to the floor.
const GIVEN: u32 = 10;
/// A quantum has 2^this of the shortest steps.
const STEPS: u32 = 6;

/// How the words of one policy hold their floors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Floors {
    /// The bit that a lowered word has; 0 if the policy lowers no word.
    mark: u64,
    /// A quantum is 2^this units.
    quantum: u32,
    fine: u32,
}

impl Floors {
    /// The floors of a policy that lowers no word.
    pub(super) const NONE: Floors = Floors { mark: 0, quantum: 0, fine: 0 };

    /// The floors of a policy with a burst of `tolerance` units, at most 2^62, and clock readings up to `most`, less than 2^63.
    pub(super) const fn new(tolerance: u64, most: u64) -> Floors {
        // The power of two that is at least `tolerance`.
        let quantum = 64 - tolerance.saturating_sub(1).leading_zeros();
        let bits = 64 - most.leading_zeros();
        let fine = bits.saturating_sub(61);
        Floors { mark: LOWERED, quantum: if quantum > 62 { 62 } else { quantum }, fine }
    }

    /// Whether permits can be given back under the policy.
    pub(super) const fn exist(&self) -> bool {
        self.mark != 0
    }

    /// Whether the TAT of `word` was lowered.
    #[inline(always)]
    pub(super) const fn is_lowered(&self, word: u64) -> bool {
        word & self.mark != 0
    }

    /// The TAT that `word` holds.
    #[inline(always)]
    pub(super) const fn tat(&self, word: u64) -> u64 {
        if self.is_lowered(word) {
            self.lowered_tat(word)
        } else {
            word
        }
    }

    #[cold]
    const fn lowered_tat(&self, word: u64) -> u64 {
        if word & WIDE != 0 {
            return (word & (WIDE - 1)) >> GIVEN << (GIVEN + self.fine);
        }
        (word & (WIDE - 1)) << self.fine
    }

    /// The TAT, or the floor if that is later: the word expires then.
    #[inline(always)]
    pub(super) const fn floor(&self, word: u64) -> u64 {
        if self.is_lowered(word) {
            self.lowered_floor(word)
        } else {
            word
        }
    }

    #[cold]
    const fn lowered_floor(&self, word: u64) -> u64 {
        if word & WIDE != 0 {
            let step = self.step((word >> STEPS) as u32 & 15);
            let steps = (self.lowered_tat(word) >> step) + 1 + (word & ((1 << STEPS) - 1));
            return if steps.leading_zeros() > step { steps << step } else { u64::MAX };
        }
        // Below 4 quanta of 2^62 units for any word, a damaged one too.
        let quanta = (self.lowered_tat(word) >> self.quantum) + 1 + ((word >> 62) & 1);
        quanta << self.quantum
    }

    /// The word that follows `word` when charges raise its TAT to `tat`.
    #[inline(always)]
    pub(super) const fn raise(&self, word: u64, tat: u64) -> u64 {
        if self.is_lowered(word) {
            self.hold(tat, self.lowered_floor(word), word & WIDE != 0)
        } else {
            tat
        }
    }

    /// The word that follows `word` when its TAT is lowered to `tat`, or to the earliest later TAT that leaves room for the floor. It is
    /// `word` itself if that would lower nothing.
    pub(super) const fn lower(&self, word: u64, tat: u64) -> u64 {
        let floor = self.floor(word);
        if self.is_lowered(word) && word & WIDE != 0 {
            let lowered = self.hold(tat, floor, true);
            return if self.is_lowered(lowered) && self.tat(lowered) < self.tat(word) { lowered } else { word };
        }
        // Rounded up to a quantum. The floor is below 2^63 + 2^62, and a quantum at most 2^62.
        let quanta = (floor >> self.quantum) + ((floor & ((1 << self.quantum) - 1)) != 0) as u64;
        let earliest = quanta.saturating_sub(2) << self.quantum;
        let lowered = self.hold(if tat > earliest { tat } else { earliest }, quanta << self.quantum, false);
        if self.tat(lowered) < self.tat(word) {
            lowered
        } else {
            word
        }
    }

    /// 2^this units are a step of the wide form.
    const fn step(&self, e: u32) -> u32 {
        let step = self.quantum.saturating_sub(STEPS) + 2 * e;
        if step > 62 {
            62
        } else {
            step
        }
    }

    /// The word of a bucket with the TAT `tat` in a slot that stays taken until `floor` or longer. `None` if no word says so.
    pub(super) const fn held(&self, tat: u64, floor: u64, exact: bool) -> Option<u64> {
        let quanta = (floor >> self.quantum) + ((floor & ((1 << self.quantum) - 1)) != 0) as u64;
        let word = if tat >= floor {
            tat
        } else if exact {
            if quanta.saturating_sub(2) << self.quantum > tat {
                return None;
            }
            self.hold(tat, quanta << self.quantum, false)
        } else {
            self.hold(tat, floor, true)
        };
        // A plain word that expires so late because no other has room would owe more.
        if tat < floor && !self.is_lowered(word) && word > tat.saturating_add(1 << (GIVEN + self.fine)) {
            return None;
        }
        Some(word)
    }

    /// The word of a TAT and a floor. In the near form the TAT is at most two quanta before the floor, which is a multiple of a quantum.
    const fn hold(&self, tat: u64, floor: u64, wide: bool) -> u64 {
        let fine = if wide { self.fine + GIVEN } else { self.fine };
        let rounded = tat.saturating_add((1 << fine) - 1) >> fine;
        let rounded_tat = rounded << fine;
        if rounded_tat >= floor || rounded_tat >= WIDE << self.fine {
            return if tat > floor { tat } else { floor };
        }
        if !wide {
            return match (floor >> self.quantum).saturating_sub(rounded_tat >> self.quantum) {
                0 | 1 => LOWERED | rounded,
                _ => LOWERED | SECOND | rounded,
            };
        }
        let mut e = 0;
        while e < 16 {
            let step = self.step(e);
            // `floor` is at least 1, and after `rounded_tat`.
            let more = ((floor - 1) >> step) - (rounded_tat >> step);
            if more < 1 << STEPS {
                return LOWERED | WIDE | rounded << GIVEN | (e as u64) << STEPS | more;
            }
            e += 1;
        }
        floor
    }
}
