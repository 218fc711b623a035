//! Wrappers of system calls. They repeat interrupted calls and return errors as errnos. A
//! descriptor is closed by its drop.

use super::super::error::{Call, TableError};
use crate::namespace::fstat;
use core::ffi::{c_int, CStr};

/// A descriptor that is closed when it is dropped.
pub(super) struct Fd(c_int);

/// The parts of a file's status that regions use.
pub(super) struct Status {
    pub(super) regular: bool,
    pub(super) len: u64,
    /// Bytes that the filesystem has allocated for the file.
    pub(super) allocated: u64,
    /// The device and the inode. Descriptors with equal ones are of the same file.
    pub(super) identity: (u64, u64),
    /// The user who owns the file.
    pub(super) owner: u32,
    /// The file's permissions.
    pub(super) mode: u32,
    /// The number of the file's names.
    pub(super) links: u64,
}

/// The device and the inode of the caller's descriptor.
pub(super) fn identity(fd: c_int) -> Result<(u64, u64), i32> {
    // The drop would close the descriptor.
    let fd = core::mem::ManuallyDrop::new(Fd::borrowed(fd));
    Ok(fd.status()?.identity)
}

impl Fd {
    /// Opens `name` in `directory`. A program that this process executes does not inherit the
    /// descriptor (`O_CLOEXEC`).
    pub(super) fn open(directory: c_int, name: &CStr, flags: c_int) -> Result<Fd, i32> {
        // The mode of a new file, until the caller sets its permissions with `permit`.
        const OWNER: libc::c_uint = 0o600;
        // SAFETY: `name` is 0-terminated; the mode is passed as the type that C promotes it to.
        let fd = again(|| unsafe {
            libc::openat(directory, name.as_ptr(), flags | libc::O_CLOEXEC, OWNER)
        })?;
        Ok(Fd(fd))
    }

    /// A descriptor that the caller hands over. The drop closes it.
    #[cfg(target_os = "linux")]
    pub(super) fn owned(fd: c_int) -> Fd {
        Fd(fd)
    }

    /// The caller's descriptor. The caller must not drop the value, because the drop would close
    /// the descriptor.
    pub(super) fn borrowed(fd: c_int) -> Fd {
        Fd(fd)
    }

    pub(super) fn raw(&self) -> c_int {
        self.0
    }

    /// Returns the descriptor, which the caller must close.
    pub(super) fn into_raw(self) -> c_int {
        core::mem::ManuallyDrop::new(self).0
    }

    pub(super) fn status(&self) -> Result<Status, i32> {
        // SAFETY: all fields of a stat are integers, so zeroes are valid.
        let mut stat: libc::stat = unsafe { core::mem::zeroed() };
        // SAFETY: `stat` is writable during the call.
        again(|| unsafe { fstat(self.0, &mut stat) })?;
        Ok(Status::of(&stat))
    }

    /// Reads from the file's beginning, and returns the number of bytes.
    pub(super) fn read(&self, buffer: &mut [u8]) -> Result<usize, i32> {
        let mut done = 0;
        while let Some(rest) = buffer.get_mut(done..).filter(|rest| !rest.is_empty()) {
            // pread, because processes that share a descriptor share its position, too.
            // SAFETY: `rest` is writable for its length.
            let n = unsafe {
                libc::pread(self.0, rest.as_mut_ptr().cast(), rest.len(), done as libc::off_t)
            };
            match n {
                0 => break,
                n if n > 0 => done = done.saturating_add(n as usize),
                _ if errno() == libc::EINTR => {}
                _ => return Err(errno()),
            }
        }
        Ok(done)
    }

    /// Overwrites the first `len` bytes of the file with zeroes.
    pub(super) fn write_zeroes(&self, len: u64) -> Result<(), i32> {
        const ZEROES: [u8; 4096] = [0; 4096];
        let mut at = 0_u64;
        while at < len {
            let n = (len - at).min(4096) as usize;
            let offset = libc::off_t::try_from(at).map_err(|_| libc::EFBIG)?;
            // SAFETY: `n` is at most the length of ZEROES.
            let written = unsafe { libc::pwrite(self.0, ZEROES.as_ptr().cast(), n, offset) };
            match written {
                // A write of 0 bytes without an errno could repeat for ever, so it is an error.
                0 => return Err(libc::ENOSPC),
                n if n > 0 => at = at.saturating_add(n as u64),
                _ if errno() == libc::EINTR => {}
                _ => return Err(errno()),
            }
        }
        Ok(())
    }

    /// Changes the file's length. `EFBIG` if that is above this process's limit of a file's length.
    pub(super) fn resize(&self, len: u64) -> Result<(), i32> {
        // The kernel ends a process (SIGXFSZ) that exceeds the limit.
        let mut limit =
            libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
        // SAFETY: `limit` is writable during the call.
        let known = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) } == 0;
        #[allow(clippy::unnecessary_cast)] // narrower on some systems
        if known && len > limit.rlim_cur as u64 {
            return Err(libc::EFBIG);
        }
        let len = libc::off_t::try_from(len).map_err(|_| libc::EFBIG)?;
        // SAFETY: integer arguments only.
        again(|| unsafe { libc::ftruncate(self.0, len) })?;
        Ok(())
    }

    /// Makes the filesystem allocate blocks for the file's `len` bytes, without changing its
    /// content. `false` if the filesystem cannot.
    ///
    /// It does not use libc's emulation, which reads a byte of each block and writes it back: that
    /// could overwrite a byte that another process has just changed.
    pub(super) fn reserve(&self, len: u64) -> Result<bool, i32> {
        // The first call is for the whole file, because a filesystem in memory then allocates
        // nothing if there is not enough room. A signal interrupts a call, which may undo it. The
        // next calls are for parts, so that frequent signals do not keep a large file from being
        // finished.
        const PART: u64 = 16 << 20;
        let mut most = len;
        let mut at = 0_u64;
        while at < len {
            let part = (len - at).min(most);
            let (Ok(offset), Ok(bytes)) = (libc::off_t::try_from(at), libc::off_t::try_from(part))
            else {
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

    /// `ENOSPC` if the filesystem has fewer than `bytes` free bytes. Success if it does not say.
    pub(super) fn has_room(&self, bytes: u64) -> Result<(), i32> {
        // SAFETY: all fields of a statvfs are integers, so zeroes are valid.
        let mut system: libc::statvfs = unsafe { core::mem::zeroed() };
        // SAFETY: `system` is writable during the call.
        if again(|| unsafe { libc::fstatvfs(self.0, &mut system) }).is_err() || system.f_blocks == 0
        {
            return Ok(());
        }
        // Filesystems keep some blocks for root.
        // SAFETY: geteuid takes no argument and cannot fail.
        let blocks = if unsafe { libc::geteuid() } == 0 { system.f_bfree } else { system.f_bavail };
        let unit = if system.f_frsize == 0 { system.f_bsize } else { system.f_frsize };
        #[allow(clippy::unnecessary_cast)] // narrower on some systems
        match bytes <= (blocks as u64).saturating_mul(unit as u64) {
            true => Ok(()),
            false => Err(libc::ENOSPC),
        }
    }

    /// Whether a seal keeps every process from truncating the file.
    pub(super) fn keeps_its_length(&self) -> bool {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        // SAFETY: integer arguments only. For a file that cannot have seals the result is -1, which
        // would have every bit set.
        return matches!(unsafe { libc::fcntl(self.0, libc::F_GET_SEALS) }, seals if seals != -1 && seals & libc::F_SEAL_SHRINK != 0);
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        false
    }

    /// Gives the file the permissions `mode`, independent of the umask.
    pub(super) fn permit(&self, mode: u32) -> Result<(), i32> {
        // SAFETY: integer arguments only. Nine bits fit every mode_t.
        again(|| unsafe { libc::fchmod(self.0, (mode & 0o777) as libc::mode_t) })?;
        Ok(())
    }

    /// Returns when the file's bytes are on the disk.
    pub(super) fn flush(&self) -> Result<(), i32> {
        // SAFETY: integer arguments only.
        again(|| unsafe { libc::fsync(self.0) })?;
        Ok(())
    }

    /// Takes or releases the lock of the whole file.
    pub(super) fn flock(&self, operation: c_int) -> Result<(), i32> {
        // SAFETY: integer arguments only.
        again(|| unsafe { libc::flock(self.0, operation) })?;
        Ok(())
    }
}

impl Drop for Fd {
    fn drop(&mut self) {
        // An interrupted close is not repeated: on Linux the descriptor is closed, and another file
        // may have its number by now. SAFETY: only this value has the descriptor.
        unsafe { libc::close(self.0) };
    }
}

impl Status {
    /// The status of the file `name`, of any type. It does not follow a symbolic link.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(super) fn of_name(directory: &Fd, name: &CStr) -> Result<Status, i32> {
        Fd::open(directory.0, name, libc::O_PATH | libc::O_NOFOLLOW)?.status()
    }

    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    pub(super) fn of_name(directory: &Fd, name: &CStr) -> Result<Status, i32> {
        // SAFETY: all fields of a stat are integers, so zeroes are valid.
        let mut stat: libc::stat = unsafe { core::mem::zeroed() };
        // SAFETY: `name` is 0-terminated, `stat` is writable during the call.
        again(|| unsafe {
            libc::fstatat(directory.0, name.as_ptr(), &mut stat, libc::AT_SYMLINK_NOFOLLOW)
        })?;
        Ok(Status::of(&stat))
    }

    // The types of some fields are narrower on some systems.
    #[allow(clippy::unnecessary_cast)]
    fn of(stat: &libc::stat) -> Status {
        Status {
            regular: stat.st_mode & libc::S_IFMT == libc::S_IFREG,
            len: u64::try_from(stat.st_size).unwrap_or(0),
            allocated: u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(512),
            // Signed on some systems, but only compared.
            identity: (stat.st_dev as _, stat.st_ino as _),
            owner: stat.st_uid as _,
            mode: stat.st_mode as u32 & 0o7777,
            links: stat.st_nlink as _,
        }
    }
}

/// A short 0-terminated text, which needs no core::fmt.
pub(super) struct PathText {
    bytes: [u8; PathText::ROOM],
    len: usize,
}

impl PathText {
    const ROOM: usize = 96;

    pub(super) fn new(start: &[u8]) -> PathText {
        let mut text = PathText { bytes: [0; PathText::ROOM], len: 0 };
        text.push(start);
        text
    }

    /// Appends `bytes`. It drops those that do not fit; the terminating 0 always fits.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        for &byte in bytes.iter() {
            if self.len >= PathText::ROOM - 1 {
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

/// A new file in memory without a name. All of its `len` bytes are allocated, and a seal fixes its
/// length.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn sealed(len: u64) -> Result<Fd, TableError> {
    let open = |errno| TableError::System(Call::Open, errno);
    let allocate = |errno| TableError::System(Call::Allocate, errno);
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // `syscall`, because older libcs have no function for it.
    // SAFETY: the name is 0-terminated; the arguments have the widths of the kernel's.
    let fd = again(|| unsafe {
        libc::syscall(libc::SYS_memfd_create, c"tollbar".as_ptr(), flags) as c_int
    })
    .map_err(open)?;
    let fd = Fd(fd);
    fd.resize(len).map_err(allocate)?;
    fd.reserve(len).map_err(allocate)?;
    // F_SEAL_SEAL keeps every process from adding a seal against writes.
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    // SAFETY: integer arguments only.
    again(|| unsafe { libc::fcntl(fd.0, libc::F_ADD_SEALS, seals) }).map_err(open)?;
    Ok(fd)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn sealed(_: u64) -> Result<Fd, TableError> {
    Err(TableError::System(Call::Open, libc::ENOSYS))
}

/// A random number that an attacker cannot predict.
pub fn random_u64() -> Result<u64, TableError> {
    let mut bytes = [0_u8; 8];
    if !getrandom(&mut bytes) {
        let read = Fd::open(libc::AT_FDCWD, c"/dev/urandom", libc::O_RDONLY)
            .and_then(|fd| fd.read(&mut bytes));
        match read {
            Ok(8) => {}
            Ok(_) => return Err(TableError::System(Call::Random, libc::EIO)),
            Err(errno) => return Err(TableError::System(Call::Random, errno)),
        }
    }
    Ok(u64::from_ne_bytes(bytes))
}

/// `syscall`, because older libcs have no function for it.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn getrandom(bytes: &mut [u8; 8]) -> bool {
    loop {
        // SAFETY: `bytes` is writable for its length; the arguments have the widths of the
        // kernel's.
        let n = unsafe {
            libc::syscall(libc::SYS_getrandom, bytes.as_mut_ptr(), bytes.len(), 0 as libc::c_uint)
        };
        if n == 8 {
            return true;
        }
        // The kernel never returns a part of so few bytes.
        if n >= 0 || errno() != libc::EINTR {
            return false;
        }
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn getrandom(_: &mut [u8; 8]) -> bool {
    false
}

/// The id of this boot of the machine; `None` if the system gives none.
pub(crate) fn boot_id() -> Option<[u64; 2]> {
    // One byte more than an id and a newline, so that a longer text is noticed and refused.
    let mut text = [0_u8; 38];
    let fd = Fd::open(libc::AT_FDCWD, c"/proc/sys/kernel/random/boot_id", libc::O_RDONLY).ok()?;
    let len = fd.read(&mut text).ok()?;
    parse_uuid(text.get(..len)?)
}

/// `01234567-89ab-cdef-0123-456789abcdef`, with or without a newline.
pub(super) fn parse_uuid(text: &[u8]) -> Option<[u64; 2]> {
    // Not strip_suffix: with optimization for size the compiler keeps its panic.
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

/// The call's result or its errno. It repeats the call as long as signals interrupt it.
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

/// Allocates blocks. Returns 0 or an errno.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn fallocate(fd: c_int, offset: libc::off_t, len: libc::off_t) -> c_int {
    // SAFETY: integer arguments only.
    match unsafe { libc::fallocate(fd, 0, offset, len) } {
        0 => 0,
        _ => errno(),
    }
}

/// On these systems posix_fallocate is a system call, and no emulation.
#[cfg(any(target_os = "freebsd", target_os = "dragonfly"))]
fn fallocate(fd: c_int, offset: libc::off_t, len: libc::off_t) -> c_int {
    // SAFETY: integer arguments only.
    unsafe { libc::posix_fallocate(fd, offset, len) }
}

#[cfg(not(any(
    target_os = "linux",
    target_os = "android",
    target_os = "freebsd",
    target_os = "dragonfly"
)))]
fn fallocate(_: c_int, _: libc::off_t, _: libc::off_t) -> c_int {
    libc::EOPNOTSUPP
}

/// The calling thread's errno.
pub fn errno() -> i32 {
    // SAFETY: every libc has the calling thread's errno at this address.
    unsafe { *errno_address() }
}

/// Sets the calling thread's errno.
pub fn set_errno(errno: i32) {
    // SAFETY: as for `errno`.
    unsafe { errno_address().write(errno) };
}

#[cfg(any(target_os = "android", target_os = "netbsd", target_os = "openbsd"))]
use libc::__errno as errno_address;
#[cfg(any(target_os = "linux", target_os = "dragonfly"))]
use libc::__errno_location as errno_address;
#[cfg(any(target_vendor = "apple", target_os = "freebsd"))]
use libc::__error as errno_address;
