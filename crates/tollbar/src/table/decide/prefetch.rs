//! Asking for cache lines before they are needed.

/// Asks for the cache line of `at`.
#[inline(always)]
pub(super) fn prefetch<T>(at: &T) {
    ask_for::<false, T>(at);
}

/// The same for one line of many: into the second-level cache, because the first waits for fewer lines at a time.
#[inline(always)]
pub(super) fn prefetch_one_of_many<T>(at: &T) {
    ask_for::<true, T>(at);
}

#[inline(always)]
fn ask_for<const SECOND: bool, T>(at: &T) {
    let at = core::ptr::from_ref(at);
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch touches nothing. (It is written by hand so that the address is in one register and stays there: the compiler's own
    // keeps the two of which the address is the sum.)
    unsafe {
        if SECOND {
            core::arch::asm!("prefetcht1 byte ptr [{at}]", at = in(reg) at, options(nostack, preserves_flags, readonly));
        } else {
            core::arch::asm!("prefetcht0 byte ptr [{at}]", at = in(reg) at, options(nostack, preserves_flags, readonly));
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}
