//! The floors of a limiter of one key.

use crate::peers::One;
use std::cell::Cell;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use tollbar::clock::{Clock, Tsc};

/// Only reads the clock that tollbar reads.
pub struct ReadTsc;

impl One for ReadTsc {
    #[inline(always)]
    fn admit(&self, _now: u64) -> bool {
        black_box(Tsc.now()) != 0
    }
}

/// The one atomic step of a decision: a load and a compare-and-swap.
#[derive(Default)]
pub struct BareCas(AtomicU64);

impl One for BareCas {
    #[inline(always)]
    fn admit(&self, _now: u64) -> bool {
        let mut seen = self.0.load(Ordering::Relaxed);
        while let Err(other) = self.0.compare_exchange_weak(
            seen,
            black_box(seen.wrapping_add(1)),
            Ordering::Relaxed,
            Ordering::Relaxed,
        ) {
            seen = other;
        }
        true
    }
}

/// One locked addition, which never fails: the cheapest way to hand a line from core to core.
#[derive(Default)]
pub struct FetchAdd(AtomicU64);

impl One for FetchAdd {
    #[inline(always)]
    fn admit(&self, _now: u64) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed) != u64::MAX
    }
}

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

/// A counter of the thread's own.
pub struct Local;

impl One for Local {
    #[inline(always)]
    fn admit(&self, _now: u64) -> bool {
        COUNT.set(black_box(COUNT.get() + 1));
        true
    }
}
