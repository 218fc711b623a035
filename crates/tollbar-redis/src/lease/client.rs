//! The client: a [`Driver`], a [`Session`] and a non-blocking socket.

use super::bell::sleep_until_rung;
use super::driver::Driver;
use super::node::{Node, PAUSE};
use super::stats::Circuit;
use super::wire::{self, SCRIPTS};
use super::NodeError;
use crate::redis::{Fault, Link, LinkError, Session, Text, Transport, Url, Wants};
use alloc::boxed::Box;
use tollbar::internal::sync::{AtomicU32, Ordering};
use tollbar::internal::{generation, namespace, random_u64};

/// Asks the store for a [`Node`]. Each process of a machine may have a client for the same node;
/// one of them asks at a time. When it ends, by `kill -9` too, another takes over within a second.
///
/// [`Client::tick`] drives it, from an event loop that watches [`Client::fd`] or from a thread of
/// its own ([`Client::run`]). One thread at a time may use a client.
pub struct Client {
    driver: Driver,
    link: Link,
    session: Session,
    keys: usize,
    /// This client's name as [`Header::owner`](super::layout::Header).
    me: u64,
    /// `generation` of the process that made `me`. A forked child has another one, also where it
    /// has its parent's process number in a PID namespace of its own.
    generation: u32,
    /// When to begin the next connection. Times are nanoseconds of the node's clock.
    connect_at: u64,
    /// When the current connection was begun.
    connecting_since: u64,
    /// The URL's timeout, or [`PATIENCE`].
    patience: u64,
    /// Whether the handshake has begun on the current connection.
    greeted: bool,
    /// Whether a question has been asked on it.
    asked: bool,
    /// When the driver was last busy, in nanoseconds.
    active_at: u64,
    /// Why the store last refused a question. The next answer clears it.
    fault: Option<Fault>,
    /// The beginning of the key that the refused question was about; empty for one without a key.
    fault_key: Text<KEY_SHOWN>,
    /// Whether the store has answered the handshake on the last connection.
    was_ready: bool,
    /// Why there is no connection.
    broken: Option<LinkError>,
    random: u64,
}

/// The longest pause after a broken connection, in nanoseconds. The client chooses a random pause
/// from half of it to all of it.
const RECONNECT: u64 = 50_000_000;
/// The client closes a connection that it could not make within this many nanoseconds, or on which
/// a question has waited that long for its answer. The URL's `timeout` gives another time.
const PATIENCE: u64 = 1_000_000_000;
/// A client that has taken no turn for this many nanoseconds loses its node to another client.
const LEADER: u64 = 500_000_000;
/// Milliseconds between ticks while the driver is busy, for [`ACTIVE`] after that, and while the
/// circuit is not closed.
const BUSY: u32 = 1;
/// Milliseconds between ticks of an idle client that leads.
const IDLE: u32 = (PAUSE / 1_000_000) as u32;
/// Milliseconds between ticks of a client that does not lead.
const FOLLOWER: u32 = 100;
/// Nanoseconds after the driver was last busy for which ticks stay [`BUSY`].
const ACTIVE: u64 = 100_000_000;
/// The most bytes of a key in [`Client::trouble`].
const KEY_SHOWN: usize = 40;
/// Bytes of each of a connection's two buffers.
const BUFFER: usize = 64 << 10;

impl Client {
    /// Makes a client for the store at `url`. It allocates all its memory now, and connects at its
    /// first tick. Errors: [`NodeError::NoMemory`], or the system has no random numbers.
    pub fn new(node: &Node, url: &Url) -> Result<Client, NodeError> {
        let (keys, random) = (node.capacity(), random_u64()?);
        Ok(Client {
            driver: Driver::new(keys, random).ok_or(NodeError::NoMemory)?,
            link: Link::new(url),
            session: Session::new(url, SCRIPTS, BUFFER, BUFFER).map_err(|_| NodeError::NoMemory)?,
            keys,
            me: name(random),
            generation: generation(),
            connect_at: 0,
            connecting_since: 0,
            patience: if url.timeout == 0 { PATIENCE } else { url.timeout },
            greeted: false,
            asked: false,
            active_at: 0,
            fault: None,
            fault_key: Text::new(),
            was_ready: false,
            broken: None,
            random,
        })
    }

    /// Sets what makes TLS of a connection, for a URL with TLS (`rediss://`).
    pub fn secure(&mut self, transport: Box<dyn Transport>) {
        self.link.secure(transport);
    }

    /// Takes one turn and returns the milliseconds until the next: 1, 4 or 100. Call it sooner if
    /// [`Client::fd`] is ready for what [`Client::wants`] says. A tick never waits, neither for the
    /// network nor for the system's resolver.
    ///
    /// A tick reads the callers' messages, reads and writes the socket, and begins a connection at
    /// most every 25 ms. To connect to a host by name it starts a thread, which asks the system's
    /// resolver. A client has one such thread at a time.
    pub fn tick(&mut self, node: &Node) -> u32 {
        self.turn(node, true)
    }

    fn turn(&mut self, node: &Node, may_connect: bool) -> u32 {
        let pause = self.step(node, may_connect);
        self.driver.wake(node);
        pause
    }

    fn step(&mut self, node: &Node, may_connect: bool) -> u32 {
        let now = node.now();
        self.after_fork(node);
        if !self.leads(node, now) {
            self.let_go(node, now);
            return FOLLOWER;
        }
        self.driver.collect(node, now);
        if self.link.fd() >= 0 && self.exchange(node, now).is_none() {
            self.hang_up(node, now);
        }
        if may_connect && self.link.fd() < 0 && now >= self.connect_at {
            self.connect_at = now.saturating_add(RECONNECT);
            (self.connecting_since, self.greeted, self.was_ready) = (now, false, false);
            if let Err(error) = self.link.connect() {
                self.broken = Some(error);
                self.hang_up(node, now);
            }
        }
        if self.driver.is_busy() {
            self.active_at = now;
        }
        match now.saturating_sub(self.active_at) < ACTIVE
            || self.driver.circuit() != Circuit::Closed
        {
            true => BUSY,
            false => IDLE,
        }
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
    pub fn run(&mut self, node: &Node, stop: &AtomicU32) {
        while stop.load(Ordering::Acquire) == 0 {
            let bell = node.header().bell();
            let millis = self.tick(node);
            // While the store owes an answer, the answer wakes the client, and otherwise a caller.
            if self.link.fd() < 0 || self.driver.is_waiting() || !self.session.is_ready() {
                self.wait(millis);
            } else {
                sleep_until_rung(node.header(), bell, u64::from(millis) * 1_000_000);
            }
        }
    }

    /// Waits until the socket is ready, or `millis` milliseconds.
    pub fn wait(&mut self, millis: u32) {
        let nanos = u64::from(millis) * 1_000_000;
        if self.link.wait(!self.session.output().is_empty(), nanos).is_err() {
            sleep(nanos);
        }
    }

    /// Sends the store the debts that it has not confirmed, and lets another client take over. The
    /// call waits at most `millis` milliseconds; with 0 it begins no connection. Returns whether
    /// the store has confirmed all debts. The node can spend its leases until they end, and nobody
    /// gives back the permits that are left then.
    pub fn close(&mut self, node: &Node, millis: u32) -> bool {
        let end = node.now().saturating_add(u64::from(millis) * 1_000_000);
        if self.pid_changed() {
            return false;
        }
        // Within 0 ms a new connection would not be ready.
        let may_connect = millis != 0;
        let confirmed = loop {
            let wait = self.turn(node, may_connect);
            let confirmed = self.driver.has_confirmed_all();
            // A client that does not lead must not ask the store.
            if confirmed || node.now() >= end || wait == FOLLOWER {
                break confirmed;
            }
            self.wait(1);
        };
        if self.is_leader(node) {
            self.hang_up(node, node.now());
            // `collect` published the debts before the last answers came.
            node.header().owed.store(self.driver.owed(), Ordering::Relaxed);
        } else {
            self.let_go(node, node.now());
        }
        let _ =
            node.header().owner.compare_exchange(self.me, 0, Ordering::AcqRel, Ordering::Relaxed);
        confirmed
    }

    /// Whether this client is the one that asks the store.
    pub fn is_leader(&self, node: &Node) -> bool {
        node.header().owner.load(Ordering::Relaxed) == self.me
    }

    /// Why the store refused the last question; `None` after an answer.
    pub fn fault(&self) -> Option<Fault> {
        self.fault
    }

    /// The text of the store's last error; empty if there was none on this connection.
    pub fn fault_text(&self) -> &str {
        self.session.error_text()
    }

    /// Why the last attempt to connect failed; `None` if it did not.
    pub fn broken(&self) -> Option<LinkError> {
        self.broken
    }

    /// A text for the operator about a store that answers: its clock stands still, it grants
    /// nothing, or its record of the limit has other terms than the machine's configuration.
    pub fn notice(&self, node: &Node) -> Option<&'static str> {
        self.driver.notice(node)
    }

    /// Connects, reads answers and sends questions; `None` if the connection is over.
    fn exchange(&mut self, node: &Node, now: u64) -> Option<()> {
        if !self.greeted {
            let connected = self.link.advance();
            self.broken = connected.err();
            if self.broken.is_some() {
                self.fault = None;
            }
            if !connected.ok()? {
                return if now.saturating_sub(self.connecting_since) > self.patience {
                    None
                } else {
                    Some(())
                };
            }
            self.session.begin();
            (self.greeted, self.asked) = (true, false);
            self.driver.connected();
        }
        self.receive(node, now)?;
        self.was_ready |= self.session.is_ready();
        if let Some(fault) = self.session.fault() {
            self.fault = Some(fault);
            return None;
        }
        let silent = self.driver.waiting_for(now) > self.patience
            || !self.session.is_ready()
                && now.saturating_sub(self.connecting_since) > self.patience;
        if silent {
            return None;
        }
        while self.session.is_ready() {
            let fresh = self.random();
            let Some(question) = self.driver.next(node, now) else { break };
            if wire::put(&mut self.session, node, &question, !self.asked, fresh).is_err() {
                break;
            }
            self.asked = true;
            self.driver.sent(node, now);
        }
        self.send()
    }

    fn receive(&mut self, node: &Node, now: u64) -> Option<()> {
        loop {
            let read = self.link.read(self.session.input());
            if let Err(error) = read {
                (self.broken, self.fault) = (Some(error), None);
            }
            let n = read.ok()?;
            if n == 0 {
                return Some(());
            }
            self.session.read(n);
            loop {
                // A reply of another form counts as a refusal.
                let answer = match self.session.next() {
                    Some(Ok(answer)) => wire::grant(&answer).ok_or(Fault::Protocol),
                    Some(Err(fault)) => Err(fault),
                    None => break,
                };
                match answer {
                    Ok(grant) => {
                        self.fault = None;
                        self.driver.answered(node, &grant, now);
                    }
                    Err(Fault::NoScript) => self.driver.refused(node, false, now),
                    Err(fault) => {
                        self.fault = Some(fault);
                        self.fault_key = Text::of(self.driver.asked_key());
                        self.driver.refused(node, true, now);
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

    fn hang_up(&mut self, node: &Node, now: u64) {
        self.link.close();
        self.driver.dropped(node, now);
        // The pause is random, so that machines which lost the store together do not return
        // together.
        let jitter = (RECONNECT / 64).saturating_mul(self.random() >> 58);
        self.connect_at = now.saturating_add(RECONNECT / 2).saturating_add(jitter / 2);
    }

    /// Gives up the connection, because another client asks now. An event loop would wake for ever
    /// on a connection that nobody reads. The circuit stays as it is: the other client sets it.
    fn let_go(&mut self, node: &Node, now: u64) {
        if self.link.fd() >= 0 {
            self.link.close();
            self.driver.displaced(node, now);
            self.connect_at = now;
        }
    }

    /// Whether this client asks the store for the node. The call makes it the one that asks if
    /// there is none.
    fn leads(&mut self, node: &Node, now: u64) -> bool {
        let header = node.header();
        // Acquire, and Release in the exchange below: the next owner sees the ring's tail that the
        // last owner wrote.
        let owner = header.owner.load(Ordering::Acquire);
        if owner == self.me {
            return true;
        }
        // abs_diff: a beat in the future is damage, and counts as no beat.
        let quiet = now.abs_diff(header.beat.load(Ordering::Relaxed)) > LEADER;
        if owner != 0 && is_alive(owner) && !quiet {
            return false;
        }
        if header
            .owner
            .compare_exchange(owner, self.me, Ordering::AcqRel, Ordering::Relaxed)
            .is_err()
        {
            return false;
        }
        header.beat.store(now, Ordering::Relaxed);
        true
    }

    /// After a fork the child starts with an empty client: the connection and the debts belong to
    /// its parent.
    fn after_fork(&mut self, node: &Node) {
        if !self.pid_changed() {
            return;
        }
        self.link.close();
        self.random();
        (self.me, self.generation) = (name(self.random), generation());
        if let Some(driver) = Driver::new(self.keys, self.random) {
            self.driver = driver;
        }
        self.connect_at = node.now();
    }

    fn pid_changed(&self) -> bool {
        self.generation != generation()
    }

    fn random(&mut self) -> u64 {
        self.random =
            self.random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        self.random ^ self.random >> 29
    }
}

/// A client's name. It is never 0.
///
/// ```text
///  63        42 41           26 25      1   0
/// ┌────────────┬───────────────┬─────────┬───┐
/// │ process id │ PID namespace │ random  │ 1 │     the namespace's last 16 bits; 0: unknown
/// └────────────┴───────────────┴─────────┴───┘
/// ```
fn name(random: u64) -> u64 {
    pid() << PID_AT | namespace_bits() | random >> (64 - NAMESPACE_AT) | 1
}

const PID_AT: u32 = 42;
const NAMESPACE_AT: u32 = 26;
const NAMESPACE_MOST: u64 = 0xffff;

fn namespace_bits() -> u64 {
    (namespace() & NAMESPACE_MOST) << NAMESPACE_AT
}

/// Linux's ids are below 2^22.
fn pid() -> u64 {
    // SAFETY: getpid takes nothing and cannot fail.
    u64::from(unsafe { libc::getpid() } as u32) & ((1 << (64 - PID_AT)) - 1)
}

/// Whether the owner's process may still run. A process of another PID namespace, or of an unknown
/// one, may: it loses the node by its silence (LEADER).
fn is_alive(owner: u64) -> bool {
    let theirs = owner & NAMESPACE_MOST << NAMESPACE_AT;
    // Other systems have one PID namespace, without a number.
    if cfg!(target_os = "linux") && (theirs == 0 || theirs != namespace_bits()) {
        return true;
    }
    // SAFETY: numbers only; signal 0 checks whether the process exists and is never delivered.
    let gone = unsafe { libc::kill((owner >> PID_AT) as libc::pid_t, 0) } != 0;
    // Only ESRCH proves that there is no such process. EPERM means a process of another user. If
    // that one is dead, it loses the node by its silence (LEADER).
    !(gone && tollbar::internal::errno() == libc::ESRCH)
}

pub(super) fn sleep(nanos: u64) {
    let time = libc::timespec {
        tv_sec: (nanos / 1_000_000_000) as libc::time_t,
        tv_nsec: (nanos % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: `time` is readable for the call, and a null second argument is allowed: the remaining
    // time is not wanted.
    unsafe { libc::nanosleep(&time, core::ptr::null_mut()) };
}

impl core::fmt::Debug for Client {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Client")
            .field("circuit", &self.driver.circuit())
            .field("fd", &self.link.fd())
            .finish()
    }
}

mod trouble;

#[cfg(test)]
mod tests {
    use super::*;

    /// A killed client's node is free at once. A client of another PID namespace, whose number may
    /// be no process's here, loses it by its silence.
    #[cfg(target_os = "linux")]
    #[test]
    fn an_owner_of_another_namespace_is_not_known_to_be_dead() {
        let mut child = std::process::Command::new("true").spawn().expect("true");
        let ended = u64::from(child.id()) << PID_AT | 1;
        child.wait().expect("ended");
        assert!(is_alive(name(7)) && !is_alive(ended | namespace_bits()));
        for theirs in [0, (namespace() + 1) & NAMESPACE_MOST] {
            assert!(is_alive(ended | theirs << NAMESPACE_AT));
        }
    }
}
