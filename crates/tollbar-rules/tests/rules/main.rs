//! Tests of rules files: which requests a rule matches, which answer a refused request gets, and
//! which states a reload keeps.

mod calendars;
mod classes;
#[path = "../common/mod.rs"]
mod common;
mod costs;
mod customers;
mod decisions;
mod faults;
mod fuzzed;
mod includes;
mod lint;
mod parts;
mod reload;
mod reset;
mod shadows;
mod sizes;
