//! The map from this process's threads to their lines ([`super::lines`]).
//!
//! Each open table has one map, in memory of this process: an open hash from a thread and a policy
//! to the line. Only an entry's own thread reads the line in it. An entry that has a line stays as
//! long as the map.
//!
//! The system wipes the map in a forked child, because the child's threads have the thread pointers
//! of its parent's and must not use their lines. On a system that does not wipe memory (Linux
//! before 4.14, other systems) no thread owns a line, and all threads add to shared counters.

use super::lines::{take, Claimant, OwnerLine};
use crate::limiter::thread::pointer;
use crate::sync::{AtomicU64, Ordering};
use crate::table::memory::error::TableError;
use crate::table::memory::layout::LINES;
use crate::table::memory::region::{is_process_gone, process, Region};
use core::mem::size_of;
use core::ptr::{null_mut, NonNull};
use core::sync::atomic::AtomicPtr;

/// One for each line: a process cannot own more.
pub(crate) const ENTRIES: usize = LINES;
/// The number of entries that may hold an id.
const PROBES: usize = 8;
/// The id of an entry that its thread is writing.
const TAKEN: u64 = 1;
/// Set in an id whose thread has found no line.
const WITHOUT: u64 = 1 << 63;
/// The most processes that one search for a line asks the system about.
const INQUIRIES: u32 = 32;

#[repr(C)]
struct ThreadEntry {
    /// 0: free.
    id: AtomicU64,
    line: AtomicPtr<OwnerLine>,
}

impl ThreadEntry {
    /// The line of an entry that has the calling thread's id.
    #[inline(always)]
    fn line(&self) -> &OwnerLine {
        // SAFETY: this thread, or an earlier one with the same thread pointer, stored the line
        // before the id. Lines are in the table's memory, which outlives the map.
        unsafe { NonNull::new_unchecked(self.line.load(Ordering::Relaxed)).as_ref() }
    }
}

/// The content of the map's memory. All zeroes are an empty map.
#[repr(C)]
struct Map {
    entries: [ThreadEntry; ENTRIES],
    /// This process's name in owners ([`process`]), or 0 if no call has asked for it yet.
    process: AtomicU64,
}

/// A table's map in this process.
#[derive(Debug)]
pub(crate) struct ThreadLines {
    memory: Region,
    /// Whether a forked child finds zeros in `memory`. If not, no thread writes to it.
    is_wiped: bool,
}

impl ThreadLines {
    pub(crate) fn new() -> Result<ThreadLines, TableError> {
        let memory = Region::private(size_of::<Map>())?;
        let is_wiped = memory.wipe_in_children();
        // Touches the pages now, so that no request of this process waits for one.
        memory.populate();
        let lines = ThreadLines { memory, is_wiped };
        // Reads the file with the PID namespace's name now, so that no decision of this process
        // reads it. A forked child reads it again.
        lines.process();
        Ok(lines)
    }

    /// The calling thread's line under `policy`, if the first probe finds it.
    #[inline(always)]
    pub(crate) fn first_probe(&self, policy: u32) -> Option<&OwnerLine> {
        let pointer = pointer();
        let id = id(pointer, policy);
        let entry = self.entry(place(pointer, policy));
        if entry.id.load(Ordering::Relaxed) != id {
            return None;
        }
        Some(entry.line())
    }

    /// The calling thread's line under `policy`, one of `lines`. The thread claims one if it has
    /// none. `None`: no line is free.
    #[inline(never)]
    pub(crate) fn find_or_claim(
        &self,
        policy: u32,
        lines: &[OwnerLine; LINES],
    ) -> Option<&OwnerLine> {
        let (id, place) = (id(pointer(), policy), place(pointer(), policy));
        for n in 0..PROBES {
            let entry = self.entry(place.wrapping_add(n * size_of::<ThreadEntry>()));
            match entry.id.load(Ordering::Relaxed) {
                found if found == id => return Some(entry.line()),
                found if found == id | WITHOUT => return None,
                _ => {}
            }
        }
        self.claim(id, policy, lines)
    }

    /// The number of the entry of the calling thread's line under `policy`.
    pub(crate) fn number(&self, policy: u32) -> Option<usize> {
        let (id, place) = (id(pointer(), policy), place(pointer(), policy));
        let at = |n: usize| place.wrapping_add(n * size_of::<ThreadEntry>());
        let n = (0..PROBES).find(|n| self.entry(at(*n)).id.load(Ordering::Relaxed) == id)?;
        Some(at(n) / size_of::<ThreadEntry>() % ENTRIES)
    }

    #[cold]
    fn claim(&self, id: u64, policy: u32, lines: &[OwnerLine; LINES]) -> Option<&OwnerLine> {
        let place = place(pointer(), policy);
        if !self.is_wiped {
            return None;
        }
        let free = |entry: &&ThreadEntry| {
            // Other threads of the process claim entries at the same time.
            entry.id.load(Ordering::Relaxed) == 0
                && entry.id.compare_exchange(0, TAKEN, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        };
        let entry = (0..PROBES)
            .map(|n| self.entry(place.wrapping_add(n * size_of::<ThreadEntry>())))
            .find(free)?;
        let line = self.take(Claimant { pointer: pointer(), policy }, lines);
        entry.line.store(
            line.map_or(null_mut(), |line| core::ptr::from_ref(line).cast_mut()),
            Ordering::Relaxed,
        );
        // Release: a signal handler of this thread that finds the id finds the line, too. No model
        // notices a weaker ordering, because loom has no signals.
        entry.id.store(if line.is_some() { id } else { id | WITHOUT }, Ordering::Release);
        // SAFETY: the line is one of `lines`, in the table's memory, which outlives `self`.
        line.map(|line| unsafe { &*core::ptr::from_ref(line) })
    }

    /// Claims a line for `claimant`, which may be another object than a thread.
    pub(crate) fn take<'a>(
        &self,
        claimant: Claimant,
        lines: &'a [OwnerLine; LINES],
    ) -> Option<&'a OwnerLine> {
        let (mut last, mut inquiries) = (0, 0);
        let me = self.process();
        take(lines, me, claimant, |other| {
            // This process cannot tell whether a process of another namespace, or of an unknown
            // one, is alive.
            if other >> 32 != me >> 32
                || me >> 32 == 0
                || other == me
                || other == last
                || inquiries == INQUIRIES
            {
                return false;
            }
            inquiries += 1;
            match is_process_gone(other as u32) {
                true => true,
                false => {
                    last = other;
                    false
                }
            }
        })
    }

    /// Lets the calling thread try again to claim a line under `policy`, if it has none.
    #[cold]
    pub(crate) fn retry_claim(&self, policy: u32) {
        let (id, place) = (id(pointer(), policy), place(pointer(), policy));
        for n in 0..PROBES {
            let entry = self.entry(place.wrapping_add(n * size_of::<ThreadEntry>()));
            if entry.id.load(Ordering::Relaxed) == id | WITHOUT {
                entry.id.store(0, Ordering::Relaxed);
            }
        }
    }

    /// This process's name in owners.
    pub(crate) fn process(&self) -> u64 {
        let word = &self.map().process;
        match word.load(Ordering::Relaxed) {
            0 => {
                let process = process();
                if self.is_wiped {
                    word.store(process, Ordering::Relaxed);
                }
                process
            }
            process => process,
        }
    }

    #[inline(always)]
    fn map(&self) -> &Map {
        // SAFETY: the memory is as long as a Map and aligned to a page; zeros are a valid Map; its
        // fields are atomic.
        unsafe { self.memory.base().cast().as_ref() }
    }

    /// The entry `at` bytes after the first, modulo the length of all entries.
    #[inline(always)]
    fn entry(&self, at: usize) -> &ThreadEntry {
        // A mask of bytes takes one instruction less than an index of entries.
        let at = at & ((ENTRIES - 1) * size_of::<ThreadEntry>());
        // SAFETY: as `map`; the entries come first in it. The number and the size of entries are
        // powers of two, so the mask leaves the offset of an entry.
        unsafe { self.memory.base().byte_add(at).cast().as_ref() }
    }
}

/// The id of a thread and a policy. No other living thread of the process has the same id under any
/// policy: thread pointers point to the C library's records of threads, which are longer than 64
/// bytes, so their doubles differ by more than the number of policies.
#[inline(always)]
fn id(pointer: u64, policy: u32) -> u64 {
    pointer.wrapping_mul(2).wrapping_add(u64::from(policy))
}

/// The offset of the first entry to probe for a thread, in bytes; the caller takes it modulo the
/// map's length. Thread pointers mostly differ by the size of a stack. The checksum spreads them,
/// and spreads the policies of one thread.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn place(pointer: u64, policy: u32) -> usize {
    let place: u64;
    // SAFETY: the instruction changes only a register. It belongs to SSE 4.2, which every processor
    // with AVX has, and `Memory::over` refuses processors without AVX.
    unsafe {
        core::arch::asm!(
            "crc32 {place}, {pointer}",
            place = inout(reg) u64::from(policy) => place,
            pointer = in(reg) pointer,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    place as usize
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn place(pointer: u64, policy: u32) -> usize {
    // The middle bits of the product depend on all bits in which thread pointers differ.
    (id(pointer, policy).wrapping_mul(0x1e37_79b1) >> 20) as usize
}

const _: () = assert!(ENTRIES.is_power_of_two() && size_of::<ThreadEntry>() == 16);

#[cfg(test)]
mod tests;
