//! Sizes, counters and keys of a table.

use crate::algorithm::Algorithm;
use crate::decision::{Counts, Reasons};
use crate::table::admin::open::Options;
use crate::table::decide::Table;
use crate::table::memory::counters::lines::{self, LineCounter};
use crate::table::memory::counters::shards::{self, sum, ShardCounter};
use crate::table::memory::error::RequestError;
use crate::table::policies::local::Scratch;
use crate::table::policies::PolicyId;
use crate::units::NEVER;
use alloc::string::ToString;
use core::fmt;

/// Counters and sizes of a table. The counters count since the table was made, for all processes.
/// If a process is killed, its last insertion or decision may not be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stats {
    /// The capacity that the table was made with.
    pub capacity: u64,
    /// The number of slots.
    pub slots: u64,
    /// The size in bytes.
    pub bytes: u64,
    /// Slots that hold a key, expired or not. It does not include the slots of reset keys, which no
    /// key may take until the former key's debt would have been paid. [`Table::validate`] counts
    /// those.
    pub keys: u64,
    /// Decisions under all policies ([`Table::counts`]).
    pub decisions: Counts,
    /// Keys inserted into an empty or vacant slot.
    pub inserted: u64,
    /// Keys inserted into the slot of an expired key.
    pub reclaimed: u64,
    /// Slots that a sweep or a reset made vacant.
    pub vacated: u64,
    /// Resets of keys.
    pub resets: u64,
    /// New keys refused because no slot was free ([`OnFull::Deny`](crate::table::OnFull)), or
    /// because of the debt that they would have inherited
    /// ([`OnFull::Inherit`](crate::table::OnFull)).
    pub refused: u64,
    /// New keys that inherited a slot with its debt ([`OnFull::Inherit`](crate::table::OnFull)).
    pub inherited: u64,
    /// New keys admitted and not stored ([`OnFull::Allow`](crate::table::OnFull)).
    pub untracked: u64,
    /// Keys with a debt whose slot a new key took ([`OnFull::EvictNearest`](crate::table::OnFull)).
    pub evicted: u64,
    /// Swaps that failed and were tried again, because another thread had changed the slot.
    pub retries: u64,
    /// Requests whose time was more than a microsecond before that of an earlier request. The table
    /// compares only requests of one thread under one policy, or of threads that share a shard of
    /// counters.
    pub backward_steps: u64,
    /// Keys with a policy of their own ([`Table::set_override`]). A process that was killed in a
    /// change may leave it one too high, until [`Table::repair`].
    pub overrides: u64,
    /// How many decisions, under all policies, had which reason.
    pub reasons: Reasons,
}

/// One key of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The key's policy.
    pub policy: PolicyId,
    /// The key's hash. The table stores nothing else of the key ([`Table::hash`]).
    pub hash: u64,
    /// The state word.
    pub state: u64,
    /// Permits that the key has left.
    pub remaining: u64,
    /// The time from which the state is as good as fresh, on the table's scale. [`NEVER`] if there
    /// is none.
    pub expires_at: u64,
}

/// The keys of a table, slot by slot. Each entry is the content of its slot at one instant. A key
/// that is inserted, moved or removed meanwhile may appear once, twice or not at all.
#[derive(Debug)]
pub struct Entries<'a> {
    table: &'a Table,
    now: u64,
    next: u64,
}

/// The policies as text, and the sizes.
impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        struct Texts<'a>(&'a Table);
        impl fmt::Debug for Texts<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let policies = (0..self.0.policies()).map(|n| self.0.policy(PolicyId::new(n)));
                f.debug_list().entries(policies.flatten().map(|policy| policy.to_string())).finish()
            }
        }
        f.debug_struct("Table")
            .field("policies", &Texts(self))
            .field("capacity", &self.capacity())
            .field("bytes", &self.bytes())
            .finish_non_exhaustive()
    }
}

impl Table {
    /// The capacity that the table was made with.
    pub fn capacity(&self) -> u64 {
        self.policies.memory.fixed.capacity
    }

    /// The number of slots.
    pub fn slots(&self) -> u64 {
        self.slots.count()
    }

    /// The table's size in bytes. It never changes.
    pub fn bytes(&self) -> u64 {
        self.policies.memory.fixed.bytes
    }

    /// Options with which another table would agree with this one: its capacity, its answers for a
    /// full table and a missing key, its clock, its seed, its overrides and its room. The others
    /// are the defaults. [`Table::copy_from`] needs the same seed and clock.
    pub fn options(&self) -> Options {
        let fixed = &self.policies.memory.fixed;
        let mut options =
            Options::new(fixed.capacity).with_on_full(self.on_full).with_seed(fixed.seed);
        (options.missing, options.clock) = (self.missing, self.clock);
        // Both are below 2^32: `Sizes::new` refuses more than 524,288 overrides, and the room is
        // the upper half of a word.
        (options.overrides, options.room) = (fixed.overrides as u32, fixed.room as u32);
        options
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
            overrides: memory.header().special.read().overrides(),
            reasons: shards::reasons(memory.shards()),
        }
    }

    /// The numbers of decisions of all threads and processes under a policy since the table was
    /// made. If a process is killed, the decisions of its last call may be missing.
    ///
    /// A call counts once, under the policy that the caller named and the verdict that the call
    /// returned. So do requests with missing or exempt keys, and with new keys that a full table
    /// refuses. Each request of a batch counts. [`Table::take_up_to`] counts as allowed if it took
    /// any permits, otherwise as denied. [`Table::peek`] and errors do not count. A change of the
    /// policy does not reset its counts.
    ///
    /// # Errors
    /// [`RequestError::NoSuchPolicy`].
    pub fn counts(&self, policy: PolicyId) -> Result<Counts, RequestError> {
        match self.policies.memory.has_policy(policy.number()) {
            true => Ok(self.policies.memory.decisions(|number| number == policy.number())),
            false => Err(RequestError::NoSuchPolicy),
        }
    }

    /// The keys of the table, with their states at `now`.
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
            let (Some(version), Some(hash)) = (named, self.slots.hash_in_bucket(pair.key, bucket))
            else {
                continue;
            };
            if pair.is_vacant() {
                continue;
            }
            let entry = Entry {
                policy: PolicyId::new(version.number),
                hash,
                state: pair.state,
                remaining: match &version.multi_word {
                    Some(_) if version.has_room => {
                        self.policies.remaining(version, slot, pair, now)
                    }
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
    /// Nanoseconds from `now` until the state is as good as fresh.
    pub fn reset_after(&self, now: u64) -> u64 {
        if self.expires_at == NEVER {
            NEVER
        } else {
            self.expires_at.saturating_sub(now)
        }
    }
}

#[cfg(test)]
mod tests;
