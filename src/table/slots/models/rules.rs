//! The models' rules, which are simpler than the algorithms, and the versions of policies that have
//! them.

use crate::algorithm::{Returned, Step};
use crate::table::memory::slot::{SlotPair, TAG, TAG_BITS};

/// A version's rule. A state of 0 is fresh.
#[derive(Clone, Copy)]
pub(super) enum Rule {
    /// A bucket of `burst` permits that gains one each `permit` ns. The state is the time at which
    /// it is full, in units of 1/`unit` ns.
    Refill { unit: u64, burst: u64, permit: u64 },
    /// A bucket that takes permits back, and so keeps the slot's time beside its own. The state is
    /// the time at which the bucket is full and, above it, the slot's time if that is later,
    /// otherwise 0.
    Lent { burst: u64, permit: u64 },
    /// `limit` permits in each 100 ns. The state is the window's end and the number of permits
    /// taken in it. So different states may expire at the same time, and a slot may hold the same
    /// state twice.
    Window { limit: u64 },
}

pub(super) const PERMIT: u64 = 10;
pub(super) const FAST: u64 = 2;
pub(super) const PERIOD: u64 = 100;
/// The factor of a window's end in its state, which is above every count; and `unit` of the
/// versions with states finer than a nanosecond.
pub(super) const FINE: u64 = 16;
pub(super) const SLOW: u64 = 100;
/// The bits of a time in a state of [`Rule::Lent`].
const TIME_BITS: u32 = 20;

/// The policy that a key is limited by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// Two permits in version 1. Version 2 has states in other units, version 3 has a burst of
    /// three, and version 6 refills five times as fast. Version 12 is version 1 again.
    Changing,
    /// Two permits.
    Fixed,
    /// Two permits in a window.
    Window,
    /// Three permits that may go back. Version 8 refills ten times as slowly as version 7.
    Lent,
    /// As `Lent`, and keys keep their slots when the policy changes. Version 10 refills five times
    /// as fast as version 9, version 11 ten times as slowly.
    Staying,
}

/// The policy of a version, and its rule.
pub(super) fn version(number: u64) -> (By, Rule) {
    match number {
        1 => (By::Changing, Rule::Refill { unit: 1, burst: 2, permit: PERMIT }),
        2 => (By::Changing, Rule::Refill { unit: FINE, burst: 2, permit: PERMIT }),
        3 => (By::Changing, Rule::Refill { unit: 1, burst: 3, permit: PERMIT }),
        4 => (By::Fixed, Rule::Refill { unit: FINE, burst: 2, permit: PERMIT }),
        5 => (By::Window, Rule::Window { limit: 2 }),
        6 => (By::Changing, Rule::Refill { unit: 1, burst: 2, permit: FAST }),
        7 => (By::Lent, Rule::Lent { burst: 3, permit: PERMIT }),
        8 => (By::Lent, Rule::Lent { burst: 3, permit: SLOW }),
        9 => (By::Staying, Rule::Lent { burst: 3, permit: PERMIT }),
        10 => (By::Staying, Rule::Lent { burst: 3, permit: FAST }),
        11 => (By::Staying, Rule::Lent { burst: 3, permit: SLOW }),
        12 => (By::Changing, Rule::Refill { unit: 1, burst: 2, permit: PERMIT }),
        _ => panic!("a key word of no version: {number}"),
    }
}

pub(super) fn named(key: u64) -> (By, Rule) {
    version(key >> TAG_BITS)
}

impl Rule {
    /// The least difference of two states that expire at different times. `None` if the states are
    /// not times.
    pub(super) fn gap(self) -> Option<u64> {
        match self {
            Rule::Refill { unit, .. } => Some(unit),
            Rule::Window { .. } | Rule::Lent { .. } => None,
        }
    }

    pub(super) fn step(self, state: u64, now: u64, cost: u64) -> Step {
        if cost == 0 {
            return Step::ask();
        }
        let (next, allowed) = match self {
            Rule::Refill { unit, burst, permit } => {
                let next = state.max(now * unit) + cost * permit * unit;
                (next, next <= (now + burst * permit) * unit)
            }
            Rule::Lent { burst, permit } => {
                let next = full_at(state).max(now) + cost * permit;
                (lent(next, self.expires_at(state)), next <= now + burst * permit)
            }
            Rule::Window { limit } => {
                let end = (now / PERIOD + 1) * PERIOD;
                let state = if state / FINE < end { end * FINE } else { state };
                (state + cost, state % FINE + cost <= limit)
            }
        };
        match allowed {
            true => Step::allow(next),
            false => Step::deny(),
        }
    }

    pub(super) fn expires_at(self, state: u64) -> u64 {
        match self {
            Rule::Refill { unit, .. } => state.div_ceil(unit),
            Rule::Lent { .. } => full_at(state).max(state >> TIME_BITS),
            Rule::Window { .. } => state / FINE,
        }
    }

    /// The state after up to `permits` of a charge of `cost` at `at` went back at `now`, and the
    /// number of whole permits that went back: those of [`GiveBack`](crate::algorithm::GiveBack)
    /// without bookings.
    pub(super) fn lowered(
        self,
        state: u64,
        now: u64,
        (at, cost): (u64, u64),
        permits: u64,
    ) -> Option<Returned> {
        let Rule::Lent { permit, .. } = self else { return None };
        let kept = (cost * permit).saturating_sub(now - at);
        let units = (permits * permit).min(kept).min(full_at(state).saturating_sub(now));
        let next = lent(full_at(state) - units, self.expires_at(state));
        (units != 0).then(|| Returned { next, permits: units / permit })
    }

    pub(super) fn owing(self, until: u64) -> u64 {
        match self {
            Rule::Refill { unit, .. } => until * unit,
            Rule::Lent { .. } => until,
            Rule::Window { limit } => until.next_multiple_of(PERIOD) * FINE + limit,
        }
    }
}

/// The time at which a bucket of [`Rule::Lent`] is full.
pub(super) fn full_at(state: u64) -> u64 {
    state & ((1 << TIME_BITS) - 1)
}

/// The state of a bucket of [`Rule::Lent`] that is full at `full`, in a slot that is taken until
/// `until` or longer.
pub(super) fn lent(full: u64, until: u64) -> u64 {
    let until = if until > full { until } else { 0 };
    until << TIME_BITS | full
}

pub(super) fn expires(pair: SlotPair) -> u64 {
    match pair.is_vacant() {
        true => pair.state,
        false => named(pair.key).1.expires_at(pair.state),
    }
}

/// A key that comes under version 6 or 8 keeps the number of permits that it lacks, and so owes for
/// a shorter or longer time. Under the other versions, which have one rate, it keeps the time.
pub(super) fn converted(key: u64, pair: SlotPair, now: u64) -> u64 {
    match named(key).1 {
        Rule::Lent { permit, .. } => match named(pair.key).1 {
            Rule::Lent { permit: old, .. } => {
                match full_at(pair.state).saturating_sub(now).div_ceil(old) {
                    0 => 0,
                    lacking => now + lacking * permit,
                }
            }
            _ => adopted(key, pair),
        },
        Rule::Refill { permit: FAST, .. } => now + (expires(pair) - now).div_ceil(PERMIT) * FAST,
        _ => adopted(key, pair),
    }
}

/// The state of a key that keeps its slot until `until`, though it owes less.
pub(super) fn held(pair: SlotPair, until: u64, now: u64) -> Option<u64> {
    match named(pair.key) {
        (By::Staying, _) => Some(lent(full_at(pair.state).max(now), until)),
        _ => None,
    }
}

/// The state of `pair` under the version of `key`, which owes until the same time.
pub(super) fn adopted(key: u64, pair: SlotPair) -> u64 {
    named(key).1.owing(expires(pair))
}

/// Whether two key words belong to the same key.
pub(super) fn related(one: u64, other: u64) -> bool {
    let has_version = |key: u64| key >> TAG_BITS != 0;
    has_version(one)
        && has_version(other)
        && one & TAG == other & TAG
        && named(one).0 == named(other).0
}
