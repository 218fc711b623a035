//! The C face of tollbar. Each file is one section of `include/tollbar.h`;
//! `tools/xtask/src/header.rs` has the order of the sections.
//!
//! Every doc comment in the sections is printed into the header and speaks to a C reader.

#![no_std]
#![allow(non_camel_case_types)]

#[cfg(not(unix))]
compile_error!("tollbar-c needs a Unix: this target has no mmap");

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

pub mod adaptive;
pub mod boundary;
#[cfg(all(feature = "freestanding", not(feature = "std"), not(test)))]
mod freestanding;

pub mod cell;
pub mod charge;
pub mod check;
pub mod classes;
pub mod clock;
pub mod counts;
pub mod decide;
pub mod decision;
pub mod hierarchy;
pub mod http;
pub mod in_flight;
pub mod keyed;
pub mod limiter;
pub mod meter;
pub mod metrics;
pub mod overrides;
pub mod pacing;
pub mod policy;
pub mod prefix;
pub mod queue;
pub mod receipts;
pub mod refusals;
pub mod reserve;
pub mod route;
pub mod schedule;
pub mod status;
pub mod survey;
pub mod table;
pub mod table_options;
pub mod take_many;
pub mod transfer;
pub mod version;
