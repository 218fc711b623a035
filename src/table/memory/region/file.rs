//! Tables in files. A call opens the file if it exists. Otherwise it makes the file without a name or under a
//! temporary one, and links it to its name when it is complete, so no process can open an incomplete table.

use super::super::error::{Call, TableError};
use super::presence::{show, Others};
use super::system::{errno, random_u64, Fd, Status, Text};
use super::{boot, Access, Enter, Fill, Inspect, Kind, Opened, Region, HEAD};
use crate::sync::filled;
use core::ffi::{c_char, c_int, CStr};
use core::mem::ManuallyDrop;
use core::ptr::{null_mut, NonNull};

/// The number of tries of `open_or_create`. A try fails only if another process makes the file and removes it again
/// meanwhile.
const ROUNDS: u32 = 64;

/// The flags for an existing file. The open does not follow a symbolic link, does not wait for the other end of a
/// pipe, and does not make a terminal the controlling one.
const EXISTING: c_int = libc::O_RDWR | libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;

pub(super) fn open(
    path: &CStr,
    access: Access,
    inspect: Inspect<'_>,
    enter: Option<Enter<'_>>,
) -> Result<Region, TableError> {
    match attach(&Place::of(path)?, access, inspect, enter)? {
        Some(region) => Ok(region),
        None => Err(TableError::System(Call::Open, libc::ENOENT)),
    }
}

pub(super) fn open_or_create(
    path: &CStr,
    len: usize,
    access: Access,
    first: Way,
    inspect: Inspect<'_>,
    fill: Fill<'_>,
    enter: Option<Enter<'_>>,
) -> Result<(Region, Opened), TableError> {
    let place = Place::of(path)?;
    access.of_directory(&place.status()?)?;
    for _ in 0..ROUNDS {
        if let Some(region) = attach(&place, access, inspect, enter)? {
            return Ok((region, Opened::Attached));
        }
        // An unnamed file fails with many errnos (old kernel, filesystem, no /proc). A failure that is not due to that
        // happens to the named file, too, and is reported by the second call.
        let create = |way| create(&place, len, access.mode, fill, way, enter.is_some());
        let made = match create(first) {
            Err(TableError::System(Call::Open | Call::Link, _)) if first == Way::Unnamed => create(Way::Named)?,
            made => made?,
        };
        if let Some(region) = made {
            return Ok((region, Opened::Created));
        }
    }
    Err(TableError::System(Call::Link, libc::EEXIST))
}

/// Opens the existing file; `None` if there is none.
fn attach(
    place: &Place<'_>,
    access: Access,
    inspect: Inspect<'_>,
    enter: Option<Enter<'_>>,
) -> Result<Option<Region>, TableError> {
    let fd = match Fd::open(place.directory.raw(), place.name, EXISTING) {
        Ok(fd) => fd,
        Err(libc::ENOENT) => return Ok(None),
        // Directories, symbolic links, sockets and absent devices each fail to open with another errno.
        Err(errno) => match Status::of_name(&place.directory, place.name) {
            Ok(status) if !status.regular => return Err(TableError::NotATable),
            _ => return Err(TableError::System(Call::Open, errno)),
        },
    };
    let read = |errno| TableError::System(Call::Read, errno);
    let status = fd.status().map_err(read)?;
    if !status.regular {
        return Err(TableError::NotATable);
    }

    // The status is that of the open file: another process may have given its name to another file meanwhile.
    let directory = place.status()?;
    access.of_directory(&directory)?;
    access.of_file(&directory, &status)?;
    let len = inspected(&fd, &status, inspect)?;

    // A copy of a file may lack the blocks that held only zeroes, so they are reserved again. On a full disk the call
    // may fail even for a file that has all its blocks; that error is ignored. If the filesystem cannot reserve, the
    // file stays as it is: writing zeroes could overwrite what other processes are writing.
    let missing = len.saturating_sub(status.allocated);
    match fd.has_room(missing).and_then(|()| fd.reserve(len)) {
        Ok(_) => {}
        Err(_) if missing == 0 => {}
        Err(errno) => return Err(TableError::System(Call::Allocate, errno)),
    }
    let named = Named::new(place, &status, &fd)?;
    if let Some(enter) = enter {
        // One call at a time, so that none takes another for a view that uses the file.
        fd.flock(libc::LOCK_EX).map_err(|errno| TableError::System(Call::Lock, errno))?;
        let region = entered(&fd, len, named, enter);
        // The mapping keeps the lock when the descriptor is closed.
        let _ = fd.flock(libc::LOCK_UN);
        return region.map(Some);
    }
    map(&fd, len, Kind::File(named)).map(Some)
}

fn entered(fd: &Fd, len: u64, named: Named, enter: Enter<'_>) -> Result<Region, TableError> {
    show(fd)?;
    let region = map(fd, len, Kind::File(named))?;
    if let Kind::File(named) = &region.kind {
        enter(&region, &Others::new(fd, named))?;
    }
    Ok(region)
}

/// See [`Region::of_descriptor`].
pub(super) fn of_descriptor(fd: c_int, inspect: Inspect<'_>) -> Result<Region, TableError> {
    // The caller closes the descriptor.
    let fd = ManuallyDrop::new(Fd::borrowed(fd));
    let status = fd.status().map_err(|errno| TableError::System(Call::Read, errno))?;
    if !status.regular {
        return Err(TableError::NotATable);
    }
    if !fd.keeps_its_length() {
        return Err(TableError::Unsealed);
    }
    let len = inspected(&fd, &status, inspect)?;
    map(&fd, len, Kind::Anonymous)
}

/// The length of a table's file. It is an error if the header says another length.
fn inspected(fd: &Fd, status: &Status, inspect: Inspect<'_>) -> Result<u64, TableError> {
    let mut head = filled(HEAD, 0_u8).ok_or(TableError::NoMemory)?;
    let got = fd.read(&mut head).map_err(|errno| TableError::System(Call::Read, errno))?;
    let len = inspect(head.get(..got).unwrap_or(&[]))?;
    match len == status.len {
        true => Ok(len),
        false => Err(TableError::Truncated),
    }
}

/// How a new file is hidden from other processes until it is complete.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// The file has no name (`O_TMPFILE`). The kernel removes it if the process is killed.
    Unnamed,
    /// The file has a temporary name. It stays on the disk if the process is killed before it links the file to its
    /// name.
    Named,
}

/// Makes the file; `None` if another process made it first. `shown`: the other views see this one
/// ([`super::presence`]).
fn create(
    place: &Place<'_>,
    len: usize,
    mode: u32,
    fill: Fill<'_>,
    way: Way,
    shown: bool,
) -> Result<Option<Region>, TableError> {
    let allocate = |errno| TableError::System(Call::Allocate, errno);
    let sync = |errno| TableError::System(Call::Sync, errno);
    let bytes = u64::try_from(len).map_err(|_| TableError::Capacity)?;
    if libc::off_t::try_from(len).is_err() {
        return Err(TableError::Capacity);
    }

    let aside = match way {
        Way::Unnamed => Aside::unnamed(place)?,
        Way::Named => Aside::named(place)?,
    };
    let fd = &aside.fd;
    let status = fd.status().map_err(|errno| TableError::System(Call::Read, errno))?;

    fd.resize(bytes).map_err(allocate)?;
    if !fd.reserve(bytes).map_err(allocate)? {
        fd.write_zeroes(bytes).map_err(allocate)?;
    }
    if shown {
        show(fd)?;
    }
    let region = map(fd, bytes, Kind::File(Named::new(place, &status, fd)?))?;
    fill(&region)?;

    // The file gets its permissions before its name, so that no other user can open it in between. It is flushed
    // before it gets its name, so that after a power failure no name leads to an incomplete table.
    fd.permit(mode).map_err(|errno| TableError::System(Call::Open, errno))?;
    fd.flush().map_err(sync)?;
    match aside.link() {
        Ok(()) => Ok(Some(region)),
        Err(libc::EEXIST) => Ok(None),
        Err(errno) => Err(TableError::System(Call::Link, errno)),
    }
}

fn map(fd: &Fd, len: u64, kind: Kind) -> Result<Region, TableError> {
    let len = usize::try_from(len).map_err(|_| TableError::Capacity)?;
    Region::map(len, libc::MAP_SHARED, fd.raw(), kind)
}

/// A path: an open directory, which stays the same one if another process renames it, and a name in it.
struct Place<'a> {
    directory: Fd,
    /// The absolute path of the directory.
    absolute: Owned,
    name: &'a CStr,
}

impl<'a> Place<'a> {
    fn of(path: &'a CStr) -> Result<Place<'a>, TableError> {
        let open = |errno| TableError::System(Call::Open, errno);
        let bytes = path.to_bytes_with_nul();
        let start = bytes.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash.saturating_add(1));
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

        Ok(Place {
            directory: Fd::open(libc::AT_FDCWD, parent, DIRECTORY).map_err(open)?,
            absolute: Owned::absolute(parent).map_err(open)?,
            name,
        })
    }

    fn status(&self) -> Result<Status, TableError> {
        self.directory.status().map_err(|errno| TableError::System(Call::Open, errno))
    }
}

/// The flags for a directory. `O_PATH` needs no permission to list it.
#[cfg(any(target_os = "linux", target_os = "android"))]
const DIRECTORY: c_int = libc::O_PATH | libc::O_DIRECTORY;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const DIRECTORY: c_int = libc::O_RDONLY | libc::O_DIRECTORY;

/// A new file before it is linked to its name.
struct Aside<'a> {
    place: &'a Place<'a>,
    fd: Fd,
    /// The temporary name, unless the file is unnamed.
    name: Option<Text>,
}

impl<'a> Aside<'a> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn unnamed(place: &'a Place<'a>) -> Result<Aside<'a>, TableError> {
        let fd = Fd::open(place.directory.raw(), c".", libc::O_RDWR | libc::O_TMPFILE)
            .map_err(|errno| TableError::System(Call::Open, errno))?;
        Ok(Aside { place, fd, name: None })
    }

    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    fn unnamed(_: &'a Place<'a>) -> Result<Aside<'a>, TableError> {
        Err(TableError::System(Call::Open, libc::EOPNOTSUPP))
    }

    fn named(place: &'a Place<'a>) -> Result<Aside<'a>, TableError> {
        let mut name = Text::new(b".tollbar-");
        // SAFETY: getpid takes no argument and cannot fail.
        name.push_decimal(unsafe { libc::getpid() } as u32);
        name.push(b"-");
        name.push_hex(random_u64()?);
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW;
        let fd = Fd::open(place.directory.raw(), name.as_c_str(), flags)
            .map_err(|errno| TableError::System(Call::Open, errno))?;
        Ok(Aside { place, fd, name: Some(name) })
    }

    /// Links the file to its name; `EEXIST` if there is a file of that name.
    fn link(&self) -> Result<(), i32> {
        let to = self.place.directory.raw();
        let unnamed;
        let (from, path, flags) = match &self.name {
            Some(name) => (to, name.as_c_str(), 0),
            None => {
                // /proc has a symbolic link to the unnamed file, with the number of its descriptor.
                let mut path = Text::new(b"/proc/self/fd/");
                path.push_decimal(self.fd.raw() as u32);
                unnamed = path;
                (libc::AT_FDCWD, unnamed.as_c_str(), libc::AT_SYMLINK_FOLLOW)
            }
        };
        // SAFETY: both names are 0-terminated.
        match unsafe { libc::linkat(from, path.as_ptr(), to, self.place.name.as_ptr(), flags) } {
            0 => Ok(()),
            _ => Err(errno()),
        }
    }
}

impl Drop for Aside<'_> {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            // SAFETY: the name is 0-terminated.
            unsafe { libc::unlinkat(self.place.directory.raw(), name.as_c_str().as_ptr(), 0) };
        }
    }
}

/// The name and the identity of a region's file.
///
/// It keeps no descriptor, for two reasons. A lock of `flock` belongs to the open file, which threads and forked
/// children would share, so it would exclude none of them. And a program that becomes a daemon closes every
/// descriptor, whose number another file may get. So each lock opens the file again and compares its identity.
pub(super) struct Named {
    path: Owned,
    identity: (u64, u64),
    /// The [`Boot::inode`](super::Boot::inode).
    pub(super) inode: u64,
}

impl Named {
    fn new(place: &Place<'_>, status: &Status, fd: &Fd) -> Result<Named, TableError> {
        let path = Owned::joined(place.absolute.as_c_str(), place.name).ok_or(TableError::NoMemory)?;
        Ok(Named { path, identity: status.identity, inode: boot::inode(fd) })
    }

    /// Waits for the file's lock.
    pub(super) fn lock(&self) -> Result<Lock, TableError> {
        let fd = self.open()?;
        fd.flock(libc::LOCK_EX).map_err(|errno| TableError::System(Call::Lock, errno))?;
        Ok(Lock { fd })
    }

    /// Opens the file once more.
    pub(super) fn open(&self) -> Result<Fd, TableError> {
        let error = |errno| TableError::System(Call::Lock, errno);
        let fd = Fd::open(libc::AT_FDCWD, self.path.as_c_str(), EXISTING).map_err(error)?;
        // A mapped file keeps its inode even without a name, so an equal device and inode mean the same file.
        match fd.status().map_err(error)?.identity == self.identity {
            true => Ok(fd),
            false => Err(error(libc::ESTALE)),
        }
    }
}

/// A file's lock. The drop releases it.
pub(super) struct Lock {
    fd: Fd,
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing does not release the lock if another thread has forked meanwhile, because the child has the open
        // file, too.
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
    /// `path` as an absolute path without symbolic links. It stays valid if the process changes its directory.
    fn absolute(path: &CStr) -> Result<Owned, i32> {
        // SAFETY: `path` is 0-terminated; with a null buffer realpath allocates the result with malloc.
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
            // SAFETY: the parts have `len` bytes together, as has the new block, and do not overlap it.
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
