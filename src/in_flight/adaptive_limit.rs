//! A limit that follows the latency, and the count of its permits in flight, in words that threads
//! and processes share.
//!
//! Each word changes by one compare-and-swap, and no call waits. Gradient2's long-term latency and
//! its limit are two words. Each sample changes both of them once. If a process is killed between
//! the two swaps, its sample is missing in the limit, and later samples make up for it.

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
    /// The length of a window in nanoseconds. All releases of a window are one sample: their mean
    /// latency, and the most permits that were in flight at any of them. A window with fewer than
    /// ten releases goes on. 0: each release is a sample, as in the published algorithms.
    ///
    /// A server that answers thousands of requests a second needs windows. Gradient2's long-term
    /// latency is a mean over about 600 samples, so with a sample for each release it follows an
    /// overload within a second, and the limit rises.
    ///
    /// With windows Gradient2 differs from the published algorithm in one point, because there an
    /// overload of some minutes has the same effect: the long-term latency does not learn from a
    /// window in which more permits than before were in flight and the server did hardly more work
    /// for them. The limit settles at about 1.5 times the permits that keep the server busy.
    pub window_ns: u64,
}

/// What a sample does to the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// [`Aimd`](super::Aimd).
    Aimd {
        /// A latency of more nanoseconds counts as a dropped request.
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
    /// The server refused it, or it timed out. AIMD lowers the limit by a tenth. Gradient2 uses
    /// latencies only, so it takes no sample.
    Dropped,
    /// It says nothing about the server, for example because it was invalid or the client gave it
    /// up. The limit takes no sample.
    Ignored,
}

/// A limit of what is in flight that follows the measured latency.
///
/// ```
/// use tollbar::in_flight::{Adaptive, AdaptiveOptions, Outcome};
///
/// // Begins at 20, and stays between 5 and 200.
/// let limit = Adaptive::new(&AdaptiveOptions::gradient2(20, 5, 200));
/// let Some(ticket) = limit.acquire() else { return };
/// let begin = std::time::Instant::now();
/// let answered = true; // ... ask the server ...
/// let outcome = if answered { Outcome::Answered } else { Outcome::Dropped };
/// limit.release(ticket, outcome, begin.elapsed().as_nanos() as u64);
/// ```
///
/// [`Adaptive::acquire`] counts the permits in this value. [`Adaptive::acquire_key`] only reads the
/// limit, and an [`InFlight`] table counts the permits of all processes. Processes that put this
/// value into shared memory have one limit.
#[derive(Debug)]
#[repr(C)]
pub struct Adaptive {
    /// The limit, for Gradient2 in units of 10^-9.
    limit: AtomicU64,
    /// Gradient2's [`LongTerm`].
    long: AtomicU64,
    in_flight: AtomicU64,
    /// The window's releases: their number (high 12 bits), and the sum of their latencies in
    /// nanoseconds (low 52 bits).
    sum: AtomicU64,
    /// The most permits in flight at any release of the window. The highest bit says whether a
    /// request of the window was dropped.
    most_in_flight: AtomicU64,
    /// The time at which the window ends.
    end: AtomicU64,
    /// The floor in the low half, the ceiling in the high half.
    bounds: AtomicU64,
    /// [`GRADIENT2`], or AIMD's timeout plus 1. 0: zeroed memory that no call has initialised; its
    /// limit is 0.
    algorithm: AtomicU64,
    window_ns: AtomicU64,
    /// Gradient2 with windows: the most permits in flight from whose latencies `long` learns.
    known: AtomicU64,
    spare: [AtomicU64; 6],
}

/// A permit of an [`Adaptive`] limit: the number of permits in flight when it was acquired. 0 is no
/// permit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
#[must_use = "the permit stays in flight until the ticket is released"]
pub struct AdaptiveTicket(u64);

/// The state of an [`Adaptive`] limit at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdaptiveState {
    /// The limit.
    pub limit: u32,
    /// The permits of [`Adaptive::acquire`] in flight.
    pub in_flight: u64,
    /// Gradient2's long-term latency in nanoseconds. 0 before the first sample, and with AIMD.
    pub latency_ns: u64,
}

const GRADIENT2: u64 = u64::MAX;
const DROPPED: u64 = 1 << 63;
const COUNT_AT: u32 = 52;
const SUM_MASK: u64 = (1 << COUNT_AT) - 1;
const COUNT_MOST: u64 = (1 << (64 - COUNT_AT)) - 1;
/// A latency above 2^40 ns, 18 minutes, counts as that many, so that the sum of [`COUNT_MOST`]
/// latencies fits into 52 bits.
const LATENCY_MOST: u64 = 1 << 40;
/// The fewest releases of a window.
const WINDOW_SAMPLES: u64 = if cfg!(loom) { 2 } else { 10 };

/// A sample with more than [`Adaptive::known`] permits in flight raises that number by one part of
/// so many of the difference, so that one short latency by chance raises it little.
const KNOWN_STEPS: u64 = 32;

impl AdaptiveOptions {
    /// Gradient2 without a window.
    pub const fn gradient2(initial: u32, least: u32, most: u32) -> AdaptiveOptions {
        AdaptiveOptions { algorithm: Algorithm::Gradient2, initial, least, most, window_ns: 0 }
    }

    /// AIMD without a window.
    pub const fn aimd(initial: u32, least: u32, most: u32, timeout_ns: u64) -> AdaptiveOptions {
        AdaptiveOptions {
            algorithm: Algorithm::Aimd { timeout_ns },
            initial,
            least,
            most,
            window_ns: 0,
        }
    }
}

impl Adaptive {
    /// A limit with nothing in flight. A floor of 0 counts as 1, and an initial limit outside the
    /// bounds as the nearest bound.
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
            known: zero(),
            spare: core::array::from_fn(|_| zero()),
        }
    }

    /// Takes a permit. `None` if as many permits as the limit are in flight.
    #[inline]
    pub fn acquire(&self) -> Option<AdaptiveTicket> {
        let limit = u64::from(self.limit());
        // Acquire: the new holder sees what the former holder of the permit wrote before its
        // release.
        change(&self.in_flight, Ordering::Acquire, |n| (n < limit).then_some(n + 1))
            .map(|n| AdaptiveTicket(n + 1))
    }

    /// Releases a permit, and gives the limit a sample. The caller measures `latency_ns`, always
    /// from the same point, such as the acquisition. Returns false if the ticket is 0 or no permit
    /// is in flight. Then nothing changes.
    #[cfg(not(loom))]
    pub fn release(&self, ticket: AdaptiveTicket, outcome: Outcome, latency_ns: u64) -> bool {
        self.release_at(ticket, outcome, latency_ns, self.now())
    }

    /// [`Adaptive::release`] at the caller's time. A window ends by this time.
    pub fn release_at(
        &self,
        ticket: AdaptiveTicket,
        outcome: Outcome,
        latency_ns: u64,
        now: u64,
    ) -> bool {
        let released = ticket.0 != 0
            && change(&self.in_flight, Ordering::Release, |n| n.checked_sub(1)).is_some();
        if released {
            self.feed(ticket.0, outcome, latency_ns, now);
        }
        released
    }

    /// Takes a permit of a key of `table`, unless as many permits of the key as this limit are in
    /// flight.
    ///
    /// # Errors
    /// Those of [`InFlight::acquire`].
    #[cfg(not(loom))]
    pub fn acquire_key(&self, table: &InFlight, key: &[u8]) -> Result<Ticket, Refusal> {
        table.acquire(key, self.limit())
    }

    /// Releases a permit of a key, and gives the limit a sample with the key's permits in flight
    /// before the release. False, and nothing changes, if [`InFlight::release`] returns false.
    #[cfg(not(loom))]
    pub fn release_key(
        &self,
        table: &InFlight,
        key: &[u8],
        ticket: Ticket,
        outcome: Outcome,
        latency_ns: u64,
    ) -> bool {
        self.release_key_at(table, key, ticket, (outcome, latency_ns), self.now())
    }

    /// [`Adaptive::release_key`] at the caller's time. A window ends by this time.
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
        let whole =
            if self.algorithm.load(Ordering::Relaxed) == GRADIENT2 { limit / UNIT } else { limit };
        whole.min(u64::from(u32::MAX)) as u32
    }

    /// The state at this instant. Other threads may change it at once.
    pub fn read(&self) -> AdaptiveState {
        AdaptiveState {
            limit: self.limit(),
            in_flight: self.in_flight.load(Ordering::Relaxed),
            latency_ns: LongTerm(self.long.load(Ordering::Relaxed)).mean() / 1000,
        }
    }

    /// A time for [`Adaptive::release_at`]. Only a limit with windows reads the clock.
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
        // This comes before the sum, so that the thread that takes the sum finds the permits in
        // flight of every release in it.
        change(&self.most_in_flight, Ordering::Relaxed, |most| {
            let drop = most & DROPPED | if dropped { DROPPED } else { 0 };
            Some(drop | (most & !DROPPED).max(in_flight))
        });
        // Release: the thread that takes the sum sees the change above for every release in it. A
        // window with COUNT_MOST releases has enough for a mean, so further ones are not added.
        // No model notices a weaker ordering, here and in `end_window`: in loom a
        // read-modify-write of `most_in_flight` reads the newest value under every ordering.
        let added = change(&self.sum, Ordering::AcqRel, |sum| {
            (sum >> COUNT_AT < COUNT_MOST).then(|| sum + (1 << COUNT_AT) + latency)
        });
        let sum = added.map_or_else(
            || self.sum.load(Ordering::Acquire),
            |sum| sum + (1 << COUNT_AT) + latency,
        );
        if now >= self.end.load(Ordering::Relaxed) && sum >> COUNT_AT >= WINDOW_SAMPLES {
            self.end_window(sum, now.saturating_add(window));
        }
    }

    /// Makes a sample of the window's mean. Only one thread succeeds in swapping the sum for 0, so
    /// only one makes the sample.
    ///
    /// Acquire: as in [`Adaptive::feed`]. No model notices a weaker ordering.
    #[cold]
    #[inline(never)]
    fn end_window(&self, sum: u64, next: u64) {
        if self.sum.compare_exchange(sum, 0, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            // Another thread has ended the window, or has added a release and now tries to end the
            // window itself.
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
        let learns =
            self.window_ns.load(Ordering::Relaxed) == 0 || self.learns_from(now, in_flight);
        // Each sample is compared with the mean that includes it.
        let before = change(&self.long, Ordering::Relaxed, |long| {
            learns.then(|| LongTerm(long).after(now).0 .0)
        });
        let long = match before {
            Some(before) => LongTerm(before).after(now).1,
            None => LongTerm(self.long.load(Ordering::Relaxed)).mean(),
        };
        change(&self.limit, Ordering::Relaxed, |limit| {
            Some(gradient2_step(limit, (least, most), long, now, in_flight))
        });
    }

    /// Whether the long-term latency learns from a window's sample with the latency `now`, in
    /// picoseconds.
    ///
    /// A mean follows whatever it learns from. If it learned from the queue that a higher limit has
    /// made, it would rise with the limit, and the limit with it, up to the ceiling. So it learns
    /// from samples with up to `known` permits in flight, and from those above if the server did
    /// enough more work for them ([`LongTerm::is_worth`]).
    fn learns_from(&self, now: u64, in_flight: u32) -> bool {
        let long = LongTerm(self.long.load(Ordering::Relaxed));
        let (known, in_flight) = (self.known.load(Ordering::Relaxed), u64::from(in_flight));
        let Some(above @ 1..) = in_flight.checked_sub(known) else { return true };
        if long.is_warming_up() {
            self.known.store(in_flight, Ordering::Relaxed);
            return true;
        }
        let learns = long.is_worth(now, known, in_flight);
        if learns {
            // Relaxed: if another thread ends the next window at once, one of the two steps is
            // lost. Later samples make up for it.
            self.known.store(known + above.div_ceil(KNOWN_STEPS), Ordering::Relaxed);
        }
        learns
    }
}

/// Replaces a word by `next` of it, and returns the former word. `None` if `next` returns `None`.
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
