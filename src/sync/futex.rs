//! A word on which threads sleep.

use super::AtomicU32;
use super::Ordering;

/// A word, and the threads that sleep while it has a certain value. A sleep is no cancellation
/// point of POSIX threads on Linux.
#[derive(Debug)]
pub struct Futex {
    word: AtomicU32,
    #[cfg(loom)]
    lock: loom::sync::Mutex<()>,
    #[cfg(loom)]
    wake: loom::sync::Condvar,
}

impl Futex {
    pub fn new(word: u32) -> Futex {
        Futex {
            word: AtomicU32::new(word),
            #[cfg(loom)]
            lock: loom::sync::Mutex::new(()),
            #[cfg(loom)]
            wake: loom::sync::Condvar::new(),
        }
    }

    pub fn word(&self) -> &AtomicU32 {
        &self.word
    }
}

#[cfg(all(any(target_os = "linux", target_os = "android"), not(loom)))]
impl Futex {
    /// Sleeps for `nanos` at most, if the word is `value`. It may return earlier, also without a
    /// call of [`Futex::wake`].
    pub fn sleep(&self, value: u32, nanos: u64) {
        sleep(&self.word, value, nanos, libc::FUTEX_PRIVATE_FLAG);
    }

    /// Wakes all sleepers. The caller has changed the word before.
    pub fn wake(&self) {
        wake(&self.word, libc::FUTEX_PRIVATE_FLAG);
    }
}

/// Sleeps for `nanos` at most, if the word is `value`. Other processes may map the word. It may
/// return earlier.
#[cfg(all(any(target_os = "linux", target_os = "android"), not(loom)))]
pub fn sleep_on(word: &AtomicU32, value: u32, nanos: u64) {
    sleep(word, value, nanos, 0);
}

/// [`sleep_on`] for up to 128 words: the thread sleeps while each has its value. Linux before 5.16
/// and sandboxes that refuse the system call sleep for a millisecond at most.
#[cfg(all(any(target_os = "linux", target_os = "android"), not(loom)))]
#[inline(never)]
pub fn sleep_on_any<'a>(words: impl Iterator<Item = (&'a AtomicU32, u32)> + Clone, nanos: u64) {
    const SYS_FUTEX_WAITV: core::ffi::c_long = 449;
    const FUTEX2_SIZE_U32: u32 = 2;
    const WORDS_MOST: usize = 128;
    let mut waits =
        [WaitedWord { value: 0, word: 0, flags: FUTEX2_SIZE_U32, reserved: 0 }; WORDS_MOST];
    let mut count = 0_usize;
    for (wait, (word, value)) in waits.iter_mut().zip(words.clone()) {
        (wait.value, wait.word) = (u64::from(value), word.as_ptr() as u64);
        count += 1;
    }
    if let (1, Some((word, value))) = (count, words.clone().next()) {
        return sleep_on(word, value, nanos);
    }
    let end = monotonic().saturating_add(nanos);
    // struct __kernel_timespec, of 64 bits on every system.
    let time = [(end / 1_000_000_000) as i64, (end % 1_000_000_000) as i64];
    // SAFETY: `count` waits for aligned words that live as long as the references, and an absolute
    // time. The kernel compares each word with its value and returns at once if one differs.
    unsafe {
        let clock = libc::CLOCK_MONOTONIC;
        libc::syscall(SYS_FUTEX_WAITV, waits.as_ptr(), count, 0, time.as_ptr(), clock);
    }
    // Relaxed: a look that comes too late costs a millisecond of sleep. The caller looks again.
    let mut words = words;
    if monotonic() < end && words.all(|(word, value)| word.load(Ordering::Relaxed) == value) {
        // The kernel lacks the call, or a signal came.
        let time = libc::timespec { tv_sec: 0, tv_nsec: nanos.min(1_000_000) as _ };
        // SAFETY: `time` is a valid timespec with tv_nsec below a second; a null remainder is
        // allowed.
        unsafe { libc::nanosleep(&time, core::ptr::null_mut()) };
    }
}

/// struct futex_waitv of the kernel.
#[cfg(all(any(target_os = "linux", target_os = "android"), not(loom)))]
#[repr(C)]
#[derive(Clone, Copy)]
struct WaitedWord {
    value: u64,
    word: u64,
    flags: u32,
    reserved: u32,
}

#[cfg(all(any(target_os = "linux", target_os = "android"), not(loom)))]
fn monotonic() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable for the call.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    (time.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64)
}

/// Wakes all that sleep on the word, in every process.
#[cfg(all(any(target_os = "linux", target_os = "android"), not(loom)))]
pub fn wake_all(word: &AtomicU32) {
    wake(word, 0);
}

#[cfg(all(any(target_os = "linux", target_os = "android"), not(loom)))]
fn sleep(word: &AtomicU32, value: u32, nanos: u64, flags: i32) {
    const SECOND: u64 = 1_000_000_000;
    // An hour fits every time_t. A caller with a longer wait checks its condition then and sleeps
    // again.
    let nanos = nanos.min(3600 * SECOND);
    let time = libc::timespec { tv_sec: (nanos / SECOND) as _, tv_nsec: (nanos % SECOND) as _ };
    // SAFETY: an aligned word that lives as long as the reference, and a valid timespec. The kernel
    // compares the word with `value` and returns at once if it differs.
    unsafe {
        let wait = libc::FUTEX_WAIT | flags;
        let second = core::ptr::null::<u32>();
        libc::syscall(libc::SYS_futex, word.as_ptr(), wait, value, &time, second, 0);
    }
}

#[cfg(all(any(target_os = "linux", target_os = "android"), not(loom)))]
fn wake(word: &AtomicU32, flags: i32) {
    // SAFETY: as above.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE | flags, i32::MAX);
    }
}

/// On systems without futexes a sleep lasts at most a millisecond, after which the caller checks
/// its condition again.
#[cfg(not(any(target_os = "linux", target_os = "android", loom)))]
impl Futex {
    pub fn sleep(&self, value: u32, nanos: u64) {
        sleep_on(&self.word, value, nanos);
    }

    pub fn wake(&self) {
        wake_all(&self.word);
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android", loom)))]
pub fn sleep_on(word: &AtomicU32, value: u32, nanos: u64) {
    // Relaxed: the caller checks its condition after the sleep, with orderings of its own.
    if word.load(Ordering::Relaxed) == value {
        #[cfg(not(unix))]
        let _ = nanos;
        #[cfg(not(unix))]
        core::hint::spin_loop();
        #[cfg(unix)]
        let time = libc::timespec { tv_sec: 0, tv_nsec: nanos.min(1_000_000) as _ };
        // SAFETY: `time` is a valid timespec with tv_nsec below a second; a null remainder is
        // allowed.
        #[cfg(unix)]
        unsafe {
            libc::nanosleep(&time, core::ptr::null_mut())
        };
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android", loom)))]
pub fn sleep_on_any<'a>(words: impl Iterator<Item = (&'a AtomicU32, u32)> + Clone, nanos: u64) {
    // Each sleep lasts a millisecond at most.
    if let Some((word, value)) = words.into_iter().next() {
        sleep_on(word, value, nanos);
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android", loom)))]
pub fn wake_all(_: &AtomicU32) {}

/// The model's futex: the kernel's comparison and its queue are under one lock. A model sleeps
/// without a timeout, so a lost notification is a deadlock, which loom reports.
#[cfg(loom)]
impl Futex {
    pub fn sleep(&self, value: u32, _nanos: u64) {
        let Ok(guard) = self.lock.lock() else { return };
        if self.word.load(Ordering::SeqCst) == value {
            drop(self.wake.wait(guard));
        }
    }

    pub fn wake(&self) {
        drop(self.lock.lock());
        self.wake.notify_all();
    }
}
