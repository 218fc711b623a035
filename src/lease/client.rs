//! Who asks the store, with input and output: a [`Driver`], a conversation and a socket that never waits.

use super::driver::Driver;
use super::node::{Node, PAUSE};
use super::stats::Circuit;
use super::wire::{self, SCRIPTS};
use super::NodeError;
use crate::redis::{Fault, Link, LinkError, Session, Url, Wants};
use crate::sync::{AtomicU32, Ordering};
use crate::table::region::random_u64;

/// Asks the store for a [`Node`]. Of all the clients that the processes of a machine have for one node, one asks at a time; when
/// it ends, however it ends, another takes its place within a second.
///
/// It is driven by [`Client::tick`], from an event loop that watches [`Client::fd`] or from a thread of its own ([`Client::run`]).
pub struct Client {
    driver: Driver,
    link: Link,
    session: Session,
    keys: usize,
    /// The process that made it, and a number of its own.
    me: u64,
    /// When to connect (again).
    connect_at: u64,
    /// When connecting began, and whether the conversation has.
    connecting_since: u64,
    greeted: bool,
    /// When something was last said or waited for.
    active_at: u64,
    fault: Option<Fault>,
    /// Why there is no connection.
    broken: Option<LinkError>,
    random: u64,
}

/// Between two attempts to connect.
const RECONNECT: u64 = 50_000_000;
/// A connection that is not made, or does not answer, for so long is given up.
const PATIENCE: u64 = 1_000_000_000;
/// After so long without a sign of life another client takes over.
const LEADER: u64 = 500_000_000;
/// Milliseconds until the next call: while there is something to do, soon after, and of one that does not lead.
const BUSY: u32 = 1;
const IDLE: u32 = (PAUSE / 1_000_000) as u32;
const FOLLOWER: u32 = 100;
const ACTIVE: u64 = 100_000_000;
const BUFFER: usize = 64 << 10;

impl Client {
    /// A client for the store at `url`. It takes its memory, and does not connect yet.
    pub fn new(node: &Node, url: &Url) -> Result<Client, NodeError> {
        let (keys, random) = (node.capacity(), random_u64()?);
        Ok(Client {
            driver: Driver::new(keys, random).ok_or(NodeError::NoMemory)?,
            link: Link::new(url),
            session: Session::new(url, SCRIPTS, BUFFER, BUFFER).map_err(|_| NodeError::NoMemory)?,
            keys,
            me: name(random),
            connect_at: 0,
            connecting_since: 0,
            greeted: false,
            active_at: 0,
            fault: None,
            broken: None,
            random,
        })
    }

    /// Does what there is to do and never waits, for the network or for a name server; returns the milliseconds after which it has to
    /// be called again, sooner if [`Client::fd`] is ready for what [`Client::wants`] says.
    ///
    /// A tick takes in what callers have said, reads and writes a socket, and at most every 25 ms begins a connection. To
    /// begin one to a host's name it reads /etc/hosts and /etc/resolv.conf, 64 KiB of each at most, and sends a question.
    pub fn tick(&mut self, node: &Node) -> u32 {
        self.turn(node, true)
    }

    fn turn(&mut self, node: &Node, may_connect: bool) -> u32 {
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
            (self.connecting_since, self.greeted) = (now, false);
            if let Err(error) = self.link.connect() {
                self.broken = Some(error);
                self.hang_up(node, now);
            }
        }
        if self.driver.is_busy() {
            self.active_at = now;
        }
        match now.saturating_sub(self.active_at) < ACTIVE || self.driver.circuit() != Circuit::Closed {
            true => BUSY,
            false => IDLE,
        }
    }

    /// The descriptor to watch; -1 while there is none. It may be another one after each [`Client::tick`].
    pub fn fd(&self) -> i32 {
        self.link.fd()
    }

    /// What to watch it for.
    pub fn wants(&self) -> Wants {
        self.link.wants(!self.session.output().is_empty())
    }

    /// Drives it until `stop` is not 0. For a thread of its own, which sleeps most of the time.
    pub fn run(&mut self, node: &Node, stop: &AtomicU32) {
        while stop.load(Ordering::Acquire) == 0 {
            let millis = self.tick(node);
            self.wait(millis);
        }
    }

    /// Waits for the socket, `millis` at most.
    pub fn wait(&mut self, millis: u32) {
        let nanos = u64::from(millis) * 1_000_000;
        if self.link.wait(!self.session.output().is_empty(), nanos).is_err() {
            sleep(nanos);
        }
    }

    /// Tells the store what it has not been told, waiting `millis` for it at most, and lets another client take over. Whether all was told.
    /// What is left of leases is lost: the store hears nothing of it.
    pub fn close(&mut self, node: &Node, millis: u32) -> bool {
        let end = node.now().saturating_add(u64::from(millis) * 1_000_000);
        if self.pid_changed() {
            return false;
        }
        // A connection that is begun now would come too late.
        let may_connect = millis != 0;
        let told = loop {
            let wait = self.turn(node, may_connect);
            let told = self.driver.has_told();
            // One that does not lead has nobody to tell.
            if told || node.now() >= end || wait == FOLLOWER {
                break told;
            }
            self.wait(1);
        };
        if self.is_leader(node) {
            self.hang_up(node, node.now());
            // The last answers came after it was last said.
            node.header().owed.store(self.driver.owed(), Ordering::Relaxed);
        } else {
            self.let_go(node, node.now());
        }
        let _ = node.header().owner.compare_exchange(self.me, 0, Ordering::AcqRel, Ordering::Relaxed);
        told
    }

    /// Whether this client is the one that asks.
    pub fn is_leader(&self, node: &Node) -> bool {
        node.header().owner.load(Ordering::Relaxed) == self.me
    }

    /// Why the store last refused, if it did.
    pub fn fault(&self) -> Option<Fault> {
        self.fault
    }

    /// The store's own words for it; empty if it had none.
    pub fn fault_text(&self) -> &str {
        self.session.error_text()
    }

    /// Why there is no connection to the store, if there is none.
    pub fn broken(&self) -> Option<LinkError> {
        self.broken
    }

    /// What is to be said of a store that answers, if something is: that it grants nothing, or that machines disagree about the limit.
    pub fn notice(&self) -> Option<&'static str> {
        self.driver.notice()
    }

    /// Moves bytes and deals with what they say; `None` if the connection is over.
    fn exchange(&mut self, node: &Node, now: u64) -> Option<()> {
        if !self.greeted {
            let connected = self.link.advance();
            self.broken = connected.err();
            if !connected.ok()? {
                return if now.saturating_sub(self.connecting_since) > PATIENCE { None } else { Some(()) };
            }
            self.session.begin();
            self.greeted = true;
            self.driver.connected();
        }
        self.receive(node, now)?;
        if let Some(fault) = self.session.fault() {
            self.fault = Some(fault);
            return None;
        }
        let silent = self.driver.waiting_for(now) > PATIENCE
            || !self.session.is_ready() && now.saturating_sub(self.connecting_since) > PATIENCE;
        if silent {
            return None;
        }
        while self.session.is_ready() {
            let fresh = self.random();
            let Some(question) = self.driver.next(node, now) else { break };
            if wire::put(&mut self.session, node, &question, fresh).is_err() {
                break;
            }
            self.driver.sent(node, now);
        }
        self.send()
    }

    fn receive(&mut self, node: &Node, now: u64) -> Option<()> {
        loop {
            let n = self.link.read(self.session.input()).ok()?;
            if n == 0 {
                return Some(());
            }
            self.session.read(n);
            loop {
                // An answer that is none is as good as no answer.
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
        // Not all machines at the same time.
        let jitter = (RECONNECT / 64).saturating_mul(self.random() >> 58);
        self.connect_at = now.saturating_add(RECONNECT / 2).saturating_add(jitter / 2);
    }

    /// Another asks now. A connection that nobody reads would wake who watches it for ever; and whether the store answers is the
    /// other's to say.
    fn let_go(&mut self, node: &Node, now: u64) {
        if self.link.fd() >= 0 {
            self.link.close();
            self.driver.displaced(node, now);
            self.connect_at = now;
        }
    }

    /// Whether this client is the one that asks, or becomes it.
    fn leads(&mut self, node: &Node, now: u64) -> bool {
        let header = node.header();
        // Acquire and release: with what the one before has left in the ring.
        let owner = header.owner.load(Ordering::Acquire);
        if owner == self.me {
            return true;
        }
        // A beat of the future is damage, and as good as none.
        let quiet = now.abs_diff(header.beat.load(Ordering::Relaxed)) > LEADER;
        if owner != 0 && is_alive(owner) && !quiet {
            return false;
        }
        if header.owner.compare_exchange(owner, self.me, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            return false;
        }
        header.beat.store(now, Ordering::Relaxed);
        true
    }

    /// A child has a copy of its parent's client: the conversation and what is owed are the parent's, not its own.
    fn after_fork(&mut self, node: &Node) {
        if !self.pid_changed() {
            return;
        }
        self.link.close();
        self.random();
        self.me = name(self.random);
        if let Some(driver) = Driver::new(self.keys, self.random) {
            self.driver = driver;
        }
        self.connect_at = node.now();
    }

    fn pid_changed(&self) -> bool {
        self.me >> 32 != pid()
    }

    fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        self.random ^ self.random >> 29
    }
}

/// The process, and what tells its clients apart.
fn name(random: u64) -> u64 {
    pid() << 32 | random >> 32 | 1
}

fn pid() -> u64 {
    // SAFETY: a number only.
    u64::from(unsafe { libc::getpid() } as u32)
}

/// Whether the process of this name may still be there.
fn is_alive(owner: u64) -> bool {
    // SAFETY: signal 0 is sent to nobody; it asks whether there is somebody.
    let gone = unsafe { libc::kill((owner >> 32) as libc::pid_t, 0) } != 0;
    // A process in another namespace, or another user's, cannot be asked: its silence tells.
    !(gone && crate::table::region::errno() == libc::ESRCH)
}

fn sleep(nanos: u64) {
    let time = libc::timespec {
        tv_sec: (nanos / 1_000_000_000) as libc::time_t,
        tv_nsec: (nanos % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: `time` can be read; what is left of an interrupted sleep nobody asks for.
    unsafe { libc::nanosleep(&time, core::ptr::null_mut()) };
}

impl core::fmt::Debug for Client {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Client").field("circuit", &self.driver.circuit()).field("fd", &self.link.fd()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lease::Options;
    use std::net::UdpSocket;

    /// The name server never answers. A tick that waited for it would not come back for an hour, nor would the end.
    #[test]
    fn nothing_waits_for_a_name_server() {
        let node =
            Node::private("names", &"1000/s burst 500".parse().expect("a policy"), &Options::new(1)).expect("a node");
        let server = UdpSocket::bind("127.0.0.1:0").expect("a name server");
        let mut client = Client::new(&node, &Url::parse("redis://store.example").expect("a URL")).expect("a client");
        client.link.ask_only(server.local_addr().expect("its address").port());
        for _ in 0..1000 {
            assert_eq!(client.tick(&node), BUSY);
        }
        let mut question = [0; 512];
        assert!(server.recv(&mut question).expect("a question") > 12);
        assert!(node.check(b"k", 1).is_allowed(), "the node goes on by itself");
        assert!(!client.close(&node, 0), "what it owes is not told");
        let mut other = Client::new(&node, &Url::parse("redis://store.example").expect("a URL")).expect("a client");
        assert!(other.close(&node, 0), "it owes nothing, and connects to nobody");
    }
}
