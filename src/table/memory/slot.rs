//! A slot: a key word and a state word that change together.
//!
//! ```text
//!  bucket, one cache line
//! ┌──────────────────────┬──────────────────────┬──────────────────────┬──────────────────────┐
//! │ slot 0               │ slot 1               │ slot 2               │ slot 3               │
//! │ key 64  │ state 64   │ key     │ state      │ key     │ state      │ key     │ state      │
//! └─────────┴────────────┴──────────────────────┴──────────────────────┴──────────────────────┘
//!   key = 0                  vacant; the state is the time at which its last key's state expires, in nanoseconds
//!   key = 0 8, tag 56        vacant, too: a call is moving the key with this tag to another slot
//!   key = version 8, tag 56  the state is a word of that version's algorithm
//! ```
//!
//! Callers write both words by one 16-byte compare-and-swap. Most callers *read* them by two loads,
//! which is faster than one load of 16 bytes: if another thread writes between the loads, the swap
//! fails. A caller that decides without a swap reads both words at one instant by [`Slot::pair`].
//!
//! A probe for a key compares all slots of its buckets at once by vector instructions, without a
//! branch, because the processor cannot predict which bucket holds a key. On other machines than
//! x86-64, under loom, and in the tests that compare both, `scalar` compares slot by slot.
//!
//! No model notices a weaker ordering in this file, because loom has slots of its own (`model`). It
//! reads and swaps them with these orderings.

#[cfg(loom)]
mod model;

#[cfg(loom)]
use crate::sync::AtomicU64;
#[cfg(not(loom))]
use crate::sync::{Ordering, TwoWords};
#[cfg(not(loom))]
use core::num::NonZeroU64;
#[cfg(all(loom, test))]
pub(crate) use model::Change;
#[cfg(loom)]
pub use model::Journal;
#[cfg(not(all(target_arch = "x86_64", not(loom))))]
pub(crate) use scalar::{choose, matches, matches_in_two};
#[cfg(all(target_arch = "x86_64", not(loom)))]
pub(crate) use vectors::{choose, matches, matches_in_two};

/// Slots in a bucket: as many as fit a cache line. One in loom's models, so that a key has two
/// candidates.
pub const SLOTS: usize = if cfg!(loom) { 1 } else { 4 };

/// The number of slots in a bucket, for divisions.
#[cfg(not(loom))]
pub(crate) const SLOTS_A_BUCKET: NonZeroU64 = match NonZeroU64::new(SLOTS as u64) {
    Some(slots) => slots,
    None => NonZeroU64::MIN,
};

/// Bits of a key word that hold the tag. The bits above hold the number of the policy's version.
pub(crate) const TAG_BITS: u32 = 56;
pub(crate) const TAG: u64 = (1 << TAG_BITS) - 1;

/// The content of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotPair {
    /// The key word. In a vacant slot 0, or the tag of the key that a call is moving to another
    /// slot.
    pub key: u64,
    /// The key's state word. In a vacant slot: the time at which its last key's state expires.
    pub state: u64,
}

impl SlotPair {
    /// The content of a slot that no key has ever had.
    pub const EMPTY: SlotPair = SlotPair { key: 0, state: 0 };

    /// Whether no key is in the slot. No version has number 0.
    #[inline(always)]
    pub(crate) const fn is_vacant(self) -> bool {
        self.key >> TAG_BITS == 0
    }
}

/// A key word and a state word that change together.
#[repr(C, align(16))]
#[derive(Debug)]
#[cfg_attr(not(loom), derive(Default))]
pub struct Slot {
    /// The key word and the state word.
    #[cfg(not(loom))]
    words: TwoWords,
    #[cfg(loom)]
    both: AtomicU64,
    #[cfg(loom)]
    number: usize,
    #[cfg(loom)]
    journal: alloc::sync::Arc<Journal>,
}

/// A cache line of slots.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Bucket(pub(crate) [Slot; SLOTS]);

impl Slot {
    /// Commits one step of a key whose `key` and then `state` the caller read here. An admission
    /// (`next`) swaps the new state in. A refusal writes nothing: it checks that the slot held both
    /// words at one instant. False: nothing has been charged, because another call has changed the
    /// slot.
    #[inline(always)]
    pub(crate) fn commit(&self, key: u64, state: u64, next: Option<u64>) -> bool {
        let pair = SlotPair { key, state };
        match next {
            Some(next) => self.swap(pair, SlotPair { key, state: next }).is_ok(),
            None => self.pair() == pair,
        }
    }
}

#[cfg(not(loom))]
impl Slot {
    /// Loads the key word. Acquire: the version that it names was published before, and callers
    /// load the state afterwards.
    #[inline(always)]
    pub fn key(&self) -> u64 {
        self.words.first().load(Ordering::Acquire)
    }

    /// Loads the state word. Acquire: the caller sees the ring's or log's words that were written
    /// before it.
    #[inline(always)]
    pub fn state(&self) -> u64 {
        self.words.load_second(Ordering::Acquire)
    }
}

#[cfg(not(loom))]
impl Slot {
    /// Both words at one instant. `Memory::over` refuses a processor that is not
    /// [`Slot::supported`].
    #[inline(always)]
    pub fn pair(&self) -> SlotPair {
        let (key, state) = self.words.both();
        SlotPair { key, state }
    }

    /// Stores `new` if the slot holds `old`; otherwise returns what it holds.
    #[inline(always)]
    pub fn swap(&self, old: SlotPair, new: SlotPair) -> Result<(), SlotPair> {
        self.words
            .swap((old.key, old.state), (new.key, new.state))
            .map_err(|(key, state)| SlotPair { key, state })
    }

    /// Whether this processor swaps 16 bytes without a lock, and loads them at one instant.
    pub fn supported() -> bool {
        TwoWords::swaps() && TwoWords::loads()
    }
}

/// The slot of two buckets that holds the key word `key`.
#[inline(always)]
#[cfg_attr(loom, allow(clippy::modulo_one))] // a model's bucket has one slot
pub(crate) fn find_in_two<'a>(first: &'a Bucket, second: &'a Bucket, key: u64) -> Option<&'a Slot> {
    let bits = matches_in_two(first, second, key);
    if bits == 0 {
        return None;
    }
    let place = bits.trailing_zeros() as usize / 2;
    Some(slot_at(choose(bits, first, second), place % SLOTS))
}

/// The slot of one bucket that holds the key word `key`.
#[inline(always)]
#[cfg_attr(loom, allow(clippy::modulo_one))] // as above
pub(crate) fn find_in(bucket: &Bucket, key: u64) -> Option<&Slot> {
    let bits = matches(bucket, key);
    if bits == 0 {
        return None;
    }
    Some(slot_at(bucket, bits.trailing_zeros() as usize / 4 % SLOTS))
}

#[inline(always)]
fn slot_at(bucket: &Bucket, place: usize) -> &Slot {
    debug_assert!(place < SLOTS);
    // SAFETY: both callers take `place` modulo SLOTS. A bounds check would be one of some forty
    // instructions.
    unsafe { bucket.0.get_unchecked(place) }
}

/// The probes of a key that compare slot by slot.
#[cfg(any(test, loom, not(target_arch = "x86_64")))]
pub(crate) mod scalar {
    use super::{Bucket, SLOTS};

    /// The slots of two buckets that hold the key word `key`: two bits for each slot, the first
    /// bucket's slots in the lowest bits.
    #[inline(always)]
    pub(crate) fn matches_in_two(first: &Bucket, second: &Bucket, key: u64) -> u32 {
        let slots = first.0.iter().chain(&second.0).enumerate();
        slots.fold(0, |bits, (n, slot)| bits | (3 * u32::from(slot.key() == key)) << (2 * n))
    }

    /// The slots of one bucket that hold the key word `key`: four bits for each slot.
    #[inline(always)]
    pub(crate) fn matches(bucket: &Bucket, key: u64) -> u32 {
        let slots = bucket.0.iter().enumerate();
        slots.fold(0, |bits, (n, slot)| bits | (15 * u32::from(slot.key() == key)) << (4 * n))
    }

    /// The first bucket if `bits`, from [`matches_in_two`], has a match in it, otherwise the
    /// second.
    #[inline(always)]
    pub(crate) fn choose<'a>(bits: u32, first: &'a Bucket, second: &'a Bucket) -> &'a Bucket {
        if bits & ((1 << (2 * SLOTS)) - 1) == 0 {
            second
        } else {
            first
        }
    }
}

/// The probes of a key by AVX instructions. A table is opened only on a processor that has them
/// ([`Slot::supported`]).
#[cfg(all(target_arch = "x86_64", not(loom)))]
mod vectors {
    use super::Bucket;

    /// The slots of two buckets that hold the key word `key`: two bits for each slot, the first
    /// bucket's slots in the lowest bits.
    #[inline(always)]
    pub(crate) fn matches_in_two(first: &Bucket, second: &Bucket, key: u64) -> u32 {
        let agree: u32;
        // SAFETY: two buckets of 64 readable bytes, aligned to 64, shared only through atomics.
        // Each load reads one slot by one access, as in `Slot::pair`.
        unsafe {
            core::arch::asm!(
                "vmovq {key}, {word}",
                "vpunpcklqdq {key}, {key}, {key}",
                "vmovdqa {a}, xmmword ptr [{first}]",
                "vmovdqa {b}, xmmword ptr [{first} + 32]",
                "vmovdqa {c}, xmmword ptr [{second}]",
                "vmovdqa {d}, xmmword ptr [{second} + 32]",
                "vpunpcklqdq {a}, {a}, xmmword ptr [{first} + 16]",
                "vpunpcklqdq {b}, {b}, xmmword ptr [{first} + 48]",
                "vpunpcklqdq {c}, {c}, xmmword ptr [{second} + 16]",
                "vpunpcklqdq {d}, {d}, xmmword ptr [{second} + 48]",
                "vpcmpeqq {a}, {a}, {key}",
                "vpcmpeqq {b}, {b}, {key}",
                "vpcmpeqq {c}, {c}, {key}",
                "vpcmpeqq {d}, {d}, {key}",
                // A compared word is all ones or all zeroes. Narrowed twice, it is two bytes.
                "vpackssdw {a}, {a}, {b}",
                "vpackssdw {c}, {c}, {d}",
                "vpacksswb {a}, {a}, {c}",
                "vpmovmskb {agree:e}, {a}",
                first = in(reg) core::ptr::from_ref(first),
                second = in(reg) core::ptr::from_ref(second),
                word = in(reg) key,
                agree = lateout(reg) agree,
                key = out(xmm_reg) _,
                a = out(xmm_reg) _,
                b = out(xmm_reg) _,
                c = out(xmm_reg) _,
                d = out(xmm_reg) _,
                options(nostack, preserves_flags, readonly),
            );
        }
        agree
    }

    /// The slots of one bucket that hold the key word `key`: four bits for each slot.
    #[inline(always)]
    pub(crate) fn matches(bucket: &Bucket, key: u64) -> u32 {
        let agree: u32;
        // SAFETY: as in `matches_in_two`, for one bucket.
        unsafe {
            core::arch::asm!(
                "vmovq {key}, {word}",
                "vpunpcklqdq {key}, {key}, {key}",
                "vmovdqa {a}, xmmword ptr [{bucket}]",
                "vmovdqa {b}, xmmword ptr [{bucket} + 32]",
                "vpunpcklqdq {a}, {a}, xmmword ptr [{bucket} + 16]",
                "vpunpcklqdq {b}, {b}, xmmword ptr [{bucket} + 48]",
                "vpcmpeqq {a}, {a}, {key}",
                "vpcmpeqq {b}, {b}, {key}",
                "vpackssdw {a}, {a}, {b}",
                "vpmovmskb {agree:e}, {a}",
                bucket = in(reg) core::ptr::from_ref(bucket),
                word = in(reg) key,
                agree = lateout(reg) agree,
                key = out(xmm_reg) _,
                a = out(xmm_reg) _,
                b = out(xmm_reg) _,
                options(nostack, preserves_flags, readonly),
            );
        }
        agree
    }

    /// The first bucket if `agree`, from [`matches_in_two`], has a match in it, otherwise the
    /// second. It is a conditional move in assembler, because compilers make a branch of it, and a
    /// mispredicted branch costs more than the rest of the request.
    #[inline(always)]
    pub(crate) fn choose<'a>(agree: u32, first: &'a Bucket, second: &'a Bucket) -> &'a Bucket {
        let mut chosen = core::ptr::from_ref(first);
        // SAFETY: it changes only a register and the flags.
        unsafe {
            core::arch::asm!(
                "test {agree:l}, {agree:l}",
                "cmovz {chosen}, {second}",
                agree = in(reg) agree,
                chosen = inout(reg) chosen,
                second = in(reg) core::ptr::from_ref(second),
                options(pure, readonly, nostack),
            );
        }
        // SAFETY: `chosen` is one of the two references. The compiler does not see that it is not
        // null.
        unsafe {
            core::hint::assert_unchecked(!chosen.is_null());
            &*chosen
        }
    }
}
