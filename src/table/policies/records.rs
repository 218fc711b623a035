//! The records of policies' versions in a table's memory.
//!
//! A slot names the *version* of its policy in eight bits. A change of a policy writes a new
//! version beside the old one and makes it current by one swap of the policy's stamp. A key under
//! the old version is converted at its next request. A stamp is `generation : policy : version`;
//! all stamps of a table are different.
//!
//! A version's record is shared and holds the policy as plain numbers. Each process compiles the
//! record before it decides under it ([`super::compiled`]).
//!
//! A process that is killed between claiming a record and publishing it costs the table that
//! record, one of 255.

use super::compiled::Version;
#[cfg(not(loom))]
use super::encoding::decode;
use super::record::{claim, policy_of, stamp, version_of, CLAIMED};
use super::terms::Terms;
use super::{references, Keep, ROUNDS};
use crate::policy::Policy;
use crate::sync::{AtomicU64, Ordering};
use crate::table::memory::error::{RequestError, TableError};
#[cfg(not(loom))]
use crate::table::memory::layout::{word_of, POLICIES_MOST, RECORD_WORDS, VERSIONS_AT};
use crate::table::memory::layout::{Header, Record, VERSIONS};
#[cfg(not(loom))]
use crate::table::memory::mix::fold;
use crate::table::memory::slot::TAG_BITS;
#[cfg(not(loom))]
use core::mem::{offset_of, size_of};

/// Adds `policy` to the table; returns its number.
pub(crate) fn add(
    header: &Header,
    records: &[Record; VERSIONS],
    policy: &Policy,
) -> Result<u32, TableError> {
    add_unless(header, records, policy, |_| false)
}

/// The first number whose policy equals `policy`. If there is none, it adds the policy.
pub(crate) fn find_or_add(
    header: &Header,
    records: &[Record; VERSIONS],
    policy: &Policy,
) -> Result<u32, TableError> {
    let has =
        |current: &AtomicU64| current_policy(records, current).is_some_and(|now| now == *policy);
    // In the common case the table has the policy, and no record is claimed.
    match header.current.iter().position(has) {
        Some(number) => Ok(number as u32),
        None => add_unless(header, records, policy, has),
    }
}

/// Adds `policy` under the first free number, unless `is_it` accepts a policy with a lower number.
/// Numbers are taken in their order and never become free. So if two calls add at once, the later
/// one sees the earlier one's policy.
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
            // The stamp names the policy's number, so each number that is tried needs a new stamp.
            // No reader knows the record yet.
            let stamp = stamp(header, number as u32, version);
            record.publish(policy, Terms::of_policy(Keep::Count), stamp);
            // Release: a reader of the current stamp sees the record.
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

/// The current policy of the number whose stamp is `current`.
pub(crate) fn current_policy(records: &[Record; VERSIONS], current: &AtomicU64) -> Option<Policy> {
    // Acquire: the writer publishes the record before it stores the stamp here.
    let mut stamp = current.load(Ordering::Acquire);
    for _ in 0..ROUNDS {
        let policy = records.get(version_of(stamp)).and_then(|record| record.read(stamp));
        // Acquire: as above. No model notices a weaker ordering: it takes a change beside a call
        // that adds a policy.
        let seen = current.load(Ordering::Acquire);
        // While this call reads the record, another may change the policy and free the record.
        if policy.is_some() || seen == stamp {
            return policy;
        }
        stamp = seen;
    }
    None
}

/// Makes `policy` the current policy of that number. It does nothing if they are equal, unless the
/// keys are to begin anew.
pub(crate) fn change(
    header: &Header,
    records: &[Record; VERSIONS],
    number: u32,
    policy: &Policy,
    keep: Keep,
) -> Result<(), TableError> {
    let current = header.current.get(number as usize).ok_or(RequestError::NoSuchPolicy)?;
    // Relaxed, also on failure of the swap: `read` orders itself by the record's stamp.
    let mut seen = current.load(Ordering::Relaxed);
    if seen == 0 {
        return Err(RequestError::NoSuchPolicy.into());
    }
    let is_equal =
        records.get(version_of(seen)).and_then(|record| record.read(seen)) == Some(*policy);
    if is_equal && keep != Keep::Reset {
        return Ok(());
    }
    let (version, record) = claim(header, records)?;
    let stamp = stamp(header, number, version);
    record.publish(policy, Terms::of_policy(keep), stamp);
    // A policy's generation only grows. So of two calls that change it at once the one with the
    // later stamp wins, and no version that `former` returns becomes current again.
    for _ in 0..ROUNDS {
        if seen >> 16 >= stamp >> 16 {
            record.free(stamp);
            return Ok(());
        }
        match current.compare_exchange(seen, stamp, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => return Ok(()),
            Err(other) => seen = other,
        }
    }
    record.free(stamp);
    Err(TableError::Corrupt)
}

/// Frees the records in `former` that are not current. The caller must have converted every slot
/// under them before.
pub(crate) fn free_former(header: &Header, records: &[Record; VERSIONS], former: &[u64; VERSIONS]) {
    for (version, (record, stamp)) in records.iter().zip(former).enumerate() {
        if references::is_override(header, version) {
            references::free(header, record, *stamp);
            continue;
        }
        // Relaxed: by an older stamp the record stays.
        let current =
            header.current.get(policy_of(*stamp) as usize).map_or(0, |c| c.load(Ordering::Relaxed));
        if *stamp > CLAIMED && current != *stamp {
            record.free(*stamp);
        }
    }
}

/// The older half of the former versions, so that a request whose version is freed has slept
/// through many changes. If all former versions are newer, it returns all of them.
pub(crate) fn older(header: &Header, former: &[u64; VERSIONS]) -> [u64; VERSIONS] {
    let half = header.generation.load(Ordering::Relaxed).saturating_sub(VERSIONS as u64 / 2);
    let older = former.map(|stamp| if stamp >> 16 <= half { stamp } else { 0 });
    // After one change of each of many policies no former version may be old.
    if older.iter().any(|stamp| *stamp != 0) {
        older
    } else {
        *former
    }
}

/// The stamps of the records whose versions have been replaced, and 0 for all others.
pub(crate) fn former(header: &Header, records: &[Record; VERSIONS]) -> [u64; VERSIONS] {
    let mut former = [0; VERSIONS];
    for (version, (place, record)) in former.iter_mut().zip(records).enumerate() {
        // Acquire: the first reference is stored before the stamp. No model notices a weaker
        // ordering, because the fence before the sweep orders the second look at the reference.
        let stamp = record.stamp.load(Ordering::Acquire);
        if references::is_override(header, version) {
            *place = if stamp > CLAIMED { references::unused(header, stamp) } else { 0 };
            continue;
        }
        // Relaxed: by an older stamp the record stays.
        let current =
            header.current.get(policy_of(stamp) as usize).map_or(0, |c| c.load(Ordering::Relaxed));
        // A version that is newer than the current one is about to become current.
        if stamp > CLAIMED && current != stamp && current >> 16 > stamp >> 16 {
            *place = stamp;
        }
    }
    former
}

/// Whether a table that begins with these bytes certainly has other policies than `policies`. Other
/// processes may change the file during the read. If the bytes do not fit together, it returns
/// false, and the caller compares again after it has mapped the file.
#[cfg(not(loom))]
pub(crate) fn differ(head: &[u8], policies: &[Policy]) -> bool {
    (0..POLICIES_MOST).any(|number| {
        // The caller refuses a shorter file for its length.
        let Some(stamp) = word_of(head, offset_of!(Header, current) / 8 + number) else {
            return false;
        };
        match policies.get(number) {
            None => stamp != 0,
            Some(_) if stamp == 0 => true,
            Some(asked) => policy_in(head, stamp).is_some_and(|found| found != *asked),
        }
    })
}

/// The policy of the version with `stamp` in a table's first bytes.
#[cfg(not(loom))]
fn policy_in(head: &[u8], stamp: u64) -> Option<Policy> {
    let at = (VERSIONS_AT + version_of(stamp) * size_of::<Record>()) / 8;
    let mut words = [0; RECORD_WORDS];
    for (n, word) in words.iter_mut().enumerate() {
        *word = word_of(head, at + offset_of!(Record, words) / 8 + n)?;
    }
    let whole = word_of(head, at)? == stamp && word_of(head, at + 1)? == fold(&words);
    whole.then(|| decode(&words)).flatten().map(|(policy, _)| policy)
}

/// Whether the record of the version that this key word names is valid.
pub(crate) fn is_known(records: &[Record; VERSIONS], key: u64) -> bool {
    let version = (key >> TAG_BITS) as usize;
    records.get(version).is_some_and(|record| {
        // Relaxed: `read_kept` loads the stamp again.
        let stamp = record.stamp.load(Ordering::Relaxed);
        version_of(stamp) == version
            && record
                .read_kept(stamp)
                .is_some_and(|(policy, terms)| Version::of(&policy, terms, stamp, false).is_some())
    })
}

/// The number of records that a writer has claimed and not published. The writer may have been
/// killed.
pub(crate) fn claimed(records: &[Record; VERSIONS]) -> u64 {
    records.iter().filter(|record| record.stamp.load(Ordering::Relaxed) == CLAIMED).count() as u64
}

/// Frees the claimed records. The caller must make sure that no process writes one.
pub(crate) fn free_claimed(records: &[Record; VERSIONS]) {
    records.iter().for_each(|record| record.free(CLAIMED));
}
