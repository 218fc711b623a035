//! System calls as the region needs them: interrupted ones are made again, errors are errnos, and
//! descriptors close themselves.

use super::super::error::{Call, TableError};
use core::ffi::{c_int, CStr};

/// A descriptor that is closed when it is dropped.
pub(super) struct Fd(c_int);

/// What is asked of a file's status.
pub(super) struct Status {
    pub(super) regular: bool,
    pub(super) len: u64,
    /// Bytes that the file has on the disk.
    pub(super) allocated: u64,
    /// The device and the inode: two descriptors of which these are equal are of one file.
    pub(super) identity: (u64, u64),
    /// The user whose it is.
    pub(super) owner: u32,
    /// Its permissions.
    pub(super) mode: u32,
    /// Its names.
    pub(super) links: u64,
}

impl Fd {
    /// Opens `name` in `directory`, for this program only (`O_CLOEXEC`).
    pub(super) fn open(directory: c_int, name: &CStr, flags: c_int) -> Result<Fd, i32> {
        // Only of interest to a file that this makes; it is given its permissions by `permit`.
        const OWNER: libc::c_uint = 0o600;
        // SAFETY: `name` ends with a 0; the mode is passed as the type that C promotes it to.
        let fd = again(|| unsafe { libc::openat(directory, name.as_ptr(), flags | libc::O_CLOEXEC, OWNER) })?;
        Ok(Fd(fd))
    }

    /// A descriptor of the caller's, to be forgotten and not dropped.
    pub(super) fn borrowed(fd: c_int) -> Fd {
        Fd(fd)
    }

    pub(super) fn raw(&self) -> c_int {
        self.0
    }

    /// Leaves the closing to the caller.
    pub(super) fn into_raw(self) -> c_int {
        core::mem::ManuallyDrop::new(self).0
    }

    pub(super) fn status(&self) -> Result<Status, i32> {
        // SAFETY: a stat is numbers, of which all may be 0.
        let mut stat: libc::stat = unsafe { core::mem::zeroed() };
        // SAFETY: `stat` is writable for the call.
        again(|| unsafe { fstat(self.0, &mut stat) })?;
        Ok(Status::of(&stat))
    }

    /// Reads from the file's beginning; says how many bytes there were.
    pub(super) fn read(&self, buffer: &mut [u8]) -> Result<usize, i32> {
        let mut done = 0;
        while let Some(rest) = buffer.get_mut(done..).filter(|rest| !rest.is_empty()) {
            // At an offset: a descriptor that was passed on shares its position with its other holders.
            // SAFETY: `rest` is writable for its length.
            let n = unsafe { libc::pread(self.0, rest.as_mut_ptr().cast(), rest.len(), done as libc::off_t) };
            match n {
                0 => break,
                n if n > 0 => done = done.saturating_add(n as usize),
                _ if errno() == libc::EINTR => {}
                _ => return Err(errno()),
            }
        }
        Ok(done)
    }

    /// Writes zeroes over the whole of a file of `len` bytes.
    pub(super) fn write_zeroes(&self, len: u64) -> Result<(), i32> {
        const ZEROES: [u8; 4096] = [0; 4096];
        let mut at = 0_u64;
        while at < len {
            let n = (len - at).min(4096) as usize;
            let offset = libc::off_t::try_from(at).map_err(|_| libc::EFBIG)?;
            // SAFETY: `n` bytes of ZEROES can be read.
            let written = unsafe { libc::pwrite(self.0, ZEROES.as_ptr().cast(), n, offset) };
            match written {
                // Nothing written and no reason given: rather an error than for ever.
                0 => return Err(libc::ENOSPC),
                n if n > 0 => at = at.saturating_add(n as u64),
                _ if errno() == libc::EINTR => {}
                _ => return Err(errno()),
            }
        }
        Ok(())
    }

    pub(super) fn resize(&self, len: u64) -> Result<(), i32> {
        let len = libc::off_t::try_from(len).map_err(|_| libc::EFBIG)?;
        // SAFETY: numbers only.
        again(|| unsafe { libc::ftruncate(self.0, len) })?;
        Ok(())
    }

    /// Makes the system set aside blocks for the file's `len` bytes and leaves what is in them alone.
    /// `false` where the filesystem knows no such thing.
    ///
    /// Never libc's own imitation of it, which reads a byte and writes it back: beside a process that uses
    /// the table, that byte might be an old one.
    pub(super) fn reserve(&self, len: u64) -> Result<bool, i32> {
        // All at once at first: where there is no room after all, a filesystem in memory takes nothing then. Once a signal has
        // interrupted that, which may undo it, in parts: a process that is sent signals all the time would otherwise never see
        // the end of a large one.
        const PART: u64 = 16 << 20;
        let mut most = len;
        let mut at = 0_u64;
        while at < len {
            let part = (len - at).min(most);
            let (Ok(offset), Ok(bytes)) = (libc::off_t::try_from(at), libc::off_t::try_from(part)) else {
                return Err(libc::EFBIG);
            };
            match fallocate(self.0, offset, bytes) {
                0 => at += part,
                libc::EINTR => most = PART,
                libc::EOPNOTSUPP | libc::ENOSYS | libc::EINVAL => return Ok(false),
                errno => return Err(errno),
            }
        }
        Ok(true)
    }

    /// Whether the filesystem has so many bytes left, for those who would rather not find out by taking them. ENOSPC if not;
    /// where it does not say, it has.
    pub(super) fn has_room(&self, bytes: u64) -> Result<(), i32> {
        // SAFETY: a statvfs is numbers, of which all may be 0.
        let mut system: libc::statvfs = unsafe { core::mem::zeroed() };
        // SAFETY: `system` is writable for the call.
        if again(|| unsafe { libc::fstatvfs(self.0, &mut system) }).is_err() || system.f_blocks == 0 {
            return Ok(());
        }
        // Some blocks are kept for root.
        // SAFETY: takes nothing and cannot fail.
        let blocks = if unsafe { libc::geteuid() } == 0 { system.f_bfree } else { system.f_bavail };
        let unit = if system.f_frsize == 0 { system.f_bsize } else { system.f_frsize };
        #[allow(clippy::unnecessary_cast)] // narrower on some systems
        match bytes <= (blocks as u64).saturating_mul(unit as u64) {
            true => Ok(()),
            false => Err(libc::ENOSPC),
        }
    }

    /// Whether nobody can cut the file off.
    pub(super) fn keeps_its_length(&self) -> bool {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        // SAFETY: numbers only. Files without seals have an error, which has all bits but means none.
        return matches!(unsafe { libc::fcntl(self.0, libc::F_GET_SEALS) }, seals if seals != -1 && seals & libc::F_SEAL_SHRINK != 0);
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        false
    }

    /// Gives the file the permissions `mode`, whatever the umask is.
    pub(super) fn permit(&self, mode: u32) -> Result<(), i32> {
        // SAFETY: numbers only. Nine bits fit every mode_t.
        again(|| unsafe { libc::fchmod(self.0, (mode & 0o777) as libc::mode_t) })?;
        Ok(())
    }

    /// Returns when the file's bytes are on the disk.
    pub(super) fn flush(&self) -> Result<(), i32> {
        // SAFETY: a number only.
        again(|| unsafe { libc::fsync(self.0) })?;
        Ok(())
    }

    /// Takes or gives up the lock of the whole file.
    pub(super) fn flock(&self, operation: c_int) -> Result<(), i32> {
        // SAFETY: numbers only.
        again(|| unsafe { libc::flock(self.0, operation) })?;
        Ok(())
    }
}

impl Drop for Fd {
    fn drop(&mut self) {
        // Not again where it was interrupted: on Linux the descriptor is gone, and its number may be
        // another file's by now.
        // SAFETY: the descriptor is this value's own.
        unsafe { libc::close(self.0) };
    }
}

impl Status {
    /// Of the file called `name`, whatever it is, not of what a symbolic link of that name leads to.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(super) fn of_name(directory: &Fd, name: &CStr) -> Result<Status, i32> {
        Fd::open(directory.0, name, libc::O_PATH | libc::O_NOFOLLOW)?.status()
    }

    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    pub(super) fn of_name(directory: &Fd, name: &CStr) -> Result<Status, i32> {
        // SAFETY: a stat is numbers, of which all may be 0.
        let mut stat: libc::stat = unsafe { core::mem::zeroed() };
        // SAFETY: `name` ends with a 0, `stat` is writable for the call.
        again(|| unsafe { libc::fstatat(directory.0, name.as_ptr(), &mut stat, libc::AT_SYMLINK_NOFOLLOW) })?;
        Ok(Status::of(&stat))
    }

    // Types that are narrower on some systems.
    #[allow(clippy::unnecessary_cast)]
    fn of(stat: &libc::stat) -> Status {
        Status {
            regular: stat.st_mode & libc::S_IFMT == libc::S_IFREG,
            len: u64::try_from(stat.st_size).unwrap_or(0),
            allocated: u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(512),
            // Signed on some systems; only compared.
            identity: (stat.st_dev as _, stat.st_ino as _),
            owner: stat.st_uid as _,
            mode: stat.st_mode as u32 & 0o7777,
            links: stat.st_nlink as _,
        }
    }
}

/// A short text with a 0 at its end, made without core::fmt.
pub(super) struct Text {
    bytes: [u8; Text::ROOM],
    len: usize,
}

impl Text {
    const ROOM: usize = 96;

    pub(super) fn new(start: &[u8]) -> Text {
        let mut text = Text { bytes: [0; Text::ROOM], len: 0 };
        text.push(start);
        text
    }

    /// What does not fit is left out, and the 0 at the end always fits.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        for &byte in bytes.iter() {
            if self.len >= Text::ROOM - 1 {
                return;
            }
            if let Some(place) = self.bytes.get_mut(self.len) {
                *place = byte;
                self.len += 1;
            }
        }
    }

    pub(super) fn push_decimal(&mut self, number: u32) {
        let mut unit = 1_000_000_000_u32;
        while unit > 0 {
            if unit == 1 || number >= unit {
                self.push(&[b'0' + (number.checked_div(unit).unwrap_or(0) % 10) as u8]);
            }
            unit /= 10;
        }
    }

    pub(super) fn push_hex(&mut self, number: u64) {
        for shift in (0..16_u32).rev() {
            let digit = (number >> (4 * shift) & 15) as u8;
            self.push(&[if digit < 10 { b'0' + digit } else { b'a' - 10 + digit }]);
        }
    }

    pub(super) fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or_default()
    }
}

/// A new file in memory without a name, of `len` bytes that are all there, and whose length nobody can change any more.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn sealed(len: u64) -> Result<Fd, TableError> {
    let open = |errno| TableError::System(Call::Open, errno);
    let allocate = |errno| TableError::System(Call::Allocate, errno);
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // Through `syscall`, since older libcs have no function for it.
    // SAFETY: the name ends with a 0; the arguments are of the widths the call has.
    let fd = again(|| unsafe { libc::syscall(libc::SYS_memfd_create, c"tollbar".as_ptr(), flags) as c_int })
        .map_err(open)?;
    let fd = Fd(fd);
    fd.resize(len).map_err(allocate)?;
    fd.reserve(len).map_err(allocate)?;
    // The last: nor can anybody add a seal that would keep others from writing.
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    // SAFETY: numbers only.
    again(|| unsafe { libc::fcntl(fd.0, libc::F_ADD_SEALS, seals) }).map_err(open)?;
    Ok(fd)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn sealed(_: u64) -> Result<Fd, TableError> {
    Err(TableError::System(Call::Open, libc::ENOSYS))
}

/// A random number that nobody outside can foretell.
pub fn random_u64() -> Result<u64, TableError> {
    let mut bytes = [0_u8; 8];
    if !getrandom(&mut bytes) {
        let read = Fd::open(libc::AT_FDCWD, c"/dev/urandom", libc::O_RDONLY).and_then(|fd| fd.read(&mut bytes));
        match read {
            Ok(8) => {}
            Ok(_) => return Err(TableError::System(Call::Random, libc::EIO)),
            Err(errno) => return Err(TableError::System(Call::Random, errno)),
        }
    }
    Ok(u64::from_ne_bytes(bytes))
}

/// Through `syscall`, since older libcs have no function for it.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn getrandom(bytes: &mut [u8; 8]) -> bool {
    loop {
        // SAFETY: `bytes` is writable for its length; the arguments are of the widths the call has.
        let n = unsafe { libc::syscall(libc::SYS_getrandom, bytes.as_mut_ptr(), bytes.len(), 0 as libc::c_uint) };
        if n == 8 {
            return true;
        }
        // So few bytes are never given in part.
        if n >= 0 || errno() != libc::EINTR {
            return false;
        }
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn getrandom(_: &mut [u8; 8]) -> bool {
    false
}

/// The name of this boot of the machine; `None` where the system has none.
pub(crate) fn boot_id() -> Option<[u64; 2]> {
    // One byte more than the name and its newline have: a longer text is not one.
    let mut text = [0_u8; 38];
    let fd = Fd::open(libc::AT_FDCWD, c"/proc/sys/kernel/random/boot_id", libc::O_RDONLY).ok()?;
    let len = fd.read(&mut text).ok()?;
    parse_uuid(text.get(..len)?)
}

/// `01234567-89ab-cdef-0123-456789abcdef`, with or without a newline.
pub(super) fn parse_uuid(text: &[u8]) -> Option<[u64; 2]> {
    // Not strip_suffix, which can panic as far as a compiler for size can see.
    let text = if let [text @ .., b'\n'] = text { text } else { text };
    if text.len() != 36 {
        return None;
    }
    let mut value = 0_u128;
    for (i, &byte) in text.iter().enumerate() {
        if matches!(i, 8 | 13 | 18 | 23) {
            if byte != b'-' {
                return None;
            }
            continue;
        }
        value = value << 4 | u128::from(char::from(byte).to_digit(16)?);
    }
    Some([(value >> 64) as u64, value as u64])
}

/// The call's result, or its errno; made again as long as signals interrupt it.
pub fn again(mut call: impl FnMut() -> c_int) -> Result<c_int, i32> {
    loop {
        let result = call();
        if result != -1 {
            return Ok(result);
        }
        let errno = errno();
        if errno != libc::EINTR {
            return Err(errno);
        }
    }
}

/// The system call itself: glibc has a function for it since 2.33 only, and a library that is linked to that
/// would not load with an older one. On these processors the kernel's struct is the libcs'.
#[cfg(all(target_os = "linux", target_pointer_width = "64", any(target_arch = "x86_64", target_arch = "aarch64")))]
unsafe fn fstat(fd: c_int, stat: *mut libc::stat) -> c_int {
    // SAFETY: by the caller's promise, `stat` is writable.
    unsafe { libc::syscall(libc::SYS_fstat, fd, stat) as c_int }
}

#[cfg(not(all(
    target_os = "linux",
    target_pointer_width = "64",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
use libc::fstat;

/// 0, or an errno.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn fallocate(fd: c_int, offset: libc::off_t, len: libc::off_t) -> c_int {
    // SAFETY: numbers only.
    match unsafe { libc::fallocate(fd, 0, offset, len) } {
        0 => 0,
        _ => errno(),
    }
}

/// The kernel's own call on these systems too, not an imitation.
#[cfg(any(target_os = "freebsd", target_os = "dragonfly"))]
fn fallocate(fd: c_int, offset: libc::off_t, len: libc::off_t) -> c_int {
    // SAFETY: numbers only.
    unsafe { libc::posix_fallocate(fd, offset, len) }
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd", target_os = "dragonfly")))]
fn fallocate(_: c_int, _: libc::off_t, _: libc::off_t) -> c_int {
    libc::EOPNOTSUPP
}

/// The calling thread's errno.
pub fn errno() -> i32 {
    // SAFETY: every libc gives each thread an errno of its own at this address.
    unsafe { *errno_address() }
}

#[cfg(any(target_os = "android", target_os = "netbsd", target_os = "openbsd"))]
use libc::__errno as errno_address;
#[cfg(any(target_os = "linux", target_os = "dragonfly"))]
use libc::__errno_location as errno_address;
#[cfg(any(target_vendor = "apple", target_os = "freebsd"))]
use libc::__error as errno_address;

/// This process in an owner's name: its PID namespace and its number there. A namespace of 0 is unknown.
pub(crate) fn process() -> u64 {
    // SAFETY: it takes nothing and cannot fail.
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

/// Whether the system knows no process of that number. False where it does not say.
pub(crate) fn is_no_more(number: u32) -> bool {
    match libc::pid_t::try_from(number) {
        // Others than these are no single process's.
        // SAFETY: a number; signal 0 is sent to nobody.
        Ok(pid @ 1..) => unsafe { libc::kill(pid, 0) != 0 && errno() == libc::ESRCH },
        _ => false,
    }
}
