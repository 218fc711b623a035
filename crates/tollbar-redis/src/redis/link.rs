//! A non-blocking stream socket, with TLS if the URL says so. Only [`Link::wait`] blocks.
//!
//! It runs on Linux, Android, the BSDs and macOS. Each new connection looks up the server's name
//! again by the system's resolver, on a thread ([`super::lookup`]). The hosts of a URL are tried in
//! turn: a connection that breaks goes to the same host again, and one that cannot be made to the
//! next.

use super::channel::Channel;
use super::link_error::{LinkError, Operation};
use super::lookup::Lookup;
use super::socket::{self, HostAddresses, Wants};
use super::text::Text;
use super::tls::Transport;
use super::url::{Address, Url};
use alloc::boxed::Box;
use core::ffi::c_int;

/// A connection, or none yet.
pub struct Link {
    address: Address,
    /// Whether the connection has TLS, by this transport.
    is_tls: bool,
    transport: Option<Box<dyn Transport>>,
    /// The open connection's TLS.
    channel: Option<Channel>,
    /// The host's index.
    host: usize,
    /// Hosts that have failed since [`Link::connect`].
    failed: usize,
    /// Whether the last connection could not be made, or was rejected.
    moves_on: bool,
    lookup: Lookup,
    fd: c_int,
    state: State,
    /// Addresses that have not been tried for this connection.
    places: HostAddresses,
    /// The addresses that the last successful lookup found, and its host. The link tries them while
    /// the resolver does not answer.
    known: HostAddresses,
    known_of: usize,
    /// Whether the link tries `known` for this connection, because the lookup had not ended.
    fell_back: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Closed,
    LookingUp,
    Connecting,
    /// The connection is made, and TLS is not.
    Securing,
    Open,
}

impl Link {
    /// Makes a link without a connection. It makes no system call.
    pub fn new(url: &Url) -> Link {
        Link {
            address: url.address,
            is_tls: url.is_tls,
            transport: None,
            channel: None,
            host: 0,
            failed: 0,
            moves_on: false,
            lookup: Lookup::new(),
            fd: -1,
            state: State::Closed,
            places: HostAddresses::new(),
            known: HostAddresses::new(),
            known_of: 0,
            fell_back: false,
        }
    }

    /// Sets what makes TLS of a connection. Without it, a link of a URL with TLS has no connections
    /// ([`LinkError::NoTls`]).
    pub fn secure(&mut self, transport: Box<dyn Transport>) {
        self.transport = Some(transport);
    }

    /// Whether its connections have TLS.
    pub fn is_tls(&self) -> bool {
        self.is_tls
    }

    /// Closes the current connection and begins another, without blocking. [`Link::advance`] tells
    /// when the connection is made.
    ///
    /// It looks up a host's name again, or goes on with a lookup that has not ended. During such a
    /// lookup every second connection goes to the addresses that the last successful one found.
    pub fn connect(&mut self) -> Result<(), LinkError> {
        if self.is_tls && self.transport.is_none() {
            return Err(LinkError::NoTls);
        }
        self.close();
        self.failed = 0;
        // The remaining addresses of the last attempt come first, because the ones before them did
        // not answer.
        if self.places.has_next() {
            return self.next_place().or_else(|error| self.next_host(error));
        }
        if let Address::Unix(path) = self.address {
            let begun = self.begin(libc::AF_UNIX, |fd| socket::connect_path(fd, path.as_bytes()));
            return begun.inspect_err(|_| self.close());
        }
        if core::mem::replace(&mut self.moves_on, true) {
            self.host = self.after_host();
        }
        self.fell_back = self.lookup.is_running() && self.knows_host() && !self.fell_back;
        if self.fell_back {
            self.places = self.known;
            return self.next_place().or_else(|error| self.next_host(error));
        }
        let began = self.lookup_of_host();
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
                State::Securing => {
                    let fd = self.fd;
                    let channel = self.channel.as_mut().ok_or(LinkError::Closed)?;
                    match channel.handshake(fd) {
                        Ok(true) => self.opened(),
                        Ok(false) => return Ok(false),
                        Err(error) => self.next_host(error)?,
                    }
                    continue;
                }
                State::Connecting => {}
            }
            if !socket::poll(self.fd, Wants { readable: false, writable: true }, 0)?.writable {
                return Ok(false);
            }
            match socket::pending_error(self.fd) {
                0 => self.connected()?,
                errno => {
                    let error = LinkError::System(Operation::Connect, errno);
                    match self.places.has_next() {
                        true => self.next_place().or_else(|error| self.next_host(error))?,
                        false => self.next_host(error)?,
                    }
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

    /// Whether another host may serve while this one does not.
    pub fn has_others(&self) -> bool {
        self.hosts() > 1
    }

    /// What to wait for. `output`: the caller has bytes to write.
    pub fn wants(&self, output: bool) -> Wants {
        let unsent = self.channel.as_ref().is_some_and(Channel::has_unsent);
        match self.state {
            State::Closed => Wants::default(),
            State::LookingUp => Wants { readable: true, writable: false },
            State::Connecting => Wants { readable: false, writable: true },
            State::Securing => Wants { readable: true, writable: unsent },
            State::Open => Wants { readable: true, writable: output || unsent },
        }
    }

    /// Reads the bytes that have come and returns how many; 0 if there are none now. With TLS the
    /// caller reads until it returns 0, because no descriptor tells of bytes that are decrypted.
    pub fn read(&mut self, into: &mut [u8]) -> Result<usize, LinkError> {
        if self.state != State::Open {
            return Err(LinkError::Closed);
        }
        if into.is_empty() {
            return Ok(0);
        }
        if let Some(channel) = &mut self.channel {
            return channel.read(self.fd, into).inspect_err(|_| self.close());
        }
        match socket::receive(self.fd, into) {
            Ok(0) => {
                self.close();
                Err(LinkError::Ended)
            }
            Ok(n) => Ok(n),
            Err(errno) => self.broken(Operation::Read, errno),
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
        if let Some(channel) = &mut self.channel {
            return channel.write(self.fd, from).inspect_err(|_| self.close());
        }
        socket::send(self.fd, from).or_else(|errno| self.broken(Operation::Write, errno))
    }

    /// Waits for what [`Link::wants`] says, at most `timeout` nanoseconds rounded up to
    /// milliseconds. Returns what is ready. A failed connection counts as readable and writable;
    /// the next read or [`Link::advance`] returns its error.
    pub fn wait(&self, output: bool, timeout: u64) -> Result<Wants, LinkError> {
        if self.state == State::Closed {
            return Err(LinkError::Closed);
        }
        if self.channel.as_ref().is_some_and(Channel::has_more) {
            return Ok(Wants { readable: true, writable: false });
        }
        let millis = timeout / 1_000_000 + u64::from(timeout % 1_000_000 != 0);
        let millis = c_int::try_from(millis).unwrap_or(c_int::MAX);
        socket::poll(self.fd(), self.wants(output), millis)
    }

    /// Closes the connection, if there is one.
    pub fn close(&mut self) {
        self.lookup.release();
        self.channel = None;
        self.replace(-1);
        self.state = State::Closed;
    }

    /// Closes the connection to a server that answers and does not serve. The next one goes to the
    /// next host.
    pub fn reject(&mut self) {
        self.close();
        self.moves_on = true;
    }

    fn hosts(&self) -> usize {
        match &self.address {
            Address::Tcp(hosts) => hosts.len(),
            Address::Unix(_) => 1,
        }
    }

    fn after_host(&self) -> usize {
        let next = self.host.saturating_add(1);
        if next < self.hosts() {
            next
        } else {
            0
        }
    }

    fn knows_host(&self) -> bool {
        self.known.has_next() && self.known_of == self.host
    }

    fn lookup_of_host(&mut self) -> Result<Option<HostAddresses>, LinkError> {
        let host = match &self.address {
            Address::Tcp(hosts) => hosts.get(self.host),
            Address::Unix(_) => None,
        };
        let (host, port) = host.ok_or(LinkError::Closed)?;
        self.lookup.begin(&host, port)
    }

    /// Goes on after a call of the lookup. With addresses the link connects to the first one, with
    /// `None` it waits for the lookup. After a failure it uses the last known addresses, or the next
    /// host.
    fn after_lookup(
        &mut self,
        mut found: Result<Option<HostAddresses>, LinkError>,
    ) -> Result<(), LinkError> {
        loop {
            let error = match found {
                Ok(None) => {
                    // The lookup's pipe is open, so it has another number than this socket.
                    self.channel = None;
                    self.replace(-1);
                    self.state = State::LookingUp;
                    return Ok(());
                }
                Err(error) if !self.knows_host() => error,
                _ => {
                    if let Ok(Some(places)) = found {
                        (self.known, self.known_of) = (places, self.host);
                    }
                    self.places = self.known;
                    match self.next_place() {
                        Ok(()) => return Ok(()),
                        Err(error) => error,
                    }
                }
            };
            self.failed = self.failed.saturating_add(1);
            if self.failed >= self.hosts() {
                self.close();
                return Err(error);
            }
            self.host = self.after_host();
            found = self.lookup_of_host();
        }
    }

    /// Goes on with the next host, because this one has failed with `error`. If all have, returns
    /// the error.
    fn next_host(&mut self, error: LinkError) -> Result<(), LinkError> {
        self.failed = self.failed.saturating_add(1);
        self.places.forget();
        if self.failed >= self.hosts() {
            self.close();
            return Err(error);
        }
        self.host = self.after_host();
        let began = self.lookup_of_host();
        self.after_lookup(began)
    }

    /// The socket is connected: TLS begins, if the URL says so.
    fn connected(&mut self) -> Result<(), LinkError> {
        if !self.is_tls {
            self.opened();
            return Ok(());
        }
        let name = match &self.address {
            Address::Tcp(hosts) => hosts.get(self.host).map(|(host, _)| host),
            Address::Unix(_) => None,
        };
        let cipher = match (&self.transport, name) {
            (Some(transport), Some(name)) => transport.start(name.as_str()),
            _ => return Err(LinkError::NoTls),
        };
        let channel =
            cipher.and_then(|cipher| Channel::new(cipher).ok_or(Text::printable(b"out of memory")));
        match channel {
            Ok(channel) => {
                (self.channel, self.state) = (Some(channel), State::Securing);
                Ok(())
            }
            Err(why) => self.next_host(LinkError::Tls(why)),
        }
    }

    fn opened(&mut self) {
        self.state = State::Open;
        self.moves_on = false;
        // The next connection begins with the first address again.
        self.places.forget();
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

    fn broken(&mut self, operation: Operation, errno: i32) -> Result<usize, LinkError> {
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
            // Also a socket that is connected at once goes through `advance`.
            0 | libc::EINPROGRESS | libc::EINTR => {
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

impl core::fmt::Debug for Link {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Link { address, state, fd, host, .. } = self;
        write!(f, "Link {{ {address:?}, host {host}, {state:?}, fd {fd} }}")
    }
}
