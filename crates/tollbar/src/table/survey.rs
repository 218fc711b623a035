//! Looking at a whole table: counts, export, sweeping, and its policies.

use super::counts::{sum, Count};
use super::error::TableError;
use super::home::{TAG, TAG_BITS};
use super::layout::{Shard, SLOTS_A_BUCKET};
use super::lines::{self, Of};
use super::local::Scratch;
use super::protocol::Terms;
use super::request::ROUNDS;
use super::slot::{Pair, Slot};
use super::terms::Scratches;
use super::versions::{self, policy_of, version_of};
use super::wide::Wide;
use super::{Keep, PolicyId, Table};
use crate::algorithm::Algorithm;
use crate::decision::Counts;
use crate::policy::Policy;
use crate::sync::Ordering;
use crate::units::NEVER;

/// Counters and sizes of a table. Counts are since it was made, of all processes; one that is killed may miss its last: of an insertion, or of one decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stats {
    /// The keys it was made for.
    pub capacity: u64,
    /// The slots it has.
    pub slots: u64,
    /// The bytes it takes.
    pub bytes: u64,
    /// Slots that hold a key, expired or not. After a reset a slot stays empty until its key's debt would have been paid; no key
    /// may take it until then, and it is not counted here. [`Table::validate`] counts such slots.
    pub keys: u64,
    /// Decisions under all policies ([`Table::counts`]).
    pub decisions: Counts,
    /// Keys that were put into an empty or vacant slot.
    pub inserted: u64,
    /// Expired keys whose slot was given to another.
    pub reclaimed: u64,
    /// Slots that became vacant by a sweep or a reset.
    pub vacated: u64,
    /// Keys that were reset.
    pub resets: u64,
    /// Newcomers refused for want of a place ([`OnFull::Deny`](super::OnFull)), or by the debt that they would have taken over
    /// ([`OnFull::Inherit`](super::OnFull)).
    pub refused: u64,
    /// Newcomers that took over a slot and its debt ([`OnFull::Inherit`](super::OnFull)).
    pub inherited: u64,
    /// Newcomers admitted and not remembered ([`OnFull::Allow`](super::OnFull)).
    pub untracked: u64,
    /// Keys with a debt that were forgotten ([`OnFull::EvictNearest`](super::OnFull)).
    pub evicted: u64,
    /// Swaps that were tried again because another thread came first.
    pub retries: u64,
    /// Requests that came with an older time than one before them, by a microsecond or more; among the threads that share a
    /// shard of the counters.
    pub backward_steps: u64,
}

/// One key of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its policy.
    pub policy: PolicyId,
    /// Its hash, which is all that the table knows of it ([`Table::hash`]).
    pub hash: u64,
    /// The state word.
    pub state: u64,
    /// Permits that could be taken.
    pub remaining: u64,
    /// The time from which it is as good as fresh, on the table's scale; [`NEVER`] if there is none.
    pub expires_at: u64,
}

/// How far a sweep came, and what it saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sweep {
    /// The slot to go on with; `None` at the end of the table.
    pub next: Option<u64>,
    /// Keys that have a debt.
    pub live: u64,
    /// Slots that were made vacant.
    pub vacated: u64,
}

/// The keys of a table, slot by slot. Each entry is what its slot held at one instant; keys that come, go or move
/// meanwhile may be seen or not, or twice.
#[derive(Debug)]
pub struct Entries<'a> {
    table: &'a Table,
    now: u64,
    next: u64,
}

impl Table {
    /// The keys it was made for.
    pub fn capacity(&self) -> u64 {
        self.fixed.capacity
    }

    /// The slots it has.
    pub fn slots(&self) -> u64 {
        self.fixed.buckets * SLOTS_A_BUCKET.get()
    }

    /// The bytes it takes, from the first call to the last.
    pub fn bytes(&self) -> u64 {
        self.fixed.bytes
    }

    /// Counters and sizes.
    pub fn stats(&self) -> Stats {
        let count = |what| sum(self.shards(), what);
        let owned = |of| lines::sum(self.lines().iter(), of);
        let inserted = count(Count::Inserted).wrapping_add(owned(Of::Inserted));
        let vacated = count(Count::Vacated);
        Stats {
            capacity: self.capacity(),
            slots: self.slots(),
            bytes: self.bytes(),
            keys: inserted.saturating_sub(vacated),
            decisions: self.counts_of_all(),
            inserted,
            reclaimed: count(Count::Reclaimed).wrapping_add(owned(Of::Reclaimed)),
            vacated,
            resets: count(Count::Resets),
            refused: count(Count::Refused),
            inherited: count(Count::Inherited),
            untracked: count(Count::Unremembered),
            evicted: count(Count::Evicted),
            retries: count(Count::Retries),
            backward_steps: count(Count::BackwardSteps),
        }
    }

    /// The keys that are in the table, as of `now`.
    pub fn entries(&self, now: u64) -> Entries<'_> {
        Entries { table: self, now, next: 0 }
    }

    /// The entry in the first slot from `from` on that holds a key, and the slot after it.
    pub fn next_entry(&self, from: u64, now: u64) -> Option<(Entry, u64)> {
        let mut n = from;
        loop {
            let (slot, bucket) = self.slot(n)?;
            n += 1;
            let pair = slot.pair();
            let tag = pair.key & TAG;
            let mut scratch = Scratch::new();
            let named = self.named(pair.key, &mut scratch);
            let (Some(version), Some(hash)) = (named, self.homes.hash_of(tag, bucket)) else {
                continue;
            };
            if pair.key == 0 {
                continue;
            }
            let entry = Entry {
                policy: PolicyId::new(version.policy),
                hash,
                state: pair.state,
                remaining: match &version.wide {
                    Some(wide) => self.remaining_wide(wide, slot, pair.key, now),
                    None => version.rule.available(pair.state, now),
                },
                expires_at: self.expires_at(pair),
            };
            return Some((entry, n));
        }
    }

    /// Makes slots vacant whose keys have expired by `now`: `most` slots from number `from` on. The table does without; it is
    /// for those who want to know how many keys have a debt, or do not want to keep the hashes of others. Keys under a
    /// version of their policy that has been replaced are brought to the current one, where they need no other slot for that.
    pub fn sweep(&self, from: u64, most: u64, now: u64) -> Sweep {
        self.sweep_slots(from, most, now, false)
    }

    /// [`Table::sweep`]. `all`: every key under a former version is brought over, and none made vacant.
    fn sweep_slots(&self, from: u64, most: u64, now: u64, all: bool) -> Sweep {
        let mut swept = Sweep::default();
        let end = from.saturating_add(most);
        let mut scratches = Scratches::new();
        let mut n = from;
        while n < end {
            let Some((slot, _)) = self.slot(n) else { return swept };
            n += 1;
            self.sweep_slot(slot, now, all, &mut scratches, &mut swept);
        }
        swept.next = (n < self.slots()).then_some(n);
        swept
    }

    fn sweep_slot<'t>(&'t self, slot: &Slot, now: u64, all: bool, scratches: &mut Scratches<'t>, swept: &mut Sweep) {
        let mut pair = slot.pair();
        // Only in damaged memory, or in memory that a process writes to without end, does a slot change at each look.
        for _ in 0..ROUNDS {
            if pair.key == 0 {
                return;
            }
            let expires = self.expires_at_by(pair, &mut scratches.old);
            let new = if expires <= now && !all {
                self.vacant(pair, expires)
            } else {
                let brought = self.current_key(pair.key, scratches).filter(|key| *key != pair.key).map(|key| {
                    let new = Pair { key, state: self.convert_by(key, pair, now, scratches) };
                    // A slot's time may not fall, and a key may not leave its slot here.
                    let falls = new.state == 0 || self.expires_at_by(new, &mut scratches.new) < expires;
                    (new, falls)
                });
                match brought {
                    Some((new, false)) => new,
                    Some((new, true)) if all => Pair { state: self.adopt_by(new.key, pair, scratches), ..new },
                    // It is under the current version, or a request brings it there.
                    _ => {
                        swept.live += 1;
                        return;
                    }
                }
            };
            match slot.swap(pair, new) {
                Ok(()) if new.key == 0 => {
                    swept.vacated += 1;
                    self.count_vacated();
                    return;
                }
                Ok(()) => {
                    // Brought over. Not looked at again: damaged memory may send it from one policy to the other for ever.
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
        let stamp = self.stamp_of(key)?;
        let current = self.header().current.get(policy_of(stamp) as usize)?.load(Ordering::Acquire);
        if stamp == current && version_of(stamp) as u64 == key >> TAG_BITS {
            return Some(key);
        }
        let version = self.named(key, &mut scratches.old)?;
        Some(self.current(PolicyId::new(version.policy), &mut scratches.new).ok()?.key | key & TAG)
    }

    /// Slot number `n`, and its bucket's.
    pub(super) fn slot(&self, n: u64) -> Option<(&Slot, u64)> {
        if n >= self.slots() {
            return None;
        }
        let (bucket, place) = (n / SLOTS_A_BUCKET, n % SLOTS_A_BUCKET);
        // SAFETY: n is below the number of slots, so its bucket is below the number of buckets.
        let slot = unsafe { self.bucket(bucket) }.0.get(place as usize)?;
        Some((slot, bucket))
    }

    /// The policy of that number, as it is now.
    pub fn policy(&self, policy: PolicyId) -> Result<Policy, TableError> {
        match self.header().current.get(policy.0 as usize) {
            Some(current) if current.load(Ordering::Acquire) != 0 => {
                versions::current_policy(self.records(), current).ok_or(TableError::Corrupt)
            }
            _ => Err(TableError::NoSuchPolicy),
        }
    }

    /// How many policies there are.
    pub fn policies(&self) -> u32 {
        self.header().current.iter().filter(|stamp| stamp.load(Ordering::Relaxed) != 0).count() as u32
    }

    /// Adds a policy while the table is in use; returns its number.
    pub fn add_policy(&self, policy: &Policy) -> Result<PolicyId, TableError> {
        self.check_policy(policy)?;
        self.free_versions(|| versions::add(self.header(), self.records(), policy)).map(PolicyId::new)
    }

    /// The number of the first policy that equals this one in every field, which is added if there is none. Of threads and
    /// processes that ask for the same policy at once, all get the same number.
    pub fn find_or_add_policy(&self, policy: &Policy) -> Result<PolicyId, TableError> {
        self.check_policy(policy)?;
        self.free_versions(|| versions::find_or_add(self.header(), self.records(), policy)).map(PolicyId::new)
    }

    /// Changes a policy while the table is in use, in all processes at once. A key keeps the permits that it has left, cut to
    /// the new burst ([`Keep::Count`]): it is carried over when it is next asked for. In any window of time with one change no
    /// more is admitted than the two policies' bounds together; with several, than those of all.
    ///
    /// Where the new policy would forget a key's debt sooner, the key moves to another slot, and its old one stays taken until
    /// its time, as after a reset. If all its other places are taken, its debt stays what it was in time.
    ///
    /// Once in some hundred changes this looks at every slot, and what it finds under former versions keeps its time, too.
    pub fn set_policy(&self, id: PolicyId, policy: &Policy) -> Result<(), TableError> {
        self.set_policy_keeping(id, policy, Keep::Count)
    }

    /// [`Table::set_policy`] with the choice of what keys keep of their debts.
    pub fn set_policy_keeping(&self, id: PolicyId, policy: &Policy, keep: Keep) -> Result<(), TableError> {
        if self.policy(id)? == *policy {
            return Ok(());
        }
        self.check_policy(policy)?;
        self.free_versions(|| versions::change(self.header(), self.records(), id.number(), policy, keep))
    }

    /// The newest time that a caller has come with.
    fn newest(&self) -> u64 {
        let of =
            |shard: &Shard| shard.counts.get(Count::Newest as usize).map_or(0, |newest| newest.load(Ordering::Relaxed));
        let shared = self.shards().iter().map(of).max().unwrap_or(0);
        self.lines().iter().map(|line| line.get(Of::Newest)).fold(shared, u64::max)
    }

    /// Whether keys of this table can be under this policy, too.
    fn check_policy(&self, policy: &Policy) -> Result<(), TableError> {
        crate::limiter::State::validate_on(policy, self.clock)?;
        match Wide::new(policy)? {
            None if self.fixed.side == 0 => Ok(()),
            _ => Err(TableError::Mixed),
        }
    }

    /// `change`, after freeing former versions if there are no free records.
    fn free_versions<T>(&self, change: impl Fn() -> Result<T, TableError>) -> Result<T, TableError> {
        match change() {
            Err(TableError::Versions) => {
                let former = versions::former(self.header(), self.records());
                let mut from = Some(0);
                while let Some(next) = from {
                    from = self.sweep_slots(next, 4096, self.newest(), true).next;
                }
                let older = versions::older(self.header(), &former);
                versions::free_former(self.header(), self.records(), &older);
                change()
            }
            result => result,
        }
    }
}

impl Iterator for Entries<'_> {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        let (entry, next) = self.table.next_entry(self.next, self.now)?;
        self.next = next;
        Some(entry)
    }
}

impl Entry {
    /// Nanoseconds from `now` until it is as good as fresh.
    pub fn reset_after(&self, now: u64) -> u64 {
        if self.expires_at == NEVER {
            NEVER
        } else {
            self.expires_at.saturating_sub(now)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Options;
    use super::*;

    /// A change of policy that looks at every slot does so as of the newest time that any caller came with, with a line of its own or without.
    #[test]
    fn the_newest_time_is_that_of_all_callers() {
        let table = Table::private(&Options::new(1), &["5/s".parse().expect("a policy")]).expect("memory");
        for now in [5_000_000_000, 9_000_000_000, 7_000_000_000] {
            table.admit_at(PolicyId::FIRST, b"a client", now, 1);
        }
        assert_eq!(table.newest(), 9_000_000_000);
        table.look(12_000_000_000);
        assert_eq!(table.newest(), 12_000_000_000);
    }
}
