//! A key's hash, and the buckets in which its slot may be.

use super::super::memory::slot::Bucket;
use super::super::policies::compiled::Version;
use super::super::slots::candidates::tag;
use super::Table;
use rapidhash::v3::{rapidhash_v3_inline, RapidSecrets};

/// A hashed key under a version of its policy. No access has touched its buckets yet.
#[derive(Clone, Copy)]
pub(super) struct Lookup<'a> {
    pub(super) version: &'a Version,
    /// The key's first two buckets.
    pub(super) first: &'a Bucket,
    pub(super) second: &'a Bucket,
    /// The key word of the key's slot.
    pub(super) key: u64,
}

/// The most bytes of a key that is hashed inline.
pub(super) const SHORT: usize = 16;

impl Table {
    /// Finds the first two buckets of a key's hash under its policy, without touching them.
    #[inline(always)]
    pub(super) fn lookup<'a>(&'a self, version: &'a Version, hash: u64) -> Lookup<'a> {
        let (first, second) = self.slots.first_two(hash);
        Lookup { version, first, second, key: version.key | tag(hash) }
    }

    /// The hash of a key under the table's seed. It uses rapidhash's second mixing step, because without it some bits
    /// are visibly uneven for sequences of addresses.
    #[inline(always)]
    pub(in crate::table) fn hash_bytes(&self, key: &[u8]) -> u64 {
        if key.len() > SHORT {
            return self.hash_out_of_line(key);
        }
        rapidhash_v3_inline::<true, true, false>(key, &self.secrets)
    }

    /// [`Table::hash_bytes`] by a call of [`hash_long`], for long keys and for rare callers.
    #[inline(always)]
    pub(in crate::table) fn hash_out_of_line(&self, key: &[u8]) -> u64 {
        hash_long(key, &self.secrets)
    }
}

/// The hash of a key of any length, compiled for long ones.
#[inline(never)]
pub(crate) fn hash_long(key: &[u8], secrets: &RapidSecrets) -> u64 {
    rapidhash_v3_inline::<true, true, false>(key, secrets)
}
