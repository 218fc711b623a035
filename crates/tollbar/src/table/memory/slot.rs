//! A slot: a key word and a state word that change together.
//!
//! ```text
//!  bucket, one cache line
//! ┌──────────────────────┬──────────────────────┬──────────────────────┬──────────────────────┐
//! │ slot 0               │ slot 1               │ slot 2               │ slot 3               │
//! │ key 64  │ state 64   │ key     │ state      │ key     │ state      │ key     │ state      │
//! └─────────┴────────────┴──────────────────────┴──────────────────────┴──────────────────────┘
//!   key = 0                  vacant; the state is the time at which its last key's state expires, in nanoseconds
//!   key = version 8, tag 56  the state is a word of that version's algorithm
//! ```
//!
//! Callers write both words by one 16-byte compare-and-swap. Most callers *read* them by two loads, which is faster than one load of
//! 16 bytes: if another thread writes between the loads, the swap fails. A caller that decides without a swap reads both words at one
//! instant by [`Slot::pair`].

use crate::sync::{AtomicU64, Ordering};
#[cfg(not(loom))]
use core::num::NonZeroU64;

/// Slots in a bucket: as many as fit a cache line. One in loom's models, so that a key has two candidates.
pub const SLOTS: usize = if cfg!(loom) { 1 } else { 4 };

/// The number of slots in a bucket, for divisions.
#[cfg(not(loom))]
pub(crate) const SLOTS_A_BUCKET: NonZeroU64 = match NonZeroU64::new(SLOTS as u64) {
    Some(slots) => slots,
    None => NonZeroU64::MIN,
};

/// The content of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The key word, or 0 if the slot is vacant.
    pub key: u64,
    /// The key's state word. In a vacant slot: the time at which its last key's state expires.
    pub state: u64,
}

impl Pair {
    /// The content of a slot that no key has ever had.
    #[cfg(not(loom))]
    pub const EMPTY: Pair = Pair { key: 0, state: 0 };
}

/// A key word and a state word that change together.
#[repr(C, align(16))]
#[derive(Debug)]
#[cfg_attr(not(loom), derive(Default))]
pub struct Slot {
    #[cfg(not(loom))]
    key: AtomicU64,
    #[cfg(not(loom))]
    state: AtomicU64,
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

#[cfg(not(loom))]
impl Slot {
    /// Loads the key word. Acquire: the version that it names was published before, and callers load the state afterwards.
    #[inline(always)]
    pub fn key(&self) -> u64 {
        self.key.load(Ordering::Acquire)
    }

    /// Loads the state word. Acquire: the caller sees the ring's or log's words that were written before it.
    #[inline(always)]
    pub fn state(&self) -> u64 {
        self.state.load(Ordering::Acquire)
    }
}

#[cfg(all(target_arch = "x86_64", not(loom)))]
impl Slot {
    /// Both words at one instant.
    #[inline(always)]
    pub fn pair(&self) -> Pair {
        let (key, state): (u64, u64);
        // SAFETY: 16 readable bytes, aligned to 16, which only `swap` writes. Processors with AVX promise that such a load is one
        // access (Intel SDM volume 3, 9.1.1; AMD APM volume 2, 7.3.2), and `Memory::over` refuses a processor that is not `supported`.
        unsafe {
            core::arch::asm!(
                "movdqa {both}, xmmword ptr [{at}]",
                "movq {key}, {both}",
                "punpckhqdq {both}, {both}",
                "movq {state}, {both}",
                at = in(reg) core::ptr::from_ref(self),
                both = out(xmm_reg) _,
                key = lateout(reg) key,
                state = lateout(reg) state,
                options(nostack, preserves_flags, readonly),
            );
        }
        Pair { key, state }
    }

    /// Stores `new` if the slot holds `old`; otherwise returns what it holds.
    #[inline(always)]
    pub fn swap(&self, old: Pair, new: Pair) -> Result<(), Pair> {
        let (key, state): (u64, u64);
        let swapped: u8;
        // SAFETY: 16 writable bytes, aligned to 16, shared only through atomics; `Memory::over` refuses a processor without the
        // instruction. The compiler reserves RBX: the code saves it in R11 and restores both registers. Named registers keep the
        // compiler from putting the address into RBX; callers rarely have other values in these.
        unsafe {
            core::arch::asm!(
                "xchg r11, rbx",
                "lock cmpxchg16b xmmword ptr [r10]",
                "xchg r11, rbx",
                "sete {swapped}",
                in("r10") core::ptr::from_ref(self),
                in("r11") new.key,
                in("rcx") new.state,
                inout("rax") old.key => key,
                inout("rdx") old.state => state,
                swapped = lateout(reg_byte) swapped,
                options(nostack),
            );
        }
        // A failed swap leaves the slot's words in RAX and RDX.
        if swapped != 0 {
            Ok(())
        } else {
            Err(Pair { key, state })
        }
    }

    /// Whether this processor has CMPXCHG16B, and AVX, which makes aligned 16-byte loads atomic.
    pub fn supported() -> bool {
        // SAFETY: every x86-64 processor has CPUID, and leaf 1.
        #[allow(unused_unsafe)]
        let features = unsafe { core::arch::x86_64::__cpuid(1) }.ecx;
        features & (1 << 13) != 0 && features & (1 << 28) != 0
    }
}

#[cfg(all(not(target_arch = "x86_64"), not(loom)))]
impl Slot {
    fn both(&self) -> &portable_atomic::AtomicU128 {
        // SAFETY: 16 bytes, aligned to 16, of interior-mutable memory that lives as long as `self`.
        unsafe { &*core::ptr::from_ref(self).cast() }
    }

    /// Both words at one instant.
    #[inline]
    pub fn pair(&self) -> Pair {
        Pair::from_u128(self.both().load(Ordering::Acquire))
    }

    /// Stores `new` if the slot holds `old`; otherwise returns what it holds.
    #[inline]
    pub fn swap(&self, old: Pair, new: Pair) -> Result<(), Pair> {
        // SeqCst, like the locked instruction of x86-64, which the proof assumes.
        let swapped = self.both().compare_exchange(old.to_u128(), new.to_u128(), Ordering::SeqCst, Ordering::SeqCst);
        swapped.map(|_| ()).map_err(Pair::from_u128)
    }

    /// Whether this processor swaps 16 bytes without a lock.
    pub fn supported() -> bool {
        portable_atomic::AtomicU128::is_lock_free()
    }
}

#[cfg(all(not(target_arch = "x86_64"), not(loom)))]
impl Pair {
    fn to_u128(self) -> u128 {
        // The key is first in memory, in either byte order.
        let mut bytes = [0; 16];
        let (key, state) = bytes.split_at_mut(8);
        key.copy_from_slice(&self.key.to_ne_bytes());
        state.copy_from_slice(&self.state.to_ne_bytes());
        u128::from_ne_bytes(bytes)
    }

    fn from_u128(both: u128) -> Pair {
        let (high, low) = ((both >> 64) as u64, both as u64);
        match cfg!(target_endian = "little") {
            true => Pair { key: low, state: high },
            false => Pair { key: high, state: low },
        }
    }
}

/// The slot of loom's models. loom has no 16-byte atomics, so a small key and a small state share one of 8 bytes.
#[cfg(loom)]
impl Slot {
    /// Slot `number` of a model. It writes its changes to `journal`.
    pub fn new(number: usize, pair: Pair, journal: &alloc::sync::Arc<Journal>) -> Slot {
        Slot { both: AtomicU64::new(pair.packed()), number, journal: journal.clone() }
    }

    /// The key word.
    pub fn key(&self) -> u64 {
        self.pair().key
    }

    /// The state word.
    pub fn state(&self) -> u64 {
        self.pair().state
    }

    /// Both words at one instant.
    pub fn pair(&self) -> Pair {
        Pair::unpacked(match self.journal.weak {
            // A load may return a value that has been replaced.
            true => self.both.load(Ordering::Acquire),
            false => self.both.fetch_add(0, Ordering::AcqRel),
        })
    }

    /// Stores `new` if the slot holds `old`; otherwise returns what it holds.
    pub fn swap(&self, old: Pair, new: Pair) -> Result<(), Pair> {
        self.both
            .compare_exchange(old.packed(), new.packed(), Ordering::SeqCst, Ordering::SeqCst)
            .map_err(Pair::unpacked)?;
        self.journal.write(Change { slot: self.number, thread: loom::thread::current().id(), old, new });
        Ok(())
    }
}

/// The packed word: version 8 bits, tag 8, state 48.
#[cfg(loom)]
impl Pair {
    fn packed(self) -> u64 {
        let (version, tag) = (self.key >> 56, self.key << 8 >> 8);
        assert!(tag >> 8 == 0 && self.state >> 48 == 0, "too large for a model: {self:?}");
        version << 56 | tag << 48 | self.state
    }

    fn unpacked(both: u64) -> Pair {
        Pair { key: both >> 56 << 56 | (both >> 48 & 0xff), state: both & ((1 << 48) - 1) }
    }
}

/// The changes of a model's slots, in their order. The mutex is std's and not loom's, so that loom does not count a write to the journal as
/// a step.
#[cfg(loom)]
#[derive(Debug, Default)]
pub struct Journal {
    changes: std::sync::Mutex<alloc::vec::Vec<Change>>,
    /// True: a read is a load, as on a weakly ordered processor. False: a read is a read-modify-write, which has one order with all swaps.
    /// loom tries every order of read-modify-writes, but not every order of loads.
    weak: bool,
}

#[cfg(loom)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    pub(crate) slot: usize,
    pub(crate) thread: loom::thread::ThreadId,
    pub(crate) old: Pair,
    pub(crate) new: Pair,
}

#[cfg(loom)]
impl Journal {
    /// An empty journal; `weak`: its slots are read by loads.
    pub fn new(weak: bool) -> Journal {
        Journal { weak, ..Journal::default() }
    }

    fn write(&self, change: Change) {
        if let Ok(mut changes) = self.changes.lock() {
            changes.push(change);
        }
    }

    pub(crate) fn changes(&self) -> alloc::vec::Vec<Change> {
        self.changes.lock().map_or_else(|_| alloc::vec::Vec::new(), |changes| changes.clone())
    }

    pub(crate) fn len(&self) -> usize {
        self.changes.lock().map_or(0, |changes| changes.len())
    }
}
