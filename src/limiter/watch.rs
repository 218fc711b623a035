//! Noticing that the callers' clock goes back.

use crate::sync::{AtomicU64, Ordering};

/// The newest time admitted, and how many requests were older. It shares the state's cache line: an
/// admission has that line anyway, and a refusal only looks.
#[derive(Debug, Default)]
pub struct Watch {
    newest: AtomicU64,
    steps: AtomicU64,
}

impl Watch {
    /// Requests that came with an older time than one admitted before them. Exact for one thread; of
    /// several at once some may be missed, never invented.
    pub fn backward_steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    // Relaxed throughout: a statistic; no decision depends on it.
    #[inline(always)]
    pub(crate) fn look(&self, now: u64) {
        if now < self.newest.load(Ordering::Relaxed) {
            self.step_back();
        }
    }

    /// After an admission.
    #[inline(always)]
    pub(crate) fn admitted(&self, now: u64) {
        if now > self.newest.load(Ordering::Relaxed) {
            self.newest.store(now, Ordering::Relaxed);
        }
    }

    #[cold]
    fn step_back(&self) {
        self.steps.fetch_add(1, Ordering::Relaxed);
    }
}
