//! Pacing of outgoing requests: a client finds the rate that each host accepts.
//!
//! A host that refuses with `429` lowers its rate; answers raise it again, by the cubic curve of
//! the AWS SDKs' adaptive retry mode or by additive increase and multiplicative decrease.
//! `Retry-After` stops all requests to the host until that time. Of a host that sends nothing else
//! the client learns the rate from when it refuses, and then it is refused about once a minute.
//!
//! Pacing delays requests. It never
//! repeats one.
//!
//! ```
//! use tollbar::http::Seen;
//! use tollbar::pacing::{Answer, Hosts, Options};
//!
//! let mut hosts = Hosts::new(&Options::new(), 256).unwrap();
//! let now = 0; // nanoseconds of any clock that does not go back
//! let ticket = hosts.acquire(b"api.example.com", now);
//! assert_eq!(hosts.wait(ticket, now), 0); // otherwise sleep that long, and ask again
//! // ... send the request ...
//! let seen = Seen::read(b"Retry-After: 2\r\n", 0);
//! hosts.respond(ticket, now, Answer::of(429, &seen), &seen);
//!
//! let next = hosts.acquire(b"api.example.com", now);
//! assert_eq!(hosts.wait(next, now), 2_000_000_000);
//! ```
//!
//! Threads: [`Hosts`] is a plain value, and each call needs it exclusively. A program with threads
//! holds a mutex of its own around each call, not while it sleeps. No call waits, allocates or
//! calls the system (docs/internals/decisions/0054).

mod host;
mod hosts;
mod rate;

pub use hosts::{Hosts, Ticket, HOSTS_MOST};
pub use rate::SendingRate;

use crate::http::Seen;

/// One request per second, in the unit of all rates here.
pub const PER_SECOND: u64 = 1_000_000;
/// The highest rate, 10^9 requests per second.
pub const MOST: u64 = 1_000_000_000 * PER_SECOND;

/// How rates are learned. The bounds hold for each host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How answers change the rate.
    pub algorithm: Algorithm,
    /// The floor in millionths of a request per second, at least 1.
    pub least: u64,
    /// The ceiling in millionths of a request per second, up to [`MOST`]. A host has this rate
    /// until it throttles.
    pub most: u64,
    /// How many requests may be sent at once after an idle time, at least 1.
    pub burst: u32,
    /// The longest pause in nanoseconds that an answer can cause.
    pub pause_most: u64,
}

/// How answers change the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// The rate is cut to 0.7, rises to its former value, stays near it, and then rises faster and
    /// faster.
    Cubic,
    /// The rate is cut to 0.9 and rises evenly.
    Aimd {
        /// The rise in a second, in millionths of a request per second.
        increase: u64,
    },
}

/// What a host answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The host accepted the request, or refused it for a reason other than its limits.
    Answered,
    /// The host refused the request because of its limits.
    Throttled,
}

/// A host at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostState {
    /// The rate in millionths of a request per second.
    pub rate: u64,
    /// The smoothed rate of answers in millionths of a request per second. 0 in the first half
    /// second.
    pub measured: u64,
    /// How many callers wait.
    pub waiting: u64,
    /// Nanoseconds until the pause ends. 0: none.
    pub paused: u64,
}

impl Options {
    /// Cubic, from 0.5/s up to 10^6/s, bursts of 1, pauses of at most 5 minutes.
    pub const fn new() -> Options {
        Options {
            algorithm: Algorithm::Cubic,
            least: PER_SECOND / 2,
            most: 1_000_000 * PER_SECOND,
            burst: 1,
            pause_most: 300_000_000_000,
        }
    }

    /// Whether the bounds fit together: 1 <= `least` <= `most` <= [`MOST`], and a burst of at
    /// least 1.
    pub const fn is_valid(&self) -> bool {
        self.least >= 1 && self.least <= self.most && self.most <= MOST && self.burst >= 1
    }
}

impl Default for Options {
    fn default() -> Options {
        Options::new()
    }
}

impl Answer {
    /// What an HTTP status says. Throttled are 429, 503 with `Retry-After`, and 403 with no permit
    /// left (GitHub's refusal).
    pub fn of(status: u16, seen: &Seen) -> Answer {
        match status {
            429 => Answer::Throttled,
            503 if seen.retry_after.is_some() => Answer::Throttled,
            403 if seen.remaining == Some(0) => Answer::Throttled,
            _ => Answer::Answered,
        }
    }
}
