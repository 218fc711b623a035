//! Where this process's threads find their lines ([`super::lines`]).
//!
//! Each table that is open has a map of its own, in memory that no other process has: an open hash from a thread and a policy to
//! the line. An entry is only read by the thread that it is of, and never removed while the process lives.
//!
//! A child that is forked finds its map empty, because the system wipes that memory: its threads have the thread pointers of its
//! parent's, and must not have their lines. Where the system cannot promise it (Linux before 4.14, other systems) no thread owns a
//! line, and all add to shared counters.

use super::lines::{take, Asker, Line};
use crate::limiter::thread::pointer;
use crate::sync::{AtomicU64, Ordering};
use crate::table::memory::error::TableError;
use crate::table::memory::layout::LINES;
use crate::table::memory::region::{is_no_more, process, Region};
use core::mem::size_of;
use core::ptr::{null_mut, NonNull};
use core::sync::atomic::AtomicPtr;

/// As many as there are lines: more than that no process can have.
pub(crate) const ENTRIES: usize = LINES;
/// Places of the map where an id may be.
const PROBES: usize = 8;
/// An entry that is being written.
const TAKEN: u64 = 1;
/// With an id: there was no line for it.
const WITHOUT: u64 = 1 << 63;
/// The most processes that one search for a line asks the system about.
const INQUIRIES: u32 = 32;

#[repr(C)]
struct Entry {
    /// 0: free.
    id: AtomicU64,
    line: AtomicPtr<Line>,
}

impl Entry {
    /// The line of an entry that has the calling thread's id.
    #[inline(always)]
    fn line(&self) -> &Line {
        // SAFETY: this thread, or one before it with the same thread pointer, has written the line before the id. Lines are in the
        // table's memory, which outlives the map.
        unsafe { NonNull::new_unchecked(self.line.load(Ordering::Relaxed)).as_ref() }
    }
}

/// What is in the map's memory. All zeroes: nothing yet.
#[repr(C)]
struct Map {
    entries: [Entry; ENTRIES],
    /// This process's name in owners ([`process`]); 0: not asked yet.
    process: AtomicU64,
}

/// A table's map in this process.
#[derive(Debug)]
pub(crate) struct ThreadLines {
    memory: Region,
    /// Whether a child that is forked finds zeros in `memory`. If not, nothing is put there.
    is_wiped: bool,
}

impl ThreadLines {
    pub(crate) fn new() -> Result<ThreadLines, TableError> {
        let memory = Region::private(size_of::<Map>())?;
        let is_wiped = memory.wipe_in_children();
        // Now, so that no request of this process waits for a page.
        memory.populate();
        let lines = ThreadLines { memory, is_wiped };
        // The name of the PID namespace is in a file: it is read here, and not by a decision. A child reads it for itself.
        lines.process();
        Ok(lines)
    }

    /// The calling thread's line under `policy`, if it is where most are.
    #[inline(always)]
    pub(crate) fn first_probe(&self, policy: u32) -> Option<&Line> {
        let pointer = pointer();
        let id = id(pointer, policy);
        let entry = self.entry(place(pointer, policy));
        if entry.id.load(Ordering::Relaxed) != id {
            return None;
        }
        Some(entry.line())
    }

    /// The calling thread's line under `policy`, of `lines`; one is claimed if it has none. `None`: there is none to be had.
    #[inline(never)]
    pub(crate) fn find_or_claim(&self, policy: u32, lines: &[Line; LINES]) -> Option<&Line> {
        let (id, place) = (id(pointer(), policy), place(pointer(), policy));
        for n in 0..PROBES {
            let entry = self.entry(place.wrapping_add(n * size_of::<Entry>()));
            match entry.id.load(Ordering::Relaxed) {
                found if found == id => return Some(entry.line()),
                found if found == id | WITHOUT => return None,
                _ => {}
            }
        }
        self.claim(id, policy, lines)
    }

    /// The number of the entry that has the calling thread's line under `policy`, if it has one.
    pub(crate) fn number(&self, policy: u32) -> Option<usize> {
        let (id, place) = (id(pointer(), policy), place(pointer(), policy));
        let at = |n: usize| place.wrapping_add(n * size_of::<Entry>());
        let n = (0..PROBES).find(|n| self.entry(at(*n)).id.load(Ordering::Relaxed) == id)?;
        Some(at(n) / size_of::<Entry>() % ENTRIES)
    }

    #[cold]
    fn claim(&self, id: u64, policy: u32, lines: &[Line; LINES]) -> Option<&Line> {
        let place = place(pointer(), policy);
        if !self.is_wiped {
            return None;
        }
        let free = |entry: &&Entry| {
            // Other threads of the process want places, too.
            entry.id.load(Ordering::Relaxed) == 0
                && entry.id.compare_exchange(0, TAKEN, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        };
        let entry = (0..PROBES).map(|n| self.entry(place.wrapping_add(n * size_of::<Entry>()))).find(free)?;
        let line = self.take(Asker { pointer: pointer(), policy }, lines);
        entry.line.store(line.map_or(null_mut(), |line| core::ptr::from_ref(line).cast_mut()), Ordering::Relaxed);
        // Release, for the thread's own signal handlers: the line is there before the id.
        entry.id.store(if line.is_some() { id } else { id | WITHOUT }, Ordering::Release);
        // SAFETY: the lifetime is that of the table's memory.
        line.map(|line| unsafe { &*core::ptr::from_ref(line) })
    }

    /// A line for `asker`, which need not be a thread.
    pub(crate) fn take<'a>(&self, asker: Asker, lines: &'a [Line; LINES]) -> Option<&'a Line> {
        let (mut last, mut inquiries) = (0, 0);
        let me = self.process();
        take(lines, me, asker, |other| {
            // A process of another namespace, or of an unknown one, may be alive: this process cannot tell.
            if other >> 32 != me >> 32 || me >> 32 == 0 || other == me || other == last || inquiries == INQUIRIES {
                return false;
            }
            inquiries += 1;
            match is_no_more(other as u32) {
                true => true,
                false => {
                    last = other;
                    false
                }
            }
        })
    }

    /// Lets the calling thread look for a line again, if it has none under `policy`.
    #[cold]
    pub(crate) fn look_again(&self, policy: u32) {
        let (id, place) = (id(pointer(), policy), place(pointer(), policy));
        for n in 0..PROBES {
            let entry = self.entry(place.wrapping_add(n * size_of::<Entry>()));
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
        // SAFETY: the memory is as long as a Map and aligned to a page; zeros are one; all in it is atomic.
        unsafe { self.memory.base().cast().as_ref() }
    }

    /// The entry `at` bytes from the first, modulo the length of all.
    #[inline(always)]
    fn entry(&self, at: usize) -> &Entry {
        // By a mask of bytes: to count entries would be another instruction.
        let at = at & ((ENTRIES - 1) * size_of::<Entry>());
        // SAFETY: as `map`; the entries come first, and this is one of them: their number and their size are powers of two.
        unsafe { self.memory.base().byte_add(at).cast().as_ref() }
    }
}

/// A thread under a policy: a number that no other thread of the process has at the time under any policy. Thread pointers
/// point to the C library's records of threads, which are longer than 64 bytes: their doubles lie further apart than there are
/// policies.
#[inline(always)]
fn id(pointer: u64, policy: u32) -> u64 {
    pointer.wrapping_mul(2).wrapping_add(u64::from(policy))
}

/// Where a thread's entry is at first, in bytes and beyond the map's length. Thread pointers mostly differ by the size of a stack: the
/// checksum spreads those as well as the policies of one thread.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn place(pointer: u64, policy: u32) -> usize {
    let place: u64;
    // SAFETY: registers only. The instruction is SSE 4.2's, which every processor has that has AVX, and tables are made on no other.
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
    // The middle of the product depends on all bits in which thread pointers differ.
    (id(pointer, policy).wrapping_mul(0x1e37_79b1) >> 20) as usize
}

const _: () = assert!(ENTRIES.is_power_of_two() && size_of::<Entry>() == 16);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Options, PolicyId, Table};

    /// Process after process decides once and is gone: they all have the same line, one after the other.
    #[test]
    fn lines_of_dead_processes_are_used_again() {
        let policy = "5/s".parse().expect("a policy");
        let table = Table::shared(&Options::new(1000), &[policy, policy]).expect("memory");
        for _ in 0..LINES + 100 {
            // SAFETY: the child decides, which takes no lock and no memory, and ends.
            match unsafe { libc::fork() } {
                0 => {
                    table.admit(PolicyId::FIRST, b"a client", 1);
                    table.admit(PolicyId::new(1), b"a client", 1);
                    // SAFETY: a number only.
                    unsafe { libc::_exit(0) }
                }
                child => {
                    let mut status = 0;
                    // SAFETY: `status` is writable.
                    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
                }
            }
        }
        let used = table.policies.memory.lines().iter().filter(|line| line.policy().is_some()).count();
        assert!(used <= 4, "{used} lines for one process at a time and two policies");
        let decisions = table.stats().decisions;
        assert_eq!(decisions.allowed + decisions.denied, 2 * (LINES as u64 + 100));
    }

    /// Whatever is in the lines, each call ends, and nobody takes a line of a process that may live.
    #[test]
    fn damaged_lines_harm_nobody() {
        let policy = "5/s".parse().expect("a policy");
        for word in [u64::MAX, 1, 1 << 63, 1 << 32, 0x5555_5555_5555_5555] {
            let table = Table::private(&Options::new(1000), &[policy]).expect("memory");
            for line in table.policies.memory.lines() {
                // SAFETY: nobody else uses the table; a line is eight words.
                let words = unsafe { &*core::ptr::from_ref(line).cast::<[AtomicU64; 8]>() };
                words.iter().for_each(|at| at.store(word, Ordering::Relaxed));
            }
            let (before, stats) = (table.counts(PolicyId::FIRST), table.stats());
            assert!(before.is_ok() && stats.capacity == 1000);
            for _ in 0..10 {
                table.admit(PolicyId::FIRST, b"a client", 1);
            }
            let (before, after) = (before.expect("counts"), table.counts(PolicyId::FIRST).expect("counts"));
            let ten = after.allowed.wrapping_sub(before.allowed) + after.denied.wrapping_sub(before.denied);
            assert_eq!(ten, 10, "{word:#x}");
        }
    }
}
