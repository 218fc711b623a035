//! The memory of an in-flight table.
//!
//! ```text
//!     0  header    the table's fixed parameters, and the boot and the PID namespace of its owners
//!   128  records   1,024 owners, a word each
//! 8,320  slots     a word each
//! ```
//!
//! No model notices a weaker ordering in this file, because loom's tables are in no memory that
//! processes share.

use super::protocol::LINE;
use super::word::{OwnerRecord, OWNERS_MOST};
use crate::sync::{AtomicU64, Ordering};
use crate::table::memory::error::TableError;
use crate::table::memory::layout::word_of;
use crate::table::memory::mix::fold;
use crate::table::memory::region::{namespace, Agreement, Boot, Noted, Others, Region};
use core::mem::size_of;

const MAGIC: u64 = u64::from_ne_bytes(*b"tollbarf");
/// The version of the layout. A change of the layout, of the hash, or of the meaning of a word
/// raises it.
const VERSION: u64 = 2;
const LAYOUT: u64 = fold(&[
    VERSION,
    size_of::<InFlightHead>() as u64,
    OWNERS_MOST as u64,
    u64::from_ne_bytes([1, 2, 3, 4, 5, 6, 7, 8]),
]);

/// The smallest and the largest window, in slots.
const WINDOW_LEAST: u64 = 32;
const WINDOW_MOST: u64 = 4 * OWNERS_MOST as u64;
const SLOTS_MOST: u64 = u32::MAX as u64 / 2;

/// The header and the records, which stand before the slots.
#[repr(C, align(64))]
pub(super) struct InFlightHead {
    /// [`MAGIC`], written last.
    magic: AtomicU64,
    layout: AtomicU64,
    /// [`InFlightSizes`] and the seed.
    fixed: [AtomicU64; 4],
    /// [`fold`] of all above.
    check: AtomicU64,
    spare: [AtomicU64; 1],

    /// The boot in which the owners run, in a file ([`Boot`]).
    boot: [AtomicU64; 2],
    inode: AtomicU64,
    /// The PID namespace of all owners. 0: any, for a table in one process's own memory, of which
    /// forked children have copies.
    pub(super) namespace: AtomicU64,
    /// Counts the owners that have joined.
    pub(super) joined: AtomicU64,
    spares: [AtomicU64; 3],

    pub(super) records: [AtomicU64; OWNERS_MOST],
}

/// The sizes of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InFlightSizes {
    pub(super) bytes: u64,
    pub(super) slots: u64,
    /// Slots in the window of a key.
    pub(super) window: u64,
}

impl InFlightSizes {
    /// The sizes of a table for `capacity` keys in flight, of which each may be in `processes`
    /// processes at one time.
    pub(super) fn of(capacity: u64, processes: u32) -> Result<InFlightSizes, TableError> {
        let window = window_for(processes);
        // If no more than `capacity` keys are in flight, at most half of the slots are taken. Then
        // it is unlikely that all slots of a window are.
        let slots = capacity
            .checked_mul(2)
            .filter(|slots| *slots != 0)
            .and_then(|slots| slots.checked_add(window));
        InFlightSizes::with(
            slots.ok_or(TableError::Capacity)?.next_multiple_of(LINE as u64),
            window,
        )
    }

    /// The sizes of a table with as many slots as fit into `length` bytes.
    pub(super) fn within(length: u64, processes: u32) -> Result<InFlightSizes, TableError> {
        let slots = length.saturating_sub(size_of::<InFlightHead>() as u64) / 8;
        let window = window_for(processes);
        match slots < window {
            true => Err(TableError::Room),
            false => InFlightSizes::with(slots.min(SLOTS_MOST) / LINE as u64 * LINE as u64, window),
        }
    }

    fn with(slots: u64, window: u64) -> Result<InFlightSizes, TableError> {
        if slots > SLOTS_MOST {
            return Err(TableError::Capacity);
        }
        Ok(InFlightSizes { bytes: size_of::<InFlightHead>() as u64 + slots * 8, slots, window })
    }
}

/// The number of slots in a window. Each process that has permits of a key takes a slot of the
/// window, and twice as many do while a new set of processes replaces an old one. The factor 4
/// leaves as many slots for other keys.
fn window_for(processes: u32) -> u64 {
    u64::from(processes).saturating_mul(4).clamp(WINDOW_LEAST, WINDOW_MOST).next_power_of_two()
}

impl InFlightHead {
    /// The head of a region that has been inspected, or that is long enough and zeroed.
    ///
    /// # Safety
    /// The region has the head's size.
    pub(super) unsafe fn of(region: &Region) -> &InFlightHead {
        // SAFETY: by the caller's promise; regions are aligned to 64 bytes; all words are atomic
        // and may hold anything.
        unsafe { region.base().cast().as_ref() }
    }

    /// Checks that `bytes` begin with the head of a table. Returns its sizes and its seed.
    pub(super) fn inspect(bytes: &[u8]) -> Result<(InFlightSizes, u64), TableError> {
        let mut words = [0; 7];
        for (n, word) in words.iter_mut().enumerate() {
            *word = word_of(bytes, n).ok_or(if n == 0 {
                TableError::NotATable
            } else {
                TableError::Truncated
            })?;
        }
        InFlightHead::check(words)
    }

    /// [`InFlightHead::inspect`] of the memory that this head is in.
    pub(super) fn sizes(&self) -> Result<(InFlightSizes, u64), TableError> {
        // Acquire: the maker wrote all other words of the head before the magic number.
        let magic = self.magic.load(Ordering::Acquire);
        let [bytes, slots, window, seed] =
            self.fixed.each_ref().map(|word| word.load(Ordering::Relaxed));
        let (layout, check) =
            (self.layout.load(Ordering::Relaxed), self.check.load(Ordering::Relaxed));
        InFlightHead::check([magic, layout, bytes, slots, window, seed, check])
    }

    fn check(words: [u64; 7]) -> Result<(InFlightSizes, u64), TableError> {
        let [magic, layout, bytes, slots, window, seed, check] = words;
        if magic != MAGIC {
            return Err(TableError::NotATable);
        }
        if layout != LAYOUT {
            return Err(TableError::Version);
        }
        let sizes = InFlightSizes { bytes, slots, window };
        // The checksum detects damaged words. The other checks accept only sizes that
        // `InFlightSizes::with` makes, so all later offsets are inside the table.
        let sound = window.is_power_of_two()
            && (WINDOW_LEAST..=WINDOW_MOST).contains(&window)
            && slots >= window
            && slots % LINE as u64 == 0
            && InFlightSizes::with(slots, window) == Ok(sizes);
        if fold(&[magic, layout, bytes, slots, window, seed]) != check || !sound {
            return Err(TableError::Corrupt);
        }
        Ok((sizes, seed))
    }

    /// Writes the head of a new table into zeroed memory that nobody else sees yet. `alone`: no
    /// other process can use the memory.
    pub(super) fn begin(
        &self,
        region: &Region,
        sizes: &InFlightSizes,
        seed: u64,
        alone: bool,
    ) -> Result<(), TableError> {
        let fixed = [sizes.bytes, sizes.slots, sizes.window, seed];
        for (to, word) in self.fixed.iter().zip(fixed) {
            to.store(word, Ordering::Relaxed);
        }
        self.check.store(
            fold(&[MAGIC, LAYOUT, sizes.bytes, sizes.slots, sizes.window, seed]),
            Ordering::Relaxed,
        );
        self.layout.store(LAYOUT, Ordering::Relaxed);
        if !alone && NAMES_ITS_BOOTS {
            self.note(&ThisProcess::now(region).if_known()?);
        }
        self.magic.store(MAGIC, Ordering::Release);
        Ok(())
    }

    /// Whether this process is in the owners' PID namespace, and so can ask the system whether they
    /// have ended.
    pub(super) fn is_among_owners(&self) -> Result<(), TableError> {
        match self.namespace.load(Ordering::Relaxed) {
            0 => Ok(()),
            theirs if theirs == namespace() => Ok(()),
            _ => Err(TableError::Namespace),
        }
    }

    /// Decides whether this process may use the table in a file, before any other process opens the
    /// file.
    ///
    /// - If no other view has the file mapped, all owners have ended, whatever their names were. If
    ///   these differ from this process's, the call frees all slots and records.
    /// - Otherwise the owners may live. This process may join them only if it knows that it is in
    ///   their boot and their PID namespace.
    /// - If the system does not say whether there are other views, the call frees nothing while a
    ///   record is live.
    pub(super) fn enter(
        &self,
        region: &Region,
        slots: &[AtomicU64],
        others: &Others<'_>,
    ) -> Result<(), TableError> {
        if !NAMES_ITS_BOOTS {
            return Ok(());
        }
        let here = ThisProcess::now(region);
        let boot = self.boot().load().agrees(&here.boot);
        let same_namespace =
            here.namespace != 0 && here.namespace == self.namespace.load(Ordering::Relaxed);
        if boot == Agreement::Same && same_namespace {
            return Ok(());
        }
        let exist = others.exist();
        let unused = match exist {
            Some(exist) => !exist,
            None => boot == Agreement::Other && !self.has_live_record(),
        };
        if unused {
            let here = here.if_known()?;
            for word in slots.iter().chain(&self.records) {
                word.store(0, Ordering::Relaxed);
            }
            self.note(&here);
            return Ok(());
        }
        match boot {
            Agreement::Unknown => Err(TableError::Boot),
            _ if !same_namespace => Err(TableError::Namespace),
            Agreement::Other if exist.is_some() => Err(TableError::OtherBoot),
            // Each owner's number and start tell whether it has ended.
            _ => Ok(()),
        }
    }

    fn has_live_record(&self) -> bool {
        self.records.iter().any(|record| OwnerRecord(record.load(Ordering::SeqCst)).is_live())
    }

    fn boot(&self) -> Noted<'_> {
        Noted { id: &self.boot, inode: &self.inode }
    }

    fn note(&self, here: &ThisProcess) {
        self.namespace.store(here.namespace, Ordering::Relaxed);
        self.boot().store(here.boot);
    }
}

/// Whether the system has ids of boots and PID namespaces at all. Elsewhere owners are known by
/// their numbers alone.
const NAMES_ITS_BOOTS: bool = cfg!(target_os = "linux");

/// What this process knows of itself. 0: unknown.
struct ThisProcess {
    boot: Boot,
    namespace: u64,
    in_file: bool,
}

impl ThisProcess {
    fn now(region: &Region) -> ThisProcess {
        ThisProcess { boot: region.boot(), namespace: namespace(), in_file: region.is_file() }
    }

    /// This, if others can tell by it whether they may use the table.
    fn if_known(self) -> Result<ThisProcess, TableError> {
        if self.in_file && !self.boot.is_known() {
            return Err(TableError::Boot);
        }
        match self.namespace {
            0 => Err(TableError::Namespace),
            _ => Ok(self),
        }
    }
}

const _: () = assert!(size_of::<InFlightHead>() == 128 + 8 * OWNERS_MOST);
