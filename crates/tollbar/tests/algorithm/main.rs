//! The algorithms: each against its definition, its bounds, its state word and the times at which it answers.

mod ban;
mod buckets;
mod calendar;
mod charge;
mod classes;
#[path = "../common/mod.rs"]
mod common;
mod curves;
mod end_of_time;
mod expiry;
mod invariants;
mod leaving;
#[path = "../oracle/mod.rs"]
mod oracle;
mod oracle_buckets;
mod oracle_windows;
mod order;
mod pacing;
mod pair;
mod quota;
mod rates;
mod rules;
mod schedule;
mod state_word;
mod traps;
mod units;
mod vectors;
mod wide;
mod windows;
