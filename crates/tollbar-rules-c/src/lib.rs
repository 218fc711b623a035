//! The C face of rules in a file. `include/tollbar_rules.h` is written from `rules.rs`.
//!
//! Every doc comment in the section is printed into the header and speaks to a C reader.

#![allow(non_camel_case_types)]

mod report;
pub mod rules;
