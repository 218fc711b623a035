//! Two words in a node's memory on which its processes sleep: the client until a caller has a
//! message that cannot wait, and callers until the client has an answer.
//!
//! The orders are the same for both. The sleeper announces itself and then reads the word. The
//! waker changes the word and then looks for sleepers. All four accesses are SeqCst, so at least
//! one of them sees the other's write: either the sleeper does not fall asleep, or the waker wakes
//! it.

use super::layout::Header;
use tollbar::internal::sync::{sleep_on, sleep_on_any, wake_all, Ordering};

impl Header {
    /// The count of answers, for [`sleep_until_answered`].
    pub(super) fn answers(&self) -> u32 {
        self.answers.load(Ordering::SeqCst)
    }

    /// Wakes the callers that wait.
    pub(super) fn wake_callers(&self) {
        self.answers.fetch_add(1, Ordering::SeqCst);
        if self.sleepers.load(Ordering::SeqCst) != 0 {
            wake_all(&self.answers);
        }
    }

    /// The count of messages that cannot wait, for [`sleep_until_rung`].
    pub(super) fn bell(&self) -> u32 {
        self.bell.load(Ordering::SeqCst)
    }

    /// Wakes the client.
    pub(super) fn ring_bell(&self) {
        self.bell.fetch_add(1, Ordering::SeqCst);
        if self.client_sleeps.load(Ordering::SeqCst) != 0 {
            wake_all(&self.bell);
        }
    }
}

/// Sleeps until the count of answers is no longer `answers`, for at most `nanos` nanoseconds. It
/// may return earlier.
pub(super) fn sleep_until_answered(header: &Header, answers: u32, nanos: u64) {
    header.sleepers.fetch_add(1, Ordering::SeqCst);
    if header.answers() == answers {
        // A caller that was killed in its sleep stays counted: then wakers call the kernel in vain.
        sleep_on(&header.answers, answers, nanos);
    }
    header.sleepers.fetch_sub(1, Ordering::SeqCst);
}

/// The client's sleep until one of the bells has another count than it had before, for at most
/// `nanos` nanoseconds.
pub(super) fn sleep_until_rung<'a>(
    bells: impl Iterator<Item = (&'a Header, u32)> + Clone,
    nanos: u64,
) {
    bells.clone().for_each(|(header, _)| header.client_sleeps.store(1, Ordering::SeqCst));
    if bells.clone().all(|(header, bell)| header.bell() == bell) {
        sleep_on_any(bells.clone().map(|(header, bell)| (&header.bell, bell)), nanos);
    }
    bells.for_each(|(header, _)| header.client_sleeps.store(0, Ordering::SeqCst));
}

/// Sleeps for so many nanoseconds, or until a signal comes.
pub(super) fn sleep(nanos: u64) {
    let time = libc::timespec {
        tv_sec: (nanos / 1_000_000_000) as libc::time_t,
        tv_nsec: (nanos % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: `time` is readable for the call, and a null second argument is allowed: the remaining
    // time is not wanted.
    unsafe { libc::nanosleep(&time, core::ptr::null_mut()) };
}
