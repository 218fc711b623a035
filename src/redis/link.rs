//! A stream socket that never waits unless it is told to.
//!
//! Linux, Android, the BSDs and macOS. A server that is given by name is looked up each time a connection is begun, without waiting:
//! by /etc/hosts and the name servers of /etc/resolv.conf ([`super::lookup`]).

use super::lookup::Lookup;
use super::socket::{self, Places};
use super::text::Text;
use super::url::{Address, Url};
use crate::clock::{Clock, Monotonic};
use core::ffi::c_int;

/// A connection, or none yet.
#[derive(Debug)]
pub struct Link {
    /// The path's only place; of a host none.
    path: Option<Places>,
    pub(super) lookup: Lookup,
    fd: c_int,
    state: State,
    /// Addresses that have not been tried for this connection.
    places: Places,
    /// What the name last stood for: tried while no name server answers.
    known: Places,
    /// Whether the connection before this one was tried at `known` because the lookup had not ended.
    fell_back: bool,
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
    /// The host's name could not be looked up.
    Name(NameFault),
    /// The system refused; the number is its errno.
    System(Operation, i32),
    /// The server has closed the connection.
    Ended,
    /// There is no connection, and none is being made.
    Closed,
}

/// Why a name has no address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameFault {
    /// Neither /etc/hosts nor a name server knows an address for it.
    Absent,
    /// No name server of /etc/resolv.conf has answered in its time.
    NoAnswer,
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
    LookingUp,
    Connecting,
    Open,
}

/// A wait for name servers is cut into pieces so long: their time ends while nothing is heard.
const LOOKUP_SLICE: c_int = 20;

impl Link {
    /// No connection yet; asks the system for nothing.
    pub fn new(url: &Url) -> Link {
        let (path, host, port) = match url.address {
            Address::Unix(path) => (Some(Places::of_path(path.as_bytes())), Text::new(), 0),
            Address::Tcp(host, port) => (None, host, port),
        };
        Link {
            path,
            lookup: Lookup::new(host, port),
            fd: -1,
            state: State::Closed,
            places: Places::new(),
            known: Places::new(),
            fell_back: false,
        }
    }

    /// Begins to connect, and closes what was there; it never waits. [`Link::advance`] says when the connection is there.
    ///
    /// A host's name is looked up anew. If the lookup before was closed without an answer, every other connection is tried at
    /// the addresses that the name last had.
    pub fn connect(&mut self) -> Result<(), LinkError> {
        self.close();
        // What was left of the last time's addresses first: the ones before it did not answer.
        if self.places.has_next() {
            return self.next_place();
        }
        if let Some(path) = self.path {
            self.places = path;
            return self.next_place();
        }
        self.fell_back = self.lookup.is_running() && self.known.has_next() && !self.fell_back;
        if self.fell_back {
            self.places = self.known;
            return self.next_place();
        }
        let began = self.lookup.begin(Monotonic.now());
        self.looked_up(began)
    }

    /// Goes on with connecting; whether the connection is there.
    pub fn advance(&mut self) -> Result<bool, LinkError> {
        loop {
            match self.state {
                State::Open => return Ok(true),
                State::Closed => return Err(LinkError::Closed),
                State::LookingUp => {
                    let found = self.lookup.advance(Monotonic.now());
                    self.looked_up(found)?;
                    if self.state == State::LookingUp {
                        return Ok(false);
                    }
                    continue;
                }
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

    /// The descriptor; -1 if there is none. It changes with each [`Link::connect`], and with [`Link::advance`] where a name is
    /// looked up or has several addresses. A descriptor that takes another's place has another number.
    pub fn fd(&self) -> c_int {
        match self.state {
            State::LookingUp => self.lookup.fd(),
            _ => self.fd,
        }
    }

    /// Whether the connection is there.
    pub fn is_open(&self) -> bool {
        self.state == State::Open
    }

    /// What to wait for; `output` says that there is something to be written.
    pub fn wants(&self, output: bool) -> Wants {
        match self.state {
            State::Closed => Wants::default(),
            State::LookingUp => Wants { readable: true, writable: false },
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
        let millis = c_int::try_from(millis).unwrap_or(c_int::MAX);
        let millis = if self.state == State::LookingUp { millis.min(LOOKUP_SLICE) } else { millis };
        socket::poll(self.fd(), self.wants(output), millis)
    }

    /// Closes the connection, if there is one.
    pub fn close(&mut self) {
        self.lookup.pause();
        self.replace(-1);
        self.state = State::Closed;
    }

    /// What the name stands for is known, is not known yet, or cannot be known.
    fn looked_up(&mut self, found: Result<Option<Places>, LinkError>) -> Result<(), LinkError> {
        self.places = match found {
            Ok(Some(places)) => {
                self.known = places;
                places
            }
            Ok(None) => {
                self.state = State::LookingUp;
                return Ok(());
            }
            Err(_) if self.known.has_next() => self.known,
            Err(error) => {
                self.close();
                return Err(error);
            }
        };
        self.next_place()
    }

    fn replace(&mut self, fd: c_int) {
        if self.fd >= 0 {
            // Not again where it was interrupted: the descriptor is gone by then.
            // SAFETY: the descriptor is this value's own.
            unsafe { libc::close(self.fd) };
        }
        self.fd = fd;
    }

    /// For tests: the name server is at this port of this machine, and has an hour to answer.
    #[cfg(test)]
    pub(crate) fn ask_only(&mut self, port: u16) {
        let mut settings = super::hosts::Settings::new();
        if let (Some(to), Some(place)) = (settings.servers.first_mut(), socket::Place::of_text(b"127.0.0.1", port)) {
            (*to, settings.count, settings.timeout) = (place, 1, 3_600_000_000_000);
        }
        self.lookup.given = Some(settings);
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
            // Opened before the one that it replaces is closed: who watches a descriptor sees another number.
            let fd = match socket::open(place.family()) {
                Ok(fd) => fd,
                Err(errno) => {
                    last = LinkError::System(Operation::Open, errno);
                    continue;
                }
            };
            self.close();
            self.fd = fd;
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
            LinkError::Name(NameFault::Absent) => return f.write_str("the host's name is unknown"),
            LinkError::Name(NameFault::NoAnswer) => return f.write_str("no name server answers for the host's name"),
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
