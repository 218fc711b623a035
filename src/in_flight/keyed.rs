//! Permits in flight by key, in memory that processes share.

use super::layout::{InFlightHead, InFlightSizes};
use super::protocol::{ProcessPart, System, TableView};
use super::refusal::Refusal;
use super::word::{Process, Ticket};
use crate::clock::{Clock, Monotonic};
use crate::limiter::thread;
use crate::sync::{AtomicU64, Ordering};
use crate::table::memory::error::TableError;
use crate::table::memory::mix::mix;
use crate::table::memory::region::{
    has_ended, namespace, process, random_u64, start_of, Access, Others, Region, Trust,
};
use core::ffi::CStr;
use core::mem::size_of;
use core::ptr::NonNull;
use rapidhash::v3::RapidSecrets;

/// How an in-flight table is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The number of keys that can have permits in flight at one time. A key with permits of
    /// several processes counts once for each process. The table has twice as many slots of 8
    /// bytes.
    pub capacity: u64,
    /// The number of processes that have permits of one key at one time. A key has room for four
    /// times as many, and at least for 32.
    pub processes: u32,
    /// The permissions of a new file. The call refuses an existing file that more users may write
    /// than these permissions let write.
    pub mode: u32,
    /// Which owners of an existing file the call trusts.
    pub trust: Trust,
}

impl Options {
    /// Options for `capacity` keys, with the defaults for all other fields.
    pub const fn new(capacity: u64) -> Options {
        Options { capacity, processes: 8, mode: 0o600, trust: Trust::Owner }
    }
}

/// One process's view of an in-flight table. Any number of threads may use it at once.
///
/// A process becomes an *owner* with the first permit that it acquires. When this value is dropped,
/// the process releases all permits that it acquired through it. If a process is killed, its
/// permits of a key stay in flight until the key refuses a request of another process. That request
/// asks the system which owners of the key's permits have ended, at most once a millisecond for
/// each owner, frees their permits and tries again. No request waits.
///
/// A forked child is another owner. It can use the value, and cannot release the tickets of its
/// parent. A child in another PID namespace cannot see whether the other owners live: its calls
/// return [`Refusal::Namespace`].
#[derive(Debug)]
pub struct InFlight {
    region: Region,
    slots: usize,
    window: usize,
    secrets: RapidSecrets,
    /// Holds a [`ProcessPart`].
    local: Region,
    /// 0 if the kernel zeroes `local` in a forked child. Otherwise the number of the process that
    /// `local` belongs to.
    process: AtomicU64,
}

/// A permit that is released when it is dropped.
#[derive(Debug)]
#[must_use = "the permit is released when it is dropped"]
pub struct Permit<'a> {
    table: &'a InFlight,
    ticket: Ticket,
}

impl InFlight {
    /// The size in bytes of a table with these options.
    pub fn bytes_for(options: &Options) -> Result<u64, TableError> {
        Ok(InFlightSizes::of(options.capacity, options.processes)?.bytes)
    }

    /// Makes a table in this process's own memory.
    pub fn private(options: &Options) -> Result<InFlight, TableError> {
        InFlight::make(
            InFlightSizes::of(options.capacity, options.processes)?,
            true,
            Region::private,
        )
    }

    /// Makes a table in memory that this process shares with the processes that it forks later.
    pub fn shared(options: &Options) -> Result<InFlight, TableError> {
        InFlight::make(
            InFlightSizes::of(options.capacity, options.processes)?,
            false,
            Region::shared,
        )
    }

    /// Makes a table in the caller's memory, which it overwrites. With a capacity of 0 the table
    /// has as many slots as fit.
    ///
    /// # Safety
    /// `memory` is valid for reads and writes of `length` bytes as long as the table lives, and
    /// only in-flight tables access it.
    pub unsafe fn init_in(
        memory: NonNull<u8>,
        length: usize,
        options: &Options,
    ) -> Result<InFlight, TableError> {
        let sizes = match options.capacity {
            0 => InFlightSizes::within(length as u64, options.processes),
            capacity => InFlightSizes::of(capacity, options.processes),
        }?;
        InFlight::make(sizes, false, |needed| {
            if length < needed {
                return Err(TableError::Room);
            }
            // SAFETY: by the caller's promise.
            let region = unsafe { Region::borrowed(memory, needed) }?;
            // SAFETY: `needed` of the caller's bytes, which nobody else looks at before the table
            // is made.
            unsafe { memory.as_ptr().write_bytes(0, needed) };
            Ok(region)
        })
    }

    /// Opens the table in the caller's memory. Another process may have made it.
    ///
    /// # Safety
    /// As [`InFlight::init_in`].
    pub unsafe fn attach_in(memory: NonNull<u8>, length: usize) -> Result<InFlight, TableError> {
        if length < size_of::<InFlightHead>() {
            return Err(TableError::Truncated);
        }
        // SAFETY: by the caller's promise.
        let head = unsafe { Region::borrowed(memory, size_of::<InFlightHead>()) }?;
        // SAFETY: as long as the head.
        let needed = usize::try_from(unsafe { InFlightHead::of(&head) }.sizes()?.0.bytes)
            .map_err(|_| TableError::Truncated)?;
        if length < needed {
            return Err(TableError::Truncated);
        }
        // SAFETY: by the caller's promise.
        let table = InFlight::over(unsafe { Region::borrowed(memory, needed) }?)?;
        table.head().is_among_owners()?;
        Ok(table)
    }

    /// Opens the table in the file at `path`, or makes the file if there is none. If several
    /// processes call at once, one makes the file and the others open it. The call fails with
    /// [`TableError::OtherCapacity`] if the file has a table for another number of keys or
    /// processes.
    ///
    /// Give the file a directory of the service's own (`/run/SERVICE`), or use /dev/shm. All
    /// processes that use the file at one time must be in one PID namespace. The first process that
    /// opens the file while no other has it open begins with an empty table, if it is in another
    /// boot or another namespace than the last one.
    ///
    /// # Errors
    /// [`TableError::Namespace`] if processes of another PID namespace use the file, or if this
    /// process cannot read its own; [`TableError::Boot`] if this process cannot read the boot's id
    /// and the file is not in tmpfs (/dev/shm, /run); [`TableError::OtherBoot`]; otherwise those of
    /// [`Table::file_at`](crate::table::Table::file_at).
    pub fn file_at(path: &CStr, options: &Options) -> Result<InFlight, TableError> {
        let sizes = InFlightSizes::of(options.capacity, options.processes)?;
        let length = usize::try_from(sizes.bytes).map_err(|_| TableError::Capacity)?;
        let seed = random_u64()?;
        let inspect = |head: &[u8]| match InFlightHead::inspect(head)?.0 {
            found if found == sizes => Ok(found.bytes),
            _ => Err(TableError::OtherCapacity),
        };
        let fill = |region: &Region| {
            // SAFETY: the new region has `length` bytes, and the head is shorter.
            unsafe { InFlightHead::of(region) }.begin(region, &sizes, seed, false)
        };
        let access = Access::new(options.mode, options.trust);
        InFlight::over(Region::enter_or_create(path, length, access, &inspect, &fill, &enter)?.0)
    }

    /// Opens the table in the file at `path`, whatever its options are.
    pub fn open_at(path: &CStr, trust: Trust) -> Result<InFlight, TableError> {
        let inspect = |head: &[u8]| InFlightHead::inspect(head).map(|(found, _)| found.bytes);
        InFlight::over(Region::enter(path, Access::new(0, trust), &inspect, &enter)?)
    }

    /// Takes a permit of a key, unless `limit` are in flight. The caller gives the limit with each
    /// call, so it can change at any time: if more permits than the limit are in flight, the call
    /// refuses until enough of them are released.
    ///
    /// # Errors
    /// [`Refusal::Limit`]; [`Refusal::Full`] or [`Refusal::OwnersFull`] if the table is too small;
    /// [`Refusal::Namespace`] for a forked child in another PID namespace.
    #[inline]
    pub fn acquire(&self, key: &[u8], limit: u32) -> Result<Ticket, Refusal> {
        self.view().acquire(self.hash(key), limit)
    }

    /// Releases a permit. False, and nothing changes, if the ticket belongs to another owner or has
    /// been released. Release a ticket once: a second release may release another permit of this
    /// process, of the same key or of one whose slot is the same.
    #[inline]
    pub fn release(&self, ticket: Ticket) -> bool {
        self.view().release(ticket)
    }

    /// [`InFlight::acquire`] with a permit that is released when it is dropped.
    ///
    /// # Errors
    /// As [`InFlight::acquire`].
    pub fn enter(&self, key: &[u8], limit: u32) -> Result<Permit<'_>, Refusal> {
        self.acquire(key, limit).map(|ticket| self.permit(ticket))
    }

    /// The number of permits of a key in flight. The call does not ask the system which owners have
    /// ended, so it may count permits of a killed process until the key refuses a request.
    pub fn count(&self, key: &[u8]) -> u64 {
        self.view().count(self.hash(key))
    }

    /// [`InFlight::count`]. If the count is `limit` or more, the call asks the system which owners
    /// have ended, and leaves out their permits.
    pub(crate) fn count_of_living(&self, key: &[u8], limit: u32) -> u64 {
        self.view().count_of_living(self.hash(key), limit)
    }

    /// The permit of a ticket, which is released when it is dropped.
    pub fn permit(&self, ticket: Ticket) -> Permit<'_> {
        Permit { table: self, ticket }
    }

    /// Makes this process an owner now, so that its first [`InFlight::acquire`] makes no system
    /// call. It also frees the slots of owners that have ended.
    ///
    /// # Errors
    /// [`Refusal::OwnersFull`], [`Refusal::Namespace`].
    pub fn join(&self) -> Result<(), Refusal> {
        self.view().join_once()
    }

    /// `alone`: no other process can use the memory.
    fn make(
        sizes: InFlightSizes,
        alone: bool,
        memory: impl FnOnce(usize) -> Result<Region, TableError>,
    ) -> Result<InFlight, TableError> {
        let seed = random_u64()?;
        let region = memory(usize::try_from(sizes.bytes).map_err(|_| TableError::Capacity)?)?;
        // SAFETY: a region of that many bytes, and the head is shorter.
        unsafe { InFlightHead::of(&region) }.begin(&region, &sizes, seed, alone)?;
        region.populate();
        InFlight::over(region)
    }

    /// The table in a region whose head has been inspected or written.
    fn over(region: Region) -> Result<InFlight, TableError> {
        if region.len() < size_of::<InFlightHead>() {
            return Err(TableError::Truncated);
        }
        // SAFETY: it is as long as the head.
        let (sizes, seed) = unsafe { InFlightHead::of(&region) }.sizes()?;
        if region.len() as u64 != sizes.bytes {
            return Err(TableError::Truncated);
        }
        let local = Region::private(size_of::<ProcessPart>())?;
        let process = if local.wipe_in_children() { 0 } else { process() };
        let table = InFlight {
            region,
            slots: sizes.slots as usize,
            window: sizes.window as usize,
            secrets: RapidSecrets::seed(seed),
            local,
            process: AtomicU64::new(process),
        };
        // While the process is sure to reach /proc: it may leave it by a chroot before its first
        // permit.
        table.local().namespace.store(namespace(), Ordering::Relaxed);
        Ok(table)
    }

    #[inline]
    fn view(&self) -> TableView<'_, This> {
        if self.process.load(Ordering::Relaxed) != 0 {
            self.forget_the_parents();
        }
        let head = self.head();
        TableView {
            records: &head.records,
            slots: self.slots(),
            window: self.window,
            joined: &head.joined,
            namespace: &head.namespace,
            local: self.local(),
            system: &This,
        }
    }

    #[inline]
    fn head(&self) -> &InFlightHead {
        // SAFETY: `over` has seen that the region is longer.
        unsafe { InFlightHead::of(&self.region) }
    }

    #[inline]
    fn slots(&self) -> &[AtomicU64] {
        // SAFETY: `over` has seen that the region has the head and so many slots behind it.
        unsafe { slots_of(&self.region, self.slots) }
    }

    #[inline]
    fn local(&self) -> &ProcessPart {
        // SAFETY: a region of that size, of this value alone; atomics that are 0 in the beginning.
        unsafe { self.local.base().cast().as_ref() }
    }

    #[inline]
    pub(crate) fn hash(&self, key: &[u8]) -> u64 {
        crate::table::hash_long(key, &self.secrets)
    }

    /// For systems that do not wipe memory in a forked child.
    #[cold]
    #[inline(never)]
    fn forget_the_parents(&self) {
        let process = process();
        if self.process.swap(process, Ordering::Relaxed) != process {
            self.local().wipe();
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.view().part();
    }
}

impl Permit<'_> {
    /// The permit as plain data, which the caller releases.
    pub fn into_ticket(self) -> Ticket {
        core::mem::ManuallyDrop::new(self).ticket
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.table.release(self.ticket);
    }
}

/// [`InFlightHead::enter`] for a region whose head has been inspected.
fn enter(region: &Region, others: &Others<'_>) -> Result<(), TableError> {
    // SAFETY: the head has been inspected, so the region is longer.
    let head = unsafe { InFlightHead::of(region) };
    let sizes = head.sizes()?.0;
    if region.len() as u64 != sizes.bytes {
        return Err(TableError::Truncated);
    }
    // SAFETY: the region has the head and so many slots behind it.
    head.enter(region, unsafe { slots_of(region, sizes.slots as usize) }, others)
}

/// # Safety
/// The region has the head and so many slots behind it.
unsafe fn slots_of(region: &Region, slots: usize) -> &[AtomicU64] {
    // SAFETY: by the caller's promise; the head's size is a multiple of 8. They are only ever used
    // as atomics.
    unsafe {
        core::slice::from_raw_parts(
            region.base().byte_add(size_of::<InFlightHead>()).cast().as_ptr(),
            slots,
        )
    }
}

/// The system that this process runs on.
struct This;

impl System for This {
    fn this_process(&self) -> Process {
        let number = process() as u32;
        Process { number, start: start_of(number) }
    }

    fn namespace(&self) -> u64 {
        namespace()
    }

    fn has_ended(&self, process: Process, thorough: bool) -> bool {
        has_ended(process.number, process.start, thorough)
    }

    fn now(&self) -> u64 {
        Monotonic.now() / 1_000_000
    }

    fn pause(&self, attempt: u32) {
        // Threads have different thread pointers. Their mixed bits make pauses of different
        // lengths.
        for _ in 0..(mix(thread::current()) % 16 + 1) * 8 * u64::from(attempt) {
            core::hint::spin_loop();
        }
    }
}
