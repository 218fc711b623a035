//! Every order of events in a small world of leases: one store, two machines, one key, and an
//! adversary who has the messages, the machines and the server's clock.
//!
//! [`World`] is a state, [`Limits`] say how much may happen, and stateright visits each state that
//! can be reached. The store's answers ([`bucket`](tollbar_redis::lease::bucket)), a key's line on
//! a machine and what an answer does to it are the shipped code. The model itself has only what
//! lies between: which message is on its way, and which debts are in it.
//!
//! A machine here may do more than the shipped driver. It may ask at any time and for any number of
//! permits, and its circuit never opens. So what holds here holds for each way in which a driver
//! chooses its questions.

mod machine;
mod store;
mod world;

pub use machine::Machine;
pub use store::Store;
pub use world::{Event, Fault, Leases, Limits, World};

/// Microseconds in which the rate brings one permit. The policies of the model have this rate.
pub const PERMIT: u64 = 1_000_000;
