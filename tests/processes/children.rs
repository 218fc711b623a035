//! Child processes, and the words that they share.

use std::sync::atomic::AtomicU64;

/// Words that child processes share.
pub fn board(words: usize) -> &'static [AtomicU64] {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping, which stays for as long as the process.
    let at = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            words * 8,
            access,
            libc::MAP_SHARED | libc::MAP_ANON,
            -1,
            0,
        )
    };
    assert_ne!(at, libc::MAP_FAILED);
    // SAFETY: the mapping is that long, aligned to a page, and only ever used as atomics.
    unsafe { std::slice::from_raw_parts(at.cast(), words) }
}

/// Runs `f` in a child, which ends by a signal or after it.
pub fn forked(f: impl FnOnce()) -> libc::pid_t {
    // SAFETY: the child uses the table, the board and the heap, which libc keeps usable in it, and
    // ends without running anything else.
    match unsafe { libc::fork() } {
        0 => {
            // SAFETY: numbers only.
            unsafe { libc::alarm(3600) };
            f();
            // SAFETY: a number only.
            unsafe { libc::_exit(0) }
        }
        pid => {
            assert!(pid > 0);
            pid
        }
    }
}

pub fn wait(pid: libc::pid_t) {
    let mut status = 0;
    // SAFETY: `status` is writable, and no other thread waits for this child.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
}
