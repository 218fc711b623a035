//! A lock for the queues of waiting callers.

use crate::sync::{AtomicU64, Ordering};

/// A lock that its holder keeps for some steps on the queue and never during a sleep. The calls
/// that decide without waiting do not take it.
///
/// The upper half is the number of the process that used the lock last, and the lower half is 1
/// while a thread holds the lock. A forked child has a copy of the lock, which a thread that the
/// child lacks may hold. The child sees that the process's number is not its own.
#[derive(Debug, Default)]
pub(super) struct Lock(AtomicU64);

/// The lock is free again when this is dropped.
pub(super) struct LockGuard<'a> {
    lock: &'a Lock,
    process: u64,
}

/// Attempts before the first sleep.
#[cfg(not(loom))]
const SPINS: u32 = 100;

/// The number of this process, in the upper half of a word. Without a Unix there is one process.
pub(super) fn process() -> u64 {
    #[cfg(all(unix, not(loom)))]
    return u64::from(crate::clock::machine::generation()) << 32;
    #[cfg(not(all(unix, not(loom))))]
    return 1 << 32;
}

impl Lock {
    /// Takes the lock. Before that it calls `forget` if the lock was another process's, whose
    /// threads this process does not have.
    pub(super) fn take(&self, forget: impl FnOnce()) -> LockGuard<'_> {
        let process = process();
        let mut tries = 0;
        loop {
            let seen = self.0.load(Ordering::Relaxed);
            let of_another = seen >> 32 != process >> 32;
            // Acquire: sees what the former holder wrote before its Release.
            if (of_another || seen & 1 == 0)
                && self
                    .0
                    .compare_exchange(seen, process | 1, Ordering::Acquire, Ordering::Relaxed)
                    .is_ok()
            {
                if of_another {
                    forget();
                }
                return LockGuard { lock: self, process };
            }
            pause(tries);
            tries += 1;
        }
    }

    /// As a child finds the lock that a thread of its parent holds.
    #[cfg(all(test, not(loom)))]
    pub(super) fn hold_by_another_process(&self) {
        self.0.store((process() + (1 << 32)) | 1, Ordering::Relaxed);
    }
}

impl Drop for LockGuard<'_> {
    fn drop(&mut self) {
        self.lock.0.store(self.process, Ordering::Release);
    }
}

/// Gives the holder time. The sleep lets a holder go on that has a lower priority on the same
/// processor.
#[cfg(not(loom))]
fn pause(tries: u32) {
    match tries < SPINS {
        true => core::hint::spin_loop(),
        false => crate::sync::Futex::new(0).sleep(0, 50_000),
    }
}

#[cfg(loom)]
fn pause(_: u32) {
    loom::thread::yield_now();
}
