//! Calls for a whole table: make, open, statistics, changes of policies, sweep, repair, copy.

mod change;
pub(super) mod copy;
mod files;
pub(super) mod health;
pub(super) mod open;
pub(super) mod overrides;
pub(super) mod refusals;
pub(super) mod statistics;
pub(super) mod sweep;
