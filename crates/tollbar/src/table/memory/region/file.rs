//! Tables in files: opened if they are there, else built aside and then given their name, so that nobody
//! ever sees a half-made one.

use super::super::error::{Call, TableError};
use super::system::{errno, random_u64, Fd, Status, Text};
use super::{Access, Kind, Opened, Region, HEAD};
use core::ffi::{c_char, c_int, CStr};
use core::mem::ManuallyDrop;
use core::ptr::{null_mut, NonNull};

/// How often another process may make the file and remove it again, each time just before this one looks.
const ROUNDS: u32 = 64;

/// An existing file: never what a symbolic link leads to; not waiting for the other end of a pipe; not
/// becoming the terminal of the process.
const EXISTING: c_int = libc::O_RDWR | libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;

pub(super) fn open(
    path: &CStr,
    access: Access,
    inspect: &impl Fn(&[u8]) -> Result<u64, TableError>,
) -> Result<Region, TableError> {
    match attach(&Place::of(path)?, access, inspect)? {
        Some(region) => Ok(region),
        None => Err(TableError::System(Call::Open, libc::ENOENT)),
    }
}

pub(super) fn open_or_create(
    path: &CStr,
    len: usize,
    access: Access,
    first: Way,
    inspect: &impl Fn(&[u8]) -> Result<u64, TableError>,
    fill: &impl Fn(&Region) -> Result<(), TableError>,
) -> Result<(Region, Opened), TableError> {
    let place = Place::of(path)?;
    access.of_directory(&place.status()?)?;
    for _ in 0..ROUNDS {
        if let Some(region) = attach(&place, access, inspect)? {
            return Ok((region, Opened::Attached));
        }
        // What stops the way without a name (an old kernel, the filesystem, no /proc) has many errnos; what
        // would stop both, the second way reports.
        let made = match create(&place, len, access.mode, fill, first) {
            Err(TableError::System(Call::Open | Call::Link, _)) if first == Way::Unnamed => {
                create(&place, len, access.mode, fill, Way::Named)?
            }
            made => made?,
        };
        if let Some(region) = made {
            return Ok((region, Opened::Created));
        }
    }
    Err(TableError::System(Call::Link, libc::EEXIST))
}

/// The table that is there; `None` where nothing is.
fn attach(
    place: &Place<'_>,
    access: Access,
    inspect: &impl Fn(&[u8]) -> Result<u64, TableError>,
) -> Result<Option<Region>, TableError> {
    let fd = match Fd::open(place.directory.raw(), place.name, EXISTING) {
        Ok(fd) => fd,
        Err(libc::ENOENT) => return Ok(None),
        // Directories, symbolic links, sockets and absent devices cannot be opened, each for its own reason.
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

    // Of the file that is open here, whatever its name leads to by now.
    let directory = place.status()?;
    access.of_directory(&directory)?;
    access.of_file(&directory, &status)?;
    let len = inspected(&fd, &status, inspect)?;

    // A copy may have lost the blocks in which there were only zeroes. A full disk may refuse even what the
    // file has already, which is then no matter. Where the filesystem cannot reserve, the file is taken as it
    // is: writing to the blocks could undo what the processes that use the table are writing.
    let missing = len.saturating_sub(status.allocated);
    match fd.has_room(missing).and_then(|()| fd.reserve(len)) {
        Ok(_) => {}
        Err(_) if missing == 0 => {}
        Err(errno) => return Err(TableError::System(Call::Allocate, errno)),
    }
    map(&fd, len, Kind::File(Named::new(place, &status)?)).map(Some)
}

/// [`Region::of_descriptor`].
pub(super) fn of_descriptor(
    fd: c_int,
    inspect: &impl Fn(&[u8]) -> Result<u64, TableError>,
) -> Result<Region, TableError> {
    // The caller's to close.
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

/// The length of a table's file, which is the one that its header says.
fn inspected(fd: &Fd, status: &Status, inspect: &impl Fn(&[u8]) -> Result<u64, TableError>) -> Result<u64, TableError> {
    let mut head = [0_u8; HEAD];
    let got = fd.read(&mut head).map_err(|errno| TableError::System(Call::Read, errno))?;
    let len = inspect(head.get(..got).unwrap_or(&[]))?;
    match len == status.len {
        true => Ok(len),
        false => Err(TableError::Truncated),
    }
}

/// How a new file is kept out of sight until it is whole.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Without a name. Nothing is left of it if the process is killed.
    Unnamed,
    /// With a temporary name. The file stays if the process is killed before it is renamed.
    Named,
}

/// Makes the file; `None` where another process has made it first.
fn create(
    place: &Place<'_>,
    len: usize,
    mode: u32,
    fill: &impl Fn(&Region) -> Result<(), TableError>,
    way: Way,
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
    let region = map(fd, bytes, Kind::File(Named::new(place, &status)?))?;
    fill(&region)?;

    // The permissions before the name, so that it is never open to more; and on the disk before the name, so
    // that a machine that loses its power does not come back with a name and no table.
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

/// A path: a directory that is open, so that it stays the same one, and a name in it.
struct Place<'a> {
    directory: Fd,
    /// The directory from the root on.
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

/// To look names up in it, which needs no right to list them.
#[cfg(any(target_os = "linux", target_os = "android"))]
const DIRECTORY: c_int = libc::O_PATH | libc::O_DIRECTORY;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const DIRECTORY: c_int = libc::O_RDONLY | libc::O_DIRECTORY;

/// A new file under its temporary name.
struct Aside<'a> {
    place: &'a Place<'a>,
    fd: Fd,
    /// Its name for the time being, if it has one.
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
        // SAFETY: getpid takes nothing and cannot fail.
        name.push_decimal(unsafe { libc::getpid() } as u32);
        name.push(b"-");
        name.push_hex(random_u64()?);
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW;
        let fd = Fd::open(place.directory.raw(), name.as_c_str(), flags)
            .map_err(|errno| TableError::System(Call::Open, errno))?;
        Ok(Aside { place, fd, name: Some(name) })
    }

    /// Gives the file its name, unless there is one of that name.
    fn link(&self) -> Result<(), i32> {
        let to = self.place.directory.raw();
        let unnamed;
        let (from, path, flags) = match &self.name {
            Some(name) => (to, name.as_c_str(), 0),
            None => {
                // A file without a name is reached through its descriptor's, which is a link to it.
                let mut path = Text::new(b"/proc/self/fd/");
                path.push_decimal(self.fd.raw() as u32);
                unnamed = path;
                (libc::AT_FDCWD, unnamed.as_c_str(), libc::AT_SYMLINK_FOLLOW)
            }
        };
        // SAFETY: both names end with a 0.
        match unsafe { libc::linkat(from, path.as_ptr(), to, self.place.name.as_ptr(), flags) } {
            0 => Ok(()),
            _ => Err(errno()),
        }
    }
}

impl Drop for Aside<'_> {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            // SAFETY: the name ends with a 0.
            unsafe { libc::unlinkat(self.place.directory.raw(), name.as_c_str().as_ptr(), 0) };
        }
    }
}

/// The file that a region is of, by its name.
///
/// No descriptor is kept. A lock of `flock` belongs to an open file: children that are forked share it, and
/// threads do, so that a kept one would keep none of them out. And a program that becomes a daemon closes
/// every descriptor it finds; the number of a kept one may then be another file's. So the file is opened
/// again for each lock, and compared with the one that is mapped.
pub(super) struct Named {
    path: Owned,
    identity: (u64, u64),
}

impl Named {
    fn new(place: &Place<'_>, status: &Status) -> Result<Named, TableError> {
        let path = Owned::joined(place.absolute.as_c_str(), place.name).ok_or(TableError::NoMemory)?;
        Ok(Named { path, identity: status.identity })
    }

    /// Waits for the file's lock.
    pub(super) fn lock(&self) -> Result<Lock, TableError> {
        let error = |errno| TableError::System(Call::Lock, errno);
        let fd = Fd::open(libc::AT_FDCWD, self.path.as_c_str(), EXISTING).map_err(error)?;
        // Mapped, the file keeps its inode even if it has no name any more: another of the same number is
        // the same.
        if fd.status().map_err(error)?.identity != self.identity {
            return Err(error(libc::ESTALE));
        }
        fd.flock(libc::LOCK_EX).map_err(error)?;
        Ok(Lock { fd })
    }
}

/// The lock of a file, until it is dropped.
pub(super) struct Lock {
    fd: Fd,
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing is not enough where another thread has forked meanwhile: the child has the open file too.
        let _ = self.fd.flock(libc::LOCK_UN);
    }
}

/// A text from malloc.
struct Owned(NonNull<c_char>);

// SAFETY: the text is this value's alone, does not change, and may be freed by any thread.
unsafe impl Send for Owned {}
// SAFETY: as Send.
unsafe impl Sync for Owned {}

impl Owned {
    /// `path` from the root on, without symbolic links: valid wherever the process goes.
    fn absolute(path: &CStr) -> Result<Owned, i32> {
        // SAFETY: `path` ends with a 0; with a null buffer, the result comes from malloc.
        let real = unsafe { libc::realpath(path.as_ptr(), null_mut()) };
        NonNull::new(real).map(Owned).ok_or_else(errno)
    }

    /// `directory/name`; `None` where there is no memory.
    fn joined(directory: &CStr, name: &CStr) -> Option<Owned> {
        let parts = [directory.to_bytes(), b"/", name.to_bytes_with_nul()];
        let len = parts.iter().fold(0_usize, |len, part| len.saturating_add(part.len()));
        // SAFETY: any size may be asked of malloc.
        let start: NonNull<u8> = NonNull::new(unsafe { libc::malloc(len) }.cast())?;
        let mut to = start.as_ptr();
        for part in parts {
            // SAFETY: the parts one after the other are `len` bytes, which the fresh block has.
            unsafe {
                core::ptr::copy_nonoverlapping(part.as_ptr(), to, part.len());
                to = to.add(part.len());
            }
        }
        Some(Owned(start.cast()))
    }

    fn as_c_str(&self) -> &CStr {
        // SAFETY: both constructors leave a text that ends with a 0, and it lives as long as `self`.
        unsafe { CStr::from_ptr(self.0.as_ptr()) }
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: from malloc, and freed once.
        unsafe { libc::free(self.0.as_ptr().cast()) };
    }
}
