//! Memory that a test damages, and a watchdog over the calls that use it.

use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// A round takes some milliseconds on an idle machine. After this time it counts as hung.
const PATIENCE: Duration = Duration::from_secs(60);
/// Guard words before and after the memory, which no call may write.
const GUARD: usize = 1024;
const UNTOUCHED: u64 = 0x5eed_5eed_5eed_5eed;

/// Aborts the program if a round hangs, because a spinning thread cannot be stopped alone.
pub struct Watchdog(Arc<Mutex<(u64, String)>>);

impl Watchdog {
    pub fn new() -> Watchdog {
        let dog = Watchdog(Arc::default());
        let watched = Arc::downgrade(&dog.0);
        thread::spawn(move || {
            let mut last = None;
            while let Some(watched) = watched.upgrade() {
                let (round, context) = watched.lock().unwrap().clone();
                if last.replace(round) == Some(round) {
                    eprintln!(
                        "a call has not returned for {PATIENCE:?}: round {round}, after {context}"
                    );
                    std::process::abort();
                }
                drop(watched);
                thread::sleep(PATIENCE);
            }
        });
        dog
    }

    pub fn round(&self, round: u64, context: &str) {
        *self.0.lock().unwrap() = (round, context.into());
    }
}

/// Memory between guards.
pub struct Memory {
    block: NonNull<u8>,
    layout: Layout,
    words: usize,
}

// SAFETY: all use of the memory is atomic.
unsafe impl Sync for Memory {}

impl Memory {
    pub fn new(bytes: usize) -> Memory {
        let layout = Layout::from_size_align(bytes + 2 * GUARD * 8, 4096).unwrap();
        // SAFETY: the layout has at least the guards' bytes.
        let block = NonNull::new(unsafe { std::alloc::alloc(layout) }).unwrap();
        let memory = Memory { block, layout, words: bytes / 8 };
        (0..memory.words + 2 * GUARD)
            .for_each(|n| memory.at(n).store(UNTOUCHED, Ordering::Relaxed));
        memory
    }

    /// The first byte between the guards. It is aligned to a cache line: 8 KB from the block's
    /// start.
    pub fn start(&self) -> NonNull<u8> {
        // SAFETY: within the block.
        unsafe { self.block.add(GUARD * 8) }
    }

    /// The bytes between the guards.
    pub fn bytes(&self) -> usize {
        self.words * 8
    }

    /// Word number `n` between the guards.
    pub fn word(&self, n: u64) -> &AtomicU64 {
        assert!(n < self.words as u64);
        self.at(GUARD + n as usize)
    }

    pub fn image(&self) -> Vec<u64> {
        (0..self.words as u64).map(|n| self.word(n).load(Ordering::Relaxed)).collect()
    }

    pub fn restore(&self, image: &[u64]) {
        image
            .iter()
            .enumerate()
            .for_each(|(n, word)| self.word(n as u64).store(*word, Ordering::Relaxed));
    }

    pub fn guards_are_whole(&self) -> bool {
        let guards = (0..GUARD).chain(GUARD + self.words..2 * GUARD + self.words);
        guards.into_iter().all(|n| self.at(n).load(Ordering::Relaxed) == UNTOUCHED)
    }

    fn at(&self, n: usize) -> &AtomicU64 {
        assert!(n < self.words + 2 * GUARD);
        // SAFETY: within the block, aligned, and never used but as an atomic.
        unsafe { &*self.block.as_ptr().cast::<AtomicU64>().add(n) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: from `alloc` with this layout.
        unsafe { std::alloc::dealloc(self.block.as_ptr(), self.layout) };
    }
}
