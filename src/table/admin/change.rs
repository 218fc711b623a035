//! Adding and changing policies while the table is in use.

use crate::policy::Policy;
use crate::sync::{fence, Ordering};
use crate::table::decide::Table;
use crate::table::memory::error::{RequestError, TableError};
use crate::table::policies::multi_word::MultiWord;
use crate::table::policies::{records, Keep, PolicyId};

impl Table {
    /// The current policy of that number.
    ///
    /// # Errors
    /// [`RequestError::NoSuchPolicy`]. [`RequestError::Corrupt`] if the policy's record is damaged.
    pub fn policy(&self, policy: PolicyId) -> Result<Policy, RequestError> {
        // In the common case this process has compiled it, and does not read the whole record.
        if let Some(known) = self.policies.known_policy(policy) {
            return Ok(*known);
        }
        match self.policies.memory.header().current.get(policy.number() as usize) {
            // Relaxed: `current_policy` loads the stamp again.
            Some(current) if current.load(Ordering::Relaxed) != 0 => {
                records::current_policy(self.policies.memory.records(), current)
                    .ok_or(RequestError::Corrupt)
            }
            _ => Err(RequestError::NoSuchPolicy),
        }
    }

    /// The number of policies.
    pub fn policies(&self) -> u32 {
        self.policies
            .memory
            .header()
            .current
            .iter()
            .filter(|stamp| stamp.load(Ordering::Relaxed) != 0)
            .count() as u32
    }

    /// Adds a policy while the table is in use, and returns its number.
    ///
    /// # Errors
    /// [`TableError::Policy`] for an invalid policy, [`TableError::Mixed`] if it or the table's
    /// policy is a sliding window or log and the slots have no room for others
    /// ([`Options::room`](crate::table::Options)), [`TableError::SlotRoom`] if they have too little
    /// room for it, [`TableError::Policies`] if the table has 128 policies,
    /// [`TableError::Versions`] if no version is free. The table stays as it was.
    pub fn add_policy(&self, policy: &Policy) -> Result<PolicyId, TableError> {
        self.check_policy(policy)?;
        self.free_versions(|| {
            records::add(self.policies.memory.header(), self.policies.memory.records(), policy)
        })
        .map(PolicyId::new)
    }

    /// Returns the number of the first policy that equals this one in every field, and adds it if
    /// there is none. If several threads or processes ask for one policy at once, all get the same
    /// number.
    ///
    /// # Errors
    /// Those of [`Table::add_policy`].
    pub fn find_or_add_policy(&self, policy: &Policy) -> Result<PolicyId, TableError> {
        self.check_policy(policy)?;
        self.free_versions(|| {
            records::find_or_add(
                self.policies.memory.header(),
                self.policies.memory.records(),
                policy,
            )
        })
        .map(PolicyId::new)
    }

    /// Changes a policy for all processes while the table is in use. A key comes under the new
    /// policy at its next request, and keeps the number of permits that it has left, up to the new
    /// burst ([`Keep::Count`]). In any interval a key is admitted at most the sum of the bounds of
    /// all policies that were in force in that interval, each as often as it came into force.
    ///
    /// A slot's time of expiry must not become earlier. So a key that would expire sooner under the
    /// new policy moves to another slot, and no key gets its old slot before that slot's time of
    /// expiry. If no other slot is free, the key keeps its debt as a time.
    ///
    /// Any algorithm may become any other. From and to sliding windows and logs the table needs
    /// room ([`Options::room`](crate::table::Options)). There the permits that a key has left stay,
    /// and all others count as used at the key's first request after the change.
    ///
    /// About one call in a hundred reads every slot, and converts the keys that it finds under
    /// former versions.
    ///
    /// # Errors
    /// [`RequestError::NoSuchPolicy`], and those of [`Table::add_policy`]. The policy stays as it
    /// was.
    pub fn set_policy(&self, id: PolicyId, policy: &Policy) -> Result<(), TableError> {
        self.set_policy_keeping(id, policy, Keep::Count)
    }

    /// [`Table::set_policy`]. `keep` says what keys keep of their debts. If the policy is the
    /// current one, the call changes nothing, unless `keep` is [`Keep::Reset`]: then all keys
    /// without an override begin anew. That call reads every slot, so that a key without a request
    /// until the next change begins anew, too.
    ///
    /// # Errors
    /// Those of [`Table::set_policy`].
    pub fn set_policy_keeping(
        &self,
        id: PolicyId,
        policy: &Policy,
        keep: Keep,
    ) -> Result<(), TableError> {
        if self.policy(id)? == *policy && keep != Keep::Reset {
            return Ok(());
        }
        self.check_policy(policy)?;
        self.free_versions(|| {
            records::change(
                self.policies.memory.header(),
                self.policies.memory.records(),
                id.number(),
                policy,
                keep,
            )
        })?;
        if keep == Keep::Reset {
            self.reset_former_keys(id);
        }
        Ok(())
    }

    /// Exempts `key` from `policy`: the table admits it always and charges it nothing. About 1,600
    /// keys of a table can be exempt at one time.
    ///
    /// # Errors
    /// [`RequestError::NoSuchPolicy`]. [`TableError::Exempt`] if the set has no room for the key.
    pub fn exempt(&self, policy: PolicyId, key: &[u8]) -> Result<(), TableError> {
        self.policies.exempt(self.hash(policy, key)?)
    }

    /// Ends the exemption of `key`. Returns whether the key was exempt.
    ///
    /// # Errors
    /// [`RequestError::NoSuchPolicy`].
    pub fn unexempt(&self, policy: PolicyId, key: &[u8]) -> Result<bool, RequestError> {
        Ok(self.policies.unexempt(self.hash(policy, key)?))
    }

    /// Checks that keys of this table can be under this policy.
    pub(super) fn check_policy(&self, policy: &Policy) -> Result<(), TableError> {
        crate::limiter::State::validate_on(policy, self.clock)?;
        let fixed = &self.policies.memory.fixed;
        match MultiWord::new(policy, fixed.has_room())? {
            Some(policy) if fixed.has_room() => policy.fits_room(fixed.room),
            None if !fixed.is_multi_word() => Ok(()),
            _ => Err(TableError::Mixed),
        }
    }

    /// Frees the records of former versions if none is free, and then makes `change`.
    pub(super) fn free_versions<T>(
        &self,
        change: impl Fn() -> Result<T, TableError>,
    ) -> Result<T, TableError> {
        match change() {
            Err(TableError::Versions) => {
                let former =
                    records::former(self.policies.memory.header(), self.policies.memory.records());
                // The changes of the policies come before the sweep's loads of the slots:
                // `slots::protocol::reserve`. No model notices the fence, because each has a sweep of
                // its own that begins with one.
                fence(Ordering::SeqCst);
                let mut from = Some(0);
                while let Some(next) = from {
                    from =
                        self.sweep_slots(next, 4096, self.policies.memory.newest_time(), true).next;
                }
                let older = records::older(self.policies.memory.header(), &former);
                records::free_former(
                    self.policies.memory.header(),
                    self.policies.memory.records(),
                    &older,
                );
                change()
            }
            result => result,
        }
    }
}
