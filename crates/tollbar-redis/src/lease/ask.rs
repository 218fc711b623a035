//! What a node asks the store: about one key ([`Ask`]), and about the node itself ([`Requester`]).

/// A node's question about one key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ask {
    /// The permits that the node asks for. 0: it wants no lease.
    pub want: u64,
    /// The smallest grant that the node accepts.
    pub least: u64,
    /// The permits that requests of this key wait for. The store charges them at once, and the node
    /// gives them to nobody but for a patience.
    pub waiting: u64,
    /// The largest cost among the waiting requests.
    pub cost: u64,
    /// The life of a lease, in microseconds.
    pub life: u64,
    /// The latest TAT of this key that the node has seen. It restores the TAT in a store that has
    /// lost the key.
    pub hint: u64,
    /// Permits that the node has admitted without a lease, to be charged now.
    pub debt: u64,
    /// The node's estimate of the store's time when it sent the question (`horizon.rs`). 0: it has
    /// had no answer yet.
    pub at: u64,
    /// How far the store's time may be beyond `at` when the question arrives, in microseconds.
    pub slack: u64,
}

/// The part of a question that is about the asking node and not about a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requester {
    /// The name of the data in its last answer; 0: it has had none.
    pub seen: u64,
    /// The latest data's time in its answers from these data, in microseconds; 0: it has had none.
    pub heard: u64,
    /// Whether this is the first question on its connection. Data that were rolled back are reached
    /// by new connections.
    pub first: bool,
    /// The name for new data, if the store has no record.
    pub fresh: u64,
}
