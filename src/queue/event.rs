//! Sleeping until another thread has changed something.

use crate::sync::{fence, AtomicU32, Futex, Ordering};

/// Threads sleep on it until another thread calls [`QueueEvent::notify`]. A call with no sleeper
/// costs a fence and a load.
#[derive(Debug)]
pub(super) struct QueueEvent {
    /// Each notification that may have a sleeper raises it.
    count: Futex,
    /// The number of [`Listener`]s.
    listeners: AtomicU32,
}

/// A thread that is about to sleep. A notification from now on ends its sleep, or prevents it.
pub(super) struct Listener<'a> {
    event: &'a QueueEvent,
    count: u32,
}

impl QueueEvent {
    pub(super) fn new() -> QueueEvent {
        QueueEvent { count: Futex::new(0), listeners: AtomicU32::new(0) }
    }

    /// Announces that the caller may sleep. After this call and before [`Listener::sleep`] the
    /// caller must check the condition that it waits for.
    pub(super) fn listen(&self) -> Listener<'_> {
        // Relaxed, here and in `notify`: the fences order the words.
        self.listeners.fetch_add(1, Ordering::Relaxed);
        let count = self.count.word().load(Ordering::Relaxed);
        // The listener counts itself and then checks its condition. The notifier makes its change
        // and then reads the number of listeners. With a fence between the two steps on both sides,
        // at least one of the two sees the other's write.
        fence(Ordering::SeqCst);
        Listener { event: self, count }
    }

    /// Wakes all listeners. The caller has made its change before.
    pub(super) fn notify(&self) {
        fence(Ordering::SeqCst);
        if self.listeners.load(Ordering::Relaxed) != 0 {
            self.count.word().fetch_add(1, Ordering::Relaxed);
            self.count.wake();
        }
    }
}

impl Listener<'_> {
    /// Sleeps for `nanos` at most. It may return earlier, also without a notification.
    pub(super) fn sleep(&self, nanos: u64) {
        if nanos != 0 {
            self.event.count.sleep(self.count, nanos);
        }
    }
}

impl Drop for Listener<'_> {
    fn drop(&mut self) {
        // Relaxed: a notifier that reads an older number wakes nobody.
        self.event.listeners.fetch_sub(1, Ordering::Relaxed);
    }
}
