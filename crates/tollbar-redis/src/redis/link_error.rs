//! Errors of a link.

use super::tls::TlsFault;

/// Why there is no connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkError {
    /// The host's name could not be looked up.
    Name(NameFault),
    /// A system call failed; the number is its errno.
    System(Operation, i32),
    /// The server closed the connection.
    Ended,
    /// There is no connection, and none has been begun.
    Closed,
    /// The URL asks for TLS, and the program has given no [`Transport`](super::Transport).
    NoTls,
    /// TLS with the server failed, in the words of the program's library.
    Tls(TlsFault),
}

/// Why a name has no address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameFault {
    /// The system's resolver knows no address for it.
    Absent,
    /// The system's resolver had no answer, because no name server answered or one failed.
    NoAnswer,
    /// The process has 16 lookups that wait for the system's resolver.
    TooMany,
}

/// The system call that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Making a socket.
    Open,
    /// Connecting it.
    Connect,
    /// Reading.
    Read,
    /// Writing.
    Write,
    /// Waiting.
    Wait,
    /// Looking the host's name up.
    Lookup,
}

impl core::fmt::Display for LinkError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (did, errno) = match self {
            LinkError::Name(NameFault::Absent) => return f.write_str("the host's name is unknown"),
            LinkError::Name(NameFault::NoAnswer) => {
                return f.write_str("no name server answers for the host's name")
            }
            LinkError::Name(NameFault::TooMany) => {
                return f.write_str("too many lookups of names wait for the system")
            }
            LinkError::Ended => return f.write_str("the server closed the connection"),
            LinkError::NoTls => {
                return f.write_str("the URL asks for TLS (rediss://), which this program lacks")
            }
            LinkError::Tls(why) => return write!(f, "TLS with the server failed: {why}"),
            LinkError::Closed => return f.write_str("not connected to the server"),
            LinkError::System(Operation::Open, errno) => ("could not open a socket", *errno),
            LinkError::System(Operation::Connect, errno) => {
                ("could not connect to the server", *errno)
            }
            LinkError::System(Operation::Read, errno) => ("could not read from the server", *errno),
            LinkError::System(Operation::Write, errno) => ("could not write to the server", *errno),
            LinkError::System(Operation::Wait, errno) => ("could not wait for the server", *errno),
            LinkError::System(Operation::Lookup, errno) => {
                ("could not look up the host's name", *errno)
            }
        };
        let why = match errno {
            libc::ECONNREFUSED => "refused",
            libc::ENOENT => "no such socket",
            libc::EACCES => "not permitted",
            libc::ETIMEDOUT => "no answer",
            libc::ENETUNREACH | libc::EHOSTUNREACH => "unreachable",
            libc::ECONNRESET | libc::EPIPE => "reset",
            libc::EMFILE | libc::ENFILE => "too many open files",
            _ => return write!(f, "{did} (errno {errno})"),
        };
        write!(f, "{did}: {why} (errno {errno})")
    }
}

impl core::error::Error for LinkError {}
