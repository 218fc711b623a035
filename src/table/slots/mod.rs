//! Slots: a key's candidate slots, the probe, insertion and eviction. Nothing here knows policies
//! beyond [`states::States`].

pub(crate) mod candidates;
pub(crate) mod give_back;
#[cfg(all(loom, test))]
mod models;
pub(crate) mod overrides;
pub(crate) mod probe;
pub(crate) mod protocol;
pub(crate) mod states;

#[cfg(not(loom))]
pub(crate) use placement::Slots;

#[cfg(not(loom))]
mod placement;

/// The most tries of a call whose slot or policy other calls change meanwhile. No call meets so
/// many changes in a row, but damaged memory may look as if it changed for ever.
pub(crate) const ROUNDS: u32 = 10_000;
