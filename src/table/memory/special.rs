//! Counts of the keys that a request must look up before its policy is known: exempt keys, and keys
//! with a policy of their own. And whether requests record their refusals.
//!
//! ```text
//! changes of overrides 32 : overrides 20 : refusals recorded 1 : exempt keys 11
//! ```
//!
//! A count is never too low. A call raises it before it stores a key, and lowers it after it has
//! removed the key. If the process is killed in between, the count stays too high, and requests
//! make a lookup that finds nothing, until [`Table::repair`](crate::table::Table::repair). In most
//! tables the lower half is 0, which a request learns by one load.

use super::error::TableError;
use crate::sync::{AtomicU64, Ordering};

/// Places for overrides that share two cache lines. One in loom's models, so that a key has two
/// places.
pub(crate) const GROUP: usize = if cfg!(loom) { 1 } else { 8 };
/// The keys that may have a policy of their own, at most.
pub(crate) const OVERRIDES_MOST: u64 = 1 << 19;
const EXEMPT_BITS: u32 = 11;
const OVERRIDE_AT: u32 = EXEMPT_BITS + 1;
const COUNT_BITS: u32 = 32;
const EXEMPT_MOST: u64 = (1 << EXEMPT_BITS) - 1;
const RECORDED: u64 = 1 << EXEMPT_BITS;
const OVERRIDES: u64 = (1 << COUNT_BITS) - (1 << OVERRIDE_AT);

/// The most attempts to change a count. Only in damaged memory so many fail. Then the count may
/// stay too high, which costs requests a lookup.
const TRIES: u32 = 10_000;

/// One exempt key.
pub(crate) const EXEMPT_KEY: u64 = 1;
/// One key with a policy of its own.
pub(crate) const OVERRIDE: u64 = 1 << OVERRIDE_AT;
/// One change of an override.
pub(crate) const CHANGE: u64 = 1 << COUNT_BITS;

/// The word in the table's header. Its lower half is 0 if the table has no exempt key and no
/// override, and records no refusals.
#[repr(transparent)]
pub(crate) struct SpecialCounts(AtomicU64);

/// The counts at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Special(u64);

impl Special {
    /// Whether there are none of either, and no refusal is recorded.
    #[inline(always)]
    pub(crate) const fn is_none(self) -> bool {
        self.0 as u32 == 0
    }

    #[inline(always)]
    pub(crate) const fn has_exempt(self) -> bool {
        self.0 & EXEMPT_MOST != 0
    }

    #[inline(always)]
    pub(crate) const fn has_overrides(self) -> bool {
        self.0 & OVERRIDES != 0
    }

    /// Whether requests record their refusals.
    #[inline(always)]
    pub(crate) const fn records_refusals(self) -> bool {
        self.0 & RECORDED != 0
    }

    /// The number of overrides, at most.
    pub(crate) const fn overrides(self) -> u64 {
        (self.0 & OVERRIDES) >> OVERRIDE_AT
    }

    /// The word. If [`Special::is_none`], it equals [`Special::changes`].
    #[inline(always)]
    pub(crate) const fn word(self) -> u64 {
        self.0
    }

    /// The number of changes of overrides, in the upper half of a word. Each change raises it.
    #[inline(always)]
    pub(crate) const fn changes(self) -> u64 {
        self.0 >> COUNT_BITS << COUNT_BITS
    }
}

impl SpecialCounts {
    /// No key of either kind.
    #[cfg(loom)]
    pub(crate) fn new() -> SpecialCounts {
        SpecialCounts(AtomicU64::new(0))
    }

    /// The counts. Acquire: the caller reads the places afterwards. No model notices a weaker
    /// ordering, because loom takes no later load before an earlier one.
    #[inline(always)]
    pub(crate) fn read(&self) -> Special {
        Special(self.0.load(Ordering::Acquire))
    }

    /// Counts one more override and one change, unless there are `most` overrides.
    pub(crate) fn count_override(&self, most: u64) -> Result<(), TableError> {
        self.count(OVERRIDE + CHANGE, |seen| seen.overrides() < most.min(OVERRIDES_MOST))
            .ok_or(TableError::Overrides)
    }

    /// Counts an exempt key.
    pub(crate) fn count_exempt(&self) -> Result<(), TableError> {
        self.count(EXEMPT_KEY, |seen| seen.0 & EXEMPT_MOST != EXEMPT_MOST).ok_or(TableError::Exempt)
    }

    /// Counts a change. The number of overrides stays.
    pub(crate) fn count_change(&self) {
        // Relaxed: as in `count`.
        self.0.fetch_add(CHANGE, Ordering::Relaxed);
    }

    /// Counts one exempt key or one override less. The end of an override is also a change.
    pub(crate) fn count_less(&self, of: u64) {
        // In damaged memory the count may be too low. It must not go below 0.
        let (by, mask) = if of == OVERRIDE {
            (CHANGE - OVERRIDE, OVERRIDES)
        } else {
            (of.wrapping_neg(), EXEMPT_MOST)
        };
        let _ = self.count(by, |seen| seen.0 & mask != 0);
    }

    /// Sets both counts. Only while no other call uses the table.
    pub(crate) fn set(&self, exempt: u64, overrides: u64) {
        let seen = self.read();
        let kept = seen.changes().wrapping_add(CHANGE) | seen.0 & RECORDED;
        self.0.store(
            kept | overrides << OVERRIDE_AT & OVERRIDES | exempt.min(EXEMPT_MOST),
            // Relaxed: no other call reads it meanwhile.
            Ordering::Relaxed,
        );
    }

    /// Sets whether requests record their refusals.
    pub(crate) fn record_refusals(&self, on: bool) {
        // Relaxed: a request that reads an older word records no refusal, or one more.
        match on {
            true => self.0.fetch_or(RECORDED, Ordering::Relaxed),
            false => self.0.fetch_and(!RECORDED, Ordering::Relaxed),
        };
    }

    fn count(&self, by: u64, if_so: impl Fn(Special) -> bool) -> Option<()> {
        // Relaxed: the swap of a place that follows is a Release, so a call that sees the place as
        // it is after the swap sees the count, too.
        let mut seen = self.0.load(Ordering::Relaxed);
        for _ in 0..TRIES {
            if !if_so(Special(seen)) {
                return None;
            }
            match self.0.compare_exchange(
                seen,
                seen.wrapping_add(by),
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Some(()),
                Err(other) => seen = other,
            }
        }
        None
    }
}
