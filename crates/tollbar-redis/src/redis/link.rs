//! A non-blocking stream socket. Only [`Link::wait`] blocks.
//!
//! It runs on Linux, Android, the BSDs and macOS. Each new connection looks up the server's name
//! again by the system's resolver, on a thread ([`super::lookup`]).

use super::link_error::{LinkError, Operation};
use super::lookup::Lookup;
use super::socket::{self, HostAddresses, Wants};
use super::text::Text;
use super::url::{Address, Url};
use core::ffi::c_int;

/// A connection, or none yet.
#[derive(Debug)]
pub struct Link {
    /// The address of a unix socket; `None` for a host.
    path: Option<Text<107>>,
    lookup: Lookup,
    fd: c_int,
    state: State,
    /// Addresses that have not been tried for this connection.
    places: HostAddresses,
    /// The addresses that the last successful lookup found. The link tries them while the resolver
    /// does not answer.
    known: HostAddresses,
    /// Whether the link tries `known` for this connection, because the lookup had not ended.
    fell_back: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Closed,
    LookingUp,
    Connecting,
    Open,
}

impl Link {
    /// Makes a link without a connection. It makes no system call.
    pub fn new(url: &Url) -> Link {
        let (path, host, port) = match url.address {
            Address::Unix(path) => (Some(path), Text::new(), 0),
            Address::Tcp(host, port) => (None, host, port),
        };
        Link {
            path,
            lookup: Lookup::new(host, port),
            fd: -1,
            state: State::Closed,
            places: HostAddresses::new(),
            known: HostAddresses::new(),
            fell_back: false,
        }
    }

    /// Closes the current connection and begins another, without blocking. [`Link::advance`] tells
    /// when the connection is made.
    ///
    /// It looks up a host's name again, or goes on with a lookup that has not ended. During such a
    /// lookup every second connection goes to the addresses that the last successful one found.
    pub fn connect(&mut self) -> Result<(), LinkError> {
        self.close();
        // The remaining addresses of the last attempt come first, because the ones before them did
        // not answer.
        if self.places.has_next() {
            return self.next_place();
        }
        if let Some(path) = self.path {
            let begun = self.begin(libc::AF_UNIX, |fd| socket::connect_path(fd, path.as_bytes()));
            return begun.inspect_err(|_| self.close());
        }
        self.fell_back = self.lookup.is_running() && self.known.has_next() && !self.fell_back;
        if self.fell_back {
            self.places = self.known;
            return self.next_place();
        }
        let began = self.lookup.begin();
        self.after_lookup(began)
    }

    /// Goes on with connecting, without blocking. Returns whether the connection is made.
    pub fn advance(&mut self) -> Result<bool, LinkError> {
        loop {
            match self.state {
                State::Open => return Ok(true),
                State::Closed => return Err(LinkError::Closed),
                State::LookingUp => {
                    let found = self.lookup.advance();
                    self.after_lookup(found)?;
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

    /// The descriptor; -1 if there is none. Each [`Link::connect`] changes it. [`Link::advance`]
    /// changes it, too, if a name is looked up or has several addresses. A new descriptor never has
    /// the number of the one it replaces.
    pub fn fd(&self) -> c_int {
        match self.state {
            State::LookingUp => self.lookup.fd(),
            _ => self.fd,
        }
    }

    /// Whether the connection is made.
    pub fn is_open(&self) -> bool {
        self.state == State::Open
    }

    /// What to wait for. `output`: the caller has bytes to write.
    pub fn wants(&self, output: bool) -> Wants {
        match self.state {
            State::Closed => Wants::default(),
            State::LookingUp => Wants { readable: true, writable: false },
            State::Connecting => Wants { readable: false, writable: true },
            State::Open => Wants { readable: true, writable: output },
        }
    }

    /// Reads the bytes that have come and returns how many; 0 if there are none now.
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

    /// Writes as many bytes as the socket has room for and returns how many, which may be 0.
    pub fn write(&mut self, from: &[u8]) -> Result<usize, LinkError> {
        if self.state != State::Open {
            return Err(LinkError::Closed);
        }
        if from.is_empty() {
            return Ok(0);
        }
        socket::send(self.fd, from).or_else(|errno| self.failed(Operation::Write, errno))
    }

    /// Waits for what [`Link::wants`] says, at most `timeout` nanoseconds rounded up to
    /// milliseconds. Returns what is ready. A failed connection counts as readable and writable;
    /// the next read or [`Link::advance`] returns its error.
    pub fn wait(&self, output: bool, timeout: u64) -> Result<Wants, LinkError> {
        if self.state == State::Closed {
            return Err(LinkError::Closed);
        }
        let millis = timeout / 1_000_000 + u64::from(timeout % 1_000_000 != 0);
        let millis = c_int::try_from(millis).unwrap_or(c_int::MAX);
        socket::poll(self.fd(), self.wants(output), millis)
    }

    /// Closes the connection, if there is one.
    pub fn close(&mut self) {
        self.lookup.release();
        self.replace(-1);
        self.state = State::Closed;
    }

    /// Goes on after a call of the lookup. With addresses the link connects to the first one, with
    /// `None` it waits for the lookup, and after a failure it uses the last known addresses.
    fn after_lookup(
        &mut self,
        found: Result<Option<HostAddresses>, LinkError>,
    ) -> Result<(), LinkError> {
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
            // An interrupted close must not be repeated: it has closed the descriptor, and another
            // thread may already have one with this number. SAFETY: the descriptor is this value's
            // own.
            unsafe { libc::close(self.fd) };
        }
        self.fd = fd;
    }

    fn failed(&mut self, operation: Operation, errno: i32) -> Result<usize, LinkError> {
        if errno == libc::EAGAIN || errno == libc::EWOULDBLOCK {
            return Ok(0);
        }
        self.close();
        Err(LinkError::System(operation, errno))
    }

    /// Begins to connect to the next address, and skips addresses that fail at once.
    fn next_place(&mut self) -> Result<(), LinkError> {
        let mut last = LinkError::System(Operation::Connect, libc::EADDRNOTAVAIL);
        while let Some(place) = self.places.next() {
            match self.begin(place.family(), |fd| socket::connect(fd, &place)) {
                Ok(()) => return Ok(()),
                Err(error) => last = error,
            }
        }
        self.close();
        Err(last)
    }

    /// Opens a socket of that family and lets `connect` begin to connect it.
    fn begin(
        &mut self,
        family: c_int,
        connect: impl FnOnce(c_int) -> i32,
    ) -> Result<(), LinkError> {
        // The new socket is opened before the old one is closed, so it has another number, and an
        // event loop notices the change.
        let fd = socket::open(family).map_err(|errno| LinkError::System(Operation::Open, errno))?;
        self.close();
        self.fd = fd;
        match connect(fd) {
            0 => {
                self.state = State::Open;
                self.places.forget();
                Ok(())
            }
            // An interrupted connect goes on in the background.
            libc::EINPROGRESS | libc::EINTR => {
                self.state = State::Connecting;
                Ok(())
            }
            errno => Err(LinkError::System(Operation::Connect, errno)),
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.close();
    }
}
