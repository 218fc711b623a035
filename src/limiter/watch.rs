//! Counts the requests whose clock went back.

use crate::sync::{AtomicU64, Ordering};

/// The latest time of an admission, and the number of requests with an earlier time. It shares the
/// state's cache line, which an admission writes in any case. A refusal only reads it, unless the
/// refusal's own time is earlier.
#[derive(Debug, Default)]
pub struct Watch {
    newest: AtomicU64,
    steps: AtomicU64,
}

impl Watch {
    /// The number of requests whose time was earlier than that of a request admitted before them.
    /// With one thread it is exact, with several it may be too low.
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

    /// [`Watch::admitted`] for a caller that has read no later time. Of two threads that store at
    /// the same time, the one with the earlier time may win.
    #[inline(always)]
    pub(crate) fn admitted_newest(&self, now: u64) {
        self.newest.store(now, Ordering::Relaxed);
    }

    #[cold]
    fn step_back(&self) {
        self.steps.fetch_add(1, Ordering::Relaxed);
    }
}
