//! Whether two key words name versions of one policy.

use super::local::Scratch;
use super::record::version_of;
use super::Policies;
use crate::sync::Ordering;
use crate::table::memory::slot::{TAG, TAG_BITS};
use crate::table::slots::candidates::hash_of_tag;
use crate::table::slots::states::Relation;

impl Policies {
    /// [`States::relation`](crate::table::slots::states::States::relation), for a request under the
    /// policy `number`.
    pub(crate) fn relation(&self, found: u64, key: u64, number: u32) -> Relation {
        // A request may have slept until its version's record was freed, or was taken by another
        // policy. It must not insert its key beside the existing one, so `Same` makes it try again.
        // If the version is current and cannot be read, its record is damaged, and trying again
        // would not end.
        let (mut scratch, mut other) = (Scratch::new(), Scratch::new());
        let Some(asked) = self.named(key, &mut scratch) else {
            return if self.is_damaged(key) { Relation::Other } else { Relation::Same };
        };
        let stamp = asked.stamp.load(Ordering::Relaxed);
        if asked.number != number || self.stamp_for(number, hash_of_tag(key & TAG)) != stamp {
            return Relation::Same;
        }
        match self.named(found, &mut other) {
            Some(found) if found.number != number => Relation::Other,
            Some(found) if found.stamp.load(Ordering::Relaxed) != stamp => Relation::Former,
            Some(_) => Relation::Same,
            None => Relation::Other,
        }
    }

    /// Whether a key word names a version that is current and cannot be read. A record that another
    /// version has taken is not damaged, although [`Policies::named`] finds it unfinished.
    #[cold]
    fn is_damaged(&self, key: u64) -> bool {
        let version = (key >> TAG_BITS) as usize;
        self.memory.header().current.iter().any(|current| {
            // Acquire: the writer publishes a version's record before it stores the stamp here. The
            // second load comes after the Acquire loads of the record.
            let stamp = current.load(Ordering::Acquire);
            version_of(stamp) == version
                && self.version(stamp, &mut Scratch::new()).is_err()
                && current.load(Ordering::Relaxed) == stamp
        })
    }
}
