//! Reservations of a key: `reserve` charges permits for a later instant, and `wait` sleeps for
//! permits in a queue.

use super::multi_word::Op;
use super::Table;
use crate::algorithm::{begun, Algorithm, Charge, Reservation, Rule, Step};
use crate::clock::{Bell, Clock};
use crate::decision::{Decision, Reason, Verdict};
use crate::limiter::waiting::{self, last_by_peeks, last_by_steps, Permits};
use crate::table::memory::error::RequestError;
use crate::table::policies::compiled::{salt, Version};
use crate::table::policies::local::Scratch;
use crate::table::policies::PolicyId;
use crate::table::slots::states::Event;
use crate::units::nanos;
use core::time::Duration;

impl Table {
    /// Books `cost` permits of `key` for the earliest instant at which they may be used, if that is
    /// `until` at the latest. The caller must use them at that instant ([`Charge::at`]) or later.
    /// It gives back an unused booking ([`Table::give_back`]).
    ///
    /// [`Charge::cost`] is `cost`, or 0 if no key was charged: for an exempt or empty key, and for
    /// a new key that a full table admits without storing it.
    ///
    /// Gcra, lists of two, pacer, warm-up and interval aligned to time 0 book ahead. The other
    /// algorithms refuse.
    ///
    /// ```
    /// use tollbar::table::{Options, PolicyId, Table};
    ///
    /// let table = Table::private(&Options::new(10_000), &["2/s burst 1".parse()?])?;
    /// let patience = 1_000_000_000;
    /// let jobs = |tenant: &[u8], now| table.reserve_at(PolicyId::FIRST, tenant, now, 1, now + patience).map(|job| job.at);
    /// assert_eq!(jobs(b"acme", 7_000_000_000), Ok(7_000_000_000));
    /// assert_eq!(jobs(b"acme", 7_000_000_000), Ok(7_500_000_000));
    /// assert_eq!(jobs(b"acme", 7_000_000_000), Ok(8_000_000_000));
    /// assert!(jobs(b"acme", 7_000_000_000).is_err()); // not within the second
    /// assert_eq!(jobs(b"umbrella", 7_000_000_000), Ok(7_000_000_000));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Verdict::Never`] if the cost is above the burst, otherwise [`Verdict::Denied`]. Nothing
    /// has been taken.
    pub fn reserve(
        &self,
        policy: PolicyId,
        key: &[u8],
        cost: u64,
        until: u64,
    ) -> Result<Charge, Verdict> {
        self.reserve_at(policy, key, self.now(), cost, until)
    }

    /// [`Table::reserve`] at the caller's time.
    ///
    /// # Errors
    /// Those of [`Table::reserve`].
    pub fn reserve_at(
        &self,
        policy: PolicyId,
        key: &[u8],
        now: u64,
        cost: u64,
        until: u64,
    ) -> Result<Charge, Verdict> {
        self.try_reserve(policy, key, now, cost, until).unwrap_or(Err(Verdict::Denied))
    }

    /// As [`Table::reserve_at`]. Where an error makes that call refuse, this one returns the error.
    ///
    /// # Errors
    /// Those of [`Table::try_check`]. The inner error is that of [`Table::reserve`].
    #[inline(never)]
    pub fn try_reserve(
        &self,
        policy: PolicyId,
        key: &[u8],
        now: u64,
        cost: u64,
        until: u64,
    ) -> Result<Result<Charge, Verdict>, RequestError> {
        let mut reason = None;
        let booked = self.book(policy, key, now, cost, until, &mut reason)?;
        let verdict = booked.err().unwrap_or(Verdict::Allowed);
        let reason = reason.unwrap_or(Reason::of(verdict));
        self.policies.memory.count_with_reason(policy.number(), verdict, reason);
        self.note_refusal(verdict, policy, key, Some(now));
        Ok(booked)
    }

    /// Takes `cost` permits of `key`, and sleeps for at most `patience` until they may be used. See
    /// [`Table::wait_until`].
    pub fn wait(&self, policy: PolicyId, key: &[u8], cost: u64, patience: Duration) -> Decision {
        self.wait_ns(policy, key, cost, nanos(patience))
    }

    /// [`Table::wait`] with the patience in nanoseconds.
    pub fn wait_ns(&self, policy: PolicyId, key: &[u8], cost: u64, patience: u64) -> Decision {
        self.wait_until(policy, key, cost, self.now().saturating_add(patience))
    }

    /// Takes `cost` permits of `key`, and sleeps until they may be used, at the latest until
    /// `deadline` (on [`Table::now`]'s scale). The answer's times count from the return.
    ///
    /// The callers of a key that use one table object wait in a queue, as those of a limiter do
    /// ([`Limiter::wait_until`](crate::Limiter::wait_until)). Of several queues, such as those of
    /// several processes, the first callers depart in the order of their bookings. So a later
    /// caller of another queue may depart before this one: at most one of each other queue for each
    /// caller before this one in its own queue. If a process is killed while callers wait, the
    /// booking of the first of each queue stays charged.
    ///
    /// The call refuses at once, and takes nothing, if the permits would come too late, or if as
    /// many callers of all keys sleep already as may
    /// ([`Options::waiters`](crate::table::Options::waiters)).
    pub fn wait_until(&self, policy: PolicyId, key: &[u8], cost: u64, deadline: u64) -> Decision {
        use super::answer::Answer;
        Answer::of(self.try_wait_until(policy, key, cost, deadline))
    }

    /// As [`Table::wait_until`]. Where an error makes that call refuse, this one returns the error.
    /// It has taken nothing then, unless the table was damaged during the sleep.
    ///
    /// # Errors
    /// Those of [`Table::try_check`].
    #[inline(never)]
    pub fn try_wait_until(
        &self,
        policy: PolicyId,
        key: &[u8],
        cost: u64,
        deadline: u64,
    ) -> Result<Decision, RequestError> {
        let permits = KeyPermits { table: self, policy, key };
        let decision =
            waiting::wait(&permits, &permits, &self.waiting, permits.hash(), cost, deadline)?;
        self.policies.memory.count_with_reason(policy.number(), decision.verdict, decision.reason);
        self.note_refusal(decision.verdict, policy, key, None);
        Ok(decision)
    }

    /// The number of callers of this table object that are asleep in [`Table::wait_until`].
    pub fn waiting(&self) -> u32 {
        self.waiting.asleep()
    }

    /// [`Table::try_reserve`] without counting the decision. The call sets `reason` if the verdict
    /// does not tell it.
    fn book(
        &self,
        policy: PolicyId,
        key: &[u8],
        now: u64,
        cost: u64,
        until: u64,
        reason: &mut Option<Reason>,
    ) -> Result<Result<Charge, Verdict>, RequestError> {
        let mut scratch = Scratch::new();
        let (version, hash) = match self.prepare(policy, key, &mut scratch) {
            Ok(prepared) => prepared,
            Err(decided) => {
                let verdict = decided.map(|decision| {
                    *reason = Some(decision.reason);
                    decision.verdict
                })?;
                return Ok(if verdict == Verdict::Allowed {
                    Ok(Charge { at: now, cost: 0 })
                } else {
                    Err(verdict)
                });
            }
        };
        self.policies.memory.note_time(now);
        if now <= until && self.spend_credit(version, hash, now, cost) {
            return Ok(Ok(Charge { at: now, cost }));
        }
        self.decide_any(
            version,
            hash,
            now,
            // Sliding windows and logs cannot book ahead. The peek says whether the request can
            // ever pass.
            Op::Peek(cost),
            &mut || self.book_one_word(version, hash, now, cost, until, reason),
            &|decided| match decided.decision.verdict {
                _ if cost == 0 => Ok(Charge { at: now, cost: 0 }),
                Verdict::Never => Err(Verdict::Never),
                _ => Err(Verdict::Denied),
            },
        )
    }

    fn book_one_word(
        &self,
        version: &Version,
        hash: u64,
        now: u64,
        cost: u64,
        until: u64,
        reason: &mut Option<Reason>,
    ) -> Result<Option<Result<Charge, Verdict>>, RequestError> {
        let memory = &self.policies.memory;
        let mut at = now;
        let mut step = |rule: &Rule, state| match rule.reserve(state, now, cost) {
            _ if cost == 0 => Step::ask(),
            Some(Reservation { at: earliest, next }) if earliest <= until => {
                if earliest > now {
                    // Before the swap, so that a call that gives back permits of this key and reads
                    // the swapped state sees the note.
                    memory.note_booking(version.number);
                }
                at = earliest;
                Step::allow(next)
            }
            _ if rule.step_out_of_line(state, now, cost).verdict == Verdict::Never => Step::never(),
            _ => Step { verdict: Verdict::Denied, next: begun(rule, state, now, cost) },
        };
        let mut booked = Err(Verdict::Denied);
        let mut event = Event::Known;
        let done = self.request(version, hash, now, &mut step, &mut |rule, outcome| {
            if outcome.verdict == Verdict::Denied && rule.bans(outcome.state, now) {
                *reason = Some(Reason::Banned);
            }
            booked =
                if outcome.verdict == Verdict::Allowed { Ok(()) } else { Err(outcome.verdict) };
            event = outcome.event;
        })?;
        let charged = if event == Event::Unremembered { 0 } else { cost };
        Ok(done.then_some(booked.map(|()| Charge { at, cost: charged })))
    }
}

/// The permits for which a caller of [`Table::wait_until`] waits.
pub(super) struct KeyPermits<'a> {
    pub(super) table: &'a Table,
    pub(super) policy: PolicyId,
    pub(super) key: &'a [u8],
}

impl<'a> KeyPermits<'a> {
    pub(super) fn hash(&self) -> u64 {
        self.table.hash_out_of_line(self.key) ^ salt(self.policy.number())
    }

    /// The version that the key is under.
    fn version<'s>(&self, scratch: &'s mut Scratch<'a>) -> Result<&'s Version, RequestError>
    where
        'a: 's,
    {
        self.table.policies.current(self.policy, self.hash(), scratch)
    }
}

/// A clock of the table's time.
impl Clock for KeyPermits<'_> {
    fn now(&self) -> u64 {
        self.table.now()
    }

    fn sleep_until(&self, at: u64) {
        self.table.clock.sleep_until(at.wrapping_sub(self.table.offset));
    }

    fn sleep_until_rung(&self, at: u64, bell: &Bell) {
        bell.sleep(at.saturating_sub(self.table.now()));
    }
}

impl Permits for KeyPermits<'_> {
    type Error = RequestError;

    fn check(&self, now: u64, cost: u64) -> Result<Decision, RequestError> {
        let mut scratch = Scratch::new();
        match self.table.prepare(self.policy, self.key, &mut scratch) {
            Ok((version, hash)) => {
                self.table.policies.memory.note_time(now);
                match self.table.decide_by_credit(version, hash, now, cost) {
                    Some(decision) => Ok(decision),
                    None => self.table.slow_uncounted(version, hash, now, cost),
                }
            }
            Err(decided) => decided,
        }
    }

    fn now(&self) -> u64 {
        self.table.now()
    }

    fn peek(&self, now: u64, cost: u64) -> Result<Decision, RequestError> {
        self.table.try_peek(self.policy, self.key, Some(now), cost)
    }

    fn book(&self, now: u64, cost: u64, until: u64) -> Result<Option<u64>, RequestError> {
        Ok(self
            .table
            .book(self.policy, self.key, now, cost, until, &mut None)?
            .ok()
            .map(|charge| charge.at))
    }

    fn books_ahead(&self) -> Result<bool, RequestError> {
        let mut scratch = Scratch::new();
        let version = self.version(&mut scratch)?;
        Ok(version.multi_word.is_none() && version.rule.books_ahead())
    }

    fn counts_refusals(&self) -> Result<bool, RequestError> {
        let mut scratch = Scratch::new();
        Ok(self.version(&mut scratch)?.rule.counts_refusals())
    }

    fn give_back(&self, booking: Charge) {
        // An error shows itself to the next caller.
        let _ = self.table.give_back(self.policy, self.key, booking, booking.cost);
    }

    /// The credit of any thread may serve the first requests, so the answer for a policy with
    /// credit is `now`.
    fn last_of(
        &self,
        now: u64,
        costs: &mut dyn Iterator<Item = u64>,
        until: u64,
    ) -> Result<u64, RequestError> {
        let mut scratch = Scratch::new();
        let version = self.version(&mut scratch)?;
        if self.table.policies.memory.has_credit(version.number) {
            return Ok(now);
        }
        match self.table.state_of(version, self.hash()) {
            Some(state) => Ok(last_by_steps(&version.rule, state, now, costs, until)),
            None => last_by_peeks(now, costs, |cost| self.peek(now, cost)),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
