//! A stream socket that never waits unless it is told to.
//!
//! Linux, Android, the BSDs and macOS. A server that is given by name is looked up by the system's resolver when a connection is
//! begun, and that *can take seconds and allocates*: who runs an event loop gives addresses, or the path of a socket.

use super::socket::{self, Places};
use super::url::{Address, Url};
use core::ffi::c_int;

/// A connection, or none yet.
#[derive(Debug)]
pub struct Link {
    address: Address,
    fd: c_int,
    state: State,
    places: Places,
}

/// What the event loop is to wait for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wants {
    /// That there is something to read.
    pub readable: bool,
    /// That something can be written, or the connection has been made.
    pub writable: bool,
}

/// Why there is no connection (any more).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkError {
    /// The host's name could not be looked up; the number is getaddrinfo's.
    Unknown(i32),
    /// The system refused; the number is its errno.
    System(Operation, i32),
    /// The server has closed the connection.
    Ended,
    /// There is no connection, and none is being made.
    Closed,
}

/// What the system refused.
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
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Closed,
    Connecting,
    Open,
}

impl Link {
    /// No connection yet; asks the system for nothing.
    pub fn new(url: &Url) -> Link {
        Link { address: url.address, fd: -1, state: State::Closed, places: Places::new() }
    }

    /// Begins to connect, and closes what was there. A host's name is looked up here, which can take time; all else
    /// is over at once. [`Link::advance`] says when the connection is there.
    pub fn connect(&mut self) -> Result<(), LinkError> {
        self.close();
        // What was left of the last time's addresses first: the ones before it did not answer.
        if !self.places.has_next() {
            self.places = Places::of(&self.address)?;
        }
        self.next_place()
    }

    /// Goes on with connecting; whether the connection is there.
    pub fn advance(&mut self) -> Result<bool, LinkError> {
        loop {
            match self.state {
                State::Open => return Ok(true),
                State::Closed => return Err(LinkError::Closed),
                State::Connecting => {}
            }
            if !socket::poll(self.fd, Wants { readable: false, writable: true }, 0)?.writable {
                return Ok(false);
            }
            match socket::pending_error(self.fd) {
                0 => {
                    self.state = State::Open;
                    // The next connection begins with the first address again.
                    self.places.forget();
                }
                _ if self.places.has_next() => self.next_place()?,
                errno => {
                    self.close();
                    return Err(LinkError::System(Operation::Connect, errno));
                }
            }
        }
    }

    /// The descriptor; -1 if there is none. It changes with each [`Link::connect`], and may with [`Link::advance`] where a name has
    /// several addresses.
    pub fn fd(&self) -> c_int {
        self.fd
    }

    /// Whether the connection is there.
    pub fn is_open(&self) -> bool {
        self.state == State::Open
    }

    /// What to wait for; `output` says that there is something to be written.
    pub fn wants(&self, output: bool) -> Wants {
        match self.state {
            State::Closed => Wants::default(),
            State::Connecting => Wants { readable: false, writable: true },
            State::Open => Wants { readable: true, writable: output },
        }
    }

    /// Reads what there is; 0 if that is nothing now.
    pub fn read(&mut self, into: &mut [u8]) -> Result<usize, LinkError> {
        if self.state != State::Open {
            return Err(LinkError::Closed);
        }
        if into.is_empty() {
            return Ok(0);
        }
        match socket::receive(self.fd, into) {
            Ok(0) => {
                self.close();
                Err(LinkError::Ended)
            }
            Ok(n) => Ok(n),
            Err(errno) => self.failed(Operation::Read, errno),
        }
    }

    /// Writes as much as there is room for, which may be nothing.
    pub fn write(&mut self, from: &[u8]) -> Result<usize, LinkError> {
        if self.state != State::Open {
            return Err(LinkError::Closed);
        }
        if from.is_empty() {
            return Ok(0);
        }
        socket::send(self.fd, from).or_else(|errno| self.failed(Operation::Write, errno))
    }

    /// Waits for what [`Link::wants`] says, `timeout` nanoseconds at most (rounded up to milliseconds), and says what of it is there: both
    /// for a connection that has failed, which the next read or [`Link::advance`] tells.
    pub fn wait(&self, output: bool, timeout: u64) -> Result<Wants, LinkError> {
        if self.state == State::Closed {
            return Err(LinkError::Closed);
        }
        let millis = timeout / 1_000_000 + u64::from(timeout % 1_000_000 != 0);
        socket::poll(self.fd, self.wants(output), c_int::try_from(millis).unwrap_or(c_int::MAX))
    }

    /// Closes the connection, if there is one.
    pub fn close(&mut self) {
        if self.fd >= 0 {
            // Not again where it was interrupted: the descriptor is gone by then.
            // SAFETY: the descriptor is this value's own.
            unsafe { libc::close(self.fd) };
        }
        (self.fd, self.state) = (-1, State::Closed);
    }

    fn failed(&mut self, operation: Operation, errno: i32) -> Result<usize, LinkError> {
        if errno == libc::EAGAIN || errno == libc::EWOULDBLOCK {
            return Ok(0);
        }
        self.close();
        Err(LinkError::System(operation, errno))
    }

    /// Begins to connect to the next address that does not fail at once.
    fn next_place(&mut self) -> Result<(), LinkError> {
        let mut last = LinkError::System(Operation::Connect, libc::EADDRNOTAVAIL);
        while let Some(place) = self.places.next() {
            self.close();
            self.fd = match socket::open(place.family()) {
                Ok(fd) => fd,
                Err(errno) => {
                    last = LinkError::System(Operation::Open, errno);
                    continue;
                }
            };
            match socket::connect(self.fd, &place) {
                0 => {
                    self.state = State::Open;
                    self.places.forget();
                    return Ok(());
                }
                // An interrupted connect goes on by itself.
                libc::EINPROGRESS | libc::EINTR => {
                    self.state = State::Connecting;
                    return Ok(());
                }
                errno => last = LinkError::System(Operation::Connect, errno),
            }
        }
        self.close();
        Err(last)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.close();
    }
}

impl core::fmt::Display for LinkError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (did, errno) = match self {
            LinkError::Unknown(code) => return write!(f, "the host's name could not be looked up (code {code})"),
            LinkError::Ended => return f.write_str("the server closed the connection"),
            LinkError::Closed => return f.write_str("not connected"),
            LinkError::System(Operation::Open, errno) => ("no socket", *errno),
            LinkError::System(Operation::Connect, errno) => ("could not connect", *errno),
            LinkError::System(Operation::Read, errno) => ("could not read", *errno),
            LinkError::System(Operation::Write, errno) => ("could not write", *errno),
            LinkError::System(Operation::Wait, errno) => ("could not wait", *errno),
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
