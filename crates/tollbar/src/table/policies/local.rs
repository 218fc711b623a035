//! Compiled versions that one thread keeps for itself, and room for one on the stack.
//!
//! A process keeps the first [`KEPT_MOST`](super::compiled::KEPT_MOST) versions for all its threads. Of every later one, each thread
//! compiles its own, into a place that it has for the policy: its entry in the process's map ([`crate::table::memory::counters::thread_lines`]) has two, one for the
//! version that is current and one for a former version. Places are in memory of the process, and none is ever added.
//!
//! # Which calls read and write a place
//!
//! Only the thread that the entry is of; a later thread with its thread pointer comes after its end. Nothing is shared, so there is
//! nothing for a model of threads to look at. What may come between two steps is a *signal's handler* that decides
//! on the same thread, and returns before the interrupted step goes on:
//!
//! - `users` is raised before the place is looked at and lowered after its version's last use. A version is written only by the
//!   sole user, so what an interrupted call is using stays as it is. A handler that meets another version there compiles on its stack.
//! - `stamp` is 0 while the version is written: a handler that interrupts the writing takes it for none.
//! - A handler lowers `users` as often as it has raised it, so the plain load and store of the interrupted call lose nothing. One that
//!   jumps out of a call leaves `users` raised: the place is never written again, and the thread compiles on its stack.
//!
//! *Fork.* A child has a copy of the places, and an empty map. Whatever entries its threads get, a place's version is the one that its
//! `stamp` says, since no two versions of a table have the same. Where a thread of the parent was using a place in that instant, the
//! child's copy stays in use for ever, as after a jump. The memory is not wiped in children: a handler that forks may return, in
//! the child too, to a call that is using its place.

use super::compiled::Version;
use crate::sync::{AtomicU64, Ordering};
use crate::table::memory::counters::thread_lines::ENTRIES;
use crate::table::memory::error::TableError;
use crate::table::memory::region::Region;
use core::cell::UnsafeCell;
use core::mem::{size_of, MaybeUninit};
use core::sync::atomic::compiler_fence;

/// Two for each entry.
const PLACES: usize = 2 * ENTRIES;

/// A place for one version. All zeroes: empty.
#[repr(C)]
pub(crate) struct Local {
    /// How many calls are using the place: a thread's, and those of handlers that have interrupted it.
    users: AtomicU64,
    /// The stamp of `version`; 0: there is none.
    stamp: AtomicU64,
    version: UnsafeCell<MaybeUninit<Version>>,
}

/// A table's places in this process.
#[derive(Debug)]
pub(crate) struct Locals {
    memory: Region,
}

/// What a call holds a version by. It may be used again: the version of the last use is found without compiling it again.
pub(crate) struct Scratch<'t> {
    held: Held<'t>,
    version: MaybeUninit<Version>,
}

enum Held<'t> {
    Nothing,
    /// The version is in the scratch.
    Here,
    /// The version is in the calling thread's place.
    There(&'t Local),
}

impl Locals {
    /// None of its pages is there before a thread needs it.
    pub(crate) fn new() -> Result<Locals, TableError> {
        Ok(Locals { memory: Region::private(PLACES * size_of::<Local>())? })
    }

    /// The calling thread's place by the number of its entry, for the version that is current or for a former one.
    pub(crate) fn get(&self, entry: usize, is_current: bool) -> Option<&Local> {
        // Those for former versions last, so that their pages are there only if they are needed.
        let number = if is_current { entry } else { ENTRIES.saturating_add(entry) };
        if number >= PLACES {
            return None;
        }
        // SAFETY: the memory has so many places and is aligned to a page; zeroes are an empty one. It is only ever used by way of this
        // function, and what is not atomic in it is behind an `UnsafeCell`.
        Some(unsafe { self.memory.base().cast::<Local>().add(number).as_ref() })
    }
}

impl Local {
    /// Raises `users`; what it was.
    fn enter(&self) -> u64 {
        let users = self.users.load(Ordering::Relaxed);
        self.users.store(users.wrapping_add(1), Ordering::Relaxed);
        // The thread's own handlers see this before anything that follows.
        compiler_fence(Ordering::SeqCst);
        users
    }

    fn leave(&self) {
        // After the version's last use.
        compiler_fence(Ordering::SeqCst);
        self.users.store(self.users.load(Ordering::Relaxed).wrapping_sub(1), Ordering::Relaxed);
    }
}

impl<'t> Scratch<'t> {
    #[inline(always)]
    pub(crate) const fn new() -> Scratch<'t> {
        Scratch { held: Held::Nothing, version: MaybeUninit::uninit() }
    }

    /// The version that it holds.
    pub(crate) fn version(&self) -> Option<&Version> {
        match &self.held {
            Held::Nothing => None,
            // SAFETY: `put` has written it.
            Held::Here => Some(unsafe { self.version.assume_init_ref() }),
            // SAFETY: `share` has found a stamp there, or `put` has written one, and so a version; it stays until this leaves the place.
            Held::There(local) => Some(unsafe { (*local.version.get()).assume_init_ref() }),
        }
    }

    /// Whether it holds the version with `stamp`.
    pub(crate) fn holds(&self, stamp: u64) -> bool {
        self.version().is_some_and(|version| version.stamp.load(Ordering::Relaxed) == stamp)
    }

    /// Holds the version in the calling thread's place, if it is the one with `stamp`.
    pub(crate) fn share(&mut self, local: &'t Local, stamp: u64) -> bool {
        self.clear();
        local.enter();
        // Acquire: a version is written before its stamp.
        if local.stamp.load(Ordering::Acquire) != stamp {
            local.leave();
            return false;
        }
        self.held = Held::There(local);
        true
    }

    /// Holds `version`: in the calling thread's place `local`, if there is one and no interrupted call is using it, or else here.
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
        // SAFETY: nobody else reads it: only this thread uses the place, its other calls are not using it (`users` was 0), and a
        // handler that comes now finds the stamp of none. Nothing is there that would have to be dropped.
        unsafe { (*local.version.get()).write(version) };
        // Release: with the version.
        local.stamp.store(stamp, Ordering::Release);
        self.held = Held::There(local);
    }

    fn put_here(&mut self, version: Version) {
        self.version.write(version);
        self.held = Held::Here;
    }

    fn clear(&mut self) {
        if let Held::There(local) = core::mem::replace(&mut self.held, Held::Nothing) {
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

// Versions are overwritten in their places, and are not dropped.
const _: () = assert!(!core::mem::needs_drop::<Version>());

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Policy;
    use crate::table::Keep;

    fn version(stamp: u64) -> Version {
        let policy = Policy { limit: stamp, ..Policy::new(1, 1_000_000_000) };
        Version::of(&policy, Keep::Count, stamp).expect("a version")
    }

    /// What an interrupted call is using stays as it is, whatever a handler asks for in between.
    #[test]
    fn a_version_in_use_is_not_replaced() {
        let locals = Locals::new().expect("memory");
        let local = locals.get(3, true).expect("a place");
        let is = |scratch: &Scratch<'_>, stamp: u64| {
            scratch.holds(stamp) && scratch.version().is_some_and(|version| version.policy.limit == stamp)
        };
        let (mut call, mut handler, mut second) = (Scratch::new(), Scratch::new(), Scratch::new());
        assert!(!call.share(local, 1));
        call.put(version(1), Some(local));
        assert!(is(&call, 1));
        // Under the same version both use the place; under another the handler's is on its stack.
        assert!(handler.share(local, 1) && is(&handler, 1));
        assert!(!handler.share(local, 2));
        handler.put(version(2), Some(local));
        assert!(is(&handler, 2) && is(&call, 1) && local.stamp.load(Ordering::Relaxed) == 1);
        // And so it is where there is nothing in the place yet because the interrupted call is writing it.
        local.stamp.store(0, Ordering::Relaxed);
        assert!(!second.share(local, 1));
        second.put(version(1), Some(local));
        assert!(is(&second, 1) && local.stamp.load(Ordering::Relaxed) == 0);
        local.stamp.store(1, Ordering::Relaxed);
        drop((call, handler, second));
        assert_eq!(local.users.load(Ordering::Relaxed), 0);
        // Now that nobody is using it the next version takes the place.
        let mut call = Scratch::new();
        assert!(!call.share(local, 2));
        call.put(version(2), Some(local));
        assert!(is(&call, 2) && local.stamp.load(Ordering::Relaxed) == 2);
    }
}
