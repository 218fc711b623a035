//! Making tables, and coming to one that is there.

use super::compiled::Versions;
use super::error::TableError;
use super::home::Homes;
use super::layout::*;
use super::lines::Line;
use super::local::Locals;
use super::mine::Mine;
use super::protocol::OnFull;
use super::region::{boot_id, random_u64, Region, Trust};
use super::slot::{Bucket, Slot};
use super::versions;
use super::wide::Wide;
use super::{Table, POLICIES_MOST};
use crate::clock::{Clock, Source, Utc, Wall};
use crate::policy::Policy;
use crate::sync::Ordering;
use core::ptr::NonNull;
use rapidhash::v3::RapidSecrets;

/// What a request without a key (of no bytes) is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Missing {
    /// It is refused.
    #[default]
    Deny = 0,
    /// It is admitted and charged to nobody.
    Allow = 1,
    /// It is an error, [`TableError::MissingKey`], where a call can say so; else it is refused.
    Report = 2,
}

/// How a table is made. Those who open it together must say the same, but for `huge_pages`, `mode` and `trust`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Keys that are to have a place at one time. Slots are made for a quarter more, and for no fewer than 5,120.
    pub capacity: u64,
    /// What a newcomer gets when there is no place.
    pub on_full: OnFull,
    /// What a request without a key gets.
    pub missing: Missing,
    /// The clock of the calls without a time, which read it through [`Utc`].
    pub clock: Source,
    /// What the hash is keyed with; `None`: random. Whoever knows it can choose keys that meet.
    pub seed: Option<u64>,
    /// Whether the system is advised to back the table with huge pages, where it can.
    pub huge_pages: bool,
    /// The permissions of a file that is made. Of one that is there, whom they let write may write it.
    pub mode: u32,
    /// Whose file is taken.
    pub trust: Trust,
}

impl Options {
    /// A table for `capacity` keys; everything else as is usual.
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
        }
    }

    /// The same with another answer to newcomers that find no place.
    pub const fn with_on_full(mut self, on_full: OnFull) -> Options {
        self.on_full = on_full;
        self
    }

    /// The same with a known seed.
    pub const fn with_seed(mut self, seed: u64) -> Options {
        self.seed = Some(seed);
        self
    }
}

impl Table {
    /// The bytes that a table takes, all told and for ever.
    pub fn bytes_for(options: &Options, policies: &[Policy]) -> Result<u64, TableError> {
        Ok(fixed(options, policies, false)?.bytes)
    }

    /// A table in this process's own memory.
    pub fn private(options: &Options, policies: &[Policy]) -> Result<Table, TableError> {
        Table::make(options, policies, Region::private)
    }

    /// A table in memory that processes forked later share.
    pub fn shared(options: &Options, policies: &[Policy]) -> Result<Table, TableError> {
        Table::make(options, policies, Region::shared)
    }

    /// A new table in the caller's memory, of which it takes [`Table::bytes_for`] bytes. What was there is gone.
    ///
    /// # Safety
    /// `memory` is valid for reads and writes of `length` bytes as long as the table lives, and is touched by nobody but tables.
    pub unsafe fn init_in(
        memory: NonNull<u8>,
        length: usize,
        options: &Options,
        policies: &[Policy],
    ) -> Result<Table, TableError> {
        Table::make(options, policies, |needed| {
            if length < needed {
                return Err(TableError::Room);
            }
            // SAFETY: by the caller's promise.
            let region = unsafe { Region::borrowed(memory, needed) }?;
            // SAFETY: `needed` of the caller's bytes, which nobody else looks at before the table is made.
            unsafe { memory.as_ptr().write_bytes(0, needed) };
            Ok(region)
        })
    }

    /// The table that is in the caller's memory, which another process may have made.
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
        // SAFETY: the header is within `length` and aligned; only tables touch it, by the caller's promise.
        let header: &Header = unsafe { memory.cast().as_ref() };
        let needed = usize::try_from(header.fixed()?.bytes).map_err(|_| TableError::Truncated)?;
        if length < needed {
            return Err(TableError::Truncated);
        }
        // SAFETY: by the caller's promise.
        Table::over(unsafe { Region::borrowed(memory, needed) }?, false)?.going_on()
    }

    /// Writes down when it is, for the next boot, and what is in memory to the disk. Nothing is lost without it as long as
    /// the machine runs, and after a crash of the machine what the disk has is used.
    pub fn sync(&self) -> Result<(), TableError> {
        if self.fixed.file != 0 {
            self.note_time();
        }
        self.memory.sync()
    }

    pub(super) fn make(
        options: &Options,
        policies: &[Policy],
        memory: impl FnOnce(usize) -> Result<Region, TableError>,
    ) -> Result<Table, TableError> {
        let mut fixed = fixed(options, policies, false)?;
        fixed.seed = seed(options)?;
        let memory = memory(usize::try_from(fixed.bytes).map_err(|_| TableError::Capacity)?)?;
        if options.huge_pages {
            // Before the first touch: pages that are there stay small.
            memory.advise_huge(0);
        }
        begin(&memory, &fixed, policies)?;
        if fixed.side == 0 {
            // All of it now, so that it does not grow later and no request waits for a page.
            memory.populate();
        }
        Table::over(memory, false)
    }

    /// The table in `memory`, whose header has been inspected or written.
    pub(super) fn over(memory: Region, huge_pages: bool) -> Result<Table, TableError> {
        if !Slot::supported() {
            return Err(TableError::Unsupported);
        }
        // SAFETY: every region here has at least the header's page, which its maker has checked, and is aligned to 64 bytes.
        let header: &Header = unsafe { memory.base().cast().as_ref() };
        let fixed = header.fixed()?;
        if memory.len() as u64 != fixed.bytes {
            return Err(TableError::Truncated);
        }
        if huge_pages {
            memory.advise_huge(0);
        }
        let homes = Homes::new(fixed.buckets);
        let mut table = Table {
            // SAFETY: `Header::inspect` has checked that so many are in so many bytes.
            buckets: unsafe { Buckets::of(&memory, &homes) },
            memory,
            fixed,
            homes,
            on_full: on_full(fixed.on_full).ok_or(TableError::Corrupt)?,
            missing: missing(fixed.missing).ok_or(TableError::Corrupt)?,
            clock: clock(fixed.clock).ok_or(TableError::Corrupt)?,
            offset: 0,
            secrets: RapidSecrets::seed(fixed.seed),
            versions: Versions::new(),
            locals: Locals::new()?,
            mine: Mine::new()?,
        };
        // Now, and not when the first request comes: that does not allocate.
        for current in &table.header().current {
            let stamp = current.load(Ordering::Acquire);
            // What is damaged is told when it is used.
            if let Err(TableError::NoMemory) = table.versions.prepare(table.records(), stamp) {
                return Err(TableError::NoMemory);
            }
        }
        table.offset = table.header().offset.load(Ordering::Relaxed);
        Ok(table)
    }

    /// The same, once its time goes on.
    pub(super) fn going_on(mut self) -> Result<Table, TableError> {
        if self.fixed.file != 0 {
            self.continue_time()?;
        }
        Ok(self)
    }

    /// Lets the table's time go on from the last boot: by as much as the wall clock has since it was noted.
    fn continue_time(&mut self) -> Result<(), TableError> {
        let boot = boot_id().ok_or(TableError::Boot)?;
        let header = self.header();
        // Acquire: the offset was written before the boot's name.
        let same = || header.boot.each_ref().map(|word| word.load(Ordering::Acquire)) == boot;
        if !same() {
            // Whoever comes first after a boot does it for all. The kernel gives the lock back if it is killed.
            self.memory.exclusively(|| {
                if same() {
                    return;
                }
                // A wall clock that went back meanwhile stands still here: nobody is forgiven for it.
                let wall = Wall.now();
                let passed = wall.saturating_sub(header.wall_time.load(Ordering::Relaxed));
                let now = header.table_time.load(Ordering::Relaxed).saturating_add(passed);
                let offset = match self.clock {
                    // Unix time goes on by itself.
                    Source::Wall => 0,
                    clock => now.wrapping_sub(clock.now()),
                };
                header.offset.store(offset, Ordering::Relaxed);
                name_boot(header, boot);
            })?;
        }
        self.offset = self.header().offset.load(Ordering::Relaxed);
        self.note_time();
        Ok(())
    }

    /// Takes down the pair of times. The table's is read first and the wall clock's written first: whoever is stopped or
    /// killed in between makes it look as if less time had passed, not more.
    fn note_time(&self) {
        let header = self.header();
        let (now, wall) = (self.now(), Wall.now());
        header.wall_time.store(wall, Ordering::Release);
        header.table_time.store(now, Ordering::Release);
    }

    /// The table's time in nanoseconds: what the calls without a time read. It counts UTC since [`TIME_ZERO`](crate::clock::TIME_ZERO),
    /// as the maker's system clock said when the table was made; with [`Source::Wall`] it is Unix time.
    #[inline(always)]
    pub fn now(&self) -> u64 {
        self.clock.now().wrapping_add(self.offset)
    }

    pub(super) fn sizes(&self) -> Sizes {
        Sizes { buckets: self.fixed.buckets, bytes: self.fixed.bytes }
    }

    #[inline(always)]
    pub(super) fn header(&self) -> &Header {
        // SAFETY: `over` has seen that the memory is as long as its header says and that the header is one; regions are aligned to
        // 64 bytes; what others may change is atomic.
        unsafe { self.memory.base().cast().as_ref() }
    }

    #[inline(always)]
    pub(super) fn records(&self) -> &[Record; VERSIONS] {
        // SAFETY: as `header`; the table is longer than what is before the buckets.
        unsafe { self.memory.base().byte_add(VERSIONS_AT).cast().as_ref() }
    }

    #[inline(always)]
    pub(super) fn shards(&self) -> &[Shard; SHARDS] {
        // SAFETY: as `records`.
        unsafe { self.memory.base().byte_add(COUNTERS_AT).cast().as_ref() }
    }

    /// The calling thread's.
    #[inline(always)]
    pub(super) fn shard(&self) -> &Shard {
        super::counts::shard(self.shards())
    }

    #[inline(always)]
    pub(super) fn lines(&self) -> &[Line; LINES] {
        // SAFETY: as `records`.
        unsafe { self.memory.base().byte_add(LINES_AT).cast().as_ref() }
    }

    #[inline(always)]
    pub(super) fn unowned_decisions(&self) -> &[Decisions; PARTS] {
        // SAFETY: as `records`.
        unsafe { self.memory.base().byte_add(DECISIONS_AT).cast().as_ref() }
    }

    #[inline(always)]
    pub(super) fn exempt_places(&self) -> &[crate::sync::AtomicU64; EXEMPT] {
        // SAFETY: as `records`.
        unsafe { self.memory.base().byte_add(EXEMPT_AT).cast().as_ref() }
    }

    /// # Safety
    /// `n` is below the number of buckets.
    #[inline(always)]
    pub(super) unsafe fn bucket(&self, n: u64) -> &Bucket {
        // SAFETY: `Buckets::of` was promised that the memory, which stays where it is, holds all of them; n is one.
        unsafe { self.buckets.first.add(n as usize).as_ref() }
    }

    /// The number of one of this table's slots.
    #[inline(always)]
    pub(super) fn number_of(&self, slot: &Slot) -> u64 {
        let from = self.buckets.first.as_ptr() as usize;
        ((core::ptr::from_ref(slot) as usize).wrapping_sub(from) / core::mem::size_of::<Slot>()) as u64
    }

    /// The number of one of this table's buckets.
    #[inline(always)]
    pub(super) fn number_of_bucket(&self, bucket: &Bucket) -> u64 {
        let from = self.buckets.first.as_ptr() as usize;
        ((core::ptr::from_ref(bucket) as usize).wrapping_sub(from) / core::mem::size_of::<Bucket>()) as u64
    }

    /// A hash's first two buckets.
    #[inline(always)]
    pub(super) fn main_buckets(&self, hash: u64) -> (&Bucket, &Bucket) {
        let (first, second) = self.homes.in_parts(hash);
        // SAFETY: as above; each is one of its part.
        unsafe { (self.buckets.first.add(first as usize).as_ref(), self.buckets.second.add(second as usize).as_ref()) }
    }
}

/// Where the first two parts of a table's buckets begin in its memory: to count from there is four instructions less for each
/// request than from the memory's beginning.
#[derive(Debug)]
pub(super) struct Buckets {
    first: NonNull<Bucket>,
    second: NonNull<Bucket>,
}

// SAFETY: buckets are atomics, which threads share.
unsafe impl Send for Buckets {}
// SAFETY: as above.
unsafe impl Sync for Buckets {}

impl Buckets {
    /// # Safety
    /// `memory` has all buckets of `homes` from [`BUCKETS_AT`] on.
    unsafe fn of(memory: &Region, homes: &Homes) -> Buckets {
        // SAFETY: by the caller's promise. Aligned, since the region and BUCKETS_AT are to 64 bytes.
        let first: NonNull<Bucket> = unsafe { memory.base().byte_add(BUCKETS_AT).cast() };
        // SAFETY: as above; the second part is in the memory too.
        Buckets { first, second: unsafe { first.add(homes.second_part() as usize) } }
    }
}

/// What is decided when a table is made, but for its seed.
pub(super) fn fixed(options: &Options, policies: &[Policy], file: bool) -> Result<Fixed, TableError> {
    if policies.is_empty() || policies.len() > POLICIES_MOST {
        return Err(TableError::Policies);
    }
    let side = side_words(policies, options.clock)?;
    let sizes = Sizes::new(options.capacity, side)?;
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
    })
}

/// Side words of a table with these policies: a policy whose state is more than a word has a table for itself.
fn side_words(policies: &[Policy], clock: Source) -> Result<u64, TableError> {
    let mut side = 0;
    for policy in policies {
        crate::limiter::State::validate_on(policy, clock)?;
        if let Some(wide) = Wide::new(policy)? {
            if policies.len() != 1 {
                return Err(TableError::Mixed);
            }
            side = wide.side_words();
        }
    }
    Ok(side)
}

/// Writes a table's beginning into zeroed memory that nobody else sees yet.
pub(super) fn begin(memory: &Region, fixed: &Fixed, policies: &[Policy]) -> Result<(), TableError> {
    let at = memory.base().cast::<Header>();
    // SAFETY: the region is longer than the buckets' offset and aligned to 64 bytes; zeroes are a Header.
    let header = unsafe { at.as_ref() };
    header.begin(fixed);
    let clock = clock(fixed.clock).ok_or(TableError::Corrupt)?;
    header.offset.store(Utc::new(clock).offset(), Ordering::Relaxed);
    if fixed.file != 0 {
        name_boot(header, boot_id().ok_or(TableError::Boot)?);
    }
    // SAFETY: as the header, further on.
    let records = unsafe { memory.base().byte_add(VERSIONS_AT).cast::<[Record; VERSIONS]>().as_ref() };
    for policy in policies {
        versions::add(header, records, policy)?;
    }
    header.magic.store(MAGIC, Ordering::Release);
    Ok(())
}

/// The second word last: two words are the boot's only once both are.
fn name_boot(header: &Header, boot: [u64; 2]) {
    for (word, boot) in header.boot.iter().zip(boot) {
        // Release: with the offset.
        word.store(boot, Ordering::Release);
    }
}

pub(super) fn seed(options: &Options) -> Result<u64, TableError> {
    match options.seed {
        Some(seed) => Ok(seed),
        None => random_u64(),
    }
}

fn on_full(number: u64) -> Option<OnFull> {
    [OnFull::EvictNearest, OnFull::Inherit, OnFull::Allow, OnFull::Deny].into_iter().find(|&o| o as u64 == number)
}

fn missing(number: u64) -> Option<Missing> {
    [Missing::Deny, Missing::Allow, Missing::Report].into_iter().find(|&m| m as u64 == number)
}

fn clock(number: u64) -> Option<Source> {
    Source::ALL.into_iter().find(|&clock| clock as u64 == number)
}
