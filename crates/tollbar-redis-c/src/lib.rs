//! The C face of leases. Each file is one section of `include/tollbar_redis.h`;
//! `tools/xtask/src/header.rs` has the order of the sections. The crate `tollbar-c` has the result
//! codes, the shared structs, and the checks that every C call makes.
//!
//! Every doc comment in the sections is printed into the header and speaks to a C reader.

#![no_std]
#![allow(non_camel_case_types)]

extern crate alloc;

pub mod calls;
pub mod client;
pub mod lease;
pub mod store;
pub mod tls;
pub mod version;
pub mod waiting;
