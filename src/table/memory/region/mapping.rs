//! The memory of a table as this process has it mapped.

use super::boot::Boot;
use super::named::Named;
use super::system::{self, again, errno, Fd};
use crate::table::memory::error::{Call, TableError};
use core::ffi::c_int;
use core::fmt;
use core::ptr::{null_mut, NonNull};

/// The least alignment of a region: a cache line.
const ALIGN: usize = 64;

/// Memory that keeps its address and length as long as this value lives.
///
/// Another process may truncate a mapped file. Then the system kills (SIGBUS) each process that
/// touches the missing pages. The file's permissions say which users can do so.
pub struct Region {
    base: NonNull<u8>,
    len: usize,
    pub(super) backing: Backing,
    /// The device and the inode of the mapped file or descriptor; zeroes without one.
    identity: (u64, u64),
}

/// What the memory of a region is.
pub(super) enum Backing {
    /// This process mapped the memory, without a file that has a name.
    Anonymous,
    /// The caller's memory.
    Borrowed,
    /// This process mapped the file.
    File(Named),
}

// SAFETY: the address and the length do not change, and all threads of the process can use the
// memory. A region hands out no reference to the memory: code that makes one must say how threads
// share it.
unsafe impl Send for Region {}
// SAFETY: as Send; no method changes the region.
unsafe impl Sync for Region {}

impl Region {
    /// Zeroed memory of this process. The system allocates each page at its first access. A forked
    /// child gets a copy.
    pub fn private(len: usize) -> Result<Region, TableError> {
        Region::map(len, libc::MAP_PRIVATE | libc::MAP_ANON, -1, Backing::Anonymous)
    }

    /// Zeroed memory that this process shares with the children that it forks later.
    pub fn shared(len: usize) -> Result<Region, TableError> {
        Region::map(len, libc::MAP_SHARED | libc::MAP_ANON, -1, Backing::Anonymous)
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
        Ok(Region { base: memory, len, backing: Backing::Borrowed, identity: (0, 0) })
    }

    /// Zeroed memory of `len` bytes and its descriptor, which the caller closes. A process that
    /// gets the descriptor can map the memory. The memory is sealed: no process can change its
    /// length.
    pub(crate) fn sealed(len: usize) -> Result<(Region, c_int), TableError> {
        let fd = system::sealed(u64::try_from(len).map_err(|_| TableError::Capacity)?)?;
        let region = Region::map(len, libc::MAP_SHARED, fd.raw(), Backing::Anonymous)?;
        Ok((region, fd.into_raw()))
    }

    pub(crate) fn is_file(&self) -> bool {
        matches!(self.backing, Backing::File(_))
    }

    /// This boot, as the header of an object in this memory notes it.
    pub(crate) fn boot(&self) -> Boot {
        match &self.backing {
            Backing::File(named) => Boot::of_now(named.inode),
            Backing::Anonymous | Backing::Borrowed => Boot::of_now(0),
        }
    }

    /// The address of the memory. It is aligned to a cache line, and to a page if this process
    /// mapped it.
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

    /// Touches every page, so that the system allocates all of them now. The caller must call it
    /// before any other thread or process uses the memory. It does nothing for the caller's memory,
    /// which has been zeroed already.
    pub(crate) fn populate(&self) {
        if matches!(self.backing, Backing::Borrowed) {
            return;
        }
        let mut at = 0;
        while at < self.len {
            // SAFETY: within the region. It writes back the byte that it read, and no other thread
            // writes yet.
            unsafe {
                let byte = self.base.as_ptr().add(at);
                byte.write_volatile(byte.read_volatile());
            }
            at += 4096;
        }
    }

    /// Asks the system to zero this private memory in forked children. Returns whether the system
    /// will.
    pub(crate) fn wipe_in_children(&self) -> bool {
        #[cfg(target_os = "linux")]
        // SAFETY: the pages are the region's; the advice does not change their content in this
        // process.
        return unsafe {
            libc::madvise(self.base.as_ptr().cast(), self.len, libc::MADV_WIPEONFORK)
        } == 0;
        #[cfg(not(target_os = "linux"))]
        false
    }

    /// Asks the system for huge pages from `offset` on. Returns whether it took the advice.
    pub(crate) fn advise_huge(&self, offset: usize) -> bool {
        advise_huge(self.base, self.len, offset)
    }

    /// Calls `f` while no other process and no other thread is in this function for the same file.
    ///
    /// The kernel releases the lock of a killed process, unless a child that it forked during `f`
    /// still lives. Memory without a file has no lock, and the function just calls `f`. A nested
    /// call from `f` waits for ever.
    ///
    /// # Errors
    /// The file is no longer found under the name that it was opened by, or this process may no
    /// longer open it. `f` has not been called.
    pub(crate) fn exclusively<T>(&self, f: impl FnOnce() -> T) -> Result<T, TableError> {
        let _lock = match &self.backing {
            Backing::File(named) => Some(named.lock()?),
            Backing::Anonymous | Backing::Borrowed => None,
        };
        Ok(f())
    }

    /// Returns when a file's memory is on its disk; at once for memory without a file.
    pub(crate) fn sync(&self) -> Result<(), TableError> {
        if let Backing::File(_) = self.backing {
            // SAFETY: `map` mapped this address and length; msync only reads it.
            again(|| unsafe { libc::msync(self.base.as_ptr().cast(), self.len, libc::MS_SYNC) })
                .map_err(|errno| TableError::System(Call::Sync, errno))?;
        }
        Ok(())
    }

    /// The mapping of an open file of `len` bytes.
    pub(super) fn of_file(fd: &Fd, len: u64, backing: Backing) -> Result<Region, TableError> {
        let len = usize::try_from(len).map_err(|_| TableError::Capacity)?;
        Region::map(len, libc::MAP_SHARED, fd.raw(), backing)
    }

    pub(super) fn map(
        len: usize,
        flags: c_int,
        fd: c_int,
        backing: Backing,
    ) -> Result<Region, TableError> {
        // Pointer arithmetic within one object may not exceed isize::MAX bytes.
        if isize::try_from(len).is_err() {
            return Err(TableError::Capacity);
        }
        let identity = match fd {
            0.. => system::identity(fd).map_err(|errno| TableError::System(Call::Map, errno))?,
            _ => (0, 0),
        };
        // SAFETY: a new mapping at an address of the system's choice, so no memory in use is
        // replaced.
        let base = unsafe {
            libc::mmap(null_mut(), len, libc::PROT_READ | libc::PROT_WRITE, flags, fd, 0)
        };
        if base == libc::MAP_FAILED {
            return Err(match errno() {
                libc::ENOMEM => TableError::NoMemory,
                errno => TableError::System(Call::Map, errno),
            });
        }
        match NonNull::new(base.cast()) {
            Some(base) => Ok(Region { base, len, backing, identity }),
            // Systems map address 0 only on request.
            None => Err(TableError::NoMemory),
        }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        match self.backing {
            // SAFETY: `map` mapped this address and length, and only this drop unmaps it.
            Backing::Anonymous | Backing::File(_) => unsafe {
                libc::munmap(self.base.as_ptr().cast(), self.len);
            },
            Backing::Borrowed => {}
        }
    }
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.backing {
            Backing::Anonymous => "anonymous",
            Backing::Borrowed => "borrowed",
            Backing::File(_) => "file",
        };
        f.debug_struct("Region")
            .field("base", &self.base)
            .field("len", &self.len)
            .field("kind", &kind)
            .finish()
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn advise_huge(base: NonNull<u8>, len: usize, offset: usize) -> bool {
    // SAFETY: integer arguments only.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    let Some(mask) = usize::try_from(page).ok().and_then(|page| page.checked_sub(1)) else {
        return false;
    };
    // The advice is for whole pages. A page that is only partly in the region may hold other
    // memory.
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
