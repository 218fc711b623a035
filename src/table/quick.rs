//! The short way: a request for a key that is there, when nobody interferes.
//!
//! It is the first step of [`super::protocol`] with nothing around it. Whatever is out of the ordinary, from a newcomer to a
//! swap that fails, has charged nothing and goes the long way, from the beginning.
//!
//! What is passed here fits registers, and what is seldom needed is in functions of its own, which get words and return
//! words: a reference to something that is otherwise in registers would put it into memory for everybody.

use super::counts::shard;
use super::home::{find_in, find_in_two, tag};
use super::protocol::once;
use super::slot::{Bucket, Slot};
use super::versions::Version;
use super::{PolicyId, Table};
use crate::algorithm::{Algorithm, Rule, Step};
use crate::decision::Verdict;
use core::sync::atomic::Ordering;

/// A key on the short way.
#[derive(Clone, Copy)]
pub(super) struct Quick<'a> {
    pub(super) version: &'a Version,
    /// The key's first two buckets.
    pub(super) first: &'a Bucket,
    pub(super) second: &'a Bucket,
    /// The key word.
    pub(super) key: u64,
    /// What the spare bucket's number is made of; it is seldom needed.
    pub(super) hash: u64,
}

/// How far the short way went.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Course {
    /// To the end. The state after it is told beside.
    Decided(Verdict),
    /// Nothing has been charged: ask the long way. The key was in none of its buckets.
    Absent,
    /// Likewise; anything else.
    Unusual,
}

impl Table {
    /// What is current for a policy. `None` where it must be looked for, or where there is more to look at than slots.
    #[inline(always)]
    pub(super) fn hot(&self, policy: PolicyId) -> Option<&Version> {
        let header = self.header();
        // Acquire, as in `current` and `is_exempt`.
        let stamp = header.current.get(policy.0 as usize).map_or(0, |stamp| stamp.load(Ordering::Acquire));
        let version = self.versions.known(stamp)?;
        match header.exempt.load(Ordering::Acquire) {
            0 => Some(version),
            _ => None,
        }
    }

    /// Looks a key up, which is not of no bytes, as far as can be done before its lines are there.
    #[inline(always)]
    pub(super) fn quick<'a>(&'a self, version: &'a Version, key: &[u8]) -> Quick<'a> {
        self.quick_of(version, self.hash_bytes(key) ^ version.salt)
    }

    /// [`Table::quick`] of a key's hash under its policy.
    #[inline(always)]
    pub(super) fn quick_of<'a>(&'a self, version: &'a Version, hash: u64) -> Quick<'a> {
        let (first, second) = self.main_buckets(hash);
        Quick { version, first, second, key: version.key | tag(hash), hash }
    }

    /// Looks at the callers' clock.
    #[inline(always)]
    pub(super) fn look(&self, now: u64) {
        if let Some(shard) = shard(self.shards()) {
            shard.look(now);
        }
    }

    /// Decides on it; how, and the state after it.
    #[inline(always)]
    pub(super) fn decide(&self, quick: &Quick<'_>, now: u64, cost: u64) -> (Course, u64) {
        let slot = match find_in_two(quick.first, quick.second, quick.key) {
            Some(slot) => slot,
            None => match self.find_in_spare(quick.hash, quick.key) {
                Some(slot) => slot,
                None => return (Course::Absent, 0),
            },
        };
        // Of this key or, if the slot has changed hands meanwhile, of another: the swap tells, or a second look.
        let state = slot.state();
        match quick.version.plain.step(state, now, cost) {
            Some(Some(next)) => put(slot, quick.key, state, next, Verdict::Allowed),
            Some(None) => keep(slot, quick.key, state, Verdict::Denied),
            None => self.decide_other(quick.version, slot, quick.key, now, cost),
        }
    }

    /// What its slot holds, if it is there: as of one instant.
    #[inline(always)]
    pub(super) fn look_at(&self, quick: &Quick<'_>) -> Option<u64> {
        let slot = match find_in_two(quick.first, quick.second, quick.key) {
            Some(slot) => slot,
            None => self.find_in_spare(quick.hash, quick.key)?,
        };
        let pair = slot.pair();
        if pair.key == quick.key && quick.version.wide.is_none() {
            Some(pair.state)
        } else {
            None
        }
    }

    /// Charges `cost` and up to `most` more, if the key is there and nobody interferes: how much more, and until when that is good.
    pub(super) fn lease(&self, quick: &Quick<'_>, now: u64, cost: u64, most: u64) -> Option<(u64, u64)> {
        let Rule::Gcra(gcra) = &quick.version.rule else { return None };
        let slot = match find_in_two(quick.first, quick.second, quick.key) {
            Some(slot) => slot,
            None => self.find_in_spare(quick.hash, quick.key)?,
        };
        let (key, state) = (quick.key, slot.state());
        let lease = gcra.lease(state, now, cost, most)?;
        if !once(slot, key, state, Some(lease.next)) {
            return None;
        }
        self.look(now);
        Some((lease.credit, lease.until))
    }

    /// The same for every algorithm of one word and every case.
    #[inline(never)]
    fn decide_other(&self, version: &Version, slot: &Slot, key: u64, now: u64, cost: u64) -> (Course, u64) {
        if version.wide.is_some() {
            return (Course::Unusual, 0);
        }
        let state = slot.state();
        let Step { verdict, next } = version.rule.step(state, now, cost);
        match next {
            Some(next) => put(slot, key, state, next, verdict),
            None => keep(slot, key, state, verdict),
        }
    }

    /// One key in forty of a new table is in its spare bucket.
    #[inline(never)]
    fn find_in_spare(&self, hash: u64, key: u64) -> Option<&Slot> {
        find_in(self.spare(hash), key)
    }

    #[inline(always)]
    fn spare(&self, hash: u64) -> &Bucket {
        // SAFETY: a number below the number of buckets.
        unsafe { self.bucket(self.homes.spare_of(hash)) }
    }
}

#[inline(always)]
fn put(slot: &Slot, key: u64, state: u64, next: u64, verdict: Verdict) -> (Course, u64) {
    match once(slot, key, state, Some(next)) {
        true => (Course::Decided(verdict), next),
        false => (Course::Unusual, 0),
    }
}

#[inline(always)]
fn keep(slot: &Slot, key: u64, state: u64, verdict: Verdict) -> (Course, u64) {
    match once(slot, key, state, None) {
        true => (Course::Decided(verdict), state),
        false => (Course::Unusual, 0),
    }
}
