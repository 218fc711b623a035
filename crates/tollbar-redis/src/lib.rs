//! Rate limits that machines share through Redis or Valkey.
//!
//! * [`lease`]: a machine takes permits from the server in batches and spends them by itself. No
//!   decision waits for the network, unless the caller wants it to.
//! * [`store`]: the server decides each request. The limit is exact, and a decision takes a round
//!   trip.
//! * [`redis`]: the connection that both use.
//!
//! Each machine has a node, which decides. A thread of the program runs the node's client, which
//! asks the store:
//!
//! ```no_run
//! use std::sync::atomic::{AtomicU32, Ordering};
//! use tollbar_redis::lease::{Client, Node, Options};
//! use tollbar_redis::redis::Url;
//!
//! // At most four machines share the limit.
//! let node = Node::private("logins", &"100/s burst 50".parse()?, &Options::new(4))?;
//! let mut client = Client::new(&Url::parse("redis://127.0.0.1")?)?.with(&node)?;
//! let stop = AtomicU32::new(0);
//! std::thread::scope(|scope| {
//!     scope.spawn(|| client.run(&stop));
//!     if node.check(b"192.0.2.1", 1).is_allowed() {
//!         println!("passes");
//!     }
//!     stop.store(1, Ordering::Release);
//! });
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Policies and decisions are those of the crate [`tollbar`]. A node has one of that crate's
//! tables, for the permits that it admits while the store does not answer.

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

// The README's program compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
