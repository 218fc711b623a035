//! Why a thread got no permit.

#[cfg(doc)]
use super::word::OWNERS_MOST;

/// The reason for which a thread got no permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// As many permits as the limit are in flight.
    Limit,
    /// No slot of the key's window is free: the table's capacity is too small.
    Full,
    /// [`OWNERS_MOST`] owners use the table, or this process's number is 2^22 or more.
    OwnersFull,
    /// This process is a forked child in another PID namespace than the owners, or cannot read in
    /// which one it is. So it cannot tell whether they have ended, nor they whether it has.
    Namespace,
}

impl core::fmt::Display for Refusal {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Refusal::Limit => "as many permits as the limit are in flight",
            Refusal::Full => "the in-flight table is full: no slot is free where the key's slots are",
            Refusal::OwnersFull => "the in-flight table has as many owners as it can",
            Refusal::Namespace => {
                "the in-flight table is used by processes of another PID namespace, or this one's is unknown"
            }
        })
    }
}

impl core::error::Error for Refusal {}
