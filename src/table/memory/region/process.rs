//! The name of this process, and checks whether another process has ended.
//!
//! | source | what it tells | cost |
//! |---|---|---|
//! | `pidfd_open` and `ppoll` | whether the process with a number has ended, reaped or not, unless another process has the number now | 1 us |
//! | `/proc/NUMBER/stat` | the start of the process with a number: another start means another process | 13 us |
//! | `kill` with signal 0 | whether a process has the number, also one that has ended and is not reaped yet | 1 us |
//!
//! A process ends when its last thread ends, and then its pidfd becomes readable. /proc calls a
//! process a zombie as soon as its first thread has ended, so the code also reads the number of
//! threads.
//!
//! /proc may be that of another PID namespace, whose numbers are other processes'. Then the code
//! reads only this process's own files there. It shows starts in the time namespace of the reader,
//! so the code subtracts what that is ahead of the machine's.

use super::system::{errno, Fd, PathText};
use crate::clock::machine::boottime_ahead;
use crate::namespace::{decimal, number as namespace_number, read_link, NamespaceKind};
use core::ffi::c_int;

/// This process's name in a line's owner: its PID namespace and its number there. A namespace of 0
/// is unknown.
pub(crate) fn process() -> u64 {
    namespace() << 32 | u64::from(own_number())
}

/// The number of this process's PID namespace; 0 if the system does not say.
pub(crate) fn namespace() -> u64 {
    namespace_number(NamespaceKind::Pid).map_or(0, u64::from)
}

fn own_number() -> u32 {
    // SAFETY: getpid takes no argument and cannot fail.
    unsafe { libc::getpid() as u32 }
}

/// Whether no process has this number. False if the system does not say.
pub(crate) fn is_process_gone(number: u32) -> bool {
    match libc::pid_t::try_from(number) {
        // 0 and negative numbers mean groups of processes.
        // SAFETY: integer arguments only; signal 0 checks for the process and sends nothing.
        Ok(pid @ 1..) => unsafe { libc::kill(pid, 0) != 0 && errno() == libc::ESRCH },
        _ => false,
    }
}

/// The start of the process `number`, in ticks since the machine's start, modulo 2^24, where 1
/// stands for 0, too. The result is 0 if the system does not say. Readers in different time
/// namespaces may read starts that differ by a tick.
pub(crate) fn start_of(number: u32) -> u32 {
    stat(number).map_or(0, |stat| stat.start)
}

/// Whether the process `number` that began at `start` has ended. False if the system does not say.
/// With `thorough` it also finds that another process has the number now.
pub(crate) fn has_ended(number: u32, start: u32, thorough: bool) -> bool {
    let Ok(pid @ 1..) = libc::pid_t::try_from(number) else { return false };
    let known = match pidfd(pid) {
        ProcessState::Gone => return true,
        ProcessState::Runs => true,
        ProcessState::Unknown if is_process_gone(number) => return true,
        ProcessState::Unknown => false,
    };
    // Another process with the same number may run.
    if known && !thorough {
        return false;
    }
    match stat(number) {
        Some(stat) => is_other_start(stat.start, start) || (!known && stat.zombie),
        None => false,
    }
}

enum ProcessState {
    Gone,
    Runs,
    Unknown,
}

#[cfg(target_os = "linux")]
fn pidfd(pid: libc::pid_t) -> ProcessState {
    // SAFETY: integer arguments only. It returns a new descriptor.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0 as libc::c_uint) };
    let Ok(fd @ 0..) = c_int::try_from(fd) else {
        // Other errors: an old kernel, a filter of system calls, a thread's number, too many open
        // files.
        return if errno() == libc::ESRCH { ProcessState::Gone } else { ProcessState::Unknown };
    };
    let fd = Fd::owned(fd);
    let mut poll = libc::pollfd { fd: fd.raw(), events: libc::POLLIN, revents: 0 };
    let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `poll` is one writable pollfd; a null mask of signals is allowed.
    match unsafe { libc::ppoll(&mut poll, 1, &at_once, core::ptr::null()) } {
        1.. => ProcessState::Gone,
        0 => ProcessState::Runs,
        _ => ProcessState::Unknown,
    }
}

#[cfg(not(target_os = "linux"))]
fn pidfd(_: libc::pid_t) -> ProcessState {
    ProcessState::Unknown
}

struct Stat {
    /// 0: unknown.
    start: u32,
    zombie: bool,
}

/// Starts are kept modulo this many ticks.
const STARTS: u32 = 1 << 24;
/// Nanoseconds of a tick in /proc (`USER_HZ` is 100).
const TICK: i64 = 10_000_000;

/// Whether two starts are of different processes. Readers may differ by a tick, and by another
/// where 1 stands for 0. No number is given to another process so soon.
fn is_other_start(one: u32, other: u32) -> bool {
    let distance = one.wrapping_sub(other) % STARTS;
    one != 0 && other != 0 && distance.min(STARTS - distance) > 2
}

/// Reads a process's start and state from /proc; `None` if the system does not say.
#[cfg(target_os = "linux")]
fn stat(number: u32) -> Option<Stat> {
    let mut path = PathText::new(b"/proc/");
    if number == own_number() {
        path.push(b"self");
    } else if has_our_numbers() {
        path.push_decimal(number);
    } else {
        return None;
    }
    path.push(b"/stat");
    let mut text = [0_u8; 1024];
    let fd = Fd::open(libc::AT_FDCWD, path.as_c_str(), libc::O_RDONLY).ok()?;
    let length = fd.read(&mut text).ok()?;
    parse_stat(text.get(..length)?, boottime_ahead())
}

#[cfg(not(target_os = "linux"))]
fn stat(_: u32) -> Option<Stat> {
    None
}

/// Whether the numbers in /proc are those of this process's PID namespace.
#[cfg(target_os = "linux")]
fn has_our_numbers() -> bool {
    let mut text = [0_u8; 16];
    read_link(c"/proc/self", &mut text).and_then(decimal) == Some(u64::from(own_number()))
}

/// Parses `NUMBER (NAME) STATE ...`. A name may have any characters, so the fields are counted from
/// the last bracket: the state is the 3rd, the number of threads the 20th, the start the 22nd.
///
/// `ahead` is how far the reader's CLOCK_BOOTTIME is ahead of the machine's. If it is unknown, so
/// is the start.
fn parse_stat(text: &[u8], ahead: Option<i64>) -> Option<Stat> {
    let end = text.iter().rposition(|&byte| byte == b')')?;
    let mut fields = text.get(end.checked_add(2)?..)?.split(|&byte| byte == b' ');
    let state = fields.next()?;
    let threads = decimal(fields.nth(16)?)?;
    let start = decimal(fields.nth(1)?)?;
    let ended = matches!(state, b"Z" | b"X");
    let on_the_machine =
        |ahead: i64| (start.wrapping_sub(ahead.div_euclid(TICK) as u64) as u32 % STARTS).max(1);
    Some(Stat { start: ahead.map_or(0, on_the_machine), zombie: ended && threads <= 1 })
}

#[cfg(test)]
mod tests;
