//! A slot: two words that change together.
//!
//! ```text
//!  bucket, one cache line
//! ┌──────────────────────┬──────────────────────┬──────────────────────┬──────────────────────┐
//! │ slot 0               │ slot 1               │ slot 2               │ slot 3               │
//! │ key 64  │ state 64   │ key     │ state      │ key     │ state      │ key     │ state      │
//! └─────────┴────────────┴──────────────────────┴──────────────────────┴──────────────────────┘
//!   key = 0                  vacant; the state is a time in nanoseconds
//!   key = version 8, tag 56  the state is a word of that version's algorithm
//! ```
//!
//! Both words are only ever written by one 16-byte compare-and-swap. They are mostly *read* one after the
//! other: a swap that was computed from a torn pair fails, and it is faster than reading 16 bytes at once.
//! Where a decision is made without a swap, [`Slot::pair`] reads both at one instant.

use crate::sync::{AtomicU64, Ordering};
#[cfg(not(loom))]
use core::num::NonZeroU64;

/// Slots in a bucket: as many as fit a cache line. A model's key has two candidates, one in each bucket.
pub const SLOTS: usize = if cfg!(loom) { 1 } else { 4 };

/// The number of slots in a bucket, for divisions.
#[cfg(not(loom))]
pub(crate) const SLOTS_A_BUCKET: NonZeroU64 = match NonZeroU64::new(SLOTS as u64) {
    Some(slots) => slots,
    None => NonZeroU64::MIN,
};

/// What a slot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The key word; 0: no key.
    pub key: u64,
    /// The word that belongs to it.
    pub state: u64,
}

impl Pair {
    /// A slot that no key has ever had.
    #[cfg(not(loom))]
    pub const EMPTY: Pair = Pair { key: 0, state: 0 };
}

/// Two words that change together.
#[repr(C, align(16))]
#[derive(Debug)]
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
    /// The key alone. Acquire: the version that it names was published before it, and the state is read after it.
    #[inline(always)]
    pub fn key(&self) -> u64 {
        self.key.load(Ordering::Acquire)
    }

    /// The state alone. Acquire: what a ring's or a log's words were when it was written.
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
        // SAFETY: 16 readable bytes, aligned to 16, that nobody writes but through `swap`. Processors with AVX
        // promise that such a load is one access (Intel SDM volume 3, 9.1.1; AMD APM volume 2, 7.3.2), and
        // `supported` asks for AVX.
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

    /// Puts `new` if `old` is there; else what is.
    #[inline(always)]
    pub fn swap(&self, old: Pair, new: Pair) -> Result<(), Pair> {
        let (key, state): (u64, u64);
        let swapped: u8;
        // SAFETY: 16 writable bytes, aligned to 16, shared only through atomics; `supported` has seen that the
        // instruction exists. RBX belongs to the compiler: it is kept in R11 meanwhile, and both are as they were after it. The
        // named registers keep the address out of RBX, and are those in which nothing else is likely to be.
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
        // If not, the registers hold what is there.
        if swapped != 0 {
            Ok(())
        } else {
            Err(Pair { key, state })
        }
    }

    /// Whether this processor has what is here needed: CMPXCHG16B, and AVX for its promise about loads.
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

    /// Puts `new` if `old` is there; else what is.
    #[inline]
    pub fn swap(&self, old: Pair, new: Pair) -> Result<(), Pair> {
        // SeqCst, as the locked instruction of x86-64 is: the proof was written for it.
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
        // In memory order, whatever the byte order.
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

/// The model's slot: loom has no atomics of 16 bytes, so small keys and states share one of eight.
#[cfg(loom)]
impl Slot {
    /// Slot `number` of a model, which writes its changes to `journal`.
    pub fn new(number: usize, pair: Pair, journal: &alloc::sync::Arc<Journal>) -> Slot {
        Slot { both: AtomicU64::new(pair.packed()), number, journal: journal.clone() }
    }

    /// The key.
    pub fn key(&self) -> u64 {
        self.pair().key
    }

    /// The state.
    pub fn state(&self) -> u64 {
        self.pair().state
    }

    /// Both, at one instant.
    pub fn pair(&self) -> Pair {
        Pair::unpacked(match self.journal.weak {
            // It may find what is no more there.
            true => self.both.load(Ordering::Acquire),
            false => self.both.fetch_add(0, Ordering::AcqRel),
        })
    }

    /// Swaps both words if they are `old`; else what they are.
    pub fn swap(&self, old: Pair, new: Pair) -> Result<(), Pair> {
        self.both
            .compare_exchange(old.packed(), new.packed(), Ordering::SeqCst, Ordering::SeqCst)
            .map_err(Pair::unpacked)?;
        self.journal.write(Change { slot: self.number, thread: loom::thread::current().id(), old, new });
        Ok(())
    }
}

/// Version 8, tag 8, state 48.
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

/// What has happened to the slots of a model, in its order. Not one of loom's objects: to write it down is no
/// step of its own.
#[cfg(loom)]
#[derive(Debug, Default)]
pub struct Journal {
    changes: std::sync::Mutex<alloc::vec::Vec<Change>>,
    /// Looks are loads, as on a processor whose order is weak; if not, they are in one order with all swaps, and loom
    /// tries all their orders, where it leaves out some of loads.
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
