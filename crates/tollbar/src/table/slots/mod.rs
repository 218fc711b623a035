//! Slots: a key's candidate slots, the probe, insertion and eviction. Nothing here knows policies beyond [`protocol::States`].

pub(crate) mod candidates;
#[cfg(all(loom, test))]
mod models;
pub(crate) mod probe;
pub(crate) mod protocol;

#[cfg(not(loom))]
pub(crate) use placement::Slots;

#[cfg(not(loom))]
mod placement;
