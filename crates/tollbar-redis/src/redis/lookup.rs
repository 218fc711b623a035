//! Looks up a host's name without blocking: in /etc/hosts, then at the name servers of
//! /etc/resolv.conf.
//!
//! The system's resolver (getaddrinfo) blocks until its name servers answer, and this library
//! starts no threads: docs/internals/decisions/0019-names-without-waiting.md. Names that only the
//! name service switch knows (mDNS, LDAP, NIS) are not found here.
//!
//! IPv4 addresses come before IPv6 addresses. A machine without one kind refuses it at once, and
//! the link tries the next address.

use super::dns::{self, DnsAnswer, Kind};
use super::hosts::{self, Settings};
use super::link_error::{LinkError, NameFault, Operation};
use super::socket::{self, HostAddress, HostAddresses};
use super::text::Text;
use core::ffi::c_int;
use tollbar::internal::random_u64;

/// Lookups of one name, one after the other. [`Lookup::begin`] begins each.
pub(super) struct Lookup {
    host: Text<255>,
    port: u16,
    settings: Settings,
    /// A test's settings in place of /etc/resolv.conf.
    #[cfg(test)]
    pub(super) given: Option<Settings>,
    fd: c_int,
    is_running: bool,
    /// The index of the current name: the search list makes several names of a host.
    candidate: usize,
    /// How many servers have been asked for the current name.
    turn: usize,
    /// When the current question was sent, in nanoseconds.
    asked_at: u64,
    ids: [u16; 2],
    /// For each kind, whether its answer is missing.
    pending: [bool; 2],
    found: [HostAddresses; 2],
}

const KINDS: [Kind; 2] = [Kind::A, Kind::Aaaa];
/// The most datagrams read in one call.
const DATAGRAMS: usize = 16;
/// The longest name of the search list: the host's name (255), a dot and a domain (255), and one
/// more.
const NAME_MOST: usize = 512;

impl Lookup {
    /// A lookup that has not begun.
    pub(super) fn new(host: Text<255>, port: u16) -> Lookup {
        Lookup {
            host,
            port,
            settings: Settings::new(),
            #[cfg(test)]
            given: None,
            fd: -1,
            is_running: false,
            candidate: 0,
            turn: 0,
            asked_at: 0,
            ids: [0; 2],
            pending: [false; 2],
            found: [HostAddresses::new(); 2],
        }
    }

    /// Begins a lookup, or goes on with the next server after [`Lookup::pause`]. Returns the
    /// addresses if they are known without a name server, otherwise `None` after it has sent a
    /// question.
    pub(super) fn begin(&mut self, now: u64) -> Result<Option<HostAddresses>, LinkError> {
        if let Some(place) = HostAddress::of_text(self.host.as_bytes(), self.port) {
            let mut places = HostAddresses::new();
            places.push(place);
            return Ok(Some(places));
        }
        let known = hosts::known(self.host.as_bytes(), self.port);
        if known.has_next() {
            self.is_running = false;
            return Ok(Some(known));
        }
        if !self.is_running {
            self.settings = self.read_settings();
            (self.is_running, self.candidate, self.turn) = (true, 0, 0);
        }
        self.ask(now).map(|()| None)
    }

    /// Reads the answers that have come. Returns the addresses when the lookup is over.
    pub(super) fn advance(&mut self, now: u64) -> Result<Option<HostAddresses>, LinkError> {
        let mut message = [0; dns::ANSWER_MOST];
        for _ in 0..DATAGRAMS {
            let went_on = match socket::receive(self.fd, &mut message) {
                Ok(n) => self.hear(message.get(..n).unwrap_or_default(), now)?,
                Err(libc::EAGAIN) => break,
                // The server's machine refused the datagram: no process listens there.
                Err(_) => self.next_server(now).map(|()| true)?,
            };
            if !went_on && self.pending == [false; 2] {
                return Ok(Some(self.finish()));
            }
        }
        if now.saturating_sub(self.asked_at) <= self.settings.timeout {
            return Ok(None);
        }
        // Some servers never answer for one kind, so the other kind's addresses are enough.
        if self.found.iter().any(HostAddresses::has_next) {
            return Ok(Some(self.finish()));
        }
        self.next_server(now).map(|()| None)
    }

    /// Whether the lookup has begun and is not over.
    pub(super) fn is_running(&self) -> bool {
        self.is_running
    }

    /// The socket for answers; -1 if no question was sent.
    pub(super) fn fd(&self) -> c_int {
        self.fd
    }

    /// Closes the socket. The next [`Lookup::begin`] goes on with the next server.
    pub(super) fn pause(&mut self) {
        if self.fd >= 0 && self.is_running {
            self.turn = self.turn.saturating_add(1);
        }
        self.replace(-1);
    }

    /// Handles a datagram. Returns whether the lookup then asked another server, or for another
    /// name.
    fn hear(&mut self, message: &[u8], now: u64) -> Result<bool, LinkError> {
        for (n, kind) in KINDS.into_iter().enumerate() {
            let (Some(pending), Some(found), Some(id)) = (
                self.pending.get(n).copied(),
                self.found.get(n).copied(),
                self.ids.get(n).copied(),
            ) else {
                continue;
            };
            let mut question = [0; dns::QUESTION_MOST];
            let length = self.question(kind, id, &mut question).unwrap_or(0);
            let (mut places, port) = (found, self.port);
            let answer =
                dns::answer(message, question.get(..length).unwrap_or_default(), kind, |octets| {
                    if let Some(place) = HostAddress::of_octets(octets, port) {
                        places.push(place);
                    }
                });
            match answer {
                _ if !pending => {}
                DnsAnswer::Foreign => {}
                DnsAnswer::Failed => return self.next_server(now).map(|()| true),
                DnsAnswer::Absent => return self.next_candidate(now).map(|()| true),
                DnsAnswer::Addresses => {
                    if let (Some(pending), Some(found)) =
                        (self.pending.get_mut(n), self.found.get_mut(n))
                    {
                        (*pending, *found) = (false, places);
                    }
                }
            }
        }
        if self.pending == [false; 2] && !self.found.iter().any(HostAddresses::has_next) {
            return self.next_candidate(now).map(|()| true);
        }
        Ok(false)
    }

    /// Ends the lookup. The socket stays open until [`Lookup::pause`], so that the connection's
    /// descriptor has another number.
    fn finish(&mut self) -> HostAddresses {
        self.is_running = false;
        let [mut all, others] = self.found;
        all.append(others);
        all
    }

    fn next_server(&mut self, now: u64) -> Result<(), LinkError> {
        self.turn = self.turn.saturating_add(1);
        self.ask(now)
    }

    fn next_candidate(&mut self, now: u64) -> Result<(), LinkError> {
        (self.candidate, self.turn) = (self.candidate.saturating_add(1), 0);
        self.ask(now)
    }

    /// Sends the questions for the current name to the next server. It skips invalid names and
    /// servers to which it cannot send.
    fn ask(&mut self, now: u64) -> Result<(), LinkError> {
        let most = self.settings.count.saturating_mul(self.settings.attempts);
        self.found = [HostAddresses::new(); 2];
        loop {
            if !self.has_candidate() {
                return self.over(NameFault::Absent);
            }
            if self.turn >= most {
                return self.over(NameFault::NoAnswer);
            }
            let random = random_u64().unwrap_or(now);
            self.ids = [random as u16, (random >> 16) as u16];
            let server = self
                .turn
                .checked_rem(self.settings.count)
                .and_then(|n| self.settings.servers.get(n))
                .copied();
            let mut questions = [[0; dns::QUESTION_MOST]; 2];
            let mut lengths = [0; 2];
            for (n, kind) in KINDS.into_iter().enumerate() {
                if let (Some(to), Some(length), Some(&id)) =
                    (questions.get_mut(n), lengths.get_mut(n), self.ids.get(n))
                {
                    *length = self.question(kind, id, to).unwrap_or(0);
                }
            }
            if lengths.contains(&0) {
                (self.candidate, self.turn) = (self.candidate.saturating_add(1), 0);
                continue;
            }
            let fd = server.map_or(Err(libc::EADDRNOTAVAIL), |server| connected(&server));
            let fd = match fd {
                Ok(fd) => fd,
                Err(errno @ (libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM)) => {
                    self.replace(-1);
                    return Err(LinkError::System(Operation::Open, errno));
                }
                Err(_) => {
                    self.turn = self.turn.saturating_add(1);
                    continue;
                }
            };
            // The old socket was open until here, so the new descriptor has another number, and an
            // event loop notices the change.
            self.replace(fd);
            let sent = questions.iter().zip(lengths).all(|(question, length)| {
                socket::send(fd, question.get(..length).unwrap_or_default()).is_ok()
            });
            if sent {
                (self.asked_at, self.pending) = (now, [true; 2]);
                return Ok(());
            }
            self.turn = self.turn.saturating_add(1);
        }
    }

    fn over(&mut self, fault: NameFault) -> Result<(), LinkError> {
        self.replace(-1);
        self.is_running = false;
        Err(LinkError::Name(fault))
    }

    fn replace(&mut self, fd: c_int) {
        if self.fd >= 0 {
            // SAFETY: the descriptor is this value's own.
            unsafe { libc::close(self.fd) };
        }
        self.fd = fd;
    }

    /// Writes the question for the current name and returns its length.
    fn question(&self, kind: Kind, id: u16, into: &mut [u8; dns::QUESTION_MOST]) -> Option<usize> {
        let mut name = [0; NAME_MOST];
        let host = self.host.as_bytes();
        let domain = self.domain()?.unwrap_or_default();
        let dot: &[u8] = if domain.is_empty() { b"" } else { b"." };
        let bytes = host.iter().chain(dot).chain(domain);
        let length = name.iter_mut().zip(bytes).map(|(to, from)| *to = *from).count();
        dns::question(name.get(..length)?, kind, id, into)
    }

    fn has_candidate(&self) -> bool {
        self.domain().is_some()
    }

    /// The domain that is appended for the current name. `Some(None)`: the host's name as it is.
    /// `None`: there are no more names.
    fn domain(&self) -> Option<Option<&[u8]>> {
        let host = self.host.as_bytes();
        if host.ends_with(b".") {
            return (self.candidate == 0).then_some(None);
        }
        let domains = || {
            self.settings
                .search
                .as_bytes()
                .split(|byte| *byte == b' ')
                .filter(|domain| !domain.is_empty())
        };
        let dots = host.iter().filter(|byte| **byte == b'.').count();
        let plain_at = if dots >= self.settings.dots { 0 } else { domains().count() };
        if self.candidate == plain_at {
            return Some(None);
        }
        let number = if self.candidate > plain_at {
            self.candidate.saturating_sub(1)
        } else {
            self.candidate
        };
        domains().nth(number).map(Some)
    }

    #[cfg(not(test))]
    fn read_settings(&self) -> Settings {
        Settings::read()
    }

    #[cfg(test)]
    fn read_settings(&self) -> Settings {
        self.given.unwrap_or_else(Settings::read)
    }
}

impl Drop for Lookup {
    fn drop(&mut self) {
        self.replace(-1);
    }
}

impl core::fmt::Debug for Lookup {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Lookup")
            .field("host", &self.host)
            .field("is_running", &self.is_running)
            .finish()
    }
}

/// A datagram socket that receives from this server only.
fn connected(server: &HostAddress) -> Result<c_int, i32> {
    let fd = socket::open_datagram(server.family())?;
    match socket::connect(fd, server) {
        0 => Ok(fd),
        errno => {
            // SAFETY: the descriptor is this function's own.
            unsafe { libc::close(fd) };
            Err(errno)
        }
    }
}
