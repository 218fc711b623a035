//! A key's three buckets, and the order of their slots.
//!
//! The table knows a key only by the 64-bit hash of its bytes and policy. A slot stores the upper 56 bits of the hash (the *tag*). The number
//! of the slot's bucket implies the other 8 bits (the *rest*): the buckets of one tag are different for each rest. So the table confuses two
//! keys only if all 64 bits of their hashes agree.
//!
//! ```text
//! hash = tag 56 : rest 8
//! first  = place(tag) ^ rest           in the first part of the table
//! second = place'(tag) ^ rest          in the second part, which is as large
//! spare  = place"(tag) + rest          in the third part, of at least 256 buckets, modulo their number
//! ```
//!
//! Keys with the same tag have the same places, so two of them share a bucket of one part only if their rests agree. The parts share no bucket.
//! The lengths of the first two parts are multiples of 256, so a number that is below such a length stays below it when its lowest eight
//! bits change.
//!
//! A new key takes a slot in the emptier of its first two buckets, and the spare bucket comes last. With two buckets alone, one key in 90
//! would find no free slot in a table that is four fifths full. The spare buckets, a fifteenth of the table and therefore mostly in the cache,
//! reduce that to one key in some thousands. In a new table, 98 of 100 keys are in their first two buckets; after slots have been reused many
//! times, 91 of 100 are.

use super::probe::find_in;
use crate::table::memory::slot::{Bucket, Slot, SLOTS};
#[cfg(not(loom))]
use crate::table::memory::Parts;

/// The slots that may hold one key. Loom's models have no spare bucket.
pub(crate) const CANDIDATES: usize = if cfg!(loom) { 2 } else { 3 } * SLOTS;
/// Bits of a key word that hold the tag. The bits above hold the number of the policy's version.
pub(crate) const TAG_BITS: u32 = 56;
pub(crate) const TAG: u64 = (1 << TAG_BITS) - 1;
const REST_BITS: u32 = 64 - TAG_BITS;
/// The number of rests.
const RESTS: u64 = 1 << REST_BITS;

/// A hash of `tag`.
pub(crate) const fn hash_of_tag(tag: u64) -> u64 {
    tag << REST_BITS
}

/// The buckets of a key.
#[derive(Clone, Copy)]
pub(crate) struct Candidates<'a> {
    pub(crate) first: &'a Bucket,
    pub(crate) second: &'a Bucket,
    #[cfg(not(loom))]
    pub(crate) spare: &'a Bucket,
    /// The tag of the key.
    pub(crate) tag: u64,
}

impl<'a> Candidates<'a> {
    /// The slot whose key word is `key`.
    #[inline(always)]
    pub(crate) fn find(&self, key: u64) -> Option<&'a Slot> {
        if let Some(slot) = find_in(self.first, key) {
            return Some(slot);
        }
        if let Some(slot) = find_in(self.second, key) {
            return Some(slot);
        }
        self.spare().and_then(|spare| find_in(spare, key))
    }

    /// Candidate number `n`, below [`CANDIDATES`]. The order alternates between the first two buckets, each from its first slot on, so that
    /// a key that takes the first empty slot goes to the emptier bucket.
    #[inline(always)]
    pub(crate) fn slot(&self, n: usize) -> Option<&'a Slot> {
        if n >= 2 * SLOTS {
            return self.spare()?.0.get(n - 2 * SLOTS);
        }
        let bucket = if n & 1 == 0 { self.first } else { self.second };
        bucket.0.get(n >> 1)
    }

    /// All candidates in their order.
    pub(crate) fn slots(self) -> impl Iterator<Item = &'a Slot> {
        (0..CANDIDATES).filter_map(move |n| self.slot(n))
    }

    /// The last candidate that an insertion takes. In a table that holds no more keys than its capacity it is mostly empty.
    #[inline(always)]
    pub(crate) fn last(&self) -> Option<&'a Slot> {
        self.slot(CANDIDATES - 1)
    }

    #[inline(always)]
    fn spare(&self) -> Option<&'a Bucket> {
        #[cfg(not(loom))]
        return Some(self.spare);
        #[cfg(loom)]
        None
    }
}

/// Maps hashes to the numbers of buckets.
#[cfg(not(loom))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Placement {
    parts: Parts,
}

#[cfg(not(loom))]
impl Placement {
    /// The placement in a table of `buckets`, which is in `BUCKETS_LEAST..=BUCKETS_MOST`.
    pub(crate) fn new(buckets: u64) -> Placement {
        Placement { parts: Parts::new(buckets) }
    }

    /// The numbers of a hash's buckets: first, second, spare.
    #[inline(always)]
    pub(crate) fn buckets(&self, hash: u64) -> (u64, u64, u64) {
        let (first, second) = self.in_parts(hash);
        (first, self.parts.half + second, self.spare(hash))
    }

    /// The number of a hash's first bucket.
    #[inline(always)]
    pub(crate) fn first(&self, hash: u64) -> u64 {
        self.first_place(tag(hash)) ^ rest(hash)
    }

    /// The number of a hash's spare bucket.
    #[inline(always)]
    pub(crate) fn spare(&self, hash: u64) -> u64 {
        2 * self.parts.half + wrap(self.spare_place(tag(hash)) + rest(hash), self.parts.spares)
    }

    /// A hash's first two buckets, each counted from the beginning of its part.
    #[inline(always)]
    pub(crate) fn in_parts(&self, hash: u64) -> (u64, u64) {
        let (tag, rest) = (tag(hash), rest(hash));
        (self.first_place(tag) ^ rest, self.second_place(tag) ^ rest)
    }

    /// The number of the second part's first bucket.
    pub(crate) fn second_part(&self) -> u64 {
        self.parts.half
    }

    /// The hash whose key, with `tag`, is in bucket number `bucket`: the inverse of [`Placement::buckets`]. `None` in damaged memory.
    pub(crate) fn hash_of(&self, tag: u64, bucket: u64) -> Option<u64> {
        let Parts { half, spares } = self.parts;
        let back = |from: u64, by: u64, parts: u64| if from >= by { from - by } else { from + parts - by };
        let hash = |rest: u64| (rest < RESTS).then_some(tag << REST_BITS | rest);
        match (bucket.checked_sub(half), bucket.checked_sub(2 * half)) {
            (_, Some(spare)) => hash(back(spare, self.spare_place(tag), spares)),
            (Some(second), _) => hash(second ^ self.second_place(tag)),
            _ => hash(bucket ^ self.first_place(tag)),
        }
    }

    /// [`Placement::hash_of`] for a bucket of the second part, in fewer instructions.
    #[inline(always)]
    pub(crate) fn hash_in_second(&self, tag: u64, bucket: u64) -> u64 {
        // The second part begins at a multiple of the number of rests.
        tag << REST_BITS | (bucket ^ self.second_place(tag)) & (RESTS - 1)
    }

    /// The first place depends on the tag's upper 32 bits.
    #[inline(always)]
    fn first_place(&self, tag: u64) -> u64 {
        scale((tag >> (TAG_BITS - 32)) as u32, self.parts.half)
    }

    /// The second place depends on the tag's lower 32 bits. The two places share eight bits, the lowest of the one and the highest of the
    /// other: in tables of less than 2^24 buckets the places are independent, and in larger ones nearly so.
    #[inline(always)]
    fn second_place(&self, tag: u64) -> u64 {
        scale(tag as u32, self.parts.half)
    }

    /// The spare place depends on all bits of the tag.
    #[inline(always)]
    fn spare_place(&self, tag: u64) -> u64 {
        scale((mixed(tag ^ tag >> 28) >> 32) as u32, self.parts.spares)
    }
}

/// The part of a hash that a slot stores. It is the upper part, because that takes fewer instructions.
#[inline(always)]
pub(crate) fn tag(hash: u64) -> u64 {
    hash >> REST_BITS
}

/// The part of a hash that the number of a slot's bucket says.
#[cfg(not(loom))]
#[inline(always)]
fn rest(hash: u64) -> u64 {
    hash & (RESTS - 1)
}

/// A number whose upper half depends on all bits of `tag`: the multiplier is odd and near 2^64 / phi.
#[cfg(not(loom))]
#[inline(always)]
fn mixed(tag: u64) -> u64 {
    tag.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Maps `n` of 2^32 to one of `parts`.
#[cfg(not(loom))]
#[inline(always)]
fn scale(n: u32, parts: u64) -> u64 {
    (u64::from(n) * parts) >> 32
}

/// `n`, which is below twice `buckets`, modulo `buckets`. It is computed by a mask, because compilers make a branch of a choice, and this
/// one cannot be predicted.
#[cfg(not(loom))]
#[inline(always)]
fn wrap(n: u64, buckets: u64) -> u64 {
    let over = n.wrapping_sub(buckets);
    over.wrapping_add(buckets & ((over as i64) >> 63) as u64)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::table::memory::layout::mix;
    use crate::table::memory::sizes::{BUCKETS_LEAST, BUCKETS_MOST};

    /// Buckets are in range and different, and tag and bucket give the hash back, in tables of the smallest and largest sizes, too.
    #[test]
    fn a_tag_and_a_bucket_are_a_hash() {
        for buckets in [BUCKETS_LEAST, BUCKETS_LEAST + 1, 5000, 312_500, (1 << 32) - 5, BUCKETS_MOST] {
            let placement = Placement::new(buckets);
            for n in 0..20_000 {
                // The lowest and highest tags, too.
                let hash = match n % 4 {
                    0 => mix(n) | TAG << REST_BITS,
                    1 => rest(mix(n)),
                    _ => mix(n),
                };
                let (first, second, spare) = placement.buckets(hash);
                let main = 2 * placement.parts.half;
                assert!(first < placement.parts.half && (placement.parts.half..main).contains(&second));
                assert!((main..buckets).contains(&spare));
                for bucket in [first, second, spare] {
                    assert_eq!(placement.hash_of(tag(hash), bucket), Some(hash), "{hash:x} in {bucket} of {buckets}");
                }
                assert_eq!(placement.hash_in_second(tag(hash), second), hash, "in {second} of {buckets}");
            }
        }
    }

    /// No bucket belongs to two hashes of one tag.
    #[test]
    fn buckets_of_one_tag_are_all_different() {
        for buckets in [BUCKETS_LEAST, BUCKETS_LEAST + 7, 4096] {
            let placement = Placement::new(buckets);
            for n in 0..200 {
                let tag = mix(n) & TAG;
                let mut seen = std::collections::HashSet::new();
                for rest in 0..RESTS {
                    let (first, second, spare) = placement.buckets(tag << REST_BITS | rest);
                    assert!([first, second, spare].into_iter().all(|bucket| seen.insert(bucket)));
                }
            }
        }
    }
}
