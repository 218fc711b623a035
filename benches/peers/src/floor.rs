//! The floor of a table: lines of memory that are fetched ahead, and one locked instruction on
//! each.

use crate::keys::{word, Key, BATCH};
use core::arch::x86_64::{_mm_prefetch, _MM_HINT_T0};
use std::sync::atomic::{AtomicU64, Ordering};

/// A cache line; one word of it is used.
#[repr(align(64))]
struct Line(AtomicU64);

/// Memory of as many bytes as a table has, with a table's advice: huge pages if the system has
/// them.
pub struct Floor {
    lines: &'static [Line],
    bytes: usize,
}

impl Floor {
    pub fn new(bytes: u64) -> Floor {
        let bytes = (bytes as usize).next_multiple_of(4096);
        // SAFETY: a fresh anonymous mapping; the advice changes no content, and failing it is as
        // good.
        let start = unsafe {
            let start = libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            assert!(start != libc::MAP_FAILED, "no memory");
            libc::madvise(start, bytes, libc::MADV_HUGEPAGE);
            start
        };
        // SAFETY: mapped until drop, which needs the `Floor` for itself; zeroes are lines; pages
        // are aligned to lines.
        let lines =
            unsafe { std::slice::from_raw_parts(start.cast::<Line>(), bytes / size_of::<Line>()) };
        for line in lines {
            line.0.store(1, Ordering::Relaxed);
        }
        Floor { lines, bytes }
    }

    /// One line for each key, all of them fetched before the first is changed. The change is
    /// `lock xadd` of 64 bits, the cheapest locked instruction. A table's own may have to be the
    /// 16-byte one.
    #[inline(always)]
    pub fn batch(&self, keys: &[Key<8>; BATCH]) -> u64 {
        let lines = keys.each_ref().map(|key| {
            // Keys look random: a multiplication spreads them over any number of lines.
            let at = (u128::from(word(key)) * self.lines.len() as u128) >> 64;
            let line = &self.lines[at as usize];
            // SAFETY: a prefetch is a hint, which every x86-64 processor has.
            unsafe { _mm_prefetch::<_MM_HINT_T0>((&raw const *line).cast()) };
            line
        });
        lines.iter().map(|line| line.0.fetch_add(1, Ordering::Relaxed)).fold(0, u64::wrapping_add)
    }
}

impl Drop for Floor {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this length, and no borrow outlives `self`: `lines` is
        // private.
        unsafe { libc::munmap(self.lines.as_ptr().cast_mut().cast(), self.bytes) };
    }
}
