//! Compiled versions of policies. Decisions read them instead of the shared records.
//!
//! A compiled version is in one of three places:
//!
//! - *Kept for all threads* ([`super::kept`]): the first [`KEPT_MOST`] that a process compiles for
//!   a table. A request holds a plain reference to one and does not count it, so it lives until the
//!   table is closed. A policy that returns under the same version's number gets the version that
//!   was compiled for it before, with a new stamp.
//! - *Kept for one thread* ([`super::local`]): later versions. A thread has one place for the
//!   current version of each policy under which it decides, and one for a former version. A newer
//!   version replaces the one in its place.
//! - *On the stack* ([`Scratch`](super::local::Scratch)): for one call, if the thread has no place
//!   or an interrupted call is using it.
//!
//! So a process keeps at most [`KEPT_MOST`] versions and one for each place, for any number of
//! changes.
//!
//! [`KEPT_MOST`]: super::kept::KEPT_MOST

use super::multi_word::MultiWord;
use super::record::{policy_of, version_of};
use super::terms::Terms;
use crate::algorithm::closed::Closed;
use crate::algorithm::gcra::{Plain, TAT_MOST};
use crate::algorithm::{Algorithm, Rule, Step};
use crate::policy::Policy;
use crate::sync::{AtomicU64, Ordering, Written};
use crate::table::memory::mix::mix;
use crate::table::memory::slot::TAG_BITS;

/// A compiled version of a policy.
#[derive(Debug)]
pub(crate) struct Version {
    /// The stamp of the last change that made this version current. The other fields never change.
    pub(crate) stamp: AtomicU64,
    /// The version's number, shifted to its bits in a key word.
    pub(crate) key: u64,
    /// The number of the policy.
    pub(crate) number: u32,
    /// Makes this policy's hash of a key differ from other policies'.
    pub(crate) salt: u64,
    pub(crate) policy: Policy,
    /// What keys of former versions keep under this one.
    pub(crate) terms: Terms,
    /// The algorithm, if its state is one word.
    pub(crate) rule: Rule,
    /// The common case of a token bucket, compiled for [`Version::step_plain`].
    pub(crate) plain: Plain,
    /// The nanoseconds of one permit's refill, for permits that a call gives back. `u64::MAX` if
    /// the algorithm takes none back.
    pub(crate) refill: u64,
    /// Whether the greater of two state words expires no sooner than the other.
    pub(crate) words_are_times: bool,
    /// The algorithm, if its state is more than one word.
    pub(crate) multi_word: Option<MultiWord>,
    /// Whether the table's slots have room for other policies ([`super::folded`]).
    pub(crate) has_room: bool,
    pub(super) written: Written,
}

impl Version {
    /// The number that credit under this version is known by. Any change of an override makes it
    /// another, because a key that comes back to a version must not find the credit that it had
    /// before it left.
    #[inline(always)]
    pub(crate) fn credit_mark(&self, changes: u64) -> u64 {
        self.stamp.load(Ordering::Relaxed) ^ changes
    }

    /// Whether the version is a window or log in a table with room.
    #[inline(always)]
    pub(crate) fn is_in_room(&self) -> bool {
        self.has_room && self.multi_word.is_some()
    }

    /// Whether the version refuses all requests.
    pub(crate) fn is_closed(&self) -> bool {
        self.multi_word.is_none() && matches!(self.rule, Rule::Closed(_))
    }

    /// A request in the common case of a token bucket in a slot, inlined. `None` in all other
    /// cases.
    #[inline(always)]
    pub(crate) fn step_plain(&self, state: u64, now: u64, cost: u64) -> Option<Step> {
        match self.plain.step(state, now, cost)? {
            Some(next) => Some(Step::allow(next)),
            None if state <= TAT_MOST => Some(Step::deny()),
            None => None,
        }
    }

    /// Compiles the version with `stamp` of `policy`. `keep` says how debts are converted to it.
    /// `None` if the policy is invalid.
    pub(crate) fn of(policy: &Policy, terms: Terms, stamp: u64, has_room: bool) -> Option<Version> {
        let multi_word = MultiWord::new(policy, has_room).ok()?;
        // A limit of 0 is closed under every algorithm.
        let rule = if multi_word.is_some() || policy.limit == 0 {
            Rule::Closed(Closed)
        } else {
            Rule::new(policy).ok()?
        };
        let plain = rule.plain().copied().unwrap_or(Plain::NONE);
        let rule = rule.in_slots();
        let number = policy_of(stamp);
        Some(Version {
            stamp: AtomicU64::new(stamp),
            key: (version_of(stamp) as u64) << TAG_BITS,
            number,
            salt: salt(number),
            policy: *policy,
            terms,
            rule,
            plain,
            refill: rule.refill_in_slots().unwrap_or(u64::MAX),
            words_are_times: rule.words_are_times(),
            multi_word,
            has_room,
            written: Written::new(),
        })
    }
}

/// Makes a policy's hash of a key differ from other policies'.
pub(crate) fn salt(policy: u32) -> u64 {
    match policy {
        0 => 0,
        _ => mix(u64::from(policy)),
    }
}
