//! How a thread ends another thread's sleep.

use crate::sync::{Futex, Ordering};

/// A bell of one sleeping thread. Another thread rings it, before or during the sleep.
#[derive(Debug)]
pub struct Bell(Futex);

const SILENT: u32 = 0;
const RUNG: u32 = 1;

impl Default for Bell {
    fn default() -> Bell {
        Bell(Futex::new(SILENT))
    }
}

impl Bell {
    /// Ends the sleep of the bell's thread. If the thread does not sleep yet, its next sleep ends
    /// at once.
    pub fn ring(&self) {
        // Relaxed, here and below: the system's futex compares the word and puts the thread to
        // sleep in one step, and the queue's lock orders everything else that the threads read.
        self.0.word().store(RUNG, Ordering::Relaxed);
        self.0.wake();
    }

    /// Whether the bell has been rung since it was last silenced.
    pub fn has_rung(&self) -> bool {
        self.0.word().load(Ordering::Relaxed) == RUNG
    }

    /// The next sleep lasts until the bell is rung again.
    pub(crate) fn silence(&self) {
        self.0.word().store(SILENT, Ordering::Relaxed);
    }

    /// Sleeps for `nanos` of the system's monotonic time at most, and not at all if the bell has
    /// been rung. It may return earlier, for example after a signal. A sleep is no cancellation
    /// point of POSIX threads on Linux.
    pub fn sleep(&self, nanos: u64) {
        if nanos != 0 {
            self.0.sleep(SILENT, nanos);
        }
    }
}
