//! The namespaces of this process, and how far its clocks are ahead of the machine's. (Linux; other
//! systems have none.)
//!
//! | source | what it tells | without it |
//! |---|---|---|
//! | `/proc/self/ns/pid`, `/proc/self/ns/time` | the number of the namespace | `PIDFD_GET_PID_NAMESPACE` and its like (Linux 6.11), which need a descriptor |
//! | `/proc/self/timens_offsets` | how far CLOCK_MONOTONIC and CLOCK_BOOTTIME are ahead | unknown, except in the machine's first time namespace |
//!
//! A source that cannot be read gives `None`: the caller does not know, and must not conclude
//! anything.

use core::ffi::{c_int, CStr};

/// A kind of namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NamespaceKind {
    /// What processes' numbers mean.
    Pid,
    /// What CLOCK_MONOTONIC and CLOCK_BOOTTIME count from.
    Time,
}

/// How far this process's clocks are ahead of those in the machine's first time namespace, in
/// nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ahead {
    pub(crate) monotonic: i64,
    pub(crate) boottime: i64,
}

/// The number of the machine's first time namespace (`TIME_NS_INIT_INO` of linux/nsfs.h).
const FIRST_TIME: u32 = 0xefff_fffa;
const SECOND: i64 = 1_000_000_000;

/// The number of this process's namespace, which no other namespace has at the same time; `None` if
/// the system does not say.
pub(crate) fn number(kind: NamespaceKind) -> Option<u32> {
    let link = match kind {
        NamespaceKind::Pid => c"/proc/self/ns/pid",
        NamespaceKind::Time => c"/proc/self/ns/time",
    };
    link_number(link).or_else(|| by_pidfd(kind))
}

/// How far this process's clocks are ahead of the machine's; `None` if the system does not say.
pub(crate) fn ahead() -> Option<Ahead> {
    let Some(own) = number(NamespaceKind::Time) else {
        // A kernel without time namespaces has the link of the other kind alone.
        return link_number(c"/proc/self/ns/pid").map(|_| Ahead::default());
    };
    if own == FIRST_TIME {
        return Some(Ahead::default());
    }
    // The file has the offsets of the children's namespace. After an unshare that is not this
    // process's own.
    if link_number(c"/proc/self/ns/time_for_children") != Some(own) {
        return None;
    }
    let mut text = [0_u8; 256];
    parse_offsets(read(c"/proc/self/timens_offsets", &mut text)?)
}

/// The number in a link such as `pid:[4026531836]`.
fn link_number(path: &CStr) -> Option<u32> {
    let mut text = [0_u8; 64];
    let digits = read_link(path, &mut text)?.strip_suffix(b"]")?;
    let at = digits.iter().position(|&byte| byte == b'[')?;
    u32::try_from(decimal(digits.get(at + 1..)?)?).ok()
}

/// A symbolic link's text. It needs no descriptor.
pub(crate) fn read_link<'a>(path: &CStr, into: &'a mut [u8]) -> Option<&'a [u8]> {
    // SAFETY: the path is 0-terminated; `into` is writable for its length.
    let length = unsafe { libc::readlink(path.as_ptr(), into.as_mut_ptr().cast(), into.len()) };
    into.get(..usize::try_from(length).ok()?)
}

fn read<'a>(path: &CStr, into: &'a mut [u8]) -> Option<&'a [u8]> {
    // SAFETY: the path is 0-terminated.
    let file = unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    if file < 0 {
        return None;
    }
    // SAFETY: `into` is writable for its length; `file` was opened here and is closed once.
    let length = unsafe {
        let length = libc::read(file, into.as_mut_ptr().cast(), into.len());
        libc::close(file);
        length
    };
    into.get(..usize::try_from(length).ok()?)
}

/// Parses the lines `monotonic SECONDS NANOSECONDS` and `boottime SECONDS NANOSECONDS`. The seconds
/// may be negative.
fn parse_offsets(text: &[u8]) -> Option<Ahead> {
    let of = |name: &[u8]| {
        let line = text.split(|&byte| byte == b'\n').find(|line| line.starts_with(name))?;
        let mut words =
            line.split(|byte| byte.is_ascii_whitespace()).filter(|word| !word.is_empty());
        let (_, seconds, nanoseconds) = (words.next()?, words.next()?, words.next()?);
        let whole = match seconds.strip_prefix(b"-") {
            Some(digits) => 0_i64.checked_sub_unsigned(decimal(digits)?)?,
            None => i64::try_from(decimal(seconds)?).ok()?,
        };
        whole.checked_mul(SECOND)?.checked_add(i64::try_from(decimal(nanoseconds)?).ok()?)
    };
    Some(Ahead { monotonic: of(b"monotonic")?, boottime: of(b"boottime")? })
}

/// The number that decimal digits say; `None` for another character, or for none.
pub(crate) fn decimal(digits: &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for digit in digits {
        let digit = char::from(*digit).to_digit(10)?;
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    (!digits.is_empty()).then_some(value)
}

/// The number of this process's namespace by a descriptor of the process, for a process without
/// /proc.
#[cfg(target_os = "linux")]
fn by_pidfd(kind: NamespaceKind) -> Option<u32> {
    // _IO(0xFF, n) of linux/pidfd.h.
    let request = match kind {
        NamespaceKind::Pid => 0xff05,
        NamespaceKind::Time => 0xff07,
    };
    // SAFETY: integer arguments only. Each descriptor is new, and is closed once.
    unsafe {
        let process = libc::syscall(libc::SYS_pidfd_open, libc::getpid(), 0 as libc::c_uint);
        let process = c_int::try_from(process).ok().filter(|fd| *fd >= 0)?;
        // An older kernel refuses the request: it defines none of a pidfd.
        let namespace = libc::ioctl(process, request, 0);
        libc::close(process);
        if namespace < 0 {
            return None;
        }
        // All fields of a stat are integers, so zeroes are valid.
        let mut status: libc::stat = core::mem::zeroed();
        let result = fstat(namespace, &mut status);
        libc::close(namespace);
        // The kernel numbers namespaces in 32 bits.
        (result == 0).then_some(status.st_ino as u32)
    }
}

#[cfg(not(target_os = "linux"))]
fn by_pidfd(_: NamespaceKind) -> Option<u32> {
    None
}

/// The system call itself. glibc has a function for it only since 2.33, and a library that uses it
/// does not load with an older glibc. On these processors the kernel and the libcs have the same
/// struct.
///
/// # Safety
/// `stat` is writable.
#[cfg(all(
    target_os = "linux",
    target_pointer_width = "64",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
pub(crate) unsafe fn fstat(fd: c_int, stat: *mut libc::stat) -> c_int {
    // SAFETY: the caller promises that `stat` is writable.
    unsafe { libc::syscall(libc::SYS_fstat, fd, stat) as c_int }
}

#[cfg(not(all(
    target_os = "linux",
    target_pointer_width = "64",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
pub(crate) use libc::fstat;

#[cfg(all(test, not(loom)))]
mod tests;
