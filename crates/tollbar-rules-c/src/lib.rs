//! The C face of rules in a file. `include/tollbar_rules.h` is written from `rules.rs` and
//! `settle.rs`.
//!
//! Every doc comment in the two sections is printed into the header and speaks to a C reader.

#![allow(non_camel_case_types)]

mod report;
pub mod rules;
pub mod settle;
