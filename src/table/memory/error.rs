//! Why a table cannot be opened or changed, and why a request fails.

use crate::policy::PolicyError;
use core::fmt;

/// Why a request for a key fails. It has charged nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RequestError {
    /// No policy of that number in this table.
    NoSuchPolicy,
    /// The request has no key, and the table reports that
    /// ([`Missing::Report`](crate::table::Missing)).
    MissingKey,
    /// The policy cannot decide such a request, for this reason: it has no class of that name, or
    /// keeps no reserves.
    Policy(PolicyError),
    /// The receipt is not one of this table, or the estimate is too large for a receipt.
    Receipt,
    /// The table's memory is damaged.
    Corrupt,
}

/// Why a table cannot be opened or changed. The call that returns it has changed nothing, unless
/// its text says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TableError {
    /// A capacity of 0, or of more keys than the address space or the layout holds.
    Capacity,
    /// No policies, or more than [`POLICIES_MOST`](crate::table::POLICIES_MOST).
    Policies,
    /// The call names no policy of the table, or no key.
    Request(RequestError),
    /// The policy is invalid, for this reason.
    Policy(PolicyError),
    /// The policies cannot be in one table: in a table without room for others
    /// ([`Options::room`](crate::table::Options)) a sliding window or log must be the only policy.
    Mixed,
    /// The slots have too little room for this window or log: it needs room for so many segments
    /// or permits, and the table has room for fewer ([`Options::room`](crate::table::Options)).
    SlotRoom {
        /// The segments of the window, or the permits of the log.
        needs: u64,
        /// The table's room.
        has: u64,
    },
    /// No version of a policy is free. A table has 255, one for each policy and each different
    /// override. It frees those that have been replaced.
    /// [`Table::repair`](crate::table::Table::repair) frees those that killed processes left
    /// unfinished.
    Versions,
    /// The set of exempt keys is full.
    Exempt,
    /// The table has as many overrides as its options allow, or the options ask for more than
    /// 524,288.
    Overrides,
    /// Out of memory.
    NoMemory,
    /// The caller's memory is too small for the table.
    Room,
    /// The caller's memory is not aligned to a cache line.
    Misaligned,
    /// This processor has no 16-byte compare-and-swap.
    Unsupported,
    /// The file or memory is not a table.
    NotATable,
    /// The table has another version of the layout.
    Version,
    /// The file or memory is shorter or longer than its header says.
    Truncated,
    /// The checksum of the header or of a policy is wrong.
    Corrupt,
    /// The existing table has another capacity.
    OtherCapacity,
    /// The existing table has other policies.
    OtherPolicies,
    /// The existing table has other options (`on_full`, `missing`, `clock`, `seed`).
    OtherOptions,
    /// The table is in a file, and nothing that this process can read tells whether the file's
    /// content is of this boot of the machine: the system gives no boot id, and the file is not in
    /// tmpfs or has been copied there.
    Boot,
    /// The in-flight table's file is in use by processes whose system gives another boot id: in a
    /// container that has one of its own, or on another machine.
    OtherBoot,
    /// The file belongs to a user other than the caller and root, other users may write it, or
    /// other users may replace it ([`Trust::Owner`](crate::table::Trust)).
    Owner,
    /// The descriptor's file can be truncated: it is not memory that is sealed against shrinking.
    Unsealed,
    /// Processes of another PID namespace use the in-flight table, or the system does not say in
    /// which one this process is. So it cannot tell whether the others have ended.
    Namespace,
    /// The system does not say in which time namespace this process is, or the process that made
    /// the table was. So this process's clock may differ from that of the others.
    TimeNamespace,
    /// A system call failed with this errno.
    System(Call, i32),
}

/// The operation whose system call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Call {
    /// Opening the file.
    Open = 0,
    /// Reading the file's size or header.
    Read = 1,
    /// Reserving the file's space on the disk.
    Allocate = 2,
    /// Mapping the file, or memory without a file.
    Map = 3,
    /// Giving the file its name.
    Link = 4,
    /// Locking the file.
    Lock = 5,
    /// Getting random numbers for the seed.
    Random = 6,
    /// Writing the file to its disk.
    Sync = 7,
}

impl RequestError {
    /// A text of one line, without the policy's error.
    pub const fn text(self) -> &'static str {
        match self {
            RequestError::NoSuchPolicy => "the table has no policy of that number",
            RequestError::MissingKey => "the request has no key",
            RequestError::Policy(_) => "the policy is invalid",
            RequestError::Receipt => {
                "the receipt is not of this table, or the estimate is 2^56 or more"
            }
            RequestError::Corrupt => "the table's memory is damaged",
        }
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RequestError::Policy(error) => fmt::Display::fmt(error, f),
            _ => f.write_str(self.text()),
        }
    }
}

#[cfg(feature = "std")]
impl std::error::Error for RequestError {}

impl From<RequestError> for TableError {
    fn from(error: RequestError) -> TableError {
        match error {
            RequestError::Policy(error) => TableError::from(error),
            RequestError::Corrupt => TableError::Corrupt,
            RequestError::NoSuchPolicy | RequestError::MissingKey | RequestError::Receipt => {
                TableError::Request(error)
            }
        }
    }
}

impl TableError {
    /// A text of one line, without the errno or the policy's error.
    pub const fn text(self) -> &'static str {
        match self {
            TableError::Capacity => "the capacity is zero or more than a table can hold",
            TableError::Policies => "a table needs 1 to 128 policies",
            TableError::Request(error) => error.text(),
            TableError::Policy(_) => "the policy is invalid",
            TableError::Mixed => "a sliding window or log must be its table's only policy",
            TableError::SlotRoom { .. } => "the table's slots have too little room for this window or log",
            TableError::Versions => {
                "all 255 versions of the table's policies are in use: end overrides, or give several keys the same"
            }
            TableError::Exempt => "the set of exempt keys is full",
            TableError::Overrides => "the table has no room for another override",
            TableError::NoMemory => "out of memory",
            TableError::Room => "the memory is too small for the table",
            TableError::Misaligned => "the memory is not aligned to 64 bytes",
            TableError::Unsupported => "the processor has no 16-byte compare-and-swap",
            TableError::NotATable => "not a tollbar table",
            TableError::Version => "the table has another version of the layout",
            TableError::Truncated => "the table is shorter or longer than its header says",
            TableError::Corrupt => "the table's header is damaged",
            TableError::OtherCapacity => "the table has another capacity",
            TableError::OtherPolicies => "the table has other policies (tollbar table set-policy)",
            TableError::OtherOptions => "the table has other options",
            TableError::Boot => "the system does not say whether the file's content is of this boot",
            TableError::OtherBoot => "the table is used by processes whose system gives another boot id",
            TableError::Owner => "the file belongs to another user, or others may write or replace it",
            TableError::Unsealed => "the memory behind the descriptor is not sealed against shrinking",
            TableError::Namespace => {
                "the table is used by processes of another PID namespace, or this one's is unknown"
            }
            TableError::TimeNamespace => "the system does not say in which time namespace the table's processes are",
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
            TableError::Request(error) => fmt::Display::fmt(error, f),
            TableError::Policy(error) => fmt::Display::fmt(error, f),
            TableError::System(_, errno) => write!(f, "{} (errno {errno})", self.text()),
            TableError::SlotRoom { needs, has } => write!(
                f,
                "{}: it needs room for {needs} segments or permits, and they have room for {has}",
                self.text()
            ),
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
