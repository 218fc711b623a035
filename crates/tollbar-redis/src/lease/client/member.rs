//! A client as one of those that may ask for a node.

use super::owner;
use crate::lease::NodeError;
use tollbar::internal::{generation, random_u64};

/// The name of a client, and its random numbers.
pub(super) struct Member {
    /// The name that this client writes into the header of a node for which it asks
    /// ([`Header::owner`](crate::lease::layout::Header)).
    pub(super) name: u64,
    /// `generation` of the process that made `name`. A forked child has another one, also where it
    /// has its parent's process number in a PID namespace of its own.
    generation: u32,
    random: u64,
}

impl Member {
    /// Errors: the system has no random numbers.
    pub(super) fn new() -> Result<Member, NodeError> {
        let random = random_u64()?;
        Ok(Member { name: owner::name(random), generation: generation(), random })
    }

    /// Whether this process is a child of the one that made the client.
    pub(super) fn has_forked(&self) -> bool {
        self.generation != generation()
    }

    /// Takes a name for this process.
    pub(super) fn rename(&mut self) {
        self.random();
        (self.name, self.generation) = (owner::name(self.random), generation());
    }

    /// An observer can predict it.
    pub(super) fn random(&mut self) -> u64 {
        self.random =
            self.random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        self.random ^ self.random >> 29
    }
}
