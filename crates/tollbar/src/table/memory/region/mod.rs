//! The memory of a table: private, shared, the caller's, or a file's.

mod file;
mod system;
#[cfg(test)]
mod tests;
mod trust;

use super::error::{Call, TableError};
use core::ffi::{c_int, CStr};
use core::fmt;
use core::ptr::{null_mut, NonNull};
use file::{Named, Way};
pub use system::{again, errno, random_u64};
pub(crate) use system::{boot_id, is_no_more, process};
pub(crate) use trust::Access;
pub use trust::Trust;

/// What is read of an existing file before it is mapped: a table's header and its policies.
pub(crate) const HEAD: usize = 36 << 10;

/// What the memory is aligned to at least: a cache line.
const ALIGN: usize = 64;

/// Memory that stays where it is for as long as this lives.
///
/// Another process may truncate a mapped file: then the system kills a process that touches the missing pages. The file's permissions say
/// who may.
pub struct Region {
    base: NonNull<u8>,
    len: usize,
    kind: Kind,
}

enum Kind {
    /// Mapped here, and no file's.
    Anonymous,
    /// The caller's.
    Borrowed,
    /// A file's, mapped here.
    File(Named),
}

/// How `open_or_create` came by the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opened {
    Created,
    Attached,
}

// SAFETY: the region is an address and a length that do not change, and its memory is the process's, not a
// thread's. It hands out no reference to that memory: code that makes one must say how threads share it.
unsafe impl Send for Region {}
// SAFETY: as Send; no method changes the region.
unsafe impl Sync for Region {}

impl Region {
    /// Zeroed memory of this process, not touched until it is used. A child that is forked gets a copy.
    pub fn private(len: usize) -> Result<Region, TableError> {
        Region::map(len, libc::MAP_PRIVATE | libc::MAP_ANON, -1, Kind::Anonymous)
    }

    /// Zeroed memory that is shared with the children that are forked later.
    pub fn shared(len: usize) -> Result<Region, TableError> {
        Region::map(len, libc::MAP_SHARED | libc::MAP_ANON, -1, Kind::Anonymous)
    }

    /// The caller's memory, as it is.
    ///
    /// # Safety
    /// The `len` bytes at `memory` can be read and written for as long as the region lives.
    pub unsafe fn borrowed(memory: NonNull<u8>, len: usize) -> Result<Region, TableError> {
        if memory.as_ptr() as usize & (ALIGN - 1) != 0 {
            return Err(TableError::Misaligned);
        }
        if isize::try_from(len).is_err() {
            return Err(TableError::Capacity);
        }
        Ok(Region { base: memory, len, kind: Kind::Borrowed })
    }

    /// Opens the table at `path`, or makes one of `len` bytes.
    ///
    /// `inspect` is given the first [`HEAD`] bytes of an existing file, fewer if it has fewer, and says how
    /// long the whole must be. `fill` is given the zeroed memory of a new one before anybody else can see
    /// it; it may be called more than once, each time with a fresh region, of which one becomes the table,
    /// or none where another process was first.
    pub(crate) fn open_or_create(
        path: &CStr,
        len: usize,
        access: Access,
        inspect: impl Fn(&[u8]) -> Result<u64, TableError>,
        fill: impl Fn(&Region) -> Result<(), TableError>,
    ) -> Result<(Region, Opened), TableError> {
        file::open_or_create(path, len, access, Way::Unnamed, &inspect, &fill)
    }

    /// Opens the table at `path`, which must exist.
    pub(crate) fn open(
        path: &CStr,
        access: Access,
        inspect: impl Fn(&[u8]) -> Result<u64, TableError>,
    ) -> Result<Region, TableError> {
        file::open(path, access, &inspect)
    }

    /// Zeroed memory of `len` bytes and its descriptor, which the caller closes. A process that gets the descriptor shares the memory. It is
    /// sealed: no process can truncate it or let it grow.
    pub(crate) fn sealed(len: usize) -> Result<(Region, c_int), TableError> {
        let fd = system::sealed(u64::try_from(len).map_err(|_| TableError::Capacity)?)?;
        let region = Region::map(len, libc::MAP_SHARED, fd.raw(), Kind::Anonymous)?;
        Ok((region, fd.into_raw()))
    }

    /// The memory behind the caller's descriptor, which must be sealed against being cut off.
    pub(crate) fn of_descriptor(
        fd: c_int,
        inspect: impl Fn(&[u8]) -> Result<u64, TableError>,
    ) -> Result<Region, TableError> {
        file::of_descriptor(fd, &inspect)
    }

    /// Where the memory begins: aligned to a cache line, to a page if it was mapped here.
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Touches every page, so that all of it is there. Only before anybody else uses it; not the caller's memory, which
    /// has been written to already.
    pub(crate) fn populate(&self) {
        if matches!(self.kind, Kind::Borrowed) {
            return;
        }
        let mut at = 0;
        while at < self.len {
            // SAFETY: within the region; what is there is put back, and nobody else writes yet.
            unsafe {
                let byte = self.base.as_ptr().add(at);
                byte.write_volatile(byte.read_volatile());
            }
            at += 4096;
        }
    }

    /// Asks that a child that is forked finds zeros in this private memory. Whether the system will see to it.
    pub(crate) fn wipe_in_children(&self) -> bool {
        #[cfg(target_os = "linux")]
        // SAFETY: pages of the region's own; nothing in them changes here.
        return unsafe { libc::madvise(self.base.as_ptr().cast(), self.len, libc::MADV_WIPEONFORK) } == 0;
        #[cfg(not(target_os = "linux"))]
        false
    }

    /// Asks for huge pages from `offset` on. Whether the system took note; never an error.
    pub(crate) fn advise_huge(&self, offset: usize) -> bool {
        advise_huge(self.base, self.len, offset)
    }

    /// Calls `f` while no other process, and no other thread, is in a call of this for the same file.
    ///
    /// The lock goes with a process that is killed, unless a child forked during `f` still lives. Memory
    /// that is no file's has no such lock: there, `f` is just called. A call within `f` waits for ever.
    ///
    /// An error where the file no longer has the name it was opened by, or may no longer be opened; `f` has
    /// not been called then.
    pub(crate) fn exclusively<T>(&self, f: impl FnOnce() -> T) -> Result<T, TableError> {
        let _lock = match &self.kind {
            Kind::File(named) => Some(named.lock()?),
            Kind::Anonymous | Kind::Borrowed => None,
        };
        Ok(f())
    }

    /// Returns when a file's memory is on its disk. Other memory has nowhere to go.
    pub(crate) fn sync(&self) -> Result<(), TableError> {
        if let Kind::File(_) = self.kind {
            // SAFETY: a mapping of that address and length; it is only read.
            again(|| unsafe { libc::msync(self.base.as_ptr().cast(), self.len, libc::MS_SYNC) })
                .map_err(|errno| TableError::System(Call::Sync, errno))?;
        }
        Ok(())
    }

    fn map(len: usize, flags: c_int, fd: c_int, kind: Kind) -> Result<Region, TableError> {
        // No pointer may go further than this from another into the same memory.
        if isize::try_from(len).is_err() {
            return Err(TableError::Capacity);
        }
        // SAFETY: a new mapping at an address of the system's choice, so no memory in use is replaced.
        let base = unsafe { libc::mmap(null_mut(), len, libc::PROT_READ | libc::PROT_WRITE, flags, fd, 0) };
        if base == libc::MAP_FAILED {
            return Err(match errno() {
                libc::ENOMEM => TableError::NoMemory,
                errno => TableError::System(Call::Map, errno),
            });
        }
        match NonNull::new(base.cast()) {
            Some(base) => Ok(Region { base, len, kind }),
            // No system maps there unasked.
            None => Err(TableError::NoMemory),
        }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        match self.kind {
            // SAFETY: mapped by `map` with this address and length, and unmapped by nobody else.
            Kind::Anonymous | Kind::File(_) => unsafe {
                libc::munmap(self.base.as_ptr().cast(), self.len);
            },
            Kind::Borrowed => {}
        }
    }
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Kind::Anonymous => "anonymous",
            Kind::Borrowed => "borrowed",
            Kind::File(_) => "file",
        };
        f.debug_struct("Region").field("base", &self.base).field("len", &self.len).field("kind", &kind).finish()
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn advise_huge(base: NonNull<u8>, len: usize, offset: usize) -> bool {
    // SAFETY: a number only.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    let Some(mask) = usize::try_from(page).ok().and_then(|page| page.checked_sub(1)) else {
        return false;
    };
    // Whole pages only, and none that are partly somebody else's.
    let base = base.as_ptr() as usize;
    let start = base.saturating_add(offset).saturating_add(mask) & !mask;
    let end = base.saturating_add(len) & !mask;
    if start >= end {
        return false;
    }
    // SAFETY: the pages are within the region; the advice changes how they are kept, not what is in them.
    unsafe { libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_HUGEPAGE) == 0 }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn advise_huge(_: NonNull<u8>, _: usize, _: usize) -> bool {
    false
}
