//! The layout of a table's memory.
//!
//! ```text
//!      0  header     the table's fixed parameters, its times, the stamps of the current policies
//!   4 Ki  versions   256 records of 256 bytes: the versions of policies that slots may name
//!  68 Ki  counters   64 shards of 128 bytes: counters of rare events
//!  76 Ki  exempt     2,048 hashes of keys that are never charged
//!  92 Ki  decisions  4 sets of 128 policies' counters, for threads that own no line
//! 108 Ki  lines      512 lines of 64 bytes: counters, each line of one thread
//! 140 Ki  receipts   which of the last 8,184 receipts are not settled yet
//! 204 Ki  refusals   a sketch of the keys that are refused most
//! 219 Ki  buckets    64 bytes each
//!         side       words of rings and logs, a fixed number for each slot; mostly none. In a
//!                    table with room they are cells of 16 bytes ([`crate::limiter::unfolding`])
//!         overrides  32 bytes for each key that may have a policy of its own
//! ```
//!
//! The memory holds offsets and no addresses, so each process may map it anywhere. All numbers are
//! in the machine's byte order, which is part of [`LAYOUT`].
//!
//! No model notices a weaker ordering in this file, because loom's tables have no magic number.

use super::counters::lines::OwnerLine;
use super::error::TableError;
use super::mix::fold;
use super::receipts::Receipts;
use super::refusals::Refusals;
use super::region::Noted;
use super::returns::TURNS;
use super::sizes::{side_words_of, Sizes, BUCKETS_AT};
use super::slot::Bucket;
use super::special::SpecialCounts;
use crate::sync::{AtomicU64, Ordering};
use core::mem::{offset_of, size_of};

/// The most policies that a table can have.
pub const POLICIES_MOST: usize = 128;

/// The first eight bytes of every table of every version: "tollbar" and a line feed.
pub(crate) const MAGIC: u64 = u64::from_ne_bytes(*b"tollbar\n");
/// Every change of the layout, of the hash or of the meaning of a state word needs a higher number.
pub(crate) const VERSION: u64 = 14;

pub(crate) const VERSIONS: usize = 256;
pub(crate) const SHARDS: usize = 64;
pub(crate) const COUNTERS: usize = 16;
pub(crate) const EXEMPT: usize = 2048;
pub(crate) const RECORD_WORDS: usize = 30;
/// Words of [`Fixed`].
pub(crate) const FIXED_WORDS: usize = 10;
/// The number of lines. Each pair of a thread and a policy that counts decisions owns one.
pub(crate) const LINES: usize = 512;
/// Each policy has this many counters of each verdict for the threads that own no line.
pub(crate) const PARTS: usize = 4;

pub(crate) const VERSIONS_AT: usize = 4 << 10;
pub(crate) const COUNTERS_AT: usize = 68 << 10;
pub(crate) const EXEMPT_AT: usize = 76 << 10;
pub(crate) const DECISIONS_AT: usize = 92 << 10;
pub(crate) const LINES_AT: usize = 108 << 10;
pub(crate) const RECEIPTS_AT: usize = 140 << 10;
pub(crate) const REFUSALS_AT: usize = 204 << 10;

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
    size_of::<Refusals>() as u64,
    size_of::<OwnerLine>() as u64,
    BUCKETS_AT as u64,
    // The machine's byte order.
    u64::from_ne_bytes([1, 2, 3, 4, 5, 6, 7, 8]),
]);

/// The table's fixed parameters, and the few words that change while it is in use.
#[repr(C)]
pub(crate) struct Header {
    /// [`MAGIC`]. The creator of a table writes it last.
    pub(crate) magic: AtomicU64,
    pub(crate) layout: AtomicU64,
    /// A [`Fixed`]. The words never change, but they are atomic: another process can write this
    /// memory, and a plain word that changes under a reference is undefined behaviour.
    pub(crate) fixed: [AtomicU64; FIXED_WORDS],
    /// [`fold`] of the magic, the layout and the fixed words.
    pub(crate) check: AtomicU64,

    /// The id of the boot that `offset` is for, beside `inode`. 0 in a table that is in no file,
    /// and if it is unknown.
    boot: [AtomicU64; 2],
    /// Nanoseconds that every process adds to its clock, modulo 2^64. After a boot it is set so
    /// that the table's time continues.
    pub(crate) offset: AtomicU64,
    /// The table's time when `wall_time` was read. After the next boot the table's time continues
    /// from it.
    pub(crate) table_time: AtomicU64,
    /// The wall clock's time, in nanoseconds.
    pub(crate) wall_time: AtomicU64,
    /// The number of stamps that have been made: the generation of the newest one.
    pub(crate) generation: AtomicU64,
    /// Counts of exempt keys and of overrides ([`super::special`]). While both are 0, requests skip
    /// their lookups.
    pub(crate) special: SpecialCounts,
    /// One bit for each policy. A call that books permits for a later time than its own sets it,
    /// and no call clears it.
    pub(crate) booked: [AtomicU64; POLICIES_MOST / 64],
    /// One bit for each policy. A thread that takes credit of a key in advance sets it, and no call
    /// clears it.
    pub(crate) lent: [AtomicU64; POLICIES_MOST / 64],
    /// The inode of a file in tmpfs ([`Boot`](super::region::Boot)).
    inode: AtomicU64,
    /// 1 if `offset` is for the clock of the machine's first time namespace. 0: the maker could not
    /// read its own namespace.
    pub(crate) on_machine_clock: AtomicU64,
    /// The stamp of each policy's current version, or 0 if there is no such policy.
    pub(crate) current: [AtomicU64; POLICIES_MOST],
    /// Which versions are those of overrides, and how many keys have them
    /// ([`References`](crate::table::policies::references::References)).
    pub(crate) references: [AtomicU64; VERSIONS],
    /// The turns of returns ([`ReturnTurn`](super::returns::ReturnTurn)).
    pub(crate) returns: [AtomicU64; TURNS],
}

/// A table's fixed parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fixed {
    /// The length of the table in bytes.
    pub(crate) bytes: u64,
    pub(crate) capacity: u64,
    pub(crate) buckets: u64,
    /// Side words of each slot.
    pub(crate) side: u64,
    /// An [`OnFull`](crate::table::OnFull).
    pub(crate) on_full: u64,
    /// A [`Source`](crate::clock::Source).
    pub(crate) clock: u64,
    pub(crate) seed: u64,
    /// A [`Missing`](crate::table::Missing).
    pub(crate) missing: u64,
    /// 1 if the table is in a file, and may so outlive a boot; otherwise 0.
    pub(crate) file: u64,
    /// The keys that may have a policy of their own.
    pub(crate) overrides: u64,
    /// The most segments or permits of a window or log to which a policy may change. 0: the table
    /// has no room, and its side words are those of its only policy. Below 2^32: it is in the upper
    /// half of the word of `missing`.
    pub(crate) room: u64,
}

/// A version of a policy. The writer stores the stamp last, which publishes the record. The words
/// of a published record do not change.
#[repr(C)]
pub(crate) struct Record {
    /// 0: free. 1: a writer has claimed it. Otherwise: generation, policy, version.
    pub(crate) stamp: AtomicU64,
    /// [`fold`] of the words.
    pub(crate) check: AtomicU64,
    pub(crate) words: [AtomicU64; RECORD_WORDS],
}

/// Counters of rare events. Several threads share a shard.
#[repr(C)]
pub(crate) struct Shard {
    pub(crate) counts: [AtomicU64; COUNTERS],
}

/// The decisions of threads that own no line, by policy and verdict. The last word of each policy
/// is spare.
pub(crate) type Decisions = [[AtomicU64; 4]; POLICIES_MOST];

const _: () = assert!(size_of::<Header>() <= VERSIONS_AT);
const _: () = assert!(VERSIONS_AT + VERSIONS * size_of::<Record>() == COUNTERS_AT);
const _: () = assert!(COUNTERS_AT + SHARDS * size_of::<Shard>() == EXEMPT_AT);
const _: () = assert!(EXEMPT_AT + EXEMPT * 8 == DECISIONS_AT);
const _: () = assert!(DECISIONS_AT + PARTS * size_of::<Decisions>() == LINES_AT);
const _: () = assert!(LINES_AT + LINES * size_of::<OwnerLine>() == RECEIPTS_AT);
const _: () = assert!(RECEIPTS_AT + size_of::<Receipts>() == REFUSALS_AT);
const _: () = assert!(REFUSALS_AT + size_of::<Refusals>() <= BUCKETS_AT && BUCKETS_AT % 64 == 0);
const _: () = assert!(size_of::<OwnerLine>() == 64 && LINES.is_power_of_two());

impl Header {
    /// Checks that `bytes`, the first of a file or of memory, begin a table of this version, and
    /// returns its fixed parameters.
    pub(crate) fn inspect(bytes: &[u8]) -> Result<Fixed, TableError> {
        Header::check_words(|n| word_of(bytes, n))
    }

    /// [`Header::inspect`] for the memory of this header.
    pub(crate) fn fixed(&self) -> Result<Fixed, TableError> {
        // Acquire: the creator writes the other words before the magic.
        let magic = self.magic.load(Ordering::Acquire);
        let words = self.fixed.each_ref().map(|word| word.load(Ordering::Relaxed));
        let (layout, check) =
            (self.layout.load(Ordering::Relaxed), self.check.load(Ordering::Relaxed));
        Header::check_words(|n| match n {
            0 => Some(magic),
            1 => Some(layout),
            n => Some(words.get(n - 2).copied().unwrap_or(check)),
        })
    }

    pub(crate) fn boot(&self) -> Noted<'_> {
        Noted { id: &self.boot, inode: &self.inode }
    }

    /// Writes the layout, the fixed words and their checksum, but not the magic.
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
        let [_, _, bytes, capacity, buckets, side, on_full, clock, seed, with_room, file, overrides] =
            words;
        let (missing, room) = (with_room & LOW, with_room >> 32);
        let fixed = Fixed {
            bytes,
            capacity,
            buckets,
            side,
            on_full,
            clock,
            seed,
            missing,
            file,
            overrides,
            room,
        };
        // A wrong program can write a valid checksum. Later offsets are sound because the sizes
        // must be those that this code computes.
        let beside = if room == 0 { side } else { side_words_of(room) };
        if Sizes::new(capacity, beside, overrides) != Ok(Sizes { buckets, bytes }) || beside != side
        {
            return Err(TableError::Corrupt);
        }
        Ok(fixed)
    }
}

impl Fixed {
    /// Whether the table's only policy is a ring or a log without room for others, so that all
    /// slots count in the same way.
    #[inline(always)]
    pub(crate) fn is_multi_word(&self) -> bool {
        self.side != 0 && self.room == 0
    }

    /// Whether the slots have room for any window or log.
    #[inline(always)]
    pub(crate) fn has_room(&self) -> bool {
        self.room != 0
    }

    fn words(&self) -> [u64; FIXED_WORDS] {
        let Fixed {
            bytes,
            capacity,
            buckets,
            side,
            on_full,
            clock,
            seed,
            missing,
            file,
            overrides,
            room,
        } = *self;
        // `missing` is a small number, and the room is below 2^32.
        let with_room = missing | room << 32;
        [bytes, capacity, buckets, side, on_full, clock, seed, with_room, file, overrides]
    }

    /// The value of [`Header::check`] for these parameters.
    fn check(&self) -> u64 {
        let [bytes, capacity, buckets, side, on_full, clock, seed, with_room, file, overrides] =
            self.words();
        fold(&[
            MAGIC, LAYOUT, bytes, capacity, buckets, side, on_full, clock, seed, with_room, file,
            overrides,
        ])
    }
}

/// The lower half of a word.
const LOW: u64 = (1 << 32) - 1;

/// Word number `n` of a table's first bytes.
pub(crate) fn word_of(bytes: &[u8], n: usize) -> Option<u64> {
    let at = n.checked_mul(8)?;
    let word = bytes.get(at..at.checked_add(8)?)?;
    <[u8; 8]>::try_from(word).ok().map(u64::from_ne_bytes)
}
