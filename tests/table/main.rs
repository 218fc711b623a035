//! Tests of tables: a table decides for each key as a limiter would, and a change of policy, a full
//! table or a damaged slot keeps its bound.

#[path = "../common/mod.rs"]
mod common;
mod table;
mod table_any_change;
mod table_booking;
mod table_change;
mod table_change_oracle;
mod table_full;
mod table_fuzz;
mod table_hot_keys;
mod table_inherit;
mod table_innocents;
mod table_overrides;
mod table_overrides_oracle;
mod table_policies;
mod table_reasons;
mod table_refusals;
mod table_single;
mod table_statistics;
mod table_stress;
mod table_transfer;
mod table_versions;
