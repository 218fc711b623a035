//! Whether another view has a file mapped, in any process of this machine and whatever the
//! namespaces.
//!
//! Each view locks a byte beyond the file's end, for reading. The lock belongs to the open file,
//! and a mapping keeps that open when the descriptor is closed. So the lock lasts exactly as long
//! as the mapping: over a fork until the last child has unmapped the file, and not longer than the
//! process, however that ends. It needs no /proc, and no boot, user or namespace changes it.
//!
//! overlayfs maps another open file than the one that has the lock, so there the lock is lost with
//! the descriptor. A trial finds that out before [`Others::exist`] says that there are none.

use super::mapping::{Backing, Region};
use super::named::Named;
use super::system::Fd;
use crate::table::memory::error::{Call, TableError};
#[cfg(target_os = "linux")]
use {super::system::again, core::ffi::c_int};

/// Shows a view's open file to the other views, before its file is mapped.
pub(super) fn show(fd: &Fd) -> Result<(), TableError> {
    lock(fd, LockedByte::View).map_err(|errno| TableError::System(Call::Lock, errno))
}

/// The other views of a file that a call opens. While it has this value, no other call opens the
/// file.
pub(crate) struct Others<'a> {
    fd: &'a Fd,
    named: &'a Named,
}

impl<'a> Others<'a> {
    pub(super) fn new(fd: &'a Fd, named: &'a Named) -> Others<'a> {
        Others { fd, named }
    }

    /// Whether another view has the file mapped; `None` if the system does not say.
    pub(crate) fn exist(&self) -> Option<bool> {
        match is_locked(self.fd, LockedByte::View).ok()? {
            true => Some(true),
            false => self.mapping_keeps_lock().then_some(false),
        }
    }

    /// Tries it out with another open file.
    fn mapping_keeps_lock(&self) -> bool {
        const PAGE: usize = 4096;
        let Ok(other) = self.named.open() else { return false };
        if lock(&other, LockedByte::Trial).is_err() {
            return false;
        }
        let Ok(mapping) = Region::map(PAGE, libc::MAP_SHARED, other.raw(), Backing::Anonymous)
        else {
            return false;
        };
        drop(other);
        let kept = is_locked(self.fd, LockedByte::Trial) == Ok(true);
        drop(mapping);
        kept
    }
}

/// A byte of a file that a lock stands on.
#[derive(Clone, Copy)]
enum LockedByte {
    /// A view has the file mapped.
    View = 0,
    /// A process tries out whether a mapping keeps the lock.
    Trial = 1,
}

/// Locks the byte for the open file. Other open files may have the same lock.
#[cfg(target_os = "linux")]
fn lock(fd: &Fd, mark: LockedByte) -> Result<(), i32> {
    let mut lock = description(mark, libc::F_RDLCK);
    // SAFETY: `lock` is valid during the call.
    again(|| unsafe { libc::fcntl(fd.raw(), libc::F_OFD_SETLK, &mut lock) })?;
    Ok(())
}

/// Whether another open file has the byte locked.
#[cfg(target_os = "linux")]
fn is_locked(fd: &Fd, mark: LockedByte) -> Result<bool, i32> {
    let mut lock = description(mark, libc::F_WRLCK);
    // SAFETY: `lock` is valid and writable during the call.
    again(|| unsafe { libc::fcntl(fd.raw(), libc::F_OFD_GETLK, &mut lock) })?;
    Ok(c_int::from(lock.l_type) != libc::F_UNLCK)
}

#[cfg(target_os = "linux")]
fn description(mark: LockedByte, kind: c_int) -> libc::flock {
    // SAFETY: all fields of a flock are integers, so zeroes are valid. A lock of an open file must
    // have a process of 0.
    let mut lock: libc::flock = unsafe { core::mem::zeroed() };
    lock.l_type = kind as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock.l_start = libc::off_t::MAX - 8 + mark as libc::off_t;
    lock.l_len = 1;
    lock
}

#[cfg(not(target_os = "linux"))]
fn lock(_: &Fd, _: LockedByte) -> Result<(), i32> {
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn is_locked(_: &Fd, _: LockedByte) -> Result<bool, i32> {
    Err(libc::ENOSYS)
}
