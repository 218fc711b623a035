//! Making and opening tables.
//!
//! No model notices a weaker ordering in this file, because loom's tables are in no files.

use crate::clock::{machine, Clock, Source, Utc, Wall};
use crate::limiter::waiting::{WaiterQueues, WAITERS};
use crate::policy::Policy;
use crate::sync::{boxed, Ordering};
use crate::table::decide::hot_keys::HotKeys;
use crate::table::decide::{Missing, Table};
use crate::table::memory::error::TableError;
use crate::table::memory::layout::*;
use crate::table::memory::region::{random_u64, Agreement, Region, Trust};
use crate::table::memory::sizes::side_words_of;
use crate::table::memory::{Memory, Sizes};
use crate::table::policies::multi_word::MultiWord;
use crate::table::policies::{records, Policies};
use crate::table::slots::states::OnFull;
use crate::table::slots::Slots;
use core::ptr::NonNull;
use rapidhash::v3::RapidSecrets;

/// The options of a table. All processes that open one table must give equal options, except
/// `huge_pages`, `mode`, `trust`, `waiters` and `hot_keys`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The number of keys that can have a debt at one time. The table has a quarter more slots, and
    /// at least 5,120.
    pub capacity: u64,
    /// What the table does with a new key if none of the key's slots has expired.
    pub on_full: OnFull,
    /// How the table decides on a request without a key.
    pub missing: Missing,
    /// The clock that calls without a time argument read, through [`Utc`].
    pub clock: Source,
    /// The seed of the hash. `None` is a random seed. A client that knows the seed can choose keys
    /// that collide.
    pub seed: Option<u64>,
    /// Whether the library advises the system to use huge pages.
    pub huge_pages: bool,
    /// The permissions of a new file. The call refuses an existing file that more users may write
    /// than these permissions let.
    pub mode: u32,
    /// Which users' files the call may open.
    pub trust: Trust,
    /// The most callers that may sleep in [`Table::wait_until`] at one time, of one table object of
    /// one process. 0: none may sleep.
    pub waiters: u32,
    /// The number of keys for which each thread of this process may take permits in advance: those
    /// that it checks most often. 0: none. Other numbers are raised to 64 or lowered to 16,384. The
    /// table reserves address space for 128 threads, at least 34 bytes for each key and thread, and
    /// the system allocates memory for the threads that check. [`Table::with_hot_keys`] says what
    /// the option does.
    pub hot_keys: u32,
    /// The keys that may have a policy of their own at one time ([`Table::set_override`]), 32 bytes
    /// each; 524,288 at most.
    pub overrides: u32,
    /// The most segments of a window, or permits of a log, for which each slot has room. With room
    /// the table may have any policies, and each may change to any other ([`Table::set_policy`]).
    /// 0: none, and a sliding window or log must be the only policy. A slot with room for n takes
    /// 32 bytes and 16 for each place of a window's ring: the next power of two from n + 2 on.
    pub room: u32,
}

impl Options {
    /// The default of [`Options::waiters`].
    pub const WAITERS: u32 = WAITERS;
    /// The default of [`Options::overrides`].
    pub const OVERRIDES: u32 = 1024;

    /// Options for a table of `capacity` keys, with the defaults for all other fields.
    pub const fn new(capacity: u64) -> Options {
        Options {
            capacity,
            on_full: OnFull::EvictNearest,
            missing: Missing::Deny,
            clock: Source::Tsc,
            seed: None,
            huge_pages: true,
            mode: 0o600,
            trust: Trust::Owner,
            waiters: WAITERS,
            hot_keys: 0,
            overrides: Options::OVERRIDES,
            room: 0,
        }
    }

    /// These options with another [`Options::on_full`].
    pub const fn with_on_full(mut self, on_full: OnFull) -> Options {
        self.on_full = on_full;
        self
    }

    /// These options with room for windows of `room` segments and logs of `room` permits.
    pub const fn with_room(mut self, room: u32) -> Options {
        self.room = room;
        self
    }

    /// These options with credit for `keys` hot keys of each thread.
    pub const fn with_hot_keys(mut self, keys: u32) -> Options {
        self.hot_keys = keys;
        self
    }

    /// These options with a known seed.
    pub const fn with_seed(mut self, seed: u64) -> Options {
        self.seed = Some(seed);
        self
    }
}

impl Table {
    /// The size of a table in bytes. It never changes.
    ///
    /// # Errors
    /// [`TableError::Capacity`], [`TableError::Policies`] for none or more than 128,
    /// [`TableError::Policy`] for an invalid one, [`TableError::Mixed`] if a sliding window or log
    /// is not the only policy of a table without room, [`TableError::SlotRoom`] if one needs more
    /// room, [`TableError::Overrides`] for more than 524,288.
    pub fn bytes_for(options: &Options, policies: &[Policy]) -> Result<u64, TableError> {
        Ok(fixed(options, policies, false)?.bytes)
    }

    /// Makes a table in this process's own memory.
    ///
    /// # Errors
    /// Those of [`Table::bytes_for`]. [`TableError::System`] if the system gives no memory or no
    /// random seed, [`TableError::NoMemory`], [`TableError::Unsupported`] without a 16-byte
    /// compare-and-swap.
    pub fn private(options: &Options, policies: &[Policy]) -> Result<Table, TableError> {
        Table::make(options, policies, &mut Region::private)
    }

    /// Makes a table in memory that this process shares with the processes that it forks later.
    ///
    /// # Errors
    /// Those of [`Table::private`].
    pub fn shared(options: &Options, policies: &[Policy]) -> Result<Table, TableError> {
        Table::make(options, policies, &mut Region::shared)
    }

    /// Makes a table in the caller's memory. It takes [`Table::bytes_for`] bytes and overwrites
    /// them.
    ///
    /// # Errors
    /// Those of [`Table::private`], [`TableError::Room`] if `length` is too small,
    /// [`TableError::Misaligned`] if `memory` is not aligned to 64 bytes.
    ///
    /// # Safety
    /// `memory` is valid for reads and writes of `length` bytes as long as the table lives, and
    /// only tables access it.
    pub unsafe fn init_in(
        memory: NonNull<u8>,
        length: usize,
        options: &Options,
        policies: &[Policy],
    ) -> Result<Table, TableError> {
        Table::make(options, policies, &mut |needed| {
            // SAFETY: as this function's.
            let region = unsafe { within(memory, length, needed) }?;
            // SAFETY: `needed` of the caller's bytes; only this call accesses them before the table
            // is made.
            unsafe { memory.as_ptr().write_bytes(0, needed) };
            Ok(region)
        })
    }

    /// [`Table::init_in`] in memory of zeroes. It touches only the header and the policies, so the
    /// system need not allocate the other pages before a key uses them.
    ///
    /// # Errors
    /// Those of [`Table::init_in`].
    ///
    /// # Safety
    /// As [`Table::init_in`], and the bytes are zero.
    #[doc(hidden)]
    pub unsafe fn init_in_zeroed(
        memory: NonNull<u8>,
        length: usize,
        options: &Options,
        policies: &[Policy],
    ) -> Result<Table, TableError> {
        // SAFETY: as this function's.
        Table::make(options, policies, &mut |needed| unsafe { within(memory, length, needed) })
    }

    /// Opens the table in the caller's memory. Another process may have made it.
    ///
    /// # Errors
    /// [`TableError::NotATable`], [`TableError::Version`] for a table of another layout,
    /// [`TableError::Truncated`], [`TableError::Corrupt`] for a wrong checksum,
    /// [`TableError::Misaligned`], [`TableError::NoMemory`], [`TableError::Unsupported`].
    ///
    /// # Safety
    /// As [`Table::init_in`].
    pub unsafe fn attach_in(memory: NonNull<u8>, length: usize) -> Result<Table, TableError> {
        if length < VERSIONS_AT {
            return Err(TableError::Truncated);
        }
        if memory.as_ptr() as usize & 63 != 0 {
            return Err(TableError::Misaligned);
        }
        // SAFETY: the header is within `length` and aligned; the caller promises that only tables
        // access it.
        let header: &Header = unsafe { memory.cast().as_ref() };
        let needed = usize::try_from(header.fixed()?.bytes).map_err(|_| TableError::Truncated)?;
        if length < needed {
            return Err(TableError::Truncated);
        }
        // SAFETY: the caller promises `length` valid bytes, and `needed` is at most `length`.
        Table::over(unsafe { Region::borrowed(memory, needed) }?, false)?.going_on()
    }

    /// Sets the most callers of this table object that may sleep in [`Table::wait_until`] at one
    /// time.
    pub fn with_waiters(mut self, most: u32) -> Table {
        self.waiting.set_most(most);
        self
    }

    /// Writes the table of a file to the disk, with the current time. After the machine's next
    /// start the table's time continues from that time. As long as the machine runs, nothing is
    /// lost without this call. After a crash of the machine the table has the content that was on
    /// the disk.
    ///
    /// # Errors
    /// [`TableError::System`] with [`Call::Sync`](crate::table::Call::Sync).
    pub fn sync(&self) -> Result<(), TableError> {
        if self.policies.memory.fixed.file != 0 {
            self.note_time();
        }
        self.policies.memory.region().sync()
    }

    pub(crate) fn make(
        options: &Options,
        policies: &[Policy],
        memory: &mut dyn FnMut(usize) -> Result<Region, TableError>,
    ) -> Result<Table, TableError> {
        let mut fixed = fixed(options, policies, false)?;
        fixed.seed = seed(options)?;
        let memory = memory(usize::try_from(fixed.bytes).map_err(|_| TableError::Capacity)?)?;
        if options.huge_pages {
            // Before the first access, because existing pages stay small.
            memory.advise_huge(0);
        }
        begin(&memory, &fixed, policies)?;
        if fixed.side == 0 {
            // Touches all pages now, so that the memory does not grow later and no request waits
            // for a page.
            memory.populate();
        }
        Ok(Table::over(memory, false)?
            .with_hot_keys(options.hot_keys)?
            .with_waiters(options.waiters))
    }

    /// The table in `region`, after this process has inspected or written the header.
    pub(super) fn over(region: Region, huge_pages: bool) -> Result<Table, TableError> {
        let memory = Memory::over(region)?;
        if huge_pages {
            memory.region().advise_huge(0);
        }
        let fixed = memory.fixed;
        let offset = memory.header().offset.load(Ordering::Relaxed);
        // SAFETY: the table owns the memory and the slots, so the memory lives as long as they.
        let slots = unsafe { Slots::of(&memory) };
        Ok(Table {
            policies: Policies::over(memory)?,
            slots,
            on_full: on_full(fixed.on_full).ok_or(TableError::Corrupt)?,
            missing: missing(fixed.missing).ok_or(TableError::Corrupt)?,
            clock: clock(fixed.clock).ok_or(TableError::Corrupt)?,
            offset,
            secrets: RapidSecrets::seed(fixed.seed),
            waiting: boxed(WaiterQueues::new(WAITERS)).ok_or(TableError::NoMemory)?,
            hot: None,
        })
    }

    /// Lets each thread of this process take permits in advance for the `keys` keys that it checks
    /// most often through this view of the table ([`Options::hot_keys`]). 0: none.
    ///
    /// Use it for keys that several threads check at the same time. Every check of such a key
    /// writes its slot, whose cache line then moves from core to core. With hot keys a thread
    /// charges a key for more permits than its request costs, and spends the rest, its *credit*, on
    /// its next requests without the table. In every interval of length t a key is still admitted
    /// at most `burst + rate · t`, by all threads and processes together. Credit is at most a
    /// sixteenth of the remaining permits, and at most 1,024. So a thread takes none near the
    /// limit, and none if the burst is below 32. A thread loses credit that it does not spend in
    /// time, and a full bucket loses some permits for it: the refill of an eighth of a second, at
    /// most an eighth of the burst. Only gcra has credit, and only while the table has no exempt
    /// keys.
    ///
    /// ```
    /// use tollbar::table::{Options, PolicyId, Table};
    /// use tollbar::Verdict;
    ///
    /// let table = Table::private(&Options::new(10_000).with_hot_keys(256), &["1000000/s burst 100000".parse()?])?;
    /// std::thread::scope(|scope| {
    ///     for _ in 0..2 {
    ///         scope.spawn(|| {
    ///             for _ in 0..10_000 {
    ///                 assert_eq!(table.admit(PolicyId::FIRST, b"the tenant of the day", 1), Verdict::Allowed);
    ///             }
    ///         });
    ///     }
    /// });
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`TableError::NoMemory`].
    pub fn with_hot_keys(mut self, keys: u32) -> Result<Table, TableError> {
        self.set_hot_keys(keys)?;
        Ok(self)
    }

    /// [`Table::with_hot_keys`] for a view that its caller does not move. Threads lose their credit
    /// through this view.
    ///
    /// # Errors
    /// [`TableError::NoMemory`].
    pub fn set_hot_keys(&mut self, keys: u32) -> Result<(), TableError> {
        self.hot = HotKeys::new(keys)?;
        Ok(())
    }

    /// Joins a table that another process may have made. Continues the time of one in a file.
    pub(crate) fn going_on(mut self) -> Result<Table, TableError> {
        if self.clock == Source::Wall {
            // Unix time is the same in all time namespaces and goes on over a boot.
            return Ok(self);
        }
        if self.policies.memory.header().on_machine_clock.load(Ordering::Relaxed) == 0
            || !machine::is_known()
        {
            return Err(TableError::TimeNamespace);
        }
        if self.policies.memory.fixed.file != 0 {
            self.continue_time()?;
        }
        Ok(self)
    }

    /// Continues the table's time after a boot: it advances by as much as the wall clock has since
    /// the table noted it.
    fn continue_time(&mut self) -> Result<(), TableError> {
        let (header, region) = (self.policies.memory.header(), self.policies.memory.region());
        let here = region.boot();
        let agreement = || header.boot().load().agrees(&here);
        match agreement() {
            Agreement::Same => {}
            Agreement::Unknown => return Err(TableError::Boot),
            // The first process after a boot sets the offset for all. If that process is killed,
            // the kernel releases the lock.
            Agreement::Other => region.exclusively(|| {
                if agreement() == Agreement::Same {
                    return;
                }
                // If the wall clock went back meanwhile, the table's time stands still. No debt is
                // forgiven for it.
                let wall = Wall.now();
                let passed = wall.saturating_sub(header.wall_time.load(Ordering::Relaxed));
                let now = header.table_time.load(Ordering::Relaxed).saturating_add(passed);
                header.offset.store(now.wrapping_sub(self.clock.now()), Ordering::Relaxed);
                header.boot().store(here);
            })?,
        }
        self.offset = header.offset.load(Ordering::Relaxed);
        self.note_time();
        Ok(())
    }

    /// Stores the table's time and the wall clock's time. It reads the table's first and stores the
    /// wall clock's first. So if the process is stopped or killed in between, too little time seems
    /// to have passed, never too much.
    fn note_time(&self) {
        let header = self.policies.memory.header();
        let (now, wall) = (self.now(), Wall.now());
        header.wall_time.store(wall, Ordering::Release);
        header.table_time.store(now, Ordering::Release);
    }
}

/// The fixed properties of a table, except its seed.
pub(crate) fn fixed(
    options: &Options,
    policies: &[Policy],
    file: bool,
) -> Result<Fixed, TableError> {
    if policies.is_empty() || policies.len() > POLICIES_MOST {
        return Err(TableError::Policies);
    }
    let side = side_words(policies, options)?;
    let sizes = Sizes::new(options.capacity, side, u64::from(options.overrides))?;
    Ok(Fixed {
        bytes: sizes.bytes,
        capacity: options.capacity,
        buckets: sizes.buckets,
        side,
        on_full: options.on_full as u64,
        clock: options.clock as u64,
        seed: 0,
        missing: options.missing as u64,
        file: u64::from(file),
        overrides: u64::from(options.overrides),
        room: u64::from(options.room),
    })
}

/// The number of side words of each slot under these policies. Without room a policy whose state is
/// more than one word must be the table's only one.
fn side_words(policies: &[Policy], options: &Options) -> Result<u64, TableError> {
    let room = u64::from(options.room);
    let mut side = if room == 0 { 0 } else { side_words_of(room) };
    for policy in policies {
        crate::limiter::State::validate_on(policy, options.clock)?;
        if let Some(multi_word) = MultiWord::new(policy, room != 0)? {
            if room != 0 {
                multi_word.fits_room(room)?;
                continue;
            }
            if policies.len() != 1 {
                return Err(TableError::Mixed);
            }
            side = multi_word.side_words();
        }
    }
    Ok(side)
}

/// The first `needed` of the caller's bytes.
///
/// # Safety
/// `memory` is valid for reads and writes of `length` bytes as long as the region lives.
unsafe fn within(memory: NonNull<u8>, length: usize, needed: usize) -> Result<Region, TableError> {
    if length < needed {
        return Err(TableError::Room);
    }
    // SAFETY: the caller promises `length` valid bytes, and `needed` is at most `length`.
    unsafe { Region::borrowed(memory, needed) }
}

/// Writes a table's header and policies into zeroed memory that no other thread or process sees
/// yet.
pub(crate) fn begin(memory: &Region, fixed: &Fixed, policies: &[Policy]) -> Result<(), TableError> {
    let at = memory.base().cast::<Header>();
    // SAFETY: the region is longer than BUCKETS_AT and aligned to 64 bytes; zeroes are a valid
    // Header.
    let header = unsafe { at.as_ref() };
    header.begin(fixed);
    let clock = clock(fixed.clock).ok_or(TableError::Corrupt)?;
    header.offset.store(Utc::new(clock).offset(), Ordering::Relaxed);
    header.on_machine_clock.store(u64::from(machine::is_known()), Ordering::Relaxed);
    if fixed.file != 0 {
        let boot = memory.boot();
        match clock {
            Source::Wall => {}
            _ if !machine::is_known() => return Err(TableError::TimeNamespace),
            _ if !boot.is_known() => return Err(TableError::Boot),
            _ => {}
        }
        header.boot().store(boot);
    }
    // SAFETY: as the header; the records end before BUCKETS_AT.
    let records =
        unsafe { memory.base().byte_add(VERSIONS_AT).cast::<[Record; VERSIONS]>().as_ref() };
    for policy in policies {
        records::add(header, records, policy)?;
    }
    header.magic.store(MAGIC, Ordering::Release);
    Ok(())
}

pub(crate) fn seed(options: &Options) -> Result<u64, TableError> {
    match options.seed {
        Some(seed) => Ok(seed),
        None => random_u64(),
    }
}

fn on_full(number: u64) -> Option<OnFull> {
    [OnFull::EvictNearest, OnFull::Inherit, OnFull::Allow, OnFull::Deny]
        .into_iter()
        .find(|&o| o as u64 == number)
}

fn missing(number: u64) -> Option<Missing> {
    [Missing::Deny, Missing::Allow, Missing::Report].into_iter().find(|&m| m as u64 == number)
}

fn clock(number: u64) -> Option<Source> {
    Source::ALL.into_iter().find(|&clock| clock as u64 == number)
}
