//! Validating the slots of a table, and repairing those that are invalid.
//!
//! Slots carry no checksum: any 16 bytes are a key and a state. A slot is invalid if it names a
//! version of a policy that the table does not have, or if it holds a key that another slot holds,
//! too.

use crate::table::decide::Table;
use crate::table::memory::slot::{Slot, SlotPair, TAG};
use crate::table::policies::local::Scratch;
use crate::table::policies::records;

/// The content of a table's slots. While no other call changes the table, all numbers but `claimed`
/// add up to the number of slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Slots that hold no key and that a new key may take.
    pub vacant: u64,
    /// Slots that hold no key and that no key may take yet, because the debt of the former key
    /// would not be paid.
    pub waiting: u64,
    /// Keys that have expired.
    pub expired: u64,
    /// Keys with a debt.
    pub live: u64,
    /// Slots that name a version of a policy that the table does not have. No key can take such a
    /// slot.
    pub unknown: u64,
    /// Slots whose key is also in another slot. The slot that [`Table::repair`] would keep is not
    /// counted.
    pub duplicate: u64,
    /// Policy records that a process has begun to write. If it was killed, the record stays
    /// unfinished.
    pub claimed: u64,
}

impl Health {
    /// Whether the slots need no repair.
    pub const fn is_sound(&self) -> bool {
        self.unknown == 0 && self.duplicate == 0
    }
}

impl Table {
    /// Reads every slot, and counts them by their content at `now`.
    pub fn validate(&self, now: u64) -> Health {
        let mut health = Health {
            claimed: records::claimed(self.policies.memory.records()),
            ..Health::default()
        };
        let mut scratch = Scratch::new();
        let mut n = 0;
        while let Some((slot, bucket)) = self.slots.get(n) {
            n += 1;
            let pair = slot.pair();
            let expired = self.policies.expires_at_by(pair, &mut scratch) <= now;
            let is_known = self.policies.named(pair.key, &mut scratch).is_some();
            let count = match (pair.is_vacant(), is_known) {
                (true, _) if expired => &mut health.vacant,
                (true, _) => &mut health.waiting,
                (false, false) => &mut health.unknown,
                _ if self.is_duplicate(pair, slot, bucket, &mut scratch) => &mut health.duplicate,
                _ if expired => &mut health.expired,
                _ => &mut health.live,
            };
            *count += 1;
        }
        health
    }

    /// Empties each slot that names an unknown version of a policy. If two slots hold one key, it
    /// keeps the slot that expires last and empties the other. It also frees policy records that a
    /// killed process left unfinished. **Call it only while no other thread or process uses the
    /// table**, because an emptied slot may have held a debt. Returns what [`Table::validate`] saw
    /// before the repair.
    pub fn repair(&self, now: u64) -> Health {
        let health = self.validate(now);
        records::free_claimed(self.policies.memory.records());
        self.policies.repair_special();
        let mut scratch = Scratch::new();
        let mut n = 0;
        while let Some((slot, bucket)) = self.slots.get(n) {
            n += 1;
            let pair = slot.pair();
            if pair.is_vacant() {
                continue;
            }
            // This reads the record itself, because a version is also known if it cannot be
            // compiled for lack of memory.
            if !records::is_known(self.policies.memory.records(), pair.key) {
                // The time at which such a slot expires is unknown.
                let _ = slot.swap(pair, SlotPair { key: 0, state: 0 });
            } else if self.is_duplicate(pair, slot, bucket, &mut scratch) {
                let _ = slot.swap(pair, self.policies.vacant(pair, self.policies.expires_at(pair)));
            }
        }
        health
    }

    /// Whether another slot holds the same key and is the slot to keep: it expires later, or at the
    /// same time and comes first in the key's order.
    fn is_duplicate<'t>(
        &'t self,
        pair: SlotPair,
        slot: &Slot,
        bucket: u64,
        scratch: &mut Scratch<'t>,
    ) -> bool {
        let named = self.policies.named(pair.key, scratch);
        let (Some(version), Some(hash)) = (named, self.slots.hash_in_bucket(pair.key, bucket))
        else {
            return false;
        };
        let (candidates, policy) = (self.slots.candidates(hash), version.number);
        let expires = self.policies.expires_at_by(pair, scratch);
        let mut before = true;
        for other in candidates.slots() {
            if core::ptr::eq(other, slot) {
                before = false;
                continue;
            }
            let seen = other.pair();
            let same = !seen.is_vacant() && (seen.key ^ pair.key) & TAG == 0;
            if same
                && self
                    .policies
                    .named(seen.key, scratch)
                    .is_some_and(|named| named.number == policy)
            {
                let other_expires = self.policies.expires_at_by(seen, scratch);
                if other_expires > expires || other_expires == expires && before {
                    return true;
                }
            }
        }
        false
    }
}
