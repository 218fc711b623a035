//! A table's policies: their versions in the shared memory, the compiled versions of a process, and
//! the conversion of states.

pub(crate) mod compiled;
#[cfg(not(loom))]
pub(crate) mod conversion;
#[cfg(not(loom))]
mod encoding;
#[cfg(loom)]
#[path = "encoding/model.rs"]
mod encoding;
mod exempt;
#[cfg(not(loom))]
pub(crate) mod folded;
mod kept;
#[cfg(not(loom))]
mod knots;
pub(crate) mod local;
#[cfg(all(test, loom))]
mod models;
pub(crate) mod multi_word;
mod overrides;
pub(crate) mod record;
pub(crate) mod records;
pub(crate) mod references;
mod relation;
pub(crate) mod terms;

pub use crate::policy::Keep;
use crate::policy::Policy;
use crate::sync::Ordering;
#[cfg(not(loom))]
use crate::table::memory::counters::shards::ShardCounter;
use crate::table::memory::error::{RequestError, TableError};
use crate::table::memory::slot::{TAG, TAG_BITS};
use crate::table::memory::special::Special;
use crate::table::memory::Memory;
#[cfg(not(loom))]
use crate::table::slots::states::Event;
pub(crate) use crate::table::slots::ROUNDS;
use alloc::boxed::Box;
use compiled::Version;
use kept::Versions;
use local::{Local, Locals, Scratch};
use multi_word::MultiWord;
use record::policy_of;

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
    /// Compiles the current policies of the table in `memory`, so that the first request does not
    /// allocate.
    pub(crate) fn over(memory: Memory) -> Result<Policies, TableError> {
        let has_room = memory.fixed.has_room();
        let policies = Policies {
            memory,
            versions: Versions::new(has_room).ok_or(TableError::NoMemory)?,
            locals: Locals::new()?,
        };
        for current in &policies.memory.header().current {
            // Acquire: as in `current_stamp`. No model notices a weaker ordering, because no
            // request has begun.
            let stamp = current.load(Ordering::Acquire);
            // A damaged record makes the calls that use it fail, but not this one.
            if let Err(TableError::NoMemory) =
                policies.versions.prepare(policies.memory.records(), stamp)
            {
                return Err(TableError::NoMemory);
            }
        }
        Ok(policies)
    }

    /// The mark that credit taken now under a version gets ([`Version::credit_mark`]). Credit with
    /// another mark is void.
    pub(crate) fn credit_mark(&self, version: &Version) -> u64 {
        version.credit_mark(self.memory.header().special.read().changes())
    }

    /// The current policy of this number, if this process has compiled it for all threads.
    pub(crate) fn known_policy(&self, policy: PolicyId) -> Option<&Policy> {
        self.versions.known(self.memory.current_stamp(policy.0)).map(|version| &version.policy)
    }

    /// The version that the key with `hash` is under: its override's, or the current one of its
    /// policy.
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
    pub(crate) fn named<'s, 't: 's>(
        &'t self,
        key: u64,
        scratch: &'s mut Scratch<'t>,
    ) -> Option<&'s Version> {
        let stamp = self.stamp_of(key)?;
        // In damaged memory a record may hold the stamp of another version.
        self.version(stamp, scratch).ok().filter(|version| version.key == key & !TAG)
    }

    /// The stamp of the version that a key word names.
    #[inline(always)]
    pub(crate) fn stamp_of(&self, key: u64) -> Option<u64> {
        Some(self.memory.records().get((key >> TAG_BITS) as usize)?.stamp.load(Ordering::Acquire))
    }

    /// Whether the number of `version` is still its own. While a request sleeps, changes of
    /// policies may free the number and give it to another version. So a request asks this after it
    /// has read its key's slot. If the number is still the version's, the slot's words are, too,
    /// because a sweep converts the keys under a number before it is free. Between the answer and a
    /// swap the request may sleep again. Then the swap succeeds only if the slot holds the same two
    /// words under the other version.
    #[cfg(not(loom))]
    #[inline(always)]
    pub(crate) fn is_numbered(&self, version: &Version) -> bool {
        // Relaxed: a version that returns to its number gets the record's new stamp, and decides as
        // before.
        self.stamp_of(version.key) == Some(version.stamp.load(Ordering::Relaxed))
    }

    /// The policy of a table without room whose states are more than one word. Such a table has
    /// only one policy.
    pub(crate) fn multi_word(&self) -> Option<&MultiWord> {
        match self.memory.fixed.is_multi_word() {
            false => None,
            // `Policies::over` has compiled it.
            true => self.versions.known(self.memory.current_stamp(0))?.multi_word.as_ref(),
        }
    }

    /// The current version of a policy, if this process has compiled it for all threads and no key
    /// of the table is exempt or has a policy of its own. The second value is the word that counts
    /// those keys.
    #[inline(always)]
    pub(crate) fn current_compiled(&self, policy: PolicyId) -> Option<(&Version, Special)> {
        let stamp = self.memory.current_stamp(policy.0);
        let version = self.versions.known(stamp)?;
        // Acquire, as in `is_exempt`.
        let special = self.memory.header().special.read();
        match special.is_none() {
            true => Some((version, special)),
            false => None,
        }
    }

    /// The version with `stamp`. [`RequestError::Corrupt`] if its record is damaged or belongs to
    /// another version by now.
    #[inline(always)]
    pub(super) fn version<'s, 't: 's>(
        &'t self,
        stamp: u64,
        scratch: &'s mut Scratch<'t>,
    ) -> Result<&'s Version, RequestError> {
        match self.versions.known(stamp) {
            Some(version) => Ok(version),
            None => match self.find_or_compile(stamp, scratch)? {
                Some(version) => Ok(version),
                None => scratch.version().ok_or(RequestError::Corrupt),
            },
        }
    }

    /// Finds or compiles the current version of a policy. `stamp` is its current stamp as the
    /// caller has read it. `None`: `scratch` holds the version.
    #[cold]
    #[inline(never)]
    pub(super) fn find_or_compile_current<'t>(
        &'t self,
        policy: u32,
        hash: u64,
        stamp: u64,
        scratch: &mut Scratch<'t>,
    ) -> Result<Option<&'t Version>, RequestError> {
        match self.share_local(stamp, scratch) {
            true => Ok(None),
            false => self.compile_current(policy, hash, stamp, scratch),
        }
    }

    #[inline(never)]
    fn compile_current<'t>(
        &'t self,
        policy: u32,
        hash: u64,
        mut stamp: u64,
        scratch: &mut Scratch<'t>,
    ) -> Result<Option<&'t Version>, RequestError> {
        for _ in 0..ROUNDS {
            let compiled = self.compile(stamp, scratch);
            let seen = self.stamp_for(policy, hash);
            // While this thread slept, other calls may have changed the policy so often that they
            // gave the record of `stamp` to another version. Then the current stamp is another one.
            if compiled.is_ok() || seen == stamp {
                return compiled;
            }
            stamp = seen;
        }
        Err(RequestError::Corrupt)
    }

    /// Finds or compiles the version with `stamp`. `None`: `scratch` holds it.
    #[cold]
    #[inline(never)]
    fn find_or_compile<'t>(
        &'t self,
        stamp: u64,
        scratch: &mut Scratch<'t>,
    ) -> Result<Option<&'t Version>, RequestError> {
        match scratch.holds(stamp) || self.share_local(stamp, scratch) {
            true => Ok(None),
            false => self.compile(stamp, scratch),
        }
    }

    /// Whether the calling thread's place has the version with `stamp`. If so, it makes `scratch`
    /// hold that version.
    #[inline(always)]
    fn share_local<'t>(&'t self, stamp: u64, scratch: &mut Scratch<'t>) -> bool {
        self.versions.is_full()
            && self.local(stamp).is_some_and(|local| scratch.share(local, stamp))
    }

    /// Compiles the version with `stamp`. `None`: `scratch` holds it.
    #[inline(never)]
    fn compile<'t>(
        &'t self,
        stamp: u64,
        scratch: &mut Scratch<'t>,
    ) -> Result<Option<&'t Version>, RequestError> {
        let (policy, terms) = kept::read(self.memory.records(), stamp)?;
        match self.versions.keep(&policy, terms, stamp) {
            Ok(version) => return Ok(Some(version)),
            Err(TableError::Versions | TableError::NoMemory) => {}
            Err(_) => return Err(RequestError::Corrupt),
        }
        let version = self.versions.compile(&policy, terms, stamp).ok_or(RequestError::Corrupt)?;
        scratch.put(version, self.local(stamp).filter(|_| self.versions.is_full()));
        Ok(None)
    }

    /// The calling thread's place for the version with `stamp`.
    fn local(&self, stamp: u64) -> Option<&Local> {
        let policy = policy_of(stamp);
        let current = self.memory.header().current.get(policy as usize)?;
        // Relaxed: it chooses one of two places, and either is right.
        self.locals
            .get(self.memory.thread_lines.number(policy)?, current.load(Ordering::Relaxed) == stamp)
    }

    /// Counts what a request did to the table.
    #[cfg(not(loom))]
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

#[cfg(all(test, not(loom)))]
mod tests;
