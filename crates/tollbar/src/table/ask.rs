//! How a request is put: the usual case in line, and what is seldom in calls at its end.
//!
//! What is in line calls nothing that comes back to it: each case that is not the usual one ends in a call of its own, with what it
//! needs in registers. So nothing is kept in memory across a call that is hardly ever made.

use super::answer::{full, Answer, Skipped};
use super::compiled::Version;
use super::error::TableError;
use super::home::{find_in, Home};
use super::lines::Line;
use super::local::Scratch;
use super::protocol::{Event, Outcome};
use super::quick::{Course, Left};
use super::request::{prefetch, Sought};
use super::slot::{Bucket, Slot};
use super::wide::Ask;
use super::{PolicyId, Table};
use crate::algorithm::{Algorithm, Rule};
use crate::decision::{Reason, Verdict};

/// Keys of up to so many bytes are hashed in line.
const SHORT: usize = 16;

impl Table {
    /// One request, the short way if it will do, with an answer of the caller's type.
    #[doc(hidden)]
    #[inline(always)]
    pub fn ask<A: Answer>(&self, policy: PolicyId, key: &[u8], now: Option<u64>, cost: u64) -> A {
        // Without combinators: compiled for size they are calls, with all this in memory.
        let Some(version) = self.hot(policy) else {
            return match now {
                Some(now) => self.begin_at(policy, key, now, cost),
                None => self.begin(policy, key, cost),
            };
        };
        if key.len().wrapping_sub(1) >= SHORT {
            return match now {
                Some(now) => self.ask_long_at(version, key, now, cost),
                None => self.ask_long(version, key, cost),
            };
        }
        let Some(line) = self.line(policy.0) else {
            return match now {
                Some(now) => self.ask_long_at(version, key, now, cost),
                None => self.ask_long(version, key, cost),
            };
        };
        self.ask_hash(version, self.hash_bytes(key) ^ version.salt, line, now, cost)
    }

    /// [`Table::ask`] of a key's hash under its policy, counted on the thread's own `line`.
    #[inline(always)]
    fn ask_hash<A: Answer>(&self, version: &Version, hash: u64, line: &Line, now: Option<u64>, cost: u64) -> A {
        let quick = self.quick_of(version, hash);
        let now = match now {
            Some(now) => now,
            None => {
                // The key's lines are on their way while the clock is read.
                prefetch(quick.first);
                prefetch(quick.second);
                match self.clock.at_once() {
                    Some(now) => now.wrapping_add(self.offset),
                    None => return self.ask_late(version, quick.key, quick.second, cost),
                }
            }
        };
        self.look_by(line, now);
        match self.decide(&quick, now, cost) {
            Ok((verdict, state)) => {
                line.count(verdict);
                A::known(&version.rule, verdict, state, now, cost)
            }
            Err(left) => self.left(left, version, quick.key, now, cost),
        }
    }

    /// Where reading the clock is a call. The key is told by its word and its second bucket.
    #[inline(never)]
    fn ask_late<A: Answer>(&self, version: &Version, key: u64, second: &Bucket, cost: u64) -> A {
        self.ask_apart_at(version, self.hash_with(key, second), self.now(), cost)
    }

    /// [`Table::ask_hash`], once for all who need not have it in line.
    #[inline(never)]
    pub(super) fn ask_apart<A: Answer>(&self, version: &Version, hash: u64, cost: u64) -> A {
        match self.line_or_claim(version.policy) {
            Some(line) => self.ask_hash(version, hash, line, None, cost),
            None => self.ask_unowned(version, hash, self.now(), cost),
        }
    }

    /// [`Table::ask_apart`] at the caller's time.
    #[inline(never)]
    pub(super) fn ask_apart_at<A: Answer>(&self, version: &Version, hash: u64, now: u64, cost: u64) -> A {
        match self.line_or_claim(version.policy) {
            Some(line) => self.ask_hash(version, hash, line, Some(now), cost),
            None => self.ask_unowned(version, hash, now, cost),
        }
    }

    /// Where the thread owns no line.
    #[inline(never)]
    fn ask_unowned<A: Answer>(&self, version: &Version, hash: u64, now: u64, cost: u64) -> A {
        self.look(now);
        self.long(Sought { version, home: self.home(hash), hash }, now, cost, false)
    }

    /// Of a key that takes a call to hash, or of none, or of a thread whose line must be looked for.
    #[inline(never)]
    fn ask_long<A: Answer>(&self, version: &Version, key: &[u8], cost: u64) -> A {
        match key {
            [] => self.begin(PolicyId(version.policy), key, cost),
            _ => self.ask_apart(version, self.hash_bytes(key) ^ version.salt, cost),
        }
    }

    /// [`Table::ask_long`] at the caller's time.
    #[inline(never)]
    fn ask_long_at<A: Answer>(&self, version: &Version, key: &[u8], now: u64, cost: u64) -> A {
        match key {
            [] => self.begin_at(PolicyId(version.policy), key, now, cost),
            _ => self.ask_apart_at(version, self.hash_bytes(key) ^ version.salt, now, cost),
        }
    }

    /// Where there is more to do before the key is looked for.
    #[inline(never)]
    fn begin<A: Answer>(&self, policy: PolicyId, key: &[u8], cost: u64) -> A {
        self.begin_at(policy, key, self.now(), cost)
    }

    /// [`Table::begin`] at the caller's time.
    #[inline(never)]
    fn begin_at<A: Answer>(&self, policy: PolicyId, key: &[u8], now: u64, cost: u64) -> A {
        let mut scratch = Scratch::new();
        match self.start(policy, key, &mut scratch) {
            Ok(sought) => self.ask_apart_at(sought.version, sought.hash, now, cost),
            Err(skipped) => {
                self.look(now);
                self.skip(policy, skipped)
            }
        }
    }

    /// One request of a batch, of which nothing is known.
    #[inline(never)]
    pub(super) fn ask_unprepared<A: Answer>(&self, policy: PolicyId, key: &[u8], now: u64, cost: u64) -> A {
        let mut scratch = Scratch::new();
        match self.start(policy, key, &mut scratch) {
            Ok(sought) => self.long(sought, now, cost, false),
            Err(skipped) => self.skip(policy, skipped),
        }
    }

    /// Counts a request that ended before the table was asked.
    #[cold]
    fn skip<A: Answer>(&self, policy: PolicyId, skipped: Skipped) -> A {
        let decision = skipped.decision();
        if let Ok(decision) = &decision {
            self.count_unasked(policy, decision.verdict);
        }
        decision.map_or_else(A::failed, A::told)
    }

    /// What to tell of a request that [`Table::decide`] has left, with the key's word.
    #[inline(always)]
    pub(super) fn left<A: Answer>(&self, left: Left<'_>, version: &Version, key: u64, now: u64, cost: u64) -> A {
        match left {
            Left::Here(slot) => self.rest(version, key, slot, now, cost),
            Left::Elsewhere(second) => self.elsewhere(version, key, second, now, cost),
        }
    }

    /// The same of a key that was in `slot`.
    #[inline(never)]
    fn rest<A: Answer>(&self, version: &Version, key: u64, slot: &Slot, now: u64, cost: u64) -> A {
        let course = self.decide_in(version, slot, key, now, cost);
        if let (Course::Decided(verdict), state) = course {
            self.count_decision(version.policy, verdict);
            return A::known(&version.rule, verdict, state, now, cost);
        }
        let Some(hash) = self.hash_at(key, slot) else { return A::failed(TableError::Corrupt) };
        self.long(Sought { version, home: self.home(hash), hash }, now, cost, false)
    }

    /// The same of a key that was not in its first two buckets: one in forty of a new table is in its spare bucket, or it is a newcomer.
    #[inline(never)]
    fn elsewhere<A: Answer>(&self, version: &Version, key: u64, second: &Bucket, now: u64, cost: u64) -> A {
        let home = self.home_with(key, second);
        // Before it is looked for in the spare bucket: that it is in none of the three is seen all the same, and a flood of newcomers
        // is only kept up with if the next one's lines are asked for while this one waits for its own.
        if let Some(state) = self.arrive_shortly(version, &home, key, now, cost) {
            return A::known(&version.rule, Verdict::Allowed, state, now, cost);
        }
        match find_in(home.spare, key) {
            Some(slot) => self.rest(version, key, slot, now, cost),
            None => self.newcomer(version, &home, now, cost),
        }
    }

    /// The same of a key that was in none of its buckets.
    #[inline(never)]
    fn newcomer<A: Answer>(&self, version: &Version, home: &Home<'_>, now: u64, cost: u64) -> A {
        match self.arrive(version, home, now, cost) {
            (Course::Decided(verdict), state) => A::known(&version.rule, verdict, state, now, cost),
            (course, _) => {
                let hash = self.hash_with(home.tag, home.second);
                self.long(Sought { version, home: *home, hash }, now, cost, course == Course::Absent)
            }
        }
    }

    /// The long way; `absent`: the key was not found just now.
    #[inline]
    fn long<A: Answer>(&self, sought: Sought<'_>, now: u64, cost: u64, absent: bool) -> A {
        let policy = sought.version.policy;
        let mut answer = None;
        let tell = &mut |rule: &Rule, outcome: Outcome| {
            self.count_decision(policy, outcome.verdict);
            if outcome.event == Event::Refused {
                answer = Some(A::told(full(outcome.until, now)));
                return;
            }
            let known = A::known(rule, outcome.verdict, outcome.state, now, cost);
            answer = Some(match outcome.event {
                Event::Unremembered => known.because(Reason::TableFull),
                Event::RefusedByDebt => known.because(Reason::InheritedDebt),
                _ => known,
            });
        };
        match self.outcome(sought, now, cost, absent, tell) {
            // It has told.
            Ok(()) => answer.unwrap_or_else(|| A::failed(TableError::Corrupt)),
            Err(skipped) => {
                let decision = skipped.decision();
                if let Ok(decision) = &decision {
                    self.count_decision(policy, decision.verdict);
                }
                decision.map_or_else(A::failed, A::told)
            }
        }
    }

    #[inline(never)]
    fn outcome(
        &self,
        sought: Sought<'_>,
        now: u64,
        cost: u64,
        absent: bool,
        tell: &mut dyn FnMut(&Rule, Outcome),
    ) -> Result<(), Skipped> {
        if self.fixed.side != 0 {
            let told = self.ask_wide(sought, now, Ask::Check(cost)).map_err(Skipped::Failed)?;
            return Err(Skipped::Told(told.decision));
        }
        self.request(sought, now, absent, &mut |rule, state| rule.step(state, now, cost), tell).map_err(Skipped::Failed)
    }
}
