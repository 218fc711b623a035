//! The size of a table, and the division of its buckets into three parts.

use super::error::TableError;
use super::slot::{Bucket, Slot, SLOTS};
use super::special::{GROUP, OVERRIDES_MOST};
use core::mem::size_of;
use core::num::NonZeroU64;

/// The offset of the buckets in bytes: everything before them has a fixed size ([`super::layout`]).
pub(crate) const BUCKETS_AT: usize = 219 << 10;
/// The first and the second part each have a multiple of this many buckets, because a bucket's
/// number is computed by an exclusive or with eight bits of the hash.
pub(crate) const PART_UNIT: u64 = 1 << 8;
/// [`BucketParts::round_up`] rounds smaller numbers of buckets up, so that the first two parts
/// leave no buckets over.
pub(super) const SMALL: u64 = 1 << 16;
/// One bucket in 15 is spare.
const SPARE_PART: NonZeroU64 = match NonZeroU64::new(15) {
    Some(part) => part,
    None => NonZeroU64::MIN,
};
/// A table has 14 other buckets for each spare one.
const OTHER_PARTS: NonZeroU64 = match NonZeroU64::new(SPARE_PART.get() - 1) {
    Some(parts) => parts,
    None => NonZeroU64::MIN,
};
/// The fewest buckets of a table.
pub(crate) const BUCKETS_LEAST: u64 = 5 * PART_UNIT;
/// Bucket numbers are made of 32 bits of hash.
pub(crate) const BUCKETS_MOST: u64 = 1 << 32;

/// The groups of places for so many overrides: twice as many places, so that both groups of a key
/// are practically never full.
pub(crate) fn override_groups(overrides: u64) -> u64 {
    match overrides {
        0 => 0,
        some => some.div_ceil(GROUP as u64 / 2).max(2),
    }
}

/// The side words of a slot with room for windows of `room` segments and logs of `room` permits:
/// cells of two words. The first cell has the epoch. A window uses a power of two of the others, at
/// least two more than its segments, and a log one more than its permits.
pub(crate) fn side_words_of(room: u64) -> u64 {
    room.saturating_add(2)
        .checked_next_power_of_two()
        .and_then(|places| places.checked_add(1)?.checked_mul(2))
        .unwrap_or(u64::MAX)
}

/// A table's number of buckets, and its length in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) buckets: u64,
    pub(crate) bytes: u64,
}

impl Sizes {
    /// The sizes of a table for `capacity` keys with `side` side words a slot. The capacity is four
    /// fifths of the slots: in a table that holds so many keys, one new key in some thousands finds
    /// no free slot.
    pub(crate) fn new(capacity: u64, side: u64, overrides: u64) -> Result<Sizes, TableError> {
        let slots = capacity.checked_add(capacity / 4).ok_or(TableError::Capacity)?;
        if capacity == 0 {
            return Err(TableError::Capacity);
        }
        if overrides > OVERRIDES_MOST {
            return Err(TableError::Overrides);
        }
        let overrides = override_groups(overrides) * GROUP as u64 * size_of::<Slot>() as u64;
        // A table takes 20 bytes a key. These include its fixed parts if they are less than a
        // hundredth of it.
        let fixed = (BUCKETS_AT as u64 + overrides) / 16;
        let slots = if fixed < slots / 100 { slots - fixed } else { slots };
        let buckets = BucketParts::round_up((slots / SLOTS as u64).max(BUCKETS_LEAST));
        if buckets > BUCKETS_MOST {
            return Err(TableError::Capacity);
        }
        let sizes = Sizes { buckets, bytes: 0 };
        let bytes = sizes
            .side_at()
            .checked_add(
                sizes
                    .slots()
                    .checked_mul(side)
                    .and_then(|w| w.checked_mul(8))
                    .ok_or(TableError::Capacity)?,
            )
            .and_then(|bytes| bytes.checked_add(overrides));
        let bytes =
            bytes.filter(|&bytes| bytes <= isize::MAX as u64).ok_or(TableError::Capacity)?;
        Ok(Sizes { bytes, ..sizes })
    }

    pub(crate) fn slots(&self) -> u64 {
        self.buckets * SLOTS as u64
    }

    /// The offset of the side words in bytes. It cannot overflow, because there are at most 2^32
    /// buckets.
    pub(crate) fn side_at(&self) -> u64 {
        BUCKETS_AT as u64 + self.buckets * size_of::<Bucket>() as u64
    }
}

/// How a table's buckets are divided: a first part, a second one as large, and the spare buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BucketParts {
    /// Buckets of the first part, and of the second.
    pub(crate) half: u64,
    pub(crate) spares: u64,
}

impl BucketParts {
    /// The parts of `buckets`, which is in `BUCKETS_LEAST..=BUCKETS_MOST`.
    pub(crate) fn new(buckets: u64) -> BucketParts {
        let half = (buckets - least_spares(buckets)) / (2 * PART_UNIT) * PART_UNIT;
        BucketParts { half, spares: buckets - 2 * half }
    }

    /// The number of buckets of a table that needs at least `buckets`. A small table gets as many
    /// as make the first two parts leave no bucket over.
    pub(crate) fn round_up(buckets: u64) -> u64 {
        if buckets >= SMALL {
            return buckets;
        }
        let main = (buckets - least_spares(buckets)).next_multiple_of(2 * PART_UNIT);
        // `new` computes the same number of spare buckets from the sum.
        main + (main / OTHER_PARTS).max(PART_UNIT)
    }
}

/// The fewest spare buckets of a table with `buckets` buckets.
pub(super) fn least_spares(buckets: u64) -> u64 {
    (buckets / SPARE_PART).max(PART_UNIT)
}

#[cfg(test)]
mod tests;
