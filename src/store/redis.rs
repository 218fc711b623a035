//! Limits in a Redis or Valkey server, one script for each decision.
//!
//! The clock is the server's (`TIME`, whole microseconds) and the state the server's, and a script runs alone: so any number of clients
//! admit together exactly what one limiter would, whatever their own clocks say. A decision is that of the local core
//! ([`crate::limiter`]) at the server's time, with two differences: `retry_after` and `reset_after` are rounded up to whole
//! microseconds; and where the local core rounds to fit a word of 64 bits nothing is rounded here (gcra by less than a third of a
//! nanosecond, where the rate in lowest terms has more than 3,000 permits; the last window's count of a weighted window, where two of
//! the limit's size do not fit beside the window's number; the start of windows from the first request on, for limits above 8,000).
//!
//! | | |
//! |---|---|
//! | algorithms | gcra, interval, fixed-window, weighted-window, sliding-log; the others are refused, and `borrow` |
//! | key | `tollbar:{NAME}:KEY`, the braces being a cluster's hash tag; one key for each decision |
//! | expiry | not before the key is as good as new, by the clock that the script read (and a millisecond or two after) |
//! | gcra with `init` | a key is remembered until its bucket is full, and starts with `init` again when it is idle for longer |
//! | clock set back | waits for it to catch up, but no longer than if all had been used just now: a period, for a weighted window two, or the time in which a bucket fills |
//! | something else at the key | an error that names it; nothing is admitted, nothing overwritten |
//! | memory of the server | about 100 bytes a key; a sliding log as much again for each admission in the window |
//! | needs | Redis 6.2 or any Valkey; an ACL user needs `~tollbar:*`, EVALSHA, SCRIPT LOAD, TIME, and what the scripts in `scripts/` call |

use super::memory::closed;
use super::plan::{Mode, Plan, Told, RESET, SCRIPTS};
use super::{check_key, check_name, LimitError, Message, Store, StoreError, KEY_MOST, NAME_MOST};
use crate::clock::{Clock, Monotonic};
use crate::decision::Decision;
use crate::policy::Policy;
use crate::redis::{Answer, Arg, Fault, Link, LinkError, NoMemory, Session, Url};

/// One connection to a server, made when it is needed, and again when it broke. Calls wait for the answer, [`RedisStore::TIMEOUT`] at most
/// unless said. For each thread one.
#[derive(Debug)]
pub struct RedisStore {
    link: Link,
    session: Session,
    /// Nanoseconds that a call may take.
    timeout: u64,
    /// Who made the connection: a process that was forked from it must not speak on it.
    process: libc::pid_t,
    server_time: u64,
}

/// A policy as the scripts have it, and the beginning of its keys' names.
#[derive(Clone, Copy, Debug)]
pub struct RedisLimit {
    plan: Plan,
    prefix: Bytes<PREFIX_MOST>,
}

const PREFIX_MOST: usize = NAME_MOST + 16;

impl RedisStore {
    /// What a call may take unless said: a second.
    pub const TIMEOUT: u64 = 1_000_000_000;

    /// Takes the memory for a connection; asks the network for nothing.
    pub fn new(url: &Url) -> Result<RedisStore, NoMemory> {
        let session = Session::new(url, &SCRIPTS, 4096, 0)?;
        Ok(RedisStore { link: Link::new(url), session, timeout: Self::TIMEOUT, process: 0, server_time: 0 })
    }

    /// The same with another time that a call may take at most, looking up a host's name and connecting included, in
    /// nanoseconds.
    pub fn with_timeout(mut self, nanos: u64) -> RedisStore {
        self.timeout = nanos;
        self
    }

    /// The server's time at which the last decision was made, in nanoseconds since 1970; 0 before the first.
    pub fn server_time(&self) -> u64 {
        self.server_time
    }

    /// Closes the connection, if there is one. The next call makes another.
    pub fn close(&mut self) {
        self.link.close();
    }

    fn decide(&mut self, limit: &RedisLimit, key: &[u8], mode: Mode, cost: u64) -> Result<Told, StoreError> {
        let args = limit.plan.args(mode, cost);
        self.call(limit.plan.script(), limit, key, &args)
    }

    /// One script, once.
    fn call(&mut self, script: usize, limit: &RedisLimit, key: &[u8], args: &[Arg<'_>]) -> Result<Told, StoreError> {
        check_key(key)?;
        let mut name = Bytes::<{ PREFIX_MOST + KEY_MOST }>::new();
        name.push(limit.prefix.get());
        name.push(key);
        let told = self.exchange(script, name.get(), args);
        if told.is_err()
            && !matches!(told, Err(StoreError::Foreign(_) | StoreError::Unavailable(_) | StoreError::Script(_)))
        {
            // A late answer must not be taken for the next call's.
            self.link.close();
        }
        let told = told?;
        self.server_time = told.now.saturating_mul(1000);
        Ok(told)
    }

    fn exchange(&mut self, script: usize, name: &[u8], args: &[Arg<'_>]) -> Result<Told, StoreError> {
        let deadline = Monotonic.now().saturating_add(self.timeout);
        self.connected(deadline)?;
        let mut tries = 0_u32;
        loop {
            self.session.call(script, &[name], args).map_err(|_| StoreError::NoRoom)?;
            match self.answer(deadline, name)? {
                Ok(told) => return Ok(told),
                // Loaded again by now; a server that keeps forgetting is flushed all the time.
                Err(Fault::NoScript) if tries < 3 => tries = tries.saturating_add(1),
                Err(fault) => return Err(StoreError::of(fault, self.session.error_text())),
            }
        }
    }

    /// Makes sure of a connection on which calls can be made.
    fn connected(&mut self, deadline: u64) -> Result<(), StoreError> {
        // SAFETY: takes nothing and cannot fail.
        let process = unsafe { libc::getpid() };
        if self.process != process {
            // Closes this process's copy of the descriptor, and leaves the other's connection alone.
            self.link.close();
            self.process = process;
        }
        // A server that has closed the connection meanwhile is noticed before anything is asked of it.
        if self.link.is_open() && self.session.is_ready() && self.receive().is_ok() && self.session.next().is_none() {
            return Ok(());
        }
        self.link.connect()?;
        while !self.link.advance()? {
            self.wait(deadline)?;
        }
        self.session.begin();
        loop {
            if let Some(told) = self.session.next() {
                let fault = told.err().unwrap_or(Fault::Protocol);
                self.link.close();
                return Err(StoreError::of(fault, self.session.error_text()));
            }
            if self.session.is_ready() {
                return Ok(());
            }
            self.turn(deadline)?;
        }
    }

    /// The answer to the one call that has none.
    fn answer(&mut self, deadline: u64, name: &[u8]) -> Result<Result<Told, Fault>, StoreError> {
        loop {
            match self.session.next() {
                Some(Ok(answer)) => return told(&answer, name).map(Ok),
                Some(Err(fault)) => return Ok(Err(fault)),
                None => {}
            }
            self.turn(deadline)?;
        }
    }

    /// Moves bytes, waiting for the socket once.
    fn turn(&mut self, deadline: u64) -> Result<(), StoreError> {
        if !self.session.output().is_empty() {
            let n = self.link.write(self.session.output())?;
            self.session.wrote(n);
        }
        self.wait(deadline)?;
        self.receive()?;
        Ok(())
    }

    fn receive(&mut self) -> Result<(), LinkError> {
        let n = self.link.read(self.session.input())?;
        self.session.read(n);
        Ok(())
    }

    fn wait(&mut self, deadline: u64) -> Result<(), StoreError> {
        let left = deadline.saturating_sub(Monotonic.now());
        if left == 0 {
            return Err(StoreError::TimedOut);
        }
        self.link.wait(!self.session.output().is_empty(), left)?;
        Ok(())
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
        let told = self.decide(limit, key, Mode::Check, cost)?;
        Ok(limit.plan.describe(&told, cost))
    }

    fn peek(&mut self, limit: &RedisLimit, key: &[u8], cost: u64) -> Result<Decision, StoreError> {
        if limit.plan == Plan::Closed {
            return check_key(key).map(|()| closed(cost));
        }
        let told = self.decide(limit, key, Mode::Peek, cost)?;
        Ok(limit.plan.describe(&told, cost))
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

/// What a script has returned: 3 for a key that holds something else.
fn told(answer: &Answer<'_>, name: &[u8]) -> Result<Told, StoreError> {
    let number = |n: usize| answer.int(n).and_then(|value| u64::try_from(value).ok());
    let verdict = number(0).ok_or(StoreError::Protocol)?;
    if verdict == 3 {
        return Err(StoreError::Foreign(Message::printable(name)));
    }
    let (Some(taken), Some(now)) = (number(1), number(2)) else { return Err(StoreError::Protocol) };
    let state = [3, 4, 5].map(|n| number(n).unwrap_or(0));
    Ok(Told { verdict, taken, now, state })
}

/// Bytes in a fixed place. What does not fit is left out; the places here are as large as what may come.
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
