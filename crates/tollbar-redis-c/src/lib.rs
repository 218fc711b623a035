//! The C face of leases: one file a section of `include/tollbar_redis.h`; the order of the sections is in
//! `tools/xtask/src/header.rs`. What every call across the boundary does, the results and the structs that leases share with the rest
//! are those of the crate `tollbar-c`.
//!
//! Every doc comment in the sections is printed into the header and speaks to a C reader.

#![no_std]
#![allow(non_camel_case_types)]

pub mod client;
pub mod lease;
pub mod version;
