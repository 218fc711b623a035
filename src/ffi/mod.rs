//! The C face: the only `extern "C"`. One file a section of `include/tollbar.h`, in the header's order.
//!
//! Every doc comment in the sections is printed into the header and speaks to a C reader.

#![allow(non_camel_case_types)]

mod boundary;

pub mod cell;
pub mod clock;
pub mod limiter;
pub mod policy;
pub mod status;
pub mod version;
