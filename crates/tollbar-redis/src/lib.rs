//! Rate limits that machines share through Redis or Valkey.
//!
//! * [`lease`]: a machine takes permits from the server some at a time and spends them by itself. A decision waits for nothing.
//! * [`store`]: the server decides each request. The limit is exact, and a decision takes a round trip.
//! * [`redis`]: the connection that both use.
//!
//! Policies and decisions are those of the crate [`tollbar`], whose tables hold what a machine may spend without the server.

#![no_std]

#[cfg(not(unix))]
compile_error!("tollbar-redis needs a Unix: this target has no sockets and no mmap");

extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

#[cfg(unix)]
pub mod lease;
#[cfg(all(unix, not(loom)))]
pub mod redis;
#[cfg(all(unix, not(loom)))]
pub mod store;
