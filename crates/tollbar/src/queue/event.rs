//! Sleeping until another thread has changed something.

use crate::sync::{AtomicU32, Ordering};

/// Threads sleep on it until another thread calls [`Event::notify`]. A call with no sleeper costs a fence and a load.
#[derive(Debug)]
pub(super) struct Event {
    /// Each notification that may have a sleeper raises it.
    count: AtomicU32,
    /// The number of [`Listener`]s.
    listeners: AtomicU32,
    #[cfg(loom)]
    lock: loom::sync::Mutex<()>,
    #[cfg(loom)]
    wake: loom::sync::Condvar,
}

/// A thread that is about to sleep. A notification from now on ends its sleep, or prevents it.
pub(super) struct Listener<'a> {
    event: &'a Event,
    count: u32,
}

impl Event {
    pub(super) fn new() -> Event {
        Event {
            count: AtomicU32::new(0),
            listeners: AtomicU32::new(0),
            #[cfg(loom)]
            lock: loom::sync::Mutex::new(()),
            #[cfg(loom)]
            wake: loom::sync::Condvar::new(),
        }
    }

    /// Announces that the caller may sleep. After this call and before [`Listener::sleep`] the caller must check the condition that it waits for.
    pub(super) fn listen(&self) -> Listener<'_> {
        self.listeners.fetch_add(1, Ordering::SeqCst);
        let count = self.count.load(Ordering::SeqCst);
        // The listener counts itself and then checks its condition. The notifier makes its change and then reads the number of listeners. With a fence
        // between the two steps on both sides, at least one of the two sees the other's write.
        fence();
        Listener { event: self, count }
    }

    /// Wakes all listeners. The caller has made its change before.
    pub(super) fn notify(&self) {
        fence();
        if self.listeners.load(Ordering::SeqCst) != 0 {
            self.count.fetch_add(1, Ordering::SeqCst);
            self.wake();
        }
    }
}

impl Listener<'_> {
    /// Sleeps for `nanos` at most. It may return earlier, also without a notification.
    pub(super) fn sleep(&self, nanos: u64) {
        if nanos != 0 {
            self.event.sleep(self.count, nanos);
        }
    }
}

impl Drop for Listener<'_> {
    fn drop(&mut self) {
        self.event.listeners.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(loom)]
fn fence() {
    loom::sync::atomic::fence(Ordering::SeqCst);
}

#[cfg(not(loom))]
fn fence() {
    core::sync::atomic::fence(Ordering::SeqCst);
}

#[cfg(all(any(target_os = "linux", target_os = "android"), not(loom)))]
impl Event {
    fn sleep(&self, count: u32, nanos: u64) {
        const SECOND: u64 = 1_000_000_000;
        // An hour fits every time_t. A caller with a longer wait checks its condition then and sleeps again.
        let nanos = nanos.min(3600 * SECOND);
        let time = libc::timespec { tv_sec: (nanos / SECOND) as _, tv_nsec: (nanos % SECOND) as _ };
        // SAFETY: an aligned word that lives as long as `self`, and a valid timespec. The kernel compares the word with `count` and
        // returns at once if it differs.
        unsafe {
            let wait = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
            libc::syscall(libc::SYS_futex, self.count.as_ptr(), wait, count, &time, core::ptr::null::<u32>(), 0);
        }
    }

    fn wake(&self) {
        // SAFETY: as above.
        unsafe {
            let wake = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
            libc::syscall(libc::SYS_futex, self.count.as_ptr(), wake, i32::MAX);
        }
    }
}

/// On systems without futexes a sleep lasts at most a millisecond, after which the caller checks its condition again.
#[cfg(not(any(target_os = "linux", target_os = "android", loom)))]
impl Event {
    fn sleep(&self, count: u32, nanos: u64) {
        if self.count.load(Ordering::SeqCst) == count {
            let time = libc::timespec { tv_sec: 0, tv_nsec: nanos.min(1_000_000) as _ };
            // SAFETY: `time` is a valid timespec with tv_nsec below a second; a null remainder is allowed.
            unsafe { libc::nanosleep(&time, core::ptr::null_mut()) };
        }
    }

    fn wake(&self) {}
}

/// The model's futex: the kernel's comparison and its queue are under one lock. A model sleeps without a timeout, so a lost notification
/// is a deadlock, which loom reports.
#[cfg(loom)]
impl Event {
    fn sleep(&self, count: u32, _nanos: u64) {
        let Ok(guard) = self.lock.lock() else { return };
        if self.count.load(Ordering::SeqCst) == count {
            drop(self.wake.wait(guard));
        }
    }

    fn wake(&self) {
        drop(self.lock.lock());
        self.wake.notify_all();
    }
}
