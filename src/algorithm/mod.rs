//! The pure layer: each algorithm as a function on one state word.
//!
//! This layer has no atomics, reads no clock and allocates nothing. `0` is the fresh state of every
//! algorithm. Each file documents its algorithm in full: the meaning of the word, the decision, and
//! the most that it admits in any window of one period.
//!
//! [`sliding_window`] and [`sliding_log`] need more than a word; their arithmetic is here too, and
//! the shared states that apply it are in [`crate::limiter`].

pub mod ban;
pub mod calendar;
pub mod closed;
pub mod curve;
pub mod fixed_window;
pub mod gcra;
pub mod interval;
pub mod level_refill;
pub mod pacer;
pub mod pair;
pub mod quota;
pub mod sliding_log;
pub mod sliding_window;
pub mod warm_up;
pub mod weighted_window;

mod facts;
mod range;
mod rule;
mod worst_case;

pub use rule::Rule;
pub use worst_case::worst_case;

use crate::decision::{Decision, Reason, Verdict};
use crate::units::NEVER;

/// A verdict, and the state to store if it changes. A refusal keeps the state, except where the
/// algorithm's documentation says that it counts refusals or starts at the first request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The verdict.
    pub verdict: Verdict,
    /// The state to store; `None` keeps the state, so that a refusal need not compare the two.
    pub next: Option<u64>,
}

impl Step {
    /// Admitted and charged.
    #[inline(always)]
    pub const fn allow(next: u64) -> Step {
        Step { verdict: Verdict::Allowed, next: Some(next) }
    }

    /// A cost of 0: allowed, and nothing charged.
    #[inline(always)]
    pub const fn ask() -> Step {
        Step { verdict: Verdict::Allowed, next: None }
    }

    /// Refused for now.
    #[inline(always)]
    pub const fn deny() -> Step {
        Step { verdict: Verdict::Denied, next: None }
    }

    /// Refused for now, with a new state to store.
    #[inline(always)]
    pub const fn deny_and(next: u64) -> Step {
        Step { verdict: Verdict::Denied, next: Some(next) }
    }

    /// Refused at every time.
    #[inline(always)]
    pub const fn never() -> Step {
        Step { verdict: Verdict::Never, next: None }
    }
}

/// An admission promised for a later time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// The state to store.
    pub next: u64,
    /// When the request may go ahead, in nanoseconds of the limiter's clock.
    pub at: u64,
}

/// An earlier charge, for a call that gives permits of it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charge {
    /// The time of the charge in nanoseconds: when it was admitted or, if it was booked ahead, when
    /// its permits may be used.
    pub at: u64,
    /// The permits of the charge.
    pub cost: u64,
}

/// Permits to give back of an earlier charge.
///
/// # What is safe
///
/// "Safe" means: in every interval of length t the charges minus the returned permits are at most
/// the policy's bound for t, however charges and returns overlap.
///
/// **Windows** (fixed and weighted windows, curve, interval anchored to the first request, quota):
/// it is safe to lower the count that holds the charge. Then each count is at least the sum of what
/// its charges kept. So the rule would also admit the kept charges by themselves, and their bound
/// is that of the rule without returns. The count that holds the charge must be certain: it is that
/// of the word's window if the charge was made in that window, and that of a quota in any case. In
/// a weighted window a charge of the window before may also lower the previous count. If the clock
/// was late and the charge was counted in the current window, that returns too little, because a
/// permit of the previous count weighs less at every instant.
///
/// **Token buckets**: let a charge of cost `c` be for the instant `d`, and let `h` be the latest
/// instant for which any request of this state has been admitted: the present, unless a request was
/// booked ahead. Then it is safe to return `c` minus the permits that the limit refilled from `d`
/// to `h`, and never more than the state owes.
///
/// To return all of `c` is not safe. Under `1/s burst 10` take 5 at 0 s and 7 at 2 s. If all 5 went
/// back at 2 s, a request for 5 could pass beside the 7: 12 permits at one instant, where the burst
/// is 10.
///
/// **The last booking, returned whole, was never made** ([`Algorithm::last_booking`]): that is safe
/// if no charge came after it. Every charge that still counts left a state of at most the present
/// state or `highest`. If a charge came after the booking, and the state is that which the booking
/// left, then a return has lowered the state in between, and has raised `highest` above it. So a
/// state that is not below `highest` shows that there was none.
///
/// The caller must read the present after the state, and again before each new attempt. With an
/// older present too many permits go back: those that the limit has refilled meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GiveBack {
    /// The charge.
    pub charge: Charge,
    /// The permits to give back, up to the charge's cost.
    pub permits: u64,
    /// Whether requests of this state may have been booked ahead.
    pub booked: bool,
    /// The highest state that an earlier give-back has lowered; 0 if there was none. It may be 0
    /// with `keeps_slot`, and without `booked`.
    pub highest: u64,
    /// Whether the state may not expire earlier, because it is in a slot of a table.
    pub keeps_slot: bool,
}

/// A state that got permits back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Returned {
    /// The state to store.
    pub next: u64,
    /// The whole permits that the state got back. It may have got a part of another.
    pub permits: u64,
}

/// The result of [`Algorithm::charge`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charged {
    /// The state to store; `None` keeps the state.
    pub next: Option<u64>,
    /// Permits of the cost that the state has no room for. They have not been charged.
    pub rest: u64,
}

impl Charged {
    /// Nothing of `cost` has been charged.
    #[inline]
    pub const fn none(cost: u64) -> Charged {
        Charged { next: None, rest: cost }
    }
}

/// An algorithm whose state is one word. Times are nanoseconds of one clock. `now` may go back,
/// which never admits more.
pub trait Algorithm: Copy + Send + Sync {
    /// The last time at which [`Algorithm::step`] admits a cost above 0, whatever the state: at
    /// most [`crate::units::LAST`].
    fn last_time(&self) -> u64;

    /// Decides on `cost` permits at `now`. A cost of 0 asks without charging.
    fn step(&self, state: u64, now: u64, cost: u64) -> Step;

    /// Permits that could be taken at `now`, one by one.
    fn available(&self, state: u64, now: u64) -> u64;

    /// The largest cost, if more permits than that may be there.
    fn largest(&self) -> u64 {
        u64::MAX
    }

    /// The earliest time from `now` on at which [`Algorithm::step`] admits `cost`, or [`NEVER`].
    fn admits_at(&self, state: u64, now: u64, cost: u64) -> u64;

    /// The earliest time from `now` on at which the state is as good as fresh, or [`NEVER`].
    fn fresh_at(&self, state: u64, now: u64) -> u64;

    /// The time, in nanoseconds, from which `state` is as good as fresh: [`Algorithm::fresh_at`]
    /// without a `now`. Tables use it to give the slot of an expired key to another key.
    ///
    /// - It depends on the policy and the state only. It is 0 for the fresh word 0, and for no
    ///   other state that a step or a reservation stores.
    /// - It never decreases: the `next` of a step, of a reservation or of a give-back that keeps
    ///   its slot expires no earlier than the state before it, whatever `now` is, also if `now`
    ///   goes back.
    /// - For the `next` of a step from the fresh word, admitted or refused, it is at least `now`.
    ///   The same holds for the `next` of an admission from any state that is not better than
    ///   fresh. An idle state is better than a fresh one if a fresh state holds fewer permits than
    ///   a full one (gcra with an `init` below its burst, with `borrow` or not; pacer with
    ///   `slack`). The `next` of such a state may expire before `now`.
    /// - It is never before `fresh_at(state, 0)`. For gcra and pacer it is at most 3 ns later, plus
    ///   one unit of the clock ([`crate::units::Grid`]) where a unit is a nanosecond or longer. For
    ///   the others it is equal. After [`Algorithm::give_back`] it is later, because it did not
    ///   fall with the state's debt.
    /// - It is [`NEVER`] if the state is as good as fresh only after the last time at which
    ///   anything is admitted (gcra, pacer: or at that time).
    fn expires_at(&self, state: u64) -> u64;

    /// A state, never 0, that has no permit left until `until` (in nanoseconds). A key that takes
    /// over another key's slot gets this state, and so inherits that key's debt. A key could also
    /// reach it by its own requests. Before `until` it never admits more than a fresh state, and
    /// from its [`Algorithm::expires_at`] on it is as good as one.
    ///
    /// It expires at or after `until`: for gcra, pacer and warm-up at most some nanoseconds (or
    /// units) later, for the others less than a period later, and never before the end of the first
    /// period. If no state can expire that late, the result expires at [`NEVER`] and admits
    /// nothing.
    fn owing(&self, until: u64) -> u64;

    /// Whether [`Algorithm::reserve`] works: the state can hold a debt beyond the present.
    fn books_ahead(&self) -> bool;

    /// Takes `cost` permits ahead of time, for the earliest instant at which they may be used.
    /// `None` if there is no such instant, or if the algorithm cannot book ahead
    /// ([`Algorithm::books_ahead`]).
    fn reserve(&self, state: u64, now: u64, cost: u64) -> Option<Reservation> {
        let _ = (state, now, cost);
        None
    }

    /// Gives back permits of an earlier charge, as many as is safe ([`GiveBack`]). `None`: no
    /// permit can be given back, and nothing changes.
    fn give_back(&self, state: u64, now: u64, back: &GiveBack) -> Option<Returned> {
        let _ = (state, now, back);
        None
    }

    /// The last charge of `state`, on the assumption that it was a booking ahead of the cost of
    /// `charge`: the instant at which it departs, and the state before it. If several states could
    /// have been before it, it is the one that admits least, and the instant is that of `charge`.
    /// `None` if no such booking can have led to `state`, or if another booking could depart in the
    /// same nanosecond.
    fn last_booking(&self, state: u64, charge: Charge) -> Option<Reservation> {
        let _ = (state, charge);
        None
    }

    /// Charges `cost` permits whether or not they are there, after the work, when its cost or its
    /// failure is known. The state goes into debt as far as the algorithm can hold one. The call
    /// returns the rest and does not charge it.
    ///
    /// - Token buckets (gcra, interval) hold a debt of one burst below empty: later requests wait
    ///   until it is paid.
    /// - A list: each bucket by itself. The rest is what one of them could not take.
    /// - Pacer: one largest cost more than a take could charge. Gcra with `borrow`: as much as the
    ///   word can hold.
    /// - Warm-up: up to the largest cost at once, unless the state already owes more than that
    ///   costs.
    /// - Windows, curves and quotas count up to their limit.
    /// - Level-dependent refill: as many permits as the lowest band refills in the time that an
    ///   empty bucket needs to become full.
    ///
    /// The next state keeps the contract of [`Algorithm::expires_at`], as that of a step does. A
    /// cost of 0, and a time after [`Algorithm::last_time`], charge nothing.
    fn charge(&self, state: u64, now: u64, cost: u64) -> Charged;

    /// The state that a caller that stores nothing passes to [`Algorithm::describe`]: `state`, from
    /// which the step was made. If refusals lead to a ban, it is the state after the refusal, so a
    /// peek shows when the ban would end.
    #[inline(always)]
    fn described(&self, step: Step, state: u64) -> u64 {
        let _ = step;
        state
    }

    /// Whether a refusal counts toward a ban. If so, a caller that may wait for permits peeks
    /// before it calls [`Algorithm::step`].
    fn counts_refusals(&self) -> bool {
        false
    }

    /// Whether a ban of `state` refuses requests at `now`.
    fn bans(&self, state: u64, now: u64) -> bool {
        let _ = (state, now);
        false
    }

    /// The nanoseconds, rounded up, in which the limit refills one permit. `None` if
    /// [`Algorithm::give_back`] never gives any back.
    fn refill(&self) -> Option<u64> {
        None
    }

    /// [`Algorithm::refill`] for keys of a table. `None` also if a word in a slot cannot take all
    /// unused permits back.
    fn refill_in_slots(&self) -> Option<u64> {
        self.refill()
    }

    /// The state that a reset stores in a key's slot, for an algorithm whose states never expire.
    /// It admits as much as a fresh state. `None`: states expire, and a reset makes the slot
    /// vacant.
    fn unused_in_slot(&self) -> Option<u64> {
        None
    }

    /// The full decision on a request that got `verdict` at `now` and left the state `state`.
    #[inline]
    fn describe(&self, verdict: Verdict, state: u64, now: u64, cost: u64) -> Decision {
        describe(self, verdict, state, now, cost)
    }
}

/// The step of a request for `cost` permits that passes only if `reserve` permits are left after
/// it. The cost and the reserve must be there, and only the cost is charged. `algorithm` must admit
/// every cost below one that it admits.
pub fn step_leaving(
    algorithm: &impl Algorithm,
    state: u64,
    now: u64,
    cost: u64,
    reserve: u64,
) -> Step {
    if cost == 0 {
        return Step::ask();
    }
    let both = algorithm.step(state, now, needed(cost, reserve));
    match both.verdict {
        Verdict::Allowed => algorithm.step(state, now, cost),
        Verdict::Denied | Verdict::Never => both,
    }
}

/// The permits that a request must find which leaves `reserve` permits.
pub(crate) fn needed(cost: u64, reserve: u64) -> u64 {
    match cost {
        0 => 0,
        _ => cost.saturating_add(reserve),
    }
}

/// The full decision on a request that [`step_leaving`] decided. `state` is the state after it.
pub fn describe_leaving(
    algorithm: &impl Algorithm,
    verdict: Verdict,
    state: u64,
    now: u64,
    cost: u64,
    reserve: u64,
) -> Decision {
    let decision = algorithm.describe(verdict, state, now, needed(cost, reserve));
    match verdict != Verdict::Allowed
        && algorithm.step(state, now, cost).verdict == Verdict::Allowed
    {
        true => decision.because(Reason::Reserve),
        false => decision,
    }
}

/// Whether a booking is the last charge of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BookingPlace {
    /// It is, and this is the state before it.
    Last(u64),
    /// Other charges came after it.
    Before,
    /// The state does not tell, or the booking is not in it.
    Unknown,
}

/// The place of the booking `back.charge` in `state`, which is in no slot. A booking whose
/// departure has come, or of which a part goes back, has none.
pub(crate) fn place(
    algorithm: &impl Algorithm,
    state: u64,
    now: u64,
    back: &GiveBack,
) -> BookingPlace {
    let Charge { at, cost } = back.charge;
    if !back.booked || at <= now || cost == 0 || back.permits < cost {
        return BookingPlace::Unknown;
    }
    match algorithm.last_booking(state, back.charge) {
        // A state below the highest one was lowered since, perhaps to that of this booking,
        // although other charges came after it.
        Some(last) if last.at == at && state >= back.highest => BookingPlace::Last(last.next),
        Some(last) if last.at > at => BookingPlace::Before,
        _ => BookingPlace::Unknown,
    }
}

/// The state after a refused booking, if it differs from `state`: a bucket with `init` begins to
/// fill at its first request.
pub(crate) fn begun(algorithm: &impl Algorithm, state: u64, now: u64, cost: u64) -> Option<u64> {
    if state != 0 || !algorithm.books_ahead() || algorithm.counts_refusals() {
        return None;
    }
    match algorithm.step(state, now, cost) {
        Step { verdict: Verdict::Denied, next } => next,
        _ => None,
    }
}

/// [`Algorithm::describe`]. It is out of line in the freestanding artefacts, to keep them small.
#[cfg_attr(feature = "small", inline(never))]
#[cfg_attr(not(feature = "small"), inline(always))]
pub(crate) fn describe_small<A: Algorithm>(
    algorithm: &A,
    verdict: Verdict,
    state: u64,
    now: u64,
    cost: u64,
) -> Decision {
    algorithm.describe(verdict, state, now, cost)
}

/// [`Algorithm::describe`], field by field.
#[inline]
fn describe(
    algorithm: &impl Algorithm,
    verdict: Verdict,
    state: u64,
    now: u64,
    cost: u64,
) -> Decision {
    let retry_after = match verdict {
        Verdict::Allowed => 0,
        Verdict::Denied => after(algorithm.admits_at(state, now, cost), now),
        Verdict::Never => NEVER,
    };
    Decision {
        verdict,
        reason: Reason::of(verdict),
        remaining: algorithm.available(state, now),
        retry_after,
        reset_after: after(algorithm.fresh_at(state, now), now),
        bound: 0,
    }
}

/// `at`, or [`NEVER`] if that is after `last`, the policy's last time.
#[inline]
pub(crate) const fn until(last: u64, at: u64) -> u64 {
    if at > last {
        NEVER
    } else {
        at
    }
}

/// The wait from `now` to `at`, in nanoseconds; [`NEVER`] stays [`NEVER`].
#[inline]
pub(crate) fn after(at: u64, now: u64) -> u64 {
    if at == NEVER {
        NEVER
    } else {
        at.saturating_sub(now)
    }
}

#[cfg(all(test, not(loom)))]
mod window_give_back_tests;
