//! Where `now` comes from. Sources never mix in one limiter.
//!
//! The system's clocks need a Unix. Elsewhere there are [`Manual`] and the caller's own [`Clock`].

#[cfg(all(unix, target_arch = "x86_64", not(loom)))]
mod line;
#[cfg(unix)]
mod system;
#[cfg(all(unix, target_arch = "x86_64", not(loom)))]
mod tsc;

use crate::sync::{AtomicU64, Ordering};

/// A source of nanoseconds. It should not go back; limiters are safe if it does.
pub trait Clock {
    /// Nanoseconds since a zero of the source's own.
    fn now(&self) -> u64;

    /// Returns at `at` or a little later.
    fn sleep_until(&self, at: u64);
}

/// `CLOCK_MONOTONIC`: nanoseconds since boot, shared by all processes of the host. About 25 ns a call.
#[cfg(unix)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Monotonic;

/// `CLOCK_MONOTONIC_COARSE`: the same zero, in steps of the kernel's tick (1 to 10 ms). About 6 ns a call.
/// A limiter on it admits at most one burst a tick.
#[cfg(unix)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Coarse;

/// The processor's time-stamp counter, kept on `CLOCK_MONOTONIC`'s scale (the same zero) by
/// comparing the two when it is first used and then at growing intervals up to once a second.
///
/// It needs an invariant counter (the processor says so); without one, and on other architectures
/// than x86-64, it reads `CLOCK_MONOTONIC`. No thread ever waits for another here: one that meets an
/// adjustment in progress reads `CLOCK_MONOTONIC` for once.
#[cfg(unix)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Tsc;

#[cfg(unix)]
impl Tsc {
    /// Whether the counter is used, rather than `CLOCK_MONOTONIC` in its place.
    pub fn is_counter(&self) -> bool {
        #[cfg(all(target_arch = "x86_64", not(loom)))]
        return tsc::usable();
        #[cfg(not(all(target_arch = "x86_64", not(loom))))]
        false
    }
}

/// Time that stands still until it is moved: for tests, replays and simulations.
#[derive(Debug, Default)]
pub struct Manual(AtomicU64);

impl Manual {
    /// Starts at `now`.
    pub fn new(now: u64) -> Manual {
        Manual(AtomicU64::new(now))
    }

    /// Moves to `now`, forward or back.
    pub fn set(&self, now: u64) {
        self.0.store(now, Ordering::Relaxed);
    }

    /// Moves `by` nanoseconds forward.
    pub fn advance(&self, by: u64) {
        self.0.fetch_add(by, Ordering::Relaxed);
    }
}

#[cfg(unix)]
impl Clock for Monotonic {
    #[inline]
    fn now(&self) -> u64 {
        system::monotonic()
    }
    fn sleep_until(&self, at: u64) {
        system::sleep_until(at, system::monotonic);
    }
}

#[cfg(unix)]
impl Clock for Coarse {
    #[inline]
    fn now(&self) -> u64 {
        system::coarse()
    }
    fn sleep_until(&self, at: u64) {
        system::sleep_until(at, system::coarse);
    }
}

#[cfg(unix)]
impl Clock for Tsc {
    #[inline]
    fn now(&self) -> u64 {
        #[cfg(all(target_arch = "x86_64", not(loom)))]
        return tsc::now();
        #[cfg(not(all(target_arch = "x86_64", not(loom))))]
        system::monotonic()
    }
    fn sleep_until(&self, at: u64) {
        system::sleep_until(at, || self.now());
    }
}

/// Sleeping moves the time, so a wait in virtual time takes none.
impl Clock for Manual {
    fn now(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
    fn sleep_until(&self, at: u64) {
        self.0.fetch_max(at, Ordering::Relaxed);
    }
}

impl<C: Clock + ?Sized> Clock for &C {
    fn now(&self) -> u64 {
        (**self).now()
    }
    fn sleep_until(&self, at: u64) {
        (**self).sleep_until(at);
    }
}

#[cfg(all(unix, not(loom)))]
impl Source {
    /// The time, if it can be read without a call.
    #[inline(always)]
    pub(crate) fn at_once(self) -> Option<u64> {
        #[cfg(target_arch = "x86_64")]
        if self == Source::Tsc {
            return tsc::at_once();
        }
        None
    }
}

/// A clock chosen at run time.
#[cfg(unix)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum Source {
    /// [`Tsc`].
    #[default]
    Tsc = 0,
    /// [`Monotonic`].
    Monotonic = 1,
    /// [`Coarse`].
    Coarse = 2,
}

#[cfg(unix)]
impl Clock for Source {
    #[inline]
    fn now(&self) -> u64 {
        match self {
            Source::Tsc => Tsc.now(),
            Source::Monotonic => Monotonic.now(),
            Source::Coarse => Coarse.now(),
        }
    }
    fn sleep_until(&self, at: u64) {
        match self {
            Source::Tsc => Tsc.sleep_until(at),
            Source::Monotonic => Monotonic.sleep_until(at),
            Source::Coarse => Coarse.sleep_until(at),
        }
    }
}
