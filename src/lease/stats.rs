//! What is told of a node.

/// Whether the store is answering.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u64)]
pub enum Circuit {
    /// Nobody has reached it yet.
    Unknown = 0,
    /// It answers in time.
    Closed = 1,
    /// It does not: the node is on its own.
    Open = 2,
}

/// What has happened on this node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Stats {
    /// Permits that the store has granted.
    pub granted: u64,
    /// Requests made of the store.
    pub asked: u64,
    /// Permits admitted from the node's own bucket while the store answered.
    pub overdrawn: u64,
    /// Permits admitted from it while it did not.
    pub rescued: u64,
    /// Permits admitted uncounted ([`super::Rescue::Allow`]).
    pub uncounted: u64,
    /// Requests refused.
    pub denied: u64,
    /// Messages that found no room: their requests were refused, or their lease came later.
    pub crowded: u64,
    /// Times that the circuit opened.
    pub opened: u64,
    /// Permits admitted without a lease of which the store has not been told yet.
    pub owed: u64,
}

/// What is counted, by its place in the header's counts: [`Stats`]' order.
#[derive(Clone, Copy)]
#[repr(usize)]
pub(super) enum Count {
    Granted = 0,
    Asked = 1,
    Overdrawn = 2,
    Rescued = 3,
    Uncounted = 4,
    Denied = 5,
    Crowded = 6,
    Opened = 7,
}
