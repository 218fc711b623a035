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

/// Slots in a bucket: as many as fit a cache line. A model's key has two candidates, one in each bucket.
pub(super) const SLOTS: usize = if cfg!(loom) { 1 } else { 4 };

/// What a slot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) key: u64,
    pub(super) state: u64,
}

/// Two words that change together.
#[repr(C, align(16))]
#[derive(Debug)]
pub(super) struct Slot {
    key: AtomicU64,
    state: AtomicU64,
    #[cfg(loom)]
    both: loom::sync::Mutex<()>,
    #[cfg(loom)]
    number: usize,
    #[cfg(loom)]
    journal: alloc::sync::Arc<Journal>,
}

/// A cache line of slots.
#[repr(C, align(64))]
#[derive(Debug)]
pub(super) struct Bucket(pub(super) [Slot; SLOTS]);

impl Slot {
    /// The key alone. Acquire: the version that it names was published before it, and the state is read after it.
    #[inline(always)]
    pub(super) fn key(&self) -> u64 {
        self.key.load(Ordering::Acquire)
    }

    /// The state alone. Acquire: what a ring's or a log's words were when it was written.
    #[inline(always)]
    pub(super) fn state(&self) -> u64 {
        self.state.load(Ordering::Acquire)
    }
}

#[cfg(all(target_arch = "x86_64", not(loom)))]
impl Slot {
    /// Both words at one instant.
    #[inline(always)]
    pub(super) fn pair(&self) -> Pair {
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
    pub(super) fn swap(&self, old: Pair, new: Pair) -> Result<(), Pair> {
        let (key, state): (u64, u64);
        let swapped: u64;
        // SAFETY: 16 writable bytes, aligned to 16, shared only through atomics; `supported` has seen that the
        // instruction exists. RBX belongs to the compiler: it is kept in RSI meanwhile. The named registers
        // keep the address out of RBX.
        unsafe {
            core::arch::asm!(
                "xchg rsi, rbx",
                "lock cmpxchg16b xmmword ptr [rdi]",
                "mov rbx, rsi",
                "sete sil",
                in("rdi") core::ptr::from_ref(self),
                inout("rsi") new.key => swapped,
                in("rcx") new.state,
                inout("rax") old.key => key,
                inout("rdx") old.state => state,
                options(nostack),
            );
        }
        // The low byte says whether; the rest is what RBX was. If not, the registers hold what is there.
        if swapped as u8 != 0 {
            Ok(())
        } else {
            Err(Pair { key, state })
        }
    }

    /// Whether this processor has what the two above need: CMPXCHG16B, and AVX for its promise about loads.
    pub(super) fn supported() -> bool {
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
    pub(super) fn pair(&self) -> Pair {
        Pair::from_u128(self.both().load(Ordering::Acquire))
    }

    /// Puts `new` if `old` is there; else what is.
    #[inline]
    pub(super) fn swap(&self, old: Pair, new: Pair) -> Result<(), Pair> {
        // SeqCst, as the locked instruction of x86-64 is: the proof was written for it.
        let swapped = self.both().compare_exchange(old.to_u128(), new.to_u128(), Ordering::SeqCst, Ordering::SeqCst);
        swapped.map(|_| ()).map_err(Pair::from_u128)
    }

    /// Whether this processor swaps 16 bytes without a lock.
    pub(super) fn supported() -> bool {
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

/// The model's swap: a lock makes it one step for other swaps and whole reads, while single reads may still
/// fall between its two stores, as they may between two reads of the real thing.
#[cfg(loom)]
impl Slot {
    pub(super) fn new(number: usize, pair: Pair, journal: &alloc::sync::Arc<Journal>) -> Slot {
        Slot {
            key: AtomicU64::new(pair.key),
            state: AtomicU64::new(pair.state),
            both: loom::sync::Mutex::new(()),
            number,
            journal: journal.clone(),
        }
    }

    pub(super) fn pair(&self) -> Pair {
        let _both = self.both.lock();
        Pair { key: self.key.load(Ordering::Acquire), state: self.state.load(Ordering::Acquire) }
    }

    pub(super) fn swap(&self, old: Pair, new: Pair) -> Result<(), Pair> {
        let _both = self.both.lock();
        let seen = Pair { key: self.key.load(Ordering::Acquire), state: self.state.load(Ordering::Acquire) };
        if seen != old {
            return Err(seen);
        }
        self.key.store(new.key, Ordering::Release);
        self.state.store(new.state, Ordering::Release);
        self.journal.write(Change { slot: self.number, thread: loom::thread::current().id(), old: seen, new });
        Ok(())
    }
}

/// What has happened to the slots of a model, in its order. Not one of loom's objects: to write it down is no
/// step of its own.
#[cfg(loom)]
#[derive(Debug, Default)]
pub(super) struct Journal(std::sync::Mutex<alloc::vec::Vec<Change>>);

#[cfg(loom)]
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    pub(super) slot: usize,
    pub(super) thread: loom::thread::ThreadId,
    pub(super) old: Pair,
    pub(super) new: Pair,
}

#[cfg(loom)]
impl Journal {
    fn write(&self, change: Change) {
        if let Ok(mut changes) = self.0.lock() {
            changes.push(change);
        }
    }

    pub(super) fn changes(&self) -> alloc::vec::Vec<Change> {
        self.0.lock().map_or_else(|_| alloc::vec::Vec::new(), |changes| changes.clone())
    }

    pub(super) fn len(&self) -> usize {
        self.0.lock().map_or(0, |changes| changes.len())
    }
}
