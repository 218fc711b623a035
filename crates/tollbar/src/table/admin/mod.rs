//! Calls for a whole table: making and opening it, statistics, changes of policies, sweeping, repair, copies.

mod change;
pub(super) mod copy;
mod files;
pub(super) mod health;
pub(super) mod open;
pub(super) mod statistics;
pub(super) mod sweep;
