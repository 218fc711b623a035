//! A table's policies: their versions in the shared memory, the compiled versions of a process, and the conversion of
//! states.

pub(crate) mod compiled;
pub(crate) mod conversion;
mod encoding;
mod exempt;
pub(crate) mod local;
pub(crate) mod multi_word;
mod overrides;
pub(crate) mod records;
pub(crate) mod references;

pub use crate::policy::Keep;
use crate::policy::Policy;
use crate::sync::Ordering;
use crate::table::memory::counters::shards::ShardCounter;
use crate::table::memory::error::{RequestError, TableError};
use crate::table::memory::slot::{TAG, TAG_BITS};
use crate::table::memory::Memory;
use crate::table::slots::states::Event;
pub(crate) use crate::table::slots::ROUNDS;
use alloc::boxed::Box;
use compiled::{Version, Versions};
use local::{Locals, Scratch};
use multi_word::MultiWord;

/// One of a table's policies, by its number: the first is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PolicyId(u32);

impl PolicyId {
    /// The first policy of a table.
    pub const FIRST: PolicyId = PolicyId(0);

    /// Number `n`. A call that uses it fails if its table has no such policy.
    pub const fn new(n: u32) -> PolicyId {
        PolicyId(n)
    }

    /// The policy's number.
    pub const fn number(self) -> u32 {
        self.0
    }
}

/// A table's policies and its memory.
#[derive(Debug)]
pub(crate) struct Policies {
    pub(crate) memory: Memory,
    versions: Box<Versions>,
    locals: Locals,
}

impl Policies {
    /// Compiles the current policies of the table in `memory`, so that the first request does not allocate.
    pub(crate) fn over(memory: Memory) -> Result<Policies, TableError> {
        let policies =
            Policies { memory, versions: Versions::new().ok_or(TableError::NoMemory)?, locals: Locals::new()? };
        for current in &policies.memory.header().current {
            let stamp = current.load(Ordering::Acquire);
            // A damaged record makes the calls that use it fail, but not this one.
            if let Err(TableError::NoMemory) = policies.versions.prepare(policies.memory.records(), stamp) {
                return Err(TableError::NoMemory);
            }
        }
        Ok(policies)
    }

    /// The mark that credit taken now under a version gets ([`Version::credit_mark`]). Credit with another mark is
    /// void.
    pub(crate) fn credit_mark(&self, version: &Version) -> u64 {
        version.credit_mark(self.memory.header().special.read().changes())
    }

    /// The current policy of this number, if this process has compiled it for all threads.
    pub(crate) fn known_policy(&self, policy: PolicyId) -> Option<&Policy> {
        self.versions.known(self.memory.current_stamp(policy.0)).map(|version| &version.policy)
    }

    /// The version that the key with `hash` is under: its override's, or the current one of its policy.
    #[inline(never)]
    pub(crate) fn current<'s, 't: 's>(
        &'t self,
        policy: PolicyId,
        hash: u64,
        scratch: &'s mut Scratch<'t>,
    ) -> Result<&'s Version, RequestError> {
        self.current_inlined(policy, hash, scratch)
    }

    /// [`Policies::current`], for the call that all requests make.
    #[inline(always)]
    pub(crate) fn current_inlined<'s, 't: 's>(
        &'t self,
        policy: PolicyId,
        hash: u64,
        scratch: &'s mut Scratch<'t>,
    ) -> Result<&'s Version, RequestError> {
        let stamp = self.stamp_for(policy.0, hash);
        if stamp == 0 {
            return Err(RequestError::NoSuchPolicy);
        }
        match self.versions.known(stamp) {
            Some(version) => Ok(version),
            None => match self.find_or_compile_current(policy.0, hash, stamp, scratch)? {
                Some(version) => Ok(version),
                None => scratch.version().ok_or(RequestError::Corrupt),
            },
        }
    }

    /// The version that a key word names.
    #[inline(never)]
    pub(crate) fn named<'s, 't: 's>(&'t self, key: u64, scratch: &'s mut Scratch<'t>) -> Option<&'s Version> {
        let stamp = self.stamp_of(key)?;
        // In damaged memory a record may hold the stamp of another version.
        self.version(stamp, scratch).ok().filter(|version| version.key == key & !TAG)
    }

    /// The stamp of the version that a key word names.
    #[inline(always)]
    pub(crate) fn stamp_of(&self, key: u64) -> Option<u64> {
        Some(self.memory.records().get((key >> TAG_BITS) as usize)?.stamp.load(Ordering::Acquire))
    }

    /// The policy of a table whose states are more than one word. Such a table has only one policy.
    pub(crate) fn multi_word(&self) -> Option<&MultiWord> {
        match self.memory.fixed.side {
            0 => None,
            // `Policies::over` has compiled it.
            _ => self.versions.known(self.memory.current_stamp(0))?.multi_word.as_ref(),
        }
    }

    /// Counts what a request did to the table.
    #[cold]
    pub(crate) fn count_event(&self, event: Event, retries: u32) {
        let counter = match event {
            Event::Known => None,
            Event::Inserted => Some(ShardCounter::Inserted),
            Event::Reclaimed => Some(ShardCounter::Reclaimed),
            Event::Refused | Event::RefusedByDebt => Some(ShardCounter::Refused),
            Event::Inherited => Some(ShardCounter::Inherited),
            Event::Unremembered => Some(ShardCounter::Unremembered),
            Event::Evicted => Some(ShardCounter::Evicted),
        };
        let shard = self.memory.shard();
        if let Some(counter) = counter {
            shard.add(counter, 1);
        }
        if retries != 0 {
            shard.add(ShardCounter::Retries, u64::from(retries));
        }
    }
}
