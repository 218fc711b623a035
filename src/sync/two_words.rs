//! Two words that one compare-and-swap changes together.
//!
//! A table's slot is a key word and a state word. A limiter's state is a state word and the number
//! of its returns.
//!
//! No model notices a weaker ordering in this file, because loom has pairs of its own (`model`).

#[cfg(loom)]
mod model;

#[cfg(not(loom))]
use super::{AtomicU64, Ordering};
#[cfg(loom)]
pub(crate) use model::TwoWords;

/// Two words of 8 bytes in 16 bytes. Callers may load each word by itself, and swap the first one
/// by itself.
#[cfg(not(loom))]
#[repr(C, align(16))]
#[derive(Debug, Default)]
pub(crate) struct TwoWords {
    first: AtomicU64,
    second: AtomicU64,
}

#[cfg(not(loom))]
impl TwoWords {
    /// The first word, which callers may swap by itself.
    #[inline(always)]
    pub(crate) fn first(&self) -> &AtomicU64 {
        &self.first
    }

    /// Loads the second word.
    #[inline(always)]
    pub(crate) fn load_second(&self, order: Ordering) -> u64 {
        self.second.load(order)
    }
}

#[cfg(all(target_arch = "x86_64", not(loom)))]
impl TwoWords {
    /// Both words at one instant. Only on a processor with AVX ([`TwoWords::loads`]).
    #[cfg(unix)]
    #[inline(always)]
    pub(crate) fn both(&self) -> (u64, u64) {
        let (first, second): (u64, u64);
        // SAFETY: 16 readable bytes, aligned to 16, shared only through atomics. Processors with
        // AVX promise that such a load is one access (Intel SDM volume 3, 9.1.1; AMD APM volume 2,
        // 7.3.2).
        unsafe {
            core::arch::asm!(
                "movdqa {both}, xmmword ptr [{at}]",
                "movq {first}, {both}",
                "punpckhqdq {both}, {both}",
                "movq {second}, {both}",
                at = in(reg) core::ptr::from_ref(self),
                both = out(xmm_reg) _,
                first = lateout(reg) first,
                second = lateout(reg) second,
                options(nostack, preserves_flags, readonly),
            );
        }
        (first, second)
    }

    /// Stores `new` if the words are `old`; otherwise returns what they are. Only on a processor
    /// with CMPXCHG16B ([`TwoWords::swaps`]).
    #[inline(always)]
    pub(crate) fn swap(&self, old: (u64, u64), new: (u64, u64)) -> Result<(), (u64, u64)> {
        let (first, second): (u64, u64);
        let swapped: u8;
        // SAFETY: 16 writable bytes, aligned to 16, shared only through atomics. A locked
        // instruction is one access for all others, also for those of one of the words. The
        // compiler reserves RBX: the code saves it in R11 and restores both registers. Named
        // registers keep the compiler from putting the address into RBX; callers rarely have other
        // values in these.
        unsafe {
            core::arch::asm!(
                "xchg r11, rbx",
                "lock cmpxchg16b xmmword ptr [r10]",
                "xchg r11, rbx",
                "sete {swapped}",
                in("r10") core::ptr::from_ref(self),
                in("r11") new.0,
                in("rcx") new.1,
                inout("rax") old.0 => first,
                inout("rdx") old.1 => second,
                swapped = lateout(reg_byte) swapped,
                options(nostack),
            );
        }
        // A failed swap leaves the words in RAX and RDX.
        if swapped != 0 {
            Ok(())
        } else {
            Err((first, second))
        }
    }

    /// Whether this processor has CMPXCHG16B. All but the first of x86-64 have it.
    pub(crate) fn swaps() -> bool {
        features() & (1 << 13) != 0
    }

    /// Whether this processor has AVX, which makes aligned 16-byte loads atomic.
    #[cfg(unix)]
    pub(crate) fn loads() -> bool {
        features() & (1 << 28) != 0
    }
}

/// The features of this processor: ECX of CPUID's leaf 1. The answer is kept, because CPUID costs a
/// virtual machine microseconds.
#[cfg(all(target_arch = "x86_64", not(loom)))]
fn features() -> u32 {
    const IS_KNOWN: u64 = 1 << 32;
    static KNOWN: AtomicU64 = AtomicU64::new(0);
    // Relaxed: every thread finds the same answer.
    let known = KNOWN.load(Ordering::Relaxed);
    if known & IS_KNOWN != 0 {
        return known as u32;
    }
    // SAFETY: every x86-64 processor has CPUID, and leaf 1.
    #[allow(unused_unsafe)]
    let leaf = unsafe { core::arch::x86_64::__cpuid(1) };
    KNOWN.store(IS_KNOWN | u64::from(leaf.ecx), Ordering::Relaxed);
    leaf.ecx
}

#[cfg(all(not(target_arch = "x86_64"), not(loom)))]
impl TwoWords {
    fn as_one(&self) -> &portable_atomic::AtomicU128 {
        // SAFETY: 16 bytes, aligned to 16, of interior-mutable memory that lives as long as `self`.
        unsafe { &*core::ptr::from_ref(self).cast() }
    }

    /// Both words at one instant.
    #[inline]
    pub(crate) fn both(&self) -> (u64, u64) {
        from_u128(self.as_one().load(Ordering::Acquire))
    }

    /// Stores `new` if the words are `old`; otherwise returns what they are.
    #[inline]
    pub(crate) fn swap(&self, old: (u64, u64), new: (u64, u64)) -> Result<(), (u64, u64)> {
        // SeqCst, like the locked instruction of x86-64, which the proof of the slots assumes.
        let swapped = self.as_one().compare_exchange(
            to_u128(old),
            to_u128(new),
            Ordering::SeqCst,
            Ordering::SeqCst,
        );
        swapped.map(|_| ()).map_err(from_u128)
    }

    /// Whether this processor swaps 16 bytes without a lock. With a lock the swap would not see
    /// those of one word.
    pub(crate) fn swaps() -> bool {
        portable_atomic::AtomicU128::is_lock_free()
    }

    /// Whether [`TwoWords::both`] reads at one instant without a lock.
    pub(crate) fn loads() -> bool {
        Self::swaps()
    }
}

#[cfg(all(not(target_arch = "x86_64"), not(loom)))]
fn to_u128(words: (u64, u64)) -> u128 {
    // The first word is first in memory, in either byte order.
    let mut bytes = [0; 16];
    let (first, second) = bytes.split_at_mut(8);
    first.copy_from_slice(&words.0.to_ne_bytes());
    second.copy_from_slice(&words.1.to_ne_bytes());
    u128::from_ne_bytes(bytes)
}

#[cfg(all(not(target_arch = "x86_64"), not(loom)))]
fn from_u128(both: u128) -> (u64, u64) {
    let (high, low) = ((both >> 64) as u64, both as u64);
    match cfg!(target_endian = "little") {
        true => (low, high),
        false => (high, low),
    }
}
