//! Tables in files. A call opens the file if it exists. Otherwise it makes the file without a name
//! or under a temporary one, and links it to its name when it is complete, so no process can open
//! an incomplete table.

use super::mapping::{Backing, Region};
use super::named::{FilePath, Named, EXISTING};
use super::presence::{show, Others};
use super::system::{errno, random_u64, Fd, PathText, Status};
use super::trust::Access;
use crate::sync::filled;
use crate::table::memory::error::{Call, TableError};
use core::ffi::{c_int, CStr};
use core::mem::ManuallyDrop;

/// Inspects the first bytes of a file, and returns the length of its object.
pub(crate) type Inspect<'a> = &'a dyn Fn(&[u8]) -> Result<u64, TableError>;

/// Writes a new object into zeroed memory.
pub(crate) type Fill<'a> = &'a dyn Fn(&Region) -> Result<(), TableError>;

/// Decides whether this process may use an existing file's object, before it is used. Meanwhile no
/// other call that has an `Enter` opens the file.
pub(crate) type Enter<'a> = &'a dyn Fn(&Region, &Others<'_>) -> Result<(), TableError>;

/// The number of bytes that are read from an existing file before it is mapped: a table's header
/// and its policies.
pub(crate) const HEAD: usize = 36 << 10;

/// Whether `open_or_create` made the file or found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opened {
    Created,
    Attached,
}

/// The number of tries of `open_or_create`. A try fails only if another process makes the file and
/// removes it again meanwhile.
const ROUNDS: u32 = 64;

impl Region {
    /// Opens the table at `path`, or makes one of `len` bytes.
    ///
    /// `inspect` gets the first [`HEAD`] bytes of an existing file, or all if it has fewer, and
    /// returns the length that the file must have. `fill` gets the zeroed memory of a new file
    /// before any other process can open it. The call may run `fill` more than once, each time with
    /// a new region. At most one of them becomes the table: none if another process made the file
    /// first.
    pub(crate) fn open_or_create(
        path: &CStr,
        len: usize,
        access: Access,
        inspect: Inspect<'_>,
        fill: Fill<'_>,
    ) -> Result<(Region, Opened), TableError> {
        open_or_create(path, len, access, Way::Unnamed, inspect, fill, None)
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
        open_or_create(path, len, access, Way::Unnamed, inspect, fill, Some(enter))
    }

    /// Opens the table at `path`, which must exist.
    pub(crate) fn open(
        path: &CStr,
        access: Access,
        inspect: Inspect<'_>,
    ) -> Result<Region, TableError> {
        open(path, access, inspect, None)
    }

    /// [`Region::open`] of a file whose views see each other.
    pub(crate) fn enter(
        path: &CStr,
        access: Access,
        inspect: Inspect<'_>,
        enter: Enter<'_>,
    ) -> Result<Region, TableError> {
        open(path, access, inspect, Some(enter))
    }

    /// The memory behind the caller's descriptor. It must be sealed against shrinking.
    pub(crate) fn of_descriptor(fd: c_int, inspect: Inspect<'_>) -> Result<Region, TableError> {
        of_descriptor(fd, inspect)
    }
}

fn open(
    path: &CStr,
    access: Access,
    inspect: Inspect<'_>,
    enter: Option<Enter<'_>>,
) -> Result<Region, TableError> {
    match attach(&FilePath::of(path)?, access, inspect, enter)? {
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
    let place = FilePath::of(path)?;
    access.of_directory(&place.status()?)?;
    for _ in 0..ROUNDS {
        if let Some(region) = attach(&place, access, inspect, enter)? {
            return Ok((region, Opened::Attached));
        }
        // An unnamed file fails with many errnos (old kernel, filesystem, no /proc). A failure that
        // is not due to that happens to the named file, too, and is reported by the second call.
        let create = |way| create(&place, len, access.mode, fill, way, enter.is_some());
        let made = match create(first) {
            Err(TableError::System(Call::Open | Call::Link, _)) if first == Way::Unnamed => {
                create(Way::Named)?
            }
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
    place: &FilePath<'_>,
    access: Access,
    inspect: Inspect<'_>,
    enter: Option<Enter<'_>>,
) -> Result<Option<Region>, TableError> {
    let fd = match Fd::open(place.directory.raw(), place.name, EXISTING) {
        Ok(fd) => fd,
        Err(libc::ENOENT) => return Ok(None),
        // Directories, symbolic links, sockets and absent devices each fail to open with another
        // errno.
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

    // The status is that of the open file: another process may have given its name to another file
    // meanwhile.
    let directory = place.status()?;
    access.of_directory(&directory)?;
    access.of_file(&directory, &status)?;
    let len = inspected(&fd, &status, inspect)?;

    // A copy of a file may lack the blocks that held only zeroes, so they are reserved again. On a
    // full disk the call may fail even for a file that has all its blocks; that error is ignored.
    // If the filesystem cannot reserve, the file stays as it is: writing zeroes could overwrite
    // what other processes are writing.
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
    Region::of_file(&fd, len, Backing::File(named)).map(Some)
}

fn entered(fd: &Fd, len: u64, named: Named, enter: Enter<'_>) -> Result<Region, TableError> {
    show(fd)?;
    let region = Region::of_file(fd, len, Backing::File(named))?;
    if let Backing::File(named) = &region.backing {
        enter(&region, &Others::new(fd, named))?;
    }
    Ok(region)
}

/// See [`Region::of_descriptor`].
fn of_descriptor(fd: c_int, inspect: Inspect<'_>) -> Result<Region, TableError> {
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
    Region::of_file(&fd, len, Backing::Anonymous)
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
    /// The file has a temporary name. It stays on the disk if the process is killed before it links
    /// the file to its name.
    Named,
}

/// Makes the file; `None` if another process made it first. `shown`: the other views see this one
/// ([`super::presence`]).
fn create(
    place: &FilePath<'_>,
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
    let region = Region::of_file(fd, bytes, Backing::File(Named::new(place, &status, fd)?))?;
    fill(&region)?;

    // The file gets its permissions before its name, so that no other user can open it in between.
    // It is flushed before it gets its name, so that after a power failure no name leads to an
    // incomplete table.
    fd.permit(mode).map_err(|errno| TableError::System(Call::Open, errno))?;
    fd.flush().map_err(sync)?;
    match aside.link() {
        Ok(()) => Ok(Some(region)),
        Err(libc::EEXIST) => Ok(None),
        Err(errno) => Err(TableError::System(Call::Link, errno)),
    }
}

/// A new file before it is linked to its name.
struct Aside<'a> {
    place: &'a FilePath<'a>,
    fd: Fd,
    /// The temporary name, unless the file is unnamed.
    name: Option<PathText>,
}

impl<'a> Aside<'a> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn unnamed(place: &'a FilePath<'a>) -> Result<Aside<'a>, TableError> {
        let fd = Fd::open(place.directory.raw(), c".", libc::O_RDWR | libc::O_TMPFILE)
            .map_err(|errno| TableError::System(Call::Open, errno))?;
        Ok(Aside { place, fd, name: None })
    }

    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    fn unnamed(_: &'a FilePath<'a>) -> Result<Aside<'a>, TableError> {
        Err(TableError::System(Call::Open, libc::EOPNOTSUPP))
    }

    fn named(place: &'a FilePath<'a>) -> Result<Aside<'a>, TableError> {
        let mut name = PathText::new(b".tollbar-");
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
                let mut path = PathText::new(b"/proc/self/fd/");
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
