//! What the C artefacts need in place of std: an allocator, a panic handler, a personality.

use core::alloc::{GlobalAlloc, Layout};
use core::ffi::c_void;

struct Malloc;

#[global_allocator]
static MALLOC: Malloc = Malloc;

/// The alignment of malloc's blocks on every supported system.
const MALLOC_ALIGN: usize = 2 * core::mem::size_of::<usize>();

// SAFETY: the blocks come from malloc or posix_memalign, whose size and alignment promises are
// those of the trait; both may be given to free; neither unwinds.
unsafe impl GlobalAlloc for Malloc {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= MALLOC_ALIGN {
            // SAFETY: any size may be asked of malloc.
            return unsafe { libc::malloc(layout.size()) }.cast();
        }
        let mut block: *mut c_void = core::ptr::null_mut();
        // SAFETY: the alignment is a power of two and, above MALLOC_ALIGN, a multiple of a
        // pointer's size.
        let failed = unsafe { libc::posix_memalign(&mut block, layout.align(), layout.size()) };
        if failed != 0 {
            return core::ptr::null_mut();
        }
        block.cast()
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= MALLOC_ALIGN {
            // SAFETY: any size may be asked of calloc.
            return unsafe { libc::calloc(1, layout.size()) }.cast();
        }
        // SAFETY: as alloc; the block has layout.size() bytes.
        unsafe {
            let block = self.alloc(layout);
            if !block.is_null() {
                core::ptr::write_bytes(block, 0, layout.size());
            }
            block
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, _: Layout) {
        // SAFETY: the caller promises that `block` came from `alloc` above.
        unsafe { libc::free(block.cast()) }
    }
}

/// Nothing calls this: a test checks that the shared library has no panic symbol. If a change adds
/// a panic, only abort is sure not to corrupt the caller.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: abort takes nothing and does not return.
    unsafe { libc::abort() }
}

// The precompiled core library names an unwinding personality. Weak, so that the archive links
// beside another Rust library that has a real one; never called, since nothing here unwinds.
#[cfg(not(target_vendor = "apple"))]
core::arch::global_asm!(
    ".weak rust_eh_personality",
    "rust_eh_personality:",
    ".weak _Unwind_Resume",
    "_Unwind_Resume:",
    "nop"
);

#[cfg(target_vendor = "apple")]
core::arch::global_asm!(
    ".globl _rust_eh_personality",
    ".weak_definition _rust_eh_personality",
    ".p2align 2",
    "_rust_eh_personality:",
    ".globl __Unwind_Resume",
    ".weak_definition __Unwind_Resume",
    "__Unwind_Resume:",
    "nop"
);
