//! The layout of a node's memory.

use super::horizon::Horizon;
use super::line::Line;
use super::live::Live;
use super::ring::{Ends, Place};
use super::terms::{Terms, TermsError};
use core::mem::size_of;
use core::ptr::NonNull;
use tollbar::internal::sync::{AtomicU32, AtomicU64, Ordering};

/// The first eight bytes of every node, and the version of the layout.
const MAGIC: u64 = u64::from_ne_bytes(*b"tollnode");
const VERSION: u64 = 8;
/// Kinds of counts, and shards of them.
const COUNTS: usize = 12;
const SHARDS: usize = 16;
/// The longest name of a limit.
const NAME_MOST: usize = 64;

/// The node's header. `magic`, `version` and `fixed` never change after the node is made. All other
/// words are atomic. Times are nanoseconds of the node's clock.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Header {
    magic: u64,
    version: u64,
    pub(super) fixed: Fixed,
    /// [`Circuit`](super::Circuit).
    pub(super) circuit: AtomicU64,
    /// When the client that asks the store last took its turn.
    pub(super) beat: AtomicU64,
    /// Since when the client waits for the store and takes no turns; 0: it takes turns.
    pub(super) waits_since: AtomicU64,
    /// The client that asks the store; 0: none.
    pub(super) owner: AtomicU64,
    /// The terms in force, as the store last said.
    pub(super) live: Live,
    /// The name of the store's data in the last answer; 0: there has been none.
    pub(super) epoch: AtomicU64,
    /// The latest time of these data in an answer, in microseconds.
    pub(super) heard: AtomicU64,
    /// The estimate of the store's time.
    pub(super) horizon: Horizon,
    /// [`Stats::owed`](super::Stats::owed).
    pub(super) owed: AtomicU64,
    /// The moving average of round trips, in nanoseconds; 0: no answer has come.
    pub(super) round_trip: AtomicU64,
    /// The number of the last claim of a line.
    pub(super) claims: AtomicU64,
    /// The client sleeps on this word until a caller has a message for it that cannot wait.
    pub(super) bell: AtomicU32,
    /// 1: the client sleeps, or is about to.
    pub(super) client_sleeps: AtomicU32,
    /// Callers that wait sleep on this word. The client counts its turns with answers in it.
    pub(super) answers: AtomicU32,
    /// How many callers sleep, or are about to.
    pub(super) sleepers: AtomicU32,
    counts: [Shard; SHARDS],
}

#[repr(C, align(64))]
#[derive(Debug)]
struct Shard([AtomicU64; COUNTS]);

/// The part of the header that never changes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct Fixed {
    pub(super) bytes: u64,
    pub(super) lines: u64,
    pub(super) places: u64,
    pub(super) seed: u64,
    /// The machine's own configuration.
    pub(super) terms: Terms,
    pub(super) name_length: u64,
    pub(super) name: [u8; NAME_MOST],
}

/// The sizes from which all offsets follow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) bytes: u64,
    pub(super) line_count: usize,
    pub(super) place_count: usize,
}

impl Layout {
    pub(super) const RING_AT: usize = 4096;
    const PLACES_AT: usize = Layout::RING_AT + size_of::<Ends>();

    /// The layout for `capacity` keys, with a reserve table of `table_bytes`.
    pub(super) fn new(capacity: u64, table_bytes: u64) -> Result<Layout, TermsError> {
        let lines = capacity.max(64).checked_next_power_of_two().ok_or(TermsError::Capacity)?;
        let places = (lines / 4).clamp(64, 8192);
        let layout = Layout { bytes: 0, line_count: lines as usize, place_count: places as usize };
        let bytes =
            (layout.table_at() as u64).checked_add(table_bytes).ok_or(TermsError::Capacity)?;
        Ok(Layout { bytes, ..layout })
    }

    /// The layout of an existing node; `None` if its sizes contradict each other.
    pub(super) fn of(fixed: &Fixed) -> Option<Layout> {
        let within = |n: u64, most: u64| {
            if n.is_power_of_two() && n <= most {
                usize::try_from(n).ok()
            } else {
                None
            }
        };
        let layout = Layout {
            bytes: fixed.bytes,
            line_count: within(fixed.lines, 1 << 24)?,
            place_count: within(fixed.places, 8192)?,
        };
        if (layout.table_at() as u64) < layout.bytes {
            Some(layout)
        } else {
            None
        }
    }

    pub(super) fn ring(&self, base: NonNull<u8>) -> (NonNull<Ends>, NonNull<Place>) {
        // SAFETY: `base` is a node's memory of `self.bytes` bytes, and `new` and `of` make that
        // more than `table_at`, the largest offset.
        unsafe { (base.byte_add(Layout::RING_AT).cast(), base.byte_add(Layout::PLACES_AT).cast()) }
    }

    #[inline(always)]
    pub(super) fn lines(&self, base: NonNull<u8>) -> NonNull<Line> {
        // SAFETY: as above.
        unsafe { base.byte_add(self.lines_at()).cast() }
    }

    pub(super) fn table(&self, base: NonNull<u8>) -> NonNull<u8> {
        // SAFETY: as above.
        unsafe { base.byte_add(self.table_at()) }
    }

    pub(super) fn table_bytes(&self) -> usize {
        self.bytes as usize - self.table_at()
    }

    fn lines_at(&self) -> usize {
        Layout::PLACES_AT + self.place_count * size_of::<Place>()
    }

    fn table_at(&self) -> usize {
        self.lines_at() + self.line_count * size_of::<Line>()
    }
}

/// Whether a limit may have this name: 1 to 64 visible ASCII characters without braces. A cluster
/// places a key by the part in braces, and the store's keys have the name in braces.
pub(crate) fn is_name(name: &str) -> bool {
    (1..=NAME_MOST).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'{' | b'}'))
}

impl Fixed {
    /// `None` if the name is empty, longer than 64 bytes, or has a brace or a byte that is not
    /// visible ASCII.
    pub(super) fn new(name: &str, terms: &Terms, layout: &Layout, seed: u64) -> Option<Fixed> {
        let mut bytes = [0; NAME_MOST];
        if !is_name(name) {
            return None;
        }
        bytes.iter_mut().zip(name.bytes()).for_each(|(to, byte)| *to = byte);
        Some(Fixed {
            bytes: layout.bytes,
            lines: layout.line_count as u64,
            places: layout.place_count as u64,
            seed,
            terms: *terms,
            name_length: name.len() as u64,
            name: bytes,
        })
    }
}

impl Header {
    /// For how long the client has waited for the store, in nanoseconds.
    pub(super) fn waited(&self, now: u64) -> u64 {
        // Relaxed, as all accesses of this word: it publishes no other.
        match self.waits_since.load(Ordering::Relaxed) {
            0 => 0,
            since => now.saturating_sub(since),
        }
    }

    /// Writes the header of a new node.
    pub(super) fn begin(&mut self, fixed: &Fixed) {
        self.fixed = *fixed;
        self.live.store(&fixed.terms);
        self.version = VERSION;
        self.magic = MAGIC;
    }

    /// The fixed part, if this is the header of a node of this version, and its terms are possible.
    pub(super) fn inspect(&self) -> Option<Fixed> {
        match self.magic == MAGIC
            && self.version == VERSION
            && self.fixed.name_length <= NAME_MOST as u64
            && self.fixed.terms.may_be_made()
            && self.live.load().is_some_and(|terms| terms.may_be_made())
        {
            true => Some(self.fixed),
            false => None,
        }
    }

    // Relaxed: no decision depends on counts.
    pub(super) fn add(&self, what: usize, n: u64) {
        let here = 0u8;
        // The address of the thread's stack picks the shard, as for the table's counters.
        let page = (core::ptr::from_ref(&here) as u64) >> 14;
        let shard = self.counts.get((page.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60) as usize);
        if let Some(count) = shard.and_then(|shard| shard.0.get(what)) {
            count.fetch_add(n, Ordering::Relaxed);
        }
    }

    pub(super) fn sum(&self, what: usize) -> u64 {
        let counts = self.counts.iter().filter_map(|shard| shard.0.get(what));
        counts.fold(0, |sum, count| sum.wrapping_add(count.load(Ordering::Relaxed)))
    }
}

const _: () = assert!(size_of::<Header>() <= Layout::RING_AT);
const _: () = assert!(size_of::<Place>() == 128 && size_of::<Line>() == 64);
