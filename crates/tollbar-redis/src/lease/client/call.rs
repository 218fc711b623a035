//! Calls of the script: which questions of which limits go together, and whom the replies are for.

use super::limit::Limit;
use super::member::Member;
use crate::lease::keys::Fifo;
use crate::lease::node::{Node, PAUSE};
use crate::lease::stats::Circuit;
use crate::lease::wire::{self, Batch};
use crate::lease::NodeError;
use crate::redis::resp::{Full, Writer};
use crate::redis::Fault;
use alloc::boxed::Box;
use core::ops::Deref;

/// The limits of a client. A limit takes the first free place.
pub(super) struct Limits<N> {
    all: [Option<Box<Limit<N>>>; LIMITS_MOST],
    /// No place from here on has a limit.
    count: usize,
    /// The limit that comes first in the next call.
    first: usize,
    /// The limits and the numbers of questions of the calls without a reply. [`LAST`] ends a call.
    parts: Fifo,
    /// Calls without a reply.
    calls: usize,
    /// Since when one of them is the next to get its reply.
    calls_since: u64,
    /// Whether each call has one limit, and counts as the first on its connection.
    is_split: bool,
    /// When a driver was last busy.
    active_at: u64,
}

/// The most limits of a client.
pub(super) const LIMITS_MOST: usize = 128;
/// The most questions about keys in a call.
const KEYS_MOST: usize = 64;
/// The most bytes of a call.
pub(super) const BYTES_MOST: usize = wire::bytes_most(LIMITS_MOST, KEYS_MOST);
/// The most calls without a reply.
const CALLS_MOST: usize = 4;
/// In a call without a reply: the number of a limit that has left the client.
const GONE: u32 = LIMITS_MOST as u32;
/// Marks the last part of a call.
const LAST: u64 = 1 << 32;
/// Milliseconds between turns while a driver is busy, for [`ACTIVE`] after that, and while a
/// circuit is not closed.
const BUSY: u32 = 1;
/// Milliseconds between turns of an idle client that leads.
const IDLE: u32 = (PAUSE / 1_000_000) as u32;
/// Milliseconds between turns of a client that does not lead.
pub(super) const FOLLOWER: u32 = 100;
/// Nanoseconds after a driver was last busy for which turns stay [`BUSY`].
const ACTIVE: u64 = 100_000_000;

/// Queues a call. It is given the number of keys, the number of arguments, and what writes both.
pub(super) type Put<'a> =
    &'a mut dyn FnMut(usize, usize, &dyn Fn(&mut Writer<'_>)) -> Result<(), Full>;

/// The clients that ask for the limits, as of a turn's beginning.
pub(super) struct Election {
    /// Whether this client asks for some.
    pub(super) leads: bool,
    /// Whether another client asks for a limit for which this one did.
    pub(super) has_lost: bool,
}

impl<N: Deref<Target = Node>> Limits<N> {
    /// `is_split`: each call has one limit only, and may be on a connection of its own.
    pub(super) fn new(is_split: bool) -> Option<Limits<N>> {
        Some(Limits {
            all: [const { None }; LIMITS_MOST],
            count: 0,
            first: 0,
            parts: Fifo::new(CALLS_MOST * LIMITS_MOST)?,
            calls: 0,
            calls_since: 0,
            is_split,
            active_at: 0,
        })
    }

    /// Adds the limit of `node`, and allocates the memory that its questions need. Errors:
    /// [`NodeError::NoMemory`]; [`NodeError::TooMany`] if there are 128 limits, or this one.
    pub(super) fn enter(&mut self, node: N, me: &mut Member) -> Result<(), NodeError> {
        if self.iter().any(|limit| limit.node.name() == node.name()) {
            return Err(NodeError::TooMany);
        }
        let mut limit = Limit::boxed(node, me.random())?;
        limit.alone = self.is_split;
        let free = self.all.iter().position(Option::is_none).ok_or(NodeError::TooMany)?;
        *self.all.get_mut(free).ok_or(NodeError::TooMany)? = Some(limit);
        self.count = self.count.max(free + 1);
        Ok(())
    }

    /// Removes the limit of `node`, and lets other clients ask for it. Returns whether the store
    /// has confirmed its debts; `None`: there is no such limit.
    pub(super) fn leave(&mut self, node: &Node, me: &Member) -> Option<bool> {
        let is_it = |place: &Option<Box<Limit<N>>>| {
            place.as_ref().is_some_and(|limit| core::ptr::eq(&*limit.node, node))
        };
        let at = self.all.iter().position(is_it)?;
        let mut limit = self.all.get_mut(at)?.take()?;
        // A reply may still come for another limit's questions in the same call.
        self.parts.rename(at as u32, GONE);
        let confirmed = limit.driver.has_confirmed_all();
        limit.driver.displaced(&limit.node, limit.now);
        limit.resign(me.name);
        Some(confirmed)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Limit<N>> + Clone {
        self.all.iter().flatten().map(|limit| &**limit)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Limit<N>> {
        self.all.iter_mut().flatten().map(|limit| &mut **limit)
    }

    /// The limits for which this client asks the store.
    pub(super) fn led(&mut self) -> impl Iterator<Item = &mut Limit<N>> {
        self.iter_mut().filter(|limit| limit.leads)
    }

    /// Finds out for which nodes this client asks, and makes it ask for those that no client asks
    /// for.
    pub(super) fn elect(&mut self, me: &Member) -> Election {
        let mut found = Election { leads: false, has_lost: false };
        for limit in self.iter_mut() {
            found.has_lost |= limit.begin(me.name);
            found.leads |= limit.leads;
        }
        found
    }

    /// Reads the clocks, after a call that has ended.
    pub(super) fn refresh(&mut self) {
        self.iter_mut().for_each(|limit| limit.now = limit.node.now());
        self.led().for_each(|limit| limit.waits(false));
    }

    /// Publishes that the client waits for the call's reply.
    pub(super) fn wait(&mut self) {
        if let Some((number, _)) = self.parts.get(0) {
            self.get_mut(number as usize).into_iter().for_each(|limit| limit.waits(true));
        }
    }

    /// Reads the callers' messages.
    pub(super) fn collect(&mut self) {
        self.led().for_each(|limit| limit.driver.collect(&limit.node, limit.now));
    }

    /// The milliseconds until the next turn of a client that leads.
    pub(super) fn pause(&mut self, now: u64) -> u32 {
        if self.led().any(|limit| limit.driver.is_busy()) {
            self.active_at = now;
        }
        let is_away = |limit: &mut Limit<N>| limit.driver.circuit() != Circuit::Closed;
        match now.saturating_sub(self.active_at) < ACTIVE || self.led().any(is_away) {
            true => BUSY,
            false => IDLE,
        }
    }

    /// Whether a question should be sent now.
    pub(super) fn is_due(&mut self) -> bool {
        self.led().any(|limit| limit.driver.is_due(limit.now))
    }

    /// Wakes the callers whose answers have come.
    pub(super) fn wake(&mut self) {
        self.iter_mut().for_each(|limit| limit.driver.wake(&limit.node));
    }

    /// Forgets the calls without a reply, and that the connection was there.
    pub(super) fn dropped(&mut self) {
        self.forget_calls();
        self.led().for_each(|limit| limit.driver.dropped(&limit.node, limit.now));
    }

    /// Leaves the limits to another client. The circuits stay as they are: that client sets them.
    pub(super) fn displaced(&mut self) {
        self.forget_calls();
        self.iter_mut().for_each(|limit| limit.driver.displaced(&limit.node, limit.now));
    }

    /// Gives a forked child a name of its own and empty drivers: the debts belong to its parent.
    pub(super) fn after_fork(&mut self, me: &mut Member) {
        self.forget_calls();
        me.rename();
        self.iter_mut().for_each(|limit| limit.after_fork(me.random()));
    }

    /// Lets other clients ask. Returns whether the store has confirmed all debts.
    pub(super) fn resign(&mut self, me: &Member) -> bool {
        let confirmed = self.has_confirmed(None);
        self.iter_mut().for_each(|limit| limit.resign(me.name));
        confirmed
    }

    /// Whether the store has confirmed the debts of all limits, or of that of `only`.
    pub(super) fn has_confirmed(&self, only: Option<&Node>) -> bool {
        self.of(only).all(|limit| limit.driver.has_confirmed_all())
    }

    /// Whether this client asks for a limit.
    pub(super) fn leads(&self) -> bool {
        self.iter().any(|limit| limit.leads)
    }

    /// All limits, or that of `only`.
    pub(super) fn of<'a>(
        &'a self,
        only: Option<&'a Node>,
    ) -> impl Iterator<Item = &'a Limit<N>> + Clone
    where
        N: 'a,
    {
        self.iter().filter(move |limit| only.map_or(true, |node| core::ptr::eq(&*limit.node, node)))
    }

    /// Whether a limit's circuit is another one than at the last call.
    pub(super) fn has_changed(&mut self) -> bool {
        self.iter_mut().fold(false, |changed, limit| {
            let now = limit.node.circuit(limit.node.now());
            core::mem::replace(&mut limit.reported, now) != now || changed
        })
    }

    /// The circuit of all limits: open if any is, closed if all are.
    pub(super) fn circuit(&self) -> Circuit {
        Circuit::of_all(self.iter().map(|limit| limit.node.circuit(limit.node.now())))
    }

    /// [`Client::notice`](super::Client::notice), of all limits or of that of `only`.
    pub(super) fn notice<'a>(&'a self, only: Option<&'a Node>) -> Option<(&'a N, &'static str)> {
        self.of(only).find_map(|limit| Some((&limit.node, limit.driver.notice(&limit.node)?)))
    }

    /// The bytes of a call with the questions of all limits.
    pub(super) fn bytes_most(&self) -> usize {
        wire::bytes_most(self.count, KEYS_MOST)
    }

    /// Forgets the calls without a reply.
    pub(super) fn forget_calls(&mut self) {
        self.parts.clear();
        self.calls = 0;
    }

    /// Whether another call may be sent before a reply comes.
    pub(super) fn may_call(&self) -> bool {
        self.calls < if self.is_split { 1 } else { CALLS_MOST }
    }

    /// For how long the oldest call has waited for its reply, be it that its limits have left.
    pub(super) fn waiting_for(&self, now: u64) -> u64 {
        match self.calls {
            0 => 0,
            _ => now.saturating_sub(self.calls_since),
        }
    }

    /// Queues a call with the questions of all limits that have some. If there are more than
    /// [`KEYS_MOST`], each limit has a fair part, and the next call begins with the limits that had
    /// none. Returns whether there was a question; `None` if there was no room for it.
    pub(super) fn call(&mut self, fresh: u64, now: u64, put: Put<'_>) -> Option<bool> {
        let before = self.parts.len();
        let first = self.share();
        for at in (first..self.count).chain(0..first) {
            let Some(limit) = self.get_mut(at) else { continue };
            let mut count = 0;
            while count < limit.quota && limit.driver.ask(&limit.node, limit.now).is_some() {
                count += 1;
            }
            if count != 0 {
                self.parts.push(at as u32, count as u64);
            }
        }
        let end = self.parts.len();
        if end == before {
            return Some(false);
        }
        let is_split = self.is_split;
        let parts = (before..end).filter_map(|n| {
            let (number, count) = self.parts.get(n)?;
            let limit = self.all.get(number as usize)?.as_deref()?;
            let (node, driver, now) = (&*limit.node, &limit.driver, limit.now);
            let first = is_split || !limit.has_asked;
            Some(Batch { node, driver, count: count as usize, now, first })
        });
        let (keys, args) = wire::counts(parts.clone());
        put(keys, args, &|writer| wire::write(writer, parts.clone(), fresh)).ok()?;
        for n in before..end {
            let (number, _) = self.parts.get(n)?;
            self.get_mut(number as usize)?.has_asked = true;
        }
        self.parts.mark_last(LAST);
        if self.calls == 0 {
            self.calls_since = now;
        }
        self.calls += 1;
        Some(true)
    }

    /// Sets each limit's [`Limit::quota`] for the next call, and which limit comes first in the one
    /// after that. Returns the limit that comes first in this call.
    fn share(&mut self) -> usize {
        let first = self.first;
        let (mut keyed, mut total, mut head) = (0_usize, 0_usize, None);
        for at in self.rotation() {
            let Some(limit) = self.get_mut(at) else { continue };
            limit.quota = if limit.leads { limit.driver.ready(limit.now) } else { 0 };
            if limit.quota == 0 {
                continue;
            }
            head = head.or(Some((at, limit.alone)));
            if limit.driver.has_keys() && !limit.alone {
                keyed += 1;
                total += limit.quota;
            }
        }
        let Some((head, is_alone)) = head else { return first };
        let (mut left, mut skipped) = (KEYS_MOST, None);
        for at in self.rotation() {
            let Some(limit) = self.get_mut(at) else { continue };
            if limit.quota == 0 {
                continue;
            }
            if if is_alone { at != head } else { limit.alone } {
                limit.quota = 0;
            } else if limit.driver.has_keys() {
                let fair = if total <= KEYS_MOST { left } else { left.div_ceil(keyed.max(1)) };
                limit.quota = limit.quota.min(fair);
                left -= limit.quota;
                keyed = keyed.saturating_sub(1);
            }
            if limit.quota == 0 {
                skipped = skipped.or(Some(at));
            }
        }
        self.first = skipped.unwrap_or(self.wrapped(first + 1));
        first
    }

    /// Gives each limit of the oldest call what the script returned for it, at the time `at`:
    /// `item(n)` is item `n` of the return value.
    pub(super) fn answered<'a>(&mut self, at: u64, item: &dyn Fn(usize) -> Option<&'a [u8]>) {
        (self.calls, self.calls_since) = (self.calls.saturating_sub(1), at);
        for n in 0.. {
            let Some((number, count, is_last)) = self.next_part() else { break };
            let stays_alone = self.is_split || n != 0 || !is_last;
            if let Some(limit) = self.get_mut(number) {
                limit.alone &= stays_alone;
                limit.answered(item(n), count);
            }
            if is_last {
                break;
            }
        }
    }

    /// Tells each limit of the oldest call that the store has refused it. If only some of the
    /// limits may be the reason, each asks alone.
    pub(super) fn refused(&mut self, at: u64, fault: Fault, text: &[u8]) {
        (self.calls, self.calls_since) = (self.calls.saturating_sub(1), at);
        let is_single = self.parts.front().is_some_and(|(_, count)| count & LAST != 0);
        let is_known = is_single || matches!(fault, Fault::Unavailable(_));
        while let Some((number, count, is_last)) = self.next_part() {
            if let Some(limit) = self.get_mut(number) {
                if fault == Fault::NoScript {
                    limit.refused(count, false);
                } else if is_known {
                    limit.note(fault, text, 0);
                    limit.refused(count, true);
                } else {
                    limit.alone = true;
                    limit.refused(count, false);
                }
            }
            if is_last {
                break;
            }
        }
    }

    /// Takes the oldest part of the calls that wait for a reply. Returns the limit's number, how
    /// many questions of the limit the part has, and whether the part is its call's last.
    fn next_part(&mut self) -> Option<(usize, usize, bool)> {
        let (number, count) = self.parts.pop()?;
        Some((number as usize, (count & !LAST) as usize, count & LAST != 0))
    }

    /// All limits, from the one that comes first.
    fn rotation(&self) -> impl Iterator<Item = usize> {
        let (first, count) = (self.first, self.count);
        (first..count).chain(0..first.min(count))
    }

    fn get_mut(&mut self, n: usize) -> Option<&mut Limit<N>> {
        self.all.get_mut(n)?.as_deref_mut()
    }

    fn wrapped(&self, n: usize) -> usize {
        if n < self.count {
            n
        } else {
            0
        }
    }
}
