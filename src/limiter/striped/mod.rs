//! A token bucket for one hot key: threads take permits in advance and spend them without the clock and
//! without the line that they share.
//!
//! # How
//!
//! A thread that has been admitted charges the shared word for up to [`Striped::credit_each`] permits more, with the same
//! compare-and-swap, and keeps them as *credit* in a seat of its own. While it has credit a request is
//! two loads, two comparisons and a store to a line that no other thread writes.
//!
//! # What holds
//!
//! *At most `burst + rate · t` in every interval of length t*, the plain limiter's bound, however old credit is
//! when it is spent. The word's bucket has only `burst − C` permits, where C = [`Striped::credit`] bounds all credit
//! that there is at any instant. What passes in an interval is credit that was there when it began, at most
//! C, or is charged to the word in it, at most `burst − C + rate · t`. C is at most an eighth of the burst, 65,536 permits at most, and
//! 0 for bursts below 32.
//!
//! *A small limit is not starved.* What a thread keeps is at most a sixteenth of what remains, so nothing is kept of
//! the last sixteen permits: near the limit, and always where C is 0, each request is decided as the plain limiter of
//! `burst − C` decides it.
//!
//! *What is not spent is bounded, and does not last.* Of the threads' credit at most C permits can lie idle. It
//! expires when any thread takes credit in a later slice of time; a slice is the power of two of nanoseconds that is not below a
//! second and 16 refills of the bucket. What expires is lost, less than one permit in a hundred and never while the bucket is nearly
//! empty. A thread that ends leaves its credit to expire, and runs nothing when it does.
//!
//! *Any number of threads and limiters.* Nothing is kept outside the limiter. It has up to 64 seats; threads without one
//! ask the word each time, and all compete for seats again in the next slice.
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

use super::{thread, Watch};
use crate::algorithm::gcra::Gcra;
use crate::algorithm::{Algorithm, Step};
use crate::clock::{Clock, Tsc};
use crate::decision::{Decision, Verdict};
use crate::policy::{Policy, PolicyError};
use crate::sync::{AtomicU64, CachePadded, Ordering};
use seat::{Seats, Spent};

/// Of this part of the burst all credit is taken.
const PART_OF_BURST: u64 = 8;
/// A thread keeps at most this part of what remains.
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
    // From here on nothing is written but `slice` in the seats, rarely: threads share these lines as they are.
    seats: Seats,
    gcra: Gcra,
    burst: u64,
    clock: C,
}

#[derive(Debug, Default)]
struct Line {
    word: AtomicU64,
    watch: Watch,
}

/// How much credit there may be.
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
        // As many seats as permits in each, as near as powers of two come.
        while seats < MOST_SEATS && seats * seats * 4 <= room {
            seats *= 2;
        }
        if seats == 1 {
            return Shape { seats: 0, each: 0, shift: Seats::MOST_SLICE };
        }
        // More than a thread keeps of a full bucket would be reserved in vain.
        let each = (room / seats).min(policy.burst / 20).min(Seats::MOST_CREDIT);
        Shape { seats, each, shift: slice(policy) }
    }

    const fn credit(&self) -> u64 {
        self.seats * self.each
    }
}

/// The bits of nanoseconds that hold 16 refills.
fn slice(policy: &Policy) -> u32 {
    // More than 128 bits are longer than the longest slice.
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

    /// Whether [`Striped::new`] would make one, memory aside.
    pub fn check_policy(policy: &Policy) -> Result<(), PolicyError> {
        compiled(policy, &Shape::of(policy)).map(|_| ())
    }
}

/// The word's bucket. It is smaller than the policy's, and its last time is the policy's all the same.
fn compiled(policy: &Policy, shape: &Shape) -> Result<Gcra, PolicyError> {
    policy.validate()?;
    let last = Gcra::new(policy)?.last_time();
    let burst = policy.burst.saturating_sub(shape.credit());
    Ok(Gcra::new(&Policy { burst, init: policy.init.min(burst), ..*policy })?.ending_at(last))
}

impl<C: Clock> Striped<C> {
    /// The same on another clock.
    ///
    /// # Errors
    /// As [`Striped::new`].
    pub fn with(policy: &Policy, clock: C) -> Result<Striped<C>, PolicyError> {
        Striped::shaped(policy, clock, Shape::of(policy))
    }

    fn shaped(policy: &Policy, clock: C, shape: Shape) -> Result<Striped<C>, PolicyError> {
        let gcra = compiled(policy, &shape)?;
        let places = usize::try_from(shape.seats).map_err(|_| PolicyError::NoMemory)?;
        let seats = Seats::new(places, shape.each, shape.shift).ok_or(PolicyError::NoMemory)?;
        let burst = policy.burst.saturating_sub(shape.credit());
        Ok(Striped { line: CachePadded::default(), seats, gcra, burst, clock })
    }

    /// The clock.
    pub fn clock(&self) -> &C {
        &self.clock
    }

    /// The burst of the shared bucket, `burst − C`: what a fresh limiter admits at one instant, and the largest cost
    /// that is not [`Verdict::Never`].
    pub fn burst(&self) -> u64 {
        self.burst
    }

    /// C, the most permits that all threads together may have in advance.
    pub fn credit(&self) -> u64 {
        self.seats.places().saturating_mul(self.seats.most())
    }

    /// The most that one thread may have in advance: C in as many parts as there are seats, 1024 at most. 0: nothing is kept.
    pub fn credit_each(&self) -> u64 {
        self.seats.most()
    }

    /// Takes `cost` permits now. A cost of 0 asks without charging. The clock is read only where the thread has
    /// not the credit.
    #[inline]
    pub fn admit(&self, cost: u64) -> Verdict {
        self.admit_as(thread::current(), cost, || self.clock.now())
    }

    /// [`Striped::admit`] at the caller's time, in nanoseconds on the clock's scale. Where the thread has the credit the time
    /// matters only if it is after [`Policy::last_time`]: then nothing is admitted.
    #[inline]
    pub fn admit_at(&self, now: u64, cost: u64) -> Verdict {
        self.admit_as(self.seated_at(now), cost, || now)
    }

    /// [`Striped::admit`] with the answer in full. It reads the clock and the shared line always.
    pub fn check(&self, cost: u64) -> Decision {
        self.check_at(self.clock.now(), cost)
    }

    /// [`Striped::check`] at the caller's time. `remaining` is of this thread, as of [`Striped::available_at`];
    /// `retry_after` and `reset_after` are the shared bucket's.
    pub fn check_at(&self, now: u64, cost: u64) -> Decision {
        self.check_as(self.seated_at(now), now, cost)
    }

    /// Permits that this thread could take now, one by one: those of the shared bucket and its own credit.
    /// Other threads' credit, C at most, is not in it.
    pub fn available(&self) -> u64 {
        self.available_at(self.clock.now())
    }

    /// [`Striped::available`] at the caller's time.
    pub fn available_at(&self, now: u64) -> u64 {
        self.available_as(self.seated_at(now), now)
    }

    /// The shared bucket back to fresh. Credit stays with its threads, which is within the bound. Admissions of
    /// other threads in the same instant may survive it.
    pub fn reset(&self) {
        // A swap like every other change of the word: loom keeps the order of those.
        self.line.word.swap(0, Ordering::Relaxed);
    }

    /// Requests that came to the shared bucket with an older time than one admitted there before them.
    pub fn backward_steps(&self) -> u64 {
        self.line.watch.backward_steps()
    }

    /// The calling thread; after the last time a thread without a seat, for which there is no credit.
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

    /// Apart, so that what is spent in a few instructions has the registers.
    #[inline(never)]
    fn admit_with_clock(&self, who: u64, spent: Spent, cost: u64, now: impl FnOnce() -> u64) -> Verdict {
        if spent == Spent::NotMine && self.seats.spend_second(who, cost) == Spent::Paid {
            return Verdict::Allowed;
        }
        let now = now();
        // A refusal is decided here, by loads and arithmetic only.
        if self.gcra.step(self.line.word.load(Ordering::Relaxed), now, cost) == Step::deny() {
            self.line.watch.look(now);
            return Verdict::Denied;
        }
        self.lease(who, now, cost).0
    }

    #[inline(always)]
    fn spend(&self, who: u64, cost: u64) -> bool {
        match self.seats.spend(who, cost) {
            Spent::Paid => true,
            Spent::Short => false,
            Spent::NotMine => self.seats.spend_second(who, cost) == Spent::Paid,
        }
    }

    fn check_as(&self, who: u64, now: u64, cost: u64) -> Decision {
        let (verdict, state) = if cost != 0 && self.spend(who, cost) {
            (Verdict::Allowed, self.line.word.load(Ordering::Relaxed))
        } else {
            self.lease(who, now, cost)
        };
        let told = self.gcra.describe(verdict, state, now, cost);
        Decision { remaining: told.remaining.saturating_add(self.seats.credit(who)), ..told }
    }

    fn available_as(&self, who: u64, now: u64) -> u64 {
        let word = self.line.word.load(Ordering::Relaxed);
        self.gcra.available(word, now).saturating_add(self.seats.credit(who))
    }

    /// Asks the shared word: for `cost`, and for as much credit as may be kept. The verdict, and the state
    /// after it.
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
                    // All of `cost` is charged, whatever credit there is: what is less than a cost stays.
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

    /// What a thread may keep beside `cost`.
    #[inline(always)]
    fn keeps(&self, state: u64, now: u64, cost: u64) -> u64 {
        if self.seats.most() == 0 {
            return 0;
        }
        // Most who come here near the limit need no division to know.
        let fits = |most: u64| self.gcra.step(state, now, cost.saturating_add(most)).verdict == Verdict::Allowed;
        if !fits(PART_OF_REST) {
            return 0;
        }
        let rest = self.gcra.available(state, now).saturating_sub(cost);
        self.seats.most().min(rest / PART_OF_REST)
    }
}
