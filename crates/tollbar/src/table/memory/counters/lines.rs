//! Counters that one thread owns, in memory that processes share.
//!
//! ```text
//!  line, one cache line
//! ┌───────────────────────────────────┬─────────┬────────┬───────┬────────┬──────────┬───────────┐
//! │ owner 128                         │ allowed │ denied │ never │ newest │ inserted │ reclaimed │
//! │ process 64 │ claims, asker, policy│         │        │       │        │          │           │
//! └────────────┴──────────────────────┴─────────┴────────┴───────┴────────┴──────────┴───────────┘
//!   process = PID namespace 32, process number 32; 0: free
//!   asker   = the thread pointer without its last 3 bits
//!   claims  = how often the line was claimed, modulo 2^13; 0: no thread has ever had it
//! ```
//!
//! A line keeps the policy of its first owner, because what it has counted was under that policy.
//!
//! Only its owner writes a line's counters, so it adds with a plain instruction. A count that has been added is in the
//! shared memory, and stays there if the owner is killed.
//!
//! # Why no count is lost
//!
//! A line has one writer at a time, because `owner` changes by one compare-and-swap of all its 16 bytes:
//!
//! - *A free line* goes to one of the threads that want it.
//! - *A dead process's line* goes to a process that has seen that the system knows that number no more. All threads of
//!   the owner have ended then, and the counters go on from what they left.
//! - *A process that has the number of a dead one* may take that one's line for a thread with the same pointer. Each
//!   claim changes `claims`, so a third process that saw the number dead before cannot take the line after: its swap fails.
//!   (`claims` repeats after 8,191 claims: a process would have to be stopped between those two steps for so many.)
//! - *A thread that ends* leaves its line to the next thread of the process that has its thread pointer: the C library reuses the
//!   memory at that address only after the thread has ended. A thread finds its lines through memory of its process
//!   ([`super::thread_lines`]), which is empty in a child after a fork: a child has its parent's thread pointers, and other lines.
//!
//! A process in another PID namespace may look dead and be alive. Its lines are left alone.

use crate::decision::Verdict;
use crate::sync::{AtomicU64, Ordering};
use crate::table::memory::slot::{Pair, Slot};

/// The counters of a line, by their place in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum LineCounter {
    // The first three are the verdicts.
    Allowed = 0,
    Denied = 1,
    Never = 2,
    /// Not a count: the newest time that the owner has come with.
    Newest = 3,
    Inserted = 4,
    Reclaimed = 5,
}

impl LineCounter {
    #[inline(always)]
    pub(crate) fn verdict(verdict: Verdict) -> LineCounter {
        match verdict {
            Verdict::Allowed => LineCounter::Allowed,
            Verdict::Denied => LineCounter::Denied,
            Verdict::Never => LineCounter::Never,
        }
    }
}

/// Words of a line beside its owner.
pub(crate) const WORDS: usize = 6;
/// Bits of a policy's number, and of an asker.
const POLICY: u32 = 7;
const ASKER: u32 = if cfg!(loom) { 8 } else { 44 };
const CLAIMS: u32 = POLICY + ASKER;

/// One owner's counters.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) owner: Slot,
    pub(crate) words: [AtomicU64; WORDS],
}

#[cfg(not(loom))]
const _: () = assert!(core::mem::offset_of!(Line, words) == 16);

// Relaxed throughout: a count publishes nothing.
impl Line {
    /// Counts a decision. Only the owner may.
    #[inline(always)]
    pub(crate) fn count(&self, verdict: Verdict) {
        // Apart, so that where the verdict is known this is one instruction.
        match verdict {
            Verdict::Allowed => self.add(LineCounter::Allowed),
            Verdict::Denied => self.add(LineCounter::Denied),
            Verdict::Never => self.add(LineCounter::Never),
        }
    }

    /// Adds one. Only the owner may. It is one instruction, so that a signal's handler that interrupts the owner and counts on
    /// the same line loses nothing.
    #[cfg(all(target_arch = "x86_64", not(loom), not(tollbar_tsan)))]
    #[inline(always)]
    pub(crate) fn add(&self, of: LineCounter) {
        macro_rules! add {
            ($at:literal) => {
                // SAFETY: an aligned word of an atomic in the line, which only the caller writes.
                unsafe {
                    core::arch::asm!(
                        concat!("inc qword ptr [{line} + ", $at, "]"),
                        line = in(reg) core::ptr::from_ref(self),
                        options(nostack),
                    );
                }
            };
        }
        match of {
            LineCounter::Allowed => add!(16),
            LineCounter::Denied => add!(24),
            LineCounter::Never => add!(32),
            LineCounter::Newest => add!(40),
            LineCounter::Inserted => add!(48),
            LineCounter::Reclaimed => add!(56),
        }
    }

    /// Adds one. Only the owner may. A signal's handler that interrupts it here and counts on the same line may lose the one.
    #[cfg(any(not(target_arch = "x86_64"), loom, tollbar_tsan))]
    #[inline(always)]
    pub(crate) fn add(&self, of: LineCounter) {
        self.add_many(of, 1);
    }

    /// Adds `n`. Only the owner may.
    #[inline(always)]
    pub(crate) fn add_many(&self, of: LineCounter, n: u64) {
        if let Some(word) = self.words.get(of as usize) {
            put(word, word.load(Ordering::Relaxed).wrapping_add(n));
        }
    }

    /// One of its words.
    #[inline(always)]
    pub(crate) fn get(&self, of: LineCounter) -> u64 {
        self.words.get(of as usize).map_or(0, |word| word.load(Ordering::Relaxed))
    }

    /// Sets one of its words. Only the owner may.
    pub(crate) fn set(&self, of: LineCounter, value: u64) {
        if let Some(word) = self.words.get(of as usize) {
            put(word, value);
        }
    }

    /// The policy that it counts decisions under, once it has had an owner.
    #[inline]
    pub(crate) fn policy(&self) -> Option<u32> {
        let state = self.owner.state();
        (state >> CLAIMS != 0).then_some(policy_of(state))
    }
}

fn policy_of(state: u64) -> u32 {
    (state & ((1 << POLICY) - 1)) as u32
}

/// The owner of a line in its process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asker {
    /// A thread pointer, or the address of something else that one thread at a time uses.
    pub(crate) pointer: u64,
    pub(crate) policy: u32,
}

impl Asker {
    /// Whether the state of an owner is this asker's.
    fn has(&self, state: u64) -> bool {
        state >> CLAIMS != 0 && self.after(0) << (64 - CLAIMS) == state << (64 - CLAIMS)
    }

    /// The state of an owner after `state`, when this asker has claimed the line.
    fn after(&self, state: u64) -> u64 {
        let claims = match (state >> CLAIMS).wrapping_add(1) << CLAIMS {
            0 => 1 << CLAIMS,
            claims => claims,
        };
        claims | self.pointer >> 3 << POLICY | u64::from(self.policy)
    }

    /// Whether an owner has room for it. Addresses of 47 bits do; longer ones are not given to programs unless they ask.
    fn fits(&self) -> bool {
        self.pointer >> (ASKER + 3) == 0 && self.pointer >> 3 != 0 && self.policy >> POLICY == 0
    }
}

#[cfg(not(loom))]
#[inline(always)]
fn put(word: &AtomicU64, value: u64) {
    word.store(value, Ordering::Relaxed);
}

/// Loom (0.7) may show one that has joined two threads an older of their plain stores. It keeps the order of swaps.
#[cfg(loom)]
fn put(word: &AtomicU64, value: u64) {
    word.swap(value, Ordering::Relaxed);
}

/// A line for `asker` of `process`: the one that it has, else one of its policy that is free or whose process `is_dead` says is no
/// more, else one that no thread has had. `None`: no line is free, or an owner word has no room for the asker. Each line is looked at twice at
/// most. The number of lines is a power of two.
pub(crate) fn take(lines: &[Line], process: u64, asker: Asker, mut is_dead: impl FnMut(u64) -> bool) -> Option<&Line> {
    if !asker.fits() {
        return None;
    }
    let swap = |line: &Line, seen: Pair| {
        // SeqCst, as all swaps of a slot: what the last owner has counted is there.
        line.owner.swap(seen, Pair { key: process, state: asker.after(seen.state) }).is_ok()
    };
    // From a place of the asker's on, so that threads that begin together want different lines.
    let start = asker.pointer.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let mask = lines.len().wrapping_sub(1);
    let all = || (0..lines.len()).filter_map(|n| lines.get(n.wrapping_add(start as usize) & mask));
    let mut left = |seen: Pair| {
        seen.state >> CLAIMS != 0 && policy_of(seen.state) == asker.policy && (seen.key == 0 || is_dead(seen.key))
    };
    let (mut former, mut unused) = (None, None);
    for line in all() {
        let seen = line.owner.pair();
        // In an unknown namespace another process may have the same number.
        if seen.key == process && asker.has(seen.state) && process >> 32 != 0 && swap(line, seen) {
            return Some(line);
        }
        if seen == EMPTY {
            unused = unused.or(Some((line, seen)));
        } else if former.is_none() && left(seen) {
            former = Some((line, seen));
        }
    }
    let chosen = former.into_iter().chain(unused).find(|(line, seen)| swap(line, *seen));
    // Others may have taken both meanwhile.
    chosen.map(|(line, _)| line).or_else(|| {
        all().find(|line| {
            let seen = line.owner.pair();
            (seen == EMPTY || left(seen)) && swap(line, seen)
        })
    })
}

/// The owner of a line that no thread has had.
const EMPTY: Pair = Pair { key: 0, state: 0 };

/// The sum of one word of all lines.
pub(crate) fn sum<'a>(lines: impl Iterator<Item = &'a Line>, of: LineCounter) -> u64 {
    lines.map(|line| line.get(of)).fold(0, u64::wrapping_add)
}
