//! A node's circuit and counters.

/// Whether the store answers this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u64)]
pub enum Circuit {
    /// No client of this node has asked it yet.
    Unknown = 0,
    /// The store answers in time.
    Closed = 1,
    /// The store does not answer in time, or a watchdog distrusts its answers. The node follows
    /// [`super::Fallback`].
    Open = 2,
}

impl Circuit {
    /// The circuit of several limits: open if any is, closed if all are.
    pub fn of_all(circuits: impl Iterator<Item = Circuit>) -> Circuit {
        let worse = |one, other| match (one, other) {
            (Circuit::Open, _) | (_, Circuit::Open) => Circuit::Open,
            (Circuit::Closed, Circuit::Closed) => Circuit::Closed,
            _ => Circuit::Unknown,
        };
        circuits.reduce(worse).unwrap_or(Circuit::Unknown)
    }
}

/// Counters of a node, over all its threads and processes, since it was made. All but `owed` only
/// grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Stats {
    /// Permits that the store granted as leases.
    pub granted: u64,
    /// Questions sent to the store, probes included.
    pub asked: u64,
    /// Permits of rights: admitted while the circuit was closed, before the store was asked.
    pub overdrawn: u64,
    /// Permits that the reserve admitted while the circuit was not closed.
    pub fallback_permits: u64,
    /// Permits that [`super::Fallback::Allow`] admitted without a charge.
    pub uncounted: u64,
    /// Requests denied. A cost that no lease can hold ("never") is not counted.
    pub denied: u64,
    /// Messages that callers could not write into the ring. The request was denied, or its lease
    /// came later.
    pub queue_full: u64,
    /// Times that the circuit opened.
    pub opened: u64,
    /// Permits that the node admitted without a lease and the store has not charged yet, as of the
    /// client's last turn.
    pub owed: u64,
    /// Requests denied because other keys used all places of the node that the key could have
    /// ([`Options::capacity`](super::Options::capacity)).
    pub full: u64,
    /// Of `denied`: requests about which the store had not answered
    /// ([`Reason::Pending`](tollbar::decision::Reason::Pending)).
    pub denied_pending: u64,
    /// Of `denied`: requests of keys whose permits were used up by the store's last answer.
    pub denied_by_store: u64,
    /// Of `denied`: requests that [`super::Fallback`] denied while the circuit was not closed.
    pub denied_by_fallback: u64,
}

/// The index of each count in the header's shards.
#[derive(Clone, Copy)]
#[repr(usize)]
pub(super) enum Count {
    Granted = 0,
    Asked = 1,
    Overdrawn = 2,
    FallbackPermits = 3,
    Uncounted = 4,
    Denied = 5,
    QueueFull = 6,
    Opened = 7,
    Full = 8,
    DeniedPending = 9,
    DeniedByStore = 10,
    DeniedByFallback = 11,
}
