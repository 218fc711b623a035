//! A simulation: callers of one key at virtual times, in one or several processes.

use super::super::line::{Seat, Waiter, WaiterAction};
use super::super::{decide, Permits, WaiterQueues};
use crate::clock::{Clock, Manual};
use crate::NEVER;
use std::vec::Vec;

/// A caller of `wait`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caller {
    pub(crate) comes: u64,
    pub(crate) cost: u64,
    pub(crate) deadline: u64,
    /// When it leaves by itself, as a cancelled task does.
    pub(crate) gives_up: u64,
    /// The process, from 0.
    pub(crate) process: usize,
}

/// A caller for one permit with endless patience.
pub(crate) fn caller(comes: u64) -> Caller {
    Caller { comes, cost: 1, deadline: NEVER - 1, gives_up: NEVER, process: 0 }
}

/// How a call ended, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Admitted(u64),
    Refused(u64),
    GaveUp(u64),
}

impl End {
    pub(crate) fn at(self) -> u64 {
        match self {
            End::Admitted(at) | End::Refused(at) | End::GaveUp(at) => at,
        }
    }

    pub(crate) fn admitted(self) -> Option<u64> {
        match self {
            End::Admitted(at) => Some(at),
            _ => None,
        }
    }
}

/// What surrounds the callers.
pub(crate) struct World<'a> {
    pub(crate) clock: &'a Manual,
    pub(crate) processes: usize,
    /// A caller that checks, so often.
    pub(crate) polls_every: Option<u64>,
    /// Each sleep ends so much late.
    pub(crate) late: u64,
}

impl<'a> World<'a> {
    pub(crate) fn new(clock: &'a Manual) -> World<'a> {
        World { clock, processes: 1, polls_every: None, late: 0 }
    }

    /// Makes all calls. Returns their ends, and the number of permits that the polling caller got
    /// before the last end. Of several things that happen at one time the one comes first that
    /// `choose(n)`, a number below n, says.
    pub(crate) fn run<P: Permits>(
        &self,
        permits: &P,
        callers: &[Caller],
        choose: &mut dyn FnMut(usize) -> usize,
    ) -> (Vec<End>, u64) {
        let new = |_| WaiterQueues::<1>::new(u32::MAX);
        let queues: Vec<_> = (0..self.processes).map(new).collect();
        let waiters = Vec::from_iter(callers.iter().map(|c| Waiter::new(0, c.cost, c.deadline)));
        let mut ends: Vec<Option<End>> = callers.iter().map(|_| None).collect();
        // A caller's seat, its place among the sleepers, and the end of its sleep.
        let mut seats = Vec::from_iter(callers.iter().map(|_| None));
        let mut polled = 0;
        let mut polls_at = self.polls_every.map_or(NEVER, |every| self.clock.now() + every);
        loop {
            let event = |n: usize| match (&ends[n], &seats[n]) {
                (Some(_), _) => NEVER,
                (None, None) => callers[n].comes,
                (None, Some((_, _, wakes))) => match waiters[n].bell().has_rung() {
                    true => 0,
                    false => callers[n].gives_up.min(*wakes),
                },
            };
            let Some(next) = (0..callers.len()).filter(|&n| ends[n].is_none()).map(event).min()
            else {
                break;
            };
            if polls_at < next {
                self.clock.set(polls_at);
                polled += u64::from(
                    permits.check(polls_at, 1).is_ok_and(|decision| decision.is_allowed()),
                );
                polls_at += self.polls_every.unwrap_or(NEVER);
                continue;
            }
            let ready: Vec<usize> =
                (0..callers.len()).filter(|&n| ends[n].is_none() && event(n) == next).collect();
            let n = ready[choose(ready.len())];
            let now = next.max(permits.now());
            self.clock.set(now);
            let Caller { cost, deadline, gives_up, process, .. } = callers[n];
            let action = match &seats[n] {
                None => match decide(permits, &queues[process], 0, now, cost, deadline) {
                    Ok(Some(decision)) => match decision.is_allowed() {
                        true => WaiterAction::Admitted,
                        false => WaiterAction::Refused(0),
                    },
                    Ok(None) => {
                        let place = queues[process].waiters.enter();
                        let seat = Seat::new(queues[process].list(0), &waiters[n], permits);
                        let action = seat.join(now, None).unwrap_or(WaiterAction::Refused(0));
                        seats[n] = Some((seat, place, 0));
                        action
                    }
                    Err(_) => WaiterAction::Refused(0),
                },
                Some((_, _, wakes)) if gives_up <= now && (*wakes > now || choose(2) == 0) => {
                    seats[n] = None;
                    ends[n] = Some(End::GaveUp(now));
                    continue;
                }
                Some((seat, _, _)) => seat.action(now, None).unwrap_or(WaiterAction::Refused(0)),
            };
            match action {
                WaiterAction::Until(at) => {
                    assert!(at > now, "a sleep until {at} at {now}");
                    if let Some((_, _, wakes)) = &mut seats[n] {
                        *wakes = at.saturating_add(self.late);
                    }
                }
                WaiterAction::Admitted => ends[n] = Some(End::Admitted(now)),
                WaiterAction::Refused(_) => ends[n] = Some(End::Refused(now)),
            }
            seats[n] = seats[n].take().filter(|_| ends[n].is_none());
        }
        let waits = |queues: &WaiterQueues<1>| queues.asleep() != 0 || queues.list(0).anybody(0);
        assert!(!queues.iter().any(waits), "a caller is still in the queue");
        (ends.into_iter().flatten().collect(), polled)
    }
}
