//! Compiled versions of policies. Decisions read them instead of the shared records.
//!
//! A compiled version is in one of three places:
//!
//! - *Kept for all threads* ([`Versions`]): the first [`KEPT_MOST`] that a process compiles for a table. A request
//!   holds a plain reference to one and does not count it, so it lives until the table is closed. A policy that
//!   returns under the same version's number gets the version that was compiled for it before, with a new stamp.
//! - *Kept for one thread* ([`super::local`]): later versions. A thread has one place for the current version of each
//!   policy under which it decides, and one for a former version. A newer version replaces the one in its place.
//! - *On the stack* ([`Scratch`]): for one call, if the thread has no place or an interrupted call is using it.
//!
//! So a process keeps at most [`KEPT_MOST`] versions and one for each place, for any number of changes.

use super::encoding::{encode, Terms};
use super::local::{Local, Scratch};
use super::multi_word::MultiWord;
use super::records::{policy_of, version_of};
use super::{Policies, PolicyId, ROUNDS};
use crate::algorithm::closed::Closed;
use crate::algorithm::gcra::{Plain, TAT_MOST};
use crate::algorithm::{Algorithm, Rule, Step};
use crate::policy::Policy;
use crate::sync::{boxed, zeroed_value, AtomicU64, Ordering};
use crate::table::memory::error::{RequestError, TableError};
use crate::table::memory::layout::{Record, VERSIONS};
use crate::table::memory::mix::{fold, mix};
use crate::table::memory::slot::TAG_BITS;
use crate::table::memory::special::Special;
use alloc::boxed::Box;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicUsize};

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
    /// The nanoseconds of one permit's refill, for permits that a call gives back. `u64::MAX` if the algorithm takes
    /// none back.
    pub(crate) refill: u64,
    /// Whether the greater of two state words expires no sooner than the other.
    pub(crate) words_are_times: bool,
    /// The algorithm, if its state is more than one word.
    pub(crate) multi_word: Option<MultiWord>,
}

/// The versions that this process keeps for all its threads.
#[derive(Debug)]
pub(crate) struct Versions {
    /// For each number, the version that was used last.
    compiled: [AtomicPtr<Version>; VERSIONS],
    /// All kept versions by a hash of number and policy. The lists only grow, because other threads may use any
    /// version in them.
    made: [AtomicPtr<Node>; LISTS],
    /// The number of nodes that callers have reserved. At most [`KEPT_MOST`] exist.
    places: AtomicUsize,
}

#[derive(Debug)]
struct Node {
    version: Version,
    next: *mut Node,
}

// SAFETY: the pointers own `Version`s, which are plain data behind shared references until the drop.
unsafe impl Send for Versions {}
// SAFETY: as above; the pointers themselves are atomic.
unsafe impl Sync for Versions {}

/// The most versions that a process keeps for all its threads: 16 alternating policies under each of the 255 numbers.
pub(crate) const KEPT_MOST: usize = 4096;
/// The number of lists in [`Versions::made`].
const LISTS: usize = 1024;

impl Versions {
    /// No version yet. The value is 10 KiB, too much for the stack of a C caller's thread, so it is made where it
    /// stays. `None` without memory.
    pub(crate) fn new() -> Option<Box<Versions>> {
        // SAFETY: all fields are atomics of words, and zero bytes are a null pointer and 0.
        unsafe { zeroed_value() }
    }

    /// The version with `stamp`, if this process keeps it and has used no other version with the same number since.
    /// No version has stamp 0.
    #[inline(always)]
    pub(crate) fn known(&self, stamp: u64) -> Option<&Version> {
        // Acquire: `keep` writes the version before its pointer.
        let version = self.compiled.get(version_of(stamp))?.load(Ordering::Acquire);
        // SAFETY: null, or a version that only the drop of `self` frees.
        unsafe { version.as_ref() }.filter(|version| version.stamp.load(Ordering::Relaxed) == stamp)
    }

    /// Whether this process keeps no further version.
    fn is_full(&self) -> bool {
        // Relaxed: a thread that reads an older value only searches the kept versions once more.
        self.places.load(Ordering::Relaxed) >= KEPT_MOST
    }

    /// Compiles the version with `stamp` before the first request under it. [`TableError::NoMemory`], or
    /// [`TableError::Corrupt`] if the record is damaged.
    pub(crate) fn prepare(&self, records: &[Record; VERSIONS], stamp: u64) -> Result<(), TableError> {
        let (policy, terms) = read(records, stamp)?;
        self.keep(&policy, terms, stamp).map(|_| ())
    }

    /// Finds the version among the kept ones, or compiles and keeps it. [`TableError::Versions`] if the process keeps
    /// no more, [`TableError::NoMemory`], or [`TableError::Corrupt`] for a policy that does not compile.
    fn keep(&self, policy: &Policy, terms: Terms, stamp: u64) -> Result<&Version, TableError> {
        let number = version_of(stamp);
        let list = mix(fold(&encode(policy, terms)) ^ number as u64) as usize % LISTS;
        let (Some(place), Some(made)) = (self.compiled.get(number), self.made.get(list)) else {
            return Err(TableError::Corrupt);
        };
        if let Some(version) = made_before(made, stamp, policy, terms) {
            // Relaxed: the pointer is stored next with Release, so a thread that reads it reads this stamp or a later
            // one. A thread that wants another stamp comes here again.
            version.stamp.store(stamp, Ordering::Relaxed);
            place.store(ptr::from_ref(version).cast_mut(), Ordering::Release);
            // SAFETY: only the drop of `self` frees nodes, so the version lives as long as `self`.
            return Ok(unsafe { &*ptr::from_ref(version) });
        }
        // Relaxed: no other data depends on the number. The call reads it before it adds, so that the number stays
        // bounded.
        if self.is_full() || self.places.fetch_add(1, Ordering::Relaxed) >= KEPT_MOST {
            return Err(TableError::Versions);
        }
        let node = Version::of(policy, terms, stamp).map(|version| Node { version, next: ptr::null_mut() });
        let new = node.ok_or(TableError::Corrupt).and_then(|node| boxed(node).ok_or(TableError::NoMemory));
        let new = match new {
            Ok(new) => Box::into_raw(new),
            Err(error) => {
                self.places.fetch_sub(1, Ordering::Relaxed);
                return Err(error);
            }
        };
        let mut head = made.load(Ordering::Acquire);
        loop {
            // SAFETY: only this call has `new` before it is in the list.
            unsafe { ptr::addr_of_mut!((*new).next).write(head) };
            // Release: a thread that reads the pointer sees the node.
            match made.compare_exchange(head, new, Ordering::Release, Ordering::Acquire) {
                Ok(_) => break,
                Err(seen) => head = seen,
            }
        }
        // SAFETY: written above, and only the drop of `self` frees it.
        let version = unsafe { &(*new).version };
        place.store(ptr::from_ref(version).cast_mut(), Ordering::Release);
        Ok(version)
    }
}

/// A kept version with the same number, policy and [`Keep`], which was compiled for an earlier stamp. Only its stamp
/// differs, so threads that still use it decide alike.
fn made_before<'a>(made: &'a AtomicPtr<Node>, stamp: u64, policy: &Policy, terms: Terms) -> Option<&'a Version> {
    let mut at = made.load(Ordering::Acquire);
    for _ in 0..KEPT_MOST {
        // SAFETY: null, or a node of the list, which only the drop of its `Versions` frees.
        let node = unsafe { at.as_ref() }?;
        let version = &node.version;
        let same_number = version.key == (version_of(stamp) as u64) << TAG_BITS;
        if same_number && version.number == policy_of(stamp) && version.policy == *policy && version.terms == terms {
            return Some(version);
        }
        at = node.next;
    }
    None
}

impl Drop for Versions {
    fn drop(&mut self) {
        for made in &self.made {
            let mut node = made.load(Ordering::Relaxed);
            while !node.is_null() {
                // SAFETY: from Box::into_raw and in one list only. The drop has the only reference to `self`.
                let owned = unsafe { Box::from_raw(node) };
                node = owned.next;
            }
        }
    }
}

impl Version {
    /// The number that credit under this version is known by. Any change of an override makes it another, because a
    /// key that comes back to a version must not find the credit that it had before it left.
    #[inline(always)]
    pub(crate) fn credit_mark(&self, changes: u64) -> u64 {
        self.stamp.load(Ordering::Relaxed) ^ changes
    }

    /// Whether the version refuses all requests.
    pub(crate) fn is_closed(&self) -> bool {
        self.multi_word.is_none() && matches!(self.rule, Rule::Closed(_))
    }

    /// A request in the common case of a token bucket in a slot, inlined. `None` in all other cases.
    #[inline(always)]
    pub(crate) fn step_plain(&self, state: u64, now: u64, cost: u64) -> Option<Step> {
        match self.plain.step(state, now, cost)? {
            Some(next) => Some(Step::allow(next)),
            None if state <= TAT_MOST => Some(Step::deny()),
            None => None,
        }
    }

    /// Compiles the version with `stamp` of `policy`. `keep` says how debts are converted to it. `None` if the policy
    /// is invalid.
    pub(crate) fn of(policy: &Policy, terms: Terms, stamp: u64) -> Option<Version> {
        let multi_word = MultiWord::new(policy).ok()?;
        // A limit of 0 is closed under every algorithm.
        let rule =
            if multi_word.is_some() || policy.limit == 0 { Rule::Closed(Closed) } else { Rule::new(policy).ok()? };
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
        })
    }
}

impl Policies {
    /// The current version of a policy, if this process has compiled it for all threads and no key of the table is
    /// exempt or has a policy of its own. The second value is the word that counts those keys.
    #[inline(always)]
    pub(crate) fn current_compiled(&self, policy: PolicyId) -> Option<(&Version, Special)> {
        let stamp = self.memory.current_stamp(policy.0);
        let version = self.versions.known(stamp)?;
        // Acquire, as in `is_exempt`.
        let special = self.memory.header().special.read();
        match special.is_none() {
            true => Some((version, special)),
            false => None,
        }
    }

    /// The version with `stamp`. [`RequestError::Corrupt`] if its record is damaged or belongs to another version by now.
    #[inline(always)]
    pub(super) fn version<'s, 't: 's>(
        &'t self,
        stamp: u64,
        scratch: &'s mut Scratch<'t>,
    ) -> Result<&'s Version, RequestError> {
        match self.versions.known(stamp) {
            Some(version) => Ok(version),
            None => match self.find_or_compile(stamp, scratch)? {
                Some(version) => Ok(version),
                None => scratch.version().ok_or(RequestError::Corrupt),
            },
        }
    }

    /// Finds or compiles the current version of a policy. `stamp` is its current stamp as the caller has read it.
    /// `None`: `scratch` holds the version.
    #[cold]
    #[inline(never)]
    pub(super) fn find_or_compile_current<'t>(
        &'t self,
        policy: u32,
        hash: u64,
        stamp: u64,
        scratch: &mut Scratch<'t>,
    ) -> Result<Option<&'t Version>, RequestError> {
        match self.share_local(stamp, scratch) {
            true => Ok(None),
            false => self.compile_current(policy, hash, stamp, scratch),
        }
    }

    #[inline(never)]
    fn compile_current<'t>(
        &'t self,
        policy: u32,
        hash: u64,
        mut stamp: u64,
        scratch: &mut Scratch<'t>,
    ) -> Result<Option<&'t Version>, RequestError> {
        for _ in 0..ROUNDS {
            let compiled = self.compile(stamp, scratch);
            let seen = self.stamp_for(policy, hash);
            // If this thread has slept through a hundred changes, the record may belong to another version.
            if compiled.is_ok() || seen == stamp {
                return compiled;
            }
            stamp = seen;
        }
        Err(RequestError::Corrupt)
    }

    /// Finds or compiles the version with `stamp`. `None`: `scratch` holds it.
    #[cold]
    #[inline(never)]
    fn find_or_compile<'t>(
        &'t self,
        stamp: u64,
        scratch: &mut Scratch<'t>,
    ) -> Result<Option<&'t Version>, RequestError> {
        match scratch.holds(stamp) || self.share_local(stamp, scratch) {
            true => Ok(None),
            false => self.compile(stamp, scratch),
        }
    }

    /// Whether the calling thread's place has the version with `stamp`. If so, it makes `scratch` hold that version.
    #[inline(always)]
    fn share_local<'t>(&'t self, stamp: u64, scratch: &mut Scratch<'t>) -> bool {
        self.versions.is_full() && self.local(stamp).is_some_and(|local| scratch.share(local, stamp))
    }

    /// Compiles the version with `stamp`. `None`: `scratch` holds it.
    #[inline(never)]
    fn compile<'t>(&'t self, stamp: u64, scratch: &mut Scratch<'t>) -> Result<Option<&'t Version>, RequestError> {
        let (policy, terms) = read(self.memory.records(), stamp)?;
        match self.versions.keep(&policy, terms, stamp) {
            Ok(version) => return Ok(Some(version)),
            Err(TableError::Versions | TableError::NoMemory) => {}
            Err(_) => return Err(RequestError::Corrupt),
        }
        let version = Version::of(&policy, terms, stamp).ok_or(RequestError::Corrupt)?;
        scratch.put(version, self.local(stamp).filter(|_| self.versions.is_full()));
        Ok(None)
    }

    /// The calling thread's place for the version with `stamp`.
    fn local(&self, stamp: u64) -> Option<&Local> {
        let policy = policy_of(stamp);
        let current = self.memory.header().current.get(policy as usize)?;
        // Relaxed: it chooses one of two places, and either is right.
        self.locals.get(self.memory.thread_lines.number(policy)?, current.load(Ordering::Relaxed) == stamp)
    }
}

/// Makes a policy's hash of a key differ from other policies'.
pub(crate) fn salt(policy: u32) -> u64 {
    match policy {
        0 => 0,
        _ => mix(u64::from(policy)),
    }
}

/// Reads the policy of the version with `stamp`.
fn read(records: &[Record; VERSIONS], stamp: u64) -> Result<(Policy, Terms), RequestError> {
    records.get(version_of(stamp)).and_then(|record| record.read_kept(stamp)).ok_or(RequestError::Corrupt)
}

#[cfg(test)]
mod tests;
