//! Sweeps. A sweep makes the slots of expired keys vacant, and converts keys to the current versions of their policies.

use crate::table::decide::Table;
use crate::table::memory::slot::{Pair, Slot};
use crate::table::policies::conversion::Scratches;
use crate::table::policies::records::{policy_of, version_of};
use crate::table::policies::{PolicyId, ROUNDS};
use crate::table::slots::candidates::{hash_of_tag, TAG, TAG_BITS};

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
    /// Reads `most` slots from number `from` on, and makes those vacant whose keys have expired by `now`. No table needs sweeps. Use one to count
    /// the keys with a debt, or to remove the hashes of expired keys. A sweep also converts keys under a former version of their policy to the
    /// current one, unless a key would need another slot.
    pub fn sweep(&self, from: u64, most: u64, now: u64) -> Sweep {
        self.sweep_slots(from, most, now, false)
    }

    /// [`Table::sweep`]. With `all` it converts every key under a former version, and makes no slot vacant.
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

    fn sweep_slot<'t>(&'t self, slot: &Slot, now: u64, all: bool, scratches: &mut Scratches<'t>, swept: &mut Sweep) {
        let mut pair = slot.pair();
        // The loop has a bound, because a slot may change at each try in damaged memory, or if a process writes to it for ever.
        for _ in 0..ROUNDS {
            if pair.key == 0 {
                return;
            }
            let expires = self.policies.expires_at_by(pair, &mut scratches.old);
            let new = if expires <= now && !all {
                self.policies.vacant(pair, expires)
            } else {
                let converted = self.current_key(pair.key, scratches).filter(|key| *key != pair.key).map(|key| {
                    let new = Pair { key, state: self.policies.convert_by(key, pair, now, scratches) };
                    // A slot's time must not become earlier, and a sweep moves no key.
                    let falls = new.state == 0 || self.policies.expires_at_by(new, &mut scratches.new) < expires;
                    (new, falls)
                });
                match converted {
                    Some((new, false)) => new,
                    Some((new, true)) if all => Pair { state: self.policies.adopt_by(new.key, pair, scratches), ..new },
                    // The key is under the current version, or its next request converts it.
                    _ => {
                        swept.live += 1;
                        return;
                    }
                }
            };
            match slot.swap(pair, new) {
                Ok(()) if new.key == 0 => {
                    swept.vacated += 1;
                    self.policies.vacated();
                    return;
                }
                Ok(()) => {
                    // The key is converted. The sweep does not read the slot again, because in damaged memory it could be converted for ever.
                    swept.live += 1;
                    return;
                }
                Err(seen) => pair = seen,
            }
        }
        swept.live += 1;
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
        Some(self.policies.current(PolicyId::new(version.number), hash, &mut scratches.new).ok()?.key | key & TAG)
    }
}
