//! Slots: a key's candidate slots, the probe, insertion and eviction. Nothing here knows policies beyond [`protocol::States`].

#[cfg(all(loom, test))]
mod models;
pub(crate) mod placement;
pub(crate) mod probe;
pub(crate) mod protocol;

#[cfg(not(loom))]
pub(crate) use map::Slots;

#[cfg(not(loom))]
mod map;
