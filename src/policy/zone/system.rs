//! The system's zone data.

use super::tzif::{self, FILE_MOST};
use super::Zone;
use crate::clock::{Clock, Wall};
use crate::sync::filled;

/// The folders in which systems keep the IANA database.
const FOLDERS: [&[u8]; 2] = [b"/usr/share/zoneinfo/", b"/etc/zoneinfo/"];

/// The zone of that name from now on. `None` if the system has no such zone, no rule gives its
/// future, or there is no memory to read the file.
#[cold]
#[inline(never)]
pub(crate) fn zone(name: &[u8]) -> Option<Zone> {
    // No name leaves the folder: a dot is in no zone's name.
    let letters = |byte: &u8| byte.is_ascii_alphanumeric() || b"/_+-".contains(byte);
    if !name.first()?.is_ascii_alphabetic() || !name.iter().all(letters) {
        return None;
    }
    let now = i64::try_from(Wall.now() / 1_000_000_000).ok()?;
    // On the heap, because a policy is also read on the small stacks of C programs' threads.
    let mut file = filled(FILE_MOST, 0)?;
    let length = FOLDERS.iter().find_map(|folder| read(folder, name, &mut file))?;
    tzif::zone(file.get(..length)?, now)
}

/// Reads a file and returns its length. `None` if there is none, or if it fills `into`.
fn read(folder: &[u8], name: &[u8], into: &mut [u8]) -> Option<usize> {
    let mut path = [0; 128];
    let (prefix, rest) = path.split_at_mut_checked(folder.len())?;
    prefix.iter_mut().zip(folder).for_each(|(to, byte)| *to = *byte);
    rest.get_mut(..name.len())?.iter_mut().zip(name).for_each(|(to, byte)| *to = *byte);
    if path.last() != Some(&0) {
        return None;
    }
    // SAFETY: the last byte is 0, so the path ends within it.
    let file = unsafe { libc::open(path.as_ptr().cast(), libc::O_RDONLY | libc::O_CLOEXEC) };
    if file < 0 {
        return None;
    }
    let mut length = 0;
    while let Some(room @ [_, ..]) = into.get_mut(length..) {
        // SAFETY: `room` is writable for its length; `file` was opened above.
        match usize::try_from(unsafe { libc::read(file, room.as_mut_ptr().cast(), room.len()) }) {
            Ok(more @ 1..) => length += more,
            _ => break,
        }
    }
    // SAFETY: opened above, and closed once.
    unsafe { libc::close(file) };
    (length < into.len()).then_some(length)
}
