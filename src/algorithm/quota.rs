//! Lifetime quotas: a count that no time refills.
//!
//! The word is 0 for a fresh state, and otherwise the permits used, plus 1. So a state that got all
//! its permits back (the word 1) is not the fresh word, and keeps its slot of a table.
//!
//! A word other than 0 never expires: [`Algorithm::expires_at`] is [`NEVER`]. So a key stays in its
//! slot of a table, also after a reset, which makes the word 1. Only a full table under
//! `evict-nearest` or `inherit` gives the slot to another key, and forgets the former one.
//!
//! Most admitted in any window of any length, until a reset: `limit`.

use super::facts::{Charging, Facts};
use super::{Algorithm, Charged, GiveBack, Returned, Step};
use crate::policy::{Kind, Policy, PolicyError};
use crate::units::{LAST, NEVER};

/// A compiled lifetime quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Quota {
    limit: u64,
}

impl Quota {
    /// Compiles a policy of kind [`Kind::Quota`] whose limit is not 0.
    ///
    /// # Errors
    /// [`PolicyError::OptionMismatch`] for any other policy, [`PolicyError::RateTooHigh`] if the
    /// word cannot hold the count, and those of [`Policy::validate`].
    pub fn new(policy: &Policy) -> Result<Quota, PolicyError> {
        policy.validate()?;
        match policy.limit {
            0 => Err(PolicyError::OptionMismatch),
            _ if policy.kind != Kind::Quota => Err(PolicyError::OptionMismatch),
            // The word is one more than the permits used.
            u64::MAX => Err(PolicyError::RateTooHigh),
            limit => Ok(Quota { limit }),
        }
    }

    /// The word of so many permits used, up to the limit.
    pub(super) fn used(&self, permits: u64) -> u64 {
        word(permits.min(self.limit))
    }

    /// The permits used in a word.
    pub(super) fn used_of(&self, state: u64) -> u64 {
        used(state).min(self.limit)
    }

    /// The permits left at `now`.
    fn left(&self, state: u64, now: u64) -> u64 {
        match now <= LAST {
            true => self.limit.saturating_sub(used(state)),
            false => 0,
        }
    }
}

/// The permits used.
const fn used(state: u64) -> u64 {
    state.saturating_sub(1)
}

/// The word of so many permits used.
const fn word(used: u64) -> u64 {
    used.saturating_add(1)
}

impl Algorithm for Quota {
    fn last_time(&self) -> u64 {
        LAST
    }

    fn books_ahead(&self) -> bool {
        false
    }

    fn step(&self, state: u64, now: u64, cost: u64) -> Step {
        if cost == 0 {
            return Step::ask();
        }
        if cost > self.limit {
            return Step::never();
        }
        match cost <= self.left(state, now) {
            true => Step::allow(word(used(state).saturating_add(cost))),
            false => Step::deny(),
        }
    }

    fn available(&self, state: u64, now: u64) -> u64 {
        self.left(state, now)
    }

    fn admits_at(&self, state: u64, now: u64, cost: u64) -> u64 {
        match cost <= self.left(state, now) {
            true => now,
            false => NEVER,
        }
    }

    fn fresh_at(&self, state: u64, now: u64) -> u64 {
        match used(state) {
            0 => now,
            _ => NEVER,
        }
    }

    fn expires_at(&self, state: u64) -> u64 {
        match state {
            0 => 0,
            _ => NEVER,
        }
    }

    /// No permit is used.
    fn unused_in_slot(&self) -> Option<u64> {
        Some(word(0))
    }

    /// All permits are used: no state expires before [`NEVER`].
    fn owing(&self, _until: u64) -> u64 {
        word(self.limit)
    }

    fn charge(&self, state: u64, now: u64, cost: u64) -> Charged {
        match cost.min(self.left(state, now)) {
            0 => Charged::none(cost),
            permits => Charged {
                next: Some(word(used(state).saturating_add(permits))),
                rest: cost - permits,
            },
        }
    }

    /// The longest time below [`NEVER`], because the quota refills no permit. [`NEVER`] means that
    /// an algorithm gives nothing back.
    fn refill(&self) -> Option<u64> {
        Some(NEVER - 1)
    }

    /// Lowers the count. The count holds every charge since the state was fresh, so it is at least
    /// the sum of the permits that these charges still keep.
    fn give_back(&self, state: u64, now: u64, back: &GiveBack) -> Option<Returned> {
        match back.permits.min(back.charge.cost).min(used(state)) {
            0 => None,
            _ if now > LAST => None,
            permits => Some(Returned { next: state.saturating_sub(permits), permits }),
        }
    }
}

impl Facts for Quota {
    fn keeps_reserves(&self) -> bool {
        true
    }

    fn words_are_times(&self) -> bool {
        false
    }

    fn debt(&self, _state: u64, _now: u64) -> u64 {
        0
    }

    fn charging(&self, _permits: u64, now: u64) -> Charging {
        Charging::Step(self.available(0, now))
    }

    /// The permits used stay used, up to this limit.
    fn adopt(&self, old: &Quota, state: u64) -> Option<u64> {
        Some(self.used(old.used_of(state)))
    }

    fn most_in(&self, policy: &Policy, _window: u64) -> u64 {
        policy.limit
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
