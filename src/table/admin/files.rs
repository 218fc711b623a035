//! Tables in files and in sealed memory, which processes open by a name or by a descriptor.
//!
//! No model notices a weaker ordering in this file, because loom's tables are in no files.

use super::open::{begin, fixed, seed, Options};
use crate::policy::Policy;
use crate::sync::Ordering;
use crate::table::decide::Table;
use crate::table::memory::error::TableError;
use crate::table::memory::layout::{Fixed, Header};
use crate::table::memory::region::{Access, Region, Trust};
use crate::table::policies::records;
use core::ffi::{c_int, CStr};

impl Table {
    /// Opens the table in the file at `path`, or makes the file if there is none. In /run and
    /// /dev/shm a table lasts as long as the machine runs. On a disk it survives a restart of the
    /// machine, and its times continue by the wall clock. If the file has another table (other
    /// options, other policies or another order of them), the call fails and the file stays
    /// unchanged.
    ///
    /// If several processes call at once, one makes the file and the others open it. The call
    /// reserves all of the file's space.
    ///
    /// Give the file a directory of the service's own (`/run/SERVICE`). The call fails with
    /// [`TableError::Owner`] for a file that another user owns, may write or may replace, unless
    /// the options trust [`Trust::Anyone`].
    ///
    /// # Errors
    /// Those of [`Table::private`], except that the memory is a file: [`TableError::System`] with
    /// the call that failed, and [`TableError::Boot`]. Of an existing file:
    /// [`TableError::OtherCapacity`], [`TableError::OtherOptions`], [`TableError::OtherPolicies`],
    /// [`TableError::Owner`], and those of [`Table::attach_in`].
    pub fn file_at(
        path: &CStr,
        options: &Options,
        policies: &[Policy],
    ) -> Result<Table, TableError> {
        let mut fixed = fixed(options, policies, true)?;
        fixed.seed = seed(options)?;
        let length = usize::try_from(fixed.bytes).map_err(|_| TableError::Capacity)?;
        let inspect = |head: &[u8]| {
            let found = Header::inspect(head)?;
            agrees(&found, &fixed, options.seed)?;
            match records::differ(head, policies) {
                true => Err(TableError::OtherPolicies),
                false => Ok(found.bytes),
            }
        };
        let fill = |memory: &Region| begin(memory, &fixed, policies);
        let (memory, _) = Region::open_or_create(
            path,
            length,
            Access::new(options.mode, options.trust),
            &inspect,
            &fill,
        )?;
        let table = Table::over(memory, options.huge_pages)?;
        // This comes before the first write, because a refused file must stay unchanged.
        agrees(&table.policies.memory.fixed, &fixed, options.seed)?;
        table.has(policies)?;
        Ok(table.going_on()?.with_hot_keys(options.hot_keys)?.with_waiters(options.waiters))
    }

    /// Opens the table in the file at `path`, with any options and policies. Other users may write
    /// the file if `mode` lets them, as [`Options::mode`] says.
    ///
    /// # Errors
    /// [`TableError::System`], [`TableError::Owner`], [`TableError::Boot`], and those of
    /// [`Table::attach_in`].
    pub fn open_at(path: &CStr, mode: u32, trust: Trust) -> Result<Table, TableError> {
        let memory = Region::open(path, Access::new(mode, trust), &length)?;
        Table::over(memory, false)?.going_on()
    }

    /// Makes a table in sealed memory (Linux: a memfd), and returns it with its descriptor. A
    /// process that gets the descriptor, by inheritance or through a socket, shares the table. The
    /// caller closes the descriptor; this table does not need it.
    ///
    /// Use it to share a table with processes that you do not fully trust. No process can truncate
    /// sealed memory and so kill the others by SIGBUS, as the owner of a file can. A process that
    /// has the descriptor can still write to the memory, and so grant permits.
    ///
    /// # Errors
    /// Those of [`Table::private`].
    pub fn sealed(options: &Options, policies: &[Policy]) -> Result<(Table, c_int), TableError> {
        let mut descriptor = -1;
        let table = Table::make(options, policies, &mut |length| {
            let (region, fd) = Region::sealed(length)?;
            descriptor = fd;
            Ok(region)
        });
        match table {
            Ok(table) => Ok((table, descriptor)),
            Err(error) => {
                // SAFETY: only this call has the descriptor. close refuses -1.
                unsafe { libc::close(descriptor) };
                Err(error)
            }
        }
    }

    /// Opens the table behind a descriptor that [`Table::sealed`] returned in this or another
    /// process. The caller keeps and closes the descriptor.
    ///
    /// # Errors
    /// [`TableError::Unsealed`] for a file that a process could truncate.
    pub fn open_descriptor(descriptor: c_int) -> Result<Table, TableError> {
        let memory = Region::of_descriptor(descriptor, &length)?;
        Table::over(memory, false)?.going_on()
    }

    /// [`Table::file_at`] for a Rust path.
    ///
    /// # Errors
    /// Those of [`Table::file_at`]. [`TableError::System`] also for a path with a byte of 0.
    #[cfg(feature = "std")]
    pub fn file(
        path: impl AsRef<std::path::Path>,
        options: &Options,
        policies: &[Policy],
    ) -> Result<Table, TableError> {
        Table::file_at(&c_path(path.as_ref())?, options, policies)
    }

    /// [`Table::open_at`] for a Rust path, with [`Trust::Owner`].
    ///
    /// # Errors
    /// Those of [`Table::open_at`]. [`TableError::System`] also for a path with a byte of 0.
    #[cfg(feature = "std")]
    pub fn open(path: impl AsRef<std::path::Path>) -> Result<Table, TableError> {
        Table::open_at(&c_path(path.as_ref())?, 0o600, Trust::Owner)
    }

    /// Checks that these are the table's policies.
    fn has(&self, policies: &[Policy]) -> Result<(), TableError> {
        for (n, current) in self.policies.memory.header().current.iter().enumerate() {
            let found = match current.load(Ordering::Acquire) {
                0 => None,
                _ => Some(
                    records::current_policy(self.policies.memory.records(), current)
                        .ok_or(TableError::Corrupt)?,
                ),
            };
            if found.as_ref() != policies.get(n) {
                return Err(TableError::OtherPolicies);
            }
        }
        Ok(())
    }
}

/// The length of the table in a file.
fn length(head: &[u8]) -> Result<u64, TableError> {
    Ok(Header::inspect(head)?.bytes)
}

/// Checks that `found` are the parameters that `asked` describes. It does not compare policies.
fn agrees(found: &Fixed, asked: &Fixed, seed: Option<u64>) -> Result<(), TableError> {
    if found.capacity != asked.capacity {
        return Err(TableError::OtherCapacity);
    }
    let same_seed = seed.map_or(true, |seed| seed == found.seed);
    let others =
        |fixed: &Fixed| (fixed.on_full, fixed.clock, fixed.missing, fixed.overrides, fixed.room);
    if !same_seed || others(found) != others(asked) {
        return Err(TableError::OtherOptions);
    }
    Ok(())
}

#[cfg(feature = "std")]
fn c_path(path: &std::path::Path) -> Result<std::ffi::CString, TableError> {
    use std::os::unix::ffi::OsStrExt;
    std::ffi::CString::new(path.as_os_str().as_bytes())
        .map_err(|_| TableError::System(crate::table::memory::error::Call::Open, libc::ENOENT))
}
