//! Prefetches of cache lines.

/// Prefetches the cache line of `at`.
#[inline(always)]
pub(super) fn prefetch<T>(at: &T) {
    prefetch_into::<false, T>(at);
}

/// Prefetches one of many cache lines, into the second-level cache: it can wait for more lines at a
/// time than the first-level cache.
#[inline(always)]
pub(super) fn prefetch_one_of_many<T>(at: &T) {
    prefetch_into::<true, T>(at);
}

#[inline(always)]
fn prefetch_into<const SECOND: bool, T>(at: &T) {
    let at = core::ptr::from_ref(at);
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch changes no memory and no register. (With the intrinsic the compiler keeps
    // the base and the offset in two registers; this keeps the address in one.)
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
