//! Credit for the hottest keys of a table: a thread takes permits in advance and spends them
//! without the table.
//!
//! It is for keys that several threads check at the same time: each check writes the key's slot,
//! whose cache line then moves from core to core. A single thread gains, too, if its block has room
//! for most of the keys in use: a check reads one cache line of the block instead of two of the
//! table, and swaps no slot. A key that threads check rarely gains nothing.
//!
//! # How threads take credit
//!
//! Each thread has a block of memory in this process ([`threads`]), in which it remembers the keys
//! that it checks most often ([`credit`]). The thread charges such a key for more than one request.
//! The rest is *credit*, which no other thread uses. A request with credit computes a hash, reads
//! one cache line of the thread's own, and reads the clock.
//!
//! # Guarantees
//!
//! *A key is admitted at most `burst + rate · t` in every interval of length t*, which is the bound
//! without hot keys. Other threads and processes may check the key meanwhile, with credit or
//! without. Credit is valid until the instant at which the key's bucket would be full if this
//! credit had not been charged. If that instant is too soon, the thread first charges the bucket
//! for permits that no request gets: as many as refill in an eighth of a second, an eighth of the
//! burst at most.
//!
//! So at every instant the permits in the bucket and all valid credits together are at most the
//! burst. Proof: order the credits from the latest to the earliest. The bucket with the latest
//! credit added holds what it would hold if that credit had not been charged. With the next credit
//! added it holds what it would hold without both, and so on. With all credits added it holds what
//! it would hold without the earliest, which is at most the burst, because otherwise the earliest
//! credit would no longer be valid. A permit spent in an interval was in the bucket or was credit
//! when the interval began, or was refilled in the interval.
//!
//! *A small limit is not starved.* Credit is at most a sixteenth of the remaining permits. So a
//! thread takes none of the last sixteen permits, and none of a burst below 32. The table then
//! decides each request as without hot keys.
//!
//! *Unspent credit is lost*: it has been charged, and expires. A key's first credit is 4 permits.
//! If a thread has spent a credit in time, the next one is four times as large, 1,024 permits at
//! most. If some of it has expired, the next one is half as large.
//!
//! *Changes.* When a policy is changed, credit under it is void from the thread's next request on.
//! There is no credit under the policies that a process meets after 4,096 others in a table, and
//! none while a table has exempt keys. When a key is [reset](Table::reset), it loses the calling
//! thread's credit and keeps that of other threads, so it may get that much more than its burst. A
//! thread whose time goes back spends no credit until its time is that of its latest credit again:
//! the permits that it was charged may not have been refilled at the earlier time.
//!
//! *Calls.* A check spends credit, and takes some if there is none. [`Table::take_up_to`] spends
//! the calling thread's credit and then takes from the table. [`Table::reserve`] and
//! [`Table::wait`] book in the table what the thread's credit does not pay at once.
//! [`Table::charge`] charges the table. [`Table::give_back`] gives nothing back under a policy
//! under which a thread has had credit. [`Table::peek`] counts the calling thread's credit. A batch
//! uses no credit, because it overlaps the waits for memory that credit would save
//! (docs/internals/decisions/0012-hot-keys.md).
//!
//! Only gcra has credit.

mod credit;
mod threads;

use super::answer::{describe, Answer};
use super::fast::{Lookup, When, SHORT};
use super::Table;
use crate::algorithm::Rule;
use crate::clock::Clock;
use crate::decision::{Decision, Verdict};
use crate::table::memory::error::RequestError;
use crate::table::memory::slot::{find_in, find_in_two};
use crate::table::policies::compiled::Version;
use crate::table::policies::local::Scratch;
use crate::table::policies::PolicyId;
use credit::{time_for, ThreadCredit};
pub(in crate::table) use threads::HotKeys;

/// Credit is valid for at least this many nanoseconds, or for the time in which an eighth of the
/// burst refills if that is shorter.
const LEAST_TIME: u64 = 1 << 27;

impl Table {
    /// [`Table::decide`] for a table with hot keys. It decides a request with a short key whose
    /// credit pays for it. Every other case is a tail call, so this function spills no registers.
    #[inline(never)]
    pub(super) fn decide_hot<A: Answer, W: When>(
        &self,
        policy: PolicyId,
        key: &[u8],
        when: W,
        cost: u64,
    ) -> A {
        let Some((version, special)) = self.policies.current_compiled(policy) else {
            return self.decide_hot_rare(policy, key, when.given(), cost);
        };
        if key.len().wrapping_sub(1) >= SHORT {
            return self.decide_hot_long(policy, key, when.given(), cost);
        }
        let hash = self.hash_bytes(key) ^ version.salt;
        // Combinators would be calls when the compiler optimizes for size.
        let Some(hot) = &self.hot else {
            return self.decide_hot_slow(version, hash, when.given(), cost);
        };
        let Some(mut mine) = hot.enter_first() else {
            return self.decide_hot_slow(version, hash, when.given(), cost);
        };
        let id = id(version.credit_mark(special.word()), hash);
        let newest = mine.newest();
        if let (Some(credit), Some(now)) = (mine.find(id), self.time_at_once(when)) {
            if credit.spend(time_for(newest, now), cost) {
                // SAFETY: `current_compiled` found the policy, so its number is below
                // POLICIES_MOST. `charge_with_credit` set the line before it gave credit, and lines
                // live as long as the table.
                unsafe { &*mine.line(policy.number()) }.count(Verdict::Allowed);
                HotKeys::leave(mine);
                return A::of_admission(|| self.describe_paid(version, hash, now, cost, 0));
            }
        }
        HotKeys::leave(mine);
        self.decide_hot_slow(version, hash, when.given(), cost)
    }

    /// [`Table::decide_hot`] with a full decision, compiled once for all callers.
    #[inline(never)]
    pub(super) fn decide_hot_in_full(
        &self,
        policy: PolicyId,
        key: &[u8],
        now: Option<u64>,
        cost: u64,
    ) -> Result<Decision, RequestError> {
        self.decide_hot_long(policy, key, now, cost)
    }

    /// [`Table::decide_hot`] for a key of any length.
    #[inline(never)]
    fn decide_hot_long<A: Answer>(
        &self,
        policy: PolicyId,
        key: &[u8],
        now: Option<u64>,
        cost: u64,
    ) -> A {
        match (self.policies.current_compiled(policy), key.is_empty()) {
            (Some((version, _)), false) => {
                self.decide_hot_slow(version, self.hash_out_of_line(key) ^ version.salt, now, cost)
            }
            _ => self.decide_hot_rare(policy, key, now, cost),
        }
    }

    /// [`Table::decide_hot`] of a key that may be exempt or have a policy of its own.
    #[inline(never)]
    fn decide_hot_rare<A: Answer>(
        &self,
        policy: PolicyId,
        key: &[u8],
        now: Option<u64>,
        cost: u64,
    ) -> A {
        let mut scratch = Scratch::new();
        match self.prepare(policy, key, &mut scratch) {
            Ok((version, hash)) => {
                let answer: A = self.decide_hot_slow(version, hash, now, cost);
                self.note_refusal(answer.verdict(), policy, key, now);
                answer
            }
            Err(_) => self.decide_rare_at(policy, key, now, cost),
        }
    }

    /// [`Table::decide_hot`] for a hash, in every case.
    #[inline(never)]
    fn decide_hot_slow<A: Answer>(
        &self,
        version: &Version,
        hash: u64,
        now: Option<u64>,
        cost: u64,
    ) -> A {
        let Some(mut mine) = self.hot.as_ref().and_then(HotKeys::enter) else {
            return self.decide_hashed(version, hash, now, cost);
        };
        let id = id(self.policies.credit_mark(version), hash);
        let newest = mine.newest();
        let Some(credit) = mine.find(id) else {
            if has_credit(version) {
                mine.miss(id);
            }
            HotKeys::leave(mine);
            return self.decide_hashed(version, hash, now, cost);
        };
        let now = self.time(now);
        let at = time_for(newest, now);
        let spent = credit.spend(at, cost);
        let mut left = credit.permits(at);
        let paid = match spent {
            true => {
                // SAFETY: a version's policy number is below POLICIES_MOST. `charge_with_credit`
                // set the line before it gave credit, and lines live as long as the table.
                unsafe { &*mine.line(version.number) }.count(Verdict::Allowed);
                true
            }
            // Credit that is charged now would not be valid before the clock has come to `newest`.
            false if now < newest => false,
            false => {
                let charged = self.charge_with_credit(version, hash, id, &mut mine, now, cost);
                let newest = mine.newest();
                left = mine.find(id).map_or(0, |credit| credit.permits(time_for(newest, now)));
                charged
            }
        };
        HotKeys::leave(mine);
        match paid {
            true => A::of_admission(|| self.describe_paid(version, hash, now, cost, left)),
            false => self.decide_hashed::<A>(version, hash, Some(now), cost).with_credit(left),
        }
    }

    /// The calling thread's credit for a key's hash under its policy.
    pub(super) fn credit_of(&self, version: &Version, hash: u64, now: u64) -> u64 {
        self.with_credit_of(version, hash, now, |credit, now| credit.permits(now))
    }

    /// Spends `cost` permits of the calling thread's credit. If there are fewer, or the cost is 0,
    /// it spends none and returns false.
    pub(super) fn spend_credit(&self, version: &Version, hash: u64, now: u64, cost: u64) -> bool {
        let spend =
            |credit: &mut credit::Credit, now| if credit.spend(now, cost) { cost } else { 0 };
        cost != 0 && self.hot.is_some() && self.with_credit_of(version, hash, now, spend) == cost
    }

    /// [`Table::spend_credit`] with a full decision.
    pub(super) fn decide_by_credit(
        &self,
        version: &Version,
        hash: u64,
        now: u64,
        cost: u64,
    ) -> Option<Decision> {
        if !self.spend_credit(version, hash, now, cost) {
            return None;
        }
        let left = self.credit_of(version, hash, now);
        Some(self.describe_paid(version, hash, now, cost, left))
    }

    /// Spends up to `most` permits of the calling thread's credit, and returns their number.
    pub(super) fn spend_up_to(&self, version: &Version, hash: u64, now: u64, most: u64) -> u64 {
        self.with_credit_of(version, hash, now, |credit, now| {
            let permits = credit.permits(now).min(most);
            match credit.spend(now, permits) {
                true => permits,
                false => 0,
            }
        })
    }

    /// Voids the calling thread's credit. Always true.
    #[inline(never)]
    pub(super) fn void_credit(&self, version: &Version, hash: u64) -> bool {
        self.with_credit_of(version, hash, 0, |credit, _| {
            credit.void();
            0
        });
        true
    }

    /// Calls `use_it` with the calling thread's credit and the time for it ([`time_for`]).
    fn with_credit_of(
        &self,
        version: &Version,
        hash: u64,
        now: u64,
        use_it: impl FnOnce(&mut credit::Credit, u64) -> u64,
    ) -> u64 {
        let Some(mut mine) = self.hot.as_ref().and_then(HotKeys::enter) else { return 0 };
        let now = time_for(mine.newest(), now);
        let credit = mine.find(id(self.policies.credit_mark(version), hash));
        let used = credit.map_or(0, |credit| use_it(credit, now));
        HotKeys::leave(mine);
        used
    }

    /// The caller's time, or the table's if the clock can be read without a call.
    #[inline(always)]
    fn time_at_once<W: When>(&self, when: W) -> Option<u64> {
        if let Some(now) = when.given() {
            return Some(now);
        }
        let now = self.clock.at_once()?;
        Some(now.wrapping_add(self.offset))
    }

    /// Charges `cost` and new credit, if the key can have credit.
    #[inline(never)]
    fn charge_with_credit(
        &self,
        version: &Version,
        hash: u64,
        id: u64,
        mine: &mut ThreadCredit<'_>,
        now: u64,
        cost: u64,
    ) -> bool {
        // The line is set before the thread gets credit, so that a request that spends credit need
        // not search for it.
        let Some(line) = self.policies.memory.line_or_claim(version.number) else { return false };
        if cost == 0 {
            return false;
        }
        mine.set_line(version.number, line);
        let most = mine.frequency(id, now);
        match self.take_credit(&self.lookup(version, hash), now, cost, most) {
            Some((credit, until)) => {
                mine.fill(id, credit, now, until);
                line.count(Verdict::Allowed);
                true
            }
            None => false,
        }
    }

    /// Charges `cost` and up to `most` more, if the key has a slot and no other call changes it
    /// meanwhile. Returns the number of further permits and the time until which they are valid.
    pub(super) fn take_credit(
        &self,
        lookup: &Lookup<'_>,
        now: u64,
        cost: u64,
        most: u64,
    ) -> Option<(u64, u64)> {
        let Lookup { version, first, second, key } = *lookup;
        let Rule::Gcra(gcra) = &version.rule else { return None };
        let slot = match find_in_two(first, second, key) {
            Some(slot) => slot,
            None => find_in(self.slots.spare(self.slots.hash_of_key(key, second)), key)?,
        };
        let state = slot.state();
        if !self.policies.is_numbered(version) {
            return None;
        }
        let lease = gcra.lease(state, now, cost, most, LEAST_TIME)?;
        // Before the swap, so that a call that gives back permits of this key and reads the swapped
        // state sees the note.
        self.policies.memory.note_credit(version.number);
        if !slot.commit(key, state, Some(lease.next)) {
            return None;
        }
        self.policies.memory.note_time(now);
        Some((lease.credit, lease.until))
    }

    /// The full decision on a request that credit has paid for. The remaining permits are those of
    /// the bucket and of the thread's credit.
    #[inline(never)]
    fn describe_paid(
        &self,
        version: &Version,
        hash: u64,
        now: u64,
        cost: u64,
        left: u64,
    ) -> Decision {
        let state = self.state_of(version, hash).unwrap_or(0);
        describe(&version.rule, Verdict::Allowed, state, now, cost).with_credit(left)
    }
}

/// Whether threads may take credit under this version.
#[inline(always)]
fn has_credit(version: &Version) -> bool {
    matches!(&version.rule, Rule::Gcra(gcra) if gcra.has_credit())
}

/// The id of a key's credit. It depends on the key's hash, which differs for each policy, and on
/// the stamp of the policy's version.
#[inline(always)]
fn id(mark: u64, hash: u64) -> u64 {
    hash ^ mark
}
