//! What tollbar-redis and tollbar-c use of this crate beyond its public interface, so that each is
//! written once: memory that processes share, slots of two words, atomics that loom can model, and
//! memory from the allocator without a panic. It is hidden because it promises nothing to others:
//! any version may change it.

/// Atomics that are loom's under `cfg(loom)`, and values on the heap.
pub mod sync {
    #[cfg(not(loom))]
    pub use crate::sync::{boxed, sleep_on, sleep_on_any, wake_all, zeroed_values};
    #[cfg(loom)]
    pub use crate::sync::{deep, explore, explore_within};
    pub use crate::sync::{fence, filled, AtomicU32, AtomicU64, Ordering};
}

/// What tells a process from its forked child.
#[cfg(not(loom))]
pub fn generation() -> u32 {
    crate::clock::machine::generation()
}

/// The number of this process's PID namespace; 0 if the system does not say.
#[cfg(not(loom))]
pub fn namespace() -> u64 {
    crate::table::memory::region::namespace()
}

#[cfg(not(loom))]
pub use crate::table::memory::region::{again, errno, random_u64, set_errno, Region};
#[cfg(loom)]
pub use crate::table::memory::slot::Journal;
pub use crate::table::memory::slot::{Slot, SlotPair};
