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
//! | algorithms | gcra, interval, fixed-window, weighted-window, sliding-log; `limit` refuses the others and `borrow` |
//! | key | `tollbar:{NAME}:KEY`; the braces are a cluster's hash tag; each decision uses one key |
//! | expiry | at most about two milliseconds after the key is as good as new, by the clock that the script read; never before |
//! | gcra with `init` | a key is remembered until its bucket is full; an idle key starts with `init` again after that |
//! | clock set back | a key waits for the clock to catch up, but no longer than if all its permits had been used just now: a period, for a weighted window two, for a bucket the time to fill |
//! | another value at the key | an error that names the key; nothing is admitted or overwritten |
//! | memory of the server | about 100 bytes for each key; a sliding log as much again for each admission in the window |
//! | needs | Redis 6.2 or any Valkey; an ACL user needs `~tollbar:*`, EVALSHA, SCRIPT LOAD, TIME, and the commands that the scripts in `scripts/` call |

use super::connection::Connection;
use super::memory::closed;
use super::plan::{Mode, Plan, ScriptReply, RESET, SCRIPTS};
use super::{check_key, check_name, LimitError, Message, Store, StoreError, KEY_MOST, NAME_MOST};
use crate::redis::{Answer, Arg, NoMemory, Transport, Url};
use alloc::boxed::Box;
use tollbar::clock::{Clock, Monotonic};
use tollbar::decision::Decision;
use tollbar::policy::Policy;

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

/// A policy as the scripts take it, and the prefix of its keys' names.
#[derive(Clone, Copy, Debug)]
pub struct RedisLimit {
    plan: Plan,
    prefix: Bytes<PREFIX_MOST>,
}

const PREFIX_MOST: usize = NAME_MOST + 16;

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

    fn decide(
        &mut self,
        limit: &RedisLimit,
        key: &[u8],
        mode: Mode,
        cost: u64,
    ) -> Result<ScriptReply, StoreError> {
        let args = limit.plan.args(mode, cost);
        self.call(limit.plan.script(), limit, key, &args)
    }

    /// Runs one script on one key.
    fn call(
        &mut self,
        script: usize,
        limit: &RedisLimit,
        key: &[u8],
        args: &[Arg<'_>],
    ) -> Result<ScriptReply, StoreError> {
        check_key(key)?;
        let mut name = Bytes::<{ PREFIX_MOST + KEY_MOST }>::new();
        name.push(limit.prefix.get());
        name.push(key);
        let (name, deadline) = (name.get(), Monotonic.now().saturating_add(self.timeout));
        let reply =
            self.connection.call(script, &[name], args, deadline, |answer| reply(answer, name))?;
        self.server_time = reply.now.saturating_mul(1000);
        Ok(reply)
    }
}

impl Store for RedisStore {
    type Limit = RedisLimit;

    fn limit(&self, name: &str, policy: &Policy) -> Result<RedisLimit, LimitError> {
        check_name(name)?;
        let plan = Plan::new(policy)?;
        let mut prefix = Bytes::new();
        for part in [b"tollbar:{".as_slice(), name.as_bytes(), b"}:"] {
            prefix.push(part);
        }
        Ok(RedisLimit { plan, prefix })
    }

    fn check(&mut self, limit: &RedisLimit, key: &[u8], cost: u64) -> Result<Decision, StoreError> {
        if limit.plan == Plan::Closed {
            return check_key(key).map(|()| closed(cost));
        }
        let reply = self.decide(limit, key, Mode::Check, cost)?;
        Ok(limit.plan.decision(&reply, cost))
    }

    fn peek(&mut self, limit: &RedisLimit, key: &[u8], cost: u64) -> Result<Decision, StoreError> {
        if limit.plan == Plan::Closed {
            return check_key(key).map(|()| closed(cost));
        }
        let reply = self.decide(limit, key, Mode::Peek, cost)?;
        Ok(limit.plan.decision(&reply, cost))
    }

    fn take_up_to(&mut self, limit: &RedisLimit, key: &[u8], most: u64) -> Result<u64, StoreError> {
        if limit.plan == Plan::Closed {
            return check_key(key).map(|()| 0);
        }
        Ok(self.decide(limit, key, Mode::UpTo, most)?.taken)
    }

    fn reset(&mut self, limit: &RedisLimit, key: &[u8]) -> Result<(), StoreError> {
        self.call(RESET, limit, key, &[]).map(drop)
    }
}

/// Decodes what a script returned. Its first number is the verdict: 0 allowed, 1 denied, 2 never, 3
/// another value at the key.
fn reply(answer: &Answer<'_>, name: &[u8]) -> Result<ScriptReply, StoreError> {
    let number = |n: usize| answer.int(n).and_then(|value| u64::try_from(value).ok());
    let verdict = number(0).ok_or(StoreError::Protocol)?;
    if verdict == 3 {
        return Err(StoreError::Foreign(Message::printable(name)));
    }
    let (Some(taken), Some(now)) = (number(1), number(2)) else { return Err(StoreError::Protocol) };
    let state = [3, 4, 5].map(|n| number(n).unwrap_or(0));
    Ok(ScriptReply { verdict, taken, now, state })
}

/// At most `N` bytes. Further bytes would be dropped, but each `N` here has room for the longest
/// name or key.
#[derive(Clone, Copy, Debug)]
struct Bytes<const N: usize> {
    bytes: [u8; N],
    len: usize,
}

impl<const N: usize> Bytes<N> {
    const fn new() -> Self {
        Bytes { bytes: [0; N], len: 0 }
    }

    fn push(&mut self, more: &[u8]) {
        for &byte in more {
            if let Some(place) = self.bytes.get_mut(self.len) {
                *place = byte;
                self.len = self.len.saturating_add(1);
            }
        }
    }

    fn get(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}
