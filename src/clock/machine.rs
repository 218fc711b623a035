//! How far this process's CLOCK_MONOTONIC is ahead of the machine's ([`crate::namespace`]). All
//! clocks of this crate are on the machine's scale, so processes of different time namespaces can
//! share a table.
//!
//! The process asks the system once, and a forked child asks again: it may be in another time
//! namespace. The child finds out without a system call, because the kernel zeroes the page with
//! the answer in it. (Linux before 4.14 does not. It has no time namespaces.)
//!
//! No model notices a weaker ordering in this file, because loom has no page that the kernel wipes.

use crate::namespace::{self, Ahead};
use core::mem::size_of;
use core::ptr::{null_mut, NonNull};
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// The system's answer.
#[repr(C)]
struct ClockAnswer {
    /// [`NOT_ASKED`], [`KNOWN`] or [`UNKNOWN`].
    state: AtomicU64,
    /// Nanoseconds, modulo 2^64.
    monotonic: AtomicU64,
    boottime: AtomicU64,
    /// See [`generation`].
    generation: AtomicU64,
}

const NOT_ASKED: u64 = 0;
const KNOWN: u64 = 1;
const UNKNOWN: u64 = 2;

impl ClockAnswer {
    const fn none() -> ClockAnswer {
        ClockAnswer {
            state: AtomicU64::new(NOT_ASKED),
            monotonic: AtomicU64::new(0),
            boottime: AtomicU64::new(0),
            generation: AtomicU64::new(0),
        }
    }
}

/// The page that the kernel zeroes in a child; null before the first call.
static PAGE: AtomicPtr<ClockAnswer> = AtomicPtr::new(null_mut());
/// The last answer of this process or of its parents. It is in use instead of a page if the system
/// gives none.
static LAST: ClockAnswer = ClockAnswer::none();

/// How many nanoseconds CLOCK_MONOTONIC of this process is ahead of the machine's, modulo 2^64. If
/// the system does not say, the process keeps its parent's answer, or 0.
#[inline]
pub(super) fn ahead() -> u64 {
    answer().monotonic.load(Ordering::Relaxed)
}

/// [`ahead`] of CLOCK_BOOTTIME, in nanoseconds; `None` if the system does not say.
pub(crate) fn boottime_ahead() -> Option<i64> {
    let answer = answer();
    (answer.state.load(Ordering::Relaxed) == KNOWN)
        .then(|| answer.boottime.load(Ordering::Relaxed) as i64)
}

/// Whether the clocks are on the machine's scale. False if the system does not say in which time
/// namespace this process is.
pub(crate) fn is_known() -> bool {
    boottime_ahead().is_some()
}

/// A number that tells a process from its forked children: its process number (below 2^22 on
/// Linux), and above it how many forks lie between the first process and this one. A child may have
/// its parent's process number, in a PID namespace of its own. (Before Linux 4.14 and on other
/// systems the forks are not counted.)
pub(crate) fn generation() -> u32 {
    // SAFETY: getpid takes nothing and cannot fail.
    let process = unsafe { libc::getpid() } as u32;
    (answer().generation.load(Ordering::Relaxed) as u32) << 22 ^ process
}

#[inline]
fn answer() -> &'static ClockAnswer {
    // Acquire: the numbers are stored before the state.
    match NonNull::new(PAGE.load(Ordering::Acquire)) {
        // SAFETY: the page, or `LAST`, of which neither is ever freed; its fields are atomic, and
        // zeroes are valid.
        Some(page) if unsafe { page.as_ref() }.state.load(Ordering::Acquire) != NOT_ASKED => unsafe {
            page.as_ref()
        },
        _ => ask(),
    }
}

#[cold]
#[inline(never)]
fn ask() -> &'static ClockAnswer {
    let found = namespace::ahead();
    if let Some(Ahead { monotonic, boottime }) = found {
        LAST.monotonic.store(monotonic as u64, Ordering::Relaxed);
        LAST.boottime.store(boottime as u64, Ordering::Relaxed);
    }
    let page = page();
    if page.generation.load(Ordering::Relaxed) == 0 {
        let next = LAST.generation.load(Ordering::Relaxed) + 1;
        let _ = page.generation.compare_exchange(0, next, Ordering::Relaxed, Ordering::Relaxed);
        LAST.generation.store(next, Ordering::Relaxed);
    }
    // Threads that ask at the same time store the same.
    page.monotonic.store(LAST.monotonic.load(Ordering::Relaxed), Ordering::Relaxed);
    page.boottime.store(LAST.boottime.load(Ordering::Relaxed), Ordering::Relaxed);
    page.state.store(if found.is_some() { KNOWN } else { UNKNOWN }, Ordering::Release);
    page
}

fn page() -> &'static ClockAnswer {
    let new = match PAGE.load(Ordering::Acquire) {
        known if !known.is_null() => known,
        _ => {
            let new = wiped_page().map_or(core::ptr::from_ref(&LAST).cast_mut(), NonNull::as_ptr);
            match PAGE.compare_exchange(null_mut(), new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => new,
                Err(known) => {
                    // Another thread was first.
                    if !core::ptr::eq(new, &LAST) {
                        // SAFETY: this call mapped the page, and nobody else has its address.
                        unsafe { libc::munmap(new.cast(), size_of::<ClockAnswer>()) };
                    }
                    known
                }
            }
        }
    };
    // SAFETY: as in `answer`.
    unsafe { &*new }
}

/// A page of zeroes that the kernel zeroes again in each forked child.
#[cfg(target_os = "linux")]
fn wiped_page() -> Option<NonNull<ClockAnswer>> {
    let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANON);
    // SAFETY: a new mapping at an address of the system's choice, so no memory in use is replaced.
    let page = unsafe { libc::mmap(null_mut(), size_of::<ClockAnswer>(), access, flags, -1, 0) };
    if page == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: the page was mapped here. The advice does not change its content in this process.
    if unsafe { libc::madvise(page, size_of::<ClockAnswer>(), libc::MADV_WIPEONFORK) } != 0 {
        // SAFETY: as above; nobody else has its address.
        unsafe { libc::munmap(page, size_of::<ClockAnswer>()) };
        return None;
    }
    NonNull::new(page.cast())
}

#[cfg(not(target_os = "linux"))]
fn wiped_page() -> Option<NonNull<ClockAnswer>> {
    None
}
