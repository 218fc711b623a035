//! Whether the content of a file is of this boot of the machine.
//!
//! A file's header notes two names, and one that agrees is enough:
//!
//! - **the boot's id**, which processes without /proc/sys (systemd's `ProcSubset=pid`, a chroot)
//!   cannot read, and in whose place some containers have an id of their own (LXC, systemd-nspawn);
//! - **the inode**, for a file in tmpfs. Such a file does not outlive the boot, and the kernel
//!   gives its inode a random number that no copy of the file has. A filter of system calls may
//!   refuse to name it.
//!
//! A name that cannot be read is unknown. It agrees with nothing, and differs from nothing.
//!
//! No model notices a weaker ordering in this file, because loom's tables are in no files.

use super::system::Fd;
#[cfg(target_os = "linux")]
use super::system::{again, boot_id};
use crate::sync::{AtomicU64, Ordering};
use crate::table::memory::mix::fold;

/// The names of the boot that a file's content is of. 0: unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Boot {
    pub(crate) id: [u64; 2],
    pub(crate) inode: u64,
}

/// What two [`Boot`]s say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Agreement {
    /// They are of one boot.
    Same,
    /// They have different ids.
    Other,
    /// The names that are known do not tell.
    Unknown,
}

impl Boot {
    /// This boot, for a file with this [`inode`].
    pub(crate) fn of_now(inode: u64) -> Boot {
        Boot { id: boot_id().unwrap_or_default(), inode }
    }

    pub(crate) fn is_known(&self) -> bool {
        self.id != [0; 2] || self.inode != 0
    }

    /// What a file's header, whose names these are, says of `here`: this boot, for the same file.
    pub(crate) fn agrees(&self, here: &Boot) -> Agreement {
        let both_known = self.id != [0; 2] && here.id != [0; 2];
        if (both_known && self.id == here.id) || (self.inode != 0 && self.inode == here.inode) {
            return Agreement::Same;
        }
        match both_known {
            true => Agreement::Other,
            false => Agreement::Unknown,
        }
    }
}

/// The words of a header that note a boot.
#[derive(Debug)]
pub(crate) struct Noted<'a> {
    pub(crate) id: &'a [AtomicU64; 2],
    pub(crate) inode: &'a AtomicU64,
}

impl Noted<'_> {
    /// Acquire: the process that noted the boot prepared the content before.
    pub(crate) fn load(&self) -> Boot {
        let id = self.id.each_ref().map(|word| word.load(Ordering::Acquire));
        Boot { id, inode: self.inode.load(Ordering::Acquire) }
    }

    /// Notes a boot, word by word. A reader in between sees ids that agree with none: no boot has
    /// one whose second word is 0.
    pub(crate) fn store(&self, boot: Boot) {
        let ([first, second], [name, rest]) = (self.id, boot.id);
        self.inode.store(0, Ordering::Relaxed);
        second.store(0, Ordering::Release);
        first.store(name, Ordering::Release);
        second.store(rest, Ordering::Release);
        self.inode.store(boot.inode, Ordering::Release);
    }
}

/// The name of a file's inode if the file is in tmpfs, otherwise 0. 0, too, if the system does not
/// say.
pub(super) fn inode(fd: &Fd) -> u64 {
    match handle_in_tmpfs(fd) {
        Some(words) => fold(&words).max(1),
        None => 0,
    }
}

/// The handle of a file in tmpfs, as words. Its inode's number and the random number are among
/// them.
#[cfg(target_os = "linux")]
fn handle_in_tmpfs(fd: &Fd) -> Option<[u64; 3]> {
    #[repr(C)]
    struct Handle {
        bytes: libc::c_uint,
        kind: core::ffi::c_int,
        words: [u32; 4],
    }
    // SAFETY: all fields of a statfs are integers, so zeroes are valid.
    let mut system: libc::statfs = unsafe { core::mem::zeroed() };
    // SAFETY: `system` is writable during the call.
    again(|| unsafe { libc::fstatfs(fd.raw(), &mut system) }).ok()?;
    // The type's width and sign differ among libcs.
    if system.f_type as u64 & 0xffff_ffff != libc::TMPFS_MAGIC as u64 {
        return None;
    }
    // tmpfs needs three words. The system refuses a handle that is too long for the place.
    let mut handle = Handle { bytes: 16, kind: 0, words: [0; 4] };
    let mut mount: core::ffi::c_int = 0;
    again(|| {
        let (handle, mount) = (core::ptr::from_mut(&mut handle), core::ptr::from_mut(&mut mount));
        // SAFETY: the name is 0-terminated; the handle says how long its place is, and both are
        // writable during the call.
        unsafe {
            libc::syscall(
                libc::SYS_name_to_handle_at,
                fd.raw(),
                c"".as_ptr(),
                handle,
                mount,
                libc::AT_EMPTY_PATH,
            ) as _
        }
    })
    .ok()?;
    let Handle { bytes, kind, words: [first, second, third, fourth] } = handle;
    let pair = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
    Some([pair(kind as u32, bytes), pair(first, second), pair(third, fourth)])
}

#[cfg(not(target_os = "linux"))]
fn handle_in_tmpfs(_: &Fd) -> Option<[u64; 3]> {
    None
}

#[cfg(test)]
mod tests {
    use super::Agreement::{Other, Same, Unknown};
    use super::*;

    const fn boot(id: u64, inode: u64) -> Boot {
        Boot { id: [id, id], inode }
    }

    /// E1: what is unknown agrees with nothing, and is no other boot.
    #[test]
    fn one_name_that_agrees_is_enough_and_none_is_not() {
        for (noted, here, expected) in [
            // On a disk.
            (boot(1, 0), boot(1, 0), Same),
            (boot(1, 0), boot(2, 0), Other),
            (boot(1, 0), boot(0, 0), Unknown),
            (boot(0, 0), boot(0, 0), Unknown),
            // In tmpfs: a process that reads both; one without the id; one in a container with an
            // id of its own; one without the inode.
            (boot(1, 7), boot(1, 7), Same),
            (boot(1, 7), boot(0, 7), Same),
            (boot(1, 7), boot(2, 7), Same),
            (boot(1, 7), boot(1, 0), Same),
            (boot(0, 7), boot(0, 7), Same),
            // A copy in tmpfs.
            (boot(1, 7), boot(1, 8), Same),
            (boot(1, 7), boot(2, 8), Other),
            (boot(1, 7), boot(0, 8), Unknown),
            (boot(0, 7), boot(1, 8), Unknown),
            (boot(0, 7), boot(0, 0), Unknown),
            // A copy on a disk, in this boot and in the next.
            (boot(1, 7), boot(1, 0), Same),
            (boot(1, 7), boot(2, 0), Other),
        ] {
            assert_eq!(noted.agrees(&here), expected, "{noted:?} {here:?}");
        }
    }
}
