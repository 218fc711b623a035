//! Limits in a Redis or Valkey server, one script for each decision.
//!
//! The server has the clock (`TIME`, whole microseconds) and the state, and runs one script at a
//! time. So any number of clients together admit exactly as many requests as one limiter would,
//! whatever their own clocks say. A decision is the same as that of the local core
//! ([`tollbar::limiter`]) at the server's time, with two differences:
//!
//! - `retry_after` and `reset_after` are rounded up to whole microseconds.
//! - The scripts round nothing. The local core rounds to fit a word of 64 bits. The core rounds
//!   gcra by less than a third of a nanosecond, if the rate in lowest terms has more than 3,000
//!   permits. It rounds the last window's count of a weighted window, if two counts of the limit's
//!   size do not fit beside the window's number. It rounds the start of windows anchored at the
//!   first request, for limits above 8,000.
//!
//! | | |
//! |---|---|
//! | algorithms | gcra, interval, fixed-window, weighted-window, sliding-window, sliding-log; `limit` refuses the others and `borrow` |
//! | key | `tollbar:{NAME}:KEY`; the braces are a cluster's hash tag; each decision uses one key |
//! | expiry | at most about two milliseconds after the key is as good as new, by the clock that the script read; never before |
//! | clock set back | a key waits for the clock to catch up, but no longer than if all its permits had been used just now: a period, for a weighted window two, for a bucket the time to fill |
//! | another value at the key | an error that names the key; nothing is admitted or overwritten |
//! | memory of the server | about 100 bytes for each key; a sliding log as much again for each admission in the window |
//! | needs | Redis 6.2 or any Valkey; an ACL user needs `~tollbar:*`, EVALSHA, SCRIPT LOAD, TIME, and the commands that the scripts in `scripts/` call |

use super::connection::Connection;
use super::plan::StoreAsk;
use super::question::{StoreAnswer, StoreLimit, StoreQuestion, SOURCES};
use super::{LimitError, Store, StoreError};
use crate::redis::{Answer, Arg, NoMemory, Script, Transport, Url};
use alloc::boxed::Box;
use core::ffi::CStr;
use tollbar::clock::{Clock, Monotonic};
use tollbar::decision::Decision;
use tollbar::policy::Policy;

/// The scripts, by their numbers.
static SCRIPTS: [Script; 6] = [
    Script { name: "bucket", source: source(SOURCES[0]) },
    Script { name: "window", source: source(SOURCES[1]) },
    Script { name: "weighted", source: source(SOURCES[2]) },
    Script { name: "log", source: source(SOURCES[3]) },
    Script { name: "segments", source: source(SOURCES[4]) },
    Script { name: "reset", source: source(SOURCES[5]) },
];
/// The most numbers that a script returns.
const NUMBERS: usize = 6;

const fn source(text: &'static CStr) -> &'static str {
    match text.to_str() {
        Ok(source) => source,
        Err(_) => "",
    }
}

/// One connection to a server. A call connects if there is no connection, and waits for its answer,
/// by default at most [`RedisStore::TIMEOUT`]. One thread at a time may use it, so make one for
/// each thread.
#[derive(Debug)]
pub struct RedisStore {
    connection: Connection,
    /// Nanoseconds that a call may take.
    timeout: u64,
    /// Nanoseconds since 1970 at the last decision; 0: none yet.
    server_time: u64,
}

impl RedisStore {
    /// The default of [`RedisStore::with_timeout`] and of the URL's `timeout`: a second, in
    /// nanoseconds.
    pub const TIMEOUT: u64 = 1_000_000_000;

    /// Takes the memory for a connection. It does not connect yet.
    pub fn new(url: &Url) -> Result<RedisStore, NoMemory> {
        let connection = Connection::new(url, &SCRIPTS)?;
        let timeout = if url.timeout == 0 { Self::TIMEOUT } else { url.timeout };
        Ok(RedisStore { connection, timeout, server_time: 0 })
    }

    /// Sets what makes TLS of a connection, for a URL with TLS (`rediss://`).
    pub fn secure(&mut self, transport: Box<dyn Transport>) {
        self.connection.secure(transport);
    }

    /// Sets the longest time of a call in nanoseconds, the lookup of the host's name and connecting
    /// included. A call that takes longer fails with [`StoreError::TimedOut`].
    pub fn with_timeout(mut self, nanos: u64) -> RedisStore {
        self.timeout = nanos;
        self
    }

    /// The server's time at the last decision, in nanoseconds since 1970; 0 before the first.
    pub fn server_time(&self) -> u64 {
        self.server_time
    }

    /// Closes the connection, if there is one. The next call connects again.
    pub fn close(&mut self) {
        self.connection.close();
    }

    /// Asks the server.
    fn ask(
        &mut self,
        limit: &StoreLimit,
        ask: StoreAsk,
        key: &[u8],
        cost: u64,
    ) -> Result<StoreAnswer, StoreError> {
        let question = limit.question(ask, key, cost)?;
        let Some(script) = question.number() else { return limit.answer(&question, &[]) };
        let int = |number: u64| Arg::Int(i64::try_from(number).unwrap_or(i64::MAX));
        let mut args = [Arg::Int(0); StoreQuestion::ARGS_MOST];
        args.iter_mut().zip(question.args()).for_each(|(to, number)| *to = int(*number));
        let args = args.get(..question.args().len()).unwrap_or_default();
        let deadline = Monotonic.now().saturating_add(self.timeout);
        let reply = self.connection.call(script, &[question.key()], args, deadline, |answer| {
            limit.answer(&question, numbers(answer).get(..count(answer)).unwrap_or_default())
        })?;
        self.server_time = reply.server_time;
        Ok(reply)
    }
}

impl Store for RedisStore {
    type Limit = StoreLimit;

    fn limit(&self, name: &str, policy: &Policy) -> Result<StoreLimit, LimitError> {
        StoreLimit::new(name, policy)
    }

    fn check(&mut self, limit: &StoreLimit, key: &[u8], cost: u64) -> Result<Decision, StoreError> {
        self.ask(limit, StoreAsk::Check, key, cost).map(|answer| answer.decision)
    }

    fn peek(&mut self, limit: &StoreLimit, key: &[u8], cost: u64) -> Result<Decision, StoreError> {
        self.ask(limit, StoreAsk::Peek, key, cost).map(|answer| answer.decision)
    }

    fn take_up_to(&mut self, limit: &StoreLimit, key: &[u8], most: u64) -> Result<u64, StoreError> {
        self.ask(limit, StoreAsk::UpTo, key, most).map(|answer| answer.taken)
    }

    fn reset(&mut self, limit: &StoreLimit, key: &[u8]) -> Result<(), StoreError> {
        self.ask(limit, StoreAsk::Reset, key, 0).map(drop)
    }
}

/// The whole numbers that a script returned.
fn numbers(answer: &Answer<'_>) -> [i64; NUMBERS] {
    core::array::from_fn(|n| answer.int(n).unwrap_or(0))
}

fn count(answer: &Answer<'_>) -> usize {
    (0..NUMBERS).take_while(|n| answer.int(*n).is_some()).count()
}
