//! A table's file by its name: the path that a caller gives, and the file that is open under it.

use super::boot;
use super::system::{errno, Fd, Status};
use crate::table::memory::error::{Call, TableError};
use core::ffi::{c_char, c_int, CStr};
use core::ptr::{null_mut, NonNull};

/// The flags for an existing file. The open does not follow a symbolic link, does not wait for the
/// other end of a pipe, and does not make a terminal the controlling one.
pub(super) const EXISTING: c_int =
    libc::O_RDWR | libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;

/// A path: an open directory, which stays the same one if another process renames it, and a name in
/// it.
pub(super) struct FilePath<'a> {
    pub(super) directory: Fd,
    /// The absolute path of the directory.
    absolute: Owned,
    pub(super) name: &'a CStr,
}

impl<'a> FilePath<'a> {
    pub(super) fn of(path: &'a CStr) -> Result<FilePath<'a>, TableError> {
        let open = |errno| TableError::System(Call::Open, errno);
        let bytes = path.to_bytes_with_nul();
        let start =
            bytes.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash.saturating_add(1));
        let name = bytes.get(start..).and_then(|name| CStr::from_bytes_with_nul(name).ok());
        let name = name.filter(|name| !name.is_empty()).ok_or(open(libc::ENOENT))?;

        let mut parent = [0_u8; 4096];
        if start >= parent.len() {
            return Err(open(libc::ENAMETOOLONG));
        }
        let from = if start == 0 { b"." } else { bytes.get(..start).unwrap_or(b".") };
        for (to, from) in parent.iter_mut().zip(from) {
            *to = *from;
        }
        let parent = CStr::from_bytes_until_nul(&parent).map_err(|_| open(libc::ENAMETOOLONG))?;

        Ok(FilePath {
            directory: Fd::open(libc::AT_FDCWD, parent, DIRECTORY).map_err(open)?,
            absolute: Owned::absolute(parent).map_err(open)?,
            name,
        })
    }

    pub(super) fn status(&self) -> Result<Status, TableError> {
        self.directory.status().map_err(|errno| TableError::System(Call::Open, errno))
    }
}

/// The flags for a directory. `O_PATH` needs no permission to list it.
#[cfg(any(target_os = "linux", target_os = "android"))]
const DIRECTORY: c_int = libc::O_PATH | libc::O_DIRECTORY;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const DIRECTORY: c_int = libc::O_RDONLY | libc::O_DIRECTORY;

/// The name and the identity of a region's file.
///
/// It keeps no descriptor, for two reasons. A lock of `flock` belongs to the open file, which
/// threads and forked children would share, so it would exclude none of them. And a program that
/// becomes a daemon closes every descriptor, whose number another file may get. So each lock opens
/// the file again and compares its identity.
pub(super) struct Named {
    path: Owned,
    identity: (u64, u64),
    /// The [`Boot::inode`](super::Boot::inode).
    pub(super) inode: u64,
}

impl Named {
    pub(super) fn new(place: &FilePath<'_>, status: &Status, fd: &Fd) -> Result<Named, TableError> {
        let path =
            Owned::joined(place.absolute.as_c_str(), place.name).ok_or(TableError::NoMemory)?;
        Ok(Named { path, identity: status.identity, inode: boot::inode(fd) })
    }

    /// Waits for the file's lock.
    pub(super) fn lock(&self) -> Result<FileLock, TableError> {
        let fd = self.open()?;
        fd.flock(libc::LOCK_EX).map_err(|errno| TableError::System(Call::Lock, errno))?;
        Ok(FileLock { fd })
    }

    /// Opens the file once more.
    pub(super) fn open(&self) -> Result<Fd, TableError> {
        let error = |errno| TableError::System(Call::Lock, errno);
        let fd = Fd::open(libc::AT_FDCWD, self.path.as_c_str(), EXISTING).map_err(error)?;
        // A mapped file keeps its inode even without a name, so an equal device and inode mean the
        // same file.
        match fd.status().map_err(error)?.identity == self.identity {
            true => Ok(fd),
            false => Err(error(libc::ESTALE)),
        }
    }
}

/// A file's lock. The drop releases it.
pub(super) struct FileLock {
    fd: Fd,
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // Closing does not release the lock if another thread has forked meanwhile, because the
        // child has the open file, too.
        let _ = self.fd.flock(libc::LOCK_UN);
    }
}

/// A 0-terminated text in memory from malloc.
struct Owned(NonNull<c_char>);

// SAFETY: only this value has the text. It does not change, and any thread may free it.
unsafe impl Send for Owned {}
// SAFETY: as Send.
unsafe impl Sync for Owned {}

impl Owned {
    /// `path` as an absolute path without symbolic links. It stays valid if the process changes its
    /// directory.
    fn absolute(path: &CStr) -> Result<Owned, i32> {
        // SAFETY: `path` is 0-terminated; with a null buffer realpath allocates the result with
        // malloc.
        let real = unsafe { libc::realpath(path.as_ptr(), null_mut()) };
        NonNull::new(real).map(Owned).ok_or_else(errno)
    }

    /// `directory/name`; `None` if malloc fails.
    fn joined(directory: &CStr, name: &CStr) -> Option<Owned> {
        let parts = [directory.to_bytes(), b"/", name.to_bytes_with_nul()];
        let len = parts.iter().fold(0_usize, |len, part| len.saturating_add(part.len()));
        // SAFETY: malloc takes any size.
        let start: NonNull<u8> = NonNull::new(unsafe { libc::malloc(len) }.cast())?;
        let mut to = start.as_ptr();
        for part in parts {
            // SAFETY: the parts have `len` bytes together, as has the new block, and do not overlap
            // it.
            unsafe {
                core::ptr::copy_nonoverlapping(part.as_ptr(), to, part.len());
                to = to.add(part.len());
            }
        }
        Some(Owned(start.cast()))
    }

    fn as_c_str(&self) -> &CStr {
        // SAFETY: both constructors make a 0-terminated text, which lives as long as `self`.
        unsafe { CStr::from_ptr(self.0.as_ptr()) }
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: the text is from malloc, and only this drop frees it.
        unsafe { libc::free(self.0.as_ptr().cast()) };
    }
}
