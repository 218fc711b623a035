//! Calls of the script: which questions of which limits go together, and whom the replies are for.

use super::limit::Limit;
use crate::lease::keys::Fifo;
use crate::lease::node::Node;
use crate::lease::wire::{self, Batch};
use crate::redis::{Answer, Fault, Session};
use alloc::boxed::Box;
use core::ops::Deref;

/// The limits of a client, in the order in which they were added.
pub(super) struct Limits<N> {
    all: [Option<Box<Limit<N>>>; LIMITS_MOST],
    count: usize,
    /// The limit that comes first in the next call.
    first: usize,
    /// The limits and the numbers of questions of the calls without a reply. [`LAST`] ends a call.
    parts: Fifo,
    /// Calls without a reply.
    calls: usize,
}

/// The most limits of a client.
pub(super) const LIMITS_MOST: usize = 128;
/// The most questions about keys in a call.
const KEYS_MOST: usize = 64;
/// The most bytes of a call.
pub(super) const BYTES_MOST: usize = wire::bytes_most(LIMITS_MOST, KEYS_MOST);
/// The most calls without a reply.
const CALLS_MOST: usize = 4;
/// Marks the last part of a call.
const LAST: u64 = 1 << 32;

impl<N: Deref<Target = Node>> Limits<N> {
    pub(super) fn new() -> Option<Limits<N>> {
        Some(Limits {
            all: [const { None }; LIMITS_MOST],
            count: 0,
            first: 0,
            parts: Fifo::new(CALLS_MOST * LIMITS_MOST)?,
            calls: 0,
        })
    }

    /// `false`: there are as many as there may be.
    pub(super) fn add(&mut self, limit: Box<Limit<N>>) -> bool {
        match self.all.get_mut(self.count) {
            Some(place) => {
                *place = Some(limit);
                self.count += 1;
                true
            }
            None => false,
        }
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

    /// Forgets the calls without a reply.
    pub(super) fn forget_calls(&mut self) {
        self.parts.clear();
        self.calls = 0;
    }

    /// Whether another call may be sent before a reply comes.
    pub(super) fn may_call(&self, session: &mut Session) -> bool {
        self.calls < CALLS_MOST
            && session.is_ready()
            && session.room() >= wire::bytes_most(self.count, KEYS_MOST)
    }

    /// Queues a call with the questions of all limits that have some. If there are more than
    /// [`KEYS_MOST`], each limit has a fair part, and the next call begins with the limits that had
    /// none. Returns whether there was a question; `None` if there was no room for it.
    pub(super) fn call(&mut self, session: &mut Session, fresh: u64) -> Option<bool> {
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
        let parts = (before..end).filter_map(|n| {
            let (number, count) = self.parts.get(n)?;
            let limit = self.all.get(number as usize)?.as_deref()?;
            let (node, driver, now) = (&*limit.node, &limit.driver, limit.now);
            let first = !limit.has_asked;
            Some(Batch { node, driver, count: count as usize, now, first })
        });
        wire::put(session, parts, fresh).ok()?;
        for n in before..end {
            let (number, _) = self.parts.get(n)?;
            self.get_mut(number as usize)?.has_asked = true;
        }
        self.parts.mark_last(LAST);
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

    /// Gives each limit of the oldest call what the script returned for it.
    pub(super) fn answered(&mut self, answer: &Answer<'_>) {
        self.calls = self.calls.saturating_sub(1);
        for n in 0.. {
            let Some((number, count, is_last)) = self.next_part() else { break };
            let is_alone = n == 0 && is_last;
            if let Some(limit) = self.get_mut(number) {
                limit.alone &= !is_alone;
                limit.answered(answer, n, count);
            }
            if is_last {
                break;
            }
        }
    }

    /// Tells each limit of the oldest call that the store has refused it. If only some of the
    /// limits may be the reason, each asks alone.
    pub(super) fn refused(&mut self, fault: Fault, text: &[u8]) {
        self.calls = self.calls.saturating_sub(1);
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
