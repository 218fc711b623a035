//! A limit that follows the latency, beside the count of what it admits, as a few words that threads and processes share.
//!
//! Each word changes by one swap, and no call waits. Two releases at one instant feed the algorithm one after the other, in some order: the
//! long-term latency and the limit are two words, and each takes every sample once. So a process that is killed between the two has fed one of
//! them, which the next samples outweigh.

use super::adaptive::{aimd_step, gradient2_step, picoseconds, within, LongTerm, UNIT};
#[cfg(not(loom))]
use super::{InFlight, Refusal, Ticket};
#[cfg(not(loom))]
use crate::clock::{Clock, Monotonic};
use crate::sync::{AtomicU64, Ordering};

/// How an [`Adaptive`] limit learns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdaptiveOptions {
    /// What a sample does to the limit.
    pub algorithm: Algorithm,
    /// The limit before the first sample.
    pub initial: u32,
    /// The floor, at least 1.
    pub least: u32,
    /// The ceiling.
    pub most: u32,
    /// The nanoseconds after which the releases so far are one sample: their mean latency and their most permits in flight. It needs ten of
    /// them. 0: each release is a sample, as the published algorithms have it. A server that answers thousands of requests a second needs a
    /// window, or an overload of seconds looks as old as the rest and becomes the long-term latency.
    pub window_ns: u64,
}

/// What a sample does to the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub enum Algorithm {
    /// [`Aimd`](super::Aimd). A latency above `timeout_ns` counts as a drop.
    Aimd {
        /// The nanoseconds.
        timeout_ns: u64,
    },
    /// [`Gradient2`](super::Gradient2).
    Gradient2,
}

/// What became of the request that held a permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was answered. Its latency counts.
    Answered,
    /// It was refused by the server or timed out. AIMD takes a tenth of the limit away. Gradient2 looks at latencies only, and takes no sample.
    Dropped,
    /// It says nothing about the server, such as a request that was invalid or that the client gave up. It is no sample.
    Ignored,
}

/// A limit of what is in flight that follows the measured latency.
///
/// ```
/// use tollbar::in_flight::{Adaptive, AdaptiveOptions, Outcome};
///
/// // Begins at 20, and stays from 5 to 200.
/// let limit = Adaptive::new(&AdaptiveOptions::gradient2(20, 5, 200));
/// let Some(ticket) = limit.acquire() else { return };
/// let begin = std::time::Instant::now();
/// let answered = true; // ... ask the server ...
/// let outcome = if answered { Outcome::Answered } else { Outcome::Dropped };
/// limit.release(ticket, outcome, begin.elapsed().as_nanos() as u64);
/// ```
///
/// A value counts the permits of one process ([`Adaptive::acquire`]), or it is the limit of a key of an [`InFlight`] table, which counts those of all
/// processes ([`Adaptive::acquire_key`]). In memory that processes share, all of them have one limit.
#[derive(Debug)]
#[repr(C)]
pub struct Adaptive {
    /// The limit: of Gradient2 in units of 10^-9.
    limit: AtomicU64,
    /// [`LongTerm`], of Gradient2.
    long: AtomicU64,
    in_flight: AtomicU64,
    /// The window's samples: their number (12 bits) above the sum of their latencies in nanoseconds (52 bits).
    sum: AtomicU64,
    /// The window's most permits in flight, and in the highest bit whether a request was dropped.
    most_in_flight: AtomicU64,
    /// The time at which the window ends.
    end: AtomicU64,
    /// The floor, and the ceiling in the high half.
    bounds: AtomicU64,
    /// [`GRADIENT2`], or AIMD's timeout plus 1. 0: memory that nobody has initialised, whose limit is 0.
    algorithm: AtomicU64,
    window_ns: AtomicU64,
    spare: [AtomicU64; 7],
}

/// A permit of an [`Adaptive`] limit: the number of permits in flight when it was acquired. 0 is no permit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
#[must_use = "the permit stays in flight until the ticket is released"]
pub struct AdaptiveTicket(u64);

/// What an [`Adaptive`] limit is at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdaptiveState {
    /// The limit.
    pub limit: u32,
    /// The permits of [`Adaptive::acquire`] in flight.
    pub in_flight: u64,
    /// Gradient2's long-term latency in nanoseconds; 0 before the first sample, and of AIMD.
    pub latency_ns: u64,
}

const GRADIENT2: u64 = u64::MAX;
const DROPPED: u64 = 1 << 63;
const COUNT_AT: u32 = 52;
const SUM_MASK: u64 = (1 << COUNT_AT) - 1;
const COUNT_MOST: u64 = (1 << (64 - COUNT_AT)) - 1;
/// A window's latencies are counted up to 18 minutes each, so that the sum of [`COUNT_MOST`] of them fits.
const LATENCY_MOST: u64 = 1 << 40;
/// A window with fewer samples goes on.
const WINDOW_SAMPLES: u64 = if cfg!(loom) { 2 } else { 10 };

impl AdaptiveOptions {
    /// Gradient2 without a window.
    pub const fn gradient2(initial: u32, least: u32, most: u32) -> AdaptiveOptions {
        AdaptiveOptions { algorithm: Algorithm::Gradient2, initial, least, most, window_ns: 0 }
    }

    /// AIMD without a window.
    pub const fn aimd(initial: u32, least: u32, most: u32, timeout_ns: u64) -> AdaptiveOptions {
        AdaptiveOptions { algorithm: Algorithm::Aimd { timeout_ns }, initial, least, most, window_ns: 0 }
    }
}

impl Adaptive {
    /// A limit with nothing in flight. A floor of 0 is taken for 1, and an initial limit outside of the bounds for the nearest bound.
    pub fn new(options: &AdaptiveOptions) -> Adaptive {
        let zero = || AtomicU64::new(0);
        let (least, most) = (options.least.max(1), options.most.max(options.least.max(1)));
        let initial = u64::from(within(options.initial, least, most));
        let (limit, algorithm) = match options.algorithm {
            Algorithm::Gradient2 => (initial * UNIT, GRADIENT2),
            Algorithm::Aimd { timeout_ns } => (initial, timeout_ns.min(GRADIENT2 - 2) + 1),
        };
        Adaptive {
            limit: AtomicU64::new(limit),
            long: zero(),
            in_flight: zero(),
            sum: zero(),
            most_in_flight: zero(),
            end: zero(),
            bounds: AtomicU64::new(u64::from(most) << 32 | u64::from(least)),
            algorithm: AtomicU64::new(algorithm),
            window_ns: AtomicU64::new(options.window_ns),
            spare: core::array::from_fn(|_| zero()),
        }
    }

    /// Takes a permit; `None` if as many as the limit are in flight.
    #[inline]
    pub fn acquire(&self) -> Option<AdaptiveTicket> {
        let limit = u64::from(self.limit());
        // Acquire: the holder sees what the former one wrote before its release.
        change(&self.in_flight, Ordering::Acquire, |n| (n < limit).then_some(n + 1)).map(|n| AdaptiveTicket(n + 1))
    }

    /// Releases a permit, and feeds the limit. False, and nothing changes, for no ticket or if nothing is in flight. The caller measures the
    /// latency, from the acquisition or from where it likes, always from the same point.
    #[cfg(not(loom))]
    pub fn release(&self, ticket: AdaptiveTicket, outcome: Outcome, latency_ns: u64) -> bool {
        self.release_at(ticket, outcome, latency_ns, self.now())
    }

    /// [`Adaptive::release`] at the caller's time, by which windows end.
    pub fn release_at(&self, ticket: AdaptiveTicket, outcome: Outcome, latency_ns: u64, now: u64) -> bool {
        let released = ticket.0 != 0 && change(&self.in_flight, Ordering::Release, |n| n.checked_sub(1)).is_some();
        if released {
            self.feed(ticket.0, outcome, latency_ns, now);
        }
        released
    }

    /// Takes a permit of a key, unless as many as this limit are in flight.
    ///
    /// # Errors
    /// Those of [`InFlight::acquire`].
    #[cfg(not(loom))]
    pub fn acquire_key(&self, table: &InFlight, key: &[u8]) -> Result<Ticket, Refusal> {
        table.acquire(key, self.limit())
    }

    /// Releases a permit of a key, and feeds the limit, with the key's permits in flight before the release. False, and nothing changes, if
    /// [`InFlight::release`] is.
    #[cfg(not(loom))]
    pub fn release_key(&self, table: &InFlight, key: &[u8], ticket: Ticket, outcome: Outcome, latency_ns: u64) -> bool {
        self.release_key_at(table, key, ticket, (outcome, latency_ns), self.now())
    }

    /// [`Adaptive::release_key`] at the caller's time, by which windows end.
    #[cfg(not(loom))]
    pub fn release_key_at(
        &self,
        table: &InFlight,
        key: &[u8],
        ticket: Ticket,
        (outcome, latency_ns): (Outcome, u64),
        now: u64,
    ) -> bool {
        let in_flight = table.count(key);
        let released = table.release(ticket);
        if released {
            self.feed(in_flight, outcome, latency_ns, now);
        }
        released
    }

    /// The present limit.
    #[inline]
    pub fn limit(&self) -> u32 {
        let limit = self.limit.load(Ordering::Relaxed);
        let whole = if self.algorithm.load(Ordering::Relaxed) == GRADIENT2 { limit / UNIT } else { limit };
        whole.min(u64::from(u32::MAX)) as u32
    }

    /// The limit and what is in flight.
    pub fn read(&self) -> AdaptiveState {
        AdaptiveState {
            limit: self.limit(),
            in_flight: self.in_flight.load(Ordering::Relaxed),
            latency_ns: LongTerm(self.long.load(Ordering::Relaxed)).mean() / 1000,
        }
    }

    /// A time for [`Adaptive::release_at`]. The clock is read only if there are windows.
    #[cfg(not(loom))]
    fn now(&self) -> u64 {
        match self.window_ns.load(Ordering::Relaxed) {
            0 => 0,
            _ => Monotonic.now(),
        }
    }

    fn feed(&self, in_flight: u64, outcome: Outcome, latency_ns: u64, now: u64) {
        let is_aimd = self.algorithm.load(Ordering::Relaxed) != GRADIENT2;
        let dropped = outcome == Outcome::Dropped;
        if outcome == Outcome::Ignored || dropped && !is_aimd {
            return;
        }
        let in_flight = in_flight.min(u32::MAX.into());
        let window = self.window_ns.load(Ordering::Relaxed);
        if window == 0 {
            return self.sample(in_flight as u32, latency_ns, dropped);
        }
        let latency = latency_ns.min(LATENCY_MOST);
        // Before the sum, so that the thread that takes the sum finds it.
        change(&self.most_in_flight, Ordering::Relaxed, |most| {
            let drop = most & DROPPED | if dropped { DROPPED } else { 0 };
            Some(drop | (most & !DROPPED).max(in_flight))
        });
        // Release: the thread that takes the sum sees the in-flight word of every sample in it. A window of more samples has its mean already.
        let added = change(&self.sum, Ordering::AcqRel, |sum| {
            (sum >> COUNT_AT < COUNT_MOST).then(|| sum + (1 << COUNT_AT) + latency)
        });
        let sum = added.map_or_else(|| self.sum.load(Ordering::Acquire), |sum| sum + (1 << COUNT_AT) + latency);
        if now >= self.end.load(Ordering::Relaxed) && sum >> COUNT_AT >= WINDOW_SAMPLES {
            self.end_window(sum, now.saturating_add(window));
        }
    }

    /// Feeds the window's mean. The swap of its sum for an empty one chooses one thread.
    #[cold]
    #[inline(never)]
    fn end_window(&self, sum: u64, next: u64) {
        if self.sum.compare_exchange(sum, 0, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            // Another thread has ended the window, or added a sample, and that thread asks the same question.
            return;
        }
        self.end.store(next, Ordering::Relaxed);
        let most = self.most_in_flight.swap(0, Ordering::Relaxed);
        let mean = (sum & SUM_MASK) / (sum >> COUNT_AT).max(1);
        self.sample((most & !DROPPED).min(u32::MAX.into()) as u32, mean, most & DROPPED != 0);
    }

    /// One sample of the algorithm.
    fn sample(&self, in_flight: u32, latency_ns: u64, dropped: bool) {
        let bounds = self.bounds.load(Ordering::Relaxed);
        let (least, most) = (bounds as u32, (bounds >> 32) as u32);
        let algorithm = self.algorithm.load(Ordering::Relaxed);
        if algorithm != GRADIENT2 {
            let dropped = dropped || latency_ns >= algorithm.max(1);
            // Relaxed: the limit publishes no other data.
            change(&self.limit, Ordering::Relaxed, |limit| {
                let next = aimd_step(limit.min(u32::MAX.into()) as u32, in_flight, dropped);
                Some(u64::from(within(next, least, most)))
            });
            return;
        }
        let now = picoseconds(latency_ns);
        // Each sample is compared with the mean that it has made itself.
        let before = change(&self.long, Ordering::Relaxed, |long| Some(LongTerm(long).after(now).0 .0));
        let (_, long) = LongTerm(before.unwrap_or_default()).after(now);
        change(&self.limit, Ordering::Relaxed, |limit| {
            Some(gradient2_step(limit, (least, most), long, now, in_flight))
        });
    }
}

/// Replaces a word by `next` of it, and returns the former word; `None` if `next` gives none.
#[inline(always)]
fn change(word: &AtomicU64, order: Ordering, next: impl Fn(u64) -> Option<u64>) -> Option<u64> {
    let mut found = word.load(Ordering::Relaxed);
    loop {
        match word.compare_exchange_weak(found, next(found)?, order, Ordering::Relaxed) {
            Ok(_) => return Some(found),
            Err(other) => found = other,
        }
    }
}

impl AdaptiveTicket {
    /// The ticket as a number, for callers that store numbers. 0: no ticket.
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// The ticket of a number.
    pub const fn from_bits(bits: u64) -> AdaptiveTicket {
        AdaptiveTicket(bits)
    }
}

const _: () = assert!(cfg!(loom) || core::mem::size_of::<Adaptive>() == 128);
