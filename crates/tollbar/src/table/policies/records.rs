//! The policies of a table, in all their versions.
//!
//! A slot names the *version* of its policy in eight bits. Changing a policy writes a new version beside the old one
//! and makes it current by one swap of the policy's stamp; slots under the old version are brought over when they are
//! next asked for. A stamp is `generation : policy : version`; no two are ever equal.
//!
//! A version's record is shared and holds the policy as plain numbers. What a decision needs is compiled from it in each process
//! ([`super::compiled`]).
//!
//! A process that is killed between claiming a record and publishing it costs the table that record, one of 255.

use super::compiled::Version;
use super::encoding::{decode, encode};
use super::{Keep, ROUNDS};
use crate::policy::Policy;
use crate::sync::{AtomicU64, Ordering};
use crate::table::memory::error::TableError;
use crate::table::memory::layout::{fold, word_of, Header, Record, POLICIES_MOST, RECORD_WORDS, VERSIONS, VERSIONS_AT};
use crate::table::slots::placement::TAG_BITS;
use core::mem::{offset_of, size_of};

/// A stamp that is being written.
const CLAIMED: u64 = 1;

pub(crate) const fn version_of(stamp: u64) -> usize {
    (stamp & 0xff) as usize
}

pub(crate) const fn policy_of(stamp: u64) -> u32 {
    ((stamp >> 8) & 0xff) as u32
}

impl Record {
    /// The policy of the version `stamp`, if it is that version's record and whole.
    pub(crate) fn read(&self, stamp: u64) -> Option<Policy> {
        self.read_kept(stamp).map(|(policy, _)| policy)
    }

    /// [`Record::read`], and how debts are brought to this version.
    pub(crate) fn read_kept(&self, stamp: u64) -> Option<(Policy, Keep)> {
        // Acquire: the words were written before the stamp.
        if stamp <= CLAIMED || self.stamp.load(Ordering::Acquire) != stamp {
            return None;
        }
        let mut words = [0; RECORD_WORDS];
        for (word, from) in words.iter_mut().zip(&self.words) {
            // Acquire: the stamp is looked at again after them.
            *word = from.load(Ordering::Acquire);
        }
        let check = self.check.load(Ordering::Acquire);
        if check != fold(&words) || self.stamp.load(Ordering::Relaxed) != stamp {
            return None;
        }
        decode(&words)
    }

    /// Takes the record, if it is free.
    fn claim(&self) -> bool {
        self.stamp.load(Ordering::Relaxed) == 0
            && self.stamp.compare_exchange(0, CLAIMED, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Writes a claimed record and publishes it.
    fn publish(&self, policy: &Policy, keep: Keep, stamp: u64) {
        let words = encode(policy, keep);
        for (to, word) in self.words.iter().zip(words) {
            to.store(word, Ordering::Relaxed);
        }
        self.check.store(fold(&words), Ordering::Relaxed);
        // Release: with the words.
        self.stamp.store(stamp, Ordering::Release);
    }

    /// Frees the record if it is still that of `stamp`.
    fn free(&self, stamp: u64) {
        let _ = self.stamp.compare_exchange(stamp, 0, Ordering::AcqRel, Ordering::Relaxed);
    }
}

/// Adds `policy` to the table; returns its number.
pub(crate) fn add(header: &Header, records: &[Record; VERSIONS], policy: &Policy) -> Result<u32, TableError> {
    add_unless(header, records, policy, |_| false)
}

/// The first number that has `policy`, which is added if none has.
pub(crate) fn find_or_add(header: &Header, records: &[Record; VERSIONS], policy: &Policy) -> Result<u32, TableError> {
    let has = |current: &AtomicU64| current_policy(records, current).is_some_and(|now| now == *policy);
    // Most often it is there, and no record is needed.
    match header.current.iter().position(has) {
        Some(number) => Ok(number as u32),
        None => add_unless(header, records, policy, has),
    }
}

/// Adds `policy` in the first free place, unless a place before that is the one. Places are taken in their order and never given
/// back, so of two that add at once the later sees what the earlier has added.
fn add_unless(
    header: &Header,
    records: &[Record; VERSIONS],
    policy: &Policy,
    is_it: impl Fn(&AtomicU64) -> bool,
) -> Result<u32, TableError> {
    let (version, record) = claim(header, records)?;
    let mut last = CLAIMED;
    for (number, current) in header.current.iter().enumerate() {
        if current.load(Ordering::Relaxed) == 0 {
            // The stamp names the policy's number, so it is written anew for each number that is tried. No reader knows it yet.
            let stamp = stamp(header, number as u32, version);
            record.publish(policy, Keep::Count, stamp);
            // Release: with the record.
            if current.compare_exchange(0, stamp, Ordering::Release, Ordering::Relaxed).is_ok() {
                return Ok(number as u32);
            }
            last = stamp;
        }
        if is_it(current) {
            record.free(last);
            return Ok(number as u32);
        }
    }
    record.free(last);
    Err(TableError::Policies)
}

/// The policy of this place as it is now.
pub(crate) fn current_policy(records: &[Record; VERSIONS], current: &AtomicU64) -> Option<Policy> {
    // Acquire: with the record.
    let mut stamp = current.load(Ordering::Acquire);
    for _ in 0..ROUNDS {
        let policy = records.get(version_of(stamp)).and_then(|record| record.read(stamp));
        let seen = current.load(Ordering::Acquire);
        // It may be changed, and the record freed, while it is read.
        if policy.is_some() || seen == stamp {
            return policy;
        }
        stamp = seen;
    }
    None
}

/// Makes `policy` the policy of that number, unless it is.
pub(crate) fn change(
    header: &Header,
    records: &[Record; VERSIONS],
    number: u32,
    policy: &Policy,
    keep: Keep,
) -> Result<(), TableError> {
    let current = header.current.get(number as usize).ok_or(TableError::NoSuchPolicy)?;
    let mut seen = current.load(Ordering::Acquire);
    if seen == 0 {
        return Err(TableError::NoSuchPolicy);
    }
    if records.get(version_of(seen)).and_then(|record| record.read(seen)).is_some_and(|now| now == *policy) {
        return Ok(());
    }
    let (version, record) = claim(header, records)?;
    let stamp = stamp(header, number, version);
    record.publish(policy, keep, stamp);
    // Generations of a policy only grow: of two that change it at once the later one stays, and what `former` finds is
    // never made current again.
    for _ in 0..ROUNDS {
        if seen >> 16 >= stamp >> 16 {
            record.free(stamp);
            return Ok(());
        }
        match current.compare_exchange(seen, stamp, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return Ok(()),
            Err(other) => seen = other,
        }
    }
    record.free(stamp);
    Err(TableError::Corrupt)
}

/// Frees the records of versions that are not current. Only after every slot under them has been brought over.
pub(crate) fn free_former(header: &Header, records: &[Record; VERSIONS], former: &[u64; VERSIONS]) {
    for (record, stamp) in records.iter().zip(former) {
        let current = header.current.get(policy_of(*stamp) as usize).map_or(0, |c| c.load(Ordering::Acquire));
        if *stamp > CLAIMED && current != *stamp {
            record.free(*stamp);
        }
    }
}

/// The older half of former versions: a request that sleeps under a freed version has then been asleep for many changes.
pub(crate) fn older(header: &Header, former: &[u64; VERSIONS]) -> [u64; VERSIONS] {
    let half = header.generation.load(Ordering::Relaxed).saturating_sub(VERSIONS as u64 / 2);
    let older = former.map(|stamp| if stamp >> 16 <= half { stamp } else { 0 });
    // Where many policies have been changed once, there may be none.
    if older.iter().any(|stamp| *stamp != 0) {
        older
    } else {
        *former
    }
}

/// The stamps of all versions that have been replaced; 0 elsewhere.
pub(crate) fn former(header: &Header, records: &[Record; VERSIONS]) -> [u64; VERSIONS] {
    let mut former = [0; VERSIONS];
    for (place, record) in former.iter_mut().zip(records) {
        let stamp = record.stamp.load(Ordering::Acquire);
        let current = header.current.get(policy_of(stamp) as usize).map_or(0, |c| c.load(Ordering::Acquire));
        // A version that is newer than the current one is about to become it.
        if stamp > CLAIMED && current != stamp && current >> 16 > stamp >> 16 {
            *place = stamp;
        }
    }
    former
}

/// Whether a table that begins with these bytes has other policies for certain. They are read from a file that others may be
/// changing: where they do not fit together, the answer is no, and who has mapped the file looks again.
pub(crate) fn differ(head: &[u8], policies: &[Policy]) -> bool {
    (0..POLICIES_MOST).any(|number| {
        // A file that ends before is refused for its length.
        let Some(stamp) = word_of(head, offset_of!(Header, current) / 8 + number) else { return false };
        match policies.get(number) {
            None => stamp != 0,
            Some(_) if stamp == 0 => true,
            Some(asked) => policy_in(head, stamp).is_some_and(|found| found != *asked),
        }
    })
}

/// The policy of that version in a table's first bytes.
fn policy_in(head: &[u8], stamp: u64) -> Option<Policy> {
    let at = (VERSIONS_AT + version_of(stamp) * size_of::<Record>()) / 8;
    let mut words = [0; RECORD_WORDS];
    for (n, word) in words.iter_mut().enumerate() {
        *word = word_of(head, at + offset_of!(Record, words) / 8 + n)?;
    }
    let whole = word_of(head, at)? == stamp && word_of(head, at + 1)? == fold(&words);
    whole.then(|| decode(&words)).flatten().map(|(policy, _)| policy)
}

/// Whether there is a version that a slot with this key word can be under.
pub(crate) fn is_known(records: &[Record; VERSIONS], key: u64) -> bool {
    let version = (key >> TAG_BITS) as usize;
    records.get(version).is_some_and(|record| {
        let stamp = record.stamp.load(Ordering::Acquire);
        version_of(stamp) == version
            && record.read_kept(stamp).is_some_and(|(policy, keep)| Version::of(&policy, keep, stamp).is_some())
    })
}

/// How many records are being written, or were when their writer was killed.
pub(crate) fn claimed(records: &[Record; VERSIONS]) -> u64 {
    records.iter().filter(|record| record.stamp.load(Ordering::Relaxed) == CLAIMED).count() as u64
}

/// Frees the records that are being written. Only while no process can be writing one.
pub(crate) fn free_claimed(records: &[Record; VERSIONS]) {
    records.iter().for_each(|record| record.free(CLAIMED));
}

/// A free record, the one that has been free the longest first: a straggler under a freed version then has the
/// longest time to wake up before it is given away.
fn claim<'a>(header: &Header, records: &'a [Record; VERSIONS]) -> Result<(usize, &'a Record), TableError> {
    // As generations are handed out, versions go round. 0 is no version.
    let start = header.generation.load(Ordering::Relaxed) as usize;
    for n in 0..VERSIONS {
        let version = start.wrapping_add(n) & (VERSIONS - 1);
        if let (1.., Some(record)) = (version, records.get(version)) {
            if record.claim() {
                return Ok((version, record));
            }
        }
    }
    Err(TableError::Versions)
}

fn stamp(header: &Header, number: u32, version: usize) -> u64 {
    let generation = header.generation.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
    generation << 16 | u64::from(number & 0xff) << 8 | version as u64
}

const _: () = assert!(core::mem::size_of::<AtomicU64>() == 8);
