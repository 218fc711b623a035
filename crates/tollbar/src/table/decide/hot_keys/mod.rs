//! Credit for the hottest keys of a table: a thread takes permits in advance and spends them without the table.

mod purses;

use super::answer::{uncharged, Answer};
use super::{Lookup, OnClock, Table};
use crate::algorithm::Rule;
use crate::decision::{Reason, Verdict};
use crate::table::memory::counters::lines::{Asker, Line};
use crate::table::memory::error::TableError;
use crate::table::memory::layout::POLICIES_MOST;
use crate::table::policies::compiled::Version;
use crate::table::policies::PolicyId;
use crate::table::slots::probe::{find_in, find_in_two};
use crate::table::slots::protocol::step_once;
use purses::Purses;

/// One thread's credit for the hottest keys of a table.
///
/// It is for keys that several threads ask for at the same time: every request for one writes its slot, whose cache line then
/// goes from core to core. Where there is room for most of the keys that are asked for, one thread alone gains, too: it has a line of
/// its own to look at where the table has two, and nothing to swap. A key that is asked for seldom gains nothing.
///
/// # How
///
/// A [`HotKeys`] belongs to one thread. It remembers the keys that the thread asks for most often. Such a key is charged for more than
/// the one request; the rest is *credit*, in a purse that no other thread sees. A request with credit is a hash, a look at one cache
/// line of the thread's own, and at the clock.
///
/// # What holds
///
/// *At most `burst + rate · t` of a key in every interval of length t*, the table's own bound, whatever other threads and processes
/// do with that key, with credit or without. Credit is good until the instant at which the key's bucket would be full, had
/// it been charged for everything but this credit. If it were full too soon, some of it is burnt first: as much as comes back in
/// an eighth of a second, an eighth of the burst at most. So at every instant what is in the bucket and all credit that is good are
/// no more than the burst together: take the purses from the latest to the earliest. What is in the bucket, with the
/// latest credit, would have been in it without that; with the next one's, without both; and with all of them it is what
/// would have been there without the earliest, which is no more than the burst, or that one were not good any more. What passes in an
/// interval was in the bucket or in a purse when it began, or came back in it.
///
/// *A small limit is not starved.* Credit is a sixteenth of what remains at most: of the last sixteen permits, and where the burst is
/// below 32, nothing is taken in advance, and each request is decided as [`Table::admit`] decides it.
///
/// *What is not spent is lost*: it has been charged, and expires. A key gets 4 permits at first, four times as much as last time when it has spent
/// that in time, half as much when some of it has expired, 1,024 at most.
///
/// *Fork.* A child finds all purses empty. Where the system cannot promise that (Linux before 4.14, other systems) nothing is taken in
/// advance, and every request asks the table.
///
/// *Changes.* Credit of a policy is void from the thread's next request on when the policy is changed. Under the policies that a process
/// meets after 4,096 others in a table there is no credit: every request asks the table. While a table has exempt keys, every
/// request asks the table. A key that is [reset](Table::reset) keeps the credit that threads have for it: it may get that much more
/// than its burst. A clock that is set back makes credit good for as much longer.
///
/// Other algorithms than gcra have no credit: their keys are always asked for.
///
/// *Many requests at once*: read the clock once ([`Table::now`]) and ask for each at that time ([`HotKeys::admit_at`]).
///
/// # Example
///
/// ```
/// use tollbar::table::{HotKeys, Options, PolicyId, Table};
/// use tollbar::Verdict;
///
/// let table = Table::private(&Options::new(10_000), &["1000000/s burst 100000".parse()?])?;
/// std::thread::scope(|scope| {
///     for _ in 0..2 {
///         scope.spawn(|| {
///             let mut keys = HotKeys::new(&table, 256).expect("memory");
///             for _ in 0..10_000 {
///                 assert_eq!(keys.admit(PolicyId::FIRST, b"the tenant of the day", 1), Verdict::Allowed);
///             }
///         });
///     }
/// });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct HotKeys<'a> {
    table: &'a Table,
    purses: Purses,
}

impl<'a> HotKeys<'a> {
    /// With room for so many keys: 64 to 65,536 (what is below or above is taken for that), rounded up to a power of two. Each takes
    /// 34 bytes; more than a core's nearest cache holds are slower.
    ///
    /// # Errors
    /// [`TableError::NoMemory`].
    pub fn new(table: &'a Table, keys: u32) -> Result<HotKeys<'a>, TableError> {
        Ok(HotKeys { table, purses: Purses::new(keys)? })
    }

    /// The table.
    pub fn table(&self) -> &'a Table {
        self.table
    }

    /// [`Table::admit`], of the thread's credit where there is any.
    #[inline]
    pub fn admit(&mut self, policy: PolicyId, key: &[u8], cost: u64) -> Verdict {
        self.decide(policy, key, None, cost)
    }

    /// [`HotKeys::admit`] at the caller's time, as [`Table::admit_at`].
    #[inline]
    pub fn admit_at(&mut self, policy: PolicyId, key: &[u8], now: u64, cost: u64) -> Verdict {
        self.decide(policy, key, Some(now), cost)
    }

    /// [`Table::decide`] with this thread's credit.
    #[doc(hidden)]
    #[inline(always)]
    pub fn decide<A: Answer>(&mut self, policy: PolicyId, key: &[u8], now: Option<u64>, cost: u64) -> A {
        let (Some((version, stamp)), false) = (self.table.policies.current_compiled(policy), key.is_empty()) else {
            return self.table.decide(policy, key, now, cost);
        };
        let hash = self.table.hash_bytes(key) ^ version.salt;
        let Some(purse) = self.purses.find(id(stamp, hash)) else {
            self.purses.miss(id(stamp, hash));
            return self.charge_table(version, hash, now, cost);
        };
        let now = self.table.time(now);
        if purse.spend(now, cost) {
            // SAFETY: `current_compiled` has found the policy. There is credit, and so a line had been claimed: no place is null.
            unsafe { &*self.purses.line(policy.number()) }.count(Verdict::Allowed);
            return A::told(uncharged(Reason::Admitted));
        }
        if self.charge(version, hash, stamp, now, cost) {
            return A::told(uncharged(Reason::Admitted));
        }
        self.charge_table(version, hash, Some(now), cost)
    }

    fn charge_table<A: Answer>(&self, version: &Version, hash: u64, now: Option<u64>, cost: u64) -> A {
        // Apart, so that what is spent in a few instructions has the registers.
        match now {
            Some(now) => self.table.decide_hashed(version, hash, now, cost),
            None => self.table.decide_hashed(version, hash, OnClock, cost),
        }
    }

    /// Charges `cost` and credit, if that can be done.
    #[inline(never)]
    fn charge(&mut self, version: &Version, hash: u64, stamp: u64, now: u64, cost: u64) -> bool {
        if cost == 0 {
            return false;
        }
        // Claimed before there is credit, so that a request that spends credit need not look for it.
        let Some(line) = self.claim_line(version.number) else { return false };
        let id = id(stamp, hash);
        let most = self.purses.grade(id, now);
        match self.table.take_credit(&self.table.lookup(version, hash), now, cost, most) {
            Some((credit, until)) => {
                self.purses.fill(id, credit, until);
                line.count(Verdict::Allowed);
                true
            }
            None => false,
        }
    }

    /// The line under `policy` that this owns, whichever thread uses it.
    fn claim_line(&mut self, policy: u32) -> Option<&'a Line> {
        let (table, asker) = (self.table, self.asker(policy));
        if policy >= POLICIES_MOST as u32 {
            return None;
        }
        // SAFETY: the policy has just been looked at; a place is null or one of the table's lines.
        match unsafe { self.purses.line(policy).as_ref() } {
            Some(line) if line.is_of(table.policies.memory.thread_lines.process(), asker) => Some(line),
            _ => {
                let line = table.policies.memory.thread_lines.take(asker, table.policies.memory.lines())?;
                self.purses.own(policy, line);
                Some(line)
            }
        }
    }

    fn asker(&self, policy: u32) -> Asker {
        Asker { pointer: self.purses.address(), policy }
    }
}

impl Table {
    /// Charges `cost` and up to `most` more, if the key has a slot and no other call interferes: how much more, and until when that is
    /// good.
    fn take_credit(&self, lookup: &Lookup<'_>, now: u64, cost: u64, most: u64) -> Option<(u64, u64)> {
        let Lookup { version, first, second, key } = *lookup;
        let Rule::Gcra(gcra) = &version.rule else { return None };
        let slot = match find_in_two(first, second, key) {
            Some(slot) => slot,
            None => find_in(self.slots.spare(self.slots.hash_of_key(key, second)), key)?,
        };
        let state = slot.state();
        let lease = gcra.lease(state, now, cost, most)?;
        // Before the swap, for whoever gives back permits of this key.
        self.policies.memory.note_credit(version.number);
        if !step_once(slot, key, state, Some(lease.next)) {
            return None;
        }
        self.policies.memory.note_time(now);
        Some((lease.credit, lease.until))
    }
}

impl Drop for HotKeys<'_> {
    /// Gives its lines back.
    fn drop(&mut self) {
        let process = self.table.policies.memory.thread_lines.process();
        for policy in 0..POLICIES_MOST as u32 {
            // SAFETY: as in `claim_line`.
            let Some(line) = (unsafe { self.purses.line(policy).as_ref() }) else { return };
            line.release(process, self.asker(policy));
        }
    }
}

/// What a purse is known by: the key's hash, which tells its policy too, and the stamp of the policy's version.
#[inline(always)]
fn id(stamp: u64, hash: u64) -> u64 {
    hash ^ stamp
}
