//! The C face: the only `extern "C"`. One file a section of `include/tollbar.h`; the order of the sections is
//! in `xtask/src/header.rs`.
//!
//! Every doc comment in the sections is printed into the header and speaks to a C reader.

#![allow(non_camel_case_types)]

mod boundary;

pub mod cell;
pub mod client;
pub mod clock;
pub mod counts;
pub mod decide;
pub mod hot_keys;
pub mod keyed;
pub mod lease;
pub mod limiter;
pub mod policy;
pub mod prefix;
pub mod status;
pub mod striped;
pub mod survey;
pub mod table;
pub mod transfer;
pub mod version;
