//! What a whole table holds: sizes, counters, keys.

use crate::algorithm::Algorithm;
use crate::decision::Counts;
use crate::table::decide::Table;
use crate::table::memory::counters::lines::{self, LineCounter};
use crate::table::memory::counters::shards::{sum, ShardCounter};
use crate::table::memory::error::TableError;
use crate::table::policies::local::Scratch;
use crate::table::policies::PolicyId;
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
    /// New keys refused for want of a slot ([`OnFull::Deny`](crate::table::OnFull)), or by the debt that they would have taken over
    /// ([`OnFull::Inherit`](crate::table::OnFull)).
    pub refused: u64,
    /// New keys that took over a slot and its debt ([`OnFull::Inherit`](crate::table::OnFull)).
    pub inherited: u64,
    /// New keys admitted and not remembered ([`OnFull::Allow`](crate::table::OnFull)).
    pub untracked: u64,
    /// Keys with a debt that were forgotten ([`OnFull::EvictNearest`](crate::table::OnFull)).
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
        self.policies.memory.fixed.capacity
    }

    /// The slots it has.
    pub fn slots(&self) -> u64 {
        self.slots.count()
    }

    /// The bytes it takes, from the first call to the last.
    pub fn bytes(&self) -> u64 {
        self.policies.memory.fixed.bytes
    }

    /// Counters and sizes.
    pub fn stats(&self) -> Stats {
        let memory = &self.policies.memory;
        let count = |what| sum(memory.shards(), what);
        let owned = |of| lines::sum(memory.lines().iter(), of);
        let inserted = count(ShardCounter::Inserted).wrapping_add(owned(LineCounter::Inserted));
        let vacated = count(ShardCounter::Vacated);
        Stats {
            capacity: self.capacity(),
            slots: self.slots(),
            bytes: self.bytes(),
            keys: inserted.saturating_sub(vacated),
            decisions: memory.decisions(|_| true),
            inserted,
            reclaimed: count(ShardCounter::Reclaimed).wrapping_add(owned(LineCounter::Reclaimed)),
            vacated,
            resets: count(ShardCounter::Resets),
            refused: count(ShardCounter::Refused),
            inherited: count(ShardCounter::Inherited),
            untracked: count(ShardCounter::Unremembered),
            evicted: count(ShardCounter::Evicted),
            retries: count(ShardCounter::Retries),
            backward_steps: count(ShardCounter::BackwardSteps),
        }
    }

    /// Decisions under a policy since the table was made, of all threads and processes. A process that was killed may miss those of
    /// the call that it was in.
    ///
    /// A call counts once, under the policy and the verdict that it is told: for a missing key and an exempt one, too, and for a
    /// new key that is refused because the table is full. Each request of a batch is one; [`Table::take_up_to`] counts as allowed if it
    /// took any, and as denied if not. [`Table::peek`] and errors do not count. A change of the policy leaves its counts.
    ///
    /// # Errors
    /// [`TableError::NoSuchPolicy`].
    pub fn counts(&self, policy: PolicyId) -> Result<Counts, TableError> {
        match self.policies.memory.has_policy(policy.number()) {
            true => Ok(self.policies.memory.decisions(|number| number == policy.number())),
            false => Err(TableError::NoSuchPolicy),
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
            let (slot, bucket) = self.slots.get(n)?;
            n += 1;
            let pair = slot.pair();
            let mut scratch = Scratch::new();
            let named = self.policies.named(pair.key, &mut scratch);
            let (Some(version), Some(hash)) = (named, self.slots.hash_in_bucket(pair.key, bucket)) else {
                continue;
            };
            if pair.key == 0 {
                continue;
            }
            let entry = Entry {
                policy: PolicyId::new(version.number),
                hash,
                state: pair.state,
                remaining: match &version.multi_word {
                    Some(multi_word) => {
                        let side = self.policies.memory.side_words(self.slots.number(slot));
                        multi_word.remaining(slot, pair.key, side, now)
                    }
                    None => version.rule.available(pair.state, now),
                },
                expires_at: self.policies.expires_at(pair),
            };
            return Some((entry, n));
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
    use super::*;
    use crate::table::Options;

    /// A change of policy that looks at every slot does so as of the newest time that any caller came with, with a line of its own or without.
    #[test]
    fn the_newest_time_is_that_of_all_callers() {
        let table = Table::private(&Options::new(1), &["5/s".parse().expect("a policy")]).expect("memory");
        for now in [5_000_000_000, 9_000_000_000, 7_000_000_000] {
            table.admit_at(PolicyId::FIRST, b"a client", now, 1);
        }
        assert_eq!(table.policies.memory.newest_time(), 9_000_000_000);
        table.policies.memory.note_time(12_000_000_000);
        assert_eq!(table.policies.memory.newest_time(), 12_000_000_000);
    }
}
