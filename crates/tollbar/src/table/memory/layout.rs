//! The layout of a table's memory.
//!
//! ```text
//!      0  header     what was decided when it was made; the policies that are current
//!   4 Ki  versions   256 records of 128 bytes: every policy that a slot may be under
//!  36 Ki  counters   64 shards of 128 bytes
//!  44 Ki  exempt     2,048 hashes of keys that are never charged
//!  60 Ki  decisions  4 times 128 policies' counters of threads that own none
//!  76 Ki  lines      512 lines of 64 bytes: counters that one thread owns
//! 108 Ki  receipts   which of the last 8,184 receipts are not settled yet
//! 172 Ki  buckets    64 bytes each
//!         side       words of rings and logs, a fixed number for each slot; mostly none
//! ```
//!
//! There are offsets only, no addresses: processes map it where they like. All numbers are in the machine's
//! byte order, which is part of [`LAYOUT`].

use super::counters::lines::Line;
use super::error::TableError;
use super::slot::Bucket;
use super::Sizes;
use crate::sync::{AtomicU64, Ordering};
use core::mem::{offset_of, size_of};

/// The policies that a table may have.
pub const POLICIES_MOST: usize = 128;

/// The first eight bytes of every table of every version: "tollbar" and a line feed.
pub(crate) const MAGIC: u64 = u64::from_ne_bytes(*b"tollbar\n");
/// Raised with every change of what is where, of the hash, or of what a state word means.
pub(crate) const VERSION: u64 = 8;

pub(crate) const VERSIONS: usize = 256;
pub(crate) const SHARDS: usize = 64;
pub(crate) const COUNTERS: usize = 16;
pub(crate) const EXEMPT: usize = 2048;
pub(crate) const RECORD_WORDS: usize = 14;
/// Words of [`Fixed`].
pub(crate) const FIXED_WORDS: usize = 9;
/// Threads and policies that may own counters at one time.
pub(crate) const LINES: usize = 512;
/// What decisions are counted for the threads that own none: each policy has as many counters of a verdict.
pub(crate) const PARTS: usize = 4;

pub(crate) const VERSIONS_AT: usize = 4 << 10;
pub(crate) const COUNTERS_AT: usize = 36 << 10;
pub(crate) const EXEMPT_AT: usize = 44 << 10;
pub(crate) const DECISIONS_AT: usize = 60 << 10;
pub(crate) const LINES_AT: usize = 76 << 10;
pub(crate) const RECEIPTS_AT: usize = 108 << 10;
pub(crate) const BUCKETS_AT: usize = 172 << 10;

/// A fingerprint of everything that two builds must agree on beside [`VERSION`].
pub(crate) const LAYOUT: u64 = fold(&[
    VERSION,
    offset_of!(Header, current) as u64,
    size_of::<Header>() as u64,
    size_of::<Record>() as u64,
    size_of::<Shard>() as u64,
    size_of::<Bucket>() as u64,
    EXEMPT as u64,
    size_of::<Receipts>() as u64,
    size_of::<Line>() as u64,
    BUCKETS_AT as u64,
    // Whether this machine's numbers are as the others'.
    u64::from_ne_bytes([1, 2, 3, 4, 5, 6, 7, 8]),
]);

/// What was decided when the table was made, and the few words that may change after.
#[repr(C)]
pub(crate) struct Header {
    /// [`MAGIC`], written last.
    pub(crate) magic: AtomicU64,
    pub(crate) layout: AtomicU64,
    /// A [`Fixed`]. Atomic, though they never change: another process can write here, and a plain word that changes under a
    /// reference is undefined behaviour.
    pub(crate) fixed: [AtomicU64; FIXED_WORDS],
    /// [`fold`] of all above.
    pub(crate) check: AtomicU64,

    /// The boot that `offset` is for; both words 0 where the table does not outlive a boot.
    pub(crate) boot: [AtomicU64; 2],
    /// What is added to the clock: the table's time goes on where the last boot left it. Modulo 2^64.
    pub(crate) offset: AtomicU64,
    /// A pair of times taken together, for the next boot: the table's, and the wall clock's.
    pub(crate) table_time: AtomicU64,
    pub(crate) wall_time: AtomicU64,
    /// Numbers for stamps.
    pub(crate) generation: AtomicU64,
    /// How many keys are exempt, at most: 0 saves the look.
    pub(crate) exempt: AtomicU64,
    /// A bit a policy: 1 once permits were booked under it for a later time than that of their call. It never becomes 0 again.
    pub(crate) booked: [AtomicU64; POLICIES_MOST / 64],
    /// A bit a policy: 1 once a thread has taken credit of a key under it in advance. It never becomes 0 again.
    pub(crate) lent: [AtomicU64; POLICIES_MOST / 64],
    pub(crate) spare: [AtomicU64; 1],
    /// The stamp of each policy's current version; 0: no such policy.
    pub(crate) current: [AtomicU64; POLICIES_MOST],
}

/// What never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fixed {
    /// The length of the whole.
    pub(crate) bytes: u64,
    pub(crate) capacity: u64,
    pub(crate) buckets: u64,
    /// Side words a slot.
    pub(crate) side: u64,
    /// An [`OnFull`](crate::table::OnFull).
    pub(crate) on_full: u64,
    /// A [`Source`](crate::clock::Source).
    pub(crate) clock: u64,
    pub(crate) seed: u64,
    /// A [`Missing`](crate::table::Missing).
    pub(crate) missing: u64,
    /// Whether the table outlives a boot: it is in a file.
    pub(crate) file: u64,
}

/// A version of a policy. It is published by its stamp, and then stays.
#[repr(C)]
pub(crate) struct Record {
    /// 0: free; 1: being written; else generation, policy, version.
    pub(crate) stamp: AtomicU64,
    /// [`fold`] of the words.
    pub(crate) check: AtomicU64,
    pub(crate) words: [AtomicU64; RECORD_WORDS],
}

/// Counters of the threads that share it.
#[repr(C)]
pub(crate) struct Shard {
    pub(crate) counts: [AtomicU64; COUNTERS],
}

/// Receipts that may be settled at one time.
pub(crate) const RECEIPTS: usize = 8184;

/// Which receipts can be settled. Receipt number `n` has the place `n mod RECEIPTS` until it is settled or another takes the place.
#[repr(C)]
pub(crate) struct Receipts {
    /// The number of the next receipt.
    pub(crate) next: AtomicU64,
    pub(crate) spare: [AtomicU64; 7],
    /// What tells a receipt from the others of its place; 0: it is settled.
    pub(crate) open: [AtomicU64; RECEIPTS],
}

/// Decisions by policy and verdict, of threads that own no line; the last word is spare.
pub(crate) type Decisions = [[AtomicU64; 4]; POLICIES_MOST];

const _: () = assert!(size_of::<Header>() <= VERSIONS_AT);
const _: () = assert!(VERSIONS_AT + VERSIONS * size_of::<Record>() == COUNTERS_AT);
const _: () = assert!(COUNTERS_AT + SHARDS * size_of::<Shard>() == EXEMPT_AT);
const _: () = assert!(EXEMPT_AT + EXEMPT * 8 == DECISIONS_AT);
const _: () = assert!(DECISIONS_AT + PARTS * size_of::<Decisions>() == LINES_AT);
const _: () = assert!(LINES_AT + LINES * size_of::<Line>() == RECEIPTS_AT);
const _: () = assert!(RECEIPTS_AT + size_of::<Receipts>() == BUCKETS_AT);
const _: () = assert!(size_of::<Line>() == 64 && LINES.is_power_of_two());

impl Header {
    /// Whether `bytes`, the first of a file or of memory, begin a table of this version; and what is fixed in it.
    pub(crate) fn inspect(bytes: &[u8]) -> Result<Fixed, TableError> {
        Header::check_words(|n| word_of(bytes, n))
    }

    /// [`Header::inspect`] of the memory that this header is in.
    pub(crate) fn fixed(&self) -> Result<Fixed, TableError> {
        // Acquire: the rest was written before the magic.
        let magic = self.magic.load(Ordering::Acquire);
        let words = self.fixed.each_ref().map(|word| word.load(Ordering::Relaxed));
        let (layout, check) = (self.layout.load(Ordering::Relaxed), self.check.load(Ordering::Relaxed));
        Header::check_words(|n| match n {
            0 => Some(magic),
            1 => Some(layout),
            n => Some(words.get(n - 2).copied().unwrap_or(check)),
        })
    }

    /// Writes everything before the magic.
    pub(crate) fn begin(&self, fixed: &Fixed) {
        for (to, word) in self.fixed.iter().zip(fixed.words()) {
            to.store(word, Ordering::Relaxed);
        }
        self.check.store(fixed.check(), Ordering::Relaxed);
        self.layout.store(LAYOUT, Ordering::Relaxed);
    }

    fn check_words(word: impl Fn(usize) -> Option<u64>) -> Result<Fixed, TableError> {
        const FIXED: usize = 2 + FIXED_WORDS;
        if word(0) != Some(MAGIC) {
            return Err(TableError::NotATable);
        }
        let word = |n| word(n).ok_or(TableError::Truncated);
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
        // The checksum says that the words are undamaged. That they are what this code would have written makes every later offset sound.
        if Sizes::new(capacity, side) != Ok(Sizes { buckets, bytes }) {
            return Err(TableError::Corrupt);
        }
        Ok(fixed)
    }
}

impl Fixed {
    fn words(&self) -> [u64; FIXED_WORDS] {
        let Fixed { bytes, capacity, buckets, side, on_full, clock, seed, missing, file } = *self;
        [bytes, capacity, buckets, side, on_full, clock, seed, missing, file]
    }

    /// The value of [`Header::check`] for these.
    fn check(&self) -> u64 {
        let [bytes, capacity, buckets, side, on_full, clock, seed, missing, file] = self.words();
        fold(&[MAGIC, LAYOUT, bytes, capacity, buckets, side, on_full, clock, seed, missing, file])
    }
}

/// Word number `n` of a table's first bytes.
pub(crate) fn word_of(bytes: &[u8], n: usize) -> Option<u64> {
    let at = n.checked_mul(8)?;
    let word = bytes.get(at..at.checked_add(8)?)?;
    <[u8; 8]>::try_from(word).ok().map(u64::from_ne_bytes)
}

/// A checksum against accidents: each word is mixed in by a multiplication that has an inverse, so that any single
/// changed word changes it.
pub(crate) const fn fold(words: &[u64]) -> u64 {
    let mut sum = 0x5851_f42d_4c95_7f2d;
    let mut rest = words;
    while let [word, others @ ..] = rest {
        sum = mix(sum ^ *word);
        rest = others;
    }
    sum
}

/// A bijection of 64-bit words whose every output bit depends on every input bit (the finalizer of SplitMix64).
pub(crate) const fn mix(n: u64) -> u64 {
    let n = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}
