//! Which thread is asking: a number that no other living thread of the process has.
//!
//! It is the thread pointer of the platform's TLS, one load on x86-64 Linux, so it needs neither `std` nor a
//! variable per thread, in a library that is loaded at run time as well. A thread that has ended leaves its
//! number to a later one, and with it what it had: nothing here is tied to a thread's end.

/// Numbers are below this (a seat's word has 44 bits for one); 0 stands for a thread without.
#[cfg(not(loom))]
const NUMBERS: u64 = 1 << 44;

/// Thread pointers are those of the C library's thread records, all of which are longer than 64 bytes: so
/// threads whose pointers differ differ without the last six bits.
#[cfg(not(loom))]
#[inline(always)]
pub(crate) fn current() -> u64 {
    let number = pointer() >> 6;
    // Addresses of 51 bits and more are not given to programs unless they ask.
    if number < NUMBERS {
        number
    } else {
        0
    }
}

/// Loom's threads share one of the system's; models say who asks.
#[cfg(loom)]
pub(crate) fn current() -> u64 {
    0
}

#[cfg(all(not(loom), target_os = "linux", target_arch = "x86_64", target_pointer_width = "64"))]
#[inline(always)]
pub(crate) fn pointer() -> u64 {
    let pointer: u64;
    // SAFETY: the x86-64 TLS ABI has the thread pointer at fs:0 ("ELF Handling For Thread-Local Storage",
    // 3.4.6), in each thread that a C library has made. Not `pure`: what runs a stack on another thread after
    // a call must not find the former thread's kept.
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
    unsafe { core::arch::asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nostack, nomem, preserves_flags)) };
    pointer
}

#[cfg(all(
    not(loom),
    not(all(target_os = "linux", target_arch = "x86_64", target_pointer_width = "64")),
    not(all(target_os = "linux", target_arch = "aarch64"))
))]
#[inline(always)]
pub(crate) fn pointer() -> u64 {
    // SAFETY: it takes nothing and cannot fail.
    unsafe { libc::pthread_self() as u64 }
}
