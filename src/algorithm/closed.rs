//! A limit of 0, which refuses every request.
//!
//! The word counts nothing. It is the end of the debt that a key had when its policy became 0, in
//! nanoseconds, or the count of a quota: a word after the last time, which never expires.
//!
//! Most admitted in any window: 0.

use super::facts::{Charging, Facts};
use super::{until, Algorithm, Charged, Step};
use crate::policy::Policy;
use crate::units::{LAST, NEVER};

/// A limit of 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Closed;

impl Closed {
    /// The word of a key that has used `permits` of a quota.
    pub(super) fn of_count(permits: u64) -> u64 {
        (LAST + 1).saturating_add(permits)
    }

    /// The count of a quota in a word; `None` for a time.
    pub(super) fn count(state: u64) -> Option<u64> {
        match state.checked_sub(LAST + 1) {
            // A debt without an end, or a count that the word cannot hold: all permits are used.
            Some(_) if state == NEVER => Some(u64::MAX),
            count => count,
        }
    }
}

impl Algorithm for Closed {
    fn last_time(&self) -> u64 {
        LAST
    }

    fn step(&self, _state: u64, _now: u64, cost: u64) -> Step {
        if cost == 0 {
            Step::ask()
        } else {
            Step::deny()
        }
    }

    fn available(&self, _state: u64, _now: u64) -> u64 {
        0
    }

    fn admits_at(&self, _state: u64, now: u64, cost: u64) -> u64 {
        if cost == 0 {
            now
        } else {
            NEVER
        }
    }

    fn fresh_at(&self, _state: u64, now: u64) -> u64 {
        now
    }

    fn expires_at(&self, state: u64) -> u64 {
        until(LAST, state)
    }

    fn owing(&self, until: u64) -> u64 {
        self::until(LAST, until.max(1))
    }

    fn books_ahead(&self) -> bool {
        false
    }

    fn charge(&self, _state: u64, _now: u64, cost: u64) -> Charged {
        Charged::none(cost)
    }
}

impl Facts for Closed {
    fn keeps_reserves(&self) -> bool {
        true
    }

    fn words_are_times(&self) -> bool {
        false
    }

    fn debt(&self, _state: u64, _now: u64) -> u64 {
        0
    }

    fn charging(&self, _permits: u64, _now: u64) -> Charging {
        Charging::Step(0)
    }

    fn adopt(&self, _old: &Closed, state: u64) -> Option<u64> {
        Some(state)
    }

    fn most_in(&self, _policy: &Policy, _window: u64) -> u64 {
        0
    }
}
