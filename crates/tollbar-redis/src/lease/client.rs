//! The client: limits with a [`Driver`](super::driver::Driver) each, a [`Session`] and a
//! non-blocking socket.

use super::bell::{sleep, sleep_until_rung};
use super::node::Node;
use super::stats::Circuit;
use super::wire::{LEASE, SCRIPTS};
use super::NodeError;
use crate::redis::{Fault, Link, LinkError, Session, Text, Transport, Url, Wants};
use alloc::boxed::Box;
use call::{Limits, BYTES_MOST, FOLLOWER, LIMITS_MOST};
use core::ops::Deref;
use limit::Limit;
use member::Member;
use tollbar::clock::{Clock, Monotonic};
use tollbar::internal::sync::{boxed, AtomicU32, Ordering};

/// Asks the store for the [`Node`]s of a process's limits, over one connection. `N` is `&Node` or
/// another pointer to a node. Each process of a machine may have a client for the same node; one of
/// them asks at a time. When it ends, by `kill -9` too, another takes over within a second.
///
/// [`Client::tick`] drives it, from an event loop that watches [`Client::fd`] or from a thread of
/// its own ([`Client::run`]). One thread at a time may use a client.
pub struct Client<N> {
    limits: Limits<N>,
    link: Box<Link>,
    session: Box<Session>,
    me: Member,
    /// The time of the last turn. Times here are nanoseconds of a monotonic clock.
    now: u64,
    /// When to begin the next connection.
    connect_at: u64,
    /// When the current connection was begun.
    connecting_since: u64,
    /// The URL's timeout, or [`PATIENCE`].
    patience: u64,
    /// Whether the handshake has begun on the current connection.
    greeted: bool,
    /// Whether debts wait for nothing any more, because the client closes or a limit leaves it.
    is_closing: bool,
    /// Why the store refused the connection.
    fault: Option<Fault>,
    /// `fault` in the store's words.
    words: Text<144>,
    /// Why the last connection ended, or could not be made. It stays until the store answers on
    /// another one, or is silent there.
    broken: Option<LinkError>,
    /// Whether the store had answered the handshake on the connection that `broken` is about.
    was_ready: bool,
}

/// The longest pause after a broken connection, in nanoseconds. The client chooses a random pause
/// from half of it to all of it.
const RECONNECT: u64 = 50_000_000;
/// The same after TLS has failed. A certificate is not mended within milliseconds, and a handshake
/// takes both sides about one.
const RECONNECT_TLS: u64 = 10 * RECONNECT;
/// The client closes a connection that it could not make within this many nanoseconds, or on which
/// a question has waited that long for its answer. The URL's `timeout` gives another time.
const PATIENCE: u64 = 1_000_000_000;
/// Bytes of each of a connection's two buffers.
const BUFFER: usize = 80 << 10;
const _: () = assert!(BYTES_MOST <= BUFFER);

impl<N: Deref<Target = Node>> Client<N> {
    /// The most limits of a client.
    pub const LIMITS_MOST: usize = LIMITS_MOST;

    /// Makes a client without limits for the store at `url`. It connects at its first tick.
    /// Errors: [`NodeError::NoMemory`], or the system has no random numbers.
    pub fn new(url: &Url) -> Result<Client<N>, NodeError> {
        let me = Member::new()?;
        let session = session(url).ok_or(NodeError::NoMemory)?;
        Ok(Client {
            limits: Limits::new(false).ok_or(NodeError::NoMemory)?,
            link: boxed(Link::new(url)).ok_or(NodeError::NoMemory)?,
            session,
            me,
            now: 0,
            connect_at: 0,
            connecting_since: 0,
            patience: if url.timeout == 0 { PATIENCE } else { url.timeout },
            greeted: false,
            is_closing: false,
            fault: None,
            words: Text::new(),
            broken: None,
            was_ready: false,
        })
    }

    /// Sets what makes TLS of a connection, for a URL with TLS (`rediss://`).
    pub fn secure(&mut self, transport: Box<dyn Transport>) {
        self.link.secure(transport);
    }

    /// [`Client::add`], for a chain of calls.
    pub fn with(mut self, node: N) -> Result<Client<N>, NodeError> {
        self.add(node)?;
        Ok(self)
    }

    /// Makes the client ask for this node, too. It allocates all memory that the node's questions
    /// need. Errors: [`NodeError::NoMemory`]; [`NodeError::TooMany`] for the 129th node, and for
    /// one whose limit the client has.
    pub fn add(&mut self, node: N) -> Result<(), NodeError> {
        self.limits.enter(node, &mut self.me)
    }

    /// Reports to the store the debts of the node's limit that it has not confirmed. Asks for the
    /// other limits meanwhile. The call waits at most `millis` milliseconds; with 0 it begins no
    /// connection. Returns whether the store has confirmed all debts; `None` if the client does not
    /// have this node.
    pub fn report(&mut self, node: &Node, millis: u32) -> Option<bool> {
        self.limits.of(Some(node)).next()?;
        self.settle(Some(node), millis);
        Some(self.limits.has_confirmed(Some(node)))
    }

    /// [`Client::report`], which then removes the limit: other clients may ask for it.
    pub fn remove(&mut self, node: &Node, millis: u32) -> Option<bool> {
        self.report(node, millis)?;
        self.limits.leave(node, &self.me)
    }

    /// Takes one turn and returns the milliseconds until the next: 1, 4 or 100. Call it sooner if
    /// [`Client::fd`] is ready for what [`Client::wants`] says. A tick never waits, neither for the
    /// network nor for the system's resolver.
    ///
    /// A tick reads the callers' messages, reads and writes the socket, and begins a connection at
    /// most every 25 ms. To connect to a host by name it starts a thread, which asks the system's
    /// resolver. A client has one such thread at a time.
    pub fn tick(&mut self) -> u32 {
        self.turn(true)
    }

    fn turn(&mut self, may_connect: bool) -> u32 {
        let pause = self.step(may_connect);
        self.limits.wake();
        pause
    }

    fn step(&mut self, may_connect: bool) -> u32 {
        self.now = Monotonic.now();
        let now = self.now;
        self.after_fork();
        if !self.elect() {
            return FOLLOWER;
        }
        self.limits.collect();
        if self.link.fd() >= 0 && self.exchange().is_none() {
            self.hang_up();
        }
        if may_connect && self.link.fd() < 0 && now >= self.connect_at {
            self.connect_at = now.saturating_add(RECONNECT);
            (self.connecting_since, self.greeted) = (now, false);
            if let Err(error) = self.link.connect() {
                (self.broken, self.was_ready) = (Some(error), false);
                self.hang_up();
            }
        }
        self.limits.pause(now)
    }

    /// The descriptor to watch; -1 while there is none. It may change with each [`Client::tick`].
    pub fn fd(&self) -> i32 {
        self.link.fd()
    }

    /// What to watch [`Client::fd`] for.
    pub fn wants(&self) -> Wants {
        self.link.wants(!self.session.output().is_empty())
    }

    /// Ticks until `stop` is not 0, and sleeps in between. It blocks, so give it a thread of its
    /// own.
    pub fn run(&mut self, stop: &AtomicU32) {
        while stop.load(Ordering::Acquire) == 0 {
            let millis = self.tick();
            self.wait(millis);
        }
    }

    /// Waits for `millis` milliseconds, or until there is something to do: an answer while the
    /// store owes one, and otherwise a caller's message that cannot wait.
    pub fn wait(&mut self, millis: u32) {
        let nanos = u64::from(millis) * 1_000_000;
        let is_waiting = self.limits.iter().any(|limit| limit.driver.is_waiting());
        if self.link.fd() >= 0 && self.session.is_ready() && !is_waiting {
            let led = self.limits.iter().filter(|limit| limit.leads);
            sleep_until_rung(led.map(|limit| (limit.node.header(), limit.bell)), nanos);
        } else if self.link.wait(!self.session.output().is_empty(), nanos).is_err() {
            sleep(nanos);
        }
    }

    /// Sends the store the debts that it has not confirmed, and lets other clients take over. The
    /// call waits at most `millis` milliseconds; with 0 it begins no connection. Returns whether
    /// the store has confirmed all debts. The nodes can spend their leases until they end, and
    /// nobody gives back the permits that are left then.
    pub fn close(&mut self, millis: u32) -> bool {
        if self.me.has_forked() {
            return false;
        }
        self.settle(None, millis);
        self.link.close();
        // The circuits stay as they are: another client that takes over soon finds them closed.
        self.limits.displaced();
        self.limits.resign(&self.me)
    }

    /// Takes turns until the store has confirmed the debts of all limits, or of that of `only`, for
    /// at most `millis` milliseconds. A client that does not lead must not ask the store.
    fn settle(&mut self, only: Option<&Node>, millis: u32) {
        let end = Monotonic.now().saturating_add(u64::from(millis) * 1_000_000);
        self.is_closing = true;
        loop {
            // Within 0 ms a new connection would not be ready.
            self.turn(millis != 0);
            let confirmed = self.limits.has_confirmed(only);
            let is_in_vain = only.is_none() && !self.limits.leads();
            if confirmed || is_in_vain || self.now >= end {
                break;
            }
            if self.link.wait(!self.session.output().is_empty(), 1_000_000).is_err() {
                sleep(1_000_000);
            }
        }
        self.is_closing = false;
    }

    /// Whether this client is the one that asks the store for the node of this name.
    pub fn is_leader(&self, name: &[u8]) -> bool {
        self.limits.iter().any(|limit| limit.node.name() == name && limit.is_owned_by(self.me.name))
    }

    /// The circuit of all limits: open if any is, closed if all are.
    pub fn circuit(&self) -> Circuit {
        self.limits.circuit()
    }

    /// Whether the circuit of one of the limits is another one than at the last call.
    pub fn has_changed(&mut self) -> bool {
        self.limits.has_changed()
    }

    /// Why the store refused the connection, or the last question about one of the limits; `None`
    /// after an answer.
    pub fn fault(&self) -> Option<Fault> {
        self.fault
            .or_else(|| self.limits.iter().find_map(|limit| Some(limit.fault.as_ref()?.fault)))
    }

    /// Why the last connection ended or could not be made; `None` if the store answers, or is
    /// silent.
    pub fn broken(&self) -> Option<LinkError> {
        self.broken
    }

    /// A text for the operator about a store that answers, and the limit that it is about: its
    /// clock stands still, it grants nothing, or its record of the limit has other terms than the
    /// machine's configuration.
    pub fn notice(&self) -> Option<(&N, &'static str)> {
        self.limits.notice(None)
    }

    /// Connects, reads answers and sends questions; `None` if the connection is over.
    fn exchange(&mut self) -> Option<()> {
        let now = self.now;
        if !self.greeted {
            let connected = self.link.advance();
            if let Err(error) = connected {
                (self.broken, self.was_ready, self.fault) = (Some(error), false, None);
            }
            if !connected.ok()? {
                let is_silent = now.saturating_sub(self.connecting_since) > self.patience;
                return if is_silent { self.give_up() } else { Some(()) };
            }
            self.session.begin();
            self.greeted = true;
            self.limits.forget_calls();
            self.limits.iter_mut().for_each(Limit::connected);
        }
        self.receive()?;
        if self.session.is_ready() {
            self.broken = None;
        }
        if let Some(fault) = self.session.fault() {
            self.fault = Some(fault);
            self.words = Text::printable(self.session.error_text().as_bytes());
            return None;
        }
        let oldest = self.limits.iter().map(|limit| limit.driver.waiting_for(limit.now)).max();
        let silent = oldest.is_some_and(|since| since > self.patience)
            || self.limits.waiting_for(now) > self.patience
            || !self.session.is_ready()
                && now.saturating_sub(self.connecting_since) > self.patience;
        if silent {
            return self.give_up();
        }
        self.ask()?;
        self.send()
    }

    /// Ends a connection on which the store is silent.
    fn give_up(&mut self) -> Option<()> {
        self.broken = None;
        None
    }

    /// Queues calls with the questions that are due.
    fn ask(&mut self) -> Option<()> {
        let Client { limits, session, me, now, .. } = self;
        while limits.may_call() && session.is_ready() && session.room() >= limits.bytes_most() {
            if !self.is_closing && !limits.is_due() {
                break;
            }
            let mut put: call::Put<'_> = &mut |keys, args, write| {
                session.call_with(LEASE, keys, args, |writer| write(writer))
            };
            if !limits.call(me.random(), *now, &mut put)? {
                break;
            }
        }
        Some(())
    }

    fn receive(&mut self) -> Option<()> {
        loop {
            let read = self.link.read(self.session.input());
            if let Err(error) = read {
                let is_ready = self.session.is_ready();
                (self.broken, self.was_ready, self.fault) = (Some(error), is_ready, None);
            }
            let n = read.ok()?;
            if n == 0 {
                return Some(());
            }
            self.session.read(n);
            while let Some(reply) = self.session.next() {
                // The handshake is over.
                self.fault = None;
                match reply {
                    Ok(answer) => self.limits.answered(self.now, &|n| answer.bytes(n)),
                    Err(fault) => {
                        self.limits.refused(self.now, fault, self.session.error_text().as_bytes());
                    }
                }
            }
        }
    }

    fn send(&mut self) -> Option<()> {
        while !self.session.output().is_empty() {
            match self.link.write(self.session.output()).ok()? {
                0 => break,
                n => self.session.wrote(n),
            }
        }
        Some(())
    }

    fn hang_up(&mut self) {
        self.link.close();
        self.limits.dropped();
        // The pause is random, so that machines which lost the store together do not return
        // together.
        let longest = match self.broken {
            Some(LinkError::Tls(_)) => RECONNECT_TLS,
            _ => RECONNECT,
        };
        let jitter = (longest / 64).saturating_mul(self.me.random() >> 58);
        self.connect_at = self.now.saturating_add(longest / 2).saturating_add(jitter / 2);
    }

    /// Returns whether this client asks for some of the limits.
    fn elect(&mut self) -> bool {
        let found = self.limits.elect(&self.me);
        // An event loop would wake for ever on a connection that nobody reads. The answers of a
        // connection that stays would come for questions that the driver has forgotten.
        if (found.has_lost || !found.leads) && self.link.fd() >= 0 {
            self.link.close();
            self.connect_at = self.now;
            self.limits.displaced();
        }
        found.leads
    }

    /// After a fork the child starts with an empty client: the connection and the debts belong to
    /// its parent.
    fn after_fork(&mut self) {
        if self.me.has_forked() {
            self.link.close();
            self.limits.after_fork(&mut self.me);
            self.connect_at = self.now;
        }
    }
}

/// A frame of its own, so that the session's bytes are on no deeper caller's stack.
#[inline(never)]
fn session(url: &Url) -> Option<Box<Session>> {
    boxed(Session::new(url, SCRIPTS, BUFFER, BUFFER).ok()?)
}

impl<N: Deref<Target = Node>> core::fmt::Debug for Client<N> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Client")
            .field("circuit", &self.circuit())
            .field("fd", &self.link.fd())
            .finish()
    }
}

mod call;
pub mod calls;
mod limit;
mod member;
mod owner;
mod refusal;
mod trouble;
