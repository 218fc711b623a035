//! The turns of one host: who may send, and when.
//!
//! Turns are numbered. At each instant the turns up to `served` may send. `served` grows by the
//! rate, and is at most `burst` above `issued`. A caller that sleeps asks again when it wakes, so a
//! new rate or a pause reaches every waiting caller, and no caller overtakes another.

use super::{Answer, HostState, Options, SendingRate, PER_SECOND};
use crate::http::Seen;

/// A host that answers, in memory that may be zeroed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(super) struct Host {
    rate: SendingRate,
    /// The last turn that was given out.
    issued: u64,
    /// The last turn that may send.
    served: u64,
    /// The part of the next turn that has been earned, in units of [`TURN`].
    part: u64,
    /// The time up to which `served` and `part` are computed. During a pause it is the end of the
    /// pause.
    at: u64,
    /// No turn may send before this time.
    paused_until: u64,
    /// The last turn that was served when the rate was last cut.
    cut: u64,
    /// The last turn that was sent; 0 if no caller has asked whether it may send.
    sent: u64,
    /// The rate that the newest answer's fields allow; the ceiling if it had none.
    advertised: u64,
    /// The time of the last call.
    used: u64,
    /// The time at which what has been sent would have been sent without a burst.
    evenly: u64,
}

/// A turn in units of the rate (a millionth of a request per second) times nanoseconds.
const TURN: u64 = PER_SECOND * SECOND;
const SECOND: u64 = 1_000_000_000;
/// A caller asks again after this time at the latest, because the rate may have risen meanwhile.
const ASK_AGAIN: u64 = SECOND;
/// Servers round a wait up to whole seconds. A wait of 1 s after an admitted request may so be any
/// shorter time.
const ROUNDED: u64 = SECOND;

impl Host {
    /// A host without answers. Its turns begin after `turns`.
    pub fn new(options: &Options, turns: u64, now: u64) -> Host {
        Host {
            rate: SendingRate::new(options, now),
            issued: turns,
            served: turns.saturating_add(options.burst.into()),
            part: 0,
            at: now,
            paused_until: 0,
            cut: 0,
            sent: 0,
            advertised: options.most,
            used: now,
            evenly: now,
        }
    }

    /// The next turn.
    pub fn acquire(&mut self, options: &Options, now: u64) -> u64 {
        self.advance(options, now);
        self.issued = self.issued.saturating_add(1);
        self.issued
    }

    /// Nanoseconds until the turn may send; 0: now.
    pub fn wait(&mut self, options: &Options, turn: u64, now: u64) -> u64 {
        self.advance(options, now);
        let paused = self.paused_until.saturating_sub(now);
        let missing = u128::from(turn.saturating_sub(self.served)) * u128::from(TURN);
        let missing = missing.saturating_sub(self.part.into());
        if missing == 0 {
            let wait = if paused == 0 { self.spaced(options, now) } else { paused };
            if wait == 0 {
                self.sent = self.sent.max(turn);
            }
            return wait;
        }
        let earned_in =
            missing.div_ceil(u128::from(self.pace(options)).max(1)).min(ASK_AGAIN.into()) as u64;
        paused.saturating_add(earned_in)
    }

    /// Nanoseconds until another turn may send beside those that have sent; 0: now, and then it
    /// counts as sent. Callers that slept while the rate rose find several turns served. They send
    /// one after the other all the same: a server with a small burst would refuse the second.
    fn spaced(&mut self, options: &Options, now: u64) -> u64 {
        let interval = TURN / self.pace(options).max(1);
        let ahead = interval.saturating_mul(u64::from(options.burst.saturating_sub(1)));
        let early = self.evenly.saturating_sub(now.saturating_add(ahead));
        if early == 0 {
            self.evenly = self.evenly.max(now).saturating_add(interval);
        }
        early.min(ASK_AGAIN)
    }

    /// A caller gives its turn up before it has sent. The callers behind it move up by one.
    pub fn leave(&mut self, options: &Options, now: u64) {
        self.advance(options, now);
        self.served = self.served.saturating_add(1);
        self.advance(options, now);
    }

    /// The host has answered.
    pub fn respond(&mut self, options: &Options, turn: u64, now: u64, answer: Answer, seen: &Seen) {
        self.advance(options, now);
        self.advertised = advertised(options, seen);
        let throttled = answer == Answer::Throttled;
        match throttled {
            false => self.rate.answered(options, now),
            // The request was sent before the last cut, so its answer says nothing about the
            // present rate.
            true if turn <= self.cut => self.rate.count(now),
            true => match only_pause(seen) {
                Some(pause) => {
                    let waits = self.issued > self.served;
                    self.rate.paused(options, now, pause.min(options.pause_most), waits);
                    // Turns that were served and not sent are sent after the pause, at the new
                    // rate.
                    self.cut =
                        if self.sent == 0 { self.served.min(self.issued) } else { self.sent };
                }
                None => {
                    self.rate.throttled(options, now);
                    self.cut = self.served.min(self.issued);
                }
            },
        }
        if let Some(pause) = pause(throttled, seen) {
            self.pause(now, pause.min(options.pause_most));
        }
        if throttled {
            self.rate.hold_until(self.paused_until);
        }
    }

    /// The last use, or the end of the pause if that is later.
    pub fn idle_since(&self) -> u64 {
        self.used.max(self.paused_until)
    }

    pub fn read(&mut self, options: &Options, now: u64) -> HostState {
        self.advance(options, now);
        HostState {
            rate: self.pace(options),
            measured: self.rate.measured(),
            waiting: self.issued.saturating_sub(self.served),
            paused: self.paused_until.saturating_sub(now),
        }
    }

    fn pause(&mut self, now: u64, pause: u64) {
        let until = now.saturating_add(pause);
        if pause == 0 || until <= self.paused_until {
            return;
        }
        if now >= self.paused_until {
            // The unused burst is lost. One turn may send at the end of the pause, and the others
            // follow at the rate.
            self.served = self.served.min(self.issued).saturating_add(1);
            self.part = 0;
        }
        self.paused_until = until;
        self.at = until;
    }

    /// The rate at which turns are served.
    fn pace(&self, options: &Options) -> u64 {
        let rate = self.rate.rate(options);
        if self.rate.is_throttled() {
            rate.min(self.advertised)
        } else {
            rate
        }
    }

    /// Serves the turns up to `now`.
    fn advance(&mut self, options: &Options, now: u64) {
        self.used = self.used.max(now);
        if let Some(passed @ 1..) = now.checked_sub(self.at) {
            let earned =
                u128::from(self.pace(options)) * u128::from(passed) + u128::from(self.part);
            let turns = (earned / u128::from(TURN)).min(u64::MAX.into()) as u64;
            self.served = self.served.saturating_add(turns);
            self.part = (earned % u128::from(TURN)) as u64;
            self.at = now;
        }
        let most = self.issued.saturating_add(options.burst.into());
        if self.served >= most {
            (self.served, self.part) = (most, 0);
        }
    }
}

/// The time for which an answer asks the client to stay away. `None`: it does not.
fn pause(throttled: bool, seen: &Seen) -> Option<u64> {
    let spent = seen
        .more_after
        .filter(|after| seen.remaining == Some(0) && (throttled || *after > ROUNDED));
    seen.retry_after.or(spent)
}

/// The pause that an answer asks for, if it says nothing else about its limit.
fn only_pause(seen: &Seen) -> Option<u64> {
    let says = seen.limit.or(seen.window).or(seen.remaining).or(seen.more_after);
    seen.retry_after.filter(|_| says.is_none())
}

/// The rate of an answer's limit and window, within the bounds; the ceiling if the answer has none.
fn advertised(options: &Options, seen: &Seen) -> u64 {
    let (Some(limit), Some(window @ 1..)) = (seen.limit, seen.window) else { return options.most };
    let rate = u128::from(limit) * u128::from(TURN) / u128::from(window);
    // Without `clamp`, which panics if the bounds are in the wrong order.
    (rate.min(options.most.into()) as u64).max(options.least)
}
