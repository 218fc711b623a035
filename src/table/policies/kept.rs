//! The compiled versions of policies that a process keeps for all its threads
//! ([`super::compiled`]).

use super::compiled::Version;
use super::encoding::encode;
use super::record::{policy_of, version_of};
use super::terms::Terms;
use crate::policy::Policy;
#[cfg(not(loom))]
use crate::sync::zeroed_value;
use crate::sync::{boxed, AtomicPtr, Ordering};
use crate::table::memory::error::{RequestError, TableError};
use crate::table::memory::layout::{Record, VERSIONS};
use crate::table::memory::mix::{fold, mix};
use crate::table::memory::slot::TAG_BITS;
use alloc::boxed::Box;
use core::ptr;
use core::sync::atomic::AtomicUsize;

/// The versions that this process keeps for all its threads.
#[derive(Debug)]
pub(crate) struct Versions {
    /// For each number, the version that was used last.
    compiled: [AtomicPtr<Version>; VERSIONS],
    /// All kept versions by a hash of number and policy. The lists only grow, because other threads
    /// may use any version in them.
    made: [AtomicPtr<KeptVersion>; LISTS],
    /// The number of nodes that callers have reserved. At most [`KEPT_MOST`] exist.
    places: AtomicUsize,
    /// Whether the table's slots have room: 1 or 0.
    has_room: AtomicUsize,
}

#[derive(Debug)]
struct KeptVersion {
    version: Version,
    next: *mut KeptVersion,
}

// SAFETY: the pointers own `Version`s, which are plain data behind shared references until the
// drop.
unsafe impl Send for Versions {}
// SAFETY: as above; the pointers themselves are atomic.
unsafe impl Sync for Versions {}

/// The most versions that a process keeps for all its threads: 16 alternating policies under each
/// of the 255 numbers.
pub(crate) const KEPT_MOST: usize = 4096;
/// The number of lists in [`Versions::made`].
const LISTS: usize = if cfg!(loom) { 1 } else { 1024 };

impl Versions {
    /// No version yet. The value is 10 KiB, too much for the stack of a C caller's thread, so it is
    /// made where it stays. `None` without memory.
    #[cfg(not(loom))]
    pub(crate) fn new(has_room: bool) -> Option<Box<Versions>> {
        // SAFETY: all fields are atomics of words, and zero bytes are a null pointer and 0.
        let versions: Box<Versions> = unsafe { zeroed_value() }?;
        versions.has_room.store(usize::from(has_room), Ordering::Relaxed);
        Some(versions)
    }

    /// No version yet. Loom's atomics cannot be made from zero bytes.
    #[cfg(loom)]
    pub(crate) fn new(has_room: bool) -> Option<Box<Versions>> {
        Some(Box::new(Versions {
            compiled: core::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())),
            made: core::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())),
            places: AtomicUsize::new(0),
            has_room: AtomicUsize::new(usize::from(has_room)),
        }))
    }

    /// Compiles the version with `stamp` of `policy` for this table.
    pub(super) fn compile(&self, policy: &Policy, terms: Terms, stamp: u64) -> Option<Version> {
        // Relaxed: written before any thread shares it.
        Version::of(policy, terms, stamp, self.has_room.load(Ordering::Relaxed) != 0)
    }

    /// The version with `stamp`, if this process keeps it and has used no other version with the
    /// same number since. No version has stamp 0.
    #[inline(always)]
    pub(crate) fn known(&self, stamp: u64) -> Option<&Version> {
        // Acquire: `keep` writes the version before its pointer.
        let version = self.compiled.get(version_of(stamp))?.load(Ordering::Acquire);
        // SAFETY: null, or a version that only the drop of `self` frees.
        unsafe { version.as_ref() }.filter(|version| {
            version.written.is_read();
            version.stamp.load(Ordering::Relaxed) == stamp
        })
    }

    /// Whether this process keeps no further version.
    pub(super) fn is_full(&self) -> bool {
        // Relaxed: a thread that reads an older value only searches the kept versions once more.
        self.places.load(Ordering::Relaxed) >= KEPT_MOST
    }

    /// Compiles the version with `stamp` before the first request under it.
    /// [`TableError::NoMemory`], or [`TableError::Corrupt`] if the record is damaged.
    pub(crate) fn prepare(
        &self,
        records: &[Record; VERSIONS],
        stamp: u64,
    ) -> Result<(), TableError> {
        let (policy, terms) = read(records, stamp)?;
        self.keep(&policy, terms, stamp).map(|_| ())
    }

    /// Finds the version among the kept ones, or compiles and keeps it. [`TableError::Versions`] if
    /// the process keeps no more, [`TableError::NoMemory`], or [`TableError::Corrupt`] for a policy
    /// that does not compile.
    #[cfg_attr(loom, allow(clippy::modulo_one))] // a model has one list
    pub(super) fn keep(
        &self,
        policy: &Policy,
        terms: Terms,
        stamp: u64,
    ) -> Result<&Version, TableError> {
        let number = version_of(stamp);
        let list = mix(fold(&encode(policy, terms)) ^ number as u64) as usize % LISTS;
        let (Some(place), Some(made)) = (self.compiled.get(number), self.made.get(list)) else {
            return Err(TableError::Corrupt);
        };
        if let Some(version) = made_before(made, stamp, policy, terms) {
            // Relaxed: the pointer is stored next with Release, so a thread that reads it reads
            // this stamp or a later one. A thread that wants another stamp comes here again. No
            // model notices a weaker Release, which takes three threads: two that make the version
            // and store it again, and one that reads it.
            version.stamp.store(stamp, Ordering::Relaxed);
            place.store(ptr::from_ref(version).cast_mut(), Ordering::Release);
            // SAFETY: only the drop of `self` frees nodes, so the version lives as long as `self`.
            return Ok(unsafe { &*ptr::from_ref(version) });
        }
        // Relaxed: no other data depends on the number. The call reads it before it adds, so that
        // the number stays bounded.
        if self.is_full() || self.places.fetch_add(1, Ordering::Relaxed) >= KEPT_MOST {
            return Err(TableError::Versions);
        }
        let node = self
            .compile(policy, terms, stamp)
            .map(|version| KeptVersion { version, next: ptr::null_mut() });
        let new = node
            .ok_or(TableError::Corrupt)
            .and_then(|node| boxed(node).ok_or(TableError::NoMemory));
        let new = match new {
            Ok(new) => Box::into_raw(new),
            Err(error) => {
                self.places.fetch_sub(1, Ordering::Relaxed);
                return Err(error);
            }
        };
        // Relaxed, also on failure: this call does not read the former head. A thread that walks
        // the list sees it, because the swap continues the release sequence of that head.
        let mut head = made.load(Ordering::Relaxed);
        loop {
            // SAFETY: only this call has `new` before it is in the list.
            unsafe { ptr::addr_of_mut!((*new).next).write(head) };
            // Release: a thread that reads the pointer sees the node.
            match made.compare_exchange(head, new, Ordering::Release, Ordering::Relaxed) {
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

/// A kept version with the same number, policy and [`Keep`], which was compiled for an earlier
/// stamp. Only its stamp differs, so threads that still use it decide alike.
fn made_before<'a>(
    made: &'a AtomicPtr<KeptVersion>,
    stamp: u64,
    policy: &Policy,
    terms: Terms,
) -> Option<&'a Version> {
    let mut at = made.load(Ordering::Acquire);
    for _ in 0..KEPT_MOST {
        // SAFETY: null, or a node of the list, which only the drop of its `Versions` frees.
        let node = unsafe { at.as_ref() }?;
        let version = &node.version;
        version.written.is_read();
        let same_number = version.key == (version_of(stamp) as u64) << TAG_BITS;
        if same_number
            && version.number == policy_of(stamp)
            && version.policy == *policy
            && version.terms == terms
        {
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
                // SAFETY: from Box::into_raw and in one list only. The drop has the only reference
                // to `self`.
                let owned = unsafe { Box::from_raw(node) };
                node = owned.next;
            }
        }
    }
}

/// Reads the policy of the version with `stamp`.
pub(super) fn read(
    records: &[Record; VERSIONS],
    stamp: u64,
) -> Result<(Policy, Terms), RequestError> {
    records
        .get(version_of(stamp))
        .and_then(|record| record.read_kept(stamp))
        .ok_or(RequestError::Corrupt)
}
