//! Which users' files a process opens as a table.
//!
//! A user who can write a table's file can grant permits. Its owner can truncate it, which kills
//! the processes that have it mapped. In a directory like /dev/shm any user can make a file under
//! the name that a service will open. So a process checks the open file (whose name may lead to
//! another file by then) and its directory before it reads the content.

use super::super::error::TableError;
use super::system::Status;

/// Which users' files a process opens as a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Trust {
    /// A file of the caller's effective user or of root. Other users may write it only if
    /// [`Options::mode`] lets them. Its directory must belong to the caller or root, too, and a
    /// directory that all users can write must be sticky. Members of the directory's group are
    /// trusted.
    ///
    /// [`Options::mode`]: crate::table::Options::mode
    #[default]
    Owner,
    /// Any file. A user who may write it can admit or refuse keys, and its owner can end this
    /// process by SIGBUS at any time.
    Anyone,
}

/// Which users may own a file, and which may write it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    /// The permissions of a new file. An existing file may be writable for the users for whom these
    /// permissions make it writable.
    pub(crate) mode: u32,
    pub(crate) trust: Trust,
}

/// The write permissions of the group and of others.
const STRANGERS: u32 = 0o022;
/// The write permission of others.
const OTHERS: u32 = 0o002;
/// In a sticky directory only a file's owner, the directory's owner and root can remove or rename
/// the file.
const STICKY: u32 = 0o1000;

impl Access {
    pub(crate) const fn new(mode: u32, trust: Trust) -> Access {
        Access { mode, trust }
    }

    /// Checks that no user but the caller, root and the directory's group can rename or remove
    /// another's file in this directory. A user who can makes later processes open a new table,
    /// with full bursts for all clients.
    pub(super) fn of_directory(&self, directory: &Status) -> Result<(), TableError> {
        let replaceable = directory.mode & OTHERS != 0 && directory.mode & STICKY == 0;
        self.unless(stranger(directory.owner) || replaceable)
    }

    /// Checks that this file, in a directory that has passed [`Access::of_directory`], may be
    /// opened.
    pub(super) fn of_file(&self, directory: &Status, file: &Status) -> Result<(), TableError> {
        let writable = file.mode & STRANGERS & !self.mode != 0;
        // In a directory that other users can write, one of them may have linked another table of
        // the same owner under this name.
        let linked = directory.mode & STRANGERS != 0 && file.links > 1;
        self.unless(stranger(file.owner) || writable || linked)
    }

    fn unless(&self, strange: bool) -> Result<(), TableError> {
        match self.trust {
            Trust::Owner if strange => Err(TableError::Owner),
            _ => Ok(()),
        }
    }
}

/// Whether this user is neither the caller nor root.
fn stranger(user: u32) -> bool {
    // SAFETY: geteuid takes no argument and cannot fail.
    user != 0 && user != unsafe { libc::geteuid() }
}
