//! Clocks.
//!
//! A [`Source`] is one of the system's clocks. A limiter or a table reads its source through
//! [`Utc`], which counts from [`TIME_ZERO`], so that windows begin at full minutes, hours and days
//! of UTC. One limiter never mixes sources.
//!
//! The system's clocks need a Unix. On other systems use [`Manual`] or a [`Clock`] of the program.

mod bell;
#[cfg(feature = "std")]
mod jitter;
#[cfg(all(unix, target_arch = "x86_64"))]
#[cfg_attr(loom, allow(dead_code))]
mod line;
#[cfg(unix)]
#[cfg_attr(loom, allow(dead_code))]
pub(crate) mod machine;
#[cfg(all(unix, target_arch = "x86_64"))]
#[cfg_attr(loom, allow(dead_code))]
mod record;
#[cfg(unix)]
mod system;
#[cfg(all(unix, target_arch = "x86_64", not(loom)))]
mod tsc;

pub use bell::Bell;
#[cfg(feature = "std")]
pub use jitter::with_jitter;

use crate::sync::{AtomicU64, Ordering};

/// A source of nanoseconds. It should not go back, but limiters are safe if it does.
pub trait Clock {
    /// Nanoseconds since the source's zero.
    fn now(&self) -> u64;

    /// [`Clock::now`] if it needs no function call, otherwise `None`. A caller can then make that
    /// call in out-of-line code.
    #[inline(always)]
    fn at_once(&self) -> Option<u64> {
        Some(self.now())
    }

    /// Whether the clock's times may be Unix times, as calendars need them. Of the system's clocks
    /// only [`Wall`]'s are.
    fn is_unix(&self) -> bool {
        true
    }

    /// Returns when the clock has reached `at`, or a little later.
    fn sleep_until(&self, at: u64);

    /// Returns when the clock has reached `at` or another thread has rung `bell`. It may return
    /// earlier. Callers that wait for a limiter's permits sleep so, and the one that is first in
    /// their queue rings the others.
    ///
    /// A clock of a program whose [`Clock::sleep_until`] a bell cannot end sleeps for a millisecond
    /// of its time at most.
    fn sleep_until_rung(&self, at: u64, bell: &Bell) {
        if !bell.has_rung() {
            self.sleep_until(at.min(self.now().saturating_add(SLICE)));
        }
    }
}

/// The longest sleep of a clock that no bell wakes.
const SLICE: u64 = 1_000_000;

/// `CLOCK_MONOTONIC`: nanoseconds since boot, the same in all processes of the host. About 25 ns a
/// call.
///
/// In a Linux time namespace `CLOCK_MONOTONIC` is ahead of the host's. This clock subtracts that,
/// and so do [`Coarse`] and [`Tsc`]. So processes of different time namespaces can share a table,
/// and a forked child's clock does not jump. A process asks the system for the distance at its
/// first reading, and once more after a fork. It needs /proc for that; without /proc (and before
/// Linux 6.11) it cannot open a table that other processes made, unless the table's clock is
/// [`Wall`].
#[cfg(unix)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Monotonic;

/// `CLOCK_MONOTONIC_COARSE`: the zero of `CLOCK_MONOTONIC`, in steps of the kernel's tick (1 to 10
/// ms). About 6 ns a call. A limiter on it admits at most one burst a tick.
#[cfg(unix)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Coarse;

/// The processor's time-stamp counter on `CLOCK_MONOTONIC`'s scale. The process compares the two
/// clocks at the first use, a millisecond later, and then at growing intervals up to a second.
///
/// It reads `CLOCK_MONOTONIC` instead during that first millisecond, on architectures other than
/// x86-64, if the processor does not say that the counter is invariant, and if Linux does not list
/// `tsc` among its available clock sources. (The kernel removes a counter from the list that it has
/// seen to be unstable.) A thread that reads the clock while another adjusts it reads
/// `CLOCK_MONOTONIC` for that call, so no thread waits for another.
#[cfg(unix)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Tsc;

#[cfg(unix)]
impl Tsc {
    /// Whether the clock uses the counter. `false`: it reads `CLOCK_MONOTONIC` instead.
    pub fn is_counter(&self) -> bool {
        #[cfg(all(target_arch = "x86_64", not(loom)))]
        return tsc::usable();
        #[cfg(not(all(target_arch = "x86_64", not(loom))))]
        false
    }
}

/// `CLOCK_REALTIME`: nanoseconds since 1970 UTC. About 25 ns a call. It follows every step of the
/// system's clock: after a step back by an hour, a limit that was used up before the step refuses
/// for up to an hour.
///
/// For windows that begin at full hours use [`Utc`], which does not step.
#[cfg(unix)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Wall;

/// The zero of the times of limiters and tables: 2025-03-13 00:00:00 UTC, in Unix nanoseconds.
///
/// That is 20,160 days after 1970. A window whose length divides 20,160 days (whole seconds that
/// divide a minute, minutes that divide an hour, hours that divide a day, 1 to 10 days, 4 weeks)
/// therefore begins at the same instants as one that is aligned to Unix time. A state word can hold
/// times of 73 years (`docs/internals/state-word.md`), which therefore last from 2025 on.
pub const TIME_ZERO: u64 = 20_160 * 86_400 * 1_000_000_000;

/// Nanoseconds after [`TIME_ZERO`], 40 years. A system clock outside this span counts as not set.
#[cfg(unix)]
const PLAUSIBLE: u64 = 40 * 365 * 86_400 * 1_000_000_000;

/// A [`Source`] that counts from [`TIME_ZERO`]: the default clock of limiters and tables.
///
/// A process reads its distance to UTC from `CLOCK_REALTIME` once and keeps it. So this clock never
/// steps when the system's clock is set later. If the system's clock is corrected by an hour, daily
/// windows begin an hour off until the process restarts. As long as the system's clock is before
/// 2025-03-13, or 40 years or more after it, a new `Utc` has the distance 0, and its windows are
/// aligned to the machine's start. With [`Source::Wall`] the distance is always 0, and times are
/// Unix nanoseconds.
#[cfg(unix)]
#[derive(Clone, Copy, Debug)]
pub struct Utc<C = Source> {
    clock: C,
    offset: u64,
}

#[cfg(unix)]
impl Utc {
    /// A clock that reads `source` and counts UTC.
    pub fn new(source: Source) -> Utc {
        // The first reading of the counter opens a file. This call reads it, so that no decision
        // does.
        source.now();
        let offset = match source {
            Source::Wall => 0,
            _ => offset(),
        };
        Utc { clock: source, offset }
    }

    /// The source.
    pub fn source(&self) -> Source {
        self.clock
    }

    /// The nanoseconds that are added to the source's time, modulo 2^64.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }
}

/// The processor's counter, which counts UTC.
#[cfg(unix)]
impl Default for Utc<Tsc> {
    fn default() -> Utc<Tsc> {
        Utc { clock: Tsc, offset: Utc::new(Source::Tsc).offset }
    }
}

/// This process's distance from `CLOCK_MONOTONIC` to UTC. A forked child keeps its parent's.
#[cfg(unix)]
fn offset() -> u64 {
    // core's atomic, because loom's cannot be in a static. 0: not known yet.
    static OFFSET: core::sync::atomic::AtomicU64 = core::sync::atomic::AtomicU64::new(0);
    // Relaxed throughout: the number publishes no other data.
    let known = OFFSET.load(Ordering::Relaxed);
    if known != 0 {
        return known;
    }
    let first = offset_at(Monotonic.now(), Wall.now());
    match OFFSET.compare_exchange(0, first, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => first,
        Err(known) => known,
    }
}

/// The distance from `CLOCK_MONOTONIC` to a count from [`TIME_ZERO`], if the first says `now` while
/// the system's clock says `wall`. 0 if `wall` is not plausible.
#[cfg(unix)]
fn offset_at(now: u64, wall: u64) -> u64 {
    match wall.checked_sub(TIME_ZERO) {
        Some(since) if since < PLAUSIBLE => since.wrapping_sub(now),
        _ => 0,
    }
}

#[cfg(unix)]
impl<C: Clock> Clock for Utc<C> {
    fn is_unix(&self) -> bool {
        self.clock.is_unix()
    }
    #[inline]
    fn now(&self) -> u64 {
        self.clock.now().wrapping_add(self.offset)
    }
    #[inline(always)]
    fn at_once(&self) -> Option<u64> {
        // No combinator: a compiler for size makes a call of it.
        let now = self.clock.at_once()?;
        Some(now.wrapping_add(self.offset))
    }
    fn sleep_until(&self, at: u64) {
        system::sleep_until(at, || self.now());
    }
    fn sleep_until_rung(&self, at: u64, bell: &Bell) {
        bell.sleep(at.saturating_sub(self.now()));
    }
}

/// A clock that only its calls move: for tests, replays and simulations.
#[derive(Debug, Default)]
pub struct Manual(AtomicU64);

impl Manual {
    /// A clock that says `now`.
    pub fn new(now: u64) -> Manual {
        Manual(AtomicU64::new(now))
    }

    /// Sets the time to `now`, forward or back.
    pub fn set(&self, now: u64) {
        self.0.store(now, Ordering::Relaxed);
    }

    /// Moves the time `by` nanoseconds forward.
    pub fn advance(&self, by: u64) {
        self.0.fetch_add(by, Ordering::Relaxed);
    }
}

#[cfg(unix)]
impl Clock for Monotonic {
    fn is_unix(&self) -> bool {
        false
    }
    #[inline]
    fn now(&self) -> u64 {
        system::monotonic()
    }
    fn sleep_until(&self, at: u64) {
        system::sleep_until(at, system::monotonic);
    }
    fn sleep_until_rung(&self, at: u64, bell: &Bell) {
        bell.sleep(at.saturating_sub(self.now()));
    }
}

#[cfg(unix)]
impl Clock for Coarse {
    fn is_unix(&self) -> bool {
        false
    }
    #[inline]
    fn now(&self) -> u64 {
        system::coarse()
    }
    fn sleep_until(&self, at: u64) {
        system::sleep_until(at, system::coarse);
    }
    fn sleep_until_rung(&self, at: u64, bell: &Bell) {
        bell.sleep(at.saturating_sub(self.now()));
    }
}

#[cfg(unix)]
impl Clock for Tsc {
    fn is_unix(&self) -> bool {
        false
    }
    #[inline]
    fn now(&self) -> u64 {
        #[cfg(all(target_arch = "x86_64", not(loom)))]
        return tsc::now();
        #[cfg(not(all(target_arch = "x86_64", not(loom))))]
        system::monotonic()
    }
    #[inline(always)]
    fn at_once(&self) -> Option<u64> {
        #[cfg(all(target_arch = "x86_64", not(loom)))]
        return tsc::at_once();
        #[cfg(not(all(target_arch = "x86_64", not(loom))))]
        None
    }
    fn sleep_until(&self, at: u64) {
        system::sleep_until(at, || self.now());
    }
    fn sleep_until_rung(&self, at: u64, bell: &Bell) {
        bell.sleep(at.saturating_sub(self.now()));
    }
}

#[cfg(unix)]
impl Clock for Wall {
    #[inline]
    fn now(&self) -> u64 {
        system::wall()
    }
    fn sleep_until(&self, at: u64) {
        system::sleep_until(at, system::wall);
    }
    fn sleep_until_rung(&self, at: u64, bell: &Bell) {
        bell.sleep(at.saturating_sub(self.now()));
    }
}

/// `sleep_until` moves the time instead of sleeping.
impl Clock for Manual {
    fn now(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
    fn sleep_until(&self, at: u64) {
        self.0.fetch_max(at, Ordering::Relaxed);
    }
    fn sleep_until_rung(&self, at: u64, _: &Bell) {
        self.sleep_until(at);
    }
}

impl<C: Clock + ?Sized> Clock for &C {
    fn now(&self) -> u64 {
        (**self).now()
    }
    fn at_once(&self) -> Option<u64> {
        (**self).at_once()
    }
    fn is_unix(&self) -> bool {
        (**self).is_unix()
    }
    fn sleep_until(&self, at: u64) {
        (**self).sleep_until(at);
    }
    fn sleep_until_rung(&self, at: u64, bell: &Bell) {
        (**self).sleep_until_rung(at, bell);
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
    /// [`Wall`].
    Wall = 3,
}

#[cfg(unix)]
impl Source {
    #[inline(never)]
    fn by_call(self) -> u64 {
        match self {
            Source::Tsc => Tsc.now(),
            Source::Monotonic => Monotonic.now(),
            Source::Coarse => Coarse.now(),
            Source::Wall => Wall.now(),
        }
    }

    /// All sources, each at its number.
    pub const ALL: [Source; 4] = [Source::Tsc, Source::Monotonic, Source::Coarse, Source::Wall];
}

#[cfg(unix)]
impl Clock for Source {
    fn is_unix(&self) -> bool {
        *self == Source::Wall
    }
    // One comparison finds the common source. A jump table over all sources would cost every
    // reading eight instructions.
    #[inline]
    fn now(&self) -> u64 {
        match self {
            Source::Tsc => Tsc.now(),
            other => other.by_call(),
        }
    }
    #[inline(always)]
    fn at_once(&self) -> Option<u64> {
        match self {
            Source::Tsc => Tsc.at_once(),
            _ => None,
        }
    }
    fn sleep_until(&self, at: u64) {
        match self {
            Source::Tsc => Tsc.sleep_until(at),
            Source::Monotonic => Monotonic.sleep_until(at),
            Source::Coarse => Coarse.sleep_until(at),
            Source::Wall => Wall.sleep_until(at),
        }
    }
    fn sleep_until_rung(&self, at: u64, bell: &Bell) {
        bell.sleep(at.saturating_sub(self.now()));
    }
}

#[cfg(all(test, unix, not(loom)))]
mod tests;
