//! Requests: a key is hashed, found, stepped, described.

use super::answer::{full, Answer, Skipped};
use super::compiled::{salt, Version};
use super::counts::Count;
use super::error::TableError;
use super::home::Home;
use super::local::Scratch;
use super::open::Missing;
use super::protocol::{self, Again, Event, Outcome, Terms};
use super::terms::Near;
use super::wide::Ask;
use super::{PolicyId, Table};
use crate::algorithm::{Algorithm, Rule, Step};
use crate::decision::{Decision, Reason, Verdict};
use rapidhash::v3::rapidhash_v3_inline;

/// A key, looked up as far as can be done before the time is known.
#[derive(Clone, Copy)]
pub(super) struct Sought<'a> {
    pub(super) version: &'a Version,
    pub(super) home: Home<'a>,
    pub(super) hash: u64,
}

/// How often a request is put again. Each time another call has changed its key's few places, or the policy; so often in a
/// row they do not, but damaged memory may say so for ever.
pub(super) const ROUNDS: u32 = 10_000;
impl Table {
    /// Takes `cost` permits of `key` under `policy`, or says when. A policy that the table does not have refuses all.
    #[inline]
    pub fn check(&self, policy: PolicyId, key: &[u8], cost: u64) -> Decision {
        self.ask(policy, key, None, cost)
    }

    /// [`Table::check`] at the caller's time, on the same scale for all callers of this table ([`Table::now`], or
    /// one of their own).
    #[inline]
    pub fn check_at(&self, policy: PolicyId, key: &[u8], now: u64, cost: u64) -> Decision {
        self.ask(policy, key, Some(now), cost)
    }

    /// Takes `cost` permits. The shortest call: no times, no counts.
    #[inline]
    pub fn admit(&self, policy: PolicyId, key: &[u8], cost: u64) -> Verdict {
        self.ask(policy, key, None, cost)
    }

    /// [`Table::admit`] at the caller's time.
    #[inline]
    pub fn admit_at(&self, policy: PolicyId, key: &[u8], now: u64, cost: u64) -> Verdict {
        self.ask(policy, key, Some(now), cost)
    }

    /// What [`Table::check`] would answer. It takes nothing and puts no key into the table.
    pub fn peek(&self, policy: PolicyId, key: &[u8], cost: u64) -> Decision {
        self.peek_for(policy, key, None, cost)
    }

    /// [`Table::peek`] at the caller's time.
    pub fn peek_at(&self, policy: PolicyId, key: &[u8], now: u64, cost: u64) -> Decision {
        self.peek_for(policy, key, Some(now), cost)
    }

    /// Takes as many permits as there are, up to `most`; returns how many.
    pub fn take_up_to(&self, policy: PolicyId, key: &[u8], most: u64) -> u64 {
        self.try_take_up_to(policy, key, None, most).unwrap_or(0)
    }

    /// [`Table::take_up_to`] at the caller's time.
    pub fn take_up_to_at(&self, policy: PolicyId, key: &[u8], now: u64, most: u64) -> u64 {
        self.try_take_up_to(policy, key, Some(now), most).unwrap_or(0)
    }

    /// Lets `key` begin again; whether it does. See [`Table::reset_at`].
    pub fn reset(&self, policy: PolicyId, key: &[u8]) -> Result<bool, TableError> {
        self.reset_at(policy, key, self.now())
    }

    /// Lets `key` begin again. Its slot stays taken until its debt would have been paid, since a slot's time may not
    /// become earlier, and the key gets another with its next charge. If all its other places are taken (which
    /// takes some resets within the time of its debt, or a full table) nothing changes, and the answer is false.
    pub fn reset_at(&self, policy: PolicyId, key: &[u8], now: u64) -> Result<bool, TableError> {
        for _ in 0..ROUNDS {
            let mut scratch = Scratch::new();
            let sought = self.seek(policy, key, &mut scratch)?;
            let Some(slot) = sought.home.find(sought.key()) else {
                match protocol::first_to_expire(self, &sought.home, sought.key(), now) {
                    Err(Again) => continue,
                    Ok(_) => return Ok(true),
                }
            };
            let pair = slot.pair();
            if pair.key != sought.key() {
                continue;
            }
            let expires = self.expires_at(pair);
            if expires <= now {
                return Ok(true);
            }
            if !self.has_room(&sought.home, pair.key, now) {
                return Ok(false);
            }
            if slot.swap(pair, self.vacant(pair, expires)).is_ok() {
                self.count(Count::Resets);
                self.count_vacated();
                return Ok(true);
            }
        }
        Err(TableError::Corrupt)
    }

    /// The hash that `key` is known by under `policy` in this table.
    #[inline]
    pub fn hash(&self, policy: PolicyId, key: &[u8]) -> Result<u64, TableError> {
        match self.has_policy(policy) {
            true => Ok(self.hash_bytes(key) ^ salt(policy.0)),
            false => Err(TableError::NoSuchPolicy),
        }
    }

    /// [`Table::check`], or [`Table::check_at`] if `now` is given, with the error where they would refuse because of one.
    #[inline]
    pub fn try_check(&self, policy: PolicyId, key: &[u8], now: Option<u64>, cost: u64) -> Result<Decision, TableError> {
        self.ask(policy, key, now, cost)
    }

    /// One look, the short way if it will do, with an answer of the caller's type.
    #[doc(hidden)]
    #[inline(always)]
    pub fn peek_for<A: Answer>(&self, policy: PolicyId, key: &[u8], now: Option<u64>, cost: u64) -> A {
        let now = self.time(now);
        if let (Some(version), false) = (self.hot(policy), key.is_empty()) {
            if let Some(state) = self.look_at(&self.quick(version, key)) {
                let verdict = version.rule.step(state, now, cost).verdict;
                return A::known(&version.rule, verdict, state, now, cost);
            }
        }
        match self.peek_long(policy, key, now, cost) {
            Ok(decision) => A::told(decision),
            Err(error) => A::failed(error),
        }
    }

    #[inline(never)]
    fn peek_long(&self, policy: PolicyId, key: &[u8], now: u64, cost: u64) -> Result<Decision, TableError> {
        let mut scratch = Scratch::new();
        let sought = match self.start(policy, key, &mut scratch) {
            Ok(sought) => sought,
            Err(skipped) => return skipped.decision(),
        };
        if self.fixed.side != 0 {
            return self.ask_wide(sought, now, Ask::Peek(cost)).map(|told| told.decision);
        }
        for round in 0..ROUNDS {
            let mut scratch = Scratch::new();
            // After the first round others have changed the policy, or what was looked at.
            let version = if round == 0 { sought.version } else { self.current(policy, &mut scratch)? };
            let sought = Sought { version, ..sought };
            let about = |state| version.rule.describe(version.rule.step(state, now, cost).verdict, state, now, cost);
            let known = sought.home.find(sought.key()).map(|slot| slot.pair());
            match known {
                Some(pair) if pair.key == sought.key() => return Ok(about(pair.state)),
                Some(_) => {}
                None => match protocol::first_to_expire(self, &sought.home, sought.key(), now) {
                    Ok(Some(first)) if cost != 0 && first.expires > now => {
                        let fresh = about(0);
                        return Ok(match self.on_full {
                            protocol::OnFull::Deny if fresh.is_allowed() => full(first.expires, now),
                            protocol::OnFull::Inherit => {
                                let told = about(self.adopt(sought.key(), first.pair));
                                match told.verdict {
                                    Verdict::Denied => told.because(Reason::InheritedDebt),
                                    _ => told,
                                }
                            }
                            protocol::OnFull::Allow if fresh.is_allowed() => fresh.because(Reason::TableFull),
                            _ => fresh,
                        });
                    }
                    Ok(_) => return Ok(about(0)),
                    Err(Again) => {}
                },
            }
        }
        Err(TableError::Corrupt)
    }

    /// [`Table::take_up_to`], or [`Table::take_up_to_at`] if `now` is given, with the error where they would take nothing
    /// because of one.
    pub fn try_take_up_to(&self, policy: PolicyId, key: &[u8], now: Option<u64>, most: u64) -> Result<u64, TableError> {
        let mut scratch = Scratch::new();
        let sought = match self.start(policy, key, &mut scratch) {
            Ok(sought) => sought,
            Err(skipped) => {
                let taken = skipped.decision().map(|free| if free.is_allowed() { most } else { 0 })?;
                self.count_unasked(policy, verdict_of(taken));
                return Ok(taken);
            }
        };
        let now = self.time(now);
        if self.fixed.side != 0 {
            let taken = self.ask_wide(sought, now, Ask::TakeUpTo(most))?.taken;
            self.count_decision(policy.0, verdict_of(taken));
            return Ok(taken);
        }
        self.look(now);
        let mut taken = 0;
        let mut verdict = Verdict::Denied;
        let mut step = |rule: &Rule, state| {
            taken = rule.available(state, now).min(most);
            // A bucket that starts without permits begins to fill at its first touch, and this is one.
            if taken == 0 && state == 0 {
                taken = most.min(1);
            }
            match taken {
                // Nothing to take is nothing to write.
                0 => Step::deny(),
                taken => rule.step(state, now, taken),
            }
        };
        self.request(sought, now, false, &mut step, &mut |_, outcome| verdict = outcome.verdict)?;
        let taken = if verdict == Verdict::Allowed { taken } else { 0 };
        self.count_decision(policy.0, verdict_of(taken));
        Ok(taken)
    }

    /// Asks the table, and tells `tell` what came of it, with the rule that decided; `absent`: the key was not found just now. Its
    /// policy may change meanwhile: then it is asked under the new one.
    #[inline(never)]
    pub(super) fn request(
        &self,
        sought: Sought<'_>,
        now: u64,
        absent: bool,
        step: &mut dyn FnMut(&Rule, u64) -> Step,
        tell: &mut dyn FnMut(&Rule, Outcome),
    ) -> Result<(), TableError> {
        let policy = PolicyId(sought.version.policy);
        for round in 0..ROUNDS {
            let mut scratch = Scratch::new();
            let version = if round == 0 { sought.version } else { self.current(policy, &mut scratch)? };
            let key = version.key | sought.home.tag;
            let terms = Near { table: self, version };
            let mut step = |state| step(&version.rule, state);
            // A newcomer's look at its candidates finds the key if it is there after all.
            let asked = match absent && round == 0 {
                true => protocol::newcomer(&terms, &sought.home, key, now, self.on_full, &mut step),
                false => protocol::request(&terms, &sought.home, key, now, self.on_full, step),
            };
            if let Ok(outcome) = asked {
                if outcome.event != Event::Known || outcome.retries != 0 {
                    self.count_event(outcome.event, outcome.retries);
                }
                tell(&version.rule, outcome);
                return Ok(());
            }
        }
        Err(TableError::Corrupt)
    }

    /// Everything up to the clock: the key's lines are on their way while it is read.
    #[inline(never)]
    pub(super) fn start<'s, 't: 's>(
        &'t self,
        policy: PolicyId,
        key: &[u8],
        scratch: &'s mut Scratch<'t>,
    ) -> Result<Sought<'s>, Skipped> {
        if key.is_empty() {
            return Err(match self.missing {
                Missing::Deny => Skipped::Denied(Reason::MissingKey),
                Missing::Allow => Skipped::Allowed(Reason::MissingKey),
                Missing::Report => Skipped::Failed(TableError::MissingKey),
            });
        }
        let sought = self.seek(policy, key, scratch).map_err(Skipped::Failed)?;
        prefetch(sought.home.first);
        prefetch(sought.home.second);
        prefetch(sought.home.spare);
        if self.is_exempt(sought.hash) {
            return Err(Skipped::Allowed(Reason::Exempt));
        }
        Ok(sought)
    }

    #[inline(always)]
    fn seek<'s, 't: 's>(
        &'t self,
        policy: PolicyId,
        key: &[u8],
        scratch: &'s mut Scratch<'t>,
    ) -> Result<Sought<'s>, TableError> {
        let version = self.current(policy, scratch)?;
        let hash = self.hash_bytes(key) ^ version.salt;
        Ok(Sought { version, home: self.home(hash), hash })
    }

    #[inline(always)]
    pub(super) fn time(&self, now: Option<u64>) -> u64 {
        match now {
            Some(now) => now,
            None => self.now(),
        }
    }

    /// With the second mixing step: without it sequences of addresses are visibly uneven in some of the bits.
    #[inline(always)]
    pub(super) fn hash_bytes(&self, key: &[u8]) -> u64 {
        rapidhash_v3_inline::<true, true, false>(key, &self.secrets)
    }

    /// Whether another candidate than the one that holds `key` has expired.
    fn has_room(&self, home: &Home<'_>, key: u64, now: u64) -> bool {
        (0..super::home::CANDIDATES).filter_map(|n| home.candidate(n)).any(|slot| {
            let pair = slot.pair();
            pair.key != key && self.expires_at(pair) <= now
        })
    }

    #[inline]
    pub(super) fn count_event(&self, event: Event, retries: u32) {
        self.shard().event(event, retries);
    }

    #[cold]
    pub(super) fn count(&self, what: Count) {
        self.shard().add(what, 1);
    }
}

/// How a call that takes what there is counts.
fn verdict_of(taken: u64) -> Verdict {
    match taken {
        0 => Verdict::Denied,
        _ => Verdict::Allowed,
    }
}

impl Sought<'_> {
    /// The key word of its slot.
    #[inline(always)]
    pub(super) fn key(&self) -> u64 {
        self.version.key | self.home.tag
    }
}

/// Asks for a line before it is needed.
#[inline(always)]
pub(super) fn prefetch<T>(at: &T) {
    ask_for::<false, T>(at);
}

/// The same for one line of many: into the second cache, since the first waits for fewer at a time.
#[inline(always)]
pub(super) fn prefetch_one_of_many<T>(at: &T) {
    ask_for::<true, T>(at);
}

#[inline(always)]
fn ask_for<const SECOND: bool, T>(at: &T) {
    let at = core::ptr::from_ref(at);
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch touches nothing. (By hand, so that the address is in one register and stays there: the compiler's own keeps
    // the two of which it is the sum.)
    unsafe {
        if SECOND {
            core::arch::asm!("prefetcht1 byte ptr [{at}]", at = in(reg) at, options(nostack, preserves_flags, readonly));
        } else {
            core::arch::asm!("prefetcht0 byte ptr [{at}]", at = in(reg) at, options(nostack, preserves_flags, readonly));
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}
