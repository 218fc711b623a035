//! Questions and answers without a connection: a limit says which call of a script decides, and
//! reads what the script returned.
//!
//! ```
//! use tollbar_redis::store::{StoreAsk, StoreLimit};
//!
//! let logins = StoreLimit::new("logins", &"5/min".parse()?)?;
//! let question = logins.question(StoreAsk::Check, b"192.0.2.1", 1)?;
//! # let evalsha = |_: &core::ffi::CStr, _: &[u8], _: &[u64]| [0, 1, 1_767_225_600_000_000, 12_000_000];
//! // By the Redis client of the program, which returns the script's whole numbers.
//! let reply = evalsha(question.script().unwrap(), question.key(), question.args());
//! assert!(logins.answer(&question, &reply)?.decision.is_allowed());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use super::memory::closed;
use super::plan::{Plan, ScriptReply, StoreAsk, ARGS};
use super::{check_key, check_name, LimitError, Message, StoreError, KEY_MOST, NAME_MOST};
use core::ffi::CStr;
use tollbar::decision::Decision;
use tollbar::policy::Policy;

/// The scripts, by their numbers in [`Plan::script`].
pub(super) const SOURCES: [&CStr; 6] = [
    text(concat!(include_str!("scripts/bucket.lua"), "\0")),
    text(concat!(include_str!("scripts/window.lua"), "\0")),
    text(concat!(include_str!("scripts/weighted.lua"), "\0")),
    text(concat!(include_str!("scripts/log.lua"), "\0")),
    text(concat!(include_str!("scripts/segments.lua"), "\0")),
    text(concat!(include_str!("scripts/reset.lua"), "\0")),
];
/// The number of the script that forgets a key.
const RESET: usize = 5;

/// What a script returns alone if the key has another value.
const FOREIGN: i64 = 3;
/// The largest number that a script computes exactly.
const LARGEST: i64 = 1 << 53;

const fn text(source: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(source.as_bytes()) {
        Ok(source) => source,
        Err(_) => c"",
    }
}

/// A policy as the scripts take it, and the prefix of its keys' names. Any number of threads may
/// use it at once.
#[derive(Clone, Copy, Debug)]
pub struct StoreLimit {
    plan: Plan,
    prefix: Bytes<PREFIX_MOST>,
}

const PREFIX_MOST: usize = NAME_MOST + 16;

/// One call of a script, about one key.
#[derive(Clone, Copy, Debug)]
pub struct StoreQuestion {
    ask: StoreAsk,
    cost: u64,
    /// `None`: the answer needs no call.
    script: Option<usize>,
    args: [u64; ARGS],
    key: Bytes<{ StoreQuestion::KEY_MOST }>,
}

/// What the store has decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreAnswer {
    /// The decision. After [`StoreAsk::UpTo`] its verdict says whether any permit was taken, and
    /// its times are those of one permit. After [`StoreAsk::Reset`] it is that of a cost of 0.
    pub decision: Decision,
    /// The permits that the store has charged.
    pub taken: u64,
    /// The store's time, in nanoseconds since 1970; 0 if no call was needed.
    pub server_time: u64,
}

impl StoreQuestion {
    /// The longest name of a key in the store.
    pub const KEY_MOST: usize = PREFIX_MOST + KEY_MOST;
    /// The most arguments.
    pub const ARGS_MOST: usize = ARGS;

    /// The question that was asked.
    pub fn ask(&self) -> StoreAsk {
        self.ask
    }

    /// The permits that it asks for.
    pub fn cost(&self) -> u64 {
        self.cost
    }

    /// The script, in Lua. It returns an array of whole numbers. `None`: no call is needed, and the
    /// reply is empty.
    pub fn script(&self) -> Option<&'static CStr> {
        self.number().and_then(|number| SOURCES.get(number)).copied()
    }

    /// The only key of the script.
    pub fn key(&self) -> &[u8] {
        self.key.get()
    }

    /// The arguments of the script, at most 2^53 each.
    pub fn args(&self) -> &[u64] {
        match self.script {
            Some(RESET) | None => &[],
            Some(_) => &self.args,
        }
    }

    pub(super) fn number(&self) -> Option<usize> {
        self.script
    }
}

impl StoreLimit {
    /// Compiles `policy`. `name` tells limits apart: 1 to [`NAME_MOST`] visible ASCII characters
    /// without braces.
    ///
    /// # Errors
    /// [`LimitError::Name`], and why no script decides by this policy.
    pub fn new(name: &str, policy: &Policy) -> Result<StoreLimit, LimitError> {
        check_name(name)?;
        let plan = Plan::new(policy)?;
        let mut prefix = Bytes::new();
        for part in [b"tollbar:{".as_slice(), name.as_bytes(), b"}:"] {
            prefix.push(part);
        }
        Ok(StoreLimit { plan, prefix })
    }

    /// What to ask the store about `cost` permits of `key`, which has 1 to [`KEY_MOST`] bytes.
    ///
    /// # Errors
    /// [`StoreError::Key`].
    pub fn question(
        &self,
        ask: StoreAsk,
        key: &[u8],
        cost: u64,
    ) -> Result<StoreQuestion, StoreError> {
        check_key(key)?;
        let mut name = Bytes::new();
        name.push(self.prefix.get());
        name.push(key);
        let script = match (ask, self.plan) {
            (StoreAsk::Reset, _) => Some(RESET),
            (_, Plan::Closed) => None,
            _ => Some(self.plan.script()),
        };
        Ok(StoreQuestion { ask, cost, script, args: self.plan.args(ask, cost), key: name })
    }

    /// Reads the numbers that the script returned to `question`, which came from this limit.
    ///
    /// # Errors
    /// [`StoreError::Foreign`] if the key has another algorithm's or another program's value;
    /// nothing was charged. [`StoreError::Protocol`] if the numbers are not a script's.
    pub fn answer(
        &self,
        question: &StoreQuestion,
        reply: &[i64],
    ) -> Result<StoreAnswer, StoreError> {
        if question.script.is_none() {
            let decision = closed(question.cost);
            return Ok(StoreAnswer { decision, taken: 0, server_time: 0 });
        }
        if reply == [FOREIGN] {
            return Err(StoreError::Foreign(Message::printable(question.key())));
        }
        let words = if question.ask == StoreAsk::Reset { 0 } else { self.plan.state_words() };
        let good = |number: &i64| (0..=LARGEST).contains(number);
        let [verdict @ 0..=2, taken, now, state @ ..] = reply else {
            return Err(StoreError::Protocol);
        };
        if state.len() != words || !good(taken) || !good(now) || !state.iter().all(good) {
            return Err(StoreError::Protocol);
        }
        let number = |number: &i64| u64::try_from(*number).unwrap_or(0);
        let (verdict, taken, now) = (number(verdict), number(taken), number(now));
        if question.ask != StoreAsk::Reset && taken > question.cost {
            return Err(StoreError::Protocol);
        }
        let state = [0, 1, 2].map(|n| state.get(n).map_or(0, number));
        let decision = match question.ask {
            StoreAsk::Reset => closed(0),
            // As the core answers: allowed if it took any. The times are those of one permit.
            StoreAsk::UpTo => {
                let verdict = u64::from(taken == 0);
                self.plan.decision(&ScriptReply { verdict, now, state }, 1)
            }
            StoreAsk::Check | StoreAsk::Peek => {
                self.plan.decision(&ScriptReply { verdict, now, state }, question.cost)
            }
        };
        let taken = if question.ask == StoreAsk::Reset { 0 } else { taken };
        Ok(StoreAnswer { decision, taken, server_time: now.saturating_mul(1000) })
    }
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
