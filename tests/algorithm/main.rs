//! Tests of the algorithms: they decide as their definitions say, keep their bounds, and store the
//! state words that docs/internals/state-word.md promises.

mod ban;
mod buckets;
mod calendar;
mod charge;
mod classes;
#[path = "../common/mod.rs"]
mod common;
mod curve_fits;
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
mod pair_innocents;
mod quota;
mod rates;
mod rounded_bound;
mod rules;
mod schedule;
mod state_word;
mod traps;
mod units;
mod vectors;
mod wide;
mod windows;
mod worst_case;
mod worst_case_random;
