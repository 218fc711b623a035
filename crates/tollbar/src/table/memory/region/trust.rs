//! Whose file is taken for a table.
//!
//! Who can write to a table's file can grant permits, and who owns it can cut it off, which kills the processes that have it
//! mapped. In a directory like /dev/shm every user may make a file first, under the name that a service will look for. So the
//! open file (not its name, which may lead to another one by then) and its directory are looked at before anything is believed.

use super::super::error::TableError;
use super::system::Status;

/// Whose file is taken for a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Trust {
    /// A file of the caller's effective user or of root, which nobody else may write (but whom [`Options::mode`] names),
    /// in a directory of the same users where nobody else can put another file in its place.
    ///
    /// [`Options::mode`]: crate::table::Options::mode
    #[default]
    Owner,
    /// Any file. Every user who may write it can admit or refuse keys, and its owner can end this process by SIGBUS at any time.
    Anyone,
}

/// Who may have made a file, and who may write it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    /// The permissions of a file that is made. Users to whom they give the right to write may have it in a file that is there.
    pub(crate) mode: u32,
    pub(crate) trust: Trust,
}

/// The right of the group and of others to write.
const STRANGERS: u32 = 0o022;
const OTHERS: u32 = 0o002;
/// In such a directory only a file's owner removes or renames it.
const STICKY: u32 = 0o1000;

impl Access {
    pub(crate) const fn new(mode: u32, trust: Trust) -> Access {
        Access { mode, trust }
    }

    /// Whether a name in this directory stays with its file: a stranger who could take a table's name from it would get each
    /// process that comes later a new table, and its clients their bursts again.
    pub(super) fn of_directory(&self, directory: &Status) -> Result<(), TableError> {
        let replaceable = directory.mode & OTHERS != 0 && directory.mode & STICKY == 0;
        self.unless(stranger(directory.owner) || replaceable)
    }

    /// Whether this file, in a directory that was found good, may be believed.
    pub(super) fn of_file(&self, directory: &Status, file: &Status) -> Result<(), TableError> {
        let writable = file.mode & STRANGERS & !self.mode != 0;
        // Where strangers may make names, one of them may have linked another table of the same owner's here.
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

/// Whether this user is neither the caller nor root, who could do anything anyway.
fn stranger(user: u32) -> bool {
    // SAFETY: takes nothing and cannot fail.
    user != 0 && user != unsafe { libc::geteuid() }
}
