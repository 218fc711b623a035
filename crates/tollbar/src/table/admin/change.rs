//! Adding and changing policies while the table is in use.

use crate::policy::Policy;
use crate::sync::Ordering;
use crate::table::decide::Table;
use crate::table::memory::error::TableError;
use crate::table::policies::multi_word::MultiWord;
use crate::table::policies::{records, Keep, PolicyId};

impl Table {
    /// The policy of that number, as it is now.
    pub fn policy(&self, policy: PolicyId) -> Result<Policy, TableError> {
        match self.policies.memory.header().current.get(policy.number() as usize) {
            Some(current) if current.load(Ordering::Acquire) != 0 => {
                records::current_policy(self.policies.memory.records(), current).ok_or(TableError::Corrupt)
            }
            _ => Err(TableError::NoSuchPolicy),
        }
    }

    /// How many policies there are.
    pub fn policies(&self) -> u32 {
        self.policies.memory.header().current.iter().filter(|stamp| stamp.load(Ordering::Relaxed) != 0).count() as u32
    }

    /// Adds a policy while the table is in use; returns its number.
    pub fn add_policy(&self, policy: &Policy) -> Result<PolicyId, TableError> {
        self.check_policy(policy)?;
        self.free_versions(|| records::add(self.policies.memory.header(), self.policies.memory.records(), policy))
            .map(PolicyId::new)
    }

    /// The number of the first policy that equals this one in every field, which is added if there is none. Of threads and
    /// processes that ask for the same policy at once, all get the same number.
    pub fn find_or_add_policy(&self, policy: &Policy) -> Result<PolicyId, TableError> {
        self.check_policy(policy)?;
        self.free_versions(|| {
            records::find_or_add(self.policies.memory.header(), self.policies.memory.records(), policy)
        })
        .map(PolicyId::new)
    }

    /// Changes a policy while the table is in use, in all processes at once. A key keeps the permits that it has left, cut to
    /// the new burst ([`Keep::Count`]): it is carried over when it is next asked for. In any window of time with one change no
    /// more is admitted than the two policies' bounds together; with several, than those of all.
    ///
    /// Where the new policy would forget a key's debt sooner, the key moves to another slot, and its old one stays taken until
    /// its time, as after a reset. If all its other places are taken, its debt stays what it was in time.
    ///
    /// Once in some hundred changes this looks at every slot, and what it finds under former versions keeps its time, too.
    pub fn set_policy(&self, id: PolicyId, policy: &Policy) -> Result<(), TableError> {
        self.set_policy_keeping(id, policy, Keep::Count)
    }

    /// [`Table::set_policy`] with the choice of what keys keep of their debts.
    pub fn set_policy_keeping(&self, id: PolicyId, policy: &Policy, keep: Keep) -> Result<(), TableError> {
        if self.policy(id)? == *policy {
            return Ok(());
        }
        self.check_policy(policy)?;
        self.free_versions(|| {
            records::change(self.policies.memory.header(), self.policies.memory.records(), id.number(), policy, keep)
        })
    }

    /// Whether keys of this table can be under this policy, too.
    fn check_policy(&self, policy: &Policy) -> Result<(), TableError> {
        crate::limiter::State::validate_on(policy, self.clock)?;
        match MultiWord::new(policy)? {
            None if self.policies.memory.fixed.side == 0 => Ok(()),
            _ => Err(TableError::Mixed),
        }
    }

    /// `change`, after freeing former versions if there are no free records.
    fn free_versions<T>(&self, change: impl Fn() -> Result<T, TableError>) -> Result<T, TableError> {
        match change() {
            Err(TableError::Versions) => {
                let former = records::former(self.policies.memory.header(), self.policies.memory.records());
                let mut from = Some(0);
                while let Some(next) = from {
                    from = self.sweep_slots(next, 4096, self.policies.memory.newest_time(), true).next;
                }
                let older = records::older(self.policies.memory.header(), &former);
                records::free_former(self.policies.memory.header(), self.policies.memory.records(), &older);
                change()
            }
            result => result,
        }
    }
}
