//! The hosts of a client: a bounded list that forgets idle hosts.

use super::host::Host;
use super::{Answer, HostState, Options};
use crate::http::Seen;
use alloc::vec::Vec;

/// The most hosts of a [`Hosts`]. A call compares the hash of each, so more would make it slow.
pub const HOSTS_MOST: usize = 4096;

/// The rates of many hosts. If a new host finds no room, the host that has been idle for the
/// longest time is forgotten. A host that has been idle for ten minutes counts as new.
#[derive(Debug)]
pub struct Hosts {
    options: Options,
    slots: Vec<HostSlot>,
    /// The most slots.
    most: usize,
    /// The turns of all hosts so far. A new host's turns begin here, so a ticket of a forgotten
    /// host never waits.
    turns: u64,
}

/// A turn to send one request to a host. It ends with one call of [`Hosts::respond`] or
/// [`Hosts::leave`], or with none if the request got no answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
#[must_use = "the request counts as sent"]
pub struct Ticket {
    /// The hash of the host's name.
    pub host: u64,
    /// The number of the turn.
    pub turn: u64,
}

#[derive(Clone, Copy, Debug)]
struct HostSlot {
    /// The hash of the name. Two names with one hash share a rate.
    hash: u64,
    host: Host,
}

const FORGET_AFTER: u64 = 600_000_000_000;

impl Hosts {
    /// Room for `most` hosts, from 1 to [`HOSTS_MOST`]. `None`: another number, options that are
    /// not valid, or no memory. Only this call allocates.
    pub fn new(options: &Options, most: usize) -> Option<Hosts> {
        if !options.is_valid() || most == 0 || most > HOSTS_MOST {
            return None;
        }
        let mut slots = Vec::new();
        slots.try_reserve_exact(most).ok()?;
        Some(Hosts { options: *options, slots, most, turns: 0 })
    }

    /// Takes the next turn of a host. `name` is any text that names what has one limit, such as
    /// `https://api.example.com`.
    pub fn acquire(&mut self, name: &[u8], now: u64) -> Ticket {
        let hash = hash(name);
        let options = self.options;
        let turn = self.host(hash, now).map_or(0, |host| host.acquire(&options, now));
        self.turns = self.turns.saturating_add(1);
        Ticket { host: hash, turn }
    }

    /// Nanoseconds to sleep before the caller asks again. 0: the caller may send now, and the
    /// request counts as sent. If the host has paused, the sleep lasts at least as long as the
    /// pause. Otherwise it is at most a second, because the rate may rise meanwhile.
    pub fn wait(&mut self, ticket: Ticket, now: u64) -> u64 {
        let options = self.options;
        self.find(ticket.host).map_or(0, |host| host.wait(&options, ticket.turn, now))
    }

    /// The host has answered. `seen` is what the answer's header says about limits.
    pub fn respond(&mut self, ticket: Ticket, now: u64, answer: Answer, seen: &Seen) {
        let options = self.options;
        if let Some(host) = self.host(ticket.host, now) {
            host.respond(&options, ticket.turn, now, answer, seen);
        }
    }

    /// Gives a turn back before the request was sent. The callers behind it move up. (A request
    /// that was sent and got no answer needs no call. It says nothing about limits.)
    pub fn leave(&mut self, ticket: Ticket, now: u64) {
        let options = self.options;
        if let Some(host) = self.find(ticket.host) {
            host.leave(&options, now);
        }
    }

    /// The state of a host. `None`: no request yet, or forgotten.
    pub fn read(&mut self, name: &[u8], now: u64) -> Option<HostState> {
        let options = self.options;
        self.find(hash(name)).map(|host| host.read(&options, now))
    }

    /// How many hosts are known.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether no host is known.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Adds a slot within the memory that [`Hosts::new`] has reserved, and returns its index.
    fn append(&mut self, slot: HostSlot) -> Option<usize> {
        let index = self.slots.len();
        self.slots.spare_capacity_mut().first_mut()?.write(slot);
        // SAFETY: the vector has spare capacity for one more slot, which the line above has
        // written.
        unsafe { self.slots.set_len(index + 1) };
        Some(index)
    }

    fn find(&mut self, hash: u64) -> Option<&mut Host> {
        self.slots.iter_mut().find(|slot| slot.hash == hash).map(|slot| &mut slot.host)
    }

    /// The host with that hash, which is new if it was unknown or idle for long.
    fn host(&mut self, hash: u64, now: u64) -> Option<&mut Host> {
        let fresh = HostSlot { hash, host: Host::new(&self.options, self.turns, now) };
        let known = self.slots.iter().position(|slot| slot.hash == hash);
        let index = match known {
            Some(index) => index,
            None if self.slots.len() < self.most => self.append(fresh)?,
            None => self.slots.iter().enumerate().min_by_key(|(_, slot)| slot.host.idle_since())?.0,
        };
        let slot = self.slots.get_mut(index)?;
        if slot.hash != hash || slot.host.idle_since().saturating_add(FORGET_AFTER) < now {
            *slot = fresh;
        }
        Some(&mut slot.host)
    }
}

/// SipHash-2-4 of a host's name.
fn hash(name: &[u8]) -> u64 {
    crate::route::hash(0, 0, name)
}
