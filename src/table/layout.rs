//! What is where in a table's memory.
//!
//! ```text
//!      0  header     what was decided when it was made; the policies that are current
//!   4 Ki  versions   256 records of 128 bytes: every policy that a slot may be under
//!  36 Ki  counters   64 shards of 128 bytes
//!  44 Ki  exempt     2,048 hashes of keys that are never charged
//!  64 Ki  buckets    64 bytes each
//!         side       words of rings and logs, a fixed number for each slot; mostly none
//! ```
//!
//! There are offsets only, no addresses: processes map it where they like. All numbers are in the machine's
//! byte order, which is part of [`LAYOUT`].

use super::error::TableError;
use super::home::{Homes, BUCKETS_LEAST, BUCKETS_MOST};
use super::slot::{Bucket, SLOTS};
use super::POLICIES_MOST;
use crate::sync::AtomicU64;
use core::mem::{offset_of, size_of};
use core::num::NonZeroU64;

/// The first eight bytes of every table of every version: "tollbar" and a line feed.
pub(super) const MAGIC: u64 = u64::from_ne_bytes(*b"tollbar\n");
/// Raised with every change of what is where, of the hash, or of what a state word means.
pub(super) const VERSION: u64 = 4;

pub(super) const VERSIONS: usize = 256;
pub(super) const SHARDS: usize = 64;
pub(super) const COUNTERS: usize = 16;
pub(super) const EXEMPT: usize = 2048;
pub(super) const RECORD_WORDS: usize = 14;

pub(super) const VERSIONS_AT: usize = 4 << 10;
pub(super) const COUNTERS_AT: usize = 36 << 10;
pub(super) const EXEMPT_AT: usize = 44 << 10;
pub(super) const BUCKETS_AT: usize = 64 << 10;

/// A fingerprint of everything that two builds must agree on beside [`VERSION`].
pub(super) const LAYOUT: u64 = fold(&[
    VERSION,
    offset_of!(Header, current) as u64,
    size_of::<Header>() as u64,
    size_of::<Record>() as u64,
    size_of::<Shard>() as u64,
    size_of::<Bucket>() as u64,
    EXEMPT as u64,
    BUCKETS_AT as u64,
    // Whether this machine's numbers are as the others'.
    u64::from_ne_bytes([1, 2, 3, 4, 5, 6, 7, 8]),
]);

/// What was decided when the table was made, and the few words that may change after.
#[repr(C)]
pub(super) struct Header {
    pub(super) magic: u64,
    pub(super) layout: u64,
    pub(super) fixed: Fixed,
    /// [`fold`] of all above.
    pub(super) check: u64,

    /// The boot that `offset` is for; both words 0 where the table does not outlive a boot.
    pub(super) boot: [AtomicU64; 2],
    /// What is added to the clock: the table's time goes on where the last boot left it. Modulo 2^64.
    pub(super) offset: AtomicU64,
    /// A pair of times taken together, for the next boot: the table's, and the wall clock's.
    pub(super) table_time: AtomicU64,
    pub(super) wall_time: AtomicU64,
    /// Numbers for stamps.
    pub(super) generation: AtomicU64,
    /// How many keys are exempt, at most: 0 saves the look.
    pub(super) exempt: AtomicU64,
    pub(super) spare: [AtomicU64; 5],
    /// The stamp of each policy's current version; 0: no such policy.
    pub(super) current: [AtomicU64; POLICIES_MOST],
}

/// What never changes.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fixed {
    /// The length of the whole.
    pub(super) bytes: u64,
    pub(super) capacity: u64,
    pub(super) buckets: u64,
    /// Side words a slot.
    pub(super) side: u64,
    /// An [`OnFull`](super::OnFull).
    pub(super) on_full: u64,
    /// A [`Source`](crate::clock::Source).
    pub(super) clock: u64,
    pub(super) seed: u64,
    /// A [`Missing`](super::Missing).
    pub(super) missing: u64,
    /// Whether the table outlives a boot: it is in a file.
    pub(super) file: u64,
}

/// A version of a policy. It is published by its stamp, and then stays.
#[repr(C)]
pub(super) struct Record {
    /// 0: free; 1: being written; else generation, policy, version.
    pub(super) stamp: AtomicU64,
    /// [`fold`] of the words.
    pub(super) check: AtomicU64,
    pub(super) words: [AtomicU64; RECORD_WORDS],
}

/// Counters of the threads that share it.
#[repr(C)]
pub(super) struct Shard {
    pub(super) counts: [AtomicU64; COUNTERS],
}

const _: () = assert!(size_of::<Header>() <= VERSIONS_AT);
const _: () = assert!(VERSIONS_AT + VERSIONS * size_of::<Record>() == COUNTERS_AT);
const _: () = assert!(COUNTERS_AT + SHARDS * size_of::<Shard>() == EXEMPT_AT);
const _: () = assert!(EXEMPT_AT + EXEMPT * 8 <= BUCKETS_AT);

/// The sizes of a table for `capacity` keys whose slots have `side` further words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sizes {
    pub(super) buckets: u64,
    pub(super) bytes: u64,
}

impl Sizes {
    /// Four fifths of the slots are the capacity: filled that far, one key in some thousands finds no place.
    pub(super) fn new(capacity: u64, side: u64) -> Result<Sizes, TableError> {
        let slots = capacity.checked_add(capacity / 4).ok_or(TableError::Capacity)?;
        if capacity == 0 {
            return Err(TableError::Capacity);
        }
        // 20 bytes a key with all that is fixed, once that is less than a hundredth.
        let fixed = (BUCKETS_AT / 16) as u64;
        let slots = if fixed < slots / 100 { slots - fixed } else { slots };
        let buckets = Homes::round_up((slots / SLOTS as u64).max(BUCKETS_LEAST));
        if buckets > BUCKETS_MOST {
            return Err(TableError::Capacity);
        }
        let sizes = Sizes { buckets, bytes: 0 };
        let bytes = sizes
            .side_at()
            .checked_add(sizes.slots().checked_mul(side).and_then(|w| w.checked_mul(8)).ok_or(TableError::Capacity)?);
        let bytes = bytes.filter(|&bytes| bytes <= isize::MAX as u64).ok_or(TableError::Capacity)?;
        Ok(Sizes { bytes, ..sizes })
    }

    pub(super) fn slots(&self) -> u64 {
        self.buckets * SLOTS as u64
    }

    /// Where the side words begin. Cannot overflow: there are at most 2^32 buckets.
    pub(super) fn side_at(&self) -> u64 {
        BUCKETS_AT as u64 + self.buckets * size_of::<Bucket>() as u64
    }
}

impl Header {
    /// Whether `bytes`, the first of a file or of memory, begin a table of this version; and what is fixed in it.
    pub(super) fn inspect(bytes: &[u8]) -> Result<Fixed, TableError> {
        const FIXED: usize = offset_of!(Header, check) / 8;
        let word = |n: usize| {
            let bytes = bytes.get(n * 8..n * 8 + 8).and_then(|bytes| <[u8; 8]>::try_from(bytes).ok());
            bytes.map(u64::from_ne_bytes).ok_or(TableError::Truncated)
        };
        match bytes.get(..8) {
            Some(magic) if magic == MAGIC.to_ne_bytes() => {}
            _ => return Err(TableError::NotATable),
        }
        if word(1)? != LAYOUT {
            return Err(TableError::Version);
        }
        let mut words = [0; FIXED];
        for (n, place) in words.iter_mut().enumerate() {
            *place = word(n)?;
        }
        if fold(&words) != word(FIXED)? {
            return Err(TableError::Corrupt);
        }
        let [_, _, bytes, capacity, buckets, side, on_full, clock, seed, missing, file] = words;
        let fixed = Fixed { bytes, capacity, buckets, side, on_full, clock, seed, missing, file };
        // The checksum is right, so whoever wrote this meant it; that it is what this code would have written makes every
        // later offset sound.
        if Sizes::new(capacity, side) != Ok(Sizes { buckets, bytes }) {
            return Err(TableError::Corrupt);
        }
        Ok(fixed)
    }

    /// The value of [`Header::check`] for these.
    pub(super) fn check_of(fixed: &Fixed) -> u64 {
        let Fixed { bytes, capacity, buckets, side, on_full, clock, seed, missing, file } = *fixed;
        fold(&[MAGIC, LAYOUT, bytes, capacity, buckets, side, on_full, clock, seed, missing, file])
    }
}

/// A checksum against accidents: each word is mixed in by a multiplication that has an inverse, so that any single
/// changed word changes it.
pub(super) const fn fold(words: &[u64]) -> u64 {
    let mut sum = 0x5851_f42d_4c95_7f2d;
    let mut rest = words;
    while let [word, others @ ..] = rest {
        sum = mix(sum ^ *word);
        rest = others;
    }
    sum
}

/// A bijection of 64-bit words whose every output bit depends on every input bit (the finalizer of SplitMix64).
pub(super) const fn mix(n: u64) -> u64 {
    let n = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}

/// The number of slots a bucket has, for divisions.
pub(super) const SLOTS_A_BUCKET: NonZeroU64 = match NonZeroU64::new(SLOTS as u64) {
    Some(slots) => slots,
    None => NonZeroU64::MIN,
};
