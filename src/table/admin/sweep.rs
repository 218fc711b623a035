//! Sweeps. A sweep makes the slots of expired keys vacant, and converts keys to the current
//! versions of their policies.

use crate::algorithm::Algorithm;
use crate::table::decide::Table;
use crate::table::memory::slot::{Slot, SlotPair, TAG, TAG_BITS};
use crate::table::policies::conversion::{Scratches, UnderVersion};
use crate::table::policies::local::Scratch;
use crate::table::policies::record::{policy_of, version_of};
use crate::table::policies::{PolicyId, ROUNDS};
use crate::table::slots::candidates::hash_of_tag;
use crate::table::slots::protocol::{disturb, first_to_expire};

/// The result of a sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sweep {
    /// The `from` of the next call. `None` at the end of the table.
    pub next: Option<u64>,
    /// Keys with a debt.
    pub live: u64,
    /// Slots that the sweep made vacant.
    pub vacated: u64,
}

impl Table {
    /// Reads `most` slots from number `from` on, and makes those vacant whose keys have expired by
    /// `now`. No table needs sweeps. Use one to count the keys with a debt, or to remove the hashes
    /// of expired keys. A sweep also converts keys under a former version of their policy to the
    /// current one, unless a key would need another slot.
    pub fn sweep(&self, from: u64, most: u64, now: u64) -> Sweep {
        self.sweep_slots(from, most, now, false)
    }

    /// [`Table::sweep`]. With `all` it converts every key under a former version, and makes no slot
    /// vacant.
    pub(super) fn sweep_slots(&self, from: u64, most: u64, now: u64, all: bool) -> Sweep {
        let mut swept = Sweep::default();
        let end = from.saturating_add(most);
        let mut scratches = Scratches::new();
        let mut n = from;
        while n < end {
            let Some((slot, _)) = self.slots.get(n) else { return swept };
            n += 1;
            self.sweep_slot(slot, now, all, &mut scratches, &mut swept);
        }
        swept.next = (n < self.slots()).then_some(n);
        swept
    }

    fn sweep_slot<'t>(
        &'t self,
        slot: &Slot,
        now: u64,
        all: bool,
        scratches: &mut Scratches<'t>,
        swept: &mut Sweep,
    ) {
        let mut pair = slot.pair();
        // The loop has a bound, because a slot may change at each try in damaged memory, or if a
        // process writes to it for ever.
        for _ in 0..ROUNDS {
            if pair.is_vacant() {
                if !all && pair.state > now {
                    return;
                }
                match disturb(slot, pair, now) {
                    Ok(()) => return,
                    Err(seen) => pair = seen,
                }
                continue;
            }
            let expires = self.policies.expires_at_by(pair, &mut scratches.old);
            let new = if expires <= now && !all {
                self.policies.vacant(pair, expires)
            } else {
                match self.converted(slot, pair, expires, now, scratches) {
                    Some((new, false)) => new,
                    Some((_, true)) if all => {
                        self.convert_as_a_request(slot, pair.key, now);
                        pair = slot.pair();
                        continue;
                    }
                    // The key is under the current version, or its next request converts it.
                    _ => {
                        swept.live += 1;
                        return;
                    }
                }
            };
            // This call may have slept while the table freed the new version. Then it converts the
            // key again.
            if !new.is_vacant() && self.current_key(new.key, scratches) != Some(new.key) {
                pair = slot.pair();
                continue;
            }
            match slot.swap(pair, new) {
                Ok(()) if new.is_vacant() => {
                    swept.vacated += 1;
                    self.policies.vacated();
                    return;
                }
                Ok(()) => {
                    // The key is converted. The sweep does not read the slot again, because in
                    // damaged memory it could be converted for ever.
                    swept.live += 1;
                    return;
                }
                Err(seen) => pair = seen,
            }
        }
        swept.live += 1;
    }

    /// The key of `pair` under the current version of its policy, and whether its slot's time would
    /// become earlier. `None` if it is under that version.
    fn converted<'t>(
        &'t self,
        slot: &Slot,
        pair: SlotPair,
        expires: u64,
        now: u64,
        scratches: &mut Scratches<'t>,
    ) -> Option<(SlotPair, bool)> {
        let key = self.current_key(pair.key, scratches).filter(|key| *key != pair.key)?;
        let state = self.policies.convert_by(key, slot, pair, now, scratches);
        let new = SlotPair { key, state };
        let falls = new.state == 0 || !self.policies.outlasts(new, expires);
        // Keeps the key in its slot if one word can hold both its smaller debt and the slot's time.
        // To look for another slot would take longer than all else that the sweep does with the
        // key.
        let held = |exact| self.policies.hold(new, expires, now, exact);
        // A window or log keeps the time only by bringing permits back later.
        let is_one_word = self
            .policies
            .named(key, &mut scratches.new)
            .is_some_and(|version| version.multi_word.is_none());
        let ways = if is_one_word { &[true, false][..] } else { &[] };
        match ways.iter().copied().filter(|_| falls && expires > now).find_map(held) {
            Some(state) => Some((SlotPair { state, ..new }, false)),
            None => Some((new, falls)),
        }
    }

    /// Lets each key begin anew that is under a former version of a policy, or under a former
    /// override of it, and has no override now.
    pub(super) fn reset_former_keys(&self, policy: PolicyId) {
        let current = self.policies.memory.current_stamp(policy.number());
        let mut n = 0;
        while let Some((slot, _)) = self.slots.get(n) {
            n += 1;
            let mut pair = slot.pair();
            // The bound is that of `sweep_slot`.
            for _ in 0..ROUNDS {
                let Some(new) = self.reset_former(pair, current) else { break };
                match slot.swap(pair, new) {
                    Err(seen) => pair = seen,
                    Ok(()) => {
                        if new.is_vacant() {
                            self.policies.vacated();
                        }
                        break;
                    }
                }
            }
        }
    }

    /// The content of a slot after the reset of its key. `None` unless the key has no override and
    /// is under an older version than `current`, of the same policy.
    fn reset_former(&self, pair: SlotPair, current: u64) -> Option<SlotPair> {
        let mut scratch = Scratch::new();
        let stamp = self.policies.stamp_of(pair.key).filter(|_| !pair.is_vacant())?;
        let is_former = policy_of(stamp) == policy_of(current) && stamp >> 16 < current >> 16;
        if !is_former
            || self.policies.override_of(policy_of(current), hash_of_tag(pair.key & TAG)).is_some()
        {
            return None;
        }
        let version = self.policies.named(pair.key, &mut scratch)?;
        Some(match version.rule.unused_in_slot() {
            Some(state) => SlotPair { state, ..pair },
            None => self.policies.vacant(pair, version.expires_at(pair.state)),
        })
    }

    /// Converts a key to the current version of its policy, as its next request would. So a key
    /// that owes for a shorter time moves to another slot, and keeps its debt as permits.
    #[cold]
    #[inline(never)]
    fn convert_as_a_request(&self, slot: &Slot, key: u64, now: u64) {
        let mut scratches = Scratches::new();
        let number = self.policies.named(key, &mut scratches.old).map(|version| version.number);
        let (Some(number), Some(hash)) = (number, self.slots.hash_in_slot(key, slot)) else {
            return;
        };
        let Ok(version) = self.policies.current(PolicyId::new(number), hash, &mut scratches.new)
        else {
            return;
        };
        let (states, candidates) =
            (UnderVersion { policies: &self.policies, version }, self.slots.candidates(hash));
        // The result says only whether the key had to be converted.
        let _ = first_to_expire(&states, &candidates, version.key | candidates.tag, now);
    }

    /// The key word of the same key under its policy's current version.
    fn current_key<'t>(&'t self, key: u64, scratches: &mut Scratches<'t>) -> Option<u64> {
        let stamp = self.policies.stamp_of(key)?;
        let hash = hash_of_tag(key & TAG);
        let current = self.policies.stamp_for(policy_of(stamp), hash);
        if stamp == current && version_of(stamp) as u64 == key >> TAG_BITS {
            return Some(key);
        }
        let version = self.policies.named(key, &mut scratches.old)?;
        Some(
            self.policies
                .current(PolicyId::new(version.number), hash, &mut scratches.new)
                .ok()?
                .key
                | key & TAG,
        )
    }
}
