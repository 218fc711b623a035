//! Where a key may be: its two buckets, and the order of their slots.
//!
//! A key is known by the 64-bit hash of its bytes and policy, and by nothing else. The slot stores 56 bits of
//! it (the tag), and its place says the other 8 (the rest): for one tag, the pairs of buckets of different
//! rests have no bucket in common. So two keys are taken for one another only if all 64 bits agree.
//!
//! ```text
//! hash = rest 8 : tag 56
//! first  = place(tag) + rest                          mod buckets
//! second = first + distance(tag)                      mod buckets,    256 <= distance <= buckets − 256
//! ```
//!
//! With the tag, place and distance are the same for two keys. Then first = first' only if the rests agree;
//! first = second' would need rest = rest' + distance (mod buckets), and both rests are below 256.

use super::slot::{Bucket, Slot, SLOTS};
use core::num::NonZeroU64;

/// The slots that may hold one key.
pub(super) const CANDIDATES: usize = 2 * SLOTS;
/// Bits of a key word that hold the tag; above it is the version of the policy.
pub(super) const TAG_BITS: u32 = 56;
pub(super) const TAG: u64 = (1 << TAG_BITS) - 1;
/// The number of rests.
const RESTS: u64 = 1 << (64 - TAG_BITS);
/// With `2 * RESTS` buckets there is one distance only, which makes closed groups of eight slots that fill up early;
/// with twice as many there are enough.
pub(super) const BUCKETS_LEAST: u64 = 4 * RESTS;
/// Bucket numbers are made of 32 bits of hash.
pub(super) const BUCKETS_MOST: u64 = 1 << 32;

/// The numbers of a hash's two buckets of `buckets`, which is in `BUCKETS_LEAST..=BUCKETS_MOST`.
#[inline(always)]
pub(super) fn homes(hash: u64, buckets: u64) -> (u64, u64) {
    let tag = hash & TAG;
    let first = wrap(scale((tag >> 24) as u32, buckets).wrapping_add(hash >> TAG_BITS), buckets);
    (first, wrap(first.wrapping_add(distance(tag, buckets)), buckets))
}

/// The hash whose key, with `tag`, is in bucket number `bucket`; the inverse of [`homes`].
pub(super) fn hash_of(tag: u64, bucket: u64, buckets: u64) -> Option<u64> {
    let rest = |first: u64| {
        let place = scale((tag >> 24) as u32, buckets);
        let rest = if first >= place { first - place } else { (first + buckets).wrapping_sub(place) };
        (rest < RESTS).then_some(rest << TAG_BITS | tag)
    };
    let before = distance(tag, buckets);
    rest(bucket).or_else(|| rest(if bucket >= before { bucket - before } else { (bucket + buckets) - before }))
}

/// How far the second bucket is from the first.
#[inline(always)]
fn distance(tag: u64, buckets: u64) -> u64 {
    // An odd multiplier near 2^64 / phi: its upper half depends on all bits of the tag.
    let mixed = tag.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    RESTS + scale(mixed as u32, buckets - (2 * RESTS - 1))
}

/// `n` of 2^32 to one of `parts`.
#[inline(always)]
fn scale(n: u32, parts: u64) -> u64 {
    (u64::from(n) * parts) >> 32
}

#[inline(always)]
fn wrap(n: u64, buckets: u64) -> u64 {
    if n >= buckets {
        n - buckets
    } else {
        n
    }
}

/// The two buckets of a key.
#[derive(Clone, Copy)]
pub(super) struct Home<'a> {
    pub(super) first: &'a Bucket,
    pub(super) second: &'a Bucket,
    /// The tag that the key's slot has.
    pub(super) tag: u64,
}

impl<'a> Home<'a> {
    /// The slot whose key word is `key`.
    #[inline(always)]
    pub(super) fn find(&self, key: u64) -> Option<&'a Slot> {
        match find_in(self.first, key) {
            None => find_in(self.second, key),
            found => found,
        }
    }

    /// Candidate number `n`, below [`CANDIDATES`]. The order alternates between the buckets, each from its first slot on:
    /// a key that takes the first of several empty slots so goes to the emptier bucket.
    #[inline(always)]
    pub(super) fn candidate(&self, n: usize) -> Option<&'a Slot> {
        let bucket = if n & 1 == 0 { self.first } else { self.second };
        bucket.0.get(n >> 1)
    }
}

/// All four are compared before it is asked whether one agreed: one branch that is mostly foreseen, not four.
#[inline(always)]
fn find_in(bucket: &Bucket, key: u64) -> Option<&Slot> {
    let [a, b, c, d] = &bucket.0;
    let agree = u32::from(a.key() == key)
        | u32::from(b.key() == key) << 1
        | u32::from(c.key() == key) << 2
        | u32::from(d.key() == key) << 3;
    NonZeroU64::new(u64::from(agree)).and_then(|agree| bucket.0.get(agree.trailing_zeros() as usize))
}
