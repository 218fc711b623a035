//! Limits in this process's memory.

use super::{check_key, check_name, LimitError, Store, StoreError};
use tollbar::decision::{Decision, Reason, Verdict};
use tollbar::limiter::State;
use tollbar::policy::Policy;
use tollbar::table::{Options, PolicyId, Table, TableError};
use tollbar::units::NEVER;

/// Limits in this process's memory, each with a table of its own. They may have any algorithm, and
/// their times are exact to the nanosecond.
#[derive(Clone, Copy, Debug)]
pub struct MemoryStore {
    options: Options,
}

/// A limit and its keys.
#[derive(Debug)]
pub struct MemoryLimit {
    /// `None`: the limit is 0, which needs no states.
    table: Option<Table>,
}

impl MemoryStore {
    /// Each limit's table has slots for `capacity` keys that are in use at one time, and the
    /// defaults of [`Options::new`].
    pub const fn new(capacity: u64) -> MemoryStore {
        MemoryStore { options: Options::new(capacity) }
    }

    /// Each limit's table is made with `options`.
    pub const fn with(options: Options) -> MemoryStore {
        MemoryStore { options }
    }
}

impl Store for MemoryStore {
    type Limit = MemoryLimit;

    fn limit(&self, name: &str, policy: &Policy) -> Result<MemoryLimit, LimitError> {
        check_name(name)?;
        State::validate(policy).map_err(LimitError::Policy)?;
        if policy.limit == 0 {
            return Ok(MemoryLimit { table: None });
        }
        let table = Table::private(&self.options, core::slice::from_ref(policy)).map_err(
            |why| match why {
                TableError::Policy(why) => LimitError::Policy(why),
                why => LimitError::Table(why),
            },
        )?;
        Ok(MemoryLimit { table: Some(table) })
    }

    fn check(
        &mut self,
        limit: &MemoryLimit,
        key: &[u8],
        cost: u64,
    ) -> Result<Decision, StoreError> {
        check_key(key)?;
        Ok(limit
            .table
            .as_ref()
            .map_or_else(|| closed(cost), |table| table.check(PolicyId::FIRST, key, cost)))
    }

    fn peek(&mut self, limit: &MemoryLimit, key: &[u8], cost: u64) -> Result<Decision, StoreError> {
        check_key(key)?;
        Ok(limit
            .table
            .as_ref()
            .map_or_else(|| closed(cost), |table| table.peek(PolicyId::FIRST, key, cost)))
    }

    fn take_up_to(
        &mut self,
        limit: &MemoryLimit,
        key: &[u8],
        most: u64,
    ) -> Result<u64, StoreError> {
        check_key(key)?;
        Ok(limit.table.as_ref().map_or(0, |table| table.take_up_to(PolicyId::FIRST, key, most)))
    }

    fn reset(&mut self, limit: &MemoryLimit, key: &[u8]) -> Result<(), StoreError> {
        check_key(key)?;
        match &limit.table {
            Some(table) => table.reset(PolicyId::FIRST, key).map(drop).map_err(StoreError::Table),
            None => Ok(()),
        }
    }
}

/// The decision of a limit of 0: allowed for a cost of 0, otherwise never.
pub(super) fn closed(cost: u64) -> Decision {
    let (verdict, retry_after) =
        if cost == 0 { (Verdict::Allowed, 0) } else { (Verdict::Never, NEVER) };
    Decision {
        verdict,
        reason: Reason::of(verdict),
        remaining: 0,
        retry_after,
        reset_after: 0,
        bound: 0,
    }
}
