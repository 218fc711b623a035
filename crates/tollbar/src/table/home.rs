//! Where a key may be: its three buckets, and the order of their slots.
//!
//! A key is known by the 64-bit hash of its bytes and policy, and by nothing else. The slot stores 56 bits of
//! it (the tag), and its place says the other 8 (the rest): for one tag, the buckets of different rests are
//! all different. So two keys are taken for one another only if all 64 bits agree.
//!
//! ```text
//! hash = tag 56 : rest 8
//! first  = place(tag) ^ rest           in the first part of the table
//! second = place'(tag) ^ rest          in the second, as large
//! spare  = place"(tag) + rest          in the third, of 256 buckets at least, and modulo their number
//! ```
//!
//! For two keys with one tag the places are the same, so their buckets in one part are the same only if the rests agree;
//! and the parts have none in common. The first two are multiples of 256 buckets: a number below such a one stays below
//! it, whatever its lowest eight bits become.
//!
//! A newcomer prefers the emptier of its first two buckets, and the spare one after both: at four fifths full two buckets
//! alone would leave one key in 90 without a place, which the spare ones, a fifteenth of the table and so mostly in
//! the cache, bring down to one in some thousands. Of the keys of a new table 98 in 100 are in their first two buckets; once slots
//! have been used again and again, 91.

use super::slot::{Bucket, Slot, SLOTS};
use core::num::NonZeroU64;

/// The slots that may hold one key. (Models do without the spare bucket.)
pub(super) const CANDIDATES: usize = if cfg!(loom) { 2 } else { 3 } * SLOTS;
/// Bits of a key word that hold the tag; above it is the version of the policy.
pub(super) const TAG_BITS: u32 = 56;
pub(super) const TAG: u64 = (1 << TAG_BITS) - 1;
const REST_BITS: u32 = 64 - TAG_BITS;
/// The number of rests.
const RESTS: u64 = 1 << REST_BITS;
/// Tables of fewer buckets are made larger rather than that the first two parts leave buckets over.
const SMALL: u64 = 1 << 16;
/// One bucket in so many is spare.
const SPARE_PART: NonZeroU64 = match NonZeroU64::new(15) {
    Some(part) => part,
    None => NonZeroU64::MIN,
};
/// And so many times as many are not.
const OTHER_PARTS: NonZeroU64 = match NonZeroU64::new(SPARE_PART.get() - 1) {
    Some(parts) => parts,
    None => NonZeroU64::MIN,
};
/// The fewest buckets of a table.
pub(super) const BUCKETS_LEAST: u64 = 5 * RESTS;
/// Bucket numbers are made of 32 bits of hash.
pub(super) const BUCKETS_MOST: u64 = 1 << 32;

/// How a table's buckets are divided: how many each part has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Homes {
    /// The first part, and the second.
    half: u64,
    spares: u64,
}

impl Homes {
    /// Of `buckets`, which is in `BUCKETS_LEAST..=BUCKETS_MOST`.
    pub(super) fn new(buckets: u64) -> Homes {
        let half = (buckets - least_spares(buckets)) / (2 * RESTS) * RESTS;
        Homes { half, spares: buckets - 2 * half }
    }

    /// The number of buckets for a table that is to have `buckets` at least: of a small one, where what the first two parts
    /// leave over would be many, so many more that they leave nothing.
    pub(super) fn round_up(buckets: u64) -> u64 {
        if buckets >= SMALL {
            return buckets;
        }
        let main = (buckets - least_spares(buckets)).next_multiple_of(2 * RESTS);
        // As many as `new` counts for the sum.
        main + (main / OTHER_PARTS).max(RESTS)
    }

    /// The numbers of a hash's buckets: first, second, spare.
    #[inline(always)]
    pub(super) fn of(&self, hash: u64) -> (u64, u64, u64) {
        let (first, second) = self.in_parts(hash);
        (first, self.half + second, self.spare_of(hash))
    }

    /// The last of them.
    #[inline(always)]
    pub(super) fn spare_of(&self, hash: u64) -> u64 {
        2 * self.half + wrap(self.spare_place(tag(hash)) + rest(hash), self.spares)
    }

    /// The first of them.
    #[inline(always)]
    pub(super) fn first_of(&self, hash: u64) -> u64 {
        self.first_place(tag(hash)) ^ rest(hash)
    }

    /// The first two of them, each counted from where its part begins.
    #[inline(always)]
    pub(super) fn in_parts(&self, hash: u64) -> (u64, u64) {
        let (tag, rest) = (tag(hash), rest(hash));
        (self.first_place(tag) ^ rest, self.second_place(tag) ^ rest)
    }

    /// Where the second part begins.
    pub(super) fn second_part(&self) -> u64 {
        self.half
    }

    /// The hash whose key, with `tag`, is in bucket number `bucket`; the inverse of [`Homes::of`].
    pub(super) fn hash_of(&self, tag: u64, bucket: u64) -> Option<u64> {
        let back = |from: u64, by: u64, parts: u64| if from >= by { from - by } else { from + parts - by };
        let hash = |rest: u64| (rest < RESTS).then_some(tag << REST_BITS | rest);
        match (bucket.checked_sub(self.half), bucket.checked_sub(2 * self.half)) {
            (_, Some(spare)) => hash(back(spare, self.spare_place(tag), self.spares)),
            (Some(second), _) => hash(second ^ self.second_place(tag)),
            _ => hash(bucket ^ self.first_place(tag)),
        }
    }

    /// The same of a bucket that is in the second part.
    #[inline(always)]
    pub(super) fn hash_in_second(&self, tag: u64, bucket: u64) -> u64 {
        // Where the second part begins is a multiple of the number of rests.
        tag << REST_BITS | (bucket ^ self.second_place(tag)) & (RESTS - 1)
    }

    /// Of the tag's upper 32 bits.
    #[inline(always)]
    fn first_place(&self, tag: u64) -> u64 {
        scale((tag >> (TAG_BITS - 32)) as u32, self.half)
    }

    /// Of the lower 32. Eight bits are in both, the lowest of the one and the highest of the other: in tables of less than
    /// 2^24 buckets the two have nothing to do with one another, and in larger ones little.
    #[inline(always)]
    fn second_place(&self, tag: u64) -> u64 {
        scale(tag as u32, self.half)
    }

    #[inline(always)]
    fn spare_place(&self, tag: u64) -> u64 {
        // Of all bits of the tag, unlike the other two.
        scale((mixed(tag ^ tag >> 28) >> 32) as u32, self.spares)
    }
}

/// What a slot has of a hash. The tag is above the rest, and not below, since that takes fewer instructions.
#[inline(always)]
pub(super) fn tag(hash: u64) -> u64 {
    hash >> REST_BITS
}

/// What a slot's place says of it.
#[inline(always)]
fn rest(hash: u64) -> u64 {
    hash & (RESTS - 1)
}

/// Its upper half depends on all bits of the tag: an odd multiplier near 2^64 / phi.
#[inline(always)]
fn mixed(tag: u64) -> u64 {
    tag.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// `n` of 2^32 to one of `parts`.
#[inline(always)]
fn scale(n: u32, parts: u64) -> u64 {
    (u64::from(n) * parts) >> 32
}

/// `n`, which is below twice `buckets`, modulo `buckets`. By a mask: which of the two it is nobody can foresee, and compilers
/// make a branch of a choice.
#[inline(always)]
fn wrap(n: u64, buckets: u64) -> u64 {
    let over = n.wrapping_sub(buckets);
    over.wrapping_add(buckets & ((over as i64) >> 63) as u64)
}

/// How many buckets are spare at least.
fn least_spares(buckets: u64) -> u64 {
    (buckets / SPARE_PART).max(RESTS)
}

/// The buckets of a key.
#[derive(Clone, Copy)]
pub(super) struct Home<'a> {
    pub(super) first: &'a Bucket,
    pub(super) second: &'a Bucket,
    #[cfg(not(loom))]
    pub(super) spare: &'a Bucket,
    /// The tag that the key's slot has.
    pub(super) tag: u64,
}

impl<'a> Home<'a> {
    /// The slot whose key word is `key`.
    #[inline(always)]
    pub(super) fn find(&self, key: u64) -> Option<&'a Slot> {
        if let Some(slot) = find_in(self.first, key) {
            return Some(slot);
        }
        if let Some(slot) = find_in(self.second, key) {
            return Some(slot);
        }
        self.spare().and_then(|spare| find_in(spare, key))
    }

    /// Candidate number `n`, below [`CANDIDATES`]. The order alternates between the first two buckets, each from its first
    /// slot on: a key that takes the first of several empty slots so goes to the emptier of them.
    #[inline(always)]
    pub(super) fn candidate(&self, n: usize) -> Option<&'a Slot> {
        if n >= 2 * SLOTS {
            return self.spare()?.0.get(n - 2 * SLOTS);
        }
        let bucket = if n & 1 == 0 { self.first } else { self.second };
        bucket.0.get(n >> 1)
    }

    #[inline(always)]
    fn spare(&self) -> Option<&'a Bucket> {
        #[cfg(not(loom))]
        return Some(self.spare);
        #[cfg(loom)]
        None
    }
}

/// The slot of two buckets whose key word is `key`, found without asking which of the two has it.
#[cfg(not(loom))]
#[inline(always)]
pub(super) fn find_in_two<'a>(first: &'a Bucket, second: &'a Bucket, key: u64) -> Option<&'a Slot> {
    let agree = Bucket::agreeing(first, second, key);
    if agree == 0 {
        return None;
    }
    let place = agree.trailing_zeros() as usize / 2;
    Some(at(Bucket::choose(agree, first, second), place % SLOTS))
}

/// The slot of a bucket whose key word is `key`.
#[cfg(not(loom))]
#[inline(always)]
pub(super) fn find_in(bucket: &Bucket, key: u64) -> Option<&Slot> {
    let agree = Bucket::agreeing_in(bucket, key);
    if agree == 0 {
        return None;
    }
    Some(at(bucket, agree.trailing_zeros() as usize / 4 % SLOTS))
}

#[cfg(not(loom))]
#[inline(always)]
fn at(bucket: &Bucket, place: usize) -> &Slot {
    debug_assert!(place < SLOTS);
    // SAFETY: both callers have taken it modulo the length. A comparison would be one of a few dozen instructions.
    unsafe { bucket.0.get_unchecked(place) }
}

#[cfg(loom)]
fn find_in(bucket: &Bucket, key: u64) -> Option<&Slot> {
    bucket.0.iter().find(|slot| slot.key() == key)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::table::layout::mix;

    /// Buckets are in range, different, and the hash can be told from tag and bucket: with sizes at the edges.
    #[test]
    fn a_tag_and_a_bucket_are_a_hash() {
        for buckets in [BUCKETS_LEAST, BUCKETS_LEAST + 1, 5000, 312_500, (1 << 32) - 5, BUCKETS_MOST] {
            let homes = Homes::new(buckets);
            for n in 0..20_000 {
                // Tags at the edges too.
                let hash = match n % 4 {
                    0 => mix(n) | TAG << REST_BITS,
                    1 => rest(mix(n)),
                    _ => mix(n),
                };
                let (first, second, spare) = homes.of(hash);
                let main = 2 * homes.half;
                assert!(first < homes.half && (homes.half..main).contains(&second));
                assert!((main..buckets).contains(&spare));
                for bucket in [first, second, spare] {
                    assert_eq!(homes.hash_of(tag(hash), bucket), Some(hash), "{hash:x} in {bucket} of {buckets}");
                }
                assert_eq!(homes.hash_in_second(tag(hash), second), hash, "in {second} of {buckets}");
            }
        }
    }

    /// What the first two parts leave over is spare: nothing in a small table, and next to nothing in a large one.
    #[test]
    fn one_in_fifteen_is_spare() {
        let edges = [BUCKETS_LEAST, BUCKETS_LEAST + 1, SMALL - 1, SMALL, 312_500, BUCKETS_MOST];
        for asked in (BUCKETS_LEAST..SMALL + 5000).step_by(97).chain(edges) {
            let buckets = Homes::round_up(asked);
            assert!((asked..asked + 3 * RESTS).contains(&buckets), "{buckets} for {asked}");
            assert_eq!(buckets, Homes::round_up(buckets), "of {asked}");
            let Homes { half, spares } = Homes::new(buckets);
            assert_eq!((half % RESTS, 2 * half + spares), (0, buckets));
            let surplus = spares - least_spares(buckets);
            assert!(if asked < SMALL { surplus == 0 } else { surplus < 2 * RESTS }, "{surplus} too many of {asked}");
        }
    }

    /// No bucket belongs to two hashes of one tag.
    #[test]
    fn buckets_of_one_tag_are_all_different() {
        for buckets in [BUCKETS_LEAST, BUCKETS_LEAST + 7, 4096] {
            let homes = Homes::new(buckets);
            for n in 0..200 {
                let tag = mix(n) & TAG;
                let mut seen = std::collections::HashSet::new();
                for rest in 0..RESTS {
                    let (first, second, spare) = homes.of(tag << REST_BITS | rest);
                    assert!([first, second, spare].into_iter().all(|bucket| seen.insert(bucket)));
                }
            }
        }
    }
}
