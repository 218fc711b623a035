//! The name of this process, and checks whether another process has ended.
//!
//! | source | what it tells | cost |
//! |---|---|---|
//! | `pidfd_open` and `ppoll` | whether the process with a number has ended, reaped or not, unless another process has the number now | 1 us |
//! | `/proc/NUMBER/stat` | the start of the process with a number: another start means another process | 12 us |
//! | `kill` with signal 0 | whether a process has the number, also one that has ended and is not reaped yet | 1 us |
//!
//! A process ends when its last thread ends, and then its pidfd becomes readable. /proc calls a process a zombie as soon as its first thread has
//! ended, so the code also reads the number of threads.

use super::system::{errno, Fd, Text};
use core::ffi::c_int;

/// This process's name in a line's owner: its PID namespace and its number there. A namespace of 0 is unknown.
pub(crate) fn process() -> u64 {
    // SAFETY: getpid takes no argument and cannot fail.
    let number = unsafe { libc::getpid() } as u32;
    u64::from(namespace()) << 32 | u64::from(number)
}

#[cfg(target_os = "linux")]
fn namespace() -> u32 {
    let status = Fd::open(libc::AT_FDCWD, c"/proc/self/ns/pid", libc::O_RDONLY).and_then(|fd| fd.status());
    // The kernel numbers namespaces in 32 bits.
    status.map_or(0, |status| status.identity.1 as u32)
}

#[cfg(not(target_os = "linux"))]
fn namespace() -> u32 {
    0
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

/// The start of the process `number`, in ticks since the machine's start, modulo 2^24; 1 instead of 0. 0 if the system does not say.
pub(crate) fn start_of(number: u32) -> u32 {
    stat(number).map_or(0, |stat| stat.start)
}

/// Whether the process `number` that began at `start` has ended. False if the system does not say. With `thorough` it also finds that another
/// process has the number now.
pub(crate) fn has_ended(number: u32, start: u32, thorough: bool) -> bool {
    let Ok(pid @ 1..) = libc::pid_t::try_from(number) else { return false };
    let known = match pidfd(pid) {
        Asked::Gone => return true,
        Asked::Runs => true,
        Asked::Unknown if is_process_gone(number) => return true,
        Asked::Unknown => false,
    };
    // Another process with the same number may run.
    if known && !thorough {
        return false;
    }
    match stat(number) {
        Some(stat) => (start != 0 && stat.start != start) || (!known && stat.zombie),
        None => false,
    }
}

enum Asked {
    Gone,
    Runs,
    Unknown,
}

#[cfg(target_os = "linux")]
fn pidfd(pid: libc::pid_t) -> Asked {
    // SAFETY: integer arguments only. It returns a new descriptor.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0 as libc::c_uint) };
    let Ok(fd @ 0..) = c_int::try_from(fd) else {
        // Other errors: an old kernel, a filter of system calls, a thread's number, too many open files.
        return if errno() == libc::ESRCH { Asked::Gone } else { Asked::Unknown };
    };
    let fd = Fd::owned(fd);
    let mut poll = libc::pollfd { fd: fd.raw(), events: libc::POLLIN, revents: 0 };
    let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `poll` is one writable pollfd; a null mask of signals is allowed.
    match unsafe { libc::ppoll(&mut poll, 1, &at_once, core::ptr::null()) } {
        1.. => Asked::Gone,
        0 => Asked::Runs,
        _ => Asked::Unknown,
    }
}

#[cfg(not(target_os = "linux"))]
fn pidfd(_: libc::pid_t) -> Asked {
    Asked::Unknown
}

struct Stat {
    start: u32,
    zombie: bool,
}

/// Reads a process's start and state from /proc.
#[cfg(target_os = "linux")]
fn stat(number: u32) -> Option<Stat> {
    let mut path = Text::new(b"/proc/");
    path.push_decimal(number);
    path.push(b"/stat");
    let mut text = [0_u8; 1024];
    let fd = Fd::open(libc::AT_FDCWD, path.as_c_str(), libc::O_RDONLY).ok()?;
    let length = fd.read(&mut text).ok()?;
    parse_stat(text.get(..length)?)
}

#[cfg(not(target_os = "linux"))]
fn stat(_: u32) -> Option<Stat> {
    None
}

/// Parses `NUMBER (NAME) STATE ...`. A name may have any characters, so the fields are counted from the last bracket: the state is the 3rd, the
/// number of threads the 20th, the start the 22nd.
fn parse_stat(text: &[u8]) -> Option<Stat> {
    let end = text.iter().rposition(|&byte| byte == b')')?;
    let mut fields = text.get(end.checked_add(2)?..)?.split(|&byte| byte == b' ');
    let state = fields.next()?;
    let threads = number(fields.nth(16)?)?;
    let start = number(fields.nth(1)?)? & 0xff_ffff;
    let ended = matches!(state, b"Z" | b"X");
    Some(Stat { start: (start as u32).max(1), zombie: ended && threads <= 1 })
}

fn number(digits: &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for digit in digits {
        let digit = char::from(*digit).to_digit(10)?;
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(value)
}

#[cfg(test)]
mod tests;
