//! The versions of overrides: which they are, and how many keys have them.
//!
//! Keys with equal overrides share a version. Its record may be freed when no key has it any more,
//! and when every slot under it has been brought over ([`super::records`]). The word of a version
//! of an override:
//!
//! ```text
//! generation of its last change 40 : keys 22 : 1 while its record is being freed : 1
//! ```
//!
//! 0: the version is none of an override. A call takes its reference before it stores the version's
//! stamp for a key, and gives it back after the stamp is gone. So no key has a freed version. If
//! the process is killed in between, the version keeps one reference too many, and its record is
//! not freed before [`Table::repair`](crate::table::Table::repair).

use super::encoding::encode;
use super::record::{claim, policy_of, stamp, version_of, CLAIMED};
use super::terms::Terms;
use super::{Keep, ROUNDS};
use crate::policy::Policy;
use crate::sync::{AtomicU64, Ordering};
use crate::table::memory::error::TableError;
use crate::table::memory::layout::{Header, Record, VERSIONS};
use crate::table::memory::mix::fold;

const IS_OVERRIDE: u64 = 1;
const BEING_FREED: u64 = 2;
const KEY: u64 = 4;
const GENERATION_AT: u32 = 24;
const KEYS: u64 = (1 << GENERATION_AT) - KEY;

/// Whether that version is an override's.
pub(crate) fn is_override(header: &Header, version: usize) -> bool {
    // Relaxed: ordered after the stamp by the caller's Acquire.
    word(header, version).is_some_and(|word| word.load(Ordering::Relaxed) != 0)
}

/// Finds or makes the version for an override of policy `number` and adds one reference to it. The
/// result is the version's stamp. Equal overrides share a version.
pub(crate) fn acquire(
    header: &Header,
    records: &[Record; VERSIONS],
    number: u32,
    policy: &Policy,
    keep: Keep,
) -> Result<u64, TableError> {
    let terms = Terms::of_override(keep);
    let (wanted, check) = (Some((*policy, terms)), fold(&encode(policy, terms)));
    for (version, record) in records.iter().enumerate() {
        // Relaxed: `read_kept` loads it again with Acquire.
        let found = record.stamp.load(Ordering::Relaxed);
        // Most records are another policy's, which the word of their check tells. Relaxed, because
        // `read_kept` compares the policies.
        let is_it = is_override(header, version)
            && policy_of(found) == number
            && record.check.load(Ordering::Relaxed) == check
            && record.read_kept(found) == wanted;
        if is_it && add_key(header, version) {
            // The record may have been freed and written again before the reference was taken.
            // Relaxed: ordered after the reference by its Acquire.
            if record.stamp.load(Ordering::Relaxed) == found {
                return Ok(found);
            }
            release(header, version);
        }
    }
    let (version, record) = claim(header, records)?;
    // The last free record is for changes of policies, each of which frees one.
    if records.iter().skip(1).all(|record| record.stamp.load(Ordering::Relaxed) != 0) {
        record.free(CLAIMED);
        return Err(TableError::Versions);
    }
    let made = stamp(header, number, version);
    if let Some(word) = word(header, version) {
        // The reference is stored before the stamp, because another call could free a published
        // version without a reference. Relaxed: `publish` begins with a fence.
        word.store(IS_OVERRIDE | KEY | made >> 16 << GENERATION_AT, Ordering::Relaxed);
    }
    record.publish(policy, Terms::of_override(keep), made);
    Ok(made)
}

/// Takes another reference of a version that has one.
fn add_key(header: &Header, version: usize) -> bool {
    update(header, version, |seen| {
        (seen & (IS_OVERRIDE | BEING_FREED) == IS_OVERRIDE && seen & KEYS != KEYS)
            .then(|| seen + KEY)
    })
}

/// Gives a reference back.
pub(crate) fn release(header: &Header, version: usize) {
    // Each release gets a new generation. A call that frees a record compares it, and so knows that
    // no key has had the version since.
    let generation = header.generation.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
    update(header, version, |seen| {
        (seen & KEYS != 0)
            .then(|| (seen - KEY) & ((1 << GENERATION_AT) - 1) | generation << GENERATION_AT)
    });
}

/// The stamp of the override's version in `record`, with the generation at which its last reference
/// was given back. 0 if it has references.
pub(crate) fn unused(header: &Header, stamp: u64) -> u64 {
    // Relaxed: the swap in `free` compares it.
    let seen = word(header, version_of(stamp)).map_or(0, |word| word.load(Ordering::Relaxed));
    match seen & (KEYS | BEING_FREED) {
        0 => seen >> GENERATION_AT << 16 | stamp & 0xffff,
        _ => 0,
    }
}

/// Frees the record of an override's version if it has not been used since it was [`unused`].
pub(crate) fn free(header: &Header, record: &Record, unused: u64) {
    let Some(word) = word(header, version_of(unused)) else { return };
    let seen = IS_OVERRIDE | unused >> 16 << GENERATION_AT;
    // Acquire: the record's stamp is that of the version whose last reference was given back. No
    // model notices a weaker ordering, which takes a third call: one that frees the record and one
    // that writes it again, between two loads of `former`.
    if word.compare_exchange(seen, seen | BEING_FREED, Ordering::Acquire, Ordering::Relaxed).is_ok()
    {
        let stamp = record.stamp.load(Ordering::Relaxed);
        // The word becomes 0 before the record is free, because a call that claims the free record
        // may store a new word for an override. Relaxed: the Release that frees the record follows.
        word.store(0, Ordering::Relaxed);
        record.free(stamp);
    }
}

/// Sets the references of each version to those that `keys` counts. Only while no other call uses
/// the table.
pub(crate) fn recount(header: &Header, records: &[Record; VERSIONS], keys: impl Fn(u64) -> u64) {
    for (record, word) in records.iter().zip(&header.references) {
        let stamp = record.stamp.load(Ordering::Relaxed);
        let of_override = record.read_kept(stamp).is_some_and(|(_, terms)| terms.is_override);
        let generation = header.generation.load(Ordering::Relaxed);
        let references = match of_override {
            true => IS_OVERRIDE | generation << GENERATION_AT | ((keys(stamp) * KEY) & KEYS),
            false => 0,
        };
        word.store(references, Ordering::Relaxed);
    }
}

fn word(header: &Header, version: usize) -> Option<&AtomicU64> {
    header.references.get(version)
}

fn update(header: &Header, version: usize, new: impl Fn(u64) -> Option<u64>) -> bool {
    let Some(word) = word(header, version) else { return false };
    let mut seen = word.load(Ordering::Relaxed);
    for _ in 0..ROUNDS {
        let Some(next) = new(seen) else { return false };
        // Acquire: a call that has taken a reference reads the stamp afterwards. Release: so does
        // the call that frees the record after the last reference. No model notices a weaker
        // ordering: it takes a third call, which writes the record for another override.
        match word.compare_exchange(seen, next, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => return true,
            Err(other) => seen = other,
        }
    }
    false
}
