//! The memory of loom's models: the parts of a table by which it knows its policies.

use super::layout::{Header, Record, EXEMPT, VERSIONS};
use super::returns::ReturnTurn;
use super::slot::{Journal, Slot, SlotPair};
use crate::sync::{AtomicU64, Ordering, TwoWords};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::array::from_fn;

pub(crate) struct Memory {
    header: Header,
    records: [Record; VERSIONS],
    exempt: [AtomicU64; EXEMPT],
    overrides: Vec<Slot>,
    pub(crate) fixed: Fixed,
    pub(crate) thread_lines: ThreadLines,
}

/// A table of one-word policies without room for others.
#[derive(Debug)]
pub(crate) struct Fixed {
    pub(crate) overrides: u64,
}

/// A map in which no thread has a place of its own.
#[derive(Debug)]
pub(crate) struct ThreadLines;

impl Memory {
    /// Memory without a policy, with two places for overrides.
    pub(crate) fn new() -> Memory {
        let journal = Arc::new(Journal::new(false));
        Memory {
            header: Header::new(),
            records: from_fn(|_| Record::new()),
            exempt: from_fn(|_| AtomicU64::new(0)),
            overrides: (0..2).map(|n| Slot::new(n, SlotPair::EMPTY, &journal)).collect(),
            fixed: Fixed { overrides: 2 },
            thread_lines: ThreadLines,
        }
    }

    pub(crate) fn header(&self) -> &Header {
        &self.header
    }

    pub(crate) fn records(&self) -> &[Record; VERSIONS] {
        &self.records
    }

    pub(crate) fn exempt_hashes(&self) -> &[AtomicU64; EXEMPT] {
        &self.exempt
    }

    pub(crate) fn overrides(&self) -> &[Slot] {
        &self.overrides
    }

    /// A table without room has no cells.
    pub(crate) fn cells(&self, _slot: &Slot) -> &[TwoWords] {
        &[]
    }

    /// No model of policies gives permits back.
    pub(crate) fn turn(&self, _tag: u64) -> Option<ReturnTurn<'_>> {
        None
    }

    pub(crate) fn current_stamp(&self, policy: u32) -> u64 {
        // Acquire: as in a table.
        self.header.current.get(policy as usize).map_or(0, |stamp| stamp.load(Ordering::Acquire))
    }
}

impl core::fmt::Debug for Memory {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str("Memory")
    }
}

impl Fixed {
    pub(crate) fn has_room(&self) -> bool {
        false
    }

    pub(crate) fn is_multi_word(&self) -> bool {
        false
    }
}

impl ThreadLines {
    pub(crate) fn number(&self, _policy: u32) -> Option<usize> {
        None
    }
}
