//! Rules from a file: what they match, count and answer, and what a reload keeps.

mod calendars;
mod classes;
#[path = "../common/mod.rs"]
mod common;
mod decisions;
mod faults;
mod lint;
mod reload;
mod shadows;
mod worst;
