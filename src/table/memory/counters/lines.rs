//! Counters that one thread owns, in memory that processes share.
//!
//! ```text
//!  line, one cache line
//! ┌───────────────────────────────────┬─────────┬────────┬───────┬────────┬──────────┬───────────┐
//! │ owner 128                         │ allowed │ denied │ never │ newest │ inserted │ reclaimed │
//! │ process 64 │ claims, claimant, policy│         │        │       │        │          │           │
//! └────────────┴──────────────────────┴─────────┴────────┴───────┴────────┴──────────┴───────────┘
//!   process = PID namespace 32, process number 32; 0: free
//!   claimant   = the thread pointer without its last 3 bits
//!   claims  = the number of claims of the line, modulo 2^13; 0: no thread has ever owned it
//! ```
//!
//! A line keeps the policy of its first owner, because its counts are of decisions under that
//! policy.
//!
//! Only its owner writes a line's counters, so the owner adds with a plain instruction. The counts
//! are in the shared memory, and stay there if the owner is killed.
//!
//! # Why no count is lost
//!
//! A line has one writer at a time, because `owner` changes by one compare-and-swap of all its 16
//! bytes:
//!
//! - *A free line*: of the threads that try to claim it, the one whose swap succeeds owns it.
//! - *A dead process's line*: a process claims it after the system has said that no process has the
//!   owner's number. All threads of the owner have ended by then, and the new owner adds to their
//!   counts.
//! - *A reused process number*: a process with the number of a dead one may claim that one's line
//!   for a thread with the same pointer. Each claim changes `claims`. So if a third process saw the
//!   number dead before that claim, its own swap fails after it. (`claims` repeats after 8,191
//!   claims. The third process would have to be stopped between its two steps for so many.)
//! - *A thread that ends* leaves its line to the next thread of the process that has its thread
//!   pointer: the C library reuses the memory at that address only after the thread has ended. A
//!   thread finds its lines through memory of its process ([`super::thread_lines`]). A forked child
//!   has its parent's thread pointers, but finds that memory empty and claims other lines.
//!
//! A process in another PID namespace may look dead and be alive, so no process of another
//! namespace claims its lines.

use crate::decision::Verdict;
use crate::sync::{AtomicU64, Ordering};
use crate::table::memory::slot::{Slot, SlotPair};

/// The counters of a line. The number is the counter's index in [`OwnerLine::words`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum LineCounter {
    // The first three have the numbers of the verdicts.
    Allowed = 0,
    Denied = 1,
    Never = 2,
    /// The newest time of the owner's requests, which is not a count.
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
/// Bits of a policy's number in an owner's state.
const POLICY: u32 = 7;
/// Bits of a claimant in an owner's state.
const ASKER: u32 = if cfg!(loom) { 8 } else { 44 };
const CLAIMS: u32 = POLICY + ASKER;

/// Counters of one owner.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct OwnerLine {
    pub(crate) owner: Slot,
    pub(crate) words: [AtomicU64; WORDS],
}

#[cfg(not(loom))]
const _: () = assert!(core::mem::offset_of!(OwnerLine, words) == 16);

// Relaxed throughout: no other data is published by a count.
impl OwnerLine {
    /// Counts a decision. Only the owner may call it.
    #[inline(always)]
    pub(crate) fn count(&self, verdict: Verdict) {
        // One call for each verdict: where the compiler knows the verdict, the whole function is
        // one instruction.
        match verdict {
            Verdict::Allowed => self.add(LineCounter::Allowed),
            Verdict::Denied => self.add(LineCounter::Denied),
            Verdict::Never => self.add(LineCounter::Never),
        }
    }

    /// Adds one. Only the owner may call it. It is one instruction, so no count is lost if a signal
    /// handler interrupts the owner and counts on the same line.
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

    /// Adds one. Only the owner may call it. If a signal handler interrupts it and counts on the
    /// same line, the handler's count is lost.
    #[cfg(any(not(target_arch = "x86_64"), loom, tollbar_tsan))]
    #[inline(always)]
    pub(crate) fn add(&self, of: LineCounter) {
        self.add_many(of, 1);
    }

    /// Adds `n`. Only the owner may call it.
    #[inline(always)]
    pub(crate) fn add_many(&self, of: LineCounter, n: u64) {
        if let Some(word) = self.words.get(of as usize) {
            put(word, word.load(Ordering::Relaxed).wrapping_add(n));
        }
    }

    /// Reads a counter.
    #[inline(always)]
    pub(crate) fn get(&self, of: LineCounter) -> u64 {
        self.words.get(of as usize).map_or(0, |word| word.load(Ordering::Relaxed))
    }

    /// Sets a counter. Only the owner may call it.
    pub(crate) fn set(&self, of: LineCounter, value: u64) {
        if let Some(word) = self.words.get(of as usize) {
            put(word, value);
        }
    }

    /// The policy whose decisions it counts, or `None` if the line has never had an owner.
    #[inline]
    pub(crate) fn policy(&self) -> Option<u32> {
        let state = self.owner.state();
        (state >> CLAIMS != 0).then_some(policy_of(state))
    }
}

fn policy_of(state: u64) -> u32 {
    (state & ((1 << POLICY) - 1)) as u32
}

/// What identifies the owner of a line within its process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claimant {
    /// A thread pointer, or the address of another object that one thread uses at a time.
    pub(crate) pointer: u64,
    pub(crate) policy: u32,
}

impl Claimant {
    /// Whether `state`, the state of an owner, names this claimant.
    fn has(&self, state: u64) -> bool {
        state >> CLAIMS != 0 && self.after(0) << (64 - CLAIMS) == state << (64 - CLAIMS)
    }

    /// The state of an owner after this claimant's claim of a line whose owner had `state`.
    fn after(&self, state: u64) -> u64 {
        let claims = match (state >> CLAIMS).wrapping_add(1) << CLAIMS {
            0 => 1 << CLAIMS,
            claims => claims,
        };
        claims | self.pointer >> 3 << POLICY | u64::from(self.policy)
    }

    /// Whether this claimant fits into an owner's state. Addresses of 47 bits do. The system gives
    /// longer ones only to programs that ask for them.
    fn fits(&self) -> bool {
        self.pointer >> (ASKER + 3) == 0 && self.pointer >> 3 != 0 && self.policy >> POLICY == 0
    }
}

#[cfg(not(loom))]
#[inline(always)]
fn put(word: &AtomicU64, value: u64) {
    word.store(value, Ordering::Relaxed);
}

/// A swap, because loom 0.7 may show a thread an older one of the plain stores of two threads that
/// it has joined.
#[cfg(loom)]
fn put(word: &AtomicU64, value: u64) {
    word.swap(value, Ordering::Relaxed);
}

/// A line for `claimant` of `process`: the one that it owns; otherwise one of the claimant's policy
/// that is free or whose owner `is_dead`; otherwise one that no thread has owned. `None` if there
/// is no such line, or if the claimant does not fit into an owner's state. It reads each line at
/// most twice. The number of lines must be a power of two.
pub(crate) fn take(
    lines: &[OwnerLine],
    process: u64,
    claimant: Claimant,
    mut is_dead: impl FnMut(u64) -> bool,
) -> Option<&OwnerLine> {
    if !claimant.fits() {
        return None;
    }
    let swap = |line: &OwnerLine, seen: SlotPair| {
        // SeqCst, like all swaps of a slot.
        line.owner.swap(seen, SlotPair { key: process, state: claimant.after(seen.state) }).is_ok()
    };
    // The search starts at a line that depends on the claimant, so that threads that start together
    // try different lines.
    let start = claimant.pointer.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let mask = lines.len().wrapping_sub(1);
    let all = || (0..lines.len()).filter_map(|n| lines.get(n.wrapping_add(start as usize) & mask));
    let mut left = |seen: SlotPair| {
        seen.state >> CLAIMS != 0
            && policy_of(seen.state) == claimant.policy
            && (seen.key == 0 || is_dead(seen.key))
    };
    let (mut former, mut unused) = (None, None);
    for line in all() {
        let seen = line.owner.pair();
        // A process in another namespace may have the same number. If the namespace is unknown (0),
        // the line may be that process's.
        if seen.key == process && claimant.has(seen.state) && process >> 32 != 0 && swap(line, seen)
        {
            return Some(line);
        }
        if seen == EMPTY {
            unused = unused.or(Some((line, seen)));
        } else if former.is_none() && left(seen) {
            former = Some((line, seen));
        }
    }
    let chosen = former.into_iter().chain(unused).find(|(line, seen)| swap(line, *seen));
    // Other threads may have claimed both meanwhile.
    chosen.map(|(line, _)| line).or_else(|| {
        all().find(|line| {
            let seen = line.owner.pair();
            (seen == EMPTY || left(seen)) && swap(line, seen)
        })
    })
}

/// The owner of a line that no thread has owned.
const EMPTY: SlotPair = SlotPair { key: 0, state: 0 };

/// The sum of one counter over `lines`.
pub(crate) fn sum<'a>(lines: impl Iterator<Item = &'a OwnerLine>, of: LineCounter) -> u64 {
    lines.map(|line| line.get(of)).fold(0, u64::wrapping_add)
}
