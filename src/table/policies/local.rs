//! Compiled versions that a process keeps for one thread, or a call keeps on its stack.
//!
//! A process keeps the first [`KEPT_MOST`](super::kept::KEPT_MOST) versions for all its threads.
//! Each thread compiles later versions for itself, into a *place*. Each entry of a thread and a
//! policy in the process's map ([`crate::table::memory::counters::thread_lines`]) has two places:
//! one for the current version and one for a former version. The number of places in a process is
//! fixed.
//!
//! # Which calls read and write a place
//!
//! Only the entry's thread uses its places. (A later thread with the same thread pointer starts
//! after that thread has ended.) So no two threads share a place, and there is no loom model of it.
//! But a *signal handler* may interrupt a call between two steps, decide on the same thread, and
//! return before the next step:
//!
//! - A call raises `users` before it reads the place and lowers it after the last use of the
//!   version. Only a call that is the sole user writes the version, so a handler does not change a
//!   version that an interrupted call is using. A handler that finds another version there compiles
//!   its own on its stack.
//! - `stamp` is 0 while a call writes the version. A handler that interrupts the write finds no
//!   version.
//! - A handler lowers `users` as often as it raises it, so the interrupted call's plain load and
//!   store lose no change. A handler that jumps out of a call (longjmp) leaves `users` raised: no
//!   call writes the place again, and the thread compiles on its stack.
//!
//! *Fork.* A child has a copy of the places, and an empty map. Its threads may get other entries.
//! That does no harm: the version in a place is the one of its `stamp`, and all stamps of a table
//! are different. If a thread of the parent was using a place at the fork, the child's copy stays
//! in use for ever, as after a jump. The system does not wipe the places in children, because a
//! handler that forks may return, in the child, too, to a call that is using its place.

use super::compiled::Version;
use crate::sync::{AtomicU64, Ordering};
#[cfg(not(loom))]
use crate::table::memory::counters::thread_lines::ENTRIES;
use crate::table::memory::error::TableError;
#[cfg(not(loom))]
use crate::table::memory::region::Region;
use core::cell::UnsafeCell;
#[cfg(not(loom))]
use core::mem::size_of;
use core::mem::MaybeUninit;
use core::sync::atomic::compiler_fence;

/// Two places for each entry.
#[cfg(not(loom))]
const PLACES: usize = 2 * ENTRIES;

/// A place for one version. All zeroes are an empty place.
#[repr(C)]
pub(crate) struct Local {
    /// The number of calls that are using the place: the thread's own, and those of handlers that
    /// have interrupted it.
    users: AtomicU64,
    /// The stamp of `version`, or 0 if there is none.
    stamp: AtomicU64,
    version: UnsafeCell<MaybeUninit<Version>>,
}

/// A table's places in this process.
#[derive(Debug)]
pub(crate) struct Locals {
    #[cfg(not(loom))]
    memory: Region,
}

/// A call's reference to a version, or the version itself. A call that uses it again finds its last
/// version without compiling.
pub(crate) struct Scratch<'t> {
    held: HeldVersion<'t>,
    version: MaybeUninit<Version>,
}

enum HeldVersion<'t> {
    Nothing,
    /// The version is in the scratch.
    Here,
    /// The version is in the calling thread's place.
    There(&'t Local),
}

/// In loom's models no thread has a place, because no other thread would use it.
#[cfg(loom)]
impl Locals {
    pub(crate) fn new() -> Result<Locals, TableError> {
        Ok(Locals {})
    }

    pub(crate) fn get(&self, _entry: usize, _is_current: bool) -> Option<&Local> {
        None
    }
}

#[cfg(not(loom))]
impl Locals {
    /// Reserves the memory of all places. The system allocates a page when a thread first uses it.
    pub(crate) fn new() -> Result<Locals, TableError> {
        Ok(Locals { memory: Region::private(PLACES * size_of::<Local>())? })
    }

    /// A place of the calling thread's entry: the one for the current version, or the one for a
    /// former version.
    pub(crate) fn get(&self, entry: usize, is_current: bool) -> Option<&Local> {
        // The places for former versions are behind all others, because most processes never touch
        // their pages.
        let number = if is_current { entry } else { ENTRIES.saturating_add(entry) };
        if number >= PLACES {
            return None;
        }
        // SAFETY: the memory has PLACES places and is aligned to a page; zeroes are an empty place.
        // All access is through this function, and the field that is no atomic is an `UnsafeCell`.
        Some(unsafe { self.memory.base().cast::<Local>().add(number).as_ref() })
    }
}

impl Local {
    /// Raises `users`, and returns its former value.
    fn enter(&self) -> u64 {
        let users = self.users.load(Ordering::Relaxed);
        self.users.store(users.wrapping_add(1), Ordering::Relaxed);
        // A handler on this thread sees the new value before any later access.
        compiler_fence(Ordering::SeqCst);
        users
    }

    fn leave(&self) {
        // The compiler may not move a use of the version below this.
        compiler_fence(Ordering::SeqCst);
        self.users.store(self.users.load(Ordering::Relaxed).wrapping_sub(1), Ordering::Relaxed);
    }
}

impl<'t> Scratch<'t> {
    #[inline(always)]
    pub(crate) const fn new() -> Scratch<'t> {
        Scratch { held: HeldVersion::Nothing, version: MaybeUninit::uninit() }
    }

    /// The version that this scratch holds.
    pub(crate) fn version(&self) -> Option<&Version> {
        match &self.held {
            HeldVersion::Nothing => None,
            // SAFETY: `put_here` wrote the version before it set `Here`.
            HeldVersion::Here => Some(unsafe { self.version.assume_init_ref() }),
            // SAFETY: the place has a version, because `share` found its stamp or `put` wrote it.
            // No call replaces it before `clear` lowers `users`.
            HeldVersion::There(local) => Some(unsafe { (*local.version.get()).assume_init_ref() }),
        }
    }

    /// Whether this scratch holds the version with `stamp`.
    pub(crate) fn holds(&self, stamp: u64) -> bool {
        self.version().is_some_and(|version| version.stamp.load(Ordering::Relaxed) == stamp)
    }

    /// Makes the scratch hold the version in the calling thread's place `local`, if that has
    /// `stamp`.
    pub(crate) fn share(&mut self, local: &'t Local, stamp: u64) -> bool {
        self.clear();
        local.enter();
        // Acquire: `put` writes the version before its stamp. No model notices a weaker ordering,
        // because loom has no signals.
        if local.stamp.load(Ordering::Acquire) != stamp {
            local.leave();
            return false;
        }
        self.held = HeldVersion::There(local);
        true
    }

    /// Makes the scratch hold `version`. It writes it into the calling thread's place `local`, or
    /// into the scratch itself if there is no place or an interrupted call is using it.
    pub(crate) fn put(&mut self, version: Version, local: Option<&'t Local>) {
        self.clear();
        let Some(local) = local else { return self.put_here(version) };
        if local.enter() != 0 {
            local.leave();
            return self.put_here(version);
        }
        local.stamp.store(0, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        let stamp = version.stamp.load(Ordering::Relaxed);
        // SAFETY: no other call accesses the version: only this thread uses the place, none of its
        // interrupted calls does (`users` was 0), and a handler finds the stamp 0. The old version
        // needs no drop (asserted below).
        unsafe { (*local.version.get()).write(version) };
        // Release: a handler that finds the stamp finds the version. No model notices a weaker
        // ordering, because loom has no signals.
        local.stamp.store(stamp, Ordering::Release);
        self.held = HeldVersion::There(local);
    }

    fn put_here(&mut self, version: Version) {
        self.version.write(version);
        self.held = HeldVersion::Here;
    }

    fn clear(&mut self) {
        if let HeldVersion::There(local) = core::mem::replace(&mut self.held, HeldVersion::Nothing)
        {
            local.leave();
        }
    }
}

impl Drop for Scratch<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.clear();
    }
}

// `put` overwrites a version without dropping it.
const _: () = assert!(!core::mem::needs_drop::<Version>());

#[cfg(all(test, not(loom)))]
mod tests;
