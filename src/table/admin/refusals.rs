//! The keys that a table refuses most.

use crate::table::decide::Table;
use crate::table::memory::refusals::{fingerprint, line_of, RefusedKey};
use crate::table::policies::compiled::salt;
use crate::table::policies::PolicyId;

pub(crate) use crate::table::memory::refusals::REFUSED_MOST;
pub use crate::table::memory::refusals::TEXT_MOST;

/// A key that a table has refused, and about how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The policy under which the table refused the key.
    pub policy: PolicyId,
    /// About the number of refusals in the last two minutes.
    pub count: u64,
    /// Whether the key is longer than [`Refused::key`].
    pub is_cut: bool,
    bytes: [u8; TEXT_MOST],
    length: usize,
}

impl Refused {
    /// No key.
    pub const NONE: Refused = Refused {
        policy: PolicyId::FIRST,
        count: 0,
        is_cut: false,
        bytes: [0; TEXT_MOST],
        length: 0,
    };

    /// The key's first [`TEXT_MOST`] bytes.
    pub fn key(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

impl Table {
    /// Sets whether requests of all processes record the keys that they refuse, for
    /// [`Table::top_refused`]. No table does so at first: the first [`TEXT_MOST`] bytes of refused
    /// keys then are in the table's memory, which holds only hashes otherwise; a check takes the
    /// path of tables with exempt keys, and a refusal also hashes the key again and searches a
    /// cache line; and threads take no credit of hot keys.
    pub fn record_refusals(&self, on: bool) {
        self.policies.memory.header().special.record_refusals(on);
    }

    /// Whether requests record the keys that they refuse.
    pub fn records_refusals(&self) -> bool {
        self.policies.memory.header().special.read().records_refusals()
    }

    /// Fills `top` with the keys that requests were refused most, the most refused first, at the
    /// table's time. Returns their number, at most 224.
    ///
    /// A count is that of the last minute or two: it is halved each 68.7 s. Counts are not exact.
    /// Of the first twenty of a million keys whose frequencies follow Zipf's law at least nineteen
    /// are found (`table_refusals` in docs/internals/verification.md). A key that another call is
    /// just recording is left out. So is a key whose bytes do not have its hash, as in damaged
    /// memory.
    pub fn top_refused(&self, top: &mut [Refused]) -> usize {
        self.top_refused_at(self.now(), top)
    }

    /// [`Table::top_refused`] at the caller's time.
    pub fn top_refused_at(&self, now: u64, top: &mut [Refused]) -> usize {
        let mut length = 0;
        for refused in
            self.policies.memory.refusals().seen(now).filter_map(|seen| self.refused(&seen))
        {
            // An insertion sort of at most `REFUSED_MOST` keys into the caller's array.
            let held = top.get(..length).unwrap_or_default();
            let at = held.iter().position(|held| held.count < refused.count).unwrap_or(length);
            if at >= top.len() {
                continue;
            }
            length = (length + 1).min(top.len());
            // Each place gets the key that was before it. No `rotate_right`: a compiler for size
            // keeps its panic.
            let mut carried = refused;
            let rest = top.get_mut(at..length).unwrap_or_default();
            rest.iter_mut().for_each(|place| core::mem::swap(place, &mut carried));
        }
        length
    }

    /// The key that the sketch has seen, if its text is the key's.
    fn refused(&self, seen: &RefusedKey) -> Option<Refused> {
        let text = seen.text?;
        let refused = Refused {
            policy: PolicyId::new(text.policy),
            count: u64::from(seen.count),
            is_cut: text.is_cut,
            bytes: text.bytes,
            length: text.length,
        };
        let hash = self.hash_out_of_line(refused.key()) ^ salt(text.policy);
        let is_its =
            text.is_cut || (line_of(hash), fingerprint(hash)) == (seen.line, seen.fingerprint);
        (is_its && text.length != 0).then_some(refused)
    }
}

const _: () = assert!(REFUSED_MOST == 224);
