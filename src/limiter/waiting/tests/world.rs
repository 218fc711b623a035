//! A simulation: callers of one key at virtual times, in one or several processes.

use super::super::line::{Seat, Turn, Waiter};
use super::super::{decide, Lines, Permits};
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
        let lines: Vec<Lines<1>> = (0..self.processes).map(|_| Lines::new(u32::MAX)).collect();
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
            let turn = match &seats[n] {
                None => match decide(permits, &lines[process], 0, now, cost, deadline) {
                    Ok(Some(decision)) => match decision.is_allowed() {
                        true => Turn::Admitted,
                        false => Turn::Refused(0),
                    },
                    Ok(None) => {
                        let place = lines[process].waiters.enter();
                        let seat = Seat::new(lines[process].list(0), &waiters[n], permits);
                        let turn = seat.join(now).unwrap_or(Turn::Refused(0));
                        seats[n] = Some((seat, place, 0));
                        turn
                    }
                    Err(_) => Turn::Refused(0),
                },
                Some((_, _, wakes)) if gives_up <= now && (*wakes > now || choose(2) == 0) => {
                    seats[n] = None;
                    ends[n] = Some(End::GaveUp(now));
                    continue;
                }
                Some((seat, _, _)) => seat.turn(now).unwrap_or(Turn::Refused(0)),
            };
            match turn {
                Turn::Until(at) => {
                    assert!(at > now, "a sleep until {at} at {now}");
                    if let Some((_, _, wakes)) = &mut seats[n] {
                        *wakes = at.saturating_add(self.late);
                    }
                }
                Turn::Admitted => ends[n] = Some(End::Admitted(now)),
                Turn::Refused(_) => ends[n] = Some(End::Refused(now)),
            }
            if ends[n].is_some() {
                seats[n] = None;
            }
        }
        let waits = |lines: &Lines<1>| lines.asleep() != 0 || lines.list(0).anybody(0);
        assert!(!lines.iter().any(waits), "a caller is still in the queue");
        (ends.into_iter().flatten().collect(), polled)
    }
}
