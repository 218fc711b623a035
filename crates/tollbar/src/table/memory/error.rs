//! Why a table cannot be opened or changed.

use crate::policy::PolicyError;
use core::fmt;

/// Why a table cannot be opened or changed. What was there stays as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub enum TableError {
    /// A capacity of 0, or of more keys than the address space or the layout holds.
    Capacity,
    /// No policies, or more than [`POLICIES_MOST`](crate::table::POLICIES_MOST).
    Policies,
    /// No policy of that number in this table.
    NoSuchPolicy,
    /// A policy that no state can be made of.
    Policy(PolicyError),
    /// This policy cannot be in a table with the others: a sliding window or log has its table for itself.
    Mixed,
    /// All 255 versions of policies have been used: the table takes no further change.
    Versions,
    /// The set of exempt keys is full.
    Exempt,
    /// A request without a key, in a table that reports them ([`Missing::Report`](crate::table::Missing)).
    MissingKey,
    /// No receipt of this table, or an estimate that a receipt cannot hold.
    Receipt,
    /// Out of memory.
    NoMemory,
    /// The caller's memory is too small for the table that is asked for.
    Room,
    /// The caller's memory is not aligned to a cache line.
    Misaligned,
    /// This processor has no 16-byte compare-and-swap.
    Unsupported,
    /// The file or memory is not a table.
    NotATable,
    /// A table of another version of the layout.
    Version,
    /// The header says one size, the file or memory has another: it has been cut off or grown.
    Truncated,
    /// The header or a policy in it does not carry its checksum.
    Corrupt,
    /// A table of another capacity.
    OtherCapacity,
    /// A table with other policies.
    OtherPolicies,
    /// A table with other options (`on_full`, clock).
    OtherOptions,
    /// The table's times cannot be continued: it is of another boot, and this host does not say of which it is.
    Boot,
    /// The file belongs to another user than the caller and root, others may write it, or others may put another in its place
    /// ([`Trust::Owner`](crate::table::Trust)).
    Owner,
    /// The descriptor's file can be cut off: it is not memory that is sealed against shrinking.
    Unsealed,
    /// The system refused; the number is its errno.
    System(Call, i32),
}

/// What the system was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Call {
    /// Opening the file.
    Open = 0,
    /// Reading its size or its header.
    Read = 1,
    /// Making room for it on the disk.
    Allocate = 2,
    /// Mapping it, or memory.
    Map = 3,
    /// Giving the file its name.
    Link = 4,
    /// Locking it.
    Lock = 5,
    /// Random numbers for the seed.
    Random = 6,
    /// Writing it to its disk.
    Sync = 7,
}

impl TableError {
    /// One line in English, without the errno or what is wrong with the policy.
    pub const fn text(self) -> &'static str {
        match self {
            TableError::Capacity => "the capacity is zero or more than a table can hold",
            TableError::Policies => "a table needs 1 to 128 policies",
            TableError::NoSuchPolicy => "the table has no policy of that number",
            TableError::Policy(_) => "a policy that cannot be",
            TableError::Mixed => "a sliding window or log has a table for itself",
            TableError::Versions => "the table has seen 255 versions of policies and takes no more",
            TableError::Exempt => "the set of exempt keys is full",
            TableError::MissingKey => "a request without a key",
            TableError::Receipt => "no receipt of this table, or an estimate of 2^56 or more",
            TableError::NoMemory => "out of memory",
            TableError::Room => "the memory is too small for the table",
            TableError::Misaligned => "the memory is not aligned to 64 bytes",
            TableError::Unsupported => "the processor has no 16-byte compare-and-swap",
            TableError::NotATable => "not a tollbar table",
            TableError::Version => "a table of another version",
            TableError::Truncated => "the table has been cut off or is longer than it says",
            TableError::Corrupt => "the table's header is damaged",
            TableError::OtherCapacity => "the table has another capacity",
            TableError::OtherPolicies => "the table has other policies",
            TableError::OtherOptions => "the table has other options",
            TableError::Boot => "the table is of another boot of the machine, and this boot has no name",
            TableError::Owner => "the file belongs to another user, or others may write or replace it",
            TableError::Unsealed => "the descriptor is not of memory that is sealed against shrinking",
            TableError::System(call, _) => match call {
                Call::Open => "the file cannot be opened",
                Call::Read => "the file cannot be read",
                Call::Allocate => "there is no room for the file",
                Call::Map => "the memory cannot be mapped",
                Call::Link => "the file cannot be given its name",
                Call::Lock => "the file cannot be locked",
                Call::Random => "the system gives no random numbers",
                Call::Sync => "the file cannot be written to its disk",
            },
        }
    }
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TableError::Policy(error) => fmt::Display::fmt(error, f),
            TableError::System(_, errno) => write!(f, "{} (errno {errno})", self.text()),
            _ => f.write_str(self.text()),
        }
    }
}

#[cfg(feature = "std")]
impl std::error::Error for TableError {}

impl From<PolicyError> for TableError {
    fn from(error: PolicyError) -> TableError {
        match error {
            PolicyError::NoMemory => TableError::NoMemory,
            error => TableError::Policy(error),
        }
    }
}
