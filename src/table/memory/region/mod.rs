//! The memory of a table: private, shared with forked children, the caller's, or a file's.

mod boot;
mod file;
mod presence;
mod process;
mod system;
#[cfg(test)]
mod tests;
mod trust;

use super::error::{Call, TableError};
pub(crate) use boot::{Agreement, Boot, Noted};
use core::ffi::{c_int, CStr};
use core::fmt;
use core::ptr::{null_mut, NonNull};
use file::{Named, Way};
pub(crate) use presence::Others;
pub(crate) use process::{has_ended, is_process_gone, namespace, process, start_of};
use system::boot_id;
pub use system::{again, errno, random_u64, set_errno};
pub(crate) use trust::Access;
pub use trust::Trust;

/// Inspects the first bytes of a file, and returns the length of its object.
pub(crate) type Inspect<'a> = &'a dyn Fn(&[u8]) -> Result<u64, TableError>;

/// Writes a new object into zeroed memory.
pub(crate) type Fill<'a> = &'a dyn Fn(&Region) -> Result<(), TableError>;

/// Decides whether this process may use an existing file's object, before it is used. Meanwhile no other call that
/// has an `Enter` opens the file.
pub(crate) type Enter<'a> = &'a dyn Fn(&Region, &Others<'_>) -> Result<(), TableError>;

/// The number of bytes that are read from an existing file before it is mapped: a table's header and its policies.
pub(crate) const HEAD: usize = 36 << 10;

/// The least alignment of a region: a cache line.
const ALIGN: usize = 64;

/// Memory that keeps its address and length as long as this value lives.
///
/// Another process may truncate a mapped file. Then the system kills (SIGBUS) each process that touches the missing
/// pages. The file's permissions say which users can do so.
pub struct Region {
    base: NonNull<u8>,
    len: usize,
    kind: Kind,
    /// The device and the inode of the mapped file or descriptor; zeroes without one.
    identity: (u64, u64),
}

enum Kind {
    /// This process mapped the memory, without a file that has a name.
    Anonymous,
    /// The caller's memory.
    Borrowed,
    /// This process mapped the file.
    File(Named),
}

/// Whether `open_or_create` made the file or found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opened {
    Created,
    Attached,
}

// SAFETY: the address and the length do not change, and all threads of the process can use the memory. A region hands
// out no reference to the memory: code that makes one must say how threads share it.
unsafe impl Send for Region {}
// SAFETY: as Send; no method changes the region.
unsafe impl Sync for Region {}

impl Region {
    /// Zeroed memory of this process. The system allocates each page at its first access. A forked child gets a copy.
    pub fn private(len: usize) -> Result<Region, TableError> {
        Region::map(len, libc::MAP_PRIVATE | libc::MAP_ANON, -1, Kind::Anonymous)
    }

    /// Zeroed memory that this process shares with the children that it forks later.
    pub fn shared(len: usize) -> Result<Region, TableError> {
        Region::map(len, libc::MAP_SHARED | libc::MAP_ANON, -1, Kind::Anonymous)
    }

    /// The caller's memory, with its present content.
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
        Ok(Region { base: memory, len, kind: Kind::Borrowed, identity: (0, 0) })
    }

    /// Opens the table at `path`, or makes one of `len` bytes.
    ///
    /// `inspect` gets the first [`HEAD`] bytes of an existing file, or all if it has fewer, and returns the length
    /// that the file must have. `fill` gets the zeroed memory of a new file before any other process can open it. The
    /// call may run `fill` more than once, each time with a new region. At most one of them becomes the table: none
    /// if another process made the file first.
    pub(crate) fn open_or_create(
        path: &CStr,
        len: usize,
        access: Access,
        inspect: Inspect<'_>,
        fill: Fill<'_>,
    ) -> Result<(Region, Opened), TableError> {
        file::open_or_create(path, len, access, Way::Unnamed, inspect, fill, None)
    }

    /// [`Region::open_or_create`], whose views see each other ([`Others`]).
    pub(crate) fn enter_or_create(
        path: &CStr,
        len: usize,
        access: Access,
        inspect: Inspect<'_>,
        fill: Fill<'_>,
        enter: Enter<'_>,
    ) -> Result<(Region, Opened), TableError> {
        file::open_or_create(path, len, access, Way::Unnamed, inspect, fill, Some(enter))
    }

    /// Opens the table at `path`, which must exist.
    pub(crate) fn open(path: &CStr, access: Access, inspect: Inspect<'_>) -> Result<Region, TableError> {
        file::open(path, access, inspect, None)
    }

    /// [`Region::open`] of a file whose views see each other.
    pub(crate) fn enter(
        path: &CStr,
        access: Access,
        inspect: Inspect<'_>,
        enter: Enter<'_>,
    ) -> Result<Region, TableError> {
        file::open(path, access, inspect, Some(enter))
    }

    /// Zeroed memory of `len` bytes and its descriptor, which the caller closes. A process that gets the descriptor
    /// can map the memory. The memory is sealed: no process can change its length.
    pub(crate) fn sealed(len: usize) -> Result<(Region, c_int), TableError> {
        let fd = system::sealed(u64::try_from(len).map_err(|_| TableError::Capacity)?)?;
        let region = Region::map(len, libc::MAP_SHARED, fd.raw(), Kind::Anonymous)?;
        Ok((region, fd.into_raw()))
    }

    /// The memory behind the caller's descriptor. It must be sealed against shrinking.
    pub(crate) fn of_descriptor(fd: c_int, inspect: Inspect<'_>) -> Result<Region, TableError> {
        file::of_descriptor(fd, inspect)
    }

    pub(crate) fn is_file(&self) -> bool {
        matches!(self.kind, Kind::File(_))
    }

    /// This boot, as the header of an object in this memory notes it.
    pub(crate) fn boot(&self) -> Boot {
        match &self.kind {
            Kind::File(named) => Boot::of_now(named.inode),
            Kind::Anonymous | Kind::Borrowed => Boot::of_now(0),
        }
    }

    /// The address of the memory. It is aligned to a cache line, and to a page if this process mapped it.
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Whether both regions are the same memory: at one address, or of one file.
    pub(crate) fn is(&self, other: &Region) -> bool {
        self.base == other.base || (self.identity != (0, 0) && self.identity == other.identity)
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Touches every page, so that the system allocates all of them now. The caller must call it before any other
    /// thread or process uses the memory. It does nothing for the caller's memory, which has been zeroed already.
    pub(crate) fn populate(&self) {
        if matches!(self.kind, Kind::Borrowed) {
            return;
        }
        let mut at = 0;
        while at < self.len {
            // SAFETY: within the region. It writes back the byte that it read, and no other thread writes yet.
            unsafe {
                let byte = self.base.as_ptr().add(at);
                byte.write_volatile(byte.read_volatile());
            }
            at += 4096;
        }
    }

    /// Asks the system to zero this private memory in forked children. Returns whether the system will.
    pub(crate) fn wipe_in_children(&self) -> bool {
        #[cfg(target_os = "linux")]
        // SAFETY: the pages are the region's; the advice does not change their content in this process.
        return unsafe { libc::madvise(self.base.as_ptr().cast(), self.len, libc::MADV_WIPEONFORK) } == 0;
        #[cfg(not(target_os = "linux"))]
        false
    }

    /// Asks the system for huge pages from `offset` on. Returns whether it took the advice.
    pub(crate) fn advise_huge(&self, offset: usize) -> bool {
        advise_huge(self.base, self.len, offset)
    }

    /// Calls `f` while no other process and no other thread is in this function for the same file.
    ///
    /// The kernel releases the lock of a killed process, unless a child that it forked during `f` still lives. Memory
    /// without a file has no lock, and the function just calls `f`. A nested call from `f` waits for ever.
    ///
    /// # Errors
    /// The file is no longer found under the name that it was opened by, or this process may no longer open it. `f`
    /// has not been called.
    pub(crate) fn exclusively<T>(&self, f: impl FnOnce() -> T) -> Result<T, TableError> {
        let _lock = match &self.kind {
            Kind::File(named) => Some(named.lock()?),
            Kind::Anonymous | Kind::Borrowed => None,
        };
        Ok(f())
    }

    /// Returns when a file's memory is on its disk; at once for memory without a file.
    pub(crate) fn sync(&self) -> Result<(), TableError> {
        if let Kind::File(_) = self.kind {
            // SAFETY: `map` mapped this address and length; msync only reads it.
            again(|| unsafe { libc::msync(self.base.as_ptr().cast(), self.len, libc::MS_SYNC) })
                .map_err(|errno| TableError::System(Call::Sync, errno))?;
        }
        Ok(())
    }

    fn map(len: usize, flags: c_int, fd: c_int, kind: Kind) -> Result<Region, TableError> {
        // Pointer arithmetic within one object may not exceed isize::MAX bytes.
        if isize::try_from(len).is_err() {
            return Err(TableError::Capacity);
        }
        let identity = match fd {
            0.. => system::identity(fd).map_err(|errno| TableError::System(Call::Map, errno))?,
            _ => (0, 0),
        };
        // SAFETY: a new mapping at an address of the system's choice, so no memory in use is replaced.
        let base = unsafe { libc::mmap(null_mut(), len, libc::PROT_READ | libc::PROT_WRITE, flags, fd, 0) };
        if base == libc::MAP_FAILED {
            return Err(match errno() {
                libc::ENOMEM => TableError::NoMemory,
                errno => TableError::System(Call::Map, errno),
            });
        }
        match NonNull::new(base.cast()) {
            Some(base) => Ok(Region { base, len, kind, identity }),
            // Systems map address 0 only on request.
            None => Err(TableError::NoMemory),
        }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        match self.kind {
            // SAFETY: `map` mapped this address and length, and only this drop unmaps it.
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
    // SAFETY: integer arguments only.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    let Some(mask) = usize::try_from(page).ok().and_then(|page| page.checked_sub(1)) else {
        return false;
    };
    // The advice is for whole pages. A page that is only partly in the region may hold other memory.
    let base = base.as_ptr() as usize;
    let start = base.saturating_add(offset).saturating_add(mask) & !mask;
    let end = base.saturating_add(len) & !mask;
    if start >= end {
        return false;
    }
    // SAFETY: the pages are within the region; the advice does not change their content.
    unsafe { libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_HUGEPAGE) == 0 }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn advise_huge(_: NonNull<u8>, _: usize, _: usize) -> bool {
    false
}
