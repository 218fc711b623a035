//! The short way: a request for a key that is there, when nobody interferes.
//!
//! It is the first step of [`super::protocol`] with nothing around it. Whatever is out of the ordinary, from a newcomer to a
//! swap that fails, has charged nothing and goes the long way, from the beginning.

use super::counts::shard;
use super::home::{find_with_state, holds, Found, TAG};
use super::slot::{Bucket, Pair};
use super::versions::Version;
use super::{PolicyId, Table};
use crate::algorithm::{Algorithm, Step};
use crate::decision::Verdict;
use core::sync::atomic::Ordering;

/// A key on the short way.
#[derive(Clone, Copy)]
pub(super) struct Quick<'a> {
    pub(super) version: &'a Version,
    pub(super) first: &'a Bucket,
    pub(super) second: &'a Bucket,
    /// The key word.
    pub(super) key: u64,
    /// What the spare bucket's number is made of; it is seldom needed.
    hash: u64,
}

impl Quick<'_> {
    #[inline(always)]
    pub(super) fn is_in_first(&self) -> bool {
        holds(self.first, self.key)
    }
}

/// Nothing has been charged: ask the long way.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Long {
    /// The key was in none of its buckets.
    Absent,
    /// Anything else.
    Unusual,
}

impl Table {
    /// Looks a key up as far as can be done before its lines are there. `Err` where there is anything to look at beside.
    #[inline(always)]
    pub(super) fn quick(&self, policy: PolicyId, key: &[u8]) -> Result<Quick<'_>, Long> {
        let header = self.header();
        // Acquire, as in `current` and `is_exempt`.
        let stamp = header.current.get(policy.0 as usize).map_or(0, |stamp| stamp.load(Ordering::Acquire));
        let version = self.versions.known(stamp).ok_or(Long::Unusual)?;
        if key.is_empty() || version.wide.is_some() || header.exempt.load(Ordering::Acquire) != 0 {
            return Err(Long::Unusual);
        }
        let hash = self.hash_bytes(key) ^ version.salt;
        let (first, second) = self.homes.main_of(hash);
        // SAFETY: both are numbers below the number of buckets.
        let (first, second) = unsafe { (self.bucket(first), self.bucket(second)) };
        Ok(Quick { version, first, second, key: version.key | hash & TAG, hash })
    }

    /// One key in forty is in its spare bucket.
    #[inline(never)]
    fn find_in_spare<'t>(&'t self, quick: &Quick<'t>) -> Option<Found<'t>> {
        find_with_state(self.spare(quick), quick.key)
    }

    #[inline(always)]
    pub(super) fn spare(&self, quick: &Quick<'_>) -> &Bucket {
        // SAFETY: a number below the number of buckets.
        unsafe { self.bucket(self.homes.spare_of(quick.hash)) }
    }

    /// Looks at the callers' clock.
    #[inline(always)]
    pub(super) fn look(&self, now: u64) {
        if let Some(shard) = shard(self.shards()) {
            shard.look(now);
        }
    }

    /// Decides on it; returns the verdict and the state after it.
    #[inline(always)]
    pub(super) fn decide(&self, quick: &Quick<'_>, now: u64, cost: u64) -> Result<(Verdict, u64), Long> {
        let found = match find_with_state(quick.first, quick.key) {
            Some(found) => found,
            None => match find_with_state(quick.second, quick.key) {
                Some(found) => found,
                None => self.find_in_spare(quick).ok_or(Long::Absent)?,
            },
        };
        let Found { slot, state } = found;
        let old = Pair { key: quick.key, state };
        let Step { verdict, next } = quick.version.rule.step(state, now, cost);
        match next {
            Some(next) => match slot.swap(old, Pair { key: quick.key, state: next }) {
                Ok(()) => Ok((verdict, next)),
                Err(_) => Err(Long::Unusual),
            },
            // A refusal writes nothing, so nothing has told yet whether the state is this key's.
            None if slot.pair() == old => Ok((verdict, state)),
            None => Err(Long::Unusual),
        }
    }
}
