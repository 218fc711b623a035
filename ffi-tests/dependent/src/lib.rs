//! Calls that work on every target: algorithms, policies, states and a clock of the dependent's
//! own.

#![no_std]

use tollbar::clock::Manual;
use tollbar::limiter::State;
use tollbar::prefix::Prefix;
use tollbar::{Limiter, Policy, Shared};

/// How many of `requests` pass at one instant. `None` if all of them do, or if the policy is
/// invalid.
pub fn passes(policy: &str, requests: u64) -> Option<u64> {
    let policy: Policy = policy.parse().ok()?;
    let limiter = Limiter::with(State::new(&policy).ok()?, Manual::new(1_000_000_000));
    let passed = (0..requests).filter(|_| limiter.check(1).is_allowed()).count() as u64;
    let left = limiter.shared().peek_at(1_000_000_000, 0).remaining;
    (passed < requests && left == 0).then_some(passed)
}

/// The bytes of the prefix of an address.
pub fn prefix(address: &str) -> Option<Prefix> {
    Prefix::parse(address.as_bytes(), 32, 64)
}
