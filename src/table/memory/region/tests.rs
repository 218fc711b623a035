//! The common parts of the tests of a table's memory: temporary directories, child processes, and a
//! toy table.

mod locks;
mod making;
mod memory;
mod opening;
mod places;
mod presence;
mod trust;

use super::file::{self, Opened, Way, HEAD};
use super::system::{self, boot_id};
use super::*;
use crate::table::memory::error::{Call, TableError};
use core::ffi::c_int;
use core::ptr::NonNull;
use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::string::{String, ToString};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::vec::Vec;
use std::{format, fs};

/// The length of the toy table: not a multiple of a page, and longer than [`HEAD`].
const LEN: usize = 10 * 4096 + 64;
const MAGIC: u64 = 0x7461_626c_6521;

/// A temporary directory of one test.
struct Dir(PathBuf);

impl Dir {
    fn new() -> Dir {
        Dir::below(&std::env::temp_dir())
    }

    /// A directory in tmpfs.
    #[cfg(target_os = "linux")]
    fn in_memory() -> Dir {
        Dir::below(Path::new("/dev/shm"))
    }

    fn below(parent: &Path) -> Dir {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("tollbar-region-{}-{n}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Dir(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn names(&self) -> Vec<String> {
        let names = fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Reports why a test could not run. It writes to stderr itself, because libtest hides the output
/// of a test that passes. `make test` repeats the line at its end.
fn skipped(why: &str) {
    use std::io::Write;
    let _ = std::writeln!(std::io::stderr(), "\nskipped: {why}");
}

fn c(path: impl AsRef<Path>) -> CString {
    CString::new(path.as_ref().to_str().unwrap()).unwrap()
}

/// Word number `index` of the region.
fn word(region: &Region, index: usize) -> &AtomicU64 {
    assert!(index < region.len() / 8);
    // SAFETY: within the region and aligned; every process uses the word only as an atomic.
    unsafe { &*region.base().as_ptr().cast::<AtomicU64>().add(index) }
}

/// Makes a toy table: the magic and the length in its first two words, the magic in its last word.
fn fill(region: &Region) -> Result<(), TableError> {
    let last = region.len() / 8 - 1;
    if (0..=last).any(|i| word(region, i).load(Ordering::Relaxed) != 0) {
        return Err(TableError::Corrupt);
    }
    word(region, 0).store(MAGIC, Ordering::Relaxed);
    word(region, 1).store(region.len() as u64, Ordering::Relaxed);
    word(region, last).store(MAGIC, Ordering::Relaxed);
    Ok(())
}

fn inspect(head: &[u8]) -> Result<u64, TableError> {
    let word =
        |at: usize| head.get(at..at + 8).map(|bytes| u64::from_ne_bytes(bytes.try_into().unwrap()));
    match (word(0), word(8)) {
        (Some(MAGIC), Some(len)) => Ok(len),
        _ => Err(TableError::NotATable),
    }
}

fn is_whole(region: &Region) -> bool {
    let last = word(region, region.len() / 8 - 1).load(Ordering::Relaxed);
    word(region, 0).load(Ordering::Relaxed) == MAGIC && last == MAGIC
}

const PAGE: usize = 4096;

/// The number of pages at `base` that are in memory; `None` if they are not mapped.
#[cfg(target_os = "linux")]
fn resident(base: *mut u8, len: usize) -> Option<usize> {
    let mut pages = std::vec![0_u8; len.div_ceil(PAGE)];
    // SAFETY: a byte for each page; a range that is not mapped is an error.
    let failed = unsafe { libc::mincore(base.cast(), len, pages.as_mut_ptr()) };
    (failed == 0).then(|| pages.iter().filter(|&&page| page & 1 != 0).count())
}

/// Access to new files with that mode, and to existing files of the caller and root.
fn owners(mode: u32) -> Access {
    Access::new(mode, Trust::Owner)
}

/// Most tests run with both ways to make a file, because they must behave alike.
const WAYS: [Way; 2] = [Way::Unnamed, Way::Named];

fn make(path: &Path, len: usize, mode: u32, way: Way) -> Result<(Region, Opened), TableError> {
    file::open_or_create(&c(path), len, owners(mode), way, &inspect, &fill, None)
}

fn attach(path: &Path) -> Result<Region, TableError> {
    Region::open(&c(path), owners(0), &inspect)
}

fn refused(call: Call, errno: i32) -> TableError {
    TableError::System(call, errno)
}

/// A child process that runs `f` and exits. The alarm kills it after ten minutes.
struct Child(libc::pid_t);

impl Child {
    fn new(f: impl FnOnce() -> Result<(), String>) -> Child {
        // SAFETY: the child has one thread, uses malloc (which libc keeps usable), and ends by
        // _exit.
        let pid = unsafe { libc::fork() };
        assert!(pid >= 0);
        if pid > 0 {
            return Child(pid);
        }
        // SAFETY: integer arguments only.
        unsafe { libc::alarm(600) };
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(f));
        let code = match result {
            Ok(Ok(())) => 0,
            Ok(Err(text)) => {
                // Not through libtest, whose locks another thread may have held at the fork.
                let text = format!("child: {text}\n");
                // SAFETY: the text can be read for its length.
                unsafe { libc::write(2, text.as_ptr().cast(), text.len()) };
                1
            }
            Err(_) => 2,
        };
        // SAFETY: _exit does not run the parent's handlers.
        unsafe { libc::_exit(code) }
    }

    /// The child's exit code, or minus the signal that killed it.
    fn wait(self) -> i32 {
        let mut status = 0;
        // SAFETY: `status` is writable.
        assert_eq!(again(|| unsafe { libc::waitpid(self.0, &mut status, 0) }), Ok(self.0));
        if libc::WIFEXITED(status) {
            libc::WEXITSTATUS(status)
        } else {
            -libc::WTERMSIG(status)
        }
    }
}

/// Runs `f` in a child, for a test that changes the whole process (umask, limits, user, mounts).
#[track_caller]
fn in_child(f: impl FnOnce() -> Result<(), String>) {
    assert_eq!(Child::new(f).wait(), 0);
}

/// `assert_eq` for a child: it returns an error with the line of the failure.
macro_rules! same {
    ($left:expr, $right:expr) => {
        match (&$left, &$right) {
            (left, right) if left == right => {}
            (left, right) => return Err(std::format!("line {}: {left:?}, not {right:?}", line!())),
        }
    };
}
use same;

fn is_root() -> bool {
    // SAFETY: geteuid takes no argument.
    unsafe { libc::geteuid() == 0 }
}

/// For a child: becomes user 65534, who owns no files, if the process is root. The process is not
/// root afterwards.
fn become_nobody() {
    // SAFETY: integer arguments only.
    unsafe {
        libc::setgid(65534);
        libc::setuid(65534);
    }
    assert!(!is_root());
}
