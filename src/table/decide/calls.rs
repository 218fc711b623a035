//! The public calls for one key.

use super::multi_word::Op;
use super::{Answer, Table};
use crate::algorithm::{Algorithm, Rule, Step};
use crate::clock::Clock;
use crate::decision::{Decision, Reason, Verdict};
use crate::table::memory::counters::shards::ShardCounter;
use crate::table::memory::error::RequestError;
use crate::table::memory::slot::SlotPair;
use crate::table::policies::compiled::{salt, Version};
use crate::table::policies::conversion::UnderVersion;
use crate::table::policies::local::Scratch;
use crate::table::policies::{PolicyId, ROUNDS};
use crate::table::slots::candidates::Candidates;
use crate::table::slots::protocol::{first_to_expire, Room};
use crate::table::slots::states::KeyChanged;

impl Table {
    /// The table's time in nanoseconds, which calls without a `now` argument use. It is UTC since
    /// [`TIME_ZERO`](crate::clock::TIME_ZERO), by the system clock of the process that made the
    /// table, at that time. With [`Source::Wall`](crate::clock::Source::Wall) it is Unix time.
    #[inline(always)]
    pub fn now(&self) -> u64 {
        self.clock.now().wrapping_add(self.offset)
    }

    /// Takes `cost` permits of `key` under `policy`, or takes none and returns the nanoseconds to
    /// wait ([`Decision::retry_after`]). A cost of 0 asks without charging. A table without this
    /// policy refuses.
    #[inline]
    pub fn check(&self, policy: PolicyId, key: &[u8], cost: u64) -> Decision {
        self.decide(policy, key, None, cost)
    }

    /// [`Table::check`] of one permit under the table's first policy, which is the usual one.
    ///
    /// ```
    /// use tollbar::table::{Options, Table};
    ///
    /// let logins = Table::private(&Options::new(10_000), &["2/min".parse()?])?;
    /// assert!(logins.check_key("ann").is_allowed());
    /// assert!(logins.check_key("ann").is_allowed());
    /// assert!(!logins.check_key("ann").is_allowed());
    /// assert!(logins.check_key(b"bob").is_allowed());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn check_key(&self, key: impl AsRef<[u8]>) -> Decision {
        self.check(PolicyId::FIRST, key.as_ref(), 1)
    }

    /// [`Table::check`] at the caller's time. All callers of a table must use one scale: that of
    /// [`Table::now`], or another one.
    #[inline]
    pub fn check_at(&self, policy: PolicyId, key: &[u8], now: u64, cost: u64) -> Decision {
        self.decide(policy, key, Some(now), cost)
    }

    /// Takes `cost` permits of `key`, or takes none. It returns only the verdict, so it is the
    /// fastest call.
    #[inline]
    pub fn admit(&self, policy: PolicyId, key: &[u8], cost: u64) -> Verdict {
        self.decide(policy, key, None, cost)
    }

    /// [`Table::admit`] at the caller's time.
    #[inline]
    pub fn admit_at(&self, policy: PolicyId, key: &[u8], now: u64, cost: u64) -> Verdict {
        self.decide(policy, key, Some(now), cost)
    }

    /// [`Table::check`], or [`Table::check_at`] if `now` is given. It returns the error where they
    /// would refuse because of one.
    ///
    /// # Errors
    /// [`RequestError::NoSuchPolicy`]. [`RequestError::MissingKey`] for an empty key, if the
    /// options say [`Missing::Report`](crate::table::Missing). [`RequestError::Corrupt`] if the
    /// memory is damaged.
    #[inline(always)]
    pub fn try_check(
        &self,
        policy: PolicyId,
        key: &[u8],
        now: Option<u64>,
        cost: u64,
    ) -> Result<Decision, RequestError> {
        self.decide(policy, key, now, cost)
    }

    /// The answer that [`Table::check`] would give. It takes no permits and inserts no key.
    pub fn peek(&self, policy: PolicyId, key: &[u8], cost: u64) -> Decision {
        Decision::of(self.try_peek(policy, key, None, cost))
    }

    /// [`Table::peek`] at the caller's time.
    pub fn peek_at(&self, policy: PolicyId, key: &[u8], now: u64, cost: u64) -> Decision {
        Decision::of(self.try_peek(policy, key, Some(now), cost))
    }

    /// Takes as many permits as the key has, up to `most`, and returns their number.
    pub fn take_up_to(&self, policy: PolicyId, key: &[u8], most: u64) -> u64 {
        self.try_take_up_to(policy, key, None, most).unwrap_or(0)
    }

    /// [`Table::take_up_to`] at the caller's time.
    pub fn take_up_to_at(&self, policy: PolicyId, key: &[u8], now: u64, most: u64) -> u64 {
        self.try_take_up_to(policy, key, Some(now), most).unwrap_or(0)
    }

    /// [`Table::take_up_to`], or [`Table::take_up_to_at`] if `now` is given. It returns the error
    /// where they would take nothing because of one.
    ///
    /// # Errors
    /// Those of [`Table::try_check`].
    pub fn try_take_up_to(
        &self,
        policy: PolicyId,
        key: &[u8],
        now: Option<u64>,
        most: u64,
    ) -> Result<u64, RequestError> {
        let mut scratch = Scratch::new();
        let (version, hash) = match self.prepare(policy, key, &mut scratch) {
            Ok(prepared) => prepared,
            Err(decided) => {
                return Ok(if self.counted(policy, decided)?.is_allowed() { most } else { 0 });
            }
        };
        let now = self.time(now);
        self.policies.memory.note_time(now);
        // Under a window or log no thread has credit.
        let paid = self.spend_up_to(version, hash, now, most);
        let rest = most.saturating_sub(paid);
        let taken = self.decide_any(
            version,
            hash,
            now,
            Op::TakeUpTo(rest),
            &mut || self.take_up_to_one_word(version, hash, now, rest),
            &|decided| decided.taken,
        );
        let taken = match taken {
            Ok(taken) => taken.saturating_add(paid),
            // Credit that is spent stays spent, so an error for the other permits is not returned.
            Err(_) if paid != 0 => paid,
            Err(error) => return Err(error),
        };
        self.policies.memory.count_decision_out_of_line(version.number, verdict_of(taken));
        if most != 0 {
            self.note_refusal(verdict_of(taken), policy, key, Some(now));
        }
        Ok(taken)
    }

    fn take_up_to_one_word(
        &self,
        version: &Version,
        hash: u64,
        now: u64,
        most: u64,
    ) -> Result<Option<u64>, RequestError> {
        let mut taken = 0;
        let mut verdict = Verdict::Denied;
        let mut banned = false;
        let mut step = |rule: &Rule, state| {
            taken = rule.available(state, now).min(most).min(rule.largest());
            // A bucket that starts without permits begins to refill at its first request, so the
            // state must be stored.
            if taken == 0 && state == 0 {
                taken = most.min(1);
            }
            match taken {
                // No permits are taken, so no state is stored.
                0 => Step::deny(),
                taken => rule.step_out_of_line(state, now, taken),
            }
        };
        let done = self.request(version, hash, now, &mut step, &mut |rule, outcome| {
            (verdict, banned) = (outcome.verdict, rule.bans(outcome.state, now));
        })?;
        if banned {
            self.policies.memory.count_reason(Reason::Banned);
        }
        let taken = if verdict == Verdict::Allowed { taken } else { 0 };
        Ok(done.then_some(taken))
    }

    /// Lets `key` begin again with a fresh state. See [`Table::reset_at`].
    ///
    /// # Errors
    /// Those of [`Table::reset_at`].
    pub fn reset(&self, policy: PolicyId, key: &[u8]) -> Result<bool, RequestError> {
        self.reset_at(policy, key, self.now())
    }

    /// Lets `key` begin again with a fresh state, and returns whether it does. The key gets another
    /// slot with its next charge. No key takes its former slot until its debt would have been paid,
    /// because a slot's time must not become earlier. If no other candidate slot is free (after
    /// some resets within the time of the debt, or in a full table), a key under gcra begins again
    /// in its slot. Under other algorithms the call then changes nothing and returns false. A key
    /// under a quota keeps its slot.
    ///
    /// If the key begins again, the calling thread loses its credit for the key. Other threads keep
    /// theirs.
    ///
    /// # Errors
    /// [`RequestError::NoSuchPolicy`]. [`RequestError::Corrupt`] if the memory is damaged.
    pub fn reset_at(&self, policy: PolicyId, key: &[u8], now: u64) -> Result<bool, RequestError> {
        for _ in 0..ROUNDS {
            let mut scratch = Scratch::new();
            let hash = self.hash(policy, key)?;
            let version = self.policies.current(policy, hash, &mut scratch)?;
            let candidates = self.slots.candidates(hash);
            let own = version.key | candidates.tag;
            // Under a limit of 0 the key keeps its word under the former version.
            let word = self.policies.word_before_stop(version, &candidates).unwrap_or(own);
            let Some(slot) = candidates.find(word) else {
                let states = UnderVersion { policies: &self.policies, version };
                match first_to_expire(&states, &candidates, word, now) {
                    Err(KeyChanged) => continue,
                    Ok(room) => {
                        // A killed call may have left the key between two slots.
                        room.iter().for_each(Room::forget);
                        return Ok(self.void_credit(version, hash));
                    }
                }
            };
            let pair = slot.pair();
            if pair.key != word {
                continue;
            }
            let expires = self.policies.expires_at(pair);
            if expires <= now {
                return Ok(self.void_credit(version, hash));
            }
            // If the slot would never come free, or no other one is free, the key keeps it.
            let has_room = self.has_room(&candidates, pair.key, now);
            let stays = self.policies.unused_in_slot(pair, expires, now, !has_room);
            if let Some(state) = stays {
                // The reset lowers the state, so it takes the turn of a return.
                let Some(_turn) = self.policies.memory.turn(candidates.tag) else {
                    return Ok(false);
                };
                if slot.swap(pair, SlotPair { key: pair.key, state }).is_ok() {
                    self.policies.memory.count(ShardCounter::Resets);
                    return Ok(self.void_credit(version, hash));
                }
                continue;
            }
            if !has_room {
                return Ok(false);
            }
            if slot.swap(pair, self.policies.vacant(pair, expires)).is_ok() {
                self.policies.memory.count(ShardCounter::Resets);
                self.policies.vacated();
                return Ok(self.void_credit(version, hash));
            }
        }
        Err(RequestError::Corrupt)
    }

    /// The hash of `key` under `policy` in this table, by which the table knows the key.
    ///
    /// # Errors
    /// [`RequestError::NoSuchPolicy`].
    #[inline]
    pub fn hash(&self, policy: PolicyId, key: &[u8]) -> Result<u64, RequestError> {
        match self.policies.memory.has_policy(policy.number()) {
            true => Ok(self.hash_out_of_line(key) ^ salt(policy.number())),
            false => Err(RequestError::NoSuchPolicy),
        }
    }

    /// Counts a decision that the caller has made itself, such as a refusal because of a peek. The
    /// table does not count peeks. `reason` is the reason that the peek returned.
    ///
    /// # Errors
    /// [`RequestError::NoSuchPolicy`].
    pub fn count_decided(
        &self,
        policy: PolicyId,
        verdict: Verdict,
        reason: Reason,
    ) -> Result<(), RequestError> {
        match self.policies.memory.has_policy(policy.number()) {
            true => {
                self.policies.memory.count_decision_out_of_line(policy.number(), verdict);
                self.policies.memory.count_reason(reason);
                Ok(())
            }
            false => Err(RequestError::NoSuchPolicy),
        }
    }

    /// The caller's time if given, otherwise the table's.
    #[inline(always)]
    pub(super) fn time(&self, now: Option<u64>) -> u64 {
        match now {
            Some(now) => now,
            None => self.now(),
        }
    }

    /// Whether a candidate other than the slot of `key` has expired.
    fn has_room(&self, candidates: &Candidates<'_>, key: u64, now: u64) -> bool {
        let expired = |pair: SlotPair| pair.key != key && self.policies.expires_at(pair) <= now;
        candidates.slots().any(|slot| expired(slot.pair()))
    }
}

/// The verdict under which [`Table::take_up_to`] counts.
fn verdict_of(taken: u64) -> Verdict {
    match taken {
        0 => Verdict::Denied,
        _ => Verdict::Allowed,
    }
}
