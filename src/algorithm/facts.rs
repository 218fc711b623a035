//! What limiters and tables ask an algorithm besides its decisions: whether its refusals keep an
//! order, how its words compare, and how a key's word comes from one policy to another.

use super::Algorithm;
use crate::decision::Decision;
use crate::policy::{Policy, Rate};
use crate::units::{div_up, Grid};
use core::num::{NonZeroU128, NonZeroU64};

/// The facts of an algorithm whose state is one word.
///
/// An item without a body has no answer that would be right for most algorithms, so the compiler
/// names it for a new one. An item with a body is right for every algorithm that has nothing of the
/// kind, such as bans.
///
/// A word goes from one algorithm to another by two numbers: the permits that it lacks
/// ([`Facts::owed`], [`Facts::charging`]), or the time until which it owes
/// ([`Algorithm::expires_at`], [`Algorithm::owing`]). A word that stays with its algorithm may keep
/// more than a number ([`Facts::adopt`], [`Facts::convert`], [`Facts::carry`]).
pub(super) trait Facts: Algorithm {
    /// Whether a request may ask that permits are left after it ([`super::step_leaving`]). An
    /// algorithm that lends cannot: it may admit a cost and refuse a smaller one.
    fn keeps_reserves(&self) -> bool;

    /// Whether words that are at most [`TAT_MOST`](super::gcra::TAT_MOST) are times: of two of them
    /// the greater expires no sooner.
    fn words_are_times(&self) -> bool;

    /// The permits that a key must regain before it has none left and owes none, rounded up to
    /// whole permits; 0 for a key that owes nothing. A banned key answers 0, because its ban is
    /// converted by its time.
    fn debt(&self, state: u64, now: u64) -> u64;

    /// How a fresh state comes to lack `permits` at `now`, at most the burst. Token buckets,
    /// interval, curve and level-dependent refill may owe more.
    fn charging(&self, permits: u64, now: u64) -> Charging;

    /// `state`, which a key had under `old`, if the two policies count alike: they have windows of
    /// the same length and alignment, or refill as many permits at the same times. Otherwise
    /// `None`, and the caller keeps the time.
    fn adopt(&self, old: &Self, state: u64) -> Option<u64>;

    /// The most permits that one key gets in some half-open window of `window` ns, at least one, by
    /// requests that cost 1 and come at the worst times. `policy` is the one that was compiled.
    fn most_in(&self, policy: &Policy, window: u64) -> u64;

    /// The permits by which `state` falls short of a fresh one at `now`, rounded up, with its debt.
    /// `None`: they are those that are not available, and the debt.
    fn owed(&self, state: u64, now: u64) -> Option<u64> {
        let _ = (state, now);
        None
    }

    /// `state`, which a key had under `old`, with as many permits left at `now`, if that keeps more
    /// than whole permits do. `None`: the caller converts whole permits.
    fn convert(&self, old: &Self, state: u64, now: u64) -> Option<u64> {
        let _ = (old, state, now);
        None
    }

    /// `state`, which a key had under `old` at the time `there` of another clock, at the time
    /// `here`, if that keeps more than whole permits do. `None`: the caller converts whole permits.
    fn carry(&self, old: &Self, state: u64, there: u64, here: u64) -> Option<u64> {
        let _ = (old, state, there, here);
        None
    }

    /// `decision`, which left the state `state`, with what only this algorithm knows: that a ban
    /// refused, or which policy of a list.
    fn explained(&self, decision: Decision, state: u64, now: u64, cost: u64) -> Decision {
        let _ = (state, now, cost);
        decision
    }

    /// Makes the algorithm one for words of slots, whose TAT may have been lowered.
    fn enter_slots(&mut self) {}

    /// `state` in a slot that stays taken until `until`, at the time `now`. With `exact` the debt
    /// is kept to the unit, and otherwise the time to a 64th. `None` if no word says so.
    fn hold(&self, state: u64, until: u64, now: u64, exact: bool) -> Option<u64> {
        let _ = (state, until, now, exact);
        None
    }

    /// The time at which a bucket is full whose slot stays taken for longer.
    fn full_before_floor(&self, state: u64) -> Option<u64> {
        let _ = state;
        None
    }
}

/// The permits that a rate brings in `time` ns.
pub(super) fn refilled(limit: u64, period: u64, time: u64) -> u64 {
    let permits = (u128::from(limit) * u128::from(time)).checked_div(u128::from(period));
    permits.and_then(|permits| u64::try_from(permits).ok()).unwrap_or(u64::MAX)
}

/// The most permits of a bucket in some window of `window` ns, at least one: the burst at once, and
/// what the rate brings after that.
pub(super) fn bucket(grid: Option<&Grid>, rate: Rate, window: u64) -> u64 {
    match rate.burst {
        1 => one_at_a_time(grid, rate, window),
        burst => burst.saturating_add(refilled(rate.limit, rate.period, window - 1)),
    }
}

/// The most permits, in some window of `window` ns, of an algorithm that admits one at an instant
/// and counts from that instant. Requests come at whole nanoseconds, so what a permit takes beyond
/// whole nanoseconds is lost each time. Where `grid` rounds a clock reading down to a unit, a
/// permit comes early by that part of a unit, if the one before was as late.
pub(super) fn one_at_a_time(grid: Option<&Grid>, rate: Rate, window: u64) -> u64 {
    let time = u128::from(window - 1);
    let permit = grid.map_or(NonZeroU64::MIN, Grid::per_permit);
    // A nanosecond has `units / period` units.
    let units = u128::from(rate.limit).saturating_mul(u128::from(permit.get()));
    let (Some(units), Some(period)) =
        (NonZeroU128::new(units), NonZeroU128::new(u128::from(rate.period)))
    else {
        return 1;
    };
    let wanted = period.get().saturating_mul(u128::from(permit.get()));
    // The part of a unit, in `period`ths, by which the clock is rounded.
    let rounded = |at: u128| if grid.is_some() { at % period } else { 0 };
    let first = (0..64).map(|ns| rounded(units.get().saturating_mul(ns))).max().unwrap_or_default();
    let (mut part, mut elapsed, mut permits_in) = (first, 0, ROUNDED);
    for permits in 1..=ROUNDED {
        let wait = div_up(wanted.saturating_sub(part), units);
        elapsed += wait;
        if elapsed > time {
            return permits;
        }
        part = rounded(part.saturating_add(units.get().saturating_mul(wait)));
        if part == first {
            permits_in = permits;
            break;
        }
    }
    let each = NonZeroU128::new(elapsed).unwrap_or(NonZeroU128::MIN);
    let come = time.saturating_mul(u128::from(permits_in)) / each;
    u64::try_from(come).unwrap_or(u64::MAX).saturating_add(1)
}

/// So many permits show how long one takes on average, to a part of a nanosecond in 100,000.
const ROUNDED: u64 = 100_000;

/// The most multiples of `period` that some time of `time` ns has after its first instant: the
/// first may come at once.
pub(super) fn edges(period: u64, time: u64) -> u64 {
    match time {
        0 => 0,
        _ => (time - 1).checked_div(period).map_or(0, |whole| whole.saturating_add(1)),
    }
}

/// How a state comes to lack permits ([`Facts::charging`]).
pub(super) enum Charging {
    /// This is the state.
    To(u64),
    /// By one step of a fresh state, for at most so many permits.
    Step(u64),
}

impl Charging {
    /// By a charge of a fresh state without a check.
    pub(super) fn unchecked(algorithm: &impl Algorithm, permits: u64, now: u64) -> Charging {
        Charging::To(algorithm.charge(0, now, permits).next.unwrap_or(0))
    }
}
