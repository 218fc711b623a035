//! A token bucket for one hot key: threads take permits in advance and spend them without the clock and
//! without the line that they share.
//!
//! # How
//!
//! A thread that has been admitted charges the shared word for up to [`Striped::credit_each`] permits more,
//! with the same compare-and-swap, and keeps them as *credit* in a seat of its own. While it has credit, a
//! request is three loads, a few comparisons, and a store to a line that no other thread writes.
//!
//! # What holds
//!
//! *At most `burst + rate · t` in every interval of length t*, the plain limiter's bound, however old credit is
//! when it is spent. The word's bucket has only `burst − C` permits, where C = [`Striped::credit`] bounds all
//! credit that there is at any instant. What passes in an interval was credit when the interval began, at most
//! C permits, or is charged to the word in it, at most `burst − C + rate · t` permits. C is at most an eighth
//! of the burst and at most 65,536 permits. It is 0 for bursts below 32.
//!
//! *A small limit is not starved.* A thread keeps at most a sixteenth of the permits that remain, so it keeps
//! none of the last sixteen. Near the limit, and everywhere if C is 0, each request is decided as the plain
//! limiter of `burst − C` decides it.
//!
//! *Unspent credit is bounded, and it expires.* At most C permits of credit can lie idle. They expire when any
//! thread takes credit in a later slice of time. A slice is the smallest power of two of nanoseconds that is at
//! least a second and at least 16 refills of the bucket. Credit that expires is lost: fewer than one permit in
//! a hundred, and none while the bucket is nearly empty. A thread that ends leaves its credit to expire, and no
//! code runs when it ends.
//!
//! *Any number of threads and limiters.* Nothing is kept outside the limiter. It has up to 64 seats. Threads
//! without a seat ask the word each time, and all threads compete for seats again in the next slice.
//!
//! *Each decision is counted once*, by the verdict that the call returns ([`Striped::counts`]). A thread counts what it pays with credit
//! in its seat, and everything else as [`super::Limiter`]'s do, in 1 KiB of the limiter's own.
//!
//! *Fork.* A child has a copy of the limiter, the credit of its thread included, as it has a copy of a plain limiter's
//! state. A `Striped` must not lie in memory that processes share: their threads may have the same number.
//!
//! *Signals.* A handler must not ask a limiter whose call it may have interrupted on the same thread: a permit
//! could be spent twice.

mod seat;
#[cfg(all(test, not(loom)))]
mod tests;

#[cfg(all(test, loom))]
mod models;

use super::tally::Tally;
use super::{thread, Watch};
use crate::algorithm::gcra::Gcra;
use crate::algorithm::{Algorithm, Step};
use crate::clock::{Clock, Tsc};
use crate::decision::{Counts, Decision, Verdict};
use crate::policy::{Policy, PolicyError};
use crate::sync::{AtomicU64, CachePadded, Ordering};
use seat::{Seats, Spent};

/// Total credit is at most burst / 8.
const PART_OF_BURST: u64 = 8;
/// A thread keeps at most a sixteenth of the permits that remain.
const PART_OF_REST: u64 = 16;
const MOST_SEATS: u64 = 64;

/// A token bucket whose threads take permits in advance. See the [module](self) for what holds.
///
/// Policies of kind [`crate::Kind::Gcra`] without `borrow` and with a limit above 0. All calls are lock-free, and none
/// allocates or blocks; any number of threads may call at once.
///
/// ```
/// use tollbar::limiter::Striped;
/// let limiter = Striped::new(&"1000000/s burst 10000".parse()?)?;
/// if limiter.admit(1) == tollbar::Verdict::Allowed {
///     // serve
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Striped<C = Tsc> {
    line: CachePadded<Line>,
    // Threads only read the fields from here on, but for `slice` in the seats, which rarely changes. So all
    // processors keep these lines in their caches.
    seats: Seats,
    gcra: Gcra,
    burst: u64,
    clock: C,
    tally: Tally,
}

#[derive(Debug, Default)]
struct Line {
    word: AtomicU64,
    watch: Watch,
}

/// The number of seats, and the most credit in each.
#[derive(Clone, Copy)]
struct Shape {
    seats: u64,
    each: u64,
    /// Slices are 2^this nanoseconds.
    shift: u32,
}

impl Shape {
    fn of(policy: &Policy) -> Shape {
        let room = policy.burst / PART_OF_BURST;
        let mut seats = 1;
        // About as many seats as permits in each, in powers of two.
        while seats < MOST_SEATS && seats * seats * 4 <= room {
            seats *= 2;
        }
        if seats == 1 {
            return Shape { seats: 0, each: 0, shift: Seats::MOST_SLICE };
        }
        // A thread keeps no more than this of a full bucket, so a larger reserve would be in vain.
        let each = (room / seats).min(policy.burst / 20).min(Seats::MOST_CREDIT);
        Shape { seats, each, shift: slice(policy) }
    }

    const fn credit(&self) -> u64 {
        self.seats * self.each
    }
}

/// The binary logarithm of a slice in nanoseconds: at least 16 refills of the bucket.
fn slice(policy: &Policy) -> u32 {
    // Saturating: a product of more than 128 bits is longer than the longest slice.
    let refills = (u128::from(policy.burst) * 16).saturating_mul(u128::from(policy.period));
    let nanos = refills / core::num::NonZeroU128::new(u128::from(policy.limit)).unwrap_or(core::num::NonZeroU128::MIN);
    (128 - nanos.leading_zeros()).clamp(Seats::LEAST_SLICE, Seats::MOST_SLICE)
}

impl Striped {
    /// A fresh bucket on the default clock.
    ///
    /// # Errors
    /// As [`Gcra::new`]; [`PolicyError::OptionMismatch`] for another algorithm, `borrow`, or a limit of 0; and
    /// [`PolicyError::NoMemory`].
    pub fn new(policy: &Policy) -> Result<Striped, PolicyError> {
        Striped::with(policy, Tsc)
    }

    /// Whether [`Striped::new`] would make a limiter of `policy`, memory aside.
    pub fn check_policy(policy: &Policy) -> Result<(), PolicyError> {
        compiled(policy, &Shape::of(policy)).map(|_| ())
    }
}

/// Compiles the word's bucket. Its burst is smaller than the policy's, and its last time is the policy's.
fn compiled(policy: &Policy, shape: &Shape) -> Result<Gcra, PolicyError> {
    policy.validate()?;
    let last = Gcra::new(policy)?.last_time();
    let burst = policy.burst.saturating_sub(shape.credit());
    Ok(Gcra::new(&Policy { burst, init: policy.init.min(burst), ..*policy })?.ending_at(last))
}

impl<C: Clock> Striped<C> {
    /// A fresh bucket on `clock`.
    pub fn with(policy: &Policy, clock: C) -> Result<Striped<C>, PolicyError> {
        Striped::shaped(policy, clock, Shape::of(policy))
    }

    fn shaped(policy: &Policy, clock: C, shape: Shape) -> Result<Striped<C>, PolicyError> {
        let gcra = compiled(policy, &shape)?;
        let places = usize::try_from(shape.seats).map_err(|_| PolicyError::NoMemory)?;
        let seats = Seats::new(places, shape.each, shape.shift).ok_or(PolicyError::NoMemory)?;
        let burst = policy.burst.saturating_sub(shape.credit());
        Ok(Striped { line: CachePadded::default(), seats, gcra, burst, clock, tally: Tally::default() })
    }

    /// The clock.
    pub fn clock(&self) -> &C {
        &self.clock
    }

    /// The burst of the shared bucket, `burst − C`. That is what a fresh limiter admits at one instant, and the
    /// largest cost that is not [`Verdict::Never`].
    pub fn burst(&self) -> u64 {
        self.burst
    }

    /// C, the most permits that all threads together may have in advance.
    pub fn credit(&self) -> u64 {
        self.seats.places().saturating_mul(self.seats.most())
    }

    /// The most permits that one thread may have in advance: C divided by the number of seats, 1024 at most. 0:
    /// no thread keeps credit.
    pub fn credit_each(&self) -> u64 {
        self.seats.most()
    }

    /// Takes `cost` permits now. A cost of 0 asks without charging. The clock is read only if the thread's
    /// credit is less than `cost`.
    #[inline]
    pub fn admit(&self, cost: u64) -> Verdict {
        self.admit_as(thread::current(), cost, || self.clock.now())
    }

    /// [`Striped::admit`] at the caller's time, in nanoseconds on the clock's scale. If the thread's credit is
    /// enough, the time matters only if it is after [`Policy::last_time`]: then nothing is admitted.
    #[inline]
    pub fn admit_at(&self, now: u64, cost: u64) -> Verdict {
        self.admit_as(self.seated_at(now), cost, || now)
    }

    /// [`Striped::admit`] with the full answer. It always reads the clock and the shared line.
    pub fn check(&self, cost: u64) -> Decision {
        self.check_at(self.clock.now(), cost)
    }

    /// [`Striped::check`] at the caller's time. `remaining` is what this thread could take, as in
    /// [`Striped::available_at`]; `retry_after` and `reset_after` are the shared bucket's.
    pub fn check_at(&self, now: u64, cost: u64) -> Decision {
        self.check_as(self.seated_at(now), now, cost)
    }

    /// Permits that this thread could take now, one by one: those of the shared bucket and its own credit.
    /// Other threads' credit, C at most, is not included.
    pub fn available(&self) -> u64 {
        self.available_at(self.clock.now())
    }

    /// [`Striped::available`] at the caller's time.
    pub fn available_at(&self, now: u64) -> u64 {
        self.available_as(self.seated_at(now), now)
    }

    /// Makes the shared bucket fresh again. Threads keep their credit, which is within the bound. Admissions of
    /// other threads in the same instant may survive it.
    pub fn reset(&self) {
        // A swap like every other change of the word, because loom keeps the order of swaps.
        self.line.word.swap(0, Ordering::Relaxed);
    }

    /// Requests that came to the shared bucket with an older time than one admitted there before them.
    pub fn backward_steps(&self) -> u64 {
        self.line.watch.backward_steps()
    }

    /// Decisions since the limiter was made, by verdict, of all threads. A cost of 0 is allowed. [`Striped::reset`] leaves them.
    pub fn counts(&self) -> Counts {
        let counts = self.tally.counts();
        Counts { allowed: counts.allowed.wrapping_add(self.seats.paid()), ..counts }
    }

    /// The calling thread's number; after the last time 0, the number of a thread without credit.
    #[inline(always)]
    fn seated_at(&self, now: u64) -> u64 {
        match now > self.gcra.last_time() {
            true => 0,
            false => thread::current(),
        }
    }

    #[inline(always)]
    fn admit_as(&self, who: u64, cost: u64, now: impl FnOnce() -> u64) -> Verdict {
        match self.seats.spend(who, cost) {
            Spent::Paid => Verdict::Allowed,
            spent => self.admit_with_clock(who, spent, cost, now),
        }
    }

    /// Out of line, so that the few instructions that spend credit spill no registers.
    #[inline(never)]
    fn admit_with_clock(&self, who: u64, spent: Spent, cost: u64, now: impl FnOnce() -> u64) -> Verdict {
        let spent = if spent == Spent::NotMine { self.seats.spend_second(who, cost) } else { spent };
        let verdict = match spent {
            Spent::Paid => return Verdict::Allowed,
            Spent::PaidUncounted => Verdict::Allowed,
            Spent::Short | Spent::NotMine => self.ask(who, now(), cost),
        };
        self.tally.count(verdict)
    }

    /// Asks the shared word.
    #[inline(always)]
    fn ask(&self, who: u64, now: u64, cost: u64) -> Verdict {
        // A refusal is decided here, by loads and arithmetic only.
        if self.gcra.step(self.line.word.load(Ordering::Relaxed), now, cost) == Step::deny() {
            self.line.watch.look(now);
            return Verdict::Denied;
        }
        self.lease(who, now, cost).0
    }

    fn check_as(&self, who: u64, now: u64, cost: u64) -> Decision {
        let spent = match cost {
            0 => Spent::Short,
            _ => match self.seats.spend(who, cost) {
                Spent::NotMine => self.seats.spend_second(who, cost),
                spent => spent,
            },
        };
        let (verdict, state) = match spent {
            Spent::Paid | Spent::PaidUncounted => (Verdict::Allowed, self.line.word.load(Ordering::Relaxed)),
            Spent::Short | Spent::NotMine => self.lease(who, now, cost),
        };
        if spent != Spent::Paid {
            self.tally.count(verdict);
        }
        let told = self.gcra.describe(verdict, state, now, cost);
        Decision { remaining: told.remaining.saturating_add(self.seats.credit(who)), ..told }
    }

    fn available_as(&self, who: u64, now: u64) -> u64 {
        let word = self.line.word.load(Ordering::Relaxed);
        self.gcra.available(word, now).saturating_add(self.seats.credit(who))
    }

    /// Charges the shared word for `cost`, and for as much credit as the thread may keep. Returns the verdict
    /// and the state after it.
    ///
    /// Relaxed as in [`super::cell`]: the word is the whole state of what has been charged.
    #[inline(never)]
    fn lease(&self, who: u64, now: u64, cost: u64) -> (Verdict, u64) {
        self.line.watch.look(now);
        let mut state = self.line.word.load(Ordering::Relaxed);
        let mut seat = None;
        loop {
            let Step { verdict, next } = self.gcra.step(state, now, cost);
            let Some(mut next) = next else { return (verdict, state) };
            let mut filled = None;
            let keep = self.keeps(state, now, cost);
            if verdict == Verdict::Allowed && keep != 0 {
                seat = seat.or_else(|| self.seats.take(who, now));
                if let Some(held) = seat {
                    // All of `cost` is charged to the word. Credit that is less than `cost` stays in the purse.
                    let more = keep.saturating_sub(held.credit());
                    if let Step { verdict: Verdict::Allowed, next: Some(both) } =
                        self.gcra.step(state, now, cost.saturating_add(more))
                    {
                        next = both;
                        filled = Some((held, held.credit().saturating_add(more)));
                    }
                }
            }
            match self.line.word.compare_exchange_weak(state, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => {
                    if let Some((held, credit)) = filled {
                        held.fill(credit);
                    }
                    if verdict == Verdict::Allowed {
                        self.line.watch.admitted(now);
                    }
                    return (verdict, next);
                }
                Err(seen) => state = seen,
            }
        }
    }

    /// The credit that a thread may keep after a request of `cost`.
    #[inline(always)]
    fn keeps(&self, state: u64, now: u64, cost: u64) -> u64 {
        if self.seats.most() == 0 {
            return 0;
        }
        // Near the limit a step tells without a division that nothing may be kept.
        let fits = |most: u64| self.gcra.step(state, now, cost.saturating_add(most)).verdict == Verdict::Allowed;
        if !fits(PART_OF_REST) {
            return 0;
        }
        let rest = self.gcra.available(state, now).saturating_sub(cost);
        self.seats.most().min(rest / PART_OF_REST)
    }
}
