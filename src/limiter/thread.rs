//! The calling thread's number, which no other living thread of the process has.
//!
//! It is the thread pointer of the platform's TLS: one load on x86-64 Linux. It needs neither `std`
//! nor a thread-local variable, in a library that is loaded at run time as well. A later thread may
//! get the number of a thread that has ended, and then has its credit. No code runs when a thread
//! ends.
//!
//! [`find_or_claim`] finds what a thread keeps until its limiter or table ends: its line of a
//! limiter's counts, or its block of credit for the hot keys of a table.

use crate::sync::{AtomicU64, Ordering};

/// The owner of a place without an owner.
pub(crate) const FREE: u64 = 0;
/// The pointer of a thread without one. It is never an owner, because pointers are aligned.
pub(crate) const NOBODY: u64 = 1;

/// The first of `count` places that a thread tries. `count` is a power of two, at least 2. Thread
/// pointers mostly differ by the size of a stack, a multiple of 4096. The upper bits of the product
/// depend on all bits that differ.
#[inline(always)]
pub(crate) fn place(who: u64, count: usize) -> usize {
    ((who as u32).wrapping_mul(0x9e37_79b1) >> (32 - count.trailing_zeros())) as usize
}

/// The place of the thread `who` among `places`. A thread without a place claims the first free
/// one. No owner frees a place, so a thread comes to its own before any free one.
pub(crate) fn find_or_claim<'a>(
    who: u64,
    mut places: impl Iterator<Item = usize>,
    owner: impl Fn(usize) -> &'a AtomicU64,
) -> Option<usize> {
    places.find(|&place| {
        let owner = owner(place);
        // Relaxed: the place has no content yet that another thread has written.
        match owner.load(Ordering::Relaxed) {
            FREE => owner.compare_exchange(FREE, who, Ordering::Relaxed, Ordering::Relaxed).is_ok(),
            found => found == who,
        }
    })
}

/// Numbers are below this, because a stripe's word has 44 bits for a number. 0: a thread without a
/// number.
#[cfg(all(unix, not(loom)))]
const NUMBERS: u64 = 1 << 44;

/// The calling thread's number. A thread pointer is the address of the C library's record of the
/// thread. Those records are longer than 64 bytes, so the pointers of two threads differ above the
/// last six bits.
#[cfg(all(unix, not(loom)))]
#[inline(always)]
pub(crate) fn current() -> u64 {
    let number = pointer() >> 6;
    // Programs get addresses of 51 bits and more only if they ask for them.
    if number < NUMBERS {
        number
    } else {
        0
    }
}

/// Loom runs all its threads on one of the system's. Its models pass numbers of their own.
#[cfg(loom)]
pub(crate) fn current() -> u64 {
    0
}

#[cfg(all(not(loom), target_os = "linux", target_arch = "x86_64", target_pointer_width = "64"))]
#[inline(always)]
pub(crate) fn pointer() -> u64 {
    let pointer: u64;
    // SAFETY: the x86-64 TLS ABI has the thread pointer at fs:0 ("ELF Handling For Thread-Local
    // Storage", 3.4.6), in each thread that a C library has made. Not `pure`: a stack that goes on
    // in another thread after a call must not keep the former thread's pointer.
    unsafe {
        core::arch::asm!("mov {}, qword ptr fs:[0]", out(reg) pointer, options(nostack, readonly, preserves_flags))
    };
    pointer
}

#[cfg(all(not(loom), target_os = "linux", target_arch = "aarch64"))]
#[inline(always)]
pub(crate) fn pointer() -> u64 {
    let pointer: u64;
    // SAFETY: user code may read the thread pointer, which the C library has set.
    unsafe {
        core::arch::asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nostack, nomem, preserves_flags))
    };
    pointer
}

#[cfg(all(
    unix,
    not(loom),
    not(all(target_os = "linux", target_arch = "x86_64", target_pointer_width = "64")),
    not(all(target_os = "linux", target_arch = "aarch64"))
))]
#[inline(always)]
pub(crate) fn pointer() -> u64 {
    // SAFETY: it takes nothing and cannot fail.
    unsafe { libc::pthread_self() as u64 }
}

/// Loom runs its threads on one thread of the system, and a system that is no Unix has no thread
/// pointer.
#[cfg(not(all(unix, not(loom))))]
#[inline(always)]
pub(crate) fn pointer() -> u64 {
    NOBODY
}
