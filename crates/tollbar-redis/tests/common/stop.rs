//! Ends the clients of a test also where an assertion fails.

use std::sync::atomic::{AtomicU32, Ordering};

/// Tells `Client::run` to end when it is dropped. A scope of threads that panics waits for its
/// threads, and a client that nobody ends would keep the test for ever.
pub struct Stop<'a>(pub &'a AtomicU32);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(1, Ordering::Release);
    }
}
