//! Counts the requests whose clock went back.

use crate::sync::{AtomicU64, Ordering};

/// The newest time admitted, and the number of requests that were older. It shares the state's cache line,
/// which an admission writes anyway. A refusal only reads it, unless its own time is older.
#[derive(Debug, Default)]
pub struct Watch {
    newest: AtomicU64,
    steps: AtomicU64,
}

impl Watch {
    /// Requests whose time was earlier than that of a request admitted before them. The number is exact for one thread. With several
    /// threads it may be too low.
    pub fn backward_steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    // Relaxed throughout: a statistic; no decision depends on it.
    #[inline(always)]
    pub(crate) fn note(&self, now: u64) {
        if self.is_newer_than(now) {
            self.step_back();
        }
    }

    /// Whether a later time has been admitted.
    #[inline(always)]
    pub(crate) fn is_newer_than(&self, now: u64) -> bool {
        now < self.newest.load(Ordering::Relaxed)
    }

    /// Records the time of an admission.
    #[inline(always)]
    pub(crate) fn admitted(&self, now: u64) {
        if now > self.newest.load(Ordering::Relaxed) {
            self.newest.store(now, Ordering::Relaxed);
        }
    }

    /// [`Watch::admitted`] for a caller that has found no later time: of two threads the later one may win.
    #[inline(always)]
    pub(crate) fn admitted_newest(&self, now: u64) {
        self.newest.store(now, Ordering::Relaxed);
    }

    #[cold]
    fn step_back(&self) {
        self.steps.fetch_add(1, Ordering::Relaxed);
    }
}
