//! Words of buckets that got permits back, or whose policy has changed.
//!
//! A table may give a slot to another key once the slot's word has expired. So that time must never
//! fall, although the TAT of a bucket falls when permits are given back. A word whose TAT was
//! lowered therefore also holds the time until which the slot stays taken: its *floor*. It has two
//! forms. In the near one the floor is a multiple of a *quantum* of units, the smallest power of
//! two that is at least the burst's length, so that one bit can hold it. In the wide one it is a
//! multiple of a *step* of nanoseconds. Steps are the same for all policies, so a floor stays the
//! same in however many changes of the policy:
//!
//! ```text
//! bit 63        1: the TAT was lowered. All other words of a bucket are below 2^63, and are the TAT itself
//! bit 61        0: the near form
//!   bit 62      the floor is (TAT / quantum + 1 + this bit) quanta
//!   bits 60..0  the TAT, rounded up to a multiple of 2^fine units, divided by that
//! bit 61        1: the wide form. bit 62 is 0
//!   bits 60..10 the TAT, rounded up to a multiple of 2^(fine + 10) units, divided by that
//!   bits 9..6   e: a step is 2^25 · 4^e ns
//!   bits 5..0   the floor is (time of the TAT / step + 1 + these bits) steps. The time is that at which a plain word of this TAT expires
//! ```
//!
//! `fine` is 0 if 61 bits hold every clock reading of the policy, as for all rates whose unit is a
//! nanosecond; otherwise 1 or 2. The word is the plain TAT again as soon as charges bring the TAT
//! to the floor. Policies whose TATs need all 64 bits never lower one.

use crate::units::NEVER;

/// The bits of a TAT that leave room for a floor.
pub(super) const TAT_BITS: u32 = 63;
/// The highest TAT that leaves room for a floor. Under a policy that gives back, every higher word
/// was lowered.
pub(crate) const TAT_MOST: u64 = u64::MAX >> 1;
const LOWERED: u64 = 1 << 63;
const SECOND: u64 = 1 << 62;
const WIDE: u64 = 1 << 61;
/// The bits of a TAT that the wide form leaves to the floor.
const GIVEN: u32 = 10;
/// The bits that count steps.
const COUNT: u32 = 6;
/// The shortest step is 2^25 ns. The longest is 2^55 ns, so 64 of them reach every time that a word
/// can hold.
const SHORTEST_STEP: u32 = 25;

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

    /// The floors of a policy with a burst of `tolerance` units, at most 2^62, and clock readings
    /// up to `most`, less than 2^63.
    pub(super) const fn new(tolerance: u64, most: u64) -> Floors {
        // The power of two that is at least `tolerance`.
        let quantum = 64 - tolerance.saturating_sub(1).leading_zeros();
        let bits = 64 - most.leading_zeros();
        let fine = bits.saturating_sub(61);
        Floors { mark: LOWERED, quantum: if quantum > 62 { 62 } else { quantum }, fine }
    }

    /// A quantum is 2^this units.
    #[cfg(all(test, not(loom)))]
    pub(super) const fn quantum(&self) -> u32 {
        self.quantum
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

    /// Whether `word` has the wide form.
    pub(super) const fn is_wide(&self, word: u64) -> bool {
        self.is_lowered(word) && word & WIDE != 0
    }

    /// The floor of a word of the near form, in units.
    pub(super) const fn near_floor(&self, word: u64) -> u64 {
        // Below 4 quanta of 2^62 units for any word, a damaged one too.
        let quanta = (self.lowered_tat(word) >> self.quantum) + 1 + ((word >> 62) & 1);
        quanta << self.quantum
    }

    /// Makes a word of the near form. It holds the TAT `tat` and a floor of `floor` units, rounded
    /// up to a quantum. `None` if the floor is more than two quanta after the TAT, or if the TAT
    /// needs more than 61 bits.
    pub(super) const fn near(&self, tat: u64, floor: u64) -> Option<u64> {
        let floor = self.in_quanta(floor);
        let rounded = tat.saturating_add((1 << self.fine) - 1) >> self.fine;
        let rounded_tat = rounded << self.fine;
        if rounded_tat >= floor || rounded_tat >= WIDE << self.fine {
            return None;
        }
        match (floor >> self.quantum).saturating_sub(rounded_tat >> self.quantum) {
            0 | 1 => Some(LOWERED | rounded),
            2 => Some(LOWERED | SECOND | rounded),
            _ => None,
        }
    }

    /// The earliest TAT that the near form has room for beside `floor`.
    pub(super) const fn nearest(&self, floor: u64) -> u64 {
        self.in_quanta(floor).saturating_sub(2 << self.quantum)
    }

    /// `floor` rounded up to a quantum. It is below 2^63 + 2^62, and a quantum at most 2^62.
    const fn in_quanta(&self, floor: u64) -> u64 {
        let quanta = (floor >> self.quantum) + ((floor & ((1 << self.quantum) - 1)) != 0) as u64;
        quanta << self.quantum
    }

    /// Reads the floor, in nanoseconds, of a word of the wide form. `expires` is when a plain word
    /// of the same TAT expires, because the word counts its steps from there.
    pub(super) const fn wide_floor(word: u64, expires: u64) -> u64 {
        if expires == NEVER {
            return NEVER;
        }
        // Does not overflow. Times before [`NEVER`] are below 2^61 ns, so the sum is at most 128
        // steps of 2^55 ns.
        let step = step(word >> COUNT & 15);
        ((expires >> step) + 1 + (word & ((1 << COUNT) - 1))) << step
    }

    /// Makes a word of the wide form. It holds the TAT `tat`, which [`Floors::wide_tat`] has
    /// rounded, and a floor of `floor` nanoseconds, rounded up to a step. `expires` is when a plain
    /// word of this TAT expires. `None` if the floor is not after that, or if the TAT needs more
    /// than 61 bits.
    pub(super) const fn wide(&self, tat: u64, expires: u64, floor: u64) -> Option<u64> {
        if expires >= floor || tat >= WIDE << self.fine {
            return None;
        }
        let tat = tat >> (GIVEN + self.fine) << GIVEN;
        let mut e = 0;
        while e < 16 {
            let more = ((floor - 1) >> step(e)) - (expires >> step(e));
            if more < 1 << COUNT {
                return Some(LOWERED | WIDE | tat | e << COUNT | more);
            }
            e += 1;
        }
        None
    }

    /// Rounds `tat` down to a number that words of both forms hold exactly.
    pub(super) const fn rounded_down(&self, tat: u64) -> u64 {
        let fine = GIVEN + self.fine;
        tat >> fine << fine
    }

    /// Rounds `tat` up to the next TAT that a word of the wide form can hold. That form has no room
    /// for its last bits.
    pub(super) const fn wide_tat(&self, tat: u64) -> u64 {
        let fine = GIVEN + self.fine;
        tat.saturating_add((1 << fine) - 1) >> fine << fine
    }
}

/// 2^this nanoseconds are a step of the wide form.
const fn step(e: u64) -> u32 {
    SHORTEST_STEP + 2 * e as u32
}
