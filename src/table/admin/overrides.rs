//! Keys with a policy of their own.

use crate::policy::Policy;
use crate::table::decide::Table;
use crate::table::memory::error::{RequestError, TableError};
use crate::table::policies::{Keep, PolicyId, ROUNDS};

/// A key with a policy of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Override {
    /// The policy that requests for the key name, and under which its decisions count.
    pub policy: PolicyId,
    /// The key's hash under that policy ([`Table::hash`]).
    pub hash: u64,
    /// The key's own policy, which decides.
    pub of: Policy,
}

/// An iterator over the overrides of a table. An override that a call sets or clears meanwhile may
/// be missing.
#[derive(Debug)]
pub struct Overrides<'a> {
    table: &'a Table,
    next: u64,
}

impl Table {
    /// Gives `key` a policy of its own: requests for the key that name `policy` are decided under
    /// `of`, in all processes from now on, until [`Table::clear_override`]. A key that has an
    /// override already gets this one. The decisions count under `policy`.
    ///
    /// The override is in the table's memory, with the hash of the key, so it needs no slot, and
    /// stays as long as the table does. [`Options::overrides`](crate::table::Options) says how many
    /// keys may have one. Equal overrides share one of the table's 255 versions of policies, so
    /// some 250 overrides of one policy may differ.
    ///
    /// `keep` says what the key keeps of its debt, when the override begins and when it ends. It
    /// changes at the key's next request, as with [`Table::set_policy`], whose bound holds, too. A
    /// receipt from before a change of the key's policy gives nothing back.
    ///
    /// While a table has overrides, each of its requests looks its key up in them.
    ///
    /// ```
    /// use tollbar::table::{Keep, Options, PolicyId, Table};
    ///
    /// let table = Table::private(&Options::new(10_000), &["10/s".parse()?])?;
    /// table.set_override(PolicyId::FIRST, b"acme", &"1000/s burst 50".parse()?, Keep::Count)?;
    /// let passed = |key: &[u8]| (0..100).filter(|_| table.check_at(PolicyId::FIRST, key, 1, 1).is_allowed()).count();
    /// assert_eq!((passed(b"acme"), passed(b"umbrella")), (50, 10));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`TableError::Overrides`] if the table has no room for another one. Those of
    /// [`Table::set_policy`]. [`RequestError::MissingKey`] for an empty key. Nothing has changed.
    pub fn set_override(
        &self,
        policy: PolicyId,
        key: &[u8],
        of: &Policy,
        keep: Keep,
    ) -> Result<(), TableError> {
        let hash = self.hash_with_bytes(policy, key)?;
        self.set_override_of(policy, hash, of, keep)?;
        Ok(self.reset_if(keep, policy, key)?)
    }

    /// Puts `key` back under its policy. Returns whether it had an override.
    ///
    /// # Errors
    /// [`RequestError::NoSuchPolicy`], and [`RequestError::MissingKey`] for an empty key.
    pub fn clear_override(&self, policy: PolicyId, key: &[u8]) -> Result<bool, RequestError> {
        let hash = self.hash_with_bytes(policy, key)?;
        let own = self
            .policies
            .override_of(policy.number(), hash)
            .and_then(|stamp| self.policies.read_version(stamp));
        let had = self.policies.clear_override(hash);
        if let Some((_, _, terms)) = own {
            self.reset_if(terms.keep, policy, key)?;
        }
        Ok(had)
    }

    /// The policy that decides requests for `key`: its own, or else the table's of that number.
    ///
    /// # Errors
    /// Those of [`Table::override_of`] and [`Table::policy`].
    pub fn policy_of(&self, policy: PolicyId, key: &[u8]) -> Result<Policy, RequestError> {
        match key.is_empty() {
            true => self.policy(policy),
            false => self.override_of(policy, key)?.map_or_else(|| self.policy(policy), Ok),
        }
    }

    /// The policy that `key` has of its own.
    ///
    /// # Errors
    /// Those of [`Table::clear_override`], and [`RequestError::Corrupt`].
    pub fn override_of(
        &self,
        policy: PolicyId,
        key: &[u8],
    ) -> Result<Option<Policy>, RequestError> {
        let hash = self.hash_with_bytes(policy, key)?;
        // Another call may change the override, and a third one free its version, before it is
        // read.
        for _ in 0..ROUNDS {
            let Some(stamp) = self.policies.override_of(policy.number(), hash) else {
                return Ok(None);
            };
            if let Some((_, of, _)) = self.policies.read_version(stamp) {
                return Ok(Some(of));
            }
        }
        Err(RequestError::Corrupt)
    }

    /// The table's overrides.
    pub fn overrides(&self) -> Overrides<'_> {
        Overrides { table: self, next: 0 }
    }

    /// The first override in place `from` or after it, and the place after that.
    pub fn next_override(&self, from: u64) -> Option<(Override, u64)> {
        let (policy, hash, of, next) = self.policies.next_override(from)?;
        Some((Override { policy: PolicyId::new(policy), hash, of }, next))
    }

    /// Lets the key begin anew if an override that has begun or ended keeps nothing. A key without
    /// a request until the next change could come back to the version that its slot names, and that
    /// change would convert nothing.
    #[inline(never)]
    fn reset_if(&self, keep: Keep, policy: PolicyId, key: &[u8]) -> Result<(), RequestError> {
        if keep == Keep::Reset {
            self.reset_at(policy, key, self.policies.memory.newest_time())?;
        }
        Ok(())
    }

    fn set_override_of(
        &self,
        policy: PolicyId,
        hash: u64,
        of: &Policy,
        keep: Keep,
    ) -> Result<(), TableError> {
        self.check_policy(of)?;
        self.free_versions(|| self.policies.set_override(policy.number(), hash, of, keep))
    }

    /// Copies the overrides of `from`, except for keys that have one in this table.
    pub(super) fn copy_overrides(&self, from: &Table) -> Result<(), TableError> {
        for (hash, stamp) in from.policies.overrides() {
            let Some((number, policy, terms)) = from.policies.read_version(stamp) else { continue };
            if self.policies.override_of(number, hash).is_none() {
                self.set_override_of(PolicyId::new(number), hash, &policy, terms.keep)?;
            }
        }
        Ok(())
    }

    /// The hash of a non-empty key.
    fn hash_with_bytes(&self, policy: PolicyId, key: &[u8]) -> Result<u64, RequestError> {
        match key {
            [] => Err(RequestError::MissingKey),
            key => self.hash(policy, key),
        }
    }
}

impl Iterator for Overrides<'_> {
    type Item = Override;

    fn next(&mut self) -> Option<Override> {
        let (found, next) = self.table.next_override(self.next)?;
        self.next = next;
        Some(found)
    }
}
