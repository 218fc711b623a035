//! The short way: a request for a key that is there, when nobody interferes.
//!
//! It is the first step of [`super::protocol`] with nothing around it. Whatever is out of the ordinary, from a newcomer to a
//! swap that fails, has charged nothing and is told as [`Left`], from where [`super::ask`] goes on.
//!
//! What is passed here fits registers: a reference to something that is otherwise in registers would put it into memory for
//! everybody.

use super::compiled::Version;
use super::home::{find_in, find_in_two, tag, TAG};
use super::layout::SLOTS_A_BUCKET;
use super::protocol::once;
use super::slot::{Bucket, Slot};
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

/// Where a request that the short way has not decided goes on.
pub(super) enum Left<'a> {
    /// The key was in this slot.
    Here(&'a Slot),
    /// It was not in its first two buckets, of which this is the second.
    Elsewhere(&'a Bucket),
}

impl Table {
    /// What is current for a policy. `None` where it must be looked for, or where there is more to look at than slots.
    #[inline(always)]
    pub(super) fn hot(&self, policy: PolicyId) -> Option<&Version> {
        self.hot_with_stamp(policy).map(|(version, _)| version)
    }

    /// [`Table::hot`], and its stamp.
    #[inline(always)]
    pub(super) fn hot_with_stamp(&self, policy: PolicyId) -> Option<(&Version, u64)> {
        let header = self.header();
        // Acquire, as in `current` and `is_exempt`.
        let stamp = header.current.get(policy.0 as usize).map_or(0, |stamp| stamp.load(Ordering::Acquire));
        let version = self.versions.known(stamp)?;
        match header.exempt.load(Ordering::Acquire) {
            0 => Some((version, stamp)),
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
        Quick { version, first, second, key: version.key | tag(hash) }
    }

    /// Decides on it: how, and the state after it. If this is not the plain case nothing has been charged, and [`Table::left`] is
    /// to be asked.
    #[inline(always)]
    pub(super) fn decide<'a>(&self, quick: &Quick<'a>, now: u64, cost: u64) -> Result<(Verdict, u64), Left<'a>> {
        let Some(slot) = find_in_two(quick.first, quick.second, quick.key) else {
            return Err(Left::Elsewhere(quick.second));
        };
        // Of this key or, if the slot has changed hands meanwhile, of another: the swap tells, or a second look.
        let state = slot.state();
        let (verdict, next) = match quick.version.plain.step(state, now, cost) {
            Some(Some(next)) => (Verdict::Allowed, Some(next)),
            Some(None) => (Verdict::Denied, None),
            None => return Err(Left::Here(slot)),
        };
        match once(slot, quick.key, state, next) {
            true => Ok((verdict, next.unwrap_or(state))),
            false => Err(Left::Here(slot)),
        }
    }

    /// The same under every algorithm of one word, of a key that was in `slot` just now.
    pub(super) fn decide_in(&self, version: &Version, slot: &Slot, key: u64, now: u64, cost: u64) -> (Course, u64) {
        if version.wide.is_some() {
            return (Course::Unusual, 0);
        }
        let state = slot.state();
        let Step { verdict, next } = version.rule.step(state, now, cost);
        match once(slot, key, state, next) {
            true => (Course::Decided(verdict), next.unwrap_or(state)),
            false => (Course::Unusual, 0),
        }
    }

    /// The hash that has `key` for its key word and this second bucket. It is seldom needed: to keep it beside them would cost
    /// every request a register.
    #[inline(always)]
    pub(super) fn hash_with(&self, key: u64, second: &Bucket) -> u64 {
        self.homes.hash_in_second(key & TAG, self.number_of_bucket(second))
    }

    /// The same of a slot of any of its buckets.
    pub(super) fn hash_at(&self, key: u64, slot: &Slot) -> Option<u64> {
        self.homes.hash_of(key & TAG, self.number_of(slot) / SLOTS_A_BUCKET)
    }

    /// Its state, as of one instant: that of its slot or, if it is a newcomer that would get one nobody has ever had, a fresh one.
    #[inline(always)]
    pub(super) fn look_at<'a>(&'a self, quick: &Quick<'a>) -> Option<u64> {
        if quick.version.wide.is_some() {
            return None;
        }
        let slot = match find_in_two(quick.first, quick.second, quick.key) {
            Some(slot) => slot,
            None if self.is_new(quick.key, quick.second) => return Some(0),
            None => self.find_in_spare(quick.key, quick.second)?,
        };
        let pair = slot.pair();
        (pair.key == quick.key).then_some(pair.state)
    }

    /// Charges `cost` and up to `most` more, if the key is there and nobody interferes: how much more, and until when that is good.
    pub(super) fn lease<'a>(&'a self, quick: &Quick<'a>, now: u64, cost: u64, most: u64) -> Option<(u64, u64)> {
        let Rule::Gcra(gcra) = &quick.version.rule else { return None };
        let slot = self.find(quick)?;
        let (key, state) = (quick.key, slot.state());
        let lease = gcra.lease(state, now, cost, most)?;
        if !once(slot, key, state, Some(lease.next)) {
            return None;
        }
        self.look(now);
        Some((lease.credit, lease.until))
    }

    /// The slot that has its key word.
    #[inline(always)]
    fn find<'a>(&'a self, quick: &Quick<'a>) -> Option<&'a Slot> {
        match find_in_two(quick.first, quick.second, quick.key) {
            Some(slot) => Some(slot),
            None => self.find_in_spare(quick.key, quick.second),
        }
    }

    /// One key in forty of a new table is in its spare bucket.
    #[inline(never)]
    fn find_in_spare(&self, key: u64, second: &Bucket) -> Option<&Slot> {
        let spare = self.homes.spare_of(self.hash_with(key, second));
        // SAFETY: a number below the number of buckets.
        find_in(unsafe { self.bucket(spare) }, key)
    }
}
