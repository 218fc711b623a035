//! A token bucket for one hot key: threads take permits in advance and spend them without the clock
//! and without the line that they share.
//!
//! # How threads take credit
//!
//! A thread that has been admitted charges the shared word for up to [`Striped::credit_each`]
//! permits more, with the same compare-and-swap, and keeps them as *credit* in a stripe of its own.
//! While it has credit, a request is three loads, a few comparisons, and a store to a line that no
//! other thread writes.
//!
//! # Guarantees
//!
//! *At most `burst + rate · t` in every interval of length t*, the bound of a limiter without
//! credit, however old credit is when it is spent. The word's bucket has only `burst − C` permits,
//! where C = [`Striped::credit`] bounds all credit at any instant. Each permit that passes in an
//! interval was credit when the interval began, at most C permits, or is charged to the word in it,
//! at most `burst − C + rate · t` permits. C is at most an eighth of the burst and at most 65,536
//! permits. It is 0 for bursts below 32.
//!
//! *A small limit is not starved.* A thread takes at most a sixteenth of the permits that remain,
//! so it takes none of the last sixteen. Near the limit each request is decided as by a limiter of
//! `burst − C` without credit. If C is 0, all requests are.
//!
//! *Unspent credit is bounded, and it expires.* At most C permits of credit can lie idle. They
//! expire when any thread takes credit in a later slice of time. A slice is the smallest power of
//! two of nanoseconds that is at least a second and at least 16 refills of the bucket. Credit that
//! expires is lost: fewer than one permit in a hundred, and none while the bucket is nearly empty.
//! A thread that ends leaves its credit to expire, and no code runs when it ends.
//!
//! *Any number of threads and limiters.* All state is in the limiter. It has up to 64 stripes.
//! Threads without a stripe charge the word each time, and all threads compete for stripes again in
//! the next slice.
//!
//! *Each decision is counted once*, by the verdict that the call returns
//! ([`super::Limiter::counts`]). A stripe counts the requests that its threads pay with credit, and
//! the limiter's counts have all others.
//!
//! *Calls that take no credit.* [`Shared::take_up_to_at`] takes the thread's own credit first.
//! [`Shared::reserve_at`] books on the shared word, unless the thread's credit pays for the request
//! at once. [`Shared::reset`] makes the word fresh and leaves credit as it is, which is within the
//! bound.
//!
//! *Fork.* A child has a copy of the limiter, the credit of its thread included, as it has a copy
//! of any limiter's state. A limiter must not lie in memory that processes share: their threads may
//! have the same number.
//!
//! *Signals.* A signal handler must not use a limiter if it may have interrupted a call with it on
//! the same thread: a permit could be spent twice.

#[cfg(test)]
mod counted;
#[cfg(all(test, loom))]
mod models;
mod stripe;
#[cfg(all(test, not(loom)))]
pub(super) mod tests;

use super::fast::Fast;
use super::waiting::{after_first, last_by_steps};
use super::{cell, thread, Shared, Watch};
use crate::algorithm::gcra::Gcra;
use crate::algorithm::{Algorithm, Step};
use crate::decision::{Decision, Verdict};
use crate::policy::{Policy, PolicyError};
use crate::sync::{AtomicU64, CachePadded, Ordering};
use stripe::Stripes;

/// Total credit is at most burst / 8.
const PART_OF_BURST: u64 = 8;
const MOST_STRIPES: u64 = 64;

/// A token bucket whose threads take permits in advance. The module has its guarantees.
/// [`super::State::with_credit`] makes one.
///
/// Policies of kind [`crate::Kind::Gcra`] without `borrow` and with a limit above 0.
#[derive(Debug)]
pub struct Striped {
    line: CachePadded<StripedLine>,
    // From here on threads only read, except that `slice` in the stripes rarely changes. So all
    // processors keep these lines in their caches.
    stripes: Stripes,
    gcra: Gcra,
    burst: u64,
}

#[derive(Debug, Default)]
struct StripedLine {
    word: AtomicU64,
    watch: Watch,
}

/// The number of stripes, and the most credit in each.
#[derive(Clone, Copy)]
struct StripePlan {
    stripes: u64,
    each: u64,
    /// Slices are 2^this nanoseconds.
    shift: u32,
}

impl StripePlan {
    fn of(policy: &Policy) -> StripePlan {
        let room = policy.burst / PART_OF_BURST;
        let mut stripes = 1;
        // About as many stripes as permits in each, in powers of two.
        while stripes < MOST_STRIPES && stripes * stripes * 4 <= room {
            stripes *= 2;
        }
        if stripes == 1 {
            return StripePlan { stripes: 0, each: 0, shift: Stripes::MOST_SLICE };
        }
        // A thread keeps at most this of a full bucket, so more room would stay unused.
        let each = (room / stripes).min(policy.burst / 20).min(Stripes::MOST_CREDIT);
        StripePlan { stripes, each, shift: slice(policy) }
    }

    const fn credit(&self) -> u64 {
        self.stripes * self.each
    }
}

/// The binary logarithm of a slice in nanoseconds. A slice is at least 16 refills of the bucket.
fn slice(policy: &Policy) -> u32 {
    // The product may saturate: one of more than 128 bits is longer than the longest slice.
    let refills = (u128::from(policy.burst) * 16).saturating_mul(u128::from(policy.period));
    let nanos = refills
        / core::num::NonZeroU128::new(u128::from(policy.limit))
            .unwrap_or(core::num::NonZeroU128::MIN);
    (128 - nanos.leading_zeros()).clamp(Stripes::LEAST_SLICE, Stripes::MOST_SLICE)
}

/// Compiles the word's bucket. Its burst is smaller than the policy's, and its last time is the
/// policy's.
fn compiled(policy: &Policy, plan: &StripePlan) -> Result<Gcra, PolicyError> {
    policy.validate()?;
    let last = Gcra::new(policy)?.last_time();
    let burst = policy.burst.saturating_sub(plan.credit());
    Ok(Gcra::new(&Policy { burst, init: policy.init.min(burst), ..*policy })?.ending_at(last))
}

impl Striped {
    /// A fresh bucket.
    ///
    /// # Errors
    /// As [`Gcra::new`]; [`PolicyError::OptionMismatch`] for another algorithm, `borrow`, or a
    /// limit of 0; and [`PolicyError::NoMemory`].
    pub(super) fn new(policy: &Policy) -> Result<Striped, PolicyError> {
        Striped::with_plan(policy, StripePlan::of(policy))
    }

    fn with_plan(policy: &Policy, plan: StripePlan) -> Result<Striped, PolicyError> {
        let gcra = compiled(policy, &plan)?;
        let places = usize::try_from(plan.stripes).map_err(|_| PolicyError::NoMemory)?;
        let stripes = Stripes::new(places, plan.each, plan.shift).ok_or(PolicyError::NoMemory)?;
        let burst = policy.burst.saturating_sub(plan.credit());
        Ok(Striped { line: CachePadded::default(), stripes, gcra, burst })
    }

    /// The burst of the shared bucket, `burst − C`. That is what a fresh limiter admits at one
    /// instant, and the largest cost that is not [`Verdict::Never`].
    pub fn burst(&self) -> u64 {
        self.burst
    }

    /// C, the most permits that all threads together may have in advance.
    pub fn credit(&self) -> u64 {
        self.stripes.places().saturating_mul(self.stripes.most())
    }

    /// The most permits that one thread may have in advance: C divided by the number of stripes,
    /// 1024 at most. 0: no thread keeps credit.
    pub fn credit_each(&self) -> u64 {
        self.stripes.most()
    }

    /// The calling thread's number; after the last time 0, the number of a thread without credit.
    #[inline(always)]
    fn current_at(&self, now: u64) -> u64 {
        match now > self.gcra.last_time() {
            true => 0,
            false => thread::current(),
        }
    }

    /// Decides on the shared word.
    #[inline(always)]
    fn ask(&self, who: u64, now: u64, cost: u64) -> Verdict {
        // A refusal is decided here, by loads and arithmetic only.
        if self.gcra.step(self.line.word.load(Ordering::Relaxed), now, cost) == Step::deny() {
            self.line.watch.note(now);
            return Verdict::Denied;
        }
        self.lease(who, now, cost).0
    }

    fn check_as(&self, who: u64, now: u64, cost: u64) -> Decision {
        let (verdict, state) = match cost != 0 && self.stripes.spend_uncounted(who, cost) {
            true => (Verdict::Allowed, self.line.word.load(Ordering::Relaxed)),
            false => self.lease(who, now, cost),
        };
        self.describe(who, verdict, state, now, cost)
    }

    fn peek_as(&self, who: u64, now: u64, cost: u64) -> Decision {
        let state = self.line.word.load(Ordering::Relaxed);
        let verdict = match cost != 0 && self.stripes.credit(who) >= cost {
            true => Verdict::Allowed,
            false => self.gcra.step(state, now, cost).verdict,
        };
        self.describe(who, verdict, state, now, cost)
    }

    /// The full decision. `remaining` is the number of permits that this thread could take one by
    /// one: those of the shared bucket and its own credit.
    fn describe(&self, who: u64, verdict: Verdict, state: u64, now: u64, cost: u64) -> Decision {
        let decision = self.gcra.describe(verdict, state, now, cost);
        Decision {
            remaining: decision.remaining.saturating_add(self.stripes.credit(who)),
            ..decision
        }
    }

    fn take_up_to_as(&self, who: u64, now: u64, most: u64) -> u64 {
        let credit = self.stripes.credit(who).min(most);
        // A thread's credit grows by its own calls only. It may expire meanwhile: then there is
        // none.
        let paid =
            if credit != 0 && self.stripes.spend_uncounted(who, credit) { credit } else { 0 };
        self.line.watch.note(now);
        let charged = cell::take_up_to(&self.line.word, &self.gcra, now, most.saturating_sub(paid));
        if charged != 0 {
            self.line.watch.admitted(now);
        }
        paid.saturating_add(charged)
    }

    fn reserve_as(&self, who: u64, now: u64, cost: u64, until: u64) -> Option<u64> {
        if cost != 0 && now <= until && self.stripes.spend_uncounted(who, cost) {
            return Some(now);
        }
        cell::reserve(&self.line.word, &self.gcra, now, cost, until, || ())
    }

    /// Charges the shared word for `cost`, and for as much credit as the thread may keep. Returns
    /// the verdict and the state after it.
    ///
    /// Relaxed as in [`super::cell`]: the word is the whole state of all charges.
    #[inline(never)]
    fn lease(&self, who: u64, now: u64, cost: u64) -> (Verdict, u64) {
        self.line.watch.note(now);
        let mut state = self.line.word.load(Ordering::Relaxed);
        let mut stripe = None;
        loop {
            let Step { verdict, next } = self.gcra.step(state, now, cost);
            let Some(mut next) = next else { return (verdict, state) };
            let lease = |most: u64| self.gcra.lease(state, now, cost, most, 0);
            let mut filled = None;
            // A thread takes a stripe only if it can take credit.
            if verdict == Verdict::Allowed && lease(self.stripes.most()).is_some() {
                stripe = stripe.or_else(|| self.stripes.take(who, now));
                if let Some(own) = stripe {
                    // All of `cost` is charged to the word. Credit that is less than `cost` stays
                    // in the stripe.
                    let had = own.credit();
                    if let Some(lease) = lease(self.stripes.most().saturating_sub(had)) {
                        next = lease.next;
                        filled = Some((own, had.saturating_add(lease.credit)));
                    }
                }
            }
            match self.line.word.compare_exchange_weak(
                state,
                next,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => {
                    if let Some((own, credit)) = filled {
                        own.fill(credit);
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
}

impl Fast for Striped {
    /// A cost of 0 is decided with or without credit: until the last time it is allowed either way.
    #[inline(always)]
    fn spend_quickly(&self, cost: u64) -> bool {
        self.stripes.spend_first(thread::current(), cost)
    }

    /// The time matters only if it is after [`Policy::last_time`]: then nothing is admitted.
    #[inline(always)]
    fn spend_quickly_at(&self, now: u64, cost: u64) -> bool {
        self.stripes.spend_first(self.current_at(now), cost)
    }

    #[inline]
    fn spend_in_other_places(&self, cost: u64) -> bool {
        self.stripes.spend_second(thread::current(), cost)
    }

    #[inline]
    fn admit_without_credit_at(&self, now: u64, cost: u64) -> Verdict {
        self.ask(self.current_at(now), now, cost)
    }

    fn spent(&self) -> u64 {
        self.stripes.paid()
    }
}

impl Shared for Striped {
    #[inline]
    fn admit_at(&self, now: u64, cost: u64) -> Verdict {
        let who = self.current_at(now);
        match self.stripes.spend_uncounted(who, cost) {
            true => Verdict::Allowed,
            false => self.ask(who, now, cost),
        }
    }

    fn check_at(&self, now: u64, cost: u64) -> Decision {
        self.check_as(self.current_at(now), now, cost)
    }

    fn peek_at(&self, now: u64, cost: u64) -> Decision {
        self.peek_as(self.current_at(now), now, cost)
    }

    fn take_up_to_at(&self, now: u64, most: u64) -> u64 {
        self.take_up_to_as(self.current_at(now), now, most)
    }

    fn reserve_at(&self, now: u64, cost: u64, until: u64) -> Option<u64> {
        self.reserve_as(self.current_at(now), now, cost, until)
    }

    /// Charges the shared word. Threads keep their credit, which was charged to it before.
    fn charge_at(&self, now: u64, cost: u64) -> u64 {
        self.line.watch.note(now);
        cell::charge(&self.line.word, &self.gcra, now, cost)
    }

    fn books_ahead(&self) -> bool {
        self.gcra.books_ahead()
    }

    /// The credit of all threads may serve the first requests.
    fn last_of(&self, now: u64, costs: &mut dyn Iterator<Item = u64>, until: u64) -> u64 {
        let costs = &mut after_first(self.credit(), costs);
        last_by_steps(&self.gcra, self.line.word.load(Ordering::Relaxed), now, costs, until)
    }

    /// Makes the shared bucket fresh again. Threads keep their credit, which is within the bound.
    /// Admissions of other threads in the same instant may survive it.
    fn reset(&self) {
        // A swap like every other change of the word, because loom keeps the order of swaps.
        self.line.word.swap(0, Ordering::Relaxed);
    }

    fn watch(&self) -> &Watch {
        &self.line.watch
    }
}
